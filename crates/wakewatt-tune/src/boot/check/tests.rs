//! Machines after a boot, as text, and what the check says about them.

use super::*;
use proptest::prelude::*;
use wakewatt_core::source::Tree;

const CPU: &str = "/sys/devices/system/cpu";

fn machine(line: &str, driver: &str, tables: &[&str]) -> Tree {
    let mut text = format!(
        "//- /proc/cmdline\n{line}\n//- /proc/sys/kernel/random/boot_id\nnew\n//- {CPU}/online\n0-{}\n\
         //- {CPU}/cpuidle/current_driver\n{driver}\n//- {CPU}/cpuidle/current_governor\nmenu\n",
        tables.len() - 1
    );
    for (cpu, table) in tables.iter().enumerate() {
        for (index, name) in table.split_whitespace().enumerate() {
            let (name, status) = name.split_once('!').map_or((name, "enabled"), |(n, _)| (n, "disabled"));
            let folder = format!("{CPU}/cpu{cpu}/cpuidle/state{index}");
            text.push_str(&format!("//- {folder}/name\n{name}\n//- {folder}/default_status\n{status}\n"));
        }
    }
    Tree::from_text(&text)
}

fn with(mut tree: Tree, path: &str, value: &str) -> Tree {
    tree.files.insert(path.into(), Ok(format!("{value}\n").into_bytes()));
    tree
}

fn wanted(text: &str) -> BootWanted {
    BootWanted { arguments: Argument::parse_all(text).unwrap(), planned_in_boot: Some("old".into()) }
}

/// One line per check: answer, what, found.
fn said(tree: &Tree, log: Option<&str>, text: &str) -> Vec<String> {
    let word = |v: &BootVerdict| match v {
        BootVerdict::Holds => "holds",
        BootVerdict::Broken => "BROKEN",
        BootVerdict::CannotTell { .. } => "?",
    };
    check(tree, log, &wanted(text)).iter().map(|c| format!("{} {} = {}", word(&c.verdict), c.what, c.found)).collect()
}

const PAIR: &str = "intel_idle.max_cstate=1 processor.max_cstate=1";

#[test]
fn a_good_boot_holds() {
    let tree = machine(&format!("ro quiet {PAIR}"), "intel_idle", &["POLL C1", "POLL C1"]);
    let tree = with(tree, "/sys/module/intel_idle/parameters/max_cstate", "1");
    let tree = with(tree, "/sys/module/processor/parameters/max_cstate", "1");
    let log = "[    0.5] ACPI: processor limited to max C-state 1\n[    0.6] intel_idle: max_cstate 1 reached\n";
    assert_eq!(
        said(&tree, Some(log), PAIR),
        [
            "holds a new boot = new",
            "holds intel_idle.max_cstate on the kernel's line = intel_idle.max_cstate=1",
            "holds processor.max_cstate on the kernel's line = processor.max_cstate=1",
            "holds intel_idle.max_cstate in force = 1",
            "holds processor.max_cstate in force = 1",
            "holds idle driver = intel_idle",
            "holds idle states of every CPU = CPU 0-1: POLL C1",
            "holds states beyond intel_idle.max_cstate=1 = CPU 0-1: POLL C1",
            "holds intel_idle.max_cstate said by the kernel = [    0.6] intel_idle: max_cstate 1 reached",
            "holds processor.max_cstate said by the kernel = [    0.5] ACPI: processor limited to max C-state 1",
        ]
    );
}

#[test]
fn words_must_be_there_once_and_in_force() {
    let line = |text: &str| said(&machine(text, "none", &["POLL"]), Some(""), "intel_idle.max_cstate=1")[1].clone();
    assert!(line("quiet").starts_with("BROKEN") && line("quiet").ends_with("not there"));
    assert!(line("intel_idle.max_cstate=1 intel-idle.max_cstate=9").starts_with("BROKEN"));
    assert!(line("intel_idle.max_cstate=1 intel_idle.max_cstate=1").ends_with("(more than once)"));
    assert!(line("intel_idle.max_cstate=9 intel_idle.max_cstate=1").starts_with("holds"), "the last wins");
    assert!(line("quiet -- intel_idle.max_cstate=1").starts_with("BROKEN"), "that is init's");
}

#[test]
fn one_cpu_that_differs_is_named() {
    let tree = machine(PAIR, "intel_idle", &["POLL C1", "POLL C1", "POLL C1 C6", "POLL C1"]);
    let all = said(&tree, None, PAIR).join("\n");
    assert!(all.contains("? idle states of every CPU = CPU 0-1,3: POLL C1; CPU 2: POLL C1 C6"), "{all}");
    assert!(all.contains("BROKEN states beyond intel_idle.max_cstate=1 = CPU 2: POLL C1 C6"), "{all}");
    assert!(all.contains("? what the kernel said"), "{all}");
}

#[test]
fn the_famous_trap_shows() {
    let tree = machine("intel_idle.max_cstate=0", "acpi_idle", &["POLL C1 C2 C3"]);
    let tree = with(tree, "/sys/module/intel_idle/parameters/max_cstate", "0");
    let all = said(&tree, Some(""), "intel_idle.max_cstate=0").join("\n");
    assert!(all.contains("holds idle driver = acpi_idle") && all.contains("CPU 0: POLL C1 C2 C3"), "{all}");
    let all = said(&tree, Some(""), "processor.max_cstate=1").join("\n");
    assert!(all.contains("BROKEN states beyond processor.max_cstate=1"), "{all}");
}

#[test]
fn masks_switches_and_modes() {
    let tree = machine("intel_idle.states_off=0xc", "intel_idle", &["POLL C1 C1E! C6!", "POLL C1 C1E! C6"]);
    let tree = with(tree, "/sys/module/intel_idle/parameters/states_off", "12");
    let all = said(&tree, Some(""), "intel_idle.states_off=0xc").join("\n");
    assert!(all.contains("holds intel_idle.states_off in force = 12"), "{all}");
    assert!(all.contains("BROKEN states switched off = CPU 1: state 3 C6 is enabled"), "{all}");

    let tree = machine("nosmt intel_pstate=passive cpuidle.off=1", "none", &[""]);
    let tree = with(tree, "/sys/devices/system/cpu/smt/control", "off");
    let tree = with(tree, "/sys/devices/system/cpu/cpufreq/policy0/scaling_driver", "intel_pstate");
    let tree = with(tree, "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave");
    let tree = with(tree, "/sys/devices/system/cpu/cpufreq/policy1/scaling_governor", "performance");
    let log = "x: intel_pstate: P-states controlled by the platform\nENERGY_PERF_BIAS: Set to 'normal', was 'performance'\n\
               Unknown kernel command line parameters \"BOOT_IMAGE=/x nosmt\", will be passed to user space.\n";
    let all = said(&tree, Some(log), "nosmt intel_pstate=passive cpuidle.off=1").join("\n");
    for line in [
        "holds nosmt in force = off",
        "holds cpuidle.off in force = none",
        "BROKEN frequency driver = intel_pstate",
        "? frequency governor = policy1: performance; policy0: powersave",
        "BROKEN who controls frequency",
        "? energy bias",
        "BROKEN nosmt understood",
    ] {
        assert!(all.contains(line), "{line} is not in\n{all}");
    }
}

#[test]
fn an_old_boot_and_a_silent_machine() {
    let tree = Tree::from_text("//- /proc/sys/kernel/random/boot_id\nold\n//- /proc/cmdline!denied\n");
    let all = said(&tree, None, PAIR);
    assert_eq!(all[0], "BROKEN a new boot = old");
    assert!(all[1..].iter().all(|l| l.starts_with('?')), "{all:?}");
}

proptest! {
    #[test]
    fn nothing_panics(line in "\\PC{0,60}", log in "\\PC{0,60}", online in "[0-9,-]{0,8}", mask in "[0-9a-fx]{1,20}") {
        let tree = with(machine(&line, "intel_idle", &["POLL"]), "/sys/devices/system/cpu/online", &online);
        prop_assume!(online.len() < 5); // A wide range is a legal, slow list.
        let log = format!("intel_idle: max_cstate {log}\nUnknown kernel command line parameters \"{log}");
        if let Ok(argument) = Argument::parse(&format!("intel_idle.states_off={mask}")) {
            let mut arguments = Argument::parse_all(PAIR).unwrap();
            arguments.push(argument);
            let _ = check(&tree, Some(&log), &BootWanted { arguments, planned_in_boot: None });
        }
    }
}
