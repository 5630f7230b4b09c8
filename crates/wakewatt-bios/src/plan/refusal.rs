//! Why a wish is not met. Decisions look at the type, people read the sentence.

use crate::registry::NotTaken;

/// Why not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No such word.
    #[error("there is no bios.{word}; {}", hint(near, "`bios show` lists the words"))]
    UnknownConcept {
        /// What was asked for.
        word: String,
        /// Concepts like it.
        near: Vec<String>,
    },
    /// This firmware has nothing of the kind under a known name.
    #[error(
        "no known name of it is in this machine's registry; `bios show --all` lists everything, and attr:NAME=VALUE sets it"
    )]
    NoAttribute,
    /// Several attributes are as like.
    #[error("several attributes could be meant: {}; say which with attr:NAME=VALUE", names.join(", "))]
    Several {
        /// Which.
        names: Vec<String>,
    },
    /// No attribute of this name.
    #[error(
        "unknown name: this machine's registry has no attribute {name}; {}",
        hint(near, "nothing there is named like it")
    )]
    UnknownAttribute {
        /// What was asked for.
        name: String,
        /// Attributes like it.
        near: Vec<String>,
    },
    /// The value is not for it.
    #[error("{attribute}: {why}")]
    NotTaken {
        /// The attribute.
        attribute: String,
        /// Why not.
        why: NotTaken,
    },
    /// Two wishes want different things of one attribute.
    #[error("{attribute} is wanted as {one} and as {other}")]
    Contradiction {
        /// The attribute.
        attribute: String,
        /// One value.
        one: String,
        /// The other.
        other: String,
    },
    /// It never changes.
    #[error("{attribute} can never be written (Immutable in the registry)")]
    Immutable {
        /// The attribute.
        attribute: String,
    },
    /// Locked, and no rule says by what.
    #[error(
        "{attribute} is {how} in the registry and no dependency says what would free it; is the BMC locked down, or the setup password set?"
    )]
    LockedUnexplained {
        /// The attribute.
        attribute: String,
        /// `read-only`, `greyed out`, `hidden`.
        how: &'static str,
    },
    /// A rule locks it, and nothing tells which value would free it.
    #[error("{attribute} is locked while {by}; set that otherwise first{}", if takes.is_empty() { String::new() } else { format!(" ({takes})") })]
    Locked {
        /// The attribute.
        attribute: String,
        /// What locks it.
        by: String,
        /// What that takes.
        takes: String,
    },
    /// A switch takes its force, and cannot be set so that it has it.
    #[error(
        "{attribute} {how}, and {switch} takes no value that is known to give it force; set it first with attr:{switch}=VALUE"
    )]
    NoForce {
        /// The attribute.
        attribute: String,
        /// What takes its force.
        how: String,
        /// The switch.
        switch: String,
    },
    /// What would free it is wanted otherwise.
    #[error("{attribute} needs {gate}={needs}, but {gate}={wanted} is wanted too")]
    GateTaken {
        /// The attribute.
        attribute: String,
        /// What would free it.
        gate: String,
        /// As what.
        needs: String,
        /// As what it is wanted.
        wanted: String,
    },
    /// An undo's second round.
    #[error(
        "{attribute} goes back in a second round, after a boot: the registry does not say what it would force on {held}, which must go back first"
    )]
    Later {
        /// The profile.
        attribute: String,
        /// What it would lock.
        held: String,
    },
    /// Steps would need each other.
    #[error("{attribute} and what would free it need each other ({}); nothing of it is done", chain.join(", "))]
    Circle {
        /// The attribute.
        attribute: String,
        /// Who is in it.
        chain: Vec<String>,
    },
}

fn hint(near: &[String], otherwise: &str) -> String {
    if near.is_empty() { otherwise.into() } else { format!("did you mean {}?", near.join(", ")) }
}
