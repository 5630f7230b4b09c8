//! `wakewatt bios verify`.

use super::{bios, journal, machine, service};
use crate::cli::bios::BiosVerifyArgs;
use crate::exit::Code;
use crate::output::{self, Colour};
use crate::view::Style;
use crate::view::wrap::wrap;
use anyhow::Result;
use std::fmt::Write as _;
use wakewatt_bios::verify::{Hold, Verdict, Verified, verify};
use wakewatt_core::facts::Snapshot;
use wakewatt_core::source::Source;
use wakewatt_core::visible;
use wakewatt_host::live::Live;
use wakewatt_host::recorded;

/// Runs it.
pub(super) fn run(args: &BiosVerifyArgs, colour: Colour) -> Result<Code> {
    let host: Option<Box<dyn Source>> = match (&args.host, &args.sysroot, args.here) {
        (Some(file), ..) => Some(Box::new(recorded::open(file)?)),
        (_, Some(folder), _) => Some(Box::new(Live::sysroot(folder)?)),
        (.., true) => Some(Box::new(Live::this_machine())),
        _ => None,
    };
    let mut service = service(&args.service)?;
    let machine = machine(&mut *service, args.service.bmc.system.as_deref())?;
    drop(service);
    let journal = journal(&args.journal, args.id.as_deref(), &machine.origin, Some(&machine.id))?;
    // No registers: reading them would wake CPUs, and nothing here asks for one.
    let facts = host.map(|source| Snapshot::read(&*source, |topic| topic != "msr"));
    let verified = verify(&machine, bios(&machine)?, journal.as_ref(), facts.as_ref());
    match args.json {
        true => output::print(&output::json("bios-verify", &verified)?)?,
        false => output::print(&text(&verified, Style { is_on: colour.is_on() }))?,
    }
    Ok(if verified.has_drift() { Code::Drift } else { Code::Fine })
}

fn text(verified: &Verified, style: Style) -> String {
    let (mut out, width) = (String::new(), output::width());
    let origin = visible::line(&verified.origin);
    let _ = match &verified.journal {
        Some(id) => writeln!(out, "{}  against {origin}", style.bold(id)),
        None => writeln!(out, "No journal for {origin}: only what is there is compared."),
    };
    for held in &verified.held {
        let now = held.current.as_ref().map_or_else(|| "not told".into(), ToString::to_string);
        let hold = match held.hold {
            Hold::Holds => "holds".to_string(),
            Hold::Waits => format!("waits for the next boot (now {now})"),
            Hold::Dropped => style.red(&format!("does not hold: the BIOS says {now}")),
        };
        let moved = if held.is_moved { " (through a profile)" } else { "" };
        let _ = writeln!(
            out,
            "{}",
            wrap("  ", "      ", &format!("{}={}: {hold}{moved}", held.attribute, held.wished), width)
        );
    }
    if !verified.messages.is_empty() {
        let time = verified.messages_time.as_deref().unwrap_or("time not told");
        let _ = writeln!(
            out,
            "{}",
            wrap(
                "  the BMC on its last application: ",
                "      ",
                &format!("{} ({time})", verified.messages.join(", ")),
                width
            )
        );
    }
    if let Some(host) = &verified.host {
        let _ = writeln!(out, "{}", style.bold(&format!("BIOS beside Linux ({})", visible::line(host))));
    }
    for seen in &verified.seen {
        let word = match seen.verdict {
            Verdict::Agrees => "agrees".to_string(),
            Verdict::Differs => style.red("differs"),
            Verdict::CannotTell => style.dim("cannot tell"),
        };
        let sides = [
            Some(format!("BIOS: {}", seen.bios)),
            seen.tables.as_ref().map(|t| format!("tables: {t}")),
            seen.linux.as_ref().map(|l| format!("Linux: {l}")),
        ];
        let sides: Vec<String> = sides.into_iter().flatten().collect();
        let _ = writeln!(
            out,
            "{}",
            wrap(&format!("  {} {word}: ", seen.id), "      ", &format!("{} ({})", seen.says, sides.join("; ")), width)
        );
    }
    for note in &verified.notes {
        let _ = writeln!(out, "{}", wrap("Note: ", "  ", note, width));
    }
    out
}
