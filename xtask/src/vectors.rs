//! Replays golden decisions of kernels through the models: `cargo xtask vectors DIR`.
//!
//! A folder of `.jsonl` or `.jsonl.xz`, each a recording of what one kernel's own governor code answered. Per file: decisions and
//! mismatches, the first few in words. A line that is no vector ends its file, with line and reason; the others go on. Fails on
//! any mismatch, on any such line, and on a folder without a file.

use anyhow::{Context, Result};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::Instant;
use wakewatt_models::vectors::{Replay, Verdict};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folder of .jsonl and .jsonl.xz files
    folder: PathBuf,
    /// Mismatches told of each file
    #[arg(long, default_value_t = 3)]
    show: usize,
}

/// What came of a file.
#[derive(Default)]
struct Told {
    n_decisions: u64,
    wrong: Vec<String>,
    n_wrong: u64,
    ended: Option<String>,
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    let listed =
        std::fs::read_dir(&args.folder).with_context(|| format!("{} cannot be listed", args.folder.display()))?;
    let is_vectors = |path: &PathBuf| {
        let name = path.to_string_lossy();
        name.ends_with(".jsonl") || name.ends_with(".jsonl.xz")
    };
    let mut files: Vec<PathBuf> = listed.filter_map(|e| e.ok().map(|e| e.path())).filter(is_vectors).collect();
    files.sort();
    anyhow::ensure!(!files.is_empty(), "{} holds no .jsonl or .jsonl.xz file", args.folder.display());
    let began = Instant::now();
    let (mut n_decisions, mut n_wrong, mut n_ended) = (0, 0, 0);
    println!("{:<44} {:>10} {:>10}", "file", "decisions", "mismatches");
    for path in &files {
        let told = replay(path, args.show);
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        println!("{name:<44} {:>10} {:>10}", told.n_decisions, told.n_wrong);
        told.wrong.iter().chain(&told.ended).for_each(|words| println!("  {words}"));
        n_decisions += told.n_decisions;
        n_wrong += told.n_wrong;
        n_ended += u32::from(told.ended.is_some());
    }
    println!("{:<44} {n_decisions:>10} {n_wrong:>10}", format!("{} files in {:.1?}", files.len(), began.elapsed()));
    Ok(n_wrong == 0 && n_ended == 0)
}

fn replay(path: &Path, n_shown: usize) -> Told {
    let mut told = Told::default();
    if let Err(why) = follow(path, n_shown, &mut told) {
        told.ended = Some(format!("{why:#}"));
    }
    told
}

fn follow(path: &Path, n_shown: usize, told: &mut Told) -> Result<()> {
    let file = File::open(path).context("it cannot be opened")?;
    let lines: Box<dyn BufRead> = if path.extension().is_some_and(|e| e == "xz") {
        Box::new(BufReader::new(lzma_rust2::XzReader::new(BufReader::new(file), true)))
    } else {
        Box::new(BufReader::new(file))
    };
    let mut replay = Replay::default();
    for (at, line) in lines.lines().enumerate() {
        let at = at + 1;
        let line = line.with_context(|| format!("line {at} cannot be read"))?;
        if line.trim().is_empty() {
            continue;
        }
        match replay.line(&line).with_context(|| format!("line {at} cannot be replayed"))? {
            Verdict::Followed => {}
            Verdict::Same => told.n_decisions += 1,
            Verdict::Different(words) => {
                told.n_decisions += 1;
                told.n_wrong += 1;
                if told.wrong.len() < n_shown {
                    told.wrong.push(format!("line {at}: {words}"));
                }
            }
        }
    }
    anyhow::ensure!(told.n_decisions > 0, "it holds no decision");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Told {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.jsonl");
        std::fs::write(&path, text).unwrap();
        replay(&path, 3)
    }

    #[test]
    fn the_vectors_of_the_project_match() {
        let args = Args { folder: crate::repository().join("fixtures/vectors"), show: 3 };
        assert!(run(&args).unwrap());
    }

    #[test]
    fn a_bad_line_is_named() {
        let config =
            r#"{"op":"config","governor":"ladder","kernel":"6.1.1","hz":250,"states":[{"lat_us":1,"res_us":1}]}"#;
        let select =
            r#"{"op":"select","sleep_ns":1,"delta_tick_ns":1,"tick_stopped":false,"latency_req_ns":9,"want_idx":0}"#;
        let bad = told(&format!("{config}\n{select}\n{{\"op\":\n"));
        assert_eq!((bad.n_decisions, bad.n_wrong), (1, 0));
        assert!(bad.ended.as_deref().unwrap().starts_with("line 3 cannot be replayed: it is not a vector"));
        assert_eq!(told("").ended.as_deref(), Some("it holds no decision"));
        let wrong = told(&format!("{config}\n{}\n", select.replace("\"want_idx\":0", "\"want_idx\":1")));
        assert_eq!((wrong.n_wrong, wrong.ended), (1, None));
        assert!(wrong.wrong[0].starts_with("line 2: the kernel chose state 1"));
    }

    #[test]
    fn a_file_that_is_no_xz_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.jsonl.xz");
        std::fs::write(&path, "plain").unwrap();
        assert!(replay(&path, 3).ended.unwrap().contains("line 1 cannot be read"));
    }
}
