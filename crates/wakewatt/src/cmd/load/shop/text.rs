//! `load shop` as text: a row per level, a row per page of the busiest, and what it means in a sentence.

use super::super::words::{no_interval, watts};
use crate::view::table::Table;
use std::fmt::Write as _;
use wakewatt_core::distribution::Distribution;
use wakewatt_core::samples::load::{Level, Part};
use wakewatt_core::units::{show_ns, three_digits};
use wakewatt_lab::shop::levels::{ShopRun, asked};
use wakewatt_lab::shop::{CpuOf, GeneratorUse};

/// The whole.
pub(super) fn text(done: &ShopRun, width: usize) -> String {
    let mut out = String::new();
    let run = &done.run;
    let (server, clients) = match &run.workers[..] {
        [server, clients] => (format!("server on CPUs {}", server.cpus), format!("clients on CPUs {}", clients.cpus)),
        [clients] => ("server elsewhere".into(), format!("clients on CPUs {}", clients.cpus)),
        _ => ("server".into(), "clients".into()),
    };
    let think = done.shop.think_ns.map_or(String::new(), |ns| format!(", think time {}", show_ns(ns)));
    let _ = writeln!(out, "Shop: {}\n  {server}, {clients}{think}, seed {}", done.shop.title, run.seed);
    let settings: Vec<String> = run.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
    if !settings.is_empty() {
        let _ = writeln!(out, "  {}", settings.join(", "));
    }
    if !run.levels.is_empty() {
        let _ = writeln!(out);
        table(&mut out, done, width);
        beside(&mut out, done);
        if let Some(last) = run.levels.last() {
            pages(&mut out, last, width);
        }
        summary(&mut out, done);
    }
    for remark in &run.remarks {
        let _ = writeln!(out, "Note: {remark}");
    }
    for why in &done.not_done {
        let _ = writeln!(out, "Not done: {why}");
    }
    out
}

fn table(out: &mut String, done: &ShopRun, width: usize) {
    let heads = [
        "",
        "answered",
        "failed",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "CPU/request",
        "kernel",
        "busy",
        "load",
        "watts",
        "req/s/W",
    ]
    .map(String::from);
    let row = |level: &Level| {
        let mark = if level.broken_rules.is_empty() { "" } else { " !" };
        let q = |q| quantile(level.latency.as_ref(), q);
        let cpu = level.cpu_ns_per_op().map_or("-".into(), ns);
        let kernel =
            level.system_ns_per_op().zip(level.cpu_ns_per_op()).map_or("-".into(), |(k, all)| per_cent(k / all));
        vec![
            asked(level.ask) + mark,
            format!("{}/s", three_digits(level.per_s)),
            level.n_failed.to_string(),
            q(0.5),
            q(0.9),
            q(0.99),
            q(0.999),
            cpu,
            kernel,
            level.busy_ratio().map_or("-".into(), per_cent),
            level.load_average.map_or("-".into(), |l| format!("{l:.1}")),
            watts(level),
            level.per_joule().map_or("-".into(), three_digits),
        ]
    };
    let rows: Vec<Vec<String>> = done.run.levels.iter().map(row).collect();
    out.push_str(&Table { heads: &heads, rows: &rows, n_text_columns: 1 }.text(width));
    if let Some(why) = no_interval(&done.run) {
        let _ = writeln!(out, "  {why}");
    }
    for level in &done.run.levels {
        let name = asked(level.ask);
        for why in &level.broken_rules {
            let _ = writeln!(out, "  ! {name}: {why}");
        }
        for what in &level.disturbances {
            let _ = writeln!(out, "  {name}: {what}");
        }
    }
}

/// What stands beside the table: whose CPU time, which meter, what the clients cost.
fn beside(out: &mut String, done: &ShopRun) {
    let _ =
        writeln!(out, "\nLatency counts from when each request was planned. CPU time: {}.", done.shop.cpu_of.words());
    let chosen = done.run.levels.iter().find_map(|l| Some((l.energy.as_ref()?, l.energy.as_ref()?.chosen()?)));
    let _ = match chosen {
        Some((_, meter)) => {
            let covers = meter.total.as_ref().map_or("?", |t| t.covers.as_str());
            writeln!(out, "Watts: measured by {} ({covers}).", meter.meter)
        }
        None => writeln!(
            out,
            "Watts: unavailable, no meter works (`wakewatt measure power` says why; --meter-cmd takes one of yours)."
        ),
    };
    for (level, clients) in done.run.levels.iter().zip(&done.shop.clients) {
        let _ = writeln!(out, "{}", generator(level, clients));
    }
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

fn pages(out: &mut String, level: &Level, width: usize) {
    let parts: Vec<&Part> = level.parts.iter().filter(|p| p.n_done + p.n_failed > 0).collect();
    if parts.len() < 2 {
        return;
    }
    let heads = ["", "answered", "failed", "p50", "p90", "p99"].map(String::from);
    let row = |part: &&Part| {
        let q = |q| quantile(Some(&part.latency), q);
        vec![part.name.clone(), part.n_done.to_string(), part.n_failed.to_string(), q(0.5), q(0.9), q(0.99)]
    };
    let rows: Vec<Vec<String>> = parts.iter().map(row).collect();
    let _ = writeln!(out, "\nPages at {}", asked(level.ask));
    out.push_str(&Table { heads: &heads, rows: &rows, n_text_columns: 1 }.text(width));
}

fn summary(out: &mut String, done: &ShopRun) {
    let levels: Vec<&Level> = done.run.levels.iter().filter(|l| l.n_done > 0).collect();
    let Some(last) = levels.last() else {
        let _ = writeln!(out, "\nNothing was answered.");
        return;
    };
    let half =
        last.latency.as_ref().and_then(Distribution::p50_ns).map(|p| format!("half of them within {}", show_ns(p)));
    let tail = last.latency.as_ref().and_then(Distribution::p99_ns).map(|p| format!("99 % within {}", show_ns(p)));
    let times: Vec<String> = [half, tail].into_iter().flatten().collect();
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
    let n_invalid = done.run.levels.iter().filter(|l| !l.broken_rules.is_empty()).count();
    if n_invalid > 0 {
        let _ = write!(out, " {n_invalid} of {} levels broke a rule (!): do not quote them.", done.run.levels.len());
    }
    let _ = writeln!(out);
}

fn quantile(of: Option<&Distribution>, q: f64) -> String {
    of.and_then(|d| d.quantile(q)).map_or("-".into(), |q| show_ns(q.value_ns))
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A float as an integer saturates.
fn ns(value: f64) -> String {
    show_ns(value.round() as u64)
}

fn per_cent(ratio: f64) -> String {
    format!("{:.0} %", ratio * 100.0)
}
