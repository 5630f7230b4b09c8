//! Every latency limit on every recorded idle table: what is planned excludes exactly what the kernel would.
//!
//! The kernel enters a state if its exit latency is at most the limit, in whole microseconds. A plan goes through words (a
//! request, a journal, a profile for the next boot), and a word that rounds lets a state in: 1047us once became 1.05ms, and a
//! state of 1048us was allowed. So limits just below, at and just above every claimed latency, and random ones, go the whole
//! way, for the machine and for one CPU of every table, and come out as the text that is written.
#![allow(clippy::unwrap_used)] // A test may.

use proptest::prelude::*;
use std::path::Path;
use wakewatt_core::budget::resolve;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::units::LatencyLimit;
use wakewatt_tune::knob::Host;
use wakewatt_tune::planning::plan;
use wakewatt_tune::profile::{Profile, budget, to_toml};
use wakewatt_tune::request::{Place, Request};

/// The whole microseconds that the kernel is given.
fn kernel_us(request: &Request, text: &str) -> u64 {
    match (request.name.as_str(), text) {
        ("qos.cpu", "n/a") => 0,
        ("qos.cpu", "0") => panic!("no limit at all"),
        ("qos.cpu", us) => us.parse().unwrap(),
        (_, word) => u64::try_from(LatencyLimit::parse(word).unwrap().as_global_us()).unwrap(),
    }
}

/// Plans it, and looks at each state of the CPUs it is for. True: it was planned; a limit that would poll is refused.
fn check(name: &str, host: &Host<'_>, limit: LatencyLimit, scope: &Place, cpus: &CpuSet) -> bool {
    let asked = budget(limit, scope);
    // The way of what is kept for the next boot, too.
    let kept = Profile::parse(&to_toml("x", std::slice::from_ref(&asked))).unwrap();
    assert_eq!(kept.requests[0].to, asked.to, "{name}: {limit}");
    let planned = plan(host, "test", std::slice::from_ref(&asked), None);
    let sleeps = |us: u64| resolve(LatencyLimit::AtMostNs(us * 1000), &host.facts.idle).iter().all(|r| !r.is_polling);
    let LatencyLimit::AtMostNs(ns) = limit else { panic!("a number") };
    if !planned.refused.is_empty() {
        assert!(ns < 1000 || !sleeps(ns / 1000), "{name}: {limit} refused without need: {:?}", planned.refused);
        return false;
    }
    let changes: Vec<_> = planned.steps.iter().flat_map(|step| &step.step.changes).collect();
    assert!(!changes.is_empty(), "{name}: {limit} comes to nothing");
    for change in changes {
        let us = kernel_us(&asked, &change.to);
        for (of, table) in host.facts.idle.tables().iter().filter(|(of, _)| !of.and(cpus).is_empty()) {
            for state in table.iter().filter(|state| state.exit_latency_ns.is_some()) {
                let latency_ns = state.exit_latency_ns.unwrap();
                let (is_meant, is_entered) = (latency_ns <= ns, latency_ns / 1000 <= us);
                assert_eq!(is_meant, is_entered, "{name}, CPUs {of}: {limit} is written as {us}us, {state:?}");
            }
        }
    }
    true
}

#[test]
fn what_is_planned_excludes_what_the_kernel_excludes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts");
    let (mut n_planned, mut n_hosts) = (0, 0);
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let tree = wakewatt_host::recorded::open(&path).unwrap();
        let host = Host::read(&tree);
        let tables = host.facts.idle.tables();
        n_hosts += u32::from(!tables.is_empty());
        for (cpus, table) in &tables {
            let one = Place::parse(&format!("cpus:{}", cpus.first().unwrap())).unwrap();
            for claim in table.iter().filter_map(|state| state.exit_latency_ns).filter(|ns| *ns > 0) {
                for ns in [claim - 1000, claim - 1, claim, claim + 1, claim + 999, claim + 1000]
                    .into_iter()
                    .filter(|ns| *ns > 0)
                {
                    let limit = LatencyLimit::AtMostNs(ns);
                    n_planned += u32::from(check(&name, &host, limit, &Place::Everywhere, &host.online()));
                    n_planned += u32::from(check(&name, &host, limit, &one, cpus));
                }
            }
        }
    }
    assert!(n_hosts >= 15 && n_planned > 300, "{n_hosts} hosts, {n_planned} plans: the test has lost its subject");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn any_limit_on_a_table_with_close_and_deep_states(ns in 1u64..3_000_000) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts/rpl0.host");
        let tree = wakewatt_host::recorded::open(&path).unwrap();
        let host = Host::read(&tree);
        check("rpl0", &host, LatencyLimit::AtMostNs(ns), &Place::Everywhere, &host.online());
    }
}

#[test]
fn without_idle_states_a_limit_is_refused() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts/cwf0.host");
    let tree = wakewatt_host::recorded::open(&path).unwrap();
    let host = Host::read(&tree);
    for scope in [Place::Everywhere, Place::parse("cpus:3").unwrap()] {
        let planned = plan(&host, "test", &[budget(LatencyLimit::AtMostNs(50_000), &scope)], None);
        assert!(planned.steps.is_empty() && planned.budget.is_empty(), "a plan that acts on nothing");
        assert!(planned.refused[0].contains("or the recording left it out"), "{:?}", planned.refused);
        // Taking a limit off is harmless everywhere.
        assert!(plan(&host, "test", &[budget(LatencyLimit::None, &scope)], None).refused.is_empty());
    }
}
