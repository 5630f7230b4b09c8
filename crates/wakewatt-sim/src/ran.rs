//! Arrivals from a run of `load`: its rates, level by level, not its requests.
//!
//! A run file keeps distributions: the time of no single request is in it, and the plan of a level cannot be drawn again from its seed. What it
//! does hold is how many came in each level, and what made them. The transactions of `load steps` are Poisson by their plan, so Poisson at
//! the planned rates is what they were. Clients of `load shop` wait for their answers and think between; how long they think is not in the file, so they
//! become Poisson at the rate that they came to, which has more at once than clients ever send.

use crate::recorded::Taken;
use crate::server::{ArrivalKind, Arrivals};
use std::fmt::Write as _;
use wakewatt_core::samples::load::{Ask, Kind, Level, LoadRun};
use wakewatt_core::units::three_digits;

/// More levels than any run has.
const MOST_LEVELS: usize = 64;

/// The rates of the first load of a run that has any, or why there are none.
pub fn of_loads(loads: &[LoadRun]) -> Result<Taken, String> {
    let (at, load, rates) = loads
        .iter()
        .enumerate()
        .find_map(|(at, load)| Some((at, load, rates(load))).filter(|found| found.2.iter().any(|r| *r > 0.0)))
        .ok_or("there is no load with rates in it: make one with load steps or load shop, or record idle time with trace --record")?;
    let most = rates.iter().copied().fold(0.0, f64::max);
    // A hundred percent is what the run could do, where it says so: then levels have the names they had.
    let full = load
        .capacity_per_s
        .filter(|full| load.kind == Kind::Steps && full.is_finite() && *full >= most / 2.0)
        .unwrap_or(most);
    let percent: Vec<f64> = rates.iter().map(|rate| (rate / full * 1e4).round() / 100.0).collect();
    let shown: Vec<String> = rates.iter().map(|rate| three_digits(*rate)).collect();
    let mut told = format!(
        "Poisson at the rates of the run's {}, {} per second, a level each; 100 percent is {} per second. A run file keeps rates and distributions, the time of no single request.",
        match load.kind {
            Kind::Steps => "graduated load (their plan was Poisson too)",
            Kind::Shop => "shop",
            Kind::Command => "command",
        },
        shown.join(", "),
        three_digits(full)
    );
    if load.kind == Kind::Shop {
        told.push_str(" Its clients waited for answers and thought in between, for a time that is not in the file: independent arrivals come in larger crowds.");
    }
    let n_others = loads.len() - 1;
    if n_others > 0 {
        let _ = write!(
            told,
            " The run holds {n_others} other load{}; this is the {}.",
            if n_others == 1 { "" } else { "s" },
            ordinal(at)
        );
    }
    Ok(Taken {
        arrivals: Arrivals { kind: ArrivalKind::Steps, per_s: Some(full), percent, ..Arrivals::default() },
        told,
    })
}

fn ordinal(at: usize) -> String {
    if at == 0 { "first".into() } else { format!("first with rates, number {}", at + 1) }
}

/// What was planned, else what came; active idle is none. A command's own pace is not known.
fn rates(load: &LoadRun) -> Vec<f64> {
    let rate = |level: &Level| match level.ask {
        Ask::Idle => Some(0.0),
        Ask::Run => None,
        // All that is to be had has no plan: what came is what the machine did.
        _ => level.target_per_s.or(Some(level.per_s)).filter(|rate| rate.is_finite() && *rate > 0.0),
    };
    let mut all: Vec<f64> = Vec::new();
    for rate in load.levels.iter().take(MOST_LEVELS).filter_map(rate) {
        // The same asked several times is one level.
        if !all.iter().any(|there| (there - rate).abs() <= 1e-9 * rate) {
            all.push(rate);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(ask: Ask, target_per_s: Option<f64>, per_s: f64) -> Level {
        Level { ask, target_per_s, per_s, ..Level::default() }
    }

    #[test]
    fn levels_of_a_graduated_load_keep_their_percent() {
        let levels = vec![
            level(Ask::Share(1.0), Some(4000.0), 3990.0),
            level(Ask::Share(0.5), Some(2000.0), 2010.0),
            level(Ask::Idle, None, 0.0),
            level(Ask::Share(0.5), Some(2000.0), 1990.0),
        ];
        let load = LoadRun { capacity_per_s: Some(4000.0), levels, ..LoadRun::default() };
        let taken = of_loads(std::slice::from_ref(&load)).unwrap();
        assert_eq!((taken.arrivals.kind, taken.arrivals.per_s), (ArrivalKind::Steps, Some(4000.0)));
        assert_eq!(taken.arrivals.percent, [100.0, 50.0, 0.0]);
        assert!(
            taken.told.contains("the time of no single request") && !taken.told.contains("other load"),
            "{}",
            taken.told
        );
        let two = of_loads(&[LoadRun::default(), load]).unwrap();
        assert!(
            two.told.ends_with("The run holds 1 other load; this is the first with rates, number 2."),
            "{}",
            two.told
        );
    }

    #[test]
    fn clients_become_independent_arrivals_and_that_is_said() {
        let levels = vec![level(Ask::Clients(500), None, 250.0), level(Ask::Clients(1000), None, 500.0)];
        let shop = LoadRun { kind: Kind::Shop, levels, capacity_per_s: Some(9000.0), ..LoadRun::default() };
        let taken = of_loads(&[shop]).unwrap();
        assert_eq!((taken.arrivals.per_s, taken.arrivals.percent), (Some(500.0), vec![50.0, 100.0]));
        assert!(taken.told.contains("larger crowds"), "{}", taken.told);
    }

    #[test]
    fn a_run_without_a_load_says_what_would_have_one() {
        assert!(of_loads(&[]).unwrap_err().contains("load steps"));
        let odd = LoadRun {
            levels: vec![level(Ask::Rate(f64::NAN), Some(f64::NAN), 5.0), level(Ask::Run, None, 3.0)],
            ..LoadRun::default()
        };
        assert!(of_loads(&[odd]).is_err());
    }
}
