//! The command line of `load`.

use super::meter::MeterArgs;
use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::samples::experiment::Better;
use wakewatt_core::samples::load::Ask;
use wakewatt_core::units::parse_ns;
use wakewatt_words::say;

/// Arguments of `load`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct LoadArgs {
    /// A load of wakewatt's own.
    #[command(subcommand)]
    pub what: Option<Load>,
    #[command(flatten)]
    pub command: CommandArgs,
}

/// Loads of wakewatt's own.
#[derive(Debug, Subcommand)]
pub enum Load {
    /// Transactions at shares of what this machine can do: 100 %, 90 % … 10 %, active idle (in the manner of SPECpower_ssj2008)
    #[command(
        before_help = "Example:\n  wakewatt load steps                              20 minutes, 60 s recorded per level\n  wakewatt load steps --quick --levels 100,50,10,idle\n  wakewatt load steps --levels 800/s --interval 30s    a rate: nothing is calibrated\n  wakewatt load steps --levels 300/s --interval 10s --repeat 30 --save run   change settings meanwhile: report shows the step\n  sudo wakewatt load steps --spec-like --json > run.json"
    )]
    Steps(Box<StepsArgs>),
    /// An online shop at so many clients: requests/s, latency, CPU time per request, watts
    #[command(
        before_help = "Example:\n  wakewatt load shop                                500, 1000 and 2000 clients of a shop on this machine\n  wakewatt load shop --quick --clients 50,100       a first look\n  sudo wakewatt load shop --quick --clients 500 --repeat 20 --save run   change settings meanwhile: report shows\n  wakewatt load shop --listen 10.0.0.2:8080         only the shop, for clients on another host:\n  wakewatt load shop --url http://10.0.0.2:8080     there\n  wakewatt load shop --url http://127.0.0.1/ --mix pages.toml   a shop of your own",
        after_help = "A mix (--mix) is a TOML file. Pages are drawn by weight; in path and body {number:1-500} is drawn evenly,\n{popular:1-500} skewed, {word:a|b} one of them, {session} and {client} are numbers:\n\n  session_pages = 12\n\n  [[page]]\n  name = \"search\"\n  path = \"/search?q={word:lamp|chair}\"\n  weight = 15\n\n  [[page]]\n  name = \"buy\"\n  method = \"POST\"\n  path = \"/cart/{session}/buy\"\n  body = '{\"product\":{popular:1-5000}}'\n  content_type = \"application/json\"\n  after = \"search\"          # only once that was answered in this session\n  ends_session = true\n  weight = 2"
    )]
    Shop(Box<super::shop::ShopArgs>),
}

/// Arguments of `load steps`.
#[derive(Debug, Default, Args)]
pub struct StepsArgs {
    /// 10 s recorded per level: a first look, too short for figures to be quoted
    #[arg(long, conflicts_with_all = ["spec_like", "interval"])]
    pub quick: bool,
    /// 240 s recorded per level, 30 s of ramp before and after, 10 s between: SPECpower's lengths, more than an hour
    #[arg(long, conflicts_with = "interval")]
    pub spec_like: bool,
    /// Record so long per level, with an eighth of it as ramp before and after; 60s, with 10s, when not given
    #[arg(long, value_name = "TIME", value_parser = parse_interval)]
    pub interval: Option<u64>,
    /// Levels in order: percent of what was calibrated, idle, or N/s; 100,90 … 10,idle when not given
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_level)]
    pub levels: Vec<Ask>,
    /// The list of levels so often, one after the other: values over time, with a mark where settings were changed meanwhile
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// What a transaction takes at full speed, from 10us to 10s
    #[arg(long, value_name = "TIME", default_value = "500us", value_parser = parse_service)]
    pub service: u64,
    /// Units of work in a transaction, instead of finding out what takes --service: the same work as on another host or day
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub work: Option<u64>,
    /// The CPUs that work, one thread each; all this process may use when not given
    #[arg(long, value_name = "CPUS", value_parser = CpuSet::parse)]
    pub cpus: Option<CpuSet>,
    /// Seed of the arrivals; from the clock when not given. The same seed is the same load
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub meters: MeterArgs,
    /// Keep facts and load in this run file, for report and compare
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `load -- CMD`.
#[derive(Debug, Default, Args)]
pub struct CommandArgs {
    /// Run the command so often; with --save, report shows the runs over time and where settings were changed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// What it achieved: the number in the group of this expression, last match in its standard output
    #[arg(long, value_name = "REGEX", conflicts_with = "metric_json")]
    pub metric: Option<String>,
    /// What it achieved: the number at this place of the JSON it prints, such as /jobs/0/read/iops
    #[arg(long, value_name = "POINTER")]
    pub metric_json: Option<String>,
    /// Which way that number is better; per watt it is given only where higher is, which it is when not given
    #[arg(long, value_name = "WAY", value_parser = ["lower", "higher"])]
    pub metric_better: Option<String>,
    #[command(flatten)]
    pub meters: MeterArgs,
    /// Keep facts and load in this run file, for report and compare
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// One JSON document; the command's own output then goes to standard error
    #[arg(long)]
    pub json: bool,
    /// The command, after --; its exit code is passed on
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

impl CommandArgs {
    /// Which way the figure is better.
    pub fn better(&self) -> Better {
        if self.metric_better.as_deref() == Some("lower") { Better::Lower } else { Better::Higher }
    }
}

/// The levels of SPECpower_ssj2008.
pub fn standard_levels() -> Vec<Ask> {
    (1..=10).rev().map(|tenth| Ask::Share(f64::from(tenth) / 10.0)).chain([Ask::Idle]).collect()
}

fn parse_level(text: &str) -> Result<Ask, String> {
    let text = text.trim();
    if text == "idle" {
        return Ok(Ask::Idle);
    }
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n > 0.0);
    if let Some(rate) = text.strip_suffix("/s") {
        let rate = number(rate).filter(|n| (0.01..=1e8).contains(n));
        return rate.map(Ask::Rate).ok_or_else(|| say!("\"{text}\" is not a rate such as 800/s"));
    }
    match number(text.strip_suffix('%').unwrap_or(text)) {
        Some(percent) if (0.01..=100.0).contains(&percent) => Ok(Ask::Share(percent / 100.0)),
        Some(_) => Err(say!("\"{text}\": more than 100 % of what it can do cannot be done; give 0.01 to 100, or N/s")),
        None => Err(say!("\"{text}\" is not a level: give percent (50), idle, or a rate (800/s)")),
    }
}

fn parse_interval(text: &str) -> Result<u64, String> {
    let ns = parse_ns(text)?;
    let is_in = (100_000_000..=3_600_000_000_000).contains(&ns);
    if is_in { Ok(ns) } else { Err(say!("give 100ms to 60min")) }
}

fn parse_service(text: &str) -> Result<u64, String> {
    let ns = parse_ns(text)?;
    if (10_000..=10_000_000_000).contains(&ns) { Ok(ns) } else { Err(say!("give 10us to 10s")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_percent_idle_or_rates() {
        assert_eq!(parse_level("50"), Ok(Ask::Share(0.5)));
        assert_eq!(parse_level(" 12.5% "), Ok(Ask::Share(0.125)));
        assert_eq!(parse_level("idle"), Ok(Ask::Idle));
        assert_eq!(parse_level("800/s"), Ok(Ask::Rate(800.0)));
        for bad in ["", "101", "-5", "0", "NaN", "inf", "/s", "0/s", "1e99/s", "fast", "%"] {
            assert!(parse_level(bad).is_err(), "{bad}");
        }
        let standard = standard_levels();
        assert_eq!((standard.len(), standard[0], standard[10]), (11, Ask::Share(1.0), Ask::Idle));
    }
}
