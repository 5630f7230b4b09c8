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
use wakewatt_words::{say, spoken, word};

/// Runs it.
pub(super) fn run(args: &BiosShowArgs, colour: Colour) -> Result<Code> {
    let mut service = service(&args.service)?;
    let machine = machine(&mut *service, args.service.bmc.system.as_deref())?;
    // Said goodbye before anything is shown: a reader that leaves must not leave a session behind.
    drop(service);
    let shown = show(&machine, args.all);
    match args.json {
        true => output::print(&output::json("bios-show", &shown)?)?,
        false => output::print(&spoken(|| text(&shown, Style { is_on: colour.is_on() })))?,
    }
    Ok(if shown.unavailable.is_some() { Code::CouldNotMeasure } else { Code::Fine })
}

/// A value, or that it is not told.
fn value(setting: Option<&Setting>) -> String {
    setting.map_or_else(|| say!("not told"), ToString::to_string)
}

fn text(shown: &Shown, style: Style) -> String {
    let width = output::width();
    let name = format!("{} {}", shown.vendor, shown.model);
    let mut out = say!(
        "{name}  BIOS {version}, system {system} of {origin}\n",
        name = style.bold(&visible::line(name.trim())),
        version = visible::line(&shown.bios_version),
        system = visible::line(&shown.system),
        origin = visible::line(&shown.origin)
    );
    if let Some(why) = &shown.unavailable {
        let _ = writeln!(out, "{}", wrap("  ", "  ", why, width));
        return out;
    }
    if let Some(why) = &shown.not_validated {
        let _ = writeln!(out, "{}", style.red(&wrap(word!("  not validated: "), "    ", why, width)));
    }
    for concept in &shown.concepts {
        out.push_str(&concept_text(concept, style, width));
    }
    for missing in &shown.not_here {
        let near = match missing.near.is_empty() {
            true => say!("under no known name here"),
            false => say!("several attributes here could be meant: {names}", names = missing.near.join(", ")),
        };
        let _ = writeln!(out, "{}", style.dim(&wrap(&format!("  {:<24} ", missing.id), "      ", &near, width)));
    }
    out.push_str(&waiting_text(shown, style, width));
    for odd in &shown.oddities {
        let _ = writeln!(out, "{}", style.dim(&wrap(word!("Registry: "), "  ", odd, width)));
    }
    if !shown.other_systems.is_empty() {
        let names = visible::line(&shown.other_systems.join(", ")).into_owned();
        let _ = writeln!(out, "{}", say!("Other systems here (--system): {names}"));
    }
    if !shown.attributes.is_empty() {
        let _ = writeln!(out, "{}", style.bold(word!("Every attribute")));
        for attribute in &shown.attributes {
            let _ = writeln!(out, "{}", wrap("  ", "      ", &attribute_line(attribute), width));
        }
    }
    out
}

fn waiting_text(shown: &Shown, style: Style, width: usize) -> String {
    if let Some(why) = &shown.waiting_unknown {
        return format!("{}\n", wrap(word!("What waits for the next boot is not known: "), "  ", why, width));
    }
    if shown.waiting.is_empty() {
        return say!("Nothing waits for the next boot.\n");
    }
    let mut out = format!("{}\n", style.bold(word!("Waiting for the next boot")));
    for waiting in &shown.waiting {
        let line = format!("{}: {} -> {}", waiting.attribute, value(waiting.current.as_ref()), waiting.pending);
        let _ = writeln!(out, "{}", wrap("  ", "    ", &line, width));
    }
    out
}

fn attribute_line(attribute: &ShownAttribute) -> String {
    let locked = attribute.locked.as_ref().map_or(String::new(), |why| format!("; {why}"));
    let label = if attribute.label.is_empty() { String::new() } else { format!(" ({})", attribute.label) };
    say!(
        "{name}={value}{label}: takes {values}{locked}",
        name = attribute.name,
        value = value(attribute.current.as_ref()),
        values = attribute.takes
    )
}

fn concept_text(concept: &ShownConcept, style: Style, width: usize) -> String {
    let own: Vec<String> =
        concept.attributes.iter().map(|a| format!("{}={}", a.name, value(a.current.as_ref()))).collect();
    let word = concept.word.as_deref().unwrap_or("-");
    let then = concept.pending_word.as_ref().map_or(String::new(), |then| say!(" -> {then} at the next boot"));
    let takes = if concept.words.is_empty() {
        String::new()
    } else {
        say!("; takes {words}", words = concept.words.join(", "))
    };
    let line = format!("{word}{then}  ({}{takes})", own.join(", "));
    let mut out = format!("{}\n", wrap(&format!("  {:<24} ", concept.id), "      ", &line, width));
    if let Some(locked) = concept.attributes.first().and_then(|a| a.locked.as_ref()) {
        out.push_str(&style.dim(&wrap("      ", "      ", locked, width)));
        out.push('\n');
    }
    out
}
