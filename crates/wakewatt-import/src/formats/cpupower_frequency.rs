//! `cpupower frequency-info`: driver, limits, governor, turbo, in the tool's rounded units.
//!
//! Frequencies are printed to three digits (`3.80 GHz`), so a limit may read back up to half a percent off; findings that
//! compare two such numbers compare what was printed. `CPUs which run at the same hardware frequency` is a policy; where that is not
//! available each CPU is taken as a policy of its own, as it is under intel_pstate. Words of German, French and Chinese are known. A
//! block below a head that is not understood is of the CPUs that it names itself, or of nobody.

use super::cpupower_idle::analysing;
use crate::facts::{CPU, Facts};
use crate::plain::{is_same, khz, pair};
use crate::reading::{Format, Reading, likely};
use crate::section::Section;

/// The format.
pub(super) const FORMAT: Format = Format { id: "cpupower-frequency", title: "cpupower frequency-info", detect, read };

const DRIVER: &[&str] = &["driver", "Treiber", "pilote", "modulo", "驱动程序"];
const TOGETHER: &[&str] = &[
    "CPUs which run at the same hardware frequency",
    "CPUs, die mit der gleichen Hardwarefrequenz laufen",
    "Folgende CPUs laufen mit der gleichen Hardware-Taktfrequenz",
    "Fréquence matérielle partagée par les CPU",
    "以相同硬件频率运行的 CPU",
];
const COORDINATED: &[&str] = &[
    "CPUs which need to have their frequency coordinated by software",
    "CPUs, die ihre Frequenz mit Software koordinieren müssen",
    "Die Taktfrequenz folgender CPUs werden per Software koordiniert",
    "需要通过软件协调频率的 CPU",
];
const LIMITS: &[&str] = &[
    "hardware limits",
    "Hardwarebegrenzungen",
    "Hardwarebedingte Grenzen der Taktfrequenz",
    "limites matérielles",
    "limiti hardware",
    "硬件限制",
];
const GOVERNORS: &[&str] = &[
    "available cpufreq governors",
    "verfügbare cpufreq-Regler",
    "mögliche Regler",
    "Régulateurs disponibles",
    "gestori disponibili",
    "可用的cpufreq调节器",
];
const STEPS: &[&str] = &[
    "available frequency steps",
    "verfügbare Frequenzschritte",
    "mögliche Taktfrequenzen",
    "plage de fréquence",
    "frequenze disponibili",
    "可用频率范围",
];
const POLICY: &[&str] =
    &["current policy", "momentane Richtlinie", "momentane Taktik", "tactique actuelle", "gestore attuale", "当前政策"];
const NOW: &[&str] = &["current CPU frequency", "momentane Taktfrequenz", "la fréquence actuelle de ce CPU est"];
/// The same in older versions, without a colon.
const NOW_IS: &[&str] =
    &["current CPU frequency is", "momentane CPU-Frequenz ist", "momentane Taktfrequenz ist", "当前CPU频率是"];
const SUPPORTED: &[&str] = &["Supported", "Unterstützt", "支持"];
const ACTIVE: &[&str] = &["Active", "Aktiv", "活跃"];
const UNUSED: &[&str] = &[
    "maximum transition latency",
    "maximale Dauer eines Taktfrequenzwechsels",
    "最大转换延迟",
    "boost state support",
    "Boost-Zustand-Unterstützung",
    "升压状态支持",
    "AMD PSTATE Highest Performance",
    "perf_ctrl",
    "Highest Performance",
    "Nominal Performance",
    "Lowest Non-linear Performance",
    "Lowest Performance",
    "Preferred Core Support",
    "Preferred Core Ranking",
    "Boost States",
    "Boost-Zustände",
    "提升状态",
    "Total States",
    "Gesamtzustände",
    "状态总数",
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
    /// The CPU that the line above names.
    cpu: Option<u32>,
    related: Option<(usize, String)>,
    /// Were the CPUs of one frequency named?
    has_together: bool,
    fields: Vec<(usize, &'static str, String)>,
}

impl Policy {
    /// One of its files. Said twice it is the next CPU's, below a head that was not understood.
    fn add(&mut self, reading: &mut Reading<'_>, at: usize, file: &'static str, value: String) {
        let is_said = self.fields.iter().any(|(_, known, _)| *known == file);
        // The hardware's clock and the kernel's.
        if is_said && file == "scaling_cur_freq" {
            return reading.unused(at);
        }
        if is_said {
            self.flush(reading);
            *self = Policy::default();
        }
        self.fields.push((at, file, value));
    }

    fn flush(&mut self, reading: &mut Reading<'_>) {
        let fields = std::mem::take(&mut self.fields);
        let Some(first) = fields.first().map(|field| field.0) else { return };
        // Named after its first CPU, as the kernel does.
        let own = self.cpu.map(|cpu| (first, cpu.to_string()));
        let Some((at, list)) = self.related.take().or(own) else {
            return fields.iter().for_each(|(at, ..)| reading.refuse(*at, "no line says of which CPU"));
        };
        let number = list.split_whitespace().next().unwrap_or_default();
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
            policy = Policy { cpu: Facts::cpus(which).and_then(|set| set.first()), ..Policy::default() };
            is_begun = true;
            reading.take(at);
            continue;
        }
        // "The governor "powersave" may decide", "Der Regler "powersave" entscheidet".
        if in_policy_line {
            if let Some(governor) = quoted(text) {
                policy.add(reading, at, "scaling_governor", governor.into());
                continue;
            }
            let is_rest =
                ["within", "innerhalb", "welche ", "在这个范围内"].iter().any(|words| text.starts_with(words));
            if is_rest {
                reading.unused(at);
                in_policy_line = false;
                continue;
            }
        }
        if let Some(now) = NOW_IS.iter().find_map(|words| text.strip_prefix(words)) {
            match khz(now) {
                Some(now) => policy.add(reading, at, "scaling_cur_freq", now.to_string()),
                None => reading.unused(at),
            }
            continue;
        }
        let Some((key, value)) = pair(text) else { continue };
        in_policy_line = in_policy_line && key.len() > 40;
        let two = || value_range(value);
        if is_begun && has(DRIVER, key) {
            policy.add(reading, at, "scaling_driver", value.into());
        } else if has(TOGETHER, key) || has(COORDINATED, key) {
            match Facts::cpus(value) {
                Some(set) if has(TOGETHER, key) || policy.related.is_none() => {
                    if has(TOGETHER, key) && std::mem::replace(&mut policy.has_together, true) {
                        policy.flush(reading);
                        policy = Policy { has_together: true, ..Policy::default() };
                    }
                    let list: Vec<String> = set.iter().map(|cpu| cpu.to_string()).collect();
                    policy.related = Some((at, list.join(" ")));
                    reading.take(at);
                }
                _ => reading.unused(at),
            }
        } else if has(LIMITS, key) {
            match two() {
                Some((low, high)) => {
                    policy.add(reading, at, "cpuinfo_min_freq", low.to_string());
                    policy.add(reading, at, "cpuinfo_max_freq", high.to_string());
                }
                None => reading.refuse(at, "no two frequencies"),
            }
        } else if has(GOVERNORS, key) {
            policy.add(reading, at, "scaling_available_governors", value.replace(',', ""));
        } else if has(STEPS, key) {
            let steps: Vec<String> = value.split(", ").filter_map(khz).map(|khz| khz.to_string()).collect();
            policy.add(reading, at, "scaling_available_frequencies", steps.join(" "));
        } else if has(POLICY, key) {
            in_policy_line = true;
            match two() {
                Some((low, high)) => {
                    policy.add(reading, at, "scaling_min_freq", low.to_string());
                    policy.add(reading, at, "scaling_max_freq", high.to_string());
                }
                None => reading.refuse(at, "no two frequencies"),
            }
        } else if has(NOW, key) {
            match khz(value) {
                Some(now) => policy.add(reading, at, "scaling_cur_freq", now.to_string()),
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
    matches!(value.to_lowercase().as_str(), "yes" | "ja" | "oui" | "si" | "sì" | "是" | "1")
}

fn quoted(text: &str) -> Option<&str> {
    let rest = &text[text.find('"')? + 1..];
    let word = &rest[..rest.find('"')?];
    word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_').then_some(word).filter(|w| !w.is_empty())
}

/// `800 MHz - 3.80 GHz`, `frequency should be within 800 MHz and 3.80 GHz.`
fn value_range(value: &str) -> Option<(u64, u64)> {
    let mut found = Vec::new();
    // Chinese puts no blank beside a number.
    let value = value.replace(|c: char| !c.is_ascii(), " ");
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
    fn the_words_of_the_german_and_the_chinese_catalogue() {
        let german = "CPU 3 wird analysiert:\n  Treiber: acpi-cpufreq\n  CPUs, die mit der gleichen Hardwarefrequenz laufen: 3\n  CPUs, die ihre Frequenz mit Software koordinieren müssen: 3\n  \
            Maximale Dauer eines Taktfrequenzwechsels: 10.0 us\n  Hardwarebegrenzungen: 1.20 GHz - 2.40 GHz\n  verfügbare Frequenzschritte:  2.40 GHz, 1.20 GHz\n  verfügbare cpufreq-Regler: ondemand performance\n  \
            momentane Richtlinie: Frequenz sollte innerhalb 1.20 GHz und 1.80 GHz.\n                    sein. Der Regler \"ondemand\" kann frei entscheiden,\n                    \
            welche Geschwindigkeit er in diesem Bereich verwendet.\n  momentane CPU-Frequenz ist 1.80 GHz (durch Aufruf der Hardware sichergestellt)\n  Boost-Zustand-Unterstützung: \n    Unterstützt: ja\n    Aktiv: nein\n";
        let chinese = "分析 CPU 3：\n  驱动程序：acpi-cpufreq\n  以相同硬件频率运行的 CPU：3\n  需要通过软件协调频率的 CPU：3\n  最大转换延迟：10.0 us\n  硬件限制：1.20 GHz - 2.40 GHz\n  \
            可用频率范围：2.40 GHz, 1.20 GHz\n  可用的cpufreq调节器：ondemand performance\n  当前政策：频率应在1.20 GHz和1.80 GHz.\n调速器“ondemand”可以决定使用哪种速度\n                   在这个范围内。\n  \
            当前CPU频率是1.80 GHz （通过调用硬件来断言）\n  升压状态支持：\n    支持：是\n    活跃：不是\n";
        for text in [german, chinese] {
            let found = read(text);
            let at = |file: &str| says(&found, &format!("/sys/devices/system/cpu/cpufreq/{file}")).unwrap_or_default();
            assert_eq!(found.document.files[0].n_not_understood, 0, "{:?}", found.document.files[0].not_understood);
            assert_eq!(
                (at("policy3/scaling_driver"), at("policy3/scaling_governor")),
                ("acpi-cpufreq".into(), "ondemand".into())
            );
            let limits =
                ["cpuinfo_min_freq", "cpuinfo_max_freq", "scaling_min_freq", "scaling_max_freq", "scaling_cur_freq"];
            let limits = limits.map(|file| at(&format!("policy3/{file}")));
            assert_eq!(limits, ["1200000", "2400000", "1200000", "1800000", "1800000"]);
            assert_eq!(at("boost"), "0");
        }
    }

    #[test]
    fn a_block_below_a_strange_head_is_not_the_cpu_of_before() {
        let second = SAMPLE
            .replace("analyzing CPU 0", "CPU 1 analizatzen")
            .replace("0 1", "1")
            .replace("software: 0", "software: 1");
        let second = second.replace("ondemand", "powersave");
        let found = read(&(SAMPLE.replace("0 1", "0") + &second));
        let at = |file: &str| says(&found, &format!("/sys/devices/system/cpu/cpufreq/{file}"));
        assert_eq!(at("policy0/scaling_governor").as_deref(), Some("ondemand"));
        assert_eq!(at("policy1/scaling_governor").as_deref(), Some("powersave"), "its CPUs name it");
        assert!(found.document.conflicts.is_empty(), "{:?}", found.document.conflicts);
        let nobodys = read(
            &SAMPLE
                .replace("analyzing CPU 0", "CPU 1 analizatzen")
                .replace("0 1", "-")
                .replace("software: 0", "software: -"),
        );
        assert_eq!(nobodys.facts.tree.files.keys().filter(|path| path.contains("policy")).count(), 0);
        assert!(nobodys.document.files[0].not_understood.iter().any(|left| left.why.contains("of which CPU")));
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
