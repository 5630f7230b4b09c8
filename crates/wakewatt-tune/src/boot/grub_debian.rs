//! Debian and Ubuntu with GRUB: a drop-in of our own, and update-grub.
//!
//! grub-mkconfig sources /etc/default/grub and then /etc/default/grub.d/*.cfg, as shell, in the order of their names.
//! Cloud images *assign* GRUB_CMDLINE_LINUX_DEFAULT in such files, so ours must come after them: hence `zz-`. A normal
//! entry gets GRUB_CMDLINE_LINUX and GRUB_CMDLINE_LINUX_DEFAULT, a recovery entry the former alone: appending to the
//! latter keeps the recovery entry clean. No shared file is touched.
//! Sources: grub-mkconfig and 10_linux of Debian's grub2 2.06 and 2.12; proven by `cargo xtask boot-tree`.

use super::line::{sort_out, words};
use super::look::{self, BootedBy};
use super::plan::{BootCommand, BootError, BootPlan, FileEdit, TryOnce};
use super::{Argument, BootLoader, Detected, LoaderDescription, argument, grub_try, parameters, reboot, shell_line};
use wakewatt_core::source::Source;
use wakewatt_words::{say, word};

/// Our file.
pub const DROP_IN: &str = "/etc/default/grub.d/zz-wakewatt.cfg";
const SHARED: &str = "/etc/default/grub";
const FOLDER: &str = "/etc/default/grub.d";
pub(crate) const VARIABLE: &str = "GRUB_CMDLINE_LINUX_DEFAULT";

/// See the head of this file.
pub struct GrubDebian;

impl BootLoader for GrubDebian {
    fn about(&self) -> &'static LoaderDescription {
        &LoaderDescription {
            id: "grub-debian",
            title: "GRUB as on Debian and Ubuntu (update-grub)",
            knowledge: "grub-mkconfig of Debian's grub2; /usr/share/doc/grub2-common",
        }
    }

    fn detect(&self, source: &dyn Source) -> Detected {
        let Some(program) = look::program(source, "update-grub") else { return Detected::No };
        let Some(config) = [SHARED, FOLDER].into_iter().find(|p| look::has(source, p) || look::has_folder(source, p))
        else {
            return Detected::No;
        };
        match look::booted_by(source) {
            BootedBy::SystemdBoot(_) => Detected::No,
            BootedBy::Grub(why) => Detected::Yes { because: say!("{program} and {config} exist, and {why}") },
            BootedBy::Unknown if super::systemd_boot::is_installed(source).is_some() => Detected::Unsure {
                why: say!(
                    "{program} and {config} exist, but so do files of systemd-boot, and no trace tells which booted"
                ),
            },
            BootedBy::Unknown => Detected::Yes { because: say!("{program} and {config} exist") },
        }
    }

    fn plan(&self, source: &dyn Source, arguments: &[Argument]) -> Result<BootPlan, BootError> {
        let before = look::bytes(source, DROP_IN)?;
        let old = ours(before.as_deref().unwrap_or_default());
        let Others { line, mut notes, has_recovery } = others(source)?;
        let sorted = sort_out(arguments, &line, word!("the GRUB configuration"))?;
        notes.extend(sorted.notes);
        if !arguments.is_empty() && !sorted.missing.is_empty() {
            nothing_comes_later(source)?;
        }
        let after = (!sorted.missing.is_empty()).then(|| drop_in(&sorted.missing));
        let edits: Vec<FileEdit> = FileEdit::text(DROP_IN, before, after).into_iter().collect();
        let mut plan = BootPlan {
            loader: self.about().id.into(),
            arguments: arguments.to_vec(),
            edits,
            notes,
            ..BootPlan::default()
        };
        if plan.edits.is_empty() {
            return Ok(plan);
        }
        let why = word!("writes /boot/grub/grub.cfg anew from the files under /etc/default");
        plan.commands.push(BootCommand::new(&["update-grub"], &["update-grub"], why));
        plan.notes.push(match has_recovery {
            true => say!("recovery entries do not get these parameters"),
            false => {
                say!("GRUB_DISABLE_RECOVERY is set, so there is no entry without them; `e` in the menu edits a line")
            }
        });
        plan.notes.push(reboot().into());
        plan.notes.extend(parameters::traps(arguments));
        plan.try_once = match sorted.missing.as_slice() {
            [] => TryOnce::refused(word!("taking parameters away needs no trial; the recovery entry has none of them")),
            missing => TryOnce::lingering(&old, missing).or_else(|| Some(grub_try::with_copied_entry(source, missing))),
        };
        Ok(plan)
    }
}

/// What our file begins with.
pub(crate) const HEAD: &str = "\
    # Written by wakewatt: kernel parameters for the normal boot entries. Recovery entries stay without them.\n\
    # To take them away by hand: delete this file and run update-grub.\n";

/// The file, whole. Arguments hold no character that a shell would read as more than text.
fn drop_in(arguments: &[Argument]) -> String {
    format!("{HEAD}{VARIABLE}=\"${VARIABLE} {}\"\n", argument::join(arguments))
}

/// The words of our own drop-in, for the decision about a trial only.
fn ours(drop_in: &[u8]) -> Vec<Argument> {
    let mut shell = shell_line::Variables::new(&[VARIABLE]);
    shell.source(&String::from_utf8_lossy(drop_in));
    words(shell.get(VARIABLE)).iter().filter_map(|word| Argument::parse(word).ok()).collect()
}

/// What everybody else configures, as far as the files can be read without running them.
struct Others {
    /// The words of normal entries.
    line: Vec<String>,
    notes: Vec<String>,
    has_recovery: bool,
}

fn others(source: &dyn Source) -> Result<Others, BootError> {
    let mut shell = shell_line::Variables::new(&["GRUB_CMDLINE_LINUX", VARIABLE, "GRUB_DISABLE_RECOVERY"]);
    let mut notes = Vec::new();
    let drop_ins = look::files(source, FOLDER, ".cfg").into_iter().filter(|p| p != DROP_IN);
    for path in std::iter::once(SHARED.to_string()).chain(drop_ins) {
        let Some(bytes) = look::bytes(source, &path)? else { continue };
        if !shell.source(&String::from_utf8_lossy(&bytes)) {
            notes.push(format!(
                "{path} sets the command line in a way that only a shell can follow; a parameter may be there twice \
                 afterwards, and ours, the last, counts"
            ));
        }
    }
    let mut line = words(shell.get("GRUB_CMDLINE_LINUX"));
    line.extend(words(shell.get(VARIABLE)));
    Ok(Others { line, notes, has_recovery: shell.get("GRUB_DISABLE_RECOVERY") != "true" })
}

/// A file that sorts after ours and assigns the variable would throw our words out without a sound.
fn nothing_comes_later(source: &dyn Source) -> Result<(), BootError> {
    let ours = DROP_IN.to_ascii_lowercase();
    for path in look::files(source, FOLDER, ".cfg") {
        let is_later = path != DROP_IN && path.to_ascii_lowercase() > ours;
        if is_later && look::text(source, &path)?.is_some_and(|t| t.contains(&format!("{VARIABLE}="))) {
            let what = say!("is read after {DROP_IN} and sets {VARIABLE}, so our parameters could be lost");
            return Err(BootError::refused(
                path,
                what,
                word!("give that file a name that sorts before zz-wakewatt.cfg"),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::line;
    use proptest::prelude::*;
    use std::process::Command;
    use wakewatt_core::source::Tree;

    /// What a shell makes of the drop-in, sourced after a cloud image's assignment.
    fn sourced(text: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("zz-wakewatt.cfg");
        std::fs::write(&path, text).unwrap();
        let script = "set -eu; cd \"$2\"; GRUB_CMDLINE_LINUX_DEFAULT='quiet splash'; . \"$1\"; printf '%s' \"$GRUB_CMDLINE_LINUX_DEFAULT\"";
        let out = Command::new("sh").args(["-c", script, "sh"]).arg(&path).arg(folder.path()).output().unwrap();
        assert!(out.status.success() && out.stderr.is_empty(), "{text}: {}", String::from_utf8_lossy(&out.stderr));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "{text}: sourcing it made a file");
        String::from_utf8(out.stdout).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        /// Any text: refused, or a shell gives back exactly that word. Nothing in between.
        #[test]
        fn no_text_reaches_the_shell(texts in prop::collection::vec("[a-z]{0,3}[a-zA-Z0-9._\\-=:,/$`\"'; |&<>(){}*?~!#\\\\\n\t]{0,12}", 1..5)) {
            let arguments: Vec<Argument> = texts.iter().filter_map(|t| Argument::parse(t).ok()).collect();
            let wanted: Vec<String> = arguments.iter().map(Argument::to_string).collect();
            prop_assume!(!arguments.is_empty());
            let line = sourced(&drop_in(&arguments));
            let words: Vec<&str> = line.split_whitespace().collect();
            prop_assert_eq!(&words[..2], &["quiet", "splash"][..]);
            prop_assert_eq!(&words[2..], &wanted[..]);
            prop_assert_eq!(line::words(&line).len(), words.len());
        }

        /// Nearly only good text, so that most runs reach the shell.
        #[test]
        fn good_words_come_back_as_they_are(texts in prop::collection::vec("[a-z][a-z0-9_.\\-]{0,20}(=[A-Za-z0-9._,:/+@=\\-]{0,20})?", 1..6)) {
            let arguments: Vec<Argument> = texts.iter().filter_map(|t| Argument::parse(t).ok()).collect();
            prop_assume!(!arguments.is_empty());
            let wanted: Vec<String> = arguments.iter().map(Argument::to_string).collect();
            let line = sourced(&drop_in(&arguments));
            prop_assert_eq!(line.split_whitespace().skip(2).collect::<Vec<_>>(), wanted);
        }

        /// No file of a machine makes the planner panic.
        #[test]
        fn no_file_breaks_the_plan(text in "\\PC{0,80}", drop_in in "\\PC{0,40}") {
            let mut tree = Tree::default();
            tree.files.insert(SHARED.into(), Ok(text.clone().into_bytes()));
            tree.files.insert("/boot/grub/grub.cfg".into(), Ok(format!("next_entry custom.cfg\nmenuentry {text} {{\n").into_bytes()));
            tree.files.insert(DROP_IN.into(), Ok(drop_in.into_bytes()));
            let _ = GrubDebian.plan(&tree, &Argument::parse_all("idle=poll").unwrap());
        }
    }
}
