//! The command line, defined once: help, man pages and completions are made from this file.

pub mod agent;
pub mod bios;
pub mod bmcs;
pub mod collect;
pub mod disk;
pub mod load;
pub mod experiment;
pub mod explain;
pub mod fit;
pub mod fitted;
pub mod fleet;
pub mod from;
pub mod import;
pub mod kubernetes;
mod layout;
pub mod measure;
pub mod meter;
pub mod moment;
pub mod replay;
pub mod rollout;
pub mod run;
pub mod shop;
pub mod simulate;
pub mod spoken;
pub mod ssh;
pub mod store;
pub mod trace;
pub mod tune;

pub use from::From;
pub use measure::{
    CoresArgs, FrequencyArgs, IdleCostArgs, Measure, MeasureArgs, MemoryArgs, NetworkArgs, PowerArgs, WakePolicy,
    WakeupArgs,
};

use crate::exit;
use crate::output::Colour;
use clap::{Args, CommandFactory, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use wakewatt_core::compare::gate::Rule;
use wakewatt_core::units::{parse_bytes, parse_ns};
use wakewatt_lab::quiet;
use wakewatt_words::{Language, say};

/// Weighs wake-up latency against watts: finds what idle states, frequency and memory wiring cost on this machine.
#[derive(Debug, Parser)]
#[command(name = "wakewatt", version, propagate_version = true, disable_help_subcommand = true, max_term_width = 100)]
#[command(
    before_help = "Example:\n  wakewatt doctor              find out what power management costs here, and prove it\n  wakewatt inspect idle        the idle states of this machine"
)]
#[command(after_help = exit::TABLE)]
pub struct Cli {
    /// Colours: auto (on a terminal, unless NO_COLOR is set), always, never.
    #[arg(long, global = true, value_enum, default_value = "auto", hide_possible_values = true)]
    pub color: Colour,
    /// Language of what people read: en, zh; else that of the locale (LC_ALL, LC_MESSAGES, LANG). Documents stay English.
    #[arg(long, global = true, value_name = "LANGUAGE", value_parser = language)]
    pub lang: Option<Language>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

fn language(text: &str) -> Result<Language, String> {
    match text {
        "en" => Ok(Language::English),
        "zh" => Ok(Language::Chinese),
        _ => Err("only en and zh".into()),
    }
}

impl Cli {
    /// Help was asked for: the same, laid out for so many columns.
    pub fn help(args: &[OsString], width: usize) -> Option<clap::Error> {
        layout::laid_out(Cli::command(), width).try_get_matches_from(args).err()
    }
}

/// The commands, main job first.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Look, measure, experiment (reversibly), explain, and write an HTML report
    #[command(
        before_help = "Example:\n  sudo wakewatt doctor --quick               under a minute\n  wakewatt doctor --read-only                changes nothing, needs no root\n  wakewatt doctor --host db7.host            judges a recorded host\n  wakewatt doctor --from idle.txt dmesg.txt  judges what other tools printed there\n  wakewatt doctor --preflight --require 2%   is this runner fit for a benchmark? two seconds"
    )]
    Doctor(DoctorArgs),
    /// Show what the host says about itself
    #[command(
        before_help = "Example:\n  wakewatt inspect                 everything\n  wakewatt inspect idle qos        idle states and latency limits\n  wakewatt inspect --json --host db7.host"
    )]
    Inspect(InspectArgs),
    /// Explain a term, an idle state, a rule or a setting, with this machine's own numbers
    #[command(
        before_help = "Example:\n  wakewatt explain C6                       what it is, and its row of this machine's table\n  wakewatt explain PC6 --host db7.host      which core states allow it there, and what keeps it away\n  wakewatt explain rule.epp                 why doctor asks, and what it answers here\n  wakewatt explain freq.governor            a setting of tune"
    )]
    Explain(explain::ExplainArgs),
    /// Save what the parsers read as one text file, safe to share
    #[command(before_help = "Example:\n  wakewatt capture -o db7.host\n  wakewatt inspect --host db7.host")]
    Capture(CaptureArgs),
    /// Show a saved run again: page, text, Markdown, tables
    #[command(
        before_help = "Example:\n  wakewatt report db7.run                    summary here, page in wakewatt-report.html\n  wakewatt report db7.run --markdown > ticket.md\n  wakewatt report db7.run --csv tables/      one file per kind of sample"
    )]
    Report(ReportArgs),
    /// Read what other tools printed, for machines where nothing may be run; say line by line what was understood
    #[command(
        before_help = "Example:\n  wakewatt import idle.txt dmidecode.txt dmesg.txt     one host from three outputs\n  wakewatt import terminal.txt -o db7.host             a pasted terminal, kept for inspect\n  wakewatt import perf-script.txt --wtrace db7.wtrace  wake-ups by idle state; for replay\n  wakewatt doctor --from sosreport-db7.tar.xz          the verdict of such texts"
    )]
    Import(import::ImportArgs),
    /// Rank the differences between hosts by predicted effect; of two runs also what was measured
    #[command(
        before_help = "Example:\n  wakewatt compare fast.host slow.host\n  wakewatt compare before.run after.run      runs of doctor, measure or load with --save\n  wakewatt compare a1.run a2.run a3.run --against b1.run b2.run b3.run   three of each: how they vary is known\n  wakewatt compare before.run after.run --fail-on slower:5%,watts:3%   a gate: 1 where that is worse beyond doubt\n  wakewatt compare --at '2026-11-20 10:00' --and now   two moments of an agent's history"
    )]
    Compare(CompareArgs),
    /// Measure one thing, with its uncertainty
    #[command(
        before_help = "Example:\n  wakewatt measure wakeup\n  wakewatt measure network --peer 10.0.0.2:7117\n  wakewatt measure disk"
    )]
    Measure(MeasureArgs),
    /// Show what each wake-up costs, by the idle state the CPU was leaving (eBPF)
    #[command(
        before_help = "Example:\n  sudo wakewatt trace                        the whole machine for 10 s\n  sudo wakewatt trace --cgroup system.slice/db.service\n  sudo wakewatt trace -- make -j8            a command, until it ends; its exit code is returned\n  sudo wakewatt trace --record idle.wtrace   also every idle interval, for replay"
    )]
    Trace(trace::TraceArgs),
    /// Show recorded idle time under another governor, kernel, idle table or latency limit: what would have been
    #[command(
        before_help = "Example:\n  wakewatt replay idle.wtrace                          does the model decide as this kernel did?\n  wakewatt replay idle.wtrace --set max-latency=50us   what a limit would have cost and saved\n  wakewatt replay idle.wtrace --set max-state=1        the same for max_cstate=1\n  wakewatt replay idle.wtrace --upgrade 6.18.2         what a kernel upgrade will change\n  wakewatt replay idle.wtrace --slo 'p99 < 5ms over 40 hops'\n  wakewatt replay idle.wtrace --table db7.host         with another server's idle states\n  wakewatt replay idle.wtrace --sweep                  every limit: latency against energy, and the knee"
    )]
    Replay(replay::ReplayArgs),
    /// Simulate a server: latency, throughput and watts under settings nobody has tried yet
    #[command(
        before_help = "Example:\n  wakewatt simulate --example plain > mine.toml\n  wakewatt simulate mine.toml                         every setting of the file, beside each other\n  wakewatt simulate mine.toml --sweep machine.idle.max_latency=0us,2us,10us,133us\n  wakewatt simulate k4-governors                      a published case: its figures beside the model's"
    )]
    Simulate(simulate::SimulateArgs),
    /// Fit a model of this machine to its own runs, and predict a setting that it was not shown
    #[command(
        before_help = "Example:\n  sudo wakewatt fit --check                    measures, fits, predicts, and shows how far off it was\n  wakewatt fit loads.run idle.run --on found --predict poll\n  wakewatt fit loads.run --on 'as found' --predict c1 --set machine.idle.max_latency=2us"
    )]
    Fit(fit::FitArgs),
    /// Run one copy of a command per memory node, CPUs and memory bound, and prove where it lay
    #[command(
        before_help = "Example:\n  wakewatt run --per-node -- ./load --port 80{node}\n  wakewatt run --per-node --compare --metric 'score: ([0-9.]+)' -- ./load"
    )]
    Run(run::RunArgs),
    /// Load the machine, level by level, and weigh work against watts: rate, latency, CPU time, score per watt
    #[command(
        before_help = "Example:\n  wakewatt load steps --quick                  100 %, 90 % ... 10 %, active idle: four minutes\n  sudo wakewatt load steps --levels 100,50,idle   also with the meters that need root\n  wakewatt load shop                              an online shop at 500, 1000 and 2000 clients\n  wakewatt load --repeat 5 --metric 'score: ([0-9.]+)' -- ./benchmark"
    )]
    Load(Box<load::LoadArgs>),
    /// Answer the far end of `measure network`
    #[command(
        before_help = "Example:\n  wakewatt respond --listen 10.0.0.2:7117      on the far host\n  wakewatt measure network --peer 10.0.0.2:7117   on this one\n  sudo wakewatt respond --icmp --for 30s          watches pings, answers nothing itself"
    )]
    Respond(RespondArgs),
    /// Watch CPUs, idle states, wake-ups, watts and heat; wakes no other CPU by default
    #[command(
        before_help = "Example:\n  wakewatt watch                           the screen; ? shows the keys, q ends it\n  wakewatt watch --once                    one interval as text\n  wakewatt watch --json --count 10         ten documents, one per line\n  sudo wakewatt watch --sources package    also watts, at one interrupt per package",
        after_help = "The screen needs a terminal of at least 80x24 that can move its cursor (TERM is not dumb); otherwise watch says so\nand ends with 2: use --once, --json or --csv there. Ctrl-C and SIGTERM end it with 130, q with 0, a recording that\ncould not be written with 4. Absent numbers are words in JSON, empty in CSV (the last column says why)."
    )]
    Watch(Box<WatchArgs>),
    /// Answer Prometheus: idle states, wake-up latency, limits, clocks, watts, settings and findings of this machine, for months
    #[command(
        before_help = "Example:\n  wakewatt agent                           metrics at http://127.0.0.1:9742/metrics\n  wakewatt agent --once                    one page here\n  sudo wakewatt agent --trace              also wake-up latency by idle state"
    )]
    Agent(agent::AgentArgs),
    /// Many nodes that do the same work: which of them pay more for it, and what is set otherwise there
    #[command(
        before_help = "Example:\n  wakewatt fleet collect --ssh hosts -o captures/   every node's settings in one folder\n  wakewatt fleet compare --files captures/                    which nodes are set otherwise\n  wakewatt fleet compare --prometheus http://prometheus:9090 --work 'sum by (instance) (rate(http_requests_total[$window]))'   which pay more for the same work\n  wakewatt fleet rollout --example > plan.toml                a change, stage by stage"
    )]
    Fleet(fleet::FleetArgs),
    /// Change settings as a plan: shown, journaled, read back, undone exactly
    #[command(
        before_help = "Example:\n  wakewatt tune plan --max-latency 50us            what would change, and what it costs\n  sudo wakewatt tune apply --max-latency 50us --confirm-within 60s\n  sudo wakewatt tune confirm\n  sudo wakewatt tune undo"
    )]
    Tune(Box<tune::TuneArgs>),
    /// Show and change power settings of firmware over Redfish: planned, journaled, staged for the next boot
    #[command(
        before_help = "Example:\n  wakewatt bios show --redfish https://bmc.example --redfish-user operator --redfish-password-file pw\n  wakewatt bios plan bios.c-states=off --from r750/         a recorded Redfish tree\n  sudo wakewatt bios apply bios.c-states=off --redfish https://bmc.example --redfish-user operator"
    )]
    Bios(Box<bios::BiosArgs>),
    /// Compare settings on this machine by experiment: blocks in random order, a verdict in one sentence, all put back
    #[command(
        before_help = "Example:\n  wakewatt experiment list\n  wakewatt experiment k4-governors --dry-run     what would be written, what is left out, how long\n  sudo wakewatt experiment idle -o idle.html\n  sudo wakewatt experiment ./mine.toml --run-dir runs/mine\n  sudo wakewatt experiment observer -- prometheus-node-exporter   what does a monitoring agent cost?\n  sudo wakewatt experiment resume runs/mine"
    )]
    Experiment(Box<experiment::ExperimentArgs>),
    /// Undo what a killed run left behind, and what nobody confirmed in time
    #[command(before_help = "Example:\n  sudo wakewatt recover")]
    Recover(RecoverArgs),
    /// Internal: puts settings back if the run that started it dies
    #[command(hide = true)]
    Guard(GuardArgs),
    /// Internal: the shop of `load shop`
    #[command(hide = true)]
    ShopServer,
    /// Internal: runs an order of another machine and writes the answer into the log of a pod
    #[command(hide = true)]
    Carried(CarriedArgs),
    /// Internal: holds a latency limit until it is told to end
    #[command(hide = true)]
    Hold(tune::HoldArgs),
    /// Internal: a process of the load generator; takes orders from standard input
    #[command(hide = true)]
    LoadWorker,
    /// Internal: measures memory for the process that started it, and goes first if memory runs out
    #[command(hide = true)]
    MemoryWorker,
}

/// Arguments of the hidden `carried`.
#[derive(Debug, Args)]
pub struct CarriedArgs {
    /// Longest that the order may take
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_ns)]
    pub within: u64,
    /// How long to stay for what the order leaves running
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_ns)]
    pub lives_on: u64,
    /// How much of its standard output is taken, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20)]
    pub at_most: usize,
    /// Begin nothing at or after this time, in seconds since 1970
    #[arg(long, value_name = "SECONDS")]
    pub start_before: Option<u64>,
    /// The order
    #[arg(required = true, last = true, value_name = "ARGUMENT")]
    pub arguments: Vec<String>,
}

/// Arguments of `inspect`.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// Topics; all when none is named
    #[arg(value_name = "TOPIC", value_parser = topic_parser())]
    pub topics: Vec<String>,
    #[command(flatten)]
    pub from: From,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
    /// Also list every fact this kernel does not have
    #[arg(long)]
    pub gaps: bool,
}

fn topic_parser() -> clap::builder::PossibleValuesParser {
    let topics = wakewatt_core::facts::TOPICS.iter();
    clap::builder::PossibleValuesParser::new(topics.map(|t| clap::builder::PossibleValue::new(t.id).help(t.help)))
}

/// Arguments of `capture`.
#[derive(Debug, Args)]
pub struct CaptureArgs {
    /// The file to write; - for standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    #[command(flatten)]
    pub from: From,
    /// Keep serial numbers, addresses and names (do not share such a file)
    #[arg(long)]
    pub unmasked: bool,
}

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Hosts: .host files, run files or unpacked trees; `live` for this machine
    #[arg(value_name = "HOST", num_args = 1.., required_unless_present = "at")]
    pub hosts: Vec<PathBuf>,
    /// The second side: run files, to be compared with those before it. Several runs of one side show how it varies
    #[arg(long, value_name = "RUN", num_args = 1..)]
    pub against: Vec<PathBuf>,
    /// A moment of this node's history, to be compared with that of --and: "2026-11-20 10:00" in UTC, RFC 3339, -2h, now
    #[arg(long, value_name = "WHEN", conflicts_with_all = ["hosts", "against"], allow_hyphen_values = true, value_parser = moment::parse)]
    pub at: Option<u64>,
    /// The other moment
    #[arg(long, value_name = "WHEN", default_value = "now", requires = "at", allow_hyphen_values = true, value_parser = moment::parse)]
    pub and: u64,
    /// Where the agent keeps its history
    #[arg(long, value_name = "DIR", default_value = "/var/lib/wakewatt/history", requires = "at")]
    pub history: PathBuf,
    /// How much time around each moment its rates are of
    #[arg(long, value_name = "TIME", default_value = "10min", requires = "at", value_parser = parse_ns)]
    pub window: u64,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
    /// Also what differs without a predicted effect, and what was measured and does not differ
    #[arg(long)]
    pub all: bool,
    /// Markdown instead of text: for the summary of a job, or a ticket
    #[arg(long, conflicts_with_all = ["json", "at"])]
    pub markdown: bool,
    /// Exit with 1 where the second side is worse than this beyond doubt: slower:5%, latency@p99:10%, rate:5%, watts:3%, cpu:5%, wakeups:5%,
    /// work-per-joule:5%, score:5%, any:5%; `unsure` fails where that cannot be told. Several, by commas or again
    #[arg(long, value_name = "RULE", value_delimiter = ',', conflicts_with = "at", value_parser = str::parse::<Rule>)]
    pub fail_on: Vec<Rule>,
    /// What the rules came to as a JUnit file: a test for each quantity
    #[arg(long, value_name = "FILE", requires = "fail_on")]
    pub junit: Option<PathBuf>,
}

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The FILE of --save
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// The HTML page; wakewatt-report.html in this folder when nothing else is asked for
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Markdown on standard output instead of text
    #[arg(long)]
    pub markdown: bool,
    /// One JSON document on standard output instead of text
    #[arg(long, conflicts_with = "markdown")]
    pub json: bool,
    /// Samples as CSV files in this folder, one per kind, units in the column names; also the numbers of every chart
    #[arg(long, value_name = "DIR")]
    pub csv: Option<PathBuf>,
    /// Every chart as an SVG file in this folder
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
    /// Every chart as a picture in this folder
    #[arg(long, value_name = "DIR")]
    pub png: Option<PathBuf>,
    /// Charts in colours for a dark page
    #[arg(long)]
    pub dark: bool,
    /// Every quantity and window as one Parquet table
    #[arg(long, value_name = "FILE")]
    pub parquet: Option<PathBuf>,
    #[command(flatten)]
    pub rates: meter::RateArgs,
}

impl ReportArgs {
    /// Only files were asked for.
    pub fn is_quiet(&self) -> bool {
        let files = [&self.output, &self.csv, &self.svg, &self.png, &self.parquet];
        files.iter().any(|file| file.is_some()) && !self.markdown && !self.json
    }
}

/// Arguments of `respond`.
#[derive(Debug, Args)]
pub struct RespondArgs {
    /// Only watch the pings that this host's kernel answers, and print where their time goes
    #[arg(long, conflicts_with_all = ["listen", "cpu"])]
    pub icmp: bool,
    /// One JSON document (with --icmp)
    #[arg(long, requires = "icmp")]
    pub json: bool,
    /// Address to answer on; loopback unless you say otherwise
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7117")]
    pub listen: std::net::SocketAddr,
    /// CPU of the responding thread
    #[arg(long, value_name = "CPU")]
    pub cpu: Option<u32>,
    /// Stop after this long; until interrupted when not given
    #[arg(long = "for", value_name = "TIME", value_parser = parse_ns)]
    pub for_ns: Option<u64>,
}

/// Arguments of `doctor`.
#[derive(Clone, Debug, Args)]
pub struct DoctorArgs {
    /// End within 60 s instead of 5 min
    #[arg(long)]
    pub quick: bool,
    /// Change nothing: no experiment
    #[arg(long)]
    pub read_only: bool,
    /// The HTML report; wakewatt-report.html in this folder when not given
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Keep facts and samples in this run file, for report and compare
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Write no HTML report
    #[arg(long, conflicts_with = "output")]
    pub no_report: bool,
    /// Keep serial numbers, addresses and names in the HTML report (do not share such a file)
    #[arg(long, conflicts_with = "no_report")]
    pub unmasked: bool,
    /// One JSON document on standard output instead of text
    #[arg(long, conflicts_with = "markdown")]
    pub json: bool,
    /// Markdown on standard output instead of text
    #[arg(long)]
    pub markdown: bool,
    /// Exit with 1 when there is a finding of this weight or heavier
    #[arg(long, value_name = "WEIGHT", value_parser = ["problem", "risk", "note"])]
    pub fail_on: Option<String>,
    /// Wait for a quiet spell first, at most this long; then measure all the same and say so
    #[arg(long, value_name = "TIME", value_parser = parse_wait_ns, conflicts_with = "other_machine")]
    pub wait_quiet: Option<u64>,
    /// So many short sessions instead of one, each kept as NAME-1.run, NAME-2.run …, and joined: what holds of the machine
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100), conflicts_with_all = ["other_machine", "read_only", "markdown", "output", "fail_on"])]
    pub sessions: Option<u32>,
    /// From the start of the first session to the start of the last
    #[arg(long, value_name = "TIME", value_parser = parse_ns, default_value = "1h", requires = "sessions")]
    pub sessions_over: u64,
    /// Seed of the randomised order; from the clock when not given
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// Two seconds before a benchmark: how much this machine differs from itself, and what in it is noisy. Changes nothing, writes
    /// nothing
    #[arg(long, conflicts_with_all = ["other_machine", "sessions", "save", "output", "markdown", "fail_on", "wait_quiet", "quick", "seed"])]
    pub preflight: bool,
    /// With --preflight: exit with 1 where this is not so. A percentage is the most by which two runs of the same may differ
    /// here; `quiet`: no steal, no other load, no throttling
    #[arg(long, value_name = "2%|quiet", value_delimiter = ',', requires = "preflight", value_parser = str::parse::<Required>)]
    pub require: Vec<Required>,
    /// Ten lines: the verdict, how sure, and what to do
    #[arg(long, conflicts_with_all = ["json", "markdown", "preflight", "sessions"])]
    pub brief: bool,
    #[command(flatten)]
    pub from: From,
}

/// What a machine has to be before it is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Required {
    /// Two runs of the same differ by this share at most.
    SelfDifference(f64),
    /// Nobody else works, nothing is stolen, nothing throttles.
    Quiet,
}

impl std::str::FromStr for Required {
    type Err = String;

    fn from_str(text: &str) -> Result<Required, String> {
        let percent = || text.strip_suffix('%')?.trim().parse().ok().filter(|n: &f64| (0.0..=100.0).contains(n));
        match text {
            "quiet" => Ok(Required::Quiet),
            _ => percent()
                .map(|n| Required::SelfDifference(n / 100.0))
                .ok_or("give a percentage such as 2%, or quiet".into()),
        }
    }
}

/// A shorter wait than a quiet spell takes could never end well.
fn parse_wait_ns(text: &str) -> Result<u64, String> {
    let least_ns = quiet::LOOK_NS * quiet::SPELL as u64;
    match parse_ns(text)? {
        ns if ns < least_ns => {
            Err(say!("a quiet spell takes {n} s, so give {n} s or more", n = least_ns / 1_000_000_000))
        }
        ns => Ok(ns),
    }
}

/// Arguments of `recover`.
#[derive(Debug, Args)]
pub struct RecoverArgs {
    /// Put back even what somebody else has changed since
    #[arg(long)]
    pub force: bool,
    /// Show what stays changed if this journal is given up; with --force, give it up: nothing is put back
    #[arg(long, value_name = "ID")]
    pub forget: Option<String>,
}

/// Arguments of the hidden `guard`.
#[derive(Debug, Args)]
pub struct GuardArgs {
    /// The journal to undo
    pub journal: PathBuf,
    /// Wait for its confirmation instead of for its process
    #[arg(long)]
    pub confirm: bool,
}

/// Arguments of `watch`.
#[derive(Debug, Default, Args)]
pub struct WatchArgs {
    /// Time between readings, at least 100ms
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_interval)]
    pub interval: u64,
    /// Stop after this many intervals
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// One interval as text; needs no terminal
    #[arg(long, conflicts_with = "count")]
    pub once: bool,
    /// One JSON document per line and interval
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// One CSV row per CPU and interval, and one for the machine
    #[arg(long)]
    pub csv: bool,
    /// What may be read: quiet wakes no other CPU; package adds watts and package temperatures (one interrupt per package); all adds every core's temperature (one per core)
    #[arg(long, value_name = "MODE", default_value = "quiet", value_parser = ["quiet", "package", "all"])]
    pub sources: String,
    /// Keep the raw counters of every interval in this folder
    #[arg(long, value_name = "DIR", conflicts_with_all = ["play", "host", "texts"])]
    pub record: Option<PathBuf>,
    /// Largest recording; there it ends, whole, and watching goes on
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_bytes)]
    pub record_limit: u64,
    /// Travel through a recording, or through the history of an agent
    #[arg(long, value_name = "DIR", conflicts_with = "other_machine")]
    pub play: Option<PathBuf>,
    /// Play from this moment on: "2026-11-20 10:00" in UTC, RFC 3339, -2h
    #[arg(long, value_name = "WHEN", requires = "play", allow_hyphen_values = true, value_parser = moment::parse)]
    pub since: Option<u64>,
    /// Play up to this moment
    #[arg(long, value_name = "WHEN", requires = "play", allow_hyphen_values = true, value_parser = moment::parse)]
    pub until: Option<u64>,
    /// How much faster than it happened the screen plays at first, 1 to 500
    #[arg(long, value_name = "TIMES", default_value_t = 1, requires = "play", value_parser = clap::value_parser!(u32).range(1..=500))]
    pub speed: u32,
    /// Rows to start with: package, node, core, cpu
    #[arg(long, value_name = "BY", value_parser = ["package", "node", "core", "cpu"])]
    pub group: Option<String>,
    /// Order to start with: cpu, busy, wakeups, misses, asleep, freq, throttles
    #[arg(long, value_name = "BY", value_parser = ["cpu", "busy", "wakeups", "misses", "asleep", "freq", "throttles"])]
    pub sort: Option<String>,
    /// CPUs to start with: a list (0-3,8) or terms such as busy>50 wakes>1000 package=1 asleep limited
    #[arg(long, value_name = "TERMS")]
    pub filter: Option<String>,
    /// Also show wake-up latency by idle state; loads the eBPF probe of `trace`
    #[arg(long, conflicts_with_all = ["play", "other_machine"])]
    pub trace: bool,
    /// Let the mouse wheel scroll (the terminal's own selection then needs shift)
    #[arg(long)]
    pub mouse: bool,
    #[command(flatten)]
    pub from: From,
}

/// Below 100 ms the ticks of /proc/stat say nothing.
fn parse_interval(text: &str) -> Result<u64, String> {
    let ns = parse_ns(text)?;
    if (100_000_000..=3_600_000_000_000).contains(&ns) {
        Ok(ns)
    } else {
        Err(say!("give 100ms to 60min; the kernel counts busy time in ticks of 10 ms"))
    }
}
