//! One word per thing: `bios.c-states=off` is `ProcCStates=Disabled` here, `MinProcIdlePower=NoCStates` there.
//!
//! A concept is a list of forms, tried in order; a form is an attribute name with the values that words stand for, and further
//! attributes that belong to it. The list (`table.rs`) only says what to look for: an attribute counts when this machine's own
//! registry has it, a value when the registry lists it. Names are compared exactly, then without a maker's suffix
//! (`PackageCState_3D25`, `PackageCState#0843`) by letters and digits; `=Turbo Mode` compares the label, which is all that
//! firmware with code names has (`EagleStream0041`). If several remain, those that are shown and selectable count; if there is
//! still not exactly one, nobody guesses.

mod table;

pub use table::{CONCEPTS, MASTERS};

use crate::registry::attribute::plain;
use crate::registry::{Attribute, Registry};
use crate::setting::Setting;
use std::collections::BTreeMap;
use wakewatt_core::nearest::most_like;

/// Attributes that are hinted at.
const HINTS: usize = 6;

/// One thing that firmware decides about power.
#[derive(Debug)]
pub struct Concept {
    /// `c-states` of `bios.c-states`.
    pub id: &'static str,
    /// For people.
    pub title: &'static str,
    /// Where to look, best first.
    pub forms: &'static [Form],
}

/// One way in which firmware has it.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// The attribute that decides, and those that go with it.
    Led(&'static [Part]),
    /// Every one of these that a machine has: each stands for itself, and the word is said of all.
    Every(&'static [Part]),
}

/// One attribute of a form, and what words mean there. A word may stand there twice: the first value that the registry lists counts.
#[derive(Debug)]
pub struct Part(pub &'static str, pub &'static [(&'static str, &'static str)]);

/// A switch without which an attribute's value has no force.
#[derive(Debug)]
pub struct Master {
    /// The attributes.
    pub of: &'static [&'static str],
    /// Its values that need no switch.
    pub without: &'static [&'static str],
    /// The switch.
    pub switch: &'static str,
    /// What it must be, best first.
    pub needs: &'static [&'static str],
}

/// A switch of this machine that takes the force from a value.
#[derive(Debug)]
pub struct Without<'a> {
    /// The switch.
    pub switch: &'a Attribute,
    /// What it is; none where that is not told.
    pub now: Option<Setting>,
    /// What it must be; none where its registry lists no such value.
    pub needs: Option<Setting>,
}

impl Without<'_> {
    /// `has no force while PwrPerfTuning=OS Controls EPB`.
    pub fn words(&self) -> String {
        match &self.now {
            Some(now) => format!("has no force while {}={now}", self.switch.name),
            None => format!("has no force unless {} gives it", self.switch.name),
        }
    }
}

/// What takes the force from this value of an attribute, if all is as in `values`; none where nothing is known to.
pub fn without_force<'a>(
    registry: &'a Registry,
    attribute: &Attribute,
    value: &Setting,
    values: &BTreeMap<String, Setting>,
) -> Option<Without<'a>> {
    let is_called = |name: &str, pattern: &str| plain(base(name)) == plain(pattern);
    let means =
        |a: &Attribute, text: &str, value: &Setting| a.accept(text, Some(value)).is_ok_and(|v| a.is_same(&v, value));
    let masters = MASTERS.iter().filter(|m| m.of.iter().any(|name| is_called(&attribute.name, name)));
    let mut known = masters.filter(|m| !m.without.iter().any(|text| means(attribute, text, value)));
    known.find_map(|master| {
        let [switch] = named(registry, master.switch)[..] else { return None };
        let now = values.get(&switch.name);
        if now.is_some_and(|now| master.needs.iter().any(|text| means(switch, text, now))) {
            return None;
        }
        let needs = master.needs.iter().find_map(|text| switch.accept(text, now).ok());
        Some(Without { switch, now: now.cloned(), needs })
    })
}

/// What a concept is on this machine.
#[derive(Debug)]
pub enum Found<'a> {
    /// The attributes, the deciding one first.
    Here(Vec<(&'a Attribute, &'static Part)>),
    /// Several are as like.
    Several(Vec<String>),
    /// None that is known.
    Nowhere,
}

/// The concept of this id, with or without `bios.`.
pub fn concept(id: &str) -> Option<&'static Concept> {
    let id = id.strip_prefix("bios.").unwrap_or(id);
    CONCEPTS.iter().find(|concept| concept.id == id)
}

/// Without a maker's suffix: `#` or `_` and four hexadecimal digits.
pub fn base(name: &str) -> &str {
    let is_digit = |c: char| c.is_ascii_digit() || ('A'..='F').contains(&c);
    let cut = name.len().checked_sub(5).filter(|at| name.is_char_boundary(*at));
    match cut.map(|at| name.split_at(at)) {
        Some((base, end)) if !base.is_empty() && end.starts_with(['#', '_']) && end[1..].chars().all(is_digit) => base,
        _ => name,
    }
}

/// Attributes of a registry that a pattern names: exactly, or without suffix, or by label.
fn named<'a>(registry: &'a Registry, pattern: &str) -> Vec<&'a Attribute> {
    if let Some(exact) = registry.get(pattern) {
        return vec![exact];
    }
    let is_it = |attribute: &&Attribute| match pattern.strip_prefix('=') {
        Some(label) => plain(&attribute.label) == plain(label),
        None => plain(base(&attribute.name)) == plain(pattern),
    };
    let all: Vec<&Attribute> = registry.attributes.iter().filter(is_it).collect();
    let open: Vec<&Attribute> = all.iter().copied().filter(|a| !a.is_hidden && !a.is_gray).collect();
    if all.len() > 1 && open.len() == 1 { open } else { all }
}

impl Concept {
    /// Finds it in a registry.
    pub fn find<'a>(&self, registry: &'a Registry) -> Found<'a> {
        for form in self.forms {
            let (is_led, parts) = match form {
                Form::Led(parts) => (true, parts),
                Form::Every(parts) => (false, parts),
            };
            let mut here: Vec<(&Attribute, &'static Part)> = Vec::new();
            for part in *parts {
                match named(registry, part.0)[..] {
                    // Without the deciding one the form is not this machine's.
                    [] if is_led && here.is_empty() => break,
                    [one] => here.push((one, part)),
                    ref several if several.len() > 1 && (!is_led || here.is_empty()) => {
                        return Found::Several(several.iter().map(|a| format!("{} ({})", a.name, a.menu)).collect());
                    }
                    _ => {}
                }
            }
            if !here.is_empty() {
                return Found::Here(here);
            }
        }
        Found::Nowhere
    }

    /// The word for what is set now, if all attributes agree on one and a switch takes the force from none; else none.
    pub fn word(
        &self,
        registry: &Registry,
        here: &[(&Attribute, &Part)],
        now: &BTreeMap<String, Setting>,
    ) -> Option<&'static str> {
        let (_, lead) = here.first()?;
        let is_without = |attribute: &Attribute| {
            now.get(&attribute.name).is_some_and(|value| without_force(registry, attribute, value, now).is_some())
        };
        if here.iter().any(|(attribute, _)| is_without(attribute)) {
            return None;
        }
        let is_so = |word: &str| {
            here.iter().all(|(attribute, part)| {
                let mut values = part.1.iter().filter(|(w, _)| *w == word).peekable();
                let is_silent = values.peek().is_none();
                let value = now.get(&attribute.name);
                is_silent
                    || values.any(|(_, text)| {
                        let meant = attribute.accept(text, value).ok();
                        meant.zip(value).is_some_and(|(meant, now)| attribute.is_same(&meant, now))
                    })
            })
        };
        lead.1.iter().map(|(word, _)| *word).find(|word| is_so(word))
    }

    /// The words it takes in this form, each once.
    pub fn words(part: &Part) -> Vec<&'static str> {
        let mut out: Vec<&'static str> = Vec::new();
        part.1.iter().for_each(|(word, _)| {
            if !out.contains(word) {
                out.push(word);
            }
        });
        out
    }
}

/// Attributes named like this, for somebody who misspelt one.
pub fn near_names(registry: &Registry, word: &str) -> Vec<String> {
    let names = registry.attributes.iter().filter(|a| !a.is_hidden).map(|a| a.name.as_str());
    most_like(word, names, HINTS).into_iter().map(str::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_makers_suffix_is_no_part_of_a_name() {
        for (name, without) in [
            ("PackageCState_3D25", "PackageCState"),
            ("PackageCState#0843", "PackageCState"),
            ("EnhancedHaltState_C1E__3D23", "EnhancedHaltState_C1E_"),
            ("Processors_SNC", "Processors_SNC"),
            ("_3D25", "_3D25"),
            ("größe_3d25", "größe_3d25"),
            ("", ""),
        ] {
            assert_eq!(base(name), without);
        }
    }

    #[test]
    fn every_concept_has_words_and_no_two_have_one_id() {
        for concept in CONCEPTS {
            assert_eq!(CONCEPTS.iter().filter(|other| other.id == concept.id).count(), 1, "{}", concept.id);
            for Form::Led(parts) | Form::Every(parts) in concept.forms {
                assert!(parts.first().is_some_and(|lead| !lead.1.is_empty()), "{}", concept.id);
            }
        }
    }

    #[test]
    fn of_several_only_one_that_can_be_set_counts() {
        let entry = |name: &str, hidden: bool, gray: bool| {
            json!({ "AttributeName": name, "Type": "Enumeration", "Hidden": hidden, "GrayOut": gray, "MenuPath": "./x",
                "Value": [{ "ValueName": "Auto" }] })
        };
        let registry = |list: Vec<serde_json::Value>| {
            Registry::parse(&json!({ "RegistryEntries": { "Attributes": list } }), "/r").unwrap()
        };
        let memory = concept("bios.memory-frequency").unwrap();
        let three = registry(vec![
            entry("MemoryFrequency_3B25", false, false),
            entry("MemoryFrequency_3B26", true, false),
            entry("MemoryFrequency_3BAA", false, true),
        ]);
        assert!(matches!(memory.find(&three), Found::Here(found) if found[0].0.name == "MemoryFrequency_3B25"));
        let two =
            registry(vec![entry("MemoryFrequency_0001", false, false), entry("MemoryFrequency_0002", false, false)]);
        assert!(matches!(memory.find(&two), Found::Several(names) if names.len() == 2));
        let like = registry(vec![entry("DramSpeedMemFreqLimit", false, false)]);
        assert!(matches!(memory.find(&like), Found::Nowhere), "a name that sounds like it is none");
    }
}
