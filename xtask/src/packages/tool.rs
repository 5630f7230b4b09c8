//! Programs that make packages, run with nothing of the caller's environment that could show in what they make.
//!
//! Locale, time zone, name of the host and of the user stay out. What a program says on standard error is part of the error.

use anyhow::{Context, Result, bail};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// A program with an environment of three words and the moment that everything is of.
pub(super) fn tool(program: &str, epoch_s: i64) -> Command {
    let mut command = Command::new(program);
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.env_clear().env("PATH", path).env("LC_ALL", "C").env("TZ", "UTC");
    command.env("SOURCE_DATE_EPOCH", epoch_s.to_string());
    command
}

/// Runs it to its end; what it printed.
pub(super) fn run(mut command: Command) -> Result<Vec<u8>> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("{program}: could not be run"))?;
    if !output.status.success() {
        bail!("{program}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output.stdout)
}

/// Bytes through a program: compressed, for example.
pub(super) fn filter(program: &str, args: &[&str], bytes: &[u8]) -> Result<Vec<u8>> {
    let mut command = tool(program, 0);
    let mut child = command
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("{program}: could not be run"))?;
    let mut input = child.stdin.take().context("no standard input")?;
    let output = std::thread::scope(|scope| {
        let writer = scope.spawn(move || input.write_all(bytes));
        let output = child.wait_with_output();
        // Who stops reading says so by how it ends.
        let _ = writer.join();
        output
    })?;
    if !output.status.success() {
        bail!("{program}: {}", output.status);
    }
    Ok(output.stdout)
}

/// Compressed, without name and time.
pub(super) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    filter("gzip", &["-9", "-n"], bytes)
}

/// A folder as a tar archive of root's files, in order of their names.
pub(super) fn tar(folder: &Path, inside: &str, epoch_s: i64) -> Result<Vec<u8>> {
    let mut command = tool("tar", epoch_s);
    command.args(["--create", "--format=ustar", "--sort=name", "--numeric-owner", "--owner=0", "--group=0"]);
    command.arg(format!("--mtime=@{epoch_s}")).arg("-C").arg(folder).arg(inside);
    run(command)
}

/// The SHA-256 of bytes, as hexadecimal digits.
pub(super) fn sha256(bytes: &[u8]) -> Result<String> {
    let line = String::from_utf8(filter("sha256sum", &[], bytes)?)?;
    Ok(line.split_whitespace().next().context("sha256sum said nothing")?.to_string())
}
