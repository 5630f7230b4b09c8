//! The static binary for arm64 servers, built on any machine: what runs in the arm64 testbed, and what a package holds.
//!
//! Three compilers can do it, tried in this order and named in the output, because a surprise in the binary may be the
//! compiler's: a machine that is arm64 itself; the compiler in use, whose arm64 library rustup adds; Debian's rustc-web
//! with its arm64 library (`debian.rs`), for machines without rustup. C parts (none but libc's start files) and the
//! link come from Debian's cross gcc. The eBPF programs are the same on every little-endian machine: they hold no
//! register and no offset, the loader takes those from the running kernel's BTF.
//!
//! `elf.rs` then looks at the file itself: for arm64, and static, whatever flags were meant to arrive.

mod debian;
mod elf;

use crate::binary::Profile;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Rust's name of what is built.
pub(crate) const TARGET: &str = "aarch64-unknown-linux-gnu";
const LINKER: &str = "aarch64-linux-gnu-gcc";
/// The C library to link in; a file, because no program tells that the package is there.
const LIBC: &str = "/usr/aarch64-linux-gnu/lib/libc.a";
const LINKER_VARIABLE: &str = "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER";

/// Arguments of `build-aarch64`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Optimised and stripped, as packages hold it; else the debug profile, which is built sooner and runs slower
    #[arg(long)]
    dist: bool,
    /// The compiler; the first that works when not given
    #[arg(long)]
    with: Option<Toolchain>,
}

/// Where the compiler and its library for arm64 come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Toolchain {
    /// This machine is arm64
    Native,
    /// The compiler in use, with the arm64 library that rustup adds
    Rustup,
    /// Debian's rustc-web and libstd-rust-web-dev:arm64, unpacked below the target folder
    Debian,
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    println!("{}", build(if args.dist { Profile::Dist } else { Profile::Dev }, args.with)?.display());
    Ok(true)
}

/// Is there a compiler, its library and a linker? Says what is missing; a target that rustup knows is added.
pub(crate) fn need_tools() -> Result<()> {
    match compiler(None)?.0 {
        Toolchain::Native => Ok(()),
        Toolchain::Rustup | Toolchain::Debian => need_cross_gcc(),
    }
}

/// Builds the binary and says where it lies; the way and the size go to standard error.
pub(crate) fn build(profile: Profile, wanted: Option<Toolchain>) -> Result<PathBuf> {
    let started = Instant::now();
    let (way, compiler) = compiler(wanted)?;
    let mut cargo = crate::binary::cargo(profile);
    cargo.args(["--target", TARGET]);
    if way != Toolchain::Native {
        need_cross_gcc()?;
        if std::env::var_os(LINKER_VARIABLE).is_none() {
            cargo.env(LINKER_VARIABLE, LINKER);
        }
    }
    if let Some(compiler) = &compiler {
        cargo.env("RUSTC", compiler);
    }
    let binary = crate::binary::built(cargo)?;
    elf::check(&binary)?;
    let mebibytes = std::fs::metadata(&binary)?.len() / (1024 * 1024);
    let seconds = started.elapsed().as_secs();
    eprintln!("arm64, static, {mebibytes} MiB, built in {seconds} s with {}", describe(way, compiler.as_deref()));
    Ok(binary)
}

/// The first way that works, or the wanted one, and the compiler to use where it is not the one in use.
fn compiler(wanted: Option<Toolchain>) -> Result<(Toolchain, Option<PathBuf>)> {
    let mut why_not = Vec::new();
    for way in [Toolchain::Native, Toolchain::Rustup, Toolchain::Debian] {
        if wanted.is_some_and(|wanted| wanted != way) {
            continue;
        }
        match way {
            Toolchain::Native if std::env::consts::ARCH == "aarch64" => return Ok((way, None)),
            Toolchain::Native => why_not.push(format!("this machine is {}", std::env::consts::ARCH)),
            Toolchain::Rustup if has_library("rustc") || add_library() => return Ok((way, None)),
            Toolchain::Rustup => why_not.push(format!("rustup target add {TARGET}: failed or no rustup")),
            Toolchain::Debian => match debian::compiler() {
                Ok(compiler) => return Ok((way, Some(compiler))),
                Err(error) => why_not.push(format!("Debian's rustc-web: {error:#}")),
            },
        }
    }
    bail!("no compiler for {TARGET}: {}", why_not.join("; "))
}

/// Does this compiler have the standard library for arm64?
fn has_library(rustc: impl AsRef<std::ffi::OsStr>) -> bool {
    let output = Command::new(rustc).args(["--print", "target-libdir", "--target", TARGET]).output();
    let folder = output.ok().filter(|o| o.status.success()).and_then(|o| String::from_utf8(o.stdout).ok());
    let names = folder.and_then(|folder| std::fs::read_dir(folder.trim()).ok());
    names
        .is_some_and(|mut names| names.any(|n| n.is_ok_and(|n| n.file_name().to_string_lossy().starts_with("libstd-"))))
}

fn add_library() -> bool {
    let status = Command::new("rustup").args(["target", "add", TARGET]).status();
    status.is_ok_and(|s| s.success()) && has_library("rustc")
}

/// The cross compiler is what links; installed when this is root on Debian, else the line to type is shown.
fn need_cross_gcc() -> Result<()> {
    let ensure = |pair: &str| {
        let script = crate::repository().join("scripts/ensure-packages.sh");
        // What it could not do it says itself; what then is missing is the error below.
        let _ = Command::new(script).args(["--optional", pair]).status();
    };
    ensure(&format!("{LINKER}=gcc-aarch64-linux-gnu"));
    if !Path::new(LIBC).exists() {
        ensure("arm64-libc.a=libc6-dev-arm64-cross");
    }
    Command::new(LINKER).arg("--version").output().with_context(|| {
        format!("{LINKER}: could not be run; install Debian's gcc-aarch64-linux-gnu and libc6-dev-arm64-cross")
    })?;
    Ok(())
}

fn describe(way: Toolchain, compiler: Option<&Path>) -> String {
    let version = Command::new(compiler.unwrap_or(Path::new("rustc"))).arg("--version").output();
    let version = version.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_string()).unwrap_or_default();
    let from = match way {
        Toolchain::Native => "this machine's own compiler",
        Toolchain::Rustup => "the compiler in use and its arm64 library",
        Toolchain::Debian => "Debian's rustc-web",
    };
    format!("{from} ({version})")
}
