//! What the machine can do: transactions one after another on every CPU, until two intervals agree.
//!
//! At least three intervals (the first warms clocks and caches and is usually lower), at most ten; the capacity is the mean of
//! the last two, and they must differ by less than 2 %. Where ten do not agree, the run goes on and
//! says so: its 100 % is then no better known than they differ.

use super::Announce;
use super::engine::{Engine, LoadError};
use super::message::{Order, Times};
use super::phases::Phases;
use std::sync::atomic::AtomicBool;
use wakewatt_core::samples::Window;
use wakewatt_core::samples::load::Calibration;
use wakewatt_host::clock::monotonic_ns;

/// Never fewer.
pub const FEWEST: usize = 3;
/// Never more.
pub const MOST: usize = 10;
/// The last two differ by less, of their mean.
const AGREE_RATIO: f64 = 0.02;

/// Another interval?
pub fn is_enough(rates: &[f64]) -> bool {
    rates.len() >= MOST || (rates.len() >= FEWEST && difference(rates).is_some_and(|d| d < AGREE_RATIO))
}

/// By how much the last two differ, of their mean.
pub fn difference(rates: &[f64]) -> Option<f64> {
    let [.., a, b] = rates else { return None };
    let mean = f64::midpoint(*a, *b);
    (mean > 0.0).then(|| (a - b).abs() / mean)
}

/// A remark where they never agreed.
pub fn remark(calibration: &[Calibration]) -> Option<String> {
    let rates: Vec<f64> = calibration.iter().map(|c| c.per_s).collect();
    let apart = difference(&rates)?;
    (apart >= AGREE_RATIO).then(|| {
        format!(
            "calibration did not settle: after {} intervals the last two differ by {:.1} %, so what 100 % is, is no better known",
            rates.len(),
            apart * 100.0
        )
    })
}

impl Engine {
    /// Calibrates, and takes the result as 100 %. What was calibrated before an interruption is lost.
    pub fn calibrate(
        &mut self,
        phases: &Phases,
        stop: &AtomicBool,
        tell: Announce<'_>,
    ) -> Result<Vec<Calibration>, LoadError> {
        let (mut intervals, mut rates): (Vec<Calibration>, Vec<f64>) = (Vec::new(), Vec::new());
        let mut by_thread: Vec<Vec<f64>> = Vec::new();
        while !is_enough(&rates) {
            let start_at_ns = monotonic_ns() + phases.settle_ns;
            let from_ns = start_at_ns + phases.ramp_up_ns;
            let to_ns = from_ns + phases.record_ns;
            let times = Times { start_at_ns, from_ns, to_ns, end_at_ns: to_ns + phases.ramp_down_ns };
            let what = format!("calibration {}", intervals.len() + 1);
            self.order(|_, _| Order::Closed(times))?;
            let counted = self.counted(times.end_at_ns, stop, tell, &what)?;
            let seconds = phases.record_ns as f64 / 1e9;
            let threads: Vec<f64> = counted.iter().map(|c| c.n_finished as f64 / seconds).collect();
            let per_s = threads.iter().sum();
            intervals.push(Calibration { window: Window { start_at_ns: from_ns, end_at_ns: to_ns }, per_s });
            rates.push(per_s);
            by_thread.push(threads);
        }
        let [.., a, b] = &by_thread[..] else { return Err(LoadError::Failed("nothing was calibrated".into())) };
        let capacity: Vec<f64> = a.iter().zip(b).map(|(a, b)| f64::midpoint(*a, *b)).collect();
        let sum: f64 = capacity.iter().sum();
        // Nothing, of no time at all.
        if sum.is_nan() || sum <= 0.0 {
            let why =
                "not one transaction ended in a calibration interval; give a shorter --service or a longer --interval";
            return Err(LoadError::Failed(why.into()));
        }
        self.capacity = Some(capacity);
        Ok(intervals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_at_least_ten_at_most_and_the_last_two_agree() {
        assert!(!is_enough(&[]) && !is_enough(&[100.0, 100.0]));
        assert!(is_enough(&[50.0, 100.0, 101.0]), "the first does not count");
        assert!(!is_enough(&[100.0, 100.0, 97.9]), "2.1 % apart");
        assert!(!is_enough(&[100.0, 100.0, 0.0]) && !is_enough(&[0.0, 0.0, 0.0]));
        let restless: Vec<f64> = (0..10).map(|i| if i % 2 == 0 { 100.0 } else { 110.0 }).collect();
        assert!(!is_enough(&restless[..9]) && is_enough(&restless));
        let calibration: Vec<Calibration> =
            restless.iter().map(|r| Calibration { window: Window::default(), per_s: *r }).collect();
        assert!(remark(&calibration).unwrap().contains("10 intervals the last two differ by 9.5 %"));
        assert_eq!(remark(&calibration[..1]), None);
    }
}
