//! Over what time does a meter average?
//!
//! A BMC repeats the mean of its last minute. Read in a block of three seconds it says mostly what the blocks before drew, so
//! all arms look alike: "no difference" would be the meter's doing. An energy counter has no such memory: two readings give the
//! mean between them. Not here: what follows for an experiment's watts (`watts_by`).

use serde::{Deserialize, Serialize};
use wakewatt_words::{say, word};

/// How a reading comes about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Averaging {
    /// It counts energy, so two readings give the mean between them and nothing from before.
    Counter,
    /// A reading is the mean of about so long before it.
    Over {
        /// How long, in nanoseconds.
        ns: u64,
    },
    /// Over an unknown time: nobody says, so it may be longer than any block.
    #[default]
    Unknown,
}

impl Averaging {
    /// As the end of a sentence.
    pub fn words(self) -> String {
        match self {
            Averaging::Counter => word!("counts energy").into(),
            Averaging::Over { ns } => say!("averages over {:.1} s", ns as f64 / 1e9),
            Averaging::Unknown => word!("does not say over what time it averages").into(),
        }
    }
}
