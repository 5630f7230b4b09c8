//! Tests of what idle states a CPU can enter: switches, limits, governors, threads of a core, registers.

use super::*;
use crate::source::Tree;

const ROOT: &str = "/sys/devices/system/cpu";

/// Two CPUs of an Ice Lake server, with these files besides.
fn host(more: &str) -> Snapshot {
    let mut text = format!(
        "//- {ROOT}/present\n0-1\n//- {ROOT}/online\n0-1\n//- {ROOT}/cpuidle/current_driver\nintel_idle\n
         //- {ROOT}/cpuidle/current_governor\nmenu\n"
    );
    for cpu in 0..2 {
        text += &format!("//- {ROOT}/cpu{cpu}/power/pm_qos_resume_latency_us\n0\n");
        for (index, (name, us)) in [("POLL", 0), ("C1", 1), ("C1E", 4), ("C6", 170)].iter().enumerate() {
            let at = format!("//- {ROOT}/cpu{cpu}/cpuidle/state{index}");
            text += &format!(
                "{at}/name\n{name}\n{at}/latency\n{us}\n{at}/residency\n{us}\n{at}/disable\n0\n
                 {at}/default_status\nenabled\n"
            );
        }
    }
    Snapshot::read(&Tree::from_text(&(text + more)), |_| true)
}

fn file(cpu: u32, state: u32, file: &str, value: &str) -> String {
    format!("//- {ROOT}/cpu{cpu}/cpuidle/state{state}/{file}\n{value}\n")
}

/// Each group: its CPUs, the states it can enter, and why it spins.
fn told(facts: &Snapshot) -> Vec<String> {
    let one = |group: &Enterable| {
        let open: Vec<&str> = group.open().map(|state| state.row.name.as_str()).collect();
        let spins = group.spins().map_or(String::new(), |cause| format!(" spins: {cause:?}"));
        format!("{}: {}{spins}", group.cpus, open.join(" "))
    };
    of(facts).iter().map(one).collect()
}

#[test]
fn everything_that_keeps_a_cpu_from_a_state() {
    assert_eq!(told(&host("")), ["0-1: POLL C1 C1E C6"]);
    let one = file(0, 3, "disable", "1");
    assert_eq!(told(&host(&one)), ["0: POLL C1 C1E", "1: POLL C1 C1E C6"]);
    let own = format!("//- {ROOT}/cpu1/power/pm_qos_resume_latency_us\n50\n");
    assert_eq!(told(&host(&own)), ["0: POLL C1 C1E C6", "1: POLL C1 C1E"]);
    let off = file(1, 3, "disable", "1") + &file(1, 3, "default_status", "disabled");
    let facts = host(&off);
    let groups = of(&facts);
    assert_eq!(groups[1].state("C6").unwrap().barriers, [Barrier::OffByDefault]);
    // Ladder begins in C1 and climbs one state at a time.
    let ladder = format!("//- {ROOT}/cpuidle/current_governor\nladder\n");
    assert_eq!(
        told(&host(&(ladder.clone() + &file(0, 1, "disable", "1")))),
        ["0: POLL C1 C1E C6", "1: POLL C1 C1E C6"]
    );
    let cut = ladder.clone() + &file(0, 2, "disable", "1");
    assert_eq!(told(&host(&cut)), ["0: POLL C1", "1: POLL C1 C1E C6"]);
    let limits = ["500", "n/a"].map(|us| format!("//- {ROOT}/cpu0/power/pm_qos_resume_latency_us\n{us}\n"));
    assert_eq!(told(&host(&(ladder.clone() + &limits[0])))[0], "0: POLL C1 C1E C6");
    assert_eq!(told(&host(&(ladder + &limits[1])))[0], "0: POLL spins: Limit(Poll)");
}

#[test]
fn a_core_sleeps_as_deeply_as_both_of_its_threads_may() {
    let core = "//- /sys/devices/system/cpu/cpu0/topology/core_cpus_list\n0-1\n
                //- /sys/devices/system/cpu/cpu1/topology/core_cpus_list\n0-1\n";
    let facts = host(&(core.to_string() + &file(0, 3, "disable", "1")));
    let groups = of(&facts);
    assert_eq!(told(&facts)[1], "1: POLL C1 C1E C6", "CPU 1 asks for it");
    assert_eq!(groups[1].deepest_of_core().unwrap().name, "C1E");
    assert_eq!(deepest(&groups).unwrap().name, "C1E");
    // A thread that spins keeps its core awake, and one that asks for C1 does so for C1 only.
    let poll = core.to_string() + &format!("//- {ROOT}/cpu0/power/pm_qos_resume_latency_us\nn/a\n");
    assert!(of(&host(&poll))[1].states.iter().skip(1).all(State::is_in_vain));
    assert_eq!(deepest(&of(&host(core))).unwrap().name, "C6");
}

#[test]
fn a_cpu_that_is_offline_enters_nothing_and_keeps_its_core_from_nothing() {
    let core = "//- /sys/devices/system/cpu/cpu0/topology/core_cpus_list\n0-1\n
                //- /sys/devices/system/cpu/cpu1/topology/core_cpus_list\n0-1\n";
    let off = format!("//- {ROOT}/online\n0\n{core}") + &file(1, 3, "disable", "1");
    assert_eq!(told(&host(&off)), ["0: POLL C1 C1E C6"]);
    assert_eq!(deepest(&of(&host(&off))).unwrap().name, "C6");
}

#[test]
fn every_way_to_spin() {
    let all_off: String = (0..2).flat_map(|cpu| (1..4).map(move |s| file(cpu, s, "disable", "1"))).collect();
    assert_eq!(told(&host(&all_off)), ["0-1: POLL spins: Disabled"]);
    let poll = "//- /proc/cmdline\nro idle=poll\n";
    assert_eq!(told(&host(poll)), ["0-1: POLL spins: BootArgument(\"idle=poll\")"]);
    let own = format!("//- {ROOT}/cpu1/power/pm_qos_resume_latency_us\nn/a\n");
    assert_eq!(told(&host(&own))[1], "1: POLL spins: Limit(Poll)");
    let both = file(1, 1, "disable", "1") + &format!("//- {ROOT}/cpu1/power/pm_qos_resume_latency_us\n2\n");
    assert_eq!(told(&host(&both))[1], "1: POLL spins: DisabledAndLimit(AtMostNs(2000))");
    let none =
        format!("//- {ROOT}/online\n0-1\n//- {ROOT}/present\n0-1\n//- {ROOT}/cpuidle/current_driver\nnone\n{poll}");
    let facts = Snapshot::read(&Tree::from_text(&none), |_| true);
    assert_eq!(told(&facts), ["0-1:  spins: BootArgument(\"idle=poll\")"]);
    let halts = Snapshot::read(&Tree::from_text(&none.replace("idle=poll", "idle=halt")), |_| true);
    assert_eq!(of(&halts)[0].when_idle, WhenIdle::Halts);
}

#[test]
fn what_governors_do_where_nothing_fits() {
    let governor = |name: &str| format!("//- {ROOT}/cpuidle/current_governor\n{name}\n");
    let poll_off = file(0, 0, "disable", "1") + &file(1, 0, "disable", "1");
    let all = |us: &str| -> String {
        (0..2).map(|cpu| format!("//- {ROOT}/cpu{cpu}/power/pm_qos_resume_latency_us\n{us}\n")).collect()
    };
    let enters = |facts: &Snapshot| of(facts)[0].deepest().map(|row| row.name.clone());
    // menu starts from the first state that is enabled, and every governor obeys a limit of 0.
    let menu = poll_off.clone() + &all("1") + &file(0, 1, "latency", "3") + &file(1, 1, "latency", "3");
    assert_eq!(enters(&host(&menu)).as_deref(), Some("C1"));
    assert_eq!(of(&host(&menu))[0].resolution().deepest.unwrap().name, "C1");
    assert_eq!(enters(&host(&(menu.clone() + &governor("teo")))), None, "teo takes state 0, and spins");
    assert_eq!(enters(&host(&(poll_off + &all("n/a")))), None);
    // haltpoll looks at no switch and at no limit but 0.
    let off: String = (0..2).flat_map(|cpu| (1..4).map(move |s| file(cpu, s, "disable", "1"))).collect();
    assert_eq!(enters(&host(&(off.clone() + &governor("haltpoll")))).as_deref(), Some("C6"));
    assert_eq!(enters(&host(&(off + &governor("haltpoll") + &all("n/a")))), None);
}

#[test]
fn arm_enters_state_0_whatever_the_limit() {
    let text = format!(
        "//- {ROOT}/present\n0\n//- {ROOT}/online\n0\n//- {ROOT}/cpu0/power/pm_qos_resume_latency_us\nn/a\n
         //- /proc/cpuinfo\nprocessor : 0\nCPU implementer : 0x41\n\n"
    ) + &file(0, 0, "name", "WFI")
        + &file(0, 0, "latency", "1")
        + &file(0, 0, "disable", "0")
        + &file(0, 1, "name", "cpu-sleep")
        + &file(0, 1, "latency", "811")
        + &file(0, 1, "disable", "0");
    let facts = Snapshot::read(&Tree::from_text(&text), |_| true);
    let [group] = &of(&facts)[..] else { panic!("one group") };
    assert_eq!((group.when_idle.clone(), group.deepest().unwrap().name.as_str()), (WhenIdle::Sleeps, "WFI"));
    let nohlt = Snapshot::read(&Tree::from_text(&(text + "//- /proc/cmdline\nro nohlt\n")), |_| true);
    assert!(of(&nohlt)[0].spins().is_some());
}

#[test]
fn the_smaller_limit_is_in_force() {
    let mut qos = PmQos { global: crate::fact::Fact::Known(LatencyLimit::AtMostNs(9_000)), ..PmQos::default() };
    assert_eq!(in_force(&qos, 0), LatencyLimit::AtMostNs(9_000));
    qos.per_cpu = crate::fact::PerCpu::group([(0, crate::fact::Fact::Known(LatencyLimit::Poll))]);
    assert_eq!((in_force(&qos, 0), in_force(&qos, 1)), (LatencyLimit::Poll, LatencyLimit::AtMostNs(9_000)));
    qos.wakeup = crate::fact::Fact::Known(LatencyLimit::AtMostNs(4_000));
    assert_eq!(in_force(&qos, 1), LatencyLimit::AtMostNs(4_000), "the second device enters the minimum");
}
