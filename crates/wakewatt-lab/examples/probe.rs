//! Runs every probe for a second and prints medians: a quick look, and the timer probe alone for comparisons.
//!
//! `probe` runs all; `probe timer CPU SECONDS` prints p50, mean and p99 of the timer wake-up in nanoseconds.
#![allow(clippy::print_stdout)]

use std::sync::atomic::AtomicBool;
use wakewatt_core::samples::network::Transport;
use wakewatt_core::source::Tree;
use wakewatt_core::stats::distribution::Distribution;
use wakewatt_lab::bench::*;

fn show(name: &str, d: &Distribution) {
    let q = |x| d.quantile(x).map_or(0, |q| q.value_ns);
    println!("{name}: n {} min {} p50 {} mean {:.0} p90 {} p99 {}", d.n, d.min_ns, q(0.5), d.mean_ns, q(0.9), q(0.99));
}

fn main() -> Result<(), BenchError> {
    let (stop, none) = (AtomicBool::new(false), Tree::default());
    let args: Vec<String> = std::env::args().collect();
    if let [_, what, cpu, seconds] = &args[..] {
        if what == "timer" {
            let number = |text: &str| text.parse::<u32>().unwrap_or(1);
            let spec = TimerSpec::on(number(cpu), u64::from(number(seconds)) * 1_000_000_000);
            show("timer", &timer(&spec, &stop, &none)?.sample.latency);
        }
        return Ok(());
    }
    let second = 1_000_000_000;
    let slice = timer(&TimerSpec::on(1, second), &stop, &none)?;
    println!("{:?}, clock read {} ns", slice.sample.scheduling, slice.sample.clock_read_ns);
    show("timer", &slice.sample.latency);
    for kind in [RemoteKind::Futex, RemoteKind::Eventfd] {
        let slice = remote(&RemoteSpec::between(kind, 0, 1, second), &stop, &none)?;
        show(&format!("{kind:?}"), &slice.sample.latency);
        println!("  {:?}, clocks within {:?} ns", slice.sample.waker, slice.sample.clock_bound_ns);
    }
    match ipi(&RemoteSpec::between(RemoteKind::Futex, 0, 1, second), &stop, &none) {
        Ok(slice) => show("ipi", &slice.sample.latency),
        Err(why) => println!("ipi: {why}"),
    }
    let responder = Responder::start(&RespondSpec::loopback(Some(1)))?;
    for transport in [Transport::Udp, Transport::Tcp] {
        let slice = round_trip(&NetworkSpec::to(transport, responder.address(), 0, second), &stop, &none)?;
        show(transport.word(), &slice.sample.round_trip);
        println!("  lost {} late {} unsplit {}", slice.sample.n_lost, slice.sample.n_late_starts, slice.n_unsplit);
        if let Ok(split) = &slice.sample.split {
            show("  requester", &split.requester);
            show("  responder", &split.responder);
            show("  wire", &split.wire);
        }
    }
    Ok(())
}
