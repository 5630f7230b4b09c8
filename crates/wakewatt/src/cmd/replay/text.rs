//! A replay as text: how far it may be trusted, who decided, recorded beside predicted; every limit, an objective, an upgrade.

use crate::report::trace::clean;
use crate::view::table::Table;
use std::fmt::Write as _;
use wakewatt_core::samples::replayed::{Followed, PolicyTold, Replayed, Side};
use wakewatt_core::units::{LatencyLimit, exact_ns, rough_ns, show_ns};
use wakewatt_models::replay::Upgrade;
use wakewatt_models::replay::slo::{Slo, SloLimit};
use wakewatt_models::replay::sweep::Sweep;

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
fn sides(names: [&str; 2], recorded: &Side, predicted: &Side, followed: Followed, width: usize) -> String {
    let heads = [
        "state", "exit is", "exit", names[0], "time", "wake-ups", "above", "below", names[1], "time", "wake-ups",
        "above", "below",
    ];
    let cells = |side: &Side, name: &str| match side.state(name) {
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
    let row = |name: &str| {
        // Of a name that both tables have what is asked counts.
        let any = predicted.state(name).or(recorded.state(name));
        let exit = any.map_or(vec![String::new(); 2], |s| vec![s.exit_basis.to_string(), show_ns(s.exit_ns)]);
        [vec![clean(name)], exit, cells(recorded, name), cells(predicted, name)].concat()
    };
    let rows: Vec<_> = recorded.names(predicted).into_iter().map(row).collect();
    let mut out = Table { heads: &heads.map(String::from), rows: &rows, n_text_columns: 2 }.text(width);
    let cost = |side: &Side| {
        let at = |q| side.wake_cost.quantile(q).map_or("-".into(), |v| show_ns(v.value_ns));
        format!("mean {}, p50 {}, p99 {}", rough_ns(side.wake_cost.mean_ns), at(0.5), at(0.99))
    };
    let _ = writeln!(out, "cost of a wake-up: {} {}; {} {}", names[0], cost(recorded), names[1], cost(predicted));
    if followed.is_enough() {
        let added = predicted.wake_cost.mean_ns - recorded.wake_cost.mean_ns;
        let (word, by) = if added < 0.0 { ("sooner", -added) } else { ("later", added) };
        let _ = writeln!(out, "on average a wake-up comes {} {word}", rough_ns(by));
    }
    let _ = writeln!(
        out,
        "energy while idle (model): {} {}, {} {}",
        names[0],
        energy(recorded.modelled_energy_uj),
        names[1],
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
    out.push_str(&sides(["recorded", "predicted"], &r.recorded, &r.predicted, r.followed, width));
    if is_by_cpu {
        for cpu in &r.cpus {
            let alike = cpu.identical_ratio.map_or("none compared".into(), |share| format!("{} alike", percent(share)));
            let _ = writeln!(out, "\nCPU {} ({alike})", cpu.cpu);
            out.push_str(&sides(["recorded", "predicted"], &cpu.recorded, &cpu.predicted, r.followed, width));
        }
    }
    // The method against itself: the recorded policy, predicted.
    let time = |side: &Side, name: &str| side.state(name).map_or(0.0, |s| s.time_ratio);
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

/// The objective.
pub(super) fn slo(s: &Slo, width: usize) -> String {
    let heads = ["limit", "keeps it", "percentile", "at worst", "energy while idle (model)"].map(String::from);
    let row = |l: &SloLimit| {
        let limit = if l.limit == LatencyLimit::None { "no limit".into() } else { l.limit.to_string() };
        let kept = match (l.is_kept, l.is_kept_at_worst) {
            _ if !s.followed.is_enough() => "-",
            (true, true) => "yes",
            (true, false) => "yes, not at worst",
            (false, _) => "no",
        };
        vec![limit, kept.into(), show_ns(l.percentile_ns), show_ns(l.worst_percentile_ns), energy(l.modelled_energy_uj)]
    };
    let rows: Vec<_> = s.limits.iter().map(row).collect();
    let mut out = format!("{}\n{}\n\n", s.trust, clean(&s.answer));
    out.push_str(&Table { heads: &heads, rows: &rows, n_text_columns: 2 }.text(width));
    out.push('\n');
    if let Some(command) = &s.command {
        let _ = writeln!(out, "  {command}\n");
    }
    s.remarks.iter().for_each(|words| {
        let _ = writeln!(out, "{}", clean(words));
    });
    out
}

/// The upgrade.
pub(super) fn upgrade(u: &Upgrade, is_by_cpu: bool, width: usize) -> String {
    let mut out = format!("{}\n{}\n\n", u.trust, clean(&u.judgement));
    for [old, new] in &u.policies {
        let _ = writeln!(out, "old: {}\nnew: {}", policy(old), policy(new));
    }
    out.push('\n');
    if !u.moves.is_empty() {
        let heads = ["from", "to", "decisions", "share of all"].map(String::from);
        let row =
            |m: &wakewatt_models::replay::Move| vec![clean(&m.from), clean(&m.to), m.n.to_string(), percent(m.ratio)];
        let rows: Vec<_> = u.moves.iter().map(row).collect();
        out.push_str(&Table { heads: &heads, rows: &rows, n_text_columns: 2 }.text(width));
        out.push('\n');
    }
    out.push_str(&sides(["old", "new"], &u.old, &u.new, u.followed, width));
    if is_by_cpu {
        for cpu in &u.cpus {
            let _ = writeln!(out, "\nCPU {}", cpu.cpu);
            out.push_str(&sides(["old", "new"], &cpu.old, &cpu.new, u.followed, width));
        }
    }
    out.push('\n');
    u.remarks.iter().for_each(|words| {
        let _ = writeln!(out, "{}", clean(words));
    });
    out
}
