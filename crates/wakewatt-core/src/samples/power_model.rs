//! Watts where nothing measures them: a model, labelled as one everywhere.
//!
//! The wall's power as a sum (docs/methods/power.md): a base that never sleeps (platform, uncore, memory), and per CPU what it
//! takes awake, which grows with frequency times the square of the voltage (taken as the cube of the frequency ratio),
//! in a shallow idle state, and in a deep one (next to nothing, so it has no term). Four numbers ([`Parameters`]), linear, so
//! that they can be fitted to a meter by least squares ([`calibrate`]).
//!
//! The starting values are of a two-decade-wide class of servers, from papers read second hand (AgileWatts 2022, AgilePkgC
//! 2022): a Skylake-SP core takes 4 W at its nominal clock and 1.4 W in C1, a 10-core package and its memory 50 W with
//! all cores in C1. Not calibrated, the truth may be half or twice the estimate, and that is the range given. A requested
//! state is not a reached one: the hardware may have stayed shallower, so idle is an underestimate where it did.

use super::Label;
use super::energy::Covers;
use serde::{Deserialize, Serialize};
use wakewatt_words::{say, word};

/// What the machine did in a window: the inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Activity {
    /// How many CPUs are online.
    pub n_cpus: f64,
    /// Awake (busy, or polling in idle), summed over CPUs.
    pub awake: f64,
    /// The same, each CPU weighted by the cube of its frequency over its highest; as awake where that is not known.
    pub awake_cubed: f64,
    /// In a state that wakes within 20 us, summed over CPUs.
    pub shallow: f64,
}

/// The model's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Parameters {
    /// What never sleeps (platform, uncore, memory), in microwatts.
    pub base_uw: f64,
    /// A CPU awake, whatever its frequency (leakage).
    pub awake_uw: f64,
    /// A CPU awake at its highest frequency, on top.
    pub dynamic_uw: f64,
    /// A CPU in a shallow state.
    pub shallow_uw: f64,
}

/// Watts estimated by the model, not measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Modelled {
    /// Always modelled, never measured.
    pub label: Label,
    /// What the estimate is of: `system` for the machine, else what the fitted meter covers (`package + dram`).
    pub covers: String,
    /// Estimated mean power in microwatts.
    pub power_uw: u64,
    /// It may be as little as this.
    pub low_uw: u64,
    /// And as much as this.
    pub high_uw: u64,
    /// What the estimate rests on: starting values, or a calibration.
    pub basis: String,
    /// What the CPUs did, which the estimate is made from.
    pub activity: Activity,
    /// The numbers of the model that were used.
    pub parameters: Parameters,
}

/// A fit to a meter of one machine; it holds for that machine and what that meter covers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Calibration {
    /// What the meter it was fitted to covers.
    pub covers: String,
    /// CPUs online of the machine it was fitted on.
    pub n_cpus: f64,
    /// The fitted numbers of the model.
    pub parameters: Parameters,
    /// Root of the mean squared difference between meter and fit.
    pub residual_uw: f64,
    /// How many windows were fitted.
    pub n: usize,
    /// The range of watts that was seen; outside it the fit is a guess.
    pub seen_uw: (f64, f64),
    /// Numbers the windows could not tell from the others, so they are zero and inside those.
    #[serde(default)]
    pub not_told_apart: Vec<String>,
}

/// For a machine with this many CPUs that was never calibrated.
pub fn starting(n_cpus: f64) -> Parameters {
    // 35 W of uncore and memory per 20 CPUs, and 30 W of platform; all behind a power supply of 85 %.
    let base = (30.0 + 35.0 * (n_cpus / 20.0).max(0.25)) / 0.85;
    Parameters { base_uw: base * 1e6, awake_uw: 0.6e6, dynamic_uw: 1.8e6, shallow_uw: 0.8e6 }
}

impl Activity {
    fn features(&self) -> [f64; 4] {
        [1.0, self.awake, self.awake_cubed, self.shallow]
    }
}

impl Parameters {
    /// The sum.
    pub fn power_uw(&self, activity: &Activity) -> f64 {
        let numbers = [self.base_uw, self.awake_uw, self.dynamic_uw, self.shallow_uw];
        activity.features().iter().zip(numbers).map(|(f, p)| f * p).sum()
    }
}

/// Without calibration: half to twice.
pub fn estimate(activity: &Activity) -> Modelled {
    let parameters = starting(activity.n_cpus);
    let power = parameters.power_uw(activity);
    Modelled {
        label: Label::Modelled,
        covers: Covers::System.word().into(),
        power_uw: whole(power),
        low_uw: whole(power / 2.0),
        high_uw: whole(power * 2.0),
        basis: "a model of servers in general, never calibrated on this machine".into(),
        activity: *activity,
        parameters,
    }
}

impl Calibration {
    /// With it: two residuals either way, more outside what was seen. On a machine with another number of CPUs the fit is no
    /// better than a general model, half to twice.
    pub fn estimate(&self, activity: &Activity) -> Modelled {
        let power = self.parameters.power_uw(activity);
        let outside = (self.seen_uw.0 - power).max(power - self.seen_uw.1).max(0.0);
        let half = 2.0 * self.residual_uw + outside;
        let beyond = if outside > 0.0 { ", beyond what was seen there" } else { "" };
        let is_other = (self.n_cpus - activity.n_cpus).abs() > 0.5;
        let other = match is_other {
            true => format!(" with {} CPUs, not {} as here, so it hardly holds", self.n_cpus, activity.n_cpus),
            false => String::new(),
        };
        let (low, high) = if is_other { (power / 2.0, power * 2.0) } else { (power, power) };
        Modelled {
            label: Label::Modelled,
            covers: self.covers.clone(),
            power_uw: whole(power),
            low_uw: whole(low - half),
            high_uw: whole(high + half),
            basis: format!(
                "a model fitted to {} windows of a meter on the machine it was made on{beyond}{other}",
                self.n
            ),
            activity: *activity,
            parameters: self.parameters,
        }
    }
}

/// Numbers left out of a fit, in the order they are tried: none, then what the loads of a machine whose settings stay cannot
/// tell from being awake (frequency), or from the base (shallow sleep, where there is no other).
const LEFT_OUT: [&[usize]; 4] = [&[], &[2], &[3], &[2, 3]];
const NAMES: [&str; 4] = ["base", "awake", "frequency", "shallow idle"];

/// Fits the numbers to windows in which a meter worked. Windows must differ: idle, shallow only, one and all CPUs busy, at the
/// lowest and the highest frequency (docs/methods/power.md). Of the numbers that cannot be told apart, or come out negative,
/// which no machine is, as few as possible are left out; where not even base and awake can, that is an error.
pub fn calibrate(windows: &[(Activity, f64)], covers: &str) -> Result<Calibration, String> {
    if windows.len() < 6 {
        return Err(say!("{} windows are too few to fit four numbers; give at least 6", windows.len()));
    }
    let mut matrix = [[0.0f64; 5]; 4];
    for (activity, power_uw) in windows {
        let features = activity.features();
        for (row, f) in matrix.iter_mut().zip(features) {
            row.iter_mut().zip(features.iter().chain([power_uw])).for_each(|(cell, g)| *cell += f * g);
        }
    }
    let fitted = LEFT_OUT.iter().find_map(|left_out| {
        let mut reduced = matrix;
        for at in left_out.iter().copied() {
            reduced.iter_mut().for_each(|row| row[at] = 0.0);
            reduced[at] = [0.0; 5];
            reduced[at][at] = 1.0;
        }
        let numbers = solve(reduced)?;
        numbers.iter().all(|n| *n >= 0.0).then_some((numbers, *left_out))
    });
    let ([base_uw, awake_uw, dynamic_uw, shallow_uw], left_out) = fitted.ok_or(
        word!(
            "the windows are too alike to tell base and awake apart, or the meter falls when CPUs work; vary the load, and look at the meter"
        ),
    )?;
    let not_told_apart = left_out.iter().filter_map(|at| NAMES.get(*at)).map(ToString::to_string).collect();
    let parameters = Parameters { base_uw, awake_uw, dynamic_uw, shallow_uw };
    let square = |(a, p): &(Activity, f64)| (parameters.power_uw(a) - p).powi(2);
    // As many numbers were taken from the windows.
    let freedom = (windows.len() - 4 + left_out.len()) as f64;
    let residual_uw = (windows.iter().map(square).sum::<f64>() / freedom).sqrt();
    let seen = windows.iter().map(|(_, p)| *p);
    let seen_uw = (seen.clone().fold(f64::INFINITY, f64::min), seen.fold(0.0, f64::max));
    let n_cpus = windows.iter().map(|(a, _)| a.n_cpus).fold(0.0, f64::max);
    Ok(Calibration {
        covers: covers.into(),
        n_cpus,
        parameters,
        residual_uw,
        n: windows.len(),
        seen_uw,
        not_told_apart,
    })
}

/// Gauss with the largest pivot; none when the rows depend on each other.
fn solve(mut m: [[f64; 5]; 4]) -> Option<[f64; 4]> {
    for at in 0..4 {
        let scale = m[at].iter().take(4).fold(0.0f64, |a, b| a.max(b.abs()));
        let best = (at..4).max_by(|a, b| m[*a][at].abs().total_cmp(&m[*b][at].abs()))?;
        if m[best][at].abs() < 1e-9 * scale.max(1.0) {
            return None;
        }
        m.swap(at, best);
        let pivot = m[at];
        for (row, line) in m.iter_mut().enumerate() {
            if row != at {
                let factor = line[at] / pivot[at];
                line.iter_mut().zip(pivot).for_each(|(cell, p)| *cell -= factor * p);
            }
        }
    }
    Some([0, 1, 2, 3].map(|at| m[at][4] / m[at][at]))
}

fn whole(value: f64) -> u64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Saturates; never below 0.
    let out = value.round().max(0.0) as u64;
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn activity(awake: f64, ratio: f64, shallow: f64) -> Activity {
        Activity { n_cpus: 8.0, awake, awake_cubed: awake * ratio.powi(3), shallow }
    }

    /// The calibration of docs/methods/power.md, in steps.
    fn steps() -> Vec<Activity> {
        vec![
            activity(0.1, 0.4, 0.1),
            activity(0.1, 0.4, 7.9),
            activity(8.0, 0.4, 0.0),
            activity(1.0, 0.4, 0.2),
            activity(1.0, 1.0, 0.2),
            activity(8.0, 1.0, 0.0),
            activity(4.0, 0.7, 2.0),
        ]
    }

    #[test]
    fn a_fit_finds_the_numbers_behind_a_meter() {
        let truth = Parameters { base_uw: 60e6, awake_uw: 1e6, dynamic_uw: 14e6, shallow_uw: 2e6 };
        let noise = [0.3e6, -0.3e6, 0.2e6, -0.2e6, 0.1e6, -0.1e6, 0.0];
        let windows: Vec<(Activity, f64)> =
            steps().into_iter().zip(noise).map(|(a, e)| (a, truth.power_uw(&a) + e)).collect();
        let fit = calibrate(&windows, "package").unwrap();
        assert!((fit.parameters.dynamic_uw - truth.dynamic_uw).abs() < 0.5e6, "{fit:?}");
        assert!(fit.residual_uw < 0.6e6, "{fit:?}");
        let inside = fit.estimate(&activity(6.0, 0.8, 1.0));
        let true_uw = truth.power_uw(&activity(6.0, 0.8, 1.0));
        assert!((inside.low_uw as f64..=inside.high_uw as f64).contains(&true_uw), "{inside:?}");
        assert_eq!((inside.label, inside.covers.as_str()), (Label::Modelled, "package"));
        let elsewhere = fit.estimate(&Activity { n_cpus: 64.0, ..activity(6.0, 0.8, 1.0) });
        assert!(elsewhere.basis.contains("with 8 CPUs, not 64"), "{}", elsewhere.basis);
        assert!(elsewhere.low_uw * 2 <= elsewhere.power_uw && elsewhere.high_uw >= elsewhere.power_uw * 2);
        let outside = fit.estimate(&activity(16.0, 1.0, 0.0));
        assert!(outside.basis.contains("beyond"), "{}", outside.basis);
    }

    #[test]
    fn windows_that_are_alike_fit_nothing() {
        let idle = (activity(0.1, 0.4, 0.1), 60e6);
        assert!(calibrate(&[idle; 20], "wall").unwrap_err().contains("too alike"));
        assert!(calibrate(&[idle; 2], "wall").unwrap_err().contains("too few"));
    }

    #[test]
    fn what_cannot_be_told_apart_is_left_out_and_named() {
        // No frequency is known, and who is not awake sleeps shallow.
        let busy = [0.0, 8.0, 4.0, 4.2, 1.0, 8.0, 0.1];
        let windows = busy.map(|awake| (activity(awake, 1.0, 8.0 - awake), 50e6 + 3e6 * awake));
        let fit = calibrate(&windows, "wall").unwrap();
        assert_eq!(fit.not_told_apart, ["frequency", "shallow idle"]);
        assert!((fit.parameters.base_uw - 50e6).abs() < 1e3 && (fit.parameters.awake_uw - 3e6).abs() < 1e3, "{fit:?}");
        let falling = busy.map(|awake| (activity(awake, 1.0, 8.0 - awake), 50e6 - 3e6 * awake));
        assert!(calibrate(&falling, "wall").unwrap_err().contains("meter falls"));
    }

    #[test]
    fn uncalibrated_is_wide_and_says_so() {
        let idle = estimate(&activity(0.1, 1.0, 7.9));
        let busy = estimate(&activity(8.0, 1.0, 0.0));
        assert!(busy.power_uw > idle.power_uw && idle.low_uw * 4 >= idle.high_uw - 4);
        assert!(idle.basis.contains("never calibrated"));
    }
}
