//! docs/ref: pages and schemas made from the code, so that they cannot drift; `--check` is the test that they did not.

use anyhow::{Context, Result};
use clap::CommandFactory;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Arguments of `ref`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write nothing; fail when a page is stale
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    let folder = crate::repository().join("docs/ref");
    let mut is_fresh = true;
    let pages = pages()?;
    for (name, text) in &pages {
        let path = folder.join(name);
        if std::fs::read_to_string(&path).is_ok_and(|now| now == *text) {
            continue;
        }
        is_fresh = false;
        println!("{} {}", if args.check { "stale" } else { "wrote" }, path.display());
        if !args.check {
            std::fs::create_dir_all(path.parent().context("a page without a folder")?)?;
            std::fs::write(&path, text)?;
        }
    }
    for path in strangers(&folder, &pages) {
        is_fresh = false;
        println!("{} {}", if args.check { "nothing makes" } else { "removed" }, path.display());
        if !args.check {
            std::fs::remove_file(path)?;
        }
    }
    if args.check && !is_fresh {
        println!("docs/ref is stale; run: cargo xtask ref");
    }
    Ok(is_fresh || !args.check)
}

/// Every page: path below docs/ref, and text.
fn pages() -> Result<BTreeMap<String, String>> {
    let mut pages = BTreeMap::new();
    pages.insert("cli.md".to_string(), cli());
    pages.insert("facts.md".to_string(), facts());
    pages.insert("rules.md".to_string(), rules());
    pages.insert("terms.md".to_string(), terms());
    pages.insert("silicon.md".to_string(), silicon());
    pages.insert("metrics.md".to_string(), format!("{HEAD}{}", wakewatt_agent::reference::metrics()));
    pages.insert("knobs.md".to_string(), format!("{HEAD}{}", wakewatt_tune::reference::knobs()));
    pages.insert(
        "exit-codes.md".to_string(),
        format!("{HEAD}# Exit codes\n\n```text\n{}\n```\n", wakewatt::exit::TABLE),
    );
    let profile = serde_json::to_string_pretty(&wakewatt::schema::profile())? + "\n";
    pages.insert("schema/profile.v1.json".to_string(), profile);
    let plan = serde_json::to_string_pretty(&wakewatt::schema::experiment_file())? + "\n";
    pages.insert("schema/experiment-file.v1.json".to_string(), plan);
    let server = serde_json::to_string_pretty(&wakewatt::schema::server_file())? + "\n";
    pages.insert("schema/server-file.v1.json".to_string(), server);
    for published in wakewatt::schema::SCHEMAS {
        let schema = wakewatt::schema::document(published);
        jsonschema::meta::validate(&schema).map_err(|e| anyhow::anyhow!("{}: no schema: {e}", published.name))?;
        let text = serde_json::to_string_pretty(&schema)? + "\n";
        pages.insert(format!("schema/{}.v1.json", published.name), text);
    }
    Ok(pages)
}

const HEAD: &str = "<!-- made by `cargo xtask ref`; do not edit -->\n";

fn cli() -> String {
    let mut out = format!("{HEAD}# The command line\n");
    // A fixed width: the terminal this runs in must not change the page.
    let mut root = wakewatt::cli::Cli::command().term_width(100);
    root.build();
    help_of(&mut root, &mut out);
    out
}

fn help_of(command: &mut clap::Command, out: &mut String) {
    if command.is_hide_set() {
        return;
    }
    let name = command.get_bin_name().unwrap_or(command.get_name()).to_string();
    let help = command.render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    let _ = writeln!(out, "\n## {name}\n\n```text\n{}\n```", lines.join("\n").trim_end());
    for inner in command.get_subcommands_mut() {
        help_of(inner, out);
    }
}

fn facts() -> String {
    let mut out = format!("{HEAD}# Topics of `wakewatt inspect`\n\n| topic | heading | holds |\n|---|---|---|\n");
    for topic in wakewatt_core::facts::TOPICS {
        let _ = writeln!(out, "| `{}` | {} | {} |", topic.id, topic.title, topic.help);
    }
    out + "\nThe JSON of each is in [schema/inspect.v1.json](schema/inspect.v1.json).\n"
}

fn rules() -> String {
    let mut out = format!("{HEAD}# Rules of `wakewatt doctor`\n\n| rule | question |\n|---|---|\n");
    for rule in wakewatt_core::rules::RULES {
        let _ = writeln!(out, "| `{}` | {} |", rule.id(), rule.question());
    }
    out
}

fn terms() -> String {
    let mut out = format!(
        "{HEAD}# Terms\n\nWhat the words of the field mean; `wakewatt explain TERM` adds this machine's numbers. The program's own words are in\n\
         [glossary](../glossary.md).\n"
    );
    for term in wakewatt_core::glossary::terms() {
        let also =
            if term.aliases.is_empty() { String::new() } else { format!(" (also: {})", term.aliases.join(", ")) };
        let _ = writeln!(out, "\n**{}**{also} – {}\nSource: {}.", term.name, term.text, term.source);
    }
    out
}

fn silicon() -> String {
    let mut out = format!(
        "{HEAD}# Silicon\n\nWhat wakewatt knows of each generation of processors. A generation that is missing here is measured like any other;\n\
         only what takes a model's own table is then answered with \"cannot tell\".\n\n\
         | generation | models | idle table | core state -> package state | package limit | uncore | frequency | source |\n\
         |---|---|---|---|---|---|---|---|\n"
    );
    for generation in wakewatt_core::package_states::generations::GENERATIONS {
        let model = |(a, b): &(u64, u64)| if a == b { format!("0x{a:02x}") } else { format!("0x{a:02x}-0x{b:02x}") };
        let models: Vec<String> = generation.models.iter().map(model).collect();
        let models = if models.is_empty() { "all of it".to_string() } else { models.join(", ") };
        let mut pairs: Vec<String> = generation.allows.iter().map(|a| format!("{} -> {}", a.core, a.package)).collect();
        pairs.dedup();
        let pairs = if pairs.is_empty() { "not known here".to_string() } else { pairs.join(", ") };
        let _ = writeln!(
            out,
            "| {} | {models} | {} | {pairs} | {} | {} | {} | {} |",
            generation.name,
            generation.idle_table,
            generation.limit_words(),
            generation.uncore,
            generation.frequency,
            generation.source
        );
    }
    out
}

/// Files in docs/ref that no page writes.
fn strangers(folder: &std::path::Path, pages: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let list = |below: &str| std::fs::read_dir(folder.join(below)).into_iter().flatten().flatten();
    let top = list("").map(|e| (e.file_name().to_string_lossy().into_owned(), e.path()));
    let schemas = list("schema").map(|e| (format!("schema/{}", e.file_name().to_string_lossy()), e.path()));
    top.chain(schemas)
        .filter(|(name, path)| path.is_file() && !pages.contains_key(name))
        .map(|(_, path)| path)
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_reference_is_fresh() {
        assert!(super::run(&super::Args { check: true }).unwrap(), "docs/ref is stale; run: cargo xtask ref");
    }
}
