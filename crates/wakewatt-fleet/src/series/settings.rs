//! What is set on a machine, from labels of several exporters, under one name each.

use super::answer::Labels;
use super::promql::About;
use crate::table::{CLOCK_LIMIT, DEEPEST_IDLE};
use std::collections::BTreeMap;
use wakewatt_core::units::show_ns;

/// Labels that say a setting, and what it is called.
const WORDS: &[(About, &str, &str)] = &[
    (About::Settings, "idle_driver", "idle driver"),
    (About::Settings, "idle_governor", "idle governor"),
    (About::Settings, "idle_table", "idle table (checksum)"),
    (About::Settings, "frequency_driver", "frequency driver"),
    (About::Settings, "frequency_governor", "frequency governor"),
    (About::Settings, "turbo", "turbo"),
    (About::Settings, "smt", "SMT"),
    (About::Settings, "kernel", "kernel"),
    (About::Settings, "microcode", "microcode"),
    (About::Settings, "bios", "BIOS version"),
    (About::Uname, "release", "kernel"),
    (About::Dmi, "bios_version", "BIOS version"),
    (About::Dmi, "bios_release", "BIOS release"),
    (About::Dmi, "board_version", "board version"),
    (About::KubeNode, "kernel_version", "kernel"),
    (About::KubeNode, "os_image", "operating system"),
    (About::KubeNode, "container_runtime_version", "container runtime"),
    (About::KubeNode, "kubelet_version", "kubelet"),
];

/// The settings that a series tells.
pub(super) fn told(about: About, labels: &Labels, value: f64) -> Vec<(&'static str, String)> {
    match about {
        About::Governor => labels.get("governor").map(|g| ("frequency governor", g.clone())).into_iter().collect(),
        About::ClockLimit if value > 0.0 => vec![(CLOCK_LIMIT, format!("{:.0} MHz", value / 1e6))],
        _ => {
            let of = |(a, key, what): &(About, &str, &'static str)| {
                let value = labels.get(*key).filter(|v| !v.is_empty() && *a == about)?;
                Some((*what, value.clone()))
            };
            WORDS.iter().filter_map(of).collect()
        }
    }
}

/// The idle states of a node, as series tell them one by one.
#[derive(Clone, Debug, Default)]
pub(super) struct IdleStates {
    /// Index to name and claimed exit latency in seconds.
    exits: BTreeMap<String, (String, f64)>,
    /// Index to CPUs on which it is switched off.
    n_disabled: BTreeMap<String, f64>,
    limit_s: Option<f64>,
}

impl IdleStates {
    pub(super) fn learn(&mut self, about: About, labels: &Labels, value: f64) {
        let index = || labels.get("index").cloned().unwrap_or_default();
        match about {
            About::ExitLatency => {
                let name = labels.get("state").cloned().unwrap_or_default();
                self.exits.insert(index(), (name, value));
            }
            About::Disabled => drop(self.n_disabled.insert(index(), value)),
            About::LatencyLimit => self.limit_s = Some(value),
            _ => {}
        }
    }

    /// The deepest state that some CPU may enter.
    pub(super) fn deepest(&self, n_cpus: Option<u32>) -> Option<String> {
        if self.exits.is_empty() {
            return None;
        }
        let is_on = |index: &String| {
            let off = self.n_disabled.get(index).copied().unwrap_or(0.0);
            n_cpus.map_or(off <= 0.0, |n| off < f64::from(n))
        };
        let is_allowed = |exit_s: f64| self.limit_s.is_none_or(|limit| exit_s <= limit);
        let allowed = self.exits.iter().filter(|(index, (_, exit_s))| is_on(index) && is_allowed(*exit_s));
        let deepest = allowed.max_by(|a, b| a.1.1.total_cmp(&b.1.1)).map(|(_, found)| found);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturating, and negative becomes 0
        let words = |(name, exit_s): &(String, f64)| format!("{name}, {}", show_ns((exit_s * 1e9).round() as u64));
        Some(deepest.map_or("none".into(), words))
    }
}

/// What the deepest state is called among settings.
pub(super) const DEEPEST: &str = DEEPEST_IDLE;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_state_is_what_limit_and_switches_leave() {
        let labels = |state: &str, index: &str| -> Labels {
            [("state", state), ("index", index)].iter().map(|(k, v)| ((*k).to_string(), (*v).to_string())).collect()
        };
        let mut states = IdleStates::default();
        assert_eq!(states.deepest(Some(4)), None);
        for (name, index, exit_s) in [("C1", "1", 2e-6), ("C1E", "2", 10e-6), ("C6", "3", 170e-6)] {
            states.learn(About::ExitLatency, &labels(name, index), exit_s);
        }
        assert_eq!(states.deepest(Some(4)).as_deref(), Some("C6, 170us"));
        states.learn(About::Disabled, &labels("C6", "3"), 3.0);
        assert_eq!(states.deepest(Some(4)).as_deref(), Some("C6, 170us"), "one CPU may");
        states.learn(About::Disabled, &labels("C6", "3"), 4.0);
        assert_eq!(states.deepest(Some(4)).as_deref(), Some("C1E, 10us"));
        states.learn(About::LatencyLimit, &labels("", ""), 1e-6);
        assert_eq!(states.deepest(Some(4)).as_deref(), Some("none"));
    }
}
