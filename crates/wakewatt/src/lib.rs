//! The wakewatt binary as a library, so that tests and xtask can reach its parts: commands, views, schemas.

pub mod cli;
pub mod cmd;
pub mod exit;
pub mod gone;
pub mod interrupt;
pub mod output;
mod parquet_column;
pub mod pick;
pub mod progress;
pub mod report;
pub mod schema;
pub mod tui;
pub mod view;

use clap::Parser;
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the program with these arguments.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match cli::Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { exit::Code::Usage.into() } else { exit::Code::Fine.into() };
        }
    };
    match cmd::dispatch(&cli) {
        Ok(end) => end.into(),
        Err(error) => {
            if error
                .chain()
                .any(|c| c.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe))
            {
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
