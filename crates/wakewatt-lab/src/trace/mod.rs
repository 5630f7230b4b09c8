//! A trace of wake-ups: what each costs, by the idle state the CPU was leaving.
//!
//! The probe counts in the kernel; this reads the counters at the start, at each window's end and at the end, and sleeps
//! in between. It wakes nobody unless the hardware's registers are asked for: its own CPU once per window (ten times a
//! second while recording), and says how often. When the process ends, however it ends, the kernel detaches the probe;
//! there is nothing to put back. `session` is the probe and what was read of it, `record` what goes to a file.

mod chains;
mod feed;
mod folders;
mod hardware;
mod header;
mod named;
mod names;
mod payers;
mod paying;
mod presence;
mod record;
mod remarks;
mod scope;
mod session;
mod watched;

pub use feed::{Counted, WakeFeed};
pub use paying::{Lost, Paid, StateKey};
pub use record::MAX_READ;

use crate::context::Lab;
use crate::refusal::Refusal;
use crate::running::Running;
use payers::Groups;
use record::Recorder;
use session::{TraceSession, TraceWants};
use std::ffi::OsString;
use std::path::PathBuf;
use wakewatt_core::samples::payers::PayerKind;
use wakewatt_core::samples::traced::Traced;
use wakewatt_core::samples::traced_whose::TracedWhose;
use wakewatt_probes::ProbeError;
use wakewatt_probes::wake::Scope;

const DEFAULT_NS: u64 = 10_000_000_000;
const SHORTEST_WINDOW_NS: u64 = 100_000_000;

/// Whose wake-ups.
#[derive(Clone, Debug)]
pub enum Whose {
    /// Everybody's.
    Machine,
    /// Of these processes and their threads, not their children.
    Processes(Vec<u32>),
    /// Of this cgroup (version 2) and those below it.
    Cgroup(PathBuf),
    /// Of a command that is started for it, and its children.
    Command(Vec<OsString>),
}

/// What is to be traced.
#[derive(Clone, Debug)]
pub struct TracePlan {
    /// Whose wake-ups.
    pub whose: Whose,
    /// How long; none: until the command ends, or a while.
    pub for_ns: Option<u64>,
    /// Who pays, added up in this way besides by process.
    pub by: Option<PayerKind>,
    /// Who woke whom, too.
    pub has_chains: bool,
    /// Length of a window.
    pub window_ns: u64,
    /// Programs that return at once, to measure what being attached costs.
    pub is_empty: bool,
    /// The hardware's residency registers too, which wakes every CPU twice.
    pub has_hardware: bool,
    /// Where every idle interval goes.
    pub record: Option<RecordPlan>,
}

/// How idle intervals are recorded.
#[derive(Clone, Debug)]
pub struct RecordPlan {
    /// The file.
    pub path: PathBuf,
    /// One window of every this many.
    pub every: u64,
    /// Its size at most, in MiB.
    pub max_mib: u64,
    /// It goes on with what the file holds.
    pub is_resumed: bool,
    /// It may take the place of another.
    pub is_overwriting: bool,
    /// Also what the governor's own functions were told and answered.
    pub is_exact: bool,
}

/// What came of it.
#[derive(Debug)]
pub struct Trace {
    /// The numbers.
    pub traced: Traced,
    /// The command; it may run still, no longer traced, where the time was up first.
    pub command: Option<Running>,
    /// Its exit code, if it has ended.
    pub exit_code: Option<u8>,
    /// Did the system refuse to write the recording?
    pub is_record_refused: bool,
}

/// Traces until the time is up, the command ends, nobody is left to be traced, or it is to end.
pub fn trace(lab: Lab<'_>, plan: &TracePlan) -> Result<Trace, Refusal> {
    let (scope, whose, mut watched) = scope::of(&plan.whose)?;
    scope::same_process_ids(&scope)?;
    let wanted = TraceWants {
        is_recording: plan.record.is_some(),
        is_exact: plan.record.as_ref().is_some_and(|record| record.is_exact),
        is_empty: plan.is_empty,
        is_hardware: plan.has_hardware,
        is_by_waker: plan.has_chains,
    };
    let window_ns = plan.window_ns.max(SHORTEST_WINDOW_NS);
    let groups = plan.by.map(Groups::start).transpose()?;
    let mut session = TraceSession::start(lab, scope, wanted, window_ns, groups)?;
    let mut command = match &plan.whose {
        Whose::Command(words) => Some(session.follow(words)?),
        _ => None,
    };
    // After the command: one that cannot be started leaves no file behind.
    let recording = plan.record.as_ref().map_or(Ok(()), |record| session.record(record));
    if let Err(why) = recording {
        if let Some(command) = &command {
            command.terminate();
        }
        return Err(why);
    }
    let end_at_ns = match plan.for_ns {
        Some(ns) => Some(session.start_at_ns.saturating_add(ns)),
        None if command.is_some() => None,
        None => Some(session.start_at_ns + DEFAULT_NS),
    };
    let exit_code = session.wait(end_at_ns, command.as_mut(), &mut watched)?;
    let is_record_refused = session.recorder.as_ref().is_some_and(Recorder::is_refused);
    Ok(Trace { traced: session.finish(whose)?, command, exit_code, is_record_refused })
}

/// The whole machine for so long, as it is: the probe, the counters, one window; who pays by what this machine runs, where that can be told.
pub fn of_machine(lab: Lab<'_>, for_ns: u64) -> Result<Traced, Refusal> {
    let groups = Groups::of_this_machine();
    let session = TraceSession::start(lab, Scope::Machine, TraceWants::default(), for_ns, groups)?;
    lab.wait_until(session.start_at_ns + for_ns);
    session.finish(TracedWhose::Machine)
}

fn refused(why: ProbeError) -> Refusal {
    Refusal::Unavailable(format!("cannot trace: {why}"))
}
