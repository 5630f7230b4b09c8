//! The command line of `experiment`.

use super::From;
use super::meter::MeterArgs;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use wakewatt_core::units::parse_ns;

/// Arguments of `experiment`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct ExperimentArgs {
    /// The plan: a shipped one (`experiment list`) or a TOML file
    #[arg(value_name = "PLAN", required = true)]
    pub plan: Option<String>,
    /// Only show what would be written per arm, what is left out and why, and how long it takes
    #[arg(long, conflicts_with = "save")]
    pub dry_run: bool,
    /// Where the run is kept; ./wakewatt-runs/NAME-TIME when not given
    #[arg(long, value_name = "DIR")]
    pub run_dir: Option<PathBuf>,
    /// Refuse the whole plan where an arm or a workload cannot be had, instead of leaving it out
    #[arg(long)]
    pub strict: bool,
    /// Time for everything, instead of the plan's
    #[arg(long, value_name = "TIME", value_parser = parse_ns)]
    pub budget: Option<u64>,
    /// Seed of the randomised order; from the plan, or from the clock
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub show: ShowArgs,
    #[command(flatten)]
    pub meters: MeterArgs,
    #[command(flatten)]
    pub from: From,
    /// The program that the plan asks about (`observer`), as it runs on your servers
    #[arg(last = true, value_name = "AGENT")]
    pub agent: Vec<String>,
    /// Other things to do.
    #[command(subcommand)]
    pub verb: Option<ExperimentVerb>,
}

/// How the result is shown.
#[derive(Clone, Debug, Default, Args)]
pub struct ShowArgs {
    /// One JSON document
    #[arg(long)]
    pub json: bool,
    /// Keep facts and result in this run file, for report and compare
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Also an HTML page
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Other things to do.
#[derive(Debug, Subcommand)]
pub enum ExperimentVerb {
    /// List the shipped plans with their questions
    #[command(before_help = "Example:\n  wakewatt experiment list")]
    List,
    /// Go on with a run that was cut short, in the same random order
    #[command(before_help = "Example:\n  sudo wakewatt experiment resume wakewatt-runs/idle-2026-11-21T10-00-00Z")]
    Resume(Box<ResumeArgs>),
    /// Join runs of the same plan: what their sessions, boots and hosts say together of the machine
    #[command(
        before_help = "Example:\n  wakewatt experiment replicate monday.run tuesday.run friday.run -o together.html\n  wakewatt experiment replicate wakewatt-runs/idle-*\n  wakewatt experiment replicate db7=a.run db7=b.run db8=c.run db9=d.run   hosts named, because run files name none"
    )]
    Replicate(ReplicateArgs),
}

/// Arguments of `experiment replicate`.
#[derive(Debug, Args)]
pub struct ReplicateArgs {
    /// Run files of `experiment` or `doctor` (--save), or folders of `experiment` (--run-dir), of one plan; HOST=RUN where
    /// several hosts look alike
    #[arg(value_name = "RUN", num_args = 1.., required = true)]
    pub runs: Vec<String>,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
    /// Also an HTML page: every session with its rounds, and what they say together
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Arguments of `experiment resume`.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// The folder of the run
    #[arg(value_name = "DIR")]
    pub run_dir: PathBuf,
    #[command(flatten)]
    pub meters: MeterArgs,
    #[command(flatten)]
    pub show: ShowArgs,
}
