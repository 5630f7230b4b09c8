//! What wakewatt added to a line that is not its own: `/etc/wakewatt/boot-arguments`.
//!
//! grubby, rpm-ostree and /etc/kernel/cmdline keep one line for everybody and remember no author. So the plan writes
//! down, as one of its edits, which words are ours and which words they replaced. Plain text, so that a person can
//! take them out by hand. It lies in /etc because it describes configuration and travels with it.

use super::argument::Argument;
use super::look;
use super::plan::{BootError, FileEdit};
use wakewatt_core::source::Source;

pub const RECORD: &str = "/etc/wakewatt/boot-arguments";

/// Its meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// Ours.
    pub(crate) added: Vec<Argument>,
    /// What a tool threw out to make room for ours, to be put back.
    pub(crate) replaced: Vec<Argument>,
    /// The file as read.
    before: Option<Vec<u8>>,
}

impl Record {
    /// Reads it; an absent file is an empty record.
    pub(crate) fn read(source: &dyn Source, loader: &str) -> Result<Record, BootError> {
        let Some(text) = look::text(source, RECORD)? else { return Ok(Record::default()) };
        let bad = |line: &str| {
            let advice = "take the words out of the boot configuration by hand and delete the file";
            BootError::refused(RECORD, format!("the line {line:?} is not understood"), advice)
        };
        let mut record = Record { before: Some(text.clone().into_bytes()), ..Record::default() };
        for line in text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
            match line.split_once(' ') {
                Some(("loader", name)) if name == loader => {}
                Some(("loader", name)) => {
                    let what =
                        format!("was written for the boot loader {name}, and this machine now boots by {loader}");
                    let advice = "if the words in it no longer reach the kernel, delete the file";
                    return Err(BootError::refused(RECORD, what, advice));
                }
                Some(("added", word)) => record.added.push(Argument::parse(word).map_err(|_| bad(line))?),
                Some(("replaced", word)) => record.replaced.push(Argument::parse(word).map_err(|_| bad(line))?),
                _ => return Err(bad(line)),
            }
        }
        Ok(record)
    }

    /// The edit that makes the file say this instead; it goes when nothing is ours.
    pub(crate) fn edit(&self, loader: &str, added: &[Argument], replaced: &[Argument]) -> Option<FileEdit> {
        let mut text = format!(
            "# Written by wakewatt: kernel parameters it added to a line that is not its own.\n\
             # It reads this to take them away again. \"replaced\" were there before and come back.\nloader {loader}\n"
        );
        added.iter().for_each(|a| text.push_str(&format!("added {a}\n")));
        replaced.iter().for_each(|a| text.push_str(&format!("replaced {a}\n")));
        FileEdit::text(RECORD, self.before.clone(), (!added.is_empty()).then_some(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    #[test]
    fn comes_back_as_written_and_refuses_the_rest() {
        let added = Argument::parse_all("idle=poll nosmt").unwrap();
        let replaced = Argument::parse_all("idle=halt").unwrap();
        let edit = Record::default().edit("x", &added, &replaced).unwrap();
        let mut tree = Tree::default();
        tree.files.insert(RECORD.into(), Ok(edit.after.unwrap()));
        let read = Record::read(&tree, "x").unwrap();
        assert_eq!((&read.added, &read.replaced), (&added, &replaced));
        assert!(read.edit("x", &added, &replaced).is_none(), "nothing changed");
        assert_eq!(read.edit("x", &[], &[]).unwrap().after, None);
        assert!(Record::read(&tree, "y").unwrap_err().to_string().contains("boot loader x"));
        for bad in ["nonsense\n", "added $(id)\n", "added a b\n"] {
            tree.files.insert(RECORD.into(), Ok(bad.into()));
            assert!(Record::read(&tree, "x").is_err(), "{bad}");
        }
    }
}
