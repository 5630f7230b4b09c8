//! Latencies as they come: the histogram, and in which order.
//!
//! The order tells what a histogram forgets: whether neighbours resemble each other. A wake-up is slow because the machine
//! is slow just now, so ten thousand samples may be worth a hundred. The order is kept as one short code per sample (128 steps
//! to a doubling), and given up, not thinned, where there are more samples than anybody can keep.

use super::histogram;
use hdrhistogram::Histogram;
use std::ops::Deref;

/// Eight megabytes of codes, of one thread and one window.
const MAX_KEPT: usize = 4 << 20;
/// Made beforehand, so that a minute of wake-ups allocates nothing in the loop.
const RESERVED: usize = 1 << 16;
/// Steps to a doubling, as a power of two.
const STEP_BITS: u32 = 7;

/// A histogram that remembers how each part of its window was.
#[derive(Clone, Debug)]
pub struct Recorder {
    all: Histogram<u64>,
    /// One list per thread that measured at the same time; none where the order is not known.
    orders: Option<Vec<Vec<u16>>>,
}

impl Default for Recorder {
    fn default() -> Recorder {
        Recorder { all: histogram(), orders: Some(vec![Vec::with_capacity(RESERVED)]) }
    }
}

impl Recorder {
    /// Counts one sample, after those before it.
    pub fn saturating_record(&mut self, ns: u64) {
        self.all.saturating_record(ns);
        let Some([.., order]) = self.orders.as_deref_mut() else { return };
        if order.len() < MAX_KEPT {
            order.push(code(ns));
        } else {
            self.orders = None;
        }
    }

    /// Adds what another thread measured in the same window.
    pub fn add(&mut self, other: &Recorder) {
        self.count(other);
        match (&mut self.orders, &other.orders) {
            (Some(mine), Some(theirs)) => mine.extend(theirs.iter().filter(|order| !order.is_empty()).cloned()),
            (mine, _) => *mine = None,
        }
    }

    /// Adds what was measured later.
    pub fn append(&mut self, later: &Recorder) {
        self.count(later);
        let Some(theirs) = &later.orders else {
            self.orders = None;
            return;
        };
        let Some(mine) = &mut self.orders else { return };
        mine.resize(mine.len().max(theirs.len()), Vec::new());
        for (mine, theirs) in mine.iter_mut().zip(theirs) {
            mine.extend(theirs);
        }
        if mine.iter().any(|order| order.len() > MAX_KEPT) {
            self.orders = None;
        }
    }

    /// What all of it comes to, without its order.
    pub fn into_histogram(self) -> Histogram<u64> {
        self.all
    }

    fn count(&mut self, other: &Recorder) {
        // All our histograms have the same bounds, so nothing is out of range.
        let _ = self.all.add(&other.all);
    }

    /// So many parts of the window, one after the other; none where the order is not known.
    pub fn parts(&self, n_parts: usize) -> Vec<Vec<u16>> {
        let part = |at: usize| -> Vec<u16> {
            let of = |order: &Vec<u16>| order[order.len() * at / n_parts..order.len() * (at + 1) / n_parts].to_vec();
            self.orders.iter().flatten().flat_map(of).collect()
        };
        if self.orders.is_none() { Vec::new() } else { (0..n_parts).map(part).collect() }
    }
}

impl Deref for Recorder {
    type Target = Histogram<u64>;

    fn deref(&self) -> &Histogram<u64> {
        &self.all
    }
}

/// The step a duration lies in.
#[allow(clippy::cast_possible_truncation)] // 64 doublings of 128 steps are below 2^14
pub(super) fn code(ns: u64) -> u16 {
    let ns = ns.max(1);
    let doubling = ns.ilog2();
    let below = ns - (1 << doubling);
    let step = if doubling >= STEP_BITS { below >> (doubling - STEP_BITS) } else { below << (STEP_BITS - doubling) };
    (doubling << STEP_BITS) as u16 + step as u16
}

/// The upper edge of a step, inclusive.
pub(super) fn upto_ns(code: u16) -> u64 {
    let (doubling, step) = (u32::from(code) >> STEP_BITS, u64::from(code) & ((1 << STEP_BITS) - 1));
    let low = 1u64.checked_shl(doubling).unwrap_or(u64::MAX);
    match doubling.checked_sub(STEP_BITS) {
        Some(more) => low.saturating_add(((step + 1) << more) - 1),
        None => low + (step >> (STEP_BITS - doubling)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_narrow_and_in_order() {
        for ns in (1..100_000).chain([u64::MAX / 3, u64::MAX]) {
            let (code, upto) = (code(ns), upto_ns(code(ns)));
            assert!(upto >= ns && upto - ns <= ns / 128, "{ns} {upto}");
            assert!(super::code(ns.saturating_add(1)) >= code);
        }
    }

    #[test]
    fn threads_lie_side_by_side_and_slices_behind_each_other() {
        let of = |from: u64| {
            let mut one = Recorder::default();
            (from..from + 40).for_each(|ns| one.saturating_record(ns));
            one
        };
        let mut beside = of(1);
        beside.add(&of(50));
        let first: Vec<usize> = beside.parts(4).iter().map(Vec::len).collect();
        assert_eq!((first, beside.len()), (vec![20; 4], 80));
        assert_eq!(beside.parts(4)[0], (1..11).chain(50..60).map(code).collect::<Vec<_>>());
        let mut behind = of(1);
        behind.append(&of(50));
        assert_eq!(behind.parts(2)[1], (50..90).map(code).collect::<Vec<_>>());
    }
}
