//! The command line of `fleet`.

use super::collect::{CollectArgs, TablesArgs};
use super::rollout::RolloutArgs;
use super::store::StoreArgs;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use wakewatt_core::units::parse_ns;
use wakewatt_words::say;

/// Arguments of `fleet`.
#[derive(Debug, Args)]
pub struct FleetArgs {
    /// What to do with the nodes.
    #[command(subcommand)]
    pub command: FleetCommand,
}

/// Commands on many nodes.
#[derive(Debug, Subcommand)]
pub enum FleetCommand {
    /// Same work, different cost: which nodes pay more than their peers, and what is set otherwise there
    #[command(
        before_help = "Example:\n  wakewatt fleet compare --prometheus http://prometheus:9090 --work 'sum by (instance) (rate(http_requests_total[$window]))'\n  wakewatt fleet compare --prometheus http://prometheus:9090 --last 168h --windows 84 --select 'job=\"node\"' -o fleet.html\n  wakewatt fleet compare --files captures/            .host and run files, and NODE.bios.json of `bios show --json`, one per node",
        after_help = "Nodes are compared with nodes of equal hardware at equal load. With fewer than eight of a kind there is a rank and no\nverdict. What is called odd is so by chance in at most 5 % of fleets; docs/methods/fleet.md has the method."
    )]
    Compare(Box<CompareArgs>),
    /// A change on many nodes, stage by stage: gates, undo, and a node that nobody confirms undoes itself
    #[command(
        before_help = "Example:\n  wakewatt fleet rollout --example > plan.toml                    a plan with every key explained\n  wakewatt fleet rollout plan.toml --ssh hosts --dry-run          each node's own plan; changes nothing\n  wakewatt fleet rollout plan.toml --ssh hosts --sudo --prometheus http://prometheus:9090 -o rollout.html\n  wakewatt fleet rollout plan.toml --kubernetes --image registry.example/wakewatt --prometheus http://prometheus:9090\n  wakewatt fleet rollout firmware.toml --bmc bmcs --bmc-user operator --bmc-password-file pw   bios = [...], staged for the next boot\n  wakewatt fleet rollout --status\n  wakewatt fleet rollout --resume --ssh hosts --sudo              after Ctrl-C, a crash, a reboot of this machine\n  wakewatt fleet rollout --undo --ssh hosts --sudo                everything as before, also after the end",
        after_help = "The first stage is the canary; every other node must have a plan of the same kind. A node is changed only if it answers,\nand undoes itself unless it is confirmed, which happens when its stage's gates have passed. A connection that is lost while\na change waits is a failed gate. docs/methods/rollout.md has the method. Ends with 0 when all stages have passed, 7 when\na stage failed and what the plan says was undone, 5 when some node could not be put back, 8 when another rollout is under way."
    )]
    Rollout(Box<RolloutArgs>),
    /// Captures, runs and recordings of many nodes into one folder: at once, whole or not there, and gone on with where it stopped
    #[command(
        before_help = "Example:\n  wakewatt fleet collect --ssh hosts -o captures/\n  wakewatt fleet collect --ssh hosts --sudo -o captures/ --capture --run 'measure wakeup' --trace 60s\n  wakewatt fleet collect --ssh hosts -o captures/ --resume           only what is not there yet\n  wakewatt fleet collect --kubernetes --image registry.example/wakewatt -o captures/\n  wakewatt fleet collect --bmc bmcs --bmc-user operator --bmc-password-file pw -o captures/ --resume   NODE.bios.json\n  wakewatt fleet collect --ssh hosts -o shared/ --mask --parquet     names as numbers, and two tables",
        after_help = "Files are called NODE.host, NODE.run, NODE.wtrace, NODE.bios.json; index.json says who answered, who did not and why. Captures and runs are\nmasked as those of `capture` and `--save` are. Ends with 0 when every node gave everything, 9 when some did, 3 when none did."
    )]
    Collect(Box<CollectArgs>),
    /// A folder of captures, runs and recordings as two Parquet tables, for DuckDB, Spark, Polars: facts and measures by host
    #[command(
        before_help = "Example:\n  wakewatt fleet tables captures/                    captures/facts.parquet and captures/measures.parquet\n  duckdb -c \"select host, value from 'captures/facts.parquet' where id = 'kernel.release'\"",
        after_help = "docs/fleet-queries.md has a query for each of the usual questions."
    )]
    Tables(TablesArgs),
}

/// Arguments of `fleet compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// A Prometheus-compatible API: Prometheus, VictoriaMetrics, Thanos, Mimir
    #[arg(long, value_name = "URL", required_unless_present = "files", conflicts_with = "files")]
    pub prometheus: Option<String>,
    /// A folder of files instead, each called as its node: NODE.host, NODE.run, and NODE.bios.json from `bios show --json`
    #[arg(long, value_name = "DIR")]
    pub files: Option<PathBuf>,
    /// PromQL: pieces of work per second, by node; $window is the length of a window. Without it only shares and load are compared
    #[arg(long, value_name = "PROMQL", conflicts_with = "files")]
    pub work: Option<String>,
    /// PromQL: latency in seconds by node; holds $quantile, which is asked at 0.9 and 0.99
    #[arg(long, value_name = "PROMQL", conflicts_with = "files", value_parser = with_quantile)]
    pub latency: Option<String>,
    /// PromQL: CPU seconds per second by node, of the work alone; without it all that the node does
    #[arg(long, value_name = "PROMQL", conflicts_with = "files")]
    pub cpu: Option<String>,
    /// PromQL: watts by node; without it the processors' RAPL counters
    #[arg(long, value_name = "PROMQL", conflicts_with = "files")]
    pub power: Option<String>,
    /// Only nodes that match: 'job="node",cluster="a"'
    #[arg(long, value_name = "MATCHERS", default_value = "", conflicts_with = "files")]
    pub select: String,
    /// The label that names a node
    #[arg(long, value_name = "LABEL", default_value = "instance", value_parser = label)]
    pub node_label: String,
    /// So far back from now (or from --until)
    #[arg(long, value_name = "TIME", default_value = "12h", value_parser = parse_ns)]
    pub last: u64,
    /// Until this moment: RFC 3339, or "2026-11-20 10:00:00" in UTC; now when not given
    #[arg(long, value_name = "WHEN", value_parser = parse_when)]
    pub until: Option<u64>,
    /// Windows that the time is divided into; a node's cost is the median of its windows
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(3..=20_000))]
    pub windows: u32,
    /// The moment of a change: each node before and after it
    #[arg(long, value_name = "WHEN", value_parser = parse_when, conflicts_with = "files")]
    pub changed_at: Option<u64>,
    /// Peers must have this setting in common, too, as it is named beside odd nodes: kernel; may be repeated
    #[arg(long, value_name = "SETTING")]
    pub peers_by: Vec<String>,
    /// A folder of facts (NODE.host, NODE.run, NODE.bios.json) and recordings (NODE.wtrace): what compare says of an odd node and a usual one
    /// stands beside it, and what replay says of the peers' limit
    #[arg(long, value_name = "DIR", conflicts_with = "files")]
    pub facts: Option<PathBuf>,
    #[command(flatten)]
    pub store: StoreArgs,
    /// One HTML page
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// One JSON document
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// One line per node and measure, comma-separated
    #[arg(long)]
    pub csv: bool,
    /// Every node, not only the odd ones and the first of each class
    #[arg(long)]
    pub all: bool,
}

fn with_quantile(text: &str) -> Result<String, String> {
    if text.contains("$quantile") { Ok(text.into()) } else { Err(say!("it must hold $quantile")) }
}

fn label(text: &str) -> Result<String, String> {
    let is_label = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') && !text.is_empty();
    let is_first = text.bytes().next().is_some_and(|b| !b.is_ascii_digit());
    if is_label && is_first { Ok(text.into()) } else { Err(say!("a label has letters, digits and _")) }
}

/// Milliseconds since 1970.
fn parse_when(text: &str) -> Result<u64, String> {
    let bad = |why: humantime::TimestampError| format!("{why}; give for example 2026-11-20T10:00:00Z");
    let at = humantime::parse_rfc3339_weak(text).map_err(bad)?;
    let since = at.duration_since(std::time::UNIX_EPOCH).map_err(|_| "before 1970")?;
    u64::try_from(since.as_millis()).map_err(|_| "too far away".into())
}
