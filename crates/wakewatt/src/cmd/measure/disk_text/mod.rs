//! Disk samples and the experiment on them, as text.

use super::columns::columns;
use std::fmt::Write as _;
use wakewatt_core::samples::compared::Compared;
use wakewatt_core::samples::disk::{DiskSample, DiskTargetKind};
use wakewatt_core::samples::experiment::{Effect, ExperimentRun, Metric, Verdict};
use wakewatt_core::units::{show_bytes, show_ns, three_digits};

/// CPUs whose sleep is shown.
const MAX_CPUS: usize = 4;
/// Fewer sleeps per read than this are other work's.
const FEW_SLEEPS: f64 = 0.05;

/// The table, if there is anything in it.
pub(super) fn samples(out: &mut String, samples: &[DiskSample]) {
    let Some(first) = samples.first() else { return };
    let _ = writeln!(out, "Disk reads, measured (95 % interval of the median in brackets): {}", what(first));
    let from = if first.planned_per_s.is_some() { "planned start" } else { "submission" };
    let _ = writeln!(out, "Latency from {from} to the reading thread having the data.\n");
    let _ = writeln!(
        out,
        "{:<14} {:>8} {:<19} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9} {:>8}",
        "", "p50", "", "p90", "p99", "p99.9", "n", "mean", "reads/s", "bytes/s", "CPU/read"
    );
    for sample in samples {
        let _ = writeln!(
            out,
            "{:<14} {} {:>8} {:>8} {:>9} {:>8}",
            format!("{} x{}", sample.engine.word(), sample.depth),
            columns(&sample.latency),
            show_mean(sample.latency.mean_ns),
            three_digits(sample.reads_per_s),
            show_mean_bytes(sample.bytes_per_s),
            show_mean(sample.cpu_ns_per_read)
        );
        if let Some(service) = &sample.service {
            let _ = writeln!(out, "{:<14} {} {:>8}", "  submitted", columns(service), show_mean(service.mean_ns));
        }
        if sample.n_never_started > 0 {
            let _ = writeln!(
                out,
                "  {} planned reads were never started: the disk does not keep {} per second at depth {}; give a lower --rate or a higher --depth",
                sample.n_never_started,
                three_digits(sample.planned_per_s.unwrap_or_default()),
                sample.depth
            );
        } else if sample.n_late_starts * 10 > sample.latency.n {
            let _ = writeln!(
                out,
                "  {} of {} reads started late, because those before were not done; the wait is counted",
                sample.n_late_starts, sample.latency.n
            );
        }
        sleep(out, sample);
    }
    for remark in &first.remarks {
        let _ = writeln!(out, "note: {remark}");
    }
}

fn what(sample: &DiskSample) -> String {
    let target = &sample.target;
    let name = match target.kind {
        DiskTargetKind::Made => "a file made for it".to_string(),
        _ => target.path.escape_default().to_string(),
    };
    let on: Vec<&str> = [target.filesystem.as_deref(), target.device.as_deref()].into_iter().flatten().collect();
    format!(
        "{} blocks of {}, {}, from {} of {name} ({}{})",
        sample.access.word(),
        show_bytes(sample.block_bytes),
        if target.is_direct { "O_DIRECT" } else { "through the page cache" },
        show_bytes(target.size_bytes),
        on.join(" on "),
        sample.planned_per_s.map_or(String::new(), |r| format!("; {} planned per second", three_digits(r)))
    )
}

/// Which CPUs slept, and how often per read: those that were woken by it are near 1 at depth 1.
fn sleep(out: &mut String, sample: &DiskSample) {
    let slept = |cpu: u32| sample.sleeps_per_read(cpu).unwrap_or(0.0);
    let mut idle: Vec<_> = sample.idle.iter().filter(|d| slept(d.cpu) >= FEW_SLEEPS).collect();
    idle.sort_by(|a, b| slept(b.cpu).total_cmp(&slept(a.cpu)));
    for delta in idle.iter().take(MAX_CPUS) {
        let states: Vec<String> = delta
            .states
            .iter()
            .filter(|s| s.n_usage > 0)
            .map(|s| format!("{} {}x, {} each", s.name, s.n_usage, show_ns(s.time_ns / s.n_usage)))
            .collect();
        let reader = if sample.cpus.contains(&delta.cpu) { " (reads)" } else { "" };
        let _ = writeln!(
            out,
            "  CPU {}{reader} slept {} times per read: {} (idle counters of all its work)",
            delta.cpu,
            three_digits(slept(delta.cpu)),
            states.join("; ")
        );
    }
}

/// The experiment: a sentence per arm, then all effects.
pub(super) fn experiment(out: &mut String, run: &ExperimentRun) {
    let Some(primary) = run.metrics.first() else { return };
    for effect in run.effects.iter().filter(|e| e.metric == primary.id) {
        let _ = writeln!(out, "{}", sentence(run, effect));
    }
    let _ = writeln!(out, "\n{:<44} {:<20} {:>8} {:<16} {:>6} {:>10}", "metric", "against", "ratio", "", "rounds", "p");
    for effect in &run.effects {
        let metric = run.metrics.iter().find(|m| m.id == effect.metric).map_or(effect.metric.clone(), Metric::phrase);
        let interval = format!("[{:.3}, {:.3}]", effect.ratio_low, effect.ratio_high);
        let _ = writeln!(
            out,
            "{metric:<44} {:<20} {:>8.3} {interval:<16} {:>6} {:>10.4}",
            arm(run, &effect.arm),
            effect.ratio,
            effect.n_pairs,
            effect.p_value
        );
    }
    for pooled in &run.pooled {
        let _ = writeln!(out, "{:<20} {}", arm(run, &pooled.arm), columns(&pooled.latency));
    }
    let rejected = run.blocks.iter().filter(|b| b.rejected.is_some()).count();
    let _ = writeln!(out, "\n{} blocks, {rejected} not counted; {}; seed {}", run.blocks.len(), run.ended, run.seed);
    if let Some(why) = run.blocks.iter().find_map(|b| b.rejected.as_ref()) {
        let _ = writeln!(out, "the first that was not counted: {why}");
    }
    let back = if run.is_restored() { "everything was put back" } else { "NOT everything was put back" };
    let _ = writeln!(out, "{back}");
    for ((path, before), (_, after)) in run.before.iter().zip(&run.after) {
        let _ = writeln!(out, "  {path}: before {before}; after {after}");
    }
}

/// What the primary comparison with one arm allows to say.
fn sentence(run: &ExperimentRun, effect: &Effect) -> String {
    let metric = run.metrics.iter().find(|m| m.id == effect.metric).map_or(effect.metric.clone(), Metric::phrase);
    let against = arm(run, &effect.arm);
    let numbers = format!("{metric} takes {} as long as with {against}", run.in_numbers(effect));
    match effect.verdict {
        Verdict::Higher => format!("{}, {} of it: {numbers}.", run.slower(effect, "a read"), run.as_share(effect)),
        Verdict::Lower => format!("{}: {numbers}.", no_cost(effect.compared())),
        Verdict::NoDifference => format!("No difference worth a change: {numbers}."),
        Verdict::Undecided => format!("Undecided: {numbers}; give a longer --budget or a quieter machine."),
    }
}

/// The machine as found is faster than what it was compared with.
fn no_cost(compared: Compared) -> &'static str {
    match compared {
        Compared::NoSleep => "Sleep does not cost",
        Compared::ShallowSleep => "Deep sleep costs no more than shallow sleep",
        Compared::LimitsLifted => "The latency limits found on single CPUs make reads faster",
        Compared::Other => "What was tried makes reads slower",
    }
}

fn arm<'a>(run: &'a ExperimentRun, id: &'a str) -> &'a str {
    run.arms.iter().find(|a| a.id == id).map_or(id, |a| &a.title)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a float cast saturates; negative is no duration
fn show_mean(ns: f64) -> String {
    show_ns(ns.round() as u64)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn show_mean_bytes(bytes: f64) -> String {
    show_bytes(bytes.round() as u64)
}

#[cfg(test)]
mod tests;
