//! A trial boot under Debian's GRUB: a copy of the first entry with the new words, chosen once by grub-reboot.
//!
//! grub.cfg reads `custom.cfg` beside it (41_custom) and boots `next_entry` from its environment block once, having
//! cleared it first. It can clear it only where GRUB itself can write; elsewhere the machine would boot the trial for
//! ever, so there the trial is refused. The entry must be a copy because the drop-in would change all entries at once.

use super::plan::{BootCommand, FileEdit, TryOnce};
use super::{Argument, argument, look};
use wakewatt_core::source::Source;
use wakewatt_words::say;

const FOLDER: &str = "/boot/grub";
const CUSTOM: &str = "/boot/grub/custom.cfg";
const ENTRY: &str = "wakewatt-try";

/// The steps, or why there are none.
pub(crate) fn with_copied_entry(source: &dyn Source, arguments: &[Argument]) -> TryOnce {
    attempt(source, arguments).unwrap_or_else(|why| TryOnce::Refused { why })
}

fn attempt(source: &dyn Source, arguments: &[Argument]) -> Result<TryOnce, String> {
    let config = format!("{FOLDER}/grub.cfg");
    let text = match look::text(source, &config) {
        Ok(Some(text)) => text,
        Ok(None) => return Err(say!("{config} is not there, so there is no entry to copy")),
        Err(error) => return Err(error.to_string()),
    };
    if !text.contains("next_entry") || !text.contains("custom.cfg") {
        return Err(say!("{config} does not look at next_entry or at custom.cfg, so nothing can be booted once"));
    }
    if let Some(why) = look::why_grubenv_is_fixed(source, FOLDER) {
        return Err(why);
    }
    let before = look::bytes(source, CUSTOM).map_err(|e| e.to_string())?;
    if before.as_ref().is_some_and(|b| !b.starts_with(MARK.as_bytes())) {
        return Err(say!("{CUSTOM} belongs to somebody else"));
    }
    let body = first_entry(&text).ok_or_else(|| say!("the first entry of {config} was not understood"))?;
    let entry = copied(&body, arguments).ok_or_else(|| say!("the first entry of {config} has no linux line"))?;
    let choose = BootCommand::new(
        &["grub-reboot", ENTRY],
        &["grub-editenv", "/boot/grub/grubenv", "unset", "next_entry"],
        "the next boot, and only that one, takes the trial entry",
    );
    Ok(TryOnce::Offered {
        edits: FileEdit::text(CUSTOM, before, Some(entry)).into_iter().collect(),
        commands: vec![choose],
        to_keep: TryOnce::to_keep(),
    })
}

const MARK: &str = "# Written by wakewatt: a copy of the first boot entry, for one trial boot.\n";

/// The lines inside the braces of the first menu entry.
fn first_entry(text: &str) -> Option<Vec<&str>> {
    let mut lines = text.lines().skip_while(|l| !l.starts_with("menuentry "));
    lines.next().filter(|l| l.trim_end().ends_with('{'))?;
    let body: Vec<&str> = lines.by_ref().take_while(|l| l.trim_end() != "}").collect();
    (!body.is_empty() && !body.iter().any(|l| l.contains("menuentry "))).then_some(body)
}

fn copied(body: &[&str], arguments: &[Argument]) -> Option<String> {
    let is_linux = |l: &str| matches!(l.split_whitespace().next(), Some("linux" | "linuxefi"));
    body.iter().any(|l| is_linux(l)).then(|| {
        let mut text = format!("{MARK}menuentry 'wakewatt: one trial boot' --id {ENTRY} {{\n");
        for line in body {
            text.push_str(line.trim_end());
            if is_linux(line) {
                text.push_str(&format!(" {}", argument::join(arguments)));
            }
            text.push('\n');
        }
        text.push_str("}\n");
        text
    })
}
