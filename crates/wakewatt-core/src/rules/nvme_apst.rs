//! May an NVMe disk sleep on its own?
//!
//! Autonomous power state transitions: the disk enters power states whose total latency the host tolerates
//! (`pm_qos_latency_tolerance_us`, else `nvme_core.default_ps_max_latency_us`, by default 100 ms). Which states the
//! disk has is not in sysfs, so the tolerance is an upper bound. Case K3's look-alike.

use super::{Answer, Confidence, Cost, Finding, Rule, Things, Weight};
use crate::evidence::Evidence;
use crate::units::{LatencyLimit, show_ns};
use wakewatt_words::{say, word};

pub(super) struct NvmeApst;

impl Rule for NvmeApst {
    fn id(&self) -> &'static str {
        "rule.nvme-apst"
    }
    fn question(&self) -> &'static str {
        word!("may an NVMe disk sleep on its own?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let storage = &evidence.facts.storage;
        if storage.nvme.is_empty() {
            return Answer::cannot_tell(
                word!("no NVMe disk is listed"),
                word!("wakewatt inspect storage on the machine itself"),
            );
        }
        let default = storage.nvme_default_max_latency_ns.get().copied();
        let tolerated = |limit: &LatencyLimit| match limit {
            LatencyLimit::Poll => Some(0),
            LatencyLimit::AtMostNs(ns) => Some(*ns),
            LatencyLimit::None => default,
        };
        let known: Vec<_> =
            storage.nvme.iter().filter_map(|n| Some((n, tolerated(n.latency_tolerance.get()?)?))).collect();
        let Some((disk, ns)) = known.iter().max_by_key(|(_, ns)| *ns) else {
            let gap = storage
                .nvme
                .iter()
                .find_map(|n| n.latency_tolerance.gap())
                .or(storage.nvme_default_max_latency_ns.gap());
            return gap.map_or_else(|| Answer::no(word!("no tolerance")), Answer::gap);
        };
        if *ns == 0 {
            return Answer::no(word!(
                "every NVMe disk is told to tolerate no latency, which turns its power states off"
            ));
        }
        let names: Vec<&str> = known.iter().filter(|(_, ns)| *ns > 0).map(|(disk, _)| disk.name.as_str()).collect();
        let title = say!(
            "Power states that take up to {} to leave are allowed, on {}",
            show_ns(*ns),
            Things::Disks.extent(&names, storage.nvme.len())
        );
        let cost = Cost::predicted_ns(
            0.0,
            say!(
                "up to {} for a request after a pause, the tolerance the host grants; what the disk has is not \
                    known, and it is not measured",
                show_ns(*ns)
            ),
        );
        let mut finding = Finding::new(
            self,
            Weight::Note,
            Confidence::Low,
            title,
            Cost { basis: super::CostBasis::Unknown, latency_ns: None, ..cost },
        )
        .on(
            format!("/sys/class/nvme/{}/power/pm_qos_latency_tolerance_us", disk.name),
            disk.latency_tolerance.get().map_or(String::new(), ToString::to_string),
        )
        .on(
            "/sys/module/nvme_core/parameters/default_ps_max_latency_us",
            default.map_or(word!("not readable").into(), show_ns),
        );
        for (disk, _) in known.iter().filter(|(_, ns)| *ns > 0) {
            let path = format!("/sys/class/nvme/{}/power/pm_qos_latency_tolerance_us", disk.name);
            finding = finding.step("nvme.apst", Some(disk.name.clone()), "off", path, word!("keep the disk awake"));
        }
        finding
            .remedy(
                word!("Tell the disks to tolerate no latency, or boot with nvme_core.default_ps_max_latency_us=0."),
                word!("A few watts per disk."),
                word!("wakewatt inspect storage; then repeat the disk test with pauses between the requests"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ask;
    use super::*;

    #[test]
    fn tolerance() {
        let at = "//- /sys/class/nvme/nvme0";
        let check = |t: &str| {
            ask(
                &NvmeApst,
                &format!(
                    "{at}/model\nX\n{at}/power/pm_qos_latency_tolerance_us\n{t}\n//- \
                        /sys/module/nvme_core/parameters/default_ps_max_latency_us\n100000\n"
                ),
            )
        };
        assert_eq!(
            check("auto"),
            "yes note unknown: power states that take up to 100ms to leave are allowed, on nvme0"
        );
        assert!(check("0").starts_with("no"));
        assert!(ask(&NvmeApst, "").starts_with("cannot tell"));
        assert!(ask(&NvmeApst, &format!("{at}/model\nX\n")).starts_with("cannot tell"));
    }
}
