//! Frees every attribute that is wanted, or finds out that it cannot be.
//!
//! In rounds: the first want that is locked gets what frees it as a want of its own, until none is locked. Whatever frees is
//! added once; an attribute that is still locked by something added already, or that only its own dependants could free, is
//! refused. So it ends, whatever the rules of a registry say, and circles are named.

use super::draft::{Draft, Want};
use super::locks::{Lock, keys, lock};
use super::{Purpose, Refusal};
use crate::registry::{Rule, Truth};
use crate::setting::Setting;
use std::collections::BTreeMap;

/// More than any BIOS has profiles.
const MAX_ROUNDS: usize = 64;
/// Attributes that an error shows the values of.
const SHOWN: usize = 3;

/// What to do about one want.
enum Next {
    /// Nothing is in the way.
    Free,
    /// A step of the plan sets it, in words.
    Follows(String),
    /// In a later round: this profile, which would lock that.
    Later(String, String),
    /// This first, because of that.
    First(String, Setting, String),
    /// Not to be had.
    Refuse(Refusal),
}

/// Settles a draft; what is refused is taken out and returned.
pub(super) fn settle(draft: &mut Draft<'_>) -> Vec<(Want, Refusal)> {
    let mut refused = Vec::new();
    // What would free something and cannot be had itself.
    let mut barred: BTreeMap<String, Refusal> = BTreeMap::new();
    for _ in 0..MAX_ROUNDS {
        let Some((at, next)) =
            (0..draft.wants.len()).map(|at| (at, next(draft, at))).find(|(_, n)| !matches!(n, Next::Free))
        else {
            return refused;
        };
        let next = match next {
            Next::First(name, ..) if barred.contains_key(&name) => Next::Refuse(barred[&name].clone()),
            other => other,
        };
        match next {
            Next::Free => {}
            Next::Follows(why) => {
                draft.wants[at].is_following = true;
                draft.wants[at].why = why;
            }
            Next::First(name, value, why) => {
                let (asked, depth) = (draft.wants[at].asked.clone(), draft.wants[at].depth + 1);
                let gate = Want { asked, is_gate: true, depth, why, ..Want::asked(&name, value, "") };
                // It is new: whatever is wanted already does not free.
                draft.wants.push(gate);
            }
            Next::Later(gate, held) => {
                if let Some(at) = draft.wants.iter().position(|want| want.name == gate) {
                    let out = draft.wants.remove(at);
                    refused.push((out, Refusal::Later { attribute: gate, held }));
                }
            }
            Next::Refuse(refusal) => {
                let out = draft.wants.remove(at);
                drop_gates_of(draft, &out);
                if out.is_gate {
                    barred.insert(out.name, refusal);
                } else {
                    refused.push((out, refusal));
                }
            }
        }
        draft.work_out();
    }
    // Not reached by any registry seen: every round adds or removes a want.
    for want in std::mem::take(&mut draft.wants) {
        let refusal = Refusal::Circle { attribute: want.name.clone(), chain: Vec::new() };
        refused.push((want, refusal));
    }
    draft.work_out();
    refused
}

/// What was added for it alone goes with it.
fn drop_gates_of(draft: &mut Draft<'_>, out: &Want) {
    if out.is_gate {
        return;
    }
    let asked: Vec<String> = draft.wants.iter().filter(|w| !w.is_gate).flat_map(|w| w.asked.clone()).collect();
    draft.wants.retain(|want| !want.is_gate || want.asked.iter().any(|a| asked.contains(a)));
}

fn next(draft: &Draft<'_>, at: usize) -> Next {
    let want = &draft.wants[at];
    if want.is_following {
        return Next::Free;
    }
    let Some(lock) = lock(draft, want) else { return Next::Free };
    let attribute = want.name.clone();
    // Locked as it should be: nothing has to be written, unless something else moves it.
    let is_left = draft.is_so(want) && !is_moved(draft, want);
    match lock {
        // It is so already, and without force: the switch is what has to change.
        Lock::Without(without) => {
            let Some(value) = without.needs.clone() else {
                let switch = without.switch.name.clone();
                return Next::Refuse(Refusal::NoForce { attribute, how: without.words(), switch });
            };
            let why = format!("{attribute} {} (a rule of this maker; the registry does not say)", without.words());
            first(draft, want, &without.switch.name, value, why)
        }
        _ if is_left => Next::Free,
        Lock::Immutable => Next::Refuse(Refusal::Immutable { attribute }),
        Lock::Unexplained(how) => Next::Refuse(Refusal::LockedUnexplained { attribute, how }),
        Lock::Menu(gate, value) => {
            let why = format!(
                "{attribute} is in a menu that {}={value} opens (a rule of this maker; the registry does not say)",
                gate.name
            );
            first(draft, want, &gate.name, value, why)
        }
        Lock::Rule(rule) => by_rule(draft, want, rule),
    }
}

/// Does a rule that comes to hold force another value on it?
fn is_moved(draft: &Draft<'_>, want: &Want) -> bool {
    let is_against = |rule: &&Rule| rule.forces().is_some_and(|value| !draft.is_same(&want.name, value, &want.value));
    let holds = |rule: &Rule| draft.registry.holds(rule, &draft.planned) == Truth::Yes;
    draft.registry.rules_for(&want.name).filter(is_against).any(holds)
}

fn by_rule(draft: &Draft<'_>, want: &Want, rule: &Rule) -> Next {
    let words = draft.in_words(rule);
    // The profile forces just this value: nothing is to be written.
    let forced = draft.registry.rules_for(&want.name).find(|rule| {
        rule.forces().is_some_and(|value| draft.is_same(&want.name, value, &want.value))
            && draft.registry.holds(rule, &draft.planned) == Truth::Yes
    });
    if let Some(rule) = forced {
        return Next::Follows(format!("set by {}", draft.in_words(rule)));
    }
    let keys = keys(draft, rule);
    let is_taken = |name: &str| draft.wanted(name).is_some();
    // Nobody says that the profile sets what it locks: the old value goes first, while it is open.
    let profile = rule.conditions.iter().find(|condition| is_taken(&condition.attribute));
    if let (Purpose::Undo, Some(profile)) = (draft.purpose, profile) {
        return Next::Later(profile.attribute.clone(), want.name.clone());
    }
    let ends = |(name, value): &&(&str, Setting)| {
        let planned = draft.with(Some((*name, value)));
        draft.registry.holds(rule, &planned) != Truth::Yes
    };
    let free: Vec<&(&str, Setting)> = keys.iter().filter(|(name, _)| !is_taken(name)).collect();
    let best = free.iter().copied().find(ends).or(free.first().copied());
    if let Some((name, value)) = best {
        let why =
            format!("{} is {} while {words}", want.name, if rule.is_lock() { rule.property.word() } else { "held" });
        return first(draft, want, name, value.clone(), why);
    }
    let attribute = want.name.clone();
    let taken = keys.iter().find_map(|(name, value)| Some((draft.wanted(name)?, value)));
    Next::Refuse(match taken {
        Some((gate, _)) if gate.is_gate => Refusal::Circle { attribute, chain: chain(draft, want) },
        Some((gate, value)) => Refusal::GateTaken {
            attribute,
            gate: gate.name.clone(),
            needs: value.to_string(),
            wanted: gate.value.to_string(),
        },
        None => {
            let others = rule.conditions.iter().filter_map(|condition| draft.registry.get(&condition.attribute));
            let mut takes: Vec<String> = others.map(|a| format!("{} takes {}", a.name, a.takes())).collect();
            takes.dedup();
            takes.truncate(SHOWN);
            Refusal::Locked { attribute, by: words, takes: takes.join("; ") }
        }
    })
}

fn first(draft: &Draft<'_>, want: &Want, name: &str, value: Setting, why: String) -> Next {
    match draft.wanted(name) {
        None => Next::First(name.into(), value, why),
        Some(gate) if gate.is_gate => {
            Next::Refuse(Refusal::Circle { attribute: want.name.clone(), chain: chain(draft, want) })
        }
        Some(gate) if draft.purpose == Purpose::Undo => Next::Later(gate.name.clone(), want.name.clone()),
        Some(gate) => Next::Refuse(Refusal::GateTaken {
            attribute: want.name.clone(),
            gate: gate.name.clone(),
            needs: value.to_string(),
            wanted: gate.value.to_string(),
        }),
    }
}

fn chain(draft: &Draft<'_>, want: &Want) -> Vec<String> {
    draft.wants.iter().filter(|w| w.is_gate || w.name == want.name).map(|w| w.name.clone()).collect()
}
