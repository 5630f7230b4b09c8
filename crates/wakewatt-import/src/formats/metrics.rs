//! Metrics in the Prometheus text format: node_exporter's facts of CPUs and memory nodes, and Kepler's watts.
//!
//! Only what is a fact of the machine at that moment becomes one: governors, frequencies (hertz there, kilohertz in the kernel), the
//! clock, kernel and firmware, memory nodes' allocations, throttle counts, load. A counter is not a rate, and one page of metrics has
//! one moment: joules and CPU seconds are shown as they stand and nothing is made of them.

use crate::facts::{CPU, cpu_number};
use crate::reading::{Format, Reading, likely};
use crate::section::Section;
use std::collections::BTreeMap;

/// The format.
pub(super) const FORMAT: Format = Format { id: "metrics", title: "metrics of node_exporter or Kepler", detect, read };

struct Sample<'a> {
    name: &'a str,
    labels: Vec<(&'a str, String)>,
    value: f64,
}

impl Sample<'_> {
    fn label(&self, key: &str) -> Option<&str> {
        self.labels.iter().find(|(known, _)| *known == key).map(|(_, value)| value.as_str())
    }
    fn cpu(&self) -> Option<u32> {
        cpu_number(self.label("cpu")?)
    }
}

/// `name{label="value",…} 1.5e+09 [time]`.
fn sample(line: &str) -> Option<Sample<'_>> {
    let end = line.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':')?;
    let name = &line[..end];
    let mut rest = &line[end..];
    let mut labels = Vec::new();
    if let Some(body) = rest.strip_prefix('{') {
        let mut body = body.trim_start_matches([' ', ',']);
        while !body.starts_with('}') {
            let (key, tail) = body.split_once("=\"")?;
            let mut value = String::new();
            let mut chars = tail.char_indices();
            let close = loop {
                match chars.next()? {
                    (at, '"') => break at,
                    (_, '\\') => value.push(match chars.next()?.1 {
                        'n' => '\n',
                        c => c,
                    }),
                    (_, c) => value.push(c),
                }
            };
            labels.push((key.trim(), value));
            if labels.len() > 64 {
                return None;
            }
            body = tail[close + 1..].trim_start_matches([' ', ',']);
        }
        rest = &body[1..];
    }
    let value = rest.split_whitespace().next()?.parse().ok()?;
    (!name.is_empty()).then_some(Sample { name, labels, value })
}

fn is_own(name: &str) -> bool {
    ["node_", "kepler_"].iter().any(|front| name.starts_with(front))
}

fn detect(section: &Section<'_>) -> u32 {
    likely(section, "curl", |line| sample(line).is_some_and(|s| is_own(s.name)))
}

/// A number that the kernel writes as a whole one.
fn rounded(value: f64) -> String {
    format!("{:.0}", value.max(0.0))
}

fn read(reading: &mut Reading<'_>) {
    let mut load: BTreeMap<&str, (usize, f64)> = BTreeMap::new();
    let mut numa: BTreeMap<u32, (usize, String)> = BTreeMap::new();
    let mut models: BTreeMap<u32, (usize, String)> = BTreeMap::new();
    for (at, line) in reading.open_lines() {
        let text = line.text.trim();
        if text.starts_with("# HELP ") || text.starts_with("# TYPE ") || text.starts_with("# UNIT ") || text == "# EOF"
        {
            reading.unused(at);
            continue;
        }
        // `numa_hit 100 200` of numastat looks like one with a time.
        let is_one = |s: &Sample<'_>| {
            is_own(s.name) || !s.labels.is_empty() || s.name.starts_with("go_") || s.name.starts_with("process_")
        };
        let Some(sample) = sample(text).filter(is_one) else { continue };
        reading.unused(at);
        let (value, cpu) = (sample.value, sample.cpu());
        let policy = |cpu: u32, file: &str| format!("{CPU}/cpufreq/policy{cpu}/{file}");
        let frequency = |name: &str| match name {
            "node_cpu_frequency_max_hertz" => Some("cpuinfo_max_freq"),
            "node_cpu_frequency_min_hertz" => Some("cpuinfo_min_freq"),
            "node_cpu_scaling_frequency_max_hertz" => Some("scaling_max_freq"),
            "node_cpu_scaling_frequency_min_hertz" => Some("scaling_min_freq"),
            "node_cpu_scaling_frequency_hertz" => Some("scaling_cur_freq"),
            _ => None,
        };
        if let (Some(file), Some(cpu)) = (frequency(sample.name), cpu) {
            reading.conclude(at, &policy(cpu, "affected_cpus"), &cpu.to_string());
            reading.put(at, &policy(cpu, file), &rounded(value / 1000.0));
            continue;
        }
        match sample.name {
            "node_cpu_scaling_governor" => {
                if let (Some(cpu), Some(governor), true) = (cpu, sample.label("governor"), value == 1.0) {
                    reading.conclude(at, &policy(cpu, "affected_cpus"), &cpu.to_string());
                    reading.put(at, &policy(cpu, "scaling_governor"), governor);
                }
            }
            "node_uname_info" => {
                if let Some(release) = sample.label("release") {
                    reading.put(at, "/proc/sys/kernel/osrelease", release);
                }
                if let Some(build) = sample.label("version") {
                    reading.put(at, "/proc/sys/kernel/version", build);
                }
            }
            "node_dmi_info" => {
                for (label, file) in [
                    ("system_vendor", "sys_vendor"),
                    ("product_name", "product_name"),
                    ("board_name", "board_name"),
                    ("bios_version", "bios_version"),
                    ("bios_date", "bios_date"),
                ] {
                    if let Some(said) = sample.label(label).filter(|said| !said.is_empty()) {
                        reading.put(at, &format!("/sys/class/dmi/id/{file}"), said);
                    }
                }
            }
            "node_time_clocksource_current_info" => {
                if let Some(clock) = sample.label("clocksource") {
                    reading.put(at, "/sys/devices/system/clocksource/clocksource0/current_clocksource", clock);
                }
            }
            "node_cpu_info" => {
                if let Some(cpu) = cpu {
                    let mut block = format!("processor\t: {cpu}\n");
                    for (label, key) in [
                        ("vendor", "vendor_id"),
                        ("family", "cpu family"),
                        ("model", "model"),
                        ("model_name", "model name"),
                        ("stepping", "stepping"),
                        ("microcode", "microcode"),
                        ("package", "physical id"),
                        ("core", "core id"),
                    ] {
                        if let Some(said) = sample.label(label).filter(|said| !said.is_empty()) {
                            block.push_str(&format!("{key}\t: {said}\n"));
                        }
                    }
                    models.insert(cpu, (at, block));
                }
            }
            "node_cpu_core_throttles_total" | "node_cpu_package_throttles_total" => {
                reading.figure(at, sample.name, &words(&sample), "count", value);
            }
            "node_load1" | "node_load5" | "node_load15" => drop(load.insert(sample.name, (at, value))),
            name if name.starts_with("node_memory_numa_") => {
                let known = ["numa_hit", "numa_miss", "numa_foreign", "interleave_hit", "local_node", "other_node"];
                let counter = name["node_memory_numa_".len()..].trim_end_matches("_total");
                if let (Some(counter), Some(node)) =
                    (known.iter().find(|c| **c == counter), sample.label("node").and_then(cpu_number))
                {
                    let entry = numa.entry(node).or_insert((at, String::new()));
                    entry.1.push_str(&format!("{counter} {}\n", rounded(value)));
                    if *counter == "other_node" {
                        entry.0 = at;
                    }
                }
            }
            name if name.starts_with("kepler_node_") || name.starts_with("node_rapl_") => {
                let unit = if name.ends_with("watts") { "W" } else { "J" };
                if name.ends_with("watts") || name.contains("joules") {
                    reading.figure(at, name, &words(&sample), unit, value);
                }
            }
            _ => {}
        }
    }
    for (node, (at, text)) in numa {
        reading.put(at, &format!("/sys/devices/system/node/node{node}/numastat"), text.trim_end());
    }
    if let Some((at, _)) = models.values().next() {
        let text: Vec<&str> = models.values().map(|(_, block)| block.as_str()).collect();
        reading.conclude(*at, "/proc/cpuinfo", text.join("\n").trim_end());
    }
    if let (Some((at, one)), Some((_, five)), Some((_, fifteen))) =
        (load.get("node_load1"), load.get("node_load5"), load.get("node_load15"))
    {
        // What the kernel adds (running/all last-pid) no metric tells.
        reading.figure(*at, "load average", "1 min", "count", *one);
        reading.figure(*at, "load average", "5 min", "count", *five);
        reading.figure(*at, "load average", "15 min", "count", *fifteen);
    }
}

/// The labels in short.
fn words(sample: &Sample<'_>) -> String {
    let all: Vec<String> = sample.labels.iter().take(4).map(|(key, value)| format!("{key} {value}")).collect();
    if all.is_empty() { "the machine".into() } else { all.join(", ").chars().take(100).collect() }
}

#[cfg(test)]
mod tests {
    use crate::formats::testing::{formats, read, says};

    #[test]
    fn facts_of_the_machine_and_nothing_made_of_counters() {
        let text = "# HELP node_cpu_scaling_governor Current enabled CPU frequency governor.\n# TYPE node_cpu_scaling_governor gauge\nnode_cpu_scaling_governor{cpu=\"0\",governor=\"performance\"} 0\n\
            node_cpu_scaling_governor{cpu=\"0\",governor=\"powersave\"} 1\nnode_cpu_frequency_max_hertz{cpu=\"0\"} 3.8e+09\nnode_uname_info{machine=\"x86_64\",release=\"6.1.0\",version=\"#1 SMP\"} 1\n\
            node_memory_numa_other_node_total{node=\"1\"} 1.5e+06\nnode_cpu_info{cpu=\"0\",vendor=\"GenuineIntel\",family=\"6\",model=\"85\",model_name=\"Xeon \\\"x\\\"\"} 1\nkepler_node_cpu_watts{zone=\"package\"} 35.5\nnode_broken{cpu=\"0\n";
        let found = read(text);
        assert_eq!(formats(&found), ["metrics"]);
        let at = |file: &str| says(&found, &format!("/sys/devices/system/cpu/cpufreq/policy0/{file}"));
        assert_eq!(
            (at("scaling_governor").as_deref(), at("cpuinfo_max_freq").as_deref()),
            (Some("powersave"), Some("3800000"))
        );
        assert_eq!(says(&found, "/sys/devices/system/node/node1/numastat").as_deref(), Some("other_node 1500000"));
        assert!(says(&found, "/proc/cpuinfo").unwrap().contains("model name\t: Xeon \"x\""));
        assert_eq!(found.document.derived[0].mean, 35.5);
        assert_eq!(found.document.files[0].n_not_understood, 1);
    }
}
