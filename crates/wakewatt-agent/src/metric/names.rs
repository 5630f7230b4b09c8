//! Every metric of the agent: the list that `docs/ref/metrics.md` is made from. Names are promises.
//!
//! Idle states carry name *and* index, because an index means another state after a driver or a kernel changed. `node` and `package` are where
//! the CPUs sit; sums over them, so that a node has as many series with 2 CPUs as with 512.

use super::{Kind, Metric};

macro_rules! metrics {
    ($($id:ident = $name:literal $kind:ident $unit:expr, [$($label:literal),*], $help:literal;)*) => {
        $(#[doc = $help]
        pub static $id: Metric = Metric { name: $name, kind: Kind::$kind, unit: $unit, labels: &[$($label),*], help: $help };)*

        /// All, in the order of a page.
        pub static METRICS: &[&Metric] = &[$(&$id),*];
    };
}

metrics! {
    IDLE_TIME = "wakewatt_cpuidle_time_seconds" Counter Some("seconds"), ["state", "index", "node", "package", "cpu"],
        "Time CPUs spent in an idle state, summed; the kernel adds a stay when it ends.";
    IDLE_ENTRIES = "wakewatt_cpuidle_entries" Counter None, ["state", "index", "node", "package", "cpu"],
        "Stays in an idle state that ended.";
    IDLE_ABOVE = "wakewatt_cpuidle_above" Counter None, ["state", "index", "node", "package", "cpu"],
        "Stays that were shorter than the state's target residency while a shallower state was allowed.";
    IDLE_BELOW = "wakewatt_cpuidle_below" Counter None, ["state", "index", "node", "package", "cpu"],
        "Stays that were long enough for a deeper state.";
    IDLE_REJECTED = "wakewatt_cpuidle_rejected" Counter None, ["state", "index", "node", "package", "cpu"],
        "Requests for an idle state that driver or hardware refused.";
    EXIT_LATENCY = "wakewatt_cpuidle_exit_latency_seconds" Gauge Some("seconds"), ["state", "index", "source"],
        "How long leaving an idle state takes: claimed by the kernel's table, or, with --measured, measured on this machine (median over the shallowest state).";
    TARGET_RESIDENCY = "wakewatt_cpuidle_target_residency_seconds" Gauge Some("seconds"), ["state", "index"],
        "Shortest stay for which a state is worth entering, as the kernel's table claims.";
    IDLE_DISABLED = "wakewatt_cpuidle_disabled_cpus" Gauge None, ["state", "index"],
        "CPUs on which an idle state is switched off.";
    WAKEUP_LATENCY = "wakewatt_wakeup_latency_seconds" Histogram Some("seconds"), ["state", "index", "class"],
        "From made runnable to running, by the idle state the CPU was leaving and by who woke it; with --trace only.";
    PAYER_WAKEUPS = "wakewatt_payer_wakeups" Counter None, ["by", "payer", "state", "index"],
        "Wake-ups out of an idle state by who was woken, of those that contain the exit; with --by only. At most --top payers, all others are `(other)`.";
    PAYER_LOST = "wakewatt_payer_lost_seconds" Counter Some("seconds"), ["by", "payer", "state", "index"],
        "Time from made runnable to running that these wake-ups took, added up; with --by only.";
    PAYER_RETIRED_WAKEUPS = "wakewatt_payer_retired_wakeups" Counter None, ["by", "state", "index"],
        "Wake-ups that payers counted before they gave up their place; with all payers' wake-ups these are all there were.";
    PAYER_RETIRED_LOST = "wakewatt_payer_retired_lost_seconds" Counter Some("seconds"), ["by", "state", "index"],
        "Time lost that payers counted before they gave up their place; a step of it is no growth.";
    PAYER_UNTOLD = "wakewatt_payer_untold_wakeups" Counter None, ["by"],
        "Wake-ups in `(other)` whose payer cannot be told: its cgroup was new or gone, or fell out of the kernel's table between two readings.";
    LATENCY_LIMIT = "wakewatt_latency_limit_seconds" Gauge Some("seconds"), [],
        "Wake-up latency that idle states may cost on all CPUs (/dev/cpu_dma_latency); +Inf where nobody limits it.";
    LIMIT_HOLDER = "wakewatt_latency_limit_holder" Info None, ["holder"],
        "A program that holds the latency limit.";
    CPU_TIME = "wakewatt_cpu_seconds" Counter Some("seconds"), ["mode", "node", "package", "cpu"],
        "Time of CPUs: busy, idle, or stolen by the hypervisor, as the tick counts it.";
    CPUS_ONLINE = "wakewatt_cpus_online" Gauge None, ["node", "package"],
        "CPUs that are online.";
    FREQUENCY = "wakewatt_cpu_frequency_hertz" Gauge Some("hertz"), ["node", "package", "stat"],
        "Clock of the online CPUs as the kernel last saw it: least, mean and largest; stale on a CPU that sleeps.";
    UNCORE = "wakewatt_uncore_frequency_hertz" Gauge Some("hertz"), ["package"],
        "Clock of a package's uncore; with --sources package only, because reading it wakes a CPU.";
    THROTTLES = "wakewatt_thermal_throttles" Counter None, ["scope", "package"],
        "Times that cores or a package were slowed down because they were hot.";
    ENERGY = "wakewatt_energy_joules" Counter Some("joules"), ["meter", "zone", "package"],
        "Energy that a RAPL counter counted since the agent started; wraps are counted, gaps are not filled.";
    POWER = "wakewatt_power_watts" Gauge Some("watts"), ["meter", "sensor"],
        "Power that a sensor of the machine reports.";
    TEMPERATURE = "wakewatt_temperature_celsius" Gauge Some("celsius"), ["chip", "sensor", "package"],
        "Temperature of a processor.";
    FAN = "wakewatt_fan_rpm" Gauge None, ["chip", "sensor"],
        "Revolutions of a fan per minute.";
    PRESSURE = "wakewatt_pressure_seconds" Counter Some("seconds"), ["resource", "share"],
        "Time in which some or all tasks waited for a resource (PSI).";
    INTERRUPTS = "wakewatt_interrupts" Counter None, [],
        "Interrupts of the machine.";
    SWITCHES = "wakewatt_context_switches" Counter None, [],
        "Context switches of the machine.";
    SETTINGS = "wakewatt_settings" Info None,
        ["idle_driver", "idle_governor", "idle_table", "frequency_driver", "frequency_governor", "energy_preference", "turbo", "smt", "kernel", "cmdline", "microcode", "bios", "processor"],
        "What is set on this machine: a change of any of these begins a new series.";
    DAEMON = "wakewatt_daemon" Info None, ["daemon"],
        "A known daemon that runs and turns what is looked at here; `none` where none does.";
    FINDING = "wakewatt_finding" Gauge None, ["rule", "weight"],
        "A finding of `wakewatt doctor --read-only` that rests on facts alone; judged every ten minutes.";
    BUILD = "wakewatt_build" Info None, ["version"],
        "The agent that answers.";
    START = "wakewatt_agent_start_time_seconds" Gauge Some("seconds"), [],
        "When the agent started, since 1970: counters began at 0 then.";
    SOURCE_UP = "wakewatt_agent_source_up" Gauge None, ["source", "why"],
        "Does a source answer? 0 with the reason where it does not.";
    CERTIFICATE_EXPIRY = "wakewatt_agent_certificate_expiry_timestamp_seconds" Gauge Some("seconds"), [],
        "When the agent's own certificate expires, since 1970; with --tls-cert only.";
    CONFINED = "wakewatt_agent_confined" Gauge None, ["guard", "why"],
        "Did the agent give up what it needs no more (capabilities, files, ports, system calls)? 0 with the reason where it did not.";
    PUSHES = "wakewatt_agent_pushes" Counter None, ["outcome"],
        "Pages that were pushed, and pages that never will be because there was no room or the server refused them; with --otlp only.";
    STEPS_BACK = "wakewatt_agent_steps_back" Counter None, [],
        "Kernel counters that ran backwards; what they lost is not counted.";
    OWN_CPU = "wakewatt_agent_cpu_seconds" Counter Some("seconds"), [],
        "CPU time of the agent itself.";
    OWN_MEMORY = "wakewatt_agent_resident_memory_bytes" Gauge Some("bytes"), [],
        "Memory of the agent itself.";
    OWN_WAKEUPS = "wakewatt_agent_wakeups" Counter None, [],
        "Times the agent slept and was woken.";
    OWN_INTERRUPTS = "wakewatt_agent_remote_interrupts" Counter None, [],
        "Interrupts of other CPUs that reading caused; 0 with the default sources.";
    READING_TIME = "wakewatt_agent_reading_seconds" Gauge Some("seconds"), [],
        "How long the last reading of the machine took: its numbers are at most this far apart.";
    EVENTS_LOST = "wakewatt_agent_events_dropped" Counter None, [],
        "Wake-ups that could not be counted, with --trace.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_keep_the_conventions() {
        let names: BTreeSet<&str> = METRICS.iter().map(|m| m.name).collect();
        assert_eq!(names.len(), METRICS.len(), "a name stands twice");
        for metric in METRICS {
            let name = metric.name;
            assert!(name.starts_with("wakewatt_") && !name.ends_with("_total") && !name.ends_with("_info"), "{name}");
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{name}");
            if let Some(unit) = metric.unit {
                assert!(name.ends_with(&format!("_{unit}")), "{name}: the unit {unit} is its end");
            }
            for foreign in ["_ms", "_us", "_ns", "_khz", "_mhz", "_percent", "_ratio_percent"] {
                assert!(!name.ends_with(foreign), "{name}: base units only");
            }
            assert!(metric.help.ends_with('.') && !metric.help.contains('\n'), "{name}");
        }
    }
}
