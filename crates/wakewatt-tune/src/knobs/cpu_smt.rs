//! SMT siblings on or off: `smt/control`.
//!
//! `off` takes every second thread of a core offline; the one that stays has the core, its caches and its idle state for
//! itself. `forceoff` is not offered: nothing but a reboot undoes it. Returning siblings get their governor back, but
//! per-CPU values in sysfs (latency limits, idle states, limits) may be defaults again, so they are noted and put back.
//! Kernel 4.19 and later; later kernels also take a number of threads, which is not offered.
//! Source: ABI/testing/sysfs-devices-system-cpu.

use super::one_file;
use crate::knob::{About, Host, Knob, Price, Reversible, Scope, Site, Stage, Valid};
use wakewatt_core::facts::cpus::ROOT;
use wakewatt_words::{say, word};

/// `cpu.smt`.
pub struct CpuSmt;

const ABOUT: About = About {
    id: "cpu.smt",
    title: "SMT siblings",
    unit: "on, off",
    scope: Scope::Machine,
    io_scope: Scope::Core,
    stage: Stage::Online,
    reversible: Reversible::Exactly,
    price: Price {
        up: "twice the CPUs, more throughput (often 20 to 30 %), less steady latency per thread",
        down: "half the CPUs, less throughput (often 20 to 30 %), steadier latency per thread",
    },
    risk: "tasks and interrupts bound to the siblings move; cpusets lose them and may not get them back",
    overlaps: &["CPU affinity", "CPU quotas"],
    moves: &["qos.cpu", "idle.state", "freq.governor", "freq.min", "freq.max", "freq.epp", "freq.epb", "irq.affinity"],
    source: "Documentation/ABI/testing/sysfs-devices-system-cpu (smt/control)",
};

impl Knob for CpuSmt {
    fn about(&self) -> &'static About {
        &ABOUT
    }
    fn sites(&self, host: &Host<'_>) -> Result<Vec<Site>, String> {
        let words = Valid::Words(vec!["on".into(), "off".into()]);
        let because = word!("a kernel before 4.19 or without SMT support");
        let mut sites = one_file::machine(host, ABOUT.id, &format!("{ROOT}/smt/control"), words, because)?;
        for site in &mut sites {
            site.refusal = match site.now.as_deref() {
                Some("forceoff") => Some(say!("it was forced off; only a reboot brings the siblings back")),
                Some(none @ ("notsupported" | "notimplemented")) => Some(say!("the kernel says {none}")),
                _ => None,
            };
        }
        Ok(sites)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    #[test]
    fn no_way_back_is_not_offered() {
        for (now, is_refused) in [("on", false), ("off", false), ("forceoff", true), ("notsupported", true)] {
            let tree = Tree::from_text(&format!("//- {ROOT}/smt/control\n{now}\n"));
            let host = Host::read(&tree);
            let site = CpuSmt.sites(&host).unwrap().remove(0);
            assert_eq!(site.refusal.is_some(), is_refused, "{now}");
            assert!(CpuSmt.encode(&host, &site, "forceoff").is_err());
        }
    }
}
