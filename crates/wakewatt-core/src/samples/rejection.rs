//! Why a block does not count.
//!
//! What is to be done about blocks that do not count hangs on the reason (a busy machine wants a quieter hour, an
//! interrupted run its end), and a summary groups them by it.

use super::worded::{between, worded};
use crate::kept_words;
use std::fmt;
use wakewatt_words::{say, word};

/// Why a block does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// It was cut short.
    Interrupted,
    /// Others kept the CPU busy: it was never idle, so there was nothing to wake.
    Busy {
        /// The share of the CPUs' time that they had, in percent.
        percent: u32,
    },
    /// Its arm could not be set; what was said the second time.
    NotSet(String),
    /// Anything else: what the counters contradict, what the workload said, what was taken or throttled.
    Said(String),
}

const INTERRUPTED: &str = "interrupted before its end";
const BUSY: (&str, &str) = ("other processes kept the CPUs ", " % busy, so they hardly slept");
const NOT_SET: &str = "the arm could not be set, tried twice: ";
impl Rejection {
    /// From a document.
    pub fn read(text: &str) -> Rejection {
        let busy = || between(text, BUSY.0, BUSY.1)?.parse().ok();
        match (text == INTERRUPTED, busy(), text.strip_prefix(NOT_SET)) {
            (true, ..) => Rejection::Interrupted,
            (_, Some(percent), _) => Rejection::Busy { percent },
            (.., Some(why)) => Rejection::NotSet(why.into()),
            _ => Rejection::Said(text.into()),
        }
    }

    /// The same reason but for its figures?
    pub fn is_like(&self, other: &Rejection) -> bool {
        use Rejection::{Busy, Interrupted, NotSet, Said};
        match (self, other) {
            (Interrupted, Interrupted) | (Busy { .. }, Busy { .. }) => true,
            (NotSet(a), NotSet(b)) | (Said(a), Said(b)) => up_to_figures(a) == up_to_figures(b),
            (Interrupted | Busy { .. } | NotSet(_) | Said(_), _) => false,
        }
    }
}

fn up_to_figures(text: &str) -> &str {
    text.split(|c: char| c.is_ascii_digit()).next().unwrap_or("")
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rejection::Interrupted => f.write_str(word!("interrupted before its end")),
            Rejection::Busy { percent } => {
                f.write_str(&say!("other processes kept the CPUs {percent} % busy, so they hardly slept"))
            }
            Rejection::NotSet(why) => f.write_str(&say!("the arm could not be set, tried twice: {why}")),
            Rejection::Said(text) => f.write_str(&kept_words::shown(text)),
        }
    }
}

impl From<String> for Rejection {
    fn from(text: String) -> Rejection {
        Rejection::Said(text)
    }
}

impl From<&str> for Rejection {
    fn from(text: &str) -> Rejection {
        Rejection::Said(text.into())
    }
}

worded!(Rejection);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_and_figures_do_not_part_what_is_alike() {
        let said = |text: &str| Rejection::from(text);
        let all = [
            Rejection::Interrupted,
            Rejection::Busy { percent: 62 },
            Rejection::NotSet("resource busy".into()),
            said("CPU 0 entered C6 30 times of 60"),
        ];
        for (at, one) in all.iter().enumerate() {
            assert_eq!(Rejection::read(&one.to_string()), *one);
            assert!(all.iter().enumerate().all(|(other_at, other)| one.is_like(other) == (at == other_at)));
        }
        assert!(Rejection::Busy { percent: 62 }.is_like(&Rejection::Busy { percent: 99 }));
        assert!(said("CPU 0 entered C6").is_like(&said("CPU 1 entered C1")) && !said("a 1").is_like(&said("b 1")));
    }
}
