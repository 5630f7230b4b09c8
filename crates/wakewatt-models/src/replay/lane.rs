//! One CPU of a recording on its way through a replay: compared, counted as it was, and lived again under what is asked.

use super::exact::Waiting;
use super::policy::Policy;
use super::predict::Predict;
use super::same::Same;
use super::tally::{Stay, Tally};
use crate::idle::Kind;
use wakewatt_core::samples::idle_choice::IdleChoice;
use wakewatt_core::samples::idle_pair::{IdlePair, WakeCause};

/// A longer period is cut: memory stays small whatever a file claims.
const MOST_PAIRS: usize = 4096;

#[derive(Clone, Debug)]
pub(super) struct Lane {
    recorded: Policy,
    pub(super) same: Same,
    /// The same from the governor's own arguments, where they were recorded.
    pub(super) exact: Same,
    waiting: Waiting,
    pub(super) was: Tally,
    pub(super) predict: Predict,
    period: Vec<IdlePair>,
    /// The recorded policy lived again, so that the method's own error is seen.
    pub(super) again: Predict,
}

impl Lane {
    pub(super) fn new(recorded: Policy, asked: Policy) -> Lane {
        Lane {
            same: Same::new(recorded.clone()),
            exact: Same::new(recorded.clone()),
            waiting: Waiting::default(),
            was: Tally::default(),
            predict: Predict::new(asked),
            again: Predict::new(recorded.clone()),
            period: Vec::new(),
            recorded,
        }
    }

    pub(super) fn pair(&mut self, pair: &IdlePair) {
        self.same.pair(pair);
        if pair.is_first || self.period.len() >= MOST_PAIRS {
            self.close();
        }
        self.period.push(self.waiting.told(pair));
    }

    pub(super) fn choice(&mut self, choice: &IdleChoice) {
        self.exact.choice(choice);
        self.waiting.push(*choice);
    }

    /// The recorded machine switched governors; what is asked follows, unless a governor was asked for.
    pub(super) fn switch(&mut self, kind: Kind, is_asked_otherwise: bool) {
        self.close();
        self.recorded.kind = kind;
        self.same.switch(kind);
        self.exact.switch(kind);
        self.again.switch(kind);
        if !is_asked_otherwise {
            self.predict.switch(kind);
        }
    }

    /// The period is over, or the window it was recorded in.
    pub(super) fn close(&mut self) {
        let last = self.period.len().saturating_sub(1);
        for (at, pair) in self.period.iter().enumerate() {
            let is_spun_out = self.recorded.table.at(usize::from(pair.state)).is_polling && at < last;
            self.was.stay(
                &self.recorded,
                Stay {
                    state: usize::from(pair.state),
                    residency_ns: super::same::signed(pair.duration_ns),
                    is_wake: at == last || (pair.ended_by != WakeCause::Tick && !is_spun_out),
                },
            );
        }
        self.predict.period(&self.recorded, &self.period);
        self.again.period(&self.recorded, &self.period);
        self.period.clear();
    }
}
