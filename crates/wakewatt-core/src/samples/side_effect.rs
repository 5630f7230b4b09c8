//! What an arm changes beside what was compared: what the hypervisor takes, the clock, the heat, how often CPUs sleep.
//!
//! They are outcomes of the setting and no noise: a guest that halts gives its CPU away and gets it back late, so how much is
//! stolen from it may depend on the very arm that is held (10.6 % as found, 2.0 % polling, measured on a shared host). Each is
//! tested by itself, paired by round, on plain differences (a steal of 0 has no ratio), and all are adjusted together by Holm.
//! Not here: the test (`stats::side_effects`), nor what follows for the grade (`grade`).

use serde::{Deserialize, Serialize};
use wakewatt_words::{say, word};

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Witnessed {
    /// Share of the measured CPUs' time that the hypervisor took.
    Steal,
    /// Entries of the woken CPU into sleeping states per wake-up.
    Sleeps,
    /// Mean clock of the measured CPUs while they ran, in kHz.
    Frequency,
    /// The hottest processor sensor, in milli-degrees Celsius.
    Temperature,
}

impl Witnessed {
    /// All, in the order in which they are shown.
    pub const ALL: [Witnessed; 4] = [Witnessed::Steal, Witnessed::Sleeps, Witnessed::Frequency, Witnessed::Temperature];

    /// For tables.
    pub fn words(self) -> &'static str {
        match self {
            Witnessed::Steal => word!("steal"),
            Witnessed::Sleeps => word!("sleeps per wake-up"),
            Witnessed::Frequency => word!("clock while running"),
            Witnessed::Temperature => word!("temperature"),
        }
    }

    /// A value, in the unit people use.
    pub fn show(self, value: f64) -> String {
        match self {
            Witnessed::Steal => format!("{:.1} %", value * 100.0),
            Witnessed::Sleeps => format!("{value:.2}"),
            Witnessed::Frequency => format!("{:.2} GHz", value / 1e6),
            Witnessed::Temperature => format!("{:.1} \u{b0}C", value / 1e3),
        }
    }
}

/// One of them, of one arm against the baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SideEffect {
    /// What is looked at; gives the unit of the values.
    pub what: Witnessed,
    /// Id of the baseline.
    pub baseline: String,
    /// Id of the arm.
    pub arm: String,
    /// Mean of the baseline's measurements that are paired.
    pub baseline_value: f64,
    /// Mean of the other variant's.
    pub arm_value: f64,
    /// Hodges-Lehmann estimate of baseline minus variant, over batches of rounds.
    pub difference: f64,
    /// Lower end of its 95 % interval, by itself.
    pub difference_low: f64,
    /// Upper end of that interval.
    pub difference_high: f64,
    /// Exact signed-rank test of the batches, by itself.
    pub own_p_value: f64,
    /// The same, adjusted for all side effects of the run (Holm).
    pub p_value: f64,
    /// Rounds in which both blocks had a value.
    pub n_pairs: usize,
    /// Is a difference shown, by the adjusted test at 5 %? Its sign is that of `difference`.
    pub is_shown: bool,
}

impl SideEffect {
    /// The interval that may stand beside what is said: its own holds by itself, so where the test of all together shows nothing it must not
    /// exclude nothing.
    pub fn interval(&self) -> Option<(f64, f64)> {
        let is_open = !self.is_shown && (self.difference_low > 0.0 || self.difference_high < 0.0);
        (!is_open).then_some((self.difference_low, self.difference_high))
    }

    /// `steal 10.6 % with found, 2.0 % with poll (8 rounds)`.
    pub fn say(&self) -> String {
        let show = |value| self.what.show(value);
        say!(
            "{} {} with {}, {} with {} ({} rounds)",
            self.what.words(),
            show(self.baseline_value),
            self.baseline,
            show(self.arm_value),
            self.arm,
            self.n_pairs
        )
    }
}
