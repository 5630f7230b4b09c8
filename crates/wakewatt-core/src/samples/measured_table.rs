//! The idle table that was measured, as the boot parameter `intel_idle.table=` takes it (Linux 7.0 and later).
//!
//! The kernel wants worst cases in microseconds, `NAME:LATENCY:RESIDENCY`, rising from state to state, and drops the whole
//! line otherwise; states that are not named keep their own numbers. So the latency is the largest of the rounds' extras
//! plus the tail (99th percentile over median) of the interrupt or futex wake-ups, plus what the floor claims. A residency is
//! an energy break-even: the measured one where a meter could tell it (`state_energy`), the median of the rounds; else the
//! driver's stays. Either is raised to the latency where it is below it. Whose each is goes with the line. Only where the numbers
//! rise is there a line. Source: the kernel's Documentation/admin-guide/pm/intel_idle.rst of 7.0.

use super::state_cost::{StateCost, StateCosts, StateWake};
use super::state_energy::BreakEven;
use super::wakeup::WakeKind;
use wakewatt_words::{say, word};

/// The first kernel that takes such a line.
pub const SINCE: &str = "7.0";

/// The boot parameter, and whose its target residencies are.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// `intel_idle.table=…`
    pub line: String,
    /// The states of the line, in its order.
    pub residencies: Vec<Residency>,
}

/// A target residency of the line.
#[derive(Clone, Debug, PartialEq)]
pub struct Residency {
    /// Name of the state.
    pub state: String,
    /// As it stands in the line: never below the state's latency there.
    pub us: u64,
    /// The energy break-even it follows from; none where it is the driver's.
    pub measured: Option<BreakEven>,
}

/// One state of the table.
#[derive(Clone, Debug)]
struct Row {
    name: String,
    latency_us: u64,
    residency_us: u64,
    is_measured: bool,
    break_even: Option<BreakEven>,
}

/// The parameter, or why there is none.
pub fn parameter(costs: &StateCosts) -> Result<Parameter, String> {
    if costs.driver.as_deref() != Some("intel_idle") {
        return Err(word!("the parameter is intel_idle's").into());
    }
    let rows: Vec<Row> = costs.states.iter().filter(|s| !s.is_polling).filter_map(|s| row(costs, s)).collect();
    if !rows.iter().any(|r| r.is_measured) {
        return Err(word!("no state was measured beyond its floor").into());
    }
    for pair in rows.windows(2) {
        if pair[0].latency_us >= pair[1].latency_us || pair[0].residency_us > pair[1].residency_us {
            return Err(say!(
                "the numbers do not rise from {} ({}us, {}us) to {} ({}us, {}us), and the kernel would drop the line",
                pair[0].name,
                pair[0].latency_us,
                pair[0].residency_us,
                pair[1].name,
                pair[1].latency_us,
                pair[1].residency_us
            ));
        }
    }
    let measured: Vec<Row> = rows.into_iter().filter(|r| r.is_measured).collect();
    let words: Vec<String> =
        measured.iter().map(|r| format!("{}:{}:{}", r.name, r.latency_us, r.residency_us)).collect();
    let residency = |r: Row| Residency { state: r.name, us: r.residency_us, measured: r.break_even };
    Ok(Parameter {
        line: format!("intel_idle.table={}", words.join(",")),
        residencies: measured.into_iter().map(residency).collect(),
    })
}

/// A state's row: measured where it can be, else the driver's own, which stays in force.
fn row(costs: &StateCosts, state: &StateCost) -> Option<Row> {
    let (claimed, residency) = (state.claimed_exit_ns?, state.claimed_residency_ns?);
    let is_word = state.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let worst = [WakeKind::Ipi, WakeKind::Futex].iter().filter_map(|k| worst_ns(state.wake(*k)?)).max();
    let worst = worst.filter(|_| state.is_entered() && is_word);
    let latency_us = worst.map_or(claimed / 1000, |ns| ns.div_ceil(1000).max(1));
    let energy = costs.energy.as_ref().filter(|_| worst.is_some()).and_then(|e| e.state(&state.name));
    let break_even = energy.and_then(|e| e.break_even.clone());
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // not negative, and far below 2^64
    let measured_us = break_even.as_ref().map(|b| (b.median_ns.max(0.0) / 1000.0).ceil() as u64);
    let residency_us = measured_us.unwrap_or(residency / 1000).max(if worst.is_some() { latency_us } else { 0 });
    Some(Row { name: state.name.clone(), latency_us, residency_us, is_measured: worst.is_some(), break_even })
}

/// Extra, tail and floor of one kind of wake-up.
fn worst_ns(wake: &StateWake) -> Option<u64> {
    let extra = wake.extra?;
    let tail = wake.latency.p99_ns()?.saturating_sub(wake.latency.p50_ns()?);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // not negative, and far below 2^64
    let high = extra.high_ns.max(0.0).ceil() as u64;
    Some(high.saturating_add(tail).saturating_add(extra.over_claimed_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::Distribution;
    use crate::samples::state_cost::Extra;
    use crate::samples::state_energy::{EnergyOfStates, StateEnergy};

    /// A state with claims, and 2000 interrupts: half at the median, half at the tail's distance above it.
    fn state(name: &str, claimed_us: u64, residency_us: u64, high_us: Option<f64>) -> StateCost {
        let extra = high_us.map(|us| Extra {
            median_ns: us * 900.0,
            low_ns: us * 800.0,
            high_ns: us * 1000.0,
            n_rounds: 6,
            over_claimed_ns: 0,
        });
        let latency = Distribution::from_ns((0..2000).map(|at| if at < 1900 { 5_000 } else { 9_000 }));
        let wake = StateWake {
            n_entered: 2000,
            n_entered_any: 2000,
            extra,
            ..StateWake::of(WakeKind::Ipi, latency, Vec::new())
        };
        StateCost {
            index: 1,
            name: name.into(),
            is_polling: name == "POLL",
            claimed_exit_ns: Some(claimed_us * 1000),
            claimed_residency_ns: Some(residency_us * 1000),
            allowed_by: String::new(),
            n_entered: 2000,
            n_entered_any: 2000,
            time_ns: 1,
            n_rejected: None,
            not_entered: None,
            wakes: vec![wake],
            first_work: Vec::new(),
            round_own_ratio: Vec::new(),
        }
    }

    fn costs(states: Vec<StateCost>) -> StateCosts {
        StateCosts { driver: Some("intel_idle".into()), floor: Some("POLL".into()), ..StateCosts::of(0, states) }
    }

    #[test]
    fn worst_cases_and_claimed_residencies() {
        let table =
            costs(vec![state("POLL", 0, 0, None), state("C1", 1, 1, Some(1.0)), state("C6", 290, 800, Some(60.0))]);
        let found = parameter(&table).unwrap();
        assert_eq!(found.line, "intel_idle.table=C1:6:6,C6:65:800");
        assert!(found.residencies.iter().all(|r| r.measured.is_none()), "no watts, so they are the driver's");
    }

    #[test]
    fn measured_energy_makes_the_residency() {
        let mut table =
            costs(vec![state("POLL", 0, 0, None), state("C1", 1, 1, Some(1.0)), state("C6", 290, 800, Some(60.0))]);
        let break_even = |ns: f64| BreakEven {
            over: "C1".into(),
            median_ns: ns,
            low_ns: ns * 0.9,
            high_ns: ns * 1.1,
            covers: crate::covers::Covers::Run,
            n_rounds: 6,
            saves_uw: 1.0,
            costs_uj: 1.0,
        };
        let energy = |name: &str, found: Option<BreakEven>| StateEnergy {
            name: name.into(),
            break_even: found,
            ..StateEnergy::default()
        };
        let mut with = |ns: f64| {
            let states = vec![energy("POLL", None), energy("C1", None), energy("C6", Some(break_even(ns)))];
            table.energy = Some(EnergyOfStates { states, ..EnergyOfStates::default() });
            parameter(&table).unwrap()
        };
        let found = with(410_200.0);
        assert_eq!(found.line, "intel_idle.table=C1:6:6,C6:65:411");
        assert!(found.residencies[0].measured.is_none() && found.residencies[1].measured.is_some());
        assert_eq!(with(20_000.0).line, "intel_idle.table=C1:6:6,C6:65:65", "never below the latency");
    }

    #[test]
    fn an_unmeasured_state_keeps_its_own_and_must_still_fit() {
        let unmeasured = |us| costs(vec![state("C1", 1, 1, None), state("C6", us, 800, Some(60.0))]);
        assert_eq!(parameter(&unmeasured(290)).unwrap().line, "intel_idle.table=C6:65:800");
        let falling = costs(vec![state("C1E", 100, 100, None), state("C6", 290, 800, Some(60.0))]);
        assert!(parameter(&falling).unwrap_err().contains("do not rise from C1E (100us, 100us) to C6 (65us, 800us)"));
        assert!(parameter(&costs(vec![state("C1", 1, 1, None)])).is_err());
        let other = StateCosts { driver: Some("acpi_idle".into()), ..unmeasured(290) };
        assert!(parameter(&other).is_err(), "only intel_idle takes it");
    }
}
