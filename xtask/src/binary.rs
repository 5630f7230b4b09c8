//! The wakewatt binary under test: found or built, run with a time limit, its end judged.
//!
//! Runs in an empty environment, which is also what a careful administrator's cron job gives it.

use anyhow::{Context, Result, bail};
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Exit codes the manual documents for a command that was called rightly.
const DOCUMENTED: &[i32] = &[0, 1, 2, 3, 4, 5, 130];

/// How a run ended.
pub(crate) struct Outcome {
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: String,
    /// Wall time.
    pub took: Duration,
    /// What went wrong in a way no input may cause: a panic, a signal, a time-out, an undocumented code.
    pub crash: Option<String>,
    /// The exit code, if it exited.
    pub code: Option<i32>,
}

/// How it is built (Cargo.toml).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// What tests run; shares what they have built.
    Dev,
    /// What a fresh clone builds for itself: fast to build.
    Release,
    /// What packages hold and published figures are taken of.
    Dist,
}

/// Builds the binary in the given profile and says where it lies.
pub(crate) fn build(profile: Profile) -> Result<PathBuf> {
    match profile {
        Profile::Dist => {
            let together = crate::laid::flags()?;
            linked(begun("rustc", profile), &together.each_ref().map(String::as_str))
        }
        Profile::Dev | Profile::Release => built(cargo(profile)),
    }
}

/// Does the linker here understand the list of what lies together?
pub(crate) fn lays_together() -> Result<bool> {
    Ok(crate::laid::flags()?.iter().all(|flag| is_understood(flag)))
}

/// As packages hold it, but with the names of its functions, and those where they come.
pub(crate) fn build_named() -> Result<PathBuf> {
    let mut cargo = begun("rustc", Profile::Dist);
    cargo.args(["--config", "profile.dist.package.wakewatt.strip=\"none\""]);
    linked(cargo, &[])
}

/// With what linker and C library here understand of the flags that make it smaller.
fn linked(mut cargo: Command, more: &[&str]) -> Result<PathBuf> {
    let flags = SMALLER.iter().chain(more).filter(|flag| is_understood(flag));
    cargo.arg("--").args(flags.flat_map(|flag| ["-C", flag]));
    built(cargo)
}

/// Half a megabyte of a static binary that may lie anywhere are addresses to be corrected at its start; packed they take a tenth (DT_RELR). Functions that came out alike are
/// kept once.
const SMALLER: [&str; 2] = ["link-arg=-Wl,-z,pack-relative-relocs", "link-arg=-Wl,--icf=all"];

/// Do linker and C library here understand this? Older ones pass over the flag or make a program that dies at its start, so one is run.
fn is_understood(flag: &str) -> bool {
    let Ok(folder) = tempfile::tempdir() else { return false };
    let (source, program) = (folder.path().join("probe.rs"), folder.path().join("probe"));
    if std::fs::write(&source, "fn main() { println!(\"{:?}\", std::env::args().count()); }").is_err() {
        return false;
    }
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut compiled = Command::new(rustc);
    compiled.current_dir(crate::repository());
    compiled.args(["-C", "target-feature=+crt-static", "-C", flag, "-o"]).arg(&program).arg(&source);
    let quiet = |command: &mut Command| {
        let output = command.stdin(Stdio::null()).output();
        output.is_ok_and(|o| o.status.success() && o.stderr.is_empty())
    };
    quiet(&mut compiled) && quiet(&mut Command::new(&program))
}

/// The command that builds it; a target or a compiler may be added.
pub(crate) fn cargo(profile: Profile) -> Command {
    begun("build", profile)
}

fn begun(verb: &str, profile: Profile) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args([verb, "--quiet", "--locked", "--bin", "wakewatt"]);
    cargo.args(["--message-format", "json-render-diagnostics"]).current_dir(crate::repository());
    match profile {
        // The features of the whole workspace, so that what the tests have built is used again.
        Profile::Dev => cargo.arg("--workspace"),
        Profile::Release => cargo.args(["--package", "wakewatt", "--release"]),
        Profile::Dist => {
            // Nothing unwinds through C; its tables are a hundred kilobytes.
            let mut c_flags = std::env::var("CFLAGS").unwrap_or_default() + " -fno-asynchronous-unwind-tables";
            // Instances of a generic function have names of their own, so that the linker can lay together just those that run (`together`).
            let mut flags = vec!["-Csymbol-mangling-version=v0".to_string()];
            for (folder, name) in named_alike() {
                flags.push(format!("--remap-path-prefix={folder}={name}"));
                c_flags += &format!(" -ffile-prefix-map={folder}={name}");
            }
            cargo.env("CFLAGS", c_flags.trim());
            // Joined with the flags of .cargo/config.toml, as RUSTFLAGS would not be.
            cargo.arg("--config").arg(format!("target.'cfg(all())'.rustflags={flags:?}"));
            cargo.args(["--package", "wakewatt", "--profile", "dist"])
        }
    };
    cargo
}

/// Folders whose names would stand in messages of the binary, and what stands there instead: two builds in two folders are the same bytes, and
/// neither tells who made it.
fn named_alike() -> Vec<(String, &'static str)> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
    // The last that fits counts, and the target folder may lie in the repository.
    let folders = [(home, "/cargo"), (Some(crate::repository()), "/wakewatt"), (Some(target_folder()), "/target")];
    let whole = folders.into_iter().filter_map(|(folder, name)| Some((std::path::absolute(folder?).ok()?, name)));
    whole.map(|(folder, name)| (folder.display().to_string(), name)).collect()
}

/// Carries it out and says where the binary lies.
pub(crate) fn built(mut cargo: Command) -> Result<PathBuf> {
    let output = cargo.stderr(Stdio::inherit()).output().context("cargo could not be run")?;
    if !output.status.success() {
        bail!("wakewatt could not be built; the compiler's message is above");
    }
    // The last artifact that is an executable is the binary, wherever the target directory is.
    let lines = String::from_utf8_lossy(&output.stdout);
    let executable = lines
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from))
        .next_back();
    executable.context("cargo named no executable")
}

/// Where cargo puts what it makes.
pub(crate) fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| crate::repository().join("target"), PathBuf::from)
}

pub(crate) fn run(binary: &Path, args: &[&std::ffi::OsStr], limit: Duration) -> Result<Outcome> {
    let started = Instant::now();
    let mut child = Command::new(binary)
        .args(args)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("{}: could not be started", binary.display()))?;
    let drain = |pipe: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut pipe) = pipe {
                let _ = pipe.read_to_end(&mut bytes);
            }
            bytes
        })
    };
    let stdout = drain(child.stdout.take().map(|p| Box::new(p) as Box<dyn Read + Send>));
    let stderr = drain(child.stderr.take().map(|p| Box::new(p) as Box<dyn Read + Send>));
    let mut is_late = false;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if started.elapsed() > limit {
            is_late = true;
            let _ = child.kill();
            break child.wait()?;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let took = started.elapsed();
    let stdout = stdout.join().unwrap_or_default();
    let stderr = String::from_utf8_lossy(&stderr.join().unwrap_or_default()).into_owned();
    let crash = if is_late {
        Some(format!("not done after {} s", limit.as_secs()))
    } else if let Some(signal) = status.signal() {
        Some(format!("killed by signal {signal}"))
    } else if status.code() == Some(101) || stderr.contains("panicked at") {
        let line = stderr.lines().find(|l| l.contains("panicked at")).unwrap_or("exit code 101");
        Some(format!("panic: {line}"))
    } else {
        status.code().filter(|c| !DOCUMENTED.contains(c)).map(|c| format!("undocumented exit code {c}"))
    };
    Ok(Outcome { stdout, stderr, took, crash, code: status.code() })
}
