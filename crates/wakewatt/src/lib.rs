//! The wakewatt binary as a library, so that tests and xtask can reach its parts: commands, views, schemas.

pub mod cli;
pub mod cmd;
mod commands;
pub mod exit;
pub mod features;
pub mod gone;
mod icmp_text;
mod importing;
pub mod interrupt;
mod meters;
pub mod output;
#[cfg(feature = "parquet")]
mod parquet_column;
pub mod progress;
mod quantity_table;
mod recording;
pub mod report;
pub mod saved;
mod sessions;
#[cfg(feature = "schema")]
pub mod schema;
mod telling;
mod trusted;
pub mod tui;
pub mod view;
mod watching;

use clap::Parser;
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the program with these arguments.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let cli = match cli::Cli::try_parse_from(&args) {
        Ok(cli) => cli,
        Err(error) => {
            let is_help = error.kind() == clap::error::ErrorKind::DisplayHelp;
            let help = is_help.then(|| cli::Cli::help(&args, output::width().min(100))).flatten();
            let error = help.unwrap_or(error);
            let own = if error.use_stderr() { exit::Code::Usage } else { exit::Code::Fine };
            return output::settled(output::usage(&error), own).into();
        }
    };
    output::allow_colour(cli.color.is_on());
    match cmd::dispatch(&cli) {
        Ok(end) => end.into(),
        Err(error) => {
            if output::is_reader_gone(&error) {
                return exit::Code::Fine.into();
            }
            if gone::is_closed_terminal(&error) {
                output::complain(&format!("{:#}", gone::error()));
                return exit::Code::Interrupted.into();
            }
            output::complain(&format!("{error:#}"));
            exit::code_of(&error).into()
        }
    }
}
