//! What a gate says: passed, failed, or cannot tell; and the same in words.

use super::did::Difference;
use super::plan::CannotTell;
use serde::{Deserialize, Serialize};
use wakewatt_core::units::three_digits;

/// What a gate says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// What was asked for holds.
    Passed,
    /// It is known not to hold.
    Failed,
    /// There is too little to say.
    CannotTell,
    /// Nobody could be asked: a store that is down, a connection that broke. It is asked again for as long as it holds, and never
    /// passes.
    NoAnswer,
}

/// A word with its reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// What the gate says.
    pub word: Word,
    /// Why it says so, with the numbers.
    pub why: String,
}

impl Verdict {
    /// With a reason.
    pub fn new(word: Word, why: impl Into<String>) -> Verdict {
        Verdict { word, why: why.into() }
    }

    /// What becomes of it: while it cannot tell and there is time left it is asked again, which is `None`.
    pub fn settled(&self, rule: CannotTell, has_time: bool) -> Option<bool> {
        match (self.word, rule) {
            (Word::Passed, _) | (Word::CannotTell, CannotTell::Pass) => Some(true),
            (Word::Failed, _) | (Word::CannotTell | Word::NoAnswer, CannotTell::Fail) => Some(false),
            (Word::CannotTell | Word::NoAnswer, _) if has_time => None,
            (Word::CannotTell | Word::NoAnswer, _) => Some(false),
        }
    }
}

/// Three digits, also of what is small.
fn shown(value: f64) -> String {
    if value != 0.0 && value.abs() < 0.1 { format!("{value:.2e}") } else { three_digits(value) }
}

/// Every value of an answer against its limits. No value at all is no answer.
pub fn of_values(values: &[f64], below: Option<f64>, above: Option<f64>) -> Verdict {
    if values.is_empty() {
        return Verdict::new(Word::CannotTell, "the query has no answer now");
    }
    let is_good = |v: &f64| below.is_none_or(|limit| *v < limit) && above.is_none_or(|limit| *v > limit);
    // One that is bad beyond doubt is not excused by another of which nothing is known.
    let n_bad = values.iter().filter(|v| !v.is_nan() && !is_good(v)).count();
    if n_bad == 0 && values.iter().any(|v| !v.is_finite()) {
        return Verdict::new(Word::CannotTell, "a value of the answer is no number");
    }
    let (low, high) = values.iter().fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(*v), h.max(*v)));
    let found = match values {
        [one] => shown(*one),
        many => format!("{} values from {} to {}", many.len(), shown(low), shown(high)),
    };
    let limits: Vec<String> = [("above", above), ("below", below)]
        .into_iter()
        .filter_map(|(word, limit)| Some(format!("{word} {}", shown(limit?))))
        .collect();
    let wanted = limits.join(" and ");
    match n_bad {
        0 => Verdict::new(Word::Passed, format!("{found}: {wanted}")),
        n => Verdict::new(Word::Failed, format!("{found}: {n} not {wanted}")),
    }
}

/// A ratio with its interval against what it may be at most.
pub fn of_ratio(what: &str, (ratio, low, high): (f64, f64, f64), at_most_ratio: f64) -> Verdict {
    let (word, said) = match (low, high) {
        (_, high) if high <= at_most_ratio => (Word::Passed, "shown to be no more than"),
        (low, _) if low > at_most_ratio => (Word::Failed, "shown to be more than"),
        _ => (Word::CannotTell, "neither shown to be more nor to be no more than"),
    };
    let [ratio, low, high, limit] = [ratio, low, high, at_most_ratio].map(three_digits);
    Verdict::new(word, format!("{what} ×{ratio} [{low}, {high}], {said} ×{limit}"))
}

/// A difference in differences likewise.
pub fn of_difference(what: &str, d: &Difference, at_most_ratio: f64) -> Verdict {
    let plural = if d.n_changed == 1 { "" } else { "s" };
    let what = format!("{what} of {} changed node{plural} beside {} unchanged ones", d.n_changed, d.n_unchanged);
    of_ratio(&what, (d.ratio, d.low_ratio, d.high_ratio), at_most_ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_passes_only_on_what_is_known() {
        let word = |values: &[f64], below, above| of_values(values, below, above).word;
        assert_eq!(word(&[], Some(1.0), None), Word::CannotTell);
        assert_eq!(word(&[0.1, f64::NAN], Some(1.0), None), Word::CannotTell);
        assert_eq!(word(&[0.1, 2.0], Some(1.0), None), Word::Failed);
        assert_eq!(word(&[1.0], Some(1.0), None), Word::Failed, "below is below");
        assert_eq!(word(&[0.5, 0.7], Some(1.0), Some(0.2)), Word::Passed);
        assert_eq!(of_values(&[0.5, 2.0], Some(1.0), None).why, "2 values from 0.5 to 2: 1 not below 1");
        for (interval, word) in
            [((1.0, 0.98, 1.04), Word::Passed), ((1.2, 1.1, 1.3), Word::Failed), ((1.0, 0.9, 1.2), Word::CannotTell)]
        {
            assert_eq!(of_ratio("p99", interval, 1.05).word, word);
        }
    }

    #[test]
    fn cannot_tell_is_what_the_plan_says_it_is() {
        let unsure = Verdict::new(Word::CannotTell, "");
        assert_eq!(unsure.settled(CannotTell::Hold, true), None);
        assert_eq!(unsure.settled(CannotTell::Hold, false), Some(false));
        let silent = Verdict::new(Word::NoAnswer, "");
        assert_eq!(
            (silent.settled(CannotTell::Pass, true), silent.settled(CannotTell::Pass, false)),
            (None, Some(false))
        );
        assert_eq!(
            (unsure.settled(CannotTell::Pass, true), unsure.settled(CannotTell::Fail, true)),
            (Some(true), Some(false))
        );
    }
}
