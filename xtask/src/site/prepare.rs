//! From the repository's pages to the one folder that mdBook wants, with links that work there.
//!
//! `site/src/X` becomes `X`; every other page keeps its path (`docs/methods/disk.md`), but a README is its folder's index. A link to a page or picture that the
//! site holds is turned to where it lies there, one to anything else (a script, a saved run) becomes its path in words, and
//! a path of one of our pages that stands in a sentence becomes a link. `<!-- every FOLDER -->` in a page becomes a list of
//! that folder's files: how the journal and the schemas stay complete by themselves.

use super::links::{pages, resolve};
use super::markdown::{self, Piece};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const CONTENTS: &str = "site/src/SUMMARY.md";
/// Folders whose every page has to stand in the table of contents.
const COMPLETE: &[&str] = &["site/src", "docs"];
/// All pictures together.
const PICTURES_BYTES: u64 = 1_500_000;

/// The pages of the site.
pub(super) struct Book {
    top: PathBuf,
    /// By path in the repository: where it lies in the site.
    places: BTreeMap<PathBuf, PathBuf>,
    /// Pages with their text; the folders' lists are in.
    texts: BTreeMap<PathBuf, String>,
}

impl Book {
    /// Reads what the table of contents names.
    pub(super) fn of(top: &Path) -> Result<Book> {
        let mut book = Book { top: top.to_path_buf(), places: BTreeMap::new(), texts: BTreeMap::new() };
        let contents = book.add(Path::new(CONTENTS))?;
        for (_, target) in markdown::links(&contents) {
            if let Some((path, _)) = resolve(Path::new(CONTENTS), &target) {
                book.add(&path)?;
            }
        }
        // Pictures and schemas: everything under docs/ that is no page.
        for folder in ["docs/images", "docs/ref/schema"] {
            for file in files(&top.join(folder)) {
                let path = Path::new(folder).join(file);
                book.places.insert(path.clone(), path);
            }
        }
        Ok(book)
    }

    fn add(&mut self, path: &Path) -> Result<String> {
        let text = std::fs::read_to_string(self.top.join(path)).with_context(|| path.display().to_string())?;
        let text = self.listed(path, &text)?;
        let place = path.strip_prefix("site/src").unwrap_or(path);
        let place = if place.ends_with("README.md") { place.with_file_name("index.md") } else { place.to_path_buf() };
        self.places.insert(path.to_path_buf(), place);
        self.texts.insert(path.to_path_buf(), text.clone());
        Ok(text)
    }

    /// The text with each `<!-- every FOLDER -->` as a list of the folder's files, and the folder's links led here.
    fn listed(&mut self, page: &Path, text: &str) -> Result<String> {
        let mut out = String::new();
        for line in text.lines() {
            let folder = line.trim().strip_prefix("<!-- every ").and_then(|rest| rest.strip_suffix(" -->"));
            let Some(folder) = folder else {
                out.push_str(line);
                out.push('\n');
                continue;
            };
            let indent = &line[..line.len() - line.trim_start().len()];
            let up = "../".repeat(page.components().count() - 1);
            for file in files(&self.top.join(folder)) {
                let path = format!("{folder}/{file}");
                let inside = std::fs::read_to_string(self.top.join(&path)).with_context(|| path.clone())?;
                let title = markdown::title(&inside).unwrap_or(&file);
                out.push_str(&format!("{indent}- [{title}]({up}{path})\n"));
            }
            if page != Path::new(CONTENTS) {
                self.places.insert(folder.into(), page.strip_prefix("site/src").unwrap_or(page).to_path_buf());
            }
        }
        Ok(out)
    }

    /// Pages that nobody finds, and pictures that are too much; a line each.
    pub(super) fn missing(&self) -> Result<Vec<String>> {
        let mut out = Vec::new();
        for folder in COMPLETE {
            let all = pages(&self.top, folder)?.into_iter();
            out.extend(
                all.filter(|p| !self.places.contains_key(p))
                    .map(|p| format!("{CONTENTS} does not name {}", p.display())),
            );
        }
        let pictures = files(&self.top.join("docs/images"));
        let sizes = pictures.iter().filter_map(|p| std::fs::metadata(self.top.join("docs/images").join(p)).ok());
        let bytes: u64 = sizes.map(|m| m.len()).sum();
        if bytes > PICTURES_BYTES {
            out.push(format!(
                "docs/images holds {bytes} bytes; {PICTURES_BYTES} at most, because every clone has them"
            ));
        }
        Ok(out)
    }

    /// Writes all of it into a folder of its own.
    pub(super) fn write(&self, out: &Path) -> Result<()> {
        if out.exists() {
            std::fs::remove_dir_all(out).with_context(|| out.display().to_string())?;
        }
        for (path, place) in &self.places {
            let to = out.join(place);
            std::fs::create_dir_all(to.parent().context("a page without a folder")?)?;
            if let Some(text) = self.texts.get(path) {
                std::fs::write(&to, self.turned(path, text))?;
            } else if self.top.join(path).is_file() {
                std::fs::copy(self.top.join(path), &to).with_context(|| path.display().to_string())?;
            }
        }
        Ok(())
    }

    /// A page with its links as they are in the site.
    fn turned(&self, page: &Path, text: &str) -> String {
        let mut out = String::new();
        for (line, is_prose) in markdown::lines(text) {
            // Four spaces make an example, where a path stays a path.
            let has_paths = !line.starts_with("    ") && !line.starts_with('#');
            if is_prose {
                self.turned_line(page, line, has_paths, &mut out)
            } else {
                out.push_str(line)
            }
            out.push('\n');
        }
        out
    }

    fn turned_line(&self, page: &Path, line: &str, has_paths: bool, out: &mut String) {
        for piece in markdown::pieces(line) {
            match piece {
                Piece::Text(text) if has_paths => self.paths_linked(page, text, out),
                Piece::Text(text) => out.push_str(text),
                Piece::Code(code) => match self.place(page, Path::new(code), None) {
                    Some(to) if has_paths && code.ends_with(".md") => out.push_str(&format!("[`{code}`]({to})")),
                    _ => out.push_str(&format!("`{code}`")),
                },
                Piece::Link { text, target } => match resolve(page, target) {
                    None => out.push_str(&format!("[{text}]({target})")),
                    Some((path, anchor)) => match self.place(page, &path, anchor.as_deref()) {
                        Some(to) => out.push_str(&format!("[{text}]({to})")),
                        None => out.push_str(&format!("{text} (`{}` in the repository)", path.display())),
                    },
                },
            }
        }
    }

    /// Words of a sentence that are the path of one of our pages become links to it.
    fn paths_linked(&self, page: &Path, text: &str, out: &mut String) {
        let is_path = |c: char| c.is_alphanumeric() || "./_-".contains(c);
        for word in text.split_inclusive(|c| !is_path(c)) {
            let path = word.trim_end_matches(|c| !is_path(c)).trim_end_matches('.');
            match self.place(page, Path::new(path), None) {
                Some(to) if path.ends_with(".md") && path.contains('/') => {
                    out.push_str(&format!("[{path}]({to}){}", &word[path.len()..]));
                }
                _ => out.push_str(word),
            }
        }
    }

    /// The link from one page to another file of the site.
    fn place(&self, page: &Path, path: &Path, anchor: Option<&str>) -> Option<String> {
        let (from, to) = (self.places.get(page)?, self.places.get(path)?);
        // The table of contents is no page there.
        if path == Path::new(CONTENTS) {
            return None;
        }
        let up = "../".repeat(from.components().count() - 1);
        let anchor = anchor.map(|a| format!("#{a}")).unwrap_or_default();
        Some(format!("{up}{}{anchor}", to.display()))
    }
}

/// Names of the files in a folder, in order; none where there is no folder.
fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().filter(|e| e.path().is_file());
    let mut out: Vec<String> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    out.sort();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book(pages: &[(&str, &str)]) -> (tempfile::TempDir, Book) {
        let top = tempfile::tempdir().unwrap();
        for (path, text) in pages {
            let path = top.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let book = Book::of(top.path()).unwrap();
        (top, book)
    }

    #[test]
    fn links_work_where_the_pages_lie() {
        let (top, book) = book(&[
            (CONTENTS, "- [Story](stories/a.md)\n- [Disk](../../docs/disk.md)\n- [Old](old.md)\n"),
            (
                "site/src/stories/a.md",
                "[d](../../../docs/disk.md#how) ![p](../../../docs/images/p.png) [s](../../../scripts/x.sh) [w](https://e.org)\n\
                 see docs/disk.md. Or `docs/disk.md`\n    docs/disk.md\n",
            ),
            ("site/src/old.md", "# All\n<!-- every docs/old -->\n"),
            ("docs/disk.md", "# Disk\n[old](old)\n"),
            ("docs/old/b.md", "# B\n"),
            ("docs/images/p.png", "x"),
        ]);
        let out = top.path().join("out");
        book.write(&out).unwrap();
        let read = |path: &str| std::fs::read_to_string(out.join(path)).unwrap();
        assert_eq!(
            read("stories/a.md"),
            "[d](../docs/disk.md#how) ![p](../docs/images/p.png) s (`scripts/x.sh` in the repository) [w](https://e.org)\n\
             see [docs/disk.md](../docs/disk.md). Or [`docs/disk.md`](../docs/disk.md)\n    docs/disk.md\n"
        );
        assert_eq!(read("docs/disk.md"), "# Disk\n[old](../old.md)\n");
        assert!(read("SUMMARY.md").contains("[Disk](docs/disk.md)"));
        assert_eq!(book.missing().unwrap(), ["site/src/SUMMARY.md does not name docs/old/b.md"]);
        assert!(read("old.md").contains("- B (`docs/old/b.md` in the repository)"), "{}", read("old.md"));
        assert!(out.join("docs/images/p.png").is_file());
    }
}
