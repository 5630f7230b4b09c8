//! The command line of `measure`.

use clap::{Args, Subcommand};
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
    /// How long a cache line takes between every two CPUs, as a matrix
    #[command(before_help = "Example:\n  wakewatt measure cores\n  wakewatt measure cores --cpu 0-7,64-71")]
    Cores(CoresArgs),
    /// How long a CPU takes from idle to full speed: exit, ramp of the clock, wide vectors
    #[command(
        before_help = "Example:\n  wakewatt measure frequency\n  wakewatt measure frequency --cpu 0,8 --work 100ms"
    )]
    Frequency(FrequencyArgs),
    /// What leaving each idle state costs: one state allowed at a time, put back afterwards (root)
    #[command(
        before_help = "Example:\n  sudo wakewatt measure idle\n  sudo wakewatt measure idle --cpu 3 --state C1,C6 --kind ipi"
    )]
    Idle(IdleCostArgs),
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

/// Arguments of `measure cores`.
#[derive(Debug, Args)]
pub struct CoresArgs {
    /// CPUs, in kernel list notation; all this process may use when not given
    #[arg(long, value_name = "CPUS", value_parser = wakewatt_core::cpuset::CpuSet::parse)]
    pub cpu: Option<wakewatt_core::cpuset::CpuSet>,
    /// At most so many ordered pairs, an equal share of each class; 4096 when not given
    #[arg(long, value_name = "NUMBER")]
    pub pairs: Option<usize>,
    /// Which pairs are chosen, where not all are
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `measure frequency`.
#[derive(Debug, Args)]
pub struct FrequencyArgs {
    /// CPUs, in kernel list notation; the last one this process may use when not given
    #[arg(long, value_name = "CPUS", value_parser = wakewatt_core::cpuset::CpuSet::parse)]
    pub cpu: Option<wakewatt_core::cpuset::CpuSet>,
    /// How long to work after each idle time: longer than the ramp, which takes some governors 30ms
    #[arg(long, value_name = "TIME", default_value = "40ms", value_parser = parse_ns)]
    pub work: u64,
    /// Leave wide vector work out: it may lower the clock of the whole core for a millisecond
    #[arg(long)]
    pub no_vector: bool,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `measure idle`.
#[derive(Debug, Args)]
pub struct IdleCostArgs {
    /// The CPU that sleeps; the last one this process may use when not given
    #[arg(long, value_name = "CPU")]
    pub cpu: Option<u32>,
    /// States by name, with polling as the floor; all that are not disabled when not given
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub state: Vec<String>,
    /// Kinds of wake-up: timer, ipi, futex
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = ["timer", "ipi", "futex"])]
    pub kind: Vec<String>,
    /// Pause before each wake-up; 3 times the longest target residency, from 1ms to 50ms, when not given
    #[arg(long, value_name = "TIME", value_parser = parse_ns)]
    pub gap: Option<u64>,
    /// Time per state and kind, over all rounds; enough for a 99th percentile, from 3s to 12s, when not given
    #[arg(long, value_name = "TIME", value_parser = parse_ns)]
    pub duration: Option<u64>,
    /// Order of the states, to repeat a run
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}
