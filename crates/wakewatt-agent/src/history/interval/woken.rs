//! Wake-ups of an interval, from the classic buckets that a history keeps: a percentile is the upper bound of its bucket.

use super::Between;
use crate::families::class_word;
use crate::metric::names;
use std::collections::BTreeMap;
use wakewatt_core::arrange::Arrange as _;
use wakewatt_core::samples::wakes::WakeClass;
use wakewatt_core::watch::LatencyRow;

/// A percentile needs so many beyond it.
const FEWEST_BEYOND: f64 = 10.0;

/// Are these enough for that percentile?
pub(crate) fn are_enough(n: f64, q: f64) -> bool {
    n * (1.0 - q) >= FEWEST_BEYOND
}

/// Counts by upper bound in seconds; the last has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Buckets(Vec<(f64, f64)>);

impl Buckets {
    pub(crate) fn add(&mut self, bound_s: f64, n: f64) {
        match self.0.iter_mut().find(|(own, _)| own.total_cmp(&bound_s).is_eq()) {
            Some((_, count)) => *count += n,
            None => {
                self.0.push((bound_s, n));
                self.0.arrange_by(|a, b| a.0.total_cmp(&b.0));
            }
        }
    }

    pub(crate) fn join(&mut self, other: &Buckets) {
        other.0.iter().for_each(|(bound_s, n)| self.add(*bound_s, *n));
    }

    pub(crate) fn n(&self) -> f64 {
        self.0.iter().map(|(_, n)| n).sum()
    }

    /// At or below which this share of them lies, in seconds; none with too few, or where that is beyond the last bound.
    pub(crate) fn quantile_s(&self, q: f64) -> Option<f64> {
        let total = self.n();
        let mut below = 0.0;
        let found = self.0.iter().find(|(_, n)| {
            below += n;
            below >= q * total
        });
        found.map(|(bound_s, _)| *bound_s).filter(|bound_s| bound_s.is_finite() && are_enough(total, q))
    }
}

/// All wake-ups from idle states of the interval; none where the agent did not trace.
pub(crate) fn at_most_s(between: &Between<'_>) -> Option<Buckets> {
    let mut found: Option<Buckets> = None;
    for (series, n) in between.grown(&names::WAKEUP_LATENCY, "_in").filter(|(s, _)| s.label("class") != Some("busy")) {
        let bound_s = series.label("le").and_then(|le| le.parse().ok());
        if let (Some(bound_s), Some(n)) = (bound_s, n) {
            found.get_or_insert_default().add(bound_s, n);
        }
    }
    found
}

/// Who woke the CPU, as `watch` says it.
fn words(label: &str) -> String {
    let class = WakeClass::ALL.into_iter().find(|class| class_word(*class) == label);
    class.map_or(label, |class| class.words()).into()
}

/// By state and by who woke the CPU.
pub(super) fn rows(between: &Between<'_>) -> Option<Vec<LatencyRow>> {
    let mut found: BTreeMap<(u32, String, String), (Buckets, f64)> = BTreeMap::new();
    for part in ["_in", "_sum"] {
        for (series, grown) in between.grown(&names::WAKEUP_LATENCY, part) {
            let (Some(state), Some(class), Some(grown)) = (series.label("state"), series.label("class"), grown) else {
                continue;
            };
            let key = (series.number("index").unwrap_or(u32::MAX), state.to_string(), words(class));
            let (buckets, sum_s) = found.entry(key).or_default();
            match series.label("le").and_then(|le| le.parse().ok()) {
                Some(bound_s) => buckets.add(bound_s, grown),
                None => *sum_s += grown,
            }
        }
    }
    // Nanoseconds and counts of one interval.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let row = |((_, state, class), (buckets, sum_s)): ((u32, String, String), (Buckets, f64))| LatencyRow {
        state,
        class,
        n: buckets.n() as u64,
        p50_ns: buckets.quantile_s(0.5).map(|s| (s * 1e9).round() as u64),
        p99_ns: buckets.quantile_s(0.99).map(|s| (s * 1e9).round() as u64),
        lost_ns: (sum_s * 1e9) as u64,
    };
    let rows: Vec<LatencyRow> = found.into_iter().map(row).filter(|row| row.n > 0).collect();
    // A trace that counted nothing in an interval is one all the same.
    between.has(&names::WAKEUP_LATENCY).then_some(rows)
}
