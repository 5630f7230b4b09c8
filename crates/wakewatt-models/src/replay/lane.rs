//! One CPU of a recording on its way through a replay: compared, counted as it was, and lived again under what is asked.

use super::exact::Waiting;
use super::policy::Policy;
use super::predict::Predict;
use super::same::Same;
use super::tally::{Stay, Tally};
use super::upgrade::Moves;
use crate::idle::Kind;
use wakewatt_core::samples::idle_choice::IdleChoice;
use wakewatt_core::samples::idle_pair::{IdlePair, WakeCause};

/// A longer period is cut: memory stays small whatever a file claims.
const MOST_PAIRS: usize = 4096;

/// Who decides on the CPUs of a table: as recorded, what that is compared with, and as asked.
#[derive(Clone, Debug)]
pub(super) struct Three {
    /// Number of the table.
    pub(super) table: usize,
    pub(super) recorded: Policy,
    /// The recorded policy, so that the method's own error is seen; or the old kernel's, before an upgrade.
    pub(super) base: Policy,
    pub(super) asked: Policy,
}

#[derive(Clone, Debug)]
pub(super) struct Lane {
    pub(super) policies: Three,
    pub(super) same: Same,
    /// The same from the governor's own arguments, where they were recorded.
    pub(super) exact: Same,
    waiting: Waiting,
    pub(super) was: Tally,
    pub(super) predict: Predict,
    period: Vec<IdlePair>,
    /// The base lived again.
    pub(super) again: Predict,
    /// Decision by decision, where an upgrade is judged.
    pub(super) moves: Option<Moves>,
    /// Did its stays show another governor than was known?
    pub(super) has_taken_over: bool,
    /// Was another governor asked for?
    is_asked_otherwise: bool,
}

impl Lane {
    pub(super) fn new(policies: Three, is_upgrade: bool, is_asked_otherwise: bool) -> Lane {
        Lane {
            same: Same::new(policies.recorded.clone()),
            exact: Same::new(policies.recorded.clone()),
            waiting: Waiting::default(),
            was: Tally::default(),
            predict: Predict::new(policies.asked.clone()),
            again: Predict::new(policies.base.clone()),
            moves: is_upgrade.then(|| Moves::new(policies.base.clone(), policies.asked.clone())),
            period: Vec::new(),
            has_taken_over: false,
            is_asked_otherwise,
            policies,
        }
    }

    pub(super) fn pair(&mut self, pair: &IdlePair) {
        let (told, asked) = self.waiting.told(pair);
        // A governor that took over within the recording is told by its own choices, long before a remark.
        if let Some(kind) = asked.filter(|kind| *kind != self.policies.recorded.kind) {
            self.has_taken_over = true;
            self.take_over(kind);
        }
        self.same.pair(pair);
        if let Some(moves) = &mut self.moves {
            moves.pair(&told);
        }
        if pair.is_first || self.period.len() >= MOST_PAIRS {
            self.close();
        }
        self.period.push(told);
    }

    pub(super) fn choice(&mut self, choice: &IdleChoice) {
        self.exact.choice(choice);
        self.waiting.push(*choice);
    }

    /// A remark says that the recorded machine switched governors. Its choices, and the stays that came of them, may have said it before.
    pub(super) fn switch(&mut self, kind: Kind) {
        if self.exact.follower.policy.kind != kind {
            self.exact.switch(kind);
        }
        if self.policies.recorded.kind != kind {
            self.take_over(kind);
        }
    }

    /// From the next stay on; what is asked follows, unless a governor was asked for.
    fn take_over(&mut self, kind: Kind) {
        self.close();
        self.policies.recorded.kind = kind;
        self.same.switch(kind);
        if self.moves.is_none() || !self.is_asked_otherwise {
            self.policies.base.kind = kind;
            self.again.switch(kind);
        }
        if !self.is_asked_otherwise {
            self.policies.asked.kind = kind;
            self.predict.switch(kind);
            self.moves.iter_mut().for_each(|moves| moves.switch(kind));
        }
    }

    /// The period is over, or the window it was recorded in.
    pub(super) fn close(&mut self) {
        let recorded = &self.policies.recorded;
        let last = self.period.len().saturating_sub(1);
        for (at, pair) in self.period.iter().enumerate() {
            let is_spun_out = recorded.table.at(usize::from(pair.state)).is_polling && at < last;
            self.was.stay(
                recorded,
                Stay {
                    state: usize::from(pair.state),
                    residency_ns: super::same::signed(pair.duration_ns),
                    is_wake: at == last || (pair.ended_by != WakeCause::Tick && !is_spun_out),
                },
            );
        }
        self.predict.period(recorded, &self.period);
        self.again.period(recorded, &self.period);
        self.period.clear();
    }
}
