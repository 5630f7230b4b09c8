//! `load shop` as text: what served whom, the sections of the page, what the clients cost, and what it means in a sentence.

use super::super::words::no_interval;
use crate::report::terminal;
use std::fmt::Write as _;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::Samples;
use wakewatt_core::samples::load::{CpuBy, Level};
use wakewatt_core::units::{show_ns, three_digits};
use wakewatt_lab::shop::levels::{ShopRun, asked};
use wakewatt_lab::shop::{CpuOf, GeneratorUse};

/// The whole.
pub(super) fn text(done: &ShopRun, width: usize, is_coloured: bool) -> String {
    let mut out = String::new();
    let run = &done.run;
    let (server, clients) = match &run.workers[..] {
        [server, clients] => (format!("server on CPUs {}", server.cpus), format!("clients on CPUs {}", clients.cpus)),
        [clients] => ("server elsewhere".into(), format!("clients on CPUs {}", clients.cpus)),
        _ => ("server".into(), "clients".into()),
    };
    let think = done.shop.think_ns.map_or(String::new(), |ns| format!(", think time {}", show_ns(ns)));
    let _ = writeln!(out, "Shop, measured: {server}, {clients}{think}, seed {}", run.seed);
    if !run.levels.is_empty() {
        let evidence = Evidence::of(Samples { load: vec![run.clone()], ..Samples::default() });
        let _ = writeln!(out, "\n{}", terminal::samples(&evidence, width, is_coloured));
        beside(&mut out, done);
        summary(&mut out, done);
    }
    for why in &done.not_done {
        let _ = writeln!(out, "Not done: {why}");
    }
    out
}

/// Whose CPU time it is, and what the clients cost.
fn beside(out: &mut String, done: &ShopRun) {
    let _ = writeln!(
        out,
        "Latency counts from when each request was planned; one that failed counts as longer than the time-out. CPU time: {}.",
        cpu_time(done)
    );
    for (level, clients) in done.run.levels.iter().zip(&done.shop.clients) {
        let _ = writeln!(out, "{}", generator(level, clients));
    }
}

/// How it was counted; where it was not, whose it would have been.
fn cpu_time(done: &ShopRun) -> &'static str {
    let by = done.run.levels.iter().find_map(|l| l.cpu_by);
    by.map_or_else(|| done.shop.cpu_of.words(), CpuBy::words)
}

fn generator(level: &Level, clients: &GeneratorUse) -> String {
    let window_ns = level.window.length_ns().max(1) as f64;
    let cpus = clients.cpu_ns.map_or("an unknown part".into(), |used| three_digits(used as f64 / window_ns));
    let late = [(0.99, "99 % of"), (0.9, "90 % of"), (0.5, "half of the")].into_iter().find_map(|(q, words)| {
        let within = show_ns(clients.late.quantile(q)?.value_ns);
        Some(format!(", {words} requests started within {within} of their plan"))
    });
    let late = late.unwrap_or_default();
    let failures: Vec<String> = clients.failures.iter().map(|(why, n)| format!("{n} {why}")).collect();
    let failures = if failures.is_empty() { String::new() } else { format!("; failures: {}", failures.join(", ")) };
    let threads = if clients.n_threads == 1 { "1 thread".into() } else { format!("{} threads", clients.n_threads) };
    format!("Clients' own work at {}: {cpus} CPUs ({threads}){late}{failures}.", asked(level.ask))
}

fn summary(out: &mut String, done: &ShopRun) {
    let levels: Vec<&Level> = done.run.levels.iter().filter(|l| l.n_done > 0).collect();
    let Some(last) = levels.last() else {
        let _ = writeln!(out, "\nNothing was answered.");
        return;
    };
    let within = |(part, q): (&str, f64)| {
        let latency = last.latency.as_ref()?;
        let ns = latency.quantile(q)?.value_ns;
        let is_open = latency.is_at_least(ns);
        Some(if is_open {
            format!("not {part} within {}", show_ns(ns))
        } else {
            format!("{part} within {}", show_ns(ns))
        })
    };
    let times: Vec<String> = [("half of them", 0.5), ("99 %", 0.99)].into_iter().filter_map(within).collect();
    let times = if times.is_empty() { "too few for a median".into() } else { times.join(", ") };
    let _ = write!(out, "\nAt {}: {} requests/s answered, {times}.", asked(last.ask), three_digits(last.per_s));
    if let (Some(cpu), true) = (last.cpu_ns_per_op(), done.shop.cpu_of != CpuOf::Unknown) {
        let _ = write!(out, " A request costs {} of CPU time", ns(cpu));
        let first = levels.first().filter(|first| first.ask != last.ask);
        if let Some((ask, before)) = first.and_then(|first| Some((first.ask, first.cpu_ns_per_op()?))) {
            let _ = write!(out, ", {} at {}", ns(before), asked(ask));
        }
        out.push('.');
    }
    if let Some(why) = no_interval(&done.run) {
        let _ = write!(out, " {why}");
    }
    let n_invalid = done.run.levels.iter().filter(|l| !l.broken_rules.is_empty()).count();
    if n_invalid > 0 {
        let _ = write!(out, " {n_invalid} of {} levels broke a rule: do not quote them.", done.run.levels.len());
    }
    let _ = writeln!(out);
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A float as an integer saturates.
fn ns(value: f64) -> String {
    show_ns(value.round() as u64)
}
