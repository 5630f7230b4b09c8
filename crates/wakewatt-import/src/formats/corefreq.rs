//! `corefreq-cli`: system information (-s, -k) and counters (-c).
//!
//! Boxes of `|- Name   [ value ]`; the kernel view has the idle table as rows (`State`, `Latency`, `Residency`) under
//! `CPU-Idle driver`. The counters view is a table per interval, a row per CPU that begins with `#00` or its number, of shares of
//! time by the hardware's own counters; `Averages` closes it. Names of columns are taken as they stand.

use crate::facts::CPU;
use crate::plain::{number, whole};
use crate::reading::{Format, Reading, likely};
use crate::section::Section;

/// The format.
pub(super) const FORMAT: Format = Format { id: "corefreq", title: "corefreq-cli", detect, read };

/// `|- Name … [ value ]` or `< value >`: name, value.
fn field(line: &str) -> Option<(&str, &str)> {
    let line = line.trim().trim_start_matches(['|', '-']).trim();
    let (open, close) = if line.ends_with(']') {
        ('[', ']')
    } else if line.ends_with('>') {
        ('<', '>')
    } else {
        return None;
    };
    let at = line.rfind(open)?;
    let value = line[at + 1..].trim_end_matches(close).trim();
    // A short word (`SMT`, `C1E`) may stand between.
    let name = line[..at].trim_end();
    let name = match name.rsplit_once("   ") {
        Some((front, _)) => front.trim_end(),
        None => name,
    };
    (!name.is_empty() && name.len() < 60).then_some((name, value))
}

const OWN: &[&str] = &[
    "CPU-Freq driver",
    "CPU-Idle driver",
    "Governor driver",
    "Idle Limit",
    "Clock Source",
    "Architecture",
    "Online CPU",
    "Microcode",
];

fn is_counters(line: &str) -> bool {
    line.contains("C0(%)") && line.contains("Freq(MHz)")
}

fn detect(section: &Section<'_>) -> u32 {
    likely(section, "corefreq-cli", |line| {
        is_counters(line) || (line.contains(['[', '<']) && field(line).is_some_and(|(name, _)| OWN.contains(&name)))
    })
}

fn is_on(value: &str) -> bool {
    value.eq_ignore_ascii_case("on") || value.eq_ignore_ascii_case("enable")
}

fn read(reading: &mut Reading<'_>) {
    let mut columns: Vec<String> = Vec::new();
    let (mut states, mut n_on): (Vec<String>, Option<u64>) = (Vec::new(), None);
    for (at, line) in reading.open_lines() {
        let text = line.text.trim();
        if is_counters(text) {
            columns = text.split_whitespace().map(str::to_string).collect();
            reading.take(at);
            continue;
        }
        let bare = text.trim_start_matches(['|', '-']).trim();
        let words: Vec<&str> = bare.split_whitespace().collect();
        match words.first().copied() {
            Some("State") if words.len() > 1 => {
                states = words[1..]
                    .iter()
                    .take(16)
                    .map(|w| w.trim_matches('|').to_string())
                    .filter(|w| !w.is_empty())
                    .collect();
                for (index, name) in states.iter().enumerate() {
                    reading.put(at, &format!("{CPU}/cpu0/cpuidle/state{index}/name"), name);
                }
                continue;
            }
            Some(row @ ("Latency" | "Residency")) if !states.is_empty() => {
                let file = if row == "Latency" { "latency" } else { "residency" };
                let values: Option<Vec<u64>> = words[1..].iter().map(|w| whole(w.trim_matches('|'))).collect();
                match values.filter(|v| v.len() == states.len()) {
                    Some(values) => values.iter().enumerate().for_each(|(index, us)| {
                        reading.put(at, &format!("{CPU}/cpu0/cpuidle/state{index}/{file}"), &us.to_string());
                    }),
                    None => reading.refuse(at, "not as many numbers as states"),
                }
                continue;
            }
            Some("Power") if !states.is_empty() => {
                reading.unused(at);
                continue;
            }
            Some(first) if !columns.is_empty() && counters(reading, at, first, &words, &columns) => continue,
            _ => {}
        }
        let Some((name, value)) = field(text) else { continue };
        reading.unused(at);
        match name {
            "Release" => reading.put(at, "/proc/sys/kernel/osrelease", value),
            "Version" if value.starts_with('#') => reading.put(at, "/proc/sys/kernel/version", value),
            "Clock Source" => {
                reading.put(at, "/sys/devices/system/clocksource/clocksource0/current_clocksource", value)
            }
            "CPU-Idle driver" => reading.put(at, &format!("{CPU}/cpuidle/current_driver"), value),
            "CPU-Freq driver" => reading.put(at, &format!("{CPU}/cpufreq/policy0/scaling_driver"), value),
            "Governor driver" => {
                reading.conclude(at, &format!("{CPU}/cpufreq/policy0/affected_cpus"), "0");
                reading.put(at, &format!("{CPU}/cpufreq/policy0/scaling_governor"), value);
            }
            "Idle Limit" => reading.say(format!("corefreq: the kernel's idle limit is {value}")),
            "Simultaneous Multithreading" => {
                reading.put(at, &format!("{CPU}/smt/active"), if is_on(value) { "1" } else { "0" })
            }
            "Turbo Boost" | "Core Performance Boost" => n_on = Some(u64::from(is_on(value))),
            "Enhanced Halt State"
            | "C1 Auto Demotion"
            | "C3 Auto Demotion"
            | "C1 UnDemotion"
            | "C3 UnDemotion"
            | "Lowest C-State"
            | "Package C-States" => {
                reading.say(format!("corefreq: {name} is {value}"));
            }
            "Online CPU" => {
                if let Some(n) = value.split('/').next().and_then(whole).filter(|n| (1..8192).contains(n)) {
                    reading.conclude(at, &format!("{CPU}/present"), &format!("0-{}", n - 1));
                }
            }
            _ => {}
        }
        if let Some(on) = n_on.take() {
            reading.conclude(at, &format!("{CPU}/cpufreq/boost"), &on.to_string());
        }
    }
}

/// A row of the table: `#00 1400.2 (14.0) …` or `000 …`.
fn counters(reading: &mut Reading<'_>, at: usize, first: &str, words: &[&str], columns: &[String]) -> bool {
    let of = match first.trim_start_matches('#').parse::<u32>() {
        Ok(cpu) if cpu < 8192 => format!("CPU {cpu}"),
        _ if first == "Averages:" || first == "Averages" => {
            reading.unused(at);
            return true;
        }
        _ => return false,
    };
    // `( 0.14)` is the ratio; brackets are no column of their own in the names.
    let cells: Vec<&str> =
        words[1..].iter().copied().filter(|w| *w != "(" && *w != "/").map(|w| w.trim_matches(['(', ')'])).collect();
    let names: Vec<&str> = columns.iter().map(String::as_str).filter(|c| *c != "CPU").collect();
    for (name, cell) in names.iter().zip(&cells) {
        if let (Some(share), Some(value)) = (name.strip_suffix("(%)"), number(cell)) {
            reading.figure(at, &format!("{share}%"), &of, "%", value);
        } else if let (true, Some(value)) = (*name == "Freq(MHz)", number(cell)) {
            reading.figure(at, "MHz", &of, "MHz", value);
        }
    }
    reading.take(at);
    true
}

#[cfg(test)]
mod tests {
    use crate::formats::testing::{formats, read, says};

    #[test]
    fn the_kernels_view_and_the_counters() {
        let text = "Linux:                                                                          \n|- Release                                          [6.1.0-18-amd64]\n\
            Clock Source                                                     [  tsc]\nCPU-Freq driver                                        [intel_pstate]\nGovernor driver                               [   powersave]\n\
            CPU-Idle driver                                [  intel_idle]\nIdle Limit                                           [      C6]\n   |- State        POLL      C1     C1E      C6\n   |- Power          -1       0       0       0\n\
            |- Latency         0       2      10     133\n   |- Residency       0       2      20     400\nCPU Freq(MHz) Ratio  Turbo  C0(%)  C1(%)  C3(%)  C6(%)  C7(%)  Min TMP:TS  Max\n\
            #00   14.14 ( 0.14)   0.52   0.65   1.37   0.00  97.98   0.00  33 / 33:67 / 38\n";
        let found = read(text);
        assert_eq!(formats(&found), ["corefreq"]);
        assert_eq!(says(&found, "/sys/devices/system/cpu/cpu0/cpuidle/state3/latency").as_deref(), Some("133"));
        assert_eq!(
            says(&found, "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor").as_deref(),
            Some("powersave")
        );
        assert_eq!(found.document.derived.iter().find(|d| d.what == "C6%").map(|d| d.mean), Some(97.98));
        assert_eq!(found.document.files[0].n_not_understood, 1, "{:?}", found.document.files[0].not_understood);
    }
}
