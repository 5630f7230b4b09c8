//! `wakewatt measure power`: every meter of this machine, what each says, and the energy of a command.
//!
//! All kinds of meter are listed whether they work or not; those that work are read in the same window. One is quoted,
//! and named: what the user named, else the first that works. Without any, a model is, under its own name.
//!
//! The window of a command begins after the meters were read once and ends when its process has ended; what it leaves
//! running in the background is not waited for. The machine's energy is not the command's: everything else that ran in
//! that time is in it.

mod activity;
mod calibrate;
mod text;

pub(super) use calibrate::run as calibrated;
pub(super) use text::text;

use crate::cli::PowerArgs;
use crate::cli::meter::MeterArgs;
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupt;
use anyhow::Result;
use serde::Serialize;
use std::sync::Arc;
use wakewatt_core::samples::energy::EnergySample;
use wakewatt_core::samples::power_model::{self, Modelled};
use wakewatt_host::clock::monotonic_ns;
use wakewatt_host::live::Live;
use wakewatt_host::power::prometheus::Query;
use wakewatt_host::power::redfish::Account;
use wakewatt_host::power::{self, Machine, Recorder, Trust, Wanted};
use wakewatt_host::secret::Secret;
use wakewatt_lab::context::Unheard;
use wakewatt_lab::running::Running;

/// Without a command.
const DEFAULT_NS: u64 = 10_000_000_000;

/// Where the BMC's password may be.
const PASSWORD: &str = "WAKEWATT_REDFISH_PASSWORD";

/// Watts and joules in a window.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct PowerSample {
    /// What the meters said.
    pub sample: EnergySample,
    /// The command that ran in it.
    pub command: Option<CommandRun>,
    /// An estimate, where nothing measured. Never a measurement.
    pub modelled: Option<Modelled>,
}

/// A command that ran while meters were read.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct CommandRun {
    /// The program that was run.
    pub program: String,
    /// Its exit code, or 128 and its signal.
    pub exit_code: u8,
    /// From its start to its end.
    pub wall_ns: u64,
}

/// Runs it.
pub(super) fn run(args: &PowerArgs, interrupt: &Interrupt) -> Result<PowerSample> {
    let machine: Machine = Arc::new(Live::this_machine());
    let model = args.model.as_deref().map(calibrate::read).transpose()?;
    let (wanted, preferred) = wanted(&args.meters, &machine)?;
    let found = power::find(&wanted, &args.meters.meter);
    let src = Live::this_machine();
    let lab = interrupt.lab(&src, &Unheard);
    let recorder = Recorder::start(found, Some(machine), args.interval, &preferred);
    let sampler = activity::start();
    let start_at_ns = monotonic_ns();
    let command = match args.command.is_empty() {
        true => None,
        false => Some(Running::start(&args.command)?),
    };
    let end_at_ns = match (args.for_ns, &command) {
        (Some(ns), _) => start_at_ns.saturating_add(ns),
        (None, Some(_)) => u64::MAX,
        (None, None) => start_at_ns + DEFAULT_NS,
    };
    let command = match command {
        Some(mut command) => {
            let exit_code = command.wait(lab);
            let wall_ns = monotonic_ns().saturating_sub(start_at_ns);
            Some(CommandRun { program: command.name().to_string(), exit_code, wall_ns })
        }
        None => {
            lab.wait_until(end_at_ns);
            None
        }
    };
    let sample = recorder.stop();
    let modelled = match sample.chosen {
        Some(_) => None,
        None => {
            let estimate = |a| model.as_ref().map_or_else(|| power_model::estimate(&a), |model| model.estimate(&a));
            sampler.and_then(activity::since).map(estimate)
        }
    };
    Ok(PowerSample { sample, command, modelled })
}

/// What the command line says about meters, and those it names, which are quoted before others.
pub(crate) fn wanted(args: &MeterArgs, machine: &Machine) -> Result<(Wanted, Vec<String>)> {
    let named = [
        (!args.redfish.is_empty(), power::redfish::NAME),
        (args.prometheus.is_some(), power::prometheus::NAME),
        (args.meter_cmd.is_some(), power::command::NAME),
    ];
    let named = named.into_iter().filter(|(is_named, _)| *is_named).map(|(_, name)| name.to_string());
    let preferred: Vec<String> = args.meter.iter().cloned().chain(named).collect();
    let wanted = Wanted {
        machine: Some(Arc::clone(machine)),
        has_devices: true,
        command: args.meter_cmd.clone(),
        redfish: Account {
            urls: args.redfish.clone(),
            user: args.redfish_user.clone(),
            password: args.redfish_user.as_ref().map(|_| password(args)).transpose()?,
            is_plain_allowed: args.plain_http_password,
        },
        prometheus: args.prometheus.clone().zip(args.query.clone()).map(|(url, query)| Query { url, query }),
        trust: Trust { ca: args.ca.clone(), is_insecure: args.insecure },
        nvidia_smi: None,
    };
    wanted.redfish.check().map_err(|why| Failure::error(Code::Usage, why.to_string()))?;
    Ok((wanted, preferred))
}

/// From the file, else the environment; never from the command line, which everybody can read in /proc.
fn password(args: &MeterArgs) -> Result<Secret> {
    if let Some(file) = &args.redfish_password_file {
        return Ok(Secret::from_file(file)?);
    }
    let text = std::env::var(PASSWORD).map_err(|_| {
        let why = format!("no password: set {PASSWORD} or name a file with --redfish-password-file");
        Failure::error(Code::Usage, why)
    })?;
    Secret::first_line(&text).map_err(|why| Failure::error(Code::Usage, format!("{PASSWORD}: {why}")))
}
