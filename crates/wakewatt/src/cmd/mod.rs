//! One file per command; this one opens the source they share and hands over.

pub mod agent;
pub mod bios;
pub mod capture;
pub mod carried;
pub mod compare;
pub mod doctor;
pub mod experiment;
pub mod explain;
pub mod fit;
pub mod fleet;
pub mod hold;
pub mod import;
pub mod inspect;
pub mod load;
pub mod measure;
pub mod recover;
pub mod replay;
pub mod report;
pub mod respond;
pub mod run;
pub mod simulate;
pub mod trace;
pub mod tune;
pub mod watch;

use crate::cli::from::Machine;
use crate::cli::{Cli, Command, From};
use crate::exit::End;
use crate::importing;
use crate::output::{self, Outlet};
use crate::report::modelled::ModelledReport;
use anyhow::{Context, Result};
use std::path::Path;
use std::time::SystemTime;
use wakewatt_core::source::Source;
use wakewatt_host::{live::Live, recorded};

/// Runs the command.
pub fn dispatch(cli: &Cli) -> Result<End> {
    let code = match &cli.command {
        Command::Doctor(args) => doctor::run(args, cli.color),
        Command::Explain(args) => explain::run(args, cli.color),
        Command::Import(args) => import::run(args, cli.color),
        Command::Inspect(args) => inspect::run(args, cli.color),
        Command::Capture(args) => capture::run(args),
        Command::Compare(args) => compare::run(args, cli.color),
        Command::Replay(args) => replay::run(args),
        Command::Fit(args) => fit::run(args),
        Command::Fleet(args) => fleet::run(args, cli.color),
        Command::Report(args) => report::run(args, cli.color),
        Command::Simulate(args) => simulate::run(args),
        Command::Respond(args) => respond::run(args),
        Command::Agent(args) => agent::run(args),
        Command::Watch(args) => watch::run(args, cli.color),
        Command::Experiment(args) => experiment::run(args, cli.color),
        Command::Recover(args) => recover::run(args),
        Command::Guard(args) => recover::guard(args),
        Command::Carried(args) => carried::run(args),
        Command::Hold(args) => hold::run(args),
        Command::LoadWorker => load::worker(),
        Command::MemoryWorker => measure::memory_worker(),
        Command::ShopServer => load::serve_for_parent(),
        Command::Tune(args) => tune::run(args, cli.color),
        Command::Bios(args) => bios::run(args, cli.color),
        Command::Measure(args) => return measure::run(args),
        Command::Trace(args) => return trace::run(args, cli.color),
        Command::Run(args) => return run::run(args),
        Command::Load(args) => return load::run(args),
    };
    code.map(End::Own)
}

/// The source the user named: this machine, a `.host` file, a tree, texts of other tools.
pub fn open(from: &From) -> Result<Box<dyn Source>> {
    Ok(match from.machine() {
        Machine::Here => Box::new(Live::this_machine()),
        Machine::Recorded(file) => Box::new(recorded::open(file)?),
        Machine::Tree(folder) => Box::new(Live::sysroot(folder)?),
        Machine::Texts { files, host } => Box::new(importing::read(files, host)?.facts.tree),
    })
}

/// A host named by path alone: a folder is a tree, a file a recording, `live` this machine.
pub fn open_path(path: &Path) -> Result<Box<dyn Source>> {
    if path == Path::new("live") {
        return Ok(Box::new(Live::this_machine()));
    }
    if path.is_dir() { Ok(Box::new(Live::sysroot(path)?)) } else { Ok(Box::new(recorded::open(path)?)) }
}

/// The page of a model, where it was asked for; a remark says where it went.
fn write_page(outlet: &Outlet, report: &ModelledReport, title: &str) -> Result<()> {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    outlet.write(&report.to_html(title, &now).context("the HTML page")?)?;
    let path = outlet.path().display();
    output::remark(&wakewatt_words::spoken(|| wakewatt_words::say!("Report: {path}")));
    Ok(())
}
