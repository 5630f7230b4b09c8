//! Does a CPU carry a wake-up limit that nobody owns?
//!
//! `cpuN/power/pm_qos_resume_latency_us` is one request shared by all of user space; it stays after its writer has
//! ended, and its zero is inverted: `0` is no limit, `n/a` is zero latency (docs/knobs/idle.md). Users write 0 to mean "fast"
//! and get the opposite. A parameter of the same name on the kernel command line was proposed in 2026; its 0 meant poll in
//! the first versions (January to March) and no limit, as in the file, in the fifth (April), so a 0 there says nothing before the
//! files have been read (Aaron Tomlin, "PM: QoS: Introduce boot parameter pm_qos_resume_latency_us", linux-pm). A scheduler loaded by sched_ext may have set the limits (scx_p2dq, scx_bpfland with `--idle-resume-us`), and not
//! every one puts back what it found (github.com/sched-ext/scx, pull request 1562). Limits that differ between CPUs make the same work cost different amounts on them.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, on_cpus};
use crate::cpuset::CpuSet;
use crate::enterable;
use crate::evidence::Evidence;
use crate::facts::pm_qos::cpu_limit_path;
use crate::units::LatencyLimit;
use wakewatt_words::{say, word};

/// The boot parameter of kernels that have one.
const BOOT: &str = "pm_qos_resume_latency_us";

pub(super) struct PerCpuResumeLimits;

impl Rule for PerCpuResumeLimits {
    fn id(&self) -> &'static str {
        "rule.per-cpu-resume-limits"
    }
    fn question(&self) -> &'static str {
        word!("does a CPU carry a wake-up limit of its own?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let limits = &evidence.facts.qos.per_cpu;
        let set: Vec<_> = limits.known().filter(|(_, l)| **l != LatencyLimit::None).collect();
        if set.is_empty() {
            return match limits.gaps().next() {
                Some((_, gap)) => Answer::gap(gap),
                None if limits.is_unknown() => {
                    Answer::cannot_tell(word!("no CPU is listed"), word!("wakewatt inspect qos"))
                }
                None => Answer::no(word!("every CPU has no limit of its own (0)")),
            };
        }
        let is_uneven = limits.uniform().is_none();
        let spinning = enterable::spinning(&enterable::of(&evidence.facts));
        let extent = |cpus: &CpuSet| evidence.facts.cpus.extent(cpus);
        let words: Vec<String> = set
            .iter()
            .map(|(cpus, limit)| match limit {
                LatencyLimit::Poll if cpus.minus(&spinning).is_empty() => {
                    say!("n/a (zero latency: they spin when idle) on {cpus}", cpus = extent(cpus))
                }
                LatencyLimit::Poll => say!("n/a (zero latency) on {cpus}", cpus = extent(cpus)),
                limit => say!("{limit} on {cpus}", cpus = extent(cpus)),
            })
            .collect();
        let title = say!("pm_qos_resume_latency_us is {}", words.join(", "));
        let weight = if is_uneven { Weight::Risk } else { Weight::Note };
        let cost = Cost::unknown(word!(
            "CPUs under a limit wake faster and draw more; work that moves between CPUs sees both"
        ));
        let mut finding = Finding::new(self, weight, Confidence::High, title, cost);
        for (cpus, limit) in set {
            let path = cpu_limit_path(cpus.first().unwrap_or(0));
            finding = finding.on(path, say!("{} on {cpus}", limit.as_cpu_text(), cpus = cpus.named()));
        }
        if let Some(scheduler) = evidence.facts.kernel.sched_ext.get() {
            let says = say!("{scheduler} is loaded; some such schedulers set these limits and leave them behind");
            finding = finding.on("/sys/kernel/sched_ext/root/ops", says);
        }
        if let Some(value) = evidence.facts.boot.argument(BOOT) {
            let says = say!(
                "{BOOT}={value}: set at boot; what its 0 means depends on the kernel, the files say what came of it"
            );
            finding = finding.on("/proc/cmdline", says);
        }
        let limited = limits.cpus_where(|l| *l != LatencyLimit::None);
        let (on, path) = (on_cpus(&evidence.facts, &limited), cpu_limit_path(limited.first().unwrap_or(0)));
        finding =
            finding.step("qos.cpu", on, "none", path, say!("take the limit off {limited}", limited = limited.named()));
        finding
            .remedy(
                word!("Nobody owns these values and they outlive their writer. If no running tool means them, set them to \
                    none (the file then says 0)."),
                word!("Idle CPUs sleep deeper: fewer watts, slower wake-ups on them."),
                word!("wakewatt inspect qos, then wakewatt measure wakeup on such a CPU"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, evidence, icx};
    use super::*;

    #[test]
    fn the_inverted_zero() {
        let file = "//- /sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us\n";
        let said = ask(&PerCpuResumeLimits, &(icx() + file + "n/a\n"));
        assert!(said.starts_with("yes risk unknown: pm_qos_resume_latency_us is n/a (zero latency"), "{said}");
        assert!(ask(&PerCpuResumeLimits, &icx()).starts_with("no: every CPU has no limit"));
        let more = "//- /sys/kernel/sched_ext/state\nenabled\n//- /sys/kernel/sched_ext/root/ops\np2dq\n//- /proc/cmdline\n\
                    pm_qos_resume_latency_us=1:0\n";
        let Answer::Yes(found) = PerCpuResumeLimits.check(&evidence(&(icx() + file + "100\n" + more))) else {
            panic!("a limit is set")
        };
        let says: Vec<&str> = found.evidence.iter().map(|b| b.says.as_str()).collect();
        assert!(says[1].starts_with("p2dq is loaded") && says[2].contains("depends on the kernel"), "{says:?}");
        assert!(ask(&PerCpuResumeLimits, "").starts_with("cannot tell"));
        assert!(ask(&PerCpuResumeLimits, "//- /sys/devices/system/cpu/online\n0\n").starts_with("cannot tell"));
    }
}
