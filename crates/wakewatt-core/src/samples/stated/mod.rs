//! What may be said of the size of an effect: on a quiet machine the estimate, on a loaded one the near end of its interval,
//! and nothing where the surroundings had more part in it than the setting.
//!
//! Beside other work the direction of an effect stands and its size does not (`grade`), so every sentence that names a size
//! takes it from here: the verdict, the findings, the text of a measurement. Where the near end lies on the other side of
//! "no effect" (a difference of at least -3 us), it bounds nothing and no size is named. Not here: whether there is an
//! effect, which is the judge's (`stats`).

use super::experiment::{Effect, ExperimentRun, Verdict};
use super::grade::Grade;
use crate::units::{rough_ns, three_digits, times};
use wakewatt_words::{say, word};

/// A size as it may be stated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stated {
    /// The estimate.
    Value(f64),
    /// It is this or more.
    AtLeast(f64),
    /// It is this or less.
    AtMost(f64),
    /// Nothing is sure of its size.
    Open,
}

impl Stated {
    /// The number that is stated; none where none is.
    pub fn number(self) -> Option<f64> {
        match self {
            Stated::Value(value) | Stated::AtLeast(value) | Stated::AtMost(value) => Some(value),
            Stated::Open => None,
        }
    }

    /// In words, with the number shown so: `3.3`, `at least 1.06`, `an unknown number of`.
    pub fn say(self, show: impl Fn(f64) -> String) -> String {
        match self {
            Stated::Value(value) => show(value),
            Stated::AtLeast(low) => say!("at least {}", show(low)),
            Stated::AtMost(high) => say!("at most {}", show(high)),
            Stated::Open => word!("an unknown number of").into(),
        }
    }
}

/// Of a value with its interval, where `none` is no effect.
fn stated(is_bound: bool, none: f64, value: f64, low: f64, high: f64) -> Stated {
    if !value.is_finite() {
        Stated::Open
    } else if !is_bound {
        Stated::Value(value)
    } else if value >= none && low.is_finite() && low > none {
        Stated::AtLeast(low)
    } else if value < none && high.is_finite() && high < none {
        Stated::AtMost(high)
    } else {
        Stated::Open
    }
}

impl Effect {
    /// Behind its interval: how sure it is, and of what.
    pub fn sureness(&self) -> String {
        say!("95 % over all looks, covers {}", self.covers)
    }
}

impl ExperimentRun {
    /// How many times as much the baseline takes as the arm.
    pub fn stated_ratio(&self, effect: &Effect) -> Stated {
        self.stated(effect, 1.0, [effect.ratio, effect.ratio_low, effect.ratio_high])
    }

    /// How much more the baseline takes, in the metric's unit.
    pub fn stated_difference(&self, effect: &Effect) -> Stated {
        self.stated(effect, 0.0, [effect.difference, effect.difference_low, effect.difference_high])
    }

    fn stated(&self, effect: &Effect, none: f64, [value, low, high]: [f64; 3]) -> Stated {
        // What is not shown to differ has no near end, so its estimate is said, which stands beside its interval.
        let is_shown = matches!(effect.verdict, Verdict::Higher | Verdict::Lower);
        match self.graded().grade {
            Grade::Refused => Stated::Open,
            grade => stated(grade == Grade::Loaded && is_shown, none, value, low, high),
        }
    }

    /// May the size of its effects be told, with intervals? Not where it is mostly somebody else's.
    pub fn is_sized(&self) -> bool {
        self.graded().grade != Grade::Refused
    }

    /// `3.3 times slower: 82 us each`, for whoever wants no statistics; of a latency that is higher in the baseline.
    pub fn as_slower(&self, effect: &Effect) -> String {
        let slower = match self.stated_ratio(effect) {
            Stated::Open => word!("slower").to_string(),
            ratio => say!("{} times slower", ratio.say(times)),
        };
        let difference = self.stated_difference(effect);
        match difference.number() {
            Some(ns) if ns > 0.0 => say!("{slower}: {} each", difference.say(rough_ns)),
            _ => slower,
        }
    }

    /// `Sleeping CPUs make a wake-up 3.3 times slower: 82 us each`: the one wording for it.
    pub fn slower(&self, effect: &Effect, what: &str) -> String {
        say!("{} make {what} {}", self.who(effect), self.as_slower(effect))
    }

    /// The difference of a latency, `19us per wake-up (interval 12.4us to 26.1us, 95 % over all looks, covers this run)`.
    pub fn in_us(&self, effect: &Effect, per: &str) -> String {
        let us = |ns: f64| format!("{}us", three_digits(ns / 1e3));
        let (low, high) = (us(effect.difference_low), us(effect.difference_high));
        let size = match self.stated_difference(effect) {
            Stated::Open => word!("a time of unknown length").to_string(),
            difference => difference.say(us),
        };
        let interval = say!("interval {low} to {high}, {}{}", effect.sureness(), self.hour());
        say!("{size} {per} ({})", self.unless_refused(interval))
    }

    /// Which share of the baseline's latency the effect is, with its interval: `50 % (44 to 55, covers this run)`.
    pub fn as_share(&self, effect: &Effect) -> String {
        let share = |ratio: f64| format!("{:.0}", (1.0 - 1.0 / ratio) * 100.0);
        let size = match self.stated_ratio(effect) {
            Stated::Open => word!("an unknown share").to_string(),
            ratio => format!("{} %", ratio.say(share)),
        };
        let interval = say!("{} to {}, covers {}", share(effect.ratio_low), share(effect.ratio_high), effect.covers);
        if self.is_sized() { say!("{size} ({interval})") } else { size }
    }

    /// The ratio with its interval, in words.
    pub fn in_numbers(&self, effect: &Effect) -> String {
        let [low, high] = [effect.ratio_low, effect.ratio_high].map(three_digits);
        let ratio = self.stated_ratio(effect).say(three_digits);
        let interval = say!("interval {low} to {high}, {}", effect.sureness());
        say!("{ratio} times ({}, {} rounds)", self.unless_refused(interval), effect.n_pairs)
    }

    fn unless_refused(&self, interval: String) -> String {
        if self.is_sized() { interval } else { word!("its size is refused").into() }
    }

    fn hour(&self) -> &'static str {
        if self.graded().grade == Grade::Loaded { word!("; an effect of that hour") } else { "" }
    }
}

#[cfg(test)]
mod tests;
