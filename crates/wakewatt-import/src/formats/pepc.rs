//! `pepc … info --yaml`: properties by name, each with its values and the CPUs that have them.
//!
//! ```text
//! governor:
//! - value: powersave
//!   cpus: 0-63
//! ```
//! Older versions nest deeper and quote otherwise; a list item is a value and the CPUs (`cpus`, `CPU`, `cpu`), whatever else stands
//! in it. Of an idle state's items only `on` and `off`, and fields that carry their name, are clear. Frequencies are hertz in newer
//! and kilohertz in older versions: the two ranges do not meet.

use crate::facts::{CPU, Facts};
use crate::plain::{khz, pair, whole};
use crate::reading::{Format, Reading, likely};
use crate::section::Section;
use wakewatt_core::cpuset::CpuSet;

/// The format.
pub(super) const FORMAT: Format = Format { id: "pepc", title: "pepc info --yaml", detect, read };

/// Property, and what it is: a file of each CPU's policy, a file of the CPU, one of the machine.
const PROPERTIES: &[(&str, &str)] = &[
    ("governor", "policy/scaling_governor"),
    ("driver", "policy/scaling_driver"),
    ("epp", "policy/energy_performance_preference"),
    ("min_freq", "policy/scaling_min_freq"),
    ("max_freq", "policy/scaling_max_freq"),
    ("min_freq_limit", "policy/cpuinfo_min_freq"),
    ("max_freq_limit", "policy/cpuinfo_max_freq"),
    ("base_freq", "policy/base_frequency"),
    ("epb", "cpu/power/energy_perf_bias"),
    ("latency_limit", "cpu/power/pm_qos_resume_latency_us"),
    ("turbo", "turbo"),
    ("intel_pstate_mode", "machine/intel_pstate/status"),
    ("idle_driver", "machine/cpuidle/current_driver"),
    ("idle_governor", "machine/cpuidle/current_governor"),
];

/// A key alone on its line, without a dash.
fn key(line: &str) -> Option<&str> {
    let key = line.trim().strip_suffix(':')?.trim().trim_matches(['\'', '"']);
    (!key.is_empty()
        && !key.starts_with('-')
        && key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b' ')))
    .then_some(key)
}

fn item(line: &str) -> Option<(&str, &str)> {
    let (name, value) = pair(line.trim().trim_start_matches('-').trim())?;
    Some((name, value.trim_matches(['\'', '"'])))
}

fn is_cpus(name: &str) -> bool {
    matches!(name, "cpus" | "CPUs" | "cpu" | "CPU")
}

fn detect(section: &Section<'_>) -> u32 {
    let has = |word: &str| {
        section
            .lines
            .iter()
            .take(2000)
            .any(|line| item(&line.text).is_some_and(|(name, _)| name == word || (word == "cpus" && is_cpus(name))))
    };
    if has("value") && has("cpus") { likely(section, "pepc", |line| key(line).is_some()) + 10 } else { 0 }
}

fn read(reading: &mut Reading<'_>) {
    let mut name: Option<(usize, String)> = None;
    let mut value: Option<(usize, String)> = None;
    let mut states: Vec<String> = Vec::new();
    for (at, line) in reading.open_lines() {
        let text = &line.text;
        if let Some(key) = key(text) {
            // Keys at the margin name; deeper ones divide.
            if !text.starts_with(' ') || name.is_none() {
                name = Some((at, key.to_string()));
                value = None;
            }
        } else if let Some((field, said)) = item(text).filter(|_| text.starts_with([' ', '-', '\t'])) {
            if field == "value" {
                value = Some((at, said.to_string()));
            } else if is_cpus(field) {
                let (Some((name_at, name)), Some((value_at, said_value))) = (&name, value.take()) else { continue };
                reading.take(*name_at);
                reading.unused(value_at);
                match Facts::cpus(said) {
                    Some(cpus) if apply(reading, value_at, name, &said_value, &cpus, &mut states) => reading.take(at),
                    Some(_) => reading.unused(at),
                    None => reading.refuse(at, "no list of CPUs that a machine has"),
                }
            } else if value.is_some() && matches!(field, "latency" | "residency") {
                reading.refuse(at, "a state's number without its CPUs");
            }
        }
    }
}

/// Is anything of it used?
fn apply(
    reading: &mut Reading<'_>,
    at: usize,
    name: &str,
    value: &str,
    cpus: &CpuSet,
    states: &mut Vec<String>,
) -> bool {
    let is_on = || match value {
        "on" | "True" | "true" | "1" => Some(true),
        "off" | "False" | "false" | "0" => Some(false),
        _ => None,
    };
    let Some((_, file)) = PROPERTIES.iter().find(|(property, _)| *property == name) else {
        // C-states: POLL, C1, C1E, C6P …
        let is_state = name == "POLL"
            || (name.len() <= 8 && name.starts_with('C') && name[1..].starts_with(|c: char| c.is_ascii_digit()));
        let (true, Some(on)) = (is_state, is_on()) else { return false };
        let index = states.iter().position(|known| known == name).unwrap_or_else(|| {
            states.push(name.into());
            states.len() - 1
        });
        for cpu in cpus.iter() {
            if reading.taken.facts.is_full() {
                break;
            }
            let state = format!("{CPU}/cpu{cpu}/cpuidle/state{index}");
            reading.put(at, &format!("{state}/name"), name);
            reading.put(at, &format!("{state}/disable"), if on { "0" } else { "1" });
        }
        return true;
    };
    let is_frequency = file.ends_with("_freq") || file.ends_with("frequency");
    let said = match (is_frequency, whole(value)) {
        (true, Some(hz)) if hz >= 100_000_000 => (hz / 1000).to_string(),
        (true, Some(khz)) if (100_000..=10_000_000).contains(&khz) => khz.to_string(),
        (true, _) => match khz(value) {
            Some(khz) => khz.to_string(),
            None => {
                reading.refuse(at, "no frequency");
                return false;
            }
        },
        _ => value.to_string(),
    };
    if let Some(file) = file.strip_prefix("machine/") {
        reading.put(at, &format!("{CPU}/{file}"), &said);
    } else if *file == "turbo" {
        let Some(on) = is_on() else { return false };
        reading.put(at, &format!("{CPU}/intel_pstate/no_turbo"), if on { "0" } else { "1" });
    } else {
        for cpu in cpus.iter() {
            if reading.taken.facts.is_full() {
                break;
            }
            if let Some(file) = file.strip_prefix("policy/") {
                // pepc does not say which CPUs share a policy; each is shown as one of its own.
                reading.conclude(at, &format!("{CPU}/cpufreq/policy{cpu}/affected_cpus"), &cpu.to_string());
                reading.put(at, &format!("{CPU}/cpufreq/policy{cpu}/{file}"), &said);
            } else if let Some(file) = file.strip_prefix("cpu/") {
                reading.put(at, &format!("{CPU}/cpu{cpu}/{file}"), &said);
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use crate::formats::testing::{formats, read, says};

    #[test]
    fn properties_and_states() {
        let text = "governor:\n- value: powersave\n  cpus: 0-3\nmax_freq:\n- value: 3800000000\n  cpus: 0-1\n- value: 2100000\n  cpus: 2-3\nC6:\n- value: 'off'\n  cpus: 0-3\nc1e_autopromote:\n- value: 'on'\n  cpus: 0-3\nidle_driver:\n- value: intel_idle\n  cpus: 0-3\n";
        let found = read(text);
        assert_eq!(formats(&found), ["pepc"]);
        let at = |file: &str| says(&found, &format!("/sys/devices/system/cpu/{file}"));
        assert_eq!(
            (at("cpufreq/policy1/scaling_max_freq").as_deref(), at("cpufreq/policy3/scaling_max_freq").as_deref()),
            (Some("3800000"), Some("2100000"))
        );
        assert_eq!(
            (at("cpu2/cpuidle/state0/disable").as_deref(), at("cpuidle/current_driver").as_deref()),
            (Some("1"), Some("intel_idle"))
        );
        assert_eq!(found.document.files[0].n_not_understood, 0, "{:?}", found.document.files[0].not_understood);
    }
}
