//! What an interval speaks of. A window measured with ten thousand samples is known to a percent, and the next window of the
//! same machine lies somewhere else: the same two numbers are right about the one and wrong about the other. So every
//! interval carries its reach, as a type, and whoever shows it shows the reach.

use serde::{Deserialize, Serialize};
use std::fmt;
use wakewatt_words::word;

/// What an interval covers: where it would be if the same were measured again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Covers {
    /// The window it was measured in: how well that is known. The next window may lie outside.
    #[default]
    Window,
    /// The run it is from, over its windows or rounds: not another hour, another boot or another machine.
    Run,
    /// The hours in which several sessions of each side were measured: the sides did not take turns, so what drifts from hour to hour
    /// may be the difference.
    Hours,
    /// The machine, over several sessions of measuring.
    Machine,
    /// Machines such as these, over sessions on several of them.
    Machines,
}

impl Covers {
    /// For people, behind an interval.
    pub fn words(self) -> &'static str {
        match self {
            Covers::Window => word!("this window"),
            Covers::Run => word!("this run"),
            Covers::Hours => word!("these hours"),
            Covers::Machine => word!("this machine"),
            Covers::Machines => word!("these machines"),
        }
    }

    /// What an interval is good for, as a clause behind it.
    pub fn scope(self) -> &'static str {
        match self {
            Covers::Window => word!("holds for this window only"),
            Covers::Run => word!("holds for this run only"),
            Covers::Hours => word!("holds for these hours only"),
            Covers::Machine => word!("holds for this machine"),
            Covers::Machines => word!("holds for these machines"),
        }
    }

    /// For intervals that were published before they said so: of rounds.
    pub fn run() -> Covers {
        Covers::Run
    }
}

impl fmt::Display for Covers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}
