//! The attribute registry of one machine: which settings its BIOS has, which values they take, and what locks what.
//!
//! Source: DMTF AttributeRegistry v1_3 (DSP0268), and what real ones do otherwise: names given twice (Lenovo), `ReadOnly` that
//! is the state of the moment and not a property (Dell, HPE), numbers as value names while everything else speaks in display
//! names (Supermicro X13), rules about attributes that are not in the list. Nothing of this is an error: what cannot be used is left
//! out and counted in `oddities`. Sizes are bounded whatever a BMC sends.

pub mod attribute;
pub mod rules;

pub use attribute::{Attribute, Choice, Kind, NotTaken};
pub use rules::{Condition, Property, Rule, Truth};

use crate::setting::Setting;
use serde_json::Value;
use std::collections::BTreeMap;

/// More attributes, rules or values than any BIOS has are not read.
const MAX_ATTRIBUTES: usize = 20_000;
const MAX_RULES: usize = 20_000;

/// A registry, read.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    /// Its id.
    pub id: String,
    /// In its order, each name once.
    pub attributes: Vec<Attribute>,
    /// In its order.
    pub rules: Vec<Rule>,
    /// What could not be used, in words.
    pub oddities: Vec<String>,
    places: BTreeMap<String, usize>,
    rules_for: BTreeMap<String, Vec<usize>>,
}

/// The document is no registry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} holds no RegistryEntries.Attributes, so it is no attribute registry")]
pub struct NoRegistry(pub String);

impl Registry {
    /// From its document; `path` is for the error.
    pub fn parse(json: &Value, path: &str) -> Result<Registry, NoRegistry> {
        let entries = &json["RegistryEntries"];
        let list = entries["Attributes"].as_array().ok_or_else(|| NoRegistry(path.into()))?;
        let mut out = Registry { id: json["Id"].as_str().unwrap_or_default().into(), ..Registry::default() };
        let (mut n_nameless, mut n_twice, mut n_bad_rules) = (0, 0, 0);
        for entry in list.iter().take(MAX_ATTRIBUTES) {
            match Attribute::parse(entry) {
                None => n_nameless += 1,
                Some(attribute) if out.places.contains_key(&attribute.name) => n_twice += 1,
                Some(attribute) => {
                    out.places.insert(attribute.name.clone(), out.attributes.len());
                    out.attributes.push(attribute);
                }
            }
        }
        for entry in entries["Dependencies"].as_array().into_iter().flatten().take(MAX_RULES) {
            match Rule::parse(entry) {
                None => n_bad_rules += 1,
                Some(rule) => {
                    out.rules_for.entry(rule.to.clone()).or_default().push(out.rules.len());
                    out.rules.push(rule);
                }
            }
        }
        let mut odd = |n: usize, what: &str| {
            if n > 0 {
                out.oddities.push(format!("{n} {what}"));
            }
        };
        odd(n_nameless, "entries without a name are left out");
        odd(n_twice, "names stand there twice; the first counts");
        odd(n_bad_rules, "dependencies cannot be read and are left out");
        odd(list.len().saturating_sub(MAX_ATTRIBUTES), "attributes too many are left out");
        Ok(out)
    }

    /// Learns from the values of the moment which of its two names each value goes by (Supermicro speaks in display names).
    pub fn learn(&mut self, current: &BTreeMap<String, Setting>) {
        let (mut n_display, mut n_name) = (0usize, 0usize);
        let mut unsure = Vec::new();
        for (at, attribute) in self.attributes.iter_mut().enumerate() {
            let known = current.get(&attribute.name).and_then(|value| attribute.is_display(&value.word()));
            match known {
                Some(is_display) => {
                    attribute.is_display_spoken = is_display;
                    n_display += usize::from(is_display);
                    n_name += usize::from(!is_display);
                }
                None => unsure.push(at),
            }
        }
        for at in unsure {
            self.attributes[at].is_display_spoken = n_display > n_name;
        }
    }

    /// The attribute of this name.
    pub fn get(&self, name: &str) -> Option<&Attribute> {
        self.places.get(name).map(|at| &self.attributes[*at])
    }

    /// The rules about this attribute.
    pub fn rules_for(&self, name: &str) -> impl Iterator<Item = &Rule> {
        self.rules_for.get(name).into_iter().flatten().map(|at| &self.rules[*at])
    }

    /// Does a rule hold while attributes have these values?
    pub fn holds(&self, rule: &Rule, now: &BTreeMap<String, Setting>) -> Truth {
        rule.truth(&|condition| self.condition(condition, now))
    }

    /// Does one condition hold?
    pub fn condition(&self, condition: &Condition, now: &BTreeMap<String, Setting>) -> Truth {
        let attribute = self.get(&condition.attribute);
        let value = match (condition.property, attribute) {
            (Property::Value, _) => now.get(&condition.attribute).cloned(),
            (Property::ReadOnly, Some(a)) => Some(Setting::Flag(a.is_read_only)),
            (Property::GrayOut, Some(a)) => Some(Setting::Flag(a.is_gray)),
            (Property::Hidden, Some(a)) => Some(Setting::Flag(a.is_hidden)),
            _ => None,
        };
        let Some(value) = value else { return Truth::Unknown };
        let is_same =
            attribute.map_or_else(|| value.is_same(&condition.value), |a| a.is_same(&value, &condition.value));
        condition.test.truth(&value, &condition.value, is_same)
    }
}

#[cfg(test)]
mod tests;
