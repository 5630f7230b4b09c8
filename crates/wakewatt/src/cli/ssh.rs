//! Machines that are reached by ssh: which, how, and with which program there.

use clap::Args;
use std::path::PathBuf;

/// Machines that are reached by ssh.
#[derive(Debug, Default, Args)]
pub struct SshArgs {
    /// Reach nodes by ssh: a file with a host a line (web-01 group=web), or groups in brackets as an inventory has them. User, port and
    /// key are those of ~/.ssh/config; nothing is ever asked
    #[arg(long, value_name = "HOSTS")]
    pub ssh: Option<String>,
    /// A configuration for ssh instead of ~/.ssh/config
    #[arg(long, value_name = "FILE", requires = "ssh")]
    pub ssh_config: Option<PathBuf>,
    /// Become root on the nodes by sudo -n
    #[arg(long, requires = "ssh")]
    pub sudo: bool,
    /// Run this wakewatt on the nodes instead of a copy of this program, which goes to /var/tmp there and away at the end
    #[arg(long, value_name = "PATH", requires = "ssh", conflicts_with_all = ["copy", "keep_copy"])]
    pub remote_program: Option<String>,
    /// Copy this program instead of this very one: for nodes of another architecture
    #[arg(long, value_name = "FILE", requires = "ssh")]
    pub copy: Option<PathBuf>,
    /// Leave the copy on the nodes at the end
    #[arg(long, requires = "ssh")]
    pub keep_copy: bool,
}
