//! The command line of `replay`.

use clap::Args;
use std::path::PathBuf;
use wakewatt_core::units::parse_ns;
use wakewatt_models::kernel::Kernel;
use wakewatt_models::replay::Change;
use wakewatt_models::replay::slo::Objective;
use wakewatt_words::say;

/// Arguments of `replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// The recording, of `trace --record`
    #[arg(value_name = "FILE.wtrace")]
    pub file: PathBuf,
    /// Ask this otherwise than recorded; may be repeated: governor=NAME, kernel=VERSION, max-latency=TIME, max-state=INDEX,
    /// disable=STATE, enable=STATE, hz=NUMBER, guest-halt-poll=TIME, table=NAME:LATENCY/RESIDENCY,...
    #[arg(long, value_name = "KEY=VALUE", value_parser = Change::parse)]
    pub set: Vec<Change>,
    /// The idle states of this recorded host (its first CPU's) instead of the recording's
    #[arg(long, value_name = "FILE.host")]
    pub table: Option<PathBuf>,
    /// What the recording does not say, or says wrongly, of the machine it was made on: the same keys
    #[arg(long, value_name = "KEY=VALUE", value_parser = Change::parse)]
    pub recorded: Vec<Change>,
    /// What leaving idle states was measured to cost, from a run of measure idle --save, before what drivers claim
    #[arg(long, value_name = "RUN")]
    pub measured: Option<PathBuf>,
    /// Every latency limit that means something there: latency against energy, and the knee
    #[arg(long, group = "question")]
    pub sweep: bool,
    /// The largest latency limit that keeps this objective: "p99 < 5ms over 40 hops", "... over 8 hops + 40 parallel hops"
    #[arg(long, value_name = "OBJECTIVE", value_parser = Objective::parse, group = "question")]
    pub slo: Option<Objective>,
    /// Share of hops that find a sleeping CPU; without it the share of time that CPUs were idle
    #[arg(long, value_name = "PERCENT", value_parser = share, requires = "slo")]
    pub sleepers: Option<f64>,
    /// What a hop costs besides leaving an idle state
    #[arg(long, value_name = "TIME", value_parser = parse_ns, requires = "slo", default_value = "0ns")]
    pub hop_cost: u64,
    /// What an upgrade to this kernel will change, with the idle table as it is
    #[arg(long, value_name = "VERSION", value_parser = kernel, group = "question")]
    pub upgrade: Option<Kernel>,
    /// The kernel to upgrade from; without it the recorded one
    #[arg(long, value_name = "VERSION", value_parser = kernel, requires = "upgrade")]
    pub from: Option<Kernel>,
    /// Also every CPU
    #[arg(long, conflicts_with_all = ["sweep", "slo"])]
    pub by_cpu: bool,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
    /// One HTML page, with charts and every latency limit
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// A run file, for report and compare
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// A table: a row for each CPU, setting and idle state
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// The same table as Parquet
    #[arg(long, value_name = "FILE")]
    pub parquet: Option<PathBuf>,
}

/// `40%`, `12.5 %`.
fn share(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%').ok_or_else(|| say!("`{text}`: write it as a percentage, 40%"))?;
    let percent: f64 = number.trim().parse().map_err(|_| say!("`{text}` is no percentage"))?;
    if (0.0..=100.0).contains(&percent) { Ok(percent / 100.0) } else { Err(say!("{text}: from 0% to 100%")) }
}

fn kernel(text: &str) -> Result<Kernel, String> {
    Kernel::parse(text).map_err(|e| e.to_string())
}
