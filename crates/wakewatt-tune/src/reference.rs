//! The reference page of all knobs, made from their own words, so that it cannot drift (`cargo xtask ref`).

use crate::knob::{About, Reversible, Scope};
use crate::knobs::KNOBS;
use std::fmt::Write as _;
use wakewatt_words::{say, told, word};

/// `Package` is `package`.
fn word(value: impl std::fmt::Debug) -> String {
    format!("{value:?}").to_lowercase()
}

fn reach(scope: Scope) -> &'static str {
    match scope {
        Scope::Machine => word!("the machine"),
        Scope::Package => word!("a package"),
        Scope::Die => word!("a die or cluster"),
        Scope::Policy => word!("a policy (CPUs that share a clock)"),
        Scope::Core => word!("a core"),
        Scope::Cpu => word!("a CPU"),
        Scope::Device => word!("a device"),
    }
}

fn undo(reversible: Reversible) -> &'static str {
    match reversible {
        Reversible::Exactly => word!("write back what was there"),
        Reversible::ByItself => word!("ends with the process that holds it"),
        Reversible::ByReboot => word!("only by a reboot"),
    }
}

/// The page, without the line that says who made it.
pub fn knobs() -> String {
    let mut out =
        "# Knobs\n\nWhat wakewatt can set, in the order in which the list is kept; settings are made by stage.\n\n\
                   | knob | sets | per | stage |\n|---|---|---|---|\n"
            .to_string();
    for about in KNOBS.iter().map(|knob| knob.about()) {
        let _ = writeln!(out, "| `{}` | {} | {} | {} |", about.id, about.title, word(about.scope), word(about.stage));
    }
    for about in KNOBS.iter().map(|knob| knob.about()) {
        section(about, &mut out);
    }
    out
}

fn section(about: &About, out: &mut String) {
    let _ = writeln!(out, "\n## `{}`\n\n{}.\n", about.id, capital(about.title));
    for line in lines(about) {
        let _ = writeln!(out, "- {line}");
    }
    let _ = writeln!(out, "- Source: {}", about.source);
}

/// What must be known about a knob, a line each, but for its title and source.
pub fn lines(about: &About) -> Vec<String> {
    let mut out = vec![say!("Value: {unit}", unit = told(about.unit))];
    out.push(match about.scope == about.io_scope {
        true => say!("Reaches: {what}", what = reach(about.scope)),
        false => {
            say!("Reaches: set for {what}, acts on {other}", what = reach(about.scope), other = reach(about.io_scope))
        }
    });
    out.push(say!("Undo: {how}", how = undo(about.reversible)));
    out.push(say!("Price: {price}", price = about.price.in_general()));
    out.push(say!("Risk: {risk}", risk = told(about.risk)));
    if !about.overlaps.is_empty() {
        let names: Vec<&str> = about.overlaps.iter().map(|name| told(name)).collect();
        out.push(say!("Daemons call it: {names}", names = names.join(", ")));
    }
    if !about.moves.is_empty() {
        out.push(say!("May move: `{names}`", names = about.moves.join("`, `")));
    }
    out
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + letters.as_str())
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_knob_has_its_line_and_section() {
        let page = super::knobs();
        for knob in super::KNOBS {
            let id = knob.about().id;
            assert!(page.contains(&format!("| `{id}` |")) && page.contains(&format!("## `{id}`\n")), "{id}");
        }
        assert!(page.lines().filter(|l| l.starts_with('|')).all(|l| l.matches('|').count() == 5), "a bar in a cell");
    }
}
