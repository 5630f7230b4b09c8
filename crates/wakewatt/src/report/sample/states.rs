//! Idle states of a made-up server: what leaving them costs, from when on they save energy, and how fast a CPU is afterwards.

use super::dice::{Dice, window};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::distribution::Distribution;
use wakewatt_core::samples::Scheduling;
use wakewatt_core::samples::energy::Averaging;
use wakewatt_core::samples::speed::{AfterIdle, Median, SpeedPoint, SpeedSample};
use wakewatt_core::samples::state_cost::{StateCost, StateCosts, StateWake};
use wakewatt_core::samples::state_energy::{EnergyOfStates, Held, StateEnergy, TwoPauses};
use wakewatt_core::samples::wakeup::WakeKind;

/// A claim that is far off, and one that holds.
pub(super) fn idle_costs() -> StateCosts {
    let mut dice = Dice(11);
    let table = [("POLL", 0, 1_900.0), ("C1", 2_000, 4_100.0), ("C1E", 4_000, 11_800.0), ("C6", 170_000, 93_000.0)];
    let mut state = |(index, (name, claimed, p50)): (u32, (&str, u64, f64))| {
        let mut wake = |(kind, more): (WakeKind, f64)| {
            let mut rounds = Vec::new();
            for _ in 0..6 {
                let scatter = 1.0 + 0.02 * dice.normal();
                rounds.push(dice.latency_ns((p50 + more) * scatter, 1.0));
            }
            let latency = Distribution::from_ns((0..4_000).map(|_| dice.latency_ns(p50 + more, 2.4)));
            StateWake { n_entered: 4_010, n_entered_any: 4_012, ..StateWake::of(kind, latency, rounds) }
        };
        let kinds =
            [(WakeKind::Timer, 900.0), (WakeKind::Futex, 2_400.0), (WakeKind::Eventfd, 2_900.0), (WakeKind::Ipi, 0.0)];
        StateCost {
            index,
            name: name.into(),
            is_polling: index == 0,
            claimed_exit_ns: Some(claimed),
            claimed_residency_ns: Some(claimed * 3),
            allowed_by: "the state's own switch".into(),
            n_entered: 16_040,
            n_entered_any: 16_050,
            time_ns: 15_000_000_000,
            n_rejected: Some(0),
            not_entered: None,
            wakes: kinds.into_iter().map(&mut wake).collect(),
            first_work: Vec::new(),
            round_own_ratio: Vec::new(),
        }
    };
    let mut costs = StateCosts {
        cpu: 3,
        from_cpu: Some(2),
        set_cpus: [3, 11].into_iter().collect::<CpuSet>(),
        driver: None,
        governor: Some("menu".into()),
        gap_ns: 1_000_000,
        n_rounds: 6,
        seed: 0x5eed,
        scheduling: Some(Scheduling::Fifo(80)),
        window: window(40_000, 90_000),
        states: (0..).zip(table).map(&mut state).collect(),
        floor: None,
        energy: Some(energy_of_states()),
        not_restored: Vec::new(),
    };
    costs.compare_with_floor();
    costs
}

/// Watts of a package, read with two pauses: C6 saves 1.4 W for 900 uJ.
fn energy_of_states() -> EnergyOfStates {
    let mut dice = Dice(17);
    let table =
        [("POLL", 0, 7.0, 90.0), ("C1", 2_000, 2.0, 60.0), ("C1E", 4_000, 1.7, 63.0), ("C6", 170_000, 0.3, 963.0)];
    let mut state = |(name, exit_ns, rest_w, entry_uj): (&str, u64, f64, f64)| {
        let mut held = |rate: f64| Held {
            mean_uw: (58.0 + rest_w + 0.01 * dice.normal()) * 1e6 + entry_uj * rate,
            entries_per_s: rate,
            entered_ratio: 0.999,
            is_coarse: false,
        };
        let rounds = (0..6).map(|_| Some(TwoPauses { short: held(1_470.0), long: held(50.0) })).collect();
        StateEnergy { name: name.into(), claimed_exit_ns: Some(exit_ns), rounds, ..StateEnergy::default() }
    };
    let mut energy = EnergyOfStates {
        meter: Some("powercap".into()),
        meter_covers: "package".into(),
        averaging: Averaging::Counter,
        short_gap_ns: 680_000,
        long_gap_ns: 20_000_000,
        counted_ns: 2_000_000_000,
        states: table.into_iter().map(&mut state).collect(),
        why_not: None,
    };
    energy.judge();
    energy
}

/// Slower the longer it slept.
pub(super) fn ramp() -> SpeedSample {
    let median = |ns: f64| Median {
        median_ns: ns,
        low_ns: ns * 0.9,
        high_ns: ns * 1.15,
        is_range: false,
        covers: wakewatt_core::covers::Covers::Window,
    };
    let after = |(idle_ns, ramp_ns, slowest): (u64, f64, f64)| AfterIdle {
        idle_ns,
        n_repeats: 30,
        n_ramped: if ramp_ns > 0.0 { 28 } else { 1 },
        ramp: (ramp_ns > 0.0).then(|| median(ramp_ns)),
        slowest_ratio: (ramp_ns > 0.0).then_some(slowest),
        n_unsteady: 0,
        exit: median(4_000.0 + idle_ns as f64 / 1e5),
        first_quantum_extra: median(2_100.0),
        n_quanta: 60_000,
        n_discarded: 120,
        resolution_ns: 20_000.0,
        resolution_ratio: 0.02,
        curve: (0..40)
            .map(|i| {
                let at_ns = 20_000.0 * 10f64.powf(f64::from(i) / 13.0);
                let speed_ratio = if at_ns < ramp_ns { slowest } else { 1.0 };
                SpeedPoint { at_ns, speed_ratio, khz: None }
            })
            .collect(),
    };
    SpeedSample {
        cpu: 3,
        steps_per_quantum: 2_000,
        quantum_ns: 5_100.0,
        worked_ns: 20_000_000,
        after: [(1_000_000, 0.0, 1.0), (10_000_000, 1_400_000.0, 0.74), (200_000_000, 6_200_000.0, 0.41)]
            .map(after)
            .to_vec(),
        vector: None,
        no_counters: Some("no cycle counter can be read here".into()),
        scheduling: Scheduling::Fifo(80),
        window: window(140_000, 12_000),
    }
}
