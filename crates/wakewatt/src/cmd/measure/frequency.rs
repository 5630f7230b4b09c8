//! `wakewatt measure frequency`: how long a CPU takes from idle to full speed.

use super::Measured;
use crate::cli::FrequencyArgs;
use anyhow::Result;
use std::fmt::Write as _;
use wakewatt_core::samples::speed::{AfterIdle, Median, SpeedSample};
use wakewatt_core::units::{show_khz, show_ns, three_digits};
use wakewatt_lab::context::Lab;
use wakewatt_lab::survey::{Found, SpeedPlan, speeds};

/// Runs it.
pub(super) fn run(args: &FrequencyArgs, lab: Lab<'_>) -> Result<Measured> {
    let plan = SpeedPlan { cpus: args.cpu.clone(), work_ns: args.work, has_vector: !args.no_vector };
    let Found { samples: speed, not_done } = speeds(lab, &plan)?;
    Ok(Measured { speed, not_done, ..Measured::default() })
}

/// For people.
pub(super) fn text(out: &mut String, sample: &SpeedSample) {
    let quantum = ns(sample.quantum_ns);
    let _ = writeln!(
        out,
        "Speed of CPU {} after idle, by quanta of equal work ({quantum} at full speed) for {} each time\n",
        sample.cpu,
        show_ns(sample.worked_ns)
    );
    let _ = writeln!(
        out,
        "{:>6}  {:<26} {:>13}  {:<34} {:>9}  dropped quanta",
        "idle", "wake-up (median [95 %])", "first quantum", "full speed after (median [95 %])", "slowest"
    );
    for after in &sample.after {
        let slowest = after.slowest_ratio.filter(|_| after.is_ramp());
        let slowest = slowest.map_or("-".into(), |r| format!("{:.0} %", r * 100.0));
        let first = after.first_quantum_extra.median_ns;
        let _ = writeln!(
            out,
            "{:>6}  {:<26} {:>13}  {:<34} {slowest:>9}  {} of {}",
            show_ns(after.idle_ns),
            range(&after.exit),
            format!("{}{}", if first < 0.0 { "-" } else { "+" }, ns(first.abs())),
            full_speed(after),
            after.n_discarded,
            after.n_quanta
        );
    }
    let worst = |f: fn(&AfterIdle) -> f64| sample.after.iter().map(f).fold(0.0, f64::max);
    let _ = writeln!(
        out,
        "\nNot seen would be a ramp shorter than {} or smaller than {:.0} % of speed. A dropped quantum took over a quarter\n\
         longer than its neighbours: the CPU was taken away (hypervisor, other work, interrupts).",
        ns(worst(|a| a.resolution_ns)),
        worst(|a| a.resolution_ratio) * 100.0
    );
    frequencies(out, sample);
    vector(out, sample);
    let _ = writeln!(
        out,
        "Not real-time on purpose: schedutil gives a real-time thread full speed at once. Nothing was changed."
    );
}

fn full_speed(after: &AfterIdle) -> String {
    match &after.ramp {
        Some(ramp) if after.is_ramp() => {
            let bound = if after.n_unsteady * 2 > after.n_repeats { "at least " } else { "" };
            format!("{bound}{} ({} of {})", range(ramp), after.n_ramped, after.n_repeats)
        }
        _ if after.n_ramped > 0 => format!("no ramp seen ({} of {} had one)", after.n_ramped, after.n_repeats),
        _ => format!("no ramp seen ({} times)", after.n_repeats),
    }
}

fn frequencies(out: &mut String, sample: &SpeedSample) {
    if let Some(why) = &sample.no_counters {
        let _ = writeln!(out, "Effective frequency: {why}.");
        return;
    }
    for after in &sample.after {
        let points: Vec<String> =
            after.curve.iter().filter_map(|p| Some(format!("{} at {}", show_khz(p.khz?), ns(p.at_ns)))).collect();
        let _ = writeln!(out, "Effective frequency after {}: {}", show_ns(after.idle_ns), points.join(", "));
    }
}

fn vector(out: &mut String, sample: &SpeedSample) {
    let Some(vector) = &sample.vector else { return };
    let start = match vector.slow_for_ns {
        Some(slow_ns) => {
            format!("at {:.0} % of its speed at first, full after {}", vector.slowest_ratio * 100.0, ns(slow_ns))
        }
        None => format!(
            "at full speed from the start (not seen: shorter than {} or smaller than {:.0} %)",
            ns(vector.resolution_ns),
            vector.resolution_ratio * 100.0
        ),
    };
    let after = format!("scalar speed just after: {} % of before", three_digits(vector.scalar_after_ratio * 100.0));
    let _ = writeln!(out, "{} work: {start}; {after} ({} times).", vector.width, vector.n_repeats);
}

fn range(m: &Median) -> String {
    format!("{} [{}, {}]", ns(m.median_ns), ns(m.low_ns), ns(m.high_ns))
}

fn ns(ns: f64) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // not negative, far below 2^64
    let ns = ns.max(0.0).round() as u64;
    show_ns(ns)
}
