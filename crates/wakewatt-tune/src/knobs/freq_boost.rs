//! Turbo: one switch with three files, of which the one that governs here is taken.
//!
//! `intel_pstate/no_turbo` (inverted) wherever intel_pstate runs, active or passive; else `cpufreq/boost` for the whole
//! machine; else `policyN/boost` (kernel 6.11 and later). Where both of the latter are there, the global one resets all
//! policies when its value changes, and while it is off a policy cannot be switched on (EINVAL), so the global one is offered,
//! but where it is on and a policy is off: then the policies are. If firmware
//! forbids turbo, switching it on fails with EPERM: then MSR 0x1A0 has bit 38 set, which is looked at only where turbo is
//! off, on one CPU. Turbo changes what the highest frequency means, and no_turbo lowers min_perf_pct for good.
//! Sources: admin-guide/pm/cpufreq.rst, admin-guide/pm/intel_pstate.rst.

use super::{one_file, per_policy};
use crate::knob::{About, Host, Knob, Price, Reversible, Scope, Site, Stage, Valid};
use wakewatt_core::facts::cpus::ROOT;
use wakewatt_words::say;

/// `freq.boost`.
pub struct FreqBoost;

const ABOUT: About = About {
    id: "freq.boost",
    title: "turbo",
    unit: "on, off",
    scope: Scope::Machine,
    io_scope: Scope::Machine,
    stage: Stage::Boost,
    reversible: Reversible::Exactly,
    price: Price {
        up: "more watts and heat under load; a clock that depends on the neighbours",
        down: "less speed under load, fewer watts, steadier clocks",
    },
    risk: "EPERM where firmware forbids it; changes the meaning of the frequency limits and may move them",
    overlaps: &["turbo"],
    moves: &["freq.min", "freq.max", "freq.perf.min"],
    source: "Documentation/admin-guide/pm/intel_pstate.rst (no_turbo); admin-guide/pm/cpufreq.rst (boost)",
};

/// IA32_MISC_ENABLE, and its bit "turbo disabled".
const MISC_ENABLE: u32 = 0x1a0;
const TURBO_DISABLED: u64 = 1 << 38;

impl Knob for FreqBoost {
    fn about(&self) -> &'static About {
        &ABOUT
    }
    fn sites(&self, host: &Host<'_>) -> Result<Vec<Site>, String> {
        let machine = |path: String, valid| one_file::find(host, ABOUT.id, "machine", host.online(), path, valid);
        if let Some(mut site) = machine(format!("{ROOT}/intel_pstate/no_turbo"), Valid::one_is_off()) {
            let is_forbidden = || {
                let first = host.online().first()?;
                host.source.msr(first, MISC_ENABLE).ok().map(|value| value & TURBO_DISABLED != 0)
            };
            if site.now.as_deref() == Some("1") && is_forbidden() == Some(true) {
                site.refusal = Some(say!("firmware forbids turbo (MSR 0x1a0 bit 38)"));
            }
            return Ok(vec![site]);
        }
        let by_policy = || per_policy::sites(host, ABOUT.id, "boost", |_| Ok(Valid::one_is_on()));
        let Some(site) = machine(format!("{}/boost", per_policy::ROOT), Valid::one_is_on()) else {
            return by_policy();
        };
        // On already, it is not written again, and policies that are off would stay off.
        let is_off_somewhere = host.facts.freq.policies.is_boost_on.known().any(|(_, is_on)| !*is_on);
        match site.now.as_deref() == Some("1") && is_off_somewhere {
            true => by_policy(),
            false => Ok(vec![site]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    fn tree(text: &str) -> Tree {
        Tree::from_text(&format!("//- {ROOT}/online\n0-1\n//- {ROOT}/present\n0-1\n{text}"))
    }

    #[test]
    fn no_turbo_is_inverted_and_firmware_may_forbid() {
        let tree = tree(&format!("//- {ROOT}/intel_pstate/no_turbo\n1\n//- msr 0x1a0 cpu0 4000850089\n"));
        let host = Host::read(&tree);
        let site = FreqBoost.sites(&host).unwrap().remove(0);
        assert_eq!(
            (FreqBoost.decode(&site, "1"), FreqBoost.encode(&host, &site, "on").unwrap()),
            ("off".into(), "0".into())
        );
        assert!(site.refusal.unwrap().contains("firmware"));
    }

    #[test]
    fn the_global_file_comes_before_the_policies() {
        let policies = |n: u32, on: u32| {
            format!("//- {ROOT}/cpufreq/policy{n}/boost\n{on}\n//- {ROOT}/cpufreq/policy{n}/affected_cpus\n{n}\n")
        };
        let both = tree(&format!("//- {ROOT}/cpufreq/boost\n1\n{}{}", policies(0, 1), policies(1, 0)));
        let host = Host::read(&both);
        let sites = FreqBoost.sites(&host).unwrap();
        let places: Vec<&str> = sites.iter().map(|site| site.place.as_str()).collect();
        assert_eq!(
            places,
            ["policy0", "policy1"],
            "the global switch is on, and writing it again would change nothing"
        );
        let even = tree(&format!("//- {ROOT}/cpufreq/boost\n1\n{}{}", policies(0, 1), policies(1, 1)));
        let sites = FreqBoost.sites(&Host::read(&even)).unwrap();
        assert_eq!((sites.len(), sites[0].place.as_str()), (1, "machine"));
        let alone = tree(&format!("{}{}", policies(0, 1), policies(1, 0)));
        assert_eq!(FreqBoost.sites(&Host::read(&alone)).unwrap().len(), 2);
        assert!(FreqBoost.sites(&Host::read(&tree(""))).is_err());
    }
}
