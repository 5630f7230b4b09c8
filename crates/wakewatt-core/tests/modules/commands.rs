//! A command parses, calls and shows: its files are short, and none looks into another's. What several need has a name of its
//! own outside `cmd`; what runs is the lab's.

use crate::house::House;

/// More lines than this do more than that.
const MOST_LINES: usize = 200;

/// Files that are longer, to be split and struck out.
const LONG: &[&str] = &["tune/apply.rs"];

/// Commands that use another, to be mended and struck out: who, and whom.
const LATERAL: &[(&str, &str)] = &[("tune", "recover")];

#[test]
fn files_of_commands_are_short() {
    let files = super::sources("crates/wakewatt/src/cmd");
    assert!(files.len() > 20, "the commands were not found");
    let long: Vec<(&str, usize)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.lines().count()))
        .filter(|(_, n)| *n > MOST_LINES)
        .collect();
    let is_known = |path: &str| LONG.iter().any(|known| path.ends_with(&format!("cmd/{known}")));
    let new: Vec<_> = long.iter().filter(|(path, _)| !is_known(path)).collect();
    assert!(new.is_empty(), "more than {MOST_LINES} lines; what runs belongs into wakewatt-lab: {new:#?}");
    let is_long = |known: &&&str| long.iter().any(|(path, _)| path.ends_with(&format!("cmd/{known}")));
    let gone: Vec<_> = LONG.iter().filter(|known| !is_long(known)).collect();
    assert!(gone.is_empty(), "short now, strike it out of LONG: {gone:?}");
}

#[test]
fn no_command_looks_into_another() {
    let house = House::read(&super::top().join("crates/wakewatt/src"));
    let level = vec!["cmd".to_string()];
    let all = house.levels().remove(&level).unwrap_or_default();
    let all: Vec<(&str, &str)> =
        all.iter().flat_map(|(from, to)| to.iter().map(move |to| (from.as_str(), to.as_str()))).collect();
    let new: Vec<String> = all
        .iter()
        .filter(|pair| !LATERAL.contains(pair))
        .flat_map(|(from, to)| house.why(&level, &[from.to_string(), to.to_string()].into()))
        .collect();
    assert!(new.is_empty(), "what both need belongs outside cmd:\n{}", new.join("\n"));
    let gone: Vec<_> = LATERAL.iter().filter(|pair| !all.contains(pair)).collect();
    assert!(gone.is_empty(), "no longer so, strike it out of LATERAL: {gone:?}");
}
