//! `cargo xtask bench`: what docs/goals.md promises, measured here and now beside the peers that are installed.
//!
//! Always a ratio in one run, alternating, so that a slow or busy machine slows both sides. One file per measurement;
//! to add one: write the file, add a line to `ALL`. `--save` keeps table and raw numbers under bench/runs.

pub(crate) mod agent;
mod binary_file;
mod blocks;
mod compare_aa;
mod disk;
mod cores;
mod coverage;
mod history;
mod icmp;
mod inspect;
mod load;
mod memory;
mod network;
mod payers;
mod pipe;
mod recompute;
mod record;
mod replay;
mod scraper;
mod profiles;
mod simulate;
mod sleepers;
mod specpower;
mod startup;
mod trace;
mod versus;
mod wakeup;
mod watch;

use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Arguments of `bench`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these: inspect, startup, wakeup, watch, binary, icmp, trace, record, memory, disk, cores, network, pipe, load, profiles, simulate, agent, payers, history;
    /// and only when named: compare-aa, half an hour of runs of the same, compared; blocks, shipped experiments with their
    /// blocks kept (--save); replay, which turns idle settings of this machine and back; and alone:
    /// recompute, published figures again from raw values; coverage, how often the intervals of simulate
    /// hold; specpower, the power model beside published results (--table)
    what: Vec<String>,
    /// Pairs of compare-aa
    #[arg(long, value_name = "N", default_value_t = compare_aa::PAIRS)]
    pairs: usize,
    /// Seeds of coverage
    #[arg(long, value_name = "N", default_value_t = coverage::SEEDS)]
    seeds: u64,
    /// Published results for specpower, as CSV
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
    /// A plan of blocks, in place of k0-shop and k3-disk
    #[arg(long, value_name = "PLAN")]
    plan: Vec<String>,
    /// The binary to measure; built in release when not given
    #[arg(long)]
    bin: Option<PathBuf>,
    /// Keep the table and the raw numbers in bench/runs/DATE-CLASS, e.g. --save vm-2cpu
    #[arg(long, value_name = "CLASS")]
    save: Option<String>,
    /// Fail when a goal is missed
    #[arg(long)]
    strict: bool,
}

/// One line of the table.
pub(crate) struct Row {
    /// What was measured.
    pub what: &'static str,
    /// Ours.
    pub ours: String,
    /// The peer, or why there is none.
    pub peer: String,
    /// The goal.
    pub goal: &'static str,
    /// Reached? None when it could not be told.
    pub is_met: Option<bool>,
}

/// Rows and raw numbers of one measurement.
#[derive(Default)]
pub(crate) struct Measured {
    /// For the table.
    pub rows: Vec<Row>,
    /// Raw numbers, as CSV.
    pub csv: String,
}

type Measure = fn(&Path) -> Result<Measured>;
type Chosen<'a> = &'a dyn Fn(&Path) -> Result<Measured>;

/// Every measurement: name and function.
const ALL: &[(&str, Measure)] = &[
    ("inspect", inspect::measure),
    ("startup", startup::measure),
    ("wakeup", wakeup::measure),
    ("watch", watch::measure),
    ("binary", binary_file::measure),
    ("icmp", icmp::measure),
    ("trace", trace::measure),
    ("record", record::measure),
    ("memory", memory::measure),
    ("disk", disk::measure),
    ("cores", cores::measure),
    ("load", load::measure),
    ("network", network::measure),
    ("pipe", pipe::measure),
    ("profiles", profiles::measure),
    ("simulate", simulate::measure),
    ("agent", agent::measure),
    ("payers", payers::measure),
    ("history", history::measure),
];

pub(crate) fn run(args: &Args) -> Result<bool> {
    if args.what.iter().any(|what| what == "recompute") {
        return recompute::run().map(|()| true);
    }
    if args.what.iter().any(|what| what == "coverage") {
        return coverage::run(args.seeds);
    }
    if args.what.iter().any(|what| what == "specpower") {
        return specpower::run(args.table.as_deref());
    }
    let binary = match &args.bin {
        Some(binary) => binary.clone(),
        None => crate::binary::build(crate::binary::Profile::Dist)?,
    };
    let mut table = String::from("| what | wakewatt | peer | goal | met |\n|---|---|---|---|---|\n");
    print!("{table}");
    let (mut raw, mut is_all_met) = (Vec::new(), true);
    let is_named = |name: &str| args.what.iter().any(|w| w == name);
    let aa = |binary: &Path| compare_aa::measure(binary, args.pairs);
    let mut chosen: Vec<(&str, Chosen<'_>)> = Vec::new();
    for (name, measure) in ALL {
        if args.what.is_empty() || is_named(name) {
            chosen.push((name, measure));
        }
    }
    if is_named("compare-aa") {
        chosen.push(("compare-aa", &aa));
    }
    if is_named("replay") {
        chosen.push(("replay", &replay::measure));
    }
    let kept =
        args.save.as_deref().map(|class| Ok::<_, anyhow::Error>(run_folder(class)?.join("blocks"))).transpose()?;
    let blocks = |binary: &Path| {
        let folder = kept.as_deref().context("blocks are kept in bench/runs: give --save CLASS")?;
        blocks::measure(binary, &args.plan, folder)
    };
    if is_named("blocks") {
        chosen.push(("blocks", &blocks));
    }
    for (name, measure) in chosen {
        let result = measure(&binary).with_context(|| format!("bench {name}"))?;
        for row in result.rows {
            let met = row.is_met.map_or("cannot tell", |met| if met { "yes" } else { "NO" });
            let line = format!("| {} | {} | {} | {} | {met} |\n", row.what, row.ours, row.peer, row.goal);
            print!("{line}");
            table.push_str(&line);
            is_all_met &= row.is_met != Some(false);
        }
        raw.push((name, result.csv));
    }
    if let Some(class) = &args.save {
        save(class, &table, &raw)?;
    }
    Ok(is_all_met || !args.strict)
}

/// Where the numbers of today are kept.
fn run_folder(class: &str) -> Result<PathBuf> {
    Ok(crate::repository().join("bench/runs").join(format!("{}-{class}", today()?)))
}

fn save(class: &str, table: &str, raw: &[(&str, String)]) -> Result<()> {
    let folder = run_folder(class)?;
    std::fs::create_dir_all(&folder)?;
    let old = std::fs::read_to_string(folder.join("README.md")).unwrap_or_default();
    let mut readme = format!("# Measured on {}, {class}\n\n{}\n", today()?, joined(&old, table));
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_string();
    let model = read("/proc/cpuinfo");
    let model = model.lines().find(|l| l.starts_with("model name")).and_then(|l| l.split(": ").nth(1)).unwrap_or("?");
    let _ = writeln!(readme, "- CPU: {model}, online {}", read("/sys/devices/system/cpu/online"));
    let _ = writeln!(readme, "- kernel: {}", read("/proc/sys/kernel/osrelease"));
    let _ = writeln!(readme, "- idle driver: {}", read("/sys/devices/system/cpu/cpuidle/current_driver"));
    let _ = writeln!(readme, "- load before: {}", read("/proc/loadavg"));
    let _ =
        writeln!(readme, "\nRaw numbers in the .csv files beside this; made by `cargo xtask bench --save {class}`.");
    if let Some((_, notes)) = old.split_once("\n## Notes") {
        let _ = write!(readme, "\n## Notes{notes}");
    }
    std::fs::write(folder.join("README.md"), readme)?;
    for (name, csv) in raw.iter().filter(|(_, csv)| !csv.is_empty()) {
        std::fs::write(folder.join(format!("{name}.csv")), csv)?;
    }
    println!("\nsaved in {}", folder.display());
    Ok(())
}

/// The new table, and the old one's rows that were not measured again.
fn joined(old: &str, new: &str) -> String {
    let what = |line: &str| line.split('|').nth(1).map(str::trim).unwrap_or_default().to_string();
    let is_new = |line: &str| new.lines().any(|l| what(l) == what(line));
    let kept = old.lines().filter(|line| line.starts_with("| ") && !is_new(line));
    kept.fold(new.to_string(), |table, line| table + line + "\n")
}

/// The date, UTC (civil-from-days, Howard Hinnant).
fn today() -> Result<String> {
    let days = i64::try_from(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs() / 86_400)?
        + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    Ok(format!("{year:04}-{month:02}-{:02}", day_of_year - (153 * shifted + 2) / 5 + 1))
}

/// The middle value.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// Where a program lies, if it is installed.
pub(crate) fn installed(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// A reference program in C, made in this folder; or why there is none.
pub(crate) fn compiled(folder: &Path, name: &str, source: &str, flags: &[&str]) -> Result<PathBuf, String> {
    let compiler = installed("cc").or(installed("gcc")).or(installed("clang"));
    let compiler = compiler.ok_or("no C compiler (Debian package gcc)".to_string())?;
    let (file, program) = (folder.join(name).with_extension("c"), folder.join(name));
    std::fs::write(&file, source).map_err(|e| format!("{}: {e}", file.display()))?;
    let made = std::process::Command::new(compiler).args(flags).arg("-o").arg(&program).arg(&file).output();
    let made = made.map_err(|e| format!("the C compiler: {e}"))?;
    if made.status.success() {
        Ok(program)
    } else {
        Err(format!("{name}.c did not compile: {}", String::from_utf8_lossy(&made.stderr).trim()))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn medians_and_dates() {
        assert_eq!(super::median(&[3.0, 1.0, 2.0, 10.0]), 2.5);
        let old = "# x\n| what | a |\n|---|\n| kept | 1 |\n| again | 1 |\nend";
        assert_eq!(
            super::joined(old, "| what | a |\n|---|\n| again | 2 |\n"),
            "| what | a |\n|---|\n| again | 2 |\n| kept | 1 |\n"
        );
        assert_eq!(super::today().unwrap().len(), 10);
    }
}
