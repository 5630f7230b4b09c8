//! `wakewatt load steps`: arguments to a plan, and what came of it.

use super::publish;
use crate::cli::load::{StepsArgs, standard_levels};
use crate::exit::{Code, End, Failure};
use crate::interrupt::Interrupt;
use crate::meters::meters;
use crate::output;
use crate::progress::Progress;
use crate::saved;
use anyhow::Result;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::samples::load::{Ask, Length};
use wakewatt_core::units::show_ns;
use wakewatt_host::live::Live;
use wakewatt_lab::load::steps::{Steps, StepsPlan, steps};
use wakewatt_lab::load::{LoadError, Phases};
use wakewatt_lab::pick;
use wakewatt_lab::survey::allowed_cpus;

/// More are a mistake, or a week.
const MOST_LEVELS: usize = 100;
/// The same with --repeat.
const MOST_REPEATED: usize = 1000;
/// A service time may be this part of what is recorded.
const FEWEST_IN_INTERVAL: u64 = 20;
/// What a CPU cannot do: no transaction is shorter than 10 us.
const MOST_PER_CPU_S: f64 = 1e5;

/// Runs it.
pub(super) fn run(args: &StepsArgs) -> Result<End> {
    let (length, phases) = phases(args);
    let levels = if args.levels.is_empty() { standard_levels() } else { args.levels.clone() };
    let src = Live::this_machine();
    let cpus = cpus(args)?;
    check(args, &phases, &levels, cpus.len())?;
    let saving = saved::start(args.save.as_deref(), "load steps", &src)?;
    let plan = StepsPlan {
        cpus,
        service_ns: args.service,
        work_units: args.work,
        levels: levels.repeat(args.repeat.max(1) as usize),
        length,
        phases,
        seed: args.seed.unwrap_or_else(pick::seed_of_now),
        meters: meters(&args.meters)?,
    };
    let interrupt = Interrupt::listen()?;
    let Steps { run, ended } = steps(interrupt.lab(&src, &Progress::start("load steps")), plan)?;
    let has_levels = !run.levels.is_empty();
    let is_shown = has_levels || ended.is_ok();
    let kept = if is_shown { publish(run, args.json, &args.meters, saving.as_ref())? } else { Code::Fine };
    match ended {
        Ok(()) => Ok(kept.into()),
        Err(LoadError::Stopped) => {
            if !has_levels {
                output::remark("Interrupted before the first level ended; there is nothing to show.");
            }
            Ok(Code::Interrupted.into())
        }
        Err(LoadError::Failed(why)) => Err(Failure::error(Code::CouldNotMeasure, why)),
    }
}

fn phases(args: &StepsArgs) -> (Length, Phases) {
    match (args.interval, args.quick, args.spec_like) {
        (Some(ns), ..) => (Length::Custom, Phases::custom(ns)),
        (_, true, _) => (Length::Quick, Phases::of(Length::Quick)),
        (_, _, true) => (Length::SpecLike, Phases::of(Length::SpecLike)),
        _ => (Length::Standard, Phases::of(Length::Standard)),
    }
}

fn cpus(args: &StepsArgs) -> Result<CpuSet> {
    let allowed = allowed_cpus()?;
    let Some(cpus) = &args.cpus else { return Ok(allowed) };
    let outside = cpus.minus(&allowed);
    if cpus.is_empty() || !outside.is_empty() {
        let why =
            format!("--cpus {cpus}: this process may use {allowed}; name some of those, or widen taskset or cpuset");
        return Err(Failure::error(Code::Usage, why));
    }
    Ok(cpus.clone())
}

/// What the command line's parser cannot see.
fn check(args: &StepsArgs, phases: &Phases, levels: &[Ask], n_cpus: usize) -> Result<()> {
    let usage = |text: String| Err(Failure::error(Code::Usage, text));
    if args.service.saturating_mul(FEWEST_IN_INTERVAL) > phases.record_ns {
        return usage(format!(
            "a transaction of {} in a recorded part of {}: give a --service of at most {}, or a longer --interval",
            show_ns(args.service),
            show_ns(phases.record_ns),
            show_ns(phases.record_ns / FEWEST_IN_INTERVAL)
        ));
    }
    if levels.len() > MOST_LEVELS {
        return usage(format!("{} levels: give at most {MOST_LEVELS}", levels.len()));
    }
    if levels.len() * args.repeat as usize > MOST_REPEATED {
        let most = MOST_REPEATED / levels.len();
        return usage(format!("{} levels {} times: --repeat at most {most}", levels.len(), args.repeat));
    }
    let most_per_s = MOST_PER_CPU_S * n_cpus as f64;
    if let Some(ask) = levels.iter().find(|ask| matches!(ask, Ask::Rate(per_s) if *per_s > most_per_s)) {
        return usage(format!("--levels {}: more than {most_per_s}/s is beyond {n_cpus} CPUs", ask));
    }
    let is_again = |(index, ask): (usize, &Ask)| levels.iter().take(index).any(|other| other == ask);
    if let Some(index) = levels.iter().enumerate().position(is_again) {
        let twice = levels.get(index).map(ToString::to_string).unwrap_or_default();
        return usage(format!("--levels names {twice} twice; each level is named once, --repeat runs the list again"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_input_is_refused_with_a_way_out() {
        let args = |service| StepsArgs { service, ..StepsArgs::default() };
        let phases = Phases::custom(1_000_000_000);
        let why = |service, levels: &[Ask]| check(&args(service), &phases, levels, 2).unwrap_err().to_string();
        assert!(why(2_000_000_000, &[Ask::Idle]).contains("at most 50ms"));
        assert!(why(500_000, &[Ask::Idle, Ask::Share(0.5), Ask::Idle]).contains("active idle twice"));
        let many: Vec<Ask> = (1..=101).map(|n| Ask::Rate(f64::from(n))).collect();
        assert!(why(500_000, &[Ask::Rate(1e8)]).contains("more than 200000/s is beyond 2 CPUs"));
        assert!(why(500_000, &many).contains("at most 100"));
        let often = StepsArgs { service: 500_000, repeat: 101, ..StepsArgs::default() };
        let refused = check(&often, &phases, &many[..10], 2).unwrap_err().to_string();
        assert_eq!(refused, "10 levels 101 times: --repeat at most 100");
        assert!(check(&args(500_000), &phases, &standard_levels(), 2).is_ok());
    }
}
