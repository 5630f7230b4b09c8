//! How fast a CPU is after it slept: speed over time, by length of the idle time before.

use super::super::charts::axis::{AxisSpec, Scale};
use super::super::charts::legend::Style;
use super::super::charts::plot::{Plot, Point};
use super::super::data::{Data, Show};
use super::super::words;
use super::section::{Section, table_if_any};
use wakewatt_core::kept_words;
use wakewatt_core::samples::speed::{AfterIdle, SpeedPoint, SpeedSample, VectorStart};
use wakewatt_core::units::show_khz;
use wakewatt_words::{say, word};

/// The section; none if nothing was measured.
pub(super) fn section(samples: &[SpeedSample]) -> Option<Section> {
    let mut out = Section::new(word!("From idle to full speed"));
    for sample in samples {
        let title = say!("Speed of CPU {} after it slept", sample.cpu);
        let mut plot = Plot::new(
            title.as_str(),
            AxisSpec::new(word!("after the first instruction"), Show::Ns, Scale::Log),
            AxisSpec::new(word!("speed, share of full"), Show::Ratio, Scale::Fit),
        );
        for (i, after) in sample.after.iter().enumerate() {
            let points = after.curve.iter().map(|p| Point { x: p.at_ns, y: p.speed_ratio, ..Point::default() });
            plot.add(say!("idle {}", words::ns(after.idle_ns as f64)), Style::Arm(i), points);
        }
        out.draw(
            format!("ramp-cpu{}", sample.cpu),
            &title,
            word!("Medians over the repetitions, of fixed quanta of work. Leaving the idle state comes before and is in the table."),
            &plot,
        );
        out.tables.extend(table_if_any(
            &table(sample),
            &say!(
                "CPU {}: measured, medians with their {}{}",
                sample.cpu,
                words::interval_of(wakewatt_core::covers::Covers::Window),
                ranges(sample)
            ),
        ));
        out.remarks.extend(remarks(sample));
        if let Some(after) = sample.after.iter().rev().find(|a| a.is_ramp()) {
            if let (Some(ramp), Some(slowest)) = (after.ramp, after.slowest_ratio) {
                out.lines.push(say!(
                    "CPU {} after {} of idle: {} to full speed, slowest at {}",
                    sample.cpu,
                    words::ns(after.idle_ns as f64),
                    words::ns(ramp.median_ns),
                    words::percent(slowest)
                ));
            }
        } else if !sample.after.is_empty() {
            out.lines.push(say!("CPU {}: no frequency ramp seen", sample.cpu));
        }
    }
    (!out.is_empty()).then_some(out)
}

/// Fewer than six repetitions have a range and no 95 %.
fn ranges(sample: &SpeedSample) -> String {
    let few: Vec<String> =
        sample.after.iter().filter(|a| a.exit.is_range).map(|a| words::ns(a.idle_ns as f64)).collect();
    if few.is_empty() {
        String::new()
    } else {
        say!("; after {} of idle with ranges: too few repetitions", words::listed(&few))
    }
}

/// What the curve does not tell: what could not be seen, what was dropped, the frequencies, wide vectors.
fn remarks(sample: &SpeedSample) -> Vec<String> {
    let worst = |f: fn(&AfterIdle) -> f64| sample.after.iter().map(f).fold(0.0, f64::max);
    let mut all = vec![
        say!(
            "Quanta of equal work ({} at full speed) for {} each time. Not seen would be a ramp shorter than {} or smaller \
             than {} of speed.",
            words::ns(sample.quantum_ns),
            words::ns(sample.worked_ns as f64),
            words::ns(worst(|a| a.resolution_ns)),
            words::percent(worst(|a| a.resolution_ratio))
        ),
        word!("A dropped quantum took over a quarter longer than its neighbours: the CPU was taken away (hypervisor, other work, \
         interrupts).")
            .into(),
        word!("Not real-time on purpose: schedutil gives a real-time thread full speed at once.").into(),
    ];
    let is_bound = |a: &&AfterIdle| a.is_ramp() && a.n_unsteady.saturating_mul(2) > a.n_repeats;
    all.extend(sample.after.iter().filter(is_bound).map(|a| {
        say!(
            "After {} of idle the time to full speed is at least that: most ramps filled half of the work.",
            words::ns(a.idle_ns as f64)
        )
    }));
    match &sample.no_counters {
        Some(why) => all.push(say!("no effective frequency: {why}", why = kept_words::shown(why))),
        None => all.extend(sample.after.iter().filter_map(frequencies)),
    }
    all.extend(sample.vector.as_ref().map(vector));
    all
}

fn frequencies(after: &AfterIdle) -> Option<String> {
    let point = |p: &SpeedPoint| Some(say!("{} at {}", show_khz(p.khz?), words::ns(p.at_ns)));
    let points: Vec<String> = after.curve.iter().filter_map(point).collect();
    let idle = words::ns(after.idle_ns as f64);
    (!points.is_empty()).then(|| say!("Effective frequency after {idle}: {}.", words::listed(&points)))
}

fn vector(v: &VectorStart) -> String {
    let start = match v.slow_for_ns {
        Some(slow_ns) => {
            say!("at {} of its speed at first, full after {}", words::percent(v.slowest_ratio), words::ns(slow_ns))
        }
        None => say!(
            "at full speed from the start (not seen: shorter than {} or smaller than {})",
            words::ns(v.resolution_ns),
            words::percent(v.resolution_ratio)
        ),
    };
    let after = words::percent(v.scalar_after_ratio);
    say!("{} work: {start}; scalar speed just after: {after} of before ({} times).", v.width, v.n_repeats)
}

fn table(sample: &SpeedSample) -> Data {
    let mut data = Data::with(&[
        (word!("idle before"), Show::Ns),
        (word!("repetitions"), Show::Count),
        (word!("with a ramp"), Show::Count),
        (word!("time to full speed"), Show::Ns),
        (word!("from"), Show::Ns),
        (word!("to"), Show::Ns),
        (word!("slowest"), Show::Ratio),
        (word!("leaving idle"), Show::Ns),
        (word!("leaving idle, from"), Show::Ns),
        (word!("leaving idle, to"), Show::Ns),
        (word!("first quantum, extra"), Show::Ns),
        (word!("ramps seen from"), Show::Ns),
        (word!("quanta"), Show::Count),
        (word!("dropped quanta"), Show::Count),
    ]);
    let row = |a: &AfterIdle| {
        let mut row = [a.idle_ns as f64, f64::from(a.n_repeats), f64::from(a.n_ramped)].map(Into::into).to_vec();
        row.extend([a.ramp.map(|r| r.median_ns), a.ramp.map(|r| r.low_ns), a.ramp.map(|r| r.high_ns)].map(Into::into));
        row.push(a.slowest_ratio.into());
        row.extend([a.exit.median_ns, a.exit.low_ns, a.exit.high_ns].map(Into::into));
        row.extend([a.first_quantum_extra.median_ns, a.resolution_ns].map(Into::into));
        row.extend([a.n_quanta as f64, a.n_discarded as f64].map(Into::into));
        row
    };
    data.rows.extend(sample.after.iter().map(row));
    data
}
