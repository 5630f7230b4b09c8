//! `wakewatt tune apply`: the changes, all or none, with a watch over them.

use super::applied::{Applied, in_a_sentence, text};
use super::gather;
use super::guard::{self, Watchman};
use crate::cli::tune::ApplyArgs;
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupt;
use crate::output::{self, Colour};
use crate::telling::Telling;
use crate::trusted::Use;
use crate::view::Style;
use anyhow::Result;
use std::cell::RefCell;
use wakewatt_host::clock;
use wakewatt_tune::apply::{ApplyError, Confirm, Order, Outcome};
use wakewatt_tune::asked::{OrderError, Ordered, Terms};
use wakewatt_tune::begin::{BeginError, ClearError, Cleared, Tuner, When, clear_and_begin};
use wakewatt_tune::sweep::{InTheWay, Sweep};
use wakewatt_words::spoken;

const SECOND_NS: u64 = 1_000_000_000;

/// Runs it.
pub(super) fn run(args: &ApplyArgs, colour: Colour) -> Result<Code> {
    let mut asked = gather(&args.wanted, Use::Acting)?;
    if let Some(note) = &args.note {
        asked.purpose += &format!(" [{note}]");
    }
    let interrupt = Interrupt::listen()?;
    let tuner = begun(&asked.purpose, if args.at_boot { When::AtBoot } else { When::Asked })?;
    let terms = Terms {
        is_persisting: args.persist,
        is_trying_once: args.try_once,
        is_to_be_confirmed: args.confirm_within.is_some(),
    };
    let ordered = asked.order(terms, tuner.hands().source, &super::held_arguments());
    let Ordered { order, mut notes } = ordered.map_err(not_ordered)?;
    let watchman = Watchman::before(args, &interrupt)?;
    let seen = RefCell::new(None);
    let watch = || watchman.after(args, &interrupt).map(|said| *seen.borrow_mut() = said);
    let confirm = args.confirm_within.map(|within_ns| Confirm {
        within_ns,
        boottime_ns: &clock::boottime_ns,
        start: &guard::wait_for_confirmation,
    });
    let order = Order {
        is_keeping_going: args.keep_going,
        confirm,
        watch: watchman.is_needed(args).then_some(&watch as &dyn Fn() -> Result<(), String>),
        ..order
    };
    let outcome = tuner.apply(order).map_err(not_applied)?;
    let within_s = args.confirm_within.map(|ns| ns / SECOND_NS);
    if let (Some(_), Some(within_s)) = (&outcome.id, within_s) {
        notes.push(format!("undone by itself in {within_s} s unless confirmed: wakewatt tune confirm"));
    }
    show(args, &outcome, &Applied::of(&outcome, within_s, seen.into_inner(), notes), colour)
}

/// With what killed runs left undone, which is said.
fn begun(purpose: &str, when: When) -> Result<Tuner> {
    let tell = |sweep: &Sweep| {
        sweep.complaints.iter().for_each(|line| output::complain(line));
        sweep.lines.iter().for_each(|line| output::remark(line));
    };
    match clear_and_begin(purpose, when) {
        Ok(Cleared { tuner, sweep }) => {
            tell(&sweep);
            Ok(tuner)
        }
        Err(error) => {
            let code = match &error {
                ClearError::Begin(BeginError::Busy(_)) => Code::Busy,
                ClearError::Begin(BeginError::Refused(_)) => Code::Refused,
                ClearError::InTheWay { sweep, why } => {
                    tell(sweep);
                    match why {
                        InTheWay::NotUndone => Code::NotRestored,
                        InTheWay::Journal => Code::BadFile,
                    }
                }
            };
            Err(Failure::error(code, error.to_string()))
        }
    }
}

fn not_ordered(error: OrderError) -> anyhow::Error {
    let code = match &error {
        OrderError::Refused(_) => Code::Refused,
        OrderError::Contradiction(_) => Code::Usage,
    };
    Failure::error(code, error.to_string())
}

fn not_applied(error: ApplyError) -> anyhow::Error {
    let code = if matches!(error, ApplyError::Refused(_)) { Code::Refused } else { Code::BadFile };
    Failure::error(code, error.to_string())
}

fn show(args: &ApplyArgs, outcome: &Outcome, applied: &Applied, colour: Colour) -> Result<Code> {
    let mut telling = Telling::default();
    if args.json {
        telling.text(&output::json("tune-apply", applied)?);
    } else {
        telling.text(&spoken(|| text(applied, outcome, Style { is_on: colour.is_on() })));
    }
    applied.not_restored.iter().for_each(|line| output::complain(line));
    let journal_left = outcome.failed.as_ref().and_then(|(_, report)| report.journal_left());
    journal_left.iter().for_each(|line| output::complain(line));
    let code = applied.code(outcome.n_refused > 0, journal_left.is_some());
    Ok(telling.end(code, &spoken(|| in_a_sentence(applied))))
}
