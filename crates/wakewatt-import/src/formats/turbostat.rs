//! The table of `turbostat`, with all its columns or those of `--show`: shares, frequencies, watts.
//!
//! A line of column names, then one line for the whole machine (`-` in the columns that say where) and one per CPU. `C6%` is what the
//! kernel asked for, by its own counters; `CPU%c6` what the hardware did; `Pkg%pc6` the package. They are figures that turbostat
//! made over its interval, so they are shown as such and are not turned back into counters. A row that is shorter than the names is
//! usual: package columns stand in the first row of a package only. Frequencies are of the time a CPU was busy (`Bzy_MHz`).

use crate::plain::number;
use crate::reading::{Format, Reading, likely};
use crate::section::Section;
use wakewatt_core::samples::experiment::Unit;
use wakewatt_core::samples::timeline::{Moment, Timeline};
use wakewatt_core::samples::{Label, Window};

/// The format.
pub(super) const FORMAT: Format = Format { id: "turbostat", title: "turbostat's table", detect, read };

/// Columns that say where a row belongs, not how it is there.
const PLACE: &[&str] = &["Package", "Die", "Node", "Core", "CPU", "APIC", "X2APIC", "L3"];
/// Columns of time.
const TIME: &[&str] = &["usec", "Time_Of_Day_Seconds", "TSC"];
/// Words that only this table has.
const OWN: &[&str] = &["Avg_MHz", "Busy%", "Bzy_MHz", "TSC_MHz", "PkgWatt", "CorWatt", "RAMWatt", "PkgTmp", "CoreTmp"];
/// Most windows that are drawn.
const MAX_MOMENTS: usize = 5000;

fn is_names(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.len() < 200
        && !words.is_empty()
        && words.iter().all(|word| number(word).is_none())
        && (words.iter().filter(|word| OWN.contains(word)).count() > 0
            || words
                .iter()
                .filter(|word| word.starts_with("CPU%c") || word.starts_with("Pkg%pc") || word.starts_with("Pk%pc"))
                .count()
                > 0)
}

fn detect(section: &Section<'_>) -> u32 {
    likely(section, "turbostat", |line| line.len() < 4096 && is_names(line)) * 2
}

fn unit_of(column: &str) -> &'static str {
    match column {
        c if c.ends_with("MHz") => "MHz",
        c if c.contains('%') => "%",
        c if c.ends_with("Watt") => "W",
        c if c.ends_with("_J") => "J",
        c if c.ends_with("Tmp") => "C",
        _ => "count",
    }
}

#[derive(Default)]
struct Rounds {
    /// End of each interval, by the table's own time.
    at_ns: Option<u64>,
    n: u64,
    lines: Vec<(String, Timeline)>,
}

impl Rounds {
    /// The value of the whole machine in one interval.
    fn add(&mut self, column: &str, value: f64, length_ns: Option<u64>) {
        if !matches!(
            column,
            "Busy%" | "Bzy_MHz" | "PkgWatt" | "RAMWatt" | "CPU%c1" | "CPU%c6" | "Pkg%pc6" | "C1%" | "C1E%" | "C6%"
        ) {
            return;
        }
        let Some(end_at_ns) = self.at_ns else { return };
        let unit = if unit_of(column) == "W" { Unit::Microwatts } else { Unit::Number };
        let value = if unit == Unit::Microwatts { value * 1e6 } else { value };
        let moment = Moment {
            window: Window { start_at_ns: end_at_ns.saturating_sub(length_ns.unwrap_or(0)), end_at_ns },
            series: column.into(),
            value,
            interval: None,
            invalid_because: None,
        };
        let at = self.lines.iter().position(|(name, _)| name == column).unwrap_or_else(|| {
            let title = format!("turbostat: {column}, whole machine");
            let line = Timeline { title, unit, label: Label::Measured, moments: Vec::new(), changes: Vec::new() };
            self.lines.push((column.into(), line));
            self.lines.len() - 1
        });
        if self.lines[at].1.moments.len() < MAX_MOMENTS {
            self.lines[at].1.moments.push(moment);
        }
    }
}

fn read(reading: &mut Reading<'_>) {
    let mut columns: Vec<String> = Vec::new();
    let mut rounds = Rounds::default();
    let mut is_first = false;
    for (at, line) in reading.open_lines() {
        let text = line.text.trim();
        if text.is_empty() {
            continue;
        }
        if text.len() < 4096 && is_names(text) {
            columns = text.split_whitespace().map(str::to_string).collect();
            is_first = true;
            reading.take(at);
            continue;
        }
        if columns.is_empty() || text.ends_with(" sec") {
            if text.ends_with(" sec") && text.split_whitespace().count() == 2 {
                reading.unused(at);
            }
            continue;
        }
        let cells: Vec<&str> = text.split_whitespace().collect();
        let is_row =
            cells.iter().all(|cell| *cell == "-" || number(cell).is_some() || crate::plain::hex(cell).is_some());
        if !is_row {
            continue;
        }
        if cells.len() > columns.len() {
            reading.refuse(at, "more values than columns: no telling which is which");
            continue;
        }
        let named = || columns.iter().map(String::as_str).zip(cells.iter().copied());
        let place = |name: &str| named().find(|(column, _)| *column == name).map(|(_, cell)| cell);
        // The row of the whole machine has dashes. Where no column says where, it is the first one (turbostat(8) prints the summary on top).
        let is_placed = columns.iter().any(|column| PLACE.contains(&column.as_str()));
        let is_machine = match is_placed {
            true => PLACE.iter().filter_map(|name| place(name)).all(|cell| cell == "-"),
            false => std::mem::take(&mut is_first),
        };
        let of = match place("CPU").and_then(|cell| cell.parse::<u32>().ok()) {
            _ if is_machine => "all CPUs".to_string(),
            Some(cpu) => format!("CPU {cpu}"),
            None if !is_placed => "rows that nothing places".to_string(),
            None => continue,
        };
        let mut length_ns = None;
        if is_machine {
            rounds.n += 1;
            length_ns = place("usec").and_then(number).map(ns_of_us);
            let now = place("Time_Of_Day_Seconds").and_then(number).map(|s| ns_of_us(s * 1e6));
            rounds.at_ns = now.or_else(|| Some(rounds.at_ns.unwrap_or(0) + length_ns?));
        }
        reading.take(at);
        for (column, cell) in named().filter(|(column, _)| !PLACE.contains(column) && !TIME.contains(column)) {
            let Some(value) = number(cell) else { continue };
            if is_machine {
                reading.figure(at, column, &of, unit_of(column), value);
                rounds.add(column, value, length_ns);
            } else if matches!(unit_of(column), "%" | "W" | "C" | "MHz") {
                reading.figure(at, column, &of, unit_of(column), value);
            }
        }
    }
    reading
        .taken
        .timelines
        .extend(rounds.lines.into_iter().map(|(_, line)| line).filter(|line| line.moments.len() > 1));
    if rounds.n > 1 && rounds.at_ns.is_none() {
        reading
            .remark("turbostat's table has no times (--enable usec), so its intervals are not drawn over time".into());
    }
}

/// Positive and below the age of the universe.
fn ns_of_us(us: f64) -> u64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let ns = (us * 1000.0).clamp(0.0, 1.8e19) as u64;
    ns
}

#[cfg(test)]
mod tests {
    use crate::formats::testing::{formats, read};

    #[test]
    fn the_whole_machine_and_each_cpu() {
        let text = "usec\tTime_Of_Day_Seconds\tCore\tCPU\tAvg_MHz\tBusy%\tBzy_MHz\tC6%\tCPU%c6\tPkg%pc6\tPkgWatt\n\
            5000000\t1700000005.0\t-\t-\t88\t4.06\t2168\t91.20\t88.10\t40.00\t35.50\n100\t1700000005.0\t0\t0\t88\t5.00\t2168\t90.00\t87.00\t40.00\t35.50\n90\t1700000005.0\t0\t1\t88\t3.12\t2168\t92.40\n\
            usec\tTime_Of_Day_Seconds\tCore\tCPU\tAvg_MHz\tBusy%\tBzy_MHz\tC6%\tCPU%c6\tPkg%pc6\tPkgWatt\n5000000\t1700000010.0\t-\t-\t88\t6.06\t2168\t91.20\t88.10\t40.00\t36.50\n";
        let found = read(text);
        assert_eq!(formats(&found), ["turbostat"]);
        let of = |what: &str, of: &str| {
            found.document.derived.iter().find(|d| d.what == what && d.of == of).unwrap().clone()
        };
        assert_eq!((of("PkgWatt", "all CPUs").mean, of("PkgWatt", "all CPUs").n), (36.0, 2));
        assert_eq!(of("C6%", "CPU 1").mean, 92.4);
        let watts = found.samples.timelines.iter().find(|t| t.title.contains("PkgWatt")).unwrap();
        assert_eq!((watts.moments.len(), watts.moments[1].value), (2, 36_500_000.0));
        assert_eq!(found.document.files[0].n_not_understood, 0, "{:?}", found.document.files[0].not_understood);
    }

    #[test]
    fn only_some_columns_and_a_comma_for_the_point() {
        let found = read("Busy%\tBzy_MHz\tPkgWatt\n4,06\t1562\t17,66\n");
        assert_eq!(found.document.derived.iter().map(|d| d.mean).collect::<Vec<_>>(), [4.06, 1562.0, 17.66]);
        let cut = read("Core CPU Busy% PkgWatt\n- - 4.0 17.6\n0 0 4.0 17.6 88 99\n0 1 4.");
        assert_eq!(cut.document.files[0].n_not_understood, 1);
    }
}
