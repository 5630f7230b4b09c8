//! The command line of `fit`.

use clap::Args;
use std::path::PathBuf;

/// Arguments of `fit`.
#[derive(Debug, Args)]
pub struct FitArgs {
    /// Run files of one machine (--save of `load steps`, `load shop`, `measure idle`, or of an experiment with a load)
    #[arg(value_name = "RUN", required_unless_present = "check")]
    pub runs: Vec<PathBuf>,
    /// The setting to fit to: the name of an arm, or the title of a load run
    #[arg(long, value_name = "ARM", default_value = "found")]
    pub on: String,
    /// The setting to predict; what was measured under it takes no part in the fit and is shown beside
    #[arg(long, value_name = "ARM", default_value = "poll")]
    pub predict: String,
    /// What the setting fitted to is in the model, as in a server file: machine.idle.max_latency=2us; may be repeated
    #[arg(long, value_name = "FIELD=VALUE")]
    pub on_set: Vec<String>,
    /// What the predicted setting is in the model; may be repeated. An arm called `poll` is machine.idle.max_latency=0us
    #[arg(long, value_name = "FIELD=VALUE")]
    pub set: Vec<String>,
    /// Measures first: each idle state, then loads as found and without sleep in random order, all put back. Fits to one and predicts the other, both ways
    #[arg(long, conflicts_with_all = ["runs", "on", "predict", "on_set", "set"])]
    pub check: bool,
    /// Rounds of --check, each of both settings: the more, the less doubt. One takes two and a half minutes
    #[arg(long, value_name = "N", requires = "check", conflicts_with = "runs", default_value_t = wakewatt_lab::fit_runs::ROUNDS,
        value_parser = clap::value_parser!(u32).range(6..=60))]
    pub rounds: u32,
    /// Keep what was measured in this run file
    #[arg(long, value_name = "FILE", requires = "check", conflicts_with = "runs")]
    pub save: Option<PathBuf>,
    /// Write it as one HTML page: prediction and measurement side by side
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}
