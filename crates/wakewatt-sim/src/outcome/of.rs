//! From the counts of replications to an outcome.

use super::{
    BinOutcome, Counted, Estimate, MachineOutcome, NoInterval, Outcome, Periods, PeriodsOutcome, QuantileOutcome,
    Spread, StateOutcome,
};
use crate::engine::groups::{Group, groups, has_grown};
use crate::server::{IdleState, Machine, Server, table};
use hdrhistogram::Histogram;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::distribution::{Distribution, QUANTILES, histogram};
use wakewatt_core::samples::Label;

fn part(a: f64, b: f64) -> f64 {
    if b > 0.0 { a / b } else { 0.0 }
}

impl Outcome {
    /// Of a server's replications.
    pub fn of(server: &Server, runs: &[Counted]) -> Outcome {
        let mut all = histogram();
        for run in runs {
            // The same bounds and digits, so nothing is lost.
            let _ = all.add(&run.times);
        }
        let per_s = |n: u64, run: &Counted| n as f64 * 1e9 / run.ns as f64;
        let bottleneck = bottleneck(server, runs);
        let is_saturated = bottleneck.is_some() || runs.iter().any(|r| r.is_overflowed);
        let no_interval = NoInterval::of(server, runs, is_saturated);
        let spread = Spread::among(server);
        // Each replication's own, beside that of all together.
        let time = |all: f64, each: Vec<f64>, is_tail: bool| match no_interval {
            None => spread.time(all, &each, is_tail),
            Some(_) => Estimate { value: all, half: None },
        };
        let n_done: u64 = runs.iter().map(|r| r.n_done).sum();
        let means = runs.iter().filter(|r| r.n_done > 0).map(|r| r.sum_ns / r.n_done as f64).collect();
        let mean_ns = time(part(runs.iter().map(|r| r.sum_ns).sum(), n_done as f64), means, false);
        let fewest = runs.iter().map(|r| r.n_done).min().unwrap_or(0) as f64;
        let quantiles = QUANTILES
            .into_iter()
            .filter(|q| fewest * (1.0 - q) >= 10.0 || (*q <= 0.5 && fewest >= 10.0))
            .map(|q| {
                let at = |times: &Histogram<u64>| times.value_at_quantile(q) as f64;
                QuantileOutcome { q, ns: time(at(&all), runs.iter().map(|r| at(&r.times)).collect(), q > 0.5) }
            })
            .collect();
        let wall = |r: &Counted| r.machines.iter().map(|m| m.wall_joules).sum::<f64>();
        let (arrived, away): (u64, u64) = runs.iter().fold((0, 0), |(a, t), r| (a + r.n_arrived, t + r.n_turned_away));
        Outcome {
            label: Label::Modelled,
            name: server.name.clone(),
            n_replications: u32::try_from(runs.len()).unwrap_or(u32::MAX),
            duration_ns: server.run.counted().ns(),
            warmup_ns: server.run.before().ns(),
            seed: server.run.seed,
            offered_per_s: spread.of(runs.iter().map(|r| per_s(r.n_arrived, r))),
            done_per_s: spread.of(runs.iter().map(|r| per_s(r.n_done, r))),
            turned_away_ratio: part(away as f64, arrived as f64),
            is_saturated,
            no_interval,
            bottleneck,
            mean_ns,
            quantiles,
            times: Distribution::of(&all),
            in_system: spread.of(runs.iter().map(|r| r.in_system_ns / r.ns as f64)),
            wall_w: spread.of(runs.iter().map(|r| wall(r) * 1e9 / r.ns as f64)),
            per_joule: spread.of(runs.iter().map(|r| part(r.n_done as f64, wall(r)))),
            machines: (0..server.machine.len()).map(|m| machine(&server.machine[m], m, runs, spread)).collect(),
            series: series(server, runs),
        }
    }
}

/// The group of CPUs that is asked for more than it can do: by what is offered the smallest one, by what
/// grew the largest one.
fn bottleneck(server: &Server, runs: &[Counted]) -> Option<String> {
    let groups = groups(server);
    let is_bounded = server.workload.limit.is_some() || server.change.is_some();
    let n_cpus = |i: &usize| groups[*i].cpus.len();
    let is_offered_more = |i: &usize| groups[*i].offered_ratio.is_some_and(|ratio| ratio >= 1.0 - 1e-9);
    let has_grown = |i: &usize| has_backlog(runs, *i, &groups[*i]);
    let offered = (0..groups.len()).filter(|_| !is_bounded).filter(is_offered_more).min_by_key(n_cpus);
    let found = offered.or_else(|| (0..groups.len()).filter(has_grown).max_by_key(n_cpus))?;
    let group = &groups[found];
    let machine = server.machine.get(group.machine)?;
    let cpus: CpuSet = group.cpus.iter().filter_map(|cpu| u32::try_from(*cpu).ok()).collect();
    Some(match group.cpus.len() as u64 {
        n if n == machine.n_cpus() && n > 1 => format!("{}, all CPUs", machine.name),
        1 => format!("{}, CPU {cpus}", machine.name),
        _ => format!("{}, CPUs {cpus}", machine.name),
    })
}

/// Did what waits for a group grow, in all replications together, while its CPUs were at work all the time?
fn has_backlog(runs: &[Counted], i: usize, group: &Group) -> bool {
    let ends = || runs.iter().filter_map(|r| r.backlogs.get(i));
    let grown_ns: f64 = ends().map(|[start, end]| end.ns - start.ns).sum();
    let (ns, n) = ends().fold((0.0, 0), |(ns, n), [_, end]| (ns + end.ns, n + end.n));
    let cpu_ns = runs.iter().map(|r| r.ns as f64).sum::<f64>() * group.cpus.len() as f64;
    let busy = |r: &Counted| {
        let of = r.machines.get(group.machine).map(|m| group.cpus.iter().filter_map(|cpu| m.busy_ns.get(*cpu)).sum());
        of.unwrap_or(0u64) as f64
    };
    let is_busy = runs.iter().map(busy).sum::<f64>() > 0.97 * cpu_ns;
    is_busy && has_grown(grown_ns, cpu_ns, part(ns, n as f64))
}

fn machine(machine: &Machine, m: usize, runs: &[Counted], spread: Spread) -> MachineOutcome {
    let each = |f: &dyn Fn(&crate::engine::MachineCounted, f64, f64) -> f64| {
        spread.of(runs.iter().filter_map(|r| Some(f(r.machines.get(m)?, r.ns as f64, r.n_done as f64))))
    };
    let busy = |c: &crate::engine::MachineCounted| c.busy_ns.iter().sum::<u64>() as f64;
    let n_cpus = machine.n_cpus() as f64;
    let n_packages = f64::from(machine.packages);
    let names: Vec<IdleState> = match &machine.idle.table {
        Some(name) => table(name).unwrap_or_default(),
        None => machine.idle.state.clone(),
    };
    let state = |(i, state): (usize, &IdleState)| {
        let sum = |f: &dyn Fn(&crate::engine::StateCounted) -> u64| {
            runs.iter().filter_map(|r| r.machines.get(m)?.states.get(i).map(f)).sum::<u64>() as f64
        };
        let (n, ns) = (sum(&|s| s.n), runs.iter().map(|r| r.ns).sum::<u64>() as f64);
        StateOutcome {
            name: state.name.clone(),
            time_ratio: each(&|c, ns, _| part(c.states.get(i).map_or(0.0, |s| s.ns as f64), ns * n_cpus)),
            per_s: part(n * 1e9, ns),
            too_deep_ratio: part(sum(&|s| s.n_too_deep), n),
            too_shallow_ratio: part(sum(&|s| s.n_too_shallow), n),
        }
    };
    let cpu_use = |cpu: usize| {
        let of = |r: &Counted| {
            r.machines.get(m).and_then(|c| c.busy_ns.get(cpu)).map_or(0.0, |b| part(*b as f64, r.ns as f64))
        };
        part(runs.iter().map(of).sum(), runs.len() as f64)
    };
    let periods = |f: &dyn Fn(&crate::engine::MachineCounted) -> Periods| {
        let mut all = Periods::default();
        runs.iter().filter_map(|r| r.machines.get(m)).for_each(|c| all.join(&f(c)));
        PeriodsOutcome { n: all.n, mean_ns: all.mean_ns(), cv: all.cv() }
    };
    MachineOutcome {
        name: machine.name.clone(),
        n_packages: machine.packages,
        use_ratio: each(&|c, ns, _| part(busy(c), ns * n_cpus)),
        system_ratio: each(&|c, _, _| part(c.system_ns, busy(c)).min(1.0)),
        cpu_per_request_ns: each(&|c, _, n| part(busy(c), n)),
        load: each(&|c, ns, _| c.runnable_ns / ns),
        mhz: each(&|c, _, _| part(c.busy_khz_ns, busy(c)) / 1000.0),
        wall_w: each(&|c, ns, _| c.wall_joules * 1e9 / ns),
        dc_w: each(&|c, ns, _| c.joules * 1e9 / ns),
        cores_w: each(&|c, ns, _| c.core_joules * 1e9 / ns),
        wakes_per_s: each(&|c, ns, _| c.n_wakes as f64 * 1e9 / ns),
        package_asleep_ratio: each(&|c, ns, _| c.package_asleep_ns as f64 / (ns * n_packages)),
        states: names.iter().enumerate().map(state).collect(),
        cpu_use: (0..usize::try_from(machine.n_cpus()).unwrap_or(0)).map(cpu_use).collect(),
        idle_periods: periods(&|c| c.idle_periods),
        package_idle_periods: periods(&|c| c.package_idle_periods),
    }
}

fn series(server: &Server, runs: &[Counted]) -> Vec<BinOutcome> {
    let n = runs.iter().map(|r| r.bins.len()).min().unwrap_or(0);
    let n_cpus = server.n_cpus() as f64;
    let mut until_ns = 0;
    let bin = |i: usize| {
        let sum = |f: &dyn Fn(&crate::engine::Bin) -> f64| runs.iter().map(|r| f(&r.bins[i])).sum::<f64>();
        let ns = sum(&|b| b.ns as f64);
        until_ns += runs.first().map_or(0, |r| r.bins[i].ns);
        let n_done = sum(&|b| b.n_done as f64);
        BinOutcome {
            until_ns,
            done_per_s: part(n_done * 1e9, ns),
            mean_ns: (n_done > 0.0).then(|| sum(&|b| b.sum_ns) / n_done),
            use_ratio: part(sum(&|b| b.busy_ns as f64), ns * n_cpus),
            load: part(sum(&|b| b.runnable_ns), ns),
            wall_w: part(sum(&|b| b.wall_joules) * 1e9, ns),
        }
    };
    (0..n).map(bin).collect()
}
