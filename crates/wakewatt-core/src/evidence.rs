//! Evidence is what a rule sees: facts and samples of one host, and what could not be had.

use crate::facts::Snapshot;
use crate::samples::Samples;
use crate::samples::busy::QuietWait;
use crate::samples::experiment::ExperimentRun;
use crate::samples::not_done::NotDone;
use crate::samples::state_cost::MeasuredExit;
use serde::Serialize;

/// All that is known when the rules are asked.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// What the host said: the facts, topic by topic.
    pub facts: Snapshot,
    /// What was measured.
    #[serde(flatten)]
    pub samples: Samples,
    /// Why doctor ran the experiments it ran, what matters most first.
    pub chosen_because: Vec<String>,
    /// What was seen while waiting for a quiet spell, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet_wait: Option<QuietWait>,
    /// What was not looked at, and why: "experiment: needs root".
    pub not_done: Vec<NotDone>,
    /// When the run was saved, in seconds since 1970; none where it is of no file.
    #[serde(skip)]
    pub made_at_s: Option<u64>,
}

impl Evidence {
    /// Of these samples, without a single fact.
    pub fn of(samples: Samples) -> Evidence {
        Evidence { samples, ..Evidence::default() }
    }

    /// When it was measured: by the calendar where that is known, because the clocks of two boots and of two machines begin anywhere.
    pub fn begun_at_ns(&self) -> Option<u64> {
        let saved = self.made_at_s.map(|s| s.saturating_mul(1_000_000_000));
        saved.or_else(|| self.samples.begun_at_ns())
    }

    /// What leaving an idle state was measured to cost on this machine, on the first CPU where it was.
    pub fn measured_exit(&self, state: &str) -> Option<MeasuredExit> {
        self.samples.idle_states.iter().find_map(|costs| costs.measured_exit(state))
    }

    /// The experiment on idle states. One that the user planned compares something else, and says itself what it shows.
    pub fn idle_experiment(&self) -> Option<&ExperimentRun> {
        self.samples.experiment.as_ref().filter(|_| self.samples.conclusions.is_none())
    }
}
