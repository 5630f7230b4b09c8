//! `cargo xtask packages OUT`: everything a release consists of, from one binary per architecture.
//!
//! A `.deb`, an `.rpm`, a container image, a tar archive and a bill of materials for each, and `SHA256SUMS` over all. From the
//! same binary and the same sources the same bytes come, wherever and whenever (`tests.rs`). Programs of the system do the packing
//! (dpkg-deb, rpmbuild, tar, gzip); a format whose program is missing is an error when it was asked for by name, and said otherwise.
//! Whether the packages work is for `make prove-packages`; what they are for a user, docs/install.md.

mod content;
mod deb;
mod linked;
mod oci;
mod rpm;
mod sbom;
mod tarball;
mod tool;
mod tree;

#[cfg(test)]
mod tests;

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, UNIX_EPOCH};

const MAINTAINER: &str = "The wakewatt authors <wakewatt@example.invalid>";
const HOMEPAGE: &str = "https://example.invalid/wakewatt";
const SUMMARY: &str = "weighs CPU wake-up latency against watts";
const ABOUT: &str = "\
wakewatt reads what a server says about its idle states, clocks and limits,
measures wake-ups and round trips, turns settings back and forth in random
order, and says with an interval whether sleeping CPUs cost latency. Then it
puts everything back.

It is one static binary. The agent among its commands serves metrics for
Prometheus; its service is installed and not started.";

/// Arguments of `packages`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where to write; the folder is made
    out: PathBuf,
    /// A binary to pack, once per architecture; the one for this machine is built (profile dist) when none is given
    #[arg(long, value_name = "FILE")]
    bin: Vec<PathBuf>,
    /// Also build the binary for arm64
    #[arg(long, conflicts_with = "bin")]
    arm64: bool,
    /// Only these formats
    #[arg(long, value_delimiter = ',')]
    only: Vec<Format>,
}

/// What can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Deb,
    Rpm,
    Oci,
    Tar,
    Sbom,
}

const FORMATS: [Format; 5] = [Format::Deb, Format::Rpm, Format::Oci, Format::Tar, Format::Sbom];

/// Whom a binary is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arch {
    X86,
    Arm,
}

impl Arch {
    /// From the ELF header: bytes 18 and 19 are the machine (elf.h: EM_X86_64 is 62, EM_AARCH64 183).
    fn of(binary: &[u8]) -> Option<Arch> {
        let is_elf = binary.starts_with(&[0x7f, b'E', b'L', b'F', 2, 1]);
        match binary.get(18..20).filter(|_| is_elf)? {
            [62, 0] => Some(Arch::X86),
            [183, 0] => Some(Arch::Arm),
            _ => None,
        }
    }
    fn of_debian(self) -> &'static str {
        if self == Arch::X86 { "amd64" } else { "arm64" }
    }
    fn of_rpm(self) -> &'static str {
        if self == Arch::X86 { "x86_64" } else { "aarch64" }
    }
    fn target(self) -> &'static str {
        if self == Arch::X86 { "x86_64-unknown-linux-gnu" } else { crate::aarch64::TARGET }
    }
}

/// What every format has to know.
struct Release {
    version: String,
    /// The moment that everything in it is of.
    epoch_s: i64,
    arch: Arch,
}

impl Release {
    fn time(&self) -> String {
        let moment = UNIX_EPOCH + Duration::from_secs(self.epoch_s.unsigned_abs());
        humantime::format_rfc3339_seconds(moment).to_string()
    }
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    let mut binaries = args.bin.clone();
    if binaries.is_empty() {
        binaries.push(crate::binary::build(crate::binary::Profile::Dist)?);
        if args.arm64 {
            binaries.push(crate::aarch64::build(crate::binary::Profile::Dist, None)?);
        }
    }
    std::fs::create_dir_all(&args.out).with_context(|| format!("{}: cannot be made", args.out.display()))?;
    let epoch_s = epoch_s()?;
    let mut files = Vec::new();
    for binary in &binaries {
        files.extend(of_binary(binary, epoch_s, args)?);
    }
    files.sort();
    let mut sums = String::new();
    for file in &files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        sums += &format!("{}  {name}\n", tool::sha256(&std::fs::read(file)?)?);
    }
    std::fs::write(args.out.join("SHA256SUMS"), sums)?;
    println!("{}: {} files, SHA256SUMS", args.out.display(), files.len());
    Ok(true)
}

/// Everything for one binary.
fn of_binary(path: &Path, epoch_s: i64, args: &Args) -> Result<Vec<PathBuf>> {
    let binary = std::fs::read(path).with_context(|| format!("{}: not readable", path.display()))?;
    let arch = Arch::of(&binary).with_context(|| format!("{}: no program for x86-64 or arm64", path.display()))?;
    let release = Release { version: env!("CARGO_PKG_VERSION").into(), epoch_s, arch };
    let linked = linked::Linked::of(arch.target())?;
    let common = content::common(&release, &binary, &linked)?;
    let wanted: &[Format] = if args.only.is_empty() { &FORMATS } else { &args.only };
    let mut files = Vec::new();
    for format in wanted {
        let started = Instant::now();
        if let Some(program) = lacking(*format) {
            if !args.only.is_empty() {
                bail!("{program} is not installed");
            }
            println!("left out: no {program}, so none of its packages");
            continue;
        }
        let file = match format {
            Format::Deb => deb::write(&release, &common, &args.out)?,
            Format::Rpm => rpm::write(&release, &common, &args.out)?,
            Format::Oci => oci::write(&release, &common, &args.out)?,
            Format::Tar => tarball::write(&release, &common, &args.out)?,
            Format::Sbom => {
                let file = args.out.join(format!("wakewatt-{}-{}.cdx.json", release.version, arch.of_debian()));
                std::fs::write(&file, sbom::document(&linked, &binary, &release.version, &release.time())?)?;
                file
            }
        };
        let (bytes, seconds) = (std::fs::metadata(&file)?.len(), started.elapsed().as_secs_f64());
        println!("{:>9} kB {seconds:5.1} s  {}", bytes / 1000, file.display());
        files.push(file);
    }
    Ok(files)
}

/// The program that is not there.
fn lacking(format: Format) -> Option<&'static str> {
    let program = match format {
        Format::Deb => "dpkg-deb",
        Format::Rpm => "rpmbuild",
        Format::Oci | Format::Tar => "tar",
        Format::Sbom => return None,
    };
    crate::bench::installed(program).is_none().then_some(program)
}

/// SOURCE_DATE_EPOCH, else the moment of the commit.
fn epoch_s() -> Result<i64> {
    if let Ok(text) = std::env::var("SOURCE_DATE_EPOCH") {
        return text.parse().with_context(|| format!("SOURCE_DATE_EPOCH is no number of seconds: {text}"));
    }
    let output = Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(crate::repository()).output();
    let text = output.ok().filter(|o| o.status.success()).and_then(|o| String::from_utf8(o.stdout).ok());
    let seconds = text.and_then(|text| text.trim().parse().ok());
    seconds.context("no git repository here: set SOURCE_DATE_EPOCH to the moment of the release, in seconds")
}
