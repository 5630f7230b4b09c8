//! `cargo xtask words`: are the catalogues in step with the sources?
//!
//! Every message of `say!`, `word!` and of the tables that are looked up while running, and all help, stand in
//! `languages/LANGUAGE/*.po` under their English, with the files that use them. New ones come in empty, those that nothing
//! uses any more go. `--check` writes nothing and fails where a file would change or a translation is missing or asks for
//! other arguments than the English; `make reference` runs that. To translate: fill the `msgstr` (any PO editor), or give
//! `--take` a JSON object from English to the other language.

mod catalogue;
mod scan;
mod tables;

use anyhow::{Context, Result, bail};
use catalogue::Catalogue;
use clap::CommandFactory as _;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Catalogues by name, and the folder whose messages each holds; the first that fits.
const DOMAINS: [(&str, &str); 4] = [
    ("rules", "crates/wakewatt-core/src/rules"),
    ("core", "crates/wakewatt-core"),
    ("report", "crates/wakewatt/src/report"),
    ("tool", "crates"),
];
/// Looked up while running: their messages stand in no macro.
const HELP: &str = "help";
const TABLES: &str = "tables";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write nothing; fail where a catalogue is behind the sources or lacks a translation
    #[arg(long)]
    check: bool,
    /// Only list what has no translation, as a JSON object to fill
    #[arg(long, conflicts_with_all = ["check", "take"])]
    missing: Option<Option<String>>,
    /// Take translations from this JSON object: English to Chinese
    #[arg(long, value_name = "FILE", conflicts_with = "check")]
    take: Vec<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    let folder = Path::new("languages/zh");
    let mut used: BTreeMap<&str, scan::Messages> = BTreeMap::new();
    for (domain, under) in DOMAINS {
        used.insert(
            domain,
            scan::sources(Path::new(under), &mut used.values().flat_map(|m| m.files.clone()).collect())?,
        );
    }
    used.insert(HELP, scan::help(&wakewatt::cli::Cli::command()));
    used.insert(TABLES, tables::all());
    let mut taken: BTreeMap<String, String> = BTreeMap::new();
    for file in &args.take {
        let text = std::fs::read_to_string(file).with_context(|| format!("{}: not readable", file.display()))?;
        let new: BTreeMap<String, String> =
            serde_json::from_str(&text).with_context(|| format!("{}: no object of strings", file.display()))?;
        taken.extend(new);
    }
    let mut known = taken.clone();
    for name in used.keys() {
        for (english, chinese) in Catalogue::read(&folder.join(format!("{name}.po")))?.translated() {
            known.entry(english).or_insert(chinese);
        }
    }
    let (mut is_right, mut seen) = (true, std::collections::BTreeSet::new());
    let mut missing: BTreeMap<String, String> = BTreeMap::new();
    for (name, messages) in &used {
        let path = folder.join(format!("{name}.po"));
        // Help and tables are looked up by the program and keep what others have, too.
        let is_own = |english: &str| matches!(*name, HELP | TABLES) || seen.insert(english.to_string());
        let catalogue = Catalogue::of(messages, &known, is_own);
        let (n, n_missing) = (catalogue.len(), catalogue.missing().count());
        if args.missing.as_ref().is_some_and(|only| only.as_ref().is_none_or(|only| only == name)) {
            missing.extend(catalogue.missing().map(|english| (english.to_string(), String::new())));
        } else if args.check {
            let wrong = catalogue.wrong();
            for line in &wrong {
                eprintln!("{}: {line}", path.display());
            }
            for english in catalogue.missing().take(5) {
                eprintln!("{}: no translation of {english:?}", path.display());
            }
            let is_same = std::fs::read_to_string(&path).is_ok_and(|text| text == catalogue.text());
            if !is_same {
                eprintln!("{}: behind the sources; run cargo xtask words", path.display());
            }
            is_right &= wrong.is_empty() && n_missing == 0 && is_same;
        } else if args.missing.is_none() {
            std::fs::write(&path, catalogue.text()).with_context(|| format!("{}: not written", path.display()))?;
        }
        if args.missing.is_none() {
            println!("{name:8} {n:5} messages, {n_missing} without translation");
        }
    }
    if args.missing.is_some() {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", serde_json::to_string_pretty(&missing)?)?;
    }
    let unused: Vec<&String> = taken.keys().filter(|e| !used.values().any(|m| m.by_text.contains_key(*e))).collect();
    if !unused.is_empty() {
        bail!("no message reads: {unused:?}");
    }
    Ok(is_right)
}
