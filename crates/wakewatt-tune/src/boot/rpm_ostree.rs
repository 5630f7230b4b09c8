//! Fedora CoreOS, Silverblue, RHCOS: parameters belong to a deployment and are changed by rpm-ostree.
//!
//! `rpm-ostree kargs` makes a new deployment; the one that runs stays in the menu as it is, so it is the recovery
//! entry. There is one pending deployment only: an update that was staged before rides along with our change, and is
//! thrown away if ours is undone by `cleanup -p`; so undoing is a second change of parameters, not that.
//! `--append-if-missing` and `--delete-if-present` make asking twice harmless.
//! Sources: rpm-ostree(1), "kargs"; TuneD's bootloader plug-in as a warning (it compares with the *next* boot).

use super::bls::{self, ENTRIES};
use super::line::{sort_out, without, words};
use super::look;
use super::plan::{BootCommand, BootError, BootPlan, TryOnce};
use super::record::Record;
use super::{Argument, BootLoader, Detected, LoaderDescription, parameters, reboot};
use wakewatt_core::source::Source;
use wakewatt_words::{say, word};

const ID: &str = "rpm-ostree";
pub(crate) const OSTREE: &str = "/run/ostree-booted";
pub(crate) const STAGED: &str = "/run/ostree/staged-deployment";

/// See the head of this file.
pub struct RpmOstree;

impl BootLoader for RpmOstree {
    fn about(&self) -> &'static LoaderDescription {
        &LoaderDescription {
            id: ID,
            title: "ostree deployments (rpm-ostree kargs)",
            knowledge: "rpm-ostree(1), ostree-kargs(7)",
        }
    }

    fn detect(&self, source: &dyn Source) -> Detected {
        match (look::has(source, OSTREE), look::program(source, "rpm-ostree")) {
            (false, _) => Detected::No,
            (true, Some(program)) => Detected::Yes { because: say!("{OSTREE} and {program} exist") },
            (true, None) => Detected::Unsure { why: say!("{OSTREE} exists, and rpm-ostree does not") },
        }
    }

    fn plan(&self, source: &dyn Source, arguments: &[Argument]) -> Result<BootPlan, BootError> {
        let record = Record::read(source, ID)?;
        let line = without(&newest_line(source)?, &record.added);
        let sorted = sort_out(arguments, &line, "the deployment")?;
        let mut plan = BootPlan {
            loader: ID.into(),
            arguments: arguments.to_vec(),
            edits: record.edit(ID, &sorted.missing, &[]).into_iter().collect(),
            notes: sorted.notes,
            ..BootPlan::default()
        };
        let out: Vec<&Argument> = record.added.iter().filter(|a| !sorted.missing.contains(a)).collect();
        let add: Vec<&Argument> = sorted.missing.iter().filter(|a| !record.added.contains(a)).collect();
        if out.is_empty() && add.is_empty() {
            return Ok(plan);
        }
        let why = word!("makes a new deployment with these parameters; the running one stays in the menu");
        plan.commands.push(BootCommand { argv: kargs(&out, &add), undo: kargs(&add, &out), why: why.into() });
        plan.notes.extend(deployment_notes(source));
        plan.notes.extend(parameters::traps(arguments));
        plan.try_once = TryOnce::refused(word!(
            "a deployment cannot be booted once; the previous one stays in the boot menu, and rpm-ostree rollback returns to it"
        ));
        Ok(plan)
    }
}

fn kargs(out: &[&Argument], add: &[&Argument]) -> Vec<String> {
    let mut argv = vec!["rpm-ostree".to_string(), "kargs".into()];
    argv.extend(out.iter().map(|a| format!("--delete-if-present={a}")));
    argv.extend(add.iter().map(|a| format!("--append-if-missing={a}")));
    argv
}

/// The line of the deployment that boots by default: the entry with the highest version; else the running line.
pub(crate) fn newest_line(source: &dyn Source) -> Result<Vec<String>, BootError> {
    let entries = bls::entries(source, ENTRIES)?;
    let version = |e: &&bls::Entry| e.value("version").and_then(|v| v.parse::<u32>().ok()).unwrap_or_default();
    Ok(match entries.iter().max_by_key(version) {
        Some(entry) => entry.options(),
        None => words(&look::text(source, "/proc/cmdline")?.unwrap_or_default()),
    })
}

/// What both tools of ostree systems have in common.
pub(crate) fn deployment_notes(source: &dyn Source) -> Vec<String> {
    let mut notes = vec![reboot().to_string()];
    if look::has(source, STAGED) {
        notes.push(say!(
            "{STAGED} exists: an update or another change is waiting for the next boot and rides along with this one"
        ));
    }
    notes.push(say!("/proc/cmdline shows the new line only after the boot; the tool's own listing shows it before"));
    notes
}
