//! `measure power --calibrate`: fits the model of watts to a meter that works now, to be used where it does not.
//!
//! The meter's owner may take it away, or it may stand in front of one machine of a hundred alike. Loads differ as far as
//! they can without changing a setting: nobody, one CPU, half of them, all at half time, all. What the windows cannot tell
//! apart (frequency, where none is known; shallow from deep sleep) is left out of the fit and named. The result is
//! TOML, to be kept and given back with `--model`.

use super::power::PowerPlan;
use super::{activity, allowed_cpus};
use crate::busy::Busy;
use crate::context::Lab;
use crate::refusal::Refusal;
use std::path::Path;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::samples::power_model::{self, Activity, Calibration};
use wakewatt_core::units::{show_ns, show_uw};
use wakewatt_host::input;
use wakewatt_host::power::{self, Recorder};

/// Of each load, unless --for says otherwise.
const WINDOW_NS: u64 = 10_000_000_000;
/// After a load began and before its window: meters average over about this.
const SETTLE_NS: u64 = 2_000_000_000;

/// A model as it is kept in a file.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelFile {
    format: u32,
    /// The meter it was fitted to.
    meter: String,
    calibration: Calibration,
}

impl ModelFile {
    /// As text, with a word on what it is for.
    pub fn to_text(&self) -> Result<String, Refusal> {
        let Calibration { covers, n_cpus, .. } = &self.calibration;
        let text = toml::to_string(self);
        let text = text.map_err(|e| Refusal::Unavailable(format!("cannot write the model as TOML: {e}")))?;
        Ok(format!(
            "# Watts of {covers} by a model of a machine with {n_cpus} CPUs, for `wakewatt measure power --model FILE` there.\n{text}"
        ))
    }
}

/// Makes the windows and fits the model.
pub fn calibrate(lab: Lab<'_>, plan: &PowerPlan) -> Result<ModelFile, Refusal> {
    let cpus = allowed_cpus()?;
    let all: Vec<u32> = cpus.iter().collect();
    let first = |n: usize| CpuSet::from_iter(all.iter().copied().take(n.max(1)));
    let half = first(all.len() / 2);
    let loads: [(&str, CpuSet, u8); 7] = [
        ("nobody", cpus.clone(), 0),
        ("all CPUs", cpus.clone(), 100),
        ("half of the CPUs", half.clone(), 100),
        ("all CPUs at half time", cpus.clone(), 50),
        ("one CPU", first(1), 100),
        ("all CPUs", cpus.clone(), 100),
        ("nobody", cpus.clone(), 0),
    ];
    let window_ns = plan.for_ns.unwrap_or(WINDOW_NS);
    let mut windows: Vec<(Activity, f64)> = Vec::new();
    let mut meter: Option<(String, String)> = None;
    for (what, cpus, percent) in loads {
        let _busy = (percent > 0).then(|| Busy::start(&cpus, percent));
        lab.wait_until(lab.clock.now_ns().saturating_add(SETTLE_NS.min(window_ns)));
        let (activity, uw, name, covers) = window(lab, plan, window_ns)?;
        if lab.is_stopped() {
            return Err(Refusal::Stopped("interrupted; nothing was fitted".into()));
        }
        let now = (name, covers);
        let first = meter.get_or_insert_with(|| now.clone());
        if *first != now {
            return Err(Refusal::Unavailable(format!(
                "the meter changed from {} ({}) to {} ({}); name one with --meter",
                first.0, first.1, now.0, now.1
            )));
        }
        lab.tell.remark(&format!("{what} busy: {} in {}", show_uw(uw), show_ns(window_ns)));
        windows.push((activity, uw as f64));
    }
    let (meter, covers) = meter.unwrap_or_default();
    let calibration = power_model::calibrate(&windows, &covers).map_err(Refusal::Unavailable)?;
    for gap in &calibration.not_told_apart {
        lab.tell.remark(&format!("not told apart by these loads: {gap}"));
    }
    Ok(ModelFile { format: 1, meter, calibration })
}

/// One window: what the CPUs did, and the quoted meter's mean, name and what it covers.
fn window(lab: Lab<'_>, plan: &PowerPlan, length_ns: u64) -> Result<(Activity, u64, String, String), Refusal> {
    let could_not = |why: &str| Refusal::Unavailable(why.into());
    let recorder = Recorder::start(power::find(&plan.wanted, &plan.only), None, plan.interval_ns, &plan.preferred);
    let sampler = activity::start().ok_or_else(|| could_not("what the CPUs do cannot be read here"))?;
    lab.wait_until(lab.clock.now_ns().saturating_add(length_ns));
    let activity = activity::since(sampler).ok_or_else(|| could_not("what the CPUs did cannot be read here"))?;
    let sample = recorder.stop();
    let chosen = sample.chosen().and_then(|m| Some((m.meter.clone(), m.total.as_ref()?)));
    let why = "a model is fitted to a meter, and none works here: wakewatt measure power says why; name one with --meter-cmd, --redfish or --prometheus";
    let (name, total) = chosen.ok_or_else(|| could_not(why))?;
    Ok((activity, total.mean_uw, name, total.covers.clone()))
}

/// Reads a model that was kept.
pub fn read_model(path: &Path) -> Result<Calibration, Refusal> {
    let bad = |why: String| Refusal::File(format!("{}: {why}; make one with --calibrate", path.display()));
    let text = input::read_text(path, input::MODEL).map_err(|e| Refusal::File(e.to_string()))?;
    parse(&text).map_err(bad)
}

fn parse(text: &str) -> Result<Calibration, String> {
    let file: ModelFile = toml::from_str(text).map_err(|e| e.to_string())?;
    if file.format != 1 {
        return Err(format!("format {}, and only 1 is known", file.format));
    }
    let c = &file.calibration;
    let (p, seen_uw) = (&c.parameters, c.seen_uw);
    let numbers = [p.base_uw, p.awake_uw, p.dynamic_uw, p.shallow_uw, c.residual_uw, seen_uw.0, seen_uw.1, c.n_cpus];
    // Comparisons with what is not a number are false.
    if !numbers.iter().all(|number| (0.0..1e12).contains(number)) || seen_uw.0 > seen_uw.1 || c.n_cpus < 1.0 {
        return Err("a number is negative or absurd".into());
    }
    if c.covers.is_empty() || c.covers.chars().any(char::is_control) {
        return Err("it does not say what the meter covers".into());
    }
    Ok(file.calibration)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::samples::power_model::Parameters;

    #[test]
    fn a_model_survives_the_file_and_nonsense_does_not() {
        let parameters = Parameters { base_uw: 6e7, awake_uw: 1e6, dynamic_uw: 0.0, shallow_uw: 2.5e5 };
        let not_told_apart = vec!["x".to_string()];
        let (covers, n_cpus) = ("package + dram".to_string(), 2.0);
        let calibration =
            Calibration { covers, n_cpus, parameters, residual_uw: 1e5, n: 7, seen_uw: (6e7, 9e7), not_told_apart };
        let file = ModelFile { format: 1, meter: "command".into(), calibration: calibration.clone() };
        let text = toml::to_string(&file).unwrap();
        assert_eq!(parse(&text).unwrap(), calibration);
        assert!(parse(&text.replace("format = 1", "format = 2")).unwrap_err().contains("format 2"));
        assert!(parse(&text.replace("base_uw = 60000000.0", "base_uw = -1.0")).unwrap_err().contains("absurd"));
        for (right, wrong) in [("90000000.0", "1.0"), ("90000000.0", "nan"), ("n_cpus = 2.0", "n_cpus = inf")] {
            assert!(parse(&text.replace(right, wrong)).unwrap_err().contains("absurd"), "{wrong}");
        }
        assert!(parse(&text.replace("package + dram", "")).unwrap_err().contains("covers"));
        assert!(parse("").is_err() && parse("format = 1\nx = 2").is_err());
    }
}
