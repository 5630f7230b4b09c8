//! The command line of `agent`.

use clap::{Args, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;
use wakewatt_core::samples::payers::PayerKind;
use wakewatt_core::units::{parse_bytes, parse_ns};

/// Arguments of `agent`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct AgentArgs {
    /// What to do with a history instead of making one.
    #[command(subcommand)]
    pub past: Option<AgentPast>,
    /// Where to answer; an address that others can reach needs --tls-cert, --tls-key and --token-file
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9742")]
    pub listen: SocketAddr,
    /// Certificate chain in PEM: answers are encrypted; looked at again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "once")]
    pub tls_cert: Option<PathBuf>,
    /// The certificate's key in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// A file that only its owner may read; its first line is the token that who asks must show
    #[arg(long, value_name = "FILE", conflicts_with = "once")]
    pub token_file: Option<PathBuf>,
    /// From reading to reading while nobody asks, 1s to 60min; with --history at most 60s
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_interval)]
    pub interval: u64,
    /// What may be read: quiet wakes no other CPU; package adds watts and package temperatures (one interrupt per package); all adds every core's temperature (one per core)
    #[arg(long, value_name = "MODE", default_value = "quiet", value_parser = ["quiet", "package", "all"])]
    pub sources: String,
    /// Also wake-up latency by idle state; loads the eBPF probe of `trace`
    #[arg(long, conflicts_with = "sysroot")]
    pub trace: bool,
    /// Also who pays for wake-ups out of idle: a series for the heaviest, one for all others
    #[arg(long, value_name = "WHAT", value_enum, requires = "trace")]
    pub by: Option<PaidBy>,
    /// Payers with a series of their own, 1 to 100
    #[arg(long, value_name = "NUMBER", default_value_t = 10, requires = "by", value_parser = parse_top)]
    pub top: usize,
    /// A series for each CPU, not for each node and package
    #[arg(long)]
    pub per_cpu: bool,
    /// Keep every interval in this folder, for `agent query`
    #[arg(long, value_name = "DIR", conflicts_with = "once")]
    pub history: Option<PathBuf>,
    /// Largest history; the oldest part goes first
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse_limit, requires = "history")]
    pub history_limit: u64,
    /// Percent of the file system that the history leaves free
    #[arg(long, value_name = "PERCENT", default_value_t = 5, requires = "history", value_parser = clap::value_parser!(u8).range(0..=99))]
    pub history_free: u8,
    /// Print one page of metrics and end
    #[arg(long)]
    pub once: bool,
    /// A tree that holds sys/ and proc/, in place of this machine
    #[arg(long, value_name = "DIR", conflicts_with = "host")]
    pub sysroot: Option<PathBuf>,
    /// A recorded host, whose counters stand still
    #[arg(long, value_name = "FILE", requires = "once", conflicts_with = "trace")]
    pub host: Option<PathBuf>,
}

/// Who pays for wake-ups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum PaidBy {
    /// Cgroups (version 2)
    Cgroup,
    /// Kubernetes pods
    Pod,
    /// Containers
    Container,
}

impl From<PaidBy> for PayerKind {
    fn from(by: PaidBy) -> PayerKind {
        match by {
            PaidBy::Cgroup => PayerKind::Cgroup,
            PaidBy::Pod => PayerKind::Pod,
            PaidBy::Container => PayerKind::Container,
        }
    }
}

fn parse_top(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| (1..=100).contains(n)).ok_or_else(|| "give 1 to 100".into())
}

fn parse_interval(text: &str) -> Result<u64, String> {
    let ns = parse_ns(text)?;
    if (1_000_000_000..=3_600_000_000_000).contains(&ns) { Ok(ns) } else { Err("give 1s to 60min".into()) }
}

/// Below this a segment would hold less than a few moments.
fn parse_limit(text: &str) -> Result<u64, String> {
    const LEAST: u64 = 1 << 20;
    let bytes = parse_bytes(text)?;
    if bytes >= LEAST { Ok(bytes) } else { Err("give 1MiB or more".into()) }
}

/// Commands on a history.
#[derive(Debug, Subcommand)]
pub enum AgentPast {
    /// Show kept numbers over time: values, rates, percentiles
    #[command(
        before_help = "Example:\n  wakewatt agent query wakewatt_cpuidle_time_seconds_total --label state=C6 --rate --history /var/lib/wakewatt/history\n  wakewatt agent query wakewatt_wakeup_latency_seconds --percentile 99 --last 6h --step 5min --history DIR"
    )]
    Query(QueryArgs),
}

/// Arguments of `agent query`.
#[derive(Debug, Args)]
pub struct QueryArgs {
    /// A metric's name, as on the page of the agent
    #[arg(value_name = "METRIC")]
    pub metric: String,
    /// The folder of the history
    #[arg(long, value_name = "DIR")]
    pub history: PathBuf,
    /// Only series with this label; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_label)]
    pub label: Vec<(String, String)>,
    /// So far back from now (or from --until)
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = parse_ns)]
    pub last: u64,
    /// Until this moment: RFC 3339, or "2026-11-20 10:00:00" in UTC; now when not given
    #[arg(long, value_name = "WHEN", value_parser = parse_when)]
    pub until: Option<u64>,
    /// Moments are gathered in steps of this
    #[arg(long, value_name = "TIME", default_value = "1min", value_parser = parse_ns)]
    pub step: u64,
    /// Growth per second, for counters
    #[arg(long, conflicts_with = "percentile")]
    pub rate: bool,
    /// This percentile of a histogram, by step
    #[arg(long, value_name = "PERCENT", value_parser = parse_percentile)]
    pub percentile: Option<f64>,
    /// One JSON document
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// One line for each series and step
    #[arg(long)]
    pub csv: bool,
}

fn parse_label(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("give NAME=VALUE")?;
    Ok((name.into(), value.into()))
}

fn parse_percentile(text: &str) -> Result<f64, String> {
    let percent: f64 = text.parse().map_err(|_| "give a number such as 99 or 99.9")?;
    if percent > 0.0 && percent < 100.0 { Ok(percent) } else { Err("give more than 0 and less than 100".into()) }
}

/// Milliseconds since 1970.
fn parse_when(text: &str) -> Result<u64, String> {
    let bad = |why: humantime::TimestampError| format!("{why}; give for example 2026-11-20T10:00:00Z");
    let at = humantime::parse_rfc3339_weak(text).map_err(bad)?;
    let since = at.duration_since(std::time::UNIX_EPOCH).map_err(|_| "before 1970")?;
    u64::try_from(since.as_millis()).map_err(|_| "too far away".into())
}
