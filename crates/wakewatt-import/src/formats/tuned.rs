//! `tuned-adm active`, `list`, `verify`, `recommend`: which profile somebody chose.
//!
//! A profile says what was asked for; what is in force say the kernel's files. So it becomes a remark, and no fact.

use crate::plain::pair;
use crate::reading::{Format, Reading, likely};
use crate::section::Section;

/// The format.
pub(super) const FORMAT: Format = Format { id: "tuned-adm", title: "tuned-adm", detect, read };

const ACTIVE: &str = "Current active profile";
const NONE: &str = "No current active profile";

fn detect(section: &Section<'_>) -> u32 {
    likely(section, "tuned-adm", |line| {
        line.starts_with(ACTIVE)
            || line.starts_with(NONE)
            || line.starts_with("Available profiles")
            || line.starts_with("Verif")
    })
}

fn read(reading: &mut Reading<'_>) {
    let mut is_list = false;
    for (at, line) in reading.open_lines() {
        let text = line.text.trim();
        if text.starts_with(ACTIVE) {
            match pair(text).filter(|(_, name)| !name.is_empty()) {
                Some((_, name)) => {
                    reading.say(format!("tuned-adm: the active profile is {name}"));
                    reading.n_taken += 1;
                    reading.take(at);
                }
                None => reading.refuse(at, "no profile is named"),
            }
        } else if text.starts_with(NONE) || text.starts_with("Verif") {
            reading.say(format!("tuned-adm: {text}"));
            reading.n_taken += 1;
            reading.take(at);
        } else if text.starts_with("Available profiles") {
            is_list = true;
            reading.unused(at);
        } else if (is_list && text.starts_with("- ") && !text.contains(": "))
            || text.starts_with("Preset profile")
            || text.starts_with("Profile selection mode")
            || text.starts_with("See tuned log")
        {
            reading.unused(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::formats::testing::{formats, read};

    #[test]
    fn the_profile_is_a_remark() {
        let found = read(
            "Available profiles:\n- balanced                    - General non-specialized tuned profile\n- latency-performance\nCurrent active profile: latency-performance\n",
        );
        assert_eq!(formats(&found), ["tuned-adm"]);
        assert!(
            found.document.remarks.iter().any(|r| r.ends_with("profile is latency-performance")),
            "{:?}",
            found.document.remarks
        );
        assert_eq!(found.document.files[0].n_not_understood, 0);
    }
}
