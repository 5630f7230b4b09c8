//! A service objective in words: `p99 < 5ms over 40 hops`.

use super::shape::Shape;
use std::fmt;
use wakewatt_core::units::{exact_ns, parse_ns};

/// So many of the requests, in so long, of so many hops.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    /// Share of requests that must keep it, between 0 and 1.
    pub quantile: f64,
    /// The bound in nanoseconds.
    pub bound_ns: u64,
    /// Must it stay below the bound, or may it reach it?
    pub is_below: bool,
    /// The request's hops.
    pub shape: Shape,
}

/// What an objective looks like, for messages.
const FORM: &str = "say it like: p99 < 5ms over 40 hops";

/// `p99`, `p99.9`, `median`.
fn quantile(word: &str) -> Result<f64, String> {
    let word = word.trim();
    if word == "median" {
        return Ok(0.5);
    }
    let percent = word.strip_prefix('p').and_then(|n| n.parse::<f64>().ok());
    match percent {
        // What lies beyond is of fewer than one request in a million, which no recording can tell.
        Some(percent) if percent > 0.0 && percent <= 99.9999 => Ok(percent / 100.0),
        Some(_) => Err(format!("`{word}`: percentiles from above p0 to p99.9999; {FORM}")),
        None => Err(format!("`{word}` is no percentile; {FORM}")),
    }
}

impl Objective {
    /// From words; in words what is wrong. Without `over` it is of one hop.
    pub fn parse(text: &str) -> Result<Objective, String> {
        let (left, right) = text.split_once('<').ok_or_else(|| format!("no bound (`<`) in it; {FORM}"))?;
        let (is_below, right) = match right.strip_prefix('=') {
            Some(rest) => (false, rest),
            None => (true, right),
        };
        let (bound, shape) = right.split_once(" over ").unwrap_or((right, "1 hop"));
        Ok(Objective { quantile: quantile(left)?, bound_ns: parse_ns(bound)?, is_below, shape: Shape::parse(shape)? })
    }

    /// Is it kept with this added latency?
    pub fn is_kept(&self, ns: u64) -> bool {
        if self.is_below { ns < self.bound_ns } else { ns <= self.bound_ns }
    }

    /// `p99`, `p99.9`.
    pub fn percentile(&self) -> String {
        // Six decimals of a percent are asked for at most; more would show how numbers are kept.
        let text = format!("{:.6}", self.quantile * 100.0);
        format!("p{}", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_below { "<" } else { "<=" };
        write!(f, "{} {sign} {} over {}", self.percentile(), exact_ns(self.bound_ns), self.shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objectives_are_read_and_said_again() {
        for (text, said) in [
            ("p99 < 5ms over 40 hops", "p99 < 5ms over 40 hops"),
            ("p99<5ms", "p99 < 5ms over 1 hop"),
            ("p99.9 <= 1.5 ms over 8 parallel hops", "p99.9 <= 1500us over 8 parallel hops"),
            ("median < 300us over 2 x 3 hops", "p50 < 300us over 2 x 3 hops"),
        ] {
            let objective = Objective::parse(text).unwrap();
            assert_eq!(objective.to_string(), said);
            assert_eq!(Objective::parse(said), Ok(objective));
        }
        let strict = Objective::parse("p99 < 5ms").unwrap();
        assert!(strict.is_kept(4_999_999) && !strict.is_kept(5_000_000));
        assert!(Objective::parse("p99 <= 5ms").unwrap().is_kept(5_000_000));
    }

    #[test]
    fn what_is_no_objective_is_said() {
        for (text, words) in [
            ("", "p99 < 5ms over 40 hops"),
            ("fast", "no bound"),
            ("p99 < 5", "no unit"),
            ("p99 < soon", "not a duration"),
            ("99 < 5ms", "no percentile"),
            ("p100 < 5ms", "percentiles from"),
            ("pNaN < 5ms", "percentiles from"),
            ("p0 < 5ms", "percentiles from"),
            ("p99 < 5ms over the moon", "says no hops"),
            ("p99 < 5ms over 3 hips", "says no hops"),
        ] {
            let why = Objective::parse(text).unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
    }
}
