//! A level as measured beside the same as modelled: how far off, with the doubt of what was measured, and how many predictions were good enough.
//!
//! A level is measured once a round and not twice alike, so each measured value is the middle of the rounds with its 95 % interval (`loads`). A prediction
//! begins at a measured level and is held against another: how far off it is has the doubt of both. One that is further off than it should be, while that doubt
//! reaches as near, is neither good nor missed.

use serde::{Deserialize, Serialize};

/// What a request took, by the model or as measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Took {
    /// Median latency, in nanoseconds; none where it was not measured or the model has none.
    pub p50_ns: Option<f64>,
    /// CPU time per request, in nanoseconds; none where it was not measured.
    pub cpu_ns: Option<f64>,
}

/// Between which values what was measured lies: the 95 % interval of the middle of all rounds; none where there were fewer than six.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Doubt {
    /// Rounds that were put together; 0 where there were none.
    #[serde(default)]
    pub n_rounds: u32,
    /// Of the median latency, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_ns: Option<[f64; 2]>,
    /// Of the CPU time per request, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<[f64; 2]>,
}

/// A level beside its model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Beside {
    /// What was asked of the machine, in words: `50 %`.
    pub level: String,
    /// As measured; empty where nobody measured it.
    pub measured: Took,
    /// Between which values that lies.
    #[serde(default)]
    pub doubt: Doubt,
    /// The same as the fitted model has it, in the same unit.
    pub modelled: Took,
    /// Of a prediction: between which values it lies for the doubt of the level that it begins at.
    #[serde(default)]
    pub modelled_doubt: Doubt,
}

impl Beside {
    /// How far the modelled median is off, as a part of the measured one.
    pub fn p50_off(&self) -> Option<f64> {
        off(self.measured.p50_ns, self.modelled.p50_ns)
    }

    /// How far the modelled CPU time is off, as a part of the measured one.
    pub fn cpu_off(&self) -> Option<f64> {
        off(self.measured.cpu_ns, self.modelled.cpu_ns)
    }

    /// Median and CPU time: how far off, and between which values that lies for the doubt of what was measured, on both sides; none where that is not known.
    pub fn offs(&self) -> [Off; 2] {
        let of = |measured: Option<f64>, doubt: Option<[f64; 2]>, modelled: Option<f64>, of_model: Option<[f64; 2]>| {
            let off = off(measured, modelled);
            let range = measured
                .zip(doubt)
                .zip(modelled)
                .and_then(|(measured, modelled)| off_range(measured, (modelled, of_model.unwrap_or([modelled; 2]))));
            Off { ratio: off, range, is_endless: measured.is_some_and(|ns| ns > 0.0) && modelled.is_none() }
        };
        let (m, d, n, e) = (self.measured, self.doubt, self.modelled, self.modelled_doubt);
        [of(m.p50_ns, d.p50_ns, n.p50_ns, e.p50_ns), of(m.cpu_ns, d.cpu_ns, n.cpu_ns, e.cpu_ns)]
    }
}

/// How far a modelled value is off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Off {
    /// As a part of what was measured; none where either is missing.
    pub ratio: Option<f64>,
    /// Between which values that lies.
    pub range: Option<[f64; 2]>,
    /// It was measured, and the model has a queue without an end there.
    pub is_endless: bool,
}

/// The doubts of two measurements, which are of logarithms, put together by the root of the sum of their squares, as of what does not depend on each
/// other. A drift that both share makes that too wide.
fn off_range(
    (measured, [low, high]): (f64, [f64; 2]),
    (modelled, [model_low, model_high]): (f64, [f64; 2]),
) -> Option<[f64; 2]> {
    let off = off(Some(measured), Some(modelled))?;
    let down = (modelled / model_low).ln().hypot((high / measured).ln());
    let up = (model_high / modelled).ln().hypot((measured / low).ln());
    let ends = [(1.0 + off) * (-down).exp() - 1.0, (1.0 + off) * up.exp() - 1.0];
    ends.iter().all(|end| end.is_finite()).then_some(ends)
}

/// How far off predictions may be.
pub const AIM: f64 = 0.15;

/// How many predictions were as good as they should be. Each is counted in one of within, unsure, missed and further.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hits {
    /// Predictions of medians and of CPU times that were measured too.
    pub n: usize,
    /// Off by 15 % at most.
    pub n_within: usize,
    /// Of those: their whole range is.
    pub n_sure: usize,
    /// By more, but the doubt of what was measured reaches so near.
    pub n_unsure: usize,
    /// By more, and that doubt does not reach so near; or a queue without an end was foretold.
    pub n_missed: usize,
    /// By more, and how far that doubt reaches is not known.
    pub n_further: usize,
}

impl Hits {
    /// Of some levels.
    pub fn of<'a>(levels: impl IntoIterator<Item = &'a Beside>) -> Hits {
        let mut hits = Hits::default();
        for level in levels {
            for Off { ratio, range, is_endless } in level.offs() {
                let place = match (ratio, range) {
                    _ if is_endless => &mut hits.n_missed,
                    (None, _) => continue,
                    (Some(off), _) if off.abs() <= AIM => &mut hits.n_within,
                    (_, None) => &mut hits.n_further,
                    (_, Some([low, high])) if low <= AIM && high >= -AIM => &mut hits.n_unsure,
                    (_, Some(_)) => &mut hits.n_missed,
                };
                *place += 1;
                hits.n += 1;
                hits.n_sure += usize::from(range.is_some_and(|[low, high]| low >= -AIM && high <= AIM));
            }
        }
        hits
    }
}

pub(super) fn off(measured: Option<f64>, modelled: Option<f64>) -> Option<f64> {
    let measured = measured.filter(|m| *m > 0.0)?;
    Some(modelled? / measured - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(modelled_ns: f64, doubt: Option<[f64; 2]>, modelled_doubt: Option<[f64; 2]>) -> Beside {
        let took = |ns| Took { p50_ns: Some(ns), cpu_ns: None };
        let of = |p50_ns| Doubt { p50_ns, ..Doubt::default() };
        Beside {
            level: "50 %".into(),
            measured: took(100.0),
            doubt: of(doubt),
            modelled: took(modelled_ns),
            modelled_doubt: of(modelled_doubt),
        }
    }

    #[test]
    fn a_prediction_is_good_or_missed_or_cannot_be_told_and_never_two_of_them() {
        let counted = |level: &Beside| {
            let Hits { n, n_within, n_unsure, n_missed, n_further, .. } = Hits::of([level]);
            assert_eq!(n, 1);
            [n_within, n_unsure, n_missed, n_further]
        };
        const WITHIN: [usize; 4] = [1, 0, 0, 0];
        const UNSURE: [usize; 4] = [0, 1, 0, 0];
        const MISSED: [usize; 4] = [0, 0, 1, 0];
        assert_eq!(counted(&level(114.0, None, None)), WITHIN);
        assert_eq!(counted(&level(86.0, Some([50.0, 200.0]), None)), WITHIN, "however wide the doubt");
        assert_eq!(counted(&level(125.0, None, None)), [0, 0, 0, 1], "a doubt that is not known excuses nothing");
        // 25 % too high: of 110 it would be 14 %, of 105 still 19.
        assert_eq!(counted(&level(125.0, Some([95.0, 110.0]), None)), UNSURE);
        assert_eq!(counted(&level(125.0, Some([80.0, 105.0]), None)), MISSED, "the other end does not count");
        assert_eq!(counted(&level(75.0, Some([85.0, 105.0]), None)), UNSURE);
        assert_eq!(counted(&level(75.0, Some([95.0, 130.0]), None)), MISSED);
        // What it begins at is in doubt as well: 4 % and 5 % are 6.4 together.
        assert_eq!(counted(&level(125.0, Some([95.0, 105.0]), Some([120.0, 130.0]))), MISSED);
        assert_eq!(counted(&level(122.0, Some([95.0, 105.0]), Some([115.0, 127.0]))), UNSURE);
        assert_eq!(Hits::of(&[]), Hits::default());
        // A queue without an end is foretold where there was none.
        let mut endless = level(100.0, Some([95.0, 105.0]), None);
        endless.modelled.p50_ns = None;
        assert_eq!(counted(&endless), MISSED);
        let sure = |doubt| Hits::of([&level(105.0, doubt, None)]).n_sure;
        assert_eq!([None, Some([95.0, 105.0]), Some([80.0, 120.0])].map(sure), [0, 1, 0]);
    }

    #[test]
    fn two_doubts_are_put_together_as_what_does_not_depend_on_each_other() {
        let range = |modelled_ns, doubt, of_model| level(modelled_ns, doubt, of_model).offs()[0].range;
        let [low, high] = range(100.0, Some([96.0, 103.0]), Some([96.0, 103.0])).unwrap();
        let both = 0.96f64.ln().hypot(1.03f64.ln());
        assert!((low - ((-both).exp() - 1.0)).abs() < 1e-9 && (high - (both.exp() - 1.0)).abs() < 1e-9, "{low} {high}");
        assert_eq!(range(100.0, None, Some([96.0, 103.0])), None);
        // However wide, nothing is off by more than all of it.
        assert!(range(150.0, Some([50.0, 900.0]), Some([1.0, 160.0])).unwrap()[0] > -1.0);
        assert_eq!(range(100.0, Some([0.0, 103.0]), None), None, "no part of nothing");
    }
}
