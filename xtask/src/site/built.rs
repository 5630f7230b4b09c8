//! Every link of the built site leads somewhere in it, and no page loads anything from elsewhere.
//!
//! mdBook's pages are regular enough to be read as text: `href="…"`, `src="…"`, `id="…"`. A link of a sentence may lead to
//! another site (sources do); what a page loads by itself may not.

use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What is wrong, a line each.
pub(super) fn wrong(book: &Path) -> Result<Vec<String>> {
    let mut pages = BTreeMap::new();
    let mut todo = vec![book.to_path_buf()];
    while let Some(folder) = todo.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                todo.push(path);
            // The page for a wrong address has a base of its own; nobody is served from a folder of files with it.
            } else if path.extension().is_some_and(|e| e == "html") && !path.ends_with("404.html") {
                let text = std::fs::read_to_string(&path)?;
                pages.insert(path, text);
            }
        }
    }
    anyhow::ensure!(pages.len() > 50, "only {} pages in {}", pages.len(), book.display());
    let ids: BTreeMap<&PathBuf, BTreeSet<&str>> =
        pages.iter().map(|(p, t)| (p, values(t, " id=\"").collect())).collect();
    let mut out = BTreeSet::new();
    for (page, text) in &pages {
        let name = page.strip_prefix(book)?.display();
        let loaded = values(text, " src=\"").map(|v| (v, true)).chain(loaded_by_link(text).map(|v| (v, true)));
        for (target, is_loaded) in values(text, " href=\"").map(|v| (v, false)).chain(loaded) {
            let is_elsewhere =
                target.starts_with("//") || target.split(['/', '#']).next().is_some_and(|h| h.contains(':'));
            if is_elsewhere {
                if is_loaded && !target.starts_with("data:") {
                    out.insert(format!("{name} loads {target}"));
                }
                continue;
            }
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = path.split('?').next().unwrap_or_default();
            let there = if path.is_empty() { page.clone() } else { flat(&page.with_file_name(path)) };
            let known = ids.get(&there);
            if known.is_none() && !there.is_file() {
                out.insert(format!("{name}: {target} leads nowhere"));
            } else if !anchor.is_empty() && known.is_some_and(|ids| !ids.contains(anchor)) {
                out.insert(format!("{name}: {target}: no such heading"));
            }
        }
    }
    Ok(out.into_iter().collect())
}

fn values<'a>(text: &'a str, name: &'static str) -> impl Iterator<Item = &'a str> {
    text.split(name).skip(1).filter_map(|rest| Some(rest.split_once('"')?.0))
}

/// What `<link …>` loads: styles and icons.
fn loaded_by_link(text: &str) -> impl Iterator<Item = &str> {
    text.split("<link ").skip(1).filter_map(|rest| values(rest.split('>').next()?, "href=\"").next())
}

/// Without `..`, which no map of paths knows.
fn flat(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        if part == std::path::Component::ParentDir {
            out.pop();
        } else {
            out.push(part);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_page_that_loads_from_elsewhere_or_leads_nowhere_is_told() {
        let folder = tempfile::tempdir().unwrap();
        for n in 0..60 {
            std::fs::write(folder.path().join(format!("{n}.html")), r#"<h1 id="a"><a href="0.html#a">0</a>"#).unwrap();
        }
        let page = r##"<link rel="x" href="https://e.org/s.css"><a href="https://e.org"><a href="1.html#no"><a href="x/../2.html#a">
            <h1 id="a"><img src="none.png"><a href="#a">"##;
        std::fs::write(folder.path().join("0.html"), page).unwrap();
        let wrong = super::wrong(folder.path()).unwrap();
        let expected = [
            "0.html loads https://e.org/s.css",
            "0.html: 1.html#no: no such heading",
            "0.html: none.png leads nowhere",
        ];
        assert_eq!(wrong, expected);
    }
}
