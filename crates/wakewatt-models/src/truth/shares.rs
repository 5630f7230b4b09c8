//! Time by state under the teo of 6.6 and of 6.12: the same events, and no deep state any more.
//!
//! Both take events before the timer for intercepts and go shallower. The teo of 6.6 does not look at the timers once it is down: a tick that ends such a sleep
//! counts as a sleep to the end of time, and lifts it again. The teo of 6.12 looks at them so as to learn, and an event before the tick
//! then confirms the shallow state. Where the first deep state pays only beyond most events, it stays down.

use super::cpu::Cpu;
use super::{Truth, exponential_ns, time_percent};
use crate::idle::Kind;
use crate::table::State;
use crate::units::FOREVER_NS;
use wakewatt_core::stats::random::Random;

const SEED: u64 = 20_250_106;
const N: u32 = 30_000;
const KERNELS: [&str; 2] = ["6.6.9", "6.12.0"];

/// Exit latencies and residencies in microseconds.
type Rows = [(i64, i64); 3];
const JUNO: (&str, Rows) = ("Juno", [(1, 1), (1500, 2000), (1600, 2500)]);
const RK3399: (&str, Rows) = ("RK3399", [(1, 1), (370, 900), (900, 2000)]);

/// Table, HZ, and mean distance of events in microseconds.
type Life = ((&'static str, Rows), u32, u32);
const LIVES: [Life; 7] = [
    (JUNO, 250, 500),
    (JUNO, 250, 1000),
    (JUNO, 250, 1500),
    (JUNO, 250, 4000),
    (JUNO, 1000, 1000),
    (RK3399, 250, 500),
    (RK3399, 250, 1000),
];

fn lived(kernel: &str, ((_, rows), hz, event_us): Life) -> Vec<f64> {
    let states = rows.map(|(exit, residency)| State::sleeping_us(exit, residency));
    let Some(mut cpu) = Cpu::new(Kind::Teo, kernel, &states, hz) else { return Vec::new() };
    let mut random = Random::new(SEED);
    for _ in 0..N {
        cpu.run(20_000);
        let event_at = cpu.now_ns() + exponential_ns(&mut random, f64::from(event_us) * 1e3);
        cpu.sleep(FOREVER_NS, Some(event_at), 0);
    }
    time_percent(&cpu.counts())
}

fn told(percent: &[f64]) -> String {
    percent.iter().map(|p| format!("{p:.2}")).collect::<Vec<_>>().join(" / ")
}

pub(super) fn truth() -> Truth {
    let published = ["published", "6.02 / 11.02 / 82.96", "99.94 / 0 / 0.05"].map(String::from).to_vec();
    let row = |life: &Life| {
        let name = format!("{}, HZ={}, events every {} ms", life.0.0, life.1, f64::from(life.2) / 1e3);
        std::iter::once(name).chain(KERNELS.map(|kernel| told(&lived(kernel, *life)))).collect()
    };
    Truth {
        title: "teo between 6.6 and 6.12: the deep states go unused",
        source: "A report on the kernel's power-management list of a machine with three states: share of each state under 6.6 and under 6.12, percent. Read as shares of idle time, the first three of 6.6.",
        life: "Neither the machine nor the workload is public. Assumed: tables of three states as ARM boards have them (Juno: 1/1, 1500/2000, 1600/2500 us; RK3399: 1/1, 370/900, 900/2000 us); 30,000 events at exponential distances, no timer at all, \
               20 us of work. No number was fitted; of the tables that we know, these two are shown, and Juno first because the turn is clearest on it.",
        columns: &["life", "6.6.9, % of time by state", "6.12.0"],
        rows: std::iter::once(published).chain(LIVES.iter().map(row)).collect(),
        nearness: "The turn is reproduced: with events every 0.5 to 1 ms and HZ=250 the model of 6.6 spends most idle time in deep states and that of 6.12 more than 99 % in the first (on RK3399's table more than 90 %). \
                   The split between the two deep states, and how little the first has under 6.6, hang on table and events, which we do not know. It needs a long tick: with HZ=1000 both do alike, because the tick itself ends the shallow sleeps \
                   and is learned as a long one. With events as rare as every 4 ms both go deep.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_of_6_12_leaves_the_deep_states_where_that_of_6_6_did_not() {
        let both = |life| KERNELS.map(|kernel| lived(kernel, life));
        for (table, least) in [(JUNO, 99.0), (RK3399, 90.0)] {
            for event_us in [500, 1000] {
                let [old, new] = both((table, 250, event_us));
                assert!(old[1] + old[2] > 60.0 && new[0] > least, "{table:?} {event_us}: {old:?} {new:?}");
            }
        }
        let [old, new] = both((JUNO, 1000, 1000));
        assert!((old[0] - new[0]).abs() < 10.0, "{old:?} {new:?}");
        assert!(both((JUNO, 250, 4000)).iter().all(|shares| shares[0] < 20.0));
    }
}
