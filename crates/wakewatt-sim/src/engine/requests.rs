//! The way of a request: it arrives, is worked on stage by stage, waits between, and leaves.

use super::plan::{ArrivalPlan, Recording};
use super::{Engine, Job, MOST_JOBS, NONE, OWN, event, kind};
use crate::ziggurat::exponential;
use wakewatt_core::stats::random::Random;

/// Where a recording is being played: a circular block bootstrap by time (Politis & Romano 1992), or the
/// whole of it again and again.
#[derive(Default)]
pub(super) struct Playback {
    /// The next arrival in the recording.
    at: usize,
    /// Turns that are complete, within the block.
    turns: u64,
    /// When the block begins, and where in the recording; none before the first.
    block: Option<(u64, u64)>,
}

impl Playback {
    /// When the next one arrives.
    fn next(&mut self, recording: &Recording, random: &mut Random) -> Option<u64> {
        let (at_ns, length_ns) = (&recording.at_ns, *recording.at_ns.last()?);
        let mut block = self.block.unwrap_or_else(|| self.enter(0, recording, random));
        loop {
            let ahead_ns = (self.turns * length_ns + at_ns[self.at]).saturating_sub(block.1);
            match recording.block_ns {
                Some(block_ns) if ahead_ns >= block_ns => block = self.enter(block.0 + block_ns, recording, random),
                _ => {
                    self.at += 1;
                    if self.at == at_ns.len() {
                        (self.at, self.turns) = (0, self.turns + 1);
                    }
                    return Some(block.0 + ahead_ns);
                }
            }
        }
    }

    /// Begins a block at a time.
    fn enter(&mut self, begins_ns: u64, recording: &Recording, random: &mut Random) -> (u64, u64) {
        let length_ns = recording.at_ns.last().copied().unwrap_or(0);
        let from_ns = recording.block_ns.map_or(0, |_| random.below(length_ns.max(1)));
        (self.at, self.turns) = (recording.at_ns.partition_point(|at| *at < from_ns), 0);
        *self.block.insert((begins_ns, from_ns))
    }
}

impl Engine {
    pub(super) fn start_arrivals(&mut self) {
        match &self.plan.arrivals {
            ArrivalPlan::Closed(n, _) => {
                let n = *n;
                for _ in 0..n {
                    let job = self.new_job();
                    self.think(job);
                }
            }
            ArrivalPlan::Bursts { length_ns, .. } => {
                let after = exponential(&mut self.arrivals) * length_ns[0];
                self.queue.push(after as u64, event(kind::BURST, 0, 0));
                self.next_arrival();
            }
            _ => self.next_arrival(),
        }
    }

    /// Bursts begin and end. The next arrival is drawn anew at the new rate: gaps have no memory.
    pub(super) fn burst(&mut self) {
        let ArrivalPlan::Bursts { length_ns, .. } = &self.plan.arrivals else { return };
        self.in_burst = !self.in_burst;
        let after = exponential(&mut self.arrivals) * length_ns[usize::from(self.in_burst)];
        self.queue.push(self.now + after as u64, event(kind::BURST, 0, 0));
        self.counts.arrival_stamp = self.counts.arrival_stamp.wrapping_add(1);
        self.next_arrival();
    }

    fn next_arrival(&mut self) {
        let gap = match &self.plan.arrivals {
            ArrivalPlan::Poisson(gap) => gap.map(|gap| exponential(&mut self.arrivals) * gap),
            ArrivalPlan::Bursts { gap_ns, .. } => {
                gap_ns[usize::from(self.in_burst)].map(|gap| exponential(&mut self.arrivals) * gap)
            }
            ArrivalPlan::Gaps(law) => Some(law.draw(&mut self.arrivals)),
            ArrivalPlan::Recorded(recording) => {
                let due = self.playback.next(recording, &mut self.arrivals);
                due.map(|due| due.saturating_sub(self.now) as f64)
            }
            ArrivalPlan::Closed(..) => None,
        };
        let Some(gap) = gap else { return };
        let at = self.now.saturating_add(super::whole_ns(gap));
        self.queue.put_single(at, event(kind::ARRIVE, 0, self.counts.arrival_stamp));
    }

    /// Somebody arrives from outside.
    pub(super) fn arrive(&mut self, stamp: u32) {
        if stamp != self.counts.arrival_stamp {
            return;
        }
        self.next_arrival();
        self.counts.n_arrived += 1;
        if self.n_requests >= self.plan.limit.min(MOST_JOBS) {
            self.counts.n_turned_away += 1;
            self.counts.is_overflowed |= self.n_requests >= MOST_JOBS;
            return;
        }
        let job = self.new_job();
        self.enter(job);
    }

    pub(super) fn new_job(&mut self) -> u32 {
        let job = Job {
            start_ns: self.now,
            left: 0.0,
            system: 0.0,
            stage: 0,
            round: 0,
            in_interrupt: false,
            prev: NONE,
            home: NONE,
            next: NONE,
        };
        match self.free.pop() {
            Some(at) => {
                self.jobs[at as usize] = job;
                at
            }
            None => {
                self.jobs.push(job);
                (self.jobs.len() - 1) as u32
            }
        }
    }

    /// A request begins.
    fn enter(&mut self, job: u32) {
        self.counts.in_system(self.now, self.n_requests);
        self.n_requests += 1;
        self.jobs[job as usize].start_ns = self.now;
        let j = &mut self.jobs[job as usize];
        (j.stage, j.round) = (0, 0);
        self.begin_stage(job);
    }

    /// A client has thought.
    pub(super) fn thought(&mut self, job: u32) {
        self.counts.n_arrived += 1;
        if self.n_requests >= self.plan.limit {
            self.counts.n_turned_away += 1;
            self.think(job);
            return;
        }
        self.enter(job);
    }

    fn think(&mut self, job: u32) {
        let ArrivalPlan::Closed(_, law) = &self.plan.arrivals else { return };
        let ns = law.draw(&mut self.arrivals);
        self.queue.push(self.now + (ns + 0.5) as u64, event(kind::THOUGHT, 0, job));
    }

    /// The request comes to its next stop: an interrupt somewhere, or right at its task.
    pub(super) fn begin_stage(&mut self, job: u32) {
        let at = usize::from(self.jobs[job as usize].stage);
        let stage = &self.plan.stages[at];
        let machine = &self.plan.machines[stage.machine];
        let is_elsewhere = matches!(stage.interrupt, Some((_, Some(_))));
        // Work that an interrupt elsewhere has to announce first is drawn when that is done.
        let is_later = is_elsewhere && !stage.in_interrupt;
        let mut work = if is_later { 0.0 } else { stage.service.draw(&mut self.services).max(0.0) };
        let mut system = work * stage.system;
        if let Some((irq, list)) = &stage.interrupt {
            match list {
                Some(list) => {
                    let turn = &mut self.turns[at];
                    let cpu = machine.first_cpu + list[*turn % list.len()];
                    *turn = turn.wrapping_add(1);
                    let own = if stage.in_interrupt { work } else { 0.0 };
                    let j = &mut self.jobs[job as usize];
                    (j.left, j.system, j.in_interrupt) = (irq + own, 1.0, true);
                    self.interrupt(cpu, job);
                    return;
                }
                None => {
                    work += irq;
                    system += irq;
                }
            }
        }
        if !stage.in_interrupt {
            work += machine.wake_ns;
            system += machine.wake_ns;
        }
        let j = &mut self.jobs[job as usize];
        (j.left, j.in_interrupt) = (work, false);
        // Where the kernel has no part in it, no division.
        j.system = if system > 0.0 && work > 0.0 { system / work } else { 0.0 };
        self.hand_over(job);
    }

    /// An interrupt's work is done: the task is woken, or that was all.
    pub(super) fn after_interrupt(&mut self, job: u32) {
        let j = &mut self.jobs[job as usize];
        j.in_interrupt = false;
        let stage = &self.plan.stages[usize::from(j.stage)];
        if stage.in_interrupt {
            self.end_stage(job);
            return;
        }
        let machine = &self.plan.machines[stage.machine];
        let work = stage.service.draw(&mut self.services).max(0.0);
        let (all, system) = (work + machine.wake_ns, work * stage.system + machine.wake_ns);
        j.left = all;
        j.system = if all > 0.0 { system / all } else { 0.0 };
        self.hand_over(job);
    }

    /// The work of a stage is done; its CPU is free for other things already.
    pub(super) fn end_stage(&mut self, job: u32) {
        let j = self.jobs[job as usize];
        if j.stage == OWN {
            self.free.push(job);
            return;
        }
        let stage = &self.plan.stages[usize::from(j.stage)];
        if stage.untimed {
            self.jobs[job as usize].start_ns = self.now;
        }
        if let Some(wait) = &stage.wait {
            let ns = wait.draw(&mut self.services);
            if stage.iowait && j.prev != NONE {
                self.cpus[j.prev as usize].n_iowait += 1;
            }
            self.queue.push(self.now + (ns + 0.5) as u64, event(kind::WAITED, 0, job));
            return;
        }
        self.next_stage(job);
    }

    /// The wait after a stage is over.
    pub(super) fn waited(&mut self, job: u32) {
        let j = self.jobs[job as usize];
        let stage = &self.plan.stages[usize::from(j.stage)];
        if stage.iowait && j.prev != NONE {
            let n = &mut self.cpus[j.prev as usize].n_iowait;
            *n = n.saturating_sub(1);
        }
        self.next_stage(job);
    }

    /// The stage after one, and its round; none after the last of the last.
    pub(super) fn following(&self, stage: u16, round: u16) -> Option<(u16, u16)> {
        if usize::from(stage) + 1 < self.plan.stages.len() {
            return Some((stage + 1, round));
        }
        (round + 1 < self.plan.rounds).then_some((0, round + 1))
    }

    fn next_stage(&mut self, job: u32) {
        let j = &self.jobs[job as usize];
        if let Some((stage, round)) = self.following(j.stage, j.round) {
            let j = &mut self.jobs[job as usize];
            (j.stage, j.round) = (stage, round);
            self.begin_stage(job);
            return;
        }
        self.counts.left(self.now, self.now - j.start_ns, self.n_requests);
        self.n_requests -= 1;
        match &self.plan.arrivals {
            ArrivalPlan::Closed(..) => self.think(job),
            _ => self.free.push(job),
        }
    }

    /// A timer of the machine's own.
    pub(super) fn timer(&mut self, cpu: usize) {
        let Some((every, work)) = self.plan.machines[self.cpus[cpu].machine as usize].timers else { return };
        let at = self.now + every.max(1);
        self.cpus[cpu].timer_at_ns = at;
        self.queue.push_periodic(at, event(kind::TIMER, 0, cpu as u32));
        let job = self.own_job(cpu, work);
        self.give(cpu, job);
    }

    /// Work of a CPU for itself, in the kernel.
    pub(super) fn own_job(&mut self, cpu: usize, work: f64) -> u32 {
        let job = self.new_job();
        let j = &mut self.jobs[job as usize];
        (j.left, j.system, j.stage, j.prev) = (work.max(1.0), 1.0, OWN, cpu as u32);
        job
    }
}
