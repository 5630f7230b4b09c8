//! Bits of Intel's registers that sysfs does not show: the package C-state limit, C1 demotion, C1E promotion.
//!
//! 0xE2 bits 3:0 limit how deep a package may sleep (2:0 on servers; what a number means depends on the model, and where
//! the model is known its names are taken); bit 15 locks it until reset. Bits 26 and 28 let the core turn C6 requests into C1 and take that back. 0x1FC bit 1 turns C1 into C1E, which
//! lowers clock and voltage first. Firmware sets them; intel_idle clears C1E promotion on some
//! models and demotion on others. They are lost in suspend. One site per core, because 0xE2 is per core on most models, and
//! where a register is the package's the same value is written again. **Reading wakes the core it is read on.** Writing
//! needs the msr module, no kernel lockdown, and is logged by the kernel. Source: SDM volume 4.

use crate::knob::{About, Coded, Host, Knob, Price, Reversible, Scope, Site, Stage, Valid};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::facts::msr::package_limit::{self, Codes, PackageLimit};
use wakewatt_words::say;

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
    unit: "a name such as PC6 where the model's code is known, or the number as the model codes it",
    scope: Scope::Core,
    io_scope: Scope::Package,
    stage: Stage::Idle,
    reversible: Reversible::Exactly,
    price: Price {
        up: "fewer watts while a package idles; wake-ups wait for the package",
        down: "more watts while a package idles, no wait for a package to wake",
    },
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
        price: Price {
            up: "fewer slow wake-ups after mispredicted sleeps, more watts while it demotes",
            down: "the kernel's choice counts: fewer watts, slow wake-ups after mispredicted sleeps",
        },
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
        price: Price {
            up: "watts that demotion cost come back after a while",
            down: "a demotion lasts: more watts, fewer slow wake-ups",
        },
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
        price: Price {
            up: "fewer watts in C1, slower wake-ups from it than the idle table claims",
            down: "more watts in C1, wake-ups from it as the idle table claims",
        },
        risk: "the table's C1 latency is wrong while it is on; intel_idle clears it at boot on models with a C1E state",
        source: "Intel SDM volume 4, MSR_POWER_CTL (1FCH) bit 1",
        ..COMMON
    },
    address: POWER_CTL,
    high: 1,
    low: 1,
    lock: None,
};

/// The limits that have a name on this model, by number.
fn names(codes: &Codes) -> Vec<Coded> {
    let coded = |limit: PackageLimit| Some(Coded { code: codes.code(limit)?.into(), name: limit.to_string() });
    codes.limits().filter_map(coded).collect()
}

/// How this host's processor codes the package limit, where its model is known.
fn codes(host: &Host<'_>) -> Option<&'static Codes> {
    package_limit::codes_of(host.facts.topology.processor()?)
}

impl Knob for MsrBits {
    fn about(&self) -> &'static About {
        self.about
    }
    fn sites(&self, host: &Host<'_>) -> Result<Vec<Site>, String> {
        let path = format!("MSR {:#x}", self.address);
        match host.facts.topology.processor() {
            Some(processor) if processor.is_intel() => {}
            _ => return Err(say!("{path}: Intel's processors only")),
        }
        let codes = codes(host).filter(|_| self.has_names());
        let mut sites = Vec::new();
        for core in host.facts.topology.cores() {
            let cpus = core.and(&host.online());
            let Some(cpu) = cpus.first() else { continue };
            let register = match host.source.msr(cpu, self.address) {
                Ok(register) => register,
                // No device, no right, no register: the other cores need not be woken to hear it again.
                Err(e) if sites.is_empty() => {
                    return Err(say!("{path}: {} (modprobe msr and root; a guest has none)", e.detail));
                }
                Err(_) => continue,
            };
            sites.push(self.site(cpu, cpus, register, codes));
        }
        if sites.is_empty() { Err(say!("{path}: the cores of this host are not known")) } else { Ok(sites) }
    }
}

impl MsrBits {
    /// The package limit: a number that stands for a state. The others are one bit.
    fn has_names(&self) -> bool {
        self.high > self.low
    }

    fn site(&self, cpu: u32, cpus: CpuSet, register: u64, codes: Option<&Codes>) -> Site {
        let high = codes.map_or(self.high, |codes| codes.high_bit);
        let most = (1u64 << (high - self.low + 1)) - 1;
        let is_locked = self.lock.is_some_and(|bit| register >> bit & 1 == 1);
        Site {
            name: self.about.id.into(),
            place: format!("cpu{cpu}"),
            cpus,
            path: format!("msr:{:#x}@{cpu}/{high}:{}", self.address, self.low),
            now: Some((register >> self.low & most).to_string()),
            unread: None,
            valid: match codes {
                _ if most == 1 => Valid::one_is_on(),
                Some(codes) => Valid::Coded { names: names(codes), max: most },
                None => Valid::Number { min: 0, max: most },
            },
            refusal: is_locked.then(|| say!("firmware has locked MSR {:#x} until reset", self.address)),
            kind: None,
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
        assert_eq!((site.path.as_str(), site.cpus.to_string().as_str()), ("msr:0xe2@0/2:0", "0-1"));
        assert_eq!((site.now.as_deref(), site.refusal.is_some()), (Some("3"), false));
        assert_eq!(PACKAGE_LIMIT.decode(&site, "3"), "PC6R (3)");
        let ask = |word| PACKAGE_LIMIT.encode(&host, &site, word);
        assert_eq!(
            (ask("pc2").unwrap(), ask("unlimited").unwrap(), ask("5").unwrap()),
            ("1".into(), "7".into(), "5".into())
        );
        assert!(ask("PC10").unwrap_err().contains("none of PC0, PC2, PC6, PC6R, unlimited, or 0 to 7"));
        assert!(ask("8").is_err(), "a server has three bits");
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
