//! `wakewatt bios show`.

use super::{machine, service};
use crate::cli::bios::BiosShowArgs;
use crate::exit::Code;
use crate::output::{self, Colour};
use crate::view::Style;
use crate::view::wrap::wrap;
use anyhow::Result;
use std::fmt::Write as _;
use wakewatt_bios::setting::Setting;
use wakewatt_bios::show::{Shown, ShownAttribute, ShownConcept, show};
use wakewatt_core::visible;

/// Runs it.
pub(super) fn run(args: &BiosShowArgs, colour: Colour) -> Result<Code> {
    let mut service = service(&args.service)?;
    let machine = machine(&mut *service, args.service.bmc.system.as_deref())?;
    // Said goodbye before anything is shown: a reader that leaves must not leave a session behind.
    drop(service);
    let shown = show(&machine, args.all);
    match args.json {
        true => output::print(&output::json("bios-show", &shown)?)?,
        false => output::print(&text(&shown, Style { is_on: colour.is_on() }))?,
    }
    Ok(if shown.unavailable.is_some() { Code::CouldNotMeasure } else { Code::Fine })
}

/// A value, or that it is not told.
fn value(setting: Option<&Setting>) -> String {
    setting.map_or_else(|| "not told".into(), ToString::to_string)
}

fn text(shown: &Shown, style: Style) -> String {
    let width = output::width();
    let name = format!("{} {}", shown.vendor, shown.model);
    let mut out = format!(
        "{}  BIOS {}, system {} of {}\n",
        style.bold(&visible::line(name.trim())),
        visible::line(&shown.bios_version),
        visible::line(&shown.system),
        visible::line(&shown.origin)
    );
    if let Some(why) = &shown.unavailable {
        let _ = writeln!(out, "{}", wrap("  ", "  ", why, width));
        return out;
    }
    if let Some(why) = &shown.not_validated {
        let _ = writeln!(out, "{}", style.red(&wrap("  not validated: ", "    ", why, width)));
    }
    for concept in &shown.concepts {
        out.push_str(&concept_text(concept, style, width));
    }
    for missing in &shown.not_here {
        let near = match missing.near.is_empty() {
            true => "under no known name here".to_string(),
            false => format!("under no known name here; perhaps {}", missing.near.join(", ")),
        };
        let _ = writeln!(out, "{}", style.dim(&wrap(&format!("  {:<24} ", missing.id), "      ", &near, width)));
    }
    out.push_str(&waiting_text(shown, style, width));
    for odd in &shown.oddities {
        let _ = writeln!(out, "{}", style.dim(&wrap("Registry: ", "  ", odd, width)));
    }
    if !shown.other_systems.is_empty() {
        let _ = writeln!(out, "Other systems here (--system): {}", visible::line(&shown.other_systems.join(", ")));
    }
    if !shown.attributes.is_empty() {
        let _ = writeln!(out, "{}", style.bold("Every attribute"));
        for attribute in &shown.attributes {
            let _ = writeln!(out, "{}", wrap("  ", "      ", &attribute_line(attribute), width));
        }
    }
    out
}

fn waiting_text(shown: &Shown, style: Style, width: usize) -> String {
    if let Some(why) = &shown.waiting_unknown {
        return format!("{}\n", wrap("What waits for the next boot is not known: ", "  ", why, width));
    }
    if shown.waiting.is_empty() {
        return "Nothing waits for the next boot.\n".into();
    }
    let mut out = format!("{}\n", style.bold("Waiting for the next boot"));
    for waiting in &shown.waiting {
        let line = format!("{}: {} -> {}", waiting.attribute, value(waiting.current.as_ref()), waiting.pending);
        let _ = writeln!(out, "{}", wrap("  ", "    ", &line, width));
    }
    out
}

fn attribute_line(attribute: &ShownAttribute) -> String {
    let locked = attribute.locked.as_ref().map_or(String::new(), |why| format!("; {why}"));
    let label = if attribute.label.is_empty() { String::new() } else { format!(" ({})", attribute.label) };
    format!("{}={}{label}: takes {}{locked}", attribute.name, value(attribute.current.as_ref()), attribute.takes)
}

fn concept_text(concept: &ShownConcept, style: Style, width: usize) -> String {
    let own: Vec<String> =
        concept.attributes.iter().map(|a| format!("{}={}", a.name, value(a.current.as_ref()))).collect();
    let word = concept.word.as_deref().unwrap_or("-");
    let then = concept.pending_word.as_ref().map_or(String::new(), |then| format!(" -> {then} at the next boot"));
    let takes = if concept.words.is_empty() { String::new() } else { format!("; takes {}", concept.words.join(", ")) };
    let line = format!("{word}{then}  ({}{takes})", own.join(", "));
    let mut out = format!("{}\n", wrap(&format!("  {:<24} ", concept.id), "      ", &line, width));
    if let Some(locked) = concept.attributes.first().and_then(|a| a.locked.as_ref()) {
        out.push_str(&style.dim(&wrap("      ", "      ", locked, width)));
        out.push('\n');
    }
    out
}
