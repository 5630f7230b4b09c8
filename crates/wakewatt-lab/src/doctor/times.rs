//! How long each part of `doctor` may take: a minute in all, or five; the experiment gets what the parts before it left.

use wakewatt_core::units::show_ns;

/// In nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) trace_ns: u64,
    pub(super) probe_ns: u64,
    /// Of a whole measurement, which `--quick` has none of.
    pub(super) whole_ns: u64,
    pub(super) warmup_ns: u64,
    /// From start to report.
    pub(super) total_ns: u64,
    /// After the experiment: settings put back, rules, the report.
    pub(super) reserve_ns: u64,
    /// For the experiment: what the parts before it left.
    pub(super) experiment_ns: u64,
}

/// Below this no look at the data can be reached.
const MIN_EXPERIMENT_NS: u64 = 12_000_000_000;

/// Within a minute; on a quiet machine within 25 s.
pub(super) const QUICK: Times = Times {
    trace_ns: 3_000_000_000,
    probe_ns: 500_000_000,
    whole_ns: 0,
    warmup_ns: 100_000_000,
    total_ns: 60_000_000_000,
    reserve_ns: 3_000_000_000,
    experiment_ns: 0,
};

/// Within five.
pub(super) const FULL: Times = Times {
    trace_ns: 15_000_000_000,
    probe_ns: 4_000_000_000,
    whole_ns: 4_500_000_000,
    warmup_ns: 300_000_000,
    total_ns: 300_000_000_000,
    reserve_ns: 10_000_000_000,
    experiment_ns: 0,
};

impl Times {
    /// A part of what the experiment gets.
    pub(super) fn with_part(self, ratio: f64) -> Times {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a part of some minutes
        let experiment_ns = (self.experiment_ns as f64 * ratio) as u64;
        Times { experiment_ns, ..self }
    }

    /// The experiment gets what is left of the whole, or there is none.
    pub(super) fn with_the_rest(self, spent_ns: u64) -> Result<Times, String> {
        let experiment_ns = self.total_ns.saturating_sub(spent_ns).saturating_sub(self.reserve_ns);
        match experiment_ns >= MIN_EXPERIMENT_NS {
            true => Ok(Times { experiment_ns, ..self }),
            false => Err(format!(
                "the measurements before it took {} of {}; wakewatt experiment does it alone",
                show_ns(spent_ns),
                show_ns(self.total_ns)
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_experiment_gets_what_the_parts_before_it_left() {
        let left = |times: Times, spent_s: u64| times.with_the_rest(spent_s * 1_000_000_000).map(|t| t.experiment_ns);
        assert_eq!((left(QUICK, 20), left(FULL, 90)), (Ok(37_000_000_000), Ok(200_000_000_000)));
        for spent_s in [50, 500] {
            assert!(left(QUICK, spent_s).unwrap_err().contains("of 60s"));
        }
    }
}
