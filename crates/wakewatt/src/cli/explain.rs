//! Options of `explain`.

use super::From;
use clap::Args;

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// A term (C6, PC6, G0/S0/Cx), an idle state of this machine, a rule or a setting; in any case of letters
    #[arg(value_name = "TERM", required_unless_present = "list")]
    pub term: Option<String>,
    /// Every word there is an explanation of here
    #[arg(long, conflicts_with = "term")]
    pub list: bool,
    #[command(flatten)]
    pub from: From,
    /// One JSON document
    #[arg(long, conflicts_with = "list")]
    pub json: bool,
}
