//! Reads moments off a machine, a tree or a recorded host, and makes rates of two.

use super::recorder::Recorder;
use crate::refusal::Refusal;
use std::ops::RangeBounds;
use std::path::{Path, PathBuf};
use wakewatt_core::facts::{Cpus, Domain, holders::Holders};
use wakewatt_core::source::{Read, Source, Tree};
use wakewatt_core::units::LatencyLimit;
use wakewatt_core::watch::counters::{Clocks, FromSource, Reader};
use wakewatt_core::watch::{Counters, Files, Layout, Rates, Reading, Sources, discover::discover};
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
    /// A host that texts of other tools tell of.
    Told(&'a Tree),
}

impl WatchedMachine<'_> {
    /// Its files, each opened when asked.
    pub fn source(self) -> Result<Box<dyn Source>, Refusal> {
        let bad = |why: String| Refusal::File(why);
        Ok(match self {
            WatchedMachine::Here => Box::new(Live::this_machine()),
            WatchedMachine::Tree(folder) => Box::new(Live::sysroot(folder).map_err(|e| bad(e.to_string()))?),
            WatchedMachine::Recorded(file) => Box::new(recorded::open(file).map_err(|e| bad(e.to_string()))?),
            WatchedMachine::Told(tree) => Box::new(tree.clone()),
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
            WatchedMachine::Recorded(_) | WatchedMachine::Told(_) => Box::new(FromSource::new(self.source()?)),
        })
    }
}

/// Reads a machine.
pub struct Sampler {
    /// What there is to watch.
    pub layout: Layout,
    /// A recorded host, or one that texts tell of: it has one moment only.
    pub is_still: bool,
    /// Is it looked for who holds a latency limit?
    pub has_holders: bool,
    /// Written along, with `--record`.
    pub recorder: Option<Recorder>,
    /// What was opened, to be opened anew.
    tree: Option<PathBuf>,
    reader: Box<dyn Reader>,
    source: Box<dyn Source>,
    /// Kept open beside those of the layout.
    others: Files,
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
        Sampler::open_with(place, sources, |_, _| Files::default())
    }

    /// The same with other files of it, which are kept open too and read with [`Sampler::others`].
    pub fn open_with(
        place: WatchedMachine<'_>,
        sources: Sources,
        others: impl FnOnce(&dyn Source, &Layout) -> Files,
    ) -> Result<Sampler, Refusal> {
        let source = place.source()?;
        let layout = discover(&*source, sources);
        let others = others(&*source, &layout);
        let reader = place.reader(layout.files.len() + others.len())?;
        Ok(Sampler {
            layout,
            is_still: matches!(place, WatchedMachine::Recorded(_) | WatchedMachine::Told(_)),
            has_holders: true,
            recorder: None,
            tree: match place {
                WatchedMachine::Here | WatchedMachine::Told(_) => None,
                WatchedMachine::Tree(place) | WatchedMachine::Recorded(place) => Some(place.into()),
            },
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

    /// Looks again at what there is to watch: states of another driver, CPUs, meters and sensors that came or went. True where the layout is another one now; the
    /// next moment is its first. What is recorded has one layout, so while it is, nothing is looked at.
    pub fn look_again(&mut self, others: impl FnOnce(&dyn Source, &Layout) -> Files) -> bool {
        if self.is_still || self.recorder.is_some() {
            return false;
        }
        let mut layout = discover(&*self.source, self.layout.sources);
        keep_places(&mut layout, &self.layout);
        // Words that no file depends on.
        self.layout.hostname.clone_from(&layout.hostname);
        self.layout.idle_governor.clone_from(&layout.idle_governor);
        let others = others(&*self.source, &layout);
        let is_other = layout != self.layout;
        if !is_other && others == self.others {
            return false;
        }
        let place = self.tree.as_deref().map_or(WatchedMachine::Here, WatchedMachine::Tree);
        // A tree that is gone has nothing to be read; the files that are open may still say something.
        let Ok(reader) = place.reader(layout.files.len() + others.len()) else { return false };
        (self.layout, self.others, self.reader) = (layout, others, reader);
        if is_other {
            (self.then, self.is_read) = (None, false);
        }
        is_other
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

    /// Reads the other files in this part of their list, one after the other; told with their place in the list.
    pub fn others(&mut self, part: impl RangeBounds<usize>, mut see: impl FnMut(usize, Read<&[u8]>)) {
        let n_before = self.layout.files.len();
        for (i, file) in self.others.iter().enumerate().filter(|(i, _)| part.contains(i)) {
            see(i, self.reader.read(n_before + i, file.path));
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

/// Where a CPU sits is not told while it is offline, and it does not move.
fn keep_places(layout: &mut Layout, known: &Layout) {
    for cpu in &mut layout.cpus {
        let Ok(at) = known.cpus.binary_search_by_key(&cpu.cpu, |known| known.cpu) else { continue };
        let known = &known.cpus[at];
        (cpu.package, cpu.node, cpu.core) =
            (cpu.package.or(known.package), cpu.node.or(known.node), cpu.core.or(known.core));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: &str = "sys/devices/system/cpu";

    fn put(root: &Path, path: &str, text: &str) {
        let file = root.join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, format!("{text}\n")).unwrap();
    }

    fn usages(sampler: &mut Sampler) -> Vec<Option<u64>> {
        sampler.read();
        sampler.latest().cpus.iter().flat_map(|cpu| cpu.states.iter().map(|state| state.n_usage.get())).collect()
    }

    #[test]
    fn what_comes_is_found_and_where_cpus_sit_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| put(dir.path(), path, text);
        put(&format!("{CPU}/present"), "0");
        put(&format!("{CPU}/online"), "0");
        put("sys/devices/system/node/node0/cpulist", "0");
        put("proc/stat", "cpu  1 0 0 900\ncpu0 1 0 0 900");
        let mut sampler = Sampler::open(WatchedMachine::Tree(dir.path()), Sources::Quiet).unwrap();
        let none = |_: &dyn Source, _: &Layout| Files::default();
        assert_eq!(usages(&mut sampler), []);
        assert!(!sampler.look_again(none), "nothing came");
        put(&format!("{CPU}/cpuidle/current_driver"), "intel_idle");
        for (state, name, n) in [(0, "POLL", "7"), (1, "C6", "8")] {
            put(&format!("{CPU}/cpu0/cpuidle/state{state}/name"), name);
            put(&format!("{CPU}/cpu0/cpuidle/state{state}/usage"), n);
        }
        put("sys/devices/system/node/node0/cpulist", "");
        assert!(sampler.look_again(none));
        assert!(sampler.rates().is_none(), "two layouts have no interval");
        assert_eq!(usages(&mut sampler), [Some(7), Some(8)]);
        assert!(sampler.take().is_some());
        assert_eq!((sampler.layout.idle_driver.as_deref(), sampler.layout.cpus[0].node), (Some("intel_idle"), Some(0)));
        assert!(!sampler.look_again(none));
    }
}
