//! Machines of two CPUs, as the text that a `Tree` reads.

/// A guest.
pub(super) const HALTPOLL: &[(&str, u64, u64)] = &[("POLL", 0, 0), ("halt", 1, 1)];
/// A server with C6.
pub(super) const SERVER: &[(&str, u64, u64)] = &[("POLL", 0, 0), ("C1", 2, 2), ("C1E", 4, 4), ("C6", 170, 600)];

/// Two CPUs with these idle states: name, latency and residency in microseconds.
pub(super) fn machine(states: &[(&str, u64, u64)]) -> String {
    let root = "/sys/devices/system/cpu";
    let driver = if states.len() == 2 { "haltpoll" } else { "intel_idle" };
    let mut text = format!(
        "//- {root}/online\n0-1\n//- {root}/present\n0-1\n//- {root}/cpuidle/current_driver\n{driver}\n//- {root}/cpuidle/current_governor\nmenu\n//- /dev/cpu_dma_latency!denied\n"
    );
    for cpu in 0..2 {
        text += &format!("//- {root}/cpu{cpu}/power/pm_qos_resume_latency_us\n0\n");
        for (k, (name, latency_us, residency_us)) in states.iter().enumerate() {
            let dir = format!("{root}/cpu{cpu}/cpuidle/state{k}");
            text += &format!(
                "//- {dir}/name\n{name}\n//- {dir}/latency\n{latency_us}\n//- {dir}/residency\n{residency_us}\n//- {dir}/disable\n0\n//- {dir}/usage\n{}\n//- {dir}/time\n{}\n",
                1000 * (k + 1),
                90_000 * (k + 1)
            );
        }
    }
    text
}
