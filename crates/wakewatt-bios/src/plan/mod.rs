//! A plan: which attributes get which values, in which order, what unlocks them, and what is refused and why.
//!
//! Rules of the registry are asked against the values *as planned*, not as they are: an attribute that is read-only now is
//! free as soon as the same plan sets the profile to Custom. What unlocks is added as a step of its own, before the step that
//! needs it (`settle.rs`); if two steps would need each other, or a wish contradicts what another one needs, that is refused and said.
//! What profiles set besides is worked out from the same rules and shown. Nothing here talks to a BMC.

mod draft;
mod locks;
mod refusal;
mod resolve;
mod settle;

pub use refusal::Refusal;

use crate::setting::Setting;
use crate::walk::{Bios, Machine};
use crate::wish::Wish;
use draft::{Draft, Want};
use serde::Serialize;
use std::collections::BTreeMap;

/// A value that is wanted of an attribute, and by which wish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exact {
    /// The attribute.
    pub name: String,
    /// Its value.
    pub value: Setting,
    /// What was asked for, in the asker's words.
    pub asked: String,
}

/// What a step comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// It is so now, and stays so.
    NoChange,
    /// It waits for the next boot already.
    AlreadyPending,
    /// It will be staged.
    WillChange,
    /// Another step sets it: a profile forces this value.
    Follows,
}

/// One attribute of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Step {
    /// What it comes to.
    pub state: StepState,
    /// The attribute, as the BMC spells it.
    pub attribute: String,
    /// Its label, for people; empty where there is none.
    pub label: String,
    /// The value it has now; none where it is not told.
    pub current: Option<Setting>,
    /// What waits for the next boot already; none where nothing does.
    pub pending: Option<Setting>,
    /// The value it is to have.
    pub wished: Setting,
    /// The wishes behind it, in words; for what unlocks, those of the steps that need it.
    pub asked: Vec<String>,
    /// Nobody asked for it: it unlocks other steps.
    pub is_gate: bool,
    /// Why it is there, or what sets it; empty where there is nothing to say.
    pub why: String,
    /// Takes effect at the next boot only.
    pub needs_reboot: bool,
}

/// A wish that is not met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Refused {
    /// What was asked for, in words.
    pub asked: String,
    /// The attribute; none where none was found.
    pub attribute: Option<String>,
    /// Why not, in words.
    pub why: String,
    /// The same as a type.
    #[serde(skip)]
    pub refusal: Refusal,
}

/// What a profile of the plan sets besides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Moved {
    /// The attribute that moves.
    pub attribute: String,
    /// The value it has now.
    pub current: Option<Setting>,
    /// The value that the registry says is forced.
    pub becomes: Setting,
    /// The step that forces it.
    pub because: String,
}

/// Something that waits for the next boot and is not of this plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Waiting {
    /// The attribute that waits.
    pub attribute: String,
    /// The value it has now.
    pub current: Option<Setting>,
    /// The value that waits.
    pub pending: Setting,
}

/// A plan for one BIOS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plan {
    /// In the order in which they are staged.
    pub steps: Vec<Step>,
    /// What is not done.
    pub refused: Vec<Refused>,
    /// What profiles set besides, as the registry has it.
    pub moved: Vec<Moved>,
    /// What somebody else has staged.
    pub waiting: Vec<Waiting>,
    /// Was every name and value checked with the machine's own registry?
    pub is_validated: bool,
    /// Does anything wait for a reboot then?
    pub needs_reboot: bool,
    /// What to know besides.
    pub notes: Vec<String>,
}

impl Plan {
    /// What is to be staged, in order.
    pub fn changes(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| step.state == StepState::WillChange)
    }
}

/// How strict a plan is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A person wants these values.
    Wish,
    /// Old values come back: what a profile forces is left to the profile, which comes back as well; a profile that only locks
    /// comes back in a second round.
    Undo,
}

/// What stands in for a registry where there is none: the current values.
pub fn stand_in(bios: &Bios) -> crate::registry::Registry {
    resolve::registry(bios)
}

/// A plan for wishes.
pub fn plan(machine: &Machine, bios: &Bios, wishes: &[Wish]) -> Plan {
    let registry = resolve::registry(bios);
    let mut refused = Vec::new();
    let mut exact = Vec::new();
    for wish in wishes {
        match resolve::resolve(&registry, bios, wish) {
            Ok(found) => exact.extend(found),
            Err((attribute, refusal)) => refused.push(refuse(wish.to_string(), attribute, refusal)),
        }
    }
    let mut plan = settled(machine, bios, exact, Purpose::Wish);
    refused.append(&mut plan.refused);
    Plan { refused, ..plan }
}

/// A plan for values of attributes.
pub fn settled(machine: &Machine, bios: &Bios, exact: Vec<Exact>, purpose: Purpose) -> Plan {
    let registry = resolve::registry(bios);
    let mut draft = Draft::new(&registry, bios, purpose);
    let mut refused = Vec::new();
    for Exact { name, value, asked } in exact {
        if let Err(refusal) = draft.want(Want::asked(&name, value, &asked)) {
            refused.push(refuse(asked, Some(name), refusal));
        }
    }
    for (want, refusal) in settle::settle(&mut draft) {
        for asked in want.asked {
            refused.push(refuse(asked, Some(want.name.clone()), refusal.clone()));
        }
    }
    let steps: Vec<Step> = draft.ordered().into_iter().map(|want| draft.step(want)).collect();
    let is_validated = bios.registry.is_ok();
    let needs_reboot = steps.iter().any(|s| s.state != StepState::NoChange && s.needs_reboot);
    let (moved, waiting) = (draft.moved(), draft.waiting());
    let mut notes = draft.notes();
    if let Err(why) = &bios.registry {
        notes.push(format!("not validated: {why}; names and values are compared with the current ones only"));
    }
    if let Some(why) = &bios.pending_unknown {
        notes.push(format!("what waits for the next boot is not known: {why}"));
    }
    if machine.power_state.eq_ignore_ascii_case("off") {
        notes.push("the machine is off: what is staged takes effect when it is switched on".into());
    }
    Plan { steps, refused, moved, waiting, is_validated, needs_reboot, notes }
}

fn refuse(asked: String, attribute: Option<String>, refusal: Refusal) -> Refused {
    Refused { asked, attribute, why: refusal.to_string(), refusal }
}

/// Values by attribute.
type Values = BTreeMap<String, Setting>;

#[cfg(test)]
mod tests;
