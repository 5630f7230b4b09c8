//! The questions, as PromQL: names of node_exporter first, the agent's where those are not there.
//!
//! Names are those of node_exporter 1.x (its `cpu`, `loadavg`, `cpufreq`, `rapl`, `perf` and `dmi` collectors), of
//! kube-state-metrics 2.x and of docs/ref/metrics.md. Each question gives one series a node; `rate` comes before any sum, so
//! that a counter that began again is none that ran backwards. RAPL counters wrap every few minutes to an hour and a store
//! takes that for a reset: what was counted between the last sample and the wrap is lost, which is some hundredths of the
//! energy at a scrape a minute, on every node alike.

use crate::measure::Quantity;

/// What is asked for the numbers.
#[derive(Clone, Debug)]
pub(super) struct Words<'a> {
    /// The label that names a node.
    pub(super) label: &'a str,
    /// Further matchers: `job="node"`; may be empty.
    pub(super) matchers: &'a str,
    /// Seconds of a window.
    pub(super) window_s: u64,
}

/// Modes that are not work: idle, waiting for a disk, taken by the hypervisor, and time of guests, which is in `user` too.
const NOT_BUSY: &str = "mode!~\"idle|iowait|steal|guest|guest_nice\"";

impl Words<'_> {
    /// A selector with the user's matchers.
    fn of(&self, name: &str, matchers: &str) -> String {
        let all: Vec<&str> = [matchers, self.matchers].into_iter().filter(|m| !m.trim().is_empty()).collect();
        if all.is_empty() { name.to_string() } else { format!("{name}{{{}}}", all.join(",")) }
    }

    fn by(&self, how: &str, inner: &str) -> String {
        format!("{how} by ({}) ({inner})", self.label)
    }

    fn over(&self, function: &str, name: &str, matchers: &str) -> String {
        format!("{function}({}[{}s])", self.of(name, matchers), self.window_s)
    }

    /// Questions for a quantity, the first that has an answer counts.
    pub(super) fn of_quantity(&self, quantity: Quantity) -> Vec<String> {
        let rate = |name: &str, matchers: &str| self.by("sum", &self.over("rate", name, matchers));
        let mean = |name: &str, matchers: &str| self.by("avg", &self.over("avg_over_time", name, matchers));
        let seen = |name: &str| self.by("max", &self.over("count_over_time", name, ""));
        match quantity {
            Quantity::Seen => vec![seen("node_load1"), seen("wakewatt_cpus_online")],
            Quantity::Cpus => vec![
                self.by("count", &self.of("node_cpu_seconds_total", "mode=\"idle\"")),
                self.by("sum", &self.of("wakewatt_cpus_online", "")),
            ],
            Quantity::Busy => {
                vec![rate("node_cpu_seconds_total", NOT_BUSY), rate("wakewatt_cpu_seconds_total", "mode=\"busy\"")]
            }
            Quantity::System => vec![rate("node_cpu_seconds_total", "mode=~\"system|irq|softirq\"")],
            Quantity::Load => vec![mean("node_load1", "")],
            Quantity::Clock => vec![
                mean("node_cpu_scaling_frequency_hertz", ""),
                mean("wakewatt_cpu_frequency_hertz", "stat=\"mean\""),
                mean("node_cpu_frequency_hertz", ""),
            ],
            Quantity::Cycles => vec![rate("node_perf_cpucycles_total", "")],
            Quantity::Watts => {
                let zone = "meter=~\"package-.*\"";
                vec![rate("node_rapl_package_joules_total", ""), rate("wakewatt_energy_joules_total", zone)]
            }
            // These are the user's.
            Quantity::Work | Quantity::P90 | Quantity::P99 => Vec::new(),
        }
    }

    /// Questions whose labels say what a machine is and what is set on it.
    pub(super) fn described(&self) -> Vec<(About, String)> {
        let group = |labels: &str, name: &str| format!("count by ({}, {labels}) ({})", self.label, self.of(name, ""));
        let cores = format!("count by ({0}) ({1})", self.label, group("package, core", "node_cpu_info"));
        vec![
            (About::Processor, group("model_name", "node_cpu_info")),
            (About::Cores, cores),
            (About::Memory, self.by("max", &self.of("node_memory_MemTotal_bytes", ""))),
            (About::Uname, self.of("node_uname_info", "")),
            (About::Dmi, self.of("node_dmi_info", "")),
            (About::Settings, self.of("wakewatt_settings_info", "")),
            // A series for each governor there is, 1 for the one in force.
            (
                About::Governor,
                format!("sum by ({}, governor) ({}) > 0", self.label, self.of("node_cpu_scaling_governor", "")),
            ),
            (About::ClockLimit, self.by("max", &self.of("node_cpu_scaling_frequency_max_hertz", ""))),
            (
                About::ExitLatency,
                format!(
                    "max by ({}, state, index) ({})",
                    self.label,
                    self.of("wakewatt_cpuidle_exit_latency_seconds", "source=\"claimed\"")
                ),
            ),
            (
                About::Disabled,
                format!("min by ({}, state, index) ({})", self.label, self.of("wakewatt_cpuidle_disabled_cpus", "")),
            ),
            (About::LatencyLimit, self.by("min", &self.of("wakewatt_latency_limit_seconds", ""))),
            (About::KubeNode, "kube_node_info".into()),
            (About::KubeLabels, "kube_node_labels".into()),
        ]
    }

    /// The user's own question: `$window` is the length of a window; without it the mean over each window is taken.
    pub(super) fn of_user(&self, promql: &str) -> String {
        let window = format!("{}s", self.window_s);
        if promql.contains("$window") {
            return promql.replace("$window", &window);
        }
        let step_s = (self.window_s / 12).clamp(15, 300).min(self.window_s);
        format!("avg_over_time(({promql})[{window}:{step_s}s])")
    }
}

/// What a describing series is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    Processor,
    Cores,
    Memory,
    Uname,
    Dmi,
    Settings,
    Governor,
    ClockLimit,
    ExitLatency,
    Disabled,
    LatencyLimit,
    KubeNode,
    KubeLabels,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matchers_of_the_user_reach_every_question_on_nodes() {
        let words = Words { label: "instance", matchers: "job=\"node\"", window_s: 3600 };
        for quantity in Quantity::ALL {
            for promql in words.of_quantity(quantity) {
                assert!(promql.contains("job=\"node\"") && promql.contains("by (instance)"), "{promql}");
            }
        }
        assert_eq!(
            words.of_quantity(Quantity::Load)[0],
            "avg by (instance) (avg_over_time(node_load1{job=\"node\"}[3600s]))"
        );
    }

    #[test]
    fn the_users_question_is_meant_for_each_window() {
        let words = Words { label: "instance", matchers: "", window_s: 3600 };
        assert_eq!(words.of_user("sum(rate(x[$window]))"), "sum(rate(x[3600s]))");
        assert_eq!(words.of_user("x"), "avg_over_time((x)[3600s:300s])");
        assert_eq!(Words { window_s: 10, ..words }.of_user("x"), "avg_over_time((x)[10s:10s])");
    }
}
