//! After the boot: does the BIOS hold what was staged, and does Linux see what the BIOS says?
//!
//! Two questions that are often taken for one. The first compares a journal with the BIOS, and tells what still waits from what was
//! dropped at boot (HPE and Lenovo judge then only), with the BMC's messages about it. The second (`seen.rs`) compares the BIOS's word
//! with firmware tables and the kernel of a host: intel_idle has a table of its own and ignores that C-states are off, the
//! kernel turns a bias of 0 into 6 at boot, a kernel parameter may undo what the setup offers. Nothing is changed here.

mod seen;

use crate::concepts::{CONCEPTS, Found};
use crate::journal::{Journal, Phase};
use crate::setting::Setting;
use crate::walk::{Bios, Machine};
use serde::Serialize;
use wakewatt_core::facts::Snapshot;

/// How far an attribute of an application has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    /// The BIOS has it.
    Holds,
    /// It waits for the next boot.
    Waits,
    /// It neither is so nor waits: dropped at boot, or changed since.
    Dropped,
}

/// One attribute of an application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Held {
    /// As the BMC spells it.
    pub attribute: String,
    /// What it is to hold: ours, or the old value after an undo.
    pub wished: Setting,
    /// What the BIOS says now; none where it does not tell.
    pub current: Option<Setting>,
    /// How far it has come.
    pub hold: Hold,
    /// A profile of the same application was to set it; nobody wrote it.
    pub is_moved: bool,
}

/// Do BIOS and Linux say the same?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// They do, as far as both can be read.
    Agrees,
    /// They do not.
    Differs,
    /// Something is not known.
    CannotTell,
}

/// One concept, as firmware and kernel have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Seen {
    /// Such as `bios.c-states`.
    pub id: String,
    /// What the BIOS says: the word, else its own value.
    pub bios: String,
    /// What firmware tables say to the kernel; none where none speaks of it or it is not known.
    pub tables: Option<String>,
    /// What Linux has; none where it is not known.
    pub linux: Option<String>,
    /// Whether they say the same.
    pub verdict: Verdict,
    /// What follows, in a sentence.
    pub says: String,
}

/// What `bios verify` found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verified {
    /// The BMC or the folder.
    pub origin: String,
    /// Id of the system, as the BMC has it.
    pub system: String,
    /// The journal that is compared; none without one.
    pub journal: Option<String>,
    /// Its attributes, in order.
    pub held: Vec<Held>,
    /// What the BMC says of the last application, as message ids.
    pub messages: Vec<String>,
    /// When that was, in the BMC's words.
    pub messages_time: Option<String>,
    /// The host whose kernel is compared; none without one.
    pub host: Option<String>,
    /// BIOS beside Linux, by concept.
    pub seen: Vec<Seen>,
    /// What to know besides.
    pub notes: Vec<String>,
}

impl Verified {
    /// Is there anything that does not hold, or that is seen otherwise?
    pub fn has_drift(&self) -> bool {
        let is_lost = |held: &Held| held.hold == Hold::Dropped && !held.is_moved;
        self.held.iter().any(is_lost) || self.seen.iter().any(|seen| seen.verdict == Verdict::Differs)
    }
}

/// Compares.
pub fn verify(machine: &Machine, bios: &Bios, journal: Option<&Journal>, host: Option<&Snapshot>) -> Verified {
    let mut out = Verified {
        origin: machine.origin.clone(),
        system: machine.id.clone(),
        journal: journal.map(Journal::id),
        held: journal.map(|journal| held(bios, journal)).unwrap_or_default(),
        messages: bios.messages.clone(),
        messages_time: bios.messages_time.clone(),
        host: host.map(|host| host.origin.clone()),
        seen: Vec::new(),
        notes: Vec::new(),
    };
    if let Some(journal) = journal.filter(|journal| journal.phase == Phase::UndoStaged) {
        let id = journal.id();
        out.notes.push(match crate::undo::is_as_before(bios, journal) {
            true => format!("the undo of {id} is in force; `wakewatt bios undo {id}` ends its journal"),
            false => format!(
                "not everything is as before {id} yet; after the boot `wakewatt bios undo {id}` stages the rest"
            ),
        });
    }
    if let Some(why) = &bios.pending_unknown {
        out.notes.push(format!("what waits for the next boot is not known: {why}"));
    }
    if let Some(facts) = host {
        out.notes.extend(other_machine(machine, facts));
        out.seen = seen(bios, facts);
    }
    out
}

fn held(bios: &Bios, journal: &Journal) -> Vec<Held> {
    let registry = bios.registry.as_ref().ok();
    let is_undone = journal.phase == Phase::UndoStaged;
    let mut out = Vec::new();
    for entry in &journal.entries {
        let Some(wished) = (if is_undone { entry.before.clone() } else { Some(entry.ours.clone()) }) else { continue };
        let attribute = registry.and_then(|registry| registry.get(&entry.attribute));
        let is_it = |value: &Setting| attribute.map_or_else(|| value.is_same(&wished), |a| a.is_same(value, &wished));
        let (current, pending) = (bios.current.get(&entry.attribute), bios.pending.get(&entry.attribute));
        let hold = match (pending, current) {
            (Some(waits), _) if is_it(waits) => Hold::Waits,
            (None, Some(now)) if is_it(now) => Hold::Holds,
            // What cannot be read may wait; a preset that moves it along is not staged itself: until the boot nothing shows it.
            _ if bios.pending_unknown.is_some() || (entry.is_moved && !bios.pending.is_empty()) => Hold::Waits,
            _ => Hold::Dropped,
        };
        let name = entry.attribute.clone();
        out.push(Held { attribute: name, current: current.cloned(), wished, hold, is_moved: entry.is_moved });
    }
    out
}

/// A recording of some other host tells nothing about this BIOS.
fn other_machine(machine: &Machine, facts: &Snapshot) -> Option<String> {
    let (model, product) = (machine.model.trim(), facts.dimms.product_name.get()?.trim());
    let is_other = !model.is_empty() && !product.contains(model) && !model.contains(product);
    is_other.then(|| format!("the BMC's machine is a {model}, the host says it is a {product}: are they the same?"))
}

fn seen(bios: &Bios, facts: &Snapshot) -> Vec<Seen> {
    let registry = crate::plan::stand_in(bios);
    let mut out = Vec::new();
    for concept in CONCEPTS {
        let Found::Here(here) = concept.find(&registry) else { continue };
        let word = concept.word(&registry, &here, &bios.current);
        let own = here.first().and_then(|(attribute, _)| bios.current.get(&attribute.name)).map(ToString::to_string);
        let Some(bios_says) = word.map(str::to_string).or(own) else { continue };
        if let Some(found) = seen::compare(concept.id, word, facts) {
            let id = format!("bios.{}", concept.id);
            let seen::Comparison { tables, linux, verdict, says } = found;
            out.push(Seen { id, bios: bios_says, tables, linux, verdict, says });
        }
    }
    out
}

#[cfg(test)]
mod tests;
