//! The document of `bios show`: every concept with what it is now, what waits, and what it takes; on request every attribute.

use crate::concepts::{self, CONCEPTS, Found, without_force};
use crate::plan::Waiting;
use crate::registry::{Attribute, Kind, Registry, Truth};
use crate::setting::Setting;
use crate::walk::{Bios, Machine};
use serde::Serialize;

/// One attribute behind a concept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShownAttribute {
    /// As the BMC spells it.
    pub name: String,
    /// Its label, for people.
    pub label: String,
    /// Its value now; none where it is not told.
    pub current: Option<Setting>,
    /// The value that waits for the next boot.
    pub pending: Option<Setting>,
    /// Values it takes, in words.
    pub takes: String,
    /// Why it cannot be written as things are, or has no force.
    pub locked: Option<String>,
}

/// One concept on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShownConcept {
    /// Such as `bios.c-states`.
    pub id: String,
    /// What it is, in words.
    pub title: String,
    /// The word for its value now; none where no word fits.
    pub word: Option<String>,
    /// The word for what waits for the next boot.
    pub pending_word: Option<String>,
    /// Words that can be asked for here.
    pub words: Vec<String>,
    /// The attributes behind it, the deciding one first.
    pub attributes: Vec<ShownAttribute>,
}

/// A concept that was not found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotHere {
    /// Such as `bios.uncore`.
    pub id: String,
    /// Several attributes that are it by name; say which with `attr:NAME=VALUE`.
    pub near: Vec<String>,
}

/// What a BIOS says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Shown {
    /// The BMC or the folder.
    pub origin: String,
    /// Id of the system, as the BMC has it.
    pub system: String,
    /// Who made the machine.
    pub vendor: String,
    /// Its model name.
    pub model: String,
    /// Release of its BIOS.
    pub bios_version: String,
    /// Whether it is on, in the BMC's word.
    pub power_state: String,
    /// Why there are no settings; none where there are.
    pub unavailable: Option<String>,
    /// Id of the registry that explains the settings.
    pub registry: Option<String>,
    /// Why names and values are not validated; none where they are.
    pub not_validated: Option<String>,
    /// What this machine has of the things that are known.
    pub concepts: Vec<ShownConcept>,
    /// Known things that this machine has under no known name.
    pub not_here: Vec<NotHere>,
    /// Everything that waits for the next boot.
    pub waiting: Vec<Waiting>,
    /// Why what waits is not known.
    pub waiting_unknown: Option<String>,
    /// What the last change came to, in the BMC's message ids.
    pub messages: Vec<String>,
    /// Every attribute, where that was asked for.
    pub attributes: Vec<ShownAttribute>,
    /// Other systems of the same BMC, by id.
    pub other_systems: Vec<String>,
    /// What is odd about the registry.
    pub oddities: Vec<String>,
}

/// Shows a machine.
pub fn show(machine: &Machine, is_all: bool) -> Shown {
    let mut out = Shown {
        origin: machine.origin.clone(),
        system: machine.id.clone(),
        vendor: machine.vendor.clone(),
        model: machine.model.clone(),
        bios_version: machine.bios_version.clone(),
        power_state: machine.power_state.clone(),
        unavailable: None,
        registry: None,
        not_validated: None,
        concepts: Vec::new(),
        not_here: Vec::new(),
        waiting: Vec::new(),
        waiting_unknown: None,
        messages: Vec::new(),
        attributes: Vec::new(),
        other_systems: machine.others.clone(),
        oddities: Vec::new(),
    };
    let bios = match &machine.bios {
        Ok(bios) => bios,
        Err(why) => {
            out.unavailable = Some(why.to_string());
            return out;
        }
    };
    let own;
    let registry = match &bios.registry {
        Ok(registry) => {
            out.registry = Some(registry.id.clone());
            out.oddities.clone_from(&registry.oddities);
            registry
        }
        Err(why) => {
            out.not_validated = Some(why.to_string());
            own = crate::plan::stand_in(bios);
            &own
        }
    };
    out.waiting_unknown.clone_from(&bios.pending_unknown);
    out.messages.clone_from(&bios.messages);
    let waits = |(name, pending): (&String, &Setting)| Waiting {
        attribute: name.clone(),
        current: bios.current.get(name).cloned(),
        pending: pending.clone(),
    };
    out.waiting = bios.pending.iter().map(waits).collect();
    let mut later = bios.current.clone();
    later.extend(bios.pending.clone());
    for concept in CONCEPTS {
        let id = format!("bios.{}", concept.id);
        match concept.find(registry) {
            Found::Here(here) => {
                let now = concept.word(registry, &here, &bios.current);
                let then = concept
                    .word(registry, &here, &later)
                    .filter(|_| here.iter().any(|(a, _)| bios.pending.contains_key(&a.name)));
                out.concepts.push(ShownConcept {
                    title: concept.title.into(),
                    word: now.map(str::to_string),
                    pending_word: then.map(str::to_string),
                    words: here.first().map(|(a, part)| takes(a, part)).unwrap_or_default(),
                    attributes: here.iter().map(|(attribute, _)| shown(registry, bios, attribute)).collect(),
                    id,
                });
            }
            Found::Several(near) => out.not_here.push(NotHere { id, near }),
            Found::Nowhere => out.not_here.push(NotHere { id, near: Vec::new() }),
        }
    }
    if is_all {
        let visible = registry.attributes.iter().filter(|a| a.kind != Kind::Password);
        out.attributes = visible.map(|attribute| shown(registry, bios, attribute)).collect();
    }
    out
}

/// Words whose values the registry lists.
fn takes(attribute: &Attribute, part: &concepts::Part) -> Vec<String> {
    let is_taken = |word: &&str| part.1.iter().any(|(w, value)| w == word && attribute.accept(value, None).is_ok());
    concepts::Concept::words(part).into_iter().filter(is_taken).map(str::to_string).collect()
}

fn shown(registry: &Registry, bios: &Bios, attribute: &Attribute) -> ShownAttribute {
    let holding = registry
        .rules_for(&attribute.name)
        .find(|rule| rule.is_lock() && registry.holds(rule, &bios.current) == Truth::Yes);
    let by = |rule: &crate::registry::Rule| {
        let mut words: Vec<String> = Vec::new();
        for condition in &rule.conditions {
            let now = bios.current.get(&condition.attribute);
            let word = now.map(|now| format!("{}={now}", condition.attribute)).unwrap_or_default();
            if registry.condition(condition, &bios.current) == Truth::Yes && !words.contains(&word) {
                words.push(word);
            }
        }
        format!("{} while {}", rule.property.word(), words.join(" and "))
    };
    let flags = [
        (attribute.is_immutable, "never writable"),
        (attribute.is_read_only, "read-only"),
        (attribute.is_gray, "greyed out"),
        (attribute.is_hidden, "hidden"),
    ];
    let flag = flags.iter().find(|(is_set, _)| *is_set).map(|(_, word)| (*word).to_string());
    let without = bios
        .current
        .get(&attribute.name)
        .and_then(|value| without_force(registry, attribute, value, &bios.current).map(|without| without.words()));
    ShownAttribute {
        name: attribute.name.clone(),
        label: attribute.label.clone(),
        current: bios.current.get(&attribute.name).cloned(),
        pending: bios.pending.get(&attribute.name).cloned(),
        takes: attribute.takes(),
        locked: holding.map(by).or(flag).or(without),
    }
}
