//! Which raw file ought to be found where in `inspect --json`, and in which shape.
//!
//! To have a new attribute checked, add a line. A topic that this wakewatt does not have is left out and said so.

use super::expect::{self as e, Shape};

/// A file that many CPUs, policies or states have, and its column in JSON.
pub(crate) struct Column {
    /// The file below the object's folder; the first that any object has counts.
    pub files: &'static [&'static str],
    /// JSON pointer of the column.
    pub json: &'static str,
    /// Its shape.
    pub shape: Shape,
    /// wakewatt may know the value from elsewhere (/proc/cpuinfo) when the file is missing.
    pub has_fallback: bool,
}

const fn column(file: &'static [&'static str], json: &'static str, shape: Shape) -> Column {
    Column { files: file, json, shape, has_fallback: false }
}

const fn fallback(file: &'static [&'static str], json: &'static str, shape: Shape) -> Column {
    Column { files: file, json, shape, has_fallback: true }
}

/// `cpuN/cpuidle/stateK/*`; pointers are relative to the state.
pub(crate) const STATE: &[Column] = &[
    column(&["name"], "/name", e::line),
    column(&["desc"], "/description", e::line),
    column(&["latency"], "/exit_latency_ns", e::us),
    column(&["residency"], "/target_residency_ns", e::us),
    column(&["disable"], "/is_disabled", e::any_bit),
    column(&["default_status"], "/is_enabled_by_default", e::switch),
    column(&["usage"], "/n_usage", e::number),
    column(&["time"], "/time_ns", e::us),
    column(&["above"], "/n_above", e::number),
    column(&["below"], "/n_below", e::number),
    column(&["rejected"], "/n_rejected", e::number),
];

/// `cpuN/*` of every CPU that is plugged in.
pub(crate) const PRESENT: &[Column] = &[column(&["power/pm_qos_resume_latency_us"], "/qos/per_cpu", e::resume_limit)];

/// `cpuN/*` of the CPUs that run.
pub(crate) const RUNNING: &[Column] = &[
    column(&["power/energy_perf_bias"], "/freq/energy_perf_bias", e::number),
    fallback(&["topology/physical_package_id"], "/topology/package_id", e::id),
    column(&["topology/die_id"], "/topology/die_id", e::id),
    column(&["topology/cluster_id"], "/topology/cluster_id", e::id),
    fallback(&["topology/core_id"], "/topology/core_id", e::id),
    column(&["topology/core_cpus_list", "topology/thread_siblings_list"], "/topology/siblings", e::cpus),
    column(&["topology/die_cpus_list"], "/topology/die_cpus", e::cpus),
    column(&["topology/cluster_cpus_list"], "/topology/cluster_cpus", e::cpus),
    column(&["cpu_capacity"], "/topology/capacity", e::number),
    column(&["acpi_cppc/highest_perf"], "/freq/cppc/highest_perf", e::number),
    column(&["acpi_cppc/nominal_perf"], "/freq/cppc/nominal_perf", e::number),
    column(&["acpi_cppc/guaranteed_perf"], "/freq/cppc/guaranteed_perf", e::number),
    column(&["acpi_cppc/lowest_nonlinear_perf"], "/freq/cppc/lowest_nonlinear_perf", e::number),
    column(&["acpi_cppc/lowest_perf"], "/freq/cppc/lowest_perf", e::number),
    column(&["acpi_cppc/reference_perf"], "/freq/cppc/reference_perf", e::number),
    column(&["acpi_cppc/nominal_freq"], "/freq/cppc/nominal_khz", e::mhz),
    column(&["acpi_cppc/lowest_freq"], "/freq/cppc/lowest_khz", e::mhz),
    column(&["thermal_throttle/core_throttle_count"], "/thermal/n_core_throttles", e::number),
    column(&["thermal_throttle/package_throttle_count"], "/thermal/n_package_throttles", e::number),
    column(&["thermal_throttle/core_throttle_total_time_ms"], "/thermal/core_throttled_ns", e::ms),
    column(&["thermal_throttle/package_throttle_total_time_ms"], "/thermal/package_throttled_ns", e::ms),
];

/// `cpufreq/policyN/*`; keys are policy numbers.
pub(crate) const POLICY: &[Column] = &[
    column(&["affected_cpus"], "/freq/policies/cpus", e::cpus),
    column(&["related_cpus"], "/freq/policies/related_cpus", e::cpus),
    column(&["freqdomain_cpus"], "/freq/policies/freqdomain_cpus", e::cpus),
    column(&["scaling_driver"], "/freq/policies/driver", e::line),
    column(&["scaling_governor"], "/freq/policies/governor", e::line),
    column(&["scaling_available_governors"], "/freq/policies/governors_available", e::words),
    column(&["scaling_min_freq"], "/freq/policies/min_khz", e::number),
    column(&["scaling_max_freq"], "/freq/policies/max_khz", e::number),
    column(&["scaling_cur_freq"], "/freq/policies/current", e::speed),
    column(&["scaling_setspeed"], "/freq/policies/setspeed", e::speed),
    column(&["cpuinfo_min_freq"], "/freq/policies/hardware_min_khz", e::number),
    column(&["cpuinfo_max_freq"], "/freq/policies/hardware_max_khz", e::number),
    column(&["cpuinfo_cur_freq"], "/freq/policies/hardware_current", e::speed),
    column(&["cpuinfo_avg_freq"], "/freq/policies/average", e::speed),
    column(&["cpuinfo_transition_latency"], "/freq/policies/transition_latency_ns", e::number),
    column(&["bios_limit"], "/freq/policies/bios_limit_khz", e::number),
    column(&["base_frequency"], "/freq/policies/base_khz", e::number),
    column(&["boost"], "/freq/policies/is_boost_on", e::switch),
    column(&["cpb"], "/freq/policies/is_cpb_on", e::switch),
    column(&["scaling_available_frequencies"], "/freq/policies/available_khz", e::numbers),
    column(&["scaling_boost_frequencies"], "/freq/policies/boost_khz", e::numbers),
    column(&["energy_performance_preference"], "/freq/policies/energy_preference", e::preference),
    column(&["energy_performance_available_preferences"], "/freq/policies/energy_preferences_available", e::words),
    column(&["amd_pstate_max_freq"], "/freq/policies/amd_max_khz", e::number),
    column(&["amd_pstate_lowest_nonlinear_freq"], "/freq/policies/amd_lowest_nonlinear_khz", e::number),
    column(&["amd_pstate_highest_perf"], "/freq/policies/amd_highest_perf", e::number),
    column(&["amd_pstate_prefcore_ranking"], "/freq/policies/amd_prefcore_ranking", e::number),
    column(&["amd_pstate_hw_prefcore"], "/freq/policies/is_amd_hw_prefcore", e::switch),
    column(&["stats/time_in_state"], "/freq/policies/time_in_state", e::time_in_state),
    column(&["stats/total_trans"], "/freq/policies/n_transitions", e::number),
];

/// `node/nodeN/*`; pointers are relative to the node.
pub(crate) const NODE: &[Column] = &[
    column(&["cpulist"], "/cpus", e::cpus),
    column(&["distance"], "/distances", e::numbers),
    column(&["meminfo"], "/total_bytes", e::node_total),
    column(&["numastat"], "/allocations", e::numastat),
];

/// A folder of named objects, and the array in JSON that holds them.
pub(crate) struct Named {
    pub folder: &'static str,
    /// What the objects' names start with; other entries are not objects.
    pub prefixes: &'static [&'static str],
    /// JSON pointer of the array.
    pub json: &'static str,
    /// The member that holds the object's name.
    pub key: &'static str,
    /// Pointers are relative to the object.
    pub columns: &'static [Column],
}

/// Every such folder.
pub(crate) const NAMED: &[Named] = &[
    Named {
        folder: "/sys/devices/system/cpu/intel_uncore_frequency",
        prefixes: &["package_", "uncore"],
        json: "/uncore/domains",
        key: "name",
        columns: &[
            column(&["min_freq_khz"], "/min_khz", e::number),
            column(&["max_freq_khz"], "/max_khz", e::number),
            column(&["initial_min_freq_khz"], "/initial_min_khz", e::number),
            column(&["initial_max_freq_khz"], "/initial_max_khz", e::number),
            column(&["current_freq_khz"], "/current_khz", e::number),
            column(&["elc_floor_freq_khz"], "/elc_floor_khz", e::number),
            column(&["fabric_cluster_id"], "/fabric_cluster_id", e::id),
            column(&["agent_types"], "/agent_types", e::words),
        ],
    },
    Named {
        folder: "/sys/class/powercap",
        prefixes: &["intel-rapl:", "intel-rapl-mmio:"],
        json: "/power/zones",
        key: "id",
        columns: &[
            column(&["name"], "/name", e::line),
            column(&["energy_uj"], "/energy_uj", e::number),
            column(&["max_energy_range_uj"], "/max_energy_range_uj", e::number),
            column(&["enabled"], "/is_enabled", e::switch),
        ],
    },
];

/// `cpuN/cache/indexK/*`; pointers are relative to the cache. Who shares it is compared apart.
pub(crate) const CACHE: &[Column] = &[
    column(&["level"], "/level", e::number),
    column(&["type"], "/kind", e::line),
    column(&["size"], "/size_bytes", e::size),
    column(&["id"], "/id", e::number),
];

/// One file, one fact: path, JSON pointer, shape.
pub(crate) const SINGLE: &[(&str, &str, Shape)] = &[
    ("/sys/devices/system/cpu/possible", "/cpus/possible", e::cpus),
    ("/sys/devices/system/cpu/present", "/cpus/present", e::cpus),
    ("/sys/devices/system/cpu/online", "/cpus/online", e::cpus),
    ("/sys/devices/system/cpu/cpuidle/current_driver", "/idle/driver", e::line),
    ("/sys/devices/system/cpu/cpuidle/available_governors", "/idle/governors_available", e::words),
    ("/sys/devices/system/cpu/cpufreq/boost", "/freq/is_boost_on", e::switch),
    ("/sys/devices/system/cpu/intel_pstate/status", "/freq/intel_pstate/status", e::line),
    ("/sys/devices/system/cpu/intel_pstate/no_turbo", "/freq/intel_pstate/is_no_turbo", e::switch),
    ("/sys/devices/system/cpu/intel_pstate/num_pstates", "/freq/intel_pstate/n_pstates", e::number),
    ("/sys/devices/system/cpu/amd_pstate/status", "/freq/amd_pstate/status", e::line),
    ("/sys/devices/system/cpu/smt/control", "/topology/smt_control", e::line),
    ("/sys/devices/system/cpu/smt/active", "/topology/is_smt_active", e::switch),
    ("/sys/devices/system/node/online", "/memory/online", e::cpus),
    ("/sys/devices/system/node/possible", "/memory/possible", e::cpus),
    ("/sys/devices/system/node/has_cpu", "/memory/has_cpu", e::cpus),
    ("/sys/devices/system/node/has_memory", "/memory/has_memory", e::cpus),
];
