//! Idle tables of processor generations as the kernel's driver claims them: exit latency and target residency in microseconds.
//!
//! The same numbers as `docs/governors.md` and `inspect idle` show on such hosts. From C6 on caches are written back, which is taken to cost
//! 10 us of work afterwards: an assumption (the range in papers is 5 to 50 us), set `cold` to your own.

use super::machine::IdleState;
use crate::span::Span;

/// A row: name, exit latency, target residency, both in microseconds.
type Row = (&'static str, u64, u64);

/// The table of a generation.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Its short name.
    pub name: &'static str,
    /// Which processors.
    pub about: &'static str,
    rows: &'static [Row],
}

const fn of(name: &'static str, about: &'static str, rows: &'static [Row]) -> Table {
    Table { name, about, rows }
}

/// All there are.
pub const TABLES: &[Table] = &[
    of("ACPI", "acpi_idle with latencies 1, 41 and 100 us", &[("C1", 1, 2), ("C2", 41, 82), ("C3", 100, 200)]),
    of("C1", "halt only", &[("C1", 1, 2)]),
    of("NHM", "Nehalem, Westmere", &[("C1", 3, 6), ("C1E", 10, 20), ("C3", 20, 80), ("C6", 200, 800)]),
    of("SNB", "Sandy Bridge", &[("C1", 2, 2), ("C1E", 10, 20), ("C3", 80, 211), ("C6", 104, 345)]),
    of("IVB", "Ivy Bridge", &[("C1", 1, 1), ("C1E", 10, 20), ("C3", 59, 156), ("C6", 80, 300)]),
    of("HSW", "Haswell server", &[("C1", 2, 2), ("C1E", 10, 20), ("C3", 33, 100), ("C6", 133, 400)]),
    of("BDW", "Broadwell server", &[("C1", 2, 2), ("C1E", 10, 20), ("C3", 40, 100), ("C6", 133, 400)]),
    of(
        "SKL",
        "Skylake client",
        &[
            ("C1", 2, 2),
            ("C1E", 10, 20),
            ("C3", 70, 100),
            ("C6", 85, 200),
            ("C7s", 124, 800),
            ("C8", 200, 800),
            ("C9", 480, 5000),
            ("C10", 890, 5000),
        ],
    ),
    of("SKX", "Skylake to Cooper Lake server", &[("C1", 2, 2), ("C1E", 10, 20), ("C6", 133, 600)]),
    of("ICX", "Ice Lake server", &[("C1", 1, 1), ("C1E", 4, 4), ("C6", 170, 600)]),
    of("SPR", "Sapphire Rapids, Emerald Rapids", &[("C1", 1, 1), ("C1E", 2, 4), ("C6", 290, 800)]),
    of("GNR", "Granite Rapids", &[("C1", 1, 1), ("C1E", 4, 4), ("C6", 170, 650), ("C6P", 210, 1000)]),
];

/// Work after a state in which caches were written back.
const COLD: Span = Span::us(10);

/// The states of a table by its name, POLL first; none where there is no such table.
pub fn table(name: &str) -> Option<Vec<IdleState>> {
    let table = TABLES.iter().find(|t| t.name.eq_ignore_ascii_case(name))?;
    let state = |(name, exit, residency): &Row| IdleState {
        cold: if is_flushing(name) { COLD } else { Span(0) },
        ..IdleState::claimed(name, Span::us(*exit), Span::us(*residency))
    };
    Some(std::iter::once(IdleState::poll()).chain(table.rows.iter().map(state)).collect())
}

fn is_flushing(name: &str) -> bool {
    let digits: String = name.chars().skip(1).take_while(char::is_ascii_digit).collect();
    digits.parse::<u32>().is_ok_and(|n| n >= 6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_found_by_name_with_polling_first() {
        let skx = table("skx").unwrap();
        let told: Vec<_> = skx.iter().map(|s| (s.name.as_str(), s.exit_latency.ns() / 1000, s.cold.ns())).collect();
        assert_eq!(told, [("POLL", 0, 0), ("C1", 2, 0), ("C1E", 10, 0), ("C6", 133, 10_000)]);
        assert!(skx[0].polling && table("none").is_none());
        assert!(TABLES.iter().all(|t| t.rows.len() < 10));
    }
}
