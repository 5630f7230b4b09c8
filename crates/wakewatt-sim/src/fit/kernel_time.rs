//! CPU time that a sleep takes whatever it delays: the kernel's way in and out by who ended it, what that cost the CPU that woke, and what a CPU does for itself meanwhile.
//!
//! A probe measures the woken CPU and its waker round by round, in a state and in the floor (`measure idle`). One round is off by whatever else ran in it, more so
//! the longer its pauses, so the rounds of all measurements with one length of pause are put together (Hodges and Lehmann's middle), and are used where the signed rank's
//! 95 % interval lies above nothing, from the shortest pause up to the first that does not show any. An interrupt from another CPU takes more of both CPUs than a timer of the CPU's own.

use super::by_length::{BY_ANOTHER_CPU, BY_TIMER, ExitAfter, by_length};
use std::collections::BTreeMap;
use wakewatt_core::samples::state_cost::{StateCosts, StateWake};
use wakewatt_core::samples::wakeup::WakeKind;
use wakewatt_core::stats::middle::median;
use wakewatt_core::stats::paired::hodges_lehmann;
use wakewatt_core::stats::signed_rank::interval;

/// How often such an interval may be wrong.
const LEVEL: f64 = 0.05;

/// CPU time that a sleep ended by its own timer takes, by the pause: beyond the floor's, which does more, or less, for itself in that time than this state.
pub(super) fn sleeps(costs: &[&StateCosts], state: &str) -> Vec<ExitAfter> {
    of_woken(costs, state, &BY_TIMER[..1])
}

/// The same of a sleep that another CPU ended.
pub(super) fn sleeps_by_ipi(costs: &[&StateCosts], state: &str) -> Vec<ExitAfter> {
    of_woken(costs, state, &BY_ANOTHER_CPU)
}

/// CPU time that waking a CPU out of a state costs another one, after the shortest pause.
pub(super) fn sending_ns(costs: &[&StateCosts], state: &str) -> Option<u64> {
    shown(costs, state, &BY_ANOTHER_CPU, |wake| &wake.round_waker_busy_ns, 0.0).first().map(|(_, ns)| *ns)
}

fn of_woken(costs: &[&StateCosts], state: &str, kinds: &[WakeKind]) -> Vec<ExitAfter> {
    let is_polling = costs.iter().flat_map(|c| &c.states).any(|s| s.name == state && s.is_polling);
    if is_polling {
        return Vec::new();
    }
    let floor = costs.iter().find_map(|c| c.floor.as_deref()).and_then(|floor| own_ratio(costs, floor));
    let more_own = floor.zip(own_ratio(costs, state)).map_or(0.0, |(floor, own)| floor - own);
    by_length(shown(costs, state, kinds, |wake| &wake.round_busy_ns, more_own), 1)
}

/// By the pause, as long as it is above nothing; `back` of a pause is given back to each round.
fn shown(
    costs: &[&StateCosts],
    state: &str,
    kinds: &[WakeKind],
    of: fn(&StateWake) -> &[u64],
    back: f64,
) -> Vec<(u64, u64)> {
    let mut rounds: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for costs in costs {
        let measured = kinds.iter().map(|kind| costs.over_floor(state, *kind, of)).find(|all| !all.is_empty());
        let back_ns = back * costs.gap_ns as f64;
        rounds.entry(costs.gap_ns).or_default().extend(measured.into_iter().flatten().map(|ns| ns + back_ns));
    }
    let is_shown = |rounds: &Vec<f64>| {
        let within = interval(rounds, LEVEL);
        within.is_at(LEVEL) && within.low > 0.0
    };
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Within a second.
    let ns = |rounds: &[f64]| hodges_lehmann(rounds).clamp(0.0, 1e9) as u64;
    rounds.into_iter().take_while(|(_, all)| is_shown(all)).map(|(gap_ns, all)| (gap_ns, ns(&all))).collect()
}

/// What a CPU does for itself in a state, as a part of the time: the median over all rounds.
pub(super) fn own_ratio(costs: &[&StateCosts], state: &str) -> Option<f64> {
    let of_state = costs.iter().flat_map(|costs| &costs.states).filter(|s| s.name == state && s.is_entered());
    median(&mut of_state.flat_map(|s| &s.round_own_ratio).copied().collect::<Vec<_>>())
        .filter(|r| (0.0..0.5).contains(r))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::distribution::Distribution;
    use wakewatt_core::samples::state_cost::StateCost;

    /// Beyond the 30 us of a wake-up out of polling, a sleep that a timer ends takes 12 us and one that another CPU ends 18, and costs that CPU 7. Polling is
    /// busy for itself 0.6 % of the time, sleep 0.2 %: 4 us in a millisecond. Each round of sleep is off by so much.
    fn costs(gap_ns: u64, off_ns: [i64; 6]) -> StateCosts {
        let more_own_ns = i64::try_from(gap_ns).unwrap() * 4 / 1_000;
        let wake = |kind: WakeKind, busy_ns: i64, waker_ns: i64| {
            let rounds = |ns: i64| off_ns.map(|off| u64::try_from(30_000 + ns + off).unwrap()).to_vec();
            StateWake {
                n_entered: 9,
                n_entered_any: 9,
                round_busy_ns: rounds(busy_ns),
                round_waker_busy_ns: if kind == WakeKind::Timer { Vec::new() } else { rounds(waker_ns) },
                ..StateWake::of(kind, Distribution::default(), Vec::new())
            }
        };
        let state = |index: u32, name: &str, own: f64, wakes: Vec<StateWake>| StateCost {
            index,
            name: name.into(),
            is_polling: index == 0,
            claimed_exit_ns: None,
            claimed_residency_ns: None,
            allowed_by: String::new(),
            n_entered: 9,
            n_entered_any: 9,
            time_ns: 0,
            n_rejected: None,
            not_entered: None,
            wakes,
            first_work: Vec::new(),
            round_own_ratio: vec![own; 6],
        };
        let polling = |kind| StateWake {
            round_busy_ns: vec![u64::try_from(30_000 + more_own_ns).unwrap(); 6],
            round_waker_busy_ns: vec![30_000; 6],
            ..wake(kind, 0, 0)
        };
        let poll = vec![polling(WakeKind::Timer), polling(WakeKind::Futex)];
        let asleep = vec![wake(WakeKind::Timer, 12_000, 0), wake(WakeKind::Futex, 18_000, 7_000)];
        let mut costs = StateCosts::of(1, vec![state(0, "POLL", 0.006, poll), state(1, "C6", 0.002, asleep)]);
        (costs.gap_ns, costs.floor) = (gap_ns, Some("POLL".into()));
        costs
    }

    #[test]
    fn what_a_sleep_takes_is_beyond_what_the_floor_does_for_itself_in_that_time_and_who_ended_it_counts() {
        let all = [300_000, 1_000_000, 4_000_000].map(|gap_ns| costs(gap_ns, [0; 6]));
        let all: Vec<&StateCosts> = all.iter().collect();
        let hundreds = |rows: Vec<ExitAfter>| rows.iter().map(|row| row.ns / 100).collect::<Vec<_>>();
        assert_eq!(hundreds(sleeps(&all, "C6")), [120, 120, 120]);
        assert_eq!(hundreds(sleeps_by_ipi(&all, "C6")), [180, 180, 180]);
        assert_eq!(sending_ns(&all, "C6"), Some(7_000));
        assert!(sleeps(&all, "POLL").is_empty() && sleeps_by_ipi(&all, "POLL").is_empty());
        assert_eq!((sending_ns(&all, "POLL"), sending_ns(&all, "C9"), sending_ns(&[], "C6")), (None, None, None));
    }

    #[test]
    fn six_rounds_that_do_not_agree_show_nothing_and_twice_as_many_may() {
        // One of six below nothing: no interval of six is above it.
        let off_ns = [-9_000, 500, 1_000, -500, 0, 2_000];
        let (first, again) = (costs(300_000, off_ns), costs(300_000, off_ns.map(|ns| ns + 100)));
        assert_eq!(sending_ns(&[&first], "C6"), None);
        assert_eq!((sleeps(&[&first], "C6").len(), sleeps_by_ipi(&[&first], "C6").len()), (1, 1));
        let sent = sending_ns(&[&first, &again], "C6").unwrap();
        assert!((6_500..8_000).contains(&sent), "{sent}");
        // A second length of pause is not put together with the first, and what only the longer shows is not of the shorter.
        let (longer, sure) = (costs(1_000_000, off_ns), costs(4_000_000, [0; 6]));
        assert_eq!(sending_ns(&[&first, &longer, &sure], "C6"), None);
    }
}
