//! bootc images: bootc remembers whose words are whose.
//!
//! `bootc loader-entries set-options-for-source --source wakewatt` keeps our words under the key
//! `x-options-source-wakewatt` of the boot entry and merges all sources into `options` with every update. So no record
//! of ours is needed, which is as well: /etc may be transient here. Only recent versions have it (with ostree 2026.1).
//! Nothing in the file system carries the version, so the manual page or such a key in an entry is taken as proof; an
//! older image that has rpm-ostree is handled by that.
//! Sources: bootc-loader-entries-set-options-for-source(8).

use super::bls::{self, ENTRIES};
use super::line::{sort_out, without};
use super::look;
use super::plan::{BootCommand, BootError, BootPlan, TryOnce};
use super::rpm_ostree::{OSTREE, STAGED, deployment_notes, newest_line};
use super::{Argument, BootLoader, Detected, LoaderDescription, argument, parameters};
use wakewatt_core::source::Source;
use wakewatt_words::{say, word};

const ID: &str = "bootc";
const KEY: &str = "x-options-source-wakewatt";
const MANUAL: &str = "bootc-loader-entries-set-options-for-source.8";

/// See the head of this file.
pub struct Bootc;

impl BootLoader for Bootc {
    fn about(&self) -> &'static LoaderDescription {
        &LoaderDescription {
            id: ID,
            title: "bootc image (bootc loader-entries)",
            knowledge: "bootc-loader-entries-set-options-for-source(8)",
        }
    }

    fn detect(&self, source: &dyn Source) -> Detected {
        let program = "/usr/bin/bootc";
        if !look::has(source, OSTREE) || !look::has(source, program) {
            return Detected::No;
        }
        let pages = source.list("/usr/share/man/man8").unwrap_or_default();
        let is_tracked = |e: &bls::Entry| e.text.contains("x-options-source-");
        let proof = match pages.iter().find(|n| n.starts_with(MANUAL)) {
            Some(page) => Some(say!("its manual page {page}")),
            None => bls::entries(source, ENTRIES)
                .ok()
                .and_then(|all| all.into_iter().find(is_tracked))
                .map(|e| say!("{} tracks the owners of options", e.path)),
        };
        match proof {
            Some(proof) => Detected::Yes { because: say!("{OSTREE} and {program} exist, and {proof}") },
            None => Detected::Unsure {
                why: format!(
                    "{OSTREE} and {program} exist, but nothing shows that this bootc has `loader-entries \
                     set-options-for-source`; see whether bootc loader-entries --help knows it"
                ),
            },
        }
    }

    fn plan(&self, source: &dyn Source, arguments: &[Argument]) -> Result<BootPlan, BootError> {
        let ours = ours(source)?;
        let line = without(&newest_line(source)?, &ours);
        let sorted = sort_out(arguments, &line, "the deployment")?;
        let mut plan =
            BootPlan { loader: ID.into(), arguments: arguments.to_vec(), notes: sorted.notes, ..BootPlan::default() };
        let is_staged = is_ours_staged(source);
        if sorted.missing == ours && !is_staged {
            return Ok(plan);
        }
        if is_staged {
            plan.notes.push(format!(
                "{STAGED} already holds a change of ours that was not booted yet; this one takes its place, and its undo \
                 returns to the running deployment's parameters"
            ));
        }
        let why = word!("makes a new deployment with these parameters; bootc remembers that they are wakewatt's");
        plan.commands.push(BootCommand { argv: set(&sorted.missing), undo: set(&ours), why: why.into() });
        plan.notes.extend(deployment_notes(source));
        plan.notes.extend(parameters::traps(arguments));
        plan.try_once = TryOnce::refused(word!(
            "a deployment cannot be booted once; the previous one stays in the boot menu, and bootc rollback returns to it"
        ));
        Ok(plan)
    }
}

fn set(arguments: &[Argument]) -> Vec<String> {
    let words = ["bootc", "loader-entries", "set-options-for-source", "--source", "wakewatt"];
    let mut argv: Vec<String> = words.iter().map(|w| (*w).to_string()).collect();
    if !arguments.is_empty() {
        argv.extend(["--options".to_string(), argument::join(arguments)]);
    }
    argv
}

/// Our words in the entries. All deployments that boot are written at once, so the last one with the key counts.
fn ours(source: &dyn Source) -> Result<Vec<Argument>, BootError> {
    let entries = bls::entries(source, ENTRIES)?;
    let version = |e: &&bls::Entry| e.value("version").and_then(|v| v.parse::<u32>().ok()).unwrap_or_default();
    let Some(entry) = entries.iter().max_by_key(version) else { return Ok(Vec::new()) };
    let Some(text) = entry.value(KEY) else { return Ok(Vec::new()) };
    Argument::parse_all(text).map_err(|error| {
        let advice =
            word!("look at the entry; bootc loader-entries set-options-for-source --source wakewatt clears it");
        BootError::refused(&entry.path, format!("{KEY}: {error}"), advice)
    })
}

/// The staged deployment is binary; our key stands in it as text.
fn is_ours_staged(source: &dyn Source) -> bool {
    source.read(STAGED).is_ok_and(|bytes| bytes.windows(KEY.len()).any(|w| w == KEY.as_bytes()))
}
