//! Why runs are not joined, and why one of them takes no part.

use super::Key;
use crate::samples::rejection::Rejection;
use serde::Serialize;
use wakewatt_words::{say, word};

/// A run that takes no part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOut {
    /// Name of its run file.
    pub name: String,
    /// The reason why it takes no part.
    pub why: WhyLeftOut,
}

/// Why a run takes no part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WhyLeftOut {
    /// It holds no experiment.
    #[error("{}", word!("it holds no experiment"))]
    NoExperiment,
    /// No round in which two arms counted.
    #[error("{}", say!("no round of it has two blocks that counted{}", rejected.as_ref().map_or(String::new(), |why| format!(" ({why})"))))]
    NoRounds {
        /// Why the first of its blocks did not count.
        rejected: Option<Rejection>,
    },
    /// The same blocks are in another file already.
    #[error("{}", say!("it is the same run as {run}"))]
    SameAs {
        /// The file that is taken.
        run: String,
    },
}

/// Why nothing is joined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotReplicated {
    /// No run holds an experiment.
    #[error("{}", word!("no run holds an experiment; make some with: wakewatt experiment PLAN --save FILE, or doctor --save FILE"))]
    NoExperiment,
    /// One run alone.
    #[error("{}", say!("only one session can be used{}; one session says nothing of the next: run it again", reasons(left_out)))]
    OneSession {
        /// The others, with the reasons.
        left_out: Vec<LeftOut>,
    },
    /// Different plans.
    #[error("{}", say!("{a} ran {a_plan} and {b} {b_plan}: different questions have no answer together; give runs of one plan"))]
    OtherPlan {
        /// A file.
        a: String,
        /// Its plan.
        a_plan: String,
        /// The file that differs.
        b: String,
        /// Its plan.
        b_plan: String,
    },
    /// Different arms.
    #[error("{}", say!("{a} compared {a_arms} and {b} {b_arms}: give runs with the same arms (was one left out on one of the hosts?)"))]
    OtherArms {
        /// A file.
        a: String,
        /// Its arms.
        a_arms: String,
        /// The file that differs.
        b: String,
        /// Its arms.
        b_arms: String,
    },
    /// Different primary metrics.
    #[error("{}", say!("{a} decided by {a_metric} and {b} by {b_metric}: give runs with the same primary metric"))]
    OtherMetric {
        /// A file.
        a: String,
        /// What decided.
        a_metric: String,
        /// The file that differs.
        b: String,
        /// What decided there.
        b_metric: String,
    },
}

fn reasons(left_out: &[LeftOut]) -> String {
    left_out.iter().map(|l| format!("; {}: {}", l.name, l.why)).collect()
}

/// In what they differ first.
pub(super) fn differs(a: &str, of_a: &Key, b: &str, of_b: Option<&Key>) -> NotReplicated {
    let (a, b) = (a.to_string(), b.to_string());
    let Some(of_b) = of_b else { return NotReplicated::NoExperiment };
    let plan =
        |key: &Key| key.plan.as_ref().map_or(word!("an experiment without a plan").into(), |p| say!("the plan {p}"));
    let arms = |key: &Key| key.arms.join(", ");
    if of_a.plan != of_b.plan {
        NotReplicated::OtherPlan { a, a_plan: plan(of_a), b, b_plan: plan(of_b) }
    } else if of_a.arms != of_b.arms {
        NotReplicated::OtherArms { a, a_arms: arms(of_a), b, b_arms: arms(of_b) }
    } else {
        NotReplicated::OtherMetric { a, a_metric: of_a.primary.clone(), b, b_metric: of_b.primary.clone() }
    }
}
