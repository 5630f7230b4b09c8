//! Every link of every page in the repository leads to a file that is there, and to a heading that is in it.
//!
//! Nothing is asked of the network: a link with a scheme is somebody else's. A link from the root of a file system
//! (`/docs/…`) means something else in every viewer, so it is wrong here.

use super::markdown;
use anyhow::{Context, Result};
use std::path::{Component, Path, PathBuf};

/// What git keeps no pages in.
const SKIPPED: &[&str] = &["target", "dist", ".git", "node_modules"];

/// All pages below a folder, as paths from the top.
pub(super) fn pages(top: &Path, below: &str) -> Result<Vec<PathBuf>> {
    let (mut todo, mut out) = (vec![top.join(below)], Vec::new());
    while let Some(folder) = todo.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let entry = entry?;
            let (path, name) = (entry.path(), entry.file_name());
            // A link to a folder may lead in a circle; `file_type` does not follow it.
            if entry.file_type()?.is_dir() {
                if !SKIPPED.iter().any(|s| name == *s) {
                    todo.push(path);
                }
            } else if path.extension().is_some_and(|e| e == "md") {
                out.push(path.strip_prefix(top)?.to_path_buf());
            }
        }
    }
    out.sort();
    Ok(out)
}

/// Where a link in a page leads: a path from the top, and the anchor. None for somebody else's.
pub(super) fn resolve(page: &Path, target: &str) -> Option<(PathBuf, Option<String>)> {
    let target = target.split_whitespace().next().unwrap_or_default();
    let head = target.split(['/', '#', '?']).next().unwrap_or_default();
    if head.contains(':') {
        return None;
    }
    let (path, anchor) = match target.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor.to_string())),
        None => (target, None),
    };
    if path.is_empty() {
        return Some((page.to_path_buf(), anchor));
    }
    let mut out = PathBuf::new();
    for part in page.parent().unwrap_or(Path::new("")).join(path).components() {
        match part {
            // Above the top there is nothing; the path that stays will not be found.
            Component::ParentDir if !out.pop() => out.push("(outside the repository)"),
            Component::ParentDir | Component::CurDir => {}
            other => out.push(other),
        }
    }
    Some((out, anchor))
}

/// Links that lead nowhere, a line each.
pub(super) fn wrong(top: &Path) -> Result<Vec<String>> {
    let mut out = Vec::new();
    let pages = pages(top, "")?;
    anyhow::ensure!(pages.len() > 50, "only {} pages below {}", pages.len(), top.display());
    for page in &pages {
        let text = std::fs::read_to_string(top.join(page)).with_context(|| page.display().to_string())?;
        for (line, target) in markdown::links(&text) {
            let Some((path, anchor)) = resolve(page, &target) else { continue };
            let here = format!("{}:{line}: {target}", page.display());
            let there = top.join(&path);
            if path.is_absolute() {
                out.push(format!("{here}: a link from the root; make it relative to the page"));
            } else if !there.exists() {
                out.push(format!("{here}: there is no {}", path.display()));
            } else if let Some(anchor) = anchor {
                let is_there = there.extension().is_some_and(|e| e == "md")
                    && markdown::anchors(&std::fs::read_to_string(&there)?).contains(&anchor);
                if !is_there {
                    out.push(format!("{here}: no heading of {} makes #{anchor}", path.display()));
                }
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_followed_from_its_page() {
        let at = |target: &str| resolve(Path::new("docs/a/b.md"), target).map(|(p, a)| (p.display().to_string(), a));
        assert_eq!(at("../c.md#d"), Some(("docs/c.md".into(), Some("d".into()))));
        assert_eq!(at("#d"), Some(("docs/a/b.md".into(), Some("d".into()))));
        assert_eq!(at("https://example.org/x.md"), None);
        assert!(at("../../../x").unwrap().0.starts_with("(outside"));
    }

    #[test]
    fn what_leads_nowhere_is_told() {
        let folder = tempfile::tempdir().unwrap();
        for n in 0..60 {
            std::fs::write(folder.path().join(format!("{n}.md")), "# Page\n").unwrap();
        }
        let page = "# A\n[1](1.md#page) [2](1.md#no) [3](none.md) [4](/1.md) [5](#a)\n";
        std::fs::write(folder.path().join("0.md"), page).unwrap();
        let wrong = wrong(folder.path()).unwrap();
        assert_eq!(wrong.len(), 3, "{wrong:?}");
        assert!(wrong[0].starts_with("0.md:2: 1.md#no: no heading"), "{wrong:?}");
    }
}
