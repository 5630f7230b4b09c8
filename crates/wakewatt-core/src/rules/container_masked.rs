//! Does a container hide part of the machine?
//!
//! Runtimes put empty mounts over `/sys/devices/virtual/powercap` and `/sys/firmware` (Moby since GHSA-jq35-85cj-fj4p;
//! docs/events.md), make /sys read-only, and show only the own processes and control group. Then "nobody holds a
//! limit" and "no quota" are said about the container, not about the host.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight};
use crate::evidence::Evidence;
use wakewatt_words::{say, word};

pub(super) struct ContainerMasked;

impl Rule for ContainerMasked {
    fn id(&self) -> &'static str {
        "rule.container-masked"
    }
    fn question(&self) -> &'static str {
        word!("does a container hide part of the machine?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let virt = &evidence.facts.virt;
        if !virt.is_container() {
            return match virt.has_hypervisor_flag.gap() {
                Some(gap) => Answer::gap(gap),
                None => Answer::no(word!("no sign of a container")),
            };
        }
        let name = virt.containers.first().map_or(word!("a container"), |c| c.name.as_str());
        let masked = if virt.masked.is_empty() {
            word!("other processes and groups above it").to_string()
        } else {
            virt.masked.join(word!(" and "))
        };
        let hidden = if virt.masked.is_empty() { word!("may be hidden") } else { word!("are hidden") };
        let cost = Cost::unknown(word!("nothing by itself; findings about the host may be missing"));
        let mut finding = Finding::new(
            self,
            Weight::Note,
            Confidence::High,
            say!("Seen from inside {name}: {masked} {hidden}"),
            cost,
        );
        for clue in &virt.containers {
            finding = finding.on(clue.path.clone(), clue.shown());
        }
        for path in &virt.masked {
            finding = finding.on(path.clone(), word!("an empty folder"));
        }
        finding
            .remedy(
                word!("Run it on the host, or in a pod with the host's /sys and /proc mounted and the host's PID namespace."),
                word!("Such a pod sees the whole host."),
                word!("wakewatt inspect on the host lists what was missing"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ask;
    use super::*;

    #[test]
    fn containers() {
        assert!(ask(&ContainerMasked, "//- /.dockerenv\n").starts_with("yes note unknown: seen from inside docker"));
        assert!(ask(&ContainerMasked, "//- /proc/cpuinfo\nflags : fpu\n").starts_with("no"));
        assert!(ask(&ContainerMasked, "").starts_with("cannot tell"));
    }
}
