//! `cpupower monitor`: shares of time in each state, by the kernel's counters and by the hardware's.
//!
//! ```text
//!     | Nehalem        || Mperf              || Idle_Stats
//!  CPU| C3   | C6      || C0   | Cx   | Freq || POLL | C1   | C6
//!    0|  0.00|  99.20  ||  0.23| 99.77|  1204||  0.00|  0.01| 99.80
//! ```
//! `Idle_Stats` is what the kernel asked for, `Nehalem` and its like what the hardware did; the same name stands in both and they need
//! not agree. Columns before the first monitor say where a row belongs. They are figures, like turbostat's.

use crate::plain::number;
use crate::reading::{Format, Reading, likely};

/// The format.
pub(super) const FORMAT: Format = Format { id: "cpupower-monitor", title: "cpupower monitor", detect, read };

const MONITORS: &[&str] =
    &["Idle_Stats", "Mperf", "Nehalem", "SandyBridge", "HaswellExtended", "Ontario", "RAPL", "Fam12h", "Fam14h"];
const PLACE: &[&str] = &["PKG", "CORE", "CPU"];

/// The cells of a row, monitor by monitor; the columns of place are the first monitor's.
fn groups(line: &str) -> Vec<Vec<&str>> {
    line.split("||").map(|group| group.split('|').map(str::trim).collect()).collect()
}

fn is_titles(line: &str) -> bool {
    line.len() < 4096 && groups(line).iter().any(|g| g.last().is_some_and(|cell| MONITORS.contains(cell)))
}

fn is_names(line: &str) -> bool {
    line.len() < 4096 && groups(line).first().is_some_and(|group| group.contains(&"CPU"))
}

fn detect(section: &crate::section::Section<'_>) -> u32 {
    likely(section, "cpupower", is_titles) * 2
}

fn read(reading: &mut Reading<'_>) {
    let mut titles: Vec<String> = Vec::new();
    let mut names: Vec<Vec<String>> = Vec::new();
    for (at, line) in reading.open_lines() {
        let text = line.text.trim();
        if is_titles(text) {
            titles = groups(text).iter().map(|g| g.last().map_or(String::new(), |cell| cell.to_string())).collect();
            names.clear();
            reading.take(at);
        } else if titles.is_empty() {
            continue;
        } else if is_names(text) {
            names = groups(text).iter().map(|g| g.iter().map(|cell| cell.to_string()).collect()).collect();
            reading.take(at);
        } else if text.contains("is offline") {
            reading.unused(at);
        } else if text.contains('|') {
            let cells = groups(text);
            let is_fit = cells.len() == names.len() && cells.iter().zip(&names).all(|(c, n)| c.len() <= n.len());
            if !is_fit || names.is_empty() {
                reading.refuse(at, "not as many values as columns");
                continue;
            }
            row(reading, at, &titles, &names, &cells);
        }
    }
}

fn row(reading: &mut Reading<'_>, at: usize, titles: &[String], names: &[Vec<String>], cells: &[Vec<&str>]) {
    let place = names[0].iter().position(|name| name == "CPU").and_then(|column| cells[0].get(column));
    let Some(cpu) = place.and_then(|cell| crate::facts::cpu_number(cell.trim_end_matches('*'))) else {
        reading.refuse(at, "no CPU's number");
        return;
    };
    reading.take(at);
    for ((title, names), cells) in titles.iter().zip(names).zip(cells) {
        for (name, cell) in names.iter().zip(cells).filter(|(name, _)| !PLACE.contains(&name.as_str())) {
            let Some(value) = number(cell) else { continue };
            let unit = if name == "Freq" { "MHz" } else { "%" };
            reading.figure(at, &format!("{name} ({title})"), &format!("CPU {cpu}"), unit, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::formats::testing::{formats, read};

    #[test]
    fn what_was_asked_for_and_what_was_reached() {
        let found = read(
            "$ cpupower monitor\n              | Nehalem            || Mperf              || Idle_Stats \n PKG|CORE| CPU| C3   | C6   | PC6  || C0   | Cx   | Freq  || POLL | C1   | C6   \n   0|   0|   0|  0.00| 99.20|  0.00||  0.23| 99.77|  1204||  0.00|  0.01| 99.80\n   0|   1|   1|  0.00| 98.20|  0.00||  0,24| 99,76|  1200||  0.00|  0.01| 99.70\n   0|   2|   2|  0.00\n",
        );
        assert_eq!(formats(&found), ["cpupower-monitor"]);
        let of = |what: &str, of: &str| {
            found.document.derived.iter().find(|d| d.what == what && d.of == of).map(|d| (d.mean, d.unit.clone()))
        };
        assert_eq!(of("C6 (Idle_Stats)", "CPU 0"), Some((99.8, "%".into())));
        assert_eq!(of("C6 (Nehalem)", "CPU 1"), Some((98.2, "%".into())));
        assert_eq!(of("Freq (Mperf)", "CPU 0"), Some((1204.0, "MHz".into())));
        assert_eq!(found.document.files[0].n_not_understood, 1, "the row that was cut");
    }
}
