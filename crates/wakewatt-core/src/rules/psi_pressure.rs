//! Do tasks wait for memory or for I/O?
//!
//! Pressure stall information (Documentation/accounting/psi.rst): the share of the last minute in which at least one
//! task waited. Both look like a slow machine and have nothing to do with idle states.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, percent};
use crate::evidence::Evidence;
use wakewatt_words::{say, word};

pub(super) struct PsiPressure;

impl Rule for PsiPressure {
    fn id(&self) -> &'static str {
        "rule.psi-pressure"
    }
    fn question(&self) -> &'static str {
        word!("do tasks wait for memory or for I/O?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let load = &evidence.facts.load;
        let all = [("memory", &load.memory_pressure, 0.05), ("io", &load.io_pressure, 0.2)];
        let known = all.iter().filter_map(|(name, p, limit)| Some((*name, p.get()?.some.over_60s_ratio, *limit)));
        let Some((name, ratio, limit)) = known.max_by(|a, b| (a.1 / a.2).total_cmp(&(b.1 / b.2))) else {
            return load.memory_pressure.gap().map_or_else(|| Answer::no(word!("none")), Answer::gap);
        };
        if ratio < limit {
            return Answer::no(say!("tasks waited for {name} during {} of the last minute", percent(ratio)));
        }
        let cost = Cost::unknown(word!("tasks stood still for that share of the time; which ones is not known"));
        Finding::new(
            self,
            Weight::Problem,
            Confidence::High,
            say!("Tasks waited for {name} during {} of the last minute", percent(ratio)),
            cost,
        )
        .on(format!("/proc/pressure/{name}"), format!("some avg60 {}", percent(ratio)))
        .remedy(
            if name == "memory" {
                word!(
                    "Find the group that reclaims (memory.pressure per control group); more memory, or a smaller \
                        working set."
                )
            } else {
                word!(
                    "Find the disk and the process (iostat, io.pressure per control group); a faster disk or less \
                        synchronous writing."
                )
            },
            word!("Capacity."),
            word!("wakewatt inspect load before and after"),
        )
        .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ask;
    use super::*;

    #[test]
    fn waiting() {
        let check = |name: &str, p: &str| {
            ask(&PsiPressure, &format!("//- /proc/pressure/{name}\nsome avg10=0 avg60={p} avg300=0 total=5\n"))
        };
        assert!(check("memory", "9.5").starts_with("yes problem unknown: tasks waited for memory during 9.5 %"));
        assert!(check("io", "9.5").starts_with("no"));
        assert!(ask(&PsiPressure, "").starts_with("cannot tell"));
    }
}
