//! Doctor's experiment on the frequency governor, measured as requests see it: transactions of 500 us at a tenth of the load
//! the machine can carry, from the planned start, so idle exit and slow clock are both in the number.

use crate::noise::Limits;
use crate::plan::{Plan, PlanArm, PlanKind, PlanWorkload};
use wakewatt_core::choice;
use wakewatt_tune::request::{Place, Request};

/// Calibration takes so many intervals, of 1.3 times what is recorded, and it comes before the budget begins.
const CALIBRATION_RATIO: f64 = 6.0 * 1.3;
const SECOND_NS: u64 = 1_000_000_000;
const SETTLE_NS: u64 = 300_000_000;
/// Of what the machine can carry.
const SHARE: f64 = 0.1;
/// Above this the hypervisor took too much of a block.
const STEAL_RATIO: f64 = 0.05;

/// With blocks and looks that fit into this time.
pub fn frequency_plan(time_ns: u64) -> Plan {
    let (measure_s, looks) = match time_ns / SECOND_NS {
        110.. => (3, vec![8, 12]),
        70.. => (2, vec![8, 12]),
        _ => (1, vec![6]),
    };
    let measure_ns = measure_s * SECOND_NS;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // some seconds
    let calibration_ns = (measure_ns as f64 * CALIBRATION_RATIO) as u64;
    let budget_ns = time_ns.saturating_sub(calibration_ns);
    // The baseline twice in every round, where the first look is reached all the same.
    let block_ns = SETTLE_NS + measure_ns * 12 / 10;
    let first_ns = looks[0] as u64 * 3 * block_ns;
    let again_every = usize::from(first_ns < budget_ns);
    let performance = Request::new("freq.governor", Place::Everywhere, "performance");
    let kind = PlanKind::Steps { shares: vec![SHARE], service_ns: Some(choice::REQUEST_NS) };
    Plan {
        name: "doctor-frequency".into(),
        question: "What does the frequency governor cost a request that comes after a pause?".into(),
        primary: Some("steps.10.p50".into()),
        primary_with_meter: None,
        arms: vec![
            PlanArm::new(choice::FOUND, "governor as found"),
            PlanArm { requests: vec![performance], ..PlanArm::new(choice::PERFORMANCE, "governor performance") },
        ],
        workloads: vec![PlanWorkload { name: None, measure_ns, kind }],
        budget_ns,
        settle_ns: SETTLE_NS,
        measure_ns,
        looks,
        // A governor that is changed must settle first.
        short_ns: None,
        again_every,
        margin_ratio: 1.05,
        seed: None,
        is_strict: false,
        limits: Limits { steal_ratio: STEAL_RATIO, ..Limits::default() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::declared;

    #[test]
    fn its_first_look_fits_and_its_primary_metric_is_measured() {
        for time_s in [42, 86, 110, 129, 215] {
            let plan = frequency_plan(time_s * SECOND_NS);
            let round_ns = (2 + plan.again_every as u64) * (plan.settle_ns + plan.measure_ns * 12 / 10);
            let first_look_ns = plan.looks[0] as u64 * round_ns;
            assert!(first_look_ns < plan.budget_ns, "{time_s} s: {first_look_ns} of {} ns", plan.budget_ns);
            assert_eq!(plan.again_every, usize::from(time_s != 110), "{time_s} s");
            assert_eq!(declared::metrics(&plan).unwrap()[0].id, "steps.10.p50");
        }
    }
}
