//! The translations that are looked up while running: help, and tables of words that stand in constants.

use hash::hash;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Of everything else the compiler has made both languages already.
const LOOKED_UP: [&str; 2] = ["help.po", "tables.po"];

#[path = "src/hash.rs"]
mod hash;

fn main() {
    // Where cargo runs this; a name from compile time would be of the checkout that built it first.
    let folder = Path::new("../../languages/zh");
    let mut all = std::collections::BTreeMap::new();
    for name in LOOKED_UP {
        let file = folder.join(name);
        println!("cargo:rerun-if-changed={}", file.display());
        let catalogue = polib::po_file::parse(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        for message in catalogue.messages() {
            let (english, chinese) = (message.msgid().to_string(), message.msgstr().unwrap_or_default().to_string());
            if english.is_empty() || chinese.is_empty() || message.is_fuzzy() {
                continue;
            }
            if let Some((other, _)) = all.insert(hash(&english), (english.clone(), chinese)) {
                assert!(other == english, "two messages of one hash: {other:?} and {english:?}");
            }
        }
    }
    let mut out = String::from("&[\n");
    for (hash, (_, chinese)) in &all {
        let _ = writeln!(out, "    ({hash}, {chinese:?}),");
    }
    out.push_str("]\n");
    let place = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default()).join("looked_up.rs");
    std::fs::write(&place, out).unwrap_or_else(|e| panic!("{}: {e}", place.display()));
}
