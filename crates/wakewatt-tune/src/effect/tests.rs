//! What steps change and what they cost, on a machine of two CPUs.

use super::*;
use crate::planning::{TunePlan, plan};
use crate::request::Request;
use wakewatt_core::source::Tree;

const CPU: &str = "//- /sys/devices/system/cpu";

/// Two CPUs of an Ice Lake server under intel_pstate, with these files besides.
fn host(more: &str) -> Tree {
    let mut text = format!(
        "{CPU}/present\n0-1\n{CPU}/online\n0-1\n{CPU}/cpuidle/current_driver\nintel_idle\n{CPU}/intel_pstate/status\nactive\n
         {CPU}/intel_pstate/no_turbo\n0\n{CPU}/intel_pstate/max_perf_pct\n100\n{CPU}/intel_pstate/min_perf_pct\n22\n"
    );
    for cpu in 0..2 {
        text += &format!("{CPU}/cpu{cpu}/power/pm_qos_resume_latency_us\n0\n");
        for (index, (name, us)) in [("POLL", 0), ("C1", 1), ("C1E", 4), ("C6", 170)].iter().enumerate() {
            let at = format!("{CPU}/cpu{cpu}/cpuidle/state{index}");
            text += &format!("{at}/name\n{name}\n{at}/latency\n{us}\n{at}/residency\n{us}\n{at}/disable\n0\n");
        }
        for (file, says) in [
            ("affected_cpus", cpu.to_string().as_str()),
            ("related_cpus", cpu.to_string().as_str()),
            ("scaling_driver", "intel_pstate"),
            ("scaling_governor", "powersave"),
            ("scaling_available_governors", "performance powersave"),
            ("scaling_min_freq", "800000"),
            ("scaling_max_freq", "3600000"),
            ("cpuinfo_min_freq", "800000"),
            ("cpuinfo_max_freq", "3600000"),
            ("base_frequency", "2800000"),
            ("energy_performance_preference", "balance_performance"),
            ("energy_performance_available_preferences", "default performance balance_performance power"),
        ] {
            text += &format!("{CPU}/cpufreq/policy{cpu}/{file}\n{says}\n");
        }
    }
    Tree::from_text(&(text + more))
}

fn planned(tree: &Tree, settings: &[&str]) -> TunePlan {
    let requests: Vec<Request> = settings.iter().map(|text| Request::parse(text).unwrap()).collect();
    plan(&Host::read(tree), "test", &requests, None)
}

/// Each step: why it has no effect, or its price.
fn said(tree: &Tree, settings: &[&str]) -> Vec<String> {
    let plan = planned(tree, settings);
    assert_eq!(plan.refused, Vec::<String>::new());
    let one = |step: &crate::planning::PlannedStep| match &step.no_effect {
        Some(why) => format!("no effect: {}", why.words()),
        None => step.price.clone(),
    };
    plan.steps.iter().map(one).collect()
}

#[test]
fn what_a_later_step_lifts_overrules_nothing() {
    let tree = host(&format!("{CPU}/intel_pstate/no_turbo\n1\n{CPU}/intel_pstate/max_perf_pct\n50\n"));
    for order in [["freq.boost=on", "freq.perf.max=100"], ["freq.perf.max=100", "freq.boost=on"]] {
        let both = said(&tree, &order);
        assert!(both.iter().all(|says| !says.starts_with("no effect")), "{order:?}: {both:?}");
    }
    assert!(said(&tree, &["freq.boost=on"])[0].starts_with("no effect: turbo is out of reach"));
    let limit = |cpu| format!("{CPU}/cpu{cpu}/power/pm_qos_resume_latency_us\n2\n");
    let off = |cpu| format!("{CPU}/cpu{cpu}/cpuidle/state3/disable\n1\n");
    let tree = host(&(limit(0) + &limit(1) + &off(0) + &off(1)));
    let both = said(&tree, &["idle.state.C6=on", "qos.cpu=none"]);
    assert!(both.iter().all(|says| !says.starts_with("no effect")), "{both:?}");
    assert!(said(&tree, &["idle.state.C6=on"])[0].starts_with("no effect"));
}

#[test]
fn a_power_limit_above_another_one_has_no_effect() {
    let zone = |id: &str, long: u64, short: u64, max: u64| {
        let at = format!("//- /sys/class/powercap/{id}");
        format!(
            "{at}/name\npackage-0\n{at}/enabled\n1\n{at}/constraint_0_name\nlong_term\n
             {at}/constraint_0_power_limit_uw\n{long}000000\n{at}/constraint_0_max_power_uw\n{max}000000\n
             {at}/constraint_1_name\nshort_term\n{at}/constraint_1_power_limit_uw\n{short}000000\n"
        )
    };
    let tree = host(&(zone("intel-rapl:0", 250, 300, 250) + &zone("intel-rapl-mmio:0", 150, 300, 0)));
    let long = |settings: &[&str]| said(&tree, settings);
    assert_eq!(
        long(&["power.limit.long@intel-rapl:0=200W"]),
        ["no effect: 150W of intel-rapl-mmio:0 (long_term) is in force"]
    );
    assert!(!long(&["power.limit.long@intel-rapl:0=100W"])[0].starts_with("no effect"));
    let both = long(&["power.limit.long=200W"]);
    assert_eq!(both, ["the fans and the supply must carry it"], "up from 150 W");
    let off = host(&(zone("intel-rapl:0", 250, 300, 250).replace("enabled\n1", "enabled\n0")));
    assert_eq!(
        said(&off, &["power.limit.long=100W"]),
        ["no effect: the zone's limits are not in force (enabled is 0)"]
    );
    // In any order.
    let both = long(&["power.limit.long@intel-rapl:0=200W", "power.limit.long@intel-rapl-mmio:0=250W"]);
    assert!(both.iter().all(|says| !says.starts_with("no effect")), "{both:?}");
    let both = long(&["power.limit.long@intel-rapl-mmio:0=250W", "power.limit.long@intel-rapl:0=200W"]);
    assert!(both.iter().all(|says| !says.starts_with("no effect")), "{both:?}");
}

#[test]
fn a_delay_that_the_driver_chooses_is_not_set() {
    let eth = |adaptive: u32| {
        host(&format!(
            "//- /sys/class/net/eth0/mtu\n1500\n//- ethtool:eth0/coalesce\nrx-usecs 50\nadaptive-rx {adaptive}\n"
        ))
    };
    let set = "net.coalescing.rx-usecs@eth0=5";
    assert_eq!(said(&eth(1), &[set]), ["no effect: the driver changes it (adaptive-rx is on)"]);
    assert!(said(&eth(0), &[set])[0].starts_with("more interrupts"));
    for order in [["net.coalescing.adaptive-rx@eth0=off", set], [set, "net.coalescing.adaptive-rx@eth0=off"]] {
        let both = said(&eth(1), &order);
        assert!(both.iter().all(|says| !says.starts_with("no effect")), "{order:?}: {both:?}");
    }
    let on = said(&eth(0), &[set, "net.coalescing.adaptive-rx@eth0=on"]);
    assert!(on[0].starts_with("no effect: the driver changes it"), "{on:?}");
}

#[test]
fn idle_states_are_priced_by_those_that_are_entered_or_not() {
    let tree = host("");
    assert_eq!(said(&tree, &["qos.cpu=1ms"]), ["no effect: it excludes no idle state"]);
    assert_eq!(
        said(&tree, &["qos.cpu@cpus:1=1ms"]),
        ["no effect: it excludes no idle state"],
        "no core has two threads"
    );
    assert_eq!(
        said(&tree, &["qos.cpu@cpus:1=20us"]),
        ["C6 (170us) no longer entered on CPU 1 only: more watts when idle, less turbo headroom for busy cores"]
    );
    assert_eq!(
        said(&tree, &["qos.cpu=poll"]),
        ["idle CPUs spin on all 2 CPUs: full power, no turbo headroom for their neighbours"]
    );
    assert_eq!(
        said(&tree, &["idle.state.C6=off", "qos.cpu=20us"])[1],
        "no effect: it leaves out the idle states that are left out now"
    );
    let limited = host(&format!(
        "{CPU}/cpu0/power/pm_qos_resume_latency_us\n50\n{CPU}/cpu1/power/pm_qos_resume_latency_us\n50\n"
    ));
    assert_eq!(
        said(&limited, &["idle.state.C6=off"]),
        ["no effect: C6: excluded by the CPU's own latency limit of 50us"]
    );
    let opened = &said(&limited, &["qos.cpu=none"])[0];
    assert!(opened.starts_with("C6 (170us) entered again on all 2 CPUs: fewer watts when idle"), "{opened}");
    let ladder = host(&format!("{CPU}/cpuidle/current_governor\nladder\n"));
    let cut = &said(&ladder, &["idle.state.C1E=off"])[0];
    assert!(cut.starts_with("C1E (4us), C6 (170us) no longer entered on all 2 CPUs"), "ladder: {cut}");
    let hidden = host(&format!(
        "{CPU}/cpuidle/current_governor\nladder\n{CPU}/cpuidle/available_governors\nladder menu\n
         {CPU}/cpu0/cpuidle/state2/disable\n1\n{CPU}/cpu1/cpuidle/state2/disable\n1\n"
    ));
    let freed = &said(&hidden, &["idle.governor=menu"])[0];
    assert!(freed.starts_with("C6 (170us) entered again on all 2 CPUs"), "ladder kept them from it: {freed}");
    let off = |state: u32| (0..2).map(move |cpu| format!("{CPU}/cpu{cpu}/cpuidle/state{state}/disable\n1\n"));
    let spinning = host(&(1..4).flat_map(off).collect::<String>());
    let why = "no effect: idle CPUs spin: every sleeping state is disabled";
    assert_eq!(said(&spinning, &["qos.cpu=20us"]), [why], "no limit is to blame");
}

#[test]
fn a_limit_of_the_clock_is_held_against_the_one_in_force() {
    let tree = host(&format!("{CPU}/intel_pstate/max_perf_pct\n50\n"));
    let why = "no effect: 1.8GHz (50 % in intel_pstate) is in force on all 2 CPUs";
    assert_eq!(said(&tree, &["freq.max=max"]), [why]);
    let both = said(&tree, &["freq.max=max", "freq.perf.max=100"]);
    assert_eq!(both, ["up to 3.6GHz instead of 1.8GHz: more watts under load", "no effect: it is so already"]);
    let pinned = said(&host(""), &["freq.governor=performance", "freq.min=2GHz"]);
    assert_eq!(pinned[1], "no effect: governor performance keeps the clock at its upper limit on all 2 CPUs");
    let low = host(&format!(
        "{CPU}/cpufreq/policy0/scaling_max_freq\n2000000\n{CPU}/cpufreq/policy1/scaling_max_freq\n2000000\n"
    ));
    assert_eq!(
        said(&low, &["freq.boost=off"]),
        ["no effect: turbo is out of reach: 2GHz (the policy's limit) is in force"]
    );
    // As the kernel shows it while turbo is off: the cap goes with it.
    let capped = host(&format!(
        "{CPU}/intel_pstate/no_turbo\n1\n{CPU}/cpufreq/policy0/scaling_max_freq\n2800000\n{CPU}/cpufreq/policy1/scaling_max_freq\n2800000\n"
    ));
    let on = &said(&capped, &["freq.boost=on"])[0];
    assert!(!on.starts_with("no effect"), "{on}");
    let off = &said(&host(""), &["freq.boost=off"])[0];
    assert_eq!(off, "up to 3.6GHz -> 2.8GHz; fewer watts, steadier clocks");
}

#[test]
fn what_the_driver_would_refuse_is_refused_and_another_value_is_taken() {
    let tree = host("");
    let refused = planned(&tree, &["freq.epp=power", "freq.governor=performance"]).refused.join("; ");
    assert!(refused.contains("refuses it (EBUSY) under governor performance"), "{refused}");
    assert_eq!(
        said(&tree, &["freq.epp=power|performance", "freq.governor=performance"])[1],
        "no effect: freq.governor=performance makes it so"
    );
    assert_eq!(said(&tree, &["freq.epp=power"]), ["clocks rise later and less high, fewer watts at low load"]);
    let refused = planned(&tree, &["freq.min=3GHz", "freq.max=2GHz"]).refused.join("; ");
    assert!(refused.contains("3GHz is above freq.max (2GHz); raise that too"), "{refused}");
    let crossed = planned(&tree, &["freq.perf.max=10"]).refused.join("; ");
    assert!(crossed.contains("the kernel cuts it to freq.perf.min (22)"), "{crossed}");
}

#[test]
fn already_is_not_said_of_what_another_step_sets() {
    let tree = host("");
    let again = said(&tree, &["idle.state.C6=off", "idle.state.C6=on"]);
    assert_eq!(again[0], "no effect: idle.state.C6=on sets it otherwise, later in this plan");
    let mode = planned(&tree, &["freq.driver=passive", "freq.governor=powersave"]);
    assert_eq!(mode.steps[1].no_effect, None, "a new mode resets the governor");
    assert!(planned(&tree, &["freq.boost=on"]).is_without_effect);
    assert!(!planned(&tree, &["freq.boost=off"]).is_without_effect);
}
