//! Watts as text: the meter to quote first, then every channel, then what is not there and why.

use std::fmt::Write as _;
use wakewatt_core::samples::Label;
use wakewatt_core::samples::energy::{ChannelSample, Kind, MeterSample, Sense};
use wakewatt_core::units::{show_ns, show_uw, three_digits};
use wakewatt_lab::survey::PowerSample;

/// The whole.
pub(super) fn text(out: &mut String, power: &PowerSample) {
    let sample = &power.sample;
    let length = show_ns(sample.window.length_ns());
    let of = power.command.as_ref().map_or(String::new(), |c| format!(" of {:?} (exit {})", c.program, c.exit_code));
    let _ = match sample.chosen().and_then(|m| Some((m, m.total.as_ref()?))) {
        Some((meter, total)) => {
            let energy = total.energy_uj.map_or(String::new(), |uj| format!(", {}", joules(uj)));
            writeln!(
                out,
                "Power, measured by {} ({}): {}{energy} in {length}{of}\n",
                meter.meter,
                total.covers,
                show_uw(total.mean_uw)
            )
        }
        None => writeln!(out, "Power: no meter of this machine works; nothing was measured in {length}{of}\n"),
    };
    if let Some(model) = &power.modelled {
        let _ = writeln!(
            out,
            "Modelled, not measured ({}): {} ({} to {}); {}\n",
            model.covers,
            show_uw(model.power_uw),
            show_uw(model.low_uw),
            show_uw(model.high_uw),
            model.basis
        );
    }
    if sample.meters.iter().any(|m| !m.channels.is_empty()) {
        let _ = writeln!(
            out,
            "{:<11} {:<26} {:<9} {:>8} {:<9} {:>8} {:>8} {:>9} {:>5} {:>4}",
            "meter", "channel", "covers", "mean", "±95%", "min", "max", "energy", "n", "gaps"
        );
    }
    sample.meters.iter().for_each(|m| meter(out, m));
    for w in &sample.witnesses {
        let show = |v: i64| match w.sense {
            Sense::Temperature => format!("{}C", three_digits(v as f64 / 1e3)),
            Sense::Fan => format!("{v}rpm"),
        };
        let range = format!("{} to {} ({} to {})", show(w.first), show(w.last), show(w.min), show(w.max));
        let _ = writeln!(out, "{:<11} {:<26} {range}", "beside", cut(&w.name));
    }
    let not_there = sample.meters.iter().filter(|m| m.label != Label::Measured);
    for m in not_there {
        let state = if m.label == Label::PresentButDead { "dead" } else { "unavailable" };
        let _ = writeln!(
            out,
            "{:<11} {state}: {}",
            m.meter,
            m.why.as_ref().map_or("no reason known".to_string(), ToString::to_string)
        );
    }
}

fn meter(out: &mut String, meter: &MeterSample) {
    for c in &meter.channels {
        channel(out, &meter.meter, c);
    }
    if let Some(total) = meter.total.as_ref().filter(|t| t.of.len() > 1 || !t.without.is_empty()) {
        let energy = total.energy_uj.map_or("-".into(), joules);
        let name = format!("sum of {}", total.of.len());
        let _ = writeln!(
            out,
            "{:<11} {name:<26} {:<9} {:>8} {:<9} {:>8} {:>8} {energy:>9}",
            meter.meter,
            total.covers,
            show_uw(total.mean_uw),
            "",
            "",
            ""
        );
        if !total.without.is_empty() {
            let _ = writeln!(out, "{:<11}   too low: without {}", "", total.without.join(", "));
        }
    }
    if let (Label::Measured, Some(reach)) = (meter.label, &meter.reach) {
        let cost = meter.read_cost_ns.map_or(String::new(), |ns| format!("; a reading takes {}", show_ns(ns)));
        let _ = writeln!(out, "{:<11}   reading it: {reach}{cost}", "");
    }
}

fn channel(out: &mut String, meter: &str, c: &ChannelSample) {
    let watts = |uw: Option<u64>| uw.map_or("-".to_string(), show_uw);
    let state = match c.label {
        Label::Measured => "",
        Label::PresentButDead => "  dead",
        _ => "  unavailable",
    };
    let part = if c.channel.is_part { "part" } else { c.channel.covers.word() };
    let _ = writeln!(
        out,
        "{meter:<11} {:<26} {part:<9} {:>8} {:<9} {:>8} {:>8} {:>9} {:>5} {:>4}{state}",
        cut(&c.channel.name),
        watts(c.mean_uw),
        c.uncertainty_uw.map_or(String::new(), |uw| format!("±{}", show_uw(uw))),
        watts(c.min_uw),
        watts(c.max_uw),
        c.energy_uj.map_or("-".into(), joules),
        c.n,
        if c.channel.kind == Kind::Power { c.n_gaps.to_string() } else { format!("({})", c.n_gaps) }
    );
    for doubt in c.doubts.iter().chain(&c.why) {
        let _ = writeln!(out, "{:<11}   {}", "", doubt.escape_debug());
    }
}

fn joules(uj: u64) -> String {
    match uj {
        0..1_000_000 => format!("{}mJ", three_digits(uj as f64 / 1e3)),
        1_000_000..10_000_000_000 => format!("{}J", three_digits(uj as f64 / 1e6)),
        _ => format!("{}kJ", three_digits(uj as f64 / 1e9)),
    }
}

/// Foreign names are escaped, and cut to the column.
fn cut(name: &str) -> String {
    let safe = name.escape_debug().to_string();
    if safe.chars().count() <= 26 { safe } else { safe.chars().take(25).chain(['…']).collect() }
}
