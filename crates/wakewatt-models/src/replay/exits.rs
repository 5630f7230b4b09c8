//! What leaving idle states costs: what `measure idle` found before what the driver claims, and which of both it is.
//!
//! A claim is a worst case; half of it is taken as the usual exit. A measured extra is the median over polling, paired by round (core's
//! `samples/state_cost.rs`); on machines without a polling state it is counted from the shallowest, whose own cost stays half
//! its claim. Its worst case is the rounds' largest extra and the way from the median to the 99th percentile of those wake-ups.
//! A measured cost is taken for a state of the same name and the same claim only: another table is another machine's.

use wakewatt_core::samples::replayed::ExitBasis;
use wakewatt_core::samples::state_cost::StateCosts;
use wakewatt_core::units::show_ns;

/// A worst case is claimed; the usual exit is taken to be this part of it.
const USUAL_EXIT: u64 = 2;

/// What leaving one state costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    /// Usually, in nanoseconds.
    pub usual_ns: u64,
    /// At worst, in nanoseconds.
    pub worst_ns: u64,
    /// Where both are from.
    pub basis: ExitBasis,
}

impl Exit {
    /// Of a state that spins.
    pub const POLLING: Exit = Exit { usual_ns: 0, worst_ns: 0, basis: ExitBasis::Polling };

    /// From a claim.
    pub fn claimed(claimed_ns: u64) -> Exit {
        Exit { usual_ns: claimed_ns / USUAL_EXIT, worst_ns: claimed_ns, basis: ExitBasis::Claimed }
    }
}

/// A state that was measured.
#[derive(Clone, Debug, PartialEq, Eq)]
struct MeasuredState {
    name: String,
    claimed_ns: Option<u64>,
    exit: Exit,
}

/// All states that were measured on a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exits {
    states: Vec<MeasuredState>,
}

/// A measured cost; one below the floor by noise is none.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // not negative, and `as` saturates
fn whole(ns: f64) -> u64 {
    ns.max(0.0).round() as u64
}

impl Exits {
    /// Of what was measured; of a state measured on several CPUs the first.
    pub fn of(measured: &[StateCosts]) -> Exits {
        let mut states: Vec<MeasuredState> = Vec::new();
        for (costs, state) in measured.iter().flat_map(|costs| costs.states.iter().map(move |s| (costs, s))) {
            let Some(found) = costs.measured_exit(&state.name) else { continue };
            if states.iter().any(|s| s.name == state.name && s.claimed_ns == state.claimed_exit_ns) {
                continue;
            }
            let floor = costs.states.iter().find(|s| s.name == found.floor && !s.is_polling);
            let floor = floor.map_or(Exit::POLLING, |s| Exit::claimed(s.claimed_exit_ns.unwrap_or(0)));
            let latency = state.wake(found.kind).map(|w| &w.latency);
            let tail_ns = latency.and_then(|d| Some(d.p99_ns()?.saturating_sub(d.p50_ns()?))).unwrap_or(0);
            let usual_ns = whole(found.extra.median_ns).saturating_add(floor.usual_ns);
            let worst_ns = whole(found.extra.high_ns).saturating_add(tail_ns).saturating_add(floor.worst_ns);
            states.push(MeasuredState {
                name: state.name.clone(),
                claimed_ns: state.claimed_exit_ns,
                exit: Exit { usual_ns, worst_ns: worst_ns.max(usual_ns), basis: ExitBasis::Measured },
            });
        }
        Exits { states }
    }

    /// Was no state measured?
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// What leaving a state of this name and this claim was measured to cost.
    pub fn exit(&self, name: &str, claimed_ns: u64) -> Option<Exit> {
        self.states.iter().find(|s| s.name == name && s.claimed_ns == Some(claimed_ns)).map(|s| s.exit)
    }

    /// States of this name that claim something else: of another machine, or of other firmware.
    pub fn other_claim(&self, name: &str, claimed_ns: u64) -> Option<String> {
        let all = || self.states.iter().filter(|s| s.name == name);
        if all().any(|s| s.claimed_ns == Some(claimed_ns)) {
            return None;
        }
        let other = all().next()?;
        let there = other.claimed_ns.map_or("nothing".to_string(), show_ns);
        Some(format!(
            "The cost measured of {name} is not used: the driver claims {there} there and {} here.",
            show_ns(claimed_ns)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::distribution::Distribution;
    use wakewatt_core::samples::state_cost::{StateCost, StateWake};
    use wakewatt_core::samples::wakeup::WakeKind;

    fn state(name: &str, claimed_ns: u64, rounds: &[u64]) -> StateCost {
        let latency = Distribution::from_ns((0..4000u64).map(|i| rounds[0] + if i % 50 == 0 { 9_000 } else { 0 }));
        let wake = StateWake {
            n_entered: 4000,
            n_entered_any: 4000,
            ..StateWake::of(WakeKind::Ipi, latency, rounds.to_vec())
        };
        StateCost {
            index: 0,
            name: name.into(),
            is_polling: name == "POLL",
            claimed_exit_ns: Some(claimed_ns),
            claimed_residency_ns: None,
            allowed_by: String::new(),
            n_entered: 4000,
            n_entered_any: 4000,
            time_ns: 0,
            n_rejected: None,
            not_entered: None,
            wakes: vec![wake],
            first_work: Vec::new(),
            round_own_ratio: Vec::new(),
        }
    }

    fn costs(states: Vec<StateCost>) -> StateCosts {
        let states = states.into_iter().zip(0..).map(|(s, index)| StateCost { index, ..s }).collect();
        let mut costs = StateCosts::of(1, states);
        costs.compare_with_floor();
        costs
    }

    #[test]
    fn a_measured_extra_stands_for_the_same_state_only() {
        let all = [costs(vec![state("POLL", 0, &[1000, 1000]), state("C6", 133_000, &[41_000, 43_000])])];
        let exits = Exits::of(&all);
        let c6 = exits.exit("C6", 133_000).unwrap();
        assert_eq!((c6.usual_ns, c6.basis), (41_000, ExitBasis::Measured));
        // The largest round, and nine microseconds of tail.
        assert!((50_500..51_500).contains(&c6.worst_ns), "{c6:?}");
        assert_eq!((exits.exit("C6", 170_000), exits.exit("C1", 133_000), exits.exit("POLL", 0)), (None, None, None));
        assert!(exits.other_claim("C6", 170_000).unwrap().contains("133us there and 170us here"));
        assert_eq!((exits.other_claim("C6", 133_000), exits.other_claim("C1", 2_000)), (None, None));
        assert!(Exits::of(&[]).is_empty());
    }

    #[test]
    fn without_a_polling_state_the_floor_costs_half_its_claim() {
        let all = [costs(vec![state("WFI", 2_000, &[3000, 3000]), state("deep", 800_000, &[203_000, 203_000])])];
        let exits = Exits::of(&all);
        assert_eq!(exits.exit("deep", 800_000).map(|e| e.usual_ns), Some(201_000));
        assert_eq!(exits.exit("WFI", 2_000), None, "nothing to count it from");
        // Noise below the floor is no negative cost.
        let odd = [costs(vec![state("POLL", 0, &[9000]), state("C1", 2_000, &[1000])])];
        assert_eq!(Exits::of(&odd).exit("C1", 2_000).map(|e| e.usual_ns), Some(0));
    }
}
