//! A run as data: what `run --json` prints, and what the sentences are made of.
//!
//! A copy's pages are counted over its process and its children at the last look that saw any, so a copy that ended before
//! the first look has none. The scaling rests on one assumption, named in its field: that each copy does the same work.

use super::copy::EndedCopy;
use serde::Serialize;
use std::collections::BTreeMap;
use wakewatt_core::cpuset::CpuSet;

/// What `run` did.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ran {
    /// One copy per memory node, in the order of the nodes.
    pub copies: Vec<CopyRun>,
    /// The copy that was not bound and ran before them, with --compare.
    pub unbound: Option<CopyRun>,
    /// The bound copies against the unbound one.
    pub scaling: Option<Scaling>,
    /// A signal ended it early.
    pub is_interrupted: bool,
}

/// One copy of the command, on one memory node.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CopyRun {
    /// Its memory node; none when it was not bound.
    pub node: Option<u32>,
    /// The CPUs it was allowed.
    pub cpus: CpuSet,
    /// Its exit code, or 128 and its signal.
    pub exit_code: u8,
    /// From its start to its end, to about 2 ms.
    pub wall_ns: u64,
    /// The last number that --metric found in its output.
    pub metric: Option<f64>,
    /// Where its pages lay; none when it ended too soon or the kernel has no numa_maps.
    pub pages: Option<Pages>,
}

/// Where anonymous pages lay.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pages {
    /// Bytes of the copy's memory on each node.
    pub bytes_by_node: BTreeMap<u32, u64>,
    /// The share on the copy's own node; none for the unbound copy.
    pub own_node_ratio: Option<f64>,
    /// When they were last looked at, after its start; what was taken later is not in these numbers.
    pub looked_at_ns: u64,
    /// The memory policy of most mappings, as the kernel writes it: `bind:1`.
    pub policy: Option<String>,
}

/// n bound copies against one unbound.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Scaling {
    /// How many bound copies ran at once.
    pub n_copies: usize,
    /// From the first start to the last end of the bound copies.
    pub bound_wall_ns: u64,
    /// Of the unbound copy.
    pub unbound_wall_ns: u64,
    /// Work per time of the bound copies over the unbound one's, if a copy's work is the same.
    pub work_ratio: f64,
    /// The sum of --metric over the bound copies; none unless each printed it.
    pub metric_sum: Option<f64>,
    /// That sum over the unbound copy's metric.
    pub metric_ratio: Option<f64>,
}

impl CopyRun {
    /// From what is known of it.
    pub fn of(copy: &EndedCopy) -> CopyRun {
        let node = copy.place.node;
        CopyRun {
            node,
            cpus: copy.place.cpus.clone(),
            exit_code: copy.code,
            wall_ns: copy.end_at_ns.saturating_sub(copy.start_at_ns),
            metric: copy.metric,
            pages: copy.map.as_ref().map(|map| Pages {
                bytes_by_node: map.bytes.clone(),
                own_node_ratio: node.and_then(|node| map.ratio_on(node)),
                looked_at_ns: copy.looked_at_ns.unwrap_or(copy.start_at_ns).saturating_sub(copy.start_at_ns),
                policy: map.policy.clone(),
            }),
        }
    }
}

impl Scaling {
    /// From the copy that ran alone and those that ran bound.
    pub fn of(alone: &EndedCopy, ended: &[EndedCopy]) -> Scaling {
        let start = ended.iter().map(|c| c.start_at_ns).min().unwrap_or(0);
        let end = ended.iter().map(|c| c.end_at_ns).max().unwrap_or(0);
        let bound_wall_ns = end.saturating_sub(start).max(1);
        let unbound_wall_ns = alone.end_at_ns.saturating_sub(alone.start_at_ns);
        let metric_sum: Option<f64> = ended.iter().map(|c| c.metric).sum();
        let metric_ratio = alone.metric.filter(|one| *one != 0.0).zip(metric_sum).map(|(one, sum)| sum / one);
        Scaling {
            n_copies: ended.len(),
            bound_wall_ns,
            unbound_wall_ns,
            work_ratio: unbound_wall_ns as f64 * ended.len() as f64 / bound_wall_ns as f64,
            metric_sum,
            metric_ratio,
        }
    }
}
