//! `cpupower frequency-info`: driver, limits, governor, turbo, in the tool's rounded units.
//!
//! Frequencies are printed to three digits (`3.80 GHz`), so a limit may read back up to half a percent off; findings that
//! compare two such numbers compare what was printed. `CPUs which run at the same hardware frequency` is a policy; where that is not
//! available each CPU is taken as a policy of its own, as it is under intel_pstate. Words of German and French are known.

use super::cpupower_idle::analysing;
use crate::facts::{CPU, Facts};
use crate::plain::{is_same, khz, pair};
use crate::reading::{Format, Reading, likely};
use crate::section::Section;

/// The format.
pub(super) const FORMAT: Format = Format { id: "cpupower-frequency", title: "cpupower frequency-info", detect, read };

const DRIVER: &[&str] = &["driver", "Treiber", "pilote", "modulo"];
const TOGETHER: &[&str] = &[
    "CPUs which run at the same hardware frequency",
    "Folgende CPUs laufen mit der gleichen Hardware-Taktfrequenz",
    "Fréquence matérielle partagée par les CPU",
];
const COORDINATED: &[&str] = &[
    "CPUs which need to have their frequency coordinated by software",
    "Die Taktfrequenz folgender CPUs werden per Software koordiniert",
];
const LIMITS: &[&str] =
    &["hardware limits", "Hardwarebedingte Grenzen der Taktfrequenz", "limites matérielles", "limiti hardware"];
const GOVERNORS: &[&str] =
    &["available cpufreq governors", "mögliche Regler", "Régulateurs disponibles", "gestori disponibili"];
const STEPS: &[&str] =
    &["available frequency steps", "mögliche Taktfrequenzen", "plage de fréquence", "frequenze disponibili"];
const POLICY: &[&str] = &["current policy", "momentane Taktik", "tactique actuelle", "gestore attuale"];
const NOW: &[&str] = &["current CPU frequency", "momentane Taktfrequenz", "la fréquence actuelle de ce CPU est"];
const SUPPORTED: &[&str] = &["Supported", "Unterstützt"];
const ACTIVE: &[&str] = &["Active", "Aktiv"];
const UNUSED: &[&str] = &[
    "maximum transition latency",
    "maximale Dauer eines Taktfrequenzwechsels",
    "boost state support",
    "AMD PSTATE Highest Performance",
    "perf_ctrl",
    "Highest Performance",
    "Nominal Performance",
    "Lowest Non-linear Performance",
    "Lowest Performance",
    "Preferred Core Support",
    "Preferred Core Ranking",
    "Boost States",
    "Total States",
    "energy performance preference",
];

fn has(words: &[&str], key: &str) -> bool {
    words.iter().any(|word| is_same(key, word))
}

fn detect(section: &Section<'_>) -> u32 {
    likely(section, "cpupower", |line| {
        pair(line).is_some_and(|(key, _)| {
            [TOGETHER, COORDINATED, LIMITS, GOVERNORS, POLICY, NOW].iter().any(|words| has(words, key))
        })
    })
}

/// What of a policy was read, until it is known which.
#[derive(Default)]
struct Policy {
    cpu: u32,
    related: Option<(usize, String)>,
    fields: Vec<(usize, &'static str, String)>,
}

impl Policy {
    fn flush(&mut self, reading: &mut Reading<'_>) {
        let fields = std::mem::take(&mut self.fields);
        let Some(first) = fields.first().map(|field| field.0) else { return };
        // Named after its first CPU, as the kernel does.
        let cpus = self.related.take();
        let (at, list) = cpus.unwrap_or((first, self.cpu.to_string()));
        let number = list.split_whitespace().next().map_or(self.cpu.to_string(), str::to_string);
        let path = |file: &str| format!("{CPU}/cpufreq/policy{number}/{file}");
        reading.put(at, &path("affected_cpus"), &list);
        for (at, file, value) in fields {
            reading.put(at, &path(file), &value);
        }
    }
}

fn read(reading: &mut Reading<'_>) {
    let mut policy = Policy::default();
    let (mut is_begun, mut is_boost_supported) = (false, false);
    let mut in_policy_line = false;
    for (at, line) in reading.open_lines() {
        let text = line.text.trim();
        if let Some(which) = analysing(text) {
            policy.flush(reading);
            policy = Policy { cpu: Facts::cpus(which).and_then(|set| set.first()).unwrap_or(0), ..Policy::default() };
            is_begun = true;
            reading.take(at);
            continue;
        }
        // "The governor "powersave" may decide", "Der Regler "powersave" entscheidet".
        if in_policy_line {
            if let Some(governor) = quoted(text) {
                policy.fields.push((at, "scaling_governor", governor.into()));
                continue;
            }
            if is_same(text, "within this range.") || text.starts_with("within") || text.starts_with("innerhalb") {
                reading.unused(at);
                in_policy_line = false;
                continue;
            }
        }
        let Some((key, value)) = pair(text) else { continue };
        in_policy_line = in_policy_line && key.len() > 40;
        let two = || value_range(value);
        if is_begun && has(DRIVER, key) {
            policy.fields.push((at, "scaling_driver", value.into()));
        } else if has(TOGETHER, key) || has(COORDINATED, key) {
            match Facts::cpus(value) {
                Some(set) if has(TOGETHER, key) || policy.related.is_none() => {
                    let list: Vec<String> = set.iter().map(|cpu| cpu.to_string()).collect();
                    policy.related = Some((at, list.join(" ")));
                    reading.take(at);
                }
                _ => reading.unused(at),
            }
        } else if has(LIMITS, key) {
            match two() {
                Some((low, high)) => {
                    policy.fields.push((at, "cpuinfo_min_freq", low.to_string()));
                    policy.fields.push((at, "cpuinfo_max_freq", high.to_string()));
                }
                None => reading.refuse(at, "no two frequencies"),
            }
        } else if has(GOVERNORS, key) {
            policy.fields.push((at, "scaling_available_governors", value.replace(',', "")));
        } else if has(STEPS, key) {
            let steps: Vec<String> = value.split(", ").filter_map(khz).map(|khz| khz.to_string()).collect();
            policy.fields.push((at, "scaling_available_frequencies", steps.join(" ")));
        } else if has(POLICY, key) {
            in_policy_line = true;
            match two() {
                Some((low, high)) => {
                    policy.fields.push((at, "scaling_min_freq", low.to_string()));
                    policy.fields.push((at, "scaling_max_freq", high.to_string()));
                }
                None => reading.refuse(at, "no two frequencies"),
            }
        } else if has(NOW, key) {
            match khz(value) {
                Some(now) => policy.fields.push((at, "scaling_cur_freq", now.to_string())),
                None => reading.unused(at),
            }
        } else if is_begun && has(SUPPORTED, key) {
            is_boost_supported = is_yes(value);
            reading.unused(at);
        } else if is_begun && has(ACTIVE, key) {
            // Where it is not supported, "Active: no" is no switch.
            if is_boost_supported {
                reading.put(at, &format!("{CPU}/cpufreq/boost"), if is_yes(value) { "1" } else { "0" });
            } else {
                reading.unused(at);
            }
        } else if has(UNUSED, key) || (is_begun && text.contains("max turbo")) {
            reading.unused(at);
        }
    }
    policy.flush(reading);
    for (at, line) in reading.open_lines() {
        let text = line.text.trim();
        if is_begun && (text.contains("max turbo") || text.contains("Pstate-P")) {
            reading.unused(at);
        }
    }
}

fn is_yes(value: &str) -> bool {
    matches!(value.to_lowercase().as_str(), "yes" | "ja" | "oui" | "si" | "sì" | "1")
}

fn quoted(text: &str) -> Option<&str> {
    let rest = &text[text.find('"')? + 1..];
    let word = &rest[..rest.find('"')?];
    word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_').then_some(word).filter(|w| !w.is_empty())
}

/// `800 MHz - 3.80 GHz`, `frequency should be within 800 MHz and 3.80 GHz.`
fn value_range(value: &str) -> Option<(u64, u64)> {
    let mut found = Vec::new();
    let words: Vec<&str> = value.split_whitespace().collect();
    for pair in words.windows(2) {
        found.extend(khz(&format!("{} {}", pair[0], pair[1])));
    }
    match found[..] {
        [low, high] if low <= high => Some((low, high)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::formats::testing::{formats, read, says};

    const SAMPLE: &str = "analyzing CPU 0:\n  driver: acpi-cpufreq\n  CPUs which run at the same hardware frequency: 0 1\n  \
        CPUs which need to have their frequency coordinated by software: 0\n  maximum transition latency: 10.0 us\n  \
        hardware limits: 1.20 GHz - 2.40 GHz\n  available frequency steps:  2.40 GHz, 1.80 GHz, 1.20 GHz\n  \
        available cpufreq governors: conservative ondemand performance\n  current policy: frequency should be within 1.20 GHz and 1.80 GHz.\n                  \
        The governor \"ondemand\" may decide which speed to use\n                  within this range.\n  \
        current CPU frequency: 1.80 GHz (asserted by call to hardware)\n  boost state support:\n    Supported: yes\n    Active: no\n";

    #[test]
    fn limits_governor_and_turbo() {
        let found = read(SAMPLE);
        assert_eq!(formats(&found), ["cpupower-frequency"]);
        let at = |file: &str| says(&found, &format!("/sys/devices/system/cpu/cpufreq/{file}"));
        assert_eq!(at("policy0/affected_cpus").as_deref(), Some("0 1"));
        assert_eq!(at("policy0/scaling_governor").as_deref(), Some("ondemand"));
        assert_eq!(
            (at("policy0/cpuinfo_max_freq").as_deref(), at("policy0/scaling_max_freq").as_deref()),
            (Some("2400000"), Some("1800000"))
        );
        assert_eq!(
            (at("boost").as_deref(), at("policy0/scaling_driver").as_deref()),
            (Some("0"), Some("acpi-cpufreq"))
        );
        assert_eq!(found.document.files[0].n_not_understood, 0, "{:?}", found.document.files[0].not_understood);
    }

    #[test]
    fn not_available_is_no_policy_of_nobody() {
        let found = read(
            &SAMPLE
                .replace("0 1", "Not Available")
                .replace("CPU 0:", "CPU 5:")
                .replace("software: 0", "software: Not Available"),
        );
        assert_eq!(says(&found, "/sys/devices/system/cpu/cpufreq/policy5/affected_cpus").as_deref(), Some("5"));
    }
}
