//! `wakewatt measure`: one thing, with its uncertainty. Each has a file from arguments to a plan; what runs it is the lab's
//! `survey`.

mod cores;
mod disk;
mod disk_text;
mod frequency;
pub mod idle;
mod memory;
mod network;
mod power;
mod power_text;
mod text;
mod wakeup;

pub use memory::worker as memory_worker;

use crate::cli::{Measure, MeasureArgs};
use crate::exit::{Code, End};
use crate::interrupt::Interrupt;
use crate::output::{self, Colour};
use crate::progress::Progress;
use crate::saved;
use anyhow::Result;
use wakewatt_core::cost::Rates;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::Samples;
use wakewatt_core::samples::cores::CoresSample;
use wakewatt_core::samples::disk::DiskSample;
use wakewatt_core::samples::experiment::ExperimentRun;
use wakewatt_core::samples::icmp::IcmpSample;
use wakewatt_core::samples::memory::MemorySample;
use wakewatt_core::samples::network::NetworkSample;
use wakewatt_core::samples::not_done::NotDone;
use wakewatt_core::samples::speed::SpeedSample;
use wakewatt_core::samples::state_cost::StateCosts;
use wakewatt_core::samples::wakeup::WakeupSample;
use wakewatt_host::live::Live;
use wakewatt_lab::survey::PowerSample;

/// What `measure` found.
#[derive(Debug, Default, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Measured {
    /// Wake-ups of one CPU by one kind each.
    pub wakeups: Vec<WakeupSample>,
    /// Round trips by UDP and TCP, with their split.
    pub network: Vec<NetworkSample>,
    /// Pings, divided along their way.
    pub icmp: Vec<IcmpSample>,
    /// Latency and bandwidth of memory.
    pub memory: Option<MemorySample>,
    /// Disk reads, one engine and depth each.
    pub disk: Vec<DiskSample>,
    /// Disk reads with and without sleep, if asked for.
    pub disk_experiment: Option<ExperimentRun>,
    /// Cache line hand-overs between CPUs.
    pub cores: Vec<CoresSample>,
    /// From idle to full speed, one entry per CPU.
    pub speed: Vec<SpeedSample>,
    /// What leaving each idle state costs, one entry per CPU.
    pub idle_states: Vec<StateCosts>,
    /// Watts and joules.
    pub power: Vec<PowerSample>,
    /// What could not be measured, and why.
    pub not_done: Vec<NotDone>,
}

/// Runs it.
pub fn run(args: &MeasureArgs) -> Result<End> {
    let interrupt = Interrupt::listen()?;
    let src = Live::this_machine();
    if !matches!(&args.what, Measure::Power(power) if !power.command.is_empty()) {
        saved::may_stream(args.save.as_deref());
    }
    let saving = saved::start(args.save.as_deref(), &format!("measure {}", args.what.word()), &src)?;
    let (measured, is_json) = {
        let progress = Progress::start(&format!("measure {}", args.what.word()));
        let lab = interrupt.lab(&src, &progress);
        match &args.what {
            Measure::Wakeup(args) => (wakeup::run(args, lab)?, args.json),
            Measure::Network(args) => (network::run(args, lab)?, args.json),
            Measure::Memory(args) => (memory::run(args, lab)?, args.json),
            Measure::Disk(args) => (disk::run(args, lab)?, args.json),
            Measure::Cores(args) => (cores::run(args, lab)?, args.json),
            Measure::Frequency(args) => (frequency::run(args, lab)?, args.json),
            Measure::Idle(args) => (idle::run(args, lab)?, args.json),
            Measure::Power(args) if args.calibrate => {
                power::calibrated(args, lab)?;
                return Ok(Code::Fine.into());
            }
            Measure::Power(args) => {
                (Measured { power: vec![power::run(args, lab)?], ..Measured::default() }, args.json)
            }
        }
    };
    let shown = match is_json {
        true => output::json("measure", &measured).and_then(|text| output::print(&text)),
        false => output::print(&wakewatt_words::spoken(|| {
            text::text(&measured, &src, output::width(), Colour::Auto.is_on())
        })),
    };
    let rates = match &args.what {
        Measure::Power(args) => args.meters.rates.rates(),
        Measure::Idle(args) => args.meters.rates.rates(),
        _ => Rates::default(),
    };
    let priced = if is_json { Ok(()) } else { output::costs(&rates, &measured.evidence()) };
    let own = output::settled(shown.and(priced), code(&measured, interrupt.is_set()));
    let own = saving.map_or(own, |saving| saving.finish_with(&measured.evidence(), own));
    // The command's code is what was promised; ours would hide it.
    if let Some(command) = measured.power.iter().find_map(|p| p.command.as_ref()) {
        return Ok(End::Command(command.exit_code));
    }
    Ok(own.into())
}

impl Measured {
    /// As evidence; the facts are the run file's own.
    fn evidence(&self) -> Evidence {
        let Measured {
            wakeups,
            network,
            icmp,
            memory,
            disk,
            disk_experiment,
            cores,
            speed,
            idle_states,
            power,
            not_done,
        } = self;
        Evidence {
            not_done: not_done.clone(),
            samples: Samples {
                wakeups: wakeups.clone(),
                network: network.clone(),
                icmp: icmp.clone(),
                memory: memory.clone(),
                disk: disk.clone(),
                disk_experiment: disk_experiment.clone(),
                cores: cores.clone(),
                speed: speed.clone(),
                idle_states: idle_states.clone(),
                energy: power.iter().map(|p| p.sample.clone()).collect(),
                ..Samples::default()
            },
            ..Evidence::default()
        }
    }
}

fn code(measured: &Measured, is_interrupted: bool) -> Code {
    let Measured {
        wakeups,
        network,
        icmp,
        memory,
        disk,
        disk_experiment,
        cores,
        speed,
        idle_states,
        power,
        not_done: _,
    } = measured;
    let has_idle = idle_states.iter().any(|costs| costs.states.iter().any(|s| !s.wakes.is_empty()));
    let has_memory = memory.as_ref().is_some_and(|m| {
        !m.latency.is_empty() || m.loaded.is_some() || !m.bandwidth.is_empty() || !m.matrix.is_empty()
    });
    let has_power = power.iter().any(|p| p.sample.chosen.is_some());
    let is_left = disk_experiment.as_ref().is_some_and(|run| !run.is_restored());
    if is_left || idle_states.iter().any(|costs| !costs.not_restored.is_empty()) {
        Code::NotRestored
    } else if is_interrupted {
        Code::Interrupted
    } else if wakeups.is_empty()
        && network.is_empty()
        && icmp.is_empty()
        && !has_memory
        && disk.is_empty()
        && disk_experiment.is_none()
        && cores.is_empty()
        && speed.is_empty()
        && !has_idle
        && !has_power
    {
        Code::CouldNotMeasure
    } else {
        Code::Fine
    }
}
