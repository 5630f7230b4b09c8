//! What the tests of a run did not do, from its log, and whether this machine could have done it.
//!
//! A line `SKIPPED test [lacks]: why` comes from a test (crate `wakewatt-testing`), a line `skipped: why` or `NAME skipped: why`
//! from a step of the Makefile or a machine of the testbed, which look for themselves and are listed only. A test that lacked a program which is there, or root where root runs it, could have run: that is a failure,
//! because a suite that quietly shrinks proves less every month. What only a person may allow (`make live`), what other
//! work was in the way of, and what the machine has not got is listed.

use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::path::PathBuf;
use wakewatt_testing::Lacks;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// What the run printed, both streams
    log: PathBuf,
}

/// True when nothing was skipped that could have run.
pub(crate) fn run(args: &Args) -> Result<bool> {
    let log = std::fs::read(&args.log).with_context(|| format!("{}: unreadable", args.log.display()))?;
    let is_there = |program: &str| crate::bench::installed(program).is_some();
    let told = told(&String::from_utf8_lossy(&log), rustix::process::geteuid().is_root(), is_there);
    if told.listed.is_empty() && told.possible.is_empty() {
        println!("nothing was skipped");
        return Ok(true);
    }
    if !told.listed.is_empty() {
        println!("skipped:");
    }
    for line in &told.listed {
        println!("  {line}");
    }
    if !told.possible.is_empty() {
        println!("skipped, although this machine has what is said to be lacking:");
    }
    for line in &told.possible {
        println!("  {line}");
    }
    Ok(told.possible.is_empty())
}

/// What a log says was skipped.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    /// Rightly, as far as can be seen.
    listed: BTreeSet<String>,
    /// What is said to be lacking is there.
    possible: BTreeSet<String>,
}

fn told(log: &str, is_root: bool, is_there: impl Fn(&str) -> bool) -> Told {
    let mut told = Told::default();
    for line in log.lines() {
        // A test's line may follow what the harness printed of that test.
        if let Some((_, rest)) = line.split_once("SKIPPED ") {
            let lacks = rest.split_once(" [").and_then(|(_, rest)| rest.split_once("]: ")).map(|(words, _)| words);
            let could_run = match lacks.and_then(Lacks::parse) {
                Some(Lacks::Program(name)) => is_there(name),
                Some(Lacks::Root) => is_root,
                Some(Lacks::Live | Lacks::Here | Lacks::Quiet) => false,
                // A reason that cannot be looked at is none.
                None => true,
            };
            let list = if could_run { &mut told.possible } else { &mut told.listed };
            list.insert(rest.trim_end().to_string());
        } else if let Some((what, rest)) = line.split_once("skipped: ") {
            // Of a step as a whole, or of one emulated machine, whose name stands before.
            let what = what.trim();
            told.listed.insert(if what.is_empty() { rest.to_string() } else { format!("{what}: {rest}") });
        }
    }
    told
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::path::Path;

    /// Whether a line of source says a skip in words of its own, which nothing would gather.
    fn is_silent(line: &str) -> bool {
        let code = line.trim_start();
        code.contains("\"skipped: ") && (code.contains("eprintln!") || code.contains("println!"))
    }

    #[test]
    fn what_could_have_run_is_told_from_what_could_not() {
        let log = "test a ... ok\n\
                   test b ... SKIPPED b [program tmux]: not installed\n\
                   SKIPPED c [program nosuch]: not installed\nSKIPPED c [program nosuch]: not installed\n\
                   SKIPPED d [root]: mounts\nSKIPPED e [live]: disturbs\nSKIPPED f: words only\nskipped: no QEMU\nboard-x    skipped: no fdtput\n";
        let of = |is_root| told(log, is_root, |program| program == "tmux");
        let set = |lines: &[&str]| lines.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
        let user = of(false);
        assert_eq!(user.possible, set(&["b [program tmux]: not installed", "f: words only"]));
        assert_eq!(
            user.listed,
            set(&[
                "c [program nosuch]: not installed",
                "d [root]: mounts",
                "e [live]: disturbs",
                "no QEMU",
                "board-x: no fdtput"
            ])
        );
        assert!(of(true).possible.contains("d [root]: mounts"));
    }

    /// Every early return of a test goes through `wakewatt_testing::skipped`.
    #[test]
    fn no_test_skips_in_words_of_its_own() {
        fn look(folder: &Path, found: &mut Vec<String>) {
            for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    look(&path, found);
                } else if path.extension().is_some_and(|e| e == "rs") && !path.ends_with("skips.rs") {
                    let text = std::fs::read_to_string(&path).unwrap();
                    found.extend(text.lines().filter(|l| is_silent(l)).map(|l| format!("{}: {l}", path.display())));
                }
            }
        }
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut found = Vec::new();
        look(&top.join("crates"), &mut found);
        look(&top.join("xtask/src"), &mut found);
        assert_eq!(found, Vec::<String>::new(), "use wakewatt_testing::skipped");
    }
}
