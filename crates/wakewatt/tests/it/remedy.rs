//! A finding's plan is a line that somebody pastes: a shell must read it as it was meant, and `tune` must take it.
//!
//! Every finding on every recorded host: its line, run by sh with the real program on that host, must end well, so that
//! no rule proposes a setting that is not there. The recorded hosts are in good order, so the same is asked of machines
//! made up here, where as many rules as possible have something to say.

use crate::tool::{PROGRAM, hosts, run};
use clap::Parser;
use expect_test::expect;
use serde_json::Value;
use std::process;
use wakewatt::cli::tune::Verb;
use wakewatt::cli::{Cli, Command};
use wakewatt_core::evidence::Evidence;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::rules::{Answer, Finding, judge};
use wakewatt_core::source::Tree;
use wakewatt_tune::boot::Argument;
use wakewatt_tune::boot::parameters::known;
use wakewatt_tune::knob::Host;
use wakewatt_tune::profile::budget;
use wakewatt_tune::request::Request;
use wakewatt_tune::resolve::resolve;

/// Plans that a recorded host cannot take: host, rule, what `tune plan` says, and why that is right.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    // A recording holds what parsers read; boot loaders' files are read by `tune --boot-arg` alone.
    ("genoa0", "rule.frequency-driver", "no boot loader that wakewatt knows was found"),
    ("rome0", "rule.frequency-driver", "no boot loader that wakewatt knows was found"),
];

/// What a shell makes of a line whose command is `name`: runs `body` with the line's words as "$@".
fn shell(name: &str, body: &str, line: &str) -> (Option<i32>, String) {
    let script = format!("{name}() {{ {body}; }}\n{line}\n");
    let output =
        process::Command::new("sh").args(["-c", &script]).env_clear().env("PATH", "/usr/bin:/bin").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code(), text)
}

#[test]
fn every_line_can_be_pasted_on_the_host_it_is_for() {
    let mut n_lines = 0;
    for (name, file) in hosts() {
        let file = file.to_str().unwrap();
        let said = run(&["doctor", "--read-only", "--no-report", "--json", "--host", file]);
        let report: Value = serde_json::from_str(&said.out).unwrap();
        let rulings = report["rulings"].as_array().unwrap();
        for finding in rulings.iter().filter(|r| r["answer"] == "yes" && !r["plan"].is_null()) {
            let (rule, commands) = (finding["rule"].as_str().unwrap(), &finding["plan"]["commands"]);
            let look = commands["look"].as_str().unwrap();
            let (code, text) = shell("wakewatt", &format!("{PROGRAM} \"$@\" --host '{file}'"), look);
            n_lines += 1;
            match EXCEPTIONS.iter().find(|(h, r, _)| (*h, *r) == (name.as_str(), rule)) {
                Some((_, _, why)) => {
                    assert!(code != Some(0) && text.contains(why), "{name}: {look}: no exception: {text}")
                }
                None => assert_eq!(code, Some(0), "{name}, {rule}: {look}\n{text}"),
            }
        }
    }
    assert!(n_lines > 20, "{n_lines} lines: the reports have changed their form");
}

/// The findings of a machine that carry a plan.
fn remedies(tree: &Tree) -> Vec<Finding> {
    let facts = Snapshot::read(tree, |_| true);
    let rulings = judge(&Evidence { facts, ..Evidence::default() });
    let findings = rulings.into_iter().filter_map(|r| match r.answer {
        Answer::Yes(finding) => Some(*finding),
        _ => None,
    });
    findings.filter(|f| f.plan.is_some()).collect()
}

/// Asks that the machine takes each plan, that each plan changes something, and that the shell and the program read it
/// alike; returns the rules and their options.
fn plans(text: &str) -> Vec<String> {
    let mut tree = Tree::from_text(text);
    if !text.starts_with(CONTAINER) {
        tree.files.insert("/dev/cpu_dma_latency".into(), Ok(2_000_000_000i32.to_ne_bytes().to_vec()));
    }
    let host = Host::read(&tree);
    let mut said = Vec::new();
    for finding in remedies(&tree) {
        let (plan, id) = (finding.plan.unwrap(), finding.id);
        for line in [&plan.commands().look, &plan.commands().apply] {
            let name = if line.starts_with("sudo ") { "sudo wakewatt " } else { "wakewatt " };
            let line = line.strip_prefix(name).unwrap();
            let (code, words) = shell("wakewatt", "printf '%s\\n' wakewatt \"$@\"", &format!("wakewatt {line}"));
            assert_eq!(code, Some(0), "{line}: {words}");
            let parsed = Cli::try_parse_from(words.lines());
            let Command::Tune(tune) = parsed.unwrap_or_else(|e| panic!("{id}: {line}\n{e}")).command else {
                panic!("{line}: not tune")
            };
            let wanted = match tune.verb {
                Verb::Plan(args) => args.wanted,
                Verb::Apply(args) => args.wanted,
                other => panic!("{other:?}"),
            };
            let scope = wanted.scope();
            let budget = wanted.max_latency.map(|limit| budget(limit, &scope));
            let requests: Vec<Request> = budget.into_iter().chain(wanted.set).collect();
            assert_eq!(requests.len() + wanted.boot_arg.len(), plan.steps().len(), "{id}: {line}");
            let resolved = resolve(&host, &requests);
            assert_eq!(resolved.refused, Vec::<String>::new(), "{id}: {line}");
            let is_new = |s: &wakewatt_tune::resolve::Step| s.later.is_some() || s.changes.iter().any(|c| !c.is_so());
            assert!(resolved.steps.iter().all(is_new), "{id}: {line}: a step changes nothing");
            for parameter in &wanted.boot_arg {
                let argument = Argument::parse(parameter).unwrap();
                assert!(known(argument.key()).is_some(), "{id}: {parameter}: tune does not know it");
            }
        }
        let options = plan.commands().look.strip_prefix("wakewatt tune plan ").unwrap();
        said.push(format!("{}: {options}", id.strip_prefix("rule.").unwrap()));
    }
    said.sort();
    said
}

/// In front of a machine's text: without the device of the global latency limit.
const CONTAINER: &str = "//- /.dockerenv\n";
const CPU: &str = "//- /sys/devices/system/cpu";

/// Four CPUs on two packages, each its own policy, with these attributes of every policy.
fn machine(idle: &str, states: &[(&str, u64, u64)], policy: &[(&str, &str)]) -> String {
    let mut text = format!("{CPU}/online\n0-3\n{CPU}/present\n0-3\n{CPU}/cpuidle/current_driver\n{idle}\n");
    for cpu in 0..4 {
        text += &format!("{CPU}/cpu{cpu}/topology/physical_package_id\n{}\n", cpu / 2);
        text += &format!("{CPU}/cpu{cpu}/power/pm_qos_resume_latency_us\n0\n");
        for (at, (name, latency, residency)) in states.iter().enumerate() {
            let at = format!("{CPU}/cpu{cpu}/cpuidle/state{at}");
            text += &format!("{at}/name\n{name}\n{at}/latency\n{latency}\n{at}/residency\n{residency}\n");
            text += &format!("{at}/disable\n0\n{at}/default_status\nenabled\n");
        }
        for (name, value) in [("affected_cpus", cpu.to_string()), ("related_cpus", cpu.to_string())]
            .into_iter()
            .chain(policy.iter().map(|(n, v)| (*n, (*v).to_string())))
        {
            text += &format!("{CPU}/cpufreq/policy{cpu}/{name}\n{value}\n");
        }
    }
    text
}

const ICX: &[(&str, u64, u64)] = &[("POLL", 0, 0), ("C1", 2, 2), ("C1E", 10, 20), ("C6", 133, 600)];

#[test]
fn a_server_with_old_tuning_left_behind() {
    let policy = [
        ("scaling_driver", "intel_cpufreq"),
        ("scaling_governor", "ondemand"),
        ("scaling_available_governors", "conservative ondemand userspace powersave performance schedutil"),
        ("scaling_min_freq", "2000000"),
        ("scaling_max_freq", "2500000"),
        ("cpuinfo_min_freq", "800000"),
        ("cpuinfo_max_freq", "3456789"),
    ];
    let text = machine("intel_idle", ICX, &policy)
        + &format!(
            "{CPU}/cpuidle/current_governor\nladder\n{CPU}/cpuidle/available_governors\nladder menu\n
             {CPU}/cpu0/cpuidle/state2/disable\n1\n{CPU}/cpu1/cpuidle/state2/disable\n1\n
             {CPU}/cpu2/cpuidle/state3/default_status\ndisabled\n
             {CPU}/cpu0/power/pm_qos_resume_latency_us\nn/a\n{CPU}/cpu1/power/pm_qos_resume_latency_us\n1\n
             {CPU}/cpu2/power/pm_qos_resume_latency_us\n50\n
             {CPU}/cpufreq/ondemand/powersave_bias\n100\n{CPU}/cpufreq/ondemand/sampling_rate\n100000\n
             {CPU}/intel_pstate/status\npassive\n{CPU}/intel_pstate/no_turbo\n0\n{CPU}/intel_pstate/max_perf_pct\n70\n
             {CPU}/cpu0/power/energy_perf_bias\n0\n{CPU}/cpu1/power/energy_perf_bias\n0\n
             {CPU}/cpu2/power/energy_perf_bias\n6\n{CPU}/cpu3/power/energy_perf_bias\n15\n
             {CPU}/intel_uncore_frequency/package_00_die_00/min_freq_khz\n800000\n
             {CPU}/intel_uncore_frequency/package_00_die_00/max_freq_khz\n1200000\n
             {CPU}/intel_uncore_frequency/package_00_die_00/initial_min_freq_khz\n800000\n
             {CPU}/intel_uncore_frequency/package_00_die_00/initial_max_freq_khz\n2400000\n
             //- /sys/class/powercap/intel-rapl:0/name\npackage-0\n//- /sys/class/powercap/intel-rapl:0/enabled\n1\n
             //- /sys/class/powercap/intel-rapl:0/constraint_0_name\nlong_term\n
             //- /sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw\n150000000\n
             //- /sys/class/powercap/intel-rapl:0/constraint_0_max_power_uw\n250500000\n
             //- /sys/devices/system/node/online\n0-1\n//- /sys/devices/system/node/node0/cpulist\n0-1\n
             //- /sys/devices/system/node/node1/cpulist\n2-3\n
             //- /sys/devices/system/node/node0/numastat\nnuma_hit 5\nlocal_node 600000\nother_node 400000\n
             //- /sys/devices/system/node/node1/numastat\nnuma_hit 1\n//- /proc/sys/kernel/numa_balancing\n0\n
             //- /sys/class/nvme/nvme0/model\nX\n//- /sys/class/nvme/nvme0/power/pm_qos_latency_tolerance_us\nauto\n
             //- /sys/module/nvme_core/parameters/default_ps_max_latency_us\n100000\n
             //- /sys/class/nvme/nvme0/device/link/l1_aspm\n1\n
             //- /sys/module/pcie_aspm/parameters/policy\n[default] performance powersave powersupersave\n
             //- /sys/class/net/eth0/device/vendor\n0x8086\n//- /sys/class/net/eth0/operstate\nup\n
             //- ethtool:eth0/coalesce\nrx-usecs 50\nrx-frames 64\nadaptive-rx 1\n
             //- /proc/interrupts\nCPU0 CPU1 CPU2 CPU3\n36: 100000 0 0 0 PCI-MSI 1-edge eth0-TxRx-0\n37: 200000 0 0 0 PCI-MSI 2-edge eth0-TxRx-1\n
             //- /proc/irq/36/smp_affinity_list\n0-3\n//- /proc/irq/36/effective_affinity_list\n0\n
             //- /proc/irq/37/smp_affinity_list\n0-3\n//- /proc/irq/37/effective_affinity_list\n0\n
             //- /proc/sys/kernel/osrelease\n6.1.0\n
             //- /proc/cmdline\nroot=/dev/sda1 nohz=off processor.max_cstate=1\n"
        );
    expect![[r#"
        deep-idle-vs-latency: --max-latency 10us
        epb: --set freq.epb@package:1=performance
        frequency-driver: --set freq.driver=active
        governor-tunables: --set freq.tunable.ondemand.powersave_bias=0 --set freq.tunable.ondemand.sampling_rate=20000
        governor: --set freq.governor=performance
        idle-boot-arguments: --boot-arg nohz=on
        irq-affinity: --set irq.affinity@irq36=0 --set irq.affinity@irq37=1
        ladder-governor: --set idle.governor=menu
        max-below-hardware: --set freq.max=max --set freq.perf.max=100
        min-frequency: --set freq.min=min
        nic-coalescing: --set net.coalescing.adaptive-rx@eth0=off --set net.coalescing.rx-frames@eth0=1 --set net.coalescing.rx-usecs@eth0=0
        numa-remote-share: --set memory.numa_balancing=on
        nvme-apst: --set nvme.apst@nvme0=off
        pcie-aspm: --set pcie.aspm=performance
        per-cpu-resume-limits: --set qos.cpu@cpus:0-2=none
        polling-by-accident: --set idle.state.C1E@cpus:0=on --set qos.cpu@cpus:0=2us
        power-limit: --set power.limit.long@intel-rapl:0=250500mW
        processor-max-cstate-ignored: --boot-arg intel_idle.max_cstate=1
        uncore-window: --set uncore.max@package_00_die_00=max"#]].assert_eq(&plans(&text).join("\n"));
}

#[test]
fn a_server_that_leaves_the_clock_to_the_hardware() {
    let policy = [
        ("scaling_driver", "intel_pstate"),
        ("scaling_governor", "powersave"),
        ("scaling_available_governors", "performance powersave"),
        ("energy_performance_preference", "balance_power"),
        ("energy_performance_available_preferences", "default performance balance_performance balance_power power"),
        ("scaling_min_freq", "800000"),
        ("scaling_max_freq", "3000000"),
        ("cpuinfo_min_freq", "800000"),
        ("cpuinfo_max_freq", "3000000"),
    ];
    let counted: String = (0..4)
        .map(|cpu| {
            let at = format!("{CPU}/cpu{cpu}/cpuidle");
            format!(
                "{at}/state3/usage\n1000000\n{at}/state3/above\n700000\n{at}/state3/below\n0\n{at}/state3/rejected\n50000\n
                 {at}/state3/time\n7200000000\n"
            )
        })
        .collect();
    let text = machine("intel_idle", ICX, &policy)
        + &counted
        + &format!(
            "{CPU}/cpuidle/current_governor\nmenu\n{CPU}/cpuidle/available_governors\nmenu teo\n
             {CPU}/cpuidle/intel_c1_demotion\n1\n{CPU}/intel_pstate/status\nactive\n{CPU}/intel_pstate/no_turbo\n1\n
             {CPU}/intel_pstate/hwp_dynamic_boost\n0\n
             {CPU}/intel_uncore_frequency/uncore00/package_id\n0\n
             {CPU}/intel_uncore_frequency/uncore00/domain_id\n0\n
             {CPU}/intel_uncore_frequency/uncore00/fabric_cluster_id\n0\n
             {CPU}/intel_uncore_frequency/uncore00/min_freq_khz\n800000\n
             {CPU}/intel_uncore_frequency/uncore00/max_freq_khz\n2200000\n
             {CPU}/intel_uncore_frequency/uncore00/initial_min_freq_khz\n800000\n
             {CPU}/intel_uncore_frequency/uncore00/initial_max_freq_khz\n2500000\n
             {CPU}/intel_uncore_frequency/uncore00/elc_floor_freq_khz\n800000\n
             //- /proc/sys/kernel/osrelease\n6.18.0\n"
        );
    expect![[r#"
        c1-demotion: --set idle.c1_demotion=off
        deep-idle-vs-latency: --max-latency 10us
        epp: --set freq.epp=performance
        governor-misses: --set idle.governor=teo
        hwp-dynamic-boost: --set freq.hwp_dynamic_boost=on
        idle-rejected: --set idle.state.C6=off
        turbo-off: --set freq.boost=on
        uncore-window: --set uncore.max@uncore00=max"#]]
    .assert_eq(&plans(&text).join("\n"));
}

#[test]
fn a_guest_an_epyc_and_a_machine_handed_to_acpi() {
    let guest = machine("haltpoll", &[("POLL", 0, 0), ("haltpoll idle", 1, 1)], &[])
        + &format!(
            "//- /proc/cpuinfo\nflags : fpu hypervisor\n
             {CPU}/cpuidle/current_governor\nmenu\n{CPU}/cpuidle/available_governors\nmenu haltpoll\n
             {CPU}/cpu0/cpuidle/state1/disable\n1\n
             //- /sys/module/haltpoll/parameters/guest_halt_poll_ns\n0\n"
        );
    let policy = [
        ("scaling_driver", "amd-pstate"),
        ("scaling_governor", "schedutil"),
        ("scaling_available_governors", "ondemand performance schedutil"),
        ("boost", "0"),
    ];
    let amd = machine("acpi_idle", &[("POLL", 0, 0), ("C1", 1, 2), ("C2", 800, 1600)], &policy)
        + &format!("{CPU}/amd_pstate/status\npassive\n//- /proc/sys/kernel/osrelease\n6.6.0\n");
    let acpi = machine("acpi_idle", &[("POLL", 0, 0), ("C1_ACPI", 1, 1), ("C2_ACPI", 170, 600)], &[])
        + "//- /proc/cmdline\nintel_idle.max_cstate=0\n";
    let off = format!(
        "{CPU}/online\n0\n{CPU}/cpuidle/current_driver\nnone\n//- /proc/cpuinfo\nflags : fpu\n//- /proc/cmdline\ncpuidle.off=1\n"
    );
    let old = machine("acpi_idle", &[("POLL", 0, 0), ("C1", 1, 2)], &[])
        + &format!(
            "{CPU}/cpuidle/current_governor_ro\nladder\n{CPU}/cpuidle/available_governors\nladder menu\n//- /proc/sys/kernel/osrelease\n5.4.0\n"
        );
    let xeon_6 = format!("{CPU}/online\n0\n{CPU}/present\n0\n{CPU}/cpu0/topology/physical_package_id\n0\n")
        + &[("package_00_die_00", 0), ("uncore00", 0), ("uncore01", 0), ("uncore02", 1)]
            .map(|(domain, package)| {
                let at = format!("{CPU}/intel_uncore_frequency/{domain}");
                format!(
                    "{at}/package_id\n{package}\n{at}/domain_id\n0\n{at}/min_freq_khz\n800000\n{at}/max_freq_khz\n2500000\n
                     {at}/initial_min_freq_khz\n800000\n{at}/initial_max_freq_khz\n2500000\n{at}/elc_floor_freq_khz\n1200000\n
                     {at}/agent_types\ncore cache memory\n{at}/elc_low_threshold_percent\n11\n"
                )
            })
            .concat();
    let container = CONTAINER.to_string() + &acpi;
    let all: Vec<String> =
        [guest, amd, acpi, container, xeon_6, off, old].iter().map(|text| plans(text).join("\n")).collect();
    expect![[r#"
        haltpoll-guest: --set idle.governor=haltpoll --set idle.haltpoll.guest_halt_poll_ns=200000
        idle-disabled-by-user: --set 'idle.state.haltpoll idle@cpus:0=on'
        polling-by-accident: --set 'idle.state.haltpoll idle@cpus:0=on'
        --
        deep-idle-vs-latency: --max-latency 1us
        frequency-driver: --set freq.driver=active
        governor: --set freq.governor=performance
        turbo-off: --set freq.boost=on
        --
        deep-idle-vs-latency: --max-latency 1us
        intel-idle-off-acpi-back: --boot-arg intel_idle.max_cstate=1 --boot-arg processor.max_cstate=1
        --
        deep-idle-vs-latency: --set qos.cpu=1us
        intel-idle-off-acpi-back: --boot-arg intel_idle.max_cstate=1 --boot-arg processor.max_cstate=1
        --
        efficiency-latency-control: --set uncore.elc.floor@uncore00=max --set uncore.elc.floor@uncore01=max
        --

        --
        ladder-governor: --boot-arg cpuidle.governor=menu"#]]
    .assert_eq(&all.join("\n--\n"));
}

#[test]
fn nobody_is_told_to_poll_by_a_claim() {
    // One kind of sleep, and a deep one: the only lower limit would be to spin.
    let text = machine("intel_idle", &[("POLL", 0, 0), ("C6", 133, 600)], &[]);
    assert_eq!(plans(&text), Vec::<String>::new());
}
