//! The document of `agent query --json`.

use wakewatt_agent::history::Change;
use wakewatt_agent::history::query::{Answer, Point};

/// What `--json` prints.
#[derive(Debug, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Document {
    /// Each series with its points.
    pub series: Vec<Series>,
    /// Settings that changed within the time.
    pub changes: Vec<Change>,
    /// Moments that were read.
    pub n_moments: u64,
}

/// A series of the history with what it was in each step.
#[derive(Debug, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Series {
    /// Name with labels.
    pub name: String,
    /// Its steps in order of time; a step in which it was not seen is left out.
    pub points: Vec<Told>,
}

/// What a series was in one step of time.
#[derive(Debug, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Told {
    /// Begin of the step, in milliseconds since 1970.
    pub wall_ms: u64,
    /// Mean, growth per second, or percentile, in the metric's base unit; `+Inf` for a limit that nobody set.
    pub value: Amount,
    /// Milliseconds of the step in which the series was seen.
    pub seen_ms: u64,
    /// The least of the step's moments, or intervals of a rate; none of a percentile.
    pub least: Option<Amount>,
    /// The largest of the step's moments, or intervals of a rate; none of a percentile.
    pub most: Option<Amount>,
}

/// A number, or that it has no end, for which JSON has no number.
#[derive(Debug, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Amount {
    /// In the metric's base unit.
    Number(f64),
    /// A number without end.
    Endless(Endless),
}

/// The word for what has no end, as the texts of Prometheus write it.
#[derive(Debug, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Endless {
    /// Infinity, with its sign.
    #[serde(rename = "+Inf")]
    Positive,
}

impl Amount {
    fn of(value: f64) -> Amount {
        if value == f64::INFINITY { Amount::Endless(Endless::Positive) } else { Amount::Number(value) }
    }
}

impl Document {
    pub(super) fn of(answer: &Answer) -> Document {
        let told = |p: &Point| Told {
            wall_ms: p.wall_ms,
            value: Amount::of(p.value),
            seen_ms: p.seen_ms,
            least: p.range.map(|(least, _)| Amount::of(least)),
            most: p.range.map(|(_, most)| Amount::of(most)),
        };
        let series = answer.series.iter();
        Document {
            series: series
                .map(|(n, points)| Series { name: n.clone(), points: points.iter().map(told).collect() })
                .collect(),
            changes: answer.changes.clone(),
            n_moments: answer.n_moments,
        }
    }
}
