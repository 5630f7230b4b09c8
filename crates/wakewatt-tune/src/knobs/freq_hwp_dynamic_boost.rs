//! A push for tasks that waited for a device: `intel_pstate/hwp_dynamic_boost`.
//!
//! When a task wakes from waiting for I/O, intel_pstate raises the lowest performance asked of HWP on that CPU for a few
//! milliseconds, so that short bursts do not start at the lowest clock. There only in active mode with HWP; on by default
//! on some servers. Source: admin-guide/pm/intel_pstate.rst.

use super::one_file;
use crate::knob::{About, Host, Knob, Price, Reversible, Scope, Site, Stage, Valid};
use wakewatt_core::facts::cpus::ROOT;
use wakewatt_words::word;

/// `freq.hwp_dynamic_boost`.
pub struct FreqHwpDynamicBoost;

const ABOUT: About = About {
    id: "freq.hwp_dynamic_boost",
    title: "faster clocks after waiting for a device",
    unit: "on, off",
    scope: Scope::Machine,
    io_scope: Scope::Cpu,
    stage: Stage::Boost,
    reversible: Reversible::Exactly,
    price: Price {
        up: "more watts under input and output, quicker answers after a wait",
        down: "fewer watts under input and output, slower answers after a wait",
    },
    risk: "none known",
    overlaps: &[],
    moves: &[],
    source: "Documentation/admin-guide/pm/intel_pstate.rst (hwp_dynamic_boost)",
};

impl Knob for FreqHwpDynamicBoost {
    fn about(&self) -> &'static About {
        &ABOUT
    }
    fn sites(&self, host: &Host<'_>) -> Result<Vec<Site>, String> {
        let because = word!("intel_pstate in active mode with HWP only");
        one_file::machine(
            host,
            ABOUT.id,
            &format!("{ROOT}/intel_pstate/hwp_dynamic_boost"),
            Valid::one_is_on(),
            because,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    #[test]
    fn a_switch() {
        let tree = Tree::from_text(&format!("//- {ROOT}/intel_pstate/hwp_dynamic_boost\n1\n"));
        let host = Host::read(&tree);
        let site = FreqHwpDynamicBoost.sites(&host).unwrap().remove(0);
        assert_eq!(FreqHwpDynamicBoost.encode(&host, &site, "off").unwrap(), "0");
        assert!(FreqHwpDynamicBoost.sites(&Host::read(&Tree::default())).unwrap_err().contains("HWP"));
    }
}
