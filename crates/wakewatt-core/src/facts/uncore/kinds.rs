//! What an uncore domain clocks, and the rows of all domains by that instead of by number.
//!
//! Xeon 6 has two or three compute dies (cores, L3, memory) and two I/O dies a package, which `agent_types` tells apart
//! (admin-guide/pm/intel_uncore_frequency_scaling.rst; intel/pcm, "Latency Optimized Mode"). The number of a domain is
//! the order in which the kernel found it: `uncore02` is a compute die on one host and an I/O die on the next, so a
//! comparison by number would set one against the other.

use super::{Uncore, UncoreDomain};
use crate::fact::{Fact, Gap};
use crate::sheet::{Cell, Row, Sheet};
use serde::Serialize;
use std::collections::BTreeSet;
use wakewatt_words::say;

/// What a domain clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DomainKind {
    /// A whole die with all there is on it.
    WholeDie,
    /// Cores and their L3, and memory beside them on most parts.
    Compute,
    /// Memory controllers alone.
    Memory,
    /// PCI Express, links between sockets, accelerators: no core and no L3.
    Io,
    /// A cluster that does not say.
    Unknown,
}

impl DomainKind {
    /// For people and for rows' ids.
    pub fn word(self) -> &'static str {
        match self {
            DomainKind::WholeDie => "die",
            DomainKind::Compute => "compute",
            DomainKind::Memory => "memory",
            DomainKind::Io => "io",
            DomainKind::Unknown => "cluster",
        }
    }
}

impl UncoreDomain {
    /// The whole die, as against one cluster of it.
    pub fn is_whole_die(&self) -> bool {
        self.name.starts_with("package_")
    }

    /// What it clocks, by its agents.
    pub fn kind(&self) -> DomainKind {
        if self.is_whole_die() {
            return DomainKind::WholeDie;
        }
        let Some(agents) = self.agent_types.get() else { return DomainKind::Unknown };
        let has = |agent: &str| agents.iter().any(|a| a == agent);
        match (has("core") || has("cache"), has("memory"), has("io")) {
            (true, _, _) => DomainKind::Compute,
            (false, true, _) => DomainKind::Memory,
            (false, false, true) => DomainKind::Io,
            (false, false, false) => DomainKind::Unknown,
        }
    }

    /// Has it efficiency latency control?
    pub fn has_elc(&self) -> bool {
        self.elc_floor_khz.is_known()
    }

    /// Does efficiency latency control keep the clock up, whatever the limits below: no floor, and no utilisation is low? None
    /// where its settings are not known.
    pub fn is_latency_optimised(&self) -> Option<bool> {
        let (floor, max) = (*self.elc_floor_khz.get()?, *self.max_khz.get()?);
        let is_high_always =
            self.elc_high_threshold_ratio.get() == Some(&0.0) && self.is_elc_high_threshold_on.get() == Some(&true);
        Some(*self.elc_low_threshold_ratio.get()? == 0.0 && (is_high_always || floor >= max))
    }
}

impl Uncore {
    /// Domains that decide: clusters where a package has any, since its whole die only fans out to them, else dies.
    pub fn deciding(&self) -> impl Iterator<Item = &UncoreDomain> {
        let has_cluster = |die: &UncoreDomain| {
            self.domains.iter().any(|d| !d.is_whole_die() && d.package_id.get() == die.package_id.get())
        };
        self.domains.iter().filter(move |d| !d.is_whole_die() || !has_cluster(d))
    }

    /// Those of them that the cores' memory accesses pass: not the I/O dies. A cluster that does not say is left in.
    pub fn serving_cores(&self) -> impl Iterator<Item = &UncoreDomain> {
        self.deciding().filter(|d| d.kind() != DomainKind::Io)
    }

    /// The rows that `inspect` shows, by kind instead of by number, so that hosts with other numbers can be compared.
    pub fn show_by_kind(&self, sheet: &mut Sheet) {
        let kinds: BTreeSet<DomainKind> = self.deciding().map(UncoreDomain::kind).collect();
        for kind in kinds {
            let of_kind = || self.deciding().filter(move |d| d.kind() == kind);
            let name = kind.word();
            let n = of_kind().count() as u64;
            sheet.say(format!("uncore.{name}.n"), say!("uncore domains ({name})"), Cell::Count(n));
            for (what, label, value) in ATTRIBUTES {
                let mut different: Vec<Result<Cell, Gap>> = Vec::new();
                for cell in of_kind().map(value) {
                    if !different.contains(&cell) {
                        different.push(cell);
                    }
                }
                let (id, label) = (format!("uncore.{name}.{what}"), format!("uncore {name} {label}"));
                let row = |cell| Row { id: id.clone(), label: label.clone(), cell, cpus: None, is_counter: false };
                sheet.rows.extend(different.into_iter().map(row));
            }
        }
    }
}

/// A row of a domain: its id, label and value.
type Attribute = (&'static str, &'static str, fn(&UncoreDomain) -> Result<Cell, Gap>);

fn cell<T>(fact: &Fact<T>, cell: impl Fn(&T) -> Cell) -> Result<Cell, Gap> {
    match fact {
        Fact::Known(value) => Ok(cell(value)),
        Fact::Gap(gap) => Err(Gap { path: String::new(), ..gap.clone() }),
    }
}

/// What is compared of a domain: not the clock of the moment.
const ATTRIBUTES: &[Attribute] = &[
    ("min", "lower limit", |d| cell(&d.min_khz, |v| Cell::Khz(*v))),
    ("max", "upper limit", |d| cell(&d.max_khz, |v| Cell::Khz(*v))),
    ("initial_min", "lower limit at boot", |d| cell(&d.initial_min_khz, |v| Cell::Khz(*v))),
    ("initial_max", "upper limit at boot", |d| cell(&d.initial_max_khz, |v| Cell::Khz(*v))),
    ("elc_floor", "efficiency floor", |d| cell(&d.elc_floor_khz, |v| Cell::Khz(*v))),
    ("elc_low_threshold", "efficiency floor below", |d| cell(&d.elc_low_threshold_ratio, |v| Cell::Ratio(*v))),
    ("elc_high_threshold", "full speed above", |d| cell(&d.elc_high_threshold_ratio, |v| Cell::Ratio(*v))),
    ("elc_high_threshold_on", "high threshold in use", |d| cell(&d.is_elc_high_threshold_on, |v| Cell::Flag(*v))),
];

#[cfg(test)]
mod tests {
    use super::super::super::{Cpus, Domain, cpus::ROOT};
    use super::*;
    use crate::source::Tree;

    #[test]
    fn dies_are_told_apart_by_what_they_clock_and_shown_by_it() {
        let cluster = |n: u32, agents: &str, max: u32| {
            let at = format!("//- {ROOT}/intel_uncore_frequency/uncore{n:02}");
            format!("{at}/package_id\n0\n{at}/agent_types\n{agents}\n{at}/max_freq_khz\n{max}\n")
        };
        let read = |text: &str| Uncore::read(&Tree::from_text(text), &Cpus::default());
        let die = format!("//- {ROOT}/intel_uncore_frequency/package_00_die_00/max_freq_khz\n2500000\n");
        let (a, b) = (cluster(0, "core cache memory", 2_200_000), cluster(1, "io", 2_500_000));
        let one = read(&(die.clone() + &a + &b));
        let other = read(&(die + &cluster(0, "io", 2_500_000) + &cluster(1, "core cache memory", 2_200_000)));
        let names = |u: &Uncore| u.serving_cores().map(|d| d.name.clone()).collect::<Vec<_>>();
        assert_eq!((names(&one), names(&other)), (vec!["uncore00".into()], vec!["uncore01".to_string()]));
        let rows = |uncore: &Uncore| {
            let mut sheet = Sheet::default();
            uncore.show_by_kind(&mut sheet);
            let known = sheet.rows.iter().filter_map(|r| Some(format!("{} {}", r.id, r.cell.as_ref().ok()?)));
            known.collect::<Vec<_>>()
        };
        assert_eq!(rows(&one), rows(&other), "the same machine, counted the other way round");
        assert!(rows(&one).contains(&"uncore.compute.max 2.2GHz".to_string()), "{:?}", rows(&one));
        assert_eq!(read(&cluster(0, "-", 1)).domains[0].kind(), DomainKind::Unknown);
    }
}
