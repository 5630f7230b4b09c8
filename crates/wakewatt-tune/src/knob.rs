//! What a knob is: something the kernel lets us set, with all that must be known before anyone turns it.
//!
//! A [`Knob`] lists its [`Site`]s on a host: the places where it can be turned, each with the CPUs it reaches, the value
//! there now and the values the kernel takes there. It reads through a `Source` only, so a plan can be made for a
//! recorded host too; writing is the engine's work. Most knobs are one file in sysfs per CPU, policy or device and need
//! no more than [`About`] and `sites`; what a user may say, and which text that becomes, follows from [`Valid`].
//!
//! Paths are plain files, or have a scheme that `wakewatt_host::sink` knows: `msr:0xADDRESS@CPU/HIGH:LOW` (bits of a
//! register), `ethtool:DEVICE/NAME`, `hold:cpu_dma_latency` (a process that holds the limit), `choice:FILE` (an attribute
//! that shows its choices, `[chosen] other`), `partition:FOLDER` (a cgroup that takes CPUs away from everybody else),
//! `file:PATH` (a whole regular file).

pub use crate::site::{Coded, Site, Valid, text};
use crate::then::Then;
use crate::words;
use serde::Serialize;
use std::cell::OnceCell;
use wakewatt_core::budget;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::source::Source;
use wakewatt_words::{say, told};

/// When a knob is turned: from first to last. What lies later may depend on what lies earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// CPUs and SMT siblings on or off: files come and go with them.
    Online,
    /// The frequency driver's mode, which resets every policy.
    Driver,
    /// The frequency governor, which may reset limits and refuses preferences.
    Governor,
    /// Its tunables, which exist only under it.
    Tunables,
    /// Turbo, which changes what the limits mean.
    Boost,
    /// Lowest and highest frequency.
    Limits,
    /// Energy-performance preference, refused under some governors.
    Preference,
    /// Energy-performance bias (EPB).
    Bias,
    /// Limits of the uncore frequency.
    Uncore,
    /// Power limits (RAPL).
    Power,
    /// Idle states and their governor.
    Idle,
    /// Latency limits (PM QoS).
    Latency,
    /// Links, disks, network cards and interrupts.
    Devices,
    /// Where tasks run and memory lies.
    Placement,
    /// Files that act at the next boot.
    Boot,
}

impl Stage {
    /// May the old value still be read for a moment after a write? The kernel hands frequency limits to a worker
    /// (drivers/cpufreq/cpufreq.c, freq QoS notifiers), which on a busy machine runs later than the next read.
    pub fn is_slow(self) -> bool {
        self == Stage::Limits
    }
    /// The order of undoing: backwards, but the frequency group forwards, because there too a later file only takes
    /// its old value under the old driver, governor and turbo setting (docs/knobs/README.md).
    pub fn undo_rank(self) -> u8 {
        match self {
            Stage::Boot => 0,
            Stage::Placement => 1,
            Stage::Devices => 2,
            Stage::Latency => 3,
            Stage::Idle => 4,
            Stage::Power => 5,
            Stage::Uncore => 6,
            Stage::Driver => 7,
            Stage::Governor => 8,
            Stage::Tunables => 9,
            Stage::Boost => 10,
            Stage::Limits => 11,
            Stage::Preference => 12,
            Stage::Bias => 13,
            Stage::Online => 14,
        }
    }
}

/// What one setting reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Acts on the whole machine.
    Machine,
    /// Acts on a package (socket).
    Package,
    /// A die or uncore domain.
    Die,
    /// A cpufreq policy: the CPUs that share a clock.
    Policy,
    /// A core with its SMT siblings.
    Core,
    /// Acts on one CPU.
    Cpu,
    /// Acts on a device.
    Device,
}

/// How far it can be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Reversible {
    /// Writing the old value restores the old state.
    Exactly,
    /// It ends with the process that holds it, so even a crash takes it back.
    ByItself,
    /// Only a reboot restores everything.
    ByReboot,
}

/// What turning a knob costs, in either direction.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Price {
    /// On, or a larger number.
    pub up: &'static str,
    /// Off, or a smaller one.
    pub down: &'static str,
}

impl Price {
    /// The same in both directions.
    pub const fn same(text: &'static str) -> Price {
        Price { up: text, down: text }
    }
    /// Both directions, where no value is asked for yet.
    pub fn in_general(self) -> String {
        match self.up == self.down {
            true => told(self.up).into(),
            false => say!("on or higher: {up}; off or lower: {down}", up = told(self.up), down = told(self.down)),
        }
    }
}

/// What must be known about a knob.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct About {
    /// What the user types: `freq.governor`. Knobs with many settings carry the rest behind it: `idle.state.C6`.
    pub id: &'static str,
    /// In words.
    pub title: &'static str,
    /// Unit and form of a value.
    pub unit: &'static str,
    /// What one site's setting reaches.
    pub scope: Scope,
    /// What the register behind it reaches, where that is wider.
    pub io_scope: Scope,
    /// Its place in the order.
    pub stage: Stage,
    /// Can it be taken back?
    pub reversible: Reversible,
    /// What turning it costs: watts, headroom, other people's latency.
    pub price: Price,
    /// What can go wrong.
    pub risk: &'static str,
    /// What daemons call it (`holders::DAEMONS`), to find who else turns it. Empty: none known.
    pub overlaps: &'static [&'static str],
    /// Knobs whose values the kernel may move when this one is turned; they are noted and put back too.
    pub moves: &'static [&'static str],
    /// Where this is written: kernel document, SDM section.
    pub source: &'static str,
}

/// The host a knob looks at.
pub struct Host<'a> {
    /// Where files are read.
    pub source: &'a dyn Source,
    /// Facts that many knobs need: CPUs, topology, idle table, frequency policies, uncore, memory, power, holders.
    pub facts: Snapshot,
    c1_promoted: OnceCell<Option<String>>,
}

impl<'a> Host<'a> {
    pub fn read(source: &'a dyn Source) -> Host<'a> {
        const TOPICS: &[&str] =
            &["topology", "idle", "freq", "uncore", "power", "qos", "memory", "holders", "virt", "boot", "kernel"];
        Host { source, facts: Snapshot::read(source, |topic| TOPICS.contains(&topic)), c1_promoted: OnceCell::new() }
    }
    /// Where C1 is entered as C1E (MSR 0x1FC bit 1, rule.c1e-promotion), in words; none if nowhere or not readable. On a live
    /// machine reads one CPU per package, once, because reading wakes it.
    pub fn c1_promoted(&self) -> Option<&str> {
        let ask = || {
            let facts = &self.facts;
            let is_intel = facts.topology.processor().is_some_and(|p| p.is_intel());
            let running: CpuSet = facts.cpus.running().filter(|_| is_intel).collect();
            let packages = facts.topology.packages();
            let first = |(_, cpus): &(_, CpuSet)| cpus.and(&running).first();
            let sample: CpuSet = packages.iter().filter_map(first).collect();
            let asked = if self.source.is_live() && !sample.is_empty() { &sample } else { &running };
            let bit = |cpu| self.source.msr(cpu, 0x1fc).ok().map(|register| (cpu, register & 2 != 0));
            let bits: Vec<(u32, bool)> = asked.iter().filter_map(bit).collect();
            let set: CpuSet = bits.iter().filter(|(_, is_set)| *is_set).map(|(cpu, _)| *cpu).collect();
            let read: CpuSet = bits.iter().map(|(cpu, _)| *cpu).collect();
            budget::promoted_on(facts, &set, &read)
        };
        self.c1_promoted.get_or_init(ask).as_deref()
    }
    /// The CPUs that run now.
    pub fn online(&self) -> CpuSet {
        let mut all = CpuSet::new();
        self.facts.cpus.running().for_each(|cpu| all.insert(cpu));
        all
    }
    /// The text of a file, where there is one.
    pub fn text(&self, path: &str) -> Option<String> {
        text(self.source, path).ok()
    }
    /// Is the file there?
    pub fn has(&self, path: &str) -> bool {
        self.source.read(path).is_ok()
    }
}

/// How a value that was read back compares with the one that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The same.
    Exactly,
    /// Another text that means what was asked, or a legal clamp; in words.
    Legally(String),
    /// Something else.
    Not,
}

/// Something the kernel lets us set.
pub trait Knob: Sync {
    /// What must be known about it.
    fn about(&self) -> &'static About;

    /// Where it can be turned on this host, in a stable order; or why nowhere.
    fn sites(&self, host: &Host<'_>) -> Result<Vec<Site>, String>;

    /// The text to write for the user's word; an error says what would be taken.
    fn encode(&self, _host: &Host<'_>, site: &Site, word: &str) -> Result<String, String> {
        words::encode(site, word)
    }

    /// The text in the file, as people say it.
    fn decode(&self, site: &Site, text: &str) -> String {
        words::decode(site, text)
    }

    /// Why the driver would refuse this text, or make another of it, on a machine as it will be when the rest of the plan
    /// is made; none where it takes it.
    fn refusal(&self, _host: &Host<'_>, _then: &Then<'_>, _site: &Site, _to: &str) -> Option<String> {
        None
    }

    /// Where a value of this setting stands between off and on, or low and high: by it a price is chosen. None where values
    /// have no order.
    fn rank(&self, _name: &str, text: &str, shown: &str) -> Option<u64> {
        match shown {
            "on" => Some(1),
            "off" => Some(0),
            _ => text.parse().ok(),
        }
    }

    /// Did the kernel keep what was written?
    fn kept(&self, requested: &str, read_back: &str) -> Kept {
        if requested == read_back { Kept::Exactly } else { Kept::Not }
    }

    /// May the value now be our own doing, though it is not what was written? What undo may then put back.
    fn is_ours(&self, ours: &str, now: &str) -> bool {
        matches!(self.kept(ours, now), Kept::Legally(_))
    }

    /// The setting that must be made first so that a setting of this name appears: knob and value.
    fn needs(&self, _name: &str) -> Option<(&'static str, String)> {
        None
    }

    /// What is in force, where that can differ from what the file says: clamps, aggregated limits.
    fn effective(&self, _host: &Host<'_>, _site: &Site) -> Option<String> {
        None
    }
}
