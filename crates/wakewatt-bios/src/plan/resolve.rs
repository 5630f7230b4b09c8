//! From a wish to attributes and values of this machine.
//!
//! Without a registry the current values stand in for one: names are then known, types are those of the values, and nothing
//! tells which values are allowed. A plan made so says that it is not validated.

use super::{Exact, Refusal};
use crate::concepts::{self, CONCEPTS, Found, Part, near_names};
use crate::registry::{Attribute, NotTaken, Registry};
use crate::setting::Setting;
use crate::walk::Bios;
use crate::wish::Wish;
use serde_json::json;
use wakewatt_core::nearest::most_like;

/// Suggestions for an unknown word.
const SUGGESTIONS: usize = 4;

/// The machine's, or what the current values say.
pub(super) fn registry(bios: &Bios) -> Registry {
    if let Ok(registry) = &bios.registry {
        return registry.clone();
    }
    let kind = |value: &Setting| match value {
        Setting::Flag(_) => "Boolean",
        Setting::Number(_) => "Integer",
        Setting::Text(_) => "String",
    };
    let entries: Vec<_> =
        bios.current.iter().map(|(name, value)| json!({ "AttributeName": name, "Type": kind(value) })).collect();
    let document = json!({ "RegistryEntries": { "Attributes": entries } });
    Registry::parse(&document, &bios.path).unwrap_or_default()
}

type NotResolved = (Option<String>, Refusal);

/// The attributes that a wish is about, with their values.
pub(super) fn resolve(registry: &Registry, bios: &Bios, wish: &Wish) -> Result<Vec<Exact>, NotResolved> {
    let exact =
        |attribute: &Attribute, value: Setting| Exact { name: attribute.name.clone(), value, asked: wish.to_string() };
    let not_taken = |attribute: &Attribute, why: NotTaken| {
        (Some(attribute.name.clone()), Refusal::NotTaken { attribute: attribute.name.clone(), why })
    };
    let accept = |attribute: &Attribute, word: &str| attribute.accept(word, bios.current.get(&attribute.name));
    match wish {
        Wish::Attribute { name, value } => {
            let unknown = || (None, Refusal::UnknownAttribute { name: name.clone(), near: near_names(registry, name) });
            let attribute = registry.get(name).ok_or_else(unknown)?;
            let value = accept(attribute, value).map_err(|why| not_taken(attribute, why))?;
            Ok(vec![exact(attribute, value)])
        }
        Wish::Concept { id, value } => {
            let near = || most_like(id, CONCEPTS.iter().map(|c| c.id), SUGGESTIONS);
            let unknown = || {
                (
                    None,
                    Refusal::UnknownConcept {
                        word: id.clone(),
                        near: near().iter().map(|id| format!("bios.{id}")).collect(),
                    },
                )
            };
            let concept = concepts::concept(id).ok_or_else(unknown)?;
            let here = match concept.find(registry) {
                Found::Here(here) => here,
                Found::Several(names) => return Err((None, Refusal::Several { names })),
                Found::Nowhere => return Err((None, Refusal::NoAttribute)),
            };
            let mut out = Vec::new();
            for (at, (attribute, part)) in here.into_iter().enumerate() {
                match meant(attribute, part, value, &accept) {
                    Ok(setting) => out.push(exact(attribute, setting)),
                    // What goes with the deciding one need not know every word; one that it knows must be possible, or the whole would be half
                    // done.
                    Err(why) if at == 0 || knows(part, value) => return Err(not_taken(attribute, why)),
                    Err(_) => {}
                }
            }
            Ok(out)
        }
    }
}

fn knows(part: &Part, word: &str) -> bool {
    part.1.iter().any(|(known, _)| word.eq_ignore_ascii_case(known))
}

/// What a word means in a part: the first of its values that the registry lists; the deciding part also takes the BMC's own.
fn meant(
    attribute: &Attribute,
    part: &Part,
    word: &str,
    accept: &dyn Fn(&Attribute, &str) -> Result<Setting, NotTaken>,
) -> Result<Setting, NotTaken> {
    let mut refused = None;
    for (_, value) in part.1.iter().filter(|(known, _)| word.eq_ignore_ascii_case(known)) {
        match accept(attribute, value) {
            Ok(setting) => return Ok(setting),
            Err(why) => refused = refused.or(Some(why)),
        }
    }
    accept(attribute, word).map_err(|why| refused.unwrap_or(why))
}
