//! Which assumed number moves the result most: every assumption about the machines, a fifth less and a
//! fifth more, one at a time.
//!
//! Requests and their work are what is asked of the model and stay as they are. All runs have the same
//! arrivals and services, so small differences show in short runs. A number that a file leaves at its
//! default is assumed like any other.

use crate::law::Law;
use crate::moved::Moved;
use crate::server::{After, Arrivals, IdleState, Machine, Quantity, Refused, Server, ServerError};
use crate::simulate_all;
use crate::span::Span;
use crate::study::{Point, Study, number};

/// All of them in a line; none of nothing.
pub fn listed(moved: &[Moved]) -> Option<String> {
    let all: Vec<String> = moved.iter().map(Moved::to_string).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

type Scale = fn(&mut Machine, f64);

/// Assumptions about a machine, and how one is scaled; what a machine does not use stays as it is.
const ASSUMED: &[(&str, Scale)] = &[
    ("machine.wake_cost", |m, by| scale(&mut m.wake_cost, by)),
    ("machine.tick_cost", |m, by| scale(&mut m.tick_cost, by)),
    ("machine.smt_share", |m, by| m.smt_share = if m.threads > 1 { (m.smt_share * by).min(1.0) } else { m.smt_share }),
    ("machine.numa_penalty", |m, by| m.numa_penalty *= by),
    ("machine.idle.exit_share", |m, by| m.idle.exit_share *= by),
    ("machine.idle.entry_share", |m, by| m.idle.entry_share *= by),
    ("machine.idle.state.exit", |m, by| m.idle.state.iter_mut().for_each(|state| scale_exit(state, by))),
    ("machine.idle.state.cold", |m, by| m.idle.state.iter_mut().for_each(|state| scale_cold(state, by))),
    ("machine.idle.package_exit", |m, by| scale(&mut m.idle.package_exit, by)),
    ("machine.clock.ramp", |m, by| scale(&mut m.clock.ramp, by)),
    ("machine.clock.epp_strength", |m, by| m.clock.epp_strength = (m.clock.epp_strength * by).min(1.0)),
    ("machine.power.platform_w", |m, by| m.power.platform_w *= by),
    ("machine.power.memory_w", |m, by| m.power.memory_w *= by),
    ("machine.power.uncore_w", |m, by| m.power.uncore_w *= by),
    ("machine.power.uncore_sleep_w", |m, by| m.power.uncore_sleep_w *= by),
    ("machine.power.core_dynamic_w", |m, by| m.power.core_dynamic_w *= by),
    ("machine.power.core_leakage_w", |m, by| m.power.core_leakage_w *= by),
    ("machine.power.one_thread_share", |m, by| m.power.one_thread_share = (m.power.one_thread_share * by).min(1.0)),
    ("machine.power.volt_per_ghz", |m, by| m.power.volt_per_ghz *= by),
    ("machine.power.poll_activity", |m, by| m.power.poll_activity = (m.power.poll_activity * by).min(1.0)),
    ("machine.power.gated_share", |m, by| m.power.gated_share *= by),
    ("machine.power.deep_share", |m, by| m.power.deep_share *= by),
];

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Positive, and `as` saturates.
fn scale(span: &mut Span, by: f64) {
    span.0 = (span.0 as f64 * by).round() as u64;
}

fn scale_rows(rows: &mut [After], by: f64) {
    rows.iter_mut().for_each(|row| scale(&mut row.exit, by));
}

fn scale_exit(state: &mut IdleState, by: f64) {
    let law = |law: &mut Law| {
        law.mean.iter_mut().for_each(|mean| scale(mean, by));
        law.buckets.iter_mut().for_each(|bucket| scale(&mut bucket.upto, by));
    };
    state.exit.iter_mut().for_each(law);
    scale_rows(&mut state.after, by);
    scale_rows(&mut state.after_ipi, by);
}

fn scale_cold(state: &mut IdleState, by: f64) {
    scale(&mut state.cold, by);
    scale_rows(&mut state.cold_after, by);
}

/// Events of a run that is long enough to compare.
const EVENTS: f64 = 3e5;

/// For each quantity the assumption that moves it most; none of a quantity that the outcome lacks, and of
/// none where the server is saturated.
pub fn sensitivity(server: &Server, quantities: &[Quantity], n_threads: usize) -> Result<Vec<Moved>, Refused> {
    let mut base = server.clone();
    base.change = None;
    base.run.replications = 2;
    let within = EVENTS / base.most_events_per_s().max(1.0) / 2.0;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Positive, and `as` saturates.
    let duration = base.run.counted().min(Span((within * 1e9) as u64)).max(Span::ms(1));
    (base.run.duration, base.run.warmup) = (Some(duration), None);
    let mut fields = Vec::new();
    let mut servers = vec![base.clone()];
    for (field, scale) in ASSUMED {
        let both = [0.8, 1.2].map(|by| {
            let mut scaled = base.clone();
            scaled.machine.iter_mut().for_each(|m| scale(m, by));
            scaled
        });
        if both.iter().all(|scaled| *scaled != base && scaled.check().is_ok()) {
            fields.push(*field);
            servers.extend(both);
        }
    }
    let outcomes = simulate_all(&servers, n_threads)?;
    let Some((base, others)) = outcomes.split_first().filter(|(base, _)| !base.is_saturated) else {
        return Ok(Vec::new());
    };
    let most = |quantity: &Quantity| {
        let (before, _) = number(base, *quantity).filter(|(value, _)| *value > 0.0)?;
        let ratio = |o| number(o, *quantity).map(|(value, _)| value / before - 1.0);
        let moved = fields.iter().zip(others.chunks(2)).filter_map(|(field, both)| {
            let ratios = [ratio(&both[0])?, ratio(&both[1])?];
            Some(Moved { quantity: *quantity, field: (*field).into(), ratios })
        });
        moved.max_by(|a, b| a.size().total_cmp(&b.size()))
    };
    Ok(quantities.iter().filter_map(most).collect())
}

/// The same of a study: its first setting, at the level that is nearest to half load.
pub fn of_study(server: &Server, study: &Study, n_threads: usize) -> Result<Vec<Moved>, ServerError> {
    let from_half = |p: &Point| p.level_percent.map_or(0.0, |level| (level - 50.0).abs());
    let of_first = |p: &&Point| study.points.first().is_some_and(|first| p.setting == first.setting);
    let Some(point) = study.points.iter().filter(of_first).min_by(|a, b| from_half(a).total_cmp(&from_half(b))) else {
        return Ok(Vec::new());
    };
    let setting = server.setting.iter().find(|s| s.name == point.setting);
    let set: Vec<String> = setting.iter().flat_map(|s| &s.set).chain(&point.swept).cloned().collect();
    let mut base = server.with(&set)?;
    if let Some((level, full)) = point.level_percent.zip(study.full_per_s) {
        base.workload.arrivals = Arrivals::poisson(full * level / 100.0);
    }
    Ok(sensitivity(&base, &[Quantity::P99Us, Quantity::WallW], n_threads)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::{Hop, Idle, Workload};

    fn server() -> Server {
        let machine = Machine {
            cores: 2,
            idle: Idle {
                state: vec![IdleState { exit: Some(Law::fixed(Span::us(400))), ..IdleState::free() }],
                governor: crate::server::IdleGovernor::Fixed,
                ..Idle::default()
            },
            ..Machine::default()
        };
        let hop = vec![Hop::of(Law::fixed(Span::us(100)))];
        Server::of(machine, Workload { arrivals: Arrivals::poisson(100.0), hop, rounds: None, limit: None })
    }

    #[test]
    fn the_assumption_that_counts_is_named_with_what_it_does() {
        let found = sensitivity(&server(), &[Quantity::P50Us, Quantity::WallW], 2).unwrap();
        let [time, watts] = &found[..] else { panic!("{found:?}") };
        // 400 of 505 us are the exit.
        assert_eq!(time.field, "machine.idle.state.exit");
        assert!((time.ratios[0] + 0.158).abs() < 0.01 && (time.ratios[1] - 0.158).abs() < 0.01, "{time:?}");
        // Of an idle machine that never sleeps deep: 30 W of platform, 35 W of package and memory.
        assert_eq!(watts.field, "machine.power.platform_w");
        let said = listed(&found).unwrap();
        assert!(said.starts_with("p50: machine.idle.state.exit (−15."), "{said}");
        let still = Moved { ratios: [0.001, -0.002], ..watts.clone() };
        assert_eq!(still.to_string(), "watts: no assumption by 0.5 %");
    }

    #[test]
    fn a_saturated_server_tells_nothing() {
        let mut server = server();
        server.workload.arrivals = Arrivals::poisson(50_000.0);
        assert_eq!(sensitivity(&server, &[Quantity::WallW], 2).unwrap(), []);
        assert_eq!(listed(&[]), None);
    }
}
