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
//! Without `-c all` it is about CPU 0 only, and so are the facts. Its `Latency: 0` of an unreadable file cannot be told from
//! a polling state's, so a 0 counts only for the first state. It has no target residency in most versions. German, French and
//! Italian words are known as well; the order of the lines is the same in every language.

use crate::facts::{CPU, Facts};
use crate::plain::{is_same, pair, whole};
use crate::reading::{Format, Reading, likely};

/// The format.
pub(super) const FORMAT: Format = Format { id: "cpupower-idle", title: "cpupower idle-info", detect, read };

const DRIVER: &[&str] = &["CPUidle driver", "CPUidle-Treiber", "CPUidle Treiber", "Pilote CPUidle", "Driver CPUidle"];
const GOVERNOR: &[&str] =
    &["CPUidle governor", "CPUidle-Regler", "CPUidle Regler", "Régulateur CPUidle", "Governor CPUidle"];
const STATES: &[&str] =
    &["Available idle states", "Verfügbare Ruhezustände", "Verfügbare Idle-Zustände", "Stati di idle disponibili"];
const COUNT: &[&str] =
    &["Number of idle states", "Anzahl Idle-Zustände", "Anzahl der Idle-Zustände", "Numero di stati di idle"];
const ANALYSING: &[&str] = &["analyzing CPU", "analysing CPU", "analysiere CPU", "analisi della CPU", "analyse du CPU"];
const FIELDS: &[(&str, &[&str])] = &[
    ("desc", &["Flags/Description", "Flags/Beschreibung"]),
    ("latency", &["Latency", "Latenz", "Latence", "Latenza"]),
    ("residency", &["Residency", "Target residency", "Verweildauer"]),
    ("usage", &["Usage", "Nutzung", "Benutzung", "Utilisation", "Utilizzo"]),
    ("time", &["Duration", "Dauer", "Durée", "Durata"]),
];

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
    let front = ANALYSING.iter().find(|word| {
        line.len() >= word.len() && line.is_char_boundary(word.len()) && is_same(&line[..word.len()], word)
    })?;
    let rest = line[front.len()..].trim();
    (!rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit() || b == b'-' || b == b',')).then_some(rest)
}

fn read(reading: &mut Reading<'_>) {
    let (mut cpu, mut order, mut state): (Option<u32>, Vec<String>, Option<usize>) = (None, Vec::new(), None);
    let mut cpus_named = 0;
    let mut last_analysed = None;
    for (at, line) in reading.open_lines() {
        let text = line.text.trim();
        if let Some(which) = analysing(text) {
            (cpu, state, order) = (Facts::cpus(which).and_then(|set| set.first()), None, Vec::new());
            last_analysed = Some(at);
            continue;
        }
        let Some((key, value)) = pair(text) else { continue };
        let is_idle = |reading: &mut Reading<'_>| {
            if let Some(at) = last_analysed {
                reading.take(at);
            }
        };
        if has(DRIVER, key) {
            reading.put(at, &format!("{CPU}/cpuidle/current_driver"), value);
        } else if has(GOVERNOR, key) {
            reading.put(at, &format!("{CPU}/cpuidle/current_governor"), value);
        } else if has(COUNT, key) {
            is_idle(reading);
            reading.unused(at);
        } else if has(STATES, key) {
            is_idle(reading);
            order = value.split_whitespace().map(str::to_string).take(64).collect();
            reading.take(at);
            // Version without "analyzing": it is CPU 0.
            cpu = cpu.or(Some(0));
            cpus_named += 1;
        } else if let Some((file, _)) = FIELDS.iter().find(|(_, words)| has(words, key)) {
            let (Some(cpu), Some(index)) = (cpu, state) else {
                reading.refuse(at, "belongs to no idle state above it");
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
            let Some((cpu, index)) = cpu.zip(place_of(&order, name)) else {
                // What follows is about a state whose place nobody told, and not about the one before.
                state = None;
                continue;
            };
            state = Some(index);
            let path = |file: &str| format!("{CPU}/cpu{cpu}/cpuidle/state{index}/{file}");
            reading.put(at, &path("name"), name);
            reading.put(at, &path("disable"), if is_disabled { "1" } else { "0" });
        }
    }
    if cpus_named == 1 {
        reading.remark("cpupower idle-info is about one CPU; with -c all it prints every one".into());
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

    #[test]
    fn german_words_and_full_width_digits() {
        let text = "CPUidle-Treiber: intel_idle\nanalysiere CPU 3:\nAnzahl Idle-Zustände: 1\nVerfügbare Idle-Zustände: C1\nC1:\nLatenz\u{ff1a}\u{ff11}\u{ff10}\n";
        let found = read(text);
        assert_eq!(says(&found, "/sys/devices/system/cpu/cpu3/cpuidle/state0/latency").as_deref(), Some("10"));
    }
}
