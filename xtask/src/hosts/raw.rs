//! A second pair of eyes: the recorded machine as raw text, read without any code of wakewatt.
//!
//! A folder is walked with `std::fs`; a `.host` file is read by the small parser in `host_text`. Both become one map
//! from the machine's path to what is there. Nothing is interpreted here; `expect` does that.

use super::content::Content;
use super::host_text;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A recorded machine.
#[derive(Debug, Default)]
pub(crate) struct Raw {
    /// By absolute path.
    pub files: BTreeMap<String, Content>,
}

/// No kernel text file is larger; what is larger cannot be read by wakewatt either.
const MAX_BYTES: u64 = 16 << 20;

impl Raw {
    /// Reads a tree or a `.host` file.
    pub(crate) fn open(path: &Path) -> Result<Raw> {
        if path.is_dir() {
            let mut raw = Raw::default();
            for top in ["sys", "proc", "dev"] {
                raw.walk(&path.join(top), &format!("/{top}"), 0);
            }
            return Ok(raw);
        }
        let text = std::fs::read_to_string(path).with_context(|| format!("{}: not readable", path.display()))?;
        Ok(Raw { files: host_text::parse(&text) })
    }

    fn walk(&mut self, folder: &Path, name: &str, depth: u32) {
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            let Ok(file) = entry.file_name().into_string() else { continue };
            let (path, name) = (entry.path(), format!("{name}/{file}"));
            let Ok(meta) = std::fs::symlink_metadata(&path) else { continue };
            if meta.is_dir() && depth < 40 {
                self.walk(&path, &name, depth + 1);
            } else if meta.is_symlink() {
                let target = std::fs::read_link(&path).ok().and_then(|t| t.into_os_string().into_string().ok());
                self.files.insert(name, target.map_or(Content::Error, Content::Link));
            } else if meta.is_file() {
                let bytes = if meta.len() > MAX_BYTES { None } else { std::fs::read(&path).ok() };
                self.files.insert(name, bytes.map_or(Content::Error, Content::Bytes));
            } else {
                self.files.insert(name, Content::Error);
            }
        }
    }

    /// What is at a path, links followed inside the tree.
    pub(crate) fn at(&self, path: &str) -> Content {
        let mut path = path.to_string();
        'follow: for _ in 0..40 {
            if let Some(content) = self.files.get(&path) {
                let Content::Link(target) = content else { return content.clone() };
                path = join(path.rsplit_once('/').map_or("", |p| p.0), target);
                continue 'follow;
            }
            // A link may stand for any folder on the way.
            for (at, _) in path.match_indices('/').skip(1) {
                if let Some(Content::Link(target)) = self.files.get(&path[..at]) {
                    let parent = path[..at].rsplit_once('/').map_or("", |p| p.0);
                    path = format!("{}{}", join(parent, target), &path[at..]);
                    continue 'follow;
                }
            }
            return Content::Absent;
        }
        Content::Error
    }

    /// The text of a file, without the newline at its end; none where there is none to be had.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        match self.at(path) {
            Content::Bytes(bytes) => String::from_utf8(bytes).ok().map(|t| t.trim().to_string()),
            _ => None,
        }
    }

    /// The numbers of the entries `prefixN` in a folder, of things that are there.
    pub(crate) fn numbered(&self, folder: &str, prefix: &str) -> BTreeSet<u32> {
        let start = format!("{folder}/{prefix}");
        let there = self.files.range(start.clone()..).take_while(|(path, _)| path.starts_with(&start));
        there
            .filter(|(_, content)| !matches!(content, Content::Absent))
            .filter_map(|(path, _)| {
                let rest = &path[start.len()..];
                rest.split('/').next().filter(|d| d.len() == d.trim_start_matches('0').len().max(1))?.parse().ok()
            })
            .collect()
    }

    /// The names in a folder.
    pub(crate) fn names(&self, folder: &str) -> BTreeSet<String> {
        let start = format!("{folder}/");
        let there = self.files.range(start.clone()..).take_while(|(path, _)| path.starts_with(&start));
        there
            .filter(|(_, content)| !matches!(content, Content::Absent))
            .filter_map(|(path, _)| path[start.len()..].split('/').next().map(str::to_string))
            .collect()
    }
}

fn join(folder: &str, target: &str) -> String {
    let whole = if target.starts_with('/') { target.to_string() } else { format!("{folder}/{target}") };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_inside_the_tree() {
        let mut raw = Raw::default();
        raw.files.insert("/sys/cpu0/cpufreq".into(), Content::Link("../cpufreq/policy0".into()));
        raw.files.insert("/sys/cpufreq/policy0/max".into(), Content::Bytes(b"7\n".to_vec()));
        raw.files.insert("/sys/loop".into(), Content::Link("/sys/loop".into()));
        assert_eq!(raw.text("/sys/cpu0/cpufreq/max").as_deref(), Some("7"));
        assert_eq!(raw.at("/sys/loop/x"), Content::Error);
        assert_eq!(raw.numbered("/sys", "cpu").into_iter().collect::<Vec<_>>(), [0]);
    }
}
