//! CSV: one row per CPU and interval, and one for the machine. A number that is not known is an empty cell, and the last
//! column says which and why (`watts:denied`).
//!
//! With `--trace` there are columns for wake-up latency, by idle state and by what woke the CPU; the probe counts over the
//! machine, so they are filled in its row.

use super::cells::{clean, number};
use super::latency;
use crate::view::csv::{Ends, text};
use wakewatt_core::units::LatencyLimit;
use wakewatt_core::watch::document::StateRate;
use wakewatt_core::watch::{Rates, Reading};

/// What every machine has.
const COLUMNS: [&str; 15] = [
    "time",
    "window_s",
    "what",
    "package",
    "node",
    "online",
    "busy_percent",
    "steal_percent",
    "asleep_percent",
    "freq_mhz",
    "wakeups_per_s",
    "watts",
    "temperature_c",
    "throttles_per_s",
    "limit_us",
];

/// Column names; the states are the machine's.
pub fn header(rates: &Rates, is_traced: bool) -> String {
    let mut out: Vec<String> = COLUMNS.map(String::from).to_vec();
    for name in rates.states.iter().map(|s| clean(&s.name)) {
        out.extend(["percent", "wakeups_per_s", "above_per_s", "below_per_s"].map(|what| format!("{name}_{what}")));
    }
    if is_traced {
        out.extend(latency::header(rates));
    }
    out.push("unavailable".into());
    text(Ends::Unix, [&out])
}

/// The rows of an interval.
pub fn rows(rates: &Rates, is_traced: bool) -> String {
    let mut out = Vec::new();
    let m = &rates.machine;
    let total = Line {
        what: TOTAL.into(),
        package: None,
        node: None,
        is_online: true,
        numbers: [
            ("busy", percent(m.summary.busy_ratio)),
            ("steal", percent(m.summary.steal_ratio)),
            ("asleep", percent(m.summary.asleep_ratio)),
            ("freq", m.summary.freq_khz.map(|khz| khz / 1e3)),
            ("wakeups", m.summary.wakeups_per_s),
            ("watts", m.power_uw.map(|uw| uw / 1e6)),
            ("temperature", m.temperature_mc.map(|mc| mc as f64 / 1e3)),
            ("throttles", m.summary.throttles_per_s),
        ],
        limit: m.global_limit,
        states: &m.summary.idle,
    };
    out.push(cells(rates, &total, is_traced));
    for cpu in &rates.cpus {
        let gone = Reading::default();
        let line = Line {
            what: cpu.cpu.to_string(),
            package: cpu.package,
            node: cpu.node,
            is_online: cpu.is_online,
            numbers: [
                ("busy", percent(cpu.busy_ratio)),
                ("steal", percent(cpu.steal_ratio)),
                ("asleep", percent(cpu.asleep_ratio)),
                ("freq", cpu.freq_khz.map(|khz| khz as f64 / 1e3)),
                ("wakeups", cpu.wakeups_per_s),
                // Watts and temperatures belong to packages; a CPU has none to miss.
                ("", gone),
                ("", gone),
                ("throttles", cpu.throttles_per_s),
            ],
            limit: cpu.limit,
            states: &cpu.states,
        };
        out.push(cells(rates, &line, is_traced));
    }
    text(Ends::Unix, &out)
}

/// The machine's row.
const TOTAL: &str = "total";

struct Line<'a> {
    what: String,
    package: Option<u32>,
    node: Option<u32>,
    is_online: bool,
    numbers: [(&'static str, Reading<f64>); 8],
    limit: Reading<LatencyLimit>,
    states: &'a [StateRate],
}

fn percent(ratio: Reading<f64>) -> Reading<f64> {
    ratio.map(|r| r * 100.0)
}

fn cells(rates: &Rates, line: &Line, is_traced: bool) -> Vec<String> {
    let id = |n: Option<u32>| n.map_or(String::new(), |n| n.to_string());
    let mut out = vec![
        number(rates.wall_at_ns as f64 / 1e9),
        number(rates.window.length_ns() as f64 / 1e9),
        line.what.clone(),
        id(line.package),
        id(line.node),
        u8::from(line.is_online).to_string(),
    ];
    let mut missing: Vec<String> = Vec::new();
    for (name, reading) in &line.numbers {
        out.push(reading.get().map_or(String::new(), number));
        if let (Some(why), false) = (reading.why(), name.is_empty()) {
            missing.push(format!("{name}:{}", why.word()));
        }
    }
    out.push(match line.limit {
        Reading::Known(LatencyLimit::None) => "none".to_string(),
        Reading::Known(LatencyLimit::Poll) => "poll".to_string(),
        Reading::Known(LatencyLimit::AtMostNs(ns)) => number(ns as f64 / 1e3),
        Reading::Missing(why) => {
            missing.push(format!("limit:{}", why.word()));
            String::new()
        }
    });
    for info in &rates.states {
        let state = line.states.iter().find(|s| s.index == info.index);
        let parts: [Option<Reading<f64>>; 4] = [
            state.map(|s| percent(s.share_ratio)),
            state.map(|s| s.wakeups_per_s),
            state.map(|s| s.above_per_s),
            state.map(|s| s.below_per_s),
        ];
        out.extend(parts.map(|part| part.and_then(|p| p.get()).map_or(String::new(), number)));
        if let Some(why) = state.and_then(|s| s.share_ratio.why()) {
            missing.push(format!("{}:{}", clean(&info.name), why.word()));
        }
    }
    if is_traced {
        // Only the machine belongs to no CPU.
        out.extend(latency::cells(rates, line.what == TOTAL, &mut missing));
    }
    out.push(missing.join(" "));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::samples::wakes::WakeClass;
    use wakewatt_core::watch::LatencyRow;

    #[test]
    fn latency_has_its_columns_in_the_machines_row() {
        let rates = |wake_latency| Rates { wake_latency, ..crate::tui::sample::small((100, 30)).rates.unwrap() };
        let row = |class: WakeClass, n| LatencyRow {
            state: rates(None).states[1].name.clone(),
            class: class.words().into(),
            n,
            p50_ns: Some(40_500),
            p99_ns: None,
            lost_ns: 90_000,
        };
        let known = rates(Some(vec![row(WakeClass::Remote, 7), row(WakeClass::Busy, 9)]));
        for (rates, is_traced) in [(&known, false), (&known, true), (&rates(None), true)] {
            let n = header(rates, is_traced).split(',').count();
            assert!(rows(rates, is_traced).lines().all(|line| line.split(',').count() == n), "{is_traced}");
        }
        let header = header(&known, true);
        let at = |name: &str| header.trim().split(',').position(|h| h == name).unwrap();
        let state = clean(&known.states[1].name);
        let rows = super::rows(&known, true);
        let cell = |line: usize, name: &str| {
            let name = format!("{state}_woken_by_{name}");
            rows.lines().nth(line).unwrap().split(',').nth(at(&name)).unwrap().to_string()
        };
        let total = ["another_cpu_n", "another_cpu_p50_us", "another_cpu_p99_us", "another_cpu_lost_us", "interrupt_n"];
        assert_eq!(total.map(|name| cell(0, name)), ["7", "40.5", "", "90", "0"]);
        assert_eq!(cell(1, "another_cpu_n"), "", "a CPU has none of its own");
        assert!(super::rows(&rates(None), true).lines().next().unwrap().contains("latency:not traced"));
    }
}
