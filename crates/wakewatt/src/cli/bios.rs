//! The command line of `bios`.

use clap::{ArgGroup, Args, Subcommand};
use std::path::PathBuf;
use wakewatt_bios::wish::Wish;

/// Arguments of `bios`.
#[derive(Debug, Args)]
pub struct BiosArgs {
    /// What to do.
    #[command(subcommand)]
    pub verb: BiosVerb,
}

/// The verbs, in the order they are used.
#[derive(Debug, Subcommand)]
pub enum BiosVerb {
    /// Show what the BIOS says about power: now, for the next boot, and what it takes
    #[command(
        before_help = "Example:\n  wakewatt bios show --redfish https://bmc.example --redfish-user operator --redfish-password-file pw\n  wakewatt bios show --from r750/                a recorded Redfish tree"
    )]
    Show(BiosShowArgs),
    /// Show what would be staged, in which order, what unlocks it, and what is refused; changes nothing
    #[command(
        before_help = "Example:\n  wakewatt bios plan bios.c-states=off bios.uncore=max --from r750/\n  wakewatt bios plan attr:ProcCStates=Disabled --redfish https://bmc.example --redfish-user operator"
    )]
    Plan(BiosPlanArgs),
    /// Stage the changes for the next boot: old values journaled first; reboots only if told to
    #[command(
        before_help = "Example:\n  sudo wakewatt bios apply bios.profile=performance --redfish https://bmc.example --redfish-user operator\n  wakewatt bios apply bios.smt=off --journals ~/bios --redfish https://bmc.example --redfish-user operator --reboot"
    )]
    Apply(BiosApplyArgs),
    /// Compare after the boot: what was staged, what the BIOS says, what Linux sees; ends with 6 if something does not hold
    #[command(
        before_help = "Example:\n  sudo wakewatt bios verify --here --redfish https://bmc.example --redfish-user operator\n  wakewatt bios verify --from r750/ --host r750.host"
    )]
    Verify(BiosVerifyArgs),
    /// Cancel what still waits and stage the old values again
    #[command(
        before_help = "Example:\n  sudo wakewatt bios undo bios-3 --redfish https://bmc.example --redfish-user operator"
    )]
    Undo(BiosUndoArgs),
}

/// A BMC to talk to.
#[derive(Debug, Args)]
pub struct BmcArgs {
    /// The BMC, such as `https://bmc.example`
    #[arg(long, value_name = "URL")]
    pub redfish: Option<String>,
    /// Its user; the password comes from --redfish-password-file or WAKEWATT_REDFISH_PASSWORD
    #[arg(long, value_name = "NAME", requires = "redfish")]
    pub redfish_user: Option<String>,
    /// A file of your own (mode 600) whose first line is the password
    #[arg(long, value_name = "FILE", requires = "redfish_user")]
    pub redfish_password_file: Option<PathBuf>,
    /// Send that password to an http:// URL too: whoever is on the way can read it
    #[arg(long, requires = "redfish_user")]
    pub plain_http_password: bool,
    /// Believe the authorities in this PEM file instead of the distribution's
    #[arg(long, value_name = "FILE", requires = "redfish")]
    pub ca: Option<PathBuf>,
    /// Believe any certificate: whoever stands between can read the password
    #[arg(long, conflicts_with = "ca", requires = "redfish")]
    pub insecure: bool,
    /// Which system of the BMC, by its id; the first with BIOS settings where it is not said
    #[arg(long, value_name = "ID")]
    pub system: Option<String>,
}

/// Where a BIOS is read from.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("service").required(true).args(["redfish", "from"]))]
pub struct ServiceArgs {
    #[command(flatten)]
    pub bmc: BmcArgs,
    /// Read a recorded Redfish tree (a mockup in the DMTF's layout) instead of a BMC
    #[arg(long, value_name = "DIR")]
    pub from: Option<PathBuf>,
}

/// Arguments of `bios show`.
#[derive(Debug, Args)]
pub struct BiosShowArgs {
    #[command(flatten)]
    pub service: ServiceArgs,
    /// Also every attribute of the registry
    #[arg(long)]
    pub all: bool,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `bios plan`.
#[derive(Debug, Args)]
pub struct BiosPlanArgs {
    /// bios.THING=WORD as `bios show` lists them, or attr:NAME=VALUE as the BMC spells it
    #[arg(value_name = "WISH", required = true, value_parser = Wish::parse)]
    pub wishes: Vec<Wish>,
    #[command(flatten)]
    pub service: ServiceArgs,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// Where old values are kept.
#[derive(Debug, Args)]
pub struct JournalArgs {
    /// The folder of journals with the old values; /var/lib/wakewatt/bios where it is not said
    #[arg(long, value_name = "DIR")]
    pub journals: Option<PathBuf>,
}

/// Arguments of `bios apply`.
#[derive(Debug, Args)]
pub struct BiosApplyArgs {
    /// bios.THING=WORD as `bios show` lists them, or attr:NAME=VALUE as the BMC spells it
    #[arg(value_name = "WISH", required = true, value_parser = Wish::parse)]
    pub wishes: Vec<Wish>,
    #[command(flatten)]
    pub bmc: BmcArgs,
    #[command(flatten)]
    pub journal: JournalArgs,
    /// Leave out what is refused instead of staging nothing
    #[arg(long)]
    pub keep_going: bool,
    /// Stage even though no registry says which names and values there are
    #[arg(long)]
    pub unvalidated: bool,
    /// Stage even though changes of somebody else wait for the same boot
    #[arg(long)]
    pub with_waiting: bool,
    /// Restart the machine afterwards, gently where the BMC can, or in the KIND named (ForceRestart)
    #[arg(long, value_name = "KIND", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub reboot: Option<String>,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `bios verify`.
#[derive(Debug, Args)]
pub struct BiosVerifyArgs {
    /// The journal to compare with; the last one of this BMC where it is not said
    #[arg(value_name = "ID")]
    pub id: Option<String>,
    #[command(flatten)]
    pub service: ServiceArgs,
    #[command(flatten)]
    pub journal: JournalArgs,
    /// Compare with the kernel of this machine, whose BMC it is
    #[arg(long, group = "kernel")]
    pub here: bool,
    /// Compare with a recorded host of the same machine
    #[arg(long, value_name = "FILE", group = "kernel")]
    pub host: Option<PathBuf>,
    /// Compare with an unpacked tree that holds sys/ and proc/
    #[arg(long, value_name = "DIR", group = "kernel")]
    pub sysroot: Option<PathBuf>,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `bios undo`.
#[derive(Debug, Args)]
pub struct BiosUndoArgs {
    /// Which application; the last one of this BMC where it is not said
    #[arg(value_name = "ID")]
    pub id: Option<String>,
    #[command(flatten)]
    pub bmc: BmcArgs,
    #[command(flatten)]
    pub journal: JournalArgs,
    /// Also overwrite what somebody else has set since
    #[arg(long)]
    pub force: bool,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}
