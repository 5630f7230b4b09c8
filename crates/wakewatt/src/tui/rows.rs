//! The table's rows: CPUs grouped, filtered and sorted. Pure, and the same for the screen and for text.

use super::filter::Filter;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use wakewatt_core::arrange::Arrange as _;
use wakewatt_core::watch::document::{CpuRate, PlaceRate, Summary};
use wakewatt_core::watch::{Rates, Reading};

/// Machines with more CPUs start grouped and folded.
const MANY_CPUS: usize = 64;

/// What a row stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupBy {
    /// Packages.
    #[default]
    Package,
    /// NUMA nodes.
    Node,
    /// Cores: SMT siblings together.
    Core,
    /// Single CPUs.
    Cpu,
}

impl GroupBy {
    /// What the user asked for, or what suits this many CPUs.
    pub fn start(word: Option<&str>, n_cpus: usize) -> GroupBy {
        match word {
            Some("package") => GroupBy::Package,
            Some("node") => GroupBy::Node,
            Some("core") => GroupBy::Core,
            Some(_) => GroupBy::Cpu,
            None if n_cpus > MANY_CPUS => GroupBy::Package,
            None => GroupBy::Cpu,
        }
    }

    /// The next one, in a circle.
    pub fn next(self) -> GroupBy {
        match self {
            GroupBy::Package => GroupBy::Node,
            GroupBy::Node => GroupBy::Core,
            GroupBy::Core => GroupBy::Cpu,
            GroupBy::Cpu => GroupBy::Package,
        }
    }

    /// As typed.
    pub fn word(self) -> &'static str {
        match self {
            GroupBy::Package => "package",
            GroupBy::Node => "node",
            GroupBy::Core => "core",
            GroupBy::Cpu => "cpu",
        }
    }

    fn key(self, cpu: &CpuRate) -> Key {
        match self {
            GroupBy::Package => cpu.package.map_or(Key::Unknown, Key::Group),
            GroupBy::Node => cpu.node.map_or(Key::Unknown, Key::Group),
            GroupBy::Core => cpu.core.map_or(Key::Unknown, Key::Group),
            GroupBy::Cpu => Key::Cpu(cpu.cpu),
        }
    }
}

/// Which order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// By number.
    #[default]
    Number,
    /// Busiest first.
    Busy,
    /// Most woken first.
    Wakeups,
    /// Most governor misses first.
    Misses,
    /// Soundest sleeper first.
    Asleep,
    /// Fastest first.
    Freq,
    /// Most throttled first.
    Throttles,
}

impl Sort {
    const ALL: [Sort; 7] =
        [Sort::Number, Sort::Busy, Sort::Wakeups, Sort::Misses, Sort::Asleep, Sort::Freq, Sort::Throttles];

    /// From the word on the command line.
    pub fn parse(word: Option<&str>) -> Sort {
        word.and_then(|w| Sort::ALL.into_iter().find(|s| s.word() == w)).unwrap_or_default()
    }

    /// The next one, in a circle.
    pub fn next(self) -> Sort {
        let at = Sort::ALL.iter().position(|s| *s == self).unwrap_or(0);
        Sort::ALL[(at + 1) % Sort::ALL.len()]
    }

    /// As typed.
    pub fn word(self) -> &'static str {
        match self {
            Sort::Number => "cpu",
            Sort::Busy => "busy",
            Sort::Wakeups => "wakeups",
            Sort::Misses => "misses",
            Sort::Asleep => "asleep",
            Sort::Freq => "freq",
            Sort::Throttles => "throttles",
        }
    }

    fn value(self, summary: &Summary) -> Option<f64> {
        match self {
            Sort::Number => None,
            Sort::Busy => summary.busy_ratio.get(),
            Sort::Wakeups => summary.wakeups_per_s.get(),
            Sort::Misses => summary.above_per_s.get().map(|a| a + summary.below_per_s.get().unwrap_or(0.0)),
            Sort::Asleep => summary.asleep_ratio.get(),
            Sort::Freq => summary.freq_khz.get(),
            Sort::Throttles => summary.throttles_per_s.get(),
        }
    }
}

/// What identifies a row from one interval to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// A package, node or core.
    Group(u32),
    /// CPUs of which the machine does not say where they are.
    Unknown,
    /// A CPU.
    Cpu(u32),
}

/// One row.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Which.
    pub key: Key,
    /// "package 0", "cpu 17".
    pub label: String,
    /// Below an unfolded group?
    pub is_child: bool,
    /// None for a CPU; else whether it is unfolded.
    pub is_unfolded: Option<bool>,
    /// Its CPUs.
    pub cpus: Vec<u32>,
    /// The numbers.
    pub summary: Summary,
    /// Watts, for packages.
    pub power_uw: Reading<f64>,
    /// Temperature, for packages.
    pub temperature_mc: Reading<i64>,
}

/// All rows, in order.
pub fn rows(rates: &Rates, group: GroupBy, sort: Sort, filter: &Filter, unfolded: &BTreeSet<Key>) -> Vec<Row> {
    if rates.cpus.is_empty() {
        return of_places(rates, sort);
    }
    let mut groups: BTreeMap<Key, Vec<&CpuRate>> = BTreeMap::new();
    for cpu in rates.cpus.iter().filter(|c| filter.matches(c)) {
        groups.entry(group.key(cpu)).or_default().push(cpu);
    }
    let mut tops: Vec<Row> = groups.iter().map(|(key, cpus)| row(rates, group, *key, cpus)).collect();
    order(&mut tops, sort);
    let mut all = Vec::with_capacity(tops.len());
    for mut top in tops {
        if group == GroupBy::Cpu {
            top.is_unfolded = None;
            all.push(top);
            continue;
        }
        let is_unfolded = unfolded.contains(&top.key);
        top.is_unfolded = Some(is_unfolded);
        let key = top.key;
        all.push(top);
        if is_unfolded {
            let cpus = groups.get(&key).into_iter().flatten();
            let mut below: Vec<Row> =
                cpus.map(|cpu| Row { is_child: true, ..row(rates, GroupBy::Cpu, Key::Cpu(cpu.cpu), &[cpu]) }).collect();
            order(&mut below, sort);
            all.extend(below);
        }
    }
    all
}

fn row(rates: &Rates, group: GroupBy, key: Key, cpus: &[&CpuRate]) -> Row {
    let package = match (group, key) {
        (GroupBy::Package, Key::Group(n)) => rates.packages.iter().find(|p| p.package == n),
        _ => None,
    };
    let word = match group {
        GroupBy::Cpu => "cpu",
        GroupBy::Core => "core",
        GroupBy::Package => "package",
        GroupBy::Node => "node",
    };
    let label = match key {
        Key::Group(n) | Key::Cpu(n) => format!("{word} {n}"),
        Key::Unknown => format!("{word} ?"),
    };
    Row {
        key,
        label,
        is_child: false,
        is_unfolded: None,
        cpus: cpus.iter().map(|c| c.cpu).collect(),
        summary: Summary::of(cpus.iter().copied(), &rates.states),
        power_uw: package.map_or(Reading::default(), |p| p.power_uw),
        temperature_mc: package.map_or(Reading::default(), |p| p.temperature_mc),
    }
}

/// What a history holds of CPUs: sums by node and package. However rows are grouped, there are no others.
fn of_places(rates: &Rates, sort: Sort) -> Vec<Row> {
    let row = |(at, place): (u32, &PlaceRate)| {
        let label = match (place.package, place.node) {
            (Some(package), Some(node)) => format!("pkg {package} node {node}"),
            (Some(package), None) => format!("package {package}"),
            (None, Some(node)) => format!("node {node}"),
            (None, None) => "all CPUs".into(),
        };
        // Watts are the package's: with two nodes in it, of neither.
        let is_whole = rates.places.iter().filter(|other| other.package == place.package).count() == 1;
        let package = rates.packages.iter().find(|p| Some(p.package) == place.package && is_whole);
        Row {
            key: Key::Group(at),
            label,
            is_child: false,
            is_unfolded: None,
            cpus: Vec::new(),
            summary: place.summary.clone(),
            power_uw: package.map_or(Reading::default(), |p| p.power_uw),
            temperature_mc: package.map_or(Reading::default(), |p| p.temperature_mc),
        }
    };
    let mut rows: Vec<Row> = (0..).zip(&rates.places).map(row).collect();
    order(&mut rows, sort);
    rows
}

/// Highest first; what is not known last; equals by number.
fn order(rows: &mut [Row], sort: Sort) {
    rows.arrange_by(|a, b| {
        let (x, y) = (sort.value(&a.summary), sort.value(&b.summary));
        let by_value = match (x, y) {
            (Some(x), Some(y)) => y.total_cmp(&x),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        };
        by_value.then(a.key.cmp(&b.key))
    });
}
