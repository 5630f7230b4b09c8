//! What each CPU did, event by event: idle, woken, running again.
//!
//! The state that counts is the one a CPU was in at the moment of waking, by its last stays, because the task may run on another CPU
//! than the one it was on before. Classes are those of `trace`: woken from another CPU, by an interrupt inside the stay, by one
//! after its exit (states that are entered with interrupts off), or while the CPU was busy.

use super::cells::{Cells, Key};
use super::cpu::{Cpu, Stay, Wake};
use super::line::{Event, Names, What};
use super::recording::Recorded;
use crate::document::Wakeups;
use std::collections::{BTreeMap, HashMap};
use wakewatt_core::facts::Snapshot;
use wakewatt_core::samples::idle_pair::{IdlePair, WakeCause};
use wakewatt_core::samples::wakes::{Counted, CpuCounters, ProcessCounters, WakeClass, WakeCounters};

/// Wake-ups that wait for their task to run.
const MAX_PENDING: usize = 1 << 16;
/// Wake-ups that wait for one CPU's exit.
const MAX_WAITING: usize = 1 << 12;
/// Tasks that are told apart among those that pay.
const MAX_TASKS: usize = 1 << 14;

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Machine {
    cpus: BTreeMap<u32, Cpu>,
    pending: HashMap<i32, Wake>,
    cells: Cells,
    tasks: HashMap<(i32, Option<u8>), (u32, u64, u64)>,
    recorded: Recorded,
    start_at_ns: Option<u64>,
    end_at_ns: u64,
    n_wakes: u64,
    n_switches: u64,
    n_stays: u64,
    n_timers: u64,
    n_dropped: u64,
    n_without_exit: u64,
    has_waking: bool,
    has_table: bool,
}

impl Machine {
    pub(super) fn new(facts: &Snapshot) -> Machine {
        Machine { has_table: !facts.idle.states.is_empty(), ..Machine::default() }
    }

    pub(super) fn event(&mut self, event: &Event) {
        let at_ns = event.at_ns;
        self.start_at_ns.get_or_insert(at_ns);
        self.end_at_ns = self.end_at_ns.max(at_ns);
        match event.what {
            What::Idle { cpu, state: Some(state) } => self.enter(cpu, state, at_ns),
            What::Idle { cpu, state: None } => self.exit(cpu, at_ns),
            What::Waking { pid, name, target, is_placed } => self.waking(event, pid, name, target, is_placed),
            What::Switch { pid, name } => self.switch(event, pid, name),
            What::Timer { is_tick } => {
                self.n_timers += 1;
                let cause = if is_tick { WakeCause::Tick } else { WakeCause::Timer };
                self.cpus.entry(event.cpu).or_default().because(cause);
            }
            What::Interrupt => self.cpus.entry(event.cpu).or_default().because(WakeCause::Interrupt),
            What::Reschedule => self.cpus.entry(event.cpu).or_default().because(WakeCause::RemoteWake),
            What::Other => {}
        }
    }

    fn close_pair(&mut self, cpu: u32) {
        let has_timers = self.n_timers > 0;
        let Some(this) = self.cpus.get_mut(&cpu) else { return };
        let Some(pair) = this.pair.take() else { return };
        let pair = IdlePair { ended_by: this.cause, is_tick_fired: has_timers.then_some(this.is_tick_fired), ..pair };
        (this.cause, this.is_tick_fired) = (WakeCause::Unknown, false);
        self.recorded.push(pair);
    }

    fn enter(&mut self, cpu: u32, state: u8, at_ns: u64) {
        self.close_pair(cpu);
        let this = self.cpus.entry(cpu).or_default();
        if this.idle.is_some() {
            // Its exit was lost: how long it was nobody knows.
            self.n_without_exit += 1;
        }
        this.idle = Some((state, at_ns));
        (this.cause, this.is_tick_fired) = (WakeCause::Unknown, false);
    }

    fn exit(&mut self, cpu: u32, at_ns: u64) {
        let this = self.cpus.entry(cpu).or_default();
        if let Some((state, enter_at_ns)) = this.idle.take().filter(|(_, enter)| *enter <= at_ns) {
            this.past.rotate_right(1);
            this.past[0] = Some(Stay { state, enter_at_ns, exit_at_ns: at_ns });
            let duration_ns = at_ns - enter_at_ns;
            this.lengths.entry(state).or_default().add(duration_ns);
            let is_first = this.has_run || self.n_switches == 0;
            this.has_run = false;
            this.pair = Some(IdlePair { cpu, enter_at_ns, duration_ns, state, is_first, ..IdlePair::default() });
            self.n_stays += 1;
        }
        for wake in std::mem::take(&mut this.waiting) {
            let key = Key { is_running: false, state: wake.state, class: wake.class, cpu, task: wake.task };
            self.cells.add(key, at_ns.saturating_sub(wake.at_ns));
        }
    }

    fn waking(&mut self, event: &Event, pid: i32, task: u32, target: u32, is_placed: bool) {
        self.has_waking |= !is_placed;
        if is_placed && self.has_waking {
            return;
        }
        self.n_wakes += 1;
        let has_switches = self.n_switches > 0;
        let this = self.cpus.entry(target).or_default();
        let is_remote = event.cpu != target;
        let (state, class) = this.class_at(event.at_ns, is_remote, has_switches);
        let wake = Wake { at_ns: event.at_ns, waker: event.cpu, task, state, class };
        if is_remote && state.is_some() {
            this.because(WakeCause::RemoteWake);
        }
        if this.waiting.len() < MAX_WAITING {
            this.waiting.push(wake);
        } else {
            self.n_dropped += 1;
        }
        if self.pending.len() < MAX_PENDING || self.pending.contains_key(&pid) {
            self.pending.insert(pid, wake);
        } else {
            self.n_dropped += 1;
        }
    }

    fn switch(&mut self, event: &Event, pid: i32, name: u32) {
        self.n_switches += 1;
        if pid == 0 {
            return;
        }
        self.close_pair(event.cpu);
        let this = self.cpus.entry(event.cpu).or_default();
        if let Some(wake) = self.pending.remove(&pid) {
            let (state, class) = this.class_at(wake.at_ns, wake.waker != event.cpu, true);
            let ns = event.at_ns.saturating_sub(wake.at_ns);
            self.cells.add(Key { is_running: true, state, class, cpu: event.cpu, task: name }, ns);
            if self.tasks.len() < MAX_TASKS || self.tasks.contains_key(&(pid, state)) {
                let sum = self.tasks.entry((pid, state)).or_insert((name, 0, 0));
                (sum.1, sum.2) = (sum.1 + 1, sum.2.saturating_add(ns));
            }
        }
        this.last_task_at_ns = event.at_ns;
        this.has_run = true;
    }

    pub(super) fn finish(&mut self) {
        let cpus: Vec<u32> = self.cpus.keys().copied().collect();
        cpus.into_iter().for_each(|cpu| self.close_pair(cpu));
    }

    /// Do the events say when a task runs?
    pub(super) fn has_switches(&self) -> bool {
        self.n_switches > 0
    }

    /// First and last event.
    pub(super) fn window(&self) -> Option<(u64, u64)> {
        Some((self.start_at_ns?, self.end_at_ns))
    }

    pub(super) fn wakeups(&self, names: &Names, name_of: &dyn Fn(u32, u32) -> String) -> Vec<Wakeups> {
        self.cells.rows(names, name_of)
    }

    pub(super) fn recorded(self) -> Recorded {
        self.recorded
    }

    /// As the probe would have counted.
    pub(super) fn counters(&self, at_ns: u64, names: &Names) -> WakeCounters {
        let mut cpus: BTreeMap<u32, CpuCounters> = BTreeMap::new();
        let of = |cpus: &mut BTreeMap<u32, CpuCounters>, cpu: u32| {
            cpus.entry(cpu).or_insert_with(|| CpuCounters { cpu, ..CpuCounters::default() });
        };
        for ((cpu, state, class), hist) in self.cells.histograms(self.n_switches > 0) {
            // Onto a busy CPU, what follows is no exit that it waited for.
            if class == WakeClass::Busy && self.n_switches == 0 {
                continue;
            }
            of(&mut cpus, cpu);
            let Some(counters) = cpus.get_mut(&cpu) else { continue };
            if class == WakeClass::Busy {
                counters.n_busy += hist.n;
            }
            counters.cells.insert((state.map(u32::from), Counted::Wake(class)), hist);
        }
        for (cpu, this) in &self.cpus {
            of(&mut cpus, *cpu);
            let Some(counters) = cpus.get_mut(cpu) else { continue };
            for (state, hist) in &this.lengths {
                counters.cells.insert((Some(u32::from(*state)), Counted::IdleLength), hist.clone());
            }
        }
        let mut tasks: Vec<ProcessCounters> = self
            .tasks
            .iter()
            .filter(|((_, state), _)| state.is_some())
            .map(|((pid, state), (name, n, sum_ns))| ProcessCounters {
                tgid: pid.unsigned_abs(),
                name: names.name(*name).into(),
                state: state.map(u32::from),
                n: *n,
                sum_ns: *sum_ns,
            })
            .collect();
        tasks.sort_by_key(|task| (std::cmp::Reverse(task.sum_ns), task.tgid, task.state));
        tasks.truncate(50);
        WakeCounters { at_ns, cpus: cpus.into_values().collect(), processes: tasks, ..WakeCounters::default() }
    }

    pub(super) fn remarks(&self) -> Vec<String> {
        let mut all = Vec::new();
        if self.n_wakes > 0 && self.n_switches == 0 {
            all.push("no sched_switch events: latencies end where the CPU left idle, not where the task ran".into());
        }
        if self.n_wakes > 0 && !self.has_waking {
            all.push("no sched_waking events: latencies begin at sched_wakeup, which comes a little later".into());
        }
        if self.n_wakes > 0 && self.n_stays == 0 {
            all.push("no power:cpu_idle events of the CPUs that were woken: idle states are not known; import the text of the woken CPU as well".into());
        }
        if self.n_stays > 0 && self.n_wakes == 0 {
            all.push("no sched_waking events: idle intervals only; import the text of the waking CPU as well".into());
        }
        if self.n_stays > 0 && !self.has_table {
            all.push("no text has the idle table: states are numbers; import cpupower idle-info as well".into());
        }
        if self.n_without_exit > 0 {
            all.push(format!(
                "{} stays have an entry and no exit, and are left out: events were lost",
                self.n_without_exit
            ));
        }
        if self.n_dropped > 0 {
            all.push(format!("{} wake-ups were not followed: too many at once", self.n_dropped));
        }
        all
    }
}
