//! A replay as text: how far it may be trusted, who decided, recorded beside predicted.

use crate::report::trace::clean;
use crate::view::table::Table;
use std::fmt::Write as _;
use wakewatt_core::units::{exact_ns, rough_ns, show_ns};
use wakewatt_models::replay::sweep::Sweep;
use wakewatt_models::replay::{PolicyTold, Replayed, Side};

fn percent(ratio: f64) -> String {
    format!("{:.1} %", ratio * 100.0)
}

fn energy(uj: f64) -> String {
    format!("{:.3} J", uj / 1e6)
}

fn policy(p: &PolicyTold) -> String {
    let limit = p.latency_limit_ns.map_or("no latency limit".into(), |ns| format!("limit {}", exact_ns(ns)));
    format!(
        "{}, kernel {} ({}, {}), {limit}, may choose {}",
        p.governor,
        clean(&p.kernel),
        p.model,
        p.basis,
        clean(&p.states.join(" "))
    )
}

/// Recorded beside predicted, state by state. States that one side lacks are blank there.
fn sides(recorded: &Side, predicted: &Side, width: usize) -> String {
    let heads =
        ["state", "recorded", "time", "wake-ups", "above", "below", "predicted", "time", "wake-ups", "above", "below"];
    let mut names: Vec<&String> = recorded.states.iter().map(|s| &s.state).collect();
    names.extend(
        predicted.states.iter().map(|s| &s.state).filter(|name| !recorded.states.iter().any(|s| s.state == **name)),
    );
    let cells = |side: &Side, name: &str| match side.states.iter().find(|s| s.state == name) {
        Some(s) => {
            vec![
                s.n.to_string(),
                percent(s.time_ratio),
                s.n_wakes.to_string(),
                s.n_above.to_string(),
                s.n_below.to_string(),
            ]
        }
        None => vec![String::new(); 5],
    };
    let row = |name: &&String| [vec![clean(name)], cells(recorded, name), cells(predicted, name)].concat();
    let rows: Vec<_> = names.iter().map(row).collect();
    let mut out = Table { heads: &heads.map(String::from), rows: &rows, n_text_columns: 1 }.text(width);
    let cost = |side: &Side| {
        let at = |q| side.wake_cost.quantile(q).map_or("-".into(), |v| show_ns(v.value_ns));
        format!("mean {}, p50 {}, p99 {}", rough_ns(side.wake_cost.mean_ns), at(0.5), at(0.99))
    };
    let _ = writeln!(out, "cost of a wake-up: recorded {}; predicted {}", cost(recorded), cost(predicted));
    let added = predicted.wake_cost.mean_ns - recorded.wake_cost.mean_ns;
    let (word, by) = if added < 0.0 { ("sooner", -added) } else { ("later", added) };
    let _ = writeln!(out, "on average a wake-up comes {} {word}", rough_ns(by));
    let _ = writeln!(
        out,
        "energy while idle (model): recorded {}, predicted {}",
        energy(recorded.modelled_energy_uj),
        energy(predicted.modelled_energy_uj)
    );
    out
}

/// The whole result.
pub(super) fn replayed(r: &Replayed, is_by_cpu: bool, width: usize) -> String {
    let mut out = format!("{}\n\n", r.trust);
    for [recorded, asked] in &r.policies {
        let _ = writeln!(out, "recorded:  {}\npredicted: {}", policy(recorded), policy(asked));
    }
    out.push('\n');
    out.push_str(&sides(&r.recorded, &r.predicted, width));
    if is_by_cpu {
        for cpu in &r.cpus {
            let alike = cpu.identical_ratio.map_or("none compared".into(), |share| format!("{} alike", percent(share)));
            let _ = writeln!(out, "\nCPU {} ({alike})", cpu.cpu);
            out.push_str(&sides(&cpu.recorded, &cpu.predicted, width));
        }
    }
    // The method against itself: the recorded policy, predicted.
    let time = |side: &Side, name: &str| side.states.iter().find(|s| s.state == name).map_or(0.0, |s| s.time_ratio);
    let off =
        r.recorded.states.iter().map(|s| (s.time_ratio - time(&r.recorded_again, &s.state)).abs()).fold(0.0, f64::max);
    let _ = writeln!(
        out,
        "\nThe recorded policy, predicted in the same way, is off by at most {} of idle time in any state.",
        percent(off)
    );
    r.remarks.iter().for_each(|words| {
        let _ = writeln!(out, "{}", clean(words));
    });
    out
}

/// The frontier.
pub(super) fn swept(s: &Sweep, width: usize) -> String {
    let heads = ["limit", "mean wake-up cost", "p99", "energy while idle (model)", ""].map(String::from);
    let row = |p: &wakewatt_models::replay::sweep::Point| {
        let limit = if p.limit_ns == 0 { "poll".into() } else { exact_ns(p.limit_ns) };
        let p99 = p.p99_wake_cost_ns.map_or("-".into(), show_ns);
        let knee = if Some(p.limit_ns) == s.knee_ns { "knee" } else { "" };
        vec![limit, rough_ns(p.mean_wake_cost_ns), p99, energy(p.modelled_energy_uj), knee.into()]
    };
    let rows: Vec<_> = s.points.iter().map(row).collect();
    let mut out = format!("{}\n\n", s.trust);
    out.push_str(&Table { heads: &heads, rows: &rows, n_text_columns: 1 }.text(width));
    out.push('\n');
    s.remarks.iter().for_each(|words| {
        let _ = writeln!(out, "{}", clean(words));
    });
    out
}
