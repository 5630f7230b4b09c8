//! The numbers behind a chart, as a table: the same values are drawn, shown as text and written as CSV.
//!
//! A chart makes its table from its own points, so that the two cannot differ. Text is three digits with a unit; CSV is
//! the raw number in the base unit (nanoseconds, bytes, watts) named in its head, because a reader's program wants it
//! unrounded. A number that is not finite is missing, in all three.

use super::table::Table;
use super::words;
use crate::view::csv;
use wakewatt_core::units::{show_bytes, three_digits};

/// What a number is in, and so how it is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Show {
    /// Words.
    Text,
    /// How many.
    Count,
    /// Time in nanoseconds.
    Ns,
    /// Time in seconds, of a time axis.
    Seconds,
    /// The same in minutes.
    Minutes,
    /// The same in hours.
    Hours,
    /// Powers of 1024.
    Bytes,
    /// Powers of 1000, as memory makers count.
    BytesPerS,
    /// A share, said in percent.
    Ratio,
    /// A factor.
    Times,
    /// Power, in watts.
    Watts,
    /// Energy, in joules.
    Joules,
    /// Per second.
    PerS,
    /// Per joule, which is per second and watt.
    PerJoule,
    /// Kilowatt hours in a year.
    KwhPerYear,
    /// Degrees.
    Celsius,
    /// Revolutions per minute.
    Rpm,
    /// Without a unit.
    Number,
}

impl Show {
    /// For people.
    pub(super) fn text(self, value: f64) -> String {
        if !value.is_finite() {
            return "–".into();
        }
        if value.abs() >= 1e15 {
            return format!("{value:.1e}");
        }
        let digits = |v: f64| if v < 0.0 { format!("−{}", three_digits(-v)) } else { three_digits(v) };
        match self {
            // A digit after the point counts here: caches differ by less than a nanosecond.
            Show::Ns if value.abs() < 99.5 => format!("{} ns", digits(value)),
            Show::Ns => words::ns(value),
            Show::Seconds => format!("{} s", digits(value)),
            Show::Minutes => format!("{} min", digits(value)),
            Show::Hours => format!("{} h", digits(value)),
            Show::Bytes => spaced(&show_bytes(whole(value))),
            Show::BytesPerS if value > 0.0 && value < 1e9 => format!("{} MB/s", digits(value / 1e6)),
            Show::BytesPerS => format!("{} GB/s", digits(value / 1e9)),
            Show::Ratio => words::percent(value),
            Show::Times => format!("×{}", words::ratio(value)),
            Show::Watts => format!("{} W", digits(value)),
            Show::Joules => format!("{} J", digits(value)),
            Show::PerS => format!("{}/s", big(value)),
            Show::PerJoule => format!("{}/J", digits(value)),
            Show::KwhPerYear => format!("{} kWh", digits(value)),
            Show::Celsius => format!("{} °C", digits(value)),
            Show::Rpm => format!("{} rpm", digits(value)),
            Show::Count => words::count(whole(value)),
            Show::Text | Show::Number => digits(value),
        }
    }

    /// The raw number's unit, for the head of a CSV column; empty without one.
    pub(super) fn unit(self) -> &'static str {
        match self {
            Show::Ns => "ns",
            Show::Seconds => "s",
            Show::Minutes => "min",
            Show::Hours => "h",
            Show::Bytes => "B",
            Show::BytesPerS => "B/s",
            Show::Ratio | Show::Times => "ratio",
            Show::Watts => "W",
            Show::Joules => "J",
            Show::PerS => "1/s",
            Show::PerJoule => "1/J",
            Show::KwhPerYear => "kWh/year",
            Show::Celsius => "°C",
            Show::Rpm => "1/min",
            Show::Text | Show::Count | Show::Number => "",
        }
    }
}

fn big(value: f64) -> String {
    if value.abs() >= 10_000.0 { words::count(whole(value)) } else { three_digits(value) }
}

/// A non-negative whole number; more than fits stays at the largest.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturating, and negative becomes 0
fn whole(value: f64) -> u64 {
    value.max(0.0).round() as u64
}

/// `48KiB` with its space.
fn spaced(text: &str) -> String {
    let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    format!("{number} {unit}")
}

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    /// Words.
    Text(String),
    /// A number, in its column's unit.
    Value(f64),
    /// Not measured.
    Missing,
}

impl Cell {
    /// A number if it is one.
    pub(super) fn of(value: Option<f64>) -> Cell {
        value.filter(|v| v.is_finite()).map_or(Cell::Missing, Cell::Value)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.into())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Cell {
        Cell::of(Some(value))
    }
}

impl From<Option<f64>> for Cell {
    fn from(value: Option<f64>) -> Cell {
        Cell::of(value)
    }
}

/// Columns and rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Data {
    /// Name and unit of each column; those of words come first.
    pub(super) columns: Vec<(String, Show)>,
    /// One cell for each column.
    pub(super) rows: Vec<Vec<Cell>>,
}

impl Data {
    /// Columns without rows.
    pub(super) fn with(columns: &[(&str, Show)]) -> Data {
        Data { columns: columns.iter().map(|(name, show)| ((*name).to_string(), *show)).collect(), rows: Vec::new() }
    }

    /// As text for a page; columns without any value are left out.
    pub(super) fn table(&self, caption: impl Into<String>) -> Table {
        let is_used = |at: usize| at == 0 || self.rows.iter().any(|row| row.get(at).is_some_and(is_said));
        let kept: Vec<usize> = (0..self.columns.len()).filter(|at| is_used(*at)).collect();
        let cell = |row: &[Cell], at: usize| match row.get(at) {
            Some(Cell::Text(text)) if !text.is_empty() => text.clone(),
            Some(Cell::Value(value)) => self.columns[at].1.text(*value),
            _ => "–".to_string(),
        };
        Table {
            caption: caption.into(),
            heads: kept.iter().map(|at| self.columns[*at].0.clone()).collect(),
            rows: self.rows.iter().map(|row| kept.iter().map(|at| cell(row, *at)).collect()).collect(),
            n_text_columns: kept.iter().take_while(|at| self.columns[**at].1 == Show::Text).count(),
        }
    }

    /// As comma-separated values, raw numbers.
    pub(super) fn csv(&self) -> String {
        let head = self.columns.iter().map(|(name, show)| match show.unit() {
            "" => name.clone(),
            unit => format!("{name} [{unit}]"),
        });
        let cell = |cell: &Cell| match cell {
            Cell::Text(text) => text.clone(),
            Cell::Value(value) => format!("{value:?}").trim_end_matches(".0").to_string(),
            Cell::Missing => String::new(),
        };
        let rows = self.rows.iter().map(|row| row.iter().map(cell).collect());
        let all: Vec<Vec<String>> = std::iter::once(head.collect()).chain(rows).collect();
        csv::text(csv::Ends::Standard, &all)
    }
}

fn is_said(cell: &Cell) -> bool {
    match cell {
        Cell::Text(text) => !text.is_empty(),
        Cell::Value(_) => true,
        Cell::Missing => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_rounded_and_csv_is_not() {
        let mut data =
            Data::with(&[("run", Show::Text), ("size", Show::Bytes), ("time", Show::Ns), ("none", Show::Watts)]);
        data.rows.push(vec!["=1+1, \"x\"".into(), 49152.0.into(), 1.25.into(), f64::NAN.into()]);
        let table = data.table("t");
        assert_eq!(table.heads, ["run", "size", "time"], "an empty column is left out");
        assert_eq!((table.rows[0][1].as_str(), table.n_text_columns), ("48 KiB", 1));
        assert_eq!(data.csv(), "run,size [B],time [ns],none [W]\r\n\"'=1+1, \"\"x\"\"\",49152,1.25,\r\n");
    }

    #[test]
    fn no_unit_breaks_on_an_absurd_number() {
        use Show::{Bytes, BytesPerS, Count, Ns, Ratio, Watts};
        for show in [Bytes, BytesPerS, Count, Ns, Ratio, Watts] {
            for value in [0.0, -5.0, 1e-300, 1e300, f64::MAX] {
                assert!(show.text(value).chars().count() < 24, "{show:?} {value}: {}", show.text(value));
            }
            assert_eq!(show.text(f64::NAN), "–");
        }
    }
}
