//! Why a meter gives no number.

use crate::samples::worded::worded;
use std::fmt;
use wakewatt_words::{say, word};

/// Why a meter gives no number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MeterGap {
    /// It works only where somebody names it, and nobody did: the option that names it, if there is one.
    NotAskedFor(String),
    /// What stood in the way: no such file, no permission, a counter that does not move.
    Said(String),
}

const NOT_ASKED_FOR: &str = "not asked for";

impl MeterGap {
    /// From a document.
    pub fn read(text: &str) -> MeterGap {
        match text.strip_prefix(NOT_ASKED_FOR).map(|rest| (rest, rest.strip_prefix("; give "))) {
            Some((_, Some(option))) => MeterGap::NotAskedFor(option.into()),
            Some(("", None)) => MeterGap::NotAskedFor(String::new()),
            _ => MeterGap::Said(text.into()),
        }
    }
}

impl fmt::Display for MeterGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MeterGap::NotAskedFor(option) if option.is_empty() => f.write_str(word!("not asked for")),
            MeterGap::NotAskedFor(option) => f.write_str(&say!("not asked for; give {option}")),
            MeterGap::Said(text) => f.write_str(text),
        }
    }
}

impl From<String> for MeterGap {
    fn from(text: String) -> MeterGap {
        MeterGap::Said(text)
    }
}

impl From<&str> for MeterGap {
    fn from(text: &str) -> MeterGap {
        MeterGap::Said(text.into())
    }
}

worded!(MeterGap);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let not = |option: &str| MeterGap::NotAskedFor(option.into());
        for gap in [not(""), not("--redfish URL"), MeterGap::Said("no BMC".into())] {
            assert_eq!(MeterGap::read(&gap.to_string()), gap);
        }
        assert_eq!(not("--redfish URL").to_string(), "not asked for; give --redfish URL");
    }
}
