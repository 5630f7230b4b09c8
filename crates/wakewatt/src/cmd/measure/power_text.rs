//! What `measure power` knows beyond the page's section: the command that ran meanwhile, and what a model says.

use crate::view::wrap::wrap;
use std::fmt::Write as _;
use wakewatt_core::units::{show_ns, show_uw};
use wakewatt_lab::survey::PowerSample;
use wakewatt_words::say;

/// It, before the section.
pub(super) fn text(out: &mut String, power: &PowerSample, width: usize) {
    let length = show_ns(power.sample.window.length_ns());
    let of = power
        .command
        .as_ref()
        .map_or(String::new(), |c| say!(" of {program:?} (exit {code})", program = c.program, code = c.exit_code));
    let said = match power.sample.chosen().is_some() {
        true => say!("Power, measured in {length}{of}"),
        false => say!("Power: no meter of this machine works; nothing was measured in {length}{of}"),
    };
    let _ = writeln!(out, "{}", wrap("", "", &said, width));
    if let Some(model) = &power.modelled {
        let said = say!(
            "Modelled, not measured ({covers}): {power} ({low} to {high}); {basis}",
            covers = model.covers,
            power = show_uw(model.power_uw),
            low = show_uw(model.low_uw),
            high = show_uw(model.high_uw),
            basis = model.basis
        );
        let _ = writeln!(out, "{}", wrap("", "", &said, width));
    }
    out.push('\n');
}
