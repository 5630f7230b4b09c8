//! Hand-over of a cache line between CPUs, as a heat map; neighbours are joined where there are too many to draw.

use super::super::charts::grid::Grid;
use super::super::data::{Data, Show};
use super::super::words;
use super::section::{Section, table_if_any};
use std::collections::BTreeMap;
use wakewatt_core::samples::cores::{CoresSample, HandOver};
use wakewatt_core::stats::middle::MIN_FOR_INTERVAL;
use wakewatt_words::{say, word};

/// More rows than this are joined: cells of a few pixels must still be seen on a phone.
const MOST: usize = 48;

/// The section; none if nothing was measured.
pub(super) fn section(samples: &[CoresSample]) -> Option<Section> {
    let mut out = Section::new(word!("From CPU to CPU"));
    for (i, sample) in samples.iter().enumerate() {
        let (grid, joined) = matrix(sample);
        let joined = if joined > 1 {
            say!(" Cells join {joined} by {joined} CPUs of neighbouring numbers by their median.")
        } else {
            String::new()
        };
        out.draw(
            format!("cores-{i}"),
            word!("Hand-over of a cache line"),
            say!(
                "Median batch, one way; {} hand-overs a batch. The CPU of the row leads, and the line lies on its node. Grey: not measured.{joined}",
                sample.hand_overs_per_batch
            ),
            &grid,
        );
        let mut data = Data::with(&[
            (word!("nearness"), Show::Text),
            (word!("pairs measured"), Show::Count),
            (word!("of"), Show::Count),
            (word!("median"), Show::Ns),
            (word!("fastest pair"), Show::Ns),
            (word!("slowest pair"), Show::Ns),
        ]);
        for s in &sample.by_nearness {
            let numbers = [s.n_pairs as f64, s.n_pairs_all as f64, s.median_ns, s.least_ns, s.most_ns];
            let mut row = vec![s.nearness.words().into()];
            row.extend(numbers.map(Into::into));
            data.rows.push(row);
            out.lines.push(say!("{}: {} a hand-over", s.nearness.words(), Show::Ns.text(s.median_ns)));
        }
        if let [_] | [_, _] = &sample.pairs[..] {
            out.remarks.extend(sample.pairs.iter().map(pair));
        }
        out.tables.extend(table_if_any(&data, word!("Hand-over by nearness: measured, medians of pairs")));
    }
    (!out.is_empty()).then_some(out)
}

/// One pair, with the interval of its median.
fn pair(p: &HandOver) -> String {
    let [median, low, high, best] = [p.median_ns, p.low_ns, p.high_ns, p.best_ns].map(|ns| Show::Ns.text(ns));
    let (from, to) = (p.from_cpu, p.to_cpu);
    say!(
        "CPU {from} leads {to}: median {median} ({low} to {high}, {}), best {best}, {} batches.",
        match (p.n_batches as usize) < MIN_FOR_INTERVAL {
            true => word!("the range").into(),
            false => words::interval_of(p.covers),
        },
        p.n_batches
    )
}

/// The grid, and how many CPUs a row stands for.
fn matrix(sample: &CoresSample) -> (Grid, usize) {
    let mut cpus: Vec<u32> =
        sample.cpus.iter().chain(sample.pairs.iter().flat_map(|p| [p.from_cpu, p.to_cpu])).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let joined = cpus.len().div_ceil(MOST).max(1);
    let place: BTreeMap<u32, usize> = cpus.iter().enumerate().map(|(i, cpu)| (*cpu, i / joined)).collect();
    let mut cells: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
    for pair in &sample.pairs {
        if let (Some(from), Some(to)) = (place.get(&pair.from_cpu), place.get(&pair.to_cpu)) {
            cells.entry((*from, *to)).or_default().push(pair.median_ns);
        }
    }
    let name = |group: &[u32]| match (group.first(), group.last()) {
        (Some(first), Some(last)) if first != last => format!("{first}–{last}"),
        (Some(first), _) => first.to_string(),
        _ => String::new(),
    };
    let names: Vec<String> = cpus.chunks(joined).map(name).collect();
    let value = |from: usize, to: usize| words::median(cells.get(&(from, to))?.iter().copied());
    let rows =
        names.iter().enumerate().map(|(f, name)| (name.clone(), (0..names.len()).map(|t| value(f, t)).collect()));
    let grid = Grid {
        title: word!("Time of one hand-over of a cache line, by pair of CPUs").into(),
        of: (word!("leading CPU").into(), word!("other CPU").into()),
        show: Show::Ns,
        rows: rows.collect(),
        columns: names.clone(),
    };
    (grid, joined)
}
