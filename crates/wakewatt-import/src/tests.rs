//! Texts as people send them: cut, spaced, full-width, pasted together; and what must hold of any text at all.

use super::formats::testing::{formats, read, says};
use super::*;
use proptest::prelude::*;

fn text(name: &str, text: &str) -> Input {
    Input::Text { name: name.into(), path: None, bytes: text.as_bytes().to_vec() }
}

const IDLE: &str = "CPUidle driver: intel_idle\nCPUidle governor: menu\nanalyzing CPU 0:\n\nNumber of idle states: 2\nAvailable idle states: POLL C6\n\
    POLL:\nFlags/Description: CPUIDLE CORE POLL IDLE\nLatency: 0\nUsage: 1\nDuration: 2\nC6:\nFlags/Description: MWAIT 0x20\nLatency: 133\nUsage: 3\nDuration: 4\n";
const EVENTS: &str = "swapper 0 [003] 10.000000: power:cpu_idle: state=1 cpu_id=3\n\
    web 9 [000] 10.000100: sched:sched_waking: comm=db pid=7 prio=120 target_cpu=003\n\
    swapper 0 [003] 10.000140: power:cpu_idle: state=4294967295 cpu_id=3\n\
    swapper 0 [003] 10.000145: sched:sched_switch: prev_comm=swapper/3 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=db next_pid=7 next_prio=120\n";

#[test]
fn a_terminal_with_several_tools_in_it() {
    let paste = format!(
        "$ cpupower idle-info\n{IDLE}$ numactl -H\navailable: 1 nodes (0)\nnode 0 cpus: 0 1\nnode 0 size: 100 MB\n$ tuned-adm active\nCurrent active profile: balanced\n"
    );
    let found = read(&paste);
    assert_eq!(formats(&found), ["cpupower-idle", "numactl", "tuned-adm"]);
    assert_eq!(found.document.files[0].n_not_understood, 0);
    let together = read(&paste.lines().filter(|l| !l.starts_with('$')).collect::<Vec<_>>().join("\n"));
    assert_eq!(formats(&together).len(), 3, "without prompts too");
}

#[test]
fn contradictions_are_said_and_the_first_is_kept() {
    let found = import(vec![text("a", IDLE), text("b", &IDLE.replace("Latency: 133", "Latency: 85"))]);
    assert_eq!(found.document.conflicts.len(), 1);
    let conflict = &found.document.conflicts[0];
    assert_eq!((conflict.kept.file.as_str(), conflict.kept.says.as_str(), conflict.other.line), ("a", "133", 14));
    assert!(found.not_done().iter().any(|n| n.to_string().contains("a line 14 says 133, b line 14 says 85")));
}

#[test]
fn findings_name_the_imported_line() {
    let text = IDLE.to_string() + "[    1.0] clocksource: Switched to clocksource hpet\n";
    let found = read(&text);
    let facts = Snapshot::read(&found.facts.tree, |_| true);
    let evidence = wakewatt_core::evidence::Evidence { facts, ..Default::default() };
    let mut rulings = wakewatt_core::rules::judge(&evidence);
    found.facts.cite(&mut rulings);
    let cited: Vec<String> = rulings
        .iter()
        .filter_map(|r| match &r.answer {
            wakewatt_core::rules::Answer::Yes(finding) => Some(finding.evidence.iter().map(|b| b.path.clone())),
            _ => None,
        })
        .flatten()
        .collect();
    assert!(cited.iter().any(|path| path.starts_with("a.txt line 17: ") && path.contains("hpet")), "{cited:?}");
    assert!(!cited.iter().any(|path| path.starts_with("/sys")), "{cited:?}");
}

#[test]
fn wake_ups_by_state_and_a_recording() {
    let found = import(vec![text("idle.txt", IDLE), text("events.txt", EVENTS)]);
    let rows: Vec<(&str, Option<&str>, f64)> = found
        .document
        .wakeups
        .iter()
        .filter(|r| r.task.is_none())
        .map(|r| (r.until, r.state.as_deref(), r.median_ns))
        .collect();
    assert_eq!(rows, [("exit", Some("C6"), 40_000.0), ("running", Some("C6"), 45_000.0)]);
    let traced = found.samples.trace.as_ref().unwrap();
    assert_eq!(traced.rows[0].latency.min_ns, 45_000, "the very value");
    assert_eq!((traced.rows.len(), traced.rows[0].latency.n, traced.processes[0].name.as_str()), (1, 1, "db"));
    let facts = Snapshot::read(&found.facts.tree, |_| true);
    let bytes = found.recorded.wtrace(&facts, "test", 1).unwrap();
    let mut reader = wakewatt_core::record::wtrace::Reader::new(&bytes).unwrap();
    assert!(reader.header.gaps.iter().any(|gap| gap.starts_with("next event")));
    assert_eq!(reader.header.tables[0].states[1].exit_latency_ns, Some(133_000));
    let pairs: usize = reader
        .by_ref()
        .map(|item| {
            if let wakewatt_core::record::wtrace::Item::Pairs(p) = item {
                assert_eq!((p[0].duration_ns, p[0].state), (140_000, 1));
                p.len()
            } else {
                0
            }
        })
        .sum();
    assert_eq!((pairs, reader.ending()), (1, Some(&wakewatt_core::record::wtrace::Ending::Complete)));
}

#[test]
fn caller_and_callee_in_two_texts() {
    let (idle, waking): (Vec<&str>, Vec<&str>) = EVENTS.lines().partition(|l| l.contains("cpu_idle"));
    let found = import(vec![text("callee", &idle.join("\n")), text("caller", waking[0])]);
    assert_eq!(found.document.wakeups[0].state.as_deref(), Some("state1"));
    assert_eq!(found.document.wakeups[0].median_ns, 40_000.0);
    assert!(found.document.remarks.iter().any(|r| r.contains("no sched_switch")), "{:?}", found.document.remarks);
}

#[test]
fn what_a_text_says_outright_was_looked_at() {
    let found = read("Current active profile: balanced\nsome other line\n[    1.0] cpuidle: using governor menu\n");
    let said: Vec<String> = found.not_done().iter().map(ToString::to_string).collect();
    assert!(
        said.iter().any(|s| s == "said by a text and not judged here: tuned-adm: the active profile is balanced"),
        "{said:?}"
    );
    assert!(
        said.iter().any(|s| s.starts_with("1 of 3 lines of a.txt were")),
        "no sentence begins with a name: {said:?}"
    );
}

#[test]
fn lines_of_a_known_command_say_which_it_was() {
    for (command, why) in [
        ("numastat -m", "printed by numastat -m, which is not read here"),
        ("lscpu -J", "printed by lscpu -J, which is not read here"),
        ("perf sched map", "printed by perf sched map, which is not read here"),
        ("tuned-adm recommend", "printed by tuned-adm recommend, which is not read here"),
        ("mpstat 1 1", "printed by mpstat, which is not read here"),
        ("lscpu", "no format that is known here"),
        ("perf script -i x", "no format that is known here"),
    ] {
        let found = read(&format!("[root@db7 ~]# {command}\nsome words\n"));
        assert_eq!(found.document.files[0].not_understood[0].why, why);
    }
}

#[test]
fn flags_from_a_narrow_screen_accuse_nobody() {
    let text = |flags: &str| {
        format!(
            "Vendor ID: GenuineIntel\nCPU(s): 2\nOn-line CPU(s) list: 0,1\nModel name: X\nCPU family: 6\nModel: 85\nThread(s) per core: 1\nFlags: {flags}\n"
        )
    };
    let ruling = |flags: &str| {
        let facts = Snapshot::read(&read(&text(flags)).facts.tree, |_| true);
        let evidence = wakewatt_core::evidence::Evidence { facts, ..Default::default() };
        let rulings = wakewatt_core::rules::judge(&evidence);
        let of = rulings.into_iter().find(|r| r.rule == "rule.hwp-hidden").unwrap();
        format!("{:?}", of.answer)
    };
    let cut = "fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge mc";
    assert!(ruling(cut).contains("may be cut short"), "{}", ruling(cut));
    assert!(ruling(&format!("{cut} monitor epb pku ospke md_clear")).starts_with("Yes"));
}

#[test]
fn nothing_understood_is_nothing() {
    let found = read("Dear all,\nthe server is slow.\n");
    assert!(found.is_empty() && found.document.files[0].n_not_understood == 2);
    assert!(import(Vec::new()).is_empty());
}

/// Samples of every format in one text.
fn everything() -> String {
    let log = "[    0.000000] Linux version 6.1.0 (x)\n[    1.0] intel_idle: max_cstate 1 reached\n";
    let dmi = "Handle 0x1100, DMI type 17, 84 bytes\nMemory Device\n\tSize: 16 GB\n\tLocator: A1\n\tSpeed: 2933 MT/s\n\tConfigured Memory Speed: 2100 MT/s\n";
    let cpu = "CPU(s): 2\nOn-line CPU(s) list: 0,1\nVendor ID: GenuineIntel\nModel name: X\nThread(s) per core: 1\nSocket(s): 1\n";
    let turbo =
        "Core\tCPU\tBusy%\tBzy_MHz\tPkgWatt\n-\t-\t4.06\t1562\t17.66\ncpu0: MSR_IA32_POWER_CTL: 0x29240059 (x)\n";
    let rest = "cpu0: EPB 6\nnode_cpu_frequency_max_hertz{cpu=\"0\"} 3.8e+09\n/sys/devices/system/cpu/smt/active:1\ngovernor:\n- value: x\n  cpus: 0-1\n";
    [IDLE, log, dmi, cpu, turbo, rest, EVENTS].concat()
}

fn full_width(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_digit() { char::from_u32(c as u32 + 0xfee0).unwrap_or(c) } else { c }).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn cut_spaced_and_prompted_texts_never_panic(cut in 0usize..3000, from in 0usize..3000, way in 0u8..6) {
        let all = everything();
        let end = all.char_indices().map(|(i, _)| i).rfind(|i| *i <= cut).unwrap_or(0);
        let start = all.char_indices().map(|(i, _)| i).rfind(|i| *i <= from.min(end)).unwrap_or(0);
        let piece = &all[start..end];
        let mangled = match way {
            0 => piece.to_string(),
            1 => piece.replace(' ', "  "),
            2 => full_width(piece),
            3 => piece.replace('\n', "\r\n"),
            4 => piece.lines().map(|l| format!("{l}\n# a comment between\n")).collect(),
            _ => piece.lines().map(|l| format!("root@x:~# cat\n{l}\n")).collect(),
        };
        let found = read(&mangled);
        let file = &found.document.files[0];
        prop_assert!(file.n_understood + file.n_unused + file.n_not_understood == file.n_lines);
        prop_assert!(file.not_understood.len() <= file.n_not_understood);
    }

    #[test]
    fn what_is_readable_is_kept(cut in 0usize..700, way in 0u8..4) {
        // The driver stands in the first line: whatever happens behind it, it is kept.
        let all = everything();
        let end = all.char_indices().map(|(i, _)| i).rfind(|i| *i >= 60 && *i <= cut.max(60)).unwrap_or(60);
        let piece = match way {
            0 => all[..end].to_string(),
            1 => all[..end].replace(' ', "   "),
            2 => full_width(&all[..end]),
            _ => format!("Hello,\n{}", all[..end].replace('\n', "\r\n\r\n")),
        };
        let found = read(&piece);
        prop_assert_eq!(says(&found, "/sys/devices/system/cpu/cpuidle/current_driver"), Some("intel_idle".to_string()));
    }

    #[test]
    fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let found = import(vec![Input::Text { name: "x".into(), path: None, bytes }]);
        let _ = Snapshot::read(&found.facts.tree, |_| true);
    }
}
