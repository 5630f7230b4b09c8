//! The rule that a level of load broke, so that it does not count.
//!
//! What the surroundings did to a level says nothing of the settings it ran under, and takes its block out of an
//! experiment; what the settings may have done themselves stays in, and is told.

use super::worded::{between, in_english, worded};
use std::fmt;
use wakewatt_words::say;

/// Why a level does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrokenRule {
    /// The firmware took the CPUs (SMI).
    FirmwareInterrupted {
        /// So often.
        n: u64,
    },
    /// The quoted meter said nothing for too long.
    MeterSilent {
        /// Which.
        meter: String,
        /// Thousandths of the window.
        permille: u32,
    },
    /// Anything else: the rate, the queue, heat, others' work.
    Said(String),
}

const FIRMWARE: (&str, &str) = ("the firmware interrupted ", " times (SMI)");
const SILENT: [&str; 3] = ["the meter (", ") was silent for ", " % of the window"];

impl BrokenRule {
    /// From a document.
    pub fn read(text: &str) -> BrokenRule {
        let firmware =
            || Some(BrokenRule::FirmwareInterrupted { n: between(text, FIRMWARE.0, FIRMWARE.1)?.parse().ok()? });
        let silent = || {
            let (meter, percent) = between(text, SILENT[0], SILENT[2])?.split_once(SILENT[1])?;
            let (whole, tenth) = percent.split_once('.')?;
            let permille = whole.parse::<u32>().ok()?.checked_mul(10)?.checked_add(tenth.parse().ok()?)?;
            Some(BrokenRule::MeterSilent { meter: meter.into(), permille }).filter(|rule| in_english(rule) == text)
        };
        firmware().or_else(silent).unwrap_or_else(|| BrokenRule::Said(text.into()))
    }

    /// Did the surroundings break it, whatever the settings were?
    pub fn is_by_surroundings(&self) -> bool {
        match self {
            BrokenRule::FirmwareInterrupted { .. } | BrokenRule::MeterSilent { .. } => true,
            BrokenRule::Said(_) => false,
        }
    }
}

impl fmt::Display for BrokenRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BrokenRule::FirmwareInterrupted { n } => f.write_str(&say!("the firmware interrupted {n} times (SMI)")),
            BrokenRule::MeterSilent { meter, permille } => {
                let percent = format!("{}.{}", permille / 10, permille % 10);
                f.write_str(&say!("the meter ({meter}) was silent for {percent} % of the window"))
            }
            BrokenRule::Said(text) => f.write_str(text),
        }
    }
}

impl From<String> for BrokenRule {
    fn from(text: String) -> BrokenRule {
        BrokenRule::Said(text)
    }
}

impl From<&str> for BrokenRule {
    fn from(text: &str) -> BrokenRule {
        BrokenRule::Said(text.into())
    }
}

worded!(BrokenRule);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let silent = |permille| BrokenRule::MeterSilent { meter: "hwmon".into(), permille };
        for rule in [BrokenRule::FirmwareInterrupted { n: 3 }, silent(60), silent(1000), "fell short".into()] {
            assert_eq!(BrokenRule::read(&rule.to_string()), rule);
        }
        assert_eq!(silent(61).to_string(), "the meter (hwmon) was silent for 6.1 % of the window");
        for text in ["the firmware interrupted often times (SMI)", "the meter (x) was silent for 6.11 % of the window"]
        {
            assert_eq!(BrokenRule::read(text), text.into());
        }
    }
}
