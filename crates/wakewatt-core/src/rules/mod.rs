//! Rules turn evidence into findings. One file per rule: an essay, a check, a remedy, tests.
//!
//! A rule answers yes (with a finding), no, or cannot tell and why; the third answer is what makes the other two
//! believable. A finding never mixes what was measured here with what is predicted from facts. To add a rule: write
//! the file, add one line to [`RULES`].

use crate::arrange::Arrange as _;
use crate::budget;
use crate::cpuset::CpuSet;
use crate::evidence::Evidence;
use crate::fact::{Gap, GapKind, PerCpu};
use crate::facts::Snapshot;
use crate::facts::idle::Idle;
use crate::facts::pm_qos::{GLOBAL, cpu_limit_path};
use crate::plan::{self, Plan, Step};
use crate::samples::stated::Stated;
use crate::units::LatencyLimit;
use exclusions::Assertion;
use extent::Things;
use serde::Serialize;
use try_this::TryThis;
use wakewatt_words::{say, word};

/// What a finding costs, and how we know.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cost {
    /// How the cost is known: measured, predicted or not at all.
    pub basis: CostBasis,
    /// Nanoseconds added to one wake-up or round trip, for ranking; none where it is not a latency or not known.
    pub latency_ns: Option<f64>,
    /// Share of throughput or speed lost (0.3 = 30 %), where that is what it costs.
    pub throughput_ratio: Option<f64>,
    /// In words, with numbers and their intervals.
    pub text: String,
}

/// How a cost is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CostBasis {
    /// Measured on this machine in this run.
    Measured,
    /// Computed from what the host claims.
    Predicted,
    /// Nobody knows what it costs here.
    Unknown,
}

impl Cost {
    /// Nothing is known about the size.
    pub fn unknown(text: impl Into<String>) -> Cost {
        Cost { basis: CostBasis::Unknown, latency_ns: None, throughput_ratio: None, text: text.into() }
    }
    /// Computed from facts, a latency.
    pub fn predicted_ns(latency_ns: f64, text: impl Into<String>) -> Cost {
        Cost { basis: CostBasis::Predicted, latency_ns: Some(latency_ns), throughput_ratio: None, text: text.into() }
    }
    /// Computed from facts, a share of speed.
    pub fn predicted_ratio(ratio: f64, text: impl Into<String>) -> Cost {
        Cost { basis: CostBasis::Predicted, latency_ns: None, throughput_ratio: Some(ratio), text: text.into() }
    }
    /// An effect of an experiment on a latency, as large as it may be stated.
    pub fn stated_ns(latency: Stated, text: impl Into<String>) -> Cost {
        Cost { basis: CostBasis::Measured, latency_ns: latency.number(), throughput_ratio: None, text: text.into() }
    }
    /// Measured here, a latency.
    pub fn measured_ns(latency_ns: f64, text: impl Into<String>) -> Cost {
        Cost { basis: CostBasis::Measured, latency_ns: Some(latency_ns), throughput_ratio: None, text: text.into() }
    }
}

/// How sure the rule is that this is so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// The host says so itself, or the experiment proved it.
    High,
    /// Follows from facts by a rule with known exceptions.
    Medium,
    /// No more than a hint.
    Low,
}

/// Does it demand action?
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// It costs something now.
    Problem,
    /// May cost something, depending on the workload.
    Risk,
    /// Worth knowing when reading the other findings.
    Note,
}

/// A fact a finding rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Basis {
    /// What the file says.
    pub says: String,
    /// Where: a path, a register, a measurement.
    pub path: String,
}

/// What a rule concluded.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// Stable id of the rule: `rule.deep-idle-vs-latency`.
    pub id: String,
    /// The finding in one sentence.
    pub title: String,
    /// Problem, risk or note.
    pub weight: Weight,
    /// What it costs, and how that is known.
    pub cost: Cost,
    /// How sure the rule is.
    pub confidence: Confidence,
    /// What it rests on.
    pub evidence: Vec<Basis>,
    /// What to do, in words.
    pub remedy: String,
    /// The same as a plan, where wakewatt can carry it out or print it.
    pub plan: Option<Plan>,
    /// What the remedy costs in turn.
    pub price: String,
    /// How to check that it helped.
    pub verify: String,
}

/// A rule's answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum Answer {
    /// It is so; the finding says more.
    Yes(Box<Finding>),
    /// It is not so, because.
    No {
        /// Why it is not so.
        because: String,
    },
    /// The question means nothing on this machine.
    DoesNotApply {
        /// What the machine would have to be.
        because: String,
    },
    /// There is not enough evidence.
    CannotTell {
        /// What is missing.
        because: String,
        /// What would help to tell.
        try_this: TryThis,
    },
}

/// One rule.
pub trait Rule: Sync {
    /// Stable id: `rule.` and the file name with dashes.
    fn id(&self) -> &'static str;
    /// The question it answers, one line.
    fn question(&self) -> &'static str;
    /// Where the question means anything; all must hold, and what is not known does not stand in the way.
    fn applies(&self) -> &'static [Where] {
        &[]
    }
    /// Looks, on a machine to which the rule applies.
    fn check(&self, evidence: &Evidence) -> Answer;
    /// The answer.
    fn answer(&self, evidence: &Evidence) -> Answer {
        match self.applies().iter().find(|place| place.holds(&evidence.facts) == Some(false)) {
            Some(place) => Answer::DoesNotApply { because: place.words().into() },
            None => self.check(evidence),
        }
    }
    /// Is what it finds, unmeasured, a matter of choice between latency and watts, which a healthy machine may have either
    /// way? Else it is something to mend, as is a finding of such a rule that weighs as a problem: uneven values, and values
    /// below those of the boot.
    fn is_choice(&self) -> bool {
        false
    }
    /// What its finding takes for granted of the machine, where it says yes; held against the others' in [`exclusions`].
    fn takes_for_granted(&self, _: &Evidence) -> Vec<Assertion> {
        Vec::new()
    }
    /// Is what it finds paid for in latency? Else in watts, which whoever needs latency pays gladly.
    fn costs_latency(&self) -> bool {
        true
    }
}

/// Is this finding of a rule a matter of choice? See [`Rule::is_choice`].
pub fn is_choice(id: &str, weight: Weight) -> bool {
    weight != Weight::Problem && RULES.iter().any(|rule| rule.id() == id && rule.is_choice())
}

/// The same by id, see [`Rule::costs_latency`].
pub fn costs_latency(id: &str) -> bool {
    RULES.iter().any(|rule| rule.id() == id && rule.costs_latency())
}

/// One rule's answer, with its name.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ruling {
    /// Id of the rule.
    pub rule: String,
    /// The question the rule asks.
    pub question: String,
    /// The answer to the question.
    #[serde(flatten)]
    pub answer: Answer,
}

impl Answer {
    /// It is not so.
    fn no(because: impl Into<String>) -> Answer {
        Answer::No { because: because.into() }
    }
    /// Not enough evidence.
    fn cannot_tell(because: impl Into<String>, try_this: impl Into<TryThis>) -> Answer {
        Answer::CannotTell { because: because.into(), try_this: try_this.into() }
    }
    /// The fact is a hole: says which, and what would fill it.
    fn gap(gap: &Gap) -> Answer {
        let try_this = match gap.kind {
            GapKind::Denied => word!("run wakewatt doctor as root").into(),
            GapKind::NotRead => word!("run wakewatt doctor, which reads every topic").into(),
            GapKind::NotRecorded => word!("record the host with wakewatt capture and ask again").into(),
            GapKind::Absent => TryThis::NothingHere,
            GapKind::Malformed | GapKind::Failed => word!("look at the file by hand and report it").into(),
        };
        Answer::cannot_tell(gap.to_string(), try_this)
    }
}

impl Finding {
    /// A finding without evidence yet; the title is one sentence.
    fn new(rule: &dyn Rule, weight: Weight, confidence: Confidence, title: impl Into<String>, cost: Cost) -> Finding {
        Finding {
            id: rule.id().into(),
            title: title.into(),
            weight,
            cost,
            confidence,
            evidence: Vec::new(),
            remedy: String::new(),
            plan: None,
            price: String::new(),
            verify: String::new(),
        }
    }
    /// It rests on this: where, and what it says there.
    fn on(mut self, path: impl Into<String>, says: impl ToString) -> Finding {
        self.evidence.push(Basis { says: says.to_string(), path: path.into() });
        self
    }
    /// What to do, what that costs, how to check.
    fn remedy(mut self, what: impl Into<String>, price: impl Into<String>, verify: impl Into<String>) -> Finding {
        (self.remedy, self.price, self.verify) = (what.into(), price.into(), verify.into());
        self
    }
    /// One more step of the plan: the setting, where, its new value, the file that shows it, and why.
    fn step(
        mut self,
        knob: &str,
        on: Option<String>,
        to: impl Into<String>,
        path: impl Into<String>,
        reason: impl Into<String>,
    ) -> Finding {
        let step = Step { knob: knob.into(), on, to: to.into(), path: path.into(), reason: reason.into() };
        let mut plan = self.plan.take().unwrap_or_default();
        plan.push(step);
        self.plan = Some(plan).filter(|plan| !plan.steps().is_empty());
        self
    }
    /// One more step of the plan: a latency budget for all CPUs, where it would not poll unasked. In a container without
    /// the device it is a value of every CPU.
    fn budget(self, facts: &Snapshot, limit: LatencyLimit, reason: impl Into<String>) -> Finding {
        let has_no_device = facts.qos.global.gap().is_some_and(|gap| gap.kind == GapKind::Absent);
        if would_poll(limit, &facts.idle) || (has_no_device && facts.qos.per_cpu.is_unknown()) {
            self
        } else if has_no_device {
            self.step("qos.cpu", None, limit.to_string(), cpu_limit_path(0), reason)
        } else {
            self.step("qos.global", None, limit.to_string(), GLOBAL, reason)
        }
    }
    /// One more step of the plan: a kernel parameter for the next boots.
    fn boot(self, parameter: impl Into<String>, reason: impl Into<String>) -> Finding {
        self.step(plan::BOOT, None, parameter, "/proc/cmdline", reason)
    }
    /// The answer.
    fn yes(self) -> Answer {
        Answer::Yes(Box::new(self))
    }
}

/// CPUs as a step says them: none where all that run are meant, a package where it is one, else the list.
fn on_cpus(facts: &Snapshot, cpus: &CpuSet) -> Option<String> {
    let running: CpuSet = facts.cpus.running().collect();
    if running.minus(cpus).is_empty() {
        return None;
    }
    let is_it = |(_, all): &&(u32, CpuSet)| all.and(&running) == *cpus;
    let packages = facts.topology.packages();
    Some(packages.iter().find(is_it).map_or_else(|| format!("cpus:{cpus}"), |(id, _)| format!("package:{id}")))
}

/// Would this limit leave some CPU without any sleeping state, though it does not say poll?
fn would_poll(limit: LatencyLimit, idle: &Idle) -> bool {
    limit != LatencyLimit::Poll && budget::resolve(limit, idle).iter().any(|r| r.is_polling)
}

/// The answer of a rule that leaves the question to another one: no where that one finds something, what that one cannot
/// tell where it cannot, and none, so that the rule answers itself, where the other has nothing to say.
fn deferred(to: &dyn Rule, evidence: &Evidence, because: &str) -> Option<Answer> {
    match to.answer(evidence) {
        Answer::Yes(_) => Some(Answer::no(because)),
        open @ Answer::CannotTell { .. } => Some(open),
        Answer::No { .. } | Answer::DoesNotApply { .. } => None,
    }
}

/// A frequency as a step says it, exact as well.
fn khz_word(khz: u64) -> String {
    if khz.is_multiple_of(1000) { format!("{}MHz", khz / 1000) } else { format!("{khz}kHz") }
}

/// 0.256 as `26 %`; small shares keep a digit.
fn percent(ratio: f64) -> String {
    if ratio < 0.1 { format!("{:.1} %", ratio * 100.0) } else { format!("{:.0} %", ratio * 100.0) }
}

/// One sentence behind another.
fn joined(first: &str, second: &str) -> String {
    say!("{first} {second}")
}

/// The sum of a counter over all CPUs.
fn sum(counts: &PerCpu<u64>) -> u64 {
    counts.known().fold(0, |all, (cpus, n)| all.saturating_add(n.saturating_mul(cpus.len() as u64)))
}

pub(crate) mod applies;
pub mod exclusions;
pub(crate) mod extent;
pub mod first;
pub mod try_this;
pub(crate) mod measured;
pub mod essays;
mod deep_idle_vs_latency;
mod disk_sleep;
mod tail_reversal;
mod who_pays_for_idle;
mod polling_by_accident;
mod latency_limit_held;
mod per_cpu_resume_limits;
mod processor_max_cstate_ignored;
mod arguments_ignored;
mod intel_idle_off_acpi_back;
mod no_deep_state;
mod bios_disabled_states;
mod idle_disabled_by_user;
mod idle_table_differs;
mod c1_demotion;
mod c1e_promotion;
mod package_limit;
mod package_c6;
mod idle_boot_arguments;
mod no_idle_driver;
mod governor_misses;
mod history_contradicts_present;
mod idle_rejected;
mod ladder_governor;
mod tick_never_stops;
mod haltpoll_guest;
mod exit_latency_claims;
mod frequency_ramp;
mod governor;
mod frequency_driver;
mod hwp_hidden;
mod max_below_hardware;
mod bios_limit;
mod min_frequency;
mod turbo_off;
mod epp;
mod epb;
mod hwp_dynamic_boost;
mod governor_tunables;
mod uncore_window;
mod efficiency_latency_control;
mod throttling;
mod power_limit;
mod prochot;
mod below_lowest;
mod never_reached_under_load;
mod dimm_below_rated;
mod channels_uneven;
mod two_dimms_per_channel;
mod memory_below_modules;
mod random_placement_cost;
mod numa_remote_share;
mod snc_nps;
mod one_node;
mod memoryless_nodes;
mod memory_only_nodes;
mod prefetchers;
mod zone_reclaim;
mod busy_but_stalled;
mod cfs_quota;
mod run_queue_contention;
mod load_above_cpus_while_idle;
mod psi_pressure;
mod high_system_share;
mod steal;
mod smt_contention;
mod unequal_cores;
mod irq_affinity;
mod nic_coalescing;
mod pcie_aspm;
mod nvme_apst;
mod clocksource;
mod isolated_cpus;
mod tuning_daemons;
mod guest_hypervisor;
mod container_masked;
mod known_kernel_changes;

pub use applies::Where;
pub use arguments_ignored::cannot_act;
pub(crate) use known_kernel_changes::words as kernel_change_words;
pub use known_kernel_changes::{Change, between as kernel_changes_between};

/// Every rule, in the order of docs/ref/rules.md: idle, frequency, memory, look-alikes, neighbourhood, kernel.
pub const RULES: &[&dyn Rule] = &[
    &deep_idle_vs_latency::DeepIdleVsLatency,
    &disk_sleep::DiskSleep,
    &tail_reversal::TailReversal,
    &who_pays_for_idle::WhoPaysForIdle,
    &polling_by_accident::PollingByAccident,
    &latency_limit_held::LatencyLimitHeld,
    &per_cpu_resume_limits::PerCpuResumeLimits,
    &processor_max_cstate_ignored::ProcessorMaxCstateIgnored,
    &arguments_ignored::ArgumentsIgnored,
    &intel_idle_off_acpi_back::IntelIdleOffAcpiBack,
    &no_deep_state::NoDeepState,
    &bios_disabled_states::BiosDisabledStates,
    &idle_disabled_by_user::IdleDisabledByUser,
    &idle_table_differs::IdleTableDiffers,
    &c1_demotion::C1Demotion,
    &c1e_promotion::C1ePromotion,
    &package_limit::PackageLimit,
    &package_c6::PackageC6,
    &idle_boot_arguments::IdleBootArguments,
    &no_idle_driver::NoIdleDriver,
    &governor_misses::GovernorMisses,
    &history_contradicts_present::HistoryContradictsPresent,
    &idle_rejected::IdleRejected,
    &ladder_governor::LadderGovernor,
    &tick_never_stops::TickNeverStops,
    &haltpoll_guest::HaltpollGuest,
    &exit_latency_claims::ExitLatencyClaims,
    &frequency_ramp::FrequencyRamp,
    &governor::Governor,
    &frequency_driver::FrequencyDriver,
    &hwp_hidden::HwpHidden,
    &max_below_hardware::MaxBelowHardware,
    &bios_limit::BiosLimit,
    &min_frequency::MinFrequency,
    &turbo_off::TurboOff,
    &epp::Epp,
    &epb::Epb,
    &hwp_dynamic_boost::HwpDynamicBoost,
    &governor_tunables::GovernorTunables,
    &uncore_window::UncoreWindow,
    &efficiency_latency_control::EfficiencyLatencyControl,
    &throttling::Throttling,
    &power_limit::PowerLimit,
    &prochot::Prochot,
    &below_lowest::BelowLowest,
    &never_reached_under_load::NeverReachedUnderLoad,
    &dimm_below_rated::DimmBelowRated,
    &channels_uneven::ChannelsUneven,
    &two_dimms_per_channel::TwoDimmsPerChannel,
    &memory_below_modules::MemoryBelowModules,
    &random_placement_cost::RandomPlacementCost,
    &numa_remote_share::NumaRemoteShare,
    &snc_nps::SncNps,
    &one_node::OneNode,
    &memoryless_nodes::MemorylessNodes,
    &memory_only_nodes::MemoryOnlyNodes,
    &prefetchers::Prefetchers,
    &zone_reclaim::ZoneReclaim,
    &busy_but_stalled::BusyButStalled,
    &cfs_quota::CfsQuota,
    &run_queue_contention::RunQueueContention,
    &load_above_cpus_while_idle::LoadAboveCpusWhileIdle,
    &psi_pressure::PsiPressure,
    &high_system_share::HighSystemShare,
    &steal::Steal,
    &smt_contention::SmtContention,
    &unequal_cores::UnequalCores,
    &irq_affinity::IrqAffinity,
    &nic_coalescing::NicCoalescing,
    &pcie_aspm::PcieAspm,
    &nvme_apst::NvmeApst,
    &clocksource::Clocksource,
    &isolated_cpus::IsolatedCpus,
    &tuning_daemons::TuningDaemons,
    &guest_hypervisor::GuestHypervisor,
    &container_masked::ContainerMasked,
    &known_kernel_changes::KnownKernelChanges,
];

/// Asks every rule and ranks the findings: problems before risks before notes, then measured before predicted before
/// unknown, then by size; before them all stands the one to begin with ([`first`]). The rulings that are not findings follow in
/// the order of the list. On a machine that was too busy to be measured no plan is offered whose cost is not predicted.
pub fn judge(evidence: &Evidence) -> Vec<Ruling> {
    let too_busy = measured::too_busy(evidence);
    let ask = |rule: &&dyn Rule| Ruling {
        rule: rule.id().into(),
        question: rule.question().into(),
        answer: measured::offered(rule.answer(evidence), too_busy.as_deref()),
    };
    let mut rulings: Vec<Ruling> = RULES.iter().map(ask).collect();
    let size = |cost: &Cost| cost.latency_ns.unwrap_or(0.0).max(cost.throughput_ratio.unwrap_or(0.0) * 1e6);
    rulings.arrange_by(|a, b| match (&a.answer, &b.answer) {
        (Answer::Yes(x), Answer::Yes(y)) => (x.weight, x.cost.basis)
            .cmp(&(y.weight, y.cost.basis))
            .then(size(&y.cost).total_cmp(&size(&x.cost)))
            .then(x.confidence.cmp(&y.confidence)),
        (Answer::Yes(_), _) => std::cmp::Ordering::Less,
        (_, Answer::Yes(_)) => std::cmp::Ordering::Greater,
        _ => std::cmp::Ordering::Equal,
    });
    if let Some((at, ..)) = first::first(&rulings) {
        rulings[..=at].rotate_right(1);
    }
    rulings
}

#[cfg(test)]
pub(crate) mod testing;
