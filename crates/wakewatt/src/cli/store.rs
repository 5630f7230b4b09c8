//! How a Prometheus-compatible API is asked: token, authorities, patience.

use clap::Args;
use std::path::PathBuf;
use wakewatt_core::units::parse_ns;

/// How a store is asked.
#[derive(Debug, Args)]
pub struct StoreArgs {
    /// A file of your own (mode 600) whose first line is the token to show
    #[arg(long, value_name = "FILE", requires = "prometheus")]
    pub token_file: Option<PathBuf>,
    /// Believe the authorities in this PEM file instead of the distribution's
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Believe any certificate: whoever stands between can read the token
    #[arg(long, conflicts_with = "ca")]
    pub insecure: bool,
    /// Longest that one question may take
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_ns)]
    pub timeout: u64,
}
