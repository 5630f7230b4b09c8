//! `wakewatt tune status` and `tune verify`: what was applied, and whether it holds.
//!
//! They look at the same things. `verify` also checks what a boot parameter was to bring about and measures one
//! wake-up, and both end with 6 when something does not hold.

use super::every_journal;
use super::verdicts::lines;
use crate::cli::tune::StatusArgs;
use crate::exit::Code;
use crate::interrupt::Interrupt;
use crate::output::{self, Colour};
use crate::view::Style;
use crate::view::wrap::wrap;
use anyhow::Result;
use serde::Serialize;
use std::fmt::Write as _;
use wakewatt_core::samples::wakeup::WakeupSample;
use wakewatt_core::units::show_ns;
use wakewatt_host::kernel_log;
use wakewatt_tune::boot::check::BootVerdict;
use wakewatt_tune::here;
use wakewatt_tune::status::{Run, TransactionState};
use wakewatt_words::{say, spoken, word};

/// The document of `tune status` and `tune verify`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Statuses {
    /// Does everything hold?
    pub is_good: bool,
    /// What was applied, oldest first.
    pub transactions: Vec<TransactionState>,
    /// `verify` only: wake-ups measured now, to set beside the settings.
    pub wakeup: Option<WakeupSample>,
    /// `verify` only: why there are none.
    pub no_wakeup_because: Option<String>,
}

/// Runs it.
pub(super) fn run(args: &StatusArgs, colour: Colour, is_verifying: bool) -> Result<Code> {
    let (all, is_readable) = every_journal();
    let log = kernel_log::read();
    let mut transactions = here::states(&all, log.as_deref().ok());
    if let Some(id) = &args.which.id {
        super::pick(all, &args.which)?;
        transactions.retain(|t| t.id == *id);
    }
    let (wakeup, no_wakeup_because) = match is_verifying && transactions.iter().any(is_about_idle) {
        false => (None, None),
        true => match super::guard::wakeups(&Interrupt::listen()?) {
            Ok(sample) => (Some(sample), None),
            Err(why) => (None, Some(why)),
        },
    };
    let is_good = transactions.iter().all(TransactionState::is_good);
    let statuses = Statuses { is_good, transactions, wakeup, no_wakeup_because };
    if args.json {
        output::print(&output::json("tune-status", &statuses)?)?;
    } else {
        output::print(&spoken(|| text(&statuses, is_readable, Style { is_on: colour.is_on() })))?;
    }
    let is_left_behind = statuses.transactions.iter().any(|t| t.run == Some(Run::Ended));
    Ok(match (is_readable, statuses.is_good) {
        (false, _) => Code::BadFile,
        (true, false) if is_left_behind => Code::NotRestored,
        (true, true) => Code::Fine,
        (true, false) => Code::Drift,
    })
}

/// Is there anything in it that wake-ups could show?
fn is_about_idle(t: &TransactionState) -> bool {
    !t.boot_checks.is_empty() || t.settings.iter().any(|s| s.name.starts_with("qos.") || s.name.starts_with("idle."))
}

fn text(statuses: &Statuses, is_readable: bool, style: Style) -> String {
    if statuses.transactions.is_empty() {
        // A journal that cannot be read may be of settings that are.
        return if is_readable { say!("Nothing is applied.\n") } else { String::new() };
    }
    let mut out = String::new();
    let width = output::width();
    for t in &statuses.transactions {
        let when = match (&t.undone_in_s, t.is_of_this_boot) {
            (Some(s), true) => say!("undone in {s} s unless confirmed (wakewatt tune confirm)"),
            (Some(_), false) => say!("never confirmed, and the machine has booted since (wakewatt recover)"),
            (None, true) if t.run == Some(Run::GoesOn) => say!("not complete: its run goes on"),
            (None, true) if t.run == Some(Run::Unseen) => {
                say!(
                    "not complete: its process is of another PID namespace, and only there can be told whether it runs; if not, wakewatt recover undoes it"
                )
            }
            (None, true) if t.run.is_some() => say!("not complete: its run was cut short; wakewatt recover undoes it"),
            (None, true) => t.phase.clone(),
            (None, false) => say!("{phase}, before this boot", phase = t.phase),
        };
        let _ = writeln!(out, "{} {} [{when}]", style.bold(&t.id), t.purpose);
        for (line, is_good) in lines(&t.settings) {
            let line = wrap(if is_good { "  " } else { "! " }, "      ", &line, width);
            let _ = writeln!(out, "{}", if is_good { line } else { style.red(&line) });
        }
        for command in &t.commands_left {
            let line = say!("{command}: may have been run, and was not taken back");
            let _ = writeln!(out, "{}", style.red(&wrap("! ", "      ", &line, width)));
        }
        if !t.waits_for_boot.is_empty() {
            let line = say!("kernel parameters {names}: wait for the next boot", names = t.waits_for_boot.join(" "));
            let _ = writeln!(out, "{}", wrap("  ", "      ", &line, width));
        }
        for check in &t.boot_checks {
            let (mark, words) = match &check.verdict {
                BootVerdict::Holds => ("  ", format!("{}: {}", check.what, check.found)),
                BootVerdict::Broken => (
                    "! ",
                    say!(
                        "{what}: should be {wanted}, is {found}",
                        what = check.what,
                        wanted = check.wanted,
                        found = check.found
                    ),
                ),
                BootVerdict::CannotTell { why } => ("? ", format!("{}: {why}", check.what)),
            };
            let line = wrap(mark, "      ", &format!("{words} [{}]", check.path), width);
            let _ = writeln!(out, "{}", if mark == "! " { style.red(&line) } else { line });
        }
    }
    if let Some((sample, median)) = statuses.wakeup.as_ref().and_then(|s| Some((s, s.latency.quantile(0.5)?))) {
        let line = say!(
            "{kind} wake-ups of CPU {cpu} after {gap} of idleness: median {median} [{low}, {high}], {n} of them (measured, 95 % interval, which covers {covers})",
            kind = sample.kind.word(),
            cpu = sample.cpu,
            gap = show_ns(sample.gap_ns),
            median = show_ns(median.value_ns),
            low = show_ns(median.low_ns),
            high = show_ns(median.high_ns),
            n = sample.latency.n,
            covers = median.covers
        );
        let _ = writeln!(out, "{}", wrap(word!("Measured now: "), "  ", &line, width));
    }
    if let Some(why) = &statuses.no_wakeup_because {
        let _ = writeln!(out, "{}", wrap(word!("No wake-up measured: "), "  ", why, width));
    }
    out
}
