//! Promises of ARCHITECTURE.md that the compiler does not keep: order of modules, borders of crates, essays, sizes,
//! complete lists, and where `unsafe` may stand.
//!
//! Reads the sources as text, from the repository this crate lies in. What it says names the file and what to do.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // The bans are for core itself; a test may read files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Explain above this, split above the next. Tables are exempt from the first: they are rows, not thoughts.
const EXPLAIN_ABOVE: usize = 400;
const SPLIT_ABOVE: usize = 800;

/// Crates and what they may depend on, from left to right in the data flow.
const BORDERS: &[(&str, &[&str])] = &[
    ("wakewatt-testing", &[]),
    ("wakewatt-words-macros", &[]),
    ("wakewatt-words", &["wakewatt-words-macros"]),
    ("wakewatt-core", &[]),
    ("wakewatt-models", &["wakewatt-core"]),
    ("wakewatt-sim", &["wakewatt-models", "wakewatt-core"]),
    ("wakewatt-fleet", &["wakewatt-core"]),
    ("wakewatt-import", &["wakewatt-core"]),
    ("wakewatt-host", &["wakewatt-core"]),
    ("wakewatt-probes", &["wakewatt-host", "wakewatt-core"]),
    ("wakewatt-tune", &["wakewatt-host", "wakewatt-core"]),
    ("wakewatt-bios", &["wakewatt-tune", "wakewatt-host", "wakewatt-core"]),
    ("wakewatt-carry", &["wakewatt-bios", "wakewatt-fleet", "wakewatt-host", "wakewatt-core"]),
    ("wakewatt-agent", &["wakewatt-lab", "wakewatt-host", "wakewatt-core"]),
    ("wakewatt-lab", &["wakewatt-tune", "wakewatt-probes", "wakewatt-host", "wakewatt-core"]),
    (
        "wakewatt-readers",
        &[
            "wakewatt",
            "wakewatt-bios",
            "wakewatt-carry",
            "wakewatt-fleet",
            "wakewatt-import",
            "wakewatt-sim",
            "wakewatt-models",
            "wakewatt-lab",
            "wakewatt-tune",
            "wakewatt-host",
            "wakewatt-core",
        ],
    ),
    (
        "wakewatt",
        &[
            "wakewatt-agent",
            "wakewatt-bios",
            "wakewatt-carry",
            "wakewatt-lab",
            "wakewatt-fleet",
            "wakewatt-import",
            "wakewatt-sim",
            "wakewatt-models",
            "wakewatt-tune",
            "wakewatt-probes",
            "wakewatt-host",
            "wakewatt-core",
        ],
    ),
];

/// The only crates that may hold `unsafe`.
const UNSAFE_ALLOWED: &[&str] = &["wakewatt-host", "wakewatt-probes"];

/// The only places that make files or folders, or write to a name. What a person names goes through `place`; the rest are
/// folders of our own, settings of the machine, and files that lose their name at once.
const WRITERS: &[&str] = &[
    // The line of a shell on another machine.
    "crates/wakewatt-carry/src/ssh/script.rs",
    "crates/wakewatt-host/src/place/",
    "crates/wakewatt-host/src/store",
    "crates/wakewatt-host/src/sink/",
    "crates/wakewatt-host/src/disk/made.rs",
    "crates/wakewatt-host/src/oom.rs",
    "crates/wakewatt-host/src/helper.rs",
    "crates/wakewatt-lab/src/shop/server/home.rs",
    "crates/wakewatt-lab/src/shop/server/sqlite.rs",
    "crates/wakewatt-tune/src/lock.rs",
    "crates/wakewatt-tune/src/systemd",
    "crates/wakewatt/src/cmd/tune/units.rs",
];

/// What makes a file or writes to one by its name. `/proc/self` takes no names of ours.
const WRITING: &[&str] = &[
    "File::create",
    "File::options",
    "OpenOptions",
    "fs::write(",
    "fs::copy(",
    "fs::rename(",
    "create_dir",
    "DirBuilder",
    "hard_link(",
    "OFlags::CREATE",
    "OFlags::TRUNC",
    "O_CREAT",
    "mkdir",
    "mknod",
    "renameat",
];

/// Folders whose every file must be declared in their `mod.rs`, because that list is what people read first.
const LISTS: &[&str] = &[
    "crates/wakewatt-core/src/facts",
    "crates/wakewatt-core/src/rules",
    "crates/wakewatt-core/src/samples",
    "crates/wakewatt-core/src/watch",
    "crates/wakewatt-core/src/stats",
    "crates/wakewatt-core/src/record",
    "crates/wakewatt-core/src/compare",
    "crates/wakewatt-tune/src/knobs",
    "crates/wakewatt-tune/src/boot",
    "crates/wakewatt-tune/src/boot/check",
    "crates/wakewatt-lab/src/bench",
    "crates/wakewatt/src/cmd",
];

/// Who may start a program: the place where it is looked for.
const OWN_PROGRAM: &[&str] = &["crates/wakewatt-host/src/program.rs"];

fn top() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

fn walk(folder: &Path, out: &mut Vec<PathBuf>) {
    walk_for(folder, "rs", out);
}

fn walk_for(folder: &Path, ending: &str, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && entry.file_name() != "target" {
            walk_for(&path, ending, out);
        } else if path.extension().is_some_and(|e| e == ending) {
            out.push(path);
        }
    }
}

/// Every source file of the house: path below the top, and text.
fn sources(below: &str) -> Vec<(String, String)> {
    let mut paths = Vec::new();
    walk(&top().join(below), &mut paths);
    paths.sort();
    let name = |p: &Path| p.strip_prefix(top()).unwrap_or(p).display().to_string();
    paths.iter().map(|p| (name(p), fs::read_to_string(p).unwrap())).collect()
}

fn house() -> Vec<(String, String)> {
    let mut all = sources("crates");
    all.extend(sources("xtask"));
    assert!(all.len() > 30, "the sources were not found");
    all
}

/// Code lines only: no comments, nothing below `#[cfg(test)]` (tests may look anywhere).
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines().take_while(|l| l.trim() != "#[cfg(test)]").filter(|l| !l.trim_start().starts_with("//"))
}

fn declared_modules(text: &str) -> Vec<String> {
    let module = |line: &str| {
        let (visibility, name) = line.trim().strip_suffix(';')?.rsplit_once("mod ")?;
        (visibility.is_empty() || visibility.starts_with("pub")).then(|| name.to_string())
    };
    text.lines().filter_map(module).collect()
}

/// The first path segments after `crate::`, also inside braces.
fn used_modules(line: &str) -> Vec<String> {
    let word = |s: &str| s.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    line.match_indices("crate::")
        .filter(|(at, _)| !line[..*at].ends_with(['$', '_']) && !line[..*at].ends_with(char::is_alphanumeric))
        .flat_map(|(at, pattern)| {
            let rest = &line[at + pattern.len()..];
            match rest.strip_prefix('{') {
                Some(list) => list.split(',').map(word).collect(),
                None => vec![word(rest)],
            }
        })
        .collect()
}

#[test]
fn a_module_of_core_looks_only_to_its_left() {
    let lib = fs::read_to_string(top().join("crates/wakewatt-core/src/lib.rs")).unwrap();
    let order = declared_modules(&lib);
    let place = |name: &str| order.iter().position(|m| m == name);
    let mut wrong = Vec::new();
    for (path, text) in sources("crates/wakewatt-core/src") {
        let own = path.trim_start_matches("crates/wakewatt-core/src/").split(['/', '.']).next().unwrap_or_default();
        let Some(own_place) = place(own) else {
            assert_eq!(own, "lib", "{path} belongs to no module that lib.rs declares");
            continue;
        };
        for used in code(&text).flat_map(used_modules) {
            if place(&used).is_some_and(|p| p > own_place) {
                wrong.push(format!("{path}: `{own}` uses `{used}`, which stands to its right in lib.rs"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_file_opens_with_an_essay() {
    let wrong: Vec<String> =
        house().into_iter().filter(|(_, text)| !text.starts_with("//! ")).map(|(path, _)| path).collect();
    assert!(wrong.is_empty(), "the first line must be `//! what this is about`:\n{}", wrong.join("\n"));
}

#[test]
fn files_are_written_in_few_places() {
    let is_test = |path: &str| path.ends_with("tests.rs") || path.contains("/tests/");
    let is_allowed = |path: &str| WRITERS.iter().any(|w| path.starts_with(w));
    let (mut wrong, mut n_found) = (Vec::new(), 0);
    for (path, text) in sources("crates").into_iter().filter(|(p, _)| p.contains("/src/") && !is_test(p)) {
        let is_word = |line: &str, at: usize| !line[..at].ends_with(char::is_alphanumeric);
        let writes = |line: &str| WRITING.iter().any(|w| line.match_indices(w).any(|(at, _)| is_word(line, at)));
        let found = |line: &&str| writes(line) && !line.contains("/proc/self/");
        for line in code(&text).filter(found) {
            n_found += 1;
            if !is_allowed(&path) {
                wrong.push(format!("{path}: {}", line.trim()));
            }
        }
    }
    assert!(n_found > 10, "the search finds nothing");
    assert!(
        wrong.is_empty(),
        "write through wakewatt_host::place, where links and owners are looked at:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn only_tune_makes_what_writes_settings() {
    let is_outside = |path: &str| path.contains("/src/") && !["-tune/", "-host/"].iter().any(|own| path.contains(own));
    let wrong: Vec<String> = sources("crates")
        .into_iter()
        .filter(|(path, _)| is_outside(path))
        .filter(|(_, text)| code(text).any(|line| line.contains("LiveSink")))
        .map(|(path, _)| path)
        .collect();
    assert!(wrong.is_empty(), "wakewatt_tune::begin lends a sink to who holds the lock:\n{}", wrong.join("\n"));
}

#[test]
fn files_stay_small() {
    let mut wrong = Vec::new();
    for (path, text) in house() {
        let n = text.lines().count();
        if n > SPLIT_ABOVE {
            wrong.push(format!("{path}: {n} lines; split it ({SPLIT_ABOVE} at most)"));
        } else if n > EXPLAIN_ABOVE && !path.contains("tables") {
            println!("{path}: {n} lines, more than {EXPLAIN_ABOVE}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_file_is_in_its_list() {
    let mut wrong = Vec::new();
    for folder in LISTS.iter().map(|f| top().join(f)).filter(|f| f.is_dir()) {
        let text = fs::read_to_string(folder.join("mod.rs")).unwrap();
        let declared: BTreeSet<String> = declared_modules(&text).into_iter().collect();
        let rules = text.split("const RULES").nth(1).and_then(|t| t.split("];").next()).unwrap_or_default();
        let words: BTreeSet<&str> = rules.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        for entry in fs::read_dir(&folder).unwrap().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let module = name.trim_end_matches(".rs").to_string();
            let is_module = name.ends_with(".rs") || entry.path().join("mod.rs").exists();
            if !is_module || module == "mod" {
                continue;
            }
            if !declared.contains(&module) {
                wrong.push(format!("{}: not in mod.rs, so it is not compiled", entry.path().display()));
            } else if folder.ends_with("rules") && holds_a_rule(&entry.path()) && !words.contains(module.as_str()) {
                wrong.push(format!("{}: not in RULES, so doctor never asks it", entry.path().display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn holds_a_rule(path: &Path) -> bool {
    let mut files = Vec::new();
    if path.is_dir() {
        walk(path, &mut files);
    } else {
        files.push(path.to_path_buf());
    }
    files.iter().any(|f| code(&fs::read_to_string(f).unwrap()).any(|l| l.contains(" Rule for ")))
}

#[test]
fn crates_depend_only_to_their_right() {
    for entry in fs::read_dir(top().join("crates")).unwrap().flatten() {
        let manifest = fs::read_to_string(entry.path().join("Cargo.toml")).unwrap();
        let name = entry.file_name().to_string_lossy().into_owned();
        let allowed = BORDERS.iter().find(|(n, _)| *n == name).map(|(_, allowed)| *allowed);
        let allowed = allowed.unwrap_or_else(|| panic!("crates/{name} is not in BORDERS; say what it may depend on"));
        let mut is_for_tests = false;
        for line in manifest.lines() {
            let used = line.split(['.', ' ', '=']).next().unwrap_or_default();
            // What tests say when they cannot run; it depends on nothing.
            is_for_tests |= line == "[dev-dependencies]";
            // Itself, with features that only tests need.
            let is_for_test = is_for_tests && (used == "wakewatt-testing" || used == name);
            // Sentences are made everywhere; the crate knows languages and nothing of ours.
            let is_free = is_for_test || used == "wakewatt-words";
            let is_ours = (used == "wakewatt" || used.starts_with("wakewatt-")) && !is_free;
            assert!(!is_ours || allowed.contains(&used), "{name} may not depend on {used}: nothing points back");
        }
        assert!(manifest.contains("[lints]\nworkspace = true"), "{name}: the shared lints are not switched on");
    }
}

#[test]
fn core_has_its_bans() {
    let bans = fs::read_to_string(top().join("crates/wakewatt-core/clippy.toml")).unwrap();
    for ban in
        ["std::fs::read", "std::fs::File::open", "std::time::Instant::now", "std::env::var", "std::process::Command"]
    {
        assert!(bans.contains(ban), "crates/wakewatt-core/clippy.toml no longer bans {ban}");
    }
}

#[test]
fn programs_are_looked_for_in_one_place() {
    let mut wrong = Vec::new();
    for (path, text) in house() {
        let is_tool = path.starts_with("crates/")
            && path.contains("/src/")
            && !path.ends_with("/tests.rs")
            && !path.contains("/tests/");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let starts = code.contains(" Command::new(") || code.contains("process::Command::new(");
        if is_tool && starts && !OWN_PROGRAM.contains(&path.as_str()) {
            wrong.push(format!(
                "{path}: start it through wakewatt_host::environment, which finds it outside the working folder and gives it no password"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn unsafe_stands_behind_the_door_to_the_os() {
    let mut wrong = Vec::new();
    for (path, text) in house() {
        let owner = path.split('/').nth(1).unwrap_or_default();
        let is_unsafe =
            |l: &str| ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"].iter().any(|u| l.contains(u));
        // This file names the words it looks for.
        if path.ends_with("tests/tidy.rs") || (path.starts_with("crates/") && UNSAFE_ALLOWED.contains(&owner)) {
            continue;
        }
        if text.lines().filter(|l| !l.trim_start().starts_with("//")).any(is_unsafe) {
            wrong.push(format!("{path}: unsafe belongs into {}", UNSAFE_ALLOWED.join(" or ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Words that name a page: letters, digits and what stands in paths, ending in `.md`.
fn pages_in(line: &str) -> Vec<&str> {
    let is_path = |c: char| c.is_alphanumeric() || matches!(c, '.' | '/' | '_' | '-');
    let words = line.split(|c| !is_path(c)).map(|w| w.trim_end_matches('.'));
    words.filter(|w| w.strip_suffix(".md").is_some_and(|name| name.ends_with(char::is_alphanumeric))).collect()
}

#[test]
fn a_comment_cites_only_pages_of_this_repository() {
    let (mut wrong, mut n_cited) = (Vec::new(), 0);
    let is_there = |path: &str, page: &str| {
        let beside = Path::new(path).parent().unwrap_or(Path::new("")).join(page);
        [PathBuf::from(page), beside, Path::new("docs").join(page)].iter().any(|p| top().join(p).is_file())
    };
    for (path, text) in house() {
        for line in text.lines().filter(|l| l.trim_start().starts_with("//")) {
            for page in pages_in(line) {
                n_cited += 1;
                if !is_there(&path, page) {
                    wrong.push(format!("{path}: {page}"));
                }
            }
        }
    }
    let mut pages = Vec::new();
    walk_for(&top().join("docs"), "md", &mut pages);
    pages.extend(
        fs::read_dir(top()).unwrap().flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "md")),
    );
    for page in pages {
        let path = page.strip_prefix(top()).unwrap().display().to_string();
        for target in fs::read_to_string(&page).unwrap().split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if target.ends_with(".md") && !target.contains(':') {
                n_cited += 1;
                if !is_there(&path, target) {
                    wrong.push(format!("{path}: {target}"));
                }
            }
        }
    }
    assert!(n_cited > 50, "the search finds nothing");
    assert!(
        wrong.is_empty(),
        "a reader does not have these pages; write them, or cite what there is:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn a_module_with_a_folder_is_its_mod_rs() {
    let has_folder = |path: &&String| top().join(path.trim_end_matches(".rs")).is_dir();
    let sources = house().into_iter().map(|(path, _)| path).collect::<Vec<_>>();
    let is_root = |path: &&String| path.ends_with("/lib.rs") || path.ends_with("/main.rs");
    let wrong: Vec<&String> = sources.iter().filter(|p| !is_root(p) && has_folder(p)).collect();
    assert!(sources.iter().filter(|p| p.ends_with("/mod.rs")).count() > 50, "the search finds nothing");
    assert!(wrong.is_empty(), "a module with a folder is FOLDER/mod.rs, not FOLDER.rs beside it: {wrong:?}");
}

#[test]
fn a_published_description_says_what_the_thing_is() {
    let (mut empty, mut n_read) = (BTreeSet::new(), 0);
    for file in fs::read_dir(top().join("docs/ref/schema")).unwrap().flatten() {
        let text = fs::read_to_string(file.path()).unwrap();
        for said in text.lines().filter_map(|l| l.trim().strip_prefix("\"description\": \"")) {
            n_read += 1;
            if said.split_whitespace().count() < 3 || said.starts_with("See [") {
                empty.insert(said.trim_end_matches([',', '"']).to_string());
            }
        }
    }
    assert!(n_read > 1000, "the search finds nothing");
    assert!(empty.is_empty(), "say in the doc comment what it is, with its unit, then `cargo xtask ref`: {empty:#?}");
}
