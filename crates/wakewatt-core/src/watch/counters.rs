//! The raw counters of one moment.
//!
//! Read through a [`Reader`], which keeps files open where it can. Kernel facts used here: the idle counters of a state
//! change only when that state is left, all of them together, and `usage` counts the leaving; so where `usage` stands
//! still since the last reading, `time`, `above` and `below` do too and need not be read. `rejected` changes without
//! `usage` and is always read. A sleeping CPU then costs two reads per state. `/proc/stat` counts in ticks of
//! 10 ms but adds a running idle period of any CPU up to now.

use super::layout::{Layout, PackageInfo, RemoteReads, Slot};
use super::package_residency::TSC;
use super::reading::{Reading, Why};
use crate::cpuset::CpuSet;
use crate::facts::{load, pm_qos};
use crate::source::{Read, Source};
use crate::units::{Cpu, LatencyLimit};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Deref;

/// How a file's bytes are had.
pub trait Reader {
    /// The bytes of a file, whole; the slot is the same every time.
    fn read(&mut self, slot: Slot, path: &str) -> Read<&[u8]>;
    /// A register of a CPU, which asks that CPU.
    fn msr(&mut self, cpu: Cpu, address: u32) -> Read<u64>;
    /// Before a batch of files that ask `cpu`: goes there if that is cheaper. Says how many interrupts of other CPUs the
    /// batch costs; a file that may not be opened costs none. `None` ends the batch.
    fn visit(&mut self, cpu: Option<Cpu>, files: &[(Slot, &str)]) -> u64 {
        cpu.map_or(0, |_| files.len() as u64)
    }
    /// What to know about how it reads.
    fn note(&self) -> Option<String> {
        None
    }
}

/// A [`Source`] as a reader: one open, read and close per file.
pub struct FromSource<S> {
    src: S,
    bytes: Vec<u8>,
}

impl<S: Deref<Target: Source>> FromSource<S> {
    /// Over a source.
    pub fn new(src: S) -> FromSource<S> {
        FromSource { src, bytes: Vec::new() }
    }
}

impl<S: Deref<Target: Source>> Reader for FromSource<S> {
    fn read(&mut self, _: Slot, path: &str) -> Read<&[u8]> {
        self.bytes = self.src.read(path)?;
        Ok(&self.bytes)
    }

    fn msr(&mut self, cpu: Cpu, address: u32) -> Read<u64> {
        self.src.msr(cpu, address)
    }

    fn visit(&mut self, cpu: Option<Cpu>, files: &[(Slot, &str)]) -> u64 {
        // A recording has no CPUs to interrupt.
        if self.src.is_live() && cpu.is_some() { files.len() as u64 } else { 0 }
    }
}

/// The clocks of a moment; core has none of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clocks {
    /// CLOCK_MONOTONIC: stands still in suspend.
    pub at_ns: u64,
    /// CLOCK_BOOTTIME: does not.
    pub boot_at_ns: u64,
    /// CLOCK_REALTIME, for people.
    pub wall_at_ns: u64,
    /// CPU time this process has used.
    pub own_cpu_ns: u64,
    /// Times this process went to sleep and was woken.
    pub n_own_wakeups: u64,
}

/// One idle state of one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "[Reading<u64>; 5]", from = "[Reading<u64>; 5]")]
pub struct StateCounters {
    /// Times left.
    pub n_usage: Reading<u64>,
    /// Time in it.
    pub time_ns: Reading<u64>,
    /// Woke before its target residency.
    pub n_above: Reading<u64>,
    /// Slept long enough for a deeper one.
    pub n_below: Reading<u64>,
    /// Refused by the driver.
    pub n_rejected: Reading<u64>,
}

impl From<StateCounters> for [Reading<u64>; 5] {
    fn from(s: StateCounters) -> Self {
        [s.n_usage, s.time_ns, s.n_above, s.n_below, s.n_rejected]
    }
}

impl From<[Reading<u64>; 5]> for StateCounters {
    fn from([n_usage, time_ns, n_above, n_below, n_rejected]: [Reading<u64>; 5]) -> Self {
        StateCounters { n_usage, time_ns, n_above, n_below, n_rejected }
    }
}

/// One CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuCounters {
    /// Running?
    pub is_online: bool,
    /// Neither idle nor stolen.
    pub busy_ns: Reading<u64>,
    /// Idle, as the tick counts it.
    pub idle_ns: Reading<u64>,
    /// Taken by the hypervisor.
    pub steal_ns: Reading<u64>,
    /// `scaling_cur_freq`; stale on an idle CPU.
    pub freq_khz: Reading<u64>,
    /// Its own latency limit.
    pub limit: Reading<LatencyLimit>,
    /// Times its core was throttled.
    pub n_throttles: Reading<u64>,
    /// States, in the order of [`CpuInfo::states`](super::layout::CpuInfo::states).
    pub states: Vec<StateCounters>,
}

/// Everything at one moment. Lists are parallel to those of the [`Layout`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    /// When the reading began.
    pub clocks: Clocks,
    /// How long it took: the numbers are of moments at most this far apart.
    pub took_ns: u64,
    /// How many moments came before.
    pub n_before: u64,
    /// Interrupts of other CPUs that this reading caused.
    pub n_remote_interrupts: u64,
    /// The effective global latency limit.
    pub global_limit: Reading<LatencyLimit>,
    /// Interrupts of the machine since boot.
    pub n_interrupts: Reading<u64>,
    /// Context switches of the machine since boot.
    pub n_context_switches: Reading<u64>,
    /// Per CPU.
    pub cpus: Vec<CpuCounters>,
    /// Energy per zone.
    pub energies_uj: Vec<Reading<u64>>,
    /// Sensors in their own units.
    pub sensors: Vec<Reading<i64>>,
    /// Throttling per package.
    pub n_package_throttles: Vec<Reading<u64>>,
    /// Uncore frequency per package.
    pub uncore_khz: Vec<Reading<u64>>,
    /// Per package: ticks in each of its states, and behind them the TSC at that moment.
    #[serde(default)]
    pub package_ticks: Vec<Vec<Reading<u64>>>,
}

impl Counters {
    /// Reads them all. `previous` saves reads of what cannot have changed.
    pub fn read(layout: &Layout, reader: &mut dyn Reader, clocks: Clocks, previous: Option<&Counters>) -> Counters {
        let mut at = Gathering { layout, reader };
        let mut now = Counters { clocks, n_before: previous.map_or(0, |p| p.n_before + 1), ..Counters::default() };
        let online = at.text(layout.online, |t| CpuSet::parse(t).ok());
        let (stat, interrupts) = at.stat();
        now.n_interrupts = interrupts;
        let (total, why) = match &stat {
            Ok(stat) => (Some(stat), Why::Offline),
            Err(why) => (None, *why),
        };
        now.n_context_switches =
            total.map_or(Reading::Missing(why), |s| s.n_context_switches.map_or(Reading::default(), Reading::Known));
        let times: BTreeMap<Cpu, &load::CpuTime> =
            total.into_iter().flat_map(|s| &s.cpus).filter_map(|t| Some((t.cpu?, t))).collect();
        now.global_limit = at.global_limit();
        for (i, info) in layout.cpus.iter().enumerate() {
            let before = previous.and_then(|p| p.cpus.get(i));
            let is_online = online.as_ref().map_or_else(|_| times.contains_key(&info.cpu), |o| o.contains(info.cpu));
            let mut cpu = CpuCounters { is_online, ..CpuCounters::default() };
            if is_online {
                let time = times.get(&info.cpu);
                let part = |f: fn(&load::CpuTime) -> u64| time.map_or(Reading::Missing(why), |t| Reading::Known(f(t)));
                cpu.busy_ns = part(load::CpuTime::busy_ns);
                cpu.idle_ns = part(|t| t.idle_ns.saturating_add(t.iowait_ns));
                cpu.steal_ns = part(|t| t.steal_ns);
                cpu.freq_khz = at.optional(info.freq, info.no_freq);
                let limit = |t: &str| pm_qos::parse_cpu_limit(t).ok();
                cpu.limit = info.limit.map_or(Reading::default(), |slot| at.reading(slot, limit));
                cpu.n_throttles = at.optional(info.throttles, None);
            } else {
                let gone = Reading::Missing(Why::Offline);
                (cpu.busy_ns, cpu.idle_ns, cpu.steal_ns, cpu.freq_khz, cpu.n_throttles) =
                    (gone, gone, gone, gone, gone);
                cpu.limit = Reading::Missing(Why::Offline);
            }
            for (k, slots) in info.state_slots.iter().enumerate() {
                let then = before.filter(|b| b.is_online).and_then(|b| b.states.get(k)).copied();
                cpu.states.push(if is_online {
                    at.state(slots, then)
                } else {
                    [Reading::Missing(Why::Offline); 5].into()
                });
            }
            now.cpus.push(cpu);
        }
        now.n_package_throttles = layout.packages.iter().map(|p| at.optional(p.throttles, None)).collect();
        at.read_remote(&mut now);
        now
    }
}

/// A reader with a layout.
struct Gathering<'a> {
    layout: &'a Layout,
    reader: &'a mut dyn Reader,
}

impl Gathering<'_> {
    fn text<T>(&mut self, slot: Slot, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, Why> {
        let Some(file) = self.layout.files.get(slot) else { return Err(Why::Absent) };
        let bytes = self.reader.read(slot, file.path).map_err(|e| Why::from(&e))?;
        std::str::from_utf8(bytes).ok().and_then(|t| parse(t.trim_end())).ok_or(Why::Malformed)
    }

    fn reading<T>(&mut self, slot: Slot, parse: impl FnOnce(&str) -> Option<T>) -> Reading<T> {
        self.text(slot, parse).map_or_else(Reading::Missing, Reading::Known)
    }

    fn number(&mut self, slot: Slot) -> Reading<u64> {
        self.reading(slot, parse_number)
    }

    fn optional(&mut self, slot: Option<Slot>, why: Option<Why>) -> Reading<u64> {
        slot.map_or(Reading::Missing(why.unwrap_or(Why::Absent)), |slot| self.number(slot))
    }

    fn register(&mut self, cpu: Cpu, address: u32) -> Reading<u64> {
        self.reader.msr(cpu, address).map_or_else(|error| Reading::Missing(Why::from(&error)), Reading::Known)
    }

    fn stat(&mut self) -> (Result<load::Stat, Why>, Reading<u64>) {
        let mut interrupts = Reading::default();
        let stat = self.text(self.layout.stat, |text| {
            let line = text.lines().find_map(|l| l.strip_prefix("intr "));
            let n = line.and_then(|l| l.split(' ').next()).and_then(parse_number);
            interrupts = n.map_or(Reading::default(), Reading::Known);
            load::parse_stat(text).ok()
        });
        if let Err(why) = &stat {
            interrupts = Reading::Missing(*why);
        }
        (stat, interrupts)
    }

    fn global_limit(&mut self) -> Reading<LatencyLimit> {
        let slot = self.layout.global_limit;
        let Some(file) = self.layout.files.get(slot) else { return Reading::default() };
        match self.reader.read(slot, file.path) {
            Ok(bytes) => pm_qos::parse_global(bytes).map_or(Reading::Missing(Why::Malformed), Reading::Known),
            Err(error) => Reading::Missing(Why::from(&error)),
        }
    }

    fn state(&mut self, slots: &super::layout::StateSlots, then: Option<StateCounters>) -> StateCounters {
        let n_usage = self.number(slots.usage);
        let n_rejected = self.number(slots.rejected);
        if let Some(then) = then {
            let is_known = n_usage.get().is_some() && then.n_usage == n_usage && then.time_ns.get().is_some();
            if is_known {
                return StateCounters { n_rejected, ..then };
            }
        }
        let us = |t: &str| parse_number(t).and_then(|us| us.checked_mul(1000));
        StateCounters {
            n_usage,
            time_ns: self.reading(slots.time, us),
            n_above: self.number(slots.above),
            n_below: self.number(slots.below),
            n_rejected,
        }
    }

    /// What asks a bus or a CPU: everything of one CPU together, so that going there is worth it.
    fn read_remote(&mut self, now: &mut Counters) {
        let layout = self.layout;
        now.energies_uj = layout.zones.iter().map(|z| Reading::Missing(z.not_read.unwrap_or_default())).collect();
        now.sensors = layout.sensors.iter().map(|s| Reading::Missing(s.not_read.unwrap_or_default())).collect();
        now.uncore_khz = layout.packages.iter().map(|p| Reading::Missing(p.no_uncore.unwrap_or_default())).collect();
        let n_ticks = |p: &PackageInfo| if p.states.is_empty() { 0 } else { p.states.len() + 1 };
        let unread = |p: &PackageInfo| vec![Reading::Missing(p.no_states.unwrap_or_default()); n_ticks(p)];
        now.package_ticks = layout.packages.iter().map(unread).collect();
        let mut visits: Vec<(Option<Cpu>, RemoteReads<'_>)> = vec![(None, Vec::new())];
        visits.extend(layout.remote_reads().into_iter().map(|(cpu, files)| (Some(cpu), files)));
        for (cpu, files) in visits {
            now.n_remote_interrupts += self.reader.visit(cpu, &files);
            let is_due = |slot: Option<Slot>| {
                slot.filter(|s| {
                    layout.files.get(*s).is_some_and(|f| match f.reach {
                        super::layout::Reach::Cpu(c) => Some(c) == cpu,
                        _ => cpu.is_none(),
                    })
                })
            };
            for (i, zone) in layout.zones.iter().enumerate() {
                if let Some(slot) = is_due(zone.slot) {
                    now.energies_uj[i] = self.number(slot);
                }
            }
            for (i, sensor) in layout.sensors.iter().enumerate() {
                if let Some(slot) = is_due(sensor.slot) {
                    now.sensors[i] = self.reading(slot, |t| t.parse().ok());
                }
            }
            for (i, package) in layout.packages.iter().enumerate() {
                if let Some(slot) = is_due(package.uncore) {
                    now.uncore_khz[i] = self.number(slot);
                }
                if let Some(cpu) = cpu.filter(|_| is_due(package.registers.first().copied()).is_some()) {
                    let addresses = package.states.iter().map(|state| state.register).chain([TSC]);
                    now.package_ticks[i] = addresses.map(|address| self.register(cpu, address)).collect();
                }
            }
        }
        self.reader.visit(None, &[]);
    }
}

/// Digits only; no sign, no blanks.
fn parse_number(text: &str) -> Option<u64> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Tree;
    use crate::watch::{Sources, discover::discover};
    use std::cell::RefCell;

    const CPU: &str = "/sys/devices/system/cpu";

    fn tree(usage: u64, online: &str) -> Tree {
        let state = format!("{CPU}/cpu0/cpuidle/state1");
        Tree::from_text(&format!(
            "//- {CPU}/present\n0-1\n//- {CPU}/online\n{online}\n//- /proc/stat\ncpu  1 0 0 9\ncpu0 1 0 0 9\nintr 77 1 2\nctxt 5\n
             //- {state}/name\nC1\n//- {state}/usage\n{usage}\n//- {state}/time\n{usage}\n//- {state}/above\n1\n//- {state}/below!denied\n
             //- {CPU}/cpu0/power/pm_qos_resume_latency_us\nn/a\n"
        ))
    }

    struct Counting<'a>(FromSource<&'a Tree>, RefCell<Vec<String>>);

    impl Reader for Counting<'_> {
        fn read(&mut self, slot: Slot, path: &str) -> Read<&[u8]> {
            self.1.borrow_mut().push(path.rsplit('/').next().unwrap_or_default().to_string());
            self.0.read(slot, path)
        }
        fn msr(&mut self, cpu: Cpu, address: u32) -> Read<u64> {
            self.1.borrow_mut().push(format!("{address:#x}"));
            self.0.msr(cpu, address)
        }
    }

    #[test]
    fn missing_files_are_reasons_and_offline_cpus_are_said_to_be() {
        let tree = tree(7, "0");
        let layout = discover(&tree, Sources::Quiet);
        let now = Counters::read(&layout, &mut FromSource::new(&tree), Clocks::default(), None);
        let cpu = &now.cpus[0];
        assert_eq!((cpu.busy_ns, cpu.idle_ns), (Reading::Known(10_000_000), Reading::Known(90_000_000)));
        assert_eq!(cpu.states[0].time_ns, Reading::Known(7000));
        assert_eq!(cpu.states[0].n_below, Reading::Missing(Why::Denied));
        assert_eq!(cpu.limit, Reading::Known(LatencyLimit::Poll));
        assert_eq!(now.cpus[1].busy_ns, Reading::Missing(Why::Offline));
        assert_eq!((now.n_interrupts, now.n_context_switches), (Reading::Known(77), Reading::Known(5)));
        assert_eq!(now.n_remote_interrupts, 0);
    }

    #[test]
    fn a_state_that_was_not_left_is_read_once() {
        let tree = tree(7, "0");
        let layout = discover(&tree, Sources::Quiet);
        let first = Counters::read(&layout, &mut FromSource::new(&tree), Clocks::default(), None);
        let mut reader = Counting(FromSource::new(&tree), RefCell::default());
        let second = Counters::read(&layout, &mut reader, Clocks::default(), Some(&first));
        assert_eq!(second.cpus, first.cpus);
        let asked = reader.1.borrow();
        assert!(asked.iter().any(|f| f == "usage") && !asked.iter().any(|f| f == "time"), "{asked:?}");
    }
}
