//! From what a person asks of this machine to what is to be done: an order for [`crate::apply`], and what to know of it.
//!
//! Settings are part of the order as they are; kernel parameters become files and commands of a boot loader (`boot`), and
//! what is to be kept becomes a profile and the units that apply it at every boot (`persist`). Nothing is written here.

mod boot;
mod persist;

use crate::apply::{FileChange, Order};
use crate::boot::{Argument, BootError, BootPlan};
use crate::request::Request;
use std::path::Path;
use wakewatt_core::source::Source;

/// What is wanted, gathered from profile and command line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    /// In a few words, for the journal.
    pub purpose: String,
    /// The settings.
    pub requests: Vec<Request>,
    /// Kernel parameters for the next boots.
    pub arguments: Vec<Argument>,
}

/// How it is to be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// Again at every boot.
    pub is_persisting: bool,
    /// Kernel parameters for the next boot only, where the boot loader can.
    pub is_trying_once: bool,
    /// Undone by itself unless confirmed.
    pub is_to_be_confirmed: bool,
}

/// Files, commands with their inverse, and what to know of them.
#[derive(Debug, Default)]
struct Steps {
    files: Vec<FileChange>,
    commands: Vec<(Vec<String>, Vec<String>)>,
    notes: Vec<String>,
}

/// The order, and what to say with it.
pub struct Ordered {
    /// Who looks on is still to be said.
    pub order: Order<'static>,
    /// What to know: kernel parameters wait for a reboot.
    pub notes: Vec<String>,
}

/// Nothing is changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// Not on this machine, or not safely.
    #[error("nothing is changed: {0}")]
    Refused(String),
    /// It contradicts itself: another question would do.
    #[error("{0}")]
    Contradiction(String),
}

impl Asked {
    /// The boot plan, where kernel parameters are wanted; with the loader and what says that it is this one. `held` are
    /// those of earlier transactions: a loader writes all of ours, so they are wanted still, unless overruled.
    pub fn boot(&self, source: &dyn Source, held: &[Argument]) -> Option<Result<(BootPlan, String), BootError>> {
        boot::plan(&self.arguments, source, held)
    }

    /// What is to be done on this machine, which `source` reads.
    pub fn order(&self, terms: Terms, source: &dyn Source, held: &[Argument]) -> Result<Ordered, OrderError> {
        let mut steps = Steps::default();
        if let Some(made) = self.boot(source, held) {
            let (plan, loader) = made.map_err(|why| OrderError::Refused(why.to_string()))?;
            boot::add(&plan, &loader, terms.is_trying_once, &mut steps)?;
        }
        if terms.is_persisting {
            persist::add(self, Path::new("/"), &mut steps)?;
        }
        if terms.is_to_be_confirmed && !self.arguments.is_empty() && !steps.files.is_empty() {
            let why = "--confirm-within cannot undo kernel parameters, which act after a reboot; apply them by \
                       themselves, with --try-once where the boot loader can";
            return Err(OrderError::Contradiction(why.into()));
        }
        let Steps { files, commands, notes } = steps;
        let (requests, arguments) = (self.requests.clone(), self.arguments.clone());
        Ok(Ordered { order: Order { requests, files, commands, arguments, ..Order::default() }, notes })
    }
}

#[cfg(test)]
mod tests;
