//! Facts as text: sheets in columns, equal CPUs in one line, gaps summed up by kind.
//!
//! No row is named here. Rows of one id that differ on more than a handful of CPU groups are drawn as a range, so a
//! 576-CPU machine still fits a screen; `--json` has every value.

pub mod csv;
mod pivot;
pub mod table;
pub mod width;
pub mod wrap;

use std::fmt::Write as _;
use wakewatt_core::arrange::Arrange as _;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::fact::GapKind;
use wakewatt_core::facts::{Snapshot, Topic};
use wakewatt_core::sheet::{Cell, Row, Sheet};
use wakewatt_words::{say, told, word};
use width::{padded, places};

/// More groups than this become a range.
const MAX_GROUPS: usize = 6;

/// Bold or dim, where colour is on.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Use escape codes?
    pub is_on: bool,
}

impl Style {
    pub fn bold(self, text: &str) -> String {
        if self.is_on { format!("\x1b[1m{text}\x1b[0m") } else { text.to_string() }
    }
    /// Less important.
    pub fn dim(self, text: &str) -> String {
        if self.is_on { format!("\x1b[2m{text}\x1b[0m") } else { text.to_string() }
    }
    /// Bad.
    pub fn red(self, text: &str) -> String {
        if self.is_on { format!("\x1b[31m{text}\x1b[0m") } else { text.to_string() }
    }
}

/// Where facts are from, for people; documents have the words of `Source::origin`.
pub fn origin(origin: &str) -> String {
    match (origin.strip_prefix("recorded host "), origin.strip_prefix("tree ")) {
        (Some(name), _) => say!("recorded host {name}"),
        (_, Some(name)) => say!("tree {name}"),
        _ if origin == "this machine" => say!("this machine"),
        _ => origin.to_string(),
    }
}

/// All sheets of a snapshot; a sheet of `more` stands behind that of its topic.
pub fn facts(snapshot: &Snapshot, more: &[(Topic, Sheet)], style: Style, is_listing_gaps: bool) -> String {
    wakewatt_words::spoken(|| all_facts(snapshot, more, style, is_listing_gaps))
}

fn all_facts(snapshot: &Snapshot, more: &[(Topic, Sheet)], style: Style, is_listing_gaps: bool) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", style.bold(&say!("Facts of {}", origin(&snapshot.origin))));
    let online = snapshot.cpus.online.get().map_or(word!("unknown").to_string(), CpuSet::to_string);
    out += &say!("CPUs online: {online}");
    if !snapshot.cpus.offline.is_empty() {
        out += &say!("; offline: {}", snapshot.cpus.offline);
    }
    out.push('\n');
    for (topic, sheet) in snapshot.sheets() {
        let behind = more.iter().filter(|(t, _)| t.id == topic.id).map(|(t, s)| (t, s));
        for (topic, sheet) in std::iter::once((&topic, &sheet)).chain(behind) {
            one_sheet(&mut out, topic, sheet, snapshot.cpus.online.get(), style, is_listing_gaps);
        }
    }
    out
}

fn one_sheet(
    out: &mut String,
    topic: &Topic,
    sheet: &Sheet,
    online: Option<&CpuSet>,
    style: Style,
    is_listing_gaps: bool,
) {
    let _ = writeln!(out, "\n{} {}", style.bold(told(topic.title)), style.dim(&format!("[{}]", topic.id)));
    let groups = group_rows(&sheet.rows);
    let pivots = pivot::find(&groups, online);
    let is_in_table = |at: usize| pivots.iter().any(|p| (p.start..p.end).contains(&at));
    let label_width = groups
        .iter()
        .enumerate()
        .filter(|(at, g)| !is_in_table(*at) && g.iter().any(|r| r.cell.is_ok()))
        .map(|(_, g)| g)
        .map(|g| places(&g[0].label))
        .max()
        .unwrap_or(0)
        .min(44);
    for (at, group) in groups.iter().enumerate() {
        if let Some(table) = pivots.iter().find(|p| (p.start..p.end).contains(&at)) {
            if at == table.start {
                table.draw(out, |text| style.dim(text));
            }
            continue;
        }
        for (value, is_gap) in show_group(group, online) {
            if !is_gap {
                let _ = writeln!(out, "  {}  {value}", padded(&group[0].label, label_width));
            } else {
                let _ = writeln!(out, "  {}  {}", padded(&group[0].label, label_width), style.red(&value));
            }
        }
    }
    for (kind, lead) in [
        (GapKind::Absent, word!("this kernel or hardware has no")),
        (GapKind::NotRecorded, word!("not in the recording")),
    ] {
        let mut missing: Vec<&Row> = sheet.gaps().filter(|(_, gap)| gap.kind == kind).map(|(row, _)| row).collect();
        missing.dedup_by(|a, b| a.label == b.label);
        if missing.is_empty() {
            continue;
        }
        if is_listing_gaps {
            for row in missing {
                if let Err(gap) = &row.cell {
                    let _ = writeln!(out, "  {}", style.dim(&format!("{}: {gap}", row.label)));
                }
            }
        } else {
            let names: Vec<&str> = missing.iter().map(|r| r.label.as_str()).collect();
            let shown = if names.len() > 8 {
                say!("{} and {} more (--gaps lists them)", names[..8].join(", "), names.len() - 8)
            } else {
                names.join(", ")
            };
            let _ = writeln!(out, "  {}", style.dim(&say!("{lead}: {shown}")));
        }
    }
}

fn group_rows(rows: &[Row]) -> Vec<Vec<&Row>> {
    let mut groups: Vec<Vec<&Row>> = Vec::new();
    for row in rows {
        match groups.last_mut() {
            Some(group) if group[0].id == row.id && group[0].label == row.label => group.push(row),
            _ => groups.push(vec![row]),
        }
    }
    groups
}

/// The values of rows that share an id, and whether each is a gap worth a line.
fn show_group(group: &[&Row], online: Option<&CpuSet>) -> Vec<(String, bool)> {
    let known: Vec<(&Cell, Option<&CpuSet>)> =
        group.iter().filter_map(|r| r.cell.as_ref().ok().map(|c| (c, r.cpus.as_ref()))).collect();
    let mut lines: Vec<(String, bool)> = Vec::new();
    if known.len() > MAX_GROUPS {
        let cpus: CpuSet = known.iter().filter_map(|(_, c)| *c).flat_map(CpuSet::iter).collect();
        let mut cells: Vec<&Cell> = known.iter().map(|(c, _)| *c).collect();
        cells.arrange_by(|a, b| size(a).total_cmp(&size(b)));
        let (low, high) = (cells.first(), cells.last());
        if let (Some(low), Some(high)) = (low, high) {
            let range = if matches!(low, Cell::Text(_)) {
                say!("{} different values", known.len())
            } else {
                say!("{low} … {high}, {} different values", known.len())
            };
            lines.push((format!("{range}{}", on_cpus(Some(&cpus), online)), false));
        }
    } else {
        lines.extend(known.iter().map(|(cell, cpus)| (format!("{cell}{}", on_cpus(*cpus, online)), false)));
    }
    for row in group {
        if let Err(gap) = &row.cell {
            if matches!(gap.kind, GapKind::Denied | GapKind::Malformed | GapKind::Failed) {
                lines.push((format!("{}: {gap}{}", told(gap.kind.word()), on_cpus(row.cpus.as_ref(), online)), true));
            }
        }
    }
    lines
}

fn on_cpus(cpus: Option<&CpuSet>, online: Option<&CpuSet>) -> String {
    match cpus {
        None => String::new(),
        Some(cpus) if Some(cpus) == online => String::new(),
        Some(cpus) => say!("  on {cpus}"),
    }
}

fn size(cell: &Cell) -> f64 {
    match cell {
        Cell::Count(n)
        | Cell::Hex(n)
        | Cell::Ns(n)
        | Cell::Khz(n)
        | Cell::Uw(n)
        | Cell::Uj(n)
        | Cell::Bytes(n)
        | Cell::Rpm(n)
        | Cell::MegaTransfers(n) => *n as f64,
        Cell::MilliC(n) => *n as f64,
        Cell::Ratio(r) => *r,
        Cell::Flag(f) => f64::from(u8::from(*f)),
        Cell::Text(_) => 0.0,
    }
}
