//! `cargo xtask testbed`: real kernels on machines of our choosing, emulated, to run wakewatt or anything else in.
//!
//! A machine file (`testbed/machines`) says what the machine has; a stock Debian kernel boots on it with an initramfs
//! made on the spot, runs one command and powers off. Nothing is installed and nothing needs root. How to use it and what
//! is not real in it: `testbed/README.md`. Data flows machine → board → QEMU → records → out folder.

mod arm;
mod attribution;
mod board;
mod boards;
mod check;
mod expect;
mod guest;
mod initramfs;
mod kernel;
mod live;
mod machine;
mod modules;
mod package;
mod prove;
mod run;
mod step;
mod two_nodes;
mod wakewatt;
mod x86;

use anyhow::{Context, Result, bail};
use machine::Machine;
use run::{Ending, Job};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// What a shell says of a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// Arguments of `testbed`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Boot a machine, run a command in it, end with its exit code (124: not in time, 125: no machine, 130: interrupted)
    Run(RunArgs),
    /// Name the machines of the repository
    List,
    /// Boot every machine and compare what wakewatt says inside with the machine's file
    Check(CheckArgs),
    /// Boot a machine with idle states that really sleep, one with two memory nodes and one with a full node, and run commands in them
    Live(CheckArgs),
    /// Try on real kernels what `wakewatt tune` promises: undo, crashes, refusals, the next boot
    Prove(ProveArgs),
    /// Compare what `wakewatt trace` counts on deep-idle with the kernel's event log and with sysfs
    Attribution {
        /// The wakewatt to put inside; a debug build is made when not given
        #[arg(long, value_name = "PATH")]
        binary: Option<PathBuf>,
    },
}

#[derive(clap::Args)]
struct ProveArgs {
    /// Only these; all when none is given
    names: Vec<String>,
    /// The wakewatt to put inside; a debug build is made for each architecture when not given
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// A proof whose machine cannot be booted here is a failure
    #[arg(long)]
    strict: bool,
}

#[derive(clap::Args)]
struct CheckArgs {
    /// Only these: machine files, or names of some in testbed/machines; for `live` deep-idle, two-socket-slow-dimms and four-small-nodes when none is given
    machines: Vec<PathBuf>,
    /// The wakewatt to put inside; a debug build is made for each architecture when not given
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// A machine that cannot be booted here is a failure
    #[arg(long)]
    strict: bool,
}

#[derive(clap::Args)]
struct RunArgs {
    /// A machine file, or the name of one in testbed/machines
    machine: PathBuf,
    /// The command and its arguments, behind `--`; wakewatt and busybox are on the path
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
    /// Give up after this long: 90s, 5min, or seconds
    #[arg(long, default_value = "120s", value_parser = duration)]
    timeout: Duration,
    /// Put a file inside, at GUEST or else at /root/NAME; may be repeated
    #[arg(long = "file", value_name = "HOST[:GUEST]")]
    files: Vec<String>,
    /// Bring a file or folder back, into OUT/files; may be repeated
    #[arg(long, value_name = "GUESTPATH")]
    fetch: Vec<String>,
    /// Where stdout, stderr, console.log, qemu.log and files/ go; target/testbed/out/MACHINE when not given
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The wakewatt to put inside; the newer of the release and the debug build when not given
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    match &args.what {
        What::List => list(),
        What::Run(args) => run_command(args),
        What::Check(args) => run_check(args),
        What::Live(args) => run_live(args),
        What::Prove(args) => {
            let is_right = prove::prove(&args.names, args.binary.as_deref(), args.strict)?;
            Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        What::Attribution { binary } => {
            let is_right = attribution::attribution(&machine_file(Path::new("deep-idle")), binary.as_deref())?;
            Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
    }
}

fn run_check(args: &CheckArgs) -> Result<ExitCode> {
    let named: Vec<PathBuf> = args.machines.iter().map(|given| machine_file(given)).collect();
    let files = if named.is_empty() { machine_files()? } else { named };
    check::check(&files, args.binary.as_deref(), args.strict)
}

fn run_live(args: &CheckArgs) -> Result<ExitCode> {
    let named: Vec<PathBuf> = args.machines.iter().map(|given| machine_file(given)).collect();
    let files = if named.is_empty() {
        ["deep-idle", "two-socket-slow-dimms", "four-small-nodes"].map(|name| machine_file(Path::new(name))).into()
    } else {
        named
    };
    let is_right = live::live(&files, args.binary.as_deref(), args.strict)?;
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn list() -> Result<ExitCode> {
    for path in machine_files()? {
        let machine = Machine::read(&path)?;
        println!("{:24} {}", machine.name, machine.summary);
    }
    Ok(ExitCode::SUCCESS)
}

fn run_command(args: &RunArgs) -> Result<ExitCode> {
    let machine = Machine::read(&machine_file(&args.machine))?;
    let wakewatt = wakewatt::find(machine.arch, args.binary.as_deref())?;
    if wakewatt.is_none() {
        let triple = boards::of(machine.arch).triple();
        eprintln!(
            "testbed: no wakewatt for {triple} is built, so none goes inside; cargo build -p wakewatt, or --binary"
        );
    }
    let out = out_folder(&machine, args.out.as_deref())?;
    let files: Vec<(PathBuf, String)> = args.files.iter().map(|text| pair(text)).collect();
    let ran = run::run(&Job {
        machine: &machine,
        wakewatt: wakewatt.as_deref(),
        command: &args.command,
        files: &files,
        fetch: &args.fetch,
        out: &out,
        timeout: args.timeout,
        is_echoed: true,
    })?;
    for said in &ran.results.refused {
        eprintln!("testbed: the kernel refused module {said}");
    }
    for path in &ran.results.missing {
        eprintln!("testbed: {path}: not there or not readable inside");
    }
    let boot = ran.results.boot_s.map_or("not booted".into(), |s| format!("booted in {s:.1} s"));
    let wall_s = ran.wall.as_secs_f64();
    eprintln!("testbed: {} ({}): {boot}, {wall_s:.1} s in all; {}", machine.name, ran.release, out.display());
    Ok(match ran.ending {
        Ending::Exited(code) => ExitCode::from(code),
        Ending::Late => {
            eprintln!("testbed: not done after {} s (--timeout)", args.timeout.as_secs());
            ExitCode::from(124)
        }
        Ending::Interrupted => ExitCode::from(INTERRUPTED),
    })
}

/// Where cargo builds.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| crate::repository().join("target"), PathBuf::from)
}

/// Folder for packages and results; nothing of cargo's own has this name.
fn cache() -> Result<PathBuf> {
    folder(&target().join("testbed"))
}

/// Where the results of a run go.
fn out_folder(machine: &Machine, given: Option<&Path>) -> Result<PathBuf> {
    match given {
        Some(given) => folder(given),
        None => folder(&cache()?.join("out").join(&machine.name)),
    }
}

/// Makes it; its full path, because QEMU and iasl may look from elsewhere.
fn folder(path: &Path) -> Result<PathBuf> {
    let made = std::fs::create_dir_all(path).and_then(|()| path.canonicalize());
    made.with_context(|| format!("{}: not writable", path.display()))
}

/// The machines of the repository, by name.
fn machine_files() -> Result<Vec<PathBuf>> {
    let folder = crate::repository().join("testbed/machines");
    let entries = std::fs::read_dir(&folder).with_context(|| format!("{}: not readable", folder.display()))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    files.sort();
    Ok(files)
}

/// `governors` is short for `testbed/machines/governors.toml`.
fn machine_file(given: &Path) -> PathBuf {
    if given.extension().is_some() || given.components().count() > 1 {
        return given.to_path_buf();
    }
    crate::repository().join("testbed/machines").join(given).with_extension("toml")
}

/// `HOST[:GUEST]`.
fn pair(text: &str) -> (PathBuf, String) {
    if let Some((here, there)) = text.split_once(':') {
        return (here.into(), there.into());
    }
    let name = Path::new(text).file_name().unwrap_or_default().to_string_lossy().into_owned();
    (text.into(), format!("/root/{name}"))
}

fn duration(text: &str) -> Result<Duration> {
    if let Ok(seconds) = text.parse() {
        return Ok(Duration::from_secs(seconds));
    }
    match humantime::parse_duration(text) {
        Ok(duration) => Ok(duration),
        Err(error) => bail!("{error}; write 90s or 5min"),
    }
}
