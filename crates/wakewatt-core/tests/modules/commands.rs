//! A command parses, calls and shows: its files are short, and none looks into another's. What several need has a name of its
//! own outside `cmd`; what runs is the lab's.

use crate::house::House;

/// More lines than this do more than that.
const MOST_LINES: usize = 200;

#[test]
fn files_of_commands_are_short() {
    let files = super::sources("crates/wakewatt/src/cmd");
    assert!(files.len() > 20, "the commands were not found");
    let long: Vec<(&str, usize)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.lines().count()))
        .filter(|(_, n)| *n > MOST_LINES)
        .collect();
    assert!(long.is_empty(), "more than {MOST_LINES} lines; what runs belongs into wakewatt-lab: {long:#?}");
}

#[test]
fn no_command_looks_into_another() {
    let house = House::read(&super::top().join("crates/wakewatt/src"));
    let level = vec!["cmd".to_string()];
    let mut levels = house.levels();
    assert!(levels.get(&Vec::new()).is_some_and(|top| top.contains_key("cmd")), "the commands were not found");
    // Not among the levels where no command uses another.
    let all = levels.remove(&level).unwrap_or_default();
    let all: Vec<(&str, &str)> =
        all.iter().flat_map(|(from, to)| to.iter().map(move |to| (from.as_str(), to.as_str()))).collect();
    let why: Vec<String> =
        all.iter().flat_map(|(from, to)| house.why(&level, &[from.to_string(), to.to_string()].into())).collect();
    assert!(why.is_empty(), "what both need belongs outside cmd:\n{}", why.join("\n"));
}
