//! Meters and witnesses: what each meter said, how far it may be believed, and fans and temperatures beside it.

use super::super::charts::axis::{AxisSpec, Scale};
use super::super::charts::ranges::{Mark, Ranges};
use super::super::data::{Data, Show};
use super::super::words;
use super::section::{Section, label_word, table_if_any};
use wakewatt_core::samples::Label;
use wakewatt_core::samples::energy::{EnergySample, Sense};

/// The section; none if no meter was looked for.
pub(super) fn section(samples: &[EnergySample]) -> Option<Section> {
    let mut out = Section::new("Watts, and what bears witness");
    for (i, sample) in samples.iter().enumerate() {
        meters(i, sample, &mut out);
        witnesses(i, sample, Sense::Temperature, &mut out);
        witnesses(i, sample, Sense::Fan, &mut out);
        match sample.chosen().and_then(|m| Some((m, m.total.as_ref()?))) {
            Some((meter, total)) => {
                let watts = Show::Watts.text(total.mean_uw as f64 / 1e6);
                let over = words::ns(sample.window.length_ns() as f64);
                let energy =
                    total.energy_uj.map_or(String::new(), |uj| format!(", {} J", Show::Number.text(uj as f64 / 1e6)));
                out.lines.push(format!("{watts}{energy} by {} ({}), over {over}", meter.meter, total.covers));
                if !total.without.is_empty() {
                    let without = total.without.join(", ");
                    out.remarks.push(format!("{}: the sum is too low, {without} gave nothing", meter.meter));
                }
            }
            None => out.in_short.push(format!(
                "none of the power meters asked works{} (others: wakewatt measure power)",
                why_none(sample)
            )),
        }
    }
    (!out.is_empty()).then_some(out)
}

fn why_none(sample: &EnergySample) -> String {
    let why = sample.in_vain();
    if why.is_empty() { why } else { format!(": {why}") }
}

fn meters(at: usize, sample: &EnergySample, out: &mut Section) {
    let mut ranges = Ranges {
        title: "Mean power by channel, with its range".into(),
        of: "channel".into(),
        range: "least to most",
        x: AxisSpec::new("power", Show::Watts, Scale::Zero),
        series: vec!["mean".into()],
        is_first_claimed: false,
        rows: Vec::new(),
    };
    let mut data = Data::with(&[
        ("meter", Show::Text),
        ("channel", Show::Text),
        ("covers", Show::Text),
        ("label", Show::Text),
        ("doubts", Show::Text),
        ("mean", Show::Watts),
        ("± (95 %, this window)", Show::Watts),
        ("least", Show::Watts),
        ("most", Show::Watts),
        ("energy [J]", Show::Number),
        ("readings", Show::Count),
        ("gaps", Show::Count),
    ]);
    for meter in &sample.meters {
        let chosen = if Some(&meter.meter) == sample.chosen.as_ref() { " (quoted)" } else { "" };
        let name = format!("{}{chosen}", meter.meter);
        if meter.channels.is_empty() {
            let why = meter.why.as_ref().map(ToString::to_string).unwrap_or_default();
            data.rows.push(vec![name.into(), "–".into(), "–".into(), label_word(meter.label).into(), why.into()]);
            continue;
        }
        if let (Label::Measured, Some(reach)) = (meter.label, &meter.reach) {
            let cost =
                meter.read_cost_ns.map_or(String::new(), |ns| format!("; a reading takes {}", words::ns(ns as f64)));
            out.remarks.push(format!("reading {}: {reach}{cost}", meter.meter));
        }
        for c in &meter.channels {
            let watts = |uw: Option<u64>| uw.map(|uw| uw as f64 / 1e6);
            let part = if c.channel.is_part { ", part" } else { "" };
            let doubts: Vec<String> = c.why.iter().chain(&c.doubts).cloned().collect();
            let covers = format!("{}{part}", c.channel.covers.word());
            let mut row = vec![name.clone().into(), c.channel.name.clone().into(), covers.into()];
            row.extend([label_word(c.label).into(), doubts.join("; ").into()]);
            row.extend([c.mean_uw, c.uncertainty_uw, c.min_uw, c.max_uw].map(|v| watts(v).into()));
            row.extend([watts(c.energy_uj).into(), (c.n as f64).into(), (c.n_gaps as f64).into()]);
            data.rows.push(row);
            if let Some(value) = watts(c.mean_uw) {
                let range = watts(c.min_uw).zip(watts(c.max_uw));
                ranges.add(format!("{}: {}{part}", meter.meter, c.channel.name), [Mark { series: 0, value, range }]);
            }
        }
    }
    out.draw(
        format!("power-{at}"),
        "Power by channel",
        "Mean over the window; the line spans the lowest to the highest reading. Wall, package and parts of a package are different things and are never added.",
        &ranges,
    );
    out.tables.extend(table_if_any(&data, "Meters, in the order in which they are chosen"));
}

fn witnesses(at: usize, sample: &EnergySample, sense: Sense, out: &mut Section) {
    let (id, title, show, scale) = match sense {
        Sense::Temperature => ("temperature", "Temperatures", Show::Celsius, 1e-3),
        Sense::Fan => ("fans", "Fans", Show::Rpm, 1.0),
    };
    let mut ranges = Ranges {
        title: format!("{title} at the start and at the end"),
        of: "sensor".into(),
        range: "least to most",
        x: AxisSpec::new(title.to_lowercase(), show, if sense == Sense::Fan { Scale::Zero } else { Scale::Fit }),
        series: vec!["at the start".into(), "at the end".into()],
        is_first_claimed: false,
        rows: Vec::new(),
    };
    for w in sample.witnesses.iter().filter(|w| w.sense == sense) {
        let value = |raw: i64| raw as f64 * scale;
        let range = Some((value(w.min), value(w.max)));
        let marks = [Mark { series: 0, value: value(w.first), range }, Mark { series: 1, value: value(w.last), range }];
        ranges.add(w.name.clone(), marks);
    }
    out.draw_only(
        format!("{id}-{at}"),
        title,
        "No measure of power, but it tells when watts mislead: a machine whose CPUs are busy and stalled runs cool and quiet.",
        &ranges,
    );
}
