//! Wake-ups, round trips, pings, speed after idle and the cost of idle states.

use super::{LATENCY, Table, WINDOW, latency, or, window};
use wakewatt_core::distribution::Distribution;
use wakewatt_core::samples::icmp::IcmpSample;
use wakewatt_core::samples::network::NetworkSample;
use wakewatt_core::samples::speed::SpeedSample;
use wakewatt_core::samples::state_cost::StateCosts;
use wakewatt_core::samples::wakeup::WakeupSample;

pub(super) fn wakeups(samples: &[WakeupSample]) -> Table {
    let mut table = Table::new("wakeups", &[&["kind", "cpu", "from_cpu", "gap_ns"], LATENCY, WINDOW].concat());
    for s in samples {
        let head = vec![s.kind.word().into(), s.cpu.to_string(), or(s.from_cpu), s.gap_ns.to_string()];
        table.rows.push([head, latency(&s.latency), window(&s.window)].concat());
    }
    table
}

pub(super) fn network(network: &[NetworkSample], pings: &[IcmpSample]) -> Table {
    let head = ["transport", "peer", "part", "gap_ns", "n_sent", "n_lost"];
    let mut table = Table::new("network", &[&head, LATENCY, WINDOW].concat());
    for s in network {
        let mut row = |part: &str, d: &Distribution| {
            let sizes = [s.gap_ns.to_string(), s.n_sent.to_string(), s.n_lost.to_string()];
            let head = vec![s.transport.word().to_string(), s.peer.clone(), part.to_string()];
            table.rows.push([head, sizes.to_vec(), latency(d), window(&s.window)].concat());
        };
        row("round trip", &s.round_trip);
        if let Ok(split) = &s.split {
            row("requester", &split.requester);
            row("responder", &split.responder);
            row("wire", &split.wire);
        }
    }
    for s in pings {
        let head = vec!["icmp".into(), s.peer.clone(), "round trip".into()];
        let sizes = vec![s.gap_ns.to_string(), s.n_sent.to_string(), s.n_lost.to_string()];
        table.rows.push([head, sizes, latency(&s.round_trip), window(&s.window)].concat());
    }
    table
}

pub(super) fn speed(samples: &[SpeedSample]) -> Table {
    let columns =
        ["cpu", "idle_ns", "n_repeats", "n_ramped", "exit_median_ns", "ramp_median_ns", "slowest_ratio", "quantum_ns"];
    let mut table = Table::new("speed", &columns);
    for s in samples {
        table.rows.extend(s.after.iter().map(|a| {
            let head = vec![s.cpu.to_string(), a.idle_ns.to_string(), a.n_repeats.to_string(), a.n_ramped.to_string()];
            let ramp = or(a.ramp.map(|r| r.median_ns));
            [head, vec![a.exit.median_ns.to_string(), ramp, or(a.slowest_ratio), s.quantum_ns.to_string()]].concat()
        }));
    }
    table
}

pub(super) fn idle_states(all: &[StateCosts]) -> Table {
    let head =
        ["cpu", "state", "kind", "claimed_exit_ns", "claimed_residency_ns", "extra_median_ns", "not_entered_because"];
    let mut table = Table::new("idle_states", &[&head, LATENCY].concat());
    for costs in all {
        for s in &costs.states {
            for wake in &s.wakes {
                let head = vec![costs.cpu.to_string(), s.name.clone(), wake.kind.word().into()];
                let claims = vec![or(s.claimed_exit_ns), or(s.claimed_residency_ns)];
                let extra = vec![or(wake.extra.map(|e| e.median_ns)), or(s.not_entered.clone())];
                table.rows.push([head, claims, extra, latency(&wake.latency)].concat());
            }
        }
    }
    table
}

/// From when on a state saves energy, where watts were read.
pub(super) fn idle_energy(all: &[StateCosts]) -> Table {
    let columns =
        ["cpu", "state", "over", "break_even_ns", "low_ns", "high_ns", "saves_uw", "costs_uj", "meter", "covers"];
    let mut table = Table::new("idle_energy", &columns);
    for (costs, energy) in all.iter().filter_map(|costs| Some((costs, costs.energy.as_ref()?))) {
        for (state, found) in energy.states.iter().filter_map(|s| Some((s, s.break_even.as_ref()?))) {
            let head = vec![costs.cpu.to_string(), state.name.clone(), found.over.clone()];
            let times = [found.median_ns, found.low_ns, found.high_ns, found.saves_uw, found.costs_uj];
            let by = vec![or(energy.meter.clone()), energy.meter_covers.clone()];
            table.rows.push([head, times.map(|v| v.to_string()).to_vec(), by].concat());
        }
    }
    table
}
