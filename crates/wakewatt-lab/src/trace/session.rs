//! The probe, what was read when it started, and the waiting window by window.

use super::chains::Wakers;
use super::hardware;
use super::names::{Names, settings};
use super::payers::Groups;
use super::record::{self, Recorder};
use super::watched::Watched;
use super::{RecordPlan, header, presence, refused, remarks};
use crate::bench::IdleBaseline;
use crate::context::Lab;
use crate::refusal::Refusal;
use crate::running::Running;
use std::ffi::OsString;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::samples::traced::{StateRow, TraceWindow, Traced, rows};
use wakewatt_core::samples::traced_whose::TracedWhose;
use wakewatt_core::samples::wakes::{CpuCounters, WakeCounters};
use wakewatt_core::samples::{IdleDelta, Window};
use wakewatt_core::units::{LatencyLimit, show_ns};
use wakewatt_host::clock::boottime_ns;
use wakewatt_probes::wake::{Scope, Spec, WakeProbe};

const MOST_WINDOWS: usize = 2_000;

/// What a session shall do beyond counting.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TraceWants {
    /// Idle intervals go to the ring buffer.
    pub(super) is_recording: bool,
    /// And what the governor's own functions were told.
    pub(super) is_exact: bool,
    /// Programs that return at once.
    pub(super) is_empty: bool,
    /// Residency registers are read.
    pub(super) is_hardware: bool,
    /// Who woke whom.
    pub(super) is_by_waker: bool,
}

/// The probe and what was read when it started.
pub(super) struct TraceSession<'a> {
    lab: Lab<'a>,
    window_ns: u64,
    probe: WakeProbe,
    names: Names,
    pub(super) start_at_ns: u64,
    start_cpu_ns: u64,
    start_boot_ns: u64,
    start: WakeCounters,
    entered: IdleBaseline,
    /// The same counters' growth, read when the last window closed.
    entered_in_all: Option<Vec<IdleDelta>>,
    hardware: hardware::Baseline,
    windows: Vec<TraceWindow>,
    /// There were more than are kept.
    has_more_windows: bool,
    last: WakeCounters,
    facts: Snapshot,
    groups: Option<Groups>,
    wakers: Option<Wakers>,
    pub(super) recorder: Option<Recorder<'a>>,
    online: Vec<u32>,
    remarks: Vec<String>,
    ended_early: Option<String>,
}

impl<'a> TraceSession<'a> {
    /// Attaches and takes the first reading.
    pub(super) fn start(
        lab: Lab<'a>,
        scope: Scope,
        wanted: TraceWants,
        window_ns: u64,
        groups: Option<Groups>,
    ) -> Result<TraceSession<'a>, Refusal> {
        let src = lab.src;
        let mut facts = settings(src);
        if facts.qos.global.get().is_some_and(|limit| *limit != LatencyLimit::None) {
            // Who holds it is worth walking /proc for; otherwise not.
            facts.holders = Snapshot::read(src, |topic| topic == "holders").holders;
        }
        let names = Names::of(&facts);
        let cpus: Vec<u32> = facts.cpus.online.get().map(|c| c.iter().collect()).unwrap_or_default();
        let n_cpus = cpus.iter().max().map_or(1, |last| last + 1);
        let spec = Spec {
            scope,
            n_states: names.n_states(),
            polling_state: names.polling(),
            is_by_cgroup: groups.is_some(),
            is_by_waker: wanted.is_by_waker,
            is_brief: false,
            is_empty: wanted.is_empty,
            record_bytes: wanted.is_recording.then(|| record::ring_bytes(n_cpus)),
            is_exact: wanted.is_recording && wanted.is_exact,
        };
        let wakers = wanted.is_by_waker.then(Wakers::start);
        let hardware =
            if wanted.is_hardware { hardware::Baseline::read(src, &cpus) } else { hardware::Baseline::none() };
        let mut probe = WakeProbe::attach(&spec).map_err(refused)?;
        let entered = IdleBaseline::read(src, &cpus);
        let start_at_ns = lab.clock.now_ns();
        let start = probe.read(start_at_ns).map_err(refused)?;
        let last = start.clone();
        let start_cpu_ns = lab.clock.own_cpu_ns();
        Ok(TraceSession {
            lab,
            window_ns,
            probe,
            names,
            start_at_ns,
            start_cpu_ns,
            start_boot_ns: boottime_ns(),
            start,
            entered,
            entered_in_all: None,
            hardware,
            windows: Vec::new(),
            last,
            facts,
            groups,
            wakers,
            recorder: None,
            online: cpus,
            has_more_windows: false,
            remarks: Vec::new(),
            ended_early: None,
        })
    }

    /// Starts a command and traces it and its children: not even its first wake-up is missed, because the probe follows
    /// forks of this process until it is known.
    pub(super) fn follow(&mut self, words: &[OsString]) -> Result<Running, Refusal> {
        let started = Running::start(words)?;
        self.probe.follow(started.tgid()).map_err(refused)?;
        self.probe.unfollow(std::process::id()).map_err(refused)?;
        Ok(started)
    }

    /// Starts the recording that was asked for.
    pub(super) fn record(&mut self, plan: &RecordPlan) -> Result<(), Refusal> {
        let n_cpus = n_cpus(&self.online, &self.last);
        let header = header::header(&self.facts, n_cpus, plan, self.window_ns, &self.probe);
        let mut recorder = Recorder::start(plan, header, self.lab)?;
        recorder.open(&mut self.probe, self.start_at_ns)?;
        self.recorder = Some(recorder);
        Ok(())
    }

    /// Waits window by window; the command's code when it ended.
    pub(super) fn wait(
        &mut self,
        end_at_ns: Option<u64>,
        mut command: Option<&mut Running>,
        watched: &mut Watched,
    ) -> Result<Option<u8>, Refusal> {
        let Lab { tell, clock, .. } = self.lab;
        let mut window_end_ns = self.start_at_ns.saturating_add(self.window_ns);
        loop {
            let mut until_ns = end_at_ns.map_or(window_end_ns, |end| end.min(window_end_ns));
            if self.recorder.is_some() {
                until_ns = until_ns.min(clock.now_ns() + record::DRAIN_NS);
            }
            watched.sleep_until(clock, until_ns, command.as_deref().map(Running::fd));
            let now_ns = clock.now_ns();
            if let Some(recorder) = &mut self.recorder {
                recorder.drain(&mut self.probe);
            }
            let code = command.as_deref_mut().and_then(Running::ended);
            if let (Some(command), true) = (command.as_deref(), self.lab.is_stopped()) {
                command.terminate();
            }
            for tgid in watched.ended() {
                // The entry may be gone already: then there is nothing to forget.
                let _ = self.probe.unfollow(tgid);
            }
            if now_ns >= window_end_ns || end_at_ns.is_some_and(|end| now_ns >= end) {
                watched.look();
            }
            let (gone, is_nobody_left) = watched.gone();
            let is_over = end_at_ns.is_some_and(|end| now_ns >= end) || code.is_some();
            let is_stopped = (self.lab.is_stopped() && command.is_none()) || is_nobody_left;
            if is_stopped && !is_over {
                let why = if is_nobody_left { gone.join(", ") } else { "interrupted".into() };
                self.ended_early = Some(format!("{why} after {}", show_ns(now_ns - self.start_at_ns)));
            } else if is_over {
                self.remarks.extend_from_slice(gone);
            }
            if now_ns >= window_end_ns || is_over || is_stopped {
                self.close_window(now_ns, is_over || is_stopped)?;
                // Stopped for a while (SIGSTOP, suspend)? Then one long window, not many empty ones.
                let n_over = now_ns.saturating_sub(window_end_ns) / self.window_ns;
                window_end_ns = window_end_ns.saturating_add(self.window_ns.saturating_mul(n_over + 1));
            }
            if is_over || is_stopped {
                return Ok(code);
            }
            let name = command.as_deref().map_or("tracing", Running::name);
            let share = end_at_ns.map_or(0.0, |end| {
                (now_ns - self.start_at_ns) as f64 / end.saturating_sub(self.start_at_ns).max(1) as f64
            });
            tell.progress(share, name);
        }
    }

    fn close_window(&mut self, now_ns: u64, is_last: bool) -> Result<(), Refusal> {
        let src = self.lab.src;
        let now = self.probe.read(now_ns).map_err(refused)?;
        if is_last {
            // At once: what is done below sleeps and wakes CPUs, which the probe no longer counts.
            self.entered_in_all = Some(self.entered.since(src));
        }
        let name_of = |cpu, state| self.names.of_state(cpu, state);
        let window = Window { start_at_ns: self.last.at_ns, end_at_ns: now_ns };
        if let Some(recorder) = &mut self.recorder {
            let n_lost = now.cpus.iter().map(|c| c.n_lost).sum();
            recorder.close(&mut self.probe, now_ns, n_lost);
            recorder.settings(&settings(src), now_ns);
            if is_last {
                self.probe.record(false).map_err(refused)?;
            } else {
                recorder.open(&mut self.probe, now_ns)?;
            }
        }
        if self.windows.len() < MOST_WINDOWS {
            self.windows.push(TraceWindow { window, rows: rows(&now.since(&self.last), &name_of, None) });
        } else {
            self.has_more_windows = true;
        }
        if let Some(groups) = &mut self.groups {
            groups.learn(&now);
        }
        if let Some(wakers) = &mut self.wakers {
            wakers.learn(&now);
        }
        self.last = now;
        Ok(())
    }

    /// The last reading, made sense of; detaches.
    pub(super) fn finish(mut self, whose: TracedWhose) -> Result<Traced, Refusal> {
        let Lab { src, clock, .. } = self.lab;
        if self.windows.is_empty() {
            self.close_window(clock.now_ns(), true)?;
        }
        let entered = self.entered_in_all.take().unwrap_or_else(|| self.entered.since(src));
        let n_register_interrupts = 2 * self.hardware.n_reads;
        let hardware = self.hardware.since(src);
        let window = Window { start_at_ns: self.start_at_ns, end_at_ns: self.last.at_ns };
        let name_of = |cpu, state| self.names.of_state(cpu, state);
        let counted = self.last.since(&self.start);
        let mut traced = Traced::of(&counted, &name_of, window, whose);
        presence::mark(&mut traced.processes, self.start_boot_ns, src);
        for state in &mut traced.states {
            entered_as(state, &entered);
            state.hardware = hardware.of(&state.state, state.n_requested);
        }
        // The kernel counts for every possible CPU; one that is not there is not idle.
        traced.n_cpus = n_cpus(&self.online, &self.last);
        traced.ended_early = self.ended_early;
        traced.own.n_register_interrupts = n_register_interrupts;
        traced.own.cpu_ns = clock.own_cpu_ns() - self.start_cpu_ns;
        traced.own.programs_ns = self.probe.run_time_ns();
        traced.missed.n_recursion = self.probe.n_recursion();
        traced.remarks = self.probe.gaps().iter().map(|gap| format!("not traced: {gap}")).collect();
        traced.remarks.extend(self.names.remarks());
        if let Some(groups) = &self.groups {
            // Where tables differ between CPUs a cgroup does not say which one it ran on: the first CPU's names.
            let first = counted.cpus.first().map_or(0, |c| c.cpu);
            if let Some((payers, remarks)) = groups.payers(&counted, &|state| name_of(first, state), src) {
                traced.payers = Some(payers);
                traced.remarks.extend(remarks);
            }
        }
        if let Some(wakers) = &self.wakers {
            let first = counted.cpus.first().map_or(0, |c| c.cpu);
            let (chains, remarks) = wakers.chains(&counted, &|state| name_of(first, state));
            traced.chains = Some(chains);
            traced.remarks.extend(remarks);
        }
        traced.remarks.extend(self.remarks);
        if self.has_more_windows {
            traced.remarks.push(format!("only the first {MOST_WINDOWS} windows are shown one by one"));
        }
        traced.remarks.extend(remarks::of(&traced));
        if let Some(recorder) = self.recorder.take() {
            traced.remarks.push(recorder.finish());
        }
        if self.windows.len() > 1 {
            traced.windows = self.windows;
        }
        Ok(traced)
    }
}

/// CPUs that are online, or were: something was counted there.
fn n_cpus(online: &[u32], counters: &WakeCounters) -> u32 {
    let is_there = |cpu: &&CpuCounters| online.contains(&cpu.cpu) || !cpu.cells.is_empty();
    u32::try_from(counters.cpus.iter().filter(is_there).count()).unwrap_or(u32::MAX)
}

/// What sysfs counted for a state, over all CPUs.
fn entered_as(row: &mut StateRow, entered: &[IdleDelta]) {
    let states = || entered.iter().flat_map(|d| &d.states).filter(|s| s.name == row.state);
    if states().next().is_some() {
        row.n_entered = Some(states().map(|s| s.n_usage).sum());
        row.entered_time_ns = Some(states().map(|s| s.time_ns).sum());
    }
}
