//! Does the model decide as the recorded kernel did? The recorded inputs, the recorded outcomes, and only the choice is the model's.
//!
//! What came of each choice is fed back as it was recorded, so that one difference does not make the next. The first hundred stays of a CPU only fill the
//! governor's memory. Where an input is missing the stay is not compared, and counted. A trace does not hold entries that
//! were refused, nor whether the polling state gave up by itself; the latter is inferred from its limit.

use super::policy::Policy;
use crate::idle::{Governor, Kind, Left, Moment};
use crate::poll;
use wakewatt_core::samples::idle_pair::{IdlePair, WakeCause};

/// Stays of a CPU that only fill the governor's memory.
pub const WARM_UP: u64 = 100;

/// What came of comparing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Stays that only filled the memory.
    pub n_warm_up: u64,
    /// Stays compared.
    pub n_compared: u64,
    /// Of those, decided alike.
    pub n_same: u64,
    /// Stays without an input that the governor needs.
    pub n_without_inputs: u64,
}

impl Agreement {
    /// Adds another CPU's.
    pub fn add(&mut self, other: Agreement) {
        self.n_warm_up += other.n_warm_up;
        self.n_compared += other.n_compared;
        self.n_same += other.n_same;
        self.n_without_inputs += other.n_without_inputs;
    }
}

/// How long the polling state spins under a governor, in nanoseconds.
pub(super) fn poll_limit_ns(policy: &Policy, governor: &Governor) -> i64 {
    match governor {
        // A closed window is no limit of its own.
        Governor::Haltpoll(g) if g.window_ns() > 0 => signed(g.window_ns()),
        _ => poll::limit_ns(policy.release, &policy.table, policy.disabled, policy.tick),
    }
}

pub(super) fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// What the governor saw; none where something it needs was not recorded.
pub(super) fn moment_of(policy: &Policy, pair: &IdlePair) -> Option<Moment> {
    let looks_at_timers = matches!(policy.kind, Kind::Menu | Kind::Teo);
    let sleep_ns = pair.sleep_length_ns.or((!looks_at_timers).then_some(0))?;
    let is_tick_stopped = pair.is_tick_stopped.or((!looks_at_timers).then_some(false))?;
    Some(Moment {
        sleep_ns,
        next_event_ns: pair.next_event_ns.unwrap_or(sleep_ns),
        is_tick_stopped,
        latency_limit_ns: policy.limit_ns,
        n_iowait: u32::from(pair.n_iowait.unwrap_or(0)),
        utilisation: 0,
        disabled: policy.disabled,
        clock_ns: signed(pair.enter_at_ns),
    })
}

/// A governor that follows a recorded CPU: it chooses from the recorded inputs, and learns what came of the recorded choices.
#[derive(Clone, Debug)]
pub(super) struct Follower {
    pub(super) policy: Policy,
    pub(super) governor: Governor,
    /// It is the recorded governor: after a difference it goes where the kernel went.
    is_recorded: bool,
}

impl Follower {
    pub(super) fn new(policy: Policy) -> Follower {
        let governor = policy.governor();
        Follower { policy, governor, is_recorded: false }
    }

    /// Another governor took over: it knows nothing yet.
    pub(super) fn switch(&mut self, kind: Kind) {
        self.policy.kind = kind;
        self.governor = self.policy.governor();
    }

    /// What it chooses; none where an input was not recorded.
    pub(super) fn pair(&mut self, pair: &IdlePair) -> Option<usize> {
        let state = usize::from(pair.state);
        let moment = moment_of(&self.policy, pair);
        let said = moment.map(|moment| self.governor.select(&moment).state);
        if self.is_recorded && said.is_some_and(|said| said != state) {
            self.governor.follow(state);
        }
        let residency_ns = signed(pair.duration_ns);
        let is_polling = self.policy.table.at(state).is_polling;
        self.governor.reflect(&Left {
            state,
            residency_ns,
            is_tick_fired: pair.is_tick_fired.unwrap_or(pair.ended_by == WakeCause::Tick),
            is_poll_limit_hit: is_polling && residency_ns > poll_limit_ns(&self.policy, &self.governor),
            clock_ns: signed(pair.enter_at_ns.saturating_add(pair.duration_ns)),
        });
        said
    }
}

/// A follower whose choices are held against the recorded ones.
#[derive(Clone, Debug)]
pub(super) struct Same {
    pub(super) follower: Follower,
    /// Stays since the governor took over, up to the warm-up.
    pub(super) n_known: u64,
    /// State and length of the last stay, where choices are followed; none before the first.
    pub(super) last: Option<(usize, i64)>,
    pub(super) agreement: Agreement,
}

impl Same {
    pub(super) fn new(policy: Policy) -> Same {
        let follower = Follower { is_recorded: true, ..Follower::new(policy) };
        Same { follower, n_known: 0, last: None, agreement: Agreement::default() }
    }

    pub(super) fn switch(&mut self, kind: Kind) {
        self.follower.switch(kind);
        self.n_known = 0;
    }

    /// One more decision: alike or not, once the memory is filled.
    pub(super) fn count(&mut self, is_same: bool) {
        let a = &mut self.agreement;
        if self.n_known < WARM_UP {
            self.n_known += 1;
            a.n_warm_up += 1;
        } else {
            a.n_compared += 1;
            a.n_same += u64::from(is_same);
        }
    }

    pub(super) fn pair(&mut self, pair: &IdlePair) {
        match self.follower.pair(pair) {
            None => self.agreement.n_without_inputs += 1,
            Some(said) => self.count(said == usize::from(pair.state)),
        }
    }
}
