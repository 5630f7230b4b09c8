//! A difference that the clocks may have made is none to tell.
//!
//! A wake-up from another CPU is stamped by two of them. Where their clocks agree within 150 ns, an effect of 100 ns may be
//! the clocks': it is the same in every round, so no number of rounds would show that it is nothing.

use super::experiment::{Effect, ExperimentRun, Verdict};

impl ExperimentRun {
    /// What is below the bound of its metric's clocks stays undecided, whatever the test says.
    pub fn know_of_clocks(&self, effect: &mut Effect) {
        let is_told = matches!(effect.verdict, Verdict::Higher | Verdict::Lower);
        let metric = self.metrics.iter().find(|m| m.id == effect.metric);
        let bound_ns = metric.and_then(|m| m.clock_bound_ns);
        if is_told && bound_ns.is_some_and(|ns| effect.difference.abs() <= ns as f64) {
            effect.verdict = Verdict::Undecided;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::experiment::Metric;

    #[test]
    fn only_what_the_clocks_cannot_have_made_is_told() {
        let mut run = ExperimentRun {
            metrics: vec![
                Metric { clock_bound_ns: Some(150), ..Metric::latency("remote", "wake-up") },
                Metric::latency("timer", "timer"),
            ],
            ..ExperimentRun::default()
        };
        let judged = |run: &ExperimentRun, metric: &str, difference: f64| {
            let mut effect = Effect {
                metric: metric.into(),
                baseline: "a".into(),
                arm: "b".into(),
                ratio: 1.1,
                ratio_low: 1.05,
                ratio_high: 1.2,
                difference,
                difference_low: difference - 10.0,
                difference_high: difference + 10.0,
                confidence: None,
                p_value: 0.001,
                at_look: None,
                n_pairs: 12,
                verdict: Verdict::Higher,
                covers: Default::default(),
            };
            run.know_of_clocks(&mut effect);
            effect.verdict
        };
        assert_eq!(judged(&run, "remote", 140.0), Verdict::Undecided);
        assert_eq!(judged(&run, "remote", -140.0), Verdict::Undecided);
        assert_eq!(judged(&run, "remote", 160.0), Verdict::Higher);
        assert_eq!(judged(&run, "timer", 1.0), Verdict::Higher, "one clock did it all");
        run.metrics[0].clock_bound_ns = None;
        assert_eq!(judged(&run, "remote", 1.0), Verdict::Higher);
    }
}
