//! One interval as plain text: what the screen shows, for pipes, logs and terminals that cannot draw.

use crate::tui::filter::Filter;
use crate::tui::rows::{GroupBy, Row, Sort, rows};
use crate::tui::words::{self, cell, count, percent, sensor_value, spelled};
use crate::view::table::Table;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use wakewatt_core::units::show_ns;
use wakewatt_core::watch::document::SensorRate;
use wakewatt_core::watch::layout::StateInfo;
use wakewatt_core::watch::{LatencyRow, Rates, Why};

/// The page.
pub fn page(rates: &Rates, group: GroupBy, sort: Sort, width: usize) -> String {
    let mut out = String::new();
    head(&mut out, rates);
    states(&mut out, rates, width);
    groups(&mut out, rates, group, sort, width);
    power(&mut out, rates, width);
    wake_latency(&mut out, rates, width);
    for note in &rates.notes {
        let _ = writeln!(out, "note: {note}");
    }
    out
}

/// A table behind an empty line; foreign names are made visible by it.
fn table(out: &mut String, heads: &[&str], rows: &[Vec<String>], n_text_columns: usize, width: usize) {
    let heads: Vec<String> = heads.iter().map(ToString::to_string).collect();
    out.push('\n');
    out.push_str(&Table { heads: &heads, rows, n_text_columns }.text(width));
}

/// Only with `--trace`.
fn wake_latency(out: &mut String, rates: &Rates, width: usize) {
    let Some(rows) = &rates.wake_latency else { return };
    let ns = |v: Option<u64>| v.map_or("-".to_string(), show_ns);
    let row = |row: &LatencyRow| {
        let (state, class) = (row.state.clone(), row.class.clone());
        vec![state, class, row.n.to_string(), ns(row.p50_ns), ns(row.p99_ns), show_ns(row.lost_ns)]
    };
    let rows: Vec<_> = rows.iter().map(row).collect();
    table(out, &["woken from", "by", "n", "p50", "p99", "lost"], &rows, 2, width);
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
        (
            "asleep throughout",
            match rates.cpus.is_empty() {
                true => "not known of each CPU".into(),
                false => format!("{} CPUs", s.n_asleep_throughout),
            },
        ),
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

fn states(out: &mut String, rates: &Rates, width: usize) {
    if rates.states.is_empty() || rates.machine.summary.idle.is_empty() {
        return;
    }
    let claim = |ns: Option<u64>| ns.map_or("–".to_string(), show_ns);
    let is_known = rates.states.iter().any(|info| info.lets_package.is_some());
    let row = |info: &StateInfo| {
        let state = rates.machine.summary.idle.iter().find(|s| s.index == info.index)?;
        let mut row = vec![info.name.clone()];
        if is_known {
            row.push(info.lets_package.clone().unwrap_or("–".into()));
        }
        row.extend([claim(info.exit_latency_ns), claim(info.target_residency_ns)]);
        row.push(cell(state.share_ratio, percent));
        row.extend(
            [state.wakeups_per_s, state.above_per_s, state.below_per_s, state.rejected_per_s].map(|r| cell(r, count)),
        );
        Some(row)
    };
    let rows: Vec<_> = rates.states.iter().filter_map(row).collect();
    let mut heads = vec!["idle state", "latency", "residency", "share", "wakes/s", "above/s", "below/s", "refused/s"];
    if is_known {
        heads.insert(1, "lets package");
    }
    table(out, &heads, &rows, if is_known { 2 } else { 1 }, width);
    if !rates.places.is_empty() {
        let _ = writeln!(out, "package states: {}", Why::NotRecorded.explain());
    } else if rates.packages.is_empty() {
        let _ = writeln!(out, "package states: unavailable (which CPUs share a package is not known)");
    }
    for package in rates.packages.iter().filter(|_| rates.places.is_empty()) {
        let _ = writeln!(out, "package {:<6} {}", package.package, words::package_states(package));
    }
}

/// A row per CPU, core, node or package; its idle states are the last columns.
fn groups(out: &mut String, rates: &Rates, group: GroupBy, sort: Sort, width: usize) {
    let what = if rates.cpus.is_empty() { "CPUs" } else { group.word() };
    let mut heads = vec![what, "busy", "asleep", "GHz", "wakes/s", "above/s", "below/s", "watts", "heat", "limit"];
    let rows = rows(rates, group, sort, &Filter::default(), &BTreeSet::new());
    // Kinds of cores may name one index differently.
    let mut states: Vec<&str> = Vec::new();
    for state in rows.iter().flat_map(|row| &row.summary.idle) {
        if !states.contains(&state.name.as_str()) {
            states.push(&state.name);
        }
    }
    heads.extend(&states);
    let row = |row: &Row| {
        let s = &row.summary;
        let stale = if s.is_freq_stale && s.freq_khz.get().is_some() { "~" } else { "" };
        let mut cells = vec![row.label.clone(), cell(s.busy_ratio, percent), cell(s.asleep_ratio, percent)];
        cells.push(cell(s.freq_khz, words::ghz) + stale);
        cells.extend([s.wakeups_per_s, s.above_per_s, s.below_per_s].map(|r| cell(r, count)));
        cells.extend([cell(row.power_uw, words::watts), cell(row.temperature_mc, words::celsius)]);
        cells.push(cell(s.cpu_limit, words::limit));
        let share = |name: &&str| {
            let state = s.idle.iter().find(|state| state.name == **name);
            state.map_or(String::new(), |state| cell(state.share_ratio, percent))
        };
        cells.extend(states.iter().map(share));
        cells
    };
    let cells: Vec<_> = rows.iter().map(row).collect();
    table(out, &heads, &cells, 1, width);
}

fn power(out: &mut String, rates: &Rates, width: usize) {
    let zones = rates.zones.iter().map(|z| vec![format!("{} {}", z.id, z.name), spelled(z.power_uw, words::watts)]);
    let value = |s: &SensorRate| spelled(s.value, |v| sensor_value(s.kind, v));
    let sensors = rates.sensors.iter().map(|s| vec![format!("{} {}", s.chip, s.label), value(s)]);
    let rows: Vec<_> = zones.chain(sensors).collect();
    if !rows.is_empty() {
        table(out, &["energy and sensors", ""], &rows, 1, width);
    }
}
