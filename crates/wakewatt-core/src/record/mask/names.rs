//! Which name became which: the same name has the same replacement everywhere in a file, and every replacement stays
//! what it is when the file is masked again.
//!
//! Replacements are numbered in the order of first appearance; a tree is walked in the order of its paths, so two
//! captures of one host number alike as long as the host has the same names.

use crate::arrange::Arrange as _;
use std::collections::BTreeMap;

/// What kind of name it was, in the order in which a summary names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A word of the boot line, or its value.
    Argument,
    /// A network interface.
    Interface,
    /// A block device.
    Disk,
    /// A part of a control group's path.
    Cgroup,
    /// A process.
    Process,
    /// A word in the name of an interrupt.
    Device,
    /// The other end of a measurement, or a URL.
    Host,
    /// A path of the user's.
    Path,
    /// A word of a file that is not known to hold none of the user's.
    Word,
    /// An address or identifier, by its form.
    Address,
}

/// (kind, front of its replacement, one of them, several)
const KINDS: &[(Kind, &str, &str, &str)] = &[
    (Kind::Argument, "masked-", "boot argument", "boot arguments"),
    (Kind::Interface, "maskednet", "interface", "interfaces"),
    (Kind::Disk, "maskeddisk", "disk", "disks"),
    (Kind::Cgroup, "masked", "part of cgroup paths", "parts of cgroup paths"),
    (Kind::Process, "process-", "process", "processes"),
    (Kind::Device, "maskeddev", "device of interrupts", "devices of interrupts"),
    (Kind::Host, "peer-", "host", "hosts"),
    (Kind::Path, "masked-path-", "path", "paths"),
    (Kind::Word, "maskedword", "other word", "other words"),
    (Kind::Address, "address", "text with addresses", "texts with addresses"),
];

fn front(kind: Kind) -> &'static str {
    KINDS.iter().find(|k| k.0 == kind).map_or("masked", |k| k.1)
}

/// The names that were replaced.
#[derive(Clone, Debug, Default)]
pub struct Names {
    known: BTreeMap<(Kind, String), String>,
    /// Of each kind, how many were masked, and how many of them have a number.
    counts: BTreeMap<Kind, (usize, usize)>,
}

impl Names {
    /// The replacement of a name; a replacement is its own.
    pub fn of(&mut self, kind: Kind, name: &str) -> String {
        if name.is_empty() || is_replacement(name) {
            return name.to_string();
        }
        let key = (kind, name.to_string());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        self.count(kind);
        let counts = self.counts.entry(kind).or_default();
        counts.1 += 1;
        let new = format!("{}{}", front(kind), counts.1);
        self.known.insert(key, new.clone());
        new
    }

    /// A name whose replacement the caller makes: counted, and found again by [`Names::replaced`].
    pub(super) fn keep(&mut self, kind: Kind, name: &str, replacement: &str) {
        let key = (kind, name.to_string());
        if name != replacement && !self.known.contains_key(&key) {
            self.count(kind);
            self.known.insert(key, replacement.to_string());
        }
    }

    /// Another spelling of a name that has a replacement.
    pub(crate) fn alias(&mut self, kind: Kind, name: &str, replacement: &str) {
        self.known.entry((kind, name.to_string())).or_insert_with(|| replacement.to_string());
    }

    /// One more of that kind.
    pub(super) fn count(&mut self, kind: Kind) {
        self.counts.entry(kind).or_default().0 += 1;
    }

    /// The text with every name of these kinds replaced where it stands as a word of its own, longest first.
    pub(super) fn replaced(&self, kinds: &[Kind], text: &str) -> String {
        let mut names: Vec<(&str, &str)> = self
            .known
            .iter()
            .filter(|((kind, name), _)| kinds.contains(kind) && text.contains(name.as_str()))
            .map(|((_, name), new)| (name.as_str(), new.as_str()))
            .collect();
        names.arrange_by_key(|(name, _)| (std::cmp::Reverse(name.len()), *name));
        names.into_iter().fold(text.to_string(), |text, (name, new)| replace_word(&text, name, new))
    }

    /// What was masked, for people: "2 boot arguments, 1 interface"; none where nothing was.
    pub fn said(&self) -> Option<String> {
        let count = |kind: Kind| self.counts.get(&kind).map_or(0, |n| n.0);
        let parts: Vec<String> = KINDS
            .iter()
            .filter(|k| count(k.0) > 0)
            .map(|(kind, _, one, many)| format!("{} {}", count(*kind), if count(*kind) == 1 { one } else { many }))
            .collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// Is this a replacement already?
pub(super) fn is_replacement(text: &str) -> bool {
    let is_numbered =
        |front: &str| text.strip_prefix(front).is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()));
    matches!(text, "masked" | "masked-id" | "host" | "loopback") || KINDS.iter().any(|k| is_numbered(k.1))
}

fn replace_word(text: &str, name: &str, new: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric();
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut last) = (text, None);
    while let Some(at) = rest.find(name) {
        let before = rest[..at].chars().next_back().or(last);
        let after = rest[at + name.len()..].chars().next();
        let is_whole = !before.is_some_and(is_part) && !after.is_some_and(is_part);
        out.push_str(&rest[..at]);
        out.push_str(if is_whole { new } else { name });
        last = name.chars().next_back();
        rest = &rest[at + name.len()..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_one_replacement_and_none_of_a_replacement() {
        let mut names = Names::default();
        assert_eq!(names.of(Kind::Interface, "dbnet"), "maskednet1");
        assert_eq!(names.of(Kind::Interface, "lan-b"), "maskednet2");
        assert_eq!(names.of(Kind::Interface, "dbnet"), "maskednet1");
        assert_eq!(names.of(Kind::Cgroup, "maskednet1"), "maskednet1");
        let text = "i40e-dbnet-TxRx-1 xdbnet lan-b.4 dbnetdbnet";
        assert_eq!(names.replaced(&[Kind::Interface], text), "i40e-maskednet1-TxRx-1 xdbnet maskednet2.4 dbnetdbnet");
        assert_eq!(names.said().as_deref(), Some("2 interfaces"));
        assert_eq!(Names::default().said(), None);
    }
}
