//! What is kept of a replication: counts and sums over the time that counts, and the same bin by bin.

use super::plan::{IdlePlan, Plan};
use super::times::Times;
use super::{Backlog, Engine, Phase, event, kind};
use hdrhistogram::Histogram;

/// Lengths of idle periods.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Periods {
    /// How many.
    pub n: u64,
    /// Their sum, in nanoseconds.
    pub sum_ns: f64,
    /// The sum of their squares.
    pub sum_squares: f64,
}

impl Periods {
    fn add(&mut self, ns: u64) {
        let length = ns as f64;
        self.n += 1;
        self.sum_ns += length;
        self.sum_squares += length * length;
    }

    /// Those of two replications.
    pub fn join(&mut self, other: &Periods) {
        self.n += other.n;
        self.sum_ns += other.sum_ns;
        self.sum_squares += other.sum_squares;
    }

    /// Their mean, in nanoseconds; 0 without any.
    pub fn mean_ns(&self) -> f64 {
        if self.n == 0 { 0.0 } else { self.sum_ns / self.n as f64 }
    }

    /// Standard deviation over mean: 1 for exponential ones.
    pub fn cv(&self) -> f64 {
        let mean = self.mean_ns();
        if mean <= 0.0 { 0.0 } else { (self.sum_squares / self.n as f64 - mean * mean).max(0.0).sqrt() / mean }
    }
}

/// An idle state's use.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StateCounted {
    /// Times entered.
    pub n: u64,
    /// Time in it, exit included, summed over CPUs, in nanoseconds.
    pub ns: u64,
    /// Sleeps shorter than its target residency.
    pub n_too_deep: u64,
    /// Sleeps that the next deeper state would have suited.
    pub n_too_shallow: u64,
}

/// What is kept of a machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineCounted {
    /// Time its CPUs worked, in nanoseconds, of each CPU.
    pub busy_ns: Vec<u64>,
    /// Of that, the kernel's, summed.
    pub system_ns: f64,
    /// Busy time times clock, in nanoseconds times kilohertz.
    pub busy_khz_ns: f64,
    /// Idle states, shallow first.
    pub states: Vec<StateCounted>,
    /// Idle periods of CPUs.
    pub idle_periods: Periods,
    /// Periods in which all CPUs of a package were idle.
    pub package_idle_periods: Periods,
    /// Time packages slept, summed, in nanoseconds.
    pub package_asleep_ns: u64,
    /// Energy of its cores, in joules.
    pub core_joules: f64,
    /// Energy of everything behind the power supply, in joules.
    pub joules: f64,
    /// The same at the wall, in joules.
    pub wall_joules: f64,
    /// Tasks that ran or waited for a CPU, summed over time, in nanoseconds: divided by the duration, the load.
    pub runnable_ns: f64,
    /// Times a CPU left idle for work.
    pub n_wakes: u64,
}

/// A part of the duration.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bin {
    /// Its length, in nanoseconds.
    pub ns: u64,
    /// Requests that were done in it.
    pub n_done: u64,
    /// Sum of their times, in nanoseconds.
    pub sum_ns: f64,
    /// CPU time of all machines, in nanoseconds.
    pub busy_ns: u64,
    /// Energy at the wall of all machines, in joules.
    pub wall_joules: f64,
    /// Of all machines, as in [`MachineCounted`].
    pub runnable_ns: f64,
}

/// Equal parts that the duration is cut into, to see how long the past is felt.
pub(crate) const PARTS: u32 = 128;

/// One of these parts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Part {
    /// Requests in the machines, summed over time, in nanoseconds.
    pub in_system_ns: f64,
    /// Squares of the times of requests that were done, summed: the long ones count most.
    pub sum_squares: f64,
}

/// What is kept of a replication.
#[derive(Clone, Debug)]
pub struct Counted {
    /// Time that counts, in nanoseconds.
    pub ns: u64,
    /// Requests that came.
    pub n_arrived: u64,
    /// Requests that were done.
    pub n_done: u64,
    /// Requests turned away.
    pub n_turned_away: u64,
    /// Requests in the machines, summed over time, in nanoseconds.
    pub in_system_ns: f64,
    /// How long requests took.
    pub times: Histogram<u64>,
    /// The sum of that, exactly.
    pub sum_ns: f64,
    /// Requests in the machines when counting began, and at the end.
    pub n_in_system: [usize; 2],
    /// More requests waited than there is room for.
    pub is_overflowed: bool,
    /// What waited for each group of CPUs that can be a bottleneck, when counting began and at the end.
    pub backlogs: Vec<[Backlog; 2]>,
    /// Machine by machine.
    pub machines: Vec<MachineCounted>,
    /// Part by part of the time series.
    pub bins: Vec<Bin>,
    /// The parts, in order.
    pub parts: Vec<Part>,
}

impl PartialEq for Counted {
    fn eq(&self, other: &Counted) -> bool {
        let one = |c: &Counted| (c.ns, c.n_arrived, c.n_done, c.n_turned_away, c.n_in_system, c.is_overflowed);
        one(self) == one(other)
            && (self.in_system_ns, self.sum_ns) == (other.in_system_ns, other.sum_ns)
            && self.times == other.times
            && self.machines == other.machines
            && self.bins == other.bins
            && self.parts == other.parts
            && self.backlogs == other.backlogs
    }
}

/// The counts while it runs.
pub(super) struct Counts {
    pub(super) n_arrived: u64,
    pub(super) n_turned_away: u64,
    pub(super) is_overflowed: bool,
    /// Which arrival counts, where the next one is drawn anew.
    pub(super) arrival_stamp: u32,
    n_done: u64,
    times: Times,
    sum_ns: f64,
    in_system_ns: f64,
    in_system_at_ns: u64,
    n_at_start: usize,
    machines: Vec<MachineCounted>,
    runnable: Vec<(i64, u64)>,
    since_ns: u64,
    bins: Vec<Bin>,
    bin_at_ns: u64,
    bin_before: Bin,
    backlogs: Vec<Backlog>,
    sum_squares: f64,
    parts: Vec<Part>,
    /// All that was counted when the last part ended.
    part_before: Part,
}

impl Counts {
    pub(super) fn new(plan: &Plan) -> Counts {
        let machine = |m: &super::plan::MachinePlan| MachineCounted {
            busy_ns: vec![0; m.n_cpus],
            states: vec![StateCounted::default(); wakewatt_models::table::MOST_STATES],
            ..MachineCounted::default()
        };
        Counts {
            n_arrived: 0,
            n_turned_away: 0,
            is_overflowed: false,
            arrival_stamp: 0,
            n_done: 0,
            times: Times::new(),
            sum_ns: 0.0,
            in_system_ns: 0.0,
            in_system_at_ns: 0,
            n_at_start: 0,
            machines: plan.machines.iter().map(machine).collect(),
            runnable: vec![(0, 0); plan.machines.len()],
            since_ns: 0,
            bins: Vec::new(),
            bin_at_ns: 0,
            bin_before: Bin::default(),
            backlogs: Vec::new(),
            sum_squares: 0.0,
            parts: Vec::new(),
            part_before: Part::default(),
        }
    }

    /// The number of requests is about to change.
    #[inline]
    pub(super) fn in_system(&mut self, now: u64, n: usize) {
        self.in_system_ns += n as f64 * (now - self.in_system_at_ns) as f64;
        self.in_system_at_ns = now;
    }

    /// A request is done.
    #[inline]
    pub(super) fn left(&mut self, now: u64, took_ns: u64, n: usize) {
        self.in_system(now, n);
        self.n_done += 1;
        self.sum_ns += took_ns as f64;
        self.sum_squares += took_ns as f64 * took_ns as f64;
        self.times.record(took_ns);
    }

    /// So many more tasks run or wait.
    #[inline]
    pub(super) fn runnable(&mut self, now: u64, m: usize, more: i64) {
        let (n, at) = &mut self.runnable[m];
        self.machines[m].runnable_ns += *n as f64 * (now - *at) as f64;
        *n += more;
        *at = now;
    }

    #[inline]
    pub(super) fn busy(&mut self, m: usize, ns: u64, system: f64, khz: u32) {
        let machine = &mut self.machines[m];
        machine.system_ns += ns as f64 * system;
        machine.busy_khz_ns += ns as f64 * f64::from(khz);
    }

    pub(super) fn more_system(&mut self, m: usize, ns: f64) {
        self.machines[m].system_ns += ns;
    }

    #[inline]
    pub(super) fn pair(&mut self, m: usize, state: usize, residency_ns: u64, until_ns: u64, idle: &IdlePlan) {
        let Some(counted) = self.machines[m].states.get_mut(state) else { return };
        counted.n += 1;
        // A sleep that began before counting did counts from then.
        counted.ns += residency_ns.min(until_ns.saturating_sub(self.since_ns));
        match wakewatt_models::accounting::miss(&idle.table, idle.disabled, state, residency_ns as i64) {
            wakewatt_models::accounting::Miss::Above => counted.n_too_deep += 1,
            wakewatt_models::accounting::Miss::Below => counted.n_too_shallow += 1,
            wakewatt_models::accounting::Miss::None => {}
        }
    }

    #[inline]
    pub(super) fn idle_period(&mut self, m: usize, ns: u64) {
        self.machines[m].idle_periods.add(ns);
        self.machines[m].n_wakes += 1;
    }

    pub(super) fn package_idle_period(&mut self, m: usize, ns: u64) {
        self.machines[m].package_idle_periods.add(ns);
    }
}

impl Engine {
    /// Everything that is counted when it ends is brought up to now.
    pub(super) fn sync_all(&mut self) {
        for cpu in 0..self.cpus.len() {
            self.sync(cpu);
            self.set_power(cpu);
        }
        for package in &mut self.packages {
            if let Some(since) = package.asleep_since_ns.replace(self.now) {
                package.asleep_ns += self.now - since;
            } else {
                package.asleep_since_ns = None;
            }
        }
        self.counts.in_system(self.now, self.n_requests);
        (0..self.hosts.len()).for_each(|m| self.counts.runnable(self.now, m, 0));
    }

    /// Energy of a machine since the counts began, behind its supply, in joules; and the part of its cores.
    fn energy(&self, m: usize) -> (f64, f64) {
        let p = &self.plan.machines[m].policy.power;
        let seconds = (self.now - self.counts.since_ns) as f64 / 1e9;
        let own = |package: &&super::Package| package.machine as usize == m;
        let packages = self.packages.iter().filter(own);
        let uncore: f64 = packages
            .map(|package| {
                let asleep = package.asleep_ns as f64 / 1e9;
                (p.uncore_w + p.memory_w) * (seconds - asleep).max(0.0) + (p.uncore_sleep_w + p.memory_sleep_w) * asleep
            })
            .sum();
        let plan = &self.plan.machines[m];
        let cores = self.cpus[plan.first_cpu..plan.first_cpu + plan.n_cpus].iter().step_by(plan.threads);
        let cores: f64 = cores.map(|c| self.cores[c.core as usize].joules).sum();
        (cores + uncore + p.platform_w * seconds, cores)
    }

    fn so_far(&self) -> Bin {
        let machines = 0..self.plan.machines.len();
        Bin {
            ns: self.now - self.counts.since_ns,
            n_done: self.counts.n_done,
            sum_ns: self.counts.sum_ns,
            busy_ns: self.cpus.iter().map(|c| c.busy_ns).sum(),
            // Behind the supply; the bin's own power decides its efficiency.
            wall_joules: machines.map(|m| self.energy(m).0).sum(),
            runnable_ns: self.counts.machines.iter().map(|m| m.runnable_ns).sum(),
        }
    }

    /// Counting begins, or a bin ends.
    pub(super) fn mark(&mut self, i: u32) {
        self.sync_all();
        if i == 0 {
            self.begin_counting();
        } else {
            self.end_bin();
        }
        let bins = u64::from(self.plan.bins.max(1));
        if u64::from(i) + 1 < bins {
            let at = self.plan.warmup_ns + self.plan.duration_ns / bins * (u64::from(i) + 1);
            self.queue.push(at, event(kind::MARK, 0, i + 1));
        }
    }

    fn begin_counting(&mut self) {
        let (runnable, stamp) = (self.counts.runnable.clone(), self.counts.arrival_stamp);
        self.counts = Counts::new(&self.plan);
        self.counts.runnable = runnable;
        self.counts.arrival_stamp = stamp;
        self.counts.in_system_at_ns = self.now;
        self.counts.since_ns = self.now;
        self.counts.bin_at_ns = self.now;
        self.counts.n_at_start = self.n_requests;
        self.counts.backlogs = self.backlogs();
        self.expect_part();
        self.cpus.iter_mut().for_each(|c| c.busy_ns = 0);
        self.cores.iter_mut().for_each(|c| c.joules = 0.0);
        self.packages.iter_mut().for_each(|p| p.asleep_ns = 0);
    }

    fn expect_part(&mut self) {
        let n = self.counts.parts.len() as u64 + 1;
        if n < u64::from(PARTS) {
            let at = self.plan.warmup_ns + self.plan.duration_ns * n / u64::from(PARTS);
            self.queue.push(at, event(kind::PART, 0, 0));
        }
    }

    /// A part of the duration is over.
    pub(super) fn end_part(&mut self) {
        let counts = &mut self.counts;
        counts.in_system(self.now, self.n_requests);
        let all = Part { in_system_ns: counts.in_system_ns, sum_squares: counts.sum_squares };
        let before = std::mem::replace(&mut counts.part_before, all);
        counts.parts.push(Part {
            in_system_ns: all.in_system_ns - before.in_system_ns,
            sum_squares: all.sum_squares - before.sum_squares,
        });
        self.expect_part();
    }

    fn end_bin(&mut self) {
        let now = self.so_far();
        let before = self.counts.bin_before;
        let ns = self.now - self.counts.bin_at_ns;
        if ns == 0 {
            return;
        }
        let joules = now.wall_joules - before.wall_joules;
        let watts = joules * 1e9 / ns as f64;
        let wall = self.plan.machines.first().map_or(watts, |m| m.policy.power.wall_w(watts));
        self.counts.bins.push(Bin {
            ns,
            n_done: now.n_done - before.n_done,
            sum_ns: now.sum_ns - before.sum_ns,
            busy_ns: now.busy_ns - before.busy_ns,
            wall_joules: wall * ns as f64 / 1e9,
            runnable_ns: now.runnable_ns - before.runnable_ns,
        });
        self.counts.bin_before = now;
        self.counts.bin_at_ns = self.now;
    }

    /// What the replication came to.
    pub(super) fn counted(mut self) -> Counted {
        self.end_bin();
        self.end_part();
        for m in 0..self.plan.machines.len() {
            let (joules, cores) = self.energy(m);
            let plan = &self.plan.machines[m];
            let seconds = (self.now - self.counts.since_ns) as f64 / 1e9;
            let cpus = &self.cpus[plan.first_cpu..plan.first_cpu + plan.n_cpus];
            let asleep = self.packages.iter().filter(|p| p.machine as usize == m).map(|p| p.asleep_ns).sum();
            let still = still_idle(cpus, self.now, self.counts.since_ns, plan.policy.idle.states.len());
            let counted = &mut self.counts.machines[m];
            counted.busy_ns = cpus.iter().map(|c| c.busy_ns).collect();
            counted.core_joules = cores;
            counted.joules = joules;
            counted.wall_joules = plan.policy.power.wall_w(joules / seconds) * seconds;
            counted.package_asleep_ns = asleep;
            counted.states.truncate(plan.policy.idle.states.len());
            counted.states.iter_mut().zip(still).for_each(|(state, ns)| state.ns += ns);
        }
        let at_end = self.backlogs();
        let c = self.counts;
        let backlogs = c.backlogs.into_iter().zip(at_end).map(|(start, end)| [start, end]);
        Counted {
            ns: self.plan.duration_ns,
            n_arrived: c.n_arrived,
            n_done: c.n_done,
            n_turned_away: c.n_turned_away,
            in_system_ns: c.in_system_ns,
            times: c.times.histogram(),
            sum_ns: c.sum_ns,
            n_in_system: [c.n_at_start, self.n_requests],
            is_overflowed: c.is_overflowed,
            backlogs: backlogs.collect(),
            machines: c.machines,
            bins: c.bins,
            parts: c.parts,
        }
    }
}

/// Time in each state of those who sleep at the end.
fn still_idle(cpus: &[super::Cpu], now: u64, since: u64, n: usize) -> Vec<u64> {
    let mut still = vec![0; n];
    for c in cpus.iter().filter(|c| c.phase == Phase::Idle) {
        if let Some(ns) = still.get_mut(c.idle_state as usize) {
            *ns += now - c.entered_ns.max(since);
        }
    }
    still
}
