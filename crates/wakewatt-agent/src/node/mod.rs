//! This node, for people and programs that ask for it: what `/` shows and `/api/v1/node` says. One set of types, so the two cannot differ.
//!
//! Made from the last reading when somebody asks, at most once a reading. What it has been over the last hours is [`past`].

pub mod past;
mod paying;
mod verdict;

use crate::confined::Guarded;
use crate::families::{Described, Found, Latencies};
use crate::paying::Payers;
pub use paying::{Paying, PayingRow};
use serde::Serialize;
use std::time::Instant;
use wakewatt_core::arrange::Arrange as _;
use wakewatt_core::samples::kernel_histogram::KernelHistogram;
use wakewatt_core::samples::wakes::WakeClass;
use wakewatt_core::units::LatencyLimit;
use wakewatt_core::watch::{Rates, Reading, Why};

/// The node now.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Node {
    /// Name of the host; none where it is not known.
    pub hostname: Option<String>,
    /// When it was read, in milliseconds since 1970.
    pub wall_ms: u64,
    /// When the agent started, in milliseconds since 1970.
    pub started_ms: u64,
    /// Over how long rates and shares are; none before the second reading.
    pub window_ns: Option<u64>,
    /// What the facts say, in one sentence.
    pub verdict: String,
    /// Findings that rest on facts alone, the heaviest first; judged every ten minutes.
    pub findings: Vec<Found>,
    /// When the findings were judged, in milliseconds since 1970; what they say of a minute is of the one before.
    pub judged_ms: Option<u64>,
    /// How many CPUs run.
    pub n_online: usize,
    /// Share of time that CPUs were busy, 0 to 1; mean over the CPUs.
    pub busy_ratio: Reading<f64>,
    /// Share of time that the hypervisor took, 0 to 1; mean over the CPUs.
    pub steal_ratio: Reading<f64>,
    /// Clock of the CPUs that ran, weighted by how much they ran.
    pub freq_khz: Reading<f64>,
    /// Idle states left per second, all CPUs together.
    pub wakeups_per_s: Reading<f64>,
    /// The idle states, shallowest first.
    pub states: Vec<State>,
    /// Watts of the machine, or why there are none.
    pub power_uw: Reading<f64>,
    /// Where the watts come from.
    pub power_source: Option<String>,
    /// Temperature of the hottest package, in milli-degrees Celsius.
    pub temperature_mc: Reading<i64>,
    /// The wake-up latency that idle states may cost on all CPUs.
    pub limit: Reading<LatencyLimit>,
    /// Programs that hold the limit, as far as could be seen.
    pub limit_holders: Vec<String>,
    /// Wake-up latency of the last one to two minutes.
    pub latency: Latency,
    /// Who paid for wake-ups in the last one to two minutes.
    pub payers: Paying,
    /// What is set.
    pub settings: Vec<Setting>,
    /// What is read, and what could not be.
    pub sources: Vec<Answering>,
    /// What the agent gave up after its start; empty where it does not run on.
    pub confined: Vec<Guarded>,
    /// What the agent itself costs.
    pub own: OwnCost,
}

/// An idle state over all CPUs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct State {
    /// Index of the state, as Linux counts.
    pub index: u32,
    /// Name of the state.
    pub name: String,
    /// How long leaving it takes, as the kernel's table claims.
    pub exit_latency_ns: Option<u64>,
    /// Shortest stay for which it is worth entering, as the table claims.
    pub target_residency_ns: Option<u64>,
    /// Share of time, 0 to 1; mean over the CPUs.
    pub share_ratio: Reading<f64>,
    /// Stays that ended per second, all CPUs together.
    pub wakeups_per_s: Reading<f64>,
    /// Of these, shorter than the target residency.
    pub above_per_s: Reading<f64>,
    /// Of these, long enough for a deeper state.
    pub below_per_s: Reading<f64>,
    /// CPUs on which it is switched off.
    pub n_disabled: u32,
}

/// Wake-up latency, or why there is none.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Latency {
    /// Why nothing is known.
    pub none_because: Option<String>,
    /// The time over which wake-ups were counted.
    pub window_ns: u64,
    /// By the state that was left and by who woke the CPU.
    pub rows: Vec<Woken>,
}

/// Wake-ups of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Woken {
    /// The state the CPU was leaving.
    pub state: String,
    /// Index of that state.
    pub index: u32,
    /// Who woke it.
    pub class: WakeClass,
    /// How many wake-ups.
    pub n: u64,
    /// Median; none with too few.
    pub p50_ns: Option<u64>,
    /// 99th percentile; none with too few.
    pub p99_ns: Option<u64>,
}

/// A setting of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Setting {
    /// Which setting, as the labels of `wakewatt_settings_info` call it.
    pub what: String,
    /// What it is.
    pub is: String,
}

/// A source of numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answering {
    /// Name of the source.
    pub source: String,
    /// Why it does not answer; none where it does.
    pub trouble: Option<String>,
}

/// What the agent costs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OwnCost {
    /// Version of the agent.
    pub version: String,
    /// CPU time since it started.
    pub cpu_ns: u64,
    /// Memory now; none where the kernel does not say.
    pub resident_bytes: Option<u64>,
    /// Interrupts of other CPUs that its reading caused.
    pub n_remote_interrupts: u64,
    /// How long the last reading took.
    pub reading_ns: u64,
}

/// What a node is made of.
pub(crate) struct Parts<'a> {
    /// The last two readings; none before the second.
    pub rates: Option<&'a Rates>,
    /// Settings and findings.
    pub described: &'a Described,
    /// Limit as last read.
    pub limit: Reading<LatencyLimit>,
    /// Sources with their troubles.
    pub sources: &'a [(&'static str, Option<String>)],
    /// Is the wake probe wanted?
    pub is_traced: bool,
    /// What the probe could not attach.
    pub trace_gaps: &'a [String],
    /// What was counted since `latencies_of_ns` ago.
    pub latencies: Latencies,
    /// How long ago that began.
    pub latencies_of_ns: u64,
    /// What the agent gave up.
    pub guards: &'a [Guarded],
    /// Who pays; none where nobody asked or it cannot be told.
    pub payers: Option<&'a Payers>,
    /// Did anybody ask who pays?
    pub is_by_payer: bool,
    /// When the numbers were read.
    pub read_at: Instant,
    /// What is known of the agent.
    pub own: OwnCost,
    /// When it was read, in milliseconds since 1970.
    pub wall_ms: u64,
    /// When the agent started, in milliseconds since 1970.
    pub started_ms: u64,
}

impl Node {
    pub(crate) fn of(parts: &Parts<'_>) -> Node {
        let described = parts.described;
        let mut node = Node {
            wall_ms: parts.wall_ms,
            started_ms: parts.started_ms,
            verdict: verdict::sentence(&described.findings),
            findings: described.findings.clone(),
            judged_ms: described.judged_ms,
            limit: parts.limit,
            latency: latency(parts),
            payers: paying::of(parts),
            settings: described
                .settings
                .iter()
                .map(|(what, is)| Setting { what: (*what).into(), is: is.as_str().into() })
                .collect(),
            sources: parts
                .sources
                .iter()
                .map(|(source, trouble)| Answering { source: (*source).into(), trouble: trouble.clone() })
                .chain(
                    parts
                        .trace_gaps
                        .iter()
                        .map(|gap| Answering { source: "trace, in part".into(), trouble: Some(gap.clone()) }),
                )
                .collect(),
            confined: parts.guards.to_vec(),
            own: parts.own.clone(),
            busy_ratio: Reading::Missing(Why::First),
            power_uw: Reading::Missing(Why::First),
            ..Node::default()
        };
        if let Some(rates) = parts.rates {
            node.take(rates, described);
        }
        node
    }

    fn take(&mut self, rates: &Rates, described: &Described) {
        let (machine, summary) = (&rates.machine, &rates.machine.summary);
        self.hostname.clone_from(&rates.hostname);
        self.window_ns = Some(rates.window.length_ns());
        self.n_online = machine.n_online;
        (self.busy_ratio, self.steal_ratio) = (summary.busy_ratio, summary.steal_ratio);
        (self.freq_khz, self.wakeups_per_s) = (summary.freq_khz, summary.wakeups_per_s);
        self.power_uw = machine.power_uw;
        self.power_source.clone_from(&machine.power_source);
        self.temperature_mc = machine.temperature_mc;
        self.limit_holders.clone_from(&machine.limit_holders);
        self.states = summary
            .idle
            .iter()
            .map(|rate| {
                let is_it = |index: u32, name: &str| index == rate.index && name == rate.name;
                let info = rates.states.iter().find(|info| is_it(info.index, &info.name));
                let disabled = described.disabled.iter().find(|(name, index, _)| is_it(*index, name));
                State {
                    index: rate.index,
                    name: rate.name.clone(),
                    exit_latency_ns: info.and_then(|info| info.exit_latency_ns),
                    target_residency_ns: info.and_then(|info| info.target_residency_ns),
                    share_ratio: rate.share_ratio,
                    wakeups_per_s: rate.wakeups_per_s,
                    above_per_s: rate.above_per_s,
                    below_per_s: rate.below_per_s,
                    n_disabled: disabled.map_or(0, |(_, _, n)| *n),
                }
            })
            .collect();
    }
}

/// Why wake-ups are not traced; none where they are.
fn not_traced(parts: &Parts<'_>) -> Option<String> {
    if !parts.is_traced {
        return Some("the agent runs without --trace".into());
    }
    trouble(parts, "trace")
}

/// Why a source does not answer.
fn trouble(parts: &Parts<'_>, source: &str) -> Option<String> {
    parts.sources.iter().find(|(name, _)| *name == source).and_then(|(_, trouble)| trouble.clone())
}

fn latency(parts: &Parts<'_>) -> Latency {
    let none_because = not_traced(parts);
    let of = |(key, counted): (&(String, u32, WakeClass), &KernelHistogram)| {
        let found = counted.distribution();
        Woken {
            state: key.0.clone(),
            index: key.1,
            class: key.2,
            n: counted.n,
            p50_ns: found.p50_ns(),
            p99_ns: found.p99_ns(),
        }
    };
    // A busy CPU was in no idle state: waking on it is the scheduler's matter.
    let rows = parts.latencies.iter().filter(|(key, counted)| key.2 != WakeClass::Busy && counted.n > 0);
    let mut rows: Vec<Woken> = rows.map(of).collect();
    rows.arrange_by_key(|row| (row.index, row.class));
    Latency { none_because, window_ns: parts.latencies_of_ns, rows }
}
