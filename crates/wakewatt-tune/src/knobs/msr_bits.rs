//! Bits of Intel's registers that sysfs does not show: the package C-state limit, C1 demotion, C1E promotion.
//!
//! 0xE2 bits 3:0 limit how deep a package may sleep (the number's meaning depends on the model); bit 15 locks it until
//! reset. Bits 26 and 28 let the core turn C6 requests into C1 and take that back. 0x1FC bit 1 turns C1 into C1E, which
//! halves the clock first and costs ten microseconds more. Firmware sets them; intel_idle clears C1E promotion on some
//! models and demotion on others. They are lost in suspend. One site per core, because 0xE2 is per core on most models, and
//! where a register is the package's the same value is written again. **Reading wakes the core it is read on.** Writing
//! needs the msr module, no kernel lockdown, and is logged by the kernel. Source: SDM volume 4.

use crate::knob::{About, Host, Knob, Reversible, Scope, Site, Stage, Valid};
use crate::words::encode;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::fact::{Fact, PerCpu};
use wakewatt_core::facts::msr::{Msr, Reading};

/// Some bits of a register.
pub struct MsrBits {
    about: &'static About,
    address: u32,
    high: u32,
    low: u32,
    /// The bit that locks them until reset.
    lock: Option<u32>,
}

/// MSR_PKG_CST_CONFIG_CONTROL and MSR_POWER_CTL.
const PKG_CST_CONFIG: u32 = 0xe2;
const POWER_CTL: u32 = 0x1fc;

const COMMON: About = About {
    id: "msr.package_limit",
    title: "deepest package C-state",
    unit: "0 to 15 as the model codes it, or a name such as PC6 where the code is known",
    scope: Scope::Core,
    io_scope: Scope::Package,
    stage: Stage::Idle,
    reversible: Reversible::Exactly,
    price: "shallower: tens of watts more per idle package, no wait for a package to wake",
    risk: "locked by firmware on most servers; refused under kernel lockdown; lost in suspend",
    overlaps: &["idle states"],
    moves: &[],
    source: "Intel SDM volume 4, MSR_PKG_CST_CONFIG_CONTROL (E2H)",
};

/// `msr.package_limit`.
pub static PACKAGE_LIMIT: MsrBits =
    MsrBits { about: &COMMON, address: PKG_CST_CONFIG, high: 3, low: 0, lock: Some(15) };

/// `msr.c1_demotion`.
pub static C1_DEMOTION: MsrBits = MsrBits {
    about: &About {
        id: "msr.c1_demotion",
        title: "the core may turn a request for C6 into C1",
        unit: "on, off",
        io_scope: Scope::Core,
        price: "on: fewer slow wake-ups after mispredicted sleeps, more watts while it demotes",
        risk: "kernel counters claim C6 that was C1; intel_idle may set it again for a CPU that comes online",
        moves: &["idle.c1_demotion"],
        ..COMMON
    },
    address: PKG_CST_CONFIG,
    high: 26,
    low: 26,
    lock: None,
};

/// `msr.c1_undemotion`.
pub static C1_UNDEMOTION: MsrBits = MsrBits {
    about: &About {
        id: "msr.c1_undemotion",
        title: "the core may take a demotion to C1 back",
        unit: "on, off",
        io_scope: Scope::Core,
        price: "on: watts that demotion cost come back after a while",
        risk: "no effect while demotion is off",
        ..COMMON
    },
    address: PKG_CST_CONFIG,
    high: 28,
    low: 28,
    lock: None,
};

/// `msr.c1e_promotion`.
pub static C1E_PROMOTION: MsrBits = MsrBits {
    about: &About {
        id: "msr.c1e_promotion",
        title: "C1 becomes C1E",
        unit: "on, off",
        price: "on: fewer watts in C1, some 10us more per wake-up than the idle table says",
        risk: "the table's C1 latency is wrong while it is on; intel_idle clears it at boot on models with a C1E state",
        source: "Intel SDM volume 4, MSR_POWER_CTL (1FCH) bit 1",
        ..COMMON
    },
    address: POWER_CTL,
    high: 1,
    low: 1,
    lock: None,
};

/// `PC6` and the like for a code, where the model is known.
fn limit_name(host: &Host<'_>, code: u64) -> Option<String> {
    let value = PerCpu::group([(0, Fact::Known(code))]);
    let reading = Reading { id: "pkg_cst_config".into(), address: PKG_CST_CONFIG, value };
    let msr = Msr { registers: vec![reading], is_sample: true };
    msr.package_limit(host.facts.topology.processor()?)?.uniform().cloned()
}

impl Knob for MsrBits {
    fn about(&self) -> &'static About {
        self.about
    }
    fn sites(&self, host: &Host<'_>) -> Result<Vec<Site>, String> {
        let path = format!("MSR {:#x}", self.address);
        match host.facts.topology.processor() {
            Some(processor) if processor.is_intel() => {}
            _ => return Err(format!("{path}: Intel's processors only")),
        }
        let mut sites = Vec::new();
        for core in host.facts.topology.cores() {
            let cpus = core.and(&host.online());
            let Some(cpu) = cpus.first() else { continue };
            let register = match host.source.msr(cpu, self.address) {
                Ok(register) => register,
                // No device, no right, no register: the other cores need not be woken to hear it again.
                Err(e) if sites.is_empty() => {
                    return Err(format!("{path}: {} (modprobe msr and root; a guest has none)", e.detail));
                }
                Err(_) => continue,
            };
            sites.push(self.site(cpu, cpus, register));
        }
        if sites.is_empty() { Err(format!("{path}: the cores of this host are not known")) } else { Ok(sites) }
    }
    fn encode(&self, host: &Host<'_>, site: &Site, word: &str) -> Result<String, String> {
        let has_names = self.high > self.low;
        // "reserved" stands for several codes; of two codes of one name the higher is the deeper variant.
        let is_named = |code: &u64| {
            has_names
                && limit_name(host, *code)
                    .is_some_and(|name| name != "reserved" && name.eq_ignore_ascii_case(word.trim()))
        };
        (0..8).rev().find(is_named).map_or_else(|| encode(site, word), |code| Ok(code.to_string()))
    }
    fn effective(&self, host: &Host<'_>, site: &Site) -> Option<String> {
        if self.high == self.low {
            return None;
        }
        limit_name(host, site.now.as_ref()?.parse().ok()?)
    }
}

impl MsrBits {
    fn site(&self, cpu: u32, cpus: CpuSet, register: u64) -> Site {
        let most = (1u64 << (self.high - self.low + 1)) - 1;
        let is_locked = self.lock.is_some_and(|bit| register >> bit & 1 == 1);
        Site {
            name: self.about.id.into(),
            place: format!("cpu{cpu}"),
            cpus,
            path: format!("msr:{:#x}@{cpu}/{}:{}", self.address, self.high, self.low),
            now: Some((register >> self.low & most).to_string()),
            unread: None,
            valid: if most == 1 { Valid::one_is_on() } else { Valid::Number { min: 0, max: most } },
            refusal: is_locked.then(|| format!("firmware has locked MSR {:#x} until reset", self.address)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    fn tree(value: &str) -> Tree {
        let cpu = |n: u32| {
            let at = format!("//- /sys/devices/system/cpu/cpu{n}/topology");
            format!("{at}/core_cpus_list\n0-1\n{at}/physical_package_id\n0\n//- msr 0xe2 cpu{n} {value}\n")
        };
        let info = |n: u32| format!("processor : {n}\nvendor_id : GenuineIntel\ncpu family : 6\nmodel : 85\n\n");
        Tree::from_text(&format!(
            "//- /sys/devices/system/cpu/online\n0-1\n//- /sys/devices/system/cpu/present\n0-1\n//- /proc/cpuinfo\n{}{}{}{}",
            info(0),
            info(1),
            cpu(0),
            cpu(1)
        ))
    }

    #[test]
    fn one_site_per_core_with_its_bits() {
        let tree = tree("14000003");
        let host = Host::read(&tree);
        let site = PACKAGE_LIMIT.sites(&host).unwrap().remove(0);
        assert_eq!((site.path.as_str(), site.cpus.to_string().as_str()), ("msr:0xe2@0/3:0", "0-1"));
        assert_eq!((site.now.as_deref(), site.refusal.is_some()), (Some("3"), false));
        let name = PACKAGE_LIMIT.effective(&host, &site).unwrap();
        assert_eq!(PACKAGE_LIMIT.encode(&host, &site, &name).unwrap(), "3");
        let demotion = C1_DEMOTION.sites(&host).unwrap().remove(0);
        assert_eq!((demotion.path.as_str(), C1_DEMOTION.decode(&demotion, "1")), ("msr:0xe2@0/26:26", "on".into()));
        assert_eq!(C1_DEMOTION.encode(&host, &demotion, "off").unwrap(), "0");
        assert!(C1E_PROMOTION.sites(&host).is_err());
    }

    #[test]
    fn a_lock_refuses_and_amd_has_none() {
        let locked = tree("8403");
        assert!(PACKAGE_LIMIT.sites(&Host::read(&locked)).unwrap()[0].refusal.is_some());
        assert!(PACKAGE_LIMIT.sites(&Host::read(&Tree::default())).unwrap_err().contains("Intel"));
    }
}
