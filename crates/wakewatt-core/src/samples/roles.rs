//! What each metric is to an experiment: the primary one, its tail, or one beside them. Follows from their ids, which are
//! declared before it runs.

use super::experiment::ExperimentRun;
use super::tail::tail_of;

/// What a metric is to an experiment, declared before it ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The looks decide by it.
    Primary,
    /// Its tail, which must not get worse.
    Tail,
    /// Everything else.
    Secondary,
}

impl ExperimentRun {
    /// Where the tail of the primary metric stands among the metrics.
    pub fn tail_at(&self) -> Option<usize> {
        self.metric_at(&tail_of(&self.metrics.first()?.id)?)
    }

    /// What this metric is to the experiment.
    pub fn role(&self, metric: &str) -> Role {
        match self.metric_at(metric) {
            Some(0) => Role::Primary,
            Some(at) if Some(at) == self.tail_at() => Role::Tail,
            _ => Role::Secondary,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::experiment::Metric;

    #[test]
    fn the_tail_of_the_primary_metric_is_declared_with_it() {
        let run = |ids: &[&str]| ExperimentRun {
            metrics: ids.iter().map(|id| Metric::latency(*id, *id)).collect(),
            ..ExperimentRun::default()
        };
        let wake = run(&["wakeup.eventfd.p50", "wakeup.timer.p99", "wakeup.eventfd.p99"]);
        let role = |id| wake.role(id);
        assert_eq!(role("wakeup.eventfd.p50"), Role::Primary);
        assert_eq!(role("wakeup.eventfd.p99"), Role::Tail);
        assert_eq!((role("wakeup.timer.p99"), role("unknown")), (Role::Secondary, Role::Secondary));
        assert_eq!(run(&["steps.50.p99", "steps.50.p50"]).tail_at(), None, "who declares a tail has no other");
    }
}
