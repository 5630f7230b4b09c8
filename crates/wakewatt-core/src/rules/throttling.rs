//! Has heat or a power limit slowed the CPUs down?
//!
//! `cpuN/thermal_throttle/*` (Intel) counts events and time since boot; a Processor cooling device above 0 is a limit in
//! force now that no cpufreq file shows. Case K1's opposite: loud fans and slow cores.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where, percent};
use crate::evidence::Evidence;
use crate::units::show_ns;
use wakewatt_words::{say, word};

const ROOT: &str = "/sys/devices/system/cpu/cpu*/thermal_throttle";

pub(super) struct Throttling;

impl Rule for Throttling {
    fn id(&self) -> &'static str {
        "rule.throttling"
    }
    fn question(&self) -> &'static str {
        word!("has heat or a power limit slowed the CPUs down?")
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::BareMetal]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let heat = &evidence.facts.thermal;
        let cooling: Vec<String> = heat
            .cooling_at_work()
            .into_iter()
            .filter(|(_, kind)| kind == "Processor")
            .map(|(n, _)| format!("cooling_device{n}"))
            .collect();
        let was = heat.was_throttled();
        if was != Some(true) && cooling.is_empty() {
            // Intel's processors count it; elsewhere only a cooling device at work shows here.
            if was.is_none() && Where::Intel.holds(&evidence.facts) == Some(false) {
                return Answer::DoesNotApply { because: word!("this processor does not count throttling").into() };
            }
            return match (was, heat.n_core_throttles.gaps().chain(heat.n_package_throttles.gaps()).next()) {
                (Some(_), _) => Answer::no(word!("no CPU was throttled since boot")),
                (None, Some((_, gap))) => Answer::gap(gap),
                (None, None) => Answer::cannot_tell(
                    word!("the machine does not count throttling"),
                    word!("Intel counts it in thermal_throttle; else read the BMC's log"),
                ),
            };
        }
        let most = |c: &crate::fact::PerCpu<u64>| c.known().map(|(_, n)| *n).max();
        let (core, package) = (most(&heat.n_core_throttles).unwrap_or(0), most(&heat.n_package_throttles).unwrap_or(0));
        let time = most(&heat.core_throttled_ns).max(most(&heat.package_throttled_ns));
        let share = time.zip(evidence.facts.load.uptime_ns.get()).map(|(t, up)| t as f64 / (*up).max(1) as f64);
        let weight =
            if !cooling.is_empty() || share.is_some_and(|s| s > 0.01) { Weight::Problem } else { Weight::Risk };
        let title = if cooling.is_empty() {
            let how_long = share.map_or(String::new(), |s| say!(", {} of the uptime", percent(s)));
            say!("CPUs were throttled since boot: a core up to {core} times, a package up to {package} times{how_long}")
        } else {
            say!("A processor cooling device limits the clock now: {}", cooling.join(", "))
        };
        let cost =
            Cost::unknown(word!("the clock fell below what was asked for that long; by how much is not counted"));
        let mut finding = Finding::new(self, weight, Confidence::High, title, cost);
        if was == Some(true) {
            finding =
                finding.on(format!("{ROOT}/core_throttle_count, package_throttle_count"), format!("{core}, {package}"));
        }
        if let Some(time) = time {
            finding = finding.on(format!("{ROOT}/*_throttle_total_time_ms"), show_ns(time));
        }
        for device in cooling {
            finding = finding.on(format!("/sys/class/thermal/{device}/cur_state"), "above 0");
        }
        finding
            .remedy(
                word!("Fans, airflow, inlet temperature and heat sink first, then the power limit (rule.power-limit). See \
                    whether the counters still grow."),
                word!("A visit to the machine."),
                word!("wakewatt inspect thermal twice under load, and compare the counters"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ask;
    use super::*;

    #[test]
    fn counters() {
        let check = |n: u64, ms: u64| {
            let at = "//- /sys/devices/system/cpu/cpu0/thermal_throttle";
            ask(
                &Throttling,
                &format!(
                    "//- \
                        /sys/devices/system/cpu/online\n0\n{at}/core_throttle_count\n{n}\n{at}/core_throttle_total_time_ms\n{ms}\n//- \
                        /proc/uptime\n1000.00 1.0\n"
                ),
            )
        };
        assert!(check(7, 1).starts_with("yes risk unknown: cpus were throttled since boot: a core up to 7 times"));
        assert!(check(7, 100_000).starts_with("yes problem"));
        assert!(check(0, 0).starts_with("no"));
        assert!(ask(&Throttling, "").starts_with("cannot tell"));
        let cooling = "//- /sys/class/thermal/cooling_device3/type\nProcessor\n//- \
            /sys/class/thermal/cooling_device3/cur_state\n2\n";
        assert!(ask(&Throttling, cooling).starts_with("yes problem unknown: a processor cooling device limits"));
    }
}
