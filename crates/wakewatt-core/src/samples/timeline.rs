//! A value over time with the moments at which something was changed: the before and after of a staged change.
//!
//! One value per window, never smoothed: whoever looks must see whether the step is at the mark or somewhere else, and how
//! much the value moved without any change. A drawing proves nothing by itself; that is what an experiment is for.

use super::experiment::Unit;
use super::{Label, Window};
use serde::{Deserialize, Serialize};

/// One window's value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Moment {
    /// The window it is about.
    pub window: Window,
    /// Which line it belongs to: a host, an arm, a percentile.
    pub series: String,
    /// The value, in the timeline's unit.
    pub value: f64,
    /// Its interval, where there is one.
    pub interval: Option<(f64, f64)>,
    /// Why it does not count, if so.
    #[serde(rename = "is_invalid")]
    pub invalid_because: Option<String>,
}

/// Something was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// When, in CLOCK_MONOTONIC nanoseconds: the middle of what is known.
    pub at_ns: u64,
    /// So much earlier or later it may have been; 0 where the moment itself is known.
    #[serde(default)]
    pub within_ns: u64,
    /// What: "C1 at most on 23 of 26 hosts".
    pub what: String,
}

impl Change {
    /// Not before, and not after.
    pub fn between_ns(&self) -> (u64, u64) {
        (self.at_ns.saturating_sub(self.within_ns), self.at_ns.saturating_add(self.within_ns))
    }
}

/// Values over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Timeline {
    /// What is shown: "mean request time".
    pub title: String,
    /// What the values are in.
    pub unit: Unit,
    /// Were the values measured, or modelled?
    pub label: Label,
    /// In the order of time.
    pub moments: Vec<Moment>,
    /// Settings that changed meanwhile.
    pub changes: Vec<Change>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// As run files have had it since the first: another key would draw every moment as one that counts.
    #[test]
    fn a_moment_that_does_not_count_is_read_back_as_one() {
        let old = r#"{"window":{"start_at_ns":1,"end_at_ns":2},"series":"poll","value":3.0,"interval":null,"is_invalid":"steal"}"#;
        let moment: Moment = serde_json::from_str(old).unwrap();
        assert_eq!(moment.invalid_because.as_deref(), Some("steal"));
        assert_eq!(serde_json::to_string(&moment).unwrap(), old);
    }
}
