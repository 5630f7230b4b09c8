//! Does an idle CPU spin because a limit is below its first sleeping state?
//!
//! A limit below C1's own exit latency leaves only POLL: the CPU spins at full power and takes turbo headroom from its
//! neighbours. C1 claims 1us on Ice Lake and 2us on Skylake, so a limit of 1us sleeps on one and spins on the other
//! (docs/knobs/idle.md). The per-CPU file spells zero latency `n/a` and no limit `0`. A limit of zero may be meant; a small
//! number that happens to exclude C1 hardly ever is. Without a polling state in the table (Arm) nothing can spin.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, on_cpus, would_poll};
use crate::budget;
use crate::cpuset::CpuSet;
use crate::evidence::Evidence;
use crate::facts::pm_qos::{GLOBAL, cpu_limit_path};
use crate::units::LatencyLimit;
use wakewatt_words::{say, word};

pub(super) struct PollingByAccident;

impl Rule for PollingByAccident {
    fn id(&self) -> &'static str {
        "rule.polling-by-accident"
    }
    fn question(&self) -> &'static str {
        word!("does an idle CPU spin because a limit is below its first sleeping state?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let (idle, qos) = (&evidence.facts.idle, &evidence.facts.qos);
        let reachable = budget::reachable(idle, qos);
        if reachable.is_empty() {
            return Answer::cannot_tell(
                word!("no idle state is listed"),
                word!("wakewatt inspect idle qos on the machine itself"),
            );
        }
        let spinning: Vec<_> = reachable
            .iter()
            .filter(|r| r.is_polling && !r.excluded.is_empty() && r.limit != LatencyLimit::None)
            .collect();
        let Some(first) = spinning.first() else {
            return match qos.global.gap().or(qos.per_cpu.gaps().next().map(|(_, g)| g)) {
                Some(gap) => Answer::gap(gap),
                None => Answer::no(word!("every limit in force allows at least one sleeping state")),
            };
        };
        let is_accident = spinning.iter().any(|r| r.limit != LatencyLimit::Poll);
        let weight = if is_accident { Weight::Problem } else { Weight::Risk };
        let cpus: CpuSet = spinning.iter().flat_map(|r| r.cpus.iter()).collect();
        let title = match cpus.len() {
            1 => say!("{} spins instead of sleeping: limit {first}", cpus.named()),
            _ => say!("{} spin instead of sleeping: limit {first}", cpus.named()),
        };
        let cost = Cost::unknown(word!(
            "an idle CPU that spins draws power as if busy and takes turbo headroom; how many watts is not measured"
        ));
        let mut finding = Finding::new(self, weight, Confidence::High, title, cost);
        if qos.global.get().is_some_and(|l| *l == first.limit) {
            finding = finding.on(GLOBAL, first.limit);
            for holder in evidence.facts.holders.of_latency_limit().unwrap_or_default() {
                let name = holder.comm.as_deref().unwrap_or("?");
                finding = finding.on(format!("/proc/{}/fd", holder.pid), say!("{name} holds {}", holder.path));
            }
        }
        let sleeps = first.excluded.first().map(|c| c.exit_latency_ns);
        // The shallowest sleep of every kind of CPU, so that none of them goes on spinning.
        let to = budget::shallowest(idle).or(sleeps.map(LatencyLimit::AtMostNs)).unwrap_or(LatencyLimit::None);
        let is_spinning = |limit: &LatencyLimit| spinning.iter().any(|r| r.limit == *limit);
        for (cpus, limit) in qos.per_cpu.known().filter(|(_, l)| is_spinning(l)) {
            let path = cpu_limit_path(cpus.first().unwrap_or(0));
            finding = finding.on(path, say!("{} on {cpus}", limit.as_cpu_text(), cpus = cpus.named()));
        }
        let cpus = qos.per_cpu.cpus_where(is_spinning);
        if let Some(cpu) = cpus.first().filter(|_| !would_poll(to, idle)) {
            let (on, why) = (on_cpus(&evidence.facts, &cpus), say!("{cpus} may sleep again", cpus = cpus.named()));
            finding = finding.step("qos.cpu", on, to.to_string(), cpu_limit_path(cpu), why);
        }
        finding
            .remedy(
                say!(
                    "If spinning is not meant, raise the limit to {to}: {}. A global limit ends when its holder \
                        closes the file.",
                    budget::sentence_here(to, idle, evidence.facts.msr.is_c1_promoted())
                ),
                word!("Wake-ups on these CPUs get slower by the exit latency of the first sleeping state."),
                word!("wakewatt inspect qos, then wakewatt measure wakeup"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, evidence, icx, idle, line};
    use super::*;
    use crate::fact::Fact;

    const FILE: &str = "//- /sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us\n";

    #[test]
    fn spins_or_not() {
        let said = ask(&PollingByAccident, &(icx() + FILE + "n/a\n"));
        assert!(said.starts_with("yes risk unknown: cpu 1 spins instead of sleeping: limit poll -> poll"), "{said}");
        let skx = idle("intel_idle", &[("POLL", 0, 0), ("C1", 2, 2), ("C6", 133, 600)]);
        let said = ask(&PollingByAccident, &(skx + FILE + "1\n"));
        assert!(said.starts_with("yes problem unknown: cpu 1 spins"), "{said}");
        assert!(ask(&PollingByAccident, "").starts_with("cannot tell"));
    }

    #[test]
    fn nobody_asked() {
        let mut host = evidence(&icx());
        assert!(line(&PollingByAccident, &host).starts_with("cannot tell: /dev/cpu_dma_latency"));
        host.facts.qos.global = Fact::Known(LatencyLimit::None);
        assert!(line(&PollingByAccident, &host).starts_with("no"));
        host.facts.qos.global = Fact::Known(LatencyLimit::Poll);
        assert!(line(&PollingByAccident, &host).starts_with("yes risk"));
    }
}
