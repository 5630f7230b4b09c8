//! Firmware that is reached through the nodes' BMCs: which, and as whom.

use clap::Args;
use std::path::PathBuf;

/// BMCs of nodes.
#[derive(Debug, Default, Args)]
pub struct BmcsArgs {
    /// Reach what the nodes' firmware holds (a plan with bios = [...], or NODE.bios.json) through their BMCs: a file with a node a line and
    /// its BMC's address (`web-01 bmc=https://web-01-bmc.example group=web`); user=, password-file= and system= may follow
    #[arg(long, value_name = "LIST", conflicts_with_all = ["ssh", "kubernetes"])]
    pub bmc: Option<String>,
    /// The BMCs' user; the password comes from --bmc-password-file or WAKEWATT_REDFISH_PASSWORD
    #[arg(long, value_name = "NAME", requires = "bmc")]
    pub bmc_user: Option<String>,
    /// A file of your own (mode 600) whose first line is the password of whoever has none in the list
    #[arg(long, value_name = "FILE", requires = "bmc")]
    pub bmc_password_file: Option<PathBuf>,
    /// Send passwords to http:// addresses too: whoever is on the way can read them
    #[arg(long, requires = "bmc")]
    pub bmc_plain_http_password: bool,
    /// Believe the authorities in this PEM file instead of the distribution's
    #[arg(long, value_name = "FILE", requires = "bmc")]
    pub bmc_ca: Option<PathBuf>,
    /// Believe any certificate of a BMC: whoever stands between can read the password
    #[arg(long, conflicts_with = "bmc_ca", requires = "bmc")]
    pub bmc_insecure: bool,
}
