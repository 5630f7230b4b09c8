//! What the meter of an experiment does to what may be said of its watts (`watts_by`).

use super::experiment::{Effect, ExperimentRun, Unit, Verdict};
use super::watts_by::WattsBy;

/// Intervals allow for so much of the arm before at most: beyond it no size is sure, and where nobody knows it is taken for this.
const MOST_BLUR: f64 = 0.5;

impl ExperimentRun {
    /// The meter behind this metric, where it is one of watts.
    pub fn meter_of(&self, metric: &str) -> Option<&WattsBy> {
        let is_watts = |unit: Unit| matches!(unit, Unit::Microwatts | Unit::PerJoule);
        let at = self.metric_at(metric)?;
        self.watts.as_ref().filter(|_| is_watts(self.metrics[at].unit))
    }

    /// Would "no difference" in this metric be the meter's own doing?
    pub fn is_equal_by_meter(&self, metric: &str) -> bool {
        self.meter_of(metric).is_some_and(|by| !by.can_show_equal())
    }

    /// Makes an effect on watts no surer than its meter.
    pub fn allow_for_meter(&self, effect: &mut Effect) {
        let Some(by) = self.meter_of(&effect.metric) else { return };
        if !by.can_show_equal() && effect.verdict == Verdict::NoDifference {
            effect.verdict = Verdict::Undecided;
        }
        let shrunk = by.blur_ratio().unwrap_or(MOST_BLUR).min(MOST_BLUR);
        // Away from "no effect" only: of what was set before there can be too much, never too little.
        let stretch = 1.0 / (1.0 - shrunk);
        let (low, high) = (effect.ratio_low.ln(), effect.ratio_high.ln());
        (effect.ratio_low, effect.ratio_high) = (low.min(low * stretch).exp(), high.max(high * stretch).exp());
        effect.difference_low = effect.difference_low.min(effect.difference_low * stretch);
        effect.difference_high = effect.difference_high.max(effect.difference_high * stretch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::covers::Covers;
    use crate::samples::energy::Averaging;
    use crate::samples::experiment::Metric;

    fn by(averaging: Averaging, settled_s: u64, counted_s: u64) -> WattsBy {
        let ns = |s: u64| s * 1_000_000_000;
        WattsBy { meter: "ipmi".into(), averaging, settled_ns: ns(settled_s), counted_ns: ns(counted_s) }
    }

    fn over(s: u64) -> Averaging {
        Averaging::Over { ns: s * 1_000_000_000 }
    }

    #[test]
    fn a_slow_meter_shows_nobody_equal_and_moves_the_far_end_only() {
        let effect = |verdict| Effect {
            metric: "w.watts".into(),
            baseline: "found".into(),
            arm: "poll".into(),
            ratio: 1.2,
            ratio_low: 1.1,
            ratio_high: 1.3,
            difference: 10.0,
            difference_low: 5.0,
            difference_high: 15.0,
            confidence: None,
            covers: Covers::Run,
            p_value: 0.01,
            at_look: None,
            n_pairs: 8,
            verdict,
        };
        let told = |averaging, verdict| {
            let mut effect = effect(verdict);
            let metrics = vec![Metric::latency("w.p50", "wake-up"), Metric::power("w.watts", "power")];
            let run = ExperimentRun { metrics, watts: Some(by(averaging, 0, 10)), ..ExperimentRun::default() };
            run.allow_for_meter(&mut effect);
            effect
        };
        let slow = told(over(60), Verdict::NoDifference);
        assert_eq!(slow.verdict, Verdict::Undecided);
        assert_eq!(told(Averaging::Unknown, Verdict::NoDifference).verdict, Verdict::Undecided);
        assert_eq!(told(over(10), Verdict::NoDifference).verdict, Verdict::NoDifference);
        assert_eq!(told(Averaging::Counter, Verdict::NoDifference), effect(Verdict::NoDifference));
        let differs = told(over(60), Verdict::Higher);
        assert_eq!(
            (differs.verdict, differs.ratio_low, differs.difference_low),
            (Verdict::Higher, 1.1f64.ln().exp(), 5.0)
        );
        assert!((differs.ratio_high - 1.69).abs() < 1e-9 && differs.difference_high == 30.0, "{differs:?}");
    }
}
