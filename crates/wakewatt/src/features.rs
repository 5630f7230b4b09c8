//! What this program can be built without, and what it says when it is asked for that.
//!
//! A fresh clone wants a verdict in minutes; the shop's server and clients, Parquet and pictures are most of what there is to
//! compile, and doctor needs none of them. `make doctor` leaves them out, packages have everything (`default` in Cargo.toml).
//! Commands and options stay in the help either way: who asks for one that is not in is told which feature it is.

use crate::exit::{Code, Failure};
use anyhow::Result;

/// A part that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// `agent`.
    Agent,
    /// `load shop`, and plans with such a workload.
    Shop,
    /// Tables for analysis programs.
    Parquet,
    /// Charts as pixels.
    Png,
}

impl Feature {
    /// Its name for cargo.
    pub fn name(self) -> &'static str {
        match self {
            Feature::Agent => "agent",
            Feature::Shop => "shop",
            Feature::Parquet => "parquet",
            Feature::Png => "png",
        }
    }

    /// Is it in this binary?
    pub fn is_in(self) -> bool {
        match self {
            Feature::Agent => cfg!(feature = "agent"),
            Feature::Shop => cfg!(feature = "shop"),
            Feature::Parquet => cfg!(feature = "parquet"),
            Feature::Png => cfg!(feature = "png"),
        }
    }

    /// An error where it is not: `by` is what the user asked for.
    pub fn need(self, by: &str) -> Result<()> {
        if self.is_in() { Ok(()) } else { Err(self.lacking(by)) }
    }

    /// What is said where it is not.
    pub fn lacking(self, by: &str) -> anyhow::Error {
        let name = self.name();
        Failure::error(
            Code::Usage,
            format!("{by}: this binary was built without the feature {name}; `make build`, or a package, has it"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_named() {
        for feature in [Feature::Agent, Feature::Shop, Feature::Parquet, Feature::Png] {
            let said = feature.need("report --x").map_err(|e| format!("{e:#}"));
            match said {
                Ok(()) => assert!(feature.is_in()),
                Err(why) => {
                    assert!(!feature.is_in() && why.contains("report --x") && why.contains(feature.name()), "{why}")
                }
            }
        }
    }
}
