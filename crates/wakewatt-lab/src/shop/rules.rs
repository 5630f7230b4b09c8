//! What makes a level invalid: failures, clients that were too slow themselves, a rate that was not reached.
//!
//! The reasons are in docs/methods/load.md. An invalid level is shown and marked, never dropped.

use super::usage::GeneratorUse;
use wakewatt_core::distribution::Distribution;
use wakewatt_core::samples::load::{Ask, Level};
use wakewatt_core::units::show_ns;

/// More failures than this make a level invalid.
const FAILED_RATIO: f64 = 0.01;
/// Clients that use more than this of their CPUs measure themselves.
const BUSY_RATIO: f64 = 0.8;
/// Requests that start later than this, and late by this share of the latency, were held up by the clients themselves.
const LATE_NS: u64 = 1_000_000;
const LATE_RATIO: f64 = 0.25;
/// The rate done may miss the rate asked for by this, and by what chance allows.
const RATE_RATIO: f64 = 0.02;

/// Which rules a level broke.
pub(super) fn broken_rules(level: &Level, generator: &GeneratorUse, n_cpus: usize) -> Vec<String> {
    let mut broken = Vec::new();
    let n_planned = level.n_planned.max(1) as f64;
    if level.n_failed as f64 > FAILED_RATIO * n_planned {
        let share = 100.0 * level.n_failed as f64 / n_planned;
        broken.push(format!("{} of {} requests failed ({share:.1} %)", level.n_failed, level.n_planned));
    }
    if level.n_planned == 0 && level.ask != Ask::Idle {
        broken.push("no request was planned in the window; record longer, or think shorter".into());
    }
    let window_ns = level.window.length_ns().max(1) as f64;
    let busy = generator.cpu_ns.unwrap_or(0) as f64 / (window_ns * n_cpus.max(1) as f64);
    if busy > BUSY_RATIO {
        broken.push(format!(
            "the clients used {:.0} % of their CPUs: they measure themselves; give them more",
            busy * 100.0
        ));
    }
    let p90 = |d: &Distribution| d.quantile(0.9).map(|q| q.value_ns);
    if let (Some(late), Some(latency)) = (p90(&generator.late), level.latency.as_ref().and_then(p90)) {
        let is_late = late > LATE_NS && late as f64 > LATE_RATIO * latency as f64;
        // In an open loop a slow server makes requests wait for a connection; that is its doing.
        if is_late && level.target_per_s.is_none() {
            let (late, latency) = (show_ns(late), show_ns(latency));
            broken.push(format!(
                "one request in ten started {late} late or more (p90 of all {latency}): the clients had no CPU"
            ));
        }
    }
    if let Some(asked) = level.target_per_s {
        let chance = 4.0 * (asked / (window_ns / 1e9)).sqrt();
        let missed = (level.per_s - asked).abs();
        if missed > RATE_RATIO * asked && missed > chance {
            broken.push(format!("{:.1} requests/s were answered of {asked:.1} asked for", level.per_s));
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::samples::Window;

    #[test]
    fn a_level_says_which_rule_it_broke() {
        let level = Level {
            ask: Ask::Rate(100.0),
            window: Window { start_at_ns: 0, end_at_ns: 10_000_000_000 },
            target_per_s: Some(100.0),
            n_planned: 1000,
            n_done: 900,
            n_failed: 100,
            per_s: 80.0,
            ..Level::default()
        };
        let generator = GeneratorUse { cpu_ns: Some(9_000_000_000), ..GeneratorUse::default() };
        let broken = broken_rules(&level, &generator, 1).join("; ");
        for words in
            ["100 of 1000 requests failed (10.0 %)", "90 % of their CPUs", "80.0 requests/s were answered of 100.0"]
        {
            assert!(broken.contains(words), "{broken}");
        }
        assert_eq!(broken_rules(&Level { n_failed: 0, per_s: 99.0, ..level }, &generator, 2), Vec::<String>::new());
    }
}
