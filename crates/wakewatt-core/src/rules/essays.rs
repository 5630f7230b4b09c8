//! The essay of every rule, taken from the top of its file, so that `explain` says what the author wrote and nobody copies.
//!
//! The comment is cut out when the program is built: only it is kept, not the source around it. To add a rule: one line.

/// Length of the `//!` lines at the top of a file.
const fn comment_len(source: &[u8]) -> usize {
    let mut at = 0;
    while at + 3 <= source.len() && source[at] == b'/' && source[at + 1] == b'/' && source[at + 2] == b'!' {
        while at < source.len() && source[at] != b'\n' {
            at += 1;
        }
        at += 1;
    }
    at
}

/// The first N bytes.
const fn front<const N: usize>(source: &[u8]) -> [u8; N] {
    let mut bytes = [b' '; N];
    let mut at = 0;
    while at < N && at < source.len() {
        bytes[at] = source[at];
        at += 1;
    }
    bytes
}

macro_rules! essays {
    ($($rule:literal $file:literal,)*) => {
        /// File name of a rule, and the comment at its top.
        const ESSAYS: &[(&str, &[u8])] = &[$((
            $rule,
            {
                const N: usize = comment_len(include_bytes!($file));
                const BYTES: [u8; N] = front(include_bytes!($file));
                &BYTES
            },
        )),*];
    };
}

essays! {
    "deep_idle_vs_latency" "deep_idle_vs_latency.rs",
    "disk_sleep" "disk_sleep.rs",
    "tail_reversal" "tail_reversal.rs",
    "who_pays_for_idle" "who_pays_for_idle.rs",
    "polling_by_accident" "polling_by_accident.rs",
    "latency_limit_held" "latency_limit_held.rs",
    "per_cpu_resume_limits" "per_cpu_resume_limits.rs",
    "processor_max_cstate_ignored" "processor_max_cstate_ignored.rs",
    "arguments_ignored" "arguments_ignored.rs",
    "intel_idle_off_acpi_back" "intel_idle_off_acpi_back.rs",
    "no_deep_state" "no_deep_state.rs",
    "bios_disabled_states" "bios_disabled_states.rs",
    "idle_disabled_by_user" "idle_disabled_by_user.rs",
    "idle_table_differs" "idle_table_differs.rs",
    "c1_demotion" "c1_demotion.rs",
    "c1e_promotion" "c1e_promotion.rs",
    "package_limit" "package_limit.rs",
    "package_c6" "package_c6.rs",
    "idle_boot_arguments" "idle_boot_arguments.rs",
    "no_idle_driver" "no_idle_driver.rs",
    "governor_misses" "governor_misses.rs",
    "history_contradicts_present" "history_contradicts_present.rs",
    "idle_rejected" "idle_rejected.rs",
    "ladder_governor" "ladder_governor.rs",
    "tick_never_stops" "tick_never_stops.rs",
    "haltpoll_guest" "haltpoll_guest.rs",
    "exit_latency_claims" "exit_latency_claims.rs",
    "frequency_ramp" "frequency_ramp.rs",
    "governor" "governor/mod.rs",
    "frequency_driver" "frequency_driver.rs",
    "hwp_hidden" "hwp_hidden.rs",
    "max_below_hardware" "max_below_hardware.rs",
    "bios_limit" "bios_limit.rs",
    "min_frequency" "min_frequency.rs",
    "turbo_off" "turbo_off.rs",
    "epp" "epp.rs",
    "epb" "epb.rs",
    "hwp_dynamic_boost" "hwp_dynamic_boost.rs",
    "governor_tunables" "governor_tunables.rs",
    "uncore_window" "uncore_window.rs",
    "efficiency_latency_control" "efficiency_latency_control.rs",
    "throttling" "throttling.rs",
    "power_limit" "power_limit.rs",
    "prochot" "prochot.rs",
    "below_lowest" "below_lowest.rs",
    "never_reached_under_load" "never_reached_under_load.rs",
    "dimm_below_rated" "dimm_below_rated.rs",
    "channels_uneven" "channels_uneven.rs",
    "two_dimms_per_channel" "two_dimms_per_channel.rs",
    "memory_below_modules" "memory_below_modules.rs",
    "random_placement_cost" "random_placement_cost.rs",
    "numa_remote_share" "numa_remote_share.rs",
    "snc_nps" "snc_nps.rs",
    "one_node" "one_node.rs",
    "memoryless_nodes" "memoryless_nodes.rs",
    "memory_only_nodes" "memory_only_nodes.rs",
    "prefetchers" "prefetchers.rs",
    "zone_reclaim" "zone_reclaim.rs",
    "busy_but_stalled" "busy_but_stalled.rs",
    "cfs_quota" "cfs_quota.rs",
    "run_queue_contention" "run_queue_contention.rs",
    "load_above_cpus_while_idle" "load_above_cpus_while_idle.rs",
    "psi_pressure" "psi_pressure.rs",
    "high_system_share" "high_system_share.rs",
    "steal" "steal.rs",
    "smt_contention" "smt_contention.rs",
    "unequal_cores" "unequal_cores.rs",
    "irq_affinity" "irq_affinity.rs",
    "nic_coalescing" "nic_coalescing.rs",
    "pcie_aspm" "pcie_aspm.rs",
    "nvme_apst" "nvme_apst.rs",
    "clocksource" "clocksource.rs",
    "isolated_cpus" "isolated_cpus.rs",
    "tuning_daemons" "tuning_daemons.rs",
    "guest_hypervisor" "guest_hypervisor.rs",
    "container_masked" "container_masked.rs",
    "known_kernel_changes" "known_kernel_changes.rs",
}

/// The essay of a rule as paragraphs of plain text; none where the list lacks it.
pub fn of(rule: &str) -> Option<String> {
    let file = rule.strip_prefix("rule.")?.replace('-', "_");
    let (_, bytes) = ESSAYS.iter().find(|(name, _)| *name == file)?;
    let text = std::str::from_utf8(bytes).ok()?;
    let mut out = String::new();
    for line in text.lines() {
        let line = line.trim_start_matches("//!").trim();
        match (line.is_empty(), out.is_empty() || out.ends_with('\n')) {
            (true, _) => out.push('\n'),
            (false, true) => out.push_str(line),
            (false, false) => {
                out.push(' ');
                out.push_str(line);
            }
        }
    }
    Some(out.replace("[`", "").replace("`]", "").replace('`', ""))
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_rule_has_its_essay() {
        for rule in super::super::RULES {
            let essay = super::of(rule.id()).unwrap_or_default();
            assert!(essay.len() > 40, "{}: one line for its file is missing in essays.rs", rule.id());
            assert!(!essay.contains("//!") && !essay.contains("fn "), "{}: {essay}", rule.id());
        }
        assert_eq!(super::ESSAYS.len(), super::super::RULES.len(), "essays.rs lists a rule that is gone");
    }
}
