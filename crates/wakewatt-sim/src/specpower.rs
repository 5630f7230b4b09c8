//! Published SPECpower_ssj2008 results beside the power model: how much a server of that shape draws
//! between idle and full load.
//!
//! A result gives watts at full load and at active idle, and its overall score is the sum of work over the
//! sum of watts at eleven levels, so it also gives the mean watts of the nine levels between (work at a
//! level is taken as that part of full load). The model is held to both ends, its cores scaled to the
//! published difference, and asked for the middle: what is compared is the shape of the curve, not its
//! size.

use crate::law::Law;
use crate::outcome::MachineOutcome;
use crate::server::{
    ArrivalKind, Arrivals, Clock, ClockGovernor, Hop, Idle, Machine, Power, Run, Server, ServerError, Workload,
};
use crate::span::Span;
use crate::study::study;
use std::collections::{BTreeMap, BTreeSet};

/// Packages of a machine, cores of a package, threads of a core.
pub type Shape = [u32; 3];

/// A published result.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// The processor, as published.
    pub cpu: String,
    /// Of one machine.
    pub shape: Shape,
    /// Machines that were measured together.
    pub nodes: f64,
    /// Watts at full load, at active idle, and on average at 10 to 90 percent.
    pub watts: [f64; 3],
}

impl Published {
    /// Where the middle lies between idle and full load, 0 to 1.
    pub fn middle_ratio(&self) -> f64 {
        let [full, idle, middle] = self.watts;
        (middle - idle) / (full - idle)
    }

    /// How far the model's mean of the levels between is off, for where it puts the middle.
    pub fn off_ratio(&self, modelled_ratio: f64) -> f64 {
        let [full, idle, middle] = self.watts;
        (idle + modelled_ratio * (full - idle)) / middle - 1.0
    }

    /// Between idle and full load, in watts of one machine behind its supply.
    fn range_w(&self) -> f64 {
        Power::default().psu.first().map_or(1.0, |p| p.efficiency) * (self.watts[0] - self.watts[1]) / self.nodes
    }
}

/// What the model draws at idle, at 10 percent and so on to full load, in watts: cores, and packages beyond
/// their sleep.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    cores_w: Vec<f64>,
    packages_w: Vec<f64>,
}

impl Curve {
    /// Where the middle lies, with cores scaled so that the curve spans what was published.
    pub fn middle_ratio(&self, of: &Published) -> f64 {
        let span = |watts: &[f64]| watts.last().copied().unwrap_or(0.0) - watts.first().copied().unwrap_or(0.0);
        let scale = ((of.range_w() - span(&self.packages_w)) / span(&self.cores_w)).max(0.1);
        let all: Vec<f64> = self.cores_w.iter().zip(&self.packages_w).map(|(c, p)| c * scale + p).collect();
        let middle = all[1..10].iter().sum::<f64>() / 9.0;
        (middle - all[0]) / span(&all)
    }
}

/// Results of a table with the columns of SPEC's own summary; rows without a number that is needed are left
/// out.
pub fn results(csv: &str) -> Vec<Published> {
    let mut lines = csv.lines();
    let heads = cells(lines.next().unwrap_or_default());
    lines.filter_map(|line| result(&heads, &cells(line))).collect()
}

fn result(heads: &[String], row: &[String]) -> Option<Published> {
    let text = |name: &str| heads.iter().position(|head| head == name).and_then(|at| row.get(at));
    let number = |name: &str| text(name)?.replace(',', "").parse::<f64>().ok().filter(|n| *n > 0.0);
    let (ops, overall) = (number("ssj_ops @ 100%")?, number("Result (Overall ssj_ops/watt)")?);
    let (full, idle) = (number("avg. watts @ 100%")?, number("avg. watts @ active idle")?);
    let (nodes, chips) = (number("Nodes").unwrap_or(1.0), number("Chips")?);
    let (cores, threads) = (number("Cores")?, number("Total Threads")?);
    let middle = (5.5 * ops / overall - full - idle) / 9.0;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Positive; what is no whole number is left out.
    let whole = |ratio: f64| (ratio.fract() == 0.0 && (1.0..1e4).contains(&ratio)).then_some(ratio as u32);
    let shape = [whole(chips / nodes)?, whole(cores / chips)?, whole(threads / cores)?];
    let is_possible = full > idle && middle > idle && middle < full && shape[2] <= 2;
    is_possible.then(|| Published {
        cpu: text("CPU Description").cloned().unwrap_or_default(),
        shape,
        nodes,
        watts: [full, idle, middle],
    })
}

/// Cells of a line; a quoted one may hold commas.
fn cells(line: &str) -> Vec<String> {
    let (mut all, mut is_quoted) = (vec![String::new()], false);
    for letter in line.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => all.push(String::new()),
            _ => all.last_mut().unwrap_or(&mut String::new()).push(letter),
        }
    }
    all
}

/// The model's curve for each shape, with this part of the dynamic power for one thread of two.
pub fn modelled(
    shapes: impl IntoIterator<Item = Shape>,
    one_thread_share: f64,
    n_threads: usize,
) -> Result<BTreeMap<Shape, Curve>, ServerError> {
    let shapes: BTreeSet<Shape> = shapes.into_iter().collect();
    let of = |shape| Ok((shape, curve(shape, one_thread_share, n_threads)?));
    shapes.into_iter().map(of).collect()
}

fn curve(shape: Shape, one_thread_share: f64, n_threads: usize) -> Result<Curve, ServerError> {
    let server = server(shape, one_thread_share);
    let power = &server.machine[0].power;
    let awake_w = power.uncore_w + power.memory_w - power.uncore_sleep_w - power.memory_sleep_w;
    let found = study(&server, &[], &[], n_threads)?;
    let machines = || found.points.iter().rev().filter_map(|p| p.outcome.machines.first());
    let packages = |m: &MachineOutcome| awake_w * f64::from(m.n_packages) * (1.0 - m.package_asleep_ratio.value);
    Ok(Curve { cores_w: machines().map(|m| m.cores_w.value).collect(), packages_w: machines().map(packages).collect() })
}

/// A machine of this shape under a graduated load: transactions of 4 ms, clocks down to half, ondemand, all
/// idle states.
fn server([packages, cores, threads]: Shape, one_thread_share: f64) -> Server {
    let machine = Machine {
        packages,
        cores,
        threads,
        idle: Idle { table: Some("SKX".into()), package_state: Some("C6".into()), ..Idle::default() },
        clock: Clock {
            governor: ClockGovernor::Ondemand,
            mhz: vec![3000, 2700, 2400, 2100, 1800, 1500],
            ..Clock::default()
        },
        power: Power { one_thread_share, ..Power::default() },
        ..Machine::default()
    };
    let percent = (0..=10).rev().map(|tenth| f64::from(tenth) * 10.0).collect();
    let workload = Workload {
        arrivals: Arrivals { kind: ArrivalKind::Steps, percent, ..Arrivals::default() },
        hop: vec![Hop::of(Law::exponential(Span::ms(4)))],
        rounds: None,
        limit: None,
    };
    let run = Run { duration: Some(Span::ms(1000)), warmup: Some(Span::ms(300)), replications: 2, seed: 8, bins: 1 };
    Server { run, ..Server::of(machine, workload) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADS: &str = "Node,Nodes,CPU Description,Chips,Cores,Total Threads,ssj_ops @ 100%,avg. watts @ 100%,\
                         avg. watts @ active idle,Result (Overall ssj_ops/watt)";

    #[test]
    fn the_score_gives_the_watts_between_idle_and_full() {
        // 5.5 times 100,000 operations over the eleven levels, at 1,000 a watt: 550 W in all, of which 40
        // idle and 78 full.
        let csv =
            format!("{HEADS}\n\"A, Inc\",1,One 1000,2,12,24,\"100,000\",78,40,1000\nB,3,Two,2,12,24,1,78,40,1000\n");
        let all = results(&csv);
        assert_eq!(all.len(), 1, "no operations, no middle: {all:?}");
        assert_eq!((all[0].cpu.as_str(), all[0].shape, all[0].watts), ("One 1000", [2, 6, 2], [78.0, 40.0, 48.0]));
        assert!((all[0].middle_ratio() - 8.0 / 38.0).abs() < 1e-9 && all[0].off_ratio(8.0 / 38.0).abs() < 1e-9);
    }

    #[test]
    fn a_second_thread_that_costs_watts_lowers_the_middle() {
        let published = Published { cpu: "x".into(), shape: [1, 4, 2], nodes: 1.0, watts: [150.0, 60.0, 100.0] };
        let middle = |share| curve([1, 4, 2], share, 2).unwrap().middle_ratio(&published);
        let [free, dear] = [1.0, 0.5].map(middle);
        assert!(dear < free - 0.05 && (0.4..0.9).contains(&dear), "{free} without its cost, {dear} with it");
    }
}
