//! Evidence is what a rule sees: facts and samples of one host, and what could not be had.

use crate::facts::Snapshot;
use crate::samples::busy::QuietWait;
use crate::samples::cores::CoresSample;
use crate::samples::disk::DiskSample;
use crate::samples::energy::EnergySample;
use crate::samples::experiment::ExperimentRun;
use crate::samples::icmp::IcmpSample;
use crate::samples::load::LoadRun;
use crate::samples::memory::MemorySample;
use crate::samples::network::NetworkSample;
use crate::samples::not_done::NotDone;
use crate::samples::speed::SpeedSample;
use crate::samples::state_cost::StateCosts;
use crate::samples::study::Conclusions;
use crate::samples::timeline::Timeline;
use crate::samples::traced::Traced;
use crate::samples::wakeup::WakeupSample;
use crate::samples::work::WorkSample;
use serde::Serialize;

/// All that is known when the rules are asked.
#[derive(Clone, Debug, Default, Serialize, schemars::JsonSchema)]
pub struct Evidence {
    /// Facts.
    pub facts: Snapshot,
    /// Wake-ups measured with the machine as it was found.
    pub wakeups: Vec<WakeupSample>,
    /// Round trips measured with the machine as it was found.
    pub network: Vec<NetworkSample>,
    /// Memory latency and bandwidth, between nodes where there are several.
    pub memory: Option<MemorySample>,
    /// How long a cache line takes between CPUs.
    pub cores: Vec<CoresSample>,
    /// Disk reads measured with the machine as it was found.
    pub disk: Vec<DiskSample>,
    /// Disk reads with and without sleep, if that ran.
    pub disk_experiment: Option<ExperimentRun>,
    /// Pings, divided along their way.
    pub icmp: Vec<IcmpSample>,
    /// From idle to full speed, with the machine as it was found.
    pub speed: Vec<SpeedSample>,
    /// What leaving each idle state costs, one state allowed at a time, if it was measured.
    pub idle_states: Vec<StateCosts>,
    /// Instructions per cycle of the machine's own work, where a PMU counts them.
    pub work: Option<WorkSample>,
    /// Wake-ups of the machine's own work, by idle state, if it could be traced.
    pub trace: Option<Traced>,
    /// The idle experiment, if it ran.
    pub experiment: Option<ExperimentRun>,
    /// What follows from it, where it was one over settings with a plan.
    pub conclusions: Option<Conclusions>,
    /// Experiments the user asked for, beside the idle experiment.
    pub experiments: Vec<ExperimentRun>,
    /// Load runs, in the order they ran; runs of one kind are shown side by side.
    pub load: Vec<LoadRun>,
    /// What the meters said while nothing in particular was going on.
    pub energy: Vec<EnergySample>,
    /// Values over time with the moments of change marked.
    pub timelines: Vec<Timeline>,
    /// Why doctor ran the experiments it ran, what matters most first.
    pub chosen_because: Vec<String>,
    /// What was seen while waiting for a quiet spell, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet_wait: Option<QuietWait>,
    /// What was not looked at, and why: "experiment: needs root".
    pub not_done: Vec<NotDone>,
}

impl Evidence {
    /// The experiment on idle states. One that the user planned compares something else, and says itself what it shows.
    pub fn idle_experiment(&self) -> Option<&ExperimentRun> {
        self.experiment.as_ref().filter(|_| self.conclusions.is_none())
    }
}
