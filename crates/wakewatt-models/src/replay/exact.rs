//! The same question from the governor's own arguments, where a recording holds them: nothing rebuilt, refused entries and all.
//!
//! A model that is right decides as the kernel did in every choice; what is left then is a rule or an input that is not known. The
//! sleep length, the tick and the iowait count that the governor was told also take the place of the rebuilt ones in the
//! stays that are lived again. Where the kernel did not look at its timers and the model does, they already part: the model is then
//! shown a sleep without end, and what it says counts like any other answer.

use super::same::{Same, WARM_UP, poll_limit_ns};
use crate::idle::{Kind, Left, Moment};
use crate::table::Disabled;
use crate::units::FOREVER_NS;
use std::collections::VecDeque;
use wakewatt_core::samples::idle_choice::IdleChoice;
use wakewatt_core::samples::idle_pair::IdlePair;

/// Choices that wait for their stays: some blocks' worth, whatever a file claims.
const MOST_WAITING: usize = 16_384;
/// Times of stays are rounded down to at most this; a choice is made well before its stay begins.
const ROUNDED_NS: u64 = 100;
/// Between a choice and its stay interrupts are off; a longer time is somebody else's.
const SOON_NS: u64 = 2_000_000;

impl Same {
    /// One question: the model's answer beside the kernel's, then what the kernel's governor heard.
    pub(super) fn choice(&mut self, choice: &IdleChoice) {
        if let Some(kind) = choice.governor.and_then(|asked| Kind::of_name(asked.name()))
            && kind != self.follower.policy.kind
        {
            self.switch(kind);
            // From here on the governor's memory is known: it has none, and the core's last stay was seen. On a CPU that was never asked before
            // neither is: the switch lies anywhere before, and what the core remembers is not in the recording.
            if let Some((state, residency_ns)) = self.last {
                self.n_known = WARM_UP;
                self.follower.governor.take_over(state, residency_ns);
            }
        }
        let off = choice.disabled.map(|mask| Disabled::of((0..16).filter(|i| mask >> i & 1 == 1)));
        let said = self.follower.governor.select(&Moment {
            sleep_ns: choice.timers.map_or(FOREVER_NS, |t| t.sleep_length_ns),
            next_event_ns: choice.timers.map_or(FOREVER_NS, |t| t.next_event_ns),
            is_tick_stopped: choice.is_tick_stopped.unwrap_or(false),
            latency_limit_ns: choice.latency_limit_ns.unwrap_or(self.follower.policy.limit_ns),
            n_iowait: u32::from(choice.n_iowait.unwrap_or(0)),
            utilisation: 0,
            disabled: off.unwrap_or(self.follower.policy.disabled),
            clock_ns: super::same::signed(choice.at_ns),
        });
        let state = usize::from(choice.answer);
        // With the tick stopped nobody listens to what is said of it.
        let is_heard = choice.is_tick_stopped == Some(false);
        let is_same_tick = !is_heard || choice.stops_tick.is_none_or(|stops| stops == said.stop_tick);
        self.count(said.state == state && is_same_tick);
        if said.state != state {
            self.follower.governor.follow(state);
        }
        let Some(outcome) = choice.outcome else {
            self.follower.governor.reject();
            self.last = Some((self.last.map_or(0, |l| l.0), 0));
            return;
        };
        let entered = usize::from(outcome.state);
        self.last = Some((entered, outcome.residency_ns));
        let is_polling = self.follower.policy.table.at(entered).is_polling;
        let spun_out = || outcome.residency_ns > poll_limit_ns(&self.follower.policy, &self.follower.governor);
        self.follower.governor.reflect(&Left {
            state: entered,
            residency_ns: outcome.residency_ns,
            is_tick_fired: outcome.is_tick_fired.unwrap_or(false),
            is_poll_limit_hit: outcome.is_poll_limit_hit.unwrap_or_else(|| is_polling && spun_out()),
            clock_ns: super::same::signed(choice.at_ns).saturating_add(outcome.residency_ns),
        });
    }
}

/// Choices of a CPU whose stays have not come yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting(VecDeque<IdleChoice>);

impl Waiting {
    pub(super) fn push(&mut self, choice: IdleChoice) {
        if self.0.len() >= MOST_WAITING {
            self.0.pop_front();
        }
        self.0.push_back(choice);
    }

    /// The stay with what the governor was told in place of what was rebuilt, and which governor that was; as it is without its choice.
    pub(super) fn told(&mut self, pair: &IdlePair) -> (IdlePair, Option<Kind>) {
        let mut found = None;
        while self.0.front().is_some_and(|c| c.at_ns <= pair.enter_at_ns.saturating_add(ROUNDED_NS)) {
            found = self.0.pop_front();
        }
        let is_its = |c: &IdleChoice| pair.enter_at_ns.saturating_sub(c.at_ns) < SOON_NS && c.answer == pair.state;
        let Some(choice) = found.filter(is_its) else { return (*pair, None) };
        // A stay that is read from two events is as much too long as they take.
        let kernels_ns = choice.outcome.and_then(|o| u64::try_from(o.residency_ns).ok());
        let told = IdlePair {
            duration_ns: kernels_ns.map_or(pair.duration_ns, |ns| ns.min(pair.duration_ns)),
            sleep_length_ns: choice.timers.map(|t| t.sleep_length_ns).or(pair.sleep_length_ns),
            next_event_ns: choice.timers.map(|t| t.next_event_ns).or(pair.next_event_ns),
            is_tick_stopped: choice.is_tick_stopped.or(pair.is_tick_stopped),
            n_iowait: choice.n_iowait.or(pair.n_iowait),
            is_tick_fired: choice.outcome.and_then(|o| o.is_tick_fired).or(pair.is_tick_fired),
            ..*pair
        };
        (told, choice.governor.and_then(|asked| Kind::of_name(asked.name())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::samples::idle_choice::{Outcome, TimersTold};

    #[test]
    fn a_stay_takes_what_its_own_choice_was_told() {
        let asked = |at_ns: u64, sleep_length_ns: i64| IdleChoice {
            at_ns,
            answer: 2,
            timers: Some(TimersTold { sleep_length_ns, next_event_ns: 7 }),
            ..IdleChoice::default()
        };
        let mut waiting = Waiting::default();
        [(1_000, 1), (9_000, 2), (60_000, 3)].into_iter().for_each(|(at, ns)| waiting.push(asked(at, ns)));
        let stay = |enter_at_ns: u64, state: u8| IdlePair { enter_at_ns, state, ..IdlePair::default() };
        let left = IdleChoice {
            outcome: Some(Outcome { state: 1, residency_ns: 400, ..Outcome::default() }),
            answer: 1,
            ..asked(500, 0)
        };
        let mut other = Waiting::default();
        other.push(left);
        let long = |duration_ns: u64| IdlePair { enter_at_ns: 600, state: 1, duration_ns, ..IdlePair::default() };
        assert_eq!(other.clone().told(&long(420)).0.duration_ns, 400, "the kernel's own clock");
        assert_eq!(other.told(&long(390)).0.duration_ns, 390);
        // The first was refused: the next came before the stay began.
        assert_eq!(waiting.told(&stay(10_000, 2)).0.sleep_length_ns, Some(2));
        assert_eq!(waiting.told(&stay(20_000, 2)).0.sleep_length_ns, None, "its choice was not recorded");
        assert_eq!(waiting.told(&stay(61_000, 1)).0.sleep_length_ns, None, "another state than was answered");
    }

    /// Seen on an emulated machine: the CPU slept while the governor changed, so its first recorded choice is the other governor's already.
    #[test]
    fn a_governor_that_had_taken_over_before_the_first_choice_is_not_taken_for_a_known_one() {
        use wakewatt_core::samples::idle_choice::Asked;
        let header = wakewatt_core::record::wtrace::Reader::new(include_bytes!(
            "../../../../fixtures/traces/arm64-ladder-exact-6.1.wtrace"
        ));
        let header = header.map(|r| r.header.clone()).unwrap();
        let known = [crate::replay::Change::Hz(250)];
        let policy = crate::replay::Policy::of(&header, &header.tables[0], &known).unwrap();
        let asked = |governor| IdleChoice { governor: Some(governor), ..IdleChoice::default() };
        let mut same = Same::new(policy);
        assert_eq!(same.follower.policy.kind, Kind::Ladder);
        same.choice(&asked(Asked::Menu));
        assert_eq!((same.n_known, same.agreement.n_compared), (1, 0), "it warms up");
        same.choice(&asked(Asked::Ladder));
        assert_eq!((same.n_known, same.agreement.n_compared), (WARM_UP, 1), "seen: it begins with nothing");
    }
}
