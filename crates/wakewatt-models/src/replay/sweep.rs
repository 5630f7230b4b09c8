//! Every latency limit that means something on a machine, one after the other: what each wake-up then costs, and what energy.
//!
//! Limits between two exit latencies allow the same states, so the latencies of the table are all there is to try. The knee is the point
//! furthest below the straight line between the ends, both axes taken from 0 to 1. It is a property of the curve, not advice.

use super::{Change, Followed, Replayed};
use wakewatt_core::record::wtrace::Header;
use wakewatt_core::units::{LatencyLimit, exact_ns};

/// Limits against what they cost.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sweep {
    /// How far the rest may be trusted, in a sentence.
    pub trust: String,
    /// May it be trusted? None where too few decisions could be compared.
    pub is_trusted: Option<bool>,
    /// Share of identical decisions, 0 to 1; none where none could be compared.
    pub identical_ratio: Option<f64>,
    /// How much of the recording the predictions rest on, where that is least.
    pub followed: Followed,
    /// Which inputs that was told from: `exact` or `rebuilt`.
    pub inputs: String,
    /// One per limit, strictest first.
    pub points: Vec<Point>,
    /// Limit of the knee in nanoseconds; none where no point stands out, or too little was followed.
    pub knee_ns: Option<u64>,
    /// What the figures rest on.
    pub remarks: Vec<String>,
}

/// What a limit comes to.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Point {
    /// The limit in nanoseconds; 0 spins.
    pub limit_ns: u64,
    /// Mean of what wake-ups pay for leaving an idle state, in nanoseconds.
    pub mean_wake_cost_ns: f64,
    /// 99th percentile of the same; none with too few wake-ups.
    pub p99_wake_cost_ns: Option<u64>,
    /// Energy of the CPUs while idle, in microjoules, by a model that was never calibrated here: half to twice.
    pub modelled_energy_uj: f64,
}

/// The limits worth trying on a table, strictest first; zero spins. The others asked are made first: they may bring another table.
pub fn limits_ns(header: &Header, changes: &[Change]) -> Vec<u64> {
    let asked =
        changes.iter().rev().find_map(|c| if let Change::Table(rows) = c { Some(rows.as_slice()) } else { None });
    let recorded = header.tables.iter().flat_map(|t| &t.states);
    let states: Vec<_> = asked.map_or_else(|| recorded.collect(), |rows| rows.iter().collect());
    // A limit is in whole microseconds.
    let mut all: Vec<u64> =
        states.iter().filter_map(|s| s.exit_latency_ns).map(|ns| ns.div_ceil(1000).saturating_mul(1000)).collect();
    all.push(0);
    all.sort_unstable();
    all.dedup();
    all
}

/// A limit as something to ask.
pub fn asking(limit_ns: u64) -> Change {
    Change::MaxLatency(if limit_ns == 0 { LatencyLimit::Poll } else { LatencyLimit::AtMostNs(limit_ns) })
}

/// Of replays of one recording the one that followed least of it, the loosest limit first: it bounds what all of them may say.
pub(super) fn least_followed(replays: &[(u64, Replayed)]) -> Option<&Replayed> {
    replays.iter().rev().map(|(_, r)| r).min_by(|a, b| a.followed.ratio().total_cmp(&b.followed.ratio()))
}

/// Puts the replays of these limits together.
pub fn sweep(replays: &[(u64, Replayed)]) -> Sweep {
    let point = |(limit_ns, replayed): &(u64, Replayed)| Point {
        limit_ns: *limit_ns,
        mean_wake_cost_ns: replayed.predicted.wake_cost.mean_ns,
        p99_wake_cost_ns: replayed.predicted.wake_cost.p99_ns(),
        modelled_energy_uj: replayed.predicted.modelled_energy_uj,
    };
    let points: Vec<Point> = replays.iter().map(point).collect();
    let least = least_followed(replays);
    let mut remarks = least.map(|r| r.remarks.clone()).unwrap_or_default();
    let followed = least.map(|r| r.followed).unwrap_or_default();
    let knee_ns = knee(&points).filter(|_| followed.is_enough()).map(|at| points[at].limit_ns);
    if let Some(ns) = knee_ns {
        remarks.push(format!(
            "The knee, furthest below a straight line from the strictest limit to the loosest, is {}.",
            exact_ns(ns)
        ));
    }
    Sweep {
        trust: least.map(|r| r.trust.clone()).unwrap_or_default(),
        is_trusted: least.and_then(|r| r.is_trusted),
        identical_ratio: least.and_then(|r| r.identical_ratio),
        followed,
        inputs: least.map(|r| r.inputs.clone()).unwrap_or_default(),
        points,
        knee_ns,
        remarks,
    }
}

/// Index of the point furthest below the line between the first and the last; none with fewer than three, or on the line.
fn knee(points: &[Point]) -> Option<usize> {
    let (first, last) = (points.first()?, points.last()?);
    let (cost, energy) =
        (last.mean_wake_cost_ns - first.mean_wake_cost_ns, first.modelled_energy_uj - last.modelled_energy_uj);
    if cost <= 0.0 || energy <= 0.0 {
        return None;
    }
    let gain = |p: &Point| {
        (first.modelled_energy_uj - p.modelled_energy_uj) / energy
            - (p.mean_wake_cost_ns - first.mean_wake_cost_ns) / cost
    };
    let best = (0..points.len()).max_by(|a, b| gain(&points[*a]).total_cmp(&gain(&points[*b])))?;
    (gain(&points[best]) > 0.01).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(rows: &[(f64, f64)]) -> Vec<Point> {
        let of = |(at, (cost, energy)): (usize, &(f64, f64))| Point {
            limit_ns: at as u64,
            mean_wake_cost_ns: *cost,
            p99_wake_cost_ns: None,
            modelled_energy_uj: *energy,
        };
        rows.iter().enumerate().map(of).collect()
    }

    #[test]
    fn the_knee_is_where_gains_end() {
        assert_eq!(knee(&points(&[(0.0, 100.0), (1.0, 30.0), (5.0, 25.0), (50.0, 20.0)])), Some(1));
        assert_eq!(knee(&points(&[(0.0, 100.0), (25.0, 50.0), (50.0, 0.0)])), None);
        assert_eq!(
            (knee(&points(&[(0.0, 1.0)])), knee(&[]), knee(&points(&[(1.0, 1.0), (2.0, 3.0)]))),
            (None, None, None)
        );
    }
}
