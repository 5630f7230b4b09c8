//! A plan in the making: what is wanted so far, and what every attribute would be then.

use super::{Moved, Purpose, Refusal, Step, StepState, Values, Waiting};
use crate::registry::{Property, Registry, Rule, Truth};
use crate::setting::Setting;
use crate::walk::Bios;
use std::collections::BTreeSet;
use wakewatt_core::arrange::Arrange as _;

/// Forced values may force others: so many times at most.
const MAX_PASSES: usize = 8;

/// One attribute that is wanted.
#[derive(Clone, Debug)]
pub(super) struct Want {
    pub(super) name: String,
    pub(super) value: Setting,
    pub(super) asked: Vec<String>,
    /// Nobody asked: it frees others.
    pub(super) is_gate: bool,
    /// How far before those that nobody needs.
    pub(super) depth: usize,
    pub(super) why: String,
    /// A step of the plan sets it.
    pub(super) is_following: bool,
}

impl Want {
    pub(super) fn asked(name: &str, value: Setting, asked: &str) -> Want {
        Want {
            name: name.into(),
            value,
            asked: vec![asked.into()],
            is_gate: false,
            depth: 0,
            why: String::new(),
            is_following: false,
        }
    }
}

pub(super) struct Draft<'a> {
    pub(super) registry: &'a Registry,
    pub(super) bios: &'a Bios,
    pub(super) purpose: Purpose,
    pub(super) wants: Vec<Want>,
    /// Now, with what waits already.
    staged: Values,
    /// With all that is wanted, and what that forces.
    pub(super) planned: Values,
}

impl<'a> Draft<'a> {
    pub(super) fn new(registry: &'a Registry, bios: &'a Bios, purpose: Purpose) -> Draft<'a> {
        let mut staged = bios.current.clone();
        staged.extend(bios.pending.iter().map(|(name, value)| (name.clone(), value.clone())));
        Draft { registry, bios, purpose, wants: Vec::new(), planned: staged.clone(), staged }
    }

    /// Adds one; the same twice is once.
    pub(super) fn want(&mut self, want: Want) -> Result<(), Refusal> {
        let old = self.wants.iter_mut().find(|old| old.name == want.name);
        if let Some(old) = old {
            if !old.value.is_same(&want.value) {
                let (one, other) = (old.value.to_string(), want.value.to_string());
                return Err(Refusal::Contradiction { attribute: want.name, one, other });
            }
            for asked in want.asked {
                if !old.asked.contains(&asked) {
                    old.asked.push(asked);
                }
            }
            return Ok(());
        }
        self.wants.push(want);
        self.work_out();
        Ok(())
    }

    /// What every attribute would be.
    pub(super) fn work_out(&mut self) {
        self.planned = self.with(None);
    }

    /// The same if one more attribute had this value.
    pub(super) fn with(&self, more: Option<(&str, &Setting)>) -> Values {
        let mut planned = self.staged.clone();
        let mut fixed: BTreeSet<&str> = BTreeSet::new();
        for want in self.wants.iter().filter(|want| !want.is_following) {
            planned.insert(want.name.clone(), want.value.clone());
            fixed.insert(&want.name);
        }
        if let Some((name, value)) = more {
            planned.insert(name.into(), value.clone());
            fixed.insert(name);
        }
        for _ in 0..MAX_PASSES {
            let forced: Vec<(String, Setting)> = self
                .registry
                .rules
                .iter()
                .filter(|rule| !fixed.contains(rule.to.as_str()))
                .filter_map(|rule| Some((rule, rule.forces()?)))
                .filter(|(rule, value)| planned.get(&rule.to).is_some_and(|now| !now.is_same(value)))
                .filter(|(rule, _)| self.is_stirred(rule) && self.registry.holds(rule, &planned) == Truth::Yes)
                .map(|(rule, value)| (rule.to.clone(), value.clone()))
                .collect();
            if forced.is_empty() {
                break;
            }
            planned.extend(forced);
        }
        planned
    }

    /// A rule that holds already has done its work, whatever the BMC shows: only what the plan brings about moves anything.
    fn is_stirred(&self, rule: &Rule) -> bool {
        self.registry.holds(rule, &self.staged) != Truth::Yes
    }

    /// The value wanted of an attribute.
    pub(super) fn wanted(&self, name: &str) -> Option<&Want> {
        self.wants.iter().find(|want| want.name == name)
    }

    /// Are these the same value of this attribute?
    pub(super) fn is_same(&self, name: &str, a: &Setting, b: &Setting) -> bool {
        self.registry.get(name).map_or_else(|| a.is_same(b), |attribute| attribute.is_same(a, b))
    }

    /// Is it so now or at the next boot, without any doing?
    pub(super) fn is_so(&self, want: &Want) -> bool {
        self.staged.get(&want.name).is_some_and(|now| self.is_same(&want.name, now, &want.value))
    }

    /// What frees comes before what it frees.
    pub(super) fn ordered(&self) -> Vec<&Want> {
        let mut all: Vec<&Want> = self.wants.iter().collect();
        all.arrange_by_key(|want| std::cmp::Reverse(want.depth));
        all
    }

    pub(super) fn step(&self, want: &Want) -> Step {
        let (current, pending) = (self.bios.current.get(&want.name), self.bios.pending.get(&want.name));
        let is_it = |value: Option<&Setting>| value.is_some_and(|v| self.is_same(&want.name, v, &want.value));
        let state = if want.is_following {
            StepState::Follows
        } else if is_it(pending) {
            StepState::AlreadyPending
        } else if is_it(current) && pending.is_none() {
            StepState::NoChange
        } else {
            StepState::WillChange
        };
        let attribute = self.registry.get(&want.name);
        Step {
            state,
            attribute: want.name.clone(),
            label: attribute.map(|a| a.label.clone()).unwrap_or_default(),
            current: current.cloned(),
            pending: pending.cloned(),
            wished: want.value.clone(),
            asked: want.asked.clone(),
            is_gate: want.is_gate,
            why: want.why.clone(),
            needs_reboot: attribute.is_none_or(|a| a.needs_reset),
        }
    }

    /// What is forced besides, by rules that come to hold.
    pub(super) fn moved(&self) -> Vec<Moved> {
        let moves = |(name, value): (&String, &Setting)| {
            let current = self.staged.get(name);
            if self.wanted(name).is_some() || current.is_some_and(|now| self.is_same(name, now, value)) {
                return None;
            }
            let rule = self.registry.rules_for(name).find(|rule| {
                rule.forces().is_some_and(|v| v.is_same(value))
                    && self.registry.holds(rule, &self.planned) == Truth::Yes
            });
            let because = rule.map(|rule| self.in_words(rule)).unwrap_or_default();
            Some(Moved { attribute: name.clone(), current: current.cloned(), becomes: value.clone(), because })
        };
        self.planned.iter().filter_map(moves).collect()
    }

    /// A rule's conditions that hold, in words: `SysProfile=PerfOptimized`.
    pub(super) fn in_words(&self, rule: &Rule) -> String {
        let mut out: Vec<String> = Vec::new();
        for condition in &rule.conditions {
            if self.registry.condition(condition, &self.planned) == Truth::Yes {
                let now = self.planned.get(&condition.attribute);
                let word = match (condition.property, now) {
                    (Property::Value, Some(now)) => format!("{}={now}", condition.attribute),
                    (property, _) => format!("{} is {}", condition.attribute, property.word()),
                };
                if !out.contains(&word) {
                    out.push(word);
                }
            }
        }
        out.join(" and ")
    }

    /// What others have staged.
    pub(super) fn waiting(&self) -> Vec<Waiting> {
        let is_foreign =
            |name: &str, value: &Setting| self.wanted(name).is_none_or(|want| !self.is_same(name, &want.value, value));
        let all = self.bios.pending.iter().filter(|(name, value)| is_foreign(name, value));
        let waits = |(name, value): (&String, &Setting)| Waiting {
            attribute: name.clone(),
            current: self.bios.current.get(name).cloned(),
            pending: value.clone(),
        };
        all.map(waits).collect()
    }

    /// What to know: values that a profile held, and rules that cannot be told.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut out = Vec::new();
        for gate in self.wants.iter().filter(|want| want.is_gate && !self.is_so(want)) {
            let now = self.staged.get(&gate.name).map_or("its value".into(), ToString::to_string);
            out.push(format!(
                "{} leaves {now}: what that held is free then, and stays as it is until somebody changes it",
                gate.name
            ));
        }
        let rules = self.wants.iter().flat_map(|want| self.registry.rules_for(&want.name));
        let n_unknown = rules
            .filter(|rule| {
                rule.property != Property::Other && self.registry.holds(rule, &self.planned) == Truth::Unknown
            })
            .count();
        if n_unknown > 0 {
            let word = if n_unknown == 1 { "dependency names" } else { "dependencies name" };
            out.push(format!("{n_unknown} {word} something that this BIOS does not show; they are not checked"));
        }
        out
    }
}
