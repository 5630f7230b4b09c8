//! Watts and joules in a window, by every meter there is; of a command, or of a time.
//!
//! The window of a command begins after the meters were read once and ends when its process has ended; what it leaves
//! running in the background is not waited for. The machine's energy is not the command's: everything else that ran in
//! that time is in it. Without any meter that works a model is quoted, under its own name.

use super::activity;
use crate::context::Lab;
use crate::refusal::Refusal;
use crate::running::Running;
use serde::Serialize;
use std::ffi::OsString;
use wakewatt_core::samples::energy::EnergySample;
use wakewatt_core::samples::power_model::{self, Calibration, Modelled};
use wakewatt_host::power::{self, MetersWanted, Recorder};

/// Without a command.
const DEFAULT_NS: u64 = 10_000_000_000;

/// What is to be measured.
#[derive(Clone)]
pub struct PowerPlan {
    /// Meters that may be asked.
    pub wanted: MetersWanted,
    /// Only these kinds, if any are named.
    pub only: Vec<String>,
    /// Those that are quoted before others.
    pub preferred: Vec<String>,
    /// For so long; a while when none, and until a command ends.
    pub for_ns: Option<u64>,
    /// Time between readings.
    pub interval_ns: u64,
    /// A command to run meanwhile; none when empty.
    pub command: Vec<OsString>,
    /// What estimates where no meter works.
    pub model: Option<Calibration>,
}

/// Watts and joules in a window.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PowerSample {
    /// What the meters said.
    pub sample: EnergySample,
    /// The command that ran in it.
    pub command: Option<CommandRun>,
    /// An estimate, where nothing measured. Never a measurement.
    pub modelled: Option<Modelled>,
}

/// A command that ran while meters were read.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandRun {
    /// The program that was run.
    pub program: String,
    /// Its exit code, or 128 and its signal.
    pub exit_code: u8,
    /// From its start to its end.
    pub wall_ns: u64,
}

/// Reads the meters until the time is up, the command has ended, or it is to end.
pub fn power(lab: Lab<'_>, plan: &PowerPlan) -> Result<PowerSample, Refusal> {
    let found = power::find(&plan.wanted, &plan.only);
    let recorder = Recorder::start(found, plan.wanted.machine.clone(), plan.interval_ns, &plan.preferred);
    let sampler = activity::start();
    let start_at_ns = lab.clock.now_ns();
    let command = match plan.command.is_empty() {
        true => {
            lab.wait_until(start_at_ns.saturating_add(plan.for_ns.unwrap_or(DEFAULT_NS)));
            None
        }
        false => {
            let mut command = Running::start(&plan.command)?;
            let exit_code = command.wait(lab);
            let wall_ns = lab.clock.now_ns().saturating_sub(start_at_ns);
            Some(CommandRun { program: command.name().to_string(), exit_code, wall_ns })
        }
    };
    let sample = recorder.stop();
    let modelled = match sample.chosen {
        Some(_) => None,
        None => {
            let model = plan.model.as_ref();
            let estimate = |a| model.map_or_else(|| power_model::estimate(&a), |model| model.estimate(&a));
            sampler.and_then(activity::since).map(estimate)
        }
    };
    Ok(PowerSample { sample, command, modelled })
}
