//! Watts, temperatures, throttling, fans; and what is not to be had, with the reason in words.

use super::{alarm, dim, strong};
use crate::tui::state::State;
use crate::tui::words::{self, count, sensor_value, spelled};
use ratatui::text::{Line, Span};
use std::collections::BTreeMap;
use wakewatt_core::watch::layout::SensorKind;
use wakewatt_core::watch::{Reading, Why};

/// Core temperatures above this number are shown as the hottest.
const MANY: usize = 4;

/// Lines of the panel.
pub(super) fn lines(state: &State, width: u16) -> Vec<Line<'static>> {
    let Some(rates) = &state.rates else { return vec![Line::raw("")] };
    let mut lines = Vec::new();
    let heading =
        format!(" {:<11} {:>9} {:>8} {:>9} {:>9} {:>8}", "package", "watts", "memory", "heat", "throttled", "uncore");
    if !rates.packages.is_empty() {
        lines.push(Line::styled(heading, dim(state)));
    }
    for p in &rates.packages {
        let is_hot = p.throttles_per_s.get().is_some_and(|n| n > 0.0);
        let text = format!(
            " {:<11} {:>9} {:>8} {:>9} {:>9} {:>8}",
            format!("package {}", p.package),
            spelled(p.power_uw, words::watts),
            spelled(p.dram_uw, words::watts),
            spelled(p.temperature_mc, words::celsius),
            spelled(p.throttles_per_s, |n| format!("{}/s", count(n))),
            spelled(p.uncore_khz, |khz| format!("{}GHz", words::ghz(khz as f64)))
        );
        lines.push(Line::styled(text, if is_hot { alarm(state) } else { strong() }));
    }
    let others = rates.zones.iter().filter(|z| !z.name.starts_with("package-") && z.name != "dram");
    for zone in others {
        lines.push(named(state, &format!("{} {}", zone.name, zone.id), &spelled(zone.power_uw, words::watts)));
    }
    let is_core = |label: &str| label.starts_with("Core ");
    let n_cores = rates.sensors.iter().filter(|s| is_core(&s.label)).count();
    for s in &rates.sensors {
        if s.kind == SensorKind::Temperature && n_cores > MANY && is_core(&s.label) {
            continue;
        }
        lines.push(named(state, &format!("{} {}", s.chip, s.label), &spelled(s.value, |v| sensor_value(s.kind, v))));
    }
    let hottest = rates.sensors.iter().filter(|s| is_core(&s.label)).filter_map(|s| Some((s.value.get()?, &s.label)));
    if let Some((mc, label)) = hottest.max().filter(|_| n_cores > MANY) {
        lines.push(named(state, &format!("hottest of {n_cores} cores: {label}"), &words::celsius(mc)));
    }
    if !rates.sensors.iter().any(|s| s.kind == SensorKind::Fan) {
        lines.push(named(state, "fans", "none seen (servers keep them behind the BMC)"));
    }
    lines.extend(missing(state, usize::from(width)));
    lines.extend(rates.notes.iter().map(|n| Line::styled(format!(" note: {}", words::escaped(n)), dim(state))));
    lines
}

fn named(state: &State, name: &str, value: &str) -> Line<'static> {
    let name: String = words::escaped(name).chars().take(30).collect();
    Line::from(vec![Span::styled(format!(" {name:<30} "), dim(state)), Span::raw(value.to_string())])
}

/// Each reason once, with what it keeps from view.
fn missing(state: &State, width: usize) -> Vec<Line<'static>> {
    let Some(rates) = &state.rates else { return Vec::new() };
    let s = &rates.machine.summary;
    let mut by_reason: BTreeMap<&'static str, (Why, Vec<&'static str>)> = BTreeMap::new();
    let mut note = |name: &'static str, why: Option<Why>| {
        if let Some(why) = why {
            by_reason.entry(why.word()).or_insert((why, Vec::new())).1.push(name);
        }
    };
    note("busy", s.busy_ratio.why());
    note("frequency", s.freq_khz.why());
    note("wake-ups", s.wakeups_per_s.why());
    note("power", rates.machine.power_uw.why());
    note("temperature", rates.machine.temperature_mc.why());
    note("core throttling", s.throttles_per_s.why());
    note("latency limit", rates.machine.global_limit.why());
    let uncore = rates.packages.first().map_or(Reading::Missing(Why::Absent), |p| p.uncore_khz);
    note("uncore frequency", uncore.why());
    by_reason
        .into_iter()
        .flat_map(|(word, (why, names))| {
            let text = format!("{word}: {} ({})", names.join(", "), why.explain());
            wrap(&text, width.saturating_sub(2))
        })
        .map(|line| Line::styled(format!(" {line}"), dim(state)))
        .collect()
}

/// Broken at blanks; further lines are indented.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last().map_or(0, |l| l.chars().count());
        if last > 0 && last + 1 + word.chars().count() > width {
            lines.push("  ".into());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() && !line.ends_with(' ') {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}
