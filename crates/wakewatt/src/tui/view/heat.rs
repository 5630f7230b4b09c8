//! Watts, temperatures, throttling, fans; and what is not to be had, with the reason in words.

use super::{alarm, dim, strong};
use crate::tui::state::State;
use crate::tui::words::{self, count, sensor_value, spelled};
use crate::view::width::{begin, padded};
use ratatui::text::{Line, Span};
use std::collections::BTreeMap;
use wakewatt_core::watch::layout::SensorKind;
use wakewatt_core::watch::{Reading, Why};
use wakewatt_words::{say, told, word};

/// Core temperatures above this number are shown as the hottest.
const MANY: usize = 4;

/// Lines of the panel.
pub(super) fn lines(state: &State, width: u16) -> Vec<Line<'static>> {
    let Some(rates) = &state.rates else { return vec![Line::raw("")] };
    let mut lines = Vec::new();
    let heading = words::row(&[
        (word!("package"), -11),
        (word!("watts"), 9),
        (word!("memory"), 8),
        (word!("heat"), 9),
        (word!("throttled"), 9),
        ("uncore", 8),
    ]);
    if !rates.packages.is_empty() {
        lines.push(Line::styled(heading, dim(state)));
    }
    for p in &rates.packages {
        let is_hot = p.throttles_per_s.get().is_some_and(|n| n > 0.0);
        let text = words::row(&[
            (&say!("package {}", p.package), -11),
            (&spelled(p.power_uw, words::watts), 9),
            (&spelled(p.dram_uw, words::watts), 8),
            (&spelled(p.temperature_mc, words::celsius), 9),
            (&spelled(p.throttles_per_s, |n| format!("{}/s", count(n))), 9),
            (&spelled(p.uncore_khz, |khz| format!("{}GHz", words::ghz(khz as f64))), 8),
        ]);
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
        lines.push(named(state, &say!("hottest of {n_cores} cores: {label}"), &words::celsius(mc)));
    }
    if !rates.sensors.iter().any(|s| s.kind == SensorKind::Fan) {
        lines.push(named(state, word!("fans"), word!("none seen (servers keep them behind the BMC)")));
    }
    lines.extend(missing(state, usize::from(width)));
    lines.extend(rates.notes.iter().map(|n| Line::styled(say!(" note: {}", words::escaped(n)), dim(state))));
    lines
}

fn named(state: &State, name: &str, value: &str) -> Line<'static> {
    let name = words::escaped(name);
    let name = padded(begin(&name, 30), 30);
    Line::from(vec![Span::styled(format!(" {name} "), dim(state)), Span::raw(value.to_string())])
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
    note(word!("busy"), s.busy_ratio.why());
    note(word!("frequency"), s.freq_khz.why());
    note(word!("wake-ups"), s.wakeups_per_s.why());
    note(word!("power"), rates.machine.power_uw.why());
    note(word!("temperature"), rates.machine.temperature_mc.why());
    note(word!("core throttling"), s.throttles_per_s.why());
    note(word!("latency limit"), rates.machine.global_limit.why());
    let uncore = rates.packages.first().map_or(Reading::Missing(Why::Absent), |p| p.uncore_khz);
    note(word!("uncore frequency"), uncore.why());
    by_reason
        .into_iter()
        .flat_map(|(word, (why, names))| {
            let text = format!("{}: {} ({})", told(word), names.join(", "), told(why.explain()));
            wrap(&text, width.saturating_sub(2))
        })
        .map(|line| Line::styled(format!(" {line}"), dim(state)))
        .collect()
}

/// Broken at blanks; further lines are indented.
fn wrap(text: &str, width: usize) -> Vec<String> {
    crate::view::wrap::wrap("", "  ", text, width).lines().map(str::to_string).collect()
}
