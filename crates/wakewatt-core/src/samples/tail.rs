//! Is it shown that an arm does not make the tail worse? Declared with the primary metric, and decided beside it.
//!
//! A faster median with a slower tail is no gain, so who recommends an arm claims two things, and the second is "no harm" to the
//! 99th percentile of what the primary metric is the median of. Both must be shown, so each is tested at the whole level of the
//! look (intersection-union, Berger 1982) and none of the other metrics is adjusted with it: among five secondary ones eight
//! rounds could not show it, however well they agree. What is neither shown harmless nor shown harmful is not told: too few
//! rounds, or too few samples beyond the percentile in a block. Not here: the tests (`stats`), nor tails of other metrics, which stay secondary.

use serde::{Deserialize, Serialize};
use wakewatt_words::say;

/// Samples that must lie beyond a percentile, or it is not told (`distribution`).
pub const MIN_BEYOND: u64 = 10;
/// Wake-ups, reads or requests that a block needs for its 99th percentile.
pub const MIN_SAMPLES_OF_P99: u64 = 100 * MIN_BEYOND;

/// What is known of the tail under an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TailAnswer {
    /// Shown not to be worse by more than the margin.
    NoHarm,
    /// Shown to be worse.
    Harm,
    /// Neither is shown.
    CannotTell,
}

/// The tail under one arm against the baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TailTest {
    /// Id of the metric: the 99th percentile of what the primary metric is the median of.
    pub metric: String,
    /// Id of the baseline.
    pub baseline: String,
    /// Id of the arm.
    pub arm: String,
    /// 1.05: worse by 5 % is no harm yet.
    pub margin_ratio: f64,
    /// One-sided signed-rank test of "it is worse by more than the margin", adjusted for the arms.
    pub no_harm_p: f64,
    /// The level of the look that judged it.
    pub level: f64,
    /// Rounds in which both blocks had the percentile.
    pub n_pairs: usize,
    /// With fewer rounds nothing could be shown at that level, however well they agree.
    pub n_needed: usize,
    /// What may be said.
    pub answer: TailAnswer,
}

impl TailTest {
    /// Why it cannot be told, as a clause.
    pub fn why_not(&self) -> String {
        if self.n_pairs == 0 {
            say!("no block had the {MIN_SAMPLES_OF_P99} samples that a 99th percentile needs")
        } else if self.n_pairs < self.n_needed {
            say!("{} rounds cannot show it at this look, {} are needed", self.n_pairs, self.n_needed)
        } else {
            let margin = format!("{:.0} %", (self.margin_ratio - 1.0) * 100.0);
            say!("it is shown neither to stay within {margin} nor to get worse ({} rounds)", self.n_pairs)
        }
    }
}

/// The tail of this metric, by its id: `wakeup.eventfd.p99` of `wakeup.eventfd.p50`.
pub fn tail_of(primary: &str) -> Option<String> {
    primary.strip_suffix(".p50").map(|what| format!("{what}.p99"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_it_cannot_be_told_is_the_rounds_or_the_samples() {
        let test = |n_pairs| TailTest {
            metric: "p99".into(),
            baseline: "found".into(),
            arm: "poll".into(),
            margin_ratio: 1.05,
            no_harm_p: 0.3,
            level: 0.0078,
            n_pairs,
            n_needed: 7,
            answer: TailAnswer::CannotTell,
        };
        assert!(test(0).why_not().contains("1000 samples"));
        assert!(test(6).why_not().contains("7 are needed"));
        assert!(test(8).why_not().contains("within 5 %"));
    }
}
