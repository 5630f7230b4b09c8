//! The crate without the command: a server file (or the name of a shipped one), fields to change, and what it comes to.
//!
//! `cargo run --release -p wakewatt-sim --example study -- k2-ping run.duration=20s`
#![allow(clippy::print_stdout, clippy::disallowed_methods)] // It is for people at a terminal, and reads a file and a clock.

use wakewatt_sim::examples::example;
use wakewatt_sim::server::Server;
use wakewatt_sim::study::study;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let name = words.next().ok_or("which server?")?;
    let text = match example(&name) {
        Some(shipped) => shipped.text.to_string(),
        None => std::fs::read_to_string(&name)?,
    };
    let set: Vec<String> = words.collect();
    let server = Server::parse_with(&text, &set)?;
    let begun = std::time::Instant::now();
    let found = study(&server, &[], &[], 2)?;
    for p in &found.points {
        let (o, m) = (&p.outcome, &p.outcome.machines[0]);
        let at = |q: f64| o.quantiles.iter().find(|x| (x.q - q).abs() < 1e-9).map_or(0.0, |x| x.ns.value / 1e3);
        println!(
            "{} {:?}: {:.1}/s mean {:.1} us p50 {:.1} p99 {:.1} use {:.2} % kernel {:.1} % load {:.2} {:.0} MHz {:.1} W asleep {:.2}",
            p.setting,
            p.level_percent,
            o.done_per_s.value,
            o.mean_ns.value / 1e3,
            at(0.5),
            at(0.99),
            m.use_ratio.value * 100.0,
            m.system_ratio.value * 100.0,
            m.load.value,
            m.mhz.value,
            o.wall_w.value,
            m.package_asleep_ratio.value
        );
        let states: Vec<String> =
            m.states.iter().map(|s| format!("{} {:.1} %", s.name, s.time_ratio.value * 100.0)).collect();
        println!("    {}", states.join(", "));
        if let Some(why) = o.no_interval {
            println!("    no interval: {why}");
        }
    }
    for h in &found.held {
        println!(
            "{}: published {}, simulated {:?}, off {:?}",
            h.published.what, h.published.value, h.simulated, h.off_ratio
        );
    }
    println!("{:.2} s", begun.elapsed().as_secs_f64());
    Ok(())
}
