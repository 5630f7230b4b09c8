//! `cargo xtask testbed check`: boots every machine and compares what wakewatt says inside with the machine's file.
//!
//! The file made the firmware, the kernel read that, wakewatt read the kernel: three hands, so agreement means something.
//! A machine whose emulator or packages cannot be had here is skipped, aloud.

use super::machine::Machine;
use super::run::{self, Ending, Job};
use super::{boards, expect, kernel, package, wakewatt};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Emulation is slow and the host may be busy; a machine that takes this long hangs.
const LIMIT: Duration = Duration::from_secs(240);
/// Left behind inside when the management controller's device is there.
const BMC_MARK: &str = "/tmp/has-ipmi0";

/// What the command ends with when all went well inside.
const CODE: u8 = 42;

/// Checks these machines; success when all that could be booted are as their files say.
pub(super) fn check(files: &[PathBuf], binary: Option<&Path>, is_strict: bool) -> Result<ExitCode> {
    let mut is_right = true;
    for path in files {
        let machine = Machine::read(path)?;
        // A binary that was named is one for this host; machines of other architectures take what is built for them.
        let binary = binary.filter(|_| boards::of(machine.arch).debian_arch() == kernel::host_arch());
        if let Some(why) = unavailable(&machine, binary) {
            println!("{:24} skipped: {why}", machine.name);
            is_right &= !is_strict;
            continue;
        }
        match boot(&machine, binary) {
            Ok(Checked::Interrupted) => return Ok(ExitCode::from(super::INTERRUPTED)),
            Ok(Checked::Compared(boot_s, differences)) => {
                let verdict = if differences.is_empty() { "as its file says" } else { "NOT as its file says" };
                println!("{:24} booted in {boot_s:.1} s; {verdict}", machine.name);
                for difference in &differences {
                    println!("    {difference}");
                }
                is_right &= differences.is_empty();
            }
            Err(error) => {
                println!("{:24} FAILED: {error:#}", machine.name);
                is_right = false;
            }
        }
    }
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Why this machine cannot be booted here, if so.
pub(super) fn unavailable(machine: &Machine, binary: Option<&Path>) -> Option<String> {
    let board = boards::of(machine.arch);
    let missing = board.programs().into_iter().find(|(program, _)| crate::bench::installed(program).is_none());
    if let Some((program, package)) = missing {
        return Some(format!("{program} is missing (Debian package {package})"));
    }
    // Packages that lie here already need no apt.
    if let Err(error) = kernel::get(board.debian_arch(), &machine.kernel) {
        let arch = board.debian_arch();
        return Some(if package::knows_arch(arch) {
            format!("no kernel: {error:#}")
        } else {
            format!("dpkg does not know {arch} (sudo dpkg --add-architecture {arch} && sudo apt-get update)")
        });
    }
    if binary.is_some() {
        return None;
    }
    wakewatt::can_be_made(machine.arch).err().map(|error| format!("no wakewatt for it: {error:#}"))
}

enum Checked {
    /// Seconds of uptime when the command began, and the differences.
    Compared(f64, Vec<String>),
    Interrupted,
}

fn boot(machine: &Machine, binary: Option<&Path>) -> Result<Checked> {
    let wakewatt = wakewatt::made(machine.arch, binary)?;
    // Bytes that no console would pass, and a code of our own: the way back is checked too.
    let script = format!(
        "test -e /dev/ipmi0 && : >{BMC_MARK}; wakewatt inspect --json || exit 1; printf '\\000\\377\\r\\n' >&2; exit {CODE}"
    );
    let out = super::out_folder(machine, None)?;
    let ran = run::run(&Job {
        machine,
        wakewatt: Some(&wakewatt),
        command: &["sh".into(), "-c".into(), script],
        files: &[],
        fetch: &[BMC_MARK.into()],
        out: &out,
        timeout: LIMIT,
        is_echoed: false,
    })?;
    match ran.ending {
        Ending::Exited(CODE) => {}
        Ending::Exited(code) => anyhow::bail!("wakewatt inspect ended with {code}; see {}", out.display()),
        Ending::Late => anyhow::bail!("not done after {} s; see {}", LIMIT.as_secs(), out.display()),
        Ending::Interrupted => return Ok(Checked::Interrupted),
    }
    if !std::fs::read(out.join("stderr"))?.ends_with(b"\0\xff\r\n") {
        anyhow::bail!("standard error did not arrive unchanged; see {}", out.display());
    }
    let document = std::fs::read(out.join("stdout"))?;
    let inspect = serde_json::from_slice(&document).context("wakewatt inspect --json wrote no JSON")?;
    let mut differences = expect::differences(machine, &inspect);
    let has_bmc = ran.results.missing.is_empty();
    if has_bmc != machine.has_bmc {
        differences
            .push(format!("BMC: the machine file makes has_bmc {}, /dev/ipmi0 there: {has_bmc}", machine.has_bmc));
    }
    differences.extend(ran.results.refused.iter().map(|said| format!("the kernel refused module {said}")));
    Ok(Checked::Compared(ran.results.boot_s.unwrap_or(f64::NAN), differences))
}
