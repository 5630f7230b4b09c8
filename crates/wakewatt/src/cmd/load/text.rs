//! A load as text: a line per level, what is wrong with it below, then sums and one plain sentence.

use super::score::sentence;
use super::words::{no_interval, rate, watts};
use super::{Loaded, runs_text};
use std::fmt::Write as _;
use wakewatt_core::samples::load::{Ask, Kind, Length, Level, LoadRun, Overall};
use wakewatt_core::units::show_ns;
use wakewatt_lab::load::calibrate;

/// The whole.
pub(super) fn text(loaded: &Loaded) -> String {
    let mut out = String::new();
    let run = &loaded.run;
    match run.kind {
        Kind::Command => runs_text::table(&mut out, run),
        _ => steps(&mut out, run, loaded.overall.as_ref()),
    }
    for (name, value) in &run.settings {
        let _ = writeln!(out, "{name}: {}", value.escape_debug());
    }
    if let Some(why) = no_interval(run) {
        let _ = writeln!(out, "note: {why}");
    }
    for remark in &run.remarks {
        let _ = writeln!(out, "note: {remark}");
    }
    out
}

fn steps(out: &mut String, run: &LoadRun, overall: Option<&Overall>) {
    let n_cpus: usize = run.workers.iter().map(|w| w.cpus.len()).sum();
    let length = match run.length {
        Length::Quick => "quick: too short for figures to be quoted",
        Length::Standard => "standard length",
        Length::SpecLike => "SPECpower's lengths; no SPEC result",
        Length::Custom => "custom length",
    };
    let recorded =
        run.levels.first().map_or(String::new(), |l| format!(", {} recorded per level", show_ns(l.phases_ns[2])));
    let _ = writeln!(out, "Graduated load, measured: {} on {n_cpus} CPUs{recorded} ({length})", run.title);
    if let Some(capacity) = run.capacity_per_s {
        let rates: Vec<f64> = run.calibration.iter().map(|c| c.per_s).collect();
        let apart =
            calibrate::difference(&rates).map_or(String::new(), |d| format!(", which differ by {:.1} %", d * 100.0));
        let n = rates.len();
        let _ = writeln!(
            out,
            "100 % is {} per second: the mean of the last two of {n} calibrations{apart}",
            rate(capacity)
        );
    }
    let _ = writeln!(
        out,
        "\n{:>11} {:>9} {:>9} {:>8} {:>8} {:>8} {:>5} {:>6} {:>16} {:>8}  {:<14}",
        "level", "target/s", "done/s", "p50", "p99", "p99.9", "busy", "kernel", "watts", "per W", "asleep in"
    );
    for level in &run.levels {
        let _ = writeln!(out, "{}", line(level).trim_end());
        level.broken_rules.iter().for_each(|why| _ = writeln!(out, "{:>11} INVALID: {why}", ""));
        level.disturbances.iter().for_each(|what| _ = writeln!(out, "{:>11} {what}", ""));
    }
    let _ = writeln!(out, "\n{}", sentence(run, overall));
    let ops = run
        .work_units
        .map_or(String::new(), |n| format!("A transaction is {n} units of work (--work {n} repeats it). "));
    let service = run.service_ns.zip(run.overhead_ns_per_op).map_or(String::new(), |(service_ns, own_ns)| {
        let percent = own_ns / service_ns.max(1) as f64 * 100.0;
        format!("The generator itself took {} of CPU time per transaction ({percent:.1} %). ", show(own_ns))
    });
    let _ = writeln!(out, "{ops}{service}Seed {}. Latency counts from the planned start.\n", run.seed);
}

fn line(level: &Level) -> String {
    let at =
        |q: f64| level.latency.as_ref().and_then(|l| l.quantile(q)).map_or("-".to_string(), |v| show_ns(v.value_ns));
    let percent = |ratio: Option<f64>| ratio.map_or("-".to_string(), |r| format!("{:.0} %", r * 100.0));
    let kernel = || {
        let n = level.cpus.len();
        (n > 0).then(|| level.cpus.iter().map(|c| c.system_ratio).sum::<f64>() / n as f64)
    };
    let is_idle = level.ask == Ask::Idle;
    format!(
        "{:>11} {:>9} {:>9} {:>8} {:>8} {:>8} {:>5} {:>6} {:>16} {:>8}  {:<14}",
        level.ask.to_string(),
        level.target_per_s.map_or("-".into(), rate),
        if is_idle { "-".into() } else { rate(level.per_s) },
        at(0.5),
        at(0.99),
        at(0.999),
        percent(level.busy_ratio()),
        percent(kernel()),
        watts(level),
        level.per_joule().filter(|_| !is_idle).map_or("-".into(), rate),
        asleep(level)
    )
}

/// The idle state that held the CPUs longest, and its share of their time.
fn asleep(level: &Level) -> String {
    let mut states: Vec<(&str, u64)> = Vec::new();
    for state in level.idle.iter().flat_map(|cpu| &cpu.states) {
        match states.iter_mut().find(|(name, _)| *name == state.name) {
            Some((_, ns)) => *ns = ns.saturating_add(state.time_ns),
            None => states.push((&state.name, state.time_ns)),
        }
    }
    let all_ns = level.window.length_ns().saturating_mul(level.idle.len() as u64);
    let longest = states.into_iter().max_by_key(|(_, ns)| *ns).filter(|(_, ns)| *ns > 0 && all_ns > 0);
    longest.map_or(String::new(), |(name, ns)| {
        format!("{} {:.0} %", name.escape_debug(), (ns as f64 / all_ns as f64 * 100.0).min(100.0))
    })
}

fn show(ns: f64) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates, which is right here
    show_ns(ns.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A level of ten seconds with a meter that says so many watts.
    fn level(ask: Ask, per_s: f64, watts: Option<u64>) -> Level {
        let energy = watts.map(|w| {
            json!({ "window": { "start_at_ns": 0, "end_at_ns": 1 }, "interval_ns": 1, "chosen": "hwmon", "witnesses": [],
                "meters": [{ "meter": "hwmon", "label": "measured", "channels": [],
                    "total": { "covers": "wall", "of": [], "mean_uw": w * 1_000_000, "without": [] } }] })
        });
        let value = json!({
            "ask": ask, "phases_ns": [0, 0, 10_000_000_000u64, 0], "n_planned": 9, "n_done": 9, "n_failed": 0,
            "window": { "start_at_ns": 0, "end_at_ns": 10_000_000_000u64 }, "target_per_s": per_s, "per_s": per_s,
            "parts": [], "cpu_ns": 5_000_000_000u64, "system_ns": 1_000_000_000u64, "disturbances": [], "is_invalid": [],
            "cpus": [{ "cpu": 0, "user_ratio": 0.4, "system_ratio": 0.1, "steal_ratio": 0.0 }],
            "idle": [{ "cpu": 0, "states": [
                { "index": 0, "name": "POLL", "n_usage": 1, "time_ns": 5 },
                { "index": 1, "name": "C6", "n_usage": 1, "time_ns": 4_000_000_000u64 }] }],
            "energy": energy,
        });
        serde_json::from_value(value).unwrap()
    }

    fn shown(run: LoadRun) -> String {
        text(&Loaded { overall: run.overall(), run })
    }

    #[test]
    fn the_score_needs_watts_and_valid_levels_to_be_quoted() {
        let levels = |watts: [Option<u64>; 3]| {
            vec![
                level(Ask::Share(1.0), 4000.0, watts[0]),
                level(Ask::Share(0.5), 2000.0, watts[1]),
                level(Ask::Idle, 0.0, watts[2]),
            ]
        };
        let run = LoadRun { levels: levels([Some(200), Some(150), Some(100)]), ..LoadRun::default() };
        let said = shown(run.clone());
        assert!(said.contains("Partial score 6000/s (sum over 2 load levels; a score has"), "{said}");
        assert!(said.contains("active idle) at 450W (sum of all levels): 13.3 per"), "{said}");
        assert!(said.contains("active idle draws 50 % of full load, energy proportionality 0.50."), "{said}");
        assert!(said.contains("C6 40 %") && said.contains("50 %   10 %"), "{said}");
        let mut run = LoadRun { levels: levels([Some(200), None, Some(100)]), ..run };
        run.levels[1].broken_rules.push("the meter was silent".into());
        let said = shown(run);
        assert!(
            said.contains("watts are unmeasured, so there is no score per watt. 1 of 3 levels are invalid"),
            "{said}"
        );
        assert!(said.contains("INVALID: the meter was silent"), "{said}");
    }

    #[test]
    fn runs_of_a_command_have_a_median() {
        let levels = [3.0, 1.0, 2.0, 8.0].map(|figure| level(Ask::Run, figure, Some(10))).to_vec();
        let run = LoadRun { kind: Kind::Command, title: "x".into(), levels, ..LoadRun::default() };
        let said = shown(run);
        assert!(said.contains("4 runs of \"x\"") && said.contains("median 2.5 (from 1 to 8, n = 4)."), "{said}");
    }
}
