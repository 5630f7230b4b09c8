//! The command line of `measure disk`. There is no option to write, and none may be added.

use clap::Args;
use std::path::PathBuf;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::units::parse_ns;
use wakewatt_words::say;

/// Arguments of `measure disk`.
#[derive(Debug, Args)]
pub struct DiskArgs {
    /// A file or block device, which is only ever read; a file of random bytes is made (and removed) when not given
    #[arg(value_name = "FILE|DEVICE")]
    pub target: Option<PathBuf>,
    /// Folder for the file that is made; it needs no name and vanishes with the process
    #[arg(long = "in", value_name = "FOLDER", default_value = ".", conflicts_with = "target")]
    pub folder: PathBuf,
    /// Size of the file that is made, or how much of the target to read from
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub size: Option<u64>,
    /// Ways to read: psync (pread), io_uring; both when not given
    #[arg(long, value_name = "ENGINE", value_delimiter = ',', value_parser = ["psync", "io_uring"])]
    pub engine: Vec<String>,
    /// Reads under way: threads of psync, slots of io_uring
    #[arg(long, value_name = "N", default_value = "1", value_delimiter = ',')]
    pub depth: Vec<u32>,
    /// Bytes per read, 4k to 1M
    #[arg(long, value_name = "BYTES", default_value = "4k", value_parser = parse_bytes)]
    pub block: u64,
    /// One block after the other instead of random order
    #[arg(long)]
    pub sequential: bool,
    /// Planned reads per second with random gaps, counted from the plan; back to back when not given
    #[arg(long, value_name = "PER_SECOND")]
    pub rate: Option<f64>,
    /// Through the page cache where it cannot be bypassed; memory may then answer for the disk
    #[arg(long)]
    pub buffered: bool,
    /// CPUs of the reading threads, in turn; the last one this process may use when not given
    #[arg(long, value_name = "CPUS", value_parser = CpuSet::parse)]
    pub cpu: Option<CpuSet>,
    /// Time per engine and depth; per block with --experiment
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_ns)]
    pub duration: u64,
    /// Compare with the idle states held shallow and with no sleep, in random order, put back afterwards (root; one
    /// engine, psync when not given)
    #[arg(long)]
    pub experiment: bool,
    /// Time for the whole experiment
    #[arg(long, value_name = "TIME", default_value = "2min", value_parser = parse_ns, requires = "experiment")]
    pub budget: u64,
    /// Repeat an order of reads and blocks
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// `4k`, `1M`, `2GiB`, `512`: binary units, as fio and the kernel use them.
fn parse_bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let value: u64 = number.parse().map_err(|_| say!("\"{text}\" is not a size such as 4k, 1M or 2G"))?;
    let shift = match unit.trim().to_ascii_lowercase().trim_end_matches("ib").trim_end_matches('b') {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return Err(say!("\"{unit}\" is not a unit of size: use k, M, G or T")),
    };
    value.checked_shl(shift).filter(|v| v >> shift == value).ok_or_else(|| say!("\"{text}\" is too much"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn sizes() {
        let all = ["4k", "4KiB", "1M", "2g", "512", "512B"].map(|t| super::parse_bytes(t).unwrap());
        assert_eq!(all, [4096, 4096, 1 << 20, 2 << 30, 512, 512]);
        for wrong in ["", "k", "4x", "-1", "99999999999T"] {
            assert!(super::parse_bytes(wrong).is_err(), "{wrong}");
        }
    }
}
