//! A machine as one text file that is safe to share: what the parsers asked for, masked, without other people's processes.

use std::collections::BTreeSet;
use wakewatt_core::facts::{Snapshot, holders};
use wakewatt_core::record::host_file;
use wakewatt_core::record::mask::{self, Names};
use wakewatt_core::source::{ErrorKind, ReadError, Source, Tree};
use wakewatt_host::recorder::Recorder;
use wakewatt_tune::knob::Host;
use wakewatt_tune::knobs::KNOBS;

/// A capture, and what was masked in it.
#[derive(Clone, Default)]
pub struct Captured {
    /// The `.host` text.
    pub text: String,
    /// The names that were replaced; none in an unmasked one.
    pub names: Names,
    /// The facts that were recorded, with nothing masked.
    pub facts: Snapshot,
}

/// Captures a source.
pub fn captured(source: &dyn Source, is_unmasked: bool) -> Captured {
    let recorder = Recorder::new(source);
    // Reading the facts is the recording.
    let facts = Snapshot::read(&recorder, |_| true);
    // What can be set, too, so that a plan can be made for the recording.
    let host = Host::read(&recorder);
    for knob in KNOBS {
        let _ = knob.sites(&host);
    }
    let mut tree = recorder.into_tree();
    drop_processes(&mut tree);
    let mut comments = vec![format!("made by wakewatt {}", env!("CARGO_PKG_VERSION"))];
    let mut names = Names::default();
    if is_unmasked {
        comments.push("UNMASKED: holds addresses and names, do not share".into());
    } else {
        comments.push("serial numbers, addresses and names are masked".into());
        names = mask::tree(&mut tree);
    }
    Captured { text: host_file::write(&tree, &comments), names, facts }
}

/// Which processes run, and what they have open, is nobody's business but for those that hold a latency limit or are
/// known to tune the machine; of those only the watched files stay. One process that refused to be looked at stays for
/// all of them, because it is why the list of holders may not be complete.
fn drop_processes(tree: &mut Tree) {
    let pid_of = |path: &str| path.strip_prefix("/proc/")?.split('/').next()?.parse::<u32>().ok();
    let is_denied = |error: &ReadError| error.kind == ErrorKind::Denied;
    let mut kept: BTreeSet<u32> = BTreeSet::new();
    for (path, target) in &tree.links {
        if target.as_ref().is_ok_and(|t| holders::is_watched(t)) {
            kept.extend(pid_of(path));
        }
    }
    for (path, content) in &tree.files {
        let comm = content.as_ref().ok().and_then(|b| std::str::from_utf8(b).ok()).map(str::trim_end);
        if path.ends_with("/comm") && comm.is_some_and(|c| holders::DAEMONS.iter().any(|d| d.comm == c)) {
            kept.extend(pid_of(path));
        }
    }
    let denied_links = tree.links.iter().filter(|(_, t)| t.as_ref().is_err_and(is_denied)).map(|(path, _)| path);
    let denied_folders = tree.folders.iter().filter(|(_, n)| n.as_ref().is_err_and(is_denied)).map(|(path, _)| path);
    let refused = denied_links.chain(denied_folders).find_map(|path| pid_of(path));
    let is_kept = |path: &str| pid_of(path).is_none_or(|pid| kept.contains(&pid));
    let is_refused = |path: &str| pid_of(path).is_some() && pid_of(path) == refused;
    tree.files.retain(|path, _| is_kept(path));
    tree.links.retain(|path, target| match target {
        Ok(target) => pid_of(path).is_none() || holders::is_watched(target),
        Err(error) => pid_of(path).is_none() || (is_refused(path) && is_denied(error)),
    });
    let links: BTreeSet<String> = tree.links.keys().cloned().collect();
    tree.folders.retain(|path, _| is_kept(path) || is_refused(path));
    for (path, names) in &mut tree.folders {
        let Ok(names) = names else { continue };
        if path == "/proc" {
            names.retain(|name| name.parse().is_ok_and(|pid| kept.contains(&pid) || refused == Some(pid)));
        } else if pid_of(path).is_some() {
            names.retain(|name| links.contains(&format!("{path}/{name}")));
        }
    }
}
