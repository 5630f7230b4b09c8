//! What engineers of each maker found false in plans for recorded hosts, as they would say it: what changes nothing has no
//! price, and a price names what it is for.
#![allow(clippy::unwrap_used)] // A test may.

use std::path::Path;
use wakewatt_core::source::Tree;
use wakewatt_tune::knob::Host;
use wakewatt_tune::planning;
use wakewatt_tune::request::Request;

/// A recorded host, with every file whose path ends so set to this text.
fn host(name: &str, edits: &[(&str, &str)]) -> Tree {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../fixtures/hosts/{name}.host"));
    let mut tree = wakewatt_host::recorded::open(&path).unwrap();
    for (end, text) in edits {
        let found: Vec<String> = tree.files.keys().filter(|path| path.ends_with(end)).cloned().collect();
        assert!(!found.is_empty(), "{name} has no {end}");
        found.into_iter().for_each(|path| drop(tree.files.insert(path, Ok((*text).into()))));
    }
    tree
}

/// Why each step has no effect, or its price.
fn said(tree: &Tree, settings: &[&str]) -> Vec<String> {
    let requests: Vec<Request> = settings.iter().map(|text| Request::parse(text).unwrap()).collect();
    let plan = planning::plan(&Host::read(tree), "test", &requests, None);
    assert_eq!(plan.refused, Vec::<String>::new());
    let one = |step: &planning::PlannedStep| match &step.no_effect {
        Some(why) => format!("no effect: {}", why.words()),
        None => step.price.clone(),
    };
    plan.steps.iter().map(one).collect()
}

#[test]
fn a_package_that_never_sleeps_has_no_limit_to_pay_for() {
    let off = host("gnr3", &[("cpuidle/state4/disable", "1")]);
    let limit = &said(&off, &["msr.package_limit=PC2"])[0];
    assert!(limit.starts_with("no effect: no package goes as deep by its idle settings: "), "{limit}");
    let open = host("gnr3", &[]);
    let limit = &said(&open, &["msr.package_limit=PC2"])[0];
    assert_eq!(limit, "more watts while a package idles, no wait for a package to wake");
    // The first step takes the deep states away.
    let both = said(&open, &["qos.cpu=5us", "msr.package_limit=PC2"]);
    assert!(both.iter().filter(|says| says.starts_with("no effect: no package")).count() == 1, "{both:?}");
    let shallow = host("icx2s0", &[("cpuidle/state3/disable", "1")]);
    assert_eq!(said(&shallow, &["msr.c1_demotion=off"]), ["no effect: no idle state that could be demoted is entered"]);
}

#[test]
fn latency_optimised_mode_leaves_the_uncore_nothing_to_fall() {
    let cwf = host("cwf0", &[]);
    for setting in ["uncore.min=max", "uncore.min=1GHz"] {
        let says = &said(&cwf, &[setting])[0];
        assert!(says.contains("is in latency-optimised mode and keeps the clock up"), "{setting}: {says}");
    }
    let gnr = host("gnr3", &[]);
    let says = &said(&gnr, &["uncore.min@compute=1GHz"])[0];
    assert_eq!(says, "no effect: the floor of efficiency latency control lies above it");
}

#[test]
fn haltpoll_asks_for_no_switch_and_no_other_governor_reads_its_parameters() {
    let guest = host("vm-haltpoll-2cpu", &[("cpuidle/current_governor", "haltpoll")]);
    for state in ["POLL", "haltpoll idle"] {
        let says = &said(&guest, &[&format!("idle.state.{state}=off")])[0];
        assert!(says.contains("the idle governor haltpoll does not ask"), "{state}: {says}");
    }
    let menu = host("vm-haltpoll-2cpu", &[("cpuidle/current_governor", "menu")]);
    let says = &said(&menu, &["idle.haltpoll.guest_halt_poll_ns=300000"])[0];
    assert!(says.contains("only the idle governor haltpoll reads it, and menu is in charge"), "{says}");
}

#[test]
fn losses_of_unequal_cores_are_told_apart() {
    let bf = host("icx2s0", &[]);
    let says = &said(&bf, &["freq.boost=off"])[0];
    assert!(says.contains("3.5GHz -> 2.1GHz on ") && says.contains("3.5GHz -> 2.7GHz on "), "{says}");
    assert!(says.contains("from 3.1GHz with all cores busy"), "{says}");
    let capped = host("icx2s0", &[("intel_pstate/no_turbo", "1")]);
    let says = &said(&capped, &["freq.max=3GHz"])[0];
    assert!(says.contains("2.1GHz (turbo off) is in force on") && says.contains("2.7GHz (turbo off)"), "{says}");
    let says = &said(&capped, &["freq.max=2.5GHz"])[0];
    assert!(says.contains("at most 2.5GHz instead of 2.7GHz") && says.contains("on 48 of 144 CPUs"), "{says}");
}

#[test]
fn a_core_sleeps_as_deeply_as_both_of_its_threads_may() {
    let icx = host("icx2s0", &[]);
    let says = &said(&icx, &["qos.cpu@cpus:0-71=20us"])[0];
    assert!(says.contains("C6 (170us) no longer entered on 72 of 144 CPUs (0-71)"), "{says}");
    assert!(says.contains("C6 (170us) asked for in vain on 72 of 144 CPUs (72-143)"), "{says}");
    // Taken back on one thread of each core, it brings no core down again.
    let limited = host("icx2s0", &[("power/pm_qos_resume_latency_us", "20")]);
    let says = &said(&limited, &["qos.cpu@cpus:0-71=none"])[0];
    assert_eq!(says, "no effect: the other thread of each core keeps the core as shallow");
    let half = host("icx2s0", &[]);
    let half = (0..72).fold(half, |mut tree, cpu| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us");
        tree.files.insert(path, Ok("20".into()));
        tree
    });
    assert!(said(&half, &["qos.cpu=4us"])[0].starts_with("no effect: the other thread of each core"));
    assert!(said(&half, &["idle.state.C6=off"])[0].starts_with("no effect: "));
    let says = &said(&limited, &["qos.cpu=none"])[0];
    assert!(says.contains("C6 (170us) entered again on all 144 CPUs") && !says.contains("in vain"), "{says}");
}

#[test]
fn a_bias_moves_no_clock_that_the_governor_keeps_up() {
    let emr = host("emr9", &[("scaling_governor", "performance"), ("power/energy_perf_bias", "6")]);
    let says = &said(&emr, &["freq.epb=15"])[0];
    assert_eq!(says, "the clocks stay up under governor performance; the uncore may react slower, with fewer watts");
    let free = host("emr9", &[("scaling_governor", "powersave"), ("power/energy_perf_bias", "6")]);
    assert!(said(&free, &["freq.epb=15"])[0].contains("and of clocks"));
}

#[test]
fn a_governor_counts_where_the_plan_opens_the_range() {
    let pinned = host("emr9", &[("scaling_max_freq", "2300000"), ("scaling_min_freq", "2300000")]);
    assert!(said(&pinned, &["freq.governor=performance"])[0].starts_with("no effect: the limits leave one clock"));
    let both = said(&pinned, &["freq.governor=performance", "freq.max=max"]);
    assert!(both[0].starts_with("more watts at low load"), "{both:?}");
    assert!(said(&pinned, &["freq.epp=power"])[0].starts_with("no effect: the limits leave one clock"));
}

#[test]
fn turbo_is_lost_down_from_the_limit_in_force() {
    let capped = host("icx2s0", &[("scaling_max_freq", "2400000")]);
    let says = &said(&capped, &["freq.boost=off"])[0];
    assert!(says.contains("2.4GHz -> 2.1GHz on") || says.contains("2.4GHz -> 2.1GHz"), "{says}");
    assert!(!says.contains("3.5GHz") && !says.contains("2.7GHz"), "{says}");
    let base = host("icx2s0", &[("scaling_max_freq", "2100000")]);
    let says = &said(&base, &["freq.boost=off"])[0];
    assert!(says.starts_with("no effect: turbo is out of reach"), "{says}");
}

#[test]
fn the_lower_limit_is_the_clock_where_the_governor_keeps_it_there() {
    let low = host("genoa0", &[("scaling_governor", "powersave"), ("scaling_min_freq", "2300000")]);
    let says = &said(&low, &["freq.min=min"])[0];
    assert_eq!(says, "the clock is 1.5GHz instead of 2.3GHz, whatever the load: less speed, fewer watts");
}

#[test]
fn turbo_is_had_by_the_highest_step_and_sold_where_it_is() {
    let rome = host("rome0", &[]);
    assert!(said(&rome, &["freq.max=2GHz"])[0].starts_with("at most 2GHz instead of 2.25GHz and turbo"));
    let says = &said(&rome, &["idle.state.C1=off"])[0];
    assert!(says.contains("short pauses end in a deeper state"), "POLL takes over the shortest only: {says}");
    let off = host("rome0", &[("cpufreq/boost", "0")]);
    let says = &said(&off, &["qos.cpu=5us"])[0];
    assert!(says.contains("more watts when idle") && !says.contains("turbo"), "{says}");
}
