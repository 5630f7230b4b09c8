//! May a CPU's deepest sleep take the whole package along?
//!
//! Core C6 (CC6) powers off a core. Package C6 (PC6) puts the memory path, mesh and caches of an idle machine to sleep as
//! well, and then a network card's DMA waits too, before any interrupt. Until Emerald Rapids one state, C6, stands for both,
//! and the kernel claims the worse: a budget of 200us excludes it, although core C6 would fit (99.99th percentile on
//! Sapphire Rapids about 190us against 290us, published by Intel, not measured here). Xeon 6 asks for them apart: C6 and
//! C6S stay with the core, C6P and C6SP allow the package, so that switching off one state is enough. Elsewhere only the
//! package limit can tell them apart. Sources: intel/pepc, "Xeon C6P and C6SP"; Intel SDM volume 4 (MSR 0xE2).

use super::exclusions::Assertion;
use super::{Answer, Confidence, Cost, Finding, Rule, Things, Weight, Where, joined};
use crate::enterable::{self, Enterable};
use crate::evidence::Evidence;
use crate::facts::Snapshot;
use crate::facts::idle::TableRow;
use crate::package_states::{self, Certainty, Hold, KeptBy, Package};
use crate::units::{LatencyLimit, show_ns};
use wakewatt_words::{say, word};

pub(super) struct PackageC6;

/// The state for the core, and the one beside it that allows the package.
const APART: &[(&str, &str)] = &[("C6", "C6P"), ("C6S", "C6SP")];

/// Server models of family 6 whose one C6 stands for both: Skylake to Emerald Rapids.
const BOTH_IN_ONE: &[u64] = &[0x55, 0x6a, 0x6c, 0x8f, 0xcf];

const DISABLE: &str = "/sys/devices/system/cpu/cpu*/cpuidle/state*/disable";
const LATENCY: &str = "/sys/devices/system/cpu/cpu*/cpuidle/state*/latency";

/// Does the package limit allow PC6 on some CPU? None where it was not read or its code is not known.
fn may_sleep(facts: &Snapshot) -> Option<bool> {
    let limit = &facts.msr.package_limit;
    if limit.known().any(|(_, l)| l.allows_pc6() == Some(true)) {
        return Some(true);
    }
    (!limit.is_unknown() && limit.known().all(|(_, l)| l.allows_pc6() == Some(false))).then_some(false)
}

/// What keeps every package from its deepest sleep, of the settings that the kernel decides by; the limit has answers of its own.
fn kept_by_settings(facts: &Snapshot) -> Option<String> {
    let packages = package_states::read(facts).packages;
    let is_by_idle = |hold: &&Hold| hold.certainty == Certainty::Keeps && hold.by == KeptBy::Idle;
    let holds: Option<Vec<&Hold>> = packages.iter().map(|package| package.holds.iter().find(is_by_idle)).collect();
    let first = holds?.first()?.what.clone();
    Some(say!("a package sleeps when all of its CPUs may, and no package has only such CPUs: {first}"))
}

/// The title with the packages that may sleep, of several: those that neither idle settings nor the limit keep awake; where
/// packages are not known, with the CPUs that may enter the state.
fn with_extent(facts: &Snapshot, all: &[Enterable], state: &TableRow, title: String) -> String {
    let packages = package_states::read(facts).packages;
    let is_idle = |hold: &Hold| hold.certainty == Certainty::Keeps && hold.by == KeptBy::Idle;
    let pc6 = package_states::rank("PC6");
    let is_deep = |allowed: &Option<String>| allowed.as_ref().is_none_or(|name| package_states::rank(name) >= pc6);
    let may = packages.iter().filter(|package| !package.holds.iter().any(is_idle) && is_deep(&package.allowed));
    let names: Vec<String> = may.map(|package| format!("package {}", package.id)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let extent = match (names.is_empty(), packages.len()) {
        (false, 1) => return title,
        (true, _) => facts.cpus.extent(&enterable::cpus_that_enter(all, state.index)),
        (false, n) => Things::Packages.extent(&names, n),
    };
    say!("{title}; on {extent}")
}

/// The row of a state that some CPU can enter.
fn open<'a>(all: &'a [Enterable], name: &str) -> Option<&'a TableRow> {
    all.iter().find_map(|group| group.state(name).filter(|state| state.is_enterable())).map(|state| &state.row)
}

impl Rule for PackageC6 {
    fn id(&self) -> &'static str {
        "rule.package-c6"
    }
    fn question(&self) -> &'static str {
        word!("may a CPU's deepest sleep take the whole package along?")
    }
    fn is_choice(&self) -> bool {
        true
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::Intel, Where::BareMetal]
    }
    fn takes_for_granted(&self, _: &Evidence) -> Vec<Assertion> {
        vec![Assertion::PackageMaySleep]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let facts = &evidence.facts;
        let all = enterable::of(facts);
        if all.iter().all(|group| group.states.is_empty()) {
            return Answer::cannot_tell(word!("no idle state is listed"), word!("wakewatt inspect idle"));
        }
        if let Some(why) = kept_by_settings(facts) {
            return Answer::no(why);
        }
        let packages = package_states::read(facts).packages;
        let pc6 = package_states::rank("PC6");
        let is_kept = |package: &Package| package.allowed.as_ref().is_some_and(|name| package_states::rank(name) < pc6);
        if may_sleep(facts) == Some(true) && !packages.is_empty() && packages.iter().all(is_kept) {
            return Answer::no(word!(
                "the shallowest limit of its cores keeps every package from deep sleep; see rule.package-limit"
            ));
        }
        let pair = APART.iter().find_map(|(_, package)| open(&all, package).map(|row| (package, row)));
        match (pair, may_sleep(facts)) {
            (Some((name, _)), Some(false)) => {
                Answer::no(say!("{name} is enabled, and the package limit makes it no deeper than the core's C6"))
            }
            (Some((_, row)), limit) => self.apart(facts, &all, row, limit),
            (None, limit) => self.in_one(facts, &all, limit),
        }
    }
}

/// A latency limit that leaves out the package's state and nothing else, where the claims leave room for one.
fn limit_between(all: &[Enterable], core: &TableRow, package: &TableRow) -> String {
    let others = || all.iter().flat_map(|group| group.open()).filter(|state| state.row.name != package.name);
    match (core.exit_latency_ns, package.exit_latency_ns) {
        (Some(keeps), Some(leaves_out))
            if keeps < leaves_out && others().all(|s| s.row.exit_latency_ns.is_some_and(|ns| ns <= keeps)) =>
        {
            say!(" A latency limit of {} does the same.", LatencyLimit::AtMostNs(keeps))
        }
        _ => String::new(),
    }
}

/// The deepest state that is left where this one is not entered.
fn next_below(all: &[Enterable], package: &TableRow) -> String {
    let left = all.iter().flat_map(|group| group.open()).filter(|state| state.row.index < package.index);
    left.max_by_key(|state| state.row.index).map_or_else(|| word!("nothing").into(), |state| state.row.name.clone())
}

impl PackageC6 {
    fn apart(&self, facts: &Snapshot, all: &[Enterable], package: &TableRow, limit: Option<bool>) -> Answer {
        let core_name = APART.iter().find(|(_, p)| *p == package.name).map(|(core, _)| *core);
        let core = core_name.and_then(|name| open(all, name));
        let claim = |row: &TableRow| row.exit_latency_ns.map_or("?".into(), show_ns);
        let title = match core {
            Some(core) => say!(
                "{} may put the whole package to sleep ({} to wake, as claimed); {} stays with the core ({})",
                package.name,
                claim(package),
                core.name,
                claim(core)
            ),
            None => {
                say!("{} may put the whole package to sleep ({} to wake, as claimed)", package.name, claim(package))
            }
        };
        let title = with_extent(facts, all, package, title);
        let cost = match (core.and_then(|c| c.exit_latency_ns), package.exit_latency_ns) {
            (Some(core), Some(all)) if all > core => Cost::predicted_ns(
                (all - core) as f64,
                say!(
                    "{} more per wake-up than the core's own, as the driver claims, and DMA waits as well; not measured",
                    show_ns(all - core)
                ),
            ),
            _ => Cost::unknown(word!("slower wake-ups, and DMA waits as well; not measured")),
        };
        let mut finding = Finding::new(self, Weight::Note, Confidence::Medium, title, cost)
            .on(LATENCY, format!("{} {}", package.name, claim(package)))
            .on("MSR 0xe2", if limit == Some(true) { word!("the package may sleep") } else { word!("not known here") });
        let has_core = core_name.is_some_and(|name| all.iter().any(|group| group.state(name).is_some()));
        if let Some(name) = core_name.filter(|_| core.is_none() && has_core) {
            let knob = format!("idle.state.{name}");
            finding = finding.step(&knob, None, "on", DISABLE, word!("the sleep that stays with the core"));
        }
        if core.is_some() || has_core {
            let knob = format!("idle.state.{}", package.name);
            finding = finding.step(&knob, None, "off", DISABLE, word!("the cores sleep, the package stays awake"));
        }
        let what = match (core, core_name.filter(|_| has_core)) {
            (Some(core), _) => say!(
                "Where packets or disks wait, switch {} off: the cores go on saving in {}.{}",
                package.name,
                core.name,
                limit_between(all, core, package)
            ),
            (None, Some(name)) => say!(
                "{name}, which stays with the core, is off. Where packets or disks wait, enable {name} and switch {} off; \
                 {} alone off leaves the cores {}.",
                package.name,
                package.name,
                next_below(all, package)
            ),
            (None, None) => say!(
                "Without {} the cores are left with {}. Where packets or disks wait, compare both.",
                package.name,
                next_below(all, package)
            ),
        };
        finding
            .remedy(
                what,
                word!("The watts of a package that stays awake while all its cores sleep."),
                word!("wakewatt measure idle; wakewatt measure network with pauses before and after"),
            )
            .yes()
    }

    fn in_one(&self, facts: &Snapshot, all: &[Enterable], limit: Option<bool>) -> Answer {
        let processor = facts.topology.processor();
        let Some(processor) = processor else {
            return Answer::cannot_tell(
                word!("which processor this is is not known"),
                word!("wakewatt inspect topology"),
            );
        };
        let is_known = processor.is_intel()
            && processor.family == Some(6)
            && processor.model.is_some_and(|model| BOTH_IN_ONE.contains(&model));
        let Some(c6) = open(all, "C6").filter(|_| is_known) else {
            return Answer::no(word!(
                "no enabled state is known here to stand for a sleep of the core or of the package"
            ));
        };
        let claim = c6.exit_latency_ns.map_or("?".into(), show_ns);
        match limit {
            None => Answer::cannot_tell(
                say!("C6 ({claim}) may stand for the package's sleep too, and MSR 0xe2 was not read"),
                word!("as root with the module msr: wakewatt doctor"),
            ),
            Some(false) => Answer::no(word!("the package limit keeps C6 to the core; see rule.package-limit")),
            Some(true) => {
                let title = match claim_follows_limit(facts) {
                    true => {
                        say!("C6 ({claim}, as claimed) may take the whole package along, and its claim counts that in")
                    }
                    false => say!("C6 ({claim}, as claimed) may take the whole package along"),
                };
                let title = with_extent(facts, all, c6, title);
                let cost = Cost::unknown(word!(
                    "when all is idle, wake-ups wait longer than for a core and DMA waits as well; not measured"
                ));
                let locked = facts.msr.is_set("pkg_cst_config", "lock");
                let mut finding = Finding::new(self, Weight::Note, Confidence::Medium, title, cost)
                    .on(LATENCY, format!("C6 {claim}"))
                    .on("MSR 0xe2", word!("the package may sleep"));
                if locked == Some(false) {
                    finding = finding.step(
                        "msr.package_limit",
                        None,
                        "PC2",
                        "MSR 0xe2",
                        word!("C6 for cores, not for packages"),
                    );
                }
                let claim = match claim_follows_limit(facts) {
                    true => word!("From the next boot on the driver then claims less for C6."),
                    false => word!("The driver's claim for C6 stays as it is."),
                };
                let what = word!(
                    "Where packets or disks wait and the cores may sleep all the same, limit the package in the BIOS (Package C \
                     State: C0/C1 or C2)."
                );
                finding
                    .remedy(
                        joined(what, claim),
                        word!("The watts of a package that stays awake while all its cores sleep."),
                        word!("wakewatt measure network with pauses before and after; wakewatt measure idle"),
                    )
                    .yes()
            }
        }
    }
}

/// Models whose driver lowers the claim of C6 where the package stays awake.
fn claim_follows_limit(facts: &Snapshot) -> bool {
    let processor = facts.topology.processor().filter(|p| p.is_intel() && p.family == Some(6));
    processor.and_then(|p| p.model).is_some_and(super::package_limit::is_claim_lowered)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, idle, plan};
    use super::*;

    fn host(model: u32, register: &str, states: &[(&str, u64, u64)]) -> String {
        let cpu = |n: u32| format!("processor : {n}\nvendor_id : GenuineIntel\ncpu family : 6\nmodel : {model}\n\n");
        let register = match register {
            "" => String::new(),
            value => format!("//- msr 0xe2 cpu0 {value}\n//- msr 0xe2 cpu1 {value}\n"),
        };
        idle("intel_idle", states) + &format!("//- /proc/cpuinfo\n{}{}", cpu(0), cpu(1)) + &register
    }

    #[test]
    fn two_states_are_told_apart_and_one_is_the_remedy() {
        let six = [("POLL", 0, 0), ("C1", 1, 1), ("C1E", 4, 4), ("C6", 170, 650), ("C6P", 210, 1000)];
        assert_eq!(
            ask(&PackageC6, &host(0xad, "22", &six)),
            "yes note predicted: c6p may put the whole package to sleep (210us to wake, as claimed); c6 stays with the core (170us); on all 2 cpus"
        );
        assert_eq!(plan(&PackageC6, &host(0xad, "22", &six)), "--set idle.state.C6P=off");
        assert!(ask(&PackageC6, &host(0xad, "20", &six)).starts_with("no: C6P is enabled, and the package limit"));
        assert!(ask(&PackageC6, &host(0xad, "", &six)).starts_with("yes note"), "the state itself says what it may do");
        let off: String =
            (0..2).map(|cpu| format!("//- /sys/devices/system/cpu/cpu{cpu}/cpuidle/state3/disable\n1\n")).collect();
        let host_off = host(0xad, "22", &six) + &off;
        let Answer::Yes(found) = PackageC6.check(&super::super::testing::evidence(&host_off)) else {
            panic!("C6P is on")
        };
        assert!(found.remedy.starts_with("C6, which stays with the core, is off."), "{}", found.remedy);
        assert!(!found.remedy.contains("go on saving") && !found.remedy.contains("does the same"), "{}", found.remedy);
        assert_eq!(plan(&PackageC6, &host_off), "--set idle.state.C6=on --set idle.state.C6P=off");
        let forest = [("POLL", 0, 0), ("C1", 1, 1), ("C6S", 270, 700), ("C6SP", 310, 900)];
        assert_eq!(plan(&PackageC6, &host(0xaf, "22", &forest)), "--set idle.state.C6SP=off");
    }

    #[test]
    fn one_state_for_both_is_said_only_where_the_limit_allows_it() {
        let emerald = [("POLL", 0, 0), ("C1", 1, 1), ("C1E", 2, 4), ("C6", 290, 800)];
        let check = |model, register| ask(&PackageC6, &host(model, register, &emerald));
        assert!(check(0xcf, "403").starts_with("yes note unknown: c6 (290us, as claimed) may take the whole package"));
        assert_eq!(plan(&PackageC6, &host(0xcf, "403", &emerald)), "--set msr.package_limit=PC2");
        assert_eq!(plan(&PackageC6, &host(0xcf, "8403", &emerald)), "", "locked");
        assert!(check(0xcf, "400").starts_with("no: the package limit keeps C6 to the core"));
        assert!(check(0xcf, "").starts_with("cannot tell"));
        assert!(check(0x57, "8403").starts_with("no"), "what C6 is on that model is not known here");
        assert!(ask(&PackageC6, "").starts_with("cannot tell"));
    }
}
