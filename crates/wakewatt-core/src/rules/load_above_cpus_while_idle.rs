//! Is the load average above the number of CPUs while the CPUs idle?
//!
//! The symptom of case K0: load up to 300 % of the cores, CPU use 50 %. Load counts tasks that run, wait, or sleep in
//! uninterruptible I/O; the idle share is a mean since boot and may describe another day, so this is a hint that sends
//! one to the idle rules, to CPU quotas and to I/O.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, percent};
use crate::evidence::Evidence;
use wakewatt_words::{say, word};

pub(super) struct LoadAboveCpusWhileIdle;

impl Rule for LoadAboveCpusWhileIdle {
    fn id(&self) -> &'static str {
        "rule.load-above-cpus-while-idle"
    }
    fn question(&self) -> &'static str {
        word!("is the load average above the number of CPUs while the CPUs idle?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let load = &evidence.facts.load;
        if let Some(gap) = load.average.gap().or(load.stat.gap()).or(evidence.facts.cpus.online.gap()) {
            return Answer::gap(gap);
        }
        let (Some(average), Some(stat), Some(online)) =
            (load.average.get(), load.stat.get(), evidence.facts.cpus.online.get())
        else {
            return Answer::no(word!("not known"));
        };
        let n = online.len() as f64;
        let Some(idle) = stat.total.ratio(stat.total.idle_ns) else {
            return Answer::cannot_tell(
                word!("no CPU time has been counted"),
                word!("wakewatt inspect load a little later"),
            );
        };
        if average.over_5min <= n || idle < 0.3 {
            return Answer::no(say!("load {:.1} on {n} CPUs, {} idle since boot", average.over_5min, percent(idle)));
        }
        let title = say!(
            "Load average {:.1} exceeds {n} CPUs, which were {} idle since boot",
            average.over_5min,
            percent(idle)
        );
        let cost =
            Cost::unknown(word!("a symptom: tasks are ready or blocked while CPUs idle; the cause decides the size"));
        Finding::new(self, Weight::Risk, Confidence::Low, title, cost)
            .on("/proc/loadavg", format!("{:.2} {:.2} {:.2}", average.over_1min, average.over_5min, average.over_15min))
            .on(
                "/proc/stat",
                say!(
                    "{} idle, {} waiting for I/O, {} tasks blocked now",
                    percent(idle),
                    percent(stat.total.ratio(stat.total.iowait_ns).unwrap_or(0.0)),
                    stat.n_blocked.unwrap_or(0)
                ),
            )
            .remedy(
                word!("Look in this order: tasks blocked in I/O, CPU quotas (rule.cfs-quota), then wake-up cost and clock \
                    speed (rule.deep-idle-vs-latency, rule.governor)."),
                word!("None for looking."),
                word!("wakewatt doctor as root measures which of them it is"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ask;
    use super::*;

    #[test]
    fn case_k0() {
        let check = |load: &str, stat: &str| {
            ask(
                &LoadAboveCpusWhileIdle,
                &format!(
                    "//- /sys/devices/system/cpu/online\n0-47\n//- /proc/loadavg\n{load}\n//- /proc/stat\ncpu {stat}\n"
                ),
            )
        };
        assert_eq!(
            check("70.0 60.0 50.0 3/900 1", "40 0 10 50"),
            "yes risk unknown: load average 60.0 exceeds 48 cpus, which were 50 % idle since boot"
        );
        assert!(check("7.0 6.0 5.0 3/900 1", "40 0 10 50").starts_with("no"));
        assert!(check("70.0 60.0 50.0 3/900 1", "90 0 5 5").starts_with("no"));
        assert!(ask(&LoadAboveCpusWhileIdle, "").starts_with("cannot tell"));
    }
}
