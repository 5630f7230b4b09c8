//! The idle table that was measured, as the boot parameter `intel_idle.table=` takes it (Linux 7.0 and later).
//!
//! The kernel wants worst cases in microseconds, `NAME:LATENCY:RESIDENCY`, rising from state to state, and drops the whole
//! line otherwise; states that are not named keep their own numbers. So the latency is the largest of the rounds' extras
//! plus the tail (99th percentile over median) of the interrupt or futex wake-ups, plus what the floor claims. A residency is
//! an energy break-even, which takes watts per state: `measure idle` measures none, so the driver's stays, raised to the
//! latency where it is below it. Only where the numbers rise is there a line. Source: the kernel's
//! Documentation/admin-guide/pm/intel_idle.rst of 7.0.

use super::state_cost::{StateCost, StateCosts, StateWake};
use super::wakeup::WakeKind;

/// The first kernel that takes such a line.
pub const SINCE: &str = "7.0";

/// One state of the line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    name: String,
    latency_us: u64,
    residency_us: u64,
    is_measured: bool,
}

/// The parameter, or why there is none.
pub fn parameter(costs: &StateCosts) -> Result<String, String> {
    if costs.driver.as_deref() != Some("intel_idle") {
        return Err("the parameter is intel_idle's".into());
    }
    let rows: Vec<Row> = costs.states.iter().filter(|s| !s.is_polling).filter_map(row).collect();
    if !rows.iter().any(|r| r.is_measured) {
        return Err("no state was measured beyond its floor".into());
    }
    for pair in rows.windows(2) {
        if pair[0].latency_us >= pair[1].latency_us || pair[0].residency_us > pair[1].residency_us {
            return Err(format!(
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
    let words: Vec<String> = rows
        .iter()
        .filter(|r| r.is_measured)
        .map(|r| format!("{}:{}:{}", r.name, r.latency_us, r.residency_us))
        .collect();
    Ok(format!("intel_idle.table={}", words.join(",")))
}

/// A state's row: measured where it can be, else the driver's own, which stays in force.
fn row(state: &StateCost) -> Option<Row> {
    let (claimed, residency) = (state.claimed_exit_ns?, state.claimed_residency_ns?);
    let is_word = state.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let worst = [WakeKind::Ipi, WakeKind::Futex].iter().filter_map(|k| worst_ns(state.wake(*k)?)).max();
    let worst = worst.filter(|_| state.is_entered() && is_word);
    let latency_us = worst.map_or(claimed / 1000, |ns| ns.div_ceil(1000).max(1));
    let residency_us = (residency / 1000).max(if worst.is_some() { latency_us } else { 0 });
    Some(Row { name: state.name.clone(), latency_us, residency_us, is_measured: worst.is_some() })
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

    /// A state with claims, and 2000 interrupts: half at the median, half at the tail's distance above it.
    fn state(name: &str, claimed_us: u64, residency_us: u64, high_us: Option<f64>) -> StateCost {
        let extra = high_us.map(|us| Extra {
            median_ns: us * 900.0,
            low_ns: us * 800.0,
            high_ns: us * 1000.0,
            n_rounds: 6,
            over_claimed_ns: 0,
        });
        let wake = StateWake {
            kind: WakeKind::Ipi,
            n_entered: 2000,
            n_entered_any: 2000,
            latency: Distribution::from_ns((0..2000).map(|at| if at < 1900 { 5_000 } else { 9_000 })),
            round_p50_ns: Vec::new(),
            extra,
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
        }
    }

    fn costs(states: Vec<StateCost>) -> StateCosts {
        StateCosts {
            cpu: 0,
            from_cpu: Some(1),
            set_cpus: crate::cpuset::CpuSet::new(),
            governor: None,
            driver: Some("intel_idle".into()),
            gap_ns: 1,
            n_rounds: 6,
            seed: 1,
            scheduling: None,
            window: crate::samples::Window::default(),
            states,
            floor: Some("POLL".into()),
            not_restored: Vec::new(),
        }
    }

    #[test]
    fn worst_cases_and_claimed_residencies() {
        let table =
            costs(vec![state("POLL", 0, 0, None), state("C1", 1, 1, Some(1.0)), state("C6", 290, 800, Some(60.0))]);
        assert_eq!(parameter(&table).unwrap(), "intel_idle.table=C1:6:6,C6:65:800");
    }

    #[test]
    fn an_unmeasured_state_keeps_its_own_and_must_still_fit() {
        let unmeasured = |us| costs(vec![state("C1", 1, 1, None), state("C6", us, 800, Some(60.0))]);
        assert_eq!(parameter(&unmeasured(290)).unwrap(), "intel_idle.table=C6:65:800");
        let falling = costs(vec![state("C1E", 100, 100, None), state("C6", 290, 800, Some(60.0))]);
        assert!(parameter(&falling).unwrap_err().contains("do not rise from C1E (100us, 100us) to C6 (65us, 800us)"));
        assert!(parameter(&costs(vec![state("C1", 1, 1, None)])).is_err());
        let other = StateCosts { driver: Some("acpi_idle".into()), ..unmeasured(290) };
        assert!(parameter(&other).is_err(), "only intel_idle takes it");
    }
}
