//! What may be said of the size of an effect: the estimate with its interval, however wide; "at least" where a disturbance
//! can only have made the effect smaller; nothing where something else than the settings moved the metric.
//!
//! A CPU that was often awake when it was woken pays less for idle states than one that slept, so there the near end of the
//! interval is a lower bound (`grade`). Every sentence that names a size takes it from here: the verdict, the findings, the text of a
//! measurement. Not here: whether there is an effect, which is the judge's (`stats`).

use super::compared::Compared;
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

/// Of a value with its interval, where `none` is no effect. A bound is the interval's near end: the estimate may be too large.
fn stated(is_bound: bool, none: f64, [low, value, high]: [f64; 3]) -> Stated {
    match (value.is_finite(), is_bound) {
        (false, _) => Stated::Open,
        (true, false) => Stated::Value(value),
        (true, true) if value >= none => Stated::AtLeast(low.clamp(none, value)),
        (true, true) => Stated::AtMost(high.clamp(value, none)),
    }
}

impl Effect {
    /// Behind its interval: how sure it is, and of what.
    pub fn sureness(&self) -> String {
        say!("95 % CI, {}", self.covers.scope())
    }
}

/// An interval in words, where one may stand beside the verdict.
fn beside(effect: &Effect, words: impl FnOnce() -> String) -> String {
    if effect.interval().is_some() { words() } else { word!("no interval").into() }
}

impl ExperimentRun {
    /// How many times as much the baseline takes as the arm.
    pub fn stated_ratio(&self, effect: &Effect) -> Stated {
        self.stated(effect, 1.0, [effect.ratio_low, effect.ratio, effect.ratio_high])
    }

    /// How much more the baseline takes, in the metric's unit.
    pub fn stated_difference(&self, effect: &Effect) -> Stated {
        self.stated(effect, 0.0, [effect.difference_low, effect.difference, effect.difference_high])
    }

    fn stated(&self, effect: &Effect, none: f64, value: [f64; 3]) -> Stated {
        // Being awake can only hide a cost of idle states; it bounds no other comparison.
        let is_of_sleep = matches!(effect.compared(), Compared::NoSleep | Compared::ShallowSleep);
        let graded = self.graded();
        match graded.grade {
            Grade::Refused => Stated::Open,
            _ => stated(is_of_sleep && graded.is_diluted() && effect.verdict == Verdict::Higher, none, value),
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
        let interval = beside(effect, || say!("{low} to {high}, {}{}", effect.sureness(), self.hour()));
        say!("{size} {per} ({})", self.unless_refused(interval))
    }

    /// Which share of the baseline's latency the effect is, with its interval: `50 % (44 to 55, covers this run)`.
    pub fn as_share(&self, effect: &Effect) -> String {
        let share = |ratio: f64| format!("{:.0}", (1.0 - 1.0 / ratio) * 100.0);
        let size = match self.stated_ratio(effect) {
            Stated::Open => word!("an unknown share").to_string(),
            ratio => format!("{} %", ratio.say(share)),
        };
        let interval = beside(effect, || {
            say!("95 % CI {} to {}, {}", share(effect.ratio_low), share(effect.ratio_high), effect.covers.scope())
        });
        if self.is_sized() { say!("{size} ({interval})") } else { size }
    }

    /// The ratio with its interval, in words.
    pub fn in_numbers(&self, effect: &Effect) -> String {
        let [low, high] = [effect.ratio_low, effect.ratio_high].map(three_digits);
        let ratio = self.stated_ratio(effect).say(three_digits);
        let interval = beside(effect, || say!("{low} to {high}, {}", effect.sureness()));
        say!("{ratio} times ({}, {} rounds)", self.unless_refused(interval), effect.n_pairs)
    }

    fn unless_refused(&self, interval: String) -> String {
        if self.is_sized() { interval } else { word!("effect size not reported").into() }
    }

    fn hour(&self) -> &'static str {
        if self.graded().grade == Grade::Loaded { word!("; measured beside other load") } else { "" }
    }
}

#[cfg(test)]
mod tests;
