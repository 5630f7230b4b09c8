//! One interval as plain text: what the screen shows, for pipes, logs and terminals that cannot draw.

use crate::tui::filter::Filter;
use crate::tui::rows::{GroupBy, Sort, rows};
use crate::tui::words::{self, cell, count, percent, sensor_value, spelled};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use wakewatt_core::units::show_ns;
use wakewatt_core::watch::Rates;

/// The page.
pub fn page(rates: &Rates, group: GroupBy, sort: Sort) -> String {
    let mut out = String::new();
    head(&mut out, rates);
    states(&mut out, rates);
    table(&mut out, rates, group, sort);
    power(&mut out, rates);
    wake_latency(&mut out, rates);
    for note in &rates.notes {
        let _ = writeln!(out, "note: {note}");
    }
    out
}

/// Only with `--trace`.
fn wake_latency(out: &mut String, rates: &Rates) {
    let Some(rows) = &rates.wake_latency else { return };
    let ns = |v: Option<u64>| v.map_or("-".to_string(), show_ns);
    let _ = writeln!(out, "\n{:<16} {:<20} {:>9} {:>9} {:>9} {:>9}", "woken from", "by", "n", "p50", "p99", "lost");
    for row in rows {
        let (state, class) = (words::escaped(&row.state), words::escaped(&row.class));
        let (p50, p99, lost) = (ns(row.p50_ns), ns(row.p99_ns), show_ns(row.lost_ns));
        let _ = writeln!(out, "{state:<16} {class:<20} {:>9} {p50:>9} {p99:>9} {lost:>9}", row.n);
    }
}

fn head(out: &mut String, rates: &Rates) {
    let m = &rates.machine;
    let s = &m.summary;
    let host = rates.hostname.as_deref().map(words::escaped).map_or(String::new(), |h| format!("{h}, "));
    let window = show_ns(rates.window.length_ns());
    let _ = writeln!(out, "{host}{}: {} CPUs online, window {window}", words::escaped(&rates.origin), m.n_online);
    let c = &rates.cost;
    let _ = writeln!(
        out,
        "watching: sources {}, {} interrupts of other CPUs; itself {} wake-ups/s, {} of one CPU; read in {}\n",
        c.sources.word(),
        c.n_remote_interrupts,
        spelled(c.own_wakeups_per_s, count),
        spelled(c.own_cpu_ratio, percent),
        show_ns(c.reading_ns)
    );
    let source = m.power_source.as_deref().map_or(String::new(), |s| format!(" ({s})"));
    for (name, value) in [
        ("busy", spelled(s.busy_ratio, percent)),
        ("stolen", spelled(s.steal_ratio, percent)),
        ("still asleep", spelled(s.asleep_ratio, percent)),
        ("asleep throughout", format!("{} CPUs", s.n_asleep_throughout)),
        (
            "frequency",
            spelled(s.freq_khz, |f| {
                format!("{} GHz{}", words::ghz(f), if s.is_freq_stale { " (stale: no CPU ran)" } else { "" })
            }),
        ),
        ("wake-ups", spelled(s.wakeups_per_s, |n| format!("{}/s", count(n)))),
        ("interrupts", spelled(m.interrupts_per_s, |n| format!("{}/s", count(n)))),
        ("context switches", spelled(m.context_switches_per_s, |n| format!("{}/s", count(n)))),
        ("power", spelled(m.power_uw, words::watts) + &source),
        ("temperature", spelled(m.temperature_mc, words::celsius)),
        ("throttling", spelled(s.throttles_per_s, |n| format!("{}/s", count(n)))),
        ("latency limit", spelled(m.global_limit, words::limit) + &holders(rates)),
        ("tightest CPU limit", spelled(s.cpu_limit, words::limit)),
    ] {
        let _ = writeln!(out, "  {name:<19} {value}");
    }
}

fn holders(rates: &Rates) -> String {
    let holders = &rates.machine.limit_holders;
    if holders.is_empty() { String::new() } else { format!(", held by {}", words::escaped(&holders.join(", "))) }
}

fn states(out: &mut String, rates: &Rates) {
    if rates.states.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\n{:<14} {:>9} {:>9} {:>8} {:>9} {:>9} {:>9} {:>9}",
        "idle state", "latency", "residency", "share", "wakes/s", "above/s", "below/s", "refused/s"
    );
    for info in &rates.states {
        let claim = |ns: Option<u64>| ns.map_or("–".to_string(), show_ns);
        let Some(state) = rates.machine.summary.idle.iter().find(|s| s.index == info.index) else { continue };
        let _ = writeln!(
            out,
            "{:<14} {:>9} {:>9} {:>8} {:>9} {:>9} {:>9} {:>9}",
            words::escaped(&info.name),
            claim(info.exit_latency_ns),
            claim(info.target_residency_ns),
            cell(state.share_ratio, percent),
            cell(state.wakeups_per_s, count),
            cell(state.above_per_s, count),
            cell(state.below_per_s, count),
            cell(state.rejected_per_s, count)
        );
    }
}

fn table(out: &mut String, rates: &Rates, group: GroupBy, sort: Sort) {
    let _ = writeln!(
        out,
        "\n{:<13} {:>7} {:>7} {:>6} {:>8} {:>8} {:>8} {:>7} {:>6} {:>7}  idle states",
        group.word(),
        "busy",
        "asleep",
        "GHz",
        "wakes/s",
        "above/s",
        "below/s",
        "watts",
        "heat",
        "limit"
    );
    for row in rows(rates, group, sort, &Filter::default(), &BTreeSet::new()) {
        let s = &row.summary;
        let states: Vec<String> = s
            .idle
            .iter()
            .map(|state| format!("{} {}", words::escaped(&state.name), cell(state.share_ratio, percent)))
            .collect();
        let freq = cell(s.freq_khz, words::ghz) + if s.is_freq_stale && s.freq_khz.get().is_some() { "~" } else { "" };
        let _ = writeln!(
            out,
            "{:<13} {:>7} {:>7} {freq:>6} {:>8} {:>8} {:>8} {:>7} {:>6} {:>7}  {}",
            row.label,
            cell(s.busy_ratio, percent),
            cell(s.asleep_ratio, percent),
            cell(s.wakeups_per_s, count),
            cell(s.above_per_s, count),
            cell(s.below_per_s, count),
            cell(row.power_uw, words::watts),
            cell(row.temperature_mc, words::celsius),
            cell(s.cpu_limit, words::limit),
            states.join("  ")
        );
    }
}

fn power(out: &mut String, rates: &Rates) {
    if rates.zones.is_empty() && rates.sensors.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nenergy and sensors");
    for zone in &rates.zones {
        let _ = writeln!(
            out,
            "  {:<28} {}",
            words::escaped(&format!("{} {}", zone.id, zone.name)),
            spelled(zone.power_uw, words::watts)
        );
    }
    for sensor in &rates.sensors {
        let _ = writeln!(
            out,
            "  {:<28} {}",
            words::escaped(&format!("{} {}", sensor.chip, sensor.label)),
            spelled(sensor.value, |v| sensor_value(sensor.kind, v))
        );
    }
}
