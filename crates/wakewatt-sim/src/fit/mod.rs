//! A model of this server, calibrated from what was measured on it, and held against a setting that it was not shown.
//!
//! From run files come: the idle states and their governor (facts), what leaving each state costs (`measure idle`, else half of what is claimed), and loads under
//! one setting (`load steps`, `load shop`, or one arm of an experiment). Four or five numbers of each kind of load are then fitted by least squares
//! to the median latency and the CPU time per request of all its levels: the work of a request, the CPU time that a sleep adds, the time in
//! which no CPU of the server works for the request, what each CPU does for itself, and, where cold work was measured, how soon this one grows cold (`cold`). Everything else is taken as measured or as claimed, and said.
//! What the fit leaves of a level is not the setting's doing, so a prediction begins where that level was measured and takes only the change from
//! the model. It then predicts the loads under another setting; where that was measured too, the error is shown. It was not used.

mod beside;
mod by_length;
mod cold;
mod inputs;
mod kernel_time;
mod least_squares;
mod loads;
mod model;
#[cfg(test)]
mod tests;

use beside::off;
pub use beside::{AIM, Beside, Doubt, Hits, Off, Took};
pub use by_length::ExitAfter;
pub use cold::Cold;
pub use inputs::{Exit, FitError, Inputs, MODELLED_GOVERNORS};
pub use loads::{Loaded, Loads};
pub use model::Numbers;
use model::Subject;

use crate::moved::Moved;
use crate::sensitivity::sensitivity;
use crate::server::{Quantity, Server};
use serde::{Deserialize, Serialize};
use wakewatt_core::samples::load::Kind;

/// A kind of load: what was fitted, how well, and what it predicts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fitted {
    /// What made the load.
    pub kind: Kind,
    /// The numbers that were fitted.
    pub numbers: Numbers,
    /// Level by level under the setting that it was fitted to: what is left are the residuals.
    pub fitted: Vec<Beside>,
    /// Root of the mean square of the residuals, as a part of what was measured.
    pub rms_ratio: f64,
    /// Level by level under the other setting; what was measured there took no part in the fit.
    pub predicted: Vec<Beside>,
    /// The largest error of a prediction, as a part of what was measured; none where nothing was, or where a queue without an end was foretold.
    pub worst_ratio: Option<f64>,
    /// Between which values that lies for the doubt of what was measured; none where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_range: Option<[f64; 2]>,
    /// How the piece of work that this load is like grows cold; none where that was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cold: Option<Cold>,
    /// How many predictions were as good as they should be.
    #[serde(default)]
    pub hits: Hits,
    /// Assumptions that move the prediction of the middle level most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sensitivity: Vec<Moved>,
}

/// A fit and its predictions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fit {
    /// What the numbers are worth: always modelled.
    pub label: wakewatt_core::samples::Label,
    /// The setting it was fitted to.
    pub on: String,
    /// The setting it predicts, and the fields of the model that make it.
    pub predicts: String,
    /// Was that setting measured in these runs too? Where not, nothing checks the prediction.
    pub is_checked: bool,
    /// What leaving each idle state is taken to cost.
    pub exits: Vec<Exit>,
    /// Load by load.
    pub loads: Vec<Fitted>,
    /// What was assumed or could not be told, in sentences.
    pub remarks: Vec<String>,
}

impl Fit {
    /// That nothing checks the prediction, where that is so.
    pub fn stands_alone(&self) -> Option<String> {
        let words = || format!("`{}` was not measured in these runs: its prediction stands alone.", self.predicts);
        (!self.is_checked).then(words)
    }
}

/// A setting: its name in the run, and the fields of a server file that make it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Under {
    /// Id or title of an arm, or title of a load run.
    pub name: String,
    /// Fields and values, such as `machine.idle.max_latency=0us`.
    pub set: Vec<String>,
}

/// Fits to one setting and predicts the other.
pub fn fit(inputs: &Inputs, on: &Under, other: &Under, n_threads: usize) -> Result<Fit, FitError> {
    let mut fits = fit_each(inputs, on, std::slice::from_ref(other), n_threads)?;
    fits.pop().ok_or_else(|| FitError::Model("no setting to predict".into()))
}

/// Fits once, and predicts several settings.
pub fn fit_each(inputs: &Inputs, on: &Under, others: &[Under], n_threads: usize) -> Result<Vec<Fit>, FitError> {
    let shown = inputs.under(&on.name)?;
    let mut models = Vec::new();
    for load in shown {
        models.push(calibrated(Subject::of(inputs, load), on, n_threads)?);
    }
    others.iter().map(|other| predicted(inputs, &models, on, other, n_threads)).collect()
}

/// A load with the numbers that were found for it.
struct Calibrated<'a> {
    subject: Subject<'a>,
    numbers: Numbers,
    fitted: Vec<Beside>,
    rms_ratio: f64,
}

fn modelled(
    subject: &Subject<'_>,
    level: &Loaded,
    numbers: &Numbers,
    under: &Under,
    n_threads: usize,
) -> Result<Took, FitError> {
    let server: Server =
        model::server(subject, level, numbers).with(&under.set).map_err(|e| FitError::Model(e.to_string()))?;
    model::took(&server, n_threads)
}

/// At low load each request meets a sleep, so three levels hardly tell what a sleep adds from what each CPU does for itself. A sleep is taken to
/// add some ten microseconds: that much more counts as much as a residual of 5 %. Where the first work after pauses was measured, a request is taken
/// to be as sensitive as that work, and where a CPU's own doing was measured, it is taken to be that; as much again, more or less, counts as 5 %.
const PER_SLEEP_NS: f64 = 10_000.0;
const OWN_NS: f64 = 20_000.0;
const UNLIKELY: f64 = 0.05;
/// A request is taken to grow cold as soon as the piece of work that was measured; twice as soon, or as late, counts as 2 %: another program is another program.
const TWICE_AS_SOON: f64 = 0.02;

fn calibrated<'a>(subject: Subject<'a>, on: &Under, n_threads: usize) -> Result<Calibrated<'a>, FitError> {
    let (load, usual_ns, own_ns) = (subject.load, subject.per_sleep_ns(), subject.own_ns());
    let residuals = |theta: &[f64]| -> Result<Vec<f64>, FitError> {
        let numbers = Numbers::of(theta);
        let mut all = Vec::new();
        for level in &load.levels {
            let took = modelled(&subject, level, &numbers, on, n_threads)?;
            // An absent median is a queue without an end: as far off as can be.
            let far =
                |measured: Option<f64>, modelled: Option<f64>| measured.map(|_| off(measured, modelled).unwrap_or(9.0));
            all.extend(far(level.took.p50_ns, took.p50_ns).into_iter().chain(far(level.took.cpu_ns, took.cpu_ns)));
        }
        let beyond = |number: f64, usual: f64, least: f64| UNLIKELY * (number - usual) / usual.max(least);
        all.push(beyond(numbers.per_sleep_ns, usual_ns, PER_SLEEP_NS));
        all.extend(own_ns.map(|own_ns| beyond(numbers.own_ns, own_ns, OWN_NS)));
        all.extend(numbers.sooner.map(|sooner| TWICE_AS_SOON * sooner.log2()));
        Ok(all)
    };
    let numbers = Numbers::of(&least_squares::least(&Numbers::guess(&subject).list(), residuals)?);
    let mut fitted = Vec::new();
    for level in &load.levels {
        let modelled = modelled(&subject, level, &numbers, on, n_threads)?;
        fitted.push(Beside {
            level: level.name.clone(),
            measured: level.took,
            doubt: level.doubt,
            modelled,
            modelled_doubt: Doubt::default(),
        });
    }
    let left: Vec<f64> = fitted.iter().flat_map(Beside::offs).filter_map(|off| off.ratio).collect();
    let rms_ratio = (left.iter().map(|r| r * r).sum::<f64>() / left.len().max(1) as f64).sqrt();
    Ok(Calibrated { subject, numbers, fitted, rms_ratio })
}

fn predicted(
    inputs: &Inputs,
    models: &[Calibrated<'_>],
    on: &Under,
    other: &Under,
    n_threads: usize,
) -> Result<Fit, FitError> {
    let hidden = inputs.under(&other.name).unwrap_or_default();
    let mut remarks = inputs.remarks.clone();
    let mut loads = Vec::new();
    for model in models {
        let held = hidden.iter().find(|h| h.kind == model.subject.load.kind).copied();
        loads.push(foretold(model, held, other, n_threads)?);
    }
    // One that polled all the time says nothing of what a sleep costs; another may show no more than was measured of it.
    if loads.iter().any(|l| l.numbers.per_sleep_ns <= 0.0) {
        remarks.push(
            "The levels fitted to show no CPU time that a pause adds to the request after it, beyond what was measured of sleeps: none is taken, also in the prediction.".into(),
        );
    }
    for load in &loads {
        let kind = load.kind.word();
        if load.cold.as_ref().is_some_and(|cold| cold.soon_ns.is_none()) {
            remarks.push(format!("Work like that of `{kind}` still grew colder in the longest pause that was measured: no law is taken for it but the shape that was measured, and no longer pause makes it colder."));
        }
        for level in load.predicted.iter().filter(|level| level.offs().iter().any(|off| off.is_endless)) {
            remarks.push(format!("At {} of `{kind}` a queue without an end is foretold, where none was: no error in percent says how far off that is.", level.level));
        }
    }
    let is_checked = !hidden.is_empty();
    let exits = inputs.exits.clone();
    let label = wakewatt_core::samples::Label::Modelled;
    Ok(Fit { label, on: on.name.clone(), predicts: other.name.clone(), is_checked, exits, loads, remarks })
}

/// A model's change, from a measured value: what the fit left of it stays. Less than half of the model's own answer is none.
fn moved(from: Option<f64>, before: Option<f64>, after: Option<f64>) -> Option<f64> {
    match (from, before, after) {
        (Some(from), Some(before), Some(after)) => Some((after + from - before).max(after / 2.0)),
        (_, _, after) => after,
    }
}

/// That change, from where a level was measured, and from the ends of what is known of it.
fn from_where_it_was(fitted: &Beside, changed: Took) -> (Took, Doubt) {
    let (from, before, doubt) = (fitted.measured, fitted.modelled, fitted.doubt);
    let ends = |doubt: Option<[f64; 2]>, before, after| {
        let [low, high] = doubt?.map(|end| moved(Some(end), before, after));
        Some([low?, high?])
    };
    let took = Took {
        p50_ns: moved(from.p50_ns, before.p50_ns, changed.p50_ns),
        cpu_ns: moved(from.cpu_ns, before.cpu_ns, changed.cpu_ns),
    };
    let doubt = Doubt {
        p50_ns: ends(doubt.p50_ns, before.p50_ns, changed.p50_ns),
        cpu_ns: ends(doubt.cpu_ns, before.cpu_ns, changed.cpu_ns),
        ..doubt
    };
    (took, doubt)
}

/// Which assumption moves the prediction of the middle level most.
fn sensitive(model: &Calibrated<'_>, other: &Under, n_threads: usize) -> Result<Vec<Moved>, FitError> {
    let failed = |e: String| FitError::Model(e);
    let levels = &model.subject.load.levels;
    let Some(level) = levels.get(levels.len() / 2) else { return Ok(Vec::new()) };
    let server = model::server(&model.subject, level, &model.numbers);
    let server = server.with(&other.set).map_err(|e| failed(e.to_string()))?;
    sensitivity(&server, &[Quantity::P50Us, Quantity::CpuUs], n_threads).map_err(|e| failed(e.to_string()))
}

fn foretold(model: &Calibrated<'_>, held: Option<&Loads>, other: &Under, n_threads: usize) -> Result<Fitted, FitError> {
    let of_other = |level: &Loaded| {
        let there = held.and_then(|h| h.levels.iter().find(|l| l.name == level.name));
        // What is asked there, if it was asked; a level's own rate belongs to its setting.
        let asked =
            there.map_or_else(|| level.clone(), |there| Loaded { service: level.service.clone(), ..there.clone() });
        let measured = there.map_or_else(Took::default, |there| there.took);
        let changed = modelled(&model.subject, &asked, &model.numbers, other, n_threads)?;
        let fitted = model.fitted.iter().find(|b| b.level == level.name);
        let (modelled, modelled_doubt) =
            fitted.map_or((changed, Doubt::default()), |fitted| from_where_it_was(fitted, changed));
        let doubt = there.map_or_else(Doubt::default, |there| there.doubt);
        Ok(Beside { level: asked.name, measured, doubt, modelled, modelled_doubt })
    };
    let predicted = model.subject.load.levels.iter().map(of_other).collect::<Result<Vec<_>, FitError>>()?;
    let errors = predicted.iter().flat_map(Beside::offs).filter_map(|off| Some((off.ratio?, off.range)));
    let worst = errors.max_by(|a, b| a.0.abs().total_cmp(&b.0.abs()));
    // No part of what was measured is as far off as a queue without an end.
    let worst = worst.filter(|_| !predicted.iter().flat_map(Beside::offs).any(|off| off.is_endless));
    Ok(Fitted {
        kind: model.subject.load.kind,
        numbers: model.numbers,
        fitted: model.fitted.clone(),
        rms_ratio: model.rms_ratio,
        hits: Hits::of(&predicted),
        predicted,
        worst_ratio: worst.map(|(ratio, _)| ratio),
        worst_range: worst.and_then(|(_, range)| range),
        cold: model.subject.cold.clone(),
        sensitivity: sensitive(model, other, n_threads)?,
    })
}
