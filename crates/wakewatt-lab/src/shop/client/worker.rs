//! One generator thread: its clients, their pace, and what they note down.
//!
//! Everything of a client stays on its thread, so nothing is shared while requests run but a few counters for whoever
//! supervises. With clients each one waits for its answer, thinks, and asks again (closed loop: a slow server is asked
//! less). With a rate, requests arrive whatever the server does (open loop): an idle client takes each, or a new one,
//! and beyond [`Pace::Rate`]'s `most_open` they wait their turn, their latency running.

use super::alarm::Alarm;
use super::connection::{Connection, Failure, Target};
use super::mix::{Mix, ShopSession};
use super::tally::{Moments, Recorded, Tally};
use super::thinking::{exponential_ns, joins_after_ns, stream};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::watch;
use wakewatt_core::stats::random::Random;
use wakewatt_host::clock::monotonic_ns;

/// So many late arrivals are planned before others may run.
const LATE_AT_ONCE: u64 = 64;

/// How requests come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// So many clients, who think between answers.
    Clients {
        /// How many.
        n: u32,
        /// Mean think time.
        think_ns: u64,
        /// They come in over this time.
        ramp_ns: u64,
    },
    /// So many requests per second, come what may.
    Rate {
        /// How many.
        per_s: f64,
        /// Connections at most, over all threads.
        most_open: u32,
    },
}

/// What all threads and their supervisor see.
#[derive(Debug)]
pub struct Shared {
    /// Whom to ask.
    pub target: Target,
    /// For what.
    pub mix: Mix,
    /// How.
    pub pace: Pace,
    /// Seed of all streams.
    pub seed: u64,
    /// First session number.
    pub first_session: u64,
    /// Later answers count as failures.
    pub timeout: Duration,
    /// The recorded window.
    pub recorded: Recorded,
    /// When true, nothing new is planned.
    pub is_closing: AtomicBool,
    /// Answered so far, in any phase.
    pub n_good: AtomicU64,
    /// Failed so far.
    pub n_bad: AtomicU64,
    /// Being answered, or waiting for a connection.
    pub n_under_way: AtomicU64,
    /// Threads that could not have their CPUs (offline, or taken from this process) and run wherever the kernel put them.
    pub n_displaced: AtomicU64,
}

/// A thread among all.
#[derive(Clone, Copy, Debug)]
pub struct ThreadPlace {
    /// Which, from 0.
    pub at: u32,
    /// Of how many.
    pub n_threads: u32,
}

struct Worker {
    shared: Arc<Shared>,
    place: ThreadPlace,
    alarm: Rc<Alarm>,
    tally: RefCell<Tally>,
    /// By client: when its request was planned, and for which page.
    under_way: RefCell<BTreeMap<u32, (u64, usize)>>,
    n_sessions: Cell<u64>,
    /// Clients without a request (open loop).
    idle: RefCell<Vec<Client>>,
    /// Requests without a client (open loop).
    waiting: RefCell<VecDeque<u64>>,
}

struct Client {
    number: u32,
    random: Random,
    session: ShopSession,
    connection: Connection,
}

/// Runs until told to halt; what it noted down.
pub(super) fn run(shared: &Arc<Shared>, place: ThreadPlace, mut halt: watch::Receiver<bool>) -> Result<Tally, String> {
    let fail = |e: std::io::Error| format!("a thread of the clients: {e}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().map_err(fail)?;
    let tasks = tokio::task::LocalSet::new();
    let worker = tasks.block_on(&runtime, async {
        let alarm = Alarm::new().map_err(fail)?;
        let timeout_ns = u64::try_from(shared.timeout.as_nanos()).unwrap_or(u64::MAX);
        let worker = Rc::new(Worker {
            shared: Arc::clone(shared),
            place,
            alarm: Rc::clone(&alarm),
            tally: RefCell::new(Tally::new(shared.mix.names().len(), timeout_ns)),
            under_way: RefCell::default(),
            n_sessions: Cell::new(0),
            idle: RefCell::default(),
            waiting: RefCell::default(),
        });
        let start_at_ns = monotonic_ns();
        match shared.pace {
            Pace::Clients { n, think_ns, ramp_ns } => {
                for number in (place.at..n).step_by(place.n_threads.max(1) as usize) {
                    let first_at_ns = start_at_ns + joins_after_ns(number, n, ramp_ns);
                    tokio::task::spawn_local(thinking(Rc::clone(&worker), number, think_ns, first_at_ns));
                }
            }
            Pace::Rate { per_s, most_open } => {
                tokio::task::spawn_local(arriving(Rc::clone(&worker), per_s, most_open, start_at_ns));
            }
        }
        let halted = async { drop(halt.wait_for(|halt| *halt).await) };
        tokio::select! {
            () = halted => Ok(worker),
            ended = alarm.run() => Err(ended.err().map_or_else(|| "the clients' timer ended".into(), fail)),
        }
    })?;
    // Tasks go first: then nobody else holds the worker.
    drop(tasks);
    let mut tally = worker.tally.borrow().clone();
    for (planned_at_ns, page) in worker.under_way.borrow().values() {
        tally.note_unfinished(&shared.recorded, *planned_at_ns, Some(*page));
    }
    for planned_at_ns in worker.waiting.borrow().iter() {
        tally.note_unfinished(&shared.recorded, *planned_at_ns, None);
    }
    Ok(tally)
}

/// One client of a closed loop.
async fn thinking(worker: Rc<Worker>, number: u32, think_ns: u64, first_at_ns: u64) {
    let mut client = Client::new(&worker, number);
    let mut planned_at_ns = first_at_ns;
    loop {
        worker.alarm.until(planned_at_ns).await;
        if worker.shared.is_closing.load(Relaxed) {
            return;
        }
        worker.shared.n_under_way.fetch_add(1, Relaxed);
        let end_at_ns = client.visit(&worker, planned_at_ns).await;
        worker.shared.n_under_way.fetch_sub(1, Relaxed);
        planned_at_ns = end_at_ns + exponential_ns(&mut client.random, think_ns as f64);
    }
}

/// This thread's share of an open loop.
async fn arriving(worker: Rc<Worker>, per_s: f64, most_open: u32, start_at_ns: u64) {
    let ThreadPlace { at, n_threads } = worker.place;
    let mean_ns = 1e9 * f64::from(n_threads.max(1)) / per_s.max(1e-6);
    let most_here = (most_open / n_threads.max(1)).max(1);
    // Beyond any client's number, so that arrivals have a stream of their own.
    let mut random = stream(worker.shared.seed, u32::MAX - at);
    let (mut planned_at_ns, mut n_clients, mut n_late) = (start_at_ns, 0, 0u64);
    loop {
        planned_at_ns += exponential_ns(&mut random, mean_ns);
        // What is late does not wait, and a rate beyond what this thread can do would leave no time for requests, or for
        // being told to halt.
        n_late += u64::from(monotonic_ns() >= planned_at_ns);
        if n_late > LATE_AT_ONCE {
            n_late = 0;
            tokio::task::yield_now().await;
        }
        worker.alarm.until(planned_at_ns).await;
        if worker.shared.is_closing.load(Relaxed) {
            return;
        }
        worker.shared.n_under_way.fetch_add(1, Relaxed);
        let idle = worker.idle.borrow_mut().pop();
        let client = idle.or_else(|| {
            let number = at + n_clients * n_threads;
            (n_clients < most_here).then(|| Client::new(&worker, number)).inspect(|_| n_clients += 1)
        });
        match client {
            Some(client) => drop(tokio::task::spawn_local(serving(Rc::clone(&worker), client, planned_at_ns))),
            None => worker.waiting.borrow_mut().push_back(planned_at_ns),
        }
    }
}

/// A client takes a request, and then those that wait.
async fn serving(worker: Rc<Worker>, mut client: Client, first_at_ns: u64) {
    let mut next = Some(first_at_ns);
    while let Some(planned_at_ns) = next {
        client.visit(&worker, planned_at_ns).await;
        worker.shared.n_under_way.fetch_sub(1, Relaxed);
        next = worker.waiting.borrow_mut().pop_front();
    }
    worker.idle.borrow_mut().push(client);
}

impl Client {
    fn new(worker: &Worker, number: u32) -> Client {
        let random = stream(worker.shared.seed, number);
        Client { number, random, session: ShopSession::default(), connection: Connection::default() }
    }

    /// One request; returns when it was over.
    async fn visit(&mut self, worker: &Worker, planned_at_ns: u64) -> u64 {
        let shared = &worker.shared;
        let next = || {
            let n = worker.n_sessions.get();
            worker.n_sessions.set(n + 1);
            shared.first_session + (u64::from(worker.place.at) << 32) + n
        };
        let request = shared.mix.draw(&mut self.random, &mut self.session, self.number, next);
        worker.under_way.borrow_mut().insert(self.number, (planned_at_ns, request.page));
        let start_at_ns = monotonic_ns();
        let asked = self.connection.ask(&shared.target, &request);
        let done = tokio::time::timeout(shared.timeout, asked).await.unwrap_or(Err(Failure::Timeout));
        let end_at_ns = monotonic_ns();
        worker.under_way.borrow_mut().remove(&self.number);
        let count = if done.is_ok() { &shared.n_good } else { &shared.n_bad };
        count.fetch_add(1, Relaxed);
        let moments = Moments { planned_at_ns, start_at_ns, end_at_ns };
        worker.tally.borrow_mut().note(&shared.recorded, request.page, moments, done);
        shared.mix.note(&mut self.random, &mut self.session, request.page, done.is_ok());
        end_at_ns
    }
}
