//! What a kernel upgrade will change: the same recording through the governor of two kernels, with the same idle table.
//!
//! Two questions. At each recorded decision, with the recorded inputs and the recorded outcomes fed to both: would they choose alike, and if
//! not, which state instead of which? (`Moves`.) And if each lived through the recorded idle periods its own way (`predict.rs`): what
//! residency, wake-ups, added latency and energy would come of it? Both sides are predicted, so the error of the
//! method is on both and mostly cancels.

use super::policy::Policy;
use super::same::{Follower, WARM_UP};
use super::words::{change, percent};
use crate::idle::Kind;
use crate::table::MOST_STATES;
use wakewatt_core::arrange::Arrange as _;
use wakewatt_core::samples::idle_pair::IdlePair;
use wakewatt_core::samples::replayed::{Followed, PolicyTold, Side};

/// Decisions of two governors at the same moments.
#[derive(Clone, Debug)]
pub(super) struct Moves {
    old: Follower,
    new: Follower,
    n_known: u64,
    /// By state of the old kernel, by state of the new one.
    pub(super) n: [[u64; MOST_STATES]; MOST_STATES],
}

impl Moves {
    pub(super) fn new(old: Policy, new: Policy) -> Moves {
        Moves { old: Follower::new(old), new: Follower::new(new), n_known: 0, n: [[0; MOST_STATES]; MOST_STATES] }
    }

    pub(super) fn switch(&mut self, kind: Kind) {
        self.old.switch(kind);
        self.new.switch(kind);
        self.n_known = 0;
    }

    pub(super) fn pair(&mut self, pair: &IdlePair) {
        let (old, new) = (self.old.pair(pair), self.new.pair(pair));
        let Some((old, new)) = old.zip(new) else { return };
        if self.n_known < WARM_UP {
            self.n_known += 1;
            return;
        }
        if let Some(n) = self.n.get_mut(old).and_then(|row| row.get_mut(new)) {
            *n += 1;
        }
    }
}

/// What an upgrade will change.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Upgrade {
    /// How far the rest may be trusted, in a sentence.
    pub trust: String,
    /// May it be trusted? None where too few decisions could be compared.
    pub is_trusted: Option<bool>,
    /// How much of the recording the predictions rest on.
    pub followed: Followed,
    /// Share of decisions in which the model of the recorded policy decided as the kernel did, 0 to 1; none where none could be compared.
    pub identical_ratio: Option<f64>,
    /// Which inputs that was told from: `exact` or `rebuilt`.
    pub inputs: String,
    /// What the upgrade will change, in a sentence.
    pub judgement: String,
    /// What decides, by idle table: under the old kernel, then under the new.
    pub policies: Vec<[PolicyTold; 2]>,
    /// Decisions that both made from the same recorded inputs.
    pub n_decisions: u64,
    /// Of those, decided otherwise by the new kernel.
    pub n_different: u64,
    /// The same as a share, 0 to 1; none without decisions.
    pub different_ratio: Option<f64>,
    /// Which state becomes which, the most frequent first.
    pub moves: Vec<Move>,
    /// All CPUs, as predicted under the old kernel.
    pub old: Side,
    /// All CPUs, as predicted under the new kernel.
    pub new: Side,
    /// All CPUs, as recorded.
    pub recorded: Side,
    /// CPU by CPU.
    pub cpus: Vec<CpuUpgrade>,
    /// What the figures rest on.
    pub remarks: Vec<String>,
}

/// Decisions that change from one state to another.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Move {
    /// State that the old kernel chooses.
    pub from: String,
    /// State that the new kernel chooses from the same inputs.
    pub to: String,
    /// How many decisions.
    pub n: u64,
    /// Share of all decisions, 0 to 1.
    pub ratio: f64,
}

/// One CPU under both kernels.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuUpgrade {
    /// Number of the CPU.
    pub cpu: u32,
    /// Idle time of this CPU as predicted under the old kernel.
    pub old: Side,
    /// Idle time of this CPU as predicted under the new kernel.
    pub new: Side,
}

/// The moves of all CPUs by name, the most frequent first, with all decisions and those that differ.
pub(super) fn moves<'a>(all: impl Iterator<Item = &'a Moves>, names: &[String]) -> (Vec<Move>, u64, u64) {
    let mut sums = [[0u64; MOST_STATES]; MOST_STATES];
    for moves in all {
        for (mine, theirs) in sums.iter_mut().flatten().zip(moves.n.iter().flatten()) {
            *mine += theirs;
        }
    }
    let n_decisions: u64 = sums.iter().flatten().sum();
    let name = |at: usize| names.get(at).cloned().unwrap_or_else(|| format!("state{at}"));
    let mut told = Vec::new();
    for (from, row) in sums.iter().enumerate() {
        for (to, n) in row.iter().enumerate().filter(|(to, n)| *to != from && **n > 0) {
            told.push(Move { from: name(from), to: name(to), n: *n, ratio: *n as f64 / n_decisions.max(1) as f64 });
        }
    }
    told.arrange_by(|a, b| b.n.cmp(&a.n).then_with(|| (&a.from, &a.to).cmp(&(&b.from, &b.to))));
    let n_different = told.iter().map(|m| m.n).sum();
    (told, n_decisions, n_different)
}

/// The sentence.
pub(super) fn judgement(upgrade: &Upgrade) -> String {
    let kernels = |at: usize| upgrade.policies.first().map_or("?", |p| p[at].kernel.as_str());
    let (from, to) = (kernels(0), kernels(1));
    if !upgrade.followed.is_enough() {
        return format!("From {from} to {to}: no verdict, because too little of the recording could be followed.");
    }
    let Some(different) = upgrade.different_ratio else {
        return format!("From {from} to {to}: no decision of both could be compared.");
    };
    if upgrade.n_different == 0 {
        let all = format!("From {from} to {to} all {} decisions are the same", upgrade.n_decisions);
        return match upgrade.old == upgrade.new {
            true => format!("{all}: nothing changes here."),
            false => format!("{all}; left to itself, {}.", change(&upgrade.old, &upgrade.new)),
        };
    }
    let moved = upgrade.moves.first().map_or(String::new(), |m| {
        format!(", most of them {} where it was {} ({} of all)", m.to, m.from, percent(m.ratio))
    });
    format!(
        "From {from} to {to}, {} of {} decisions differ{moved}; {}.",
        percent(different),
        upgrade.n_decisions,
        change(&upgrade.old, &upgrade.new)
    )
}
