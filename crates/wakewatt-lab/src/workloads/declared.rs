//! Which metrics will a plan have? Answered from the plan alone, so that a dry run finds a primary metric that cannot be.
//!
//! As on a machine that has everything: a second CPU, a loopback interface, a power meter. What is missing on the machine at
//! hand is left out when the plan runs, with a remark.

use super::{alone, call, command, level, network, primary_among, watts_of};
use crate::plan::{Plan, PlanKind, PlanWorkload};
use crate::{disk_workload, wake_workload};
use wakewatt_core::samples::disk::DiskEngine;
use wakewatt_core::samples::experiment::Metric;
use wakewatt_core::samples::load::Ask;
use wakewatt_core::samples::network::Transport;

/// What shares of a plan ask for.
pub fn asks_of_shares(shares: &[f64]) -> Vec<Ask> {
    shares.iter().map(|share| if *share > 0.0 { Ask::Share(*share) } else { Ask::Idle }).collect()
}

/// What numbers of clients ask for.
pub fn asks_of_clients(clients: &[u32]) -> Vec<Ask> {
    clients.iter().map(|n| Ask::Clients(*n)).collect()
}

fn of(kind: &PlanKind) -> Vec<Metric> {
    let mut metrics = match kind {
        PlanKind::Wakeup { .. } => wake_workload::metrics_of(),
        PlanKind::Network { is_tcp, .. } => network::metrics_of(if *is_tcp { Transport::Tcp } else { Transport::Udp }),
        PlanKind::Disk { is_uring, .. } => {
            let engine = if *is_uring { DiskEngine::IoUring } else { DiskEngine::Psync };
            disk_workload::metrics_of(engine, "read")
        }
        PlanKind::Alone => alone::metrics_of(),
        PlanKind::Command { metrics, .. } => command::metrics_of(metrics),
        PlanKind::Steps { shares, .. } => return level::metrics_of("steps", "graduated load", &asks_of_shares(shares)),
        PlanKind::Shop { clients } => return level::metrics_of("shop", "online shop", &asks_of_clients(clients)),
    };
    metrics.push(watts_of(kind.word()));
    metrics
}

/// Samples of the first latency of a block that measures for so long; none where only measuring tells.
pub fn expected_samples(kind: &PlanKind, measure_ns: u64) -> Option<u64> {
    match kind {
        PlanKind::Wakeup { .. } => Some(wake_workload::expected_wakes(measure_ns)),
        PlanKind::Network { .. }
        | PlanKind::Disk { .. }
        | PlanKind::Steps { .. }
        | PlanKind::Shop { .. }
        | PlanKind::Alone
        | PlanKind::Command { .. } => None,
    }
}

/// Can the primary metric be measured within a fraction of a second? It must be the first one of such a workload.
pub fn is_short(plan: &Plan, primary: &str) -> bool {
    let first = |workload: &PlanWorkload| {
        let mut metrics = of(&workload.kind);
        call(workload.name.as_deref(), &mut metrics);
        metrics.into_iter().next()
    };
    let is_able =
        |kind: &PlanKind| matches!(kind, PlanKind::Wakeup { .. } | PlanKind::Network { .. } | PlanKind::Disk { .. });
    plan.workloads.iter().filter(|w| is_able(&w.kind)).filter_map(first).any(|metric| metric.id == primary)
}

/// The metrics a plan can have, the primary one first. An unknown primary metric is an error with the nearest name.
pub fn metrics(plan: &Plan) -> Result<Vec<Metric>, String> {
    let mut all = Vec::new();
    for workload in &plan.workloads {
        let mut metrics = of(&workload.kind);
        call(workload.name.as_deref(), &mut metrics);
        all.append(&mut metrics);
    }
    // Both are declared, so both must be there to be had.
    if let Some(with_meter) = &plan.primary_with_meter {
        primary_among(&all, Some(with_meter))?;
    }
    let first = primary_among(&all, plan.primary.as_deref())?;
    if let Some(first) = all.get_mut(..=first) {
        first.rotate_right(1);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(primary: &str, workloads: &str) -> Result<Vec<Metric>, String> {
        let text = format!(
            "format = 1\nname = \"x\"\nquestion = \"Q?\"\n{primary}\n[[arm]]\nname = \"found\"\n[[arm]]\nname = \"poll\"\nmax_latency = \"poll\"\n{workloads}"
        );
        metrics(&crate::plan::parse(&text, &|_| Err("none".into())).unwrap())
    }

    #[test]
    fn the_primary_metric_of_every_plan_can_be_had() {
        for (name, text) in crate::plan::SHIPPED {
            let plan = crate::plan::parse(text, &|_| Ok(wakewatt_tune::profile::Profile::default())).unwrap();
            let first = metrics(&plan).unwrap_or_else(|why| panic!("{name}: {why}")).remove(0);
            assert!(plan.primary.is_none_or(|primary| primary == first.id), "{name}");
        }
        let steps = plan("", "[[workload]]\nkind = \"steps\"").unwrap();
        assert_eq!(steps[0].id, "steps.100.rate", "no latency at 100 %, so it cannot decide");
        assert!(steps.iter().all(|m| m.id != "steps.100.p99") && steps.iter().any(|m| m.id == "steps.50.p99"));
        let why = plan("primary = \"steps.100.p99\"", "[[workload]]\nkind = \"steps\"").unwrap_err();
        assert!(why.contains("no metric steps.100.p99"), "{why}");
        let named = plan(
            "primary = \"lo.network.tcp.p99\"",
            "[[workload]]\nkind = \"wakeup\"\n[[workload]]\nkind = \"network\"\nname = \"lo\"\ntransport = \"tcp\"",
        );
        assert_eq!(named.unwrap()[0].id, "lo.network.tcp.p99");
        let why = plan("primary_with_meter = \"steps.50.per-jule\"", "[[workload]]\nkind = \"steps\"").unwrap_err();
        assert!(why.contains("did you mean steps.50.per-joule?"), "{why}");
        let governors = crate::plan::shipped("k4-governors").unwrap();
        let governors = crate::plan::parse(governors, &|_| Ok(wakewatt_tune::profile::Profile::default())).unwrap();
        assert_eq!(governors.primary_where(true), Some("steps.50.per-joule"), "the question is work per watt");
        assert_eq!(governors.primary_where(false), Some("steps.50.p99"));
    }
}
