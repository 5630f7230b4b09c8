//! How a guest polls before it halts: the parameters of the haltpoll governor, `/sys/module/haltpoll/parameters`.
//!
//! A guest's halt costs an exit to the hypervisor and a wake-up through it. haltpoll spins first, up to
//! `guest_halt_poll_ns`, growing and shrinking the time per CPU. That spinning is the host's processor time: cheap for the
//! guest, paid by its neighbours. They count under the haltpoll governor only; other governors of a guest ignore them.
//! Source: Documentation/virt/guest-halt-polling.rst.

use super::one_file;
use crate::knob::{About, Host, Knob, Price, Reversible, Scope, Site, Stage, Valid};
use wakewatt_words::{say, word};

/// `idle.haltpoll`.
pub struct IdleHaltpoll;

const FOLDER: &str = "/sys/module/haltpoll/parameters";

const ABOUT: About = About {
    id: "idle.haltpoll",
    title: "polling of a guest before it halts",
    unit: "nanoseconds, factors, on or off, as each name tells",
    scope: Scope::Machine,
    io_scope: Scope::Machine,
    stage: Stage::Idle,
    reversible: Reversible::Exactly,
    price: Price {
        up: "wake-ups without the hypervisor, paid with processor time of the host",
        down: "less processor time of the host, more wake-ups by the hypervisor",
    },
    risk: "where the host does not offer poll control it may poll as well (kvm.halt_poll_ns), so that both spin",
    overlaps: &[],
    moves: &[],
    source: "Documentation/virt/guest-halt-polling.rst",
};

/// Writable parameters and the largest value that makes sense (the kernel takes any u32).
const PARAMETERS: &[(&str, u64)] = &[
    ("guest_halt_poll_ns", 1_000_000_000),
    ("guest_halt_poll_grow_start", 1_000_000_000),
    ("guest_halt_poll_grow", 1000),
    ("guest_halt_poll_shrink", 1000),
];

impl Knob for IdleHaltpoll {
    fn about(&self) -> &'static About {
        &ABOUT
    }
    fn sites(&self, host: &Host<'_>) -> Result<Vec<Site>, String> {
        let at = |name: &str, valid| {
            let full = format!("{}.{name}", ABOUT.id);
            one_file::find(host, &full, "machine", host.online(), format!("{FOLDER}/{name}"), valid)
        };
        let number = |(name, max): &(&str, u64)| at(name, Valid::Number { min: 0, max: *max });
        let mut sites: Vec<Site> = PARAMETERS.iter().filter_map(number).collect();
        let yes_or_no = Valid::Switch { on: "Y".into(), off: "N".into() };
        sites.extend(at("guest_halt_poll_allow_shrink", yes_or_no));
        if sites.is_empty() {
            let because = word!("the haltpoll governor is not built in; it is for guests");
            return Err(one_file::missing(host, FOLDER, because));
        }
        Ok(sites)
    }
    fn effective(&self, host: &Host<'_>, _: &Site) -> Option<String> {
        let governor = host.facts.idle.governor.get()?;
        (governor != "haltpoll").then(|| say!("unused under the idle governor {governor}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    #[test]
    fn each_parameter_is_a_setting() {
        let tree = Tree::from_text(&format!(
            "//- {FOLDER}/guest_halt_poll_ns\n200000\n//- {FOLDER}/guest_halt_poll_allow_shrink\nY\n//- {FOLDER}/force\nN\n
             //- /sys/devices/system/cpu/cpuidle/current_governor\nmenu\n"
        ));
        let host = Host::read(&tree);
        let sites = IdleHaltpoll.sites(&host).unwrap();
        let names: Vec<&str> = sites.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["idle.haltpoll.guest_halt_poll_ns", "idle.haltpoll.guest_halt_poll_allow_shrink"]);
        assert_eq!(IdleHaltpoll.encode(&host, &sites[1], "off").unwrap(), "N");
        assert!(IdleHaltpoll.encode(&host, &sites[0], "5s").is_err());
        assert!(IdleHaltpoll.effective(&host, &sites[0]).unwrap().contains("menu"));
    }
}
