//! What keeps an attribute from being written, and what would free it.
//!
//! Three sources. Rules of the registry, asked about the values as planned. Flags of the registry (`ReadOnly` and the like), which
//! on Dell and HPE are the state of the moment: they count unless a rule explains them and no longer holds; what is only greyed
//! out or hidden, by rules of which none holds, is left to the BMC to judge. And one rule that
//! registries of Supermicro leave out: their menu of power settings is closed unless its own profile, which stands at the menu's top,
//! is Custom; there the dependency hangs on placeholders instead of the attributes. A switch that takes the force from a value
//! (`concepts::MASTERS`) stands in its way as a lock does: the value could be written, and would do nothing.

use super::Purpose;
use super::draft::{Draft, Want};
use crate::concepts::{Without, without_force};
use crate::registry::attribute::plain;
use crate::registry::{Attribute, Condition, Kind, Property, Rule, Truth, rules::Test};
use crate::setting::Setting;

/// Values that mean "no preset".
const NEUTRAL: &[&str] = &["custom", "custommode"];
/// The profile at the top of Supermicro's power menu.
const MENU_GATE: &str = "PowerTechnology";

/// What stands in the way.
pub(super) enum Lock<'a> {
    /// Never.
    Immutable,
    /// A flag that no rule explains.
    Unexplained(&'static str),
    /// A rule that holds.
    Rule(&'a Rule),
    /// By its place in the menu: this attribute must have this value.
    Menu(&'a Attribute, Setting),
    /// It may be written, and a switch takes its force.
    Without(Without<'a>),
}

/// The first thing in the way of this attribute as planned.
pub(super) fn lock<'a>(draft: &Draft<'a>, want: &Want) -> Option<Lock<'a>> {
    let registry = draft.registry;
    let attribute = registry.get(&want.name)?;
    if attribute.is_immutable {
        return Some(Lock::Immutable);
    }
    let rules = || registry.rules_for(&want.name);
    let is_holding = |rule: &&Rule| registry.holds(rule, &draft.planned) == Truth::Yes;
    if let Some(rule) = rules().filter(|rule| rule.is_lock()).find(is_holding) {
        return Some(Lock::Rule(rule));
    }
    let is_against = |rule: &&Rule| rule.forces().is_some_and(|value| !draft.is_same(&want.name, value, &want.value));
    if let Some(rule) = rules().filter(is_against).find(is_holding) {
        return Some(Lock::Rule(rule));
    }
    let flags = [
        (attribute.is_read_only, Property::ReadOnly),
        (attribute.is_gray, Property::GrayOut),
        (attribute.is_hidden, Property::Hidden),
    ];
    for (_, property) in flags.into_iter().filter(|(is_set, _)| *is_set) {
        let is_stale = property != Property::ReadOnly && rules().any(Rule::is_lock);
        let is_explained =
            is_stale || rules().any(|rule| rule.is_lock() && registry.holds(rule, &draft.bios.current) == Truth::Yes);
        if !is_explained {
            return Some(Lock::Unexplained(property.word()));
        }
    }
    menu_lock(draft, attribute).or_else(|| master_lock(draft, attribute, want))
}

/// Old values come back together with the switches that they had.
fn master_lock<'a>(draft: &Draft<'a>, attribute: &Attribute, want: &Want) -> Option<Lock<'a>> {
    if draft.purpose == Purpose::Undo || want.is_gate {
        return None;
    }
    without_force(draft.registry, attribute, &want.value, &draft.planned).map(Lock::Without)
}

fn menu_lock<'a>(draft: &Draft<'a>, attribute: &Attribute) -> Option<Lock<'a>> {
    let is_gate = |a: &&Attribute| plain(crate::concepts::base(&a.name)) == plain(MENU_GATE);
    let gate = draft.registry.attributes.iter().find(is_gate)?;
    let below = attribute.menu.strip_prefix(&gate.menu)?;
    let is_below = !gate.menu.is_empty() && (below.is_empty() || below.starts_with('/')) && gate.name != attribute.name;
    let custom = neutral(gate)?;
    let now = draft.planned.get(&gate.name)?;
    (is_below && !draft.is_same(&gate.name, now, &custom)).then_some(Lock::Menu(gate, custom))
}

/// Its value without a preset.
fn neutral(attribute: &Attribute) -> Option<Setting> {
    let is_it = |text: &str| NEUTRAL.contains(&plain(text).as_str());
    let choice = attribute.choices.iter().find(|c| is_it(&c.name) || c.display.as_deref().is_some_and(is_it))?;
    Some(attribute.spelled(choice))
}

/// Settings that would end a rule, best first: what a condition says it must be, or no preset.
pub(super) fn keys<'a>(draft: &Draft<'a>, rule: &'a Rule) -> Vec<(&'a str, Setting)> {
    let mut out = Vec::new();
    for condition in &rule.conditions {
        let Some(attribute) = draft.registry.get(&condition.attribute) else { continue };
        if condition.property != Property::Value || draft.registry.condition(condition, &draft.planned) != Truth::Yes {
            continue;
        }
        if let Some(value) = key(attribute, condition) {
            out.push((attribute.name.as_str(), value));
        }
    }
    out
}

fn key(attribute: &Attribute, condition: &Condition) -> Option<Setting> {
    match (condition.test, attribute.kind) {
        (_, Kind::Password) => None,
        (Test::NotEqual, _) => attribute.accept(&condition.value.word(), Some(&condition.value)).ok(),
        (Test::Equal, _) => neutral(attribute),
        _ => None,
    }
}
