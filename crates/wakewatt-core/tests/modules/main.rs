//! No modules that need each other, in any crate: who reads one of them can begin somewhere.
//!
//! In every folder the modules beside each other are compared, each with all that lies below it: `a` uses `b` where any
//! code of `a` names anything of `b`, through whatever re-export. A chain of such uses that comes back is a circle. Tests
//! may look anywhere. A parent that declares, re-exports and calls its children, which use what it defines for them, is
//! one thing in several files and no circle: there is one door to it, and the parent's essay says what it is.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // The bans are for core itself; a test may read files.

mod commands;
mod house;
mod tokens;

use house::House;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Circles that are left, to be mended and struck out: the crate and folder, and who goes round.
const KNOWN: &[(&str, &str)] = &[];

fn top() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

fn sources(below: &str) -> Vec<(String, String)> {
    let (mut out, mut waiting) = (Vec::new(), vec![top().join(below)]);
    while let Some(folder) = waiting.pop() {
        for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
            match path.is_dir() {
                true => waiting.push(path),
                false => out.push((path.display().to_string(), fs::read_to_string(&path).unwrap())),
            }
        }
    }
    out.sort();
    out
}

/// Those that reach each other, each group once: what follows from whom, closed.
fn circles(uses: &BTreeMap<String, BTreeSet<String>>) -> Vec<BTreeSet<String>> {
    let reach = |from: &str| {
        let (mut seen, mut waiting) = (BTreeSet::new(), vec![from.to_string()]);
        while let Some(at) = waiting.pop() {
            for next in uses.get(&at).into_iter().flatten().filter(|next| !seen.contains(*next)).collect::<Vec<_>>() {
                seen.insert(next.clone());
                waiting.push(next.clone());
            }
        }
        seen
    };
    let reached: BTreeMap<&str, BTreeSet<String>> = uses.keys().map(|from| (from.as_str(), reach(from))).collect();
    let is_mutual = |a: &str, b: &str| reached.get(b).is_some_and(|back| back.contains(a));
    let group =
        |from: &str| -> BTreeSet<String> { reached[from].iter().filter(|to| is_mutual(from, to)).cloned().collect() };
    let groups: BTreeSet<BTreeSet<String>> = uses.keys().map(|from| group(from)).filter(|g| g.len() > 1).collect();
    groups.into_iter().collect()
}

/// Every circle of a crate: folder, members, and the uses that close it.
fn found(name: &str, folder: &Path) -> Vec<(String, String, String)> {
    let house = House::read(folder);
    let mut out = Vec::new();
    for (level, uses) in house.levels() {
        for circle in circles(&uses) {
            let members: Vec<&str> = circle.iter().map(String::as_str).collect();
            let place = [&[name], &level.iter().map(String::as_str).collect::<Vec<_>>()[..]].concat().join("/");
            let how = house.why(&level, &circle).join("\n    ");
            out.push((place, members.join(" "), how));
        }
    }
    out
}

#[test]
fn no_modules_need_each_other() {
    let mut all = Vec::new();
    for entry in fs::read_dir(top().join("crates")).unwrap().flatten() {
        all.extend(found(&entry.file_name().to_string_lossy(), &entry.path().join("src")));
    }
    all.extend(found("xtask", &top().join("xtask/src")));
    all.sort();
    let is_known = |place: &str, members: &str| KNOWN.contains(&(place, members));
    let new: Vec<String> = all
        .iter()
        .filter(|(place, members, _)| !is_known(place, members))
        .map(|(place, members, how)| format!("(\"{place}\", \"{members}\"), because\n    {how}"))
        .collect();
    assert!(new.is_empty(), "modules that need each other:\n{}", new.join("\n"));
    let is_there = |known: &&(&str, &str)| all.iter().any(|(place, members, _)| (&**place, &**members) == **known);
    let gone: Vec<&(&str, &str)> = KNOWN.iter().filter(|known| !is_there(known)).collect();
    assert!(gone.is_empty(), "no longer a circle, strike it out of KNOWN: {gone:?}");
}

#[test]
fn a_circle_is_found_through_imports_paths_and_re_exports_and_not_in_tests() {
    let dir = std::env::temp_dir().join(format!("wakewatt-circles-{}", std::process::id()));
    let write = |file: &str, text: &str| {
        let path = dir.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\npub use b::shown;\n");
    write("a.rs", "use crate::{b::{inner, shown as x}, c};\n// crate::d::no\nconst T: &str = \"crate::d\";\n");
    // Of its own, through a re-export of the crate's, and in a test.
    write("b/mod.rs", "mod inner;\npub use inner::shown;\n#[cfg(test)]\nmod tests { use crate::a; }\n");
    write("b/inner.rs", "pub fn shown() { super::super::d::go(); }\n#[cfg(test)]\nmod tests { use crate::a; }\n");
    write("c.rs", "use crate::shown;\n");
    write("d.rs", "pub fn go() { crate::c::x::<'static>(); }\n");
    let circles = found("made", &dir);
    fs::remove_dir_all(&dir).unwrap();
    let shown: Vec<(&str, &str)> = circles.iter().map(|(place, members, _)| (&**place, &**members)).collect();
    assert_eq!(shown, [("made", "b c d")]);
    assert!(circles[0].2.contains("c uses b: c.rs names b/inner"), "{}", circles[0].2);
}
