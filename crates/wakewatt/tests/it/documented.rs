//! Every command of ours that a page names is one: it parses as the program parses. Pages under docs/journal tell of their day and
//! are left out, docs/ref is made from code. What a command prints is the business of `stories.rs`.

use clap::Parser;
use std::fs;
use std::path::{Path, PathBuf};
use wakewatt::cli::Cli;

/// Pages for users.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut open: Vec<PathBuf> = ["site/src", "docs", "packaging"].map(|folder| root.join(folder)).into();
    let mut found = vec![root.join("README.md"), root.join("GUIDE.md")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is_left_out = path.ends_with("docs/journal") || path.ends_with("docs/ref");
            match path.is_dir() {
                true if !is_left_out => open.push(path),
                false if path.extension().is_some_and(|e| e == "md") => found.push(path),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

/// A page's commands: spans of code, and lines of blocks.
fn commands(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    // Within a fence: is it a terminal, where only lines behind a prompt were typed?
    let mut fence: Option<bool> = None;
    let page = page.replace("\\\n", " ");
    let begins = |text: &str| {
        let text = text.trim_start_matches("$ ").trim_start_matches("# ");
        let text = text.strip_prefix("sudo ").unwrap_or(text);
        text.strip_prefix("wakewatt ").map(|rest| rest.trim().to_string())
    };
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            fence = fence.is_none().then(|| line.contains("console"));
        } else if fence == Some(true) && !line.starts_with("$ ") {
            continue;
        } else if fence.is_some() || line.starts_with("    ") {
            // A remark stands behind two blanks.
            let command = line.trim().split("  ").next().unwrap_or_default();
            found.extend(begins(command));
        } else {
            found.extend(line.split('`').skip(1).step_by(2).filter_map(|span| begins(&span.replace("\\|", "|"))));
        }
    }
    found
}

/// The words of a command as a shell divides them, up to what is no longer ours. None where a page leaves something out.
fn words(command: &str) -> Option<Vec<String>> {
    let (mut all, mut word, mut quote, mut is_word) = (Vec::new(), String::new(), None, false);
    for c in command.chars() {
        match (c, quote) {
            ('…', _) => return None,
            ('\'' | '"', None) => (quote, is_word) = (Some(c), true),
            (c, Some(open)) if c == open => quote = None,
            (' ', None) => {
                if std::mem::take(&mut is_word) {
                    all.push(std::mem::take(&mut word));
                }
            }
            ('|' | '>' | ';' | '&' | '<' | '(', None) => break,
            (c, _) => {
                word.push(c);
                is_word = true;
            }
        }
    }
    if is_word {
        all.push(word);
    }
    (quote.is_none() && !command.contains("...")).then_some(all)
}

/// A merge has lost two of them once, and nobody typed them.
#[test]
fn every_target_of_make_that_a_page_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let makefile = fs::read_to_string(root.join("Makefile")).unwrap();
    let has = |target: &str| makefile.lines().any(|line| line.starts_with(&format!("{target}:")));
    let listed = makefile.lines().find_map(|line| line.strip_prefix(".PHONY:")).unwrap();
    let missing: Vec<&str> = listed.split_whitespace().filter(|target| !has(target)).collect();
    assert!(missing.is_empty(), "listed as .PHONY and not there: {missing:?}");
    let own =
        ["TESTING.md", "RELEASING.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "STYLE.md"].map(|page| root.join(page));
    for page in pages().into_iter().chain(own) {
        let text = fs::read_to_string(&page).unwrap();
        for span in text.split('`').skip(1).step_by(2).chain(text.lines().filter(|line| line.starts_with("    make ")))
        {
            let mut words = span.split_whitespace();
            let (Some("make"), Some(target)) = (words.next(), words.next()) else { continue };
            // Other people's makefiles are named by their options or files.
            let is_target = target.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
            assert!(!is_target || target.starts_with('-') || has(target), "{}: make {target}", page.display());
        }
    }
}

#[test]
fn every_command_that_a_page_names_is_one() {
    let (mut n, mut wrong) = (0, Vec::new());
    for page in pages() {
        for command in commands(&fs::read_to_string(&page).unwrap()) {
            let Some(words) = words(&command) else { continue };
            n += 1;
            let error = match Cli::try_parse_from(std::iter::once("wakewatt".to_string()).chain(words)) {
                Err(e) if e.use_stderr() => e,
                _ => continue,
            };
            // A command named without what it needs is its name, as in "`wakewatt measure network` asks …".
            let is_bare = matches!(
                error.kind(),
                clap::error::ErrorKind::MissingRequiredArgument
                    | clap::error::ErrorKind::MissingSubcommand
                    | clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            );
            if !is_bare {
                let why = error.to_string();
                wrong.push(format!(
                    "{}: wakewatt {command}\n    {}",
                    page.display(),
                    why.lines().next().unwrap_or_default()
                ));
            }
        }
    }
    println!("{n} commands");
    assert!(n > 300, "only {n} commands were found");
    assert!(wrong.is_empty(), "{} of {n} are none:\n{}", wrong.len(), wrong.join("\n"));
}
