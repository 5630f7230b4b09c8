//! Which messages do the sources use?
//!
//! Tokens, not lines: `say!` and `word!` may stand in any other macro. Tests are left out. Of the command line it is what
//! clap would show: what a command or an option is about, long and short, and what stands before and behind.

use anyhow::{Context, Result};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Messages with the files that use them.
#[derive(Clone, Debug, Default)]
pub(super) struct Messages {
    /// By their English.
    pub(super) by_text: BTreeMap<String, BTreeSet<String>>,
    /// Files looked at.
    pub(super) files: BTreeSet<PathBuf>,
}

impl Messages {
    /// One more, used there.
    pub(super) fn add(&mut self, english: &str, place: &str) {
        if english.chars().any(char::is_alphabetic) {
            self.by_text.entry(english.to_string()).or_default().insert(place.to_string());
        }
    }
}

/// Of the Rust files under a folder, those of `done` left out.
pub(super) fn sources(folder: &Path, done: &mut BTreeSet<PathBuf>) -> Result<Messages> {
    let mut found = Messages::default();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).with_context(|| format!("{}: not readable", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                if !matches!(&*name, "tests" | "target" | "benches" | "wakewatt-words" | "wakewatt-words-macros") {
                    folders.push(path);
                }
            } else if name.ends_with(".rs") && name != "tests.rs" && done.insert(path.clone()) {
                let text =
                    std::fs::read_to_string(&path).with_context(|| format!("{}: not readable", path.display()))?;
                let tokens: TokenStream =
                    text.parse().map_err(|e| anyhow::anyhow!("{}: not Rust: {e}", path.display()))?;
                of_tokens(tokens, &path.display().to_string(), &mut found);
                found.files.insert(path);
            }
        }
    }
    Ok(found)
}

fn of_tokens(tokens: TokenStream, place: &str, found: &mut Messages) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        if let [TokenTree::Punct(_), TokenTree::Group(attribute), ..] = &tokens[at..]
            && attribute.stream().to_string().replace(' ', "") == "cfg(test)"
        {
            // What follows is a test's: up to its braces.
            at += 2;
            while tokens
                .get(at)
                .is_some_and(|t| !matches!(t, TokenTree::Group(g) if g.delimiter() == proc_macro2::Delimiter::Brace))
            {
                at += 1;
            }
            at += 1;
            continue;
        }
        if let [TokenTree::Ident(name), TokenTree::Punct(bang), TokenTree::Group(inside), ..] = &tokens[at..]
            && bang.as_char() == '!'
            && (name == "say" || name == "word")
            && let Some(TokenTree::Literal(first)) = inside.stream().into_iter().next()
            && let Ok(text) = syn::parse_str::<syn::LitStr>(&first.to_string())
        {
            found.add(&text.value(), place);
        }
        if let TokenTree::Group(inside) = token {
            of_tokens(inside.stream(), place, found);
        }
        at += 1;
    }
}

/// Of a command line's definition.
pub(super) fn help(root: &clap::Command) -> Messages {
    let mut found = Messages::default();
    wakewatt::cli::spoken::texts(root, &mut |place, text| found.add(text, place));
    found
}
