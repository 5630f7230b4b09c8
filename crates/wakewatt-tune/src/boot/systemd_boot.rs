//! systemd-boot with type 1 entries: /etc/kernel/cmdline, and kernel-install once per kernel.
//!
//! kernel-install writes an entry per kernel with the line from /etc/kernel/cmdline. That file is one line by nature, so
//! our words go to its end; [`super::record`] remembers them. Without that file (and /usr/lib/kernel/cmdline) it takes
//! /proc/cmdline of the *running* kernel: undoing from a kernel that was booted with our words would make them
//! permanent. So a missing file is refused, with the line to put there. Editing an entry directly is lost with the next
//! kernel, and in a unified kernel image (type 2) the line is built in and often signed: refused as well.
//! Sources: kernel-install(8), 90-loaderentry.install and bootctl of systemd 252 to 257.

use super::line::{last_of, sort_out, without, words};
use super::look::{self, BootedBy};
use super::plan::{BootCommand, BootError, BootPlan, FileEdit, TryOnce};
use super::record::Record;
use super::{Argument, BootLoader, Detected, LoaderDescription, argument, parameters, reboot};
use wakewatt_core::source::Source;
use wakewatt_words::{say, word};

pub(crate) const LINE: &str = "/etc/kernel/cmdline";
const ID: &str = "systemd-boot";
/// Where the EFI system partition, or the extended boot partition, may be mounted.
const PARTITIONS: &[&str] = &["/efi", "/boot", "/boot/efi"];
/// Without a sort key, and with a name below every machine id and title: last in the menu, never the default.
const TRIAL: &str = "0-wakewatt-try.conf";

/// Left by systemd-stub, the program inside a unified kernel image.
const STUB: &str = "/sys/firmware/efi/efivars/StubInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";

/// See the head of this file.
pub struct SystemdBoot;

/// The loader's own configuration, if it was ever installed here.
pub(crate) fn is_installed(source: &dyn Source) -> Option<String> {
    let config = || PARTITIONS.iter().map(|p| format!("{p}/loader/loader.conf")).find(|p| look::has(source, p));
    let has_tool = || look::program(source, "bootctl").is_some() && look::has_folder(source, "/etc/kernel");
    config().or_else(|| (has_tool() && !entries(source).is_empty() && !has_grub(source)).then(|| LINE.into()))
}

fn has_grub(source: &dyn Source) -> bool {
    look::program(source, "update-grub").is_some() || look::program(source, "grubby").is_some()
}

/// Entries of type 1, whole paths.
fn entries(source: &dyn Source) -> Vec<String> {
    PARTITIONS.iter().flat_map(|p| look::files(source, &format!("{p}/loader/entries"), ".conf")).collect()
}

impl BootLoader for SystemdBoot {
    fn about(&self) -> &'static LoaderDescription {
        &LoaderDescription {
            id: ID,
            title: "systemd-boot (kernel-install, /etc/kernel/cmdline)",
            knowledge: "kernel-install(8), bootctl(1), the Boot Loader Specification",
        }
    }

    fn detect(&self, source: &dyn Source) -> Detected {
        match (look::booted_by(source), is_installed(source)) {
            (BootedBy::SystemdBoot(because), _) => Detected::Yes { because },
            (BootedBy::Grub(_), _) | (_, None) => Detected::No,
            (BootedBy::Unknown, Some(path)) if has_grub(source) => Detected::Unsure {
                why: say!("{path} exists, but so do the tools of GRUB, and no trace tells which booted"),
            },
            (BootedBy::Unknown, Some(path)) => Detected::Yes { because: format!("{path} exists") },
        }
    }

    fn plan(&self, source: &dyn Source, arguments: &[Argument]) -> Result<BootPlan, BootError> {
        refuse_proxmox(source)?;
        refuse_unified_images(source)?;
        let record = Record::read(source, ID)?;
        let Some(before) = look::text(source, LINE)? else {
            if arguments.is_empty() {
                let notes = vec![say!("{LINE} does not exist, so wakewatt has added nothing to it")];
                return Ok(BootPlan { loader: ID.into(), notes, ..BootPlan::default() });
            }
            return Err(missing_line(source));
        };
        let now = words(&before);
        let sorted = sort_out(arguments, &without(&now, &record.added), LINE)?;
        let mut notes = sorted.notes;
        let gone: Vec<_> = record.added.iter().filter(|a| !now.contains(&a.to_string())).collect();
        if !gone.is_empty() {
            notes.push(say!("somebody has taken {} out of {LINE} since; so be it", argument::join(gone)));
        }
        let after = edited(&before, &record.added, &sorted.missing);
        let line = FileEdit::text(LINE, Some(before.into_bytes()), Some(after));
        let is_line_new = line.is_some();
        let edits = line.into_iter().chain(record.edit(ID, &sorted.missing, &[])).collect();
        let mut plan =
            BootPlan { loader: ID.into(), arguments: arguments.to_vec(), edits, notes, ..BootPlan::default() };
        if is_line_new {
            plan.commands = install_all(source)?;
            plan.notes.push(reboot().into());
            plan.notes.push(say!("there is no recovery entry; in the menu, `e` edits the line for one boot"));
            plan.notes.extend(parameters::traps(arguments));
            plan.try_once = Some(match sorted.missing.as_slice() {
                [] => TryOnce::Refused { why: say!("taking parameters away needs no trial") },
                missing => match TryOnce::lingering(&record.added, missing) {
                    Some(refused) => refused,
                    None => trial(source, missing).unwrap_or_else(|why| TryOnce::Refused { why }),
                },
            });
        }
        Ok(plan)
    }
}

/// A line with our old words taken out and the new ones at the end, the rest byte for byte.
fn edited(before: &str, old: &[Argument], new: &[Argument]) -> String {
    let body = before.trim_end();
    let (mut body, tail) = (body.to_string(), &before[body.len()..]);
    for argument in old {
        let word = argument.to_string();
        let starts = |at: usize| body[..at].chars().next_back().is_none_or(char::is_whitespace);
        let ends = |at: usize| body[at + word.len()..].chars().next().is_none_or(char::is_whitespace);
        let Some(at) = body.rmatch_indices(&word).map(|(at, _)| at).find(|at| starts(*at) && ends(*at)) else {
            continue;
        };
        // The blank that we put in front goes with it.
        let from = if body[..at].ends_with(' ') { at - 1 } else { at };
        body.replace_range(from..at + word.len(), "");
    }
    for argument in new {
        if !body.is_empty() {
            body.push(' ');
        }
        body.push_str(&argument.to_string());
    }
    body + tail
}

fn missing_line(source: &dyn Source) -> BootError {
    let base = source.read("/usr/lib/kernel/cmdline").or_else(|_| source.read("/proc/cmdline")).unwrap_or_default();
    let base = words(&String::from_utf8_lossy(&base));
    let own = ["BOOT_IMAGE=", "initrd="];
    let line: Vec<String> = base.into_iter().filter(|w| !own.iter().any(|o| w.starts_with(o))).collect();
    let advice = match last_of(&line, "root") {
        Some(_) => say!("write the line you boot with there, for instance: {}", line.join(" ")),
        None => say!("write the line you boot with there (see the options line of an entry)"),
    };
    let what = "does not exist; kernel-install would take the running kernel's line instead, and undoing could make a \
                parameter permanent";
    BootError::refused(LINE, what, advice)
}

fn refuse_unified_images(source: &dyn Source) -> Result<(), BootError> {
    let advice = format!(
        "add the parameters to {LINE}, rebuild and sign the image with the tool that made it (ukify, dracut, mkosi), and \
         keep the old image to boot from"
    );
    if let Some((path, layout)) = layout(source)? {
        if layout == "uki" {
            let what = word!("says layout=uki: the command line is built into a unified kernel image");
            return Err(BootError::refused(path, what, advice));
        }
    }
    if look::has(source, STUB) {
        let what = word!("exists: the running kernel came from a unified kernel image, with its command line built in");
        return Err(BootError::refused(STUB, what, advice));
    }
    let images = PARTITIONS.iter().flat_map(|p| look::files(source, &format!("{p}/EFI/Linux"), ".efi")).next();
    match images {
        Some(image) if entries(source).is_empty() => {
            let what =
                word!("is a unified kernel image, and there is no entry of type 1: the command line is built in");
            Err(BootError::refused(image, what, advice))
        }
        _ => Ok(()),
    }
}

/// `layout=` of kernel-install: the first install.conf that exists, then the drop-ins, of which the last wins.
fn layout(source: &dyn Source) -> Result<Option<(String, String)>, BootError> {
    let folders = ["/etc/kernel", "/run/kernel", "/usr/lib/kernel"];
    let main = folders.iter().map(|f| format!("{f}/install.conf")).find(|p| look::has(source, p));
    let drop_ins = folders.iter().rev().flat_map(|f| look::files(source, &format!("{f}/install.conf.d"), ".conf"));
    let mut found = None;
    for path in main.into_iter().chain(drop_ins) {
        let text = look::text(source, &path)?.unwrap_or_default();
        if let Some(value) = text.lines().rev().find_map(|l| l.trim().strip_prefix("layout=")) {
            found = Some((path, value.trim().to_string()));
        }
    }
    Ok(found)
}

/// Proxmox VE copies kernels and entries to its boot partitions with a tool of its own.
fn refuse_proxmox(source: &dyn Source) -> Result<(), BootError> {
    let path = "/etc/kernel/proxmox-boot-uuids";
    if !look::has(source, path) {
        return Ok(());
    }
    let advice = say!("add the parameters to the end of {LINE} and run proxmox-boot-tool refresh");
    Err(BootError::refused(
        path,
        word!("exists: the entries are written by proxmox-boot-tool, not by kernel-install"),
        advice,
    ))
}

/// kernel-install for every kernel that is installed; the newest name last, as a package would do it.
fn install_all(source: &dyn Source) -> Result<Vec<BootCommand>, BootError> {
    let mut commands = Vec::new();
    let modules = ["/usr/lib/modules", "/lib/modules"].into_iter().find(|p| look::has_folder(source, p));
    for version in modules.map(|m| source.list(m).unwrap_or_default()).unwrap_or_default() {
        let places = [format!("{}/{version}/vmlinuz", modules.unwrap_or_default()), format!("/boot/vmlinuz-{version}")];
        let Some(image) = places.iter().find(|p| look::has(source, p)) else { continue };
        let argv = ["kernel-install", "add", &version, image];
        commands.push(BootCommand::new(&argv, &argv, say!("writes the boot entry of {version} anew from {LINE}")));
    }
    if commands.is_empty() {
        let what = word!("holds no kernel with an image in it or in /boot, so no entry can be written anew");
        return Err(BootError::refused(
            "/usr/lib/modules",
            what,
            word!("install a kernel package, or run kernel-install yourself"),
        ));
    }
    Ok(commands)
}

/// A copy of the running kernel's entry with the new words.
fn trial(source: &dyn Source, arguments: &[Argument]) -> Result<TryOnce, String> {
    let release = source.read("/proc/sys/kernel/osrelease").map_err(|_| "the running kernel's version is not known")?;
    let release = String::from_utf8_lossy(&release).trim().to_string();
    let all = entries(source);
    let is_ours = |p: &&String| !release.is_empty() && p.contains(&release) && !p.ends_with(TRIAL);
    let entry = all.iter().find(is_ours).ok_or_else(|| say!("no entry of the running kernel {release} to copy"))?;
    let text = look::text(source, entry).ok().flatten().ok_or_else(|| say!("{entry} cannot be read"))?;
    let mut copy = String::from("# Written by wakewatt: a copy for one trial boot.\n");
    let mut has_options = false;
    for line in text.lines() {
        match line.split_whitespace().next() {
            Some("sort-key") => continue,
            Some("title") => copy.push_str("title      wakewatt: one trial boot"),
            Some("options") if !has_options => {
                copy.push_str(&format!("{} {}", line.trim_end(), argument::join(arguments)));
                has_options = true;
            }
            _ => copy.push_str(line.trim_end()),
        }
        copy.push('\n');
    }
    if !has_options {
        return Err(say!("{entry} has no options line"));
    }
    let path = format!("{}/{TRIAL}", entry.rsplit_once('/').map_or("", |(folder, _)| folder));
    let before = look::bytes(source, &path).map_err(|e| e.to_string())?;
    let choose = BootCommand::new(
        &["bootctl", "set-oneshot", TRIAL],
        &["bootctl", "set-oneshot", ""],
        "the next boot, and only that one, takes the trial entry",
    );
    let edits = FileEdit::text(&path, before, Some(copy)).into_iter().collect();
    Ok(TryOnce::Offered { edits, commands: vec![choose], to_keep: TryOnce::to_keep() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_words_come_and_go_without_a_trace() {
        let ours = Argument::parse_all("idle=poll nosmt").unwrap();
        for line in ["root=x ro\n", "root=x  ro", "", "\n", "idle=poll root=x\n", "a=idle=poll \n"] {
            let with = edited(line, &[], &ours);
            assert!(with.trim_end().ends_with("idle=poll nosmt"), "{with:?}");
            assert_eq!(edited(&with, &ours, &[]), line);
            assert_eq!(edited(&with, &ours, &ours), with);
        }
    }
}
