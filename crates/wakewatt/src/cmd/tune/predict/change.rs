//! What a prediction changes, beside how far off the model was: what is smaller says nothing.

use super::{Expected, ExpectedLevel};

impl Expected {
    /// The changes that it expects, each with what it was off before.
    pub(super) fn changes(&self) -> Vec<(f64, f64)> {
        // As far off as it may have been.
        let ends = self.last_error_range.into_iter().flatten().chain(self.last_error_ratio);
        let error = ends.map(f64::abs).fold(self.rms_ratio, f64::max);
        let change = |now: Option<f64>, then: Option<f64>| match (now, then) {
            (Some(now), Some(then)) => (now > 0.0).then(|| (then / now - 1.0).abs()),
            // A queue without an end has no median: no error is as large as that change.
            (Some(_), None) | (None, Some(_)) => Some(f64::INFINITY),
            (None, None) => None,
        };
        let of = |l: &ExpectedLevel| {
            [change(l.modelled.p50_ns, l.expected.p50_ns), change(l.modelled.cpu_ns, l.expected.cpu_ns)]
        };
        self.levels.iter().flat_map(of).flatten().map(|change| (change, error)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::samples::load::Kind;
    use wakewatt_sim::fit::Took;

    #[test]
    fn a_level_without_a_median_after_the_plan_is_a_large_change() {
        let took = |p50_ns| Took { p50_ns, cpu_ns: Some(100.0) };
        let expected = |then| Expected {
            kind: Kind::Steps,
            levels: vec![ExpectedLevel {
                level: "75 %".into(),
                measured: took(Some(200.0)),
                modelled: took(Some(200.0)),
                expected: took(then),
            }],
            rms_ratio: 0.25,
            last_error_ratio: Some(-0.5),
            last_error_range: None,
        };
        assert_eq!(expected(Some(250.0)).changes(), [(0.25, 0.5), (0.0, 0.5)]);
        let doubted = Expected { last_error_range: Some([-0.7, -0.1]), ..expected(Some(250.0)) };
        assert_eq!(doubted.changes(), [(0.25, 0.7), (0.0, 0.7)], "the far end");
        assert_eq!(expected(None).changes(), [(f64::INFINITY, 0.5), (0.0, 0.5)]);
    }
}
