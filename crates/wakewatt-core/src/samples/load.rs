//! Load: what a machine did under a stated load, level by level: rate, latency, CPU time and watts.
//!
//! One type for the graduated load in the manner of SPECpower_ssj2008 (`load steps`), for the online shop at so many
//! clients (`load shop`) and for a user's own benchmark (`load -- CMD`), so that charts, experiments and comparisons know
//! one thing. Latency is counted from the planned start (no coordinated omission). A level that broke a rule is kept and
//! says why it is invalid. Watts come from a meter or are absent, never 0; figures per watt exist only where both do.
//!
//! Procedure and formulas: docs/methods/load.md, after the public material on SPECpower_ssj2008 (SPEC's run rules are
//! longer; nothing here is a SPEC result).

use super::broken_rule::BrokenRule;
use super::energy::{EnergySample, NoInterval};
use super::experiment::Better;
use super::timeline::Change;
use super::{IdleDelta, Window};
use crate::arrange::Arrange as _;
use crate::cpuset::CpuSet;
use crate::distribution::Distribution;
use crate::facts::load::CpuTime;
use serde::{Deserialize, Serialize};
use std::fmt;
use wakewatt_words::word;

/// Hours in a year, for watts of staying awake.
const HOURS_PER_YEAR: f64 = 8766.0;

/// What made the load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Transactions of a service time the user set, at shares of the calibrated maximum.
    #[default]
    Steps,
    /// Clients of an online shop.
    Shop,
    /// A command of the user's.
    Command,
}

impl Kind {
    /// As the command that makes it is called.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Steps => "steps",
            Kind::Shop => "shop",
            Kind::Command => "command",
        }
    }
}

/// How long the phases were; SPECpower's own lengths are `SpecLike`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Length {
    /// For a first look; too short for figures to be quoted.
    Quick,
    /// A minute recorded per level.
    #[default]
    Standard,
    /// 240 s recorded, 30 s ramps, 10 s between.
    SpecLike,
    /// What the user asked for.
    Custom,
}

/// What a level asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// This share of the calibrated maximum, 0 to 1.
    Share(f64),
    /// Everything running, nothing asked: active idle.
    #[default]
    Idle,
    /// So many clients with think time.
    Clients(u32),
    /// So many operations per second, whatever is answered.
    Rate(f64),
    /// One run of the user's command.
    Run,
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ask::Share(share) => write!(f, "{} %", (share * 1e6).round() / 1e4),
            Ask::Idle => f.write_str("active idle"),
            Ask::Clients(1) => f.write_str("1 client"),
            Ask::Clients(n) => write!(f, "{n} clients"),
            Ask::Rate(per_s) => write!(f, "{per_s}/s"),
            Ask::Run => f.write_str("run"),
        }
    }
}

/// A process of the load generator and where it was bound.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Worker {
    /// Memory node, where bound to one.
    pub node: Option<u32>,
    /// The CPUs its threads are pinned to.
    pub cpus: CpuSet,
}

/// One calibration interval: closed loop, nobody waits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Calibration {
    /// From when to when the interval was recorded.
    pub window: Window,
    /// Operations per second in the interval, without pauses.
    pub per_s: f64,
}

/// How busy a CPU was in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuUse {
    /// Number of the CPU.
    pub cpu: u32,
    /// User and nice time, share of the window.
    pub user_ratio: f64,
    /// System, interrupt and soft interrupt time.
    pub system_ratio: f64,
    /// Share of the window that the hypervisor took, 0 to 1.
    pub steal_ratio: f64,
}

impl CpuUse {
    /// What passed, as shares of a window. Ticks are coarse: where the parts of a short one add up to more, they are shares of
    /// their sum. None for the line of all CPUs.
    pub fn of(passed: &CpuTime, window_ns: u64) -> Option<CpuUse> {
        let of_ns = window_ns.max(passed.busy_ns()).max(1) as f64;
        let ratio = |ns: u64| (ns as f64 / of_ns).min(1.0);
        Some(CpuUse {
            cpu: passed.cpu?,
            user_ratio: ratio(passed.user_ns.saturating_add(passed.nice_ns)),
            system_ratio: ratio(passed.kernel_ns()),
            steal_ratio: ratio(passed.steal_ns),
        })
    }
    /// Not idle.
    pub fn busy_ratio(&self) -> f64 {
        self.user_ratio + self.system_ratio
    }
}

/// One kind of request within a level: a page of the shop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Part {
    /// Name of the part: a page of the shop such as `search`.
    pub name: String,
    /// How many requests were answered.
    pub n_done: u64,
    /// How many requests failed.
    pub n_failed: u64,
    /// From the planned start of a request to its answer.
    pub latency: Distribution,
}

/// How CPU time was counted. They differ by the work of interrupts, which a busy network makes a good part of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CpuBy {
    /// Busy time of the CPUs that did the work, by /proc/stat.
    BusyCpus,
    /// Busy time of the whole machine less this program's own, by /proc/stat and getrusage.
    MachineLessOwn,
    /// CPU time of the server's process, by getrusage.
    Process,
    /// CPU time of the command and of the children it waited for, by wait4.
    Command,
}

impl CpuBy {
    /// For people, as what follows "CPU time is".
    pub fn words(self) -> &'static str {
        match self {
            CpuBy::BusyCpus => {
                word!(
                    "the busy time of the CPUs that did the work (/proc/stat): interrupts and soft interrupts there are in it, and whatever else ran there"
                )
            }
            CpuBy::MachineLessOwn => {
                word!(
                    "the busy time of this machine without the clients' process (/proc/stat): interrupts and soft interrupts are in it, also those that the clients caused"
                )
            }
            CpuBy::Process => {
                word!(
                    "that of the server's process as it says itself: soft interrupts that its packets cause are not in it, unless they happened to interrupt it"
                )
            }
            CpuBy::Command => {
                word!(
                    "that of the command and the children it waited for: interrupts on its behalf are not in it, unless they happened to interrupt it"
                )
            }
        }
    }
}

/// Where a number of a level lies, from the parts of its window: it covers this window, not another run or machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Range {
    /// Lower end of the interval, in nanoseconds.
    pub low_ns: f64,
    /// Upper end of the interval, in nanoseconds.
    pub high_ns: f64,
    /// How often such an interval holds the middle of the parts, as a share: 0.951 for ten parts.
    pub confidence: f64,
}

/// What a user's own benchmark says it achieved, in a unit that only it knows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figure {
    /// The number it printed.
    pub value: f64,
    /// A rate, or a time.
    pub better: Better,
}

/// One level of load: what was asked, what was done, how late and at how many watts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Level {
    /// What was asked of the machine: a share, a rate, clients, or nothing.
    pub ask: Ask,
    /// Settle, ramp up, recorded, ramp down: the lengths.
    pub phases_ns: [u64; 4],
    /// From when to when the level was recorded.
    pub window: Window,
    /// Operations per second that were planned; none where clients or a command set their own pace.
    pub target_per_s: Option<f64>,
    /// How many operations were planned to start in the window.
    pub n_planned: u64,
    /// How many of the planned operations were finished.
    pub n_done: u64,
    /// Answered wrongly, or not at all.
    pub n_failed: u64,
    /// Operations per second that were done; of a command its runs, whatever it printed.
    pub per_s: f64,
    /// What a command printed, where it was asked for.
    #[serde(default)]
    pub figure: Option<Figure>,
    /// From the planned start to the end; absent where the queue had no steady state or there were no operations. What failed
    /// or was not done is in it, at the time-out or the end of the level: see `censored` in it.
    pub latency: Option<Distribution>,
    /// From its real start to its end.
    pub service: Option<Distribution>,
    /// The same by kind of request; empty where there is one kind.
    pub parts: Vec<Part>,
    /// Where the CPU time per operation lies, from ten parts of the recorded window; none where they were too short for the
    /// ticks it is counted in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_per_op: Option<Range>,
    /// CPU time that the operations took, by `cpu_by`; 0 where nobody could count it.
    pub cpu_ns: u64,
    /// How that CPU time was counted; none in files of versions that did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_by: Option<CpuBy>,
    /// The part of it in the kernel.
    pub system_ns: u64,
    /// How busy each CPU was in the window.
    pub cpus: Vec<CpuUse>,
    /// Share of the CPUs' time that other processes had, by the ticks of /proc/stat; none where nobody could tell their time
    /// from the load's own.
    #[serde(default)]
    pub foreign_ratio: Option<f64>,
    /// One-minute load average at the end of the window.
    pub load_average: Option<f64>,
    /// What the idle-state counters did in the window, CPU by CPU.
    pub idle: Vec<IdleDelta>,
    /// What the meters said.
    pub energy: Option<EnergySample>,
    /// What may have spoiled it.
    pub disturbances: Vec<String>,
    /// The rules it broke; empty means valid.
    #[serde(rename = "is_invalid")]
    pub broken_rules: Vec<BrokenRule>,
}

impl Level {
    /// Mean watts of the window by the chosen meter, in microwatts. None without one: never 0.
    pub fn mean_uw(&self) -> Option<u64> {
        Some(self.energy.as_ref()?.chosen()?.total.as_ref()?.mean_uw).filter(|uw| *uw > 0)
    }

    /// Half width of the 95 % interval of those watts, or why there is none; none without watts, or from a file that does
    /// not say.
    pub fn half_width_uw(&self) -> Option<Result<u64, NoInterval>> {
        self.mean_uw()?;
        let total = self.energy.as_ref()?.chosen()?.total.as_ref()?;
        total.uncertainty_uw.map(Ok).or(total.no_interval.map(Err))
    }

    /// What a command printed, else operations per second.
    pub fn achieved(&self) -> f64 {
        self.figure.map_or(self.per_s, |figure| figure.value)
    }

    /// Operations per joule, which is operations per second and watt; a figure per watt where it is a rate. A time per watt
    /// is nothing.
    pub fn per_joule(&self) -> Option<f64> {
        let is_rate = self.figure.is_none_or(|figure| figure.better == Better::Higher);
        Some(self.achieved() / (self.mean_uw().filter(|_| is_rate)? as f64 / 1e6))
    }

    /// Operations that ended in the window, which CPU time and watts belong to: `n_done` counts what was planned in it, and
    /// a full queue ends much of that later.
    fn n_ended(&self) -> Option<f64> {
        let n = self.per_s * (self.window.length_ns() as f64 / 1e9);
        (self.n_done > 0 && n > 0.0).then_some(n)
    }

    /// CPU time per operation; none where nobody could count it.
    pub fn cpu_ns_per_op(&self) -> Option<f64> {
        Some(self.cpu_ns as f64 / self.n_ended().filter(|_| self.cpu_ns > 0)?)
    }

    /// Kernel time per operation; none where nobody could count it.
    pub fn system_ns_per_op(&self) -> Option<f64> {
        Some(self.system_ns as f64 / self.n_ended().filter(|_| self.cpu_ns > 0)?)
    }

    /// Mean busy share of the measured CPUs.
    pub fn busy_ratio(&self) -> Option<f64> {
        let n = self.cpus.len();
        (n > 0).then(|| self.cpus.iter().map(CpuUse::busy_ratio).sum::<f64>() / n as f64)
    }
}

/// A whole load run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadRun {
    /// What made the load: steps, shop or a command.
    pub kind: Kind,
    /// For people: "steps, 500 us a transaction", or the command line.
    pub title: String,
    /// Of a command: by which two runs know the same one, because a saved title has its names masked. See [`command_hash`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_hash: Option<String>,
    /// How long the phases were.
    pub length: Length,
    /// Seed of every schedule: the same one gives the same arrivals.
    pub seed: u64,
    /// Power settings in force, by name: governor, idle governor, limits held.
    pub settings: Vec<(String, String)>,
    /// Processes that made the load, or served it.
    pub workers: Vec<Worker>,
    /// Service time asked for, of `steps`.
    pub service_ns: Option<u64>,
    /// Units of work in a transaction that take this long at full speed: the same number is the same work anywhere.
    pub work_units: Option<u64>,
    /// CPU time of the generator itself per operation: plan, sleep, wake-up, clocks, counting.
    pub overhead_ns_per_op: Option<f64>,
    /// The calibration intervals in their order.
    pub calibration: Vec<Calibration>,
    /// The maximum they came to.
    pub capacity_per_s: Option<f64>,
    /// Levels in the order they ran.
    pub levels: Vec<Level>,
    /// Settings of the machine that somebody changed while it ran.
    #[serde(default)]
    pub changes: Vec<Change>,
    /// What to know about the whole run, in sentences.
    pub remarks: Vec<String>,
}

/// Twelve digits that equal commands share and others, but for one pair in 10^14, do not: 48 bits of FNV-1a over the arguments.
pub fn command_hash(arguments: &[String]) -> String {
    // An argument never holds a NUL.
    let bytes = arguments.iter().flat_map(|word| word.bytes().chain([0]));
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{:012x}", ((hash >> 48) ^ hash) & 0xffff_ffff_ffff)
}

/// Figures of a whole graduated run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Overall {
    /// Sum of operations per second over the load levels.
    pub score_per_s: f64,
    /// Sum of watts over the levels and active idle, in microwatts.
    pub sum_uw: Option<u64>,
    /// Their quotient: operations per second and watt.
    pub per_joule: Option<f64>,
    /// Active idle over 100 %.
    pub idle_fraction: Option<f64>,
    /// 1 for power in proportion to load, 0 for power that never changes.
    pub proportionality: Option<f64>,
    /// Levels that broke a rule.
    pub n_invalid: usize,
    /// Other levels than 100, 90 … 10 % and active idle: sums and quotients then compare with runs of the same levels only.
    pub is_partial: bool,
}

impl LoadRun {
    /// The level that asked for this share.
    pub fn at_share(&self, share: f64) -> Option<&Level> {
        self.levels.iter().find(|l| matches!(l.ask, Ask::Share(s) if (s - share).abs() < 1e-6))
    }

    /// Active idle.
    pub fn idle(&self) -> Option<&Level> {
        self.levels.iter().find(|l| l.ask == Ask::Idle)
    }

    /// Was the same asked several times? Then the levels are values over time (`repeated`), not parts of a sum.
    pub fn is_repeated(&self) -> bool {
        self.levels.iter().enumerate().any(|(at, l)| self.levels.iter().take(at).any(|before| before.ask == l.ask))
    }

    /// The sums. None where no load level ran, or one ran twice.
    pub fn overall(&self) -> Option<Overall> {
        let loads: Vec<&Level> = self.levels.iter().filter(|l| matches!(l.ask, Ask::Share(_))).collect();
        if loads.is_empty() || self.is_repeated() {
            return None;
        }
        let score_per_s = loads.iter().map(|l| l.per_s).sum();
        let sum_uw: Option<u64> = loads.iter().copied().chain(self.idle()).map(Level::mean_uw).sum();
        let (full, idle) = (self.at_share(1.0).and_then(Level::mean_uw), self.idle().and_then(Level::mean_uw));
        Some(Overall {
            score_per_s,
            sum_uw,
            per_joule: sum_uw.map(|uw| score_per_s / (uw as f64 / 1e6)),
            idle_fraction: full.zip(idle).map(|(full, idle)| idle as f64 / full as f64),
            proportionality: self.proportionality(),
            is_partial: !self.has_all_levels(),
            n_invalid: self.levels.iter().filter(|l| !l.broken_rules.is_empty()).count(),
        })
    }

    /// 100, 90 … 10 %, each once, and active idle.
    fn has_all_levels(&self) -> bool {
        let n_loads = self.levels.iter().filter(|l| matches!(l.ask, Ask::Share(_))).count();
        let tenths = (1..=10).all(|tenth| self.at_share(f64::from(tenth) / 10.0).is_some());
        n_loads == 10 && self.levels.len() == 11 && tenths && self.idle().is_some()
    }

    /// 1 - (A - 1/2) / (1/2), where A is the area under watts over watts at 100 %, by trapezoids (Ryckbosch, Polfliet and
    /// Eeckhout 2011, "Trends in Server Energy Proportionality").
    fn proportionality(&self) -> Option<f64> {
        let full = self.at_share(1.0)?.mean_uw()? as f64;
        let mut points: Vec<(f64, f64)> = vec![(0.0, self.idle()?.mean_uw()? as f64 / full)];
        for level in &self.levels {
            if let Ask::Share(share) = level.ask {
                points.push((share, level.mean_uw()? as f64 / full));
            }
        }
        points.arrange_by(|a, b| a.0.total_cmp(&b.0));
        let area: f64 = points.windows(2).map(|w| (w[1].0 - w[0].0) * (w[0].1 + w[1].1) / 2.0).sum();
        Some(1.0 - (area - 0.5) / 0.5)
    }
}

/// What so many more microwatts around the clock come to in a year, in kilowatt hours.
pub fn kwh_per_year(difference_uw: f64) -> f64 {
    difference_uw / 1e6 * HOURS_PER_YEAR / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::Label;
    use crate::samples::energy::{MeterSample, Total};

    fn level(ask: Ask, per_s: f64, watts: Option<u64>) -> Level {
        let meter = |w: u64| {
            let total =
                Total { covers: "wall".into(), of: vec!["x".into()], mean_uw: w * 1_000_000, ..Total::default() };
            let meter =
                MeterSample { label: Label::Measured, total: Some(total), ..MeterSample::unavailable("hwmon", "") };
            EnergySample { chosen: Some("hwmon".into()), meters: vec![meter], ..EnergySample::default() }
        };
        Level {
            ask,
            window: Window { start_at_ns: 0, end_at_ns: 1_000_000_000 },
            n_planned: 100,
            n_done: 100,
            per_s,
            cpu_ns: 5_000,
            system_ns: 1_000,
            energy: watts.map(meter),
            ..Level::default()
        }
    }

    #[test]
    fn the_sums_are_those_of_the_published_formula() {
        let run = |watts: [Option<u64>; 3]| LoadRun {
            levels: vec![
                level(Ask::Share(1.0), 1000.0, watts[0]),
                level(Ask::Share(0.5), 500.0, watts[1]),
                level(Ask::Idle, 0.0, watts[2]),
            ],
            ..LoadRun::default()
        };
        let all = run([Some(200), Some(100), Some(0)]).overall().unwrap();
        assert_eq!(all.sum_uw, None, "a meter that says nothing is no meter");
        let all = run([Some(200), Some(150), Some(100)]).overall().unwrap();
        assert_eq!((all.score_per_s, all.sum_uw), (1500.0, Some(450_000_000)));
        assert!((all.per_joule.unwrap() - 1500.0 / 450.0).abs() < 1e-9);
        assert!(all.is_partial, "three levels are not eleven");
        let tenths = (1..=10).rev().map(|tenth| level(Ask::Share(f64::from(tenth) / 10.0), 1.0, None));
        let mut whole = LoadRun { levels: tenths.chain([level(Ask::Idle, 0.0, None)]).collect(), ..LoadRun::default() };
        assert!(!whole.overall().unwrap().is_partial);
        whole.levels[9] = whole.levels[8].clone();
        assert!(whole.is_repeated() && whole.overall().is_none(), "20 % twice");
        assert_eq!(all.idle_fraction, Some(0.5));
        assert!((all.proportionality.unwrap() - 0.5).abs() < 1e-9, "{all:?}");
        assert_eq!(run([Some(200), None, Some(100)]).overall().unwrap().per_joule, None);
        assert!((kwh_per_year(10e6) - 87.66).abs() < 1e-9);
        let one = &run([None; 3]).levels[0];
        assert_eq!((one.cpu_ns_per_op(), one.system_ns_per_op(), one.per_joule()), (Some(5.0), Some(1.0), None));
        // 100 were planned and done in the end, and 1000 a second were done in the second that was recorded.
        let late = Level { n_done: 100_000, ..one.clone() };
        assert_eq!(late.cpu_ns_per_op(), Some(5.0), "what ended after the window is not in its CPU time");
        let printed = |value, better| Level { figure: Some(Figure { value, better }), ..level(Ask::Run, 1.0, Some(2)) };
        let (score, time) = (printed(9.0, Better::Higher), printed(9.0, Better::Lower));
        assert_eq!((score.per_joule(), score.cpu_ns_per_op(), score.achieved()), (Some(4.5), Some(5000.0), 9.0));
        assert_eq!((time.per_joule(), time.per_s), (None, 1.0), "seconds per watt say nothing");
        assert_eq!(Level { n_done: 0, ..one.clone() }.cpu_ns_per_op(), None);
    }
}
