//! Which line of which imported text a finding rests on, for whoever opens the run later.
//!
//! Facts of a run that was imported are kept as files of a kernel that nobody here has seen; what people gave was text. So each piece of
//! evidence is kept with the text and the line it was taken from. Of the text's name only what is no folder of somebody's stays, and
//! the line's own words go: a kernel log holds the name of its host in every one.

use crate::rules::{Answer, Ruling};
use serde::{Deserialize, Serialize};

/// Evidence, and the imported line it was taken from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cited {
    /// The kernel's file, as a rule writes it.
    pub path: String,
    /// What the finding says of it.
    pub says: String,
    /// The imported text.
    pub text: String,
    /// Its line, from 1.
    pub line: u32,
}

impl Cited {
    /// The text's name without the folders before it: of an archive's file what the archive calls it below the host's own folder.
    pub(super) fn short_text(&self) -> &str {
        let of_host = ["/proc/", "/sys/", "/sos_commands/"].iter().filter_map(|front| self.text.find(front)).min();
        match of_host {
            Some(at) if self.text[at..].starts_with("/sos_commands/") => &self.text[at + 1..],
            Some(at) => &self.text[at..],
            None => self.text.rsplit(['/', ':']).next().unwrap_or(&self.text),
        }
    }
}

/// In findings, a path becomes the imported line. A rule whose words have changed since still finds its path, if only one line is
/// known of it.
pub fn cite(rulings: &mut [Ruling], cited: &[Cited]) {
    for ruling in rulings {
        let Answer::Yes(finding) = &mut ruling.answer else { continue };
        for basis in &mut finding.evidence {
            let mut same = cited.iter().filter(|c| c.path == basis.path);
            let exact = same.clone().find(|c| c.says == basis.says);
            let only = same.next().filter(|_| same.next().is_none());
            if let Some(found) = exact.or(only) {
                basis.path = format!("{} line {}", found.text, found.line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_people_are_left_out() {
        let short = |text: &str| Cited { text: text.into(), ..Cited::default() }.short_text().to_string();
        assert_eq!(short("/home/eve/idle.txt"), "idle.txt");
        assert_eq!(short("a.tar.xz:sosreport-db7/proc/cmdline"), "/proc/cmdline");
        assert_eq!(short("x/sosreport-db7/sos_commands/processor/lscpu"), "sos_commands/processor/lscpu");
        assert_eq!(short("a.tgz:scc_db7/hardware.txt"), "hardware.txt");
        assert_eq!(short("idle.txt"), "idle.txt");
    }
}
