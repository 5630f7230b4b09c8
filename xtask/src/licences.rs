//! The licences, sources and bans of deny.toml for everything that is linked in; needs no cargo-deny.
//!
//! An SPDX expression passes when one side of every OR is allowed; both sides of an AND must be. Exceptions
//! (`WITH …`) must be listed as a whole.

use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::process::Command;

pub(crate) fn run() -> Result<bool> {
    let top = crate::repository();
    let deny = std::fs::read_to_string(top.join("deny.toml")).context("deny.toml is not readable")?;
    let allowed = list(&deny, "[licenses]", "allow");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["metadata", "--format-version", "1", "--locked"]).current_dir(&top);
    // Only what is built for these; crates of other systems are never linked and need not even be downloaded.
    for target in list(&deny, "[graph]", "targets") {
        cargo.args(["--filter-platform", &target]);
    }
    let output = cargo.output().context("cargo could not be run")?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).context("cargo metadata failed")?;
    let banned = bans(&deny);
    let users = users(&metadata);
    let registries = list(&deny, "[sources]", "allow-registry");
    let mut used: BTreeMap<String, usize> = BTreeMap::new();
    let mut is_fine = true;
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or("?");
        let licence = package["license"].as_str().unwrap_or("none stated").replace('/', " OR ");
        if !passes(&licence, &allowed) {
            println!("{name} {}: {licence} is not allowed by deny.toml", package["version"].as_str().unwrap_or("?"));
            is_fine = false;
        }
        let source = package["source"].as_str();
        let asked_by = users.get(name).map(Vec::as_slice).unwrap_or_default();
        if let Some(why) = refused((name, asked_by), source, &banned, &registries) {
            println!("{name}: {why}");
            is_fine = false;
        }
        *used.entry(licence).or_default() += 1;
    }
    for (licence, n) in used {
        println!("{n:4} {licence}");
    }
    Ok(is_fine)
}

/// Why a package may not be linked in: named by a ban that does not excuse all who ask for it, or from elsewhere than the
/// registries; without a source it is ours.
fn refused(
    (name, asked_by): (&str, &[String]),
    source: Option<&str>,
    banned: &[Ban],
    registries: &[String],
) -> Option<String> {
    let is_excused = |ban: &Ban| !ban.wrappers.is_empty() && asked_by.iter().all(|user| ban.wrappers.contains(user));
    if banned.iter().any(|ban| ban.name == name && !is_excused(ban)) {
        return Some("banned by deny.toml".into());
    }
    let source = source?;
    let registry = source.strip_prefix("registry+").unwrap_or(source);
    (!registries.iter().any(|r| r == registry)).then(|| format!("comes from {source}, which deny.toml does not allow"))
}

/// A crate that may not be linked in, but below these.
#[derive(Debug, PartialEq)]
struct Ban {
    name: String,
    wrappers: Vec<String>,
}

/// `deny = [ { name = "…", wrappers = ["…"] … } ]`, one a line.
fn bans(toml: &str) -> Vec<Ban> {
    let table = toml.split("[bans]").nth(1).and_then(|t| t.split("\n[").next()).unwrap_or_default();
    let quoted = |text: &str| text.split('"').skip(1).step_by(2).map(str::to_string).collect::<Vec<_>>();
    let ban = |line: &str| {
        let name = quoted(line.split_once("name = ")?.1).into_iter().next()?;
        let wrappers = line.split_once("wrappers = [").and_then(|(_, rest)| rest.split(']').next()).map(quoted);
        Some(Ban { name, wrappers: wrappers.unwrap_or_default() })
    };
    table.lines().filter(|line| line.trim_start().starts_with('{')).filter_map(ban).collect()
}

/// Who asks for each package, by name.
fn users(metadata: &serde_json::Value) -> BTreeMap<String, Vec<String>> {
    let texts = |value: &serde_json::Value, key: &str| value[key].as_str().unwrap_or_default().to_string();
    let all = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
    let names: BTreeMap<String, String> =
        all(&metadata["packages"]).iter().map(|package| (texts(package, "id"), texts(package, "name"))).collect();
    let name_of = |id: &str| names.get(id).cloned().unwrap_or_else(|| id.to_string());
    let mut users: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for node in all(&metadata["resolve"]["nodes"]) {
        for used in all(&node["dependencies"]) {
            users.entry(name_of(used.as_str().unwrap_or_default())).or_default().push(name_of(&texts(&node, "id")));
        }
    }
    users
}

/// The strings of `key = [ … ]` in a table of a TOML file.
fn list(toml: &str, table: &str, key: &str) -> Vec<String> {
    let table = toml.split(table).nth(1).unwrap_or_default();
    let list = table.split(&format!("\n{key} = [")).nth(1).and_then(|l| l.split(']').next()).unwrap_or_default();
    list.split('"').skip(1).step_by(2).map(str::to_string).collect()
}

fn passes(expression: &str, allowed: &[String]) -> bool {
    let expression = expression.trim();
    // Split at the top level only: OR binds loosest, then AND.
    for (operator, is_any) in [(" OR ", true), (" AND ", false)] {
        let parts = split(expression, operator);
        if parts.len() > 1 {
            let mut results = parts.iter().map(|p| passes(p, allowed));
            return if is_any { results.any(|r| r) } else { results.all(|r| r) };
        }
    }
    match expression.strip_prefix('(').and_then(|e| e.strip_suffix(')')) {
        Some(inner) => passes(inner, allowed),
        None => allowed.iter().any(|a| a == expression),
    }
}

fn split<'a>(text: &'a str, operator: &str) -> Vec<&'a str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0i32, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ if depth == 0 && at >= start && text[at..].starts_with(operator) => {
                parts.push(&text[start..at]);
                start = at + operator.len();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bans_and_sources() {
        let deny = "[bans]\ndeny = [\n  { name = \"bad\", reason = \"x\" },\n  { name = \"worse\", wrappers = [\"user\"] },\n]\n\n[sources]\n\
                    allow-registry = [\"https://here\"]\n";
        let (banned, registries) = (bans(deny), list(deny, "[sources]", "allow-registry"));
        assert_eq!((banned.len(), registries.len()), (2, 1));
        let check = |name: &str, source: Option<&str>| refused((name, &[]), source, &banned, &registries).is_none();
        let asked_by = |user: &str| refused(("worse", &[user.to_string()]), None, &banned, &registries).is_none();
        assert!(asked_by("user") && !asked_by("another"));
        assert!(check("good", Some("registry+https://here")) && check("ours", None));
        assert!(
            !check("bad", None) && !check("good", Some("git+https://there")) && !check("x", Some("registry+https://y"))
        );
    }

    #[test]
    fn expressions() {
        let allowed =
            list("[licenses]\nallow = [\n  \"MIT\",\n  \"Apache-2.0\",\n]\nx = [\"GPL\"]\n", "[licenses]", "allow");
        assert_eq!(allowed, ["MIT", "Apache-2.0"]);
        for (expression, is_fine) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("MIT OR GPL-3.0", true),
            ("MIT AND GPL-3.0", false),
            ("(MIT OR GPL-3.0) AND Apache-2.0", true),
            ("Apache-2.0 WITH LLVM-exception", false),
        ] {
            assert_eq!(passes(expression, &allowed), is_fine, "{expression}");
        }
    }
}
