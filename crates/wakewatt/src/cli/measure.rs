//! The command line of `measure`.

use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use wakewatt_core::units::parse_ns;

/// Arguments of `measure`.
#[derive(Debug, Args)]
pub struct MeasureArgs {
    /// What to measure.
    #[command(subcommand)]
    pub what: Measure,
}

/// The measurements.
#[derive(Debug, Subcommand)]
pub enum Measure {
    /// How long from the reason to run until running: timer, futex, eventfd, interrupt
    #[command(
        before_help = "Example:\n  wakewatt measure wakeup\n  wakewatt measure wakeup --kind timer --cpu 0-3 --gap 10ms"
    )]
    Wakeup(WakeupArgs),
    /// UDP and TCP round trips, or pings, split into wire, responder and requester
    #[command(
        before_help = "Example:\n  wakewatt measure network                            over loopback\n  wakewatt measure network --peer 10.0.0.2:7117       to a host that runs `wakewatt respond`\n  sudo wakewatt measure network --icmp --peer 10.0.0.2  a ping, divided along its way"
    )]
    Network(NetworkArgs),
    /// Watts and joules by every meter there is, over a time or of a command
    #[command(
        before_help = "Example:\n  sudo wakewatt measure power --for 60s\n  sudo wakewatt measure power -- make -j8       the energy of a command; its exit code is returned\n  wakewatt measure power --meter-cmd './plug.sh'   a meter of your own that prints watts"
    )]
    Power(PowerArgs),
}

/// Arguments of `measure wakeup`.
#[derive(Debug, Args)]
pub struct WakeupArgs {
    /// CPUs to wake, in kernel list notation; all this process may use when not given
    #[arg(long, value_name = "CPUS", value_parser = wakewatt_core::cpuset::CpuSet::parse)]
    pub cpu: Option<wakewatt_core::cpuset::CpuSet>,
    /// Kinds of wake-up: timer, futex, eventfd, ipi
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = ["timer", "futex", "eventfd", "ipi"])]
    pub kind: Vec<String>,
    /// Pause before each wake-up, in which the CPU may sleep
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = parse_ns)]
    pub gap: u64,
    /// Time per CPU and kind
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_ns)]
    pub duration: u64,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `measure network`.
#[derive(Debug, Args)]
pub struct NetworkArgs {
    /// A host that runs `wakewatt respond`; loopback when not given. With --icmp any host, and no port
    #[arg(long, value_name = "HOST:PORT")]
    pub peer: Option<String>,
    /// Pings instead: the kernels' own path, divided by tracepoints where this user may
    #[arg(long, conflicts_with_all = ["transport", "responder_cpu"])]
    pub icmp: bool,
    /// Transports: udp, tcp
    #[arg(long, value_name = "PROTO", value_delimiter = ',', value_parser = ["udp", "tcp"])]
    pub transport: Vec<String>,
    /// CPU of the requesting thread
    #[arg(long, value_name = "CPU")]
    pub cpu: Option<u32>,
    /// CPU of the responding thread (loopback only)
    #[arg(long, value_name = "CPU")]
    pub responder_cpu: Option<u32>,
    /// Pause between planned requests
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = parse_ns)]
    pub gap: u64,
    /// Time per transport
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_ns)]
    pub duration: u64,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `measure power`.
#[derive(Debug, Args)]
pub struct PowerArgs {
    /// Measure this long; 10s when not given, with a command until it ends
    #[arg(long = "for", value_name = "TIME", value_parser = parse_ns, conflicts_with = "command")]
    pub for_ns: Option<u64>,
    /// Time between readings, at least 10ms; a BMC averages over seconds, whatever is given here
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_interval)]
    pub interval: u64,
    /// Only these meters; the first that works is quoted
    #[arg(long, value_name = "NAME", value_parser = meter_parser())]
    pub meter: Vec<String>,
    /// A command that prints watts, once per call or one number per line (W, mW, kW)
    #[arg(long, value_name = "CMD")]
    pub meter_cmd: Option<String>,
    /// A BMC to ask, such as https://bmc.example
    #[arg(long, value_name = "URL")]
    pub redfish: Vec<String>,
    /// Its user; the password comes from --redfish-password-file or WAKEWATT_REDFISH_PASSWORD
    #[arg(long, value_name = "NAME", requires = "redfish")]
    pub redfish_user: Option<String>,
    /// A file whose first line is the password
    #[arg(long, value_name = "FILE", requires = "redfish_user")]
    pub redfish_password_file: Option<PathBuf>,
    /// A Prometheus to ask, such as http://prometheus.example:9090
    #[arg(long, value_name = "URL", requires = "query")]
    pub prometheus: Option<String>,
    /// PromQL that gives this machine's watts
    #[arg(long, value_name = "PROMQL", requires = "prometheus")]
    pub query: Option<String>,
    /// Believe the authorities in this PEM file instead of the distribution's
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Believe any certificate: whoever stands between can read the password
    #[arg(long, conflicts_with = "ca")]
    pub insecure: bool,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
    /// A command to run and measure; after --
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

fn meter_parser() -> clap::builder::PossibleValuesParser {
    clap::builder::PossibleValuesParser::new(wakewatt_host::power::METERS.iter().map(|kind| kind.name))
}

fn parse_interval(text: &str) -> Result<u64, String> {
    let ns = parse_ns(text)?;
    if (10_000_000..=60_000_000_000).contains(&ns) { Ok(ns) } else { Err("give 10ms to 60s".into()) }
}
