//! The command line of `tune`.

use super::From;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::units::{LatencyLimit, parse_ns};
use wakewatt_tune::request::{Place, Request};
use wakewatt_words::say;

/// Arguments of `tune`.
#[derive(Debug, Args)]
pub struct TuneArgs {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// The verbs, in the order they are used.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List what can be set here: value now, values it takes
    #[command(before_help = "Example:\n  wakewatt tune knobs\n  wakewatt tune knobs freq.governor --host db7.host")]
    Knobs(KnobsArgs),
    /// Show what would change, why, at what price and risk; changes nothing
    #[command(
        before_help = "Example:\n  wakewatt tune plan --max-latency 50us\n  wakewatt tune plan latency                          a shipped profile\n  wakewatt tune plan --set freq.governor=performance --set idle.state.C6@cpus:0-7=off\n  wakewatt tune plan ./mine.toml --host db7.host"
    )]
    Plan(PlanArgs),
    /// Make the changes: journaled, read back, undone as a whole if one is refused
    #[command(
        before_help = "Example:\n  sudo wakewatt tune apply latency --confirm-within 60s\n  sudo wakewatt tune apply --max-latency 50us --guard './health-check'\n  sudo wakewatt tune apply k4-conservative --persist"
    )]
    Apply(ApplyArgs),
    /// Keep what `apply --confirm-within` made
    #[command(before_help = "Example:\n  sudo wakewatt tune confirm")]
    Confirm(WhichArgs),
    /// Show what was applied and whether it still holds
    #[command(before_help = "Example:\n  sudo wakewatt tune status")]
    Status(StatusArgs),
    /// Check every setting, also after a reboot and on CPUs that came online later; ends with 6 if one does not hold
    #[command(before_help = "Example:\n  sudo wakewatt tune verify")]
    Verify(StatusArgs),
    /// Put back what was there before
    #[command(before_help = "Example:\n  sudo wakewatt tune undo\n  sudo wakewatt tune undo tune-2 --force")]
    Undo(UndoArgs),
    /// Print the systemd units that keep settings across boots, or write them
    #[command(before_help = "Example:\n  wakewatt tune units")]
    Units(UnitsArgs),
}

/// Arguments of `tune knobs`.
#[derive(Debug, Args)]
pub struct KnobsArgs {
    /// Only these, by id or its beginning
    #[arg(value_name = "KNOB")]
    pub ids: Vec<String>,
    #[command(flatten)]
    pub from: From,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// What is wanted.
#[derive(Debug, Default, Args)]
pub struct SettingsWanted {
    /// A shipped profile (latency, throughput, efficiency, k4-…) or a TOML file
    #[arg(value_name = "PROFILE")]
    pub profile: Option<String>,
    /// One setting; may be repeated. PLACE is cpus:0-3, package:0, node:1, cgroup:PATH or a name such as eth0
    #[arg(long = "set", value_name = "KNOB[@PLACE]=VALUE", value_parser = Request::parse)]
    pub set: Vec<Request>,
    /// The latency budget: only idle states that can be left in this time (50us; none; poll)
    #[arg(long, value_name = "TIME", value_parser = LatencyLimit::parse)]
    pub max_latency: Option<LatencyLimit>,
    /// Act on these CPUs only
    #[arg(long, value_name = "LIST", value_parser = CpuSet::parse, group = "scope")]
    pub cpus: Option<CpuSet>,
    /// Act on the CPUs of this package only
    #[arg(long, value_name = "N", group = "scope")]
    pub package: Option<u32>,
    /// Act on the CPUs of this NUMA node only
    #[arg(long, value_name = "N", group = "scope")]
    pub node: Option<u32>,
    /// Act on the CPUs that this cgroup may use only
    #[arg(long, value_name = "CGROUP", group = "scope", value_parser = cgroup)]
    pub cgroup: Option<Place>,
    /// A kernel parameter for the next boots; may be repeated
    #[arg(long = "boot-arg", value_name = "KEY[=VALUE]")]
    pub boot_arg: Vec<String>,
    /// Take kernel parameters too that wakewatt does not know; such a word can hand the machine to somebody else
    #[arg(long)]
    pub any_boot_argument: bool,
}

/// A cgroup by its path below /sys/fs/cgroup.
fn cgroup(path: &str) -> Result<Place, String> {
    Place::parse(&format!("cgroup:{path}"))
}

impl SettingsWanted {
    /// The scope the options name.
    pub fn scope(&self) -> Place {
        let cgroup = self.cgroup.clone();
        let numbered = self.package.map(Place::Package).or(self.node.map(Place::Node));
        self.cpus.clone().map(Place::Cpus).or(numbered).or(cgroup).unwrap_or_default()
    }
}

/// Arguments of `tune plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    #[command(flatten)]
    pub wanted: SettingsWanted,
    #[command(flatten)]
    pub from: From,
    /// Also what a model expects of it, fitted to runs of this machine (as for `wakewatt fit`); may be repeated
    #[arg(long, value_name = "RUN")]
    pub predict: Vec<PathBuf>,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `tune apply`.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    #[command(flatten)]
    pub wanted: SettingsWanted,
    /// Leave out what is refused instead of taking everything back
    #[arg(long)]
    pub keep_going: bool,
    /// Undo by itself after this time unless `wakewatt tune confirm` is called
    #[arg(long, value_name = "TIME", value_parser = parse_ns)]
    pub confirm_within: Option<u64>,
    /// Run this shell command before, and repeatedly after; undo when it fails after
    #[arg(long, value_name = "COMMAND")]
    pub guard: Option<String>,
    /// Measure wake-ups before and after; undo when their median is longer after, beyond doubt
    #[arg(long)]
    pub guard_wakeup: bool,
    /// How long --guard watches
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_ns, requires = "guard")]
    pub guard_for: u64,
    /// Also set it again at every boot, through a systemd unit
    #[arg(long)]
    pub persist: bool,
    /// With --boot-arg: boot the new line once only, where the boot loader can
    #[arg(long, requires = "boot_arg")]
    pub try_once: bool,
    /// What it is for, in a few words; `tune status` shows them behind its purpose
    #[arg(long, value_name = "TEXT", value_parser = note)]
    pub note: Option<String>,
    /// Called by the unit at boot: what earlier boots set is gone and is forgotten first.
    #[arg(long, hide = true)]
    pub at_boot: bool,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

fn note(text: &str) -> Result<String, String> {
    let is_good = !text.is_empty() && text.len() <= 200 && !text.chars().any(|c| c.is_control() || "[]".contains(c));
    if is_good { Ok(text.into()) } else { Err(say!("one line of at most 200 bytes, without brackets")) }
}

/// Which transaction.
#[derive(Debug, Args)]
pub struct WhichArgs {
    /// Its name, as `tune status` shows it; the latest when not given
    #[arg(value_name = "ID")]
    pub id: Option<String>,
}

/// Arguments of `tune status` and `tune verify`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    #[command(flatten)]
    pub which: WhichArgs,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `tune undo`.
#[derive(Debug, Args)]
pub struct UndoArgs {
    #[command(flatten)]
    pub which: WhichArgs,
    /// Every transaction, the latest first
    #[arg(long, conflicts_with = "id")]
    pub all: bool,
    /// Also overwrite what somebody else has set since
    #[arg(long)]
    pub force: bool,
}

/// Arguments of `tune units`.
#[derive(Debug, Args)]
pub struct UnitsArgs {
    /// Write them below this folder instead of printing them (/ for this machine)
    #[arg(long, value_name = "ROOT")]
    pub write: Option<PathBuf>,
}

/// Arguments of the hidden `hold`.
#[derive(Debug, Args)]
pub struct HoldArgs {
    /// The limit
    #[arg(value_parser = LatencyLimit::parse)]
    pub limit: LatencyLimit,
}
