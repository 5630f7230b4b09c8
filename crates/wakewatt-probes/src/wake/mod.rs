//! The wake-up probe: loads `wake.bpf.c`, reads its counters, drains its records.
//!
//! The structures below are the C ones, byte for byte: the kernel refuses to read a map into another size. Counters only grow while the probe
//! lives, so a window is the difference of two readings. Reading them is a map lookup: no other CPU is interrupted.

mod chains;
mod choices;
mod exact;
mod pairs;

pub use pairs::{IdleRecord, RecordFlags};

use crate::histogram::RawHistogram;
use crate::load::{Global, Loaded};
use crate::{Probe, ProbeError, namespace, symbols};
use aya::maps::{Array, HashMap, PerCpuArray, PerCpuValues, RingBuf};
use std::collections::BTreeMap;
use wakewatt_core::arrange::Arrange as _;
use wakewatt_core::samples::idle_choice::IdleChoice;
use wakewatt_core::samples::wakes::{Counted, CpuCounters, GroupCounters, ProcessCounters, WakeCounters};

/// `wake.bpf.c`, compiled.
pub const PROBE: Probe =
    Probe { id: "wake", object: aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/wake.bpf.o")) };

/// Makes room for the wakings of tasks that are there.
const OLD_TASKS: &str = "on_old_task";
/// A pass over many tasks may be refused memory for some; each leaves fewer.
const PASSES: usize = 32;

/// Entries of the maps of processes and cgroups at least.
const MOST_ENTRIES: u32 = 8192;

/// Besides, for each CPU that may come: the kernel keeps so many free entries of a map for each, and before 2025 a CPU that ran out of its own
/// took the newest of what it had instead of one from the others.
const FOR_EACH_CPU: u32 = 256;

/// Histograms per idle state.
const N_COUNTED: u32 = 7;
const _: () = assert!(Counted::ALL.len() == N_COUNTED as usize);

/// Whose wake-ups are counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Everybody's.
    #[default]
    Machine,
    /// These thread groups', and with `is_following` their future children's.
    Processes {
        /// Thread groups.
        tgids: Vec<u32>,
        /// Children too.
        is_following: bool,
    },
    /// Everything in a cgroup (version 2) and below it.
    Cgroup {
        /// The kernel's id: the inode number of its folder.
        id: u64,
        /// Depth below the root, which is 0.
        level: u32,
    },
}

/// What to trace.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Whose.
    pub scope: Scope,
    /// Idle states of the CPU that has most.
    pub n_states: u32,
    /// The state that spins, if there is one.
    pub polling_state: Option<u32>,
    /// Wake-ups out of idle are also summed by cgroup.
    pub is_by_cgroup: bool,
    /// They are also summed by who woke whom.
    pub is_by_waker: bool,
    /// Wake-ups only, as somebody wants who traces for months: no processes, no lengths of stays, no timers.
    pub is_brief: bool,
    /// Programs that return at once, to measure what being attached costs.
    pub is_empty: bool,
    /// Size of the buffer for idle records, a power of two of pages; none for no recording.
    pub record_bytes: Option<u32>,
    /// Records also what the governor's own functions were told and answered.
    pub is_exact: bool,
}

/// What the ring buffer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// A stay.
    Pair(IdleRecord),
    /// A question to the governor; what came of it stands in it, so it comes before its stay.
    Choice(IdleChoice),
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawCpu {
    enter_ns: u64,
    exit_ns: u64,
    slot: u32,
    is_idle: u32,
    tick: u64,
    rq: u64,
    reference_ns: u64,
    next_event_at_ns: i64,
    sleep_until_ns: i64,
    has_pair: u32,
    n_iowait: u16,
    flags: u8,
    cause: u8,
    is_stopped: u32,
    is_first: u32,
    has_stay: u32,
    is_synced: u32,
    random: u32,
    n_refused: u32,
    was_stopped: u32,
    has_early_tick: u32,
    n_busy: u64,
    n_unclassed: u64,
    n_own: u64,
    n_lost: u64,
    n_early: u64,
    n_own_from_idle: u64,
}

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
struct RawProcessKey {
    tgid: u32,
    slot: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawProcess {
    n: u64,
    sum_ns: u64,
    comm: [u8; 16],
}

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
struct RawGroupKey {
    cgroup: u64,
    slot: u32,
    unused: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawGroup {
    n: u64,
    sum_ns: u64,
}

// SAFETY: plain integers without padding, valid for every bit pattern.
unsafe impl aya::Pod for RawCpu {}
// SAFETY: as above.
unsafe impl aya::Pod for RawGroupKey {}
// SAFETY: as above.
unsafe impl aya::Pod for RawGroup {}
// SAFETY: as above.
unsafe impl aya::Pod for RawProcessKey {}
// SAFETY: as above.
unsafe impl aya::Pod for RawProcess {}

/// Attached; dropping it detaches.
pub struct WakeProbe {
    loaded: Loaded,
    records: Option<RingBuf<aya::maps::MapData>>,
    n_slots: u32,
    gaps: Vec<String>,
    /// How the governor itself is watched; none where it is not.
    exact: Option<String>,
    /// Is room for a task's waking made before it is woken?
    is_ahead: bool,
    /// Is it added up who woke whom?
    has_chains: bool,
    /// Are only wake-ups counted?
    is_brief: bool,
    /// Until the last reading, on all CPUs.
    n_unclassed: u64,
}

impl WakeProbe {
    /// Loads and attaches.
    pub fn attach(spec: &Spec) -> Result<WakeProbe, ProbeError> {
        // Elsewhere than in the first PID namespace the iterator would see too few tasks.
        let is_old = is_before_6_4(&release());
        let is_ahead = is_old && namespace::has_kernel_process_ids();
        let (mut probe, refused) = match WakeProbe::attach_with(spec, is_ahead) {
            // What this kernel lacks for that it may not need for the rest.
            Err(why) if is_ahead => (WakeProbe::attach_with(spec, false)?, Some(why)),
            done => (done?, None),
        };
        probe.gaps.extend(room_gap(is_old, probe.is_ahead, refused.as_ref()));
        Ok(probe)
    }

    fn attach_with(spec: &Spec, is_ahead: bool) -> Result<WakeProbe, ProbeError> {
        let n_slots = spec.n_states.clamp(1, 16) + 1;
        let tick = spec.record_bytes.and_then(|_| symbols::address_of(&["tick_nohz_handler", "tick_sched_timer"]));
        let (filter, cgroup, level) = match &spec.scope {
            Scope::Machine => (0u32, 0, 0),
            Scope::Processes { .. } => (1, 0, 0),
            Scope::Cgroup { id, level } => (2, *id, *level),
        };
        let is_known = namespace::has_kernel_process_ids();
        let globals = [
            Global::U32("own_tgid", if is_known { std::process::id() } else { u32::MAX }),
            Global::U32("filter", filter),
            Global::U64("filter_cgroup", cgroup),
            Global::U32("filter_cgroup_level", level),
            Global::U8("is_recording", u8::from(spec.record_bytes.is_some())),
            Global::U8("is_empty", u8::from(spec.is_empty)),
            Global::U8("is_brief", u8::from(spec.is_brief)),
            Global::U8("is_exact", u8::from(spec.is_exact)),
            Global::U8("is_by_cgroup", u8::from(spec.is_by_cgroup)),
            Global::U8("is_by_waker", u8::from(spec.is_by_waker)),
            Global::U8("is_making_room", u8::from(!is_ahead)),
            Global::U32("n_slots", n_slots),
            Global::U32("polling_state", spec.polling_state.unwrap_or(0xffff)),
            Global::U64("tick_function", tick.unwrap_or(0)),
        ];
        let sizes = [
            ("hists", n_slots * N_COUNTED),
            ("pairs", spec.record_bytes.unwrap_or_else(page_bytes)),
            ("groups", if spec.is_by_cgroup { most_entries() } else { 64 }),
            ("processes", if spec.is_brief { 64 } else { most_entries() }),
            ("names", if spec.is_by_waker { chains::MOST_NAMES } else { 64 }),
            ("chains", if spec.is_by_waker { chains::MOST_CHAINS } else { 64 }),
        ];
        let mut loaded = Loaded::new(&PROBE, &globals, &sizes)?;
        let mut gaps = Vec::new();
        if !is_known {
            gaps.push(
                "wakewatt's own wake-ups apart from others': inside a PID namespace its process id is not the kernel's"
                    .into(),
            );
        }
        if let Scope::Processes { tgids, is_following } = &spec.scope {
            for tgid in tgids {
                follow(&mut loaded, *tgid)?;
            }
            if *is_following {
                loaded.attach("on_fork", "sched_process_fork")?;
                if let Err(why) = loaded.attach("on_free", "sched_process_free") {
                    gaps.push(format!("processes that end, whose ids may be used again: {why}"));
                }
            }
        }
        if spec.is_by_waker {
            gaps.extend(chains::attach(&mut loaded));
        }
        if is_ahead {
            // Who is born from now on, then who is there already: nobody falls between.
            loaded.attach("on_new_task", "sched_process_fork")?;
            loaded.ready(OLD_TASKS, "task")?;
            make_room(&mut loaded)?;
        }
        // Who takes a waking's time away is there before anybody writes one down.
        for (program, tracepoint) in [
            ("on_switch", "sched_switch"),
            ("on_cpu_idle", "cpu_idle"),
            ("on_wakeup_new", "sched_wakeup_new"),
            ("on_waking", "sched_waking"),
        ] {
            loaded.attach(program, tracepoint)?;
        }
        if let Err(why) = loaded.attach("on_migrate", "sched_migrate_task") {
            gaps.push(format!("tasks that wait in another CPU's queue count as woken out of idle: {why}"));
        }
        if !spec.is_brief
            && let Err(why) = loaded.attach("on_timer", "hrtimer_expire_entry")
        {
            gaps.push(format!("timer lateness: {why}"));
        }
        let (mut records, mut exact) = (None, None);
        if spec.record_bytes.is_some() {
            if tick.is_none() {
                gaps.push(
                    "next timer and sleep length: /proc/kallsyms hides the tick's timer function (kernel.kptr_restrict)"
                        .into(),
                );
            }
            for (program, tracepoint) in [("on_timer_start", "hrtimer_start"), ("on_tick_stop", "tick_stop")] {
                if let Err(why) = loaded.attach(program, tracepoint) {
                    gaps.push(format!("tick state: {why}"));
                }
            }
            if spec.is_exact {
                let (how, missing) = exact::attach(&mut loaded)?;
                exact = Some(how);
                gaps.extend(missing);
            }
            let map = loaded.ebpf.take_map("pairs").ok_or(ProbeError::NotBuilt)?;
            records = Some(RingBuf::try_from(map).map_err(|e| refused("ring buffer", &e))?);
        }
        let has_chains = spec.is_by_waker;
        let is_brief = spec.is_brief;
        Ok(WakeProbe { loaded, records, n_slots, gaps, exact, is_ahead, has_chains, is_brief, n_unclassed: 0 })
    }

    /// What could not be attached, and what is missing for it.
    pub fn gaps(&self) -> &[String] {
        &self.gaps
    }

    /// How the governor itself is watched, for a recording's header; none where it is not.
    pub fn exact(&self) -> Option<&str> {
        self.exact.as_deref()
    }

    /// Also counts this thread group from now on.
    pub fn follow(&mut self, tgid: u32) -> Result<(), ProbeError> {
        follow(&mut self.loaded, tgid)
    }

    /// Forgets a thread group.
    pub fn unfollow(&mut self, tgid: u32) -> Result<(), ProbeError> {
        let map = self.loaded.ebpf.map_mut("followed").ok_or(ProbeError::NotBuilt)?;
        let mut map: HashMap<_, u32, u8> = HashMap::try_from(map).map_err(|e| refused("map followed", &e))?;
        map.remove(&tgid).map_err(|e| refused("map followed", &e))
    }

    /// Reads every counter. The time is taken by the caller, who owns the clock. Where wake-ups could not be classed,
    /// because there was no memory for a task's, another try is made to find some.
    pub fn read(&mut self, at_ns: u64) -> Result<WakeCounters, ProbeError> {
        let counters = self.counters(at_ns)?;
        let n_unclassed = counters.cpus.iter().map(|cpu| cpu.n_unclassed).sum();
        if self.is_ahead && n_unclassed > self.n_unclassed {
            self.n_unclassed = n_unclassed;
            // Who has given up what this takes (the agent) reads on: what has no room shows as not classed.
            let _ = make_room(&mut self.loaded);
        }
        Ok(counters)
    }

    fn counters(&self, at_ns: u64) -> Result<WakeCounters, ProbeError> {
        // What is summed by somebody before the sums over everybody, so that these are never less.
        let processes = if self.is_brief { Vec::new() } else { self.processes()? };
        let groups = self.groups()?;
        let chains = if self.has_chains { chains::read(&self.loaded)? } else { Vec::new() };
        let map = |name: &str| self.loaded.ebpf.map(name).ok_or(ProbeError::NotBuilt);
        let state = cpus(&self.loaded)?;
        let mut cpus: Vec<CpuCounters> = Vec::with_capacity(state.len());
        for (cpu, raw) in state.iter().enumerate() {
            cpus.push(CpuCounters {
                cpu: u32::try_from(cpu).unwrap_or(u32::MAX),
                cells: BTreeMap::new(),
                n_unclassed: raw.n_unclassed,
                n_lost: raw.n_lost,
                n_early: raw.n_early,
                n_own: raw.n_own,
                n_busy: raw.n_busy,
                n_own_from_idle: raw.n_own_from_idle,
            });
        }
        let hists: PerCpuArray<_, RawHistogram> =
            PerCpuArray::try_from(map("hists")?).map_err(|e| refused("map hists", &e))?;
        for slot in 0..self.n_slots {
            let is_counted = |kind: &Counted| !self.is_brief || matches!(kind, Counted::Wake(_));
            for (class, counted) in (0u32..).zip(Counted::ALL).filter(|(_, kind)| is_counted(kind)) {
                let key = slot * N_COUNTED + class;
                let values = hists.get(&key, 0).map_err(|e| refused("map hists", &e))?;
                for (cpu, raw) in cpus.iter_mut().zip(values.iter()).filter(|(_, raw)| raw.n > 0) {
                    cpu.cells.insert((slot.checked_sub(1), counted), raw.histogram());
                }
            }
        }
        Ok(WakeCounters { at_ns, cpus, processes, groups, chains })
    }

    fn groups(&self) -> Result<Vec<GroupCounters>, ProbeError> {
        let map = self.loaded.ebpf.map("groups").ok_or(ProbeError::NotBuilt)?;
        let map: HashMap<_, RawGroupKey, RawGroup> = HashMap::try_from(map).map_err(|e| refused("map groups", &e))?;
        // An entry evicted while we walk ends or restarts the walk: what was seen is kept.
        let seen = map.iter().take(2 * most_entries() as usize).map_while(Result::ok);
        let mut all: Vec<GroupCounters> = seen
            .map(|(key, value)| GroupCounters {
                cgroup: key.cgroup,
                state: key.slot.checked_sub(1),
                n: value.n,
                sum_ns: value.sum_ns,
            })
            .collect();
        all.arrange_by_key(|g| (g.cgroup, g.state));
        all.dedup_by_key(|g| (g.cgroup, g.state));
        Ok(all)
    }

    fn processes(&self) -> Result<Vec<ProcessCounters>, ProbeError> {
        let map = self.loaded.ebpf.map("processes").ok_or(ProbeError::NotBuilt)?;
        let map: HashMap<_, RawProcessKey, RawProcess> =
            HashMap::try_from(map).map_err(|e| refused("map processes", &e))?;
        let mut all = Vec::new();
        // An entry evicted while we walk ends or restarts the walk: what was seen is kept.
        for entry in map.iter().take(2 * most_entries() as usize) {
            let Ok((key, value)) = entry else { break };
            let end = value.comm.iter().position(|b| *b == 0).unwrap_or(value.comm.len());
            all.push(ProcessCounters {
                tgid: key.tgid,
                name: String::from_utf8_lossy(&value.comm[..end]).into_owned(),
                state: key.slot.checked_sub(1),
                n: value.n,
                sum_ns: value.sum_ns,
            });
        }
        all.arrange_by_key(|p| (p.tgid, p.state));
        all.dedup_by_key(|p| (p.tgid, p.state));
        Ok(all)
    }

    /// Opens or closes the recording window.
    pub fn record(&mut self, is_open: bool) -> Result<(), ProbeError> {
        switch(&mut self.loaded, Switch::WindowOpen, is_open)
    }

    /// Takes what the ring buffer holds, oldest first per CPU, and hands it on. Waits for nothing.
    pub fn drain(&mut self, mut take: impl FnMut(Record)) -> usize {
        let Some(records) = &mut self.records else { return 0 };
        let mut n = 0;
        while let Some(item) = records.next() {
            let record = match item.len() {
                choices::CHOICE_BYTES => choices::parse(&item).map(Record::Choice),
                _ => IdleRecord::parse(&item).map(Record::Pair),
            };
            if let Some(record) = record {
                take(record);
                n += 1;
            }
        }
        n
    }

    /// Program runs that were skipped because one was already running on that CPU; none where the kernel does not say.
    pub fn n_recursion(&self) -> Option<u64> {
        self.loaded.statistics().map(|s| s.n_recursion)
    }

    /// Time the programs took, if kernel.bpf_stats_enabled is on.
    pub fn run_time_ns(&self) -> Option<u64> {
        self.loaded.statistics().map(|s| s.run_time_ns).filter(|ns| *ns > 0)
    }
}

fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

fn most_entries() -> u32 {
    let n_cpus = aya::util::nr_cpus().ok().and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
    MOST_ENTRIES.saturating_add(FOR_EACH_CPU.saturating_mul(n_cpus))
}

/// What is to be known where room is made under the scheduler's locks though the kernel is too old for it.
fn room_gap(is_old: bool, is_ahead: bool, refused: Option<&ProbeError>) -> Option<String> {
    let why = match refused {
        _ if !is_old || is_ahead => return None,
        Some(why) => why.to_string(),
        None => "inside a PID namespace it sees too few of them".into(),
    };
    Some(format!(
        "wake-ups without taking memory under the scheduler's locks, which before Linux 6.4 can make the kernel wait for its \
         own lock: the iterator over tasks cannot be used: {why}"
    ))
}

/// Up to 6.3 making a task's storage is a kmalloc, which must not happen under the scheduler's locks.
fn is_before_6_4(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) < (6, 4)
}

fn cpus(loaded: &Loaded) -> Result<PerCpuValues<RawCpu>, ProbeError> {
    let map = loaded.ebpf.map("cpus").ok_or(ProbeError::NotBuilt)?;
    let map: PerCpuArray<_, RawCpu> = PerCpuArray::try_from(map).map_err(|e| refused("map cpus", &e))?;
    map.get(&0, 0).map_err(|e| refused("map cpus", &e))
}

/// Passes over all tasks until none is refused its room. What is still missing then shows as wake-ups not classed.
fn make_room(loaded: &mut Loaded) -> Result<(), ProbeError> {
    let n_refused = |loaded: &Loaded| -> Result<u64, ProbeError> {
        Ok(cpus(loaded)?.iter().map(|cpu| u64::from(cpu.n_refused)).sum())
    };
    let mut before = n_refused(loaded)?;
    for _ in 0..PASSES {
        loaded.run_over(OLD_TASKS)?;
        let after = n_refused(loaded)?;
        if after == before {
            break;
        }
        before = after;
    }
    Ok(())
}

/// The smallest ring buffer there can be: 64 KiB on some arm64 kernels.
fn page_bytes() -> u32 {
    u32::try_from(rustix::param::page_size()).unwrap_or(65_536)
}

fn follow(loaded: &mut Loaded, tgid: u32) -> Result<(), ProbeError> {
    let map = loaded.ebpf.map_mut("followed").ok_or(ProbeError::NotBuilt)?;
    let mut map: HashMap<_, u32, u8> = HashMap::try_from(map).map_err(|e| refused("map followed", &e))?;
    map.insert(tgid, 1, 0).map_err(|e| refused("map followed", &e))
}

/// What the C side is told while it runs; numbered as there.
#[derive(Clone, Copy)]
enum Switch {
    WindowOpen,
    SleepWatched,
}

fn switch(loaded: &mut Loaded, which: Switch, is_on: bool) -> Result<(), ProbeError> {
    let map = loaded.ebpf.map_mut("switches").ok_or(ProbeError::NotBuilt)?;
    let mut map: Array<_, u32> = Array::try_from(map).map_err(|e| refused("map switches", &e))?;
    map.set(which as u32, u32::from(is_on), 0).map_err(|e| refused("map switches", &e))
}

fn refused(what: &str, error: &dyn std::error::Error) -> ProbeError {
    ProbeError::Refused { what: what.into(), detail: crate::error::chain(error) }
}

impl std::fmt::Debug for WakeProbe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WakeProbe").field("loaded", &self.loaded).field("gaps", &self.gaps).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_that_allocate_under_the_schedulers_locks_are_known_by_their_release() {
        for (release, is_old) in [
            ("5.15.0-91-generic", true),
            ("6.1.0-53-amd64", true),
            ("6.3.13", true),
            ("6.4.0", false),
            ("6.18.44", false),
            ("7.0", false),
        ] {
            assert_eq!(is_before_6_4(release), is_old, "{release}");
        }
    }

    #[test]
    fn memory_taken_under_locks_of_an_old_kernel_is_said() {
        assert_eq!(room_gap(false, false, None), None);
        assert_eq!(room_gap(true, true, None), None);
        assert!(room_gap(true, false, None).is_some_and(|gap| gap.contains("PID namespace")));
        let gap = room_gap(true, false, Some(&ProbeError::NotBuilt)).unwrap();
        assert!(gap.contains("6.4") && gap.contains(&ProbeError::NotBuilt.to_string()), "{gap}");
    }
}
