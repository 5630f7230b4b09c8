//! The arms of every experiment with idle states: the machine as found, shallow idle only, no sleep at all.
//!
//! `found`: nothing is held. `shallow`: the global limit is held at the exit latency of the shallowest state that sleeps, so
//! only that one and polling remain; it is an arm only where deeper states exist. `poll`: the limit is held at zero.
//! Where somebody left per-CPU limits, `lifted` removes them for its blocks (journaled, guarded, put back): otherwise
//! "current settings" would already be polling and the experiment would find nothing. The plan `idle` has the first three as text.

use crate::plan::{ArmLimit, PlanArm};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::facts::pm_qos::GLOBAL;
use wakewatt_core::samples::compared::{LIFTED, POLL, SHALLOW};
use wakewatt_core::units::LatencyLimit;
use wakewatt_tune::request::{Place, Request};

/// Those that make sense here; `cpus` are those the workload runs on.
pub fn arms(facts: &Snapshot, cpus: &CpuSet) -> Result<Vec<PlanArm>, String> {
    if facts.idle.states.is_empty() {
        return Err("this machine has no idle driver, so the kernel offers no setting to turn (/sys/devices/system/cpu/cpu0/cpuidle is missing)".into());
    }
    if matches!(facts.qos.global.get(), Some(LatencyLimit::Poll)) {
        return Err(format!(
            "{GLOBAL} is already held at 0 by another process, so this machine polls and there is nothing to compare; stop the holder first (wakewatt inspect holders)"
        ));
    }
    let held = |name: &str, title: &str, limit| PlanArm { limit: Some(limit), ..PlanArm::new(name, title) };
    let mut arms = vec![PlanArm::new("found", "current settings")];
    if crate::idle_limits::shallowest(facts).is_ok() {
        arms.push(held(SHALLOW, "shallow", ArmLimit::Shallowest));
    }
    arms.push(held(POLL, "idle states disabled (polling)", ArmLimit::At(LatencyLimit::Poll)));
    let limited = facts.qos.per_cpu.cpus_where(|l| *l != LatencyLimit::None).and(cpus);
    if !limited.is_empty() {
        let lift = Request::new("qos.cpu", Place::Cpus(limited), &LatencyLimit::None.to_string());
        arms.push(PlanArm { requests: vec![lift], ..PlanArm::new(LIFTED, "per-CPU limits lifted") });
    }
    Ok(arms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;
    use wakewatt_host::simulated::cpus;

    fn facts(more: &str) -> Snapshot {
        let cpu = "/sys/devices/system/cpu";
        let text = format!("//- {cpu}/online\n0-1\n//- {cpu}/present\n0-1\n{}{more}", cpus::idle_states());
        Snapshot::read(&Tree::from_text(&text), |_| true)
    }

    #[test]
    fn the_plan_idle_means_the_same_by_the_same_names() {
        let cpus = CpuSet::parse("0-1").unwrap();
        let plan = crate::plan::parse(crate::plan::shipped("idle").unwrap(), &|_| Err("none".into())).unwrap();
        assert_eq!(arms(&facts(""), &cpus).unwrap(), plan.arms);
    }

    #[test]
    fn limits_that_somebody_left_on_the_measured_cpus_are_lifted() {
        let left = facts("//- /sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us\nn/a\n");
        let names = |cpus: &str| -> Vec<String> {
            arms(&left, &CpuSet::parse(cpus).unwrap()).unwrap().into_iter().map(|arm| arm.name).collect()
        };
        assert_eq!(names("0-1"), ["found", "shallow", "poll", "lifted"]);
        assert_eq!(names("0"), ["found", "shallow", "poll"]);
        let none = arms(&Snapshot::read(&Tree::default(), |_| true), &CpuSet::new());
        assert!(none.unwrap_err().contains("no idle driver"));
    }
}
