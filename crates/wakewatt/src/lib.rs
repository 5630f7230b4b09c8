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

use clap::{CommandFactory as _, FromArgMatches as _};
use std::ffi::OsString;
use std::process::ExitCode;
use wakewatt_words::Language;

/// Runs the program with these arguments.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    wakewatt_words::want(cli::spoken::wanted(&args, |name| std::env::var(name).ok()));
    let definition = match wakewatt_words::wanted() {
        Language::English => cli::Cli::command(),
        _ => wakewatt_words::spoken(|| cli::spoken::translated(cli::Cli::command())),
    };
    let parsed = wakewatt_words::spoken(|| definition.try_get_matches_from(&args));
    let cli = match parsed.and_then(|found| cli::Cli::from_arg_matches(&found)) {
        Ok(cli) => cli,
        Err(error) => {
            // In Chinese lines are broken below, between characters.
            let is_help =
                error.kind() == clap::error::ErrorKind::DisplayHelp && wakewatt_words::wanted() == Language::English;
            let help = is_help.then(|| cli::Cli::help(&args, output::width().min(100))).flatten();
            let error = help.unwrap_or(error);
            let own = if error.use_stderr() { exit::Code::Usage } else { exit::Code::Fine };
            let fit = |text: &str| match wakewatt_words::wanted() {
                Language::English => text.to_string(),
                _ => wakewatt_words::spoken(|| cli::fitted::fitted(&error, text, output::width())),
            };
            return output::settled(output::usage(&error, fit), own).into();
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

/// Words that stand in constants and are looked up in another language while running, with where they stand.
pub fn spoken_tables() -> Vec<(&'static str, &'static str)> {
    let mut all = wakewatt_core::told::all();
    all.extend(report::spoken_tables());
    all.extend(tui::spoken().into_iter().map(|word| ("the screen of watch", word)));
    all.extend(wakewatt_core::facts::TOPICS.iter().map(|topic| ("topics of facts", topic.title)));
    let frame = cli::fitted::FRAME.iter().map(|words| ("crates/wakewatt/src/cli/fitted.rs", *words));
    let knobs = wakewatt_tune::knobs::KNOBS.iter().map(|knob| knob.about()).flat_map(|about| {
        let texts = [about.title, about.unit, about.price.up, about.price.down, about.risk]
            .into_iter()
            .chain(about.overlaps.iter().copied());
        texts.filter(|text| !text.is_empty()).map(|text| ("crates/wakewatt-tune/src/knobs", text))
    });
    let traps = wakewatt_tune::boot::parameters::PARAMETERS.iter().map(|parameter| parameter.trap);
    let traps = traps.filter(|trap| !trap.is_empty()).map(|trap| ("crates/wakewatt-tune/src/boot/parameters.rs", trap));
    let parts = ["doctor", "experiment", "disk experiment", "measure idle"];
    all.extend(frame.chain(knobs).chain(traps).chain(parts.map(|part| ("crates/wakewatt-lab/src/doctor", part))));
    all
}
