//! One CPU on or off: `cpuN/online`.
//!
//! An offline CPU runs nothing and takes no interrupt; it parks in the deepest state that its driver knows for parking,
//! which on some machines is shallower than C6, so that switching CPUs off can cost watts. The boot CPU mostly has no such
//! file; the lowest CPU that runs is never switched off here, so one always stays. Governor, limits and EPB come back with
//! the CPU; cpusets and affinities that lost it do not take it back. Source: core-api/cpu_hotplug.rst.

use super::one_file;
use crate::knob::{About, Host, Knob, Price, Reversible, Scope, Site, Stage, Valid};
use crate::words::encode;
use wakewatt_core::facts::cpus::ROOT;
use wakewatt_words::{say, word};

/// `cpu.online`.
pub struct CpuOnline;

const ABOUT: About = About {
    id: "cpu.online",
    title: "CPU on or off",
    unit: "on, off",
    scope: Scope::Cpu,
    io_scope: Scope::Cpu,
    stage: Stage::Online,
    reversible: Reversible::Exactly,
    price: Price {
        up: "its work comes back: more throughput; one more CPU draws power",
        down: "its work moves to others; a parked CPU may sleep less deeply than an idle one",
    },
    risk: "EBUSY for the last CPU; tasks, interrupts and cpusets bound to it move and do not come back by themselves",
    overlaps: &["CPU affinity", "CPU quotas"],
    moves: &["qos.cpu", "idle.state", "freq.governor", "freq.min", "freq.max", "freq.epp", "freq.epb", "irq.affinity"],
    source: "Documentation/core-api/cpu_hotplug.rst",
};

impl Knob for CpuOnline {
    fn about(&self) -> &'static About {
        &ABOUT
    }
    fn sites(&self, host: &Host<'_>) -> Result<Vec<Site>, String> {
        let path = |cpu: u32| format!("{ROOT}/cpu{cpu}/online");
        let site = |cpu| {
            one_file::find(host, ABOUT.id, format!("cpu{cpu}"), one_file::only(cpu), path(cpu), Valid::one_is_on())
        };
        let sites: Vec<Site> = host.facts.cpus.all().filter_map(site).collect();
        if sites.is_empty() {
            return Err(one_file::missing(host, &path(1), word!("no hotplug of CPUs in this kernel, or one CPU only")));
        }
        Ok(sites)
    }
    fn encode(&self, host: &Host<'_>, site: &Site, word: &str) -> Result<String, String> {
        let text = encode(site, word)?;
        if text == "0" && host.online().first() == site.cpus.first() {
            return Err(say!("{}: {} is the lowest CPU that runs; one must stay", site.name, site.place));
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    #[test]
    fn one_always_stays() {
        let tree = Tree::from_text(&format!(
            "//- {ROOT}/online\n0-1\n//- {ROOT}/present\n0-2\n//- {ROOT}/cpu0/online\n1\n//- {ROOT}/cpu1/online\n1\n//- {ROOT}/cpu2/online\n0\n"
        ));
        let host = Host::read(&tree);
        let sites = CpuOnline.sites(&host).unwrap();
        assert_eq!(sites.len(), 3, "an offline CPU can be switched on");
        assert!(CpuOnline.encode(&host, &sites[0], "off").unwrap_err().contains("one must stay"));
        assert_eq!(CpuOnline.encode(&host, &sites[1], "off").unwrap(), "0");
        assert_eq!(CpuOnline.encode(&host, &sites[2], "on").unwrap(), "1");
    }
}
