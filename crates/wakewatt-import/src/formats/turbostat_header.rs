//! What `turbostat` prints before its table (without `--quiet`): registers, drivers, idle states, turbo.
//!
//! `cpu0: MSR_PKG_CST_CONFIG_CONTROL: 0x1e008403 (…)` is that register as it was read, so core decodes it as its own reading. The
//! names changed over versions; each address has all of its names here. `cpu0: C6: MWAIT 0x20` numbers the states in the order they
//! are printed. A register is of one CPU of its package, which is all that turbostat says.

use crate::facts::{CPU, cpu_number};
use crate::plain::{hex, whole};
use crate::reading::{Format, Reading, likely};
use crate::section::Section;

/// The format.
pub(super) const FORMAT: Format = Format { id: "turbostat-header", title: "turbostat's header", detect, read };

const REGISTERS: &[(u32, &[&str])] = &[
    (0xce, &["MSR_PLATFORM_INFO", "MSR_NHM_PLATFORM_INFO"]),
    (0xe2, &["MSR_PKG_CST_CONFIG_CONTROL", "MSR_NHM_SNB_PKG_CST_CFG_CTL"]),
    (0x1fc, &["MSR_IA32_POWER_CTL"]),
    (0x1b0, &["MSR_IA32_ENERGY_PERF_BIAS"]),
    (0x1ad, &["MSR_TURBO_RATIO_LIMIT"]),
    (0x1ae, &["MSR_TURBO_RATIO_LIMIT1"]),
    (0x1a4, &["MSR_MISC_FEATURE_CONTROL"]),
    (0x606, &["MSR_RAPL_POWER_UNIT"]),
    (0x610, &["MSR_PKG_POWER_LIMIT"]),
    (0x614, &["MSR_PKG_POWER_INFO"]),
    (0x620, &["MSR_UNCORE_RATIO_LIMIT"]),
    (0x690, &["MSR_CORE_PERF_LIMIT_REASONS"]),
    (0x19c, &["MSR_IA32_THERM_STATUS", "IA32_THERM_STATUS"]),
    (0x1b1, &["MSR_IA32_PACKAGE_THERM_STATUS", "IA32_PACKAGE_THERM_STATUS"]),
    (0x770, &["MSR_PM_ENABLE"]),
    (0x771, &["MSR_HWP_CAPABILITIES"]),
    (0x772, &["MSR_HWP_REQUEST_PKG"]),
    (0x774, &["MSR_HWP_REQUEST"]),
];

/// `cpu0: NAME: value`.
fn of_cpu(line: &str) -> Option<(u32, &str, &str)> {
    let (cpu, rest) = line.trim().strip_prefix("cpu")?.split_once(':')?;
    let (name, value) = rest.trim().split_once(':')?;
    Some((cpu_number(cpu)?, name.trim(), value.trim()))
}

fn register(name: &str) -> Option<u32> {
    REGISTERS.iter().find(|(_, names)| names.contains(&name)).map(|(address, _)| *address)
}

fn detect(section: &Section<'_>) -> u32 {
    likely(section, "turbostat", |line| {
        line.starts_with("turbostat version")
            || line.starts_with("CPUID(")
            || of_cpu(line).is_some_and(|(_, name, _)| name.starts_with("MSR_"))
    })
}

/// A state's line: its name, and a description that a driver gives.
fn is_state(name: &str, value: &str) -> bool {
    let driver = ["MWAIT", "ACPI", "CPUIDLE", "HLT", "haltpoll"];
    name.len() <= 16 && !name.contains(' ') && driver.iter().any(|word| value.starts_with(word))
}

fn read(reading: &mut Reading<'_>) {
    let mut n_states = 0;
    let mut processor = None;
    for (at, line) in reading.open_lines() {
        let text = line.text.trim();
        if text.starts_with("turbostat version") {
            n_states = 0;
        }
        if let Some((cpu, name, value)) = of_cpu(text) {
            let policy = format!("{CPU}/cpufreq/policy{cpu}");
            match name {
                _ if is_state(name, value) && n_states < 16 => {
                    let state = format!("{CPU}/cpu{cpu}/cpuidle/state{n_states}");
                    reading.put(at, &format!("{state}/name"), name);
                    reading.put(at, &format!("{state}/desc"), value);
                    n_states += 1;
                }
                "cpufreq driver" => reading.put(at, &format!("{policy}/scaling_driver"), value),
                "cpufreq governor" => {
                    reading.conclude(at, &format!("{policy}/affected_cpus"), &cpu.to_string());
                    reading.put(at, &format!("{policy}/scaling_governor"), value);
                }
                "EPB" => match value.split_whitespace().next().and_then(whole) {
                    Some(bias) => reading.put(at, &format!("{CPU}/cpu{cpu}/power/energy_perf_bias"), &bias.to_string()),
                    None => reading.refuse(at, "no number"),
                },
                _ => match (register(name), hex(value)) {
                    (Some(address), Some(bits)) => reading.put_msr(at, address, cpu, bits),
                    (Some(_), None) => reading.refuse(at, "no register's content"),
                    (None, _) if name.starts_with("MSR_") || name.starts_with("Guess") => reading.unused(at),
                    _ => {}
                },
            }
            continue;
        }
        let Some((key, value)) = text.split_once(':').map(|(k, v)| (k.trim(), v.trim())) else {
            if text.starts_with("turbostat version")
                || text.contains(" = ") && text.contains(" MHz ")
                || text.starts_with("NSFOD")
            {
                reading.unused(at);
            }
            continue;
        };
        match key {
            "current_driver" => reading.put(at, &format!("{CPU}/cpuidle/current_driver"), value),
            "current_governor" | "current_governor_ro" => {
                reading.put(at, &format!("{CPU}/cpuidle/current_governor"), value)
            }
            "cpufreq boost" => reading.put(at, &format!("{CPU}/cpufreq/boost"), value),
            "cpufreq intel_pstate no_turbo" => reading.put(at, &format!("{CPU}/intel_pstate/no_turbo"), value),
            "/dev/cpu_dma_latency" => match value.split_whitespace().next().and_then(|v| v.parse::<i32>().ok()) {
                Some(us) => reading.put_bytes(at, "/dev/cpu_dma_latency", us.to_le_bytes().to_vec()),
                None => reading.refuse(at, "no number of microseconds"),
            },
            "Kernel command line" => reading.put(at, "/proc/cmdline", value),
            "Intel P-state" | "RAPL" | "TSC" | "jiffies" | "turbostat" => reading.unused(at),
            "CPUID(0)" => {
                let vendor = value.split_whitespace().next().unwrap_or("").to_string();
                // Older versions say the family there too.
                processor = signature(value).map(|ids| (at, vendor.clone(), ids)).or(Some((at, vendor, (0, 0, 0))));
                reading.unused(at);
            }
            "CPUID(1)" => {
                if let (Some(ids), Some((_, vendor, _))) = (signature(value), &processor) {
                    processor = Some((at, vendor.clone(), ids));
                }
                reading.unused(at);
            }
            _ if key.starts_with("CPUID(") || key.starts_with("pkg") || key.starts_with("Uncore") => reading.unused(at),
            _ => {}
        }
    }
    if let Some((at, vendor, (family, model, stepping))) = processor.filter(|(_, _, ids)| ids.0 > 0) {
        let block = format!(
            "processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t: {model}\nstepping\t: {stepping}"
        );
        reading.conclude(at, "/proc/cpuinfo", &block);
    }
}

/// `family:model:stepping 0x6:55:7 (6:85:7)`: hexadecimal behind the words.
fn signature(text: &str) -> Option<(u64, u64, u64)> {
    let ids = text.split("stepping").nth(1)?.split_whitespace().next()?;
    let mut parts = ids.trim_start_matches("0x").split(':').map(|part| u64::from_str_radix(part, 16).ok());
    Some((parts.next()??, parts.next()??, parts.next()??))
}

#[cfg(test)]
mod tests {
    use crate::formats::testing::{formats, read, says};

    #[test]
    fn registers_and_drivers_of_the_header() {
        let text = "turbostat version 2023.03.17 - Somebody\nKernel command line: BOOT_IMAGE=/vmlinuz quiet\nCPUID(0): GenuineIntel 0x16 CPUID levels\n\
            CPUID(1): family:model:stepping 0x6:55:7 (6:85:7) microcode 0x5003604\ncpu0: MSR_PKG_CST_CONFIG_CONTROL: 0x1e008403 (UNdemote-C3, pkg-cstate-limit=3: pc6)\n\
            cpu0: MSR_IA32_POWER_CTL: 0x29240059 (C1E auto-promotion: DISabled)\ncurrent_driver: intel_idle\ncurrent_governor: menu\ncpu0: POLL: CPUIDLE CORE POLL IDLE\n\
            cpu0: C1: MWAIT 0x00\ncpu0: C6: MWAIT 0x20\ncpu0: cpufreq driver: intel_pstate\ncpu0: cpufreq governor: powersave\ncpufreq intel_pstate no_turbo: 0\ncpu0: EPB: 6 (balanced)\n\
            /dev/cpu_dma_latency: 2000000000 usec (default)\n10 * 100.0 = 1000.0 MHz max efficiency frequency\n";
        let found = read(text);
        assert_eq!(formats(&found), ["turbostat-header"]);
        assert_eq!(found.facts.tree.msrs[&(0xe2, 0)], Ok(0x1e00_8403));
        let at = |file: &str| says(&found, &format!("/sys/devices/system/cpu/{file}"));
        assert_eq!(
            (at("cpu0/cpuidle/state2/name").as_deref(), at("cpuidle/current_driver").as_deref()),
            (Some("C6"), Some("intel_idle"))
        );
        assert_eq!(at("cpufreq/policy0/scaling_governor").as_deref(), Some("powersave"));
        assert!(says(&found, "/proc/cpuinfo").unwrap().contains("model\t: 85"));
        assert_eq!(found.document.files[0].n_not_understood, 0, "{:?}", found.document.files[0].not_understood);
    }
}
