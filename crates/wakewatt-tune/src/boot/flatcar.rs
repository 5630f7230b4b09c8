//! Flatcar Container Linux: a marked line of ours in grub.cfg on the OEM partition.
//!
//! The read-only image's grub.cfg sources `grub.cfg` of the partition labelled OEM and appends `$linux_append` to the
//! kernel's line. GRUB reads the file itself at boot, so nothing has to be regenerated. The partition is mounted at
//! /oem on newer images and at /usr/share/oem on older ones (flatcar/Flatcar#766). Ignition understands only plain
//! `set linux_append=` lines there, so our marker is a comment line of its own above ours.
//! There is no trial: both slots (USR-A, USR-B) read the same file.

use super::line::{sort_out, words};
use super::look;
use super::plan::{BootError, BootPlan, FileEdit, TryOnce};
use super::{Argument, BootLoader, Detected, LoaderDescription, argument, parameters, reboot, shell_line};
use wakewatt_core::source::Source;
use wakewatt_words::{say, word};

pub(crate) const FOLDERS: &[&str] = &["/oem", "/usr/share/oem"];
pub(crate) const MARK: &str = "# wakewatt wrote the next line; delete both to take its kernel parameters away";
pub(crate) const VARIABLE: &str = "linux_append";

/// See the head of this file.
pub struct Flatcar;

impl BootLoader for Flatcar {
    fn about(&self) -> &'static LoaderDescription {
        &LoaderDescription {
            id: "flatcar",
            title: "Flatcar Container Linux (grub.cfg on the OEM partition)",
            knowledge: "flatcar.org/docs, \"Other settings\"; flatcar/Flatcar#766",
        }
    }

    fn detect(&self, source: &dyn Source) -> Detected {
        match look::system_id(source).as_deref() {
            Some("flatcar") => Detected::Yes { because: say!("os-release says ID=flatcar") },
            _ => Detected::No,
        }
    }

    fn plan(&self, source: &dyn Source, arguments: &[Argument]) -> Result<BootPlan, BootError> {
        let path = place(source)?;
        let before = look::text(source, &path)?;
        let text = before.clone().unwrap_or_default();
        let rest = without_ours(&text);
        let mut shell = shell_line::Variables::new(&[VARIABLE]);
        let is_sure = shell.source(&rest.replace(&format!("set {VARIABLE}="), &format!("{VARIABLE}=")));
        let sorted = sort_out(arguments, &words(shell.get(VARIABLE)), &path)?;
        let mut notes = sorted.notes;
        if !is_sure {
            notes.push(say!("{path} sets {VARIABLE} in a way that only GRUB can follow; ours, the last, counts"));
        }
        let after = match sorted.missing.as_slice() {
            [] if rest.is_empty() => None,
            [] => Some(rest),
            missing => Some(with_ours(rest, missing)),
        };
        // A file that was there and empty stays as it is.
        let after = if before.as_deref() == Some("") && after.is_none() { before.clone() } else { after };
        let edits: Vec<FileEdit> = FileEdit::text(&path, before.map(String::into_bytes), after).into_iter().collect();
        let mut plan = BootPlan {
            loader: self.about().id.into(),
            arguments: arguments.to_vec(),
            edits,
            notes,
            ..BootPlan::default()
        };
        if !plan.is_empty() {
            plan.notes.push(reboot().into());
            plan.notes.push(
                say!("all entries of the menu read this file, so there is no clean one; `e` in the menu edits the line for one boot"),
            );
            plan.notes.extend(parameters::traps(arguments));
            plan.try_once = TryOnce::refused(word!(
                "both slots read the same file, so nothing can be booted once; `e` in GRUB's menu tries a line by hand"
            ));
        }
        Ok(plan)
    }
}

/// The grub.cfg that exists; else the one to make in the folder that is mounted.
fn place(source: &dyn Source) -> Result<String, BootError> {
    let file = |folder: &str| format!("{folder}/grub.cfg");
    let existing = FOLDERS.iter().map(|f| file(f)).find(|p| look::has(source, p));
    let mounted = || FOLDERS.iter().find(|f| look::has_folder(source, f)).map(|f| file(f));
    existing.or_else(mounted).ok_or_else(|| {
        BootError::refused(
            "/oem",
            word!("the OEM partition is not mounted, nor at /usr/share/oem"),
            word!("mount it: mount -L OEM /oem"),
        )
    })
}

/// The text without our marker and the line below it.
fn without_ours(text: &str) -> String {
    let mut rest = String::new();
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        if line.trim_end() == MARK {
            lines.next_if(|l| l.starts_with(&format!("set {VARIABLE}=\"${VARIABLE} ")));
        } else {
            rest.push_str(line);
        }
    }
    rest
}

fn with_ours(mut text: String, arguments: &[Argument]) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text + &format!("{MARK}\nset {VARIABLE}=\"${VARIABLE} {}\"\n", argument::join(arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_come_and_go() {
        let ours = Argument::parse_all("idle=poll nosmt").unwrap();
        for text in ["", "set oem_id=\"ec2\"\n", "a\n\nb\n"] {
            let with = with_ours(text.into(), &ours);
            assert_eq!(without_ours(&with), text);
            assert_eq!(with_ours(without_ours(&with), &ours), with);
        }
        assert_eq!(without_ours(&format!("a\n{MARK}\nset linux_append=\"mine\"\n")), "a\nset linux_append=\"mine\"\n");
        assert_eq!(without_ours(MARK), "");
    }
}
