//! Reads moments off a machine, a tree or a recorded host, and makes rates of two.

use super::recorder::Recorder;
use crate::refusal::Refusal;
use std::path::Path;
use wakewatt_core::facts::{Cpus, Domain, holders::Holders};
use wakewatt_core::source::{Read, Source};
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
    /// Is it looked for who holds a latency limit?
    pub has_holders: bool,
    /// Written along, with `--record`.
    pub recorder: Option<Recorder>,
    reader: Box<dyn Reader>,
    source: Box<dyn Source>,
    /// Kept open beside those of the layout.
    others: Vec<String>,
    /// The moment before the last.
    then: Option<Counters>,
    now: Counters,
    is_read: bool,
    holders: Vec<String>,
    holders_of: Option<LatencyLimit>,
}

impl Sampler {
    /// Looks at the machine, tree or recorded host.
    pub fn open(place: WatchedMachine<'_>, sources: Sources) -> Result<Sampler, Refusal> {
        Sampler::open_with(place, sources, |_, _| Vec::new())
    }

    /// The same with other files of it, which are kept open too and read with [`Sampler::others`].
    pub fn open_with(
        place: WatchedMachine<'_>,
        sources: Sources,
        others: impl FnOnce(&dyn Source, &Layout) -> Vec<String>,
    ) -> Result<Sampler, Refusal> {
        let source = place.source()?;
        let layout = discover(&*source, sources);
        let others = others(&*source, &layout);
        let reader = place.reader(layout.files.len() + others.len())?;
        Ok(Sampler {
            layout,
            is_still: matches!(place, WatchedMachine::Recorded(_)),
            has_holders: true,
            recorder: None,
            reader,
            source,
            others,
            then: None,
            now: Counters::default(),
            is_read: false,
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
        self.read();
        self.rates()
    }

    /// Reads a moment. What it says beside the one before is asked for with [`Sampler::rates`], by whoever wants to know.
    pub fn read(&mut self) {
        let clocks = Clocks {
            at_ns: clock::monotonic_ns(),
            boot_at_ns: clock::boottime_ns(),
            wall_at_ns: clock::realtime_ns(),
            own_cpu_ns: clock::own_cpu_ns(),
            n_own_wakeups: own_usage::n_wakeups().unwrap_or(0),
        };
        let mut now = Counters::read(&self.layout, &mut *self.reader, clocks, self.is_read.then_some(&self.now));
        now.took_ns = clock::monotonic_ns().saturating_sub(clocks.at_ns);
        if self.has_holders {
            self.look_for_holders(&now);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.write(&now);
        }
        let before = std::mem::replace(&mut self.now, now);
        self.then = self.is_read.then_some(before);
        self.is_read = true;
    }

    /// Reads the other files, one after the other.
    pub fn others(&mut self, mut see: impl FnMut(Read<&[u8]>)) {
        let n_before = self.layout.files.len();
        for (i, path) in self.others.iter().enumerate() {
            see(self.reader.read(n_before + i, path));
        }
    }

    /// What the last two moments say; none before the second.
    pub fn rates(&self) -> Option<Rates> {
        let now = &self.now;
        let mut rates = match &self.then {
            Some(then) => Rates::between(&self.layout, then, now),
            None if self.is_still && self.is_read => Rates::since_boot(&self.layout, now, self.uptime_ns(now)),
            None => return None,
        };
        rates.machine.limit_holders.clone_from(&self.holders);
        rates.notes.extend(self.reader.note());
        Some(rates)
    }

    /// The moment that was read last; an empty one before the first.
    pub fn latest(&self) -> &Counters {
        &self.now
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
