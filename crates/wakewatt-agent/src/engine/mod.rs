//! What reads: the machine at every interval and when somebody asks, settings each minute, findings every ten.
//!
//! It runs on the thread that answers. Two of them would hand each question over and its answer back, which woke a second CPU for each scrape. A page of now is
//! not to be had without a reading in any case; one that hangs gives no sign of life (`pulse`), and a service manager with a watchdog starts another agent.
//!
//! Energy counters turn; where the interval is longer than a turn may take, they are read in between.
//!
//! Whoever asks gets a reading at most a second old; who asks more often gets the same again, so that energy is not told faster than
//! once a second (a side channel: PLATYPUS, 2021) and nobody can make the agent read more. Between readings it sleeps. A source that fails
//! is named on the page; the rest goes on.

mod plan;

pub use plan::{Machine, NamedPayers, Plan};

use crate::alarm::Alarm;
use crate::confined::{self, Confine, Confined};
use crate::families::{
    Described, Known, LASTING_TOPICS, Latencies, Own, PRESSURE_FILES, Pressures, SETTING_TOPICS, page,
};
use crate::format::{Format, Written};
use crate::history::Keeping;
use crate::metric::Page;
use crate::node::{Node, OwnCost, Parts};
use crate::otlp::{self, Outbox, Sender};
use crate::paying::Payers;
use crate::pulse::Pulse;
use crate::recent::Recent;
use crate::telltales::{self, Fingerprint};
use crate::totals::Totals;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::Receiver;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::facts::topology::Topology;
use wakewatt_core::samples::energy::counter;
use wakewatt_core::source::Source;
use wakewatt_core::units::LatencyLimit;
use wakewatt_core::watch::layout::Reach;
use wakewatt_core::watch::{Counters, Files, Layout, Rates, Reading};
use wakewatt_host::{clock, own_pages, own_usage};
use wakewatt_lab::refusal::Refusal;
use wakewatt_lab::trace::WakeFeed;
use wakewatt_lab::watch::Sampler;

/// A reading serves everybody who asks within this.
const FRESH: Duration = Duration::from_secs(1);
/// Settings are looked at so often.
const SETTINGS_EVERY: Duration = Duration::from_secs(60);
/// Rules are asked so often.
const FINDINGS_EVERY: Duration = Duration::from_secs(600);

/// What is asked.
#[derive(Debug)]
pub(crate) enum Ask {
    /// A page of metrics.
    Page(tokio::sync::oneshot::Sender<Arc<Written>>),
    /// The node as people look at it.
    Node(tokio::sync::oneshot::Sender<Arc<Node>>),
    /// What two readings say; none before the second.
    Rates(tokio::sync::oneshot::Sender<Option<Arc<Rates>>>),
    /// The end.
    Stop,
}

/// What is kept open beside counters: pressure, read with them, and behind it the telltales, read each minute.
fn others(src: &dyn Source, layout: &Layout) -> Files {
    let mut all = Files::default();
    for (path, _) in PRESSURE_FILES {
        all.add(path, Reach::Memory);
    }
    telltales::add_files(src, layout, &mut all);
    all.settle();
    all
}

/// From reading to reading of the energy counters, at most; none where none is read.
fn energy_every(layout: &Layout) -> Option<Duration> {
    let read = layout.zones.iter().filter(|zone| zone.slot.is_some());
    let ranges = read.filter_map(|zone| zone.max_energy_range_uj.get());
    let longest = ranges.map(|range| Duration::from_nanos(counter::longest_interval_ns(range))).min();
    longest.map(|longest| longest.max(FRESH))
}

/// All that is kept from reading to reading.
pub struct Engine {
    plan: Plan,
    source: Box<dyn Source>,
    topology: Topology,
    /// What no setting changes while the kernel runs.
    lasting: Snapshot,
    /// What files that tell of a change held when the settings were looked at.
    telltales: Option<u32>,
    /// Did they say something else a minute ago?
    is_settling: bool,
    /// Was the layout looked at since, because counters ran backwards?
    has_looked: bool,
    sampler: Sampler,
    feed: Result<WakeFeed, Option<String>>,
    totals: Totals,
    pressures: Pressures,
    /// As last read.
    limit: Option<Reading<LatencyLimit>>,
    /// As asked for since the last reading: a page of metrics needs no rates.
    rates: Option<Arc<Rates>>,
    page: Arc<Written>,
    own: Own,
    /// As asked for since the last reading.
    node: Option<Arc<Node>>,
    recent: Recent,
    described: Described,
    history: Keeping,
    /// Why nothing is told of what was measured.
    not_measured: Option<String>,
    confined: Option<Confined>,
    latencies: Latencies,
    /// None until the probe has told of any.
    payers: Option<Payers>,
    n_lost: Option<u64>,
    start_s: f64,
    read_at: Instant,
    /// When the interval last ended.
    kept_at: Instant,
    /// The reading that was kept then.
    kept_read_at: Option<Instant>,
    settings_at: Option<Instant>,
    findings_at: Option<Instant>,
}

impl Engine {
    /// Looks at the machine, attaches what was asked for, takes the first reading.
    pub fn open(plan: Plan) -> Result<Engine, Refusal> {
        let source = plan.machine.watched().source()?;
        if let Some(measured) = &plan.measured {
            let idle = Snapshot::read(&*source, |topic| topic == "idle").idle;
            measured.fits(&idle).map_err(|why| Refusal::File(format!("--measured: {why}; measure here")))?;
        }
        let mut sampler = Sampler::open_with(plan.machine.watched(), plan.sources, others)?;
        // They are looked for with the daemons.
        sampler.has_holders = false;
        let attach = || WakeFeed::attach_by(&*source, plan.payers.map(|payers| payers.by));
        let mut feed = if plan.is_traced { attach().map_err(|why| Some(why.to_string())) } else { Err(None) };
        let topology = Snapshot::read(&*source, |topic| topic == "topology").topology;
        let lasting = Snapshot::read(&*source, |topic| LASTING_TOPICS.contains(&topic));
        let history = Keeping::open(plan.history.as_ref());
        // Before anything else is read, so that the first page says what all others can.
        let confined = plan.confine.map(|how| match how {
            Confine::No => Confined::not(),
            how => {
                let (tree, history) = (plan.machine.tree(), plan.history.as_ref().map(|(folder, _)| folder.as_path()));
                let needs = confined::needs(how, tree, history, &plan.beside);
                Confined::here(needs, tree.is_none(), &sampler.layout, feed.as_mut().ok(), &*source)
            }
        });
        let mut engine = Engine {
            history,
            not_measured: None,
            confined,
            topology,
            lasting,
            telltales: None,
            is_settling: false,
            has_looked: false,
            plan,
            source,
            totals: Totals::of(&sampler.layout),
            sampler,
            feed,
            pressures: Pressures::default(),
            limit: None,
            rates: None,
            page: Arc::default(),
            own: Own::default(),
            node: None,
            recent: Recent::from(Instant::now()),
            described: Described::default(),
            latencies: Latencies::new(),
            payers: None,
            n_lost: None,
            start_s: clock::realtime_ns() as f64 / 1e9,
            read_at: Instant::now(),
            kept_at: Instant::now(),
            kept_read_at: None,
            settings_at: None,
            findings_at: None,
        };
        engine.read();
        Ok(engine)
    }

    /// The page as last made.
    pub fn page(&self) -> &Page {
        self.page.page()
    }

    /// What was given up.
    pub(crate) fn confined(&self) -> Option<&Confined> {
        self.confined.as_ref()
    }

    /// Why wake-ups are not traced although that was asked for.
    pub fn not_traced_because(&self) -> Option<&str> {
        self.feed.as_ref().err()?.as_deref()
    }

    /// What the probe could not attach.
    pub fn trace_gaps(&self) -> &[String] {
        self.feed.as_ref().map(WakeFeed::gaps).unwrap_or_default()
    }

    /// Why it cannot be told who pays although that was asked for.
    pub fn no_payers_because(&self) -> Option<&str> {
        match &self.feed {
            Ok(feed) => feed.no_payers_because(),
            Err(why) => why.as_deref().filter(|_| self.plan.payers.is_some()),
        }
    }

    /// Answers until told to stop, or until nobody is left to ask; an error is one of the clock.
    pub(crate) async fn serve(mut self, mut asks: Receiver<Ask>, mut pulse: Pulse) -> io::Result<()> {
        let alarm = Alarm::new()?;
        loop {
            // Before anybody is answered: who asks all the time keeps no interval from being kept.
            if self.energy_due().is_zero() {
                self.refresh();
            }
            if self.due().is_zero() {
                self.kept_at = Instant::now();
                self.refresh();
                self.keep();
                self.push();
            }
            pulse.beat();
            let due = pulse.at_most(self.due().min(self.energy_due()));
            tokio::select! {
                biased;
                asked = asks.recv() => match asked {
                    Some(Ask::Stop) | None => {
                        self.history.finish();
                        return Ok(());
                    }
                    Some(ask) => self.answer(ask),
                },
                rung = alarm.ring_after(due) => rung?,
            }
        }
    }

    /// How long until the interval is over, and there is a reading that was not kept or one may be taken: the same one twice would be an interval in which
    /// nothing moved. Where nothing is kept, any reading was this interval's.
    fn due(&self) -> Duration {
        if self.plan.is_only_asked() {
            return self.plan.interval().saturating_sub(self.read_at.elapsed());
        }
        let over = self.kept_at + self.plan.interval();
        let at = if self.kept_read_at == Some(self.read_at) { over.max(self.read_at + FRESH) } else { over };
        at.saturating_duration_since(Instant::now())
    }

    /// How long until energy counters must be read, before one of them can have turned unseen; for ever where none is read.
    fn energy_due(&self) -> Duration {
        let every = energy_every(&self.sampler.layout);
        every.map_or(Duration::MAX, |every| every.saturating_sub(self.read_at.elapsed()))
    }

    /// Who asked and went away is not read for.
    fn answer(&mut self, ask: Ask) {
        match ask {
            Ask::Page(answer) if !answer.is_closed() => {
                self.refresh();
                let _ = answer.send(Arc::clone(&self.page));
            }
            Ask::Node(answer) if !answer.is_closed() => {
                self.refresh();
                let _ = answer.send(self.node());
            }
            Ask::Rates(answer) if !answer.is_closed() => {
                self.refresh();
                let _ = answer.send(self.rates());
            }
            Ask::Page(_) | Ask::Node(_) | Ask::Rates(_) | Ask::Stop => {}
        }
    }

    fn refresh(&mut self) {
        if self.read_at.elapsed() >= FRESH {
            self.read();
        }
    }

    /// The last reading.
    fn now(&self) -> &Counters {
        self.sampler.latest()
    }

    /// What the last two readings say.
    fn rates(&mut self) -> Option<Arc<Rates>> {
        if self.rates.is_none() {
            let mut rates = self.sampler.rates()?;
            rates.machine.limit_holders.clone_from(&self.described.holders);
            self.rates = Some(Arc::new(rates));
        }
        self.rates.clone()
    }

    /// The node as of the last reading.
    fn node(&mut self) -> Arc<Node> {
        if let Some(node) = &self.node {
            return Arc::clone(node);
        }
        let rates = self.rates();
        let now = self.sampler.latest();
        let (latencies, latencies_of_ns) = self.recent.since(self.read_at, &self.latencies);
        let cost = OwnCost {
            version: self.own.version.into(),
            cpu_ns: now.clocks.own_cpu_ns,
            resident_bytes: self.own.resident_bytes,
            n_remote_interrupts: self.totals.n_remote_interrupts,
            reading_ns: now.took_ns,
        };
        // Seconds since 1970 fit.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let started_ms = (self.start_s * 1e3) as u64;
        let node = Arc::new(Node::of(&Parts {
            rates: rates.as_deref(),
            described: &self.described,
            limit: now.global_limit,
            sources: &self.own.sources,
            is_traced: self.plan.is_traced,
            trace_gaps: self.feed.as_ref().map(WakeFeed::gaps).unwrap_or_default(),
            latencies,
            latencies_of_ns,
            guards: &self.own.guards,
            payers: self.payers.as_ref(),
            is_by_payer: self.plan.payers.is_some(),
            read_at: self.read_at,
            own: cost,
            wall_ms: now.clocks.wall_at_ns / 1_000_000,
            started_ms,
        }));
        self.node = Some(Arc::clone(&node));
        node
    }

    fn read(&mut self) {
        let has_made_facts = self.look();
        (self.node, self.rates) = (None, None);
        self.sampler.read();
        // Before anything is counted under a name that is no longer its own; once a minute, for counters that run backwards by themselves.
        if self.totals.is_broken_by(self.now()) && !std::mem::replace(&mut self.has_looked, true) && self.look_around()
        {
            self.sampler.read();
            // Settings say so at the next reading.
            self.settings_at = None;
        }
        self.read_at = Instant::now();
        self.totals.advance(&self.sampler.layout, self.sampler.latest());
        self.sampler.others(0..PRESSURE_FILES.len(), |file, read| self.pressures.advance(file, read));
        let limit = self.now().global_limit;
        let has_held = self.limit.replace(limit).is_some_and(|before| before != limit);
        if has_held {
            self.hold();
        }
        let mut trouble = self.feed.as_ref().err().cloned().flatten();
        if let Ok(feed) = &mut self.feed {
            match feed.counted(&*self.source) {
                Ok(counted) => {
                    trouble = feed.stale_because().map(str::to_string);
                    if let (Some(paid), Some(NamedPayers { by, n_places })) = (&counted.paid, self.plan.payers) {
                        let new = || Payers::new(by, n_places, self.read_at);
                        self.payers.get_or_insert_with(new).advance(self.read_at, paid);
                    }
                    (self.latencies, self.n_lost) = (counted.latencies, Some(counted.n_unclassed));
                    self.recent.look(self.read_at, &self.latencies);
                }
                Err(why) => trouble = Some(why.to_string()),
            }
        }
        let mut sources = vec![("counters", self.now().cpus.is_empty().then(|| "no CPU could be read".to_string()))];
        if self.plan.payers.is_some() {
            // Whatever keeps the probe from counting keeps payers from being told.
            sources.push(("payers", self.no_payers_because().map(str::to_string).or(trouble.clone())));
        }
        if self.plan.is_traced {
            sources.push(("trace", trouble));
        }
        if self.plan.measured.is_some() {
            sources.push(("measured", self.not_measured.clone()));
        }
        if self.plan.history.is_some() {
            sources.push(("history", self.history.trouble().map(str::to_string)));
        }
        sources.extend(self.plan.tellers.iter().map(|teller| (teller.source(), teller.now())));
        self.own = Own {
            guards: self.confined.as_ref().map(|confined| confined.guards.clone()).unwrap_or_default(),
            pushes: self.plan.outbox.as_ref().map(Outbox::counts),
            version: self.plan.version,
            start_s: self.start_s,
            resident_bytes: own_usage::resident_bytes(),
            sources,
            certificate_end_s: self.plan.tellers.iter().find_map(crate::trouble::Teller::end_s),
            n_events_lost: self.n_lost,
        };
        self.page = Arc::new(Written::new(page(&Known {
            layout: &self.sampler.layout,
            now: self.sampler.latest(),
            totals: &self.totals,
            pressures: &self.pressures,
            described: &self.described,
            measured: self.plan.measured.as_ref().filter(|_| self.not_measured.is_none()),
            latencies: &self.latencies,
            payers: self.payers.as_ref(),
            own: &self.own,
            is_per_cpu: self.plan.is_per_cpu,
        })));
        // Guards and the server, which come after the first reading, are let go of when settings have settled, a minute later. A look that found
        // everything as it was has used little that a reading does not use, and what is let go of costs the next reading its faults.
        if has_made_facts || has_held {
            own_pages::let_go();
        }
    }

    /// Facts, but none whose reading interrupts another CPU: registers never, the processor (/proc/cpuinfo, which asks every busy CPU for its
    /// clock on older kernels) once, and what changes of it from elsewhere.
    fn facts(&self, wanted: impl Fn(&str) -> bool) -> Snapshot {
        let mut facts = Snapshot::read(&*self.source, |topic| wanted(topic) && !matches!(topic, "msr" | "topology"));
        facts.topology = self.topology.clone();
        facts
    }

    /// Leaves the page to be pushed, where that is asked for.
    fn push(&self) {
        let Some(outbox) = &self.plan.outbox else { return };
        let host = self.sampler.layout.hostname.clone();
        let sender = Sender { host, version: self.plan.version };
        outbox.put(otlp::request(self.page.page(), &sender, self.now().clocks.wall_at_ns));
    }

    /// Keeps the page under the time at which it was read; a failure is told on every page.
    fn keep(&mut self) {
        self.keep_at(self.now().clocks.wall_at_ns / 1_000_000);
    }

    fn keep_at(&mut self, wall_ms: u64) {
        self.kept_read_at = Some(self.read_at);
        self.history.keep(self.read_at, wall_ms, self.page.page());
    }

    /// An interval as if it ended at this time, the `nth` of them, for whoever tries a day in a minute: reads at once, settings and findings as often
    /// as in as many intervals, is asked for all that can be asked for, and keeps the page. How many bytes it told.
    pub fn live_through(&mut self, nth: u64, wall_ms: u64) -> usize {
        let interval_s = self.plan.interval().as_secs().max(1);
        let is_due = |every: Duration| nth.is_multiple_of((every.as_secs() / interval_s).max(1));
        let (has_settings, has_findings) = (is_due(SETTINGS_EVERY), is_due(FINDINGS_EVERY));
        self.settings_at = self.settings_at.filter(|_| !has_settings);
        self.findings_at = self.findings_at.filter(|_| !has_findings);
        self.read();
        self.keep_at(wall_ms);
        let _ = self.node();
        let formats = [Format::Text, Format::OpenMetrics, Format::Protobuf];
        formats.iter().map(|format| self.page.bytes(*format).len()).sum()
    }

    /// Why the past is not kept although that was asked for.
    pub fn no_history_because(&self) -> Option<&str> {
        self.history.trouble()
    }

    /// Segments of the history that others can write, and that are passed over.
    pub fn doubted_history(&self) -> Vec<String> {
        self.history.doubts()
    }

    /// Settings and findings, where they are due; was more read than files that tell of a change?
    fn look(&mut self) -> bool {
        // With the reading that comes about then, which may be a moment early.
        let is_due = |at: Option<Instant>, every: Duration| at.is_none_or(|at| at.elapsed() + FRESH >= every);
        let (are_settings_due, are_findings_due) =
            (is_due(self.settings_at, SETTINGS_EVERY), is_due(self.findings_at, FINDINGS_EVERY));
        let mut has_made_facts = are_findings_due;
        if are_settings_due {
            self.settings_at = Some(Instant::now());
            self.has_looked = false;
            let now = Some(self.telltale());
            let was_looked_at = self.telltales.is_some();
            let has_changed = std::mem::replace(&mut self.telltales, now) != now;
            // Once more a minute later: a driver is there before its states are. And with the findings, for what no telltale tells.
            let is_settling = std::mem::replace(&mut self.is_settling, has_changed);
            if was_looked_at && (has_changed || is_settling || are_findings_due) && self.look_around() {
                // Other files tell of another machine.
                self.telltales = Some(self.telltale());
            }
            if has_changed || are_findings_due {
                self.topology.refresh(&*self.source);
                let facts = self.facts(|topic| SETTING_TOPICS.contains(&topic));
                self.described.look(&facts, &self.lasting);
                self.not_measured = self.plan.measured.as_ref().and_then(|measured| measured.fits(&facts.idle).err());
            }
            let is_limited = matches!(self.limit, Some(Reading::Known(limit)) if limit != LatencyLimit::None);
            if !are_findings_due && (is_limited || has_changed) {
                self.hold();
            }
            has_made_facts |= has_changed || is_settling || is_limited;
        }
        if are_findings_due {
            let facts = self.facts(|_| true);
            self.described.hold(&facts);
            self.described.judge(facts, clock::realtime_ns() / 1_000_000);
            self.findings_at = Some(Instant::now());
        }
        has_made_facts
    }

    fn telltale(&mut self) -> u32 {
        let mut now = Fingerprint::default();
        self.sampler.others(PRESSURE_FILES.len().., |_, read| now.add(read));
        telltales::add_names(&*self.source, &self.sampler.layout, &mut now);
        now.finish()
    }

    /// Looks again at what there is to read; true where that is something else now.
    fn look_around(&mut self) -> bool {
        let cpus = |layout: &Layout| layout.cpus.iter().map(|info| info.cpu).collect::<Vec<_>>();
        let before = cpus(&self.sampler.layout);
        if !self.sampler.look_again(others) {
            return false;
        }
        self.totals.follow(&self.sampler.layout);
        // A CPU that came is worth one look at /proc/cpuinfo.
        if cpus(&self.sampler.layout) != before {
            self.topology = Snapshot::read(&*self.source, |topic| topic == "topology").topology;
        }
        if let Ok(feed) = &mut self.feed {
            // What cannot be read now is told with the next reading.
            let _ = feed.look_again(&*self.source);
        }
        true
    }

    /// Which processes hold or turn what. It asks every process for every file it has open, a hundred times the work of a scrape: so with the findings, when a setting or
    /// the limit is another one (who did it may leave), and each minute while there is a limit.
    fn hold(&mut self) {
        let facts = self.facts(|topic| topic == "holders");
        self.described.hold(&facts);
    }
}

#[cfg(test)]
mod tests;
