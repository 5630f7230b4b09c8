//! Blocks as long as the meter needs: settled for as long as it averages, and counted for as long again.
//!
//! A BMC that repeats the mean of its last minute says of a block of three seconds what the blocks before drew
//! ([`wakewatt_core::samples::watts_by`]). So where the meter that works averages, the plan's blocks are made longer: then nothing of what
//! was set before is in the mean that counts, and "draws the same" can be claimed. That takes time from the same budget. Watts that
//! decide the run are worth it as long as its first look is reached; as a secondary question they must not cost the primary one a
//! look. Where the budget is too small blocks stay as the plan has them, watts are as undecidable as before, and it is said how much
//! would do. A command of the user's runs as long as it runs, so with one nothing is lengthened.

use super::forecast::round_ns;
use crate::meters::Meters;
use crate::plan::{Plan, PlanKind, PlanWorkload};
use wakewatt_core::samples::energy::Averaging;

/// The plan with longer blocks; none where they stay as they are. What was done, or what it would take, is added to `remarks`.
pub(super) fn fitted(plan: &Plan, meters: &Meters, n_arms: usize, remarks: &mut Vec<String>) -> Option<Plan> {
    let by = meters.watts_by(plan.settle_ns, plan.measure_ns)?;
    let Averaging::Over { ns } = by.averaging else { return None };
    if plan.workloads.iter().any(|w| matches!(w.kind, PlanKind::Command { .. })) {
        return None;
    }
    let workload = |w: &PlanWorkload| PlanWorkload { measure_ns: w.measure_ns.max(ns), ..w.clone() };
    let longer = Plan {
        settle_ns: plan.settle_ns.max(ns),
        measure_ns: plan.measure_ns.max(ns),
        workloads: plan.workloads.iter().map(workload).collect(),
        ..plan.clone()
    };
    if longer == *plan {
        return None;
    }
    // The looks that the budget reaches.
    let reached = |plan: &Plan| {
        let is_in = |n: &&usize| round_ns(plan, n_arms).saturating_mul(**n as u64) <= plan.budget_ns;
        plan.looks.iter().filter(is_in).max().copied()
    };
    let (before, after) = (reached(plan), reached(&longer));
    let wanted = match plan.primary_with_meter {
        Some(_) => plan.looks.iter().min().copied(),
        None => before.or(plan.looks.iter().min().copied()),
    }?;
    let seconds = |ns: u64| format!("{:.1} s", ns as f64 / 1e9);
    let over = seconds(ns);
    if after.is_some_and(|after| after >= wanted) {
        remarks.push(format!(
            "blocks are lengthened to the meter: {} averages over {over}, so each settles for {over} before it counts, and counts {} \
             at least; the time budget reaches the look after {} rounds",
            by.meter,
            seconds(longer.workloads.iter().map(|w| w.measure_ns).min().unwrap_or(longer.measure_ns)),
            after.unwrap_or(wanted)
        ));
        return Some(longer);
    }
    let needed_ns = round_ns(&longer, n_arms).saturating_mul(wanted as u64);
    remarks.push(format!(
        "{} averages over {over}, and blocks as long as that do not fit into the time budget: they stay as the plan has them; \
         --budget {}min would reach the look after {wanted} rounds",
        by.meter,
        needed_ns.div_ceil(60_000_000_000)
    ));
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::samples::Label;
    use wakewatt_core::samples::energy::{EnergySample, MeterSample};
    use wakewatt_host::power::MetersWanted;

    fn meters(averaging: Averaging) -> Meters {
        let mut meters = Meters::new(MetersWanted::default(), &[], &[], 1_000_000_000);
        let working = MeterSample { label: Label::Measured, why: None, ..MeterSample::unavailable("ipmi", "") };
        let seen = EnergySample {
            chosen: Some("ipmi".into()),
            meters: vec![working.averaged(averaging)],
            ..EnergySample::default()
        };
        assert_eq!(meters.keep(&seen), None);
        meters
    }

    fn plan(more: &str) -> Plan {
        let text = format!(
            "format = 1\nname = \"x\"\nquestion = \"Q?\"\nsettle = \"1s\"\nmeasure = \"9s\"\nlooks = [6, 12]\nagain_every = 0\n{more}\n\
             [[arm]]\nname = \"found\"\n[[arm]]\nname = \"poll\"\nmax_latency = \"poll\"\n[[workload]]\nkind = \"wakeup\"\n"
        );
        crate::plan::parse(&text, &|_| Err("none".into())).unwrap()
    }

    fn over(s: u64) -> Averaging {
        Averaging::Over { ns: s * 1_000_000_000 }
    }

    fn asked(plan: &Plan, averaging: Averaging) -> (Option<Plan>, Vec<String>) {
        let mut remarks = Vec::new();
        (fitted(plan, &meters(averaging), 2, &mut remarks), remarks)
    }

    #[test]
    fn blocks_grow_to_what_the_meter_averages_over_and_no_further() {
        // A round of two arms takes 2 x (1 + 9) s and grows to 2 x (20 + 20) s; twelve of them are 16 min.
        let (longer, remarks) = asked(&plan("budget = \"20min\""), over(20));
        let longer = longer.unwrap();
        assert_eq!((longer.settle_ns, longer.workloads[0].measure_ns), (20_000_000_000, 20_000_000_000));
        assert!(
            remarks[0].contains("ipmi averages over 20.0 s") && remarks[0].ends_with("after 12 rounds"),
            "{remarks:?}"
        );
        let by = meters(over(20)).watts_by(longer.settle_ns, longer.workloads[0].measure_ns).unwrap();
        assert!(by.can_show_equal() && by.blur_ratio() == Some(0.0));
        // It settles for longer than it averages already, and counts as long.
        let (longer, remarks) = asked(&plan("budget = \"20min\""), over(1));
        assert!(longer.is_none() && remarks.is_empty(), "{remarks:?}");
    }

    #[test]
    fn a_budget_that_is_too_small_is_said_and_nothing_is_lengthened() {
        let (longer, remarks) = asked(&plan("budget = \"10min\""), over(20));
        assert!(longer.is_none() && remarks[0].contains("do not fit into the time budget"), "{remarks:?}");
        assert!(remarks[0].contains("--budget 17min would reach the look after 12 rounds"), "{remarks:?}");
        let undecidable = meters(over(20)).watts_by(1_000_000_000, 9_000_000_000).unwrap();
        assert!(!undecidable.can_show_equal(), "as before");
        // Where watts decide, the first look is enough: six rounds are 8 min.
        let decides = plan("budget = \"10min\"\nprimary_with_meter = \"wakeup.watts\"");
        let (longer, remarks) = asked(&decides, over(20));
        assert!(longer.is_some() && remarks[0].ends_with("after 6 rounds"), "{remarks:?}");
    }

    #[test]
    fn counters_need_nothing_and_what_nobody_knows_cannot_be_fitted() {
        for averaging in [Averaging::Counter, Averaging::Unknown] {
            assert_eq!(asked(&plan("budget = \"20min\""), averaging), (None, vec![]));
        }
        assert!(fitted(&plan("budget = \"20min\""), &Meters::none(), 2, &mut Vec::new()).is_none());
        let mut command = plan("budget = \"1h\"");
        command.workloads[0].kind = PlanKind::Command { argv: vec!["true".into()], metrics: vec![] };
        assert_eq!(asked(&command, over(20)), (None, vec![]), "it runs as long as it runs");
    }
}
