//! What core and package states come to on made-up machines that a setting keeps shallow; recorded ones are in core/tests/states_on_hosts.rs.

use super::*;
use crate::source::Tree;
use generations::GENERATIONS;

/// An Ice Lake server with two CPUs; whatever else is said of it.
fn icx(more: &str) -> Snapshot {
    let root = "/sys/devices/system/cpu";
    let mut text = format!(
        "//- {root}/present\n0-1\n//- {root}/online\n0-1\n//- {root}/modalias\ncpu:type:x86,ven0000fam0006mod006A:feature:\n"
    );
    text += "//- /proc/cpuinfo\n";
    for cpu in 0..2 {
        text += &format!(
            "processor : {cpu}\nvendor_id : GenuineIntel\ncpu family : 6\nmodel : 106\nflags : fpu hwp\nphysical id : 0\ncore id : {cpu}\n"
        );
        text += "power management:\n";
    }
    for cpu in 0..2 {
        text += &format!("//- {root}/cpu{cpu}/topology/physical_package_id\n0\n");
        for (at, (name, us, hint)) in [("C1", 1, "0x00"), ("C6", 170, "0x20")].iter().enumerate() {
            let state = format!("//- {root}/cpu{cpu}/cpuidle/state{at}");
            text += &format!("{state}/name\n{name}\n{state}/latency\n{us}\n{state}/desc\nMWAIT {hint}\n");
            if !more.contains(&format!("cpu{cpu}/cpuidle/state{at}/disable")) {
                text += &format!("{state}/disable\n0\n");
            }
        }
    }
    let mut tree = Tree::from_text(&(text + more));
    for cpu in 0..2 {
        tree.msrs.insert((0xe2, cpu), Ok(7));
    }
    Snapshot::read(&tree, |_| true)
}

/// "allowed: holds", of the only package.
fn judged(more: &str) -> String {
    let all = read(&icx(more));
    let [package] = all.packages.as_slice() else { return format!("{all:?}") };
    let holds: Vec<String> = package.holds.iter().map(|h| format!("{:?} {}", h.certainty, h.what)).collect();
    format!("{}: {}", package.allowed.as_deref().unwrap_or("cannot tell"), holds.join("; "))
}

#[test]
fn one_cpu_keeps_the_whole_package() {
    let root = "/sys/devices/system/cpu";
    assert_eq!(judged(""), "PC6: ");
    assert_eq!(
        judged(&format!("//- {root}/cpu1/power/pm_qos_resume_latency_us\n50\n")),
        "PC0: Keeps CPU 1 may go no deeper than C1 (latency limit 50us)"
    );
    assert_eq!(
        judged(&format!("//- {root}/cpu0/cpuidle/state1/disable\n1\n")),
        "PC0: Keeps CPU 0 may go no deeper than C1 (deeper ones are disabled)"
    );
    assert_eq!(
        judged("//- /proc/cmdline\nnohz=off\n//- /sys/devices/system/cpu/cpuidle/intel_c1_demotion\n1\n"),
        "PC6: May C1 demotion: a deep request may become C1; May nohz=off: the tick ends every sleep"
    );
}

#[test]
fn an_unread_register_is_said() {
    let mut facts = icx("");
    facts.msr = crate::facts::msr::Msr::default();
    let said = read(&facts).cannot_tell;
    assert!(said.len() == 1 && said[0].starts_with("the firmware's limit (MSR 0xE2) was not read"), "{said:?}");
}

#[test]
fn the_list_is_whole() {
    for (at, generation) in GENERATIONS.iter().enumerate() {
        let depths: Vec<u32> = generation.allows.iter().map(|a| rank(a.package)).collect();
        assert!(depths.is_sorted(), "{}: shallowest first", generation.name);
        for other in &GENERATIONS[..at] {
            let is_double = |(a, b): &(u64, u64)| other.models.iter().any(|(c, d)| a <= d && c <= b);
            assert!(other.maker != generation.maker || !generation.models.iter().any(is_double), "{}", generation.name);
        }
    }
    assert!(rank("PC2") < rank("less than PC6") && rank("less than PC6") < rank("PC6 non-retention"));
    assert!(rank("PC9") < rank("PC10") && rank("PC10") < rank("unlimited"));
}
