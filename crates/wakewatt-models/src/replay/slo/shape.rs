//! How the hops of a request follow each other: `40 hops`, `40 parallel hops`, `8 hops + 5 x 8 parallel hops`.
//!
//! A hop is one wake-up that the request waits for. Stages stand in series, joined by `+`. A stage is so many times a fan-out
//! of parallel branches, of which the slowest counts, and a branch is a chain of hops. `docs/methods/replay.md` has the grammar.

use std::fmt;

/// Hops in series and in parallel at most, each.
const MOST: u32 = 10_000;
/// In series over all stages: what the lattice can hold with a useful step.
const MOST_IN_SERIES: u64 = 100_000;

/// One stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// So many times, one after the other.
    pub times: u32,
    /// So many branches at once, of which the slowest counts.
    pub parallel: u32,
    /// So many hops in each branch, one after the other.
    pub chain: u32,
}

/// A request's hops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Stages, one after the other.
    pub stages: Vec<Stage>,
}

/// What can be said, for messages.
const FORMS: &str =
    "40 hops; 40 parallel hops; 5 x 8 parallel hops; 8 parallel chains of 3 hops; and these joined with +";

fn number(word: &str) -> Result<u32, String> {
    let n: u32 = word.parse().map_err(|_| format!("`{word}` is no number of hops; say {FORMS}"))?;
    if (1..=MOST).contains(&n) { Ok(n) } else { Err(format!("{n} hops: from 1 to {MOST} can be computed")) }
}

fn stage(text: &str) -> Result<Stage, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (times, words) = match &words[..] {
        [n, "x" | "times", rest @ ..] => (number(n)?, rest),
        rest => (1, rest),
    };
    let (parallel, chain) = match words {
        [n, "hop" | "hops"] | [n, "hop" | "hops", "in", "series"] | [n, "serial", "hop" | "hops"] => (1, number(n)?),
        [n, "parallel", "hop" | "hops"] | [n, "hop" | "hops", "in", "parallel"] => (number(n)?, 1),
        [n, "parallel", "chain" | "chains", "of", m, "hop" | "hops"] => (number(n)?, number(m)?),
        _ => return Err(format!("`{}` says no hops; say {FORMS}", text.trim())),
    };
    Ok(Stage { times, parallel, chain })
}

impl Shape {
    /// From words; in words what is wrong.
    pub fn parse(text: &str) -> Result<Shape, String> {
        let stages = text.split('+').map(stage).collect::<Result<Vec<_>, String>>()?;
        if stages.len() > 100 {
            return Err("more than 100 stages".into());
        }
        let shape = Shape { stages };
        if shape.in_series_u64() > MOST_IN_SERIES {
            return Err(format!("more than {MOST_IN_SERIES} hops in series"));
        }
        Ok(shape)
    }

    fn in_series_u64(&self) -> u64 {
        self.stages.iter().map(|s| u64::from(s.times) * u64::from(s.chain)).sum()
    }

    /// Hops that follow each other on the longest way.
    pub fn in_series(&self) -> u32 {
        u32::try_from(self.in_series_u64()).unwrap_or(u32::MAX)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hops = |n: u32| if n == 1 { "hop" } else { "hops" };
        for (at, stage) in self.stages.iter().enumerate() {
            if at > 0 {
                f.write_str(" + ")?;
            }
            if stage.times > 1 {
                write!(f, "{} x ", stage.times)?;
            }
            match *stage {
                Stage { parallel: 1, chain, .. } => write!(f, "{chain} {}", hops(chain))?,
                Stage { parallel, chain: 1, .. } => write!(f, "{parallel} parallel hops")?,
                Stage { parallel, chain, .. } => write!(f, "{parallel} parallel chains of {chain} {}", hops(chain))?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_read_and_said_again() {
        for (text, said, in_series) in [
            ("1 hop", "1 hop", 1),
            ("40 hops in series", "40 hops", 40),
            ("40 serial hops", "40 hops", 40),
            ("40 hops in parallel", "40 parallel hops", 1),
            ("8 hops + 40 parallel hops", "8 hops + 40 parallel hops", 9),
            ("5 times 8 parallel hops", "5 x 8 parallel hops", 5),
            ("2 x 6 parallel chains of 7 hops + 1 hop", "2 x 6 parallel chains of 7 hops + 1 hop", 15),
        ] {
            let shape = Shape::parse(text).unwrap();
            assert_eq!((shape.to_string().as_str(), shape.in_series()), (said, in_series), "{text}");
            assert_eq!(Shape::parse(&shape.to_string()), Ok(shape));
        }
    }

    #[test]
    fn what_is_no_shape_is_said() {
        for (text, words) in [
            ("", "says no hops"),
            ("40", "says no hops"),
            ("0 hops", "from 1 to 10000"),
            ("many hops", "no number of hops"),
            ("99999999999 hops", "no number of hops"),
            ("4 hops +", "says no hops"),
            ("10000 x 10000 hops", "in series"),
            ("-3 hops", "no number"),
        ] {
            let why = Shape::parse(text).unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
    }
}
