//! The one thread that reads: the machine at every interval and when somebody asks, settings each minute, findings every ten.
//!
//! Whoever asks gets a reading at most a second old; who asks more often gets the same again, so that energy is not told faster than
//! once a second (a side channel: PLATYPUS, 2021) and nobody can make the agent read more. Between readings the thread sleeps. A source that fails
//! is named on the page; the rest goes on.

use crate::families::{Described, Known, Latencies, Own, SETTING_TOPICS, page};
use crate::history::{Limits, Ring};
use crate::metric::Page;
use crate::totals::Totals;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use wakewatt_core::facts::Snapshot;
use wakewatt_core::facts::topology::Topology;
use wakewatt_core::source::Source;
use wakewatt_core::watch::{Counters, Rates, Sources};
use wakewatt_host::{clock, own_usage};
use wakewatt_lab::refusal::Refusal;
use wakewatt_lab::trace::WakeFeed;
use wakewatt_lab::watch::{Sampler, WatchedMachine};

/// A reading serves everybody who asks within this.
const FRESH: Duration = Duration::from_secs(1);
/// Settings are looked at so often.
const SETTINGS_EVERY: Duration = Duration::from_secs(60);
/// Rules are asked so often.
const FINDINGS_EVERY: Duration = Duration::from_secs(600);

/// Which machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Machine {
    /// The one the agent runs on.
    Here,
    /// A tree that holds sys/ and proc/.
    Tree(PathBuf),
    /// A recorded host, which has one moment.
    Recorded(PathBuf),
}

impl Machine {
    fn watched(&self) -> WatchedMachine<'_> {
        match self {
            Machine::Here => WatchedMachine::Here,
            Machine::Tree(folder) => WatchedMachine::Tree(folder),
            Machine::Recorded(file) => WatchedMachine::Recorded(file),
        }
    }
}

/// What is read, and how often.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Which machine.
    pub machine: Machine,
    /// What reading may disturb.
    pub sources: Sources,
    /// From reading to reading while nobody asks.
    pub interval: Duration,
    /// Wake-up latency by eBPF?
    pub is_traced: bool,
    /// A series for each CPU?
    pub is_per_cpu: bool,
    /// The version that the page names.
    pub version: &'static str,
    /// Where the past is kept, and how much of it.
    pub history: Option<(PathBuf, Limits)>,
}

/// What the thread is asked.
#[derive(Debug)]
pub enum Ask {
    /// A page of metrics.
    Page(tokio::sync::oneshot::Sender<Arc<Page>>),
    /// What two readings say; none before the second.
    Rates(tokio::sync::oneshot::Sender<Option<Arc<Rates>>>),
    /// The end.
    Stop,
}

/// All that the thread keeps.
pub struct Engine {
    plan: Plan,
    source: Box<dyn Source>,
    topology: Topology,
    sampler: Sampler,
    feed: Result<WakeFeed, Option<String>>,
    totals: Totals,
    now: Counters,
    rates: Option<Arc<Rates>>,
    page: Arc<Page>,
    described: Described,
    history: Result<Ring, Option<String>>,
    latencies: Latencies,
    n_lost: Option<u64>,
    start_s: f64,
    read_at: Instant,
    /// When the interval last ended.
    kept_at: Instant,
    settings_at: Option<Instant>,
    findings_at: Option<Instant>,
}

impl Engine {
    /// Looks at the machine, attaches what was asked for, takes the first reading.
    pub fn open(plan: Plan) -> Result<Engine, Refusal> {
        let source = plan.machine.watched().source()?;
        let sampler = Sampler::open(plan.machine.watched(), plan.sources)?;
        let feed =
            if plan.is_traced { WakeFeed::attach(&*source).map_err(|why| Some(why.to_string())) } else { Err(None) };
        let topology = Snapshot::read(&*source, |topic| topic == "topology").topology;
        let history = match &plan.history {
            None => Err(None),
            Some((folder, limits)) => Ring::open(folder, *limits).map_err(|why| Some(why.to_string())),
        };
        let mut engine = Engine {
            history,
            topology,
            plan,
            source,
            sampler,
            feed,
            totals: Totals::default(),
            now: Counters::default(),
            rates: None,
            page: Arc::default(),
            described: Described::default(),
            latencies: Latencies::new(),
            n_lost: None,
            start_s: clock::realtime_ns() as f64 / 1e9,
            read_at: Instant::now(),
            kept_at: Instant::now(),
            settings_at: None,
            findings_at: None,
        };
        engine.read();
        Ok(engine)
    }

    /// The page as last made.
    pub fn page(&self) -> Arc<Page> {
        Arc::clone(&self.page)
    }

    /// Why wake-ups are not traced although that was asked for.
    pub fn not_traced_because(&self) -> Option<&str> {
        self.feed.as_ref().err()?.as_deref()
    }

    /// Answers until told to stop, or until nobody is left to ask.
    pub fn serve(mut self, asks: &Receiver<Ask>) {
        loop {
            let due = (self.kept_at + self.plan.interval).saturating_duration_since(Instant::now());
            match asks.recv_timeout(due) {
                // Who asked and went away is not waited for.
                Ok(Ask::Page(answer)) => {
                    self.refresh();
                    let _ = answer.send(Arc::clone(&self.page));
                }
                Ok(Ask::Rates(answer)) => {
                    self.refresh();
                    let _ = answer.send(self.rates.clone());
                }
                Ok(Ask::Stop) | Err(RecvTimeoutError::Disconnected) => {
                    if let Ok(history) = &mut self.history {
                        // Whoever stops it has nobody left to tell.
                        let _ = history.finish();
                    }
                    return;
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.kept_at = Instant::now();
                    self.refresh();
                    self.keep();
                }
            }
        }
    }

    fn refresh(&mut self) {
        if self.read_at.elapsed() >= FRESH {
            self.read();
        }
    }

    fn read(&mut self) {
        self.look();
        if let Some(rates) = self.sampler.take() {
            self.rates = Some(Arc::new(rates));
        }
        self.read_at = Instant::now();
        if let Some(now) = self.sampler.latest() {
            self.totals.advance(&self.sampler.layout, now);
            self.now = now.clone();
        }
        let mut trouble = self.feed.as_ref().err().cloned().flatten();
        if let Ok(feed) = &mut self.feed {
            match feed.counted() {
                Ok(counted) => (self.latencies, self.n_lost) = (counted.latencies, Some(counted.n_unclassed)),
                Err(why) => trouble = Some(why.to_string()),
            }
        }
        let mut sources = vec![("counters", self.now.cpus.is_empty().then(|| "no CPU could be read".to_string()))];
        if self.plan.is_traced {
            sources.push(("trace", trouble));
        }
        if self.plan.history.is_some() {
            sources.push(("history", self.history.as_ref().err().cloned().flatten()));
        }
        let own = Own {
            version: self.plan.version,
            start_s: self.start_s,
            cpu_ns: clock::own_cpu_ns(),
            resident_bytes: own_usage::resident_bytes(),
            n_wakeups: own_usage::n_wakeups(),
            sources,
            n_events_lost: self.n_lost,
        };
        self.page = Arc::new(page(&Known {
            layout: &self.sampler.layout,
            now: &self.now,
            totals: &self.totals,
            described: &self.described,
            latencies: &self.latencies,
            own: &own,
            is_per_cpu: self.plan.is_per_cpu,
        }));
    }

    /// Facts, but none whose reading interrupts another CPU: registers never, the processor (/proc/cpuinfo, which asks every busy CPU for its
    /// clock on older kernels) once.
    fn facts(&self, wanted: impl Fn(&str) -> bool) -> Snapshot {
        let mut facts = Snapshot::read(&*self.source, |topic| wanted(topic) && !matches!(topic, "msr" | "topology"));
        facts.topology = self.topology.clone();
        facts
    }

    /// Keeps the page; the first failure ends that, and is told on every page.
    fn keep(&mut self) {
        let Ok(history) = &mut self.history else { return };
        if let Err(why) = history.push(clock::realtime_ns() / 1_000_000, &self.page) {
            self.history = Err(Some(why.to_string()));
        }
    }

    /// Why the past is not kept although that was asked for.
    pub fn no_history_because(&self) -> Option<&str> {
        self.history.as_ref().err()?.as_deref()
    }

    /// Settings and findings, where they are due.
    fn look(&mut self) {
        let is_due = |at: Option<Instant>, every: Duration| at.is_none_or(|at| at.elapsed() >= every);
        if is_due(self.settings_at, SETTINGS_EVERY) {
            let facts = self.facts(|topic| SETTING_TOPICS.contains(&topic));
            self.described.look(&facts);
            self.settings_at = Some(Instant::now());
        }
        if is_due(self.findings_at, FINDINGS_EVERY) {
            let facts = self.facts(|_| true);
            self.described.judge(facts);
            self.findings_at = Some(Instant::now());
        }
    }
}
