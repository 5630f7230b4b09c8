//! Reads moments off a machine, a tree or a recorded host, and makes rates of two.

use super::recorder::Recorder;
use crate::refusal::Refusal;
use std::path::Path;
use wakewatt_core::facts::{Cpus, Domain, holders::Holders};
use wakewatt_core::source::Source;
use wakewatt_core::units::LatencyLimit;
use wakewatt_core::watch::counters::{Clocks, FromSource, Reader};
use wakewatt_core::watch::{Counters, Layout, Rates, Reading, Sources, discover::discover};
use wakewatt_host::kept::KeptFiles;
use wakewatt_host::live::Live;
use wakewatt_host::{clock, own_usage, recorded};

/// Holders are looked for when the limit changes, and once in this many intervals: it walks all of /proc.
const HOLDERS_EVERY: u64 = 30;

/// What is watched.
#[derive(Clone, Copy, Debug)]
pub enum WatchedMachine<'a> {
    /// This machine.
    Here,
    /// A tree that holds sys/ and proc/.
    Tree(&'a Path),
    /// A recorded host.
    Recorded(&'a Path),
}

impl WatchedMachine<'_> {
    /// Its files, each opened when asked.
    pub fn source(self) -> Result<Box<dyn Source>, Refusal> {
        let bad = |why: String| Refusal::File(why);
        Ok(match self {
            WatchedMachine::Here => Box::new(Live::this_machine()),
            WatchedMachine::Tree(folder) => Box::new(Live::sysroot(folder).map_err(|e| bad(e.to_string()))?),
            WatchedMachine::Recorded(file) => Box::new(recorded::open(file).map_err(|e| bad(e.to_string()))?),
        })
    }

    /// Its files kept open, so that a moment costs no path walks.
    fn reader(self, n_files: usize) -> Result<Box<dyn Reader>, Refusal> {
        let bad = |why: String| Refusal::File(why);
        Ok(match self {
            WatchedMachine::Here => Box::new(KeptFiles::new(Live::this_machine(), n_files)),
            WatchedMachine::Tree(folder) => {
                Box::new(KeptFiles::new(Live::sysroot(folder).map_err(|e| bad(e.to_string()))?, n_files))
            }
            WatchedMachine::Recorded(_) => Box::new(FromSource::new(self.source()?)),
        })
    }
}

/// Reads a machine.
pub struct Sampler {
    /// What there is to watch.
    pub layout: Layout,
    /// A recorded host: it has one moment only.
    pub is_still: bool,
    /// Written along, with `--record`.
    pub recorder: Option<Recorder>,
    reader: Box<dyn Reader>,
    source: Box<dyn Source>,
    previous: Option<Counters>,
    holders: Vec<String>,
    holders_of: Option<LatencyLimit>,
}

impl Sampler {
    /// Looks at the machine, tree or recorded host.
    pub fn open(place: WatchedMachine<'_>, sources: Sources) -> Result<Sampler, Refusal> {
        let source = place.source()?;
        let layout = discover(&*source, sources);
        let reader = place.reader(layout.files.len())?;
        Ok(Sampler {
            layout,
            is_still: matches!(place, WatchedMachine::Recorded(_)),
            recorder: None,
            reader,
            source,
            previous: None,
            holders: Vec::new(),
            holders_of: None,
        })
    }

    /// From now on writes every moment into a folder, up to so many bytes.
    pub fn record(&mut self, folder: &Path, limit_bytes: u64) -> Result<(), Refusal> {
        self.recorder = Some(Recorder::create(folder, &self.layout, limit_bytes)?);
        Ok(())
    }

    /// Reads a moment; the rates since the one before, if there was one.
    pub fn take(&mut self) -> Option<Rates> {
        let clocks = Clocks {
            at_ns: clock::monotonic_ns(),
            boot_at_ns: clock::boottime_ns(),
            wall_at_ns: clock::realtime_ns(),
            own_cpu_ns: clock::own_cpu_ns(),
            n_own_wakeups: own_usage::n_wakeups().unwrap_or(0),
        };
        let mut now = Counters::read(&self.layout, &mut *self.reader, clocks, self.previous.as_ref());
        now.took_ns = clock::monotonic_ns().saturating_sub(clocks.at_ns);
        self.look_for_holders(&now);
        if let Some(recorder) = &mut self.recorder {
            recorder.write(&now);
        }
        let mut rates = match &self.previous {
            Some(then) => Some(Rates::between(&self.layout, then, &now)),
            None if self.is_still => Some(Rates::since_boot(&self.layout, &now, self.uptime_ns(&now))),
            None => None,
        };
        if let Some(rates) = &mut rates {
            rates.machine.limit_holders.clone_from(&self.holders);
            rates.notes.extend(self.reader.note());
        }
        self.previous = Some(now);
        rates
    }

    /// The moment that was read last.
    pub fn latest(&self) -> Option<&Counters> {
        self.previous.as_ref()
    }

    /// How long the recorded machine was up: /proc/uptime, else what its first CPU's ticks add up to.
    fn uptime_ns(&self, now: &Counters) -> Option<u64> {
        let load = wakewatt_core::facts::load::Load::read(&*self.source, &Cpus::default());
        let ticks = || {
            let cpu = now.cpus.first()?;
            Some(cpu.busy_ns.get()?.saturating_add(cpu.idle_ns.get()?).saturating_add(cpu.steal_ns.get()?))
        };
        load.uptime_ns.get().copied().or_else(ticks)
    }

    fn look_for_holders(&mut self, now: &Counters) {
        let limit = match now.global_limit {
            Reading::Known(limit) if limit != LatencyLimit::None => Some(limit),
            _ => None,
        };
        if limit.is_none() {
            self.holders.clear();
        } else if self.holders_of != limit || now.n_before.is_multiple_of(HOLDERS_EVERY) {
            let found = Holders::read(&*self.source, &Cpus::default());
            let name = |h: &&wakewatt_core::facts::holders::Holder| {
                format!("{} (pid {})", h.comm.as_deref().unwrap_or("?"), h.pid)
            };
            self.holders = match found.of_latency_limit() {
                Some(holders) => holders.iter().map(name).collect(),
                None => Vec::new(),
            };
        }
        self.holders_of = limit;
    }
}
