//! `wakewatt bios plan`.

use super::{bios, machine, service};
use crate::cli::bios::BiosPlanArgs;
use crate::exit::Code;
use crate::output::{self, Colour};
use crate::view::Style;
use crate::view::wrap::wrap;
use anyhow::Result;
use serde::Serialize;
use std::fmt::Write as _;
use wakewatt_bios::plan::{Plan, Step, StepState, plan};
use wakewatt_core::visible;
use wakewatt_words::{say, spoken, word};

/// The document of `bios plan`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Planned {
    /// The BMC or the folder.
    pub origin: String,
    /// Id of the system, as the BMC has it.
    pub system: String,
    /// Maker and model of the machine.
    pub machine: String,
    /// Steps, refusals, and what else to know.
    #[serde(flatten)]
    pub plan: Plan,
}

/// Runs it.
pub(super) fn run(args: &BiosPlanArgs, colour: Colour) -> Result<Code> {
    let mut service = service(&args.service)?;
    let machine = machine(&mut *service, args.service.bmc.system.as_deref())?;
    drop(service);
    let plan = plan(&machine, bios(&machine)?, &args.wishes);
    let is_refused = !plan.refused.is_empty();
    let name = format!("{} {}", machine.vendor, machine.model).trim().to_string();
    let planned = Planned { origin: machine.origin, system: machine.id, machine: name, plan };
    match args.json {
        true => output::print(&output::json("bios-plan", &planned)?)?,
        false => output::print(&spoken(|| text(&planned, Style { is_on: colour.is_on() })))?,
    }
    Ok(if is_refused { Code::Refused } else { Code::Fine })
}

fn text(planned: &Planned, style: Style) -> String {
    let (plan, width) = (&planned.plan, output::width());
    let mut out = format!("{}  {}\n", style.bold(&visible::line(&planned.machine)), visible::line(&planned.origin));
    for (at, step) in plan.steps.iter().enumerate() {
        let _ = writeln!(out, "{}", wrap(&format!("  {}. ", at + 1), "     ", &step_line(step), width));
    }
    for moved in &plan.moved {
        let now = moved.current.as_ref().map_or_else(|| say!("not told"), ToString::to_string);
        let line = say!(
            "{name}: {now} -> {then}, set by {who}",
            name = moved.attribute,
            then = moved.becomes,
            who = moved.because
        );
        let _ = writeln!(out, "{}", wrap(word!("  also "), "     ", &line, width));
    }
    for refused in &plan.refused {
        let line = format!("{}: {}", refused.asked, refused.why);
        let _ = writeln!(out, "{}", style.red(&wrap(word!("  refused "), "     ", &line, width)));
    }
    for waiting in &plan.waiting {
        let line = say!(
            "{name}={value} waits for the next boot and is not of this plan",
            name = waiting.attribute,
            value = waiting.pending
        );
        let _ = writeln!(out, "{}", wrap(word!("  waiting "), "     ", &line, width));
    }
    for note in &plan.notes {
        let _ = writeln!(out, "{}", style.dim(&wrap(word!("  note "), "     ", note, width)));
    }
    let n = plan.changes().count();
    let _ = match (n, plan.needs_reboot) {
        (0, false) => writeln!(out, "{}", word!("Nothing to stage.")),
        (0, true) => writeln!(out, "{}", word!("Nothing more to stage; what waits needs a host reset.")),
        (n, true) => {
            let said = say!("{n} to stage; takes effect at the next boot (needs a host reset). Nothing was changed.");
            writeln!(out, "{said}")
        }
        (n, false) => writeln!(out, "{}", say!("{n} to stage; the registry asks for no reset. Nothing was changed.")),
    };
    out
}

fn step_line(step: &Step) -> String {
    let now = step.current.as_ref().map_or_else(|| say!("not told"), ToString::to_string);
    let (name, wished) = (&step.attribute, &step.wished);
    let state = match step.state {
        StepState::NoChange => say!("{name}: is {wished} already"),
        StepState::AlreadyPending => say!("{name}: {now} -> {wished}, waits for the next boot already"),
        StepState::WillChange => format!("{name}: {now} -> {wished}"),
        StepState::Follows => say!("{name}: {now} -> {wished}, not written"),
    };
    let why = if step.why.is_empty() { String::new() } else { format!(" ({})", step.why) };
    let gate = if step.is_gate { word!(" [unlocks]") } else { "" };
    let label = if step.label.is_empty() || step.label == step.attribute {
        String::new()
    } else {
        format!(" \"{}\"", step.label)
    };
    format!("{state}{gate}{label}{why}")
}
