//! A machine as it will be once some settings are made: a source, with texts written over what it holds.
//!
//! A plan is judged here before anything is written: what the driver would refuse by then, what is in force afterwards, and
//! whether a setting changes anything. The facts are read by the parsers of the machine itself, so idle states and clock
//! limits are answered by core's `enterable` and `clock_window`, as everywhere. What the kernel moves along with a write is
//! here where a plan depends on it: under governor `performance` intel_pstate and amd-pstate in active mode force the
//! preference `performance`, and the global latency limit in force is the smallest of all requests. Sources:
//! admin-guide/pm/intel_pstate.rst, admin-guide/pm/amd-pstate.rst, power/pm_qos_interface.rst.

use std::collections::BTreeMap;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::facts::pm_qos::{self, GLOBAL};
use wakewatt_core::source::{Read, Source};
use wakewatt_core::units::LatencyLimit;

/// The path that a process holding the global latency limit answers for.
pub const HOLD: &str = "hold:cpu_dma_latency";

/// Frequency drivers whose own algorithm, or the hardware's, chooses the clock.
pub(crate) const AUTONOMOUS: [&str; 2] = ["intel_pstate", "amd-pstate-epp"];

/// The machine, with these texts written.
pub struct Then<'a> {
    beneath: &'a dyn Source,
    written: BTreeMap<String, Vec<u8>>,
}

impl<'a> Then<'a> {
    /// As it is now.
    pub fn now(source: &'a dyn Source) -> Then<'a> {
        Then { beneath: source, written: BTreeMap::new() }
    }

    /// Writes a setting; `before` is its own text until then.
    pub fn write(&mut self, path: &str, before: Option<&str>, to: &str) {
        if path == HOLD {
            let limit = self.global_limit(before, to);
            self.written.insert(GLOBAL.into(), limit.as_global_us().to_ne_bytes().to_vec());
        }
        if let Some(folder) = path.strip_suffix("/scaling_governor").filter(|_| to == "performance") {
            let preference = format!("{folder}/energy_performance_preference");
            if self.is_autonomous(folder) && self.text(&preference).is_some() {
                self.written.insert(preference, b"performance".to_vec());
            }
        }
        self.written.insert(path.into(), to.as_bytes().to_vec());
    }

    /// Has it been written?
    pub fn is_written(&self, path: &str) -> bool {
        self.written.contains_key(path)
    }

    /// The text of a file by then, without the end of its line.
    pub fn text(&self, path: &str) -> Option<String> {
        let bytes = self.read(path).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_string())
    }

    /// A number in a file by then.
    pub fn number(&self, path: &str) -> Option<u64> {
        self.text(path)?.trim().parse().ok()
    }

    /// Does the driver of this policy's folder, or the hardware, choose the clock?
    pub fn is_autonomous(&self, folder: &str) -> bool {
        self.text(&format!("{folder}/scaling_driver")).is_some_and(|driver| AUTONOMOUS.contains(&driver.as_str()))
    }

    /// The governor of this policy's folder.
    pub fn governor(&self, folder: &str) -> Option<String> {
        self.text(&format!("{folder}/scaling_governor"))
    }

    /// The facts by then: these topics are read again, the others are as before.
    pub fn facts(&self, topics: &[&str], before: &Snapshot) -> Snapshot {
        let read = Snapshot::read(self, |topic| topics.contains(&topic));
        let mut facts = before.clone();
        for topic in topics {
            match *topic {
                "idle" => facts.idle = read.idle.clone(),
                "qos" => facts.qos = read.qos.clone(),
                "freq" => facts.freq = read.freq.clone(),
                _ => {}
            }
        }
        facts
    }

    /// What is in force when our request goes from one value to another: other holders' requests stay.
    fn global_limit(&self, before: Option<&str>, to: &str) -> LatencyLimit {
        let limit = |text: &str| LatencyLimit::parse(text).unwrap_or(LatencyLimit::None);
        let in_force = self.read(GLOBAL).ok().and_then(|bytes| pm_qos::parse_global(&bytes).ok());
        let ours =
            before.map_or(LatencyLimit::None, |text| text.split(' ').map(limit).min().unwrap_or(LatencyLimit::None));
        // Where ours is the smallest, nobody can say what the others ask for.
        let others = in_force.filter(|in_force| *in_force < ours).unwrap_or(LatencyLimit::None);
        others.min(limit(to))
    }
}

impl Source for Then<'_> {
    fn read(&self, path: &str) -> Read<Vec<u8>> {
        self.written.get(path).map_or_else(|| self.beneath.read(path), |bytes| Ok(bytes.clone()))
    }
    fn list(&self, path: &str) -> Read<Vec<String>> {
        self.beneath.list(path)
    }
    fn link(&self, path: &str) -> Read<String> {
        self.beneath.link(path)
    }
    fn msr(&self, cpu: wakewatt_core::units::Cpu, address: u32) -> Read<u64> {
        self.beneath.msr(cpu, address)
    }
    fn is_live(&self) -> bool {
        self.beneath.is_live()
    }
    fn is_imported(&self) -> bool {
        self.beneath.is_imported()
    }
    fn missing(&self) -> wakewatt_core::source::ReadError {
        self.beneath.missing()
    }
    fn origin(&self) -> String {
        self.beneath.origin()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    #[test]
    fn the_governor_performance_forces_the_preference_where_the_driver_does() {
        let at = "/sys/devices/system/cpu/cpufreq/policy0";
        for (driver, becomes) in
            [("intel_pstate", "performance"), ("amd-pstate-epp", "performance"), ("intel_cpufreq", "power")]
        {
            let tree = Tree::from_text(&format!(
                "//- {at}/scaling_driver\n{driver}\n//- {at}/scaling_governor\npowersave\n//- {at}/energy_performance_preference\npower\n"
            ));
            let mut then = Then::now(&tree);
            then.write(&format!("{at}/scaling_governor"), None, "performance");
            assert_eq!(then.text(&format!("{at}/energy_performance_preference")).as_deref(), Some(becomes), "{driver}");
        }
    }

    #[test]
    fn another_holders_smaller_limit_stays() {
        let device = |us: i32| {
            let mut tree = Tree::default();
            tree.files.insert(GLOBAL.into(), Ok(us.to_ne_bytes().to_vec()));
            tree
        };
        let after = |us: i32, before: &str, to: &str| {
            let tree = device(us);
            let mut then = Then::now(&tree);
            then.write(HOLD, Some(before), to);
            pm_qos::parse_global(&then.read(GLOBAL).unwrap()).unwrap().to_string()
        };
        assert_eq!(after(2_000_000_000, "none", "20us"), "20us");
        assert_eq!(after(5, "none", "20us"), "5us", "somebody else holds it");
        assert_eq!(after(5, "5us", "20us"), "20us", "it was ours");
        assert_eq!(after(5, "5us", "none"), "none");
    }
}
