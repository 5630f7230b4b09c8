//! `cpupower idle-info`: driver, governor, and each CPU's states with their claimed latency and how often they were entered.
//!
//! ```text
//! CPUidle driver: intel_idle
//! analyzing CPU 0:
//! Number of idle states: 4
//! C6 (DISABLED) :
//! Flags/Description: MWAIT 0x20
//! Latency: 85
//! ```
//! Without `-c all` it is about one CPU only, and so are the facts. Its `Latency: 0` of an unreadable file cannot be told from
//! a polling state's, so a 0 counts only for the first state. It has no target residency in most versions. German and Chinese
//! words are known as well, and the French and Italian of the line that names the CPU (the rest is English there); the order of the
//! lines is the same in every language. Where that line is not understood, its states are nobody's: they are not another CPU's.

use crate::facts::{CPU, Facts};
use crate::plain::{is_same, pair, whole};
use crate::reading::{Format, Reading, likely};

/// The format.
pub(super) const FORMAT: Format = Format { id: "cpupower-idle", title: "cpupower idle-info", detect, read };

const DRIVER: &[&str] = &["CPUidle driver", "CPUidle-Treiber", "CPUidle Treiber", "CPU 空闲驱动程序"];
const GOVERNOR: &[&str] = &["CPUidle governor", "CPUidle-Regler", "CPUidle Regler", "CPU 空闲调节器"];
const STATES: &[&str] = &[
    "Available idle states",
    "Verfügbare Ruhezustände",
    "Verfügbare Idlezustände",
    "Verfügbare Idle-Zustände",
    "可用的空闲状态",
];
const COUNT: &[&str] = &[
    "Number of idle states",
    "Anzahl der Ruhezustände",
    "Anzahl der Idlezustände",
    "Anzahl Idle-Zustände",
    "Anzahl der Idle-Zustände",
    "空闲状态数",
];
/// What stands before and behind the CPU's number.
const ANALYSING: &[(&str, &str)] = &[
    ("analyzing CPU", ""),
    ("analysing CPU", ""),
    ("analysiere CPU", ""),
    ("CPU", "wird analysiert"),
    ("analisi della CPU", ""),
    ("analyse du CPU", ""),
    ("正在分析 CPU", ""),
    ("分析 CPU", ""),
];
const FIELDS: &[(&str, &[&str])] = &[
    ("desc", &["Flags/Description", "Merker/Beschreibung", "Flags/Beschreibung", "标志/描述"]),
    ("latency", &["Latency", "Latenz", "Wartezeit", "延迟"]),
    ("residency", &["Residency", "Target residency", "Verweildauer"]),
    ("usage", &["Usage", "Aufruf", "Nutzung", "Benutzung", "用法"]),
    ("time", &["Duration", "Dauer", "持续时间"]),
];
const NOBODYS: &str = "no line above says of which CPU";

fn detect(section: &crate::section::Section<'_>) -> u32 {
    likely(section, "cpupower", |line| {
        pair(line).is_some_and(|(key, _)| {
            [DRIVER, GOVERNOR, STATES, COUNT].iter().any(|words| has(words, key)) || key == "Flags/Description"
        })
    })
}

fn has(words: &[&str], key: &str) -> bool {
    words.iter().any(|word| is_same(key, word))
}

/// `analyzing CPU 0:`, in the languages of cpupower; also a list, as it prints with `-c`.
pub(super) fn analysing(line: &str) -> Option<&str> {
    let line = line.trim().trim_end_matches(':').trim();
    ANALYSING.iter().find_map(|(front, back)| {
        let rest = line.get(front.len()..).filter(|_| is_same(&line[..front.len()], front))?;
        let which = rest.strip_suffix(back)?.trim();
        (!which.is_empty() && which.bytes().all(|b| b.is_ascii_digit() || b == b'-' || b == b',')).then_some(which)
    })
}

/// What is known of the CPU that the next table of states is of.
#[derive(Clone, Copy, PartialEq)]
enum Head {
    /// Nothing stood where it is named.
    Missing,
    /// Something did that is not understood here.
    Strange,
    /// It is named; `at` is the line.
    Named { cpu: Option<u32>, at: usize },
    /// Its table was read: the next one is another CPU's.
    Used,
}

fn read(reading: &mut Reading<'_>) {
    let (mut cpu, mut order, mut state): (Option<u32>, Vec<String>, Option<usize>) = (None, Vec::new(), None);
    let mut head = Head::Missing;
    let (mut cpus_named, mut has_table) = (0, false);
    for (at, line) in reading.open_lines() {
        let text = line.text.trim();
        if let Some(which) = analysing(text) {
            (cpu, state, order) = (None, None, Vec::new());
            head = Head::Named { cpu: Facts::cpus(which).and_then(|set| set.first()), at };
            continue;
        }
        let Some((key, value)) = pair(text) else {
            head = head.after(text);
            continue;
        };
        let is_idle = |reading: &mut Reading<'_>| {
            if let Head::Named { at, .. } = head {
                reading.take(at);
            }
        };
        if has(DRIVER, key) {
            reading.put(at, &format!("{CPU}/cpuidle/current_driver"), value);
            head = Head::Missing;
        } else if has(GOVERNOR, key) {
            reading.put(at, &format!("{CPU}/cpuidle/current_governor"), value);
            head = Head::Missing;
        } else if has(COUNT, key) {
            is_idle(reading);
            reading.unused(at);
        } else if has(STATES, key) {
            is_idle(reading);
            order = value.split_whitespace().map(str::to_string).take(64).collect();
            (cpu, state) = (head.cpu(), None);
            if cpu.is_none() && head == Head::Missing && !has_table {
                // A piece out of the middle: the first CPU is as good as any, as long as it is said.
                cpu = Some(0);
                reading.remark(
                    "cpupower idle-info: no line names the CPU of the states; they are taken as CPU 0's".into(),
                );
            }
            match cpu {
                Some(_) => reading.take(at),
                None => reading.refuse(at, NOBODYS),
            }
            (head, has_table) = (Head::Used, true);
            cpus_named += 1;
        } else if let Some((file, _)) = FIELDS.iter().find(|(_, words)| has(words, key)) {
            let (Some(cpu), Some(index)) = (cpu, state) else {
                let is_nobodys = cpu.is_none() && has_table;
                reading.refuse(at, if is_nobodys { NOBODYS } else { "belongs to no idle state above it" });
                continue;
            };
            let path = format!("{CPU}/cpu{cpu}/cpuidle/state{index}/{file}");
            match (*file, whole(value)) {
                ("desc", _) => reading.put(at, &path, value),
                ("latency", Some(0)) if index > 0 => {
                    reading.refuse(at, "cpupower prints 0 for a latency it cannot read")
                }
                (_, Some(n)) => reading.put(at, &path, &n.to_string()),
                (_, None) => reading.refuse(at, "no number"),
            }
        } else if value.is_empty() {
            let (name, is_disabled) = match key.split_once('(') {
                Some((name, rest)) => (name.trim(), rest.to_ascii_uppercase().starts_with("DISABLED")),
                None => (key, false),
            };
            let Some(index) = place_of(&order, name) else {
                // What follows is about a state whose place nobody told, and not about the one before.
                state = None;
                head = head.after(text);
                continue;
            };
            let Some(cpu) = cpu else {
                reading.refuse(at, NOBODYS);
                continue;
            };
            state = Some(index);
            let path = |file: &str| format!("{CPU}/cpu{cpu}/cpuidle/state{index}/{file}");
            reading.put(at, &path("name"), name);
            reading.put(at, &path("disable"), if is_disabled { "1" } else { "0" });
        } else {
            head = head.after(text);
        }
    }
    if cpus_named == 1 {
        reading.remark("cpupower idle-info is about one CPU; with -c all it prints every one".into());
    }
}

impl Head {
    /// Behind a line that is not understood. One that names the CPU holds until its table came.
    fn after(self, line: &str) -> Head {
        match self {
            Head::Missing | Head::Used if !line.is_empty() && !line.starts_with('#') => Head::Strange,
            _ => self,
        }
    }

    fn cpu(self) -> Option<u32> {
        if let Head::Named { cpu, .. } = self { cpu } else { None }
    }
}

/// A state's index: its place among the available ones.
fn place_of(order: &[String], name: &str) -> Option<usize> {
    order.iter().position(|known| known == name)
}

#[cfg(test)]
mod tests {
    use crate::formats::testing::{formats, read, says};

    const SAMPLE: &str = "CPUidle driver: intel_idle\nCPUidle governor: menu\nanalyzing CPU 0:\n\nNumber of idle states: 3\n\
        Available idle states: POLL C1 C6\nPOLL:\nFlags/Description: CPUIDLE CORE POLL IDLE\nLatency: 0\nUsage: 12\nDuration: 340\n\
        C1:\nFlags/Description: MWAIT 0x00\nLatency: 2\nUsage: 99\nDuration: 1234\nC6 (DISABLED) :\nFlags/Description: MWAIT 0x20\n\
        Latency: 133\nUsage: 5\nDuration: 77\n";

    #[test]
    fn states_become_the_kernels_files() {
        let found = read(SAMPLE);
        assert_eq!(formats(&found), ["cpupower-idle"]);
        let at = |file: &str| says(&found, &format!("/sys/devices/system/cpu/cpu0/cpuidle/{file}"));
        assert_eq!(at("state2/name").as_deref(), Some("C6"));
        assert_eq!((at("state2/latency").as_deref(), at("state2/disable").as_deref()), (Some("133"), Some("1")));
        assert_eq!(at("state1/time").as_deref(), Some("1234"));
        assert_eq!(found.document.files[0].n_not_understood, 0, "{:?}", found.document.files[0].not_understood);
    }

    #[test]
    fn what_is_cut_or_strange_is_said_and_the_rest_kept() {
        let text = SAMPLE.replace("Latency: 2\n", "Latency: 0\n").replace("Usage: 99", "Usage: 9x9") + "Usage: ";
        let found = read(&text);
        let at = |file: &str| says(&found, &format!("/sys/devices/system/cpu/cpu0/cpuidle/{file}"));
        assert_eq!(
            (at("state1/latency"), at("state1/usage"), at("state2/latency").as_deref()),
            (None, None, Some("133"))
        );
        assert_eq!(found.document.files[0].n_not_understood, 3);
    }

    /// Two CPUs in the words of the tool's own catalogue.
    fn two(words: [&str; 9]) -> String {
        let [driver, governor, head, count, states, desc, latency, usage, time] = words;
        let block = |cpu: &str, us: u32| {
            let head = head.replace("%d", cpu);
            let state = |name: &str, us: u32| format!("{name}:\n{desc} MWAIT\n{latency} {us}\n{usage} 7\n{time} 9\n");
            format!("{head}\n\n{count} 2\n{states} POLL C6\n{}{}", state("POLL", 0), state("C6", us))
        };
        format!("{driver} intel_idle\n{governor} menu\n{}{}", block("3", 133), block("4", 140))
    }

    #[test]
    fn every_cpu_keeps_its_states_in_german_and_chinese() {
        let german = [
            "CPUidle-Treiber:",
            "CPUidle-Regler:",
            "CPU %d wird analysiert:",
            "Anzahl der Ruhezustände:",
            "Verfügbare Ruhezustände:",
            "Merker/Beschreibung:",
            "Latenz:",
            "Aufruf:",
            "Dauer:",
        ];
        let chinese = [
            "CPU 空闲驱动程序：",
            "CPU 空闲调节器：",
            "正在分析 CPU %d：",
            "空闲状态数：",
            "可用的空闲状态：",
            "标志/描述：",
            "延迟：",
            "用法：",
            "持续时间：",
        ];
        for words in [german, chinese] {
            let found = read(&two(words));
            let at = |file: &str| says(&found, &format!("/sys/devices/system/cpu/{file}"));
            assert_eq!(at("cpuidle/current_driver").as_deref(), Some("intel_idle"));
            let c6 = (at("cpu3/cpuidle/state1/latency"), at("cpu4/cpuidle/state1/latency"));
            assert_eq!(c6, (Some("133".into()), Some("140".into())), "{words:?}");
            assert_eq!((at("cpu4/cpuidle/state1/usage").as_deref(), at("cpu0/cpuidle/state0/name")), (Some("7"), None));
            let file = &found.document.files[0];
            assert!(found.document.conflicts.is_empty() && file.n_not_understood == 0, "{:?}", file.not_understood);
        }
    }

    #[test]
    fn states_below_a_line_that_is_not_understood_are_nobodys() {
        let text = "CPUidle driver: intel_idle\nCPU 3 analizatzen:\nNumber of idle states: 1\nAvailable idle states: C1\nC1:\nLatency: 2\n\
            CPU 4 analizatzen:\nNumber of idle states: 1\nAvailable idle states: C1\nC1:\nLatency: 5\n";
        let found = read(text);
        assert_eq!(says(&found, "/sys/devices/system/cpu/cpu0/cpuidle/state0/latency"), None);
        let file = &found.document.files[0];
        let nobodys = file.not_understood.iter().filter(|left| left.why == super::NOBODYS).count();
        assert!(nobodys == 6 && file.n_not_understood == 8, "{:?}", file.not_understood);
        assert!(found.document.conflicts.is_empty());
        // A language whose first head is understood and whose second is not does not give both to the first.
        let mixed = read(&text.replace("CPU 3 analizatzen", "analyzing CPU 3"));
        assert_eq!(says(&mixed, "/sys/devices/system/cpu/cpu3/cpuidle/state0/latency").as_deref(), Some("2"));
        assert!(mixed.document.conflicts.is_empty());
        // Where nothing stands, nothing was missed.
        let piece = read("Available idle states: C1\nC1:\nLatency: 2\n");
        assert_eq!(says(&piece, "/sys/devices/system/cpu/cpu0/cpuidle/state0/latency").as_deref(), Some("2"));
        assert!(piece.document.remarks.iter().any(|r| r.contains("taken as CPU 0's")));
    }

    #[test]
    fn german_words_and_full_width_digits() {
        let text = "CPUidle-Treiber: intel_idle\nanalysiere CPU 3:\nAnzahl Idle-Zustände: 1\nVerfügbare Idle-Zustände: C1\nC1:\nLatenz\u{ff1a}\u{ff11}\u{ff10}\n";
        let found = read(text);
        assert_eq!(says(&found, "/sys/devices/system/cpu/cpu3/cpuidle/state0/latency").as_deref(), Some("10"));
    }
}
