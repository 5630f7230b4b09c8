//! Load runs shaped like the study of five governors: watts, score and shop figures of its order, from a fixed seed.

use super::{Dice, window};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::distribution::Distribution;
use wakewatt_core::samples::Label;
use wakewatt_core::samples::energy::{EnergySample, MeterSample, Total};
use wakewatt_core::samples::load::{Ask, Calibration, CpuBy, CpuUse, Kind, Length, Level, LoadRun, Part, Worker};
use wakewatt_core::samples::timeline::Change;

/// A governor: name, idle watts, watts at full load, share of the score, latency factor, does it gather work.
struct Governor {
    name: &'static str,
    idle_w: f64,
    full_w: f64,
    score: f64,
    slow: f64,
    is_gathered: bool,
}

const GOVERNORS: [Governor; 5] = [
    Governor { name: "performance", idle_w: 212.0, full_w: 398.0, score: 1.0, slow: 1.0, is_gathered: false },
    Governor { name: "powersave", idle_w: 199.0, full_w: 291.0, score: 0.62, slow: 1.9, is_gathered: false },
    Governor { name: "userspace", idle_w: 201.0, full_w: 396.0, score: 0.99, slow: 1.15, is_gathered: false },
    Governor { name: "ondemand", idle_w: 202.0, full_w: 397.0, score: 0.985, slow: 1.25, is_gathered: false },
    Governor { name: "conservative", idle_w: 200.0, full_w: 394.0, score: 0.97, slow: 1.5, is_gathered: true },
];
const N_CPUS: u32 = 8;
const CAPACITY_PER_S: f64 = 24_000.0;

/// Eleven levels under each governor.
pub(super) fn steps() -> Vec<LoadRun> {
    GOVERNORS.iter().enumerate().map(|(i, g)| run(g, i, Kind::Steps, &shares())).collect()
}

/// The shop at three sizes.
pub(super) fn shop() -> Vec<LoadRun> {
    let clients = [500, 1000, 2000].map(Ask::Clients);
    GOVERNORS.iter().enumerate().map(|(i, g)| run(g, i, Kind::Shop, &clients)).collect()
}

/// The shop with 500 clients twelve times, somebody forbidding deep sleep in the middle.
pub(super) fn repeated() -> LoadRun {
    let levels = |at: usize| run(&GOVERNORS[at], at, Kind::Shop, &[Ask::Clients(500); 12]);
    let (mut before, after) = (levels(4), levels(0));
    for (level, faster) in before.levels.iter_mut().zip(after.levels).skip(6) {
        *level = Level { window: level.window, ..faster };
    }
    let at_ns = before.levels[6].window.start_at_ns;
    let what = "idle states off: none -> C6 on CPUs 0-7".into();
    before.changes = vec![Change { at_ns, within_ns: 145_000_000_000, what }];
    before
}

/// The same without any meter.
pub(super) fn without_meter() -> Vec<LoadRun> {
    let mut runs: Vec<LoadRun> = steps().into_iter().take(2).collect();
    runs.iter_mut().flat_map(|r| &mut r.levels).for_each(|l| l.energy = None);
    runs
}

fn shares() -> Vec<Ask> {
    let mut all: Vec<Ask> = (1..=10).rev().map(|tenths| Ask::Share(f64::from(tenths) / 10.0)).collect();
    all.push(Ask::Idle);
    all
}

fn run(g: &Governor, at: usize, kind: Kind, asks: &[Ask]) -> LoadRun {
    let mut dice = Dice(90 + at as u64);
    let start_ms = 100_000 + at as u64 * 3_000_000;
    let capacity = CAPACITY_PER_S * g.score;
    let levels = asks.iter().zip(0u64..).map(|(a, i)| level(g, &mut dice, *a, start_ms + i * 290_000, capacity));
    LoadRun {
        kind,
        title: if kind == Kind::Shop { "shop, think time 7 s".into() } else { "steps, 300 us a transaction".into() },
        command_hash: None,
        length: Length::SpecLike,
        seed: 0x5eed,
        settings: vec![
            ("governor".into(), g.name.into()),
            ("idle governor".into(), "menu".into()),
            ("latency limit".into(), "none".into()),
        ],
        workers: vec![Worker { node: Some(0), cpus: (0..N_CPUS).collect::<CpuSet>() }],
        service_ns: (kind == Kind::Steps).then_some(300_000),
        work_units: (kind == Kind::Steps).then_some(2_000),
        overhead_ns_per_op: (kind == Kind::Steps).then_some(9_000.0),
        calibration: vec![Calibration { window: window(start_ms - 60_000, 30_000), per_s: capacity }],
        capacity_per_s: Some(capacity),
        levels: levels.collect(),
        changes: Vec::new(),
        remarks: Vec::new(),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and far below 2^63")]
fn level(g: &Governor, dice: &mut Dice, ask: Ask, start_ms: u64, capacity: f64) -> Level {
    let share = match ask {
        Ask::Share(share) => share,
        Ask::Clients(n) => f64::from(n) / 4_000.0 / g.score.max(0.7),
        _ => 0.0,
    };
    let per_s = if let Ask::Clients(n) = ask { f64::from(n) / 7.0 * (1.0 - 0.01 * g.slow) } else { capacity * share };
    // A governor that waits before it speeds up saves most in the middle.
    let saves = if g.is_gathered { 40.0 } else { 14.0 * (g.slow - 1.0) } * (share * (1.0 - share)) * 4.0;
    let curve = share.powf(0.78);
    let watts = g.idle_w + (g.full_w - g.idle_w) * curve - saves + dice.normal() * 1.2;
    let base_ns = if matches!(ask, Ask::Clients(_)) { 42_000_000.0 } else { 310_000.0 };
    let p50_ns = base_ns * (1.0 + (g.slow - 1.0) * (1.0 - share * 0.5)) / (1.08 - share).max(0.1).powf(0.7);
    let n = if share > 0.0 { 20_000 } else { 0 };
    let latency = Distribution::from_ns((0..n).map(|_| dice.latency_ns(p50_ns, 2.6)));
    let n_done = (per_s * 240.0) as u64;
    let busy = (share * 0.92 * g.slow.powf(0.4)).min(1.0);
    let per_op_ns = 300_000.0 * g.slow.powf(0.5) * (1.0 + 0.25 * (1.0 - share));
    let part = |(name, share, slower): (&str, f64, f64)| Part {
        name: name.into(),
        n_done: (n_done as f64 * share) as u64,
        n_failed: 0,
        latency: Distribution::from_ns((0..2_000).map(|k| (p50_ns * slower) as u64 + k * 900)),
    };
    let is_shop = matches!(ask, Ask::Clients(_));
    let parts = [("browse", 0.6, 0.7), ("search", 0.3, 1.4), ("buy", 0.1, 2.1)];
    Level {
        ask,
        phases_ns: [10_000_000_000, 30_000_000_000, 240_000_000_000, 30_000_000_000],
        window: window(start_ms, 240_000),
        target_per_s: (!is_shop).then_some(per_s),
        n_planned: n_done,
        n_done,
        n_failed: 0,
        per_s,
        figure: None,
        service: None,
        parts: if is_shop { parts.map(part).to_vec() } else { Vec::new() },
        cpu_per_op: None,
        cpu_by: Some(CpuBy::BusyCpus),
        cpu_ns: (per_op_ns * n_done as f64) as u64,
        system_ns: (per_op_ns * 0.22 * n_done as f64) as u64,
        cpus: (0..N_CPUS).map(|cpu| cpu_use(cpu, busy, g.is_gathered, dice)).collect(),
        foreign_ratio: Some(0.003),
        load_average: Some(busy * f64::from(N_CPUS) * (1.0 + 0.6 * (g.slow - 1.0)) + 0.1),
        idle: Vec::new(),
        energy: Some(meter(watts)),
        disturbances: Vec::new(),
        broken_rules: if g.name == "powersave" && share > 0.95 {
            vec!["the queue had no steady state".into()]
        } else {
            Vec::new()
        },
        latency: (latency.n > 0 && !(g.name == "powersave" && share > 0.95)).then_some(latency),
    }
}

/// Gathered: half the CPUs do the work. Spread: the first ones do more than the rest.
fn cpu_use(cpu: u32, busy: f64, is_gathered: bool, dice: &mut Dice) -> CpuUse {
    let is_first = cpu < N_CPUS / 2;
    let weight = match (is_gathered && busy < 0.5, is_first) {
        (true, true) => 1.95,
        (true, false) => 0.05,
        (false, true) => 1.5,
        (false, false) => 0.5,
    };
    let all = (busy * weight * (1.0 + 0.05 * dice.normal())).clamp(0.0, 1.0);
    CpuUse { cpu, user_ratio: all * 0.78, system_ratio: all * 0.22, steal_ratio: 0.0 }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "watts of one machine")]
fn meter(watts: f64) -> EnergySample {
    let total = Total {
        covers: "wall".into(),
        of: vec!["PSU1 input".into()],
        mean_uw: (watts * 1e6) as u64,
        uncertainty_uw: Some((watts * 6e3) as u64),
        ..Total::default()
    };
    let meter = MeterSample { label: Label::Measured, total: Some(total), ..MeterSample::unavailable("hwmon", "") };
    EnergySample { chosen: Some("hwmon".into()), meters: vec![meter], ..EnergySample::default() }
}
