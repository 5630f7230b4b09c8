//! Settings that are set again at every boot: a profile of what was asked for, and the units that apply it.

use super::{Asked, OrderError, Steps};
use crate::apply::FileChange;
use crate::profile::{self, Profile, to_toml};
use crate::request::Request;
use crate::systemd;
use std::io;
use std::path::{Path, PathBuf};
use wakewatt_host::store::{Disk, Store};

/// The profile and the units; what is there already is looked at under `root`.
pub(super) fn add(asked: &Asked, root: &Path, to: &mut Steps) -> Result<(), OrderError> {
    let under = |path: &str| root.join(path.trim_start_matches('/'));
    let mut write =
        |path: &str, text: String| to.files.push(FileChange { path: format!("file:{path}"), to: Some(text) });
    let kept = kept(&under(systemd::BOOT_PROFILE))?;
    let (about, all) = together(&kept, asked);
    write(systemd::BOOT_PROFILE, to_toml(&about, &all));
    if !under("/etc/systemd/system").is_dir() {
        to.notes.push(format!(
            "no systemd here: let your init run `wakewatt tune apply {} --keep-going --at-boot`",
            systemd::BOOT_PROFILE
        ));
        return Ok(());
    }
    let program = systemd::this_program()
        .map_err(|error| OrderError::Refused(format!("cannot find the path of this program: {error}")))?;
    if let Some(why) = systemd::unsafe_path(Path::new(&program)) {
        return Err(OrderError::Refused(format!("--persist: {why}")));
    }
    for unit in systemd::units(&program) {
        if under(unit.path).parent().is_some_and(Path::is_dir) {
            write(unit.path, unit.text);
        }
    }
    to.commands.extend(enabling(under));
    to.notes.push("set again at every boot by wakewatt-apply.service".into());
    Ok(())
}

/// What earlier transactions have set for every boot: it is written again, so it must not be somebody else's.
fn kept(file: &Path) -> Result<Profile, OrderError> {
    let refused = |why: String| OrderError::Refused(format!("{}: {why}", systemd::BOOT_PROFILE));
    let text = match Disk.load(file) {
        Ok(Some(bytes)) => String::from_utf8(bytes).map_err(io::Error::other),
        Ok(None) => Err(io::ErrorKind::NotFound.into()),
        Err(why) => return Err(refused(why.what)),
    };
    profile::kept(text).map_err(refused)
}

/// What is kept stays kept, unless this says otherwise of the same place; with what it is all about.
pub(super) fn together(kept: &Profile, asked: &Asked) -> (String, Vec<Request>) {
    let is_overruled = |old: &&Request| asked.requests.iter().any(|new| new.name == old.name && new.place == old.place);
    let mut all: Vec<Request> = kept.all_requests().iter().filter(|old| !is_overruled(old)).cloned().collect();
    let about = if all.is_empty() { asked.purpose.clone() } else { format!("{}; {}", kept.about, asked.purpose) };
    all.extend(asked.requests.iter().cloned());
    (about, all)
}

/// What makes systemd know and start the units, each with its inverse.
pub(super) fn enabling(under: impl Fn(&str) -> PathBuf) -> Vec<(Vec<String>, Vec<String>)> {
    let words = |text: &str| text.split(' ').map(str::to_string).collect::<Vec<_>>();
    let mut commands = Vec::new();
    if under("/run/systemd/system").is_dir() {
        commands.push((words("systemctl daemon-reload"), words("systemctl daemon-reload")));
    }
    // Removing the link by hand does what disabling does and cannot fail because the unit is gone already.
    for (unit, target) in [(systemd::APPLY_UNIT, "multi-user"), ("wakewatt-confirm.timer", "timers")] {
        let link = format!("/etc/systemd/system/{target}.target.wants/{unit}");
        // Enabled before is none of our doing, and stays.
        if under(&link).symlink_metadata().is_ok() {
            continue;
        }
        commands.push((words(&format!("systemctl enable --quiet {unit}")), words(&format!("rm -f {link}"))));
    }
    commands
}
