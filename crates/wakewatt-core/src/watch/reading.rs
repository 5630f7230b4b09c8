//! A number, or the reason why there is none.
//!
//! [`Fact`](crate::fact::Fact) says the same of a file and carries path and text; a watched machine has ten thousand
//! numbers per second, so this one is a word. In JSON a number is a number and a missing one is its reason as a word:
//! `"busy_ratio": 0.31` or `"busy_ratio": "denied"`.

use crate::samples::Label;
use crate::source::{ErrorKind, ReadError};
use serde::{Deserialize, Serialize};
use wakewatt_words::word;

/// Why there is no number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// This kernel or machine has no such file.
    #[default]
    Absent,
    /// Not for this user.
    Denied,
    /// There, and reading it failed.
    Failed,
    /// There, and not what the kernel documents.
    Malformed,
    /// The recording does not hold it.
    NotRecorded,
    /// Reading it would interrupt another CPU, and the mode forbids that.
    NotAsked,
    /// The CPU is offline, or was at the start of the interval.
    Offline,
    /// There is no earlier moment to compare with.
    First,
    /// The counter ran backwards: it was reset, or belongs to something else now.
    Backwards,
    /// Present, and it does not move: no counter stands behind it.
    Dead,
    /// The machine was suspended in the interval.
    Suspended,
}

impl Why {
    /// One or two words for tables.
    pub fn word(self) -> &'static str {
        match self {
            Why::Absent => "absent",
            Why::Denied => "denied",
            Why::Failed => "failed",
            Why::Malformed => "malformed",
            Why::NotRecorded => "unrecorded",
            Why::NotAsked => "not asked",
            Why::Offline => "offline",
            Why::First => "no rate",
            Why::Backwards => "reset",
            Why::Dead => "dead",
            Why::Suspended => "suspended",
        }
    }

    /// What it means and what to do.
    pub fn explain(self) -> &'static str {
        match self {
            Why::Absent => word!("this kernel or machine has no such file"),
            Why::Denied => word!("only root may read it"),
            Why::Failed => word!("it is there, and reading it failed"),
            Why::Malformed => word!("it does not hold what the kernel documents"),
            Why::NotRecorded => word!("the recording does not hold it"),
            Why::NotAsked => word!("reading it interrupts CPUs; ask with --sources package or all"),
            Why::Offline => word!("the CPU is offline"),
            Why::First => word!("a rate needs two readings"),
            Why::Backwards => word!("the counter ran backwards in this interval"),
            Why::Dead => word!("the counter exists and does not move"),
            Why::Suspended => word!("the machine was suspended in this interval"),
        }
    }
}

impl From<&ReadError> for Why {
    fn from(error: &ReadError) -> Why {
        match error.kind {
            ErrorKind::Absent => Why::Absent,
            ErrorKind::Denied => Why::Denied,
            ErrorKind::NotRecorded => Why::NotRecorded,
            ErrorKind::Failed => Why::Failed,
        }
    }
}

/// Measured, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Reading<T> {
    /// The value, as it was read.
    Known(T),
    /// Why there is no value.
    Missing(Why),
}

impl<T> Default for Reading<T> {
    fn default() -> Self {
        Reading::Missing(Why::Absent)
    }
}

impl<T: Copy> Reading<T> {
    /// The value, if there is one.
    pub fn get(&self) -> Option<T> {
        match self {
            Reading::Known(value) => Some(*value),
            Reading::Missing(_) => None,
        }
    }

    /// The reason, if there is none.
    pub fn why(&self) -> Option<Why> {
        match self {
            Reading::Known(_) => None,
            Reading::Missing(why) => Some(*why),
        }
    }

    /// What it is worth.
    pub fn label(&self) -> Label {
        match self {
            Reading::Known(_) => Label::Measured,
            Reading::Missing(Why::Dead) => Label::PresentButDead,
            Reading::Missing(_) => Label::Unavailable,
        }
    }

    /// The mapped value, or the same reason.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Reading::Known(value) => Reading::Known(f(value)),
            Reading::Missing(why) => Reading::Missing(why),
        }
    }
}

impl Reading<u64> {
    /// How far a counter went since `earlier`; both must be known and it must not have run backwards.
    pub fn since(self, earlier: Reading<u64>) -> Reading<u64> {
        match (self, earlier) {
            (Reading::Known(now), Reading::Known(then)) => {
                now.checked_sub(then).map_or(Reading::Missing(Why::Backwards), Reading::Known)
            }
            (Reading::Missing(why), _) => Reading::Missing(why),
            (_, Reading::Missing(Why::Offline)) => Reading::Missing(Why::Offline),
            (_, Reading::Missing(_)) => Reading::Missing(Why::First),
        }
    }

    /// Per second over a window.
    pub fn per_second(self, window_ns: u64) -> Reading<f64> {
        match self {
            Reading::Known(_) if window_ns == 0 => Reading::Missing(Why::First),
            Reading::Known(n) => Reading::Known(n as f64 * 1e9 / window_ns as f64),
            Reading::Missing(why) => Reading::Missing(why),
        }
    }
}

/// The sum of what is known; the first reason where nothing is.
pub fn sum(readings: impl IntoIterator<Item = Reading<f64>>) -> Reading<f64> {
    fold(readings).map(|(total, _)| total)
}

/// The mean of what is known; the first reason where nothing is.
pub fn mean(readings: impl IntoIterator<Item = Reading<f64>>) -> Reading<f64> {
    fold(readings).map(|(total, n)| total / n)
}

fn fold(readings: impl IntoIterator<Item = Reading<f64>>) -> Reading<(f64, f64)> {
    let mut found = Reading::Missing(Why::Absent);
    let mut is_first = true;
    for reading in readings {
        match (reading, &mut found) {
            (Reading::Known(v), Reading::Known((total, n))) => {
                *total += v;
                *n += 1.0;
            }
            (Reading::Known(v), Reading::Missing(_)) => found = Reading::Known((v, 1.0)),
            (Reading::Missing(why), Reading::Missing(first)) if is_first => *first = why,
            (Reading::Missing(_), _) => {}
        }
        is_first = false;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_never_zero_for_want_of_one() {
        let (five, none) = (Reading::Known(5u64), Reading::Missing(Why::Denied));
        assert_eq!(Reading::Known(8).since(five), Reading::Known(3));
        assert_eq!(Reading::Known(4).since(five), Reading::Missing(Why::Backwards));
        assert_eq!(five.since(none), Reading::Missing(Why::First));
        assert_eq!(none.since(five), none);
        assert_eq!(Reading::Known(3).per_second(500_000_000), Reading::Known(6.0));
        assert_eq!(sum([none.per_second(1), Reading::Known(2.0), Reading::Known(4.0)]), Reading::Known(6.0));
        assert_eq!(mean([Reading::Missing(Why::Denied)]), Reading::Missing(Why::Denied));
        assert_eq!(Reading::<f64>::Missing(Why::Dead).label(), Label::PresentButDead);
    }

    #[test]
    fn in_json_a_reason_is_a_word() {
        let both = [Reading::Known(7u64), Reading::Missing(Why::NotAsked)];
        let text = serde_json::to_string(&both).unwrap();
        assert_eq!(text, r#"[7,"not_asked"]"#);
        assert_eq!(serde_json::from_str::<[Reading<u64>; 2]>(&text).unwrap(), both);
    }
}
