//! Idle tables of machines that there are, to be put into a device tree. Times are what their firmware or driver claims; waking costs
//! the emulator the same from each.

use crate::testbed::machine::Idle;
use wakewatt_sim::server;

/// Case K3's laptop (i7-6820HQ): eight states beside WFI, two pairs of equal residency.
pub(super) fn laptop() -> Vec<Idle> {
    known("SKL", "C1")
}

/// RK3399: two deep states, far apart.
pub(super) fn telephone() -> Vec<Idle> {
    vec![idle("cpu-sleep", 370, 900), idle("cluster-sleep", 900, 2000)]
}

/// Ice Lake server: C1E nearly free, C6 dear.
pub(super) fn server() -> Vec<Idle> {
    known("ICX", "C1E")
}

fn idle(name: &str, exit_latency_us: u32, target_residency_us: u32) -> Idle {
    Idle { name: name.into(), exit_latency_us, target_residency_us: Some(target_residency_us), power_mw: 0 }
}

/// The states that `simulate` knows of a generation, from this one on: WFI stands for those before.
fn known(generation: &str, from: &str) -> Vec<Idle> {
    let states = server::table(generation).unwrap_or_default();
    let us = |span: wakewatt_sim::span::Span| u32::try_from(span.ns() / 1000).unwrap_or(u32::MAX);
    let deep = states.iter().skip_while(|s| s.name != from);
    deep.map(|s| idle(&s.name, us(s.exit_latency), us(s.target_residency))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_those_of_the_machines() {
        let rows = |table: Vec<Idle>| -> Vec<(String, u32)> {
            table.into_iter().map(|s| (s.name, s.exit_latency_us)).collect()
        };
        assert_eq!(rows(server()), [("C1E".into(), 4), ("C6".into(), 170)]);
        assert_eq!((rows(laptop()).len(), rows(laptop())[7].clone()), (8, ("C10".into(), 890)));
    }
}
