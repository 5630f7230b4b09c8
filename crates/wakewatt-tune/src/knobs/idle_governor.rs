//! The idle governor, which guesses how long a CPU will sleep: `cpuidle/current_governor`.
//!
//! menu, teo, ladder, haltpoll; for the whole machine. Writable by default since kernel 5.8; before that only with the
//! boot parameter `cpuidle_sysfs_switch`, else there is only `current_governor_ro`. It forgets what it has learnt when
//! it is exchanged, for some wake-ups per CPU. haltpoll has a meaning only under the haltpoll driver of a guest. Under
//! ladder a disabled state hides the deeper ones, but for the first that sleeps. Source: Documentation/admin-guide/pm/cpuidle.rst.

use super::one_file;
use crate::knob::{About, Host, Knob, Price, Reversible, Scope, Site, Stage, Valid};
use wakewatt_core::facts::cpus::ROOT;
use wakewatt_words::word;

/// `idle.governor`.
pub struct IdleGovernor;

const ABOUT: About = About {
    id: "idle.governor",
    title: "idle governor",
    unit: "a governor's name",
    scope: Scope::Machine,
    io_scope: Scope::Machine,
    stage: Stage::Idle,
    reversible: Reversible::Exactly,
    price: Price::same(
        "none by itself: other guesses of how long a CPU sleeps, so other states, watts and wake-up times",
    ),
    risk: "what the old one has learnt is lost; ladder does not look past a disabled state",
    overlaps: &["idle states"],
    moves: &[],
    source: "Documentation/admin-guide/pm/cpuidle.rst",
};

impl Knob for IdleGovernor {
    fn about(&self) -> &'static About {
        &ABOUT
    }
    fn sites(&self, host: &Host<'_>) -> Result<Vec<Site>, String> {
        let at = |file: &str| format!("{ROOT}/cpuidle/{file}");
        let words = host.text(&at("available_governors")).unwrap_or_default();
        let valid = Valid::Words(words.split_whitespace().map(str::to_string).collect());
        let because = word!("no cpuidle: idle=poll, cpuidle.off=1, or a hypervisor without idle states");
        if let Ok(sites) = one_file::machine(host, ABOUT.id, &at("current_governor"), valid.clone(), because) {
            return Ok(sites);
        }
        let mut sites = one_file::machine(host, ABOUT.id, &at("current_governor_ro"), valid, because)?;
        for site in &mut sites {
            site.refusal = Some(
                word!(
                    "this kernel chooses at boot only: cpuidle.governor=NAME, or cpuidle_sysfs_switch to make it \
                     writable"
                )
                .into(),
            );
        }
        Ok(sites)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    #[test]
    fn old_kernels_show_it_only() {
        let tree = |file: &str| {
            Tree::from_text(&format!(
                "//- {ROOT}/cpuidle/available_governors\nladder menu \n//- {ROOT}/cpuidle/{file}\nmenu\n"
            ))
        };
        let new = tree("current_governor");
        let host = Host::read(&new);
        let site = IdleGovernor.sites(&host).unwrap().remove(0);
        assert_eq!(IdleGovernor.encode(&host, &site, "ladder").unwrap(), "ladder");
        assert!(site.refusal.is_none() && IdleGovernor.encode(&host, &site, "teo").is_err());
        let old = tree("current_governor_ro");
        assert!(
            IdleGovernor.sites(&Host::read(&old)).unwrap()[0]
                .refusal
                .as_ref()
                .unwrap()
                .contains("cpuidle_sysfs_switch")
        );
        assert!(IdleGovernor.sites(&Host::read(&Tree::default())).unwrap_err().contains("no cpuidle"));
    }
}
