//! `wakewatt measure frequency`: how long a CPU takes from idle to full speed.

use super::Measured;
use crate::cli::FrequencyArgs;
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use anyhow::{Context, Result};
use std::fmt::Write as _;
use wakewatt_core::samples::not_done::{NotDone, Step};
use wakewatt_core::samples::speed::{AfterIdle, Median, SpeedSample};
use wakewatt_core::units::{show_khz, show_ns, three_digits};
use wakewatt_host::affinity::allowed_cpus;
use wakewatt_lab::bench::{SpeedSpec, speed};
use wakewatt_lab::pick;

/// Runs it.
pub(super) fn run(args: &FrequencyArgs, interrupt: &Interrupt) -> Result<Measured> {
    let allowed = allowed_cpus().context("cannot ask which CPUs this process may use")?;
    let last = || allowed.iter().last().into_iter().collect();
    let cpus = args.cpu.clone().unwrap_or_else(last);
    let cpus = pick::spread(&cpus, super::MAX_CPUS);
    let mut measured = Measured::default();
    if let Some(asked) = args.cpu.as_ref().filter(|asked| asked.len() > cpus.len()) {
        let why = format!("only CPUs {cpus} of {asked} were measured; name fewer with --cpu");
        measured.not_done.push(NotDone::new(Step::Unnamed, why));
    }
    if args.work < 1_000_000 || args.work > 1_000_000_000 {
        let why = format!("--work {}: choose from 1ms to 1s", show_ns(args.work));
        return Err(Failure::error(Code::Usage, why));
    }
    let progress = Progress::start("measure frequency");
    for (at, cpu) in cpus.iter().enumerate() {
        if interrupt.is_set() {
            break;
        }
        progress.set(at as f64 / cpus.len() as f64, &format!("idle to full speed on CPU {cpu}"));
        let spec = SpeedSpec { work_ns: args.work, has_vector: !args.no_vector, ..SpeedSpec::on(cpu) };
        match speed(&spec, interrupt.flag()) {
            Ok(sample) => measured.speed.push(sample),
            Err(why) => measured.not_done.push(NotDone::named(format!("speed of CPU {cpu}"), why.to_string())),
        }
    }
    Ok(measured)
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
