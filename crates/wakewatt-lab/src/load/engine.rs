//! The coordinator's half: worker processes started, bound, ordered, waited for and ended.
//!
//! One process per memory node that has CPUs to use; on one node one process, by the same code. A worker that dies ends the
//! run with an error that says which, because what it left undone cannot be told from what it would have done. Dropping the
//! engine kills the workers: Ctrl-C needs nothing else.

use super::Announce;
use super::message::{Counted, Order, Reply};
use crate::table_work::units_for;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::samples::load::Worker;
use wakewatt_host::bound::bind;
use wakewatt_host::clock::monotonic_ns;

/// How often the stop flag is looked at.
const LOOK_NS: u64 = 250_000_000;
/// How long after a level's end a reply may take: a busy machine, not a hung one.
const GRACE_NS: u64 = 30_000_000_000;

/// What to start.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The program that becomes a worker: this one, with its hidden command.
    pub program: Vec<OsString>,
    /// One process each.
    pub places: Vec<Worker>,
    /// What a transaction is to take at full speed.
    pub service_ns: u64,
    /// So many units of work instead, without finding out what they take.
    pub work_units: Option<u64>,
    /// Of tables and schedules.
    pub seed: u64,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The stop flag was set.
    #[error("it was interrupted")]
    Stopped,
    /// It cannot go on.
    #[error("{0}")]
    Failed(String),
}

enum Event {
    Reply(usize, String),
    Gone(usize),
}

struct Process {
    child: Child,
    orders: ChildStdin,
    place: Worker,
}

/// Running workers.
pub struct Engine {
    processes: Vec<Process>,
    events: Receiver<Event>,
    answers: Vec<Option<Reply>>,
    /// Of the schedules. The same seed is the same load: set it per round to compare settings.
    pub seed: u64,
    service_ns: u64,
    units: u64,
    /// Transactions per second of every thread at 100 %, once calibrated.
    pub(super) capacity: Option<Vec<f64>>,
}

impl Engine {
    /// Starts the workers and finds out how much work a transaction is.
    pub fn start(spec: &Spec, stop: &AtomicBool, tell: Announce<'_>) -> Result<Engine, LoadError> {
        let (send, events) = channel();
        let mut engine = Engine {
            processes: Vec::new(),
            events,
            answers: Vec::new(),
            seed: spec.seed,
            service_ns: spec.service_ns,
            units: 1,
            capacity: None,
        };
        for (index, place) in spec.places.iter().enumerate() {
            engine.processes.push(process(spec, place, index, send.clone()).map_err(LoadError::Failed)?);
        }
        drop(send);
        tell("starting workers");
        let start = |place: &Worker| Order::Start { cpus: place.cpus.iter().collect(), seed: spec.seed };
        engine.order(|_, place| start(place))?;
        engine.replies(monotonic_ns() + GRACE_NS, stop, tell, "starting workers")?;
        engine.units = match spec.work_units {
            Some(units) => units.max(1),
            None => {
                engine.order(|_, _| Order::Cost)?;
                let replies = engine.replies(monotonic_ns() + GRACE_NS, stop, tell, "sizing the work")?;
                let of = |r: Reply| if let Reply::Cost(costs) = r { costs } else { Vec::new() };
                let costs: Vec<f64> = replies.into_iter().flat_map(of).collect();
                units_for(spec.service_ns, &costs)
            }
        };
        let units = engine.units;
        engine.order(|_, _| Order::Units(units))?;
        engine.replies(monotonic_ns() + GRACE_NS, stop, tell, "sizing the work")?;
        Ok(engine)
    }

    /// Units of work in a transaction.
    pub fn work_units(&self) -> u64 {
        self.units
    }

    /// What a transaction was asked to take.
    pub fn service_ns(&self) -> u64 {
        self.service_ns
    }

    /// Where the workers run.
    pub fn places(&self) -> Vec<Worker> {
        self.processes.iter().map(|p| p.place.clone()).collect()
    }

    /// All CPUs with a worker thread.
    pub fn cpus(&self) -> CpuSet {
        self.processes.iter().flat_map(|p| p.place.cpus.iter()).collect()
    }

    /// Process ids of the workers.
    pub fn pids(&self) -> Vec<u32> {
        self.processes.iter().map(|p| p.child.id()).collect()
    }

    /// Transactions per second of all threads at 100 %.
    pub fn capacity_per_s(&self) -> Option<f64> {
        self.capacity.as_ref().map(|all| all.iter().sum())
    }

    /// The same of each thread; nothing where nothing was calibrated.
    pub fn threads_per_s(&self) -> Vec<f64> {
        self.capacity.clone().unwrap_or_default()
    }

    /// Takes these as 100 %, one per thread; false where there are other threads now.
    pub fn set_threads_per_s(&mut self, per_s: &[f64]) -> bool {
        let is_fit = per_s.len() == self.n_threads() && per_s.iter().all(|rate| rate.is_finite() && *rate >= 0.0);
        if is_fit {
            self.capacity = Some(per_s.to_vec());
        }
        is_fit
    }

    /// Takes this as 100 % instead of calibrating: a block of an experiment has the capacity of the run, not one of its own.
    /// The threads keep their shares, or get equal ones.
    pub fn set_capacity(&mut self, per_s: f64) {
        let n = self.n_threads();
        let now = self.capacity.take().filter(|all| all.len() == n && all.iter().sum::<f64>() > 0.0);
        let shares = now.unwrap_or_else(|| vec![1.0; n]);
        let sum: f64 = shares.iter().sum();
        self.capacity = Some(shares.into_iter().map(|share| share / sum * per_s).collect());
    }

    /// Threads in all.
    pub fn n_threads(&self) -> usize {
        self.processes.iter().map(|p| p.place.cpus.len()).sum()
    }

    /// Sends each process its order, made from the numbers of its threads among all.
    pub(super) fn order(&mut self, of: impl Fn(Range<usize>, &Worker) -> Order) -> Result<(), LoadError> {
        let mut first = 0;
        self.answers = self.processes.iter().map(|_| None).collect();
        for index in 0..self.processes.len() {
            let Some(process) = self.processes.get_mut(index) else { break };
            let next = first + process.place.cpus.len();
            let order = of(first..next, &process.place);
            first = next;
            let mut line = serde_json::to_string(&order).map_err(|e| LoadError::Failed(e.to_string()))?;
            line.push('\n');
            if process.orders.write_all(line.as_bytes()).and_then(|()| process.orders.flush()).is_err() {
                return Err(self.gone(index, "taking an order"));
            }
        }
        Ok(())
    }

    /// Waits until then; ends early only by the flag or a death. Replies that come meanwhile are kept.
    pub(super) fn wait_until(
        &mut self,
        at_ns: u64,
        stop: &AtomicBool,
        tell: Announce<'_>,
        what: &str,
    ) -> Result<(), LoadError> {
        while monotonic_ns() < at_ns {
            self.look(at_ns, stop, tell, what)?;
        }
        Ok(())
    }

    /// Waits for all replies to the last order.
    pub(super) fn replies(
        &mut self,
        until_ns: u64,
        stop: &AtomicBool,
        tell: Announce<'_>,
        what: &str,
    ) -> Result<Vec<Reply>, LoadError> {
        while let Some(index) = self.answers.iter().position(Option::is_none) {
            if monotonic_ns() >= until_ns {
                let name = self.name(index);
                return Err(LoadError::Failed(format!(
                    "{name} does not answer ({what}); is the machine out of memory?"
                )));
            }
            self.look(until_ns, stop, tell, what)?;
        }
        Ok(std::mem::take(&mut self.answers).into_iter().flatten().collect())
    }

    /// What all threads counted, when they are through.
    pub(super) fn counted(
        &mut self,
        end_at_ns: u64,
        stop: &AtomicBool,
        tell: Announce<'_>,
        what: &str,
    ) -> Result<Vec<Counted>, LoadError> {
        let replies = self.replies(end_at_ns.saturating_add(GRACE_NS), stop, tell, what)?;
        let of = |r: Reply| if let Reply::Counted(counted) = r { counted } else { Vec::new() };
        let counted: Vec<Counted> = replies.into_iter().flat_map(of).collect();
        match counted.len() == self.n_threads() {
            true => Ok(counted),
            false => Err(LoadError::Failed(format!("{} of {} threads answered", counted.len(), self.n_threads()))),
        }
    }

    /// One event, or a moment.
    fn look(&mut self, until_ns: u64, stop: &AtomicBool, tell: Announce<'_>, what: &str) -> Result<(), LoadError> {
        if stop.load(Ordering::Relaxed) {
            return Err(LoadError::Stopped);
        }
        tell(what);
        let wait_ns = until_ns.saturating_sub(monotonic_ns()).min(LOOK_NS);
        match self.events.recv_timeout(Duration::from_nanos(wait_ns)) {
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => Err(self.gone(0, what)),
            Ok(Event::Gone(index)) => Err(self.gone(index, what)),
            Ok(Event::Reply(index, line)) => match serde_json::from_str(&line) {
                Ok(Reply::Failed(why)) => Err(LoadError::Failed(format!("{}: {why}", self.name(index)))),
                Err(why) => Err(LoadError::Failed(format!("{} said what is no reply: {why}", self.name(index)))),
                Ok(reply) => {
                    if let Some(answer) = self.answers.get_mut(index) {
                        *answer = Some(reply);
                    }
                    Ok(())
                }
            },
        }
    }

    fn name(&self, index: usize) -> String {
        self.processes.get(index).map_or("a worker process".into(), |process| {
            let node = process.place.node.map_or(String::new(), |n| format!("node {n}, "));
            format!("worker process {} ({node}CPUs {})", process.child.id(), process.place.cpus)
        })
    }

    /// Says how a worker ended.
    fn gone(&mut self, index: usize, what: &str) -> LoadError {
        let name = self.name(index);
        let status = self.processes.get_mut(index).and_then(|process| {
            // Its pipe is closed, so it has ended or is about to; a moment later it can be asked how.
            let until_ns = monotonic_ns() + 1_000_000_000;
            loop {
                match process.child.try_wait() {
                    Ok(Some(status)) => return Some(status),
                    Ok(None) if monotonic_ns() < until_ns => std::thread::sleep(Duration::from_millis(5)),
                    _ => return None,
                }
            }
        });
        let how = match status.map(|s| (s.signal(), s.code())) {
            Some((Some(9), _)) => "was killed (signal 9; the kernel log says so if memory ran out)".into(),
            Some((Some(signal), _)) => format!("was ended by signal {signal}"),
            Some((_, Some(code))) => format!("ended with code {code}"),
            _ => "closed its output".into(),
        };
        LoadError::Failed(format!("{name} {how} while {what}; the load could not be kept up, so the run ends"))
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.child.kill();
        }
        for process in &mut self.processes {
            let _ = process.child.wait();
        }
    }
}

fn process(spec: &Spec, place: &Worker, index: usize, send: Sender<Event>) -> Result<Process, String> {
    let (program, arguments) = spec.program.split_first().ok_or("no program for workers")?;
    let mut command = wakewatt_host::environment::users(program).map_err(|e| e.to_string())?;
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    let bound = place.node.map_or(String::new(), |n| format!(" and the memory of node {n}"));
    let cannot = |why: std::io::Error| {
        format!("a worker process on CPUs {}{bound} could not be started: {why}; name others with --cpus", place.cpus)
    };
    bind(&mut command, &place.cpus, place.node).map_err(cannot)?;
    let mut child = command.spawn().map_err(cannot)?;
    let pipes = child.stdin.take().zip(child.stdout.take());
    let (orders, replies) = pipes.ok_or("a worker process without pipes")?;
    let read = move || {
        for line in BufReader::new(replies).lines() {
            let Ok(line) = line else { break };
            if send.send(Event::Reply(index, line)).is_err() {
                return;
            }
        }
        let _ = send.send(Event::Gone(index));
    };
    let process = Process { child, orders, place: place.clone() };
    match std::thread::Builder::new().name(format!("worker-{index}")).spawn(read) {
        Ok(_) => Ok(process),
        Err(why) => {
            let mut process = process;
            let _ = process.child.kill();
            let _ = process.child.wait();
            Err(format!("no thread to listen to a worker: {why}"))
        }
    }
}
