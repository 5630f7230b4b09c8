//! The command line of `measure`.

use super::meter::MeterArgs;
use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::units::{parse_bytes, parse_ns};
use wakewatt_words::say;

/// Arguments of `measure`.
#[derive(Debug, Args)]
pub struct MeasureArgs {
    /// What to measure.
    #[command(subcommand)]
    pub what: Measure,
    /// Keep facts and samples in this run file, for report and compare
    #[arg(long, global = true, value_name = "FILE")]
    pub save: Option<PathBuf>,
}

impl Measure {
    /// As the user typed it: `wakeup`.
    pub fn word(&self) -> &'static str {
        match self {
            Measure::Wakeup(_) => "wakeup",
            Measure::Network(_) => "network",
            Measure::Power(_) => "power",
            Measure::Cores(_) => "cores",
            Measure::Frequency(_) => "frequency",
            Measure::Idle(_) => "idle",
            Measure::Disk(_) => "disk",
            Measure::Memory(_) => "memory",
        }
    }
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
    /// How long a read takes, and whether its CPU slept meanwhile; only reads, never writes to what is named
    #[command(
        before_help = "Example:\n  wakewatt measure disk                        a file made in this folder, and removed\n  sudo wakewatt measure disk /dev/nvme0n1 --engine io_uring --depth 1,32\n  wakewatt measure disk big.file --rate 500    500 reads per second, as requests come\n  sudo wakewatt measure disk --experiment      what sleep costs a read, proved"
    )]
    Disk(super::disk::DiskArgs),
    /// Memory latency and bandwidth: by working set, under load, between nodes
    #[command(
        before_help = "Example:\n  wakewatt measure memory\n  wakewatt measure memory --part latency --pages huge --stride 256 --max-size 1G\n  wakewatt measure memory --part bandwidth --simd avx2 --array-size 512M"
    )]
    Memory(MemoryArgs),
}

/// Arguments of `measure memory`.
#[derive(Debug, Args)]
pub struct MemoryArgs {
    /// Parts: latency, loaded, bandwidth, matrix; all when none is named
    #[arg(long, value_name = "PART", value_delimiter = ',', value_parser = ["latency", "loaded", "bandwidth", "matrix"])]
    pub part: Vec<String>,
    /// A few sizes and one kernel, in a few seconds
    #[arg(long)]
    pub quick: bool,
    /// The CPU that chases, and measures one CPU's bandwidth; the last one allowed when not given
    #[arg(long, value_name = "CPU")]
    pub cpu: Option<u32>,
    /// CPUs of the load and of all-CPU bandwidth; all this process may use when not given
    #[arg(long, value_name = "CPUS", value_parser = CpuSet::parse)]
    pub cpus: Option<CpuSet>,
    /// Bind the memory of latency, load and bandwidth to this node; where it is touched first when not given
    #[arg(long, value_name = "NODE")]
    pub node: Option<u32>,
    /// Working sets instead of the ladder
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = parse_bytes, conflicts_with = "max_size")]
    pub size: Vec<u64>,
    /// Largest working set; when not given 256 MiB or four times the last-level cache, and more while latency still rises
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub max_size: Option<u64>,
    /// Bytes per element, of which one line is used (multichase -s)
    #[arg(long, value_name = "SIZE", default_value = "64", value_parser = parse_bytes)]
    pub stride: u64,
    /// Visit all elements of a range this large before the next (multichase -T); random over all when not given
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub locality: Option<u64>,
    /// Pages of the latency curves and of bandwidth: huge, base; both when not given
    #[arg(long, value_name = "PAGES", value_delimiter = ',', value_parser = ["huge", "base"])]
    pub pages: Vec<String>,
    /// Samples per working set, of which the best counts (multichase -n)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub samples: Option<u16>,
    /// Time of one sample
    #[arg(long, value_name = "TIME", value_parser = parse_ns)]
    pub sample_time: Option<u64>,
    /// Kernels of bandwidth: load, copy, copy-nt (non-temporal stores), triad
    #[arg(long, value_name = "KERNEL", value_delimiter = ',', value_parser = ["load", "copy", "copy-nt", "triad"])]
    pub kernel: Vec<String>,
    /// Registers: scalar, sse2, avx2, avx512, neon; the widest there are when not given
    #[arg(long, value_name = "NAME", value_parser = ["scalar", "sse2", "avx2", "avx512", "neon"])]
    pub simd: Option<String>,
    /// One array, all threads together; when not given four times the caches they report, as memory allows
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub array_size: Option<u64>,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// How the threads of a wake-up are scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum WakePolicy {
    /// SCHED_FIFO where allowed
    Fifo,
    /// SCHED_OTHER
    Other,
    /// One after the other
    Both,
}

/// Arguments of `measure wakeup`.
#[derive(Debug, Args)]
pub struct WakeupArgs {
    /// CPUs to wake, in kernel list notation; all this process may use when not given
    #[arg(long, value_name = "CPUS", value_parser = wakewatt_core::cpuset::CpuSet::parse)]
    pub cpu: Option<wakewatt_core::cpuset::CpuSet>,
    /// Kinds of wake-up: timer, futex, eventfd, ipi; and pipe, back and forth without a pause, only when named
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = ["timer", "futex", "eventfd", "ipi", "pipe"])]
    pub kind: Vec<String>,
    /// The CPU that wakes the others; a near one when not given. With pipe it may be the same
    #[arg(long, value_name = "CPU")]
    pub from: Option<u32>,
    /// Mean pause before each wake-up, in which the CPU may sleep; pipe has none
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = parse_ns)]
    pub gap: u64,
    /// Pauses all alike, as a periodic load has them and a governor can learn them; when not given they are exponential
    #[arg(long, conflicts_with = "seed")]
    pub fixed_gap: bool,
    /// Of the pauses, to repeat a run
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// Scheduling of the threads: fifo (the machine alone), other (what an ordinary service meets), or both in turn
    #[arg(long, value_name = "POLICY", value_enum, default_value_t = WakePolicy::Fifo)]
    pub policy: WakePolicy,
    /// Time per CPU, kind and policy
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
    /// Pause between planned requests; 0us for the next as soon as the reply is there
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
    /// Order of the pairs, and which are chosen where not all are
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
    /// Kinds of wake-up: timer, ipi, futex; when given, the first work after a pause is left out
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
    /// Leave the energy of each state out: with a meter that works it takes some two minutes more
    #[arg(long)]
    pub no_watts: bool,
    #[command(flatten)]
    pub meters: MeterArgs,
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
    #[command(flatten)]
    pub meters: MeterArgs,
    /// Fit a model to the meter: idle, one, half and all CPUs busy, each for --for; prints TOML for --model
    #[arg(long, conflicts_with_all = ["json", "command", "model"])]
    pub calibrate: bool,
    /// Where no meter works, estimate with the model in this file, made by --calibrate
    #[arg(long, value_name = "FILE")]
    pub model: Option<PathBuf>,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
    /// A command to run and measure; after --
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

fn parse_interval(text: &str) -> Result<u64, String> {
    let ns = parse_ns(text)?;
    if (10_000_000..=60_000_000_000).contains(&ns) { Ok(ns) } else { Err(say!("give 10ms to 60s")) }
}
