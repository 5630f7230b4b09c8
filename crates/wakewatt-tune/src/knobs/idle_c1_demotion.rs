//! C1 demotion by the processor: `cpuidle/intel_c1_demotion`.
//!
//! With it the core enters C1 although the kernel asked for C6, when it has woken early too often; the kernel's own
//! counters then claim more C6 than there was. Offered by intel_idle on recent Xeons (Sapphire Rapids and later, kernel
//! later than 6.12). A write sets or clears demotion and undemotion (bits 26 and 28 of 0xE2) together on every CPU, but a
//! read tells of demotion on one: so undo needs `msr.c1_undemotion` noted too, where firmware had set them apart. Prefer
//! this to the registers. Source: Documentation/ABI/testing/sysfs-devices-system-cpu.

use super::one_file;
use crate::knob::{About, Host, Knob, Price, Reversible, Scope, Site, Stage, Valid};
use wakewatt_core::facts::cpus::ROOT;
use wakewatt_words::word;

/// `idle.c1_demotion`.
pub struct IdleC1Demotion;

const ABOUT: About = About {
    id: "idle.c1_demotion",
    title: "demotion of C6 to C1 by the processor",
    unit: "on, off",
    scope: Scope::Machine,
    io_scope: Scope::Core,
    stage: Stage::Idle,
    reversible: Reversible::Exactly,
    price: Price {
        up: "fewer slow wake-ups after mispredicted sleeps, more watts while it demotes",
        down: "the kernel's choice counts: fewer watts, slow wake-ups after mispredicted sleeps",
    },
    risk: "residency counters of the kernel and of the hardware differ while it is on",
    overlaps: &["idle states"],
    moves: &["msr.c1_demotion", "msr.c1_undemotion"],
    source: "Documentation/ABI/testing/sysfs-devices-system-cpu (intel_c1_demotion)",
};

impl Knob for IdleC1Demotion {
    fn about(&self) -> &'static About {
        &ABOUT
    }
    fn sites(&self, host: &Host<'_>) -> Result<Vec<Site>, String> {
        let because = word!("intel_idle offers it on recent Xeons only, in kernels after 6.12; see msr.c1_demotion");
        one_file::machine(host, ABOUT.id, &format!("{ROOT}/cpuidle/intel_c1_demotion"), Valid::one_is_on(), because)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    #[test]
    fn a_switch_where_the_driver_has_it() {
        let tree = Tree::from_text(&format!("//- {ROOT}/cpuidle/intel_c1_demotion\n0\n"));
        let host = Host::read(&tree);
        let site = IdleC1Demotion.sites(&host).unwrap().remove(0);
        assert_eq!(IdleC1Demotion.decode(&site, "0"), "off");
        assert_eq!(IdleC1Demotion.encode(&host, &site, "on").unwrap(), "1");
        assert!(IdleC1Demotion.sites(&Host::read(&Tree::default())).unwrap_err().contains("msr.c1_demotion"));
    }
}
