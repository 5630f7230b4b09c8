//! Do tasks wait for a CPU?
//!
//! CPU pressure (PSI "some", Documentation/accounting/psi.rst) is the kernel's own measure: the share of time in which
//! at least one runnable task waited. Where it is off, the number of runnable tasks at one instant is a weak hint only.
//! Waiting for a CPU is not a slow wake-up, though a measurement under SCHED_OTHER sees both.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, percent};
use crate::evidence::Evidence;
use crate::fact::Fact;
use wakewatt_words::{say, word};

const PATH: &str = "/proc/pressure/cpu";

pub(super) struct RunQueueContention;

impl Rule for RunQueueContention {
    fn id(&self) -> &'static str {
        "rule.run-queue-contention"
    }
    fn question(&self) -> &'static str {
        word!("do tasks wait for a CPU?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let load = &evidence.facts.load;
        let n_cpus = evidence.facts.cpus.online.get().map_or(0, crate::cpuset::CpuSet::len) as u64;
        let running = load.stat.get().and_then(|s| s.n_running);
        let (weight, confidence, title, path, says) = match &load.cpu_pressure {
            Fact::Known(p) if p.some.over_60s_ratio >= 0.1 => {
                let share = percent(p.some.over_60s_ratio);
                (
                    Weight::Problem,
                    Confidence::High,
                    say!("Tasks waited for a CPU during {share} of the last minute"),
                    PATH,
                    share,
                )
            }
            Fact::Known(p) => {
                return Answer::no(say!(
                    "tasks waited for a CPU during {} of the last minute",
                    percent(p.some.over_60s_ratio)
                ));
            }
            Fact::Gap(gap) => match running {
                Some(n) if n_cpus > 0 && n > 2 * n_cpus => (
                    Weight::Risk,
                    Confidence::Low,
                    say!("{n} tasks were runnable on {n_cpus} CPUs at one instant"),
                    "/proc/stat",
                    format!("procs_running {n}"),
                ),
                _ => return Answer::gap(gap),
            },
        };
        let cost = Cost::unknown(word!(
            "time in the run queue, which adds to every wake-up; see the difference between the measured wake-up \
                under FIFO and under normal scheduling"
        ));
        Finding::new(self, weight, confidence, title, cost)
            .on(path, says)
            .remedy(
                word!(
                    "Fewer runnable threads, more CPUs, or a CPU of its own for the work that must not wait. Only then \
                    look at idle states."
                ),
                word!("Capacity, or a lower use of the machine."),
                word!("wakewatt inspect load; wakewatt measure wakeup"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ask;
    use super::*;

    #[test]
    fn pressure() {
        let check =
            |p: &str| ask(&RunQueueContention, &format!("//- {PATH}\nsome avg10=0.00 avg60={p} avg300=0.00 total=5\n"));
        assert_eq!(check("25.00"), "yes problem unknown: tasks waited for a cpu during 25 % of the last minute");
        assert!(check("1.00").starts_with("no"));
        assert!(ask(&RunQueueContention, "").starts_with("cannot tell"));
        let instant = "//- /sys/devices/system/cpu/online\n0-1\n//- /proc/stat\ncpu 1 0 0 1\nprocs_running 9\n";
        assert!(ask(&RunQueueContention, instant).starts_with("yes risk"));
    }
}
