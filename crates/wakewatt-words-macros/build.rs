//! The catalogues as a table for the macros: a changed translation builds the sentences again.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() {
    // Where cargo runs this; a name from compile time would be of the checkout that built it first.
    let folder = Path::new("../../languages/zh");
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "po"))
        .collect();
    files.sort();
    let mut all = std::collections::BTreeMap::new();
    for file in files {
        println!("cargo:rerun-if-changed={}", file.display());
        let catalogue = polib::po_file::parse(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        for message in catalogue.messages() {
            let (english, chinese) = (message.msgid().to_string(), message.msgstr().unwrap_or_default().to_string());
            if !english.is_empty() && !chinese.is_empty() && !message.is_fuzzy() {
                all.entry(english).or_insert(chinese);
            }
        }
    }
    let mut out = String::from("&[\n");
    for (english, chinese) in &all {
        let _ = writeln!(out, "    ({english:?}, {chinese:?}),");
    }
    out.push_str("]\n");
    let place = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default()).join("chinese.rs");
    std::fs::write(&place, out).unwrap_or_else(|e| panic!("{}: {e}", place.display()));
}
