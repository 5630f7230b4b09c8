//! What the texts say, as files of a machine, each with the line that says it.
//!
//! The parsers of core read kernel files. A text that says the same is written as those files, so facts, rules, `explain`,
//! `compare` and the page need to know nothing of other tools; beside each path stands the line it was taken from, which is
//! what a finding's evidence then names. Two texts that say different things of one file are a conflict: the first stays, and
//! both are said. Counters and what moves by itself are never in conflict; the first reading stays.
//!
//! A hundred bytes can claim a machine of thousands of CPUs, so room is taken for what a text claims before it is made.

use crate::document::{Conflict, Said};
use crate::paths::{fits, is_same, moves};
use std::collections::{BTreeMap, BTreeSet};
use wakewatt_core::cpuset::{CpuSet, MAX_CPUS};
use wakewatt_core::record::cited::Cited;
use wakewatt_core::rules::{Answer, Ruling};
use wakewatt_core::source::Tree;

/// The folder of everything per CPU.
pub const CPU: &str = "/sys/devices/system/cpu";
/// Entries that any text may claim; more need bytes.
const FREE_ENTRIES: usize = 1 << 17;
/// No more than this, ever.
const MAX_ENTRIES: usize = 2_000_000;
/// Conflicts that are kept.
const MAX_CONFLICTS: usize = 1000;
/// Letters of a line that are kept.
const SHOWN: usize = 200;

/// Where something was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which of the files, by its number.
    pub file: u32,
    /// Which of its lines, from 1.
    pub line: u32,
}

/// What was taken so far.
#[derive(Debug, Default)]
pub struct Facts {
    /// The machine.
    pub tree: Tree,
    /// Names of the files, by number.
    pub names: Vec<String>,
    /// What contradicts what.
    pub conflicts: Vec<Conflict>,
    /// Entries refused, because the texts are too short for them.
    pub n_refused: usize,
    said: Vec<(Place, String)>,
    /// Of a path, which of `said`.
    from: BTreeMap<String, u32>,
    /// Lines within one file that hold a table: a word that evidence names, and its line.
    hints: Vec<(String, String, u32)>,
    /// What was concluded and not read: gives way to what is read.
    concluded: BTreeSet<String>,
    n_entries: usize,
    n_puts: usize,
    n_bytes: usize,
}

impl Facts {
    /// Nothing yet.
    pub fn new() -> Facts {
        let tree = Tree { is_recording: true, is_imported: true, ..Tree::default() };
        Facts { tree, ..Facts::default() }
    }

    /// Of a machine that needs no reading of text.
    pub fn of(tree: Tree) -> Facts {
        Facts { tree, ..Facts::default() }
    }

    /// So many bytes of text were read: they may claim so much more.
    pub fn grow(&mut self, n_bytes: usize) {
        self.n_bytes = self.n_bytes.saturating_add(n_bytes);
    }

    /// Is more said than the text's bytes can say? One line may speak of thousands of CPUs, but not line after line.
    pub fn is_full(&self) -> bool {
        self.n_puts > FREE_ENTRIES + self.n_bytes
    }

    fn has_room(&mut self) -> bool {
        let is_room = self.n_entries < (FREE_ENTRIES + self.n_bytes / 8).min(MAX_ENTRIES);
        if is_room {
            self.n_entries += 1
        } else {
            self.n_refused += 1
        }
        is_room
    }

    fn keep(&mut self, at: Place, line: &str) -> u32 {
        if self.said.last().is_none_or(|(last, _)| *last != at) {
            self.said.push((at, line.trim().chars().take(SHOWN).collect()));
        }
        u32::try_from(self.said.len() - 1).unwrap_or(u32::MAX)
    }

    /// A file of the machine says this, by that line.
    pub fn put(&mut self, at: Place, line: &str, path: &str, value: &str) -> bool {
        self.put_bytes(at, line, path, format!("{value}\n").into_bytes())
    }

    /// Concluded from that line; nothing, where something is known.
    pub fn conclude(&mut self, at: Place, line: &str, path: &str, value: &str) -> bool {
        if self.tree.files.contains_key(path) {
            return false;
        }
        let is_new = self.put(at, line, path, value);
        if is_new {
            self.concluded.insert(path.to_string());
        }
        is_new
    }

    /// The same as [`Facts::put`] of bytes as they are.
    pub fn put_bytes(&mut self, at: Place, line: &str, path: &str, value: Vec<u8>) -> bool {
        self.n_puts += 1;
        if self.is_full() {
            self.n_refused += 1;
            return false;
        }
        if self.concluded.remove(path) {
            self.tree.files.remove(path);
        }
        if let Some(Ok(known)) = self.tree.files.get(path) {
            if !is_same(known, &value) && !moves(path) && self.conflicts.len() < MAX_CONFLICTS {
                let kept = self.from.get(path).and_then(|i| self.said.get(*i as usize)).cloned();
                if let Some((first, text)) = kept {
                    let (file, kept) = (path.to_string(), self.words(first, &text, shown(known)));
                    let other = self.words(at, line, shown(&value));
                    self.conflicts.push(Conflict { path: file, kept, other });
                }
            }
            return true;
        }
        if !self.has_room() {
            return false;
        }
        let said = self.keep(at, line);
        self.tree.files.insert(path.to_string(), Ok(value));
        self.from.insert(path.to_string(), said);
        true
    }

    /// A register.
    pub fn put_msr(&mut self, at: Place, line: &str, address: u32, cpu: u32, value: u64) {
        if self.tree.msrs.contains_key(&(address, cpu)) || !self.has_room() {
            return;
        }
        let said = self.keep(at, line);
        self.tree.msrs.insert((address, cpu), Ok(value));
        self.from.insert(format!("msr 0x{address:x} cpu{cpu}"), said);
    }

    /// Evidence that names this path and this word comes from that line.
    pub fn hint(&mut self, at: Place, line: &str, path: &str, word: &str) {
        if !word.is_empty() && self.has_room() {
            let said = self.keep(at, line);
            self.hints.push((path.into(), word.into(), said));
        }
    }

    /// What a file says so far.
    pub fn value(&self, path: &str) -> Option<String> {
        let bytes = self.tree.files.get(path)?.as_ref().ok()?;
        Some(String::from_utf8_lossy(bytes).trim().to_string())
    }

    fn words(&self, at: Place, line: &str, says: String) -> Said {
        Said {
            file: self.names.get(at.file as usize).cloned().unwrap_or_default(),
            line: at.line,
            text: line.trim().chars().take(SHOWN).collect(),
            says,
        }
    }

    fn words_at(&self, index: u32) -> Option<(&str, u32, &str)> {
        let (at, text) = self.said.get(index as usize)?;
        Some((self.names.get(at.file as usize)?, at.line, text))
    }

    /// The imported line behind a path as rules write it (exact, with stars, or a folder): text, line, and what stands in it.
    pub fn source_of(&self, path: &str, says: &str) -> Option<(&str, u32, &str)> {
        let hit = |(known, word, _): &&(String, String, u32)| {
            path.starts_with(known.as_str()) && (path.contains(word.as_str()) || says.contains(word.as_str()))
        };
        // The longest word that fits says most.
        if let Some((.., said)) = self.hints.iter().filter(hit).max_by_key(|(_, word, _)| word.len()) {
            return self.words_at(*said);
        }
        let front = path.split([' ', ',']).next().unwrap_or(path);
        if let Some(said) = self.from.get(path).or_else(|| self.from.get(front)) {
            return self.words_at(*said);
        }
        let fixed = front.split('*').next().unwrap_or(front);
        let mut best = None;
        for (known, said) in self.from.range(fixed.to_string()..).take_while(|(p, _)| p.starts_with(fixed)) {
            let is_it = if front.contains('*') { fits(front, known) } else { known[fixed.len()..].starts_with('/') };
            if is_it {
                let text = self.said.get(*said as usize).map_or("", |(_, text)| text);
                // Of many CPUs' lines, one that has what the rule says of it.
                let tokens = || text.split(|c: char| !c.is_ascii_alphanumeric());
                let is_said = |word: &str| {
                    let bare = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
                    tokens().any(|token| token == word || (!bare.is_empty() && token == bare))
                };
                let has_it = says.split([' ', ',', ';', '(', ')']).filter(|word| !word.is_empty()).any(is_said);
                if has_it {
                    return self.words_at(*said);
                }
                best.get_or_insert(*said);
            }
        }
        best.and_then(|said| self.words_at(said))
    }

    /// In findings, each path becomes the imported line it was taken from; which they were is returned.
    pub fn cite(&self, rulings: &mut [Ruling]) -> Vec<Cited> {
        let mut cited = Vec::new();
        for ruling in rulings {
            let Answer::Yes(finding) = &mut ruling.answer else { continue };
            for basis in &mut finding.evidence {
                if let Some((text, line, stands)) = self.source_of(&basis.path, &basis.says) {
                    let place = format!("{text} line {line}: {stands}");
                    let path = std::mem::replace(&mut basis.path, place);
                    cited.push(Cited { path, says: basis.says.clone(), text: text.into(), line });
                }
            }
        }
        cited
    }

    /// Takes the CPUs of a list, if it is one of a machine that there is.
    pub fn cpus(text: &str) -> Option<CpuSet> {
        let text = text.trim();
        let set = CpuSet::parse(text).ok().filter(|set| !set.is_empty());
        set.or_else(|| text.strip_prefix("0x").and_then(|mask| CpuSet::parse_mask(mask).ok()))
    }
}

/// A CPU's number, of a machine that there is.
pub fn cpu_number(text: &str) -> Option<u32> {
    text.trim().parse().ok().filter(|cpu| *cpu < MAX_CPUS)
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().chars().take(SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u32) -> Place {
        Place { file: 0, line }
    }

    #[test]
    fn the_first_stays_and_a_contradiction_is_kept() {
        let mut facts = Facts::new();
        facts.names = vec!["a.txt".into()];
        assert!(facts.put(at(1), "driver: x", "/sys/a", "x"));
        assert!(facts.put(at(2), "driver: y", "/sys/a", "y"));
        assert!(facts.put(at(3), "driver:  x", "/sys/a", "x "));
        facts.put(at(4), "Usage: 1", "/sys/cpu0/usage", "1");
        facts.put(at(5), "Usage: 2", "/sys/cpu0/usage", "2");
        assert_eq!(facts.value("/sys/a").as_deref(), Some("x"));
        assert_eq!(facts.conflicts.len(), 1);
        assert_eq!((facts.conflicts[0].kept.line, facts.conflicts[0].other.says.as_str()), (1, "y"));
    }

    #[test]
    fn paths_of_rules_find_their_line() {
        let mut facts = Facts::new();
        facts.names = vec!["a.txt".into()];
        facts.put(at(7), "Latency: 85", "/sys/cpu0/cpuidle/state3/latency", "85");
        facts.put(at(3), "Latency: 2", "/sys/cpu0/cpuidle/state1/latency", "2");
        facts.hint(at(9), "Speed 2933", "/sys/DMI", "A1");
        assert_eq!(facts.source_of("/sys/cpu*/cpuidle/state*/latency", "C6 85us"), Some(("a.txt", 7, "Latency: 85")));
        assert_eq!(facts.source_of("/sys/DMI type 17, A1", "x"), Some(("a.txt", 9, "Speed 2933")));
        assert_eq!(facts.source_of("/sys/cpu0/cpuidle", "x"), Some(("a.txt", 3, "Latency: 2")));
        assert_eq!(facts.source_of("/sys/none", "x"), None);
    }

    #[test]
    fn a_short_text_cannot_claim_a_large_machine() {
        let mut facts = Facts::new();
        facts.grow(100);
        assert!(Facts::cpus("0-65535").is_none());
        let taken = (0..FREE_ENTRIES + 1000).filter(|n| facts.put(at(1), "x", &format!("/sys/{n}"), "1")).count();
        assert!(taken < FREE_ENTRIES + 100 && facts.n_refused > 900);
    }
}
