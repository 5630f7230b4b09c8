//! Are groups of processes stopped by a CPU quota?
//!
//! A throttled group stands still until its next period (usually 100 ms) while CPUs idle, and looks like slow wake-ups
//! (`cpu.stat` of cgroup v1 and v2, kernel documentation scheduler/sched-bwc.rst). Counters are since the group was
//! made. Inside a container, limits above it are not visible.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, percent};
use crate::evidence::Evidence;
use crate::units::show_ns;
use wakewatt_words::{say, word};

pub(super) struct CfsQuota;

impl Rule for CfsQuota {
    fn id(&self) -> &'static str {
        "rule.cfs-quota"
    }
    fn question(&self) -> &'static str {
        word!("are groups of processes stopped by a CPU quota?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let groups = &evidence.facts.cgroup;
        let worst = groups.worst().and_then(|g| Some((g, g.throttled_ratio()?))).filter(|(_, ratio)| *ratio >= 0.01);
        let Some((group, ratio)) = worst else {
            if let Some(gap) = &groups.cut {
                return Answer::gap(gap);
            }
            if groups.versions.is_empty() {
                return Answer::cannot_tell(
                    word!("no control group is visible"),
                    word!("wakewatt inspect cgroup on the machine itself"),
                );
            }
            return Answer::no(say!("none of {} groups was stopped in 1 % of its periods", groups.n_groups));
        };
        let n = group.n_throttled.get().copied().unwrap_or(0);
        let quota = group.quota_cpus().map_or(word!("no quota now").to_string(), |n| say!("a quota of {n:.2} CPUs"));
        let title = say!("{} ({quota}) was stopped in {} of its periods", group.path, percent(ratio));
        let cost = match group.throttled_ns.get() {
            Some(total) if n > 0 => {
                let mean = total / n;
                Cost::predicted_ns(
                    mean as f64,
                    say!(
                        "{} of standing still per throttling, the mean of the kernel's own counters; {n} times",
                        show_ns(mean)
                    ),
                )
            }
            _ => Cost::unknown(word!("the group stands still until its next period")),
        };
        let weight = if ratio >= 0.05 { Weight::Problem } else { Weight::Risk };
        Finding::new(self, weight, Confidence::High, title, cost)
            .on(
                format!("{}/cpu.stat", group.path),
                say!("{n} of {} periods throttled", group.n_periods.get().copied().unwrap_or(0)),
            )
            .remedy(
                word!(
                    "Raise or remove the quota (in Kubernetes: the CPU limit), or lower the number of threads so that \
                    they do not use up a period at once."
                ),
                word!("The group can take more CPU from its neighbours."),
                word!("wakewatt inspect cgroup before and after: the count should stop growing"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ask;
    use super::*;

    #[test]
    fn throttled() {
        let root = "//- /sys/fs/cgroup";
        let check = |n: u64| {
            ask(
                &CfsQuota,
                &format!(
                    "{root}/cgroup.controllers\ncpu\n{root}/pod/cpu.max\n50000 \
                        100000\n{root}/pod/cpu.stat\nusage_usec 1\nnr_periods 1000\nnr_throttled \
                        {n}\nthrottled_usec 9000\n"
                ),
            )
        };
        let said = check(100);
        assert!(
            said.starts_with("yes problem predicted: /sys/fs/cgroup/pod (a quota of 0.50 cpus) was stopped in 10 %"),
            "{said}"
        );
        assert!(check(0).starts_with("no"));
        assert!(ask(&CfsQuota, "").starts_with("cannot tell"));
    }
}
