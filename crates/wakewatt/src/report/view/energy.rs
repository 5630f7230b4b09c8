//! Meters and witnesses: what each meter said, how far it may be believed, and fans and temperatures beside it.

use super::super::charts::axis::{AxisSpec, Scale};
use super::super::charts::ranges::{Mark, Ranges};
use super::super::data::{Data, Show};
use super::super::words;
use super::section::{Section, label_word, table_if_any};
use wakewatt_core::kept_words;
use wakewatt_core::samples::Label;
use wakewatt_core::samples::energy::{EnergySample, Sense};
use wakewatt_words::{say, told, word};

/// The section; none if no meter was looked for.
pub(super) fn section(samples: &[EnergySample]) -> Option<Section> {
    let mut out = Section::new(word!("Watts, and what bears witness"));
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
                out.lines.push(say!("{watts}{energy} by {} ({}), over {over}", meter.meter, total.covers));
                if !total.without.is_empty() {
                    let without = words::listed(&total.without);
                    out.remarks.push(say!("{}: the sum is too low, {without} gave nothing", meter.meter));
                }
            }
            None => out.in_short.push(say!(
                "none of the power meters asked works{} (others: wakewatt measure power)",
                why_none(sample)
            )),
        }
    }
    (!out.is_empty()).then_some(out)
}

fn why_none(sample: &EnergySample) -> String {
    let said = |(meter, why): (&str, Option<&str>)| match why {
        None => say!("{meter} (no total)"),
        Some(why) => say!("{meter} ({why})", why = kept_words::shown(why)),
    };
    let why = sample.in_vain().map(said).collect::<Vec<_>>().join("; ");
    if why.is_empty() { why } else { format!(": {why}") }
}

fn meters(at: usize, sample: &EnergySample, out: &mut Section) {
    let mut ranges = Ranges {
        title: word!("Mean power by channel, with its range").into(),
        of: word!("channel").into(),
        range: word!("least to most"),
        x: AxisSpec::new(word!("power"), Show::Watts, Scale::Zero),
        series: vec![word!("mean").into()],
        is_first_claimed: false,
        rows: Vec::new(),
    };
    let mut data = Data::with(&[
        (word!("meter"), Show::Text),
        (word!("channel"), Show::Text),
        (word!("covers"), Show::Text),
        (word!("label"), Show::Text),
        (word!("doubts"), Show::Text),
        (word!("mean"), Show::Watts),
        (word!("± (95 %, this window)"), Show::Watts),
        (word!("least"), Show::Watts),
        (word!("most"), Show::Watts),
        (word!("energy [J]"), Show::Number),
        (word!("readings"), Show::Count),
        (word!("gaps"), Show::Count),
    ]);
    for meter in &sample.meters {
        let chosen = if Some(&meter.meter) == sample.chosen.as_ref() { word!(" (quoted)") } else { "" };
        let name = format!("{}{chosen}", meter.meter);
        if meter.channels.is_empty() {
            let why = meter.why.as_ref().map(ToString::to_string).unwrap_or_default();
            data.rows.push(vec![name.into(), "–".into(), "–".into(), told(label_word(meter.label)).into(), why.into()]);
            continue;
        }
        if let (Label::Measured, Some(reach)) = (meter.label, &meter.reach) {
            let cost =
                meter.read_cost_ns.map_or(String::new(), |ns| say!("; a reading takes {}", words::ns(ns as f64)));
            out.remarks.push(say!("reading {}: {reach}{cost}", meter.meter));
        }
        for c in &meter.channels {
            let watts = |uw: Option<u64>| uw.map(|uw| uw as f64 / 1e6);
            let part = if c.channel.is_part { word!(", part") } else { "" };
            let doubts: Vec<String> = c.why.iter().chain(&c.doubts).cloned().collect();
            let covers = format!("{}{part}", c.channel.covers.word());
            let mut row = vec![name.clone().into(), c.channel.name.clone().into(), covers.into()];
            row.extend([told(label_word(c.label)).into(), words::clauses(&doubts).into()]);
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
        word!("Power by channel"),
        word!("Mean over the window; the line spans the lowest to the highest reading. Wall, package and parts of a package are different things and are never added."),
        &ranges,
    );
    out.tables.extend(table_if_any(&data, word!("Meters, in the order in which they are chosen")));
}

fn witnesses(at: usize, sample: &EnergySample, sense: Sense, out: &mut Section) {
    let (id, title, show, scale) = match sense {
        Sense::Temperature => ("temperature", word!("Temperatures"), Show::Celsius, 1e-3),
        Sense::Fan => ("fans", word!("Fans"), Show::Rpm, 1.0),
    };
    let mut ranges = Ranges {
        title: say!("{title} at the start and at the end"),
        of: word!("sensor").into(),
        range: word!("least to most"),
        x: AxisSpec::new(title.to_lowercase(), show, if sense == Sense::Fan { Scale::Zero } else { Scale::Fit }),
        series: vec![word!("at the start").into(), word!("at the end").into()],
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
        word!("No measure of power, but it tells when watts mislead: a machine whose CPUs are busy and stalled runs cool and quiet."),
        &ranges,
    );
}
