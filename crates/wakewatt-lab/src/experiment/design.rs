//! How long and how often an experiment measures, declared before it runs.

use super::parts::{Arms, Workload};
use crate::noise::Limits;
use wakewatt_core::samples::watts_by::WattsBy;
use wakewatt_core::stats::sequential::Looks;

/// How long a short measurement takes, unless a plan says otherwise.
pub const SHORT_NS: u64 = 150_000_000;
/// Which comparisons the looks decide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// Each arm by itself, in the order declared by `Compared`: one is only proven after those before it.
    EachArm,
    /// All arms together, adjusted; differences within the margin (1.05) do not matter.
    AllArms {
        /// 1.05 for 5 %.
        margin_ratio: f64,
    },
}

/// Many short measurements of the primary metric instead of few long ones.
#[derive(Clone, Debug)]
pub struct Short {
    /// How long one takes, in nanoseconds.
    pub measure_ns: u64,
    /// When they are analysed; the looks of the design are those of whole rounds.
    pub looks: Looks,
    /// Whole rounds afterwards, for the metrics that short measurements do not yield, as far as the budget reaches.
    pub n_whole_rounds: usize,
}

impl Short {
    /// Of 150 ms; nothing is measured afterwards.
    pub fn new() -> Short {
        Short { measure_ns: SHORT_NS, looks: Looks::short(), n_whole_rounds: 0 }
    }
}

impl Default for Short {
    fn default() -> Short {
        Short::new()
    }
}

/// How long, how often.
#[derive(Clone, Debug)]
pub struct Design {
    /// Discarded at the start of each block.
    pub warmup_ns: u64,
    /// Wall time for everything.
    pub budget_ns: u64,
    /// Seed of the order.
    pub seed: u64,
    /// When to look at the numbers, declared beforehand.
    pub looks: Looks,
    /// What a look decides.
    pub rule: Rule,
    /// Short measurements of the primary metric come first; only where variants switch instantly and the workload allows
    /// it ([`Design::in_force`]).
    pub short: Option<Short>,
    /// Every so many rounds the baseline is held twice; 0 for never.
    pub again_every: usize,
    /// What rejects a block.
    pub limits: Limits,
    /// The meter behind its watts, where it has any.
    pub watts: Option<WattsBy>,
}

impl Design {
    /// Each arm by itself, no second baseline: what a short experiment on idle states needs.
    pub fn new(looks: Looks, seed: u64) -> Design {
        let limits = Limits::default();
        Design {
            warmup_ns: 0,
            budget_ns: u64::MAX,
            seed,
            looks,
            rule: Rule::EachArm,
            short: Some(Short::new()),
            again_every: 0,
            limits,
            watts: None,
        }
    }

    /// The design for these variants and this workload: with short measurements, whose looks then judge the run, or
    /// without.
    pub fn in_force(&self, arms: &dyn Arms, workload: &mut dyn Workload) -> Design {
        let short = self.short.clone().filter(|_| arms.is_instant() && workload.short().is_some());
        let looks = short.as_ref().map_or(&self.looks, |short| &short.looks).clone();
        Design { short, looks, ..self.clone() }
    }
}

/// How a round is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// All metrics, for as long as the workload takes.
    Whole,
    /// The primary metric, for so many nanoseconds.
    Short(u64),
    /// All metrics but the primary one, which the short measurements have judged.
    Rest,
}
