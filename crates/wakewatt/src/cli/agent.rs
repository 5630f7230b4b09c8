//! The command line of `agent`.

use super::moment;
use clap::{Args, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;
use wakewatt_core::samples::payers::PayerKind;
use wakewatt_core::units::{parse_bytes, parse_ns};
use wakewatt_words::say;

/// Arguments of `agent`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct AgentArgs {
    /// What to do with a history instead of making one.
    #[command(subcommand)]
    pub past: Option<AgentPast>,
    /// Where to answer: ADDRESS:PORT, or unix:/PATH for a socket in a folder that only root or you write to; an address that others can reach needs --tls-cert, --tls-key, and --token-file or --client-ca
    #[arg(long, value_name = "WHERE", default_value = "127.0.0.1:9742", value_parser = parse_listen, conflicts_with = "once")]
    pub listen: Listen,
    /// Who may ask at a socket, as octal permissions of its file; 600 when not given
    #[arg(long, value_name = "MODE", value_parser = parse_mode, requires = "listen")]
    pub socket_mode: Option<u32>,
    /// Certificate chain in PEM: answers are encrypted; looked at again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "once")]
    pub tls_cert: Option<PathBuf>,
    /// The certificate's key in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Authorities in PEM: a client that shows a certificate of theirs is let in (where there is a token too, one of both)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub client_ca: Option<PathBuf>,
    /// A file that only its owner may read; its first line is the token that who asks must show
    #[arg(long, value_name = "FILE", conflicts_with = "once")]
    pub token_file: Option<PathBuf>,
    /// From reading to reading while nobody asks, 1s to 60min; with --history at most 60s. Unless given: 10s, or 60s where nothing is kept, pushed or traced
    #[arg(long, value_name = "TIME", value_parser = parse_interval)]
    pub interval: Option<u64>,
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
    /// Also what leaving idle states was measured to take, from a run of `measure idle`, `doctor` or `fit --check` on this machine; refused where its idle driver or states are others
    #[arg(long, value_name = "RUN")]
    pub measured: Option<PathBuf>,
    /// Keep every interval in this folder, for `agent query`
    #[arg(long, value_name = "DIR", conflicts_with = "once")]
    pub history: Option<PathBuf>,
    /// Largest history; the oldest part goes first
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse_limit, requires = "history")]
    pub history_limit: u64,
    /// Percent of the file system that the history leaves free
    #[arg(long, value_name = "PERCENT", default_value_t = 5, requires = "history", value_parser = clap::value_parser!(u8).range(0..=99))]
    pub history_free: u8,
    /// Push every interval to a collector by OTLP over HTTP; /v1/metrics is added where the URL has no path
    #[arg(long, value_name = "URL", conflicts_with = "once")]
    pub otlp: Option<String>,
    /// Authorities in PEM that the collector's certificate is checked by, in place of the distribution's
    #[arg(long, value_name = "FILE", requires = "otlp")]
    pub otlp_ca: Option<PathBuf>,
    /// A file that only its owner may read; its first line is a header for the collector, such as Authorization: Bearer TOKEN
    #[arg(long, value_name = "FILE", requires = "otlp")]
    pub otlp_header_file: Option<PathBuf>,
    /// What the agent gives up once it has started: full is all it can, holders keeps what naming the holders of the latency limit takes, none is nothing
    #[arg(long, value_name = "HOW", default_value = "full", value_parser = ["full", "holders", "none"], conflicts_with = "once")]
    pub confine: String,
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

/// Where to answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// An address and a port.
    Tcp(SocketAddr),
    /// A socket in the file system.
    Unix(PathBuf),
}

fn parse_listen(text: &str) -> Result<Listen, String> {
    match text.strip_prefix("unix:") {
        Some(path) if path.starts_with('/') => Ok(Listen::Unix(path.into())),
        Some(_) => Err(say!("give the whole path, such as unix:/run/wakewatt/agent.sock")),
        None => {
            text.parse().map(Listen::Tcp).map_err(|_| "give ADDRESS:PORT, such as 127.0.0.1:9742, or unix:/PATH".into())
        }
    }
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

fn parse_mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or("give octal permissions, such as 660".into())
}

fn parse_top(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| (1..=100).contains(n)).ok_or_else(|| "give 1 to 100".into())
}

fn parse_interval(text: &str) -> Result<u64, String> {
    let ns = parse_ns(text)?;
    if (1_000_000_000..=3_600_000_000_000).contains(&ns) { Ok(ns) } else { Err(say!("give 1s to 60min")) }
}

/// Below this a segment would hold less than a few moments.
fn parse_limit(text: &str) -> Result<u64, String> {
    const LEAST: u64 = 1 << 20;
    let bytes = parse_bytes(text)?;
    if bytes >= LEAST { Ok(bytes) } else { Err(say!("give 1MiB or more")) }
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
    /// Until this moment: "2026-11-20 10:00" in UTC, RFC 3339, -2h; now when not given
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true, value_parser = moment::parse)]
    pub until: Option<u64>,
    /// Moments are gathered in steps of this
    #[arg(long, value_name = "TIME", default_value = "1min", value_parser = parse_ns)]
    pub step: u64,
    /// Growth per second, for counters
    #[arg(long, conflicts_with = "percentile")]
    pub rate: bool,
    /// This percentile of a histogram, by step; none of a step in which fewer than ten lie beyond it
    #[arg(long, value_name = "PERCENT", value_parser = parse_percentile)]
    pub percentile: Option<f64>,
    /// One JSON document
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// One line for each series and step
    #[arg(long)]
    pub csv: bool,
    /// The same as a table for analysis programs, in a file that ends in .parquet
    #[arg(short, long, value_name = "FILE.parquet", conflicts_with_all = ["json", "csv"])]
    pub output: Option<PathBuf>,
}

fn parse_label(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| say!("give NAME=VALUE"))?;
    Ok((name.into(), value.into()))
}

fn parse_percentile(text: &str) -> Result<f64, String> {
    let percent: f64 = text.parse().map_err(|_| "give a number such as 99 or 99.9")?;
    if percent > 0.0 && percent < 100.0 { Ok(percent) } else { Err(say!("give more than 0 and less than 100")) }
}
