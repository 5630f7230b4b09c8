//! Reading from a disk: how long a read takes, by engine and depth. The experiment with and without sleep is in `experiment`.

use super::super::charts::distribution;
use super::super::data::Show;
use super::super::table::{Table, heads};
use super::super::words;
use super::samples::{DISTRIBUTION_HEADS, distribution_cells, distribution_figure};
use super::section::Section;
use wakewatt_core::arrange::Arrange as _;
use wakewatt_core::samples::IdleDelta;
use wakewatt_core::samples::disk::DiskSample;
use wakewatt_words::{say, word};

/// CPUs whose sleep is shown.
const MAX_CPUS: usize = 4;
/// Fewer sleeps per read than this are other work's.
const FEW_SLEEPS: f64 = 0.05;

/// The section; none if nothing was measured.
pub(super) fn section(samples: &[DiskSample]) -> Option<Section> {
    let mut out = Section::new(word!("Reading from disk"));
    let named: Vec<(String, &DiskSample)> = samples.iter().map(|s| (name(s), s)).collect();
    // Six curves at most share a figure: more could not be told apart.
    for (i, chunk) in named.chunks(4).enumerate() {
        let curves: Vec<distribution::Curve<'_>> = chunk
            .iter()
            .enumerate()
            .filter(|(_, (_, s))| s.latency.n > 0)
            .map(|(index, (name, s))| distribution::Curve { name, index, latency: &s.latency })
            .collect();
        let caption = word!(
            "How often each latency occurred (top, every engine scaled to its own peak) and the percentiles (below)."
        );
        let title = word!("Latency of a read from disk");
        out.figures.extend(distribution_figure(format!("disk-{i}"), title, caption, &curves, None));
    }
    if !named.is_empty() {
        out.tables.push(table(&named));
    }
    for (name, s) in &named {
        out.lines.extend(s.latency.p50_ns().map(|ns| say!("{name}: {} median", words::ns(ns as f64))));
        out.remarks.extend(s.remarks.iter().map(|r| format!("{name}: {r}")));
        out.remarks.extend(late(s).map(|said| format!("{name}: {said}")));
        out.remarks.extend(sleeps(s).into_iter().map(|said| format!("{name}: {said}")));
    }
    (!out.is_empty()).then_some(out)
}

/// Where reads do not keep their plan, the wait is in their latency.
fn late(s: &DiskSample) -> Option<String> {
    if s.n_never_started > 0 {
        return Some(say!(
            "{} planned reads were never started: the disk does not keep {} at depth {}; give a lower --rate or a higher \
             --depth",
            words::count(s.n_never_started),
            Show::PerS.text(s.planned_per_s.unwrap_or_default()),
            s.depth
        ));
    }
    (s.n_late_starts.saturating_mul(10) > s.latency.n).then(|| {
        say!(
            "{} of {} reads started late, because those before were not done; the wait is counted",
            words::count(s.n_late_starts),
            words::count(s.latency.n)
        )
    })
}

/// Which CPUs slept, and how often per read: those that were woken by it are near 1 at depth 1.
fn sleeps(s: &DiskSample) -> Vec<String> {
    let slept = |cpu: u32| s.sleeps_per_read(cpu).unwrap_or(0.0);
    let mut idle: Vec<_> = s.idle.iter().filter(|d| slept(d.cpu) >= FEW_SLEEPS).collect();
    idle.arrange_by(|a, b| slept(b.cpu).total_cmp(&slept(a.cpu)));
    let said = |delta: &IdleDelta| {
        let used = delta.states.iter().filter(|s| s.n_usage > 0);
        let states: Vec<String> = used
            .map(|s| {
                let each = words::ns(s.time_ns as f64 / s.n_usage as f64);
                say!("{} {}×, {each} each", s.name, words::count(s.n_usage))
            })
            .collect();
        let reader = if s.cpus.contains(&delta.cpu) { word!(" (reads)") } else { "" };
        let (times, states) = (Show::Number.text(slept(delta.cpu)), words::clauses(&states));
        say!("CPU {}{reader} slept {times} times per read: {states} (idle counters of all its work)", delta.cpu)
    };
    idle.into_iter().take(MAX_CPUS).map(said).collect()
}

fn name(s: &DiskSample) -> String {
    let rate = s.planned_per_s.map_or(String::new(), |rate| say!(", {} planned", Show::PerS.text(rate)));
    let block = Show::Bytes.text(s.block_bytes as f64);
    say!("{} {} {block}, depth {}{rate}", s.engine.word(), s.access.word(), s.depth)
}

fn table(named: &[(String, &DiskSample)]) -> Table {
    let mut names = heads(&[
        word!("reads"),
        word!("from"),
        word!("reads/s"),
        word!("throughput"),
        word!("CPU per read"),
        word!("sleeps per read"),
    ]);
    names.extend(heads(DISTRIBUTION_HEADS));
    let rows = named.iter().flat_map(|(name, s)| {
        let through = if s.target.is_direct { word!("direct") } else { word!("through the page cache") };
        let from = format!("{} ({through})", s.target.device.as_ref().unwrap_or(&s.target.path));
        let sleeps = s.cpus.first().and_then(|cpu| s.sleeps_per_read(*cpu));
        let mut row = vec![name.clone(), from, Show::PerS.text(s.reads_per_s), Show::BytesPerS.text(s.bytes_per_s)];
        row.push(Show::Ns.text(s.cpu_ns_per_read));
        row.push(sleeps.map_or("–".into(), |n| Show::Number.text(n)));
        row.extend(distribution_cells(&s.latency));
        // From submission, where the latency counts from the plan.
        let submitted = s.service.as_ref().map(|service| {
            let mut row = vec![say!("{name}, from submission"), "–".to_string()];
            row.extend(["–"; 4].map(String::from));
            row.extend(distribution_cells(service));
            row
        });
        std::iter::once(row).chain(submitted)
    });
    Table {
        caption: say!(
            "Reads from disk: measured; percentiles with their {}",
            words::interval_of(wakewatt_core::covers::Covers::Window)
        ),
        heads: names,
        rows: rows.collect(),
        n_text_columns: 2,
    }
}
