//! From quanta to what `measure frequency` says: one ramp per repetition, medians over them, a curve to draw.

use wakewatt_core::samples::speed::{AfterIdle, Median, SpeedPoint, VectorStart};
use wakewatt_core::stats::change::{NEIGHBOURS, is_spike};
use wakewatt_core::stats::middle::{median, middle};
use wakewatt_core::stats::ramp::{Ramp, SPIKE_RATIO, ramp};

/// A change of level must be at least this large, and last so many quanta.
const MIN_STEP: f64 = 0.03;
const MIN_LENGTH: usize = 4;
/// Vector quanta are joined by their medians first, so less noise and shorter stretches are believed.
const VECTOR_MIN_LENGTH: usize = 2;

/// One repetition.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    /// Planned end of the idle time to the first instruction.
    pub(crate) exit_ns: f64,
    /// Every quantum.
    pub(crate) times_ns: Vec<f64>,
    /// Cycles so far before a quantum.
    pub(crate) marks: Vec<(usize, u64)>,
}

impl Run {
    /// Without allocation later.
    pub(crate) fn with_room(n_quanta: usize) -> Run {
        Run { exit_ns: 0.0, times_ns: Vec::with_capacity(n_quanta), marks: Vec::with_capacity(32) }
    }
}

fn of(values: impl Iterator<Item = f64>) -> Option<Median> {
    let m = middle(&mut values.collect::<Vec<_>>())?;
    let covers = wakewatt_core::covers::Covers::Window;
    Some(Median { median_ns: m.median, low_ns: m.low, high_ns: m.high, covers, is_range: m.is_range })
}

/// The first quantum is cold, which is told apart; the ramp is looked for in those after it.
fn of_run(run: &Run) -> Option<Ramp> {
    let (first_ns, rest) = run.times_ns.split_first()?;
    let mut found = ramp(rest, MIN_STEP, MIN_LENGTH, SPIKE_RATIO)?;
    found.reached_after_ns = found.reached_after_ns.map(|ns| ns + first_ns);
    Some(found)
}

/// All repetitions after one idle time; none without any.
pub(crate) fn after_idle(idle_ns: u64, runs: &[Run], quantum_ns: f64) -> Option<AfterIdle> {
    let ramps: Vec<(&Run, Ramp)> = runs.iter().filter_map(|run| Some((run, of_run(run)?))).collect();
    let ramped = || ramps.iter().filter_map(|(_, r)| Some((r, r.reached_after_ns?)));
    let least = |run: &Run| run.times_ns.first().copied().unwrap_or(0.0);
    Some(AfterIdle {
        idle_ns,
        n_repeats: u32::try_from(ramps.len()).unwrap_or(u32::MAX),
        n_ramped: u32::try_from(ramped().count()).unwrap_or(u32::MAX),
        ramp: of(ramped().map(|(_, ns)| ns)),
        slowest_ratio: median(&mut ramped().map(|(r, _)| r.slowest_ratio).collect::<Vec<_>>()),
        n_unsteady: u32::try_from(ramps.iter().filter(|(_, r)| !r.is_steady).count()).unwrap_or(u32::MAX),
        exit: of(ramps.iter().map(|(run, _)| run.exit_ns))?,
        first_quantum_extra: of(ramps.iter().map(|(run, r)| least(run) - r.steady_ns))?,
        n_quanta: ramps.iter().map(|(run, _)| run.times_ns.len() as u64).sum(),
        n_discarded: ramps.iter().map(|(_, r)| r.n_discarded).sum(),
        // A shorter slow start is taken for spikes.
        resolution_ns: quantum_ns * MIN_LENGTH.max(NEIGHBOURS + 2) as f64,
        resolution_ratio: median(&mut ramps.iter().map(|(_, r)| r.resolution_ratio).collect::<Vec<_>>())?,
        curve: curve(&ramps),
    })
}

/// Speed between marks at 0, 8, 16, 32 … quanta.
fn curve(ramps: &[(&Run, Ramp)]) -> Vec<SpeedPoint> {
    let n = ramps.iter().map(|(run, _)| run.times_ns.len()).min().unwrap_or(0);
    let mut points = Vec::new();
    let (mut start, mut end) = (0, 8);
    while end <= n {
        let stretch = |run: &Run| median(&mut run.times_ns[start..end].to_vec());
        let speed = |(run, r): &(&Run, Ramp)| Some(r.steady_ns / stretch(run)?);
        let at = |(run, _): &(&Run, Ramp)| run.times_ns[..(start + end) / 2].iter().sum::<f64>();
        let khz = |(run, _): &(&Run, Ramp)| {
            let mark = |at: usize| run.marks.iter().find(|m| m.0 == at).map(|m| m.1);
            let ns: f64 = run.times_ns[start..end].iter().sum();
            Some(mark(end)?.checked_sub(mark(start)?)? as f64 * 1e6 / ns)
        };
        let khz = median(&mut ramps.iter().filter_map(khz).collect::<Vec<_>>());
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a frequency
        let khz = khz.map(|khz| khz.round() as u64);
        let speed = median(&mut ramps.iter().filter_map(speed).collect::<Vec<_>>());
        if let (Some(speed_ratio), Some(at_ns)) = (speed, median(&mut ramps.iter().map(at).collect::<Vec<_>>())) {
            points.push(SpeedPoint { at_ns, speed_ratio, khz });
        }
        (start, end) = (end, end * 2);
    }
    points
}

/// Repetitions of scalar, vector, scalar quanta; the vector ones start at the same moment, so they are joined place by
/// place, which a single disturbance does not survive.
pub(crate) fn vector_start(width: &str, runs: &[[Vec<f64>; 3]]) -> Option<VectorStart> {
    let n = runs.iter().map(|r| r[1].len()).min()?;
    let joined: Vec<f64> =
        (0..n).filter_map(|at| median(&mut runs.iter().map(|r| r[1][at]).collect::<Vec<_>>())).collect();
    let found = ramp(&joined, MIN_STEP, VECTOR_MIN_LENGTH, f64::INFINITY)?;
    let undisturbed = |times: &[f64]| {
        let spikes = is_spike(times, SPIKE_RATIO);
        median(&mut times.iter().zip(spikes).filter(|(_, s)| !s).map(|(t, _)| *t).collect::<Vec<_>>())
    };
    // The last third before, when the clock has settled, against the first third after.
    let third = |times: &[f64]| times.len() / 3;
    let scalar = |r: &[Vec<f64>; 3]| {
        let (before, after) = (&r[0][r[0].len() - third(&r[0])..], &r[2][..third(&r[2])]);
        Some(undisturbed(before)? / undisturbed(after)?)
    };
    Some(VectorStart {
        width: width.into(),
        quantum_ns: found.steady_ns,
        n_repeats: u32::try_from(runs.len()).unwrap_or(u32::MAX),
        slow_for_ns: found.reached_after_ns,
        slowest_ratio: found.slowest_ratio,
        scalar_after_ratio: median(&mut runs.iter().filter_map(scalar).collect::<Vec<_>>())?,
        resolution_ratio: found.resolution_ratio,
        resolution_ns: found.steady_ns * VECTOR_MIN_LENGTH as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::stats::random::Random;

    fn run(slow: usize, random: &mut Random) -> Run {
        let time = |i: usize, random: &mut Random| {
            let first = if i == 0 { 3_000.0 } else { 0.0 };
            (if i < slow { 20_000.0 } else { 10_000.0 }) * (1.0 + 0.005 * random.normal()) + first
        };
        let times_ns: Vec<f64> = (0..2000).map(|i| time(i, random)).collect();
        let marks = vec![(0, 1000), (8, 1000 + 8 * 30_000), (16, 1000 + 16 * 30_000)];
        Run { exit_ns: 25_000.0, times_ns, marks }
    }

    #[test]
    fn exit_first_quantum_and_ramp_are_apart() {
        let mut random = Random::new(2);
        let runs: Vec<Run> = (0..9).map(|_| run(300, &mut random)).collect();
        let after = after_idle(1_000_000, &runs, 10_000.0).unwrap();
        assert!(after.is_ramp() && after.n_ramped == 9, "{after:?}");
        assert!((after.ramp.unwrap().median_ns / 6e6 - 1.0).abs() < 0.02, "{:?}", after.ramp);
        assert!((after.slowest_ratio.unwrap() - 0.5).abs() < 0.01 && after.exit.median_ns == 25_000.0);
        assert!((after.curve[0].speed_ratio - 0.5).abs() < 0.02 && after.curve.last().unwrap().speed_ratio > 0.98);
        // 30000 cycles in a slow quantum of 20 us.
        assert!(after.curve[1].khz.unwrap().abs_diff(1_500_000) < 30_000, "{:?}", after.curve[1]);
        let flat: Vec<Run> = (0..9).map(|_| run(0, &mut random)).collect();
        let after = after_idle(1_000_000, &flat, 10_000.0).unwrap();
        assert!(!after.is_ramp() && (after.first_quantum_extra.median_ns - 3000.0).abs() < 200.0, "{after:?}");
    }

    #[test]
    fn a_slow_vector_start_is_timed() {
        let mut random = Random::new(4);
        let mut times = |slow: usize, n: usize| -> Vec<f64> {
            (0..n).map(|i| if i < slow { 20_000.0 } else { 5_000.0 } * (1.0 + 0.01 * random.normal())).collect()
        };
        let runs: Vec<[Vec<f64>; 3]> = (0..8).map(|_| [times(0, 300), times(3, 600), times(0, 300)]).collect();
        let found = vector_start("AVX-512", &runs).unwrap();
        assert!((found.slow_for_ns.unwrap() / 60_000.0 - 1.0).abs() < 0.05, "{found:?}");
        assert!((found.slowest_ratio - 0.25).abs() < 0.02 && (found.scalar_after_ratio - 1.0).abs() < 0.02);
    }
}
