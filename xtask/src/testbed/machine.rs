//! What a machine of the testbed is: a TOML file of `testbed/machines`, read, checked and documented here.
//!
//! The tables are neutral: an idle state has a name and two times, whatever firmware tells the kernel about it. How they
//! become ACPI or a device tree is the business of the board (`x86`, `arm`). An unknown key is refused by name, since a
//! misspelt one would otherwise boot a machine that its author did not describe. Left out: everything the kernel finds by
//! itself; such things go into `qemu_args` until two machines need them.

use anyhow::{Result, bail};
use serde::Deserialize;
use wakewatt_core::cpuset::CpuSet;

/// A machine to be built.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Machine {
    /// The file's name without `.toml`; not a key.
    #[serde(skip)]
    pub name: String,
    /// What this machine is there for, one line.
    pub summary: String,
    /// Which processor is emulated.
    pub arch: Arch,
    /// Series or version of the Debian kernel: `6.1` takes the newest that apt offers, `6.1.0-53` that one.
    #[serde(default = "default_kernel")]
    pub kernel: String,
    /// Model as QEMU's `-cpu` wants it; the board has a default.
    pub cpu_model: Option<String>,
    /// How many CPUs and how they are cut into packages.
    #[serde(default)]
    pub cpus: Cpus,
    /// Memory of the whole machine; shared out by the NUMA nodes, if there are any.
    #[serde(default = "default_memory_mib")]
    pub memory_mib: u32,
    /// Words added to the kernel's command line.
    #[serde(default)]
    pub command_line: Vec<String>,
    /// Kernel modules to load, in this order, parameters behind the name: `"acpi-cpufreq"`, `"foo bar=1"`.
    #[serde(default)]
    pub modules: Vec<String>,
    /// Idle states, shallowest first. The kernel's own POLL or WFI is not listed. None: the kernel's default.
    #[serde(default)]
    pub idle: Vec<Idle>,
    /// Performance states, fastest first. None: no cpufreq driver.
    #[serde(default)]
    pub pstate: Vec<PState>,
    /// NUMA nodes in the order of their numbers. None: one node, not described by firmware.
    #[serde(default)]
    pub numa: Vec<Node>,
    /// Memory modules as firmware describes them. None: QEMU's own record.
    #[serde(default)]
    pub dimm: Vec<Dimm>,
    /// A management controller behind IPMI; its modules are loaded too.
    #[serde(default)]
    pub has_bmc: bool,
    /// One instruction takes two to this power nanoseconds of the machine's own time, and time asleep is skipped: what happens inside no longer
    /// depends on how busy the host is, and two runs are much alike. Only one CPU is emulated at a time then, and devices of the host answer
    /// out of step, so nothing inside may wait for one. None: the host's time.
    pub instruction_shift: Option<u8>,
    /// Words added to QEMU's command line, as they are.
    #[serde(default)]
    pub qemu_args: Vec<String>,
}

/// Processor architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum Arch {
    /// A PC with ACPI.
    #[serde(rename = "x86_64")]
    X86,
    /// A board with a device tree.
    #[serde(rename = "aarch64")]
    Arm,
}

/// Cut of the processors.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cpus {
    /// Packages.
    #[serde(default = "one")]
    pub sockets: u32,
    /// Cores per package.
    #[serde(default = "one")]
    pub cores: u32,
    /// CPUs per core.
    #[serde(default = "one")]
    pub threads: u32,
}

/// An idle state.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Idle {
    /// Name as cpuidle will show it.
    pub name: String,
    /// Worst time from the interrupt to the first instruction.
    pub exit_latency_us: u32,
    /// Shortest stay that pays. With ACPI the kernel makes it itself (twice the latency), so it may be left out.
    pub target_residency_us: Option<u32>,
    /// Power in the state; ACPI tells it, nobody reads it.
    #[serde(default)]
    pub power_mw: u32,
}

/// A performance state.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PState {
    /// Clock.
    pub mhz: u32,
    /// Power at that clock.
    pub mw: u32,
    /// Time a change to this state takes.
    pub latency_us: u32,
}

/// A NUMA node.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Node {
    /// CPUs as the kernel writes lists: `0-3,8`. May be empty.
    #[serde(default)]
    pub cpus: String,
    /// Memory of the node.
    pub memory_mib: u32,
    /// Distance to every node, itself included (10).
    pub distances: Vec<u8>,
}

/// A memory module, SMBIOS type 17.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Dimm {
    /// Name printed beside the slot, such as `CPU0_DIMM_A1`.
    pub locator: String,
    /// Bank; many makers name socket and channel here.
    #[serde(default)]
    pub bank: String,
    /// Size as told by firmware; need not be the emulated memory. 0: the slot is empty.
    pub size_mib: u32,
    /// Speed the module is made for, in MT/s.
    #[serde(default)]
    pub rated_mt_s: u16,
    /// Speed it runs at, in MT/s.
    #[serde(default)]
    pub configured_mt_s: u16,
    /// Maker.
    #[serde(default)]
    pub manufacturer: String,
    /// The maker's number for it.
    #[serde(default)]
    pub part_number: String,
}

impl Machine {
    /// Number of CPUs.
    pub(crate) fn n_cpus(&self) -> u32 {
        self.cpus.sockets * self.cpus.cores * self.cpus.threads
    }

    /// Who executes instructions, and by which clock: words for QEMU.
    pub(super) fn accelerator(&self) -> Vec<String> {
        match self.instruction_shift {
            Some(shift) => ["-accel", "tcg", "-icount"]
                .map(String::from)
                .into_iter()
                .chain([format!("shift={shift},sleep=off")])
                .collect(),
            None => ["-accel", "tcg,thread=multi"].map(String::from).to_vec(),
        }
    }

    /// Rules that hold for every architecture.
    pub(super) fn check(&self) -> Result<()> {
        let Cpus { sockets, cores, threads } = self.cpus;
        if [sockets, cores, threads].contains(&0) || u64::from(sockets) * u64::from(cores) * u64::from(threads) > 255 {
            bail!("cpus: {sockets} x {cores} x {threads} CPUs; give 1 to 255 in all");
        }
        if self.instruction_shift.is_some_and(|shift| shift > 10) {
            bail!("instruction_shift: QEMU takes 0 (1 ns an instruction) to 10 (1 us)");
        }
        if self.memory_mib < 256 {
            bail!("memory_mib: {} is too little for kernel and initramfs; give 256 or more", self.memory_mib);
        }
        for pair in self.idle.windows(2) {
            if pair[1].exit_latency_us < pair[0].exit_latency_us {
                bail!("idle: {} is listed after the slower {}; list the shallowest first", pair[1].name, pair[0].name);
            }
        }
        for pair in self.pstate.windows(2) {
            if pair[1].mhz >= pair[0].mhz {
                bail!("pstate: {} MHz is listed after {} MHz; list the fastest first", pair[1].mhz, pair[0].mhz);
            }
        }
        self.check_nodes()
    }

    fn check_nodes(&self) -> Result<()> {
        if self.numa.is_empty() {
            return Ok(());
        }
        let mut seen: Vec<u32> = Vec::new();
        for (number, node) in self.numa.iter().enumerate() {
            if node.distances.len() != self.numa.len() || node.distances[number] != 10 {
                bail!(
                    "numa: node {number} gives distances {:?}; give one per node ({}), 10 to itself",
                    node.distances,
                    self.numa.len()
                );
            }
            seen.extend(node.cpus()?.iter());
        }
        seen.sort_unstable();
        if seen != (0..self.n_cpus()).collect::<Vec<_>>() {
            bail!("numa: the nodes hold CPUs {seen:?}; each of 0-{} belongs to exactly one", self.n_cpus() - 1);
        }
        let sum_mib: u32 = self.numa.iter().map(|node| node.memory_mib).sum();
        if sum_mib != self.memory_mib {
            bail!("numa: the nodes hold {sum_mib} MiB, memory_mib says {}; make them equal", self.memory_mib);
        }
        Ok(())
    }
}

impl Node {
    pub(crate) fn cpus(&self) -> Result<CpuSet> {
        CpuSet::parse(&self.cpus)
            .map_err(|error| anyhow::anyhow!("numa: cpus {:?}: {error}; write a list like 0-3,8", self.cpus))
    }
}

impl Default for Cpus {
    fn default() -> Self {
        Self { sockets: 1, cores: 2, threads: 1 }
    }
}

fn one() -> u32 {
    1
}

fn default_memory_mib() -> u32 {
    1024
}

fn default_kernel() -> String {
    "6.1".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "summary = 'x'\narch = 'x86_64'\n";

    fn refusal(text: &str) -> String {
        format!("{:#}", Machine::parse("m", &format!("{HEAD}{text}")).unwrap_err())
    }

    #[test]
    fn unknown_keys_are_refused_by_name() {
        assert!(refusal("memory_gib = 4").contains("memory_gib"));
        assert!(refusal("[[idle]]\nname = 'C1'\nexit_latency_us = 1\nresidency = 2").contains("residency"));
    }

    #[test]
    fn contradictions_are_refused() {
        assert!(refusal("[cpus]\nsockets = 0").contains("cpus: 0 x"));
        let node =
            |cpus: &str, distances: &str| format!("[[numa]]\ncpus='{cpus}'\nmemory_mib=512\ndistances={distances}\n");
        assert!(refusal(&(node("0", "[10,21]") + &node("0", "[21,10]"))).contains("exactly one"));
        assert!(refusal(&(node("0", "[10]") + &node("1", "[21,10]"))).contains("one per node (2)"));
        assert!(
            refusal("[[pstate]]\nmhz=800\nmw=1\nlatency_us=1\n[[pstate]]\nmhz=900\nmw=1\nlatency_us=1")
                .contains("fastest")
        );
    }

    #[test]
    fn every_machine_of_the_repository_is_right() {
        let folder = crate::repository().join("testbed/machines");
        for entry in std::fs::read_dir(folder).unwrap() {
            let machine = Machine::read(&entry.unwrap().path()).unwrap();
            assert!(!machine.summary.is_empty());
        }
    }
}
