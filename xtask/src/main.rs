//! Chores of the house: the proofs, tables, pages and packages that no user of wakewatt needs.
//!
//! `cargo xtask <chore>`; each chore is one file. To add one: write the file, add a variant below. Reading commands are
//! run as the real binary in a subprocess, so a panic or a hang there is a result here and not the end of the run.
#![allow(clippy::print_stdout, clippy::print_stderr)] // A program for people at a terminal.

mod aarch64;
mod agent_page;
mod bench;
mod binary;
mod boot_tree;
mod browser;
mod dist;
mod fixtures;
mod gen_host;
mod hosts;
mod laid;
mod licences;
mod packages;
mod reference;
mod screenshot;
mod site;
mod skips;
mod testbed;
mod together;
mod truth;
mod vectors;
mod words;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "xtask", about = "Chores of the wakewatt workspace")]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Run every reading command on every recorded host in a folder and check the values against the raw text
    Hosts(hosts::Args),
    /// Write a synthetic machine of about 50,000 files, for the speed test
    GenHost(gen_host::Args),
    /// Measure what docs/goals.md promises, beside the peers that are installed
    Bench(bench::Args),
    /// Write docs/ref from the code; --check fails when it is stale
    #[command(alias = "bless")]
    Ref(reference::Args),
    /// Write completions, man pages and the static binary into a folder
    Dist(dist::Args),
    /// Write a release's files: .deb, .rpm, container image, tar archive, bill of materials, SHA256SUMS
    Packages(packages::Args),
    /// Build the static binary for arm64, with rustup's library or Debian's compiler
    BuildAarch64(aarch64::Args),
    /// Turn a folder of recorded trees into .host fixtures
    Fixtures(fixtures::Args),
    /// Look at a report in a headless browser: pictures, PDF, no request, no script error, no overflow
    Screenshot(screenshot::Args),
    /// Look at a running agent's page in a headless browser, with six made-up hours behind it
    AgentPage(agent_page::Args),
    /// Let Debian's own GRUB make a grub.cfg from the planned drop-in, and look at it (root)
    BootTree(boot_tree::Args),
    /// Build the documentation as a site from site/, docs/ and the guide; --check looks at links and the table of contents only
    Site(site::Args),
    /// List what a test run skipped, and fail where this machine could have run it
    Skips(skips::Args),
    /// Check the licences of all dependencies against deny.toml
    Licences,
    /// Boot a real kernel on an emulated machine of our choosing and run a command in it
    Testbed(testbed::Args),
    /// Write docs/truth.md: published figures beside what the models make of them; --check fails when it is stale
    Truth(truth::Args),
    /// List the functions that a waiting agent runs, for the linker to lay together (qemu-user)
    Together,
    /// Replay golden decisions of kernels through the governor models; fails on any mismatch
    Vectors(vectors::Args),
    /// Bring the catalogues of other languages in step with the sources; --check fails where they are not
    Words(words::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().chore {
        Chore::Hosts(args) => hosts::run(&args),
        Chore::GenHost(args) => gen_host::run(&args),
        Chore::Bench(args) => bench::run(&args),
        Chore::Ref(args) => reference::run(&args),
        Chore::Dist(args) => dist::run(&args),
        Chore::Packages(args) => packages::run(&args),
        Chore::BuildAarch64(args) => aarch64::run(&args),
        Chore::Fixtures(args) => fixtures::run(&args),
        Chore::Screenshot(args) => screenshot::run(&args),
        Chore::AgentPage(args) => agent_page::run(&args),
        Chore::BootTree(args) => boot_tree::run(&args),
        Chore::Site(args) => site::run(&args),
        Chore::Skips(args) => skips::run(&args),
        Chore::Licences => licences::run(),
        Chore::Together => together::run(),
        Chore::Truth(args) => truth::run(&args),
        Chore::Vectors(args) => vectors::run(&args),
        Chore::Words(args) => words::run(&args),
        // The only chore whose exit code is another program's, so 125 says that it is not.
        Chore::Testbed(args) => match testbed::run(&args) {
            Ok(code) => return code,
            Err(error) => {
                eprintln!("xtask: {error:#}");
                return ExitCode::from(125);
            }
        },
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The top of the repository.
fn repository() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or(here.clone(), std::path::Path::to_path_buf)
}
