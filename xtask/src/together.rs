//! The functions that a waiting agent runs again and again, for the linker to lay beside one another: packaging/together.ld.
//!
//! Around each page of code that is run the kernel maps 64 KiB, and what was not run for a second has left the caches. What an answer to Prometheus
//! runs is a small part of the program and lies all over it, unless the linker is told. QEMU's emulator of a processor says what ran (the start not counted, it is
//! once in months), of the distributed binary with its names; what each question runs comes first, in the order in which it ran, and behind it what a minute's look does.
//! A name is kept without the compiler's hashes, so that most hold for the next compiler too (of what several crates have made for themselves the
//! name also says whose it is, which may be another one's then); one that no longer exists costs nothing. `dist` says how much was laid together, and refuses when it is
//! much less than it was when this list was made.

use crate::bench::agent::{agent, asked_with};
use crate::binary;
use crate::laid::{BYTES, SECTION, list};
use anyhow::{Context, Result, ensure};
use object::{Object as _, ObjectSymbol as _};
use rustix::fs::{CWD, Mode, mkfifoat};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// As Prometheus asks: protobuf first, then OpenMetrics, then text.
const PROMETHEUS: &str = "Accept: application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2\r\nAccept-Encoding: gzip\r\n";
const OPEN_METRICS: &str = "Accept: application/openmetrics-text;version=1.0.0\r\n";
/// Of this machine's own instructions, so that what it says holds for the real ones.
const EMULATOR: &str = if cfg!(target_arch = "aarch64") { "qemu-aarch64" } else { "qemu-x86_64" };
/// The agent reads at most once a second.
const PAUSE: Duration = Duration::from_millis(1200);
/// Of three questions each: a minute's look at settings falls into them.
const ROUNDS: usize = 18;

pub(crate) fn run() -> Result<bool> {
    let binary = binary::build_named()?;
    let scratch = tempfile::tempdir()?;
    let ran = watched(&binary, scratch.path())?;
    ensure!(ran.len() > 100, "{EMULATOR} names {} functions: is the binary stripped?", ran.len());
    let n_bytes = bytes_of(&ran, &std::fs::read(&binary)?)?;
    let text = script(&ran, n_bytes);
    std::fs::write(list(), &text).with_context(|| list().display().to_string())?;
    println!("{}: {} functions, {n_bytes} bytes", list().display(), ran.len());
    Ok(true)
}

/// Names of what an agent runs while it is asked a few times, those first that each question runs; under an emulator that tells the name of each piece that it runs.
fn watched(binary: &Path, scratch: &Path) -> Result<Vec<String>> {
    let (wrapper, told) = (scratch.join("watched"), scratch.join("told"));
    mkfifoat(CWD, &told, Mode::RUSR | Mode::WUSR)?;
    let words =
        format!("#!/bin/sh\nexec {EMULATOR} -d exec,nochain -D '{}' '{}' \"$@\"\n", told.display(), binary.display());
    std::fs::write(&wrapper, words)?;
    std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755))?;
    let question = Arc::new(AtomicUsize::new(0));
    let reader = std::thread::spawn({
        let question = Arc::clone(&question);
        move || names(BufReader::with_capacity(1 << 20, File::open(told)?), &question)
    });
    let history = scratch.join("history");
    let words = ["--confine", "none", "--interval", "2s", "--history"].map(AsRef::as_ref);
    let server = agent(&wrapper, words.into_iter().chain([history.as_os_str()]))
        .with_context(|| format!("{EMULATOR} (Debian: qemu-user)"))?;
    asked_with(&server, "/metrics", "")?;
    // What was run until then comes out of the pipe first.
    std::thread::sleep(PAUSE);
    for _ in 0..ROUNDS {
        for head in ["", PROMETHEUS, OPEN_METRICS] {
            question.fetch_add(1, Relaxed);
            std::thread::sleep(PAUSE);
            asked_with(&server, "/metrics", head)?;
        }
    }
    std::thread::sleep(PAUSE);
    question.store(0, Relaxed);
    drop(server);
    reader.join().map_err(|_| anyhow::anyhow!("the reader of what {EMULATOR} tells has crashed"))?
}

/// How often something ran.
#[derive(Default)]
struct Ran {
    /// Before what came later.
    first: usize,
    /// Of questions in which it did.
    n_questions: usize,
    last_question: usize,
}

/// Patterns of names that stand at the ends of lines, while a question is being asked: those first that ran in most of them.
fn names(lines: impl BufRead, question: &AtomicUsize) -> Result<Vec<String>> {
    let mut ran: HashMap<String, Ran> = HashMap::new();
    for line in lines.lines() {
        let line = line?;
        let (question, n_before) = (question.load(Relaxed), ran.len());
        let Some(name) = line.rsplit(' ').next().filter(|_| question > 0 && line.starts_with("Trace ")) else {
            continue;
        };
        let one = match ran.get_mut(name) {
            Some(one) => one,
            None => ran.entry(name.to_string()).or_insert(Ran { first: n_before, ..Ran::default() }),
        };
        if one.last_question != question {
            (one.last_question, one.n_questions) = (question, one.n_questions + 1);
        }
    }
    let mut ran: Vec<(String, Ran)> = ran.into_iter().filter_map(|(name, one)| Some((pattern(&name)?, one))).collect();
    ran.sort_by_key(|(_, one)| (std::cmp::Reverse(one.n_questions), one.first));
    let mut seen = BTreeSet::new();
    Ok(ran.into_iter().map(|(name, _)| name).filter(|name| seen.insert(name.clone())).collect())
}

/// A name as the linker's pattern, whatever compiler and whatever version of a crate: `_ZN4core3fmt5write17h0123456789abcdefE` ends in a hash, `_RNvNtCs1a2b_4core3fmt5write`
/// has one for each crate and says by its place what it has named before (rustc's symbol mangling, legacy and v0), which moves with their lengths; and either may carry a number of the optimiser's. None
/// for what no compiler of ours has named.
fn pattern(name: &str) -> Option<String> {
    if name.starts_with("_ZN") {
        let at = name.rfind("17h")?;
        return Some(format!("{}17h*", &name[..at]));
    }
    let mut rest = name.strip_prefix("_R")?.split('.').next()?;
    let mut out = String::from("_R");
    while let Some((before, after)) = rest.split_once("Cs") {
        let end = after.find('_').filter(|end| after[..*end].bytes().all(|b| b.is_ascii_alphanumeric()))?;
        out += before;
        out += "Cs*";
        rest = &after[end..];
    }
    Some(placeless(&(out + rest)) + "*")
}

/// Without the places to which a name refers back: `B`, a number of digits and letters, `_`.
fn placeless(name: &str) -> String {
    let mut parts = name.split('B');
    let mut out = String::from(parts.next().unwrap_or_default());
    for part in parts {
        out.push('B');
        let end = part.find('_').filter(|end| part[..*end].bytes().all(|b| b.is_ascii_alphanumeric()));
        match end {
            Some(end) => out.extend(["*", &part[end..]]),
            None => out.push_str(part),
        }
    }
    out
}

/// What these functions take of the program, and what shares their names without hashes.
fn bytes_of(ran: &[String], program: &[u8]) -> Result<u64> {
    let file = object::File::parse(program)?;
    let ran: BTreeSet<&String> = ran.iter().collect();
    let is_one = |name: &str| pattern(name).is_some_and(|name| ran.contains(&name));
    // Two names may stand for one function.
    let all: BTreeMap<u64, u64> =
        file.symbols().filter(|s| s.name().is_ok_and(is_one)).map(|s| (s.address(), s.size())).collect();
    Ok(all.values().sum())
}

fn script(ran: &[String], n_bytes: u64) -> String {
    let mut out = format!(
        "\
# What a waiting agent runs again and again, for the linker to lay together.
#
# {n_bytes}{BYTES} of functions that lie all over the program otherwise: around each page that is run the kernel maps 64 KiB, and what was not run for a
# second has left the caches. Made by `cargo xtask together`, which says how; read by the linker of `make dist`, which refuses when much of it is
# gone. Names stand without the compiler's hashes, so they may fit more than one function. Order and names are no promise.
SECTIONS
{{
  {SECTION} :
  {{
"
    );
    for name in ran {
        let _ = writeln!(out, "    *(.text.{name})");
    }
    out + "  }\n}\nINSERT BEFORE .text;\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ran_is_named_without_hashes() {
        let text = "IN: start\nTrace 0: 0x7f [0/1/2/3] _RNvXs9_NtCsgEmfK2_4core3strCsx_5gimli.12\nTrace 0: 0x7f [0/1/2/3] _ZN4core3fmt5write17h0123456789abcdefE\nTrace 0: 0x7f [0/1/2/3] _ZN3one3two17hffffffffffffffffE.llvm.123\nTrace 0: 0x7f [0/1/2/3] memcpy\nTrace 0: 0x7f [0/1/2/3] _ZN4core3fmt5write17h0123456789abcdefE\nTrace 0: 0x7f [0/1/2/3] \n";
        let ran = names(text.as_bytes(), &AtomicUsize::new(1)).unwrap();
        assert_eq!(ran, ["_RNvXs9_NtCs*_4core3strCs*_5gimli*", "_ZN4core3fmt5write17h*", "_ZN3one3two17h*"]);
        assert!(names(text.as_bytes(), &AtomicUsize::new(0)).unwrap().is_empty());
        assert!(script(&ran, 9).contains("    *(.text._ZN3one3two17h*)\n"));
    }

    /// Lines of which the one that is read tells which question it belongs to.
    struct Asked<'a>(&'a [u8], &'a AtomicUsize);

    impl std::io::Read for Asked<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let line = self.0.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
            if line.starts_with(b"question") {
                self.1.fetch_add(1, Relaxed);
            }
            buffer[..line.len()].copy_from_slice(line);
            self.0 = &self.0[line.len()..];
            Ok(line.len())
        }
    }

    #[test]
    fn what_each_question_runs_comes_first() {
        let text = "Trace 0: _ZN5start17hAE\nquestion\nTrace 0: _ZN6minute17hAE\nTrace 0: _ZN2on17hAE\nquestion\nTrace 0: _ZN2on17hAE\nTrace 0: _ZN4late17hAE\n";
        let question = AtomicUsize::new(0);
        let ran = names(BufReader::new(Asked(text.as_bytes(), &question)), &question).unwrap();
        assert_eq!(ran, ["_ZN2on17h*", "_ZN6minute17h*", "_ZN4late17h*"]);
    }

    #[test]
    fn a_name_that_refers_to_its_own_parts_holds_wherever_they_are() {
        // crate hashes of ten and of eleven letters.
        let of = |name| pattern(name).unwrap();
        let short = of("_RNvXs_NtCsabcdefghij_4core3optINtB4_6OptionNtCsabcdefghij_4core3fooEB8_");
        let long = of("_RNvXs_NtCsabcdefghijk_4core3optINtB5_6OptionNtCsabcdefghijk_4core3fooEB9_");
        assert_eq!(short, long);
    }
}
