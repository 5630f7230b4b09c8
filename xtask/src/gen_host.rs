//! A synthetic machine: as many files as a 512-CPU server shows, so that the speed test does not need one.
//!
//! Two sockets, SMT, four idle states plus POLL with all their attributes, one cpufreq policy per CPU, topology,
//! caches, power and thermal counters, nodes. Counters differ per CPU as on a real machine, so grouping cannot cheat.

use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Arguments of `gen-host`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// CPUs; a multiple of 4
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(4..=8192))]
    cpus: u32,
    /// Where to write it; must not exist
    dir: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    let n_files = write(&args.dir, args.cpus)?;
    println!("{}: {n_files} files, {} CPUs", args.dir.display(), args.cpus);
    Ok(true)
}

struct Writer<'a> {
    root: &'a Path,
    n_files: u64,
}

impl Writer<'_> {
    fn folder(&mut self, folder: &str, files: &[(&str, String)]) -> Result<()> {
        let folder = self.root.join(folder);
        std::fs::create_dir_all(&folder).with_context(|| format!("{}: not writable", folder.display()))?;
        for (name, text) in files {
            std::fs::write(folder.join(name), format!("{text}\n"))?;
            self.n_files += 1;
        }
        Ok(())
    }
}

/// Name, description, latency, residency.
const STATES: &[(&str, &str, u32, u32)] = &[
    ("POLL", "CPUIDLE CORE POLL IDLE", 0, 0),
    ("C1", "MWAIT 0x00", 1, 1),
    ("C1E", "MWAIT 0x01", 2, 4),
    ("C6", "MWAIT 0x20", 290, 800),
    ("C6P", "MWAIT 0x21", 340, 1200),
];

/// Writes the tree; says how many files.
pub(crate) fn write(root: &Path, n: u32) -> Result<u64> {
    let mut w = Writer { root, n_files: 0 };
    std::fs::create_dir(root).with_context(|| format!("{}: must not exist yet", root.display()))?;
    let (half, quarter) = (n / 2, n / 4);
    let all = format!("0-{}", n - 1);
    let cpu_root = "sys/devices/system/cpu";
    let list = |name: &'static str| (name, all.clone());
    w.folder(cpu_root, &[list("online"), list("present"), list("possible"), ("offline", String::new())])?;
    let text = |s: &str| s.to_string();
    let idle = [
        ("current_driver", text("intel_idle")),
        ("current_governor", text("menu")),
        ("available_governors", text("menu teo")),
    ];
    w.folder(&format!("{cpu_root}/cpuidle"), &idle)?;
    w.folder(&format!("{cpu_root}/smt"), &[("active", text("1")), ("control", text("on"))])?;
    w.folder(
        &format!("{cpu_root}/intel_pstate"),
        &[("status", text("active")), ("no_turbo", text("0")), ("num_pstates", text("31"))],
    )?;
    let mut cpuinfo = String::new();
    for cpu in 0..n {
        // Linux numbers the second thread of every core after all first ones; sockets alternate in blocks.
        let core = cpu % half;
        let package = core / quarter;
        let socket = |k: u32| {
            format!("{}-{},{}-{}", k * quarter, (k + 1) * quarter - 1, half + k * quarter, half + (k + 1) * quarter - 1)
        };
        let siblings = format!("{core},{}", core + half);
        let folder = format!("{cpu_root}/cpu{cpu}");
        w.folder(&folder, &if cpu == 0 { vec![] } else { vec![("online", text("1"))] })?;
        for (k, (name, desc, latency, residency)) in (0u32..).zip(STATES) {
            let usage = (cpu * 7919 + k * 104_729) % 1_000_003;
            let files = [
                ("name", text(name)),
                ("desc", text(desc)),
                ("latency", latency.to_string()),
                ("residency", residency.to_string()),
                ("power", text("0")),
                ("usage", usage.to_string()),
                ("time", (u64::from(usage) * 431).to_string()),
                ("above", (usage / 17).to_string()),
                ("below", (usage / 23).to_string()),
                ("rejected", text("0")),
                ("disable", text("0")),
                ("default_status", text("enabled")),
            ];
            w.folder(&format!("{folder}/cpuidle/state{k}"), &files)?;
        }
        let topology = [
            ("physical_package_id", package.to_string()),
            ("die_id", text("0")),
            ("core_id", (core % quarter).to_string()),
            ("cluster_id", core.to_string()),
            ("core_cpus_list", siblings.clone()),
            ("thread_siblings_list", siblings.clone()),
            ("package_cpus_list", socket(package)),
            ("die_cpus_list", socket(package)),
            ("cluster_cpus_list", siblings.clone()),
        ];
        w.folder(&format!("{folder}/topology"), &topology)?;
        for (index, level, kind, size, shared) in [
            (0, 1, "Data", "48K", &siblings),
            (1, 1, "Instruction", "32K", &siblings),
            (2, 2, "Unified", "2048K", &siblings),
            (3, 3, "Unified", "327680K", &socket(package)),
        ] {
            let files = [
                ("level", level.to_string()),
                ("type", text(kind)),
                ("size", text(size)),
                ("id", if level == 3 { package } else { core }.to_string()),
                ("shared_cpu_list", shared.clone()),
            ];
            w.folder(&format!("{folder}/cache/index{index}"), &files)?;
        }
        w.folder(
            &format!("{folder}/power"),
            &[("pm_qos_resume_latency_us", text("0")), ("energy_perf_bias", text("6"))],
        )?;
        let throttle = [
            ("core_throttle_count", (cpu % 3).to_string()),
            ("core_throttle_total_time_ms", (cpu % 3 * 12).to_string()),
            ("package_throttle_count", text("0")),
            ("package_throttle_total_time_ms", text("0")),
        ];
        w.folder(&format!("{folder}/thermal_throttle"), &throttle)?;
        let freq = [
            ("affected_cpus", cpu.to_string()),
            ("related_cpus", cpu.to_string()),
            ("base_frequency", text("2000000")),
            ("cpuinfo_max_freq", text("3900000")),
            ("cpuinfo_min_freq", text("800000")),
            ("cpuinfo_transition_latency", text("0")),
            (
                "energy_performance_available_preferences",
                text("default performance balance_performance balance_power power"),
            ),
            ("energy_performance_preference", text("balance_performance")),
            ("scaling_available_governors", text("performance powersave")),
            ("scaling_cur_freq", (800_000 + cpu * 1000).to_string()),
            ("scaling_driver", text("intel_pstate")),
            ("scaling_governor", text("powersave")),
            ("scaling_max_freq", text("3900000")),
            ("scaling_min_freq", text("800000")),
            ("scaling_setspeed", text("<unsupported>")),
        ];
        w.folder(&format!("{cpu_root}/cpufreq/policy{cpu}"), &freq)?;
        #[cfg(unix)]
        std::os::unix::fs::symlink(format!("../cpufreq/policy{cpu}"), root.join(format!("{folder}/cpufreq")))?;
        let _ = write!(
            cpuinfo,
            "processor\t: {cpu}\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 207\nmodel name\t: Synthetic\nstepping\t: 2\nmicrocode\t: 0x21000200\nphysical id\t: {package}\ncore id\t\t: {}\nflags\t\t: fpu vme mwait constant_tsc nonstop_tsc aperfmperf epb hwp\n\n",
            core % quarter
        );
    }
    let node_root = "sys/devices/system/node";
    w.folder(
        node_root,
        &[("online", text("0-1")), ("possible", text("0-1")), ("has_cpu", text("0-1")), ("has_memory", text("0-1"))],
    )?;
    for node in 0..2u32 {
        let cpus = format!(
            "{}-{},{}-{}",
            node * quarter,
            (node + 1) * quarter - 1,
            half + node * quarter,
            half + (node + 1) * quarter - 1
        );
        let files = [
            ("cpulist", cpus),
            ("distance", text(if node == 0 { "10 21" } else { "21 10" })),
            (
                "numastat",
                text("numa_hit 100\nnuma_miss 0\nnuma_foreign 0\ninterleave_hit 5\nlocal_node 90\nother_node 10"),
            ),
            ("meminfo", format!("Node {node} MemTotal:       263921244 kB\nNode {node} MemFree:        200000000 kB")),
        ];
        w.folder(&format!("{node_root}/node{node}"), &files)?;
    }
    let proc = [
        ("cpuinfo", cpuinfo.trim_end().to_string() + "\n"),
        ("cmdline", text("BOOT_IMAGE=/vmlinuz ro quiet")),
        ("version", text("Linux version 6.12.0 (builder@example) (gcc) #1 SMP")),
        ("loadavg", text("0.50 0.40 0.30 1/900 4242")),
        ("stat", stat(n)),
        ("uptime", text("86400.00 40000000.00")),
    ];
    w.folder("proc", &proc)?;
    w.folder("proc/sys/kernel", &[("osrelease", text("6.12.0")), ("hostname", text("synthetic"))])?;
    for package in 0..2u32 {
        let zone = [
            ("name", format!("package-{package}")),
            ("energy_uj", text("123456789")),
            ("max_energy_range_uj", text("262143328850")),
            ("enabled", text("1")),
        ];
        w.folder(&format!("sys/class/powercap/intel-rapl:{package}"), &zone)?;
    }
    w.folder("sys/class/hwmon/hwmon0", &[("name", text("nct6798")), ("fan1_input", text("4200"))])?;
    Ok(w.n_files)
}

/// /proc/stat after a day: each CPU busy a little more than the one before.
fn stat(n: u32) -> String {
    let ticks = |cpu: u32| (cpu * 1000, 8_640_000 - cpu * 1000);
    let (busy, idle) = (0..n).map(ticks).fold((0u64, 0u64), |(b, i), (x, y)| (b + u64::from(x), i + u64::from(y)));
    let mut out = format!("cpu  {busy} 0 0 {idle} 0 0 0 0 0 0\n");
    for cpu in 0..n {
        let (busy, idle) = ticks(cpu);
        let _ = writeln!(out, "cpu{cpu} {busy} 0 0 {idle} 0 0 0 0 0 0");
    }
    out + "intr 123456789 0 1 2\nctxt 987654321\nbtime 1700000000\nprocesses 4242\nprocs_running 1\nprocs_blocked 0"
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_small_machine_has_all_files() {
        let scratch = tempfile::tempdir().unwrap();
        let n = super::write(&scratch.path().join("x"), 4).unwrap();
        assert!(n > 4 * 100, "{n} files");
    }
}
