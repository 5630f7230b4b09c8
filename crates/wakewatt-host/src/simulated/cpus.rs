//! Text of a two-CPU machine for [`super::SimulatedMachine`]: frequency policies and idle states, as its users want them.

/// Where CPUs are.
pub const ROOT: &str = "/sys/devices/system/cpu";

/// One frequency policy per CPU under schedutil; `more` are further files of each.
pub fn policies(driver: &str, more: &[(&str, &str)]) -> String {
    let mut text = format!("//- {ROOT}/online\n0-1\n//- {ROOT}/present\n0-1\n");
    for cpu in ["0", "1"] {
        let always = [
            ("affected_cpus", cpu),
            ("scaling_driver", driver),
            ("scaling_governor", "schedutil"),
            ("scaling_available_governors", "performance powersave ondemand conservative schedutil"),
        ];
        for (file, value) in always.iter().chain(more) {
            text += &format!("//- {ROOT}/cpufreq/policy{cpu}/{file}\n{value}\n");
        }
    }
    text
}

/// The files of amd-pstate-epp's policies beyond those of every driver.
pub const EPP: &[(&str, &str)] = &[
    ("scaling_min_freq", "800000"),
    ("scaling_max_freq", "3000000"),
    ("cpuinfo_min_freq", "800000"),
    ("cpuinfo_max_freq", "3000000"),
    ("energy_performance_preference", "balance_power"),
    ("energy_performance_available_preferences", "performance balance_performance balance_power power"),
];

/// POLL, C1 and C6 on both CPUs.
pub fn idle_states() -> String {
    let mut text = String::new();
    for cpu in 0..2 {
        for (state, name, latency) in [(0, "POLL", 0), (1, "C1", 2), (2, "C6", 170)] {
            let folder = format!("{ROOT}/cpu{cpu}/cpuidle/state{state}");
            text += &format!("//- {folder}/name\n{name}\n//- {folder}/latency\n{latency}\n");
            text += &format!("//- {folder}/residency\n{}\n//- {folder}/disable\n0\n", latency * 3);
        }
    }
    text
}
