//! How fast a CPU is after it slept: speed over time, by length of the idle time before.

use super::super::charts::axis::{AxisSpec, Scale};
use super::super::charts::legend::Style;
use super::super::charts::plot::{Plot, Point};
use super::super::data::{Data, Show};
use super::super::words;
use super::section::{Section, table_if_any};
use wakewatt_core::samples::speed::{AfterIdle, SpeedSample};

/// The section; none if nothing was measured.
pub(super) fn section(samples: &[SpeedSample]) -> Option<Section> {
    let mut out = Section::new("From idle to full speed");
    for sample in samples {
        let title = format!("Speed of CPU {} after it slept", sample.cpu);
        let mut plot = Plot::new(
            title.as_str(),
            AxisSpec::new("after the first instruction", Show::Ns, Scale::Log),
            AxisSpec::new("speed, share of full", Show::Ratio, Scale::Fit),
        );
        for (i, after) in sample.after.iter().enumerate() {
            let points = after.curve.iter().map(|p| Point { x: p.at_ns, y: p.speed_ratio, ..Point::default() });
            plot.add(format!("idle {}", words::ns(after.idle_ns as f64)), Style::Arm(i), points);
        }
        out.draw(
            format!("ramp-cpu{}", sample.cpu),
            &title,
            "Medians over the repetitions, of fixed quanta of work. Leaving the idle state comes before and is in the table.",
            &plot,
        );
        out.tables.extend(table_if_any(
            &table(sample),
            &format!("CPU {}: measured, medians with 95 % intervals", sample.cpu),
        ));
        out.remarks.extend(sample.no_counters.iter().map(|why| format!("no effective frequency: {why}")));
        if let Some(after) = sample.after.iter().rev().find(|a| a.is_ramp()) {
            if let (Some(ramp), Some(slowest)) = (after.ramp, after.slowest_ratio) {
                out.lines.push(format!(
                    "CPU {} after {} of idle: {} to full speed, slowest at {}",
                    sample.cpu,
                    words::ns(after.idle_ns as f64),
                    words::ns(ramp.median_ns),
                    words::percent(slowest)
                ));
            }
        } else if !sample.after.is_empty() {
            out.lines.push(format!("CPU {}: no frequency ramp seen", sample.cpu));
        }
    }
    (!out.is_empty()).then_some(out)
}

fn table(sample: &SpeedSample) -> Data {
    let mut data = Data::with(&[
        ("idle before", Show::Ns),
        ("repetitions", Show::Count),
        ("with a ramp", Show::Count),
        ("time to full speed", Show::Ns),
        ("from", Show::Ns),
        ("to", Show::Ns),
        ("slowest", Show::Ratio),
        ("leaving idle", Show::Ns),
        ("first quantum, extra", Show::Ns),
        ("ramps seen from", Show::Ns),
    ]);
    let row = |a: &AfterIdle| {
        let mut row = [a.idle_ns as f64, f64::from(a.n_repeats), f64::from(a.n_ramped)].map(Into::into).to_vec();
        row.extend([a.ramp.map(|r| r.median_ns), a.ramp.map(|r| r.low_ns), a.ramp.map(|r| r.high_ns)].map(Into::into));
        row.push(a.slowest_ratio.into());
        row.extend([a.exit.median_ns, a.first_quantum_extra.median_ns, a.resolution_ns].map(Into::into));
        row
    };
    data.rows.extend(sample.after.iter().map(row));
    data
}
