//! `wakewatt measure cores`: how long a cache line takes between every two CPUs, as a matrix.

use super::Measured;
use crate::cli::CoresArgs;
use crate::view::wrap::wrap;
use anyhow::Result;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use wakewatt_core::samples::cores::{CoresSample, Neighbourhood};
use wakewatt_core::source::Source;
use wakewatt_core::stats::middle::median;
use wakewatt_core::units::Cpu;
use wakewatt_lab::context::Lab;
use wakewatt_lab::survey::{self, CoresPlan, Found, neighbourhood};
use wakewatt_words::{say, word};

/// More columns than this are grouped by last-level cache.
const MAX_COLUMNS: usize = 24;
/// From fast to slow.
const SHADES: [char; 5] = [' ', '.', ':', '+', '#'];

/// Runs it.
pub(super) fn run(args: &CoresArgs, lab: Lab<'_>) -> Result<Measured> {
    let plan = CoresPlan { cpus: args.cpu.clone(), n_pairs: args.pairs, seed: args.seed };
    let Found { samples: cores, not_done } = survey::cores(lab, &plan)?;
    Ok(Measured { cores, not_done, ..Measured::default() })
}

/// The heat map in characters; the page's section, below it, has the medians by nearness.
pub(super) fn text(out: &mut String, sample: &CoresSample, src: &dyn Source, width: usize) {
    let said = say!(
        "One cache line handed from CPU to CPU, ns one way (medians of {n_batches} batches of {n} hand-overs). The row leads, and the line lies on its memory node.",
        n_batches = sample.pairs.first().map_or(0, |p| p.n_batches),
        n = sample.hand_overs_per_batch
    );
    let _ = writeln!(out, "{}\n", wrap("", "", &said, width));
    matrix(out, sample, &neighbourhood(src, &sample.cpus));
    out.push('\n');
}

/// Rows lead, columns follow; a cell's shade is its place between the fastest and the slowest.
fn matrix(out: &mut String, sample: &CoresSample, near: &Neighbourhood) {
    let is_grouped = sample.cpus.len() > MAX_COLUMNS;
    let name = |cpu: Cpu| if is_grouped { near.group(cpu) } else { cpu.to_string() };
    // In the order of the CPUs, each group once.
    let mut heads: Vec<String> = Vec::new();
    for cpu in sample.cpus.iter() {
        let name = name(cpu);
        if !heads.contains(&name) {
            heads.push(name);
        }
    }
    let mut cells: BTreeMap<(String, String), Vec<f64>> = BTreeMap::new();
    for pair in &sample.pairs {
        cells.entry((name(pair.from_cpu), name(pair.to_cpu))).or_default().push(pair.median_ns);
    }
    let cells: BTreeMap<(String, String), f64> =
        cells.into_iter().filter_map(|(at, mut values)| Some((at, median(&mut values)?))).collect();
    let fastest = cells.values().copied().fold(f64::INFINITY, f64::min);
    let slowest = cells.values().copied().fold(0.0, f64::max);
    if is_grouped {
        let _ = writeln!(out, "{}", word!("grouped by last-level cache; a cell is the median of its pairs"));
    }
    let width = heads.iter().map(String::len).max().unwrap_or(1).max(5);
    let line: String = heads.iter().map(|h| format!(" {h:>width$} ")).collect();
    let _ = writeln!(out, "{:>width$} {line}", "from");
    for row in &heads {
        let _ = write!(out, "{row:>width$} ");
        for column in &heads {
            match cells.get(&(row.clone(), column.clone())) {
                Some(ns) => {
                    let _ = write!(out, " {:>width$}{}", format!("{ns:.0}"), shade(*ns, fastest, slowest));
                }
                None => {
                    let _ = write!(out, " {:>width$} ", if row == column { "-" } else { "?" });
                }
            }
        }
        let _ = writeln!(out);
    }
    if slowest > fastest * 1.2 {
        let _ = writeln!(out, "{}", say!("shade: blank {fastest:.0}ns … # {slowest:.0}ns, in equal steps"));
    }
}

fn shade(ns: f64, fastest: f64, slowest: f64) -> char {
    // Pairs that differ by less than a fifth have one shade: noise must not look like structure.
    if slowest <= fastest * 1.2 {
        return ' ';
    }
    let place = (ns - fastest) / (slowest - fastest) * SHADES.len() as f64;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 to 5, then clamped
    let at = (place.max(0.0) as usize).min(SHADES.len() - 1);
    SHADES[at]
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::cpuset::CpuSet;
    use wakewatt_core::samples::cores::{HandOver, Nearness};
    use wakewatt_core::samples::{Scheduling, Window};
    use wakewatt_core::source::Tree;

    fn sample(n: u32) -> CoresSample {
        let pair = |(from_cpu, to_cpu): (u32, u32)| HandOver {
            covers: wakewatt_core::covers::Covers::Window,
            from_cpu,
            to_cpu,
            nearness: Nearness::Unknown,
            best_ns: 50.0,
            median_ns: if from_cpu / 2 == to_cpu / 2 { 50.0 } else { 150.0 },
            low_ns: 50.0,
            high_ns: 51.0,
            n_batches: 100,
            line_node: None,
        };
        let all = (0..n).flat_map(|a| (0..n).filter(move |b| *b != a).map(move |b| (a, b)));
        CoresSample {
            cpus: (0..n).collect::<CpuSet>(),
            pairs: all.map(pair).collect(),
            by_nearness: Vec::new(),
            hand_overs_per_batch: 999,
            seed: None,
            scheduling: Scheduling::Fifo(80),
            window: Window::default(),
        }
    }

    #[test]
    fn near_pairs_are_blank_and_far_ones_dark() {
        let mut out = String::new();
        matrix(&mut out, &sample(4), &Neighbourhood::default());
        let rows: Vec<&str> = out.lines().collect();
        assert_eq!(rows[1].split_whitespace().collect::<Vec<_>>(), ["0", "-", "50", "150#", "150#"]);
        assert!(rows[5].starts_with("shade: blank 50ns"), "{out}");
        let mut out = String::new();
        super::text(&mut out, &sample(2), &Tree::default(), 140);
        assert!(out.contains("(medians of 100 batches of 999 hand-overs)"), "{out}");
    }
}
