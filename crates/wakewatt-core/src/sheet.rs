//! A sheet is what a fact domain shows: rows with a stable id, a label, a typed cell and the CPUs it holds for.
//!
//! Every view (text, HTML, Markdown, `compare`) iterates over rows and never names one, so a fact is spelled once,
//! in its domain. Ids are dotted and stable (`idle.C6.exit_latency`): `compare` joins two hosts on them.

use crate::cpuset::CpuSet;
use crate::fact::{Fact, Gap, GapKind, PerCpu};
use crate::units::{show_bytes, show_khz, show_ns, show_uw, three_digits};
use crate::visible;
use wakewatt_words::{say, word};

/// A value with its unit; a view decides how to draw it.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// Yes or no.
    Flag(bool),
    /// A plain number.
    Count(u64),
    /// A register value.
    Hex(u64),
    /// Nanoseconds.
    Ns(u64),
    /// Kilohertz.
    Khz(u64),
    /// Microwatts.
    Uw(u64),
    /// Microjoules.
    Uj(u64),
    /// Thousandths of a degree Celsius.
    MilliC(i64),
    /// Bytes.
    Bytes(u64),
    /// 0 to 1, shown as a percentage.
    Ratio(f64),
    /// Revolutions per minute.
    Rpm(u64),
    /// Memory transfers, millions per second.
    MegaTransfers(u64),
}

impl Cell {
    /// Words from anything that prints.
    pub fn text(value: impl ToString) -> Cell {
        Cell::Text(value.to_string())
    }
}

impl Cell {
    /// The raw number and what it is in, for tables that machines read; none for words.
    #[allow(clippy::cast_precision_loss)] // Tables hold doubles; beyond 2^53 nobody counts ones.
    pub fn number(&self) -> Option<(f64, &'static str)> {
        Some(match *self {
            Cell::Text(_) => return None,
            Cell::Flag(yes) => (f64::from(u8::from(yes)), "bool"),
            Cell::Count(n) | Cell::Hex(n) => (n as f64, ""),
            Cell::Ns(n) => (n as f64, "ns"),
            Cell::Khz(n) => (n as f64, "kHz"),
            Cell::Uw(n) => (n as f64, "uW"),
            Cell::Uj(n) => (n as f64, "uJ"),
            Cell::MilliC(n) => (n as f64, "mC"),
            Cell::Bytes(n) => (n as f64, "bytes"),
            Cell::Ratio(ratio) => (ratio, "ratio"),
            Cell::Rpm(n) => (n as f64, "rpm"),
            Cell::MegaTransfers(n) => (n as f64, "MT/s"),
        })
    }
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Cell::Text(text) => f.write_str(&visible::line(text)),
            Cell::Flag(yes) => f.write_str(if *yes { word!("yes") } else { word!("no") }),
            Cell::Count(n) => write!(f, "{n}"),
            Cell::Hex(n) => write!(f, "0x{n:x}"),
            Cell::Ns(n) => f.write_str(&show_ns(*n)),
            Cell::Khz(n) => f.write_str(&show_khz(*n)),
            Cell::Uw(n) => f.write_str(&show_uw(*n)),
            Cell::Uj(n) => write!(f, "{}J", three_digits(*n as f64 / 1e6)),
            Cell::MilliC(n) => write!(f, "{}C", three_digits(*n as f64 / 1e3)),
            Cell::Bytes(n) => f.write_str(&show_bytes(*n)),
            Cell::Ratio(r) => write!(f, "{}%", three_digits(r * 100.0)),
            Cell::Rpm(n) => write!(f, "{n}rpm"),
            Cell::MegaTransfers(n) => write!(f, "{n}MT/s"),
        }
    }
}

/// One line of a sheet.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Stable dotted id, equal on every host.
    pub id: String,
    /// For people.
    pub label: String,
    /// The value, or why there is none.
    pub cell: Result<Cell, Gap>,
    /// The CPUs (or whatever the domain's unit is) it holds for, where that matters.
    pub cpus: Option<CpuSet>,
    /// A running counter: shown, never compared between hosts.
    pub is_counter: bool,
}

/// A label may hold a name of the machine's: of a device, a process, a cgroup.
fn plain(label: impl Into<String>) -> String {
    let label = label.into();
    match visible::line(&label) {
        std::borrow::Cow::Borrowed(_) => label,
        std::borrow::Cow::Owned(shown) => shown,
    }
}

/// The rows of one domain.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sheet {
    /// In reading order.
    pub rows: Vec<Row>,
}

impl Sheet {
    /// A row that needs no fact (a count of things found, a derived word).
    pub fn say(&mut self, id: impl Into<String>, label: impl Into<String>, cell: Cell) {
        self.rows.push(Row { id: id.into(), label: plain(label), cell: Ok(cell), cpus: None, is_counter: false });
    }

    /// One fact.
    pub fn fact<T>(
        &mut self,
        id: impl Into<String>,
        label: impl Into<String>,
        fact: &Fact<T>,
        cell: impl Fn(&T) -> Cell,
    ) {
        let cell = match fact {
            Fact::Known(value) => Ok(cell(value)),
            Fact::Gap(gap) => Err(gap.clone()),
        };
        self.rows.push(Row { id: id.into(), label: plain(label), cell, cpus: None, is_counter: false });
    }

    /// A fact that changes by itself (a temperature, a counter): shown, never compared between hosts.
    pub fn reading<T>(
        &mut self,
        id: impl Into<String>,
        label: impl Into<String>,
        fact: &Fact<T>,
        cell: impl Fn(&T) -> Cell,
    ) {
        self.fact(id, label, fact, cell);
        if let Some(row) = self.rows.last_mut() {
            row.is_counter = true;
        }
    }

    /// The lowest and highest of a value that changes by itself: two rows however many CPUs, plus its gaps.
    pub fn span<T: Ord>(&mut self, id: &str, label: &str, facts: &PerCpu<T>, cell: impl Fn(&T) -> Cell) {
        let from = self.rows.len();
        let low = facts.known().min_by(|a, b| a.1.cmp(b.1));
        let high = facts.known().max_by(|a, b| a.1.cmp(b.1));
        for (word, name, found) in
            [("lowest", say!("{label}, lowest"), low), ("highest", say!("{label}, highest"), high)]
        {
            if let Some((cpus, value)) = found {
                self.say(format!("{id}.{word}"), name, cell(value));
                if let Some(row) = self.rows.last_mut() {
                    row.cpus = Some(cpus.clone());
                }
            }
        }
        for group in facts.0.iter().filter(|g| g.fact.gap().is_some()) {
            self.fact(id, label, &group.fact, &cell);
            if let Some(row) = self.rows.last_mut() {
                row.cpus = Some(group.cpus.clone());
            }
        }
        self.rows[from..].iter_mut().for_each(|row| row.is_counter = true);
    }

    /// One row per group of CPUs that agree.
    pub fn per_cpu<T>(&mut self, id: &str, label: &str, facts: &PerCpu<T>, cell: impl Fn(&T) -> Cell) {
        for group in &facts.0 {
            self.fact(id, label, &group.fact, &cell);
            if let Some(row) = self.rows.last_mut() {
                row.cpus = Some(group.cpus.clone());
            }
        }
    }

    /// The sum of a counter over all CPUs that know it: one row however many CPUs. Where some do not, the row names those
    /// that do, and the others follow with their reason: a sum over half of the machine must not pass for the whole.
    pub fn total(&mut self, id: &str, label: &str, facts: &PerCpu<u64>, cell: impl Fn(&u64) -> Cell) {
        if facts.is_unknown() {
            return self.per_cpu(id, label, facts, cell);
        }
        let from = self.rows.len();
        let sum = facts.known().map(|(cpus, v)| v.saturating_mul(cpus.len() as u64)).fold(0u64, u64::saturating_add);
        let summed: CpuSet = facts.known().flat_map(|(cpus, _)| cpus.iter()).collect();
        self.say(id, label, cell(&sum));
        for group in facts.0.iter().filter(|g| g.fact.gap().is_some()) {
            self.rows[from].cpus = Some(summed.clone());
            self.fact(id, label, &group.fact, &cell);
            if let Some(row) = self.rows.last_mut() {
                row.cpus = Some(group.cpus.clone());
            }
        }
        self.rows[from..].iter_mut().for_each(|row| row.is_counter = true);
    }

    /// Rows that are gaps worth naming: everything but files this kernel simply does not have.
    pub fn gaps(&self) -> impl Iterator<Item = (&Row, &Gap)> {
        self.rows.iter().filter_map(|row| row.cell.as_ref().err().map(|gap| (row, gap)))
    }

    /// Gaps that are not mere absence: denied, malformed, unreadable.
    pub fn troubles(&self) -> impl Iterator<Item = (&Row, &Gap)> {
        self.gaps().filter(|(_, gap)| !matches!(gap.kind, GapKind::Absent | GapKind::NotRead | GapKind::NotRecorded))
    }
}
