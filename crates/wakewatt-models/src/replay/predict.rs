//! The same idle periods under another policy: what would have ended them still does, and the rest is the governor's.
//!
//! An idle period begins where it did. Interrupts, other CPUs and timers come when they came: as much before the recorded exit as leaving the
//! recorded state takes. Ticks do not: those recorded count only where the policy keeps its tick as well, then with their lateness;
//! else one comes at each multiple of its length. The timers in force are those last recorded before; where these have passed, the next
//! that are recorded, and without any, the tick. Where a recorded stay begins its own inputs are used. Nothing else on the machine is thought to change, so what an added delay would
//! make later is not made later.

use super::policy::Policy;
use super::same::{moment_of, poll_limit_ns, signed};
use super::tally::{Stay, Tally};
use crate::idle::{Governor, Kind, Left, Moment};
use crate::units::FOREVER_NS;
use wakewatt_core::samples::idle_pair::{IdlePair, WakeCause};

/// Predicted stays granted to a CPU, and more for each recorded one: a file may claim any length, and spinning is short. A period
/// beyond is left out, which is said.
const GRANTED: u64 = 200_000;
const GRANTED_EACH: u64 = 10_000;
/// What is within this part of a tick of a recorded moment is that moment.
const NEAR: i64 = 16;
/// From one stay to the next inside a period, where the recording has none.
const BETWEEN_NS: i64 = 1_000;

/// A governor that lives through recorded idle periods its own way.
#[derive(Clone, Debug)]
pub(super) struct Predict {
    policy: Policy,
    governor: Governor,
    pub(super) tally: Tally,
    /// Recorded stays of the periods that it lived through.
    pub(super) n_followed: u64,
    /// Periods whose inputs were not recorded, or that were too long.
    pub(super) n_left_out: u64,
    /// Stays that may still be predicted.
    granted: u64,
}

/// What ends a stay.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    Event,
    Tick,
    PollLimit,
}

fn exit_at(pair: &IdlePair) -> i64 {
    signed(pair.enter_at_ns.saturating_add(pair.duration_ns))
}

/// When the thing happened that ended a stay, before the exit it took.
fn happened_at(recorded: &Policy, pair: &IdlePair) -> i64 {
    let (enter, exit) = (signed(pair.enter_at_ns), exit_at(pair));
    let cost = recorded.exit_ns.get(usize::from(pair.state)).copied().unwrap_or(0);
    exit.saturating_sub(cost).max(enter)
}

/// The instant of the first timer other than the tick.
fn deadline(pair: &IdlePair) -> Option<i64> {
    let reference = signed(pair.enter_at_ns).saturating_sub(signed(pair.entry_lag_ns.unwrap_or(0)));
    pair.sleep_length_ns.map(|sleep| reference.saturating_add(sleep))
}

impl Predict {
    pub(super) fn new(policy: Policy) -> Predict {
        let governor = policy.governor();
        Predict { policy, governor, tally: Tally::default(), n_followed: 0, n_left_out: 0, granted: GRANTED }
    }

    /// Another governor took over.
    pub(super) fn switch(&mut self, kind: Kind) {
        self.policy.kind = kind;
        self.governor = self.policy.governor();
    }

    /// Lives through a period: the stays from when tasks ended to when one ran.
    pub(super) fn period(&mut self, recorded: &Policy, pairs: &[IdlePair]) {
        match self.is_lived(recorded, pairs) {
            true => self.n_followed = self.n_followed.saturating_add(pairs.len() as u64),
            false => self.n_left_out += 1,
        }
    }

    /// Could it be lived to its end?
    fn is_lived(&mut self, recorded: &Policy, pairs: &[IdlePair]) -> bool {
        let Some(last) = pairs.last() else { return true };
        if pairs.iter().any(|pair| moment_of(&self.policy, pair).is_none()) {
            return false;
        }
        // Whatever ended the last stay had a task run, the tick too.
        let is_event = |(at, pair): &(usize, &IdlePair)| pair.ended_by != WakeCause::Tick || at + 1 == pairs.len();
        let events: Vec<i64> =
            pairs.iter().enumerate().filter(is_event).map(|(_, pair)| happened_at(recorded, pair)).collect();
        let end = events.last().copied().unwrap_or_else(|| exit_at(last));
        let (mut now, mut known, mut next) = (signed(pairs[0].enter_at_ns), 0, 0);
        let mut is_stopped = false;
        let near_ns = self.policy.tick.ns() / NEAR;
        self.granted = self.granted.saturating_add(GRANTED_EACH.saturating_mul(pairs.len() as u64));
        while self.granted > 0 {
            self.granted -= 1;
            while known + 1 < pairs.len() && signed(pairs[known + 1].enter_at_ns) <= now {
                known += 1;
            }
            // What happened while a state was being left needs no other wake-up.
            while next + 1 < events.len() && events[next] <= now {
                next += 1;
            }
            let Some(&event) = events.get(next) else { return true };
            let event = event.max(now);
            let pair = &pairs[known];
            let tick_at = (now / self.policy.tick.ns()).saturating_add(1).saturating_mul(self.policy.tick.ns());
            // Where a recorded stay began, what its governor was told stands: timers may be overdue already, and then no state is worth entering.
            let is_own = signed(pair.enter_at_ns) == now;
            let own = deadline(pair).filter(|_| is_own);
            let due = own.or_else(|| pairs[known..].iter().filter_map(deadline).find(|at| *at > now)).unwrap_or(
                match pair.sleep_length_ns {
                    Some(_) => tick_at,
                    None => FOREVER_NS,
                },
            );
            let lag = signed(pair.entry_lag_ns.unwrap_or(0));
            let from_reference = |at: i64| at.saturating_sub(now).saturating_add(lag);
            let said = self.governor.select(&Moment {
                sleep_ns: if due == FOREVER_NS { FOREVER_NS } else { from_reference(due) },
                next_event_ns: pair
                    .next_event_ns
                    .filter(|_| is_own && pair.is_tick_stopped == Some(is_stopped))
                    .unwrap_or_else(|| from_reference(if is_stopped { due } else { due.min(tick_at) })),
                is_tick_stopped: is_stopped,
                latency_limit_ns: self.policy.limit_ns,
                n_iowait: u32::from(pair.n_iowait.unwrap_or(0)),
                utilisation: 0,
                disabled: self.policy.disabled,
                clock_ns: now,
            });
            // A tick stays where the next timer is due before it anyway.
            is_stopped |= said.stop_tick && due > tick_at;
            let state = self.policy.table.at(said.state);
            let (mut wake, mut ends) = (event, Ends::Event);
            if !is_stopped && tick_at < wake {
                let was = happened_at(recorded, pair);
                let is_this = pair.ended_by == WakeCause::Tick && (0..near_ns).contains(&was.saturating_sub(tick_at));
                (wake, ends) = (if is_this { was } else { tick_at }, Ends::Tick);
            }
            // The tick that had a task run is an event.
            if wake >= event {
                (wake, ends) = (event, Ends::Event);
            }
            let limit_at = now.saturating_add(poll_limit_ns(&self.policy, &self.governor).max(1));
            if state.is_polling && limit_at < wake {
                (wake, ends) = (limit_at, Ends::PollLimit);
            }
            let exit = wake.saturating_add(self.policy.exit_ns.get(said.state).copied().unwrap_or(0));
            let residency_ns = exit.saturating_sub(now);
            self.tally.stay(&self.policy, Stay { state: said.state, residency_ns, is_wake: ends == Ends::Event });
            self.governor.reflect(&Left {
                state: said.state,
                residency_ns,
                is_tick_fired: ends == Ends::Tick,
                is_poll_limit_hit: ends == Ends::PollLimit,
                clock_ns: exit,
            });
            if wake >= end {
                return true;
            }
            if ends == Ends::Event {
                next += 1;
            }
            now = exit.saturating_add(BETWEEN_NS);
            // The next stay begins as late as it did, where the recording has one.
            let later = pairs.get(known + 1).map(|pair| signed(pair.enter_at_ns));
            now = later.filter(|at| (0..near_ns).contains(&at.saturating_sub(now))).unwrap_or(now);
        }
        false
    }
}
