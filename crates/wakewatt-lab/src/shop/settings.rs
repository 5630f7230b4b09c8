//! Power settings in force while a load ran, in a few words: drivers, governors, limits.

use wakewatt_core::source::Source;

const FILES: &[(&str, &str)] = &[
    ("idle driver", "/sys/devices/system/cpu/cpuidle/current_driver"),
    ("idle governor", "/sys/devices/system/cpu/cpuidle/current_governor"),
    ("idle governor", "/sys/devices/system/cpu/cpuidle/current_governor_ro"),
    ("frequency driver", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"),
    ("frequency governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    ("energy preference", "/sys/devices/system/cpu/cpu0/cpufreq/energy_performance_preference"),
    ("no turbo", "/sys/devices/system/cpu/intel_pstate/no_turbo"),
    ("boost", "/sys/devices/system/cpu/cpufreq/boost"),
    ("SMT", "/sys/devices/system/cpu/smt/control"),
];

/// Those that this machine has; of CPU 0 where CPUs may differ.
pub fn read(src: &dyn Source) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for (name, path) in FILES {
        let Ok(bytes) = src.read(path) else { continue };
        if !found.iter().any(|(known, _)| known == name) {
            found.push((name.to_string(), String::from_utf8_lossy(&bytes).trim().to_string()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use wakewatt_core::source::Tree;

    #[test]
    fn each_once_and_absent_ones_not_at_all() {
        let root = "/sys/devices/system/cpu";
        let both = format!(
            "//- {root}/cpuidle/current_governor\nmenu\n//- {root}/cpuidle/current_governor_ro\nmenu\n//- {root}/smt/control\noff\n"
        );
        let read = super::read(&Tree::from_text(&both));
        assert_eq!(read, [("idle governor".to_string(), "menu".to_string()), ("SMT".into(), "off".into())]);
    }
}
