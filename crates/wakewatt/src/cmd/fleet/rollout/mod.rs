//! `fleet rollout`: a plan begun, gone on with, undone or looked at. What runs is wakewatt-carry's conductor.

mod begin;
mod book;
mod dry;
mod gates;
mod page;
mod show;

pub use dry::DryRun;

use super::{reach, store};
use crate::cli::rollout::RolloutArgs;
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupt;
use crate::output::{self, Colour, Outlet};
use crate::view::Style;
use anyhow::Result;
use begin::{Begun, begun};
use book::{book, kept, key};
use gates::Gates;
use std::cell::RefCell;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use wakewatt_carry::audit::check;
use wakewatt_carry::book::{Book, BookError};
use wakewatt_carry::rollout::{Conductor, Halt, World};
use wakewatt_core::visible;
use wakewatt_fleet::rollout::plan::EXAMPLE;
use wakewatt_fleet::rollout::state::{End, Is, Rollout};
use wakewatt_host::input;

/// Old values of firmware, in the book's folder.
const BIOS: &str = "bios";

pub(super) fn run(args: &RolloutArgs, colour: Colour) -> Result<Code> {
    let style = Style { is_on: colour.is_on() };
    if args.example {
        output::print(EXAMPLE)?;
        return Ok(Code::Fine);
    }
    if let Some(file) = &args.audit_check {
        return audit(args, file);
    }
    let page = args.output.as_deref().map(|file| Outlet::open(file, "-o")).transpose()?;
    if args.status {
        let r = kept(args)?;
        show(args, &r, page.as_ref(), style)?;
        return Ok(Code::Fine);
    }
    let journals = args.bmcs.bmc.as_ref().map(|_| book::folder_of(args)).transpose()?.unwrap_or_default();
    let carrier = match reach::bmcs(&args.bmcs, journals.join(BIOS))? {
        Some(bmcs) => bmcs,
        None => reach::any(&args.ssh, &args.kubernetes)?,
    };
    if args.dry_run {
        return begin::dry_run(args, &*carrier, style);
    }
    let by = by();
    let mut book = book(args, &format!("{by}, process {}", std::process::id()))?;
    let Begun { plan, mut rollout } = begun(args, &*carrier, &mut *book, &by)?;
    let interrupt = Interrupt::listen()?;
    let gates = Gates { args, carrier: &*carrier };
    let world = Here { interrupt: &interrupt, last: RefCell::default() };
    let mut conductor =
        Conductor { plan: &plan, carrier: &*carrier, book: &mut *book, judge: &gates, world: &world, by: &by };
    let what = if args.undo {
        "undo all"
    } else if args.resume {
        "resume"
    } else {
        "begin"
    };
    conductor
        .log(&rollout, what, None, &serde_json::json!({ "nodes": rollout.nodes.len() }))
        .map_err(|e| not_kept(&e))?;
    let halt = conductor.conduct(&mut rollout).map_err(|why| {
        let advice = match rollout.is_firmware() {
            true => "what is staged stays staged: go on with --resume, or take it back with --undo",
            false => "what is under way undoes itself on its node unless somebody goes on: --resume, or --undo",
        };
        output::complain(advice);
        not_kept(&why)
    })?;
    show(args, &rollout, page.as_ref(), style)?;
    Ok(match (halt, rollout.end) {
        (Halt::Stopped, _) => {
            let deadline = rollout.nodes.iter().filter(|n| !n.is_confirmed).filter_map(|n| n.undone_by_ms).min();
            let by_when = deadline.map_or(String::new(), |ms| format!(" by {}", show::moment(ms)));
            let then = match rollout.is_firmware() {
                true => "What is staged stays staged until then".to_string(),
                false => format!("What is not confirmed undoes itself{by_when}"),
            };
            let line =
                format!("stopped between two steps; go on with --resume, or put everything back with --undo. {then}");
            output::complain(&line);
            Code::Interrupted
        }
        (Halt::Ended, Some(End::Done)) => Code::Fine,
        // Old values that wait for a boot are not in force.
        (Halt::Ended, Some(End::AllUndone)) if args.undo && rollout.nodes.iter().any(|n| n.is == Is::UndoWaits) => {
            Code::Partial
        }
        (Halt::Ended, Some(End::AllUndone)) if args.undo => Code::Fine,
        (Halt::Ended, Some(End::NotUndone)) => Code::NotRestored,
        (Halt::Ended, _) => Code::Refused,
    })
}

fn show(args: &RolloutArgs, r: &Rollout, page: Option<&Outlet>, style: Style) -> Result<()> {
    if let Some(page) = page {
        page.write(&page::html(args, r)?)?;
        output::remark(&format!("Report: {}", page.path().display()));
    }
    output::print(&if args.json { output::json("fleet-rollout", r)? } else { show::text(r, style, output::width()) })
}

/// The clock, the signals, and standard error.
struct Here<'a> {
    interrupt: &'a Interrupt,
    /// What was told last: a gate that is asked again and again says the same.
    last: RefCell<String>,
}

impl World for Here<'_> {
    fn now_ms(&self) -> u64 {
        now_ms()
    }
    fn sleep_ms(&self, ms: u64) {
        std::thread::sleep(Duration::from_millis(ms));
    }
    fn is_stopped(&self) -> bool {
        self.interrupt.is_set()
    }
    fn tell(&self, r: &Rollout, line: &str) {
        let stage = r.stages.get(r.stage).map_or("", |s| s.name.as_str());
        let line = format!("[{stage}] {}", visible::line(line));
        if self.last.replace(line.clone()) != line {
            output::remark(&line);
        }
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// User and machine. The kernel knows the number; the names are as the environment says.
fn by() -> String {
    let name = |key: &str| std::env::var(key).ok().filter(|n| !n.is_empty());
    let user = name("SUDO_USER").or_else(|| name("USER")).unwrap_or_else(|| "somebody".into());
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    visible::line(&format!("{user} (uid {}) on {host}", rustix::process::getuid().as_raw())).into_owned()
}

fn not_kept(why: &BookError) -> anyhow::Error {
    let code = if matches!(why, BookError::Held { .. }) { Code::Busy } else { Code::BadFile };
    Failure::error(code, why.to_string())
}

/// Does a log hold together?
fn audit(args: &RolloutArgs, file: &Path) -> Result<Code> {
    let checked = check(&input::read(file, input::KEPT)?, key(args)?.as_ref());
    let signed = format!("{} of {} lines are signed", checked.n_signed, checked.n_lines);
    for fault in &checked.faults {
        output::print(&format!("{fault}\n"))?;
    }
    let verdict = if checked.faults.is_empty() { "every line follows the one before it" } else { "NOT whole" };
    output::print(&format!("{verdict}; {signed}; the last line's hash is {}\n", checked.last))?;
    Ok(if checked.faults.is_empty() { Code::Fine } else { Code::BadFile })
}

/// The state of the book that is held.
fn read(book: &mut dyn Book) -> Result<Option<Rollout>> {
    let place = book.place();
    let Some(bytes) = book.read().map_err(|why| not_kept(&why))? else { return Ok(None) };
    let broken = |why| Failure::error(Code::BadFile, format!("{place}: {why}"));
    Rollout::from_bytes(&bytes).map(Some).map_err(broken)
}
