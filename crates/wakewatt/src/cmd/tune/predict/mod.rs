//! `tune plan --predict RUN`: what a model fitted to runs of this machine expects of the plan.
//!
//! The model is that of `wakewatt fit`, fitted to the loads as found. Beside what it expects stands how far off it was the last time that it could be
//! checked: the arm without sleep, if the runs have it, which took no part in the fit. What the model does not know is refused by name; a guess
//! about a clock from a model of sleep would look like a number and be none.

mod asleep;
mod change;
mod text;

use crate::exit::{Code, Failure};
use crate::saved;
use anyhow::Result;
use asleep::{Asleep, of_runs};
use serde::Serialize;
use std::path::PathBuf;
pub(super) use text::text;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::Label;
use wakewatt_core::samples::load::Kind;
use wakewatt_sim::fit::{Fit, FitError, Fitted, Inputs, Took, Under, fit_each};
use wakewatt_tune::knob::Host;
use wakewatt_tune::planning::TunePlan;

/// The arm that checks the model, and what it is in it.
const CHECK: (&str, &str) = ("poll", "machine.idle.max_latency=0us");
/// The arm that it is fitted to.
const FOUND: &str = "found";

/// A plan, and what a model expects of it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Planned {
    /// The plan.
    #[serde(flatten)]
    pub plan: TunePlan,
    /// What a fitted model expects, where that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted: Option<Predicted>,
}

/// What a fitted model expects of a plan.
#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Predicted {
    /// What the numbers are worth: always modelled.
    pub label: Label,
    /// Why nothing can be told; then there are no numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cannot_tell: Option<String>,
    /// The loads that it was fitted to.
    pub on: String,
    /// What the plan is in the model: fields of a server file.
    pub fields: Vec<String>,
    /// Idle states whose exit latency is a claim, because no run given measured it: the numbers rest on it.
    pub claimed_exits: Vec<String>,
    /// Load by load.
    pub loads: Vec<Expected>,
    /// What was assumed, in sentences.
    pub remarks: Vec<String>,
}

/// What it expects of one kind of load.
#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Expected {
    /// What made the load.
    pub kind: Kind,
    /// Level by level.
    pub levels: Vec<ExpectedLevel>,
    /// Root of the mean square of what the fit leaves of the levels that it was fitted to, as a part of what was measured.
    pub rms_ratio: f64,
    /// The largest error of its last prediction that could be checked, as a part of what was measured; none where none could.
    pub last_error_ratio: Option<f64>,
    /// Between which values that lies for the doubt of what was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error_range: Option<[f64; 2]>,
}

/// A level now and after the plan.
#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExpectedLevel {
    /// What is asked of the machine.
    pub level: String,
    /// As measured, before.
    pub measured: Took,
    /// The same as the model has it.
    pub modelled: Took,
    /// What the model expects after the plan.
    pub expected: Took,
}

impl Predicted {
    /// Nothing yet, of these loads.
    fn of(on: &str) -> Predicted {
        Predicted {
            label: Label::Modelled,
            cannot_tell: None,
            on: on.into(),
            fields: Vec::new(),
            claimed_exits: Vec::new(),
            loads: Vec::new(),
            remarks: Vec::new(),
        }
    }
}

/// What the runs say of the plan.
pub(super) fn predict(files: &[PathBuf], plan: &TunePlan, host: &Host<'_>) -> Result<Option<Predicted>> {
    if files.is_empty() {
        return Ok(None);
    }
    let runs: Vec<Evidence> = files.iter().map(|file| saved::open(file).map(|(_, run)| run)).collect::<Result<_>>()?;
    let failed = |e: FitError| Failure::error(Code::BadFile, format!("--predict: {e}"));
    let inputs = Inputs::of(&runs).map_err(failed)?;
    let on = shown(&inputs);
    inputs.under(&on).map_err(failed)?;
    let cannot = |why: String| Predicted { cannot_tell: Some(why), ..Predicted::of(&on) };
    // The plan is of the host as it is, which may not be as it was when the runs were made.
    let after = |now: &Asleep| {
        let here = Asleep::found(&host.facts).map_err(|why| format!("of the plan's machine: {why}"))?;
        here.after(plan, &host.online())?.in_model_of(now)
    };
    let asleep = of_runs(files, &runs, &host.facts).and_then(|now| Ok((after(&now)?, now)));
    let (then, now) = match asleep {
        Ok(both) => both,
        Err(why) => return Ok(Some(cannot(why))),
    };
    if then.in_force() == now.in_force() {
        let nothing = "The plan changes nothing in the model: the runs were measured with it.".to_string();
        return Ok(Some(Predicted { fields: then.fields(&now), remarks: vec![nothing], ..Predicted::of(&on) }));
    }
    let under = |name: &str, set: Vec<String>| Under { name: name.into(), set };
    let others = [under("the plan", then.fields(&now)), under(CHECK.0, vec![CHECK.1.into()])];
    let n_threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut fits = fit_each(&inputs, &under(&on, now.fields(&now)), &others, n_threads).map_err(failed)?;
    let (Some(checked), Some(planned)) = (fits.pop(), fits.pop()) else { return Ok(None) };
    let mut predicted = of(planned, &checked, then.fields(&now));
    if then.spins() && then != now {
        let assumed =
            "How haltpoll's window grows and shrinks is taken as kernels are shipped; the facts do not tell it.";
        predicted.remarks.push(assumed.into());
    }
    Ok(Some(predicted))
}

/// The loads as found; of runs that know no such arm, all that there is under one title.
fn shown(inputs: &Inputs) -> String {
    let mut titles = inputs.loads.iter().map(|l| l.arm.as_ref().unwrap_or(&l.title));
    let is_found = inputs.under(FOUND).is_ok();
    match titles.next() {
        Some(only) if !is_found && titles.all(|title| title == only) => only.clone(),
        _ => FOUND.into(),
    }
}

fn of(planned: Fit, checked: &Fit, fields: Vec<String>) -> Predicted {
    let mut remarks = planned.remarks;
    if !checked.is_checked {
        remarks.push(format!(
            "The runs have no loads under `{}`, which would have checked the model: how far off it is here is not known. `wakewatt fit --check --save` measures both.",
            CHECK.0
        ));
    }
    if checked.is_checked && checked.loads.iter().any(|l| l.worst_ratio.is_none()) {
        remarks.push(format!("Under `{}` the model foretells a queue without an end where there was none: how far off it is has no percent.", CHECK.0));
    }
    let expected = |(f, checked): (Fitted, &Fitted)| Expected {
        kind: f.kind,
        levels: f
            .fitted
            .into_iter()
            .zip(f.predicted)
            .map(|(now, then)| ExpectedLevel {
                level: now.level,
                measured: now.measured,
                modelled: now.modelled,
                expected: then.modelled,
            })
            .collect(),
        rms_ratio: f.rms_ratio,
        last_error_ratio: checked.worst_ratio,
        last_error_range: checked.worst_range,
    };
    let loads: Vec<Expected> = planned.loads.into_iter().zip(&checked.loads).map(expected).collect();
    let changes: Vec<(f64, f64)> = loads.iter().flat_map(Expected::changes).collect();
    if !changes.is_empty() && changes.iter().all(|(change, error)| change < error) {
        let errors = match loads.iter().all(|l| l.last_error_ratio.is_some()) {
            true => "its own errors",
            false => "what its fit leaves, and its error is not known",
        };
        remarks.push(format!(
            "Every change that it expects is smaller than {errors}: it cannot tell this plan from none."
        ));
    }
    let claimed_exits = planned.exits.iter().filter(|exit| !exit.is_measured).map(|exit| exit.state.clone()).collect();
    Predicted { fields, claimed_exits, loads, remarks, ..Predicted::of(&planned.on) }
}
