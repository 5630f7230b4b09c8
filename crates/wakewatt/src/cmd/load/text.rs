//! A load as text: what was asked, the sections of the page, then one plain sentence.

use super::score::sentence;
use super::words::{no_interval, rate};
use super::{Loaded, runs_text};
use crate::report::terminal;
use crate::view::wrap::wrap;
use std::fmt::Write as _;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::Samples;
use wakewatt_core::samples::load::{Kind, Length, LoadRun, Overall};
use wakewatt_core::units::show_ns;
use wakewatt_lab::load::calibrate;

/// The whole: what it was, the sections of the page, what it came to.
pub(super) fn text(loaded: &Loaded, width: usize, is_coloured: bool) -> String {
    let run = &loaded.run;
    let (head, end) = match run.kind {
        Kind::Command => (runs_text::head(run), runs_text::end(run)),
        _ => (head(run), end(run, loaded.overall.as_ref())),
    };
    let evidence = Evidence::of(Samples { load: vec![run.clone()], ..Samples::default() });
    let mut out = String::new();
    for line in head {
        let _ = writeln!(out, "{}", wrap("", "", &line, width));
    }
    let _ = writeln!(out, "\n{}", terminal::samples(&evidence, width, is_coloured));
    for line in end.into_iter().chain(no_interval(run)) {
        let _ = writeln!(out, "{}", wrap("", "", &line, width));
    }
    out
}

fn head(run: &LoadRun) -> Vec<String> {
    let n_cpus: usize = run.workers.iter().map(|w| w.cpus.len()).sum();
    let length = match run.length {
        Length::Quick => "quick: too short for figures to be quoted",
        Length::Standard => "standard length",
        Length::SpecLike => "SPECpower's lengths; no SPEC result",
        Length::Custom => "custom length",
    };
    let recorded =
        run.levels.first().map_or(String::new(), |l| format!(", {} recorded per level", show_ns(l.phases_ns[2])));
    let what = format!("Graduated load, measured: {} on {n_cpus} CPUs{recorded} ({length})", run.title);
    let calibrated = run.capacity_per_s.map(|capacity| {
        let rates: Vec<f64> = run.calibration.iter().map(|c| c.per_s).collect();
        let apart =
            calibrate::difference(&rates).map_or(String::new(), |d| format!(", which differ by {:.1} %", d * 100.0));
        let n = rates.len();
        format!("100 % is {} per second: the mean of the last two of {n} calibrations{apart}", rate(capacity))
    });
    std::iter::once(what).chain(calibrated).collect()
}

fn end(run: &LoadRun, overall: Option<&Overall>) -> Vec<String> {
    let ops = run
        .work_units
        .map_or(String::new(), |n| format!("A transaction is {n} units of work (--work {n} repeats it). "));
    let service = run.service_ns.zip(run.overhead_ns_per_op).map_or(String::new(), |(service_ns, own_ns)| {
        let percent = own_ns / service_ns.max(1) as f64 * 100.0;
        format!("The generator itself took {} of CPU time per transaction ({percent:.1} %). ", show(own_ns))
    });
    let how = format!("{ops}{service}Seed {}. Latency counts from the planned start.", run.seed);
    vec![sentence(run, overall), how]
}

fn show(ns: f64) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates, which is right here
    show_ns(ns.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use wakewatt_core::samples::load::{Ask, Level};

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

    /// Wide, and in one line: where a sentence breaks is not its meaning.
    fn in_a_line(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn shown(run: LoadRun) -> String {
        text(&Loaded { overall: run.overall(), run }, 140, false)
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
        assert!(in_a_line(&said).contains("Partial score 6000/s (sum over 2 load levels; a score has"), "{said}");
        assert!(in_a_line(&said).contains("active idle) at 450W (sum of all levels): 13.3 per"), "{said}");
        assert!(
            in_a_line(&said).contains("active idle draws 50 % of full load, energy proportionality 0.50."),
            "{said}"
        );
        assert!(said.contains("C6 40 %") && said.contains("asleep"), "{said}");
        assert!(said.lines().any(|l| l.contains("50 %") && l.contains("10 %")), "busy, and of it the kernel: {said}");
        let mut run = LoadRun { levels: levels([Some(200), None, Some(100)]), ..run };
        run.levels[1].broken_rules.push("the meter was silent".into());
        let said = shown(run);
        assert!(
            in_a_line(&said).contains("watts are unmeasured, so there is no score per watt. 1 of 3 levels are invalid"),
            "{said}"
        );
        assert!(said.contains("because") && said.contains("the meter was silent"), "{said}");
    }

    #[test]
    fn runs_of_a_command_have_a_median() {
        let levels = [3.0, 1.0, 2.0, 8.0].map(|figure| level(Ask::Run, figure, Some(10))).to_vec();
        let run = LoadRun { kind: Kind::Command, title: "x".into(), levels, ..LoadRun::default() };
        let said = shown(run);
        assert!(said.contains("4 runs of \"x\"") && said.contains("median 2.5 (from 1 to 8, n = 4)."), "{said}");
    }
}
