//! Everything that was measured, in one place: evidence and run files hold this and no list of their own.
//!
//! Whoever has something to say of every kind of sample (tables, comparisons, the page) takes it apart with all its
//! members named, so that the compiler asks there what is to be done with a new kind.

use super::cores::CoresSample;
use super::disk::DiskSample;
use super::energy::EnergySample;
use super::experiment::ExperimentRun;
use super::icmp::IcmpSample;
use super::load::LoadRun;
use super::memory::MemorySample;
use super::network::NetworkSample;
use super::replayed::Replayed;
use super::speed::SpeedSample;
use super::state_cost::StateCosts;
use super::study::Conclusions;
use super::timeline::Timeline;
use super::traced::Traced;
use super::wakeup::WakeupSample;
use super::work::WorkSample;
use serde::{Deserialize, Serialize};

/// Everything that was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Samples {
    /// Wake-ups measured with the machine as it was found.
    #[serde(default)]
    pub wakeups: Vec<WakeupSample>,
    /// Round trips measured with the machine as it was found; in a run file peers other than loopback are masked.
    #[serde(default)]
    pub network: Vec<NetworkSample>,
    /// Memory latency and bandwidth, between nodes where there are several.
    #[serde(default)]
    pub memory: Option<MemorySample>,
    /// How long a cache line takes between CPUs.
    #[serde(default)]
    pub cores: Vec<CoresSample>,
    /// Disk reads measured with the machine as it was found.
    #[serde(default)]
    pub disk: Vec<DiskSample>,
    /// Disk reads with and without sleep, if that ran.
    #[serde(default)]
    pub disk_experiment: Option<ExperimentRun>,
    /// Pings, divided along their way; in a run file peers are masked.
    #[serde(default)]
    pub icmp: Vec<IcmpSample>,
    /// From idle to full speed, with the machine as it was found.
    #[serde(default)]
    pub speed: Vec<SpeedSample>,
    /// What leaving each idle state costs, one state allowed at a time, if it was measured.
    #[serde(default)]
    pub idle_states: Vec<StateCosts>,
    /// Instructions per cycle of the machine's own work, where a PMU counts them.
    #[serde(default)]
    pub work: Option<WorkSample>,
    /// Wake-ups of the machine's own work, by idle state, if it could be traced.
    #[serde(default)]
    pub trace: Option<Traced>,
    /// The idle experiment, if it ran.
    #[serde(default)]
    pub experiment: Option<ExperimentRun>,
    /// What follows from it, where it was one over settings with a plan.
    #[serde(default)]
    pub conclusions: Option<Conclusions>,
    /// Experiments beside the idle experiment: `doctor`'s on the frequency governor, and those the user asked for.
    #[serde(default)]
    pub experiments: Vec<ExperimentRun>,
    /// Load runs, in the order they ran; runs of one kind are shown side by side.
    #[serde(default)]
    pub load: Vec<LoadRun>,
    /// What the meters said while nothing in particular was going on.
    #[serde(default)]
    pub energy: Vec<EnergySample>,
    /// Values over time with the moments of change marked.
    #[serde(default)]
    pub timelines: Vec<Timeline>,
    /// Recorded idle time beside what it would have been: modelled, never measured.
    #[serde(default)]
    pub replays: Vec<Replayed>,
}

impl Samples {
    /// When the first of it was measured, by the monotonic clock; none of what has no window.
    pub fn begun_at_ns(&self) -> Option<u64> {
        let blocks = self.all_experiments().flat_map(|run| &run.blocks).map(|b| b.window);
        let levels = self.load.iter().flat_map(|run| &run.levels).map(|l| l.window);
        let windows = self.wakeups.iter().map(|s| s.window).chain(self.network.iter().map(|s| s.window));
        let windows = windows.chain(self.disk.iter().map(|s| s.window)).chain(blocks).chain(levels);
        windows.map(|w| w.start_at_ns).filter(|at| *at > 0).min()
    }

    /// Every experiment: the idle experiment first, then disk reads, then the others.
    pub fn all_experiments(&self) -> impl Iterator<Item = &ExperimentRun> {
        self.experiment.iter().chain(&self.disk_experiment).chain(&self.experiments)
    }
}
