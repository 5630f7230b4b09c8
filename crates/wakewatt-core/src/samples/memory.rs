//! A memory measurement: latency against working set, under load, bandwidth, and both between nodes.
//!
//! A latency is the best of several samples, as multichase, lmbench and STREAM print it: noise only ever adds time
//! (Chen & Revels 2016). The median and the spread stand beside it. Cache sizes are not taken from what the machine says:
//! a guest often reports the whole host's L3, so [`plateaus`] finds the levels in the curve itself.

use super::{Label, Window};
use crate::cpuset::CpuSet;
use serde::{Deserialize, Serialize};
use wakewatt_words::{say, word};

/// Points that differ by less than this belong to one level.
const LEVEL_SPREAD: f64 = 1.10;
/// A level spans at least this factor in size; shorter ones are part of a slope.
const LEVEL_SPAN: f64 = 1.9;

/// Everything one run of `measure memory` found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemorySample {
    /// From when to when it was measured.
    pub window: Window,
    /// Latency against working set, once per page size.
    pub latency: Vec<LatencyCurve>,
    /// Latency while other CPUs read.
    pub loaded: Option<LoadedCurve>,
    /// Bandwidth by kernel and number of CPUs.
    pub bandwidth: Vec<Bandwidth>,
    /// Every node of CPUs with every node of memory.
    pub matrix: Vec<MatrixCell>,
    /// The working set chased for the matrix; none where there is no matrix, or in documents before it was kept.
    #[serde(default)]
    pub matrix_bytes: Option<u64>,
    /// What random placement costs against bound, from the matrix.
    pub placement: Option<Placement>,
    /// What could not be measured, or not as wished, and why.
    pub not_done: Vec<String>,
}

/// Which pages were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PageWish {
    /// 2 MB pages: the latency of the hardware.
    Huge,
    /// Base pages: what a program gets that does nothing about it; address translation included.
    Base,
}

impl PageWish {
    /// For tables and options.
    pub fn word(self) -> &'static str {
        match self {
            PageWish::Huge => "huge",
            PageWish::Base => "base",
        }
    }
}

/// Latency of dependent loads against the size of the working set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyCurve {
    /// The page size that was asked for.
    pub pages: PageWish,
    /// The share that lies in huge pages, by smaps; none where it could not be told.
    pub huge_ratio: Option<f64>,
    /// The CPU that chased through the rings.
    pub cpu: u32,
    /// The node the memory was bound to; none if it was not bound.
    pub node: Option<u32>,
    /// Bytes per element; one line of each is used.
    pub stride_bytes: u64,
    /// Elements within this range are visited before the next range; none: random over all.
    pub locality_bytes: Option<u64>,
    /// One point per size, smallest first.
    pub points: Vec<LatencyPoint>,
    /// Levels found in the curve, nearest first; the last is memory if `is_settled`.
    pub plateaus: Vec<Plateau>,
    /// Did the curve end on a level? If not, memory is slower than its last point.
    pub is_settled: bool,
}

impl LatencyCurve {
    /// The latency of memory: the last level, or else the last point, a lower bound.
    pub fn memory_ns(&self) -> Option<f64> {
        let last = self.points.last().map(|p| p.best_ns);
        if self.is_settled { self.plateaus.last().map(|p| p.latency_ns).or(last) } else { last }
    }
}

/// One working set.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyPoint {
    /// Size of the working set.
    pub size_bytes: u64,
    /// The best sample, per load.
    pub best_ns: f64,
    /// The median sample, per load.
    pub median_ns: f64,
    /// Standard deviation of the samples over their mean.
    pub cv_ratio: f64,
    /// How many samples were taken at this size.
    pub n_samples: u64,
    /// How many loads all samples had together.
    pub n_loads: u64,
}

impl LatencyPoint {
    /// From the samples of one size; none without any.
    pub fn of(size_bytes: u64, per_load_ns: &[f64], n_loads: u64) -> Option<LatencyPoint> {
        let spread = Spread::of(per_load_ns)?;
        let n_samples = per_load_ns.len() as u64;
        Some(LatencyPoint {
            size_bytes,
            best_ns: spread.min,
            median_ns: spread.median,
            cv_ratio: spread.cv_ratio,
            n_samples,
            n_loads,
        })
    }
}

/// Least, middle, greatest and relative spread of some samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Least.
    pub min: f64,
    /// Middle.
    pub median: f64,
    /// Greatest.
    pub max: f64,
    /// Standard deviation (n - 1) over mean.
    pub cv_ratio: f64,
}

impl Spread {
    /// None without samples.
    pub fn of(samples: &[f64]) -> Option<Spread> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let n = sorted.len();
        let median = f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2]);
        let mean = sorted.iter().sum::<f64>() / n as f64;
        let square: f64 = sorted.iter().map(|x| (x - mean).powi(2)).sum();
        let deviation = if n > 1 { (square / (n - 1) as f64).sqrt() } else { 0.0 };
        let cv_ratio = if mean > 0.0 { deviation / mean } else { 0.0 };
        Some(Spread { min, median, max, cv_ratio })
    }
}

/// A level of the hierarchy, found in the curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plateau {
    /// The smallest working set on it.
    pub from_bytes: u64,
    /// The largest: the knee. What this level holds lies between this and the next size.
    pub to_bytes: u64,
    /// The median of its points' best samples.
    pub latency_ns: f64,
}

/// The levels of a curve, and whether it ends on one.
pub fn plateaus(points: &[LatencyPoint]) -> (Vec<Plateau>, bool) {
    let mut found = Vec::new();
    let mut from = 0;
    while from < points.len() {
        let (mut low, mut high) = (points[from].best_ns, points[from].best_ns);
        let mut to = from;
        for (at, point) in points.iter().enumerate().skip(from + 1) {
            (low, high) = (low.min(point.best_ns), high.max(point.best_ns));
            if high > low * LEVEL_SPREAD {
                break;
            }
            to = at;
        }
        if points[to].size_bytes as f64 >= points[from].size_bytes as f64 * LEVEL_SPAN {
            let bests: Vec<f64> = points[from..=to].iter().map(|p| p.best_ns).collect();
            let latency_ns = Spread::of(&bests).map_or(0.0, |s| s.median);
            found.push(Plateau { from_bytes: points[from].size_bytes, to_bytes: points[to].size_bytes, latency_ns });
            from = to + 1;
        } else {
            from += 1;
        }
    }
    let is_settled = matches!((found.last(), points.last()), (Some(f), Some(p)) if f.to_bytes == p.size_bytes);
    (found, is_settled)
}

/// Latency of one CPU's chase while others read as fast as a delay lets them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadedCurve {
    /// The CPU whose latency was measured.
    pub cpu: u32,
    /// The CPUs that read to make the load.
    pub load_cpus: CpuSet,
    /// Bytes of the working set that was chased.
    pub size_bytes: u64,
    /// From no load to no delay.
    pub points: Vec<LoadedPoint>,
}

/// Latency and bandwidth at one delay of the readers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadedPoint {
    /// Pause after each 4 KiB read; none: nobody reads.
    pub delay_ns: Option<u64>,
    /// What the readers got, together.
    pub bytes_per_s: f64,
    /// One load of the chaser in its best sample.
    pub best_ns: f64,
    /// One load of the chaser in its median sample.
    pub median_ns: f64,
}

/// What was done to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Traffic {
    /// Reads only, no stores.
    Load,
    /// a = b; normal stores, which read their line first (not counted).
    Copy,
    /// a = b; non-temporal stores, which do not.
    CopyNonTemporal,
    /// a = b + s * c; normal stores.
    Triad,
}

impl Traffic {
    /// All, in reading order.
    pub const ALL: [Traffic; 4] = [Traffic::Load, Traffic::Copy, Traffic::CopyNonTemporal, Traffic::Triad];

    /// For tables and options.
    pub fn word(self) -> &'static str {
        match self {
            Traffic::Load => "load",
            Traffic::Copy => "copy",
            Traffic::CopyNonTemporal => "copy-nt",
            Traffic::Triad => "triad",
        }
    }

    /// Which stores it makes.
    pub fn stores(self) -> &'static str {
        match self {
            Traffic::Load => "none",
            Traffic::CopyNonTemporal => "non-temporal",
            Traffic::Copy | Traffic::Triad => word!("normal (write-allocate, not counted)"),
        }
    }

    /// Arrays it runs through, and bytes counted per byte of one of them.
    pub fn n_arrays(self) -> u64 {
        match self {
            Traffic::Load => 1,
            Traffic::Copy | Traffic::CopyNonTemporal => 2,
            Traffic::Triad => 3,
        }
    }
}

/// Bandwidth of one kind of traffic on some CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bandwidth {
    /// What every thread did with its arrays.
    pub traffic: Traffic,
    /// Registers used: scalar, sse2, avx2, avx512, neon.
    pub simd: String,
    /// Pages asked for: a prefetcher stops at the end of a page, so it matters by a factor of two.
    pub pages: PageWish,
    /// The CPUs, with one thread on each.
    pub cpus: CpuSet,
    /// The node the memory was bound to; none if each thread touched its own first.
    pub node: Option<u32>,
    /// Bytes of one array, all threads together.
    pub array_bytes: u64,
    /// Bytes per second of the fastest pass, all threads together.
    pub best_bytes_per_s: f64,
    /// Bytes per second of the median pass, all threads together.
    pub median_bytes_per_s: f64,
    /// Standard deviation of the passes over their mean.
    pub cv_ratio: f64,
    /// How many passes were counted.
    pub n_passes: u64,
    /// The share of the memory in huge pages; none where it could not be told.
    pub huge_ratio: Option<f64>,
}

/// One node's CPUs with one node's memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MatrixCell {
    /// The node whose CPUs worked.
    pub cpu_node: u32,
    /// The node whose memory they used.
    pub memory_node: u32,
    /// The share of looked-at pages that really lay there; none where the kernel would not say.
    pub on_node_ratio: Option<f64>,
    /// Best latency of a chase in huge pages.
    pub latency_ns: Option<f64>,
    /// Load bandwidth of one CPU.
    pub one_cpu_bytes_per_s: Option<f64>,
    /// Load bandwidth of all the node's CPUs.
    pub all_cpus_bytes_per_s: Option<f64>,
}

/// What random placement costs against bound memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Placement {
    /// How many nodes have memory.
    pub n_nodes: u64,
    /// The share of accesses that are remote when pages lie anywhere.
    pub remote_ratio: f64,
    /// Mean latency over the local one.
    pub latency_ratio: f64,
    /// Measured from the matrix, or modelled from the firmware's distances.
    pub label: Label,
}

impl Placement {
    /// From a matrix in which every node of CPUs was measured with every node of memory; none for one node.
    pub fn of(matrix: &[MatrixCell]) -> Option<Placement> {
        let mut from: Vec<u32> = matrix.iter().map(|c| c.cpu_node).collect();
        let mut to: Vec<u32> = matrix.iter().map(|c| c.memory_node).collect();
        from.sort_unstable();
        from.dedup();
        to.sort_unstable();
        to.dedup();
        if to.len() < 2 {
            return None;
        }
        let latency = |f: u32, t: u32| {
            let cell = matrix.iter().find(|c| c.cpu_node == f && c.memory_node == t)?;
            cell.latency_ns.filter(|ns| *ns > 0.0)
        };
        let mut ratios = Vec::new();
        // A node without memory of its own has nothing local to compare with.
        for f in from.iter().filter(|f| to.contains(f)) {
            let local = latency(*f, *f)?;
            let all: Option<Vec<f64>> = to.iter().map(|t| latency(*f, *t)).collect();
            ratios.push(all?.iter().sum::<f64>() / to.len() as f64 / local);
        }
        let latency_ratio = ratios.iter().sum::<f64>() / ratios.len() as f64;
        let remote_ratio = 1.0 - 1.0 / to.len() as f64;
        (!ratios.is_empty()).then_some(Placement {
            n_nodes: to.len() as u64,
            remote_ratio,
            latency_ratio,
            label: Label::Measured,
        })
    }

    /// "3 of 4 accesses remote: 1.5x the latency of bound memory".
    pub fn in_words(&self) -> String {
        let ratio = crate::units::three_digits(self.latency_ratio);
        say!("{} of {} accesses remote: {ratio}x the latency of bound memory", self.n_nodes - 1, self.n_nodes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(ns: &[f64]) -> Vec<LatencyPoint> {
        ns.iter().zip(10..).map(|(ns, k)| LatencyPoint::of(1 << k, &[*ns, *ns * 1.5], 9).unwrap()).collect()
    }

    #[test]
    fn levels_are_found_in_a_typical_curve() {
        let points = curve(&[1.1, 1.1, 1.12, 3.5, 3.6, 3.9, 11.0, 12.0, 12.5, 40.0, 85.0, 95.0, 98.0, 99.0]);
        let (levels, is_settled) = plateaus(&points);
        let shown: Vec<(u32, u32, f64)> =
            levels.iter().map(|p| (p.from_bytes.ilog2(), p.to_bytes.ilog2(), p.latency_ns)).collect();
        assert_eq!(shown, [(10, 12, 1.1), (13, 14, 3.55), (16, 17, 11.5), (21, 23, 98.0)].map(|x| x));
        assert!(is_settled);
    }

    #[test]
    fn a_rising_curve_and_an_empty_one_have_no_end() {
        let (levels, is_settled) = plateaus(&curve(&[1.0, 1.0, 2.0, 4.0, 8.0]));
        assert_eq!((levels.len(), is_settled), (1, false));
        assert_eq!(plateaus(&[]), (vec![], false));
        assert_eq!(plateaus(&curve(&[5.0])), (vec![], false), "one point is no level");
    }

    fn cell(cpu_node: u32, memory_node: u32, ns: Option<f64>) -> MatrixCell {
        MatrixCell {
            cpu_node,
            memory_node,
            on_node_ratio: None,
            latency_ns: ns,
            one_cpu_bytes_per_s: None,
            all_cpus_bytes_per_s: None,
        }
    }

    #[test]
    fn random_placement_is_told_in_words() {
        let local_or = |f: u32, t: u32| Some(if f == t { 1.2 } else { 1.85 });
        let matrix: Vec<MatrixCell> = (0..16).map(|i| cell(i / 4, i % 4, local_or(i / 4, i % 4))).collect();
        let said = Placement::of(&matrix).unwrap();
        assert_eq!(said.in_words(), "3 of 4 accesses remote: 1.41x the latency of bound memory");
        assert_eq!((said.remote_ratio, said.label), (0.75, Label::Measured));
        assert!(Placement::of(&matrix[..1]).is_none(), "one node");
        assert!(Placement::of(&[cell(0, 0, Some(1.0)), cell(0, 1, None)]).is_none(), "a hole");
        // A node of CPUs without memory is left out; CPUs of node 0 alone were allowed.
        let tiered = [cell(0, 0, Some(100.0)), cell(0, 2, Some(300.0)), cell(1, 0, Some(150.0)), cell(1, 2, None)];
        assert_eq!(Placement::of(&tiered).unwrap().latency_ratio, 2.0);
    }
}
