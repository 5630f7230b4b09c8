//! One PO file: messages in the order of their English, with the files that use them.

use super::scan::Messages;
use anyhow::{Result, anyhow};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

const HEAD: &str = r#"msgid ""
msgstr ""
"Project-Id-Version: wakewatt\n"
"Language: zh_CN\n"
"MIME-Version: 1.0\n"
"Content-Type: text/plain; charset=UTF-8\n"
"Content-Transfer-Encoding: 8bit\n"
"Plural-Forms: nplurals=1; plural=0;\n"
"#;

/// A message: its translation (empty when there is none) and where it is used.
struct Entry {
    chinese: String,
    places: BTreeSet<String>,
}

/// A catalogue.
#[derive(Default)]
pub(super) struct Catalogue {
    by_text: BTreeMap<String, Entry>,
}

impl Catalogue {
    /// From a file; none is an empty one.
    pub(super) fn read(path: &Path) -> Result<Catalogue> {
        if !path.exists() {
            return Ok(Catalogue::default());
        }
        let parsed = polib::po_file::parse(path).map_err(|e| anyhow!("{}: {e}", path.display()))?;
        let mut read = Catalogue::default();
        for message in parsed.messages() {
            let chinese = if message.is_fuzzy() { "" } else { message.msgstr().unwrap_or_default() };
            read.by_text
                .insert(message.msgid().to_string(), Entry { chinese: chinese.to_string(), places: BTreeSet::new() });
        }
        Ok(read)
    }

    /// Of the messages in use, with what is known of their translations.
    pub(super) fn of(
        messages: &Messages,
        known: &BTreeMap<String, String>,
        mut is_own: impl FnMut(&str) -> bool,
    ) -> Catalogue {
        let mut made = Catalogue::default();
        for (english, places) in &messages.by_text {
            if is_own(english) {
                let chinese = known.get(english).cloned().unwrap_or_default();
                made.by_text.insert(english.clone(), Entry { chinese, places: places.clone() });
            }
        }
        made
    }

    /// English and translation, where there is one.
    pub(super) fn translated(self) -> impl Iterator<Item = (String, String)> {
        self.by_text.into_iter().filter(|(_, entry)| !entry.chinese.is_empty()).map(|(e, entry)| (e, entry.chinese))
    }

    pub(super) fn len(&self) -> usize {
        self.by_text.len()
    }

    pub(super) fn missing(&self) -> impl Iterator<Item = &str> {
        self.by_text.iter().filter(|(_, entry)| entry.chinese.is_empty()).map(|(english, _)| english.as_str())
    }

    /// Translations that leave out an argument with a name, or ask for one that is not there.
    pub(super) fn wrong(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (english, entry) in self.by_text.iter().filter(|(_, entry)| !entry.chinese.is_empty()) {
            let (asked, given) = (named(english), named(&entry.chinese));
            if asked != given {
                lines.push(format!("{english:?} has {asked:?}, its translation {given:?}"));
            }
        }
        lines
    }

    /// As a PO file.
    pub(super) fn text(&self) -> String {
        let mut out = HEAD.to_string();
        for (english, entry) in &self.by_text {
            out.push('\n');
            for place in &entry.places {
                let _ = writeln!(out, "#: {place}");
            }
            let _ = writeln!(out, "msgid {}", quoted(english));
            let _ = writeln!(out, "msgstr {}", quoted(&entry.chinese));
        }
        out
    }
}

/// Arguments by name in a template; those by place may be a plural's ending, which another language has not.
fn named(template: &str) -> BTreeSet<String> {
    let plain = template.replace("{{", "").replace("}}", "");
    let inside = plain.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    let names = inside.map(|inside| inside.split(':').next().unwrap_or_default().trim());
    names.filter(|name| name.starts_with(|c: char| c.is_alphabetic() || c == '_')).map(str::to_string).collect()
}

/// A string of PO: a line of the file for each of its lines.
fn quoted(text: &str) -> String {
    let one = |line: &str| {
        let escaped = line.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t");
        format!("\"{escaped}\"")
    };
    if !text.trim_end_matches('\n').contains('\n') {
        return one(text);
    }
    let lines: Vec<String> = text.split_inclusive('\n').map(one).collect();
    format!("\"\"\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let mut messages = Messages::default();
        let all = ["a \"b\" \\ c", "two\nlines\n", "{n} of {} {m:.1}"];
        all.iter().for_each(|text| messages.add(text, "x.rs"));
        let known = all.iter().map(|text| (text.to_string(), text.to_string())).collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.po");
        let made = Catalogue::of(&messages, &known, |_| true);
        std::fs::write(&path, made.text()).unwrap();
        let read: Vec<_> = Catalogue::read(&path).unwrap().translated().collect();
        assert_eq!(read, made.translated().collect::<Vec<_>>());
        assert_eq!(read.len(), 3);
    }

    #[test]
    fn an_argument_that_is_left_out_is_named() {
        let mut messages = Messages::default();
        messages.add("{n} CPUs of {cpus}{}", "x.rs");
        let known = [("{n} CPUs of {cpus}{}".to_string(), "{n} 个".to_string())].into();
        assert_eq!(Catalogue::of(&messages, &known, |_| true).wrong().len(), 1);
    }
}
