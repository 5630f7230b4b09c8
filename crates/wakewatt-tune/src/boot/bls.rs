//! Entries of the Boot Loader Specification: files of `key value` lines, one per kernel or deployment.
//!
//! `options` may stand several times; the kernel gets them joined. On RHEL 8 it is `$kernelopts`, a variable of GRUB's
//! environment block; `$tuned_params` is TuneD's. `x-` keys are extensions (bootc keeps the owners of words in them).

use super::line::words;
use super::look;
use super::plan::BootError;
use wakewatt_core::source::Source;

/// Where Fedora, RHEL and the ostree systems keep them.
pub(crate) const ENTRIES: &str = "/boot/loader/entries";
/// Our trial entry: GRUB puts letters below digits, so it is last in the menu and never the default; and it does not
/// begin with a digit, because older GRUB would take the name for a number.
pub(crate) const TRIAL: &str = "a-wakewatt-try";

/// One file.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Entry {
    /// All values of a key, in order.
    fn values<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        let pair = |l: &'a str| l.trim_start().split_once([' ', '\t']);
        self.text.lines().filter_map(pair).filter(move |(k, _)| *k == key).map(|(_, value)| value.trim())
    }

    /// The first value of a key.
    pub(crate) fn value<'a>(&'a self, key: &'a str) -> Option<&'a str> {
        self.values(key).next()
    }

    /// The words of the command line, variables as written.
    pub(crate) fn options(&self) -> Vec<String> {
        self.values("options").flat_map(words).collect()
    }

    /// Made by the installer, for the day when nothing else boots.
    pub(crate) fn is_rescue(&self) -> bool {
        self.path.contains("-0-rescue")
    }

    /// A copy with a title of its own and more words at the end of its first `options`; none if it has no such line.
    pub(crate) fn trial(&self, more: &str) -> Option<String> {
        let mut copy = String::from("# Written by wakewatt: a copy for one trial boot.\n");
        let mut has_options = false;
        for line in self.text.lines() {
            match line.split_whitespace().next() {
                Some("sort-key" | "id") => continue,
                Some("title") => copy.push_str("title wakewatt: one trial boot"),
                Some("options") if !has_options => {
                    copy.push_str(&format!("{} {more}", line.trim_end()));
                    has_options = true;
                }
                _ => copy.push_str(line.trim_end()),
            }
            copy.push('\n');
        }
        has_options.then_some(copy)
    }
}

/// Reads the entries of a folder, without our own trial; one that cannot be read is an error.
pub(crate) fn entries(source: &dyn Source, folder: &str) -> Result<Vec<Entry>, BootError> {
    let mut found = Vec::new();
    for path in look::files(source, folder, ".conf").into_iter().filter(|p| !p.contains("wakewatt-try")) {
        if let Some(bytes) = look::bytes(source, &path)? {
            found.push(Entry { path, text: String::from_utf8_lossy(&bytes).into_owned() });
        }
    }
    Ok(found)
}

/// A variable of GRUB's environment block: lines `name=value` in a file of 1024 bytes, filled up with `#`.
pub(crate) fn grubenv(source: &dyn Source, name: &str) -> Result<Option<String>, BootError> {
    let Some(bytes) = look::bytes(source, "/boot/grub2/grubenv")? else { return Ok(None) };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix('=')).map(str::to_string))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_taken_apart_and_copied() {
        let text =
            "title Fedora\nversion 6.1\noptions a=1\noptions  b\nx-options-source-tuned nohz=on\nlinux\n".to_string();
        let entry = Entry { path: "/x-0-rescue-1.conf".into(), text };
        assert_eq!((entry.options(), entry.is_rescue()), (vec!["a=1".to_string(), "b".into()], true));
        assert_eq!(entry.value("x-options-source-tuned"), Some("nohz=on"));
        assert!(entry.trial("c").unwrap().contains("options a=1 c\noptions  b\n"));
        let none = Entry { path: String::new(), text: "title\n".into() };
        assert!(none.trial("c").is_none() && none.options().is_empty());
    }
}
