//! Boot parameters that stay: which boot loader this machine has, and what to write so that the next boots have them.
//!
//! Some settings exist only on the kernel command line (`intel_idle.max_cstate`, `amd_pstate=`). Every system keeps
//! that line somewhere else, and most ways to edit it break something: a shared line rewritten, a recovery entry
//! spoilt, a change lost with the next kernel. One file per system knows its way. Nothing here writes: a loader looks
//! at a [`Source`] and returns a [`BootPlan`], which is data, so that it can be shown, journaled, tested and undone.
//!
//! Rules for all of them: only files of our own where the system allows it; otherwise only our own words, remembered
//! in [`record`]; the recovery entry stays as it was where the system has one; asking twice changes nothing; asking
//! for no arguments takes ours away.
//!
//! To add a loader: a file that implements [`BootLoader`], a `mod` line, a place in [`LOADERS`], fixtures under
//! `fixtures/boot/`. Left out: openSUSE, Arch with GRUB, zipl, petitboot (not verified by anybody here).

pub mod argument;
pub mod parameters;
pub mod plan;
pub mod record;
pub mod check;
mod line;
mod look;
mod shell_line;
pub(crate) mod take_out;
mod bls;
mod grub_try;
pub mod bootc;
pub mod rpm_ostree;
pub mod flatcar;
pub mod systemd_boot;
pub mod grub_bls;
pub mod grub_debian;

pub use argument::{Argument, ArgumentError};
pub use plan::{BootCommand, BootError, BootPlan, FileEdit, TryOnce};

use serde::Serialize;
use wakewatt_core::source::Source;
use wakewatt_words::{say, word};

/// A boot loader that wakewatt can plan for.
pub trait BootLoader: Sync {
    /// Who it is.
    fn about(&self) -> &'static LoaderDescription;
    /// Does it start this machine's kernel?
    fn detect(&self, source: &dyn Source) -> Detected;
    /// What to change so that the next boots have these arguments from wakewatt, and no others. None: take ours away.
    fn plan(&self, source: &dyn Source, arguments: &[Argument]) -> Result<BootPlan, BootError>;
}

/// Name and origin of the knowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LoaderDescription {
    /// Stable, for files and machines.
    pub id: &'static str,
    /// For people.
    pub title: &'static str,
    /// Documentation and sources that the file was written from.
    pub knowledge: &'static str,
}

/// The answer of a detection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum Detected {
    /// It is this one.
    Yes {
        /// The path or fact that says so.
        because: String,
    },
    /// It is not.
    No,
    /// Its files are there, and something speaks against it.
    Unsure { why: String },
}

/// All loaders, in the order of detection: image-based systems first, because they carry the tools of the others.
pub const LOADERS: &[&dyn BootLoader] = &[
    &bootc::Bootc,
    &rpm_ostree::RpmOstree,
    &flatcar::Flatcar,
    &systemd_boot::SystemdBoot,
    &grub_bls::GrubBls,
    &grub_debian::GrubDebian,
];

/// The loader of this machine, and why it is this one.
pub fn choose(source: &dyn Source) -> Result<(&'static dyn BootLoader, String), BootError> {
    if let Some(path) = look::container(source) {
        return Err(BootError::NoLoader {
            what: say!("{path} says that this is a container, and its kernel is the host's"),
            advice: say!("run this on the host"),
        });
    }
    let mut doubts = Vec::new();
    for loader in LOADERS {
        match loader.detect(source) {
            Detected::Yes { because } => return Ok((*loader, because)),
            Detected::Unsure { why } => doubts.push(format!("{}: {why}", loader.about().title)),
            Detected::No => {}
        }
    }
    if doubts.is_empty() {
        return Err(BootError::NoLoader {
            what: say!("no boot loader that wakewatt knows was found, neither under /boot nor under /etc"),
            advice: say!(
                "if the kernel is started from outside (Firecracker, QEMU -kernel, kexec, network boot), add the \
                 parameters where that is configured; otherwise use the boot loader's own tool"
            ),
        });
    }
    Err(BootError::NoLoader {
        what: say!("cannot tell which boot loader starts this machine ({})", doubts.join("; ")),
        advice: say!("boot it with the loader you mean, or use that loader's own tool"),
    })
}

/// A loader by its id.
pub fn by_id(id: &str) -> Option<&'static dyn BootLoader> {
    LOADERS.iter().copied().find(|l| l.about().id == id)
}

/// Said by every plan that changes something.
pub(crate) fn reboot() -> &'static str {
    word!("takes effect with the next boot")
}

#[cfg(test)]
mod tests;
