//! Every number of a trace as text, with its label.

use super::super::figure::Figure;
use super::super::table::{Table, heads};
use super::super::words;
use super::heat::HeatMap;
use super::names::{N_PROCESSES, clean};
use super::stacks;
use serde::Serialize;
use wakewatt_core::distribution::Distribution;
use wakewatt_core::kept_words;
use wakewatt_core::samples::Label;
use wakewatt_core::samples::payers::Payers;
use wakewatt_core::samples::traced::{Presence, Traced, WakeRow};
use wakewatt_words::{say, word};

/// A trace in words.
#[derive(Debug, Serialize)]
pub(in crate::report) struct TraceView {
    /// One sentence: the heaviest loss.
    pub(in crate::report) sentence: String,
    /// What, how long, how many.
    pub(in crate::report) scope: String,
    pub(in crate::report) tables: Vec<Table>,
    pub(in crate::report) heat: Option<Figure>,
    /// Who woke whom.
    pub(in crate::report) stacks: Option<Figure>,
    pub(in crate::report) remarks: Vec<String>,
    pub(in crate::report) observer: String,
    #[serde(skip)]
    pub(super) map: HeatMap,
}

/// In words.
pub(in crate::report) fn of(traced: &Traced, is_by_cpu: bool) -> TraceView {
    let map = HeatMap::of(traced.rows.iter().map(|r| (name(r), &r.latency)));
    let mut tables = vec![wakes(word!("Wake-ups by the idle state requested before: measured"), traced.rows.iter())];
    if traced.windows.len() > 1 {
        tables.push(windows(traced));
    }
    tables.push(timers(traced));
    tables.push(states(traced));
    tables.extend(traced.payers.as_ref().map(|payers| who_pays(payers, traced.window.length_ns())));
    tables.push(processes(traced));
    tables.extend(traced.chains.as_ref().map(stacks::table));
    if is_by_cpu {
        tables.push(wakes(word!("Wake-ups by CPU: measured"), traced.by_cpu.iter()));
    }
    tables.retain(|t| !t.rows.is_empty());
    let title = word!("Wake-up latency by idle state");
    let heat = (!map.rows.is_empty()).then(|| Figure {
        id: "trace-heat".into(),
        title: word!("Wake-ups by idle state").into(),
        table: None,
        csv: map.data().csv(),
        svg: map.svg("trace-heat", title),
        caption: word!(
            "How long wake-ups took, by the state the CPU was leaving. Each column is twice the one before; shading \
                  is the share within the row, on a square-root scale so that a rare tail shows."
        )
        .into(),
        label: "measured",
    });
    let early = traced.ended_early.iter().map(|why| say!("ended early, and is complete up to then: {}", clean(why)));
    TraceView {
        sentence: clean(&sentence(traced)),
        scope: say!(
            "{}, {}, {} wake-ups",
            clean(&traced.scope.to_string()),
            words::ns(traced.window.length_ns() as f64),
            words::count(traced.n_wakes())
        ),
        tables,
        heat,
        stacks: traced.chains.as_ref().and_then(stacks::figure),
        remarks: early.chain(traced.remarks.iter().map(|r| clean(&kept_words::shown(r)))).collect(),
        observer: observer(traced),
        map,
    }
}

/// "haltpoll idle, another CPU".
fn name(row: &WakeRow) -> String {
    match &row.state {
        Some(state) => format!("{state}, {}", row.class.words()),
        None => word!("not idle").into(),
    }
}

fn sentence(traced: &Traced) -> String {
    let Some(worst) = traced.rows.iter().find(|r| r.state.is_some()) else {
        return match traced.rows.first() {
            Some(_) => word!("No wake-up found its CPU idle: what was lost was lost waiting for a busy CPU.").into(),
            None => word!("Nothing was woken.").into(),
        };
    };
    let who = traced.processes.iter().find(|p| Some(&p.state) == worst.state.as_ref()).map_or(String::new(), |p| {
        let passing = if p.presence == Presence::Passing { word!(", which came or went meanwhile") } else { "" };
        say!(" Most of it fell on {} ({}){passing}.", p.name, p.tgid)
    });
    let p50 = worst.latency.p50_ns().map_or(String::new(), |v| format!(" (p50 {})", words::ns(v as f64)));
    let state = worst.state.as_deref().unwrap_or("idle");
    let by = match worst.class {
        wakewatt_core::samples::wakes::WakeClass::Remote => word!("from another CPU"),
        _ => word!("by an interrupt"),
    };
    say!("Waking {by} out of {state} cost {} in all over {} wake-ups{p50}.{who}", lost(worst), words::count(worst.n))
}

/// "~" marks an estimate.
fn lost(row: &WakeRow) -> String {
    let mark = if row.total_label == Label::Measured { "" } else { "~" };
    row.total_ns.map_or("-".into(), |ns| format!("{mark}{}", words::ns(ns as f64)))
}

fn at(d: &Distribution, q: f64) -> String {
    d.quantile(q).map_or("-".into(), |v| words::ns(v.value_ns as f64))
}

fn interval(d: &Distribution, q: f64) -> String {
    d.quantile(q).map_or(String::new(), |v| words::ns_interval(v.low_ns as f64, v.high_ns as f64))
}

fn wakes<'a>(caption: &str, rows: impl Iterator<Item = &'a WakeRow>) -> Table {
    let cells = rows.map(|r| {
        let mut cells = Vec::new();
        if let Some(cpu) = r.cpu {
            cells.push(cpu.to_string());
        }
        let exit = r.exit_cost.as_ref().map_or("-".into(), |c| format!("+{}", words::ns(c.each_ns as f64)));
        cells.extend([
            r.state.clone().unwrap_or_else(|| word!("(not idle)").into()),
            r.class.words().to_string(),
            words::count(r.n),
            at(&r.latency, 0.5),
            at(&r.latency, 0.99),
            words::percent(r.share_ratio),
            lost(r),
            exit,
            interval(&r.latency, 0.5),
        ]);
        cells
    });
    let rows: Vec<Vec<String>> = cells.collect();
    let has_cpu = rows.first().is_some_and(|r| r.len() == 10);
    let mut names = heads(&[
        word!("woken from"),
        word!("by"),
        "n",
        "p50",
        "p99",
        word!("share"),
        word!("time lost"),
        word!("exit (modelled)"),
        word!("p50, 95 % of this window"),
    ]);
    if has_cpu {
        names.insert(0, word!("CPU").into());
    }
    Table { caption: caption.into(), heads: names, rows, n_text_columns: if has_cpu { 3 } else { 2 } }
}

fn windows(traced: &Traced) -> Table {
    let start = traced.window.start_at_ns;
    let mut rows = Vec::new();
    for window in &traced.windows {
        for row in window.rows.iter().filter(|r| r.state.is_some()).take(3) {
            rows.push(vec![
                format!("{} s", (window.window.start_at_ns - start) / 1_000_000_000),
                row.state.clone().unwrap_or_default(),
                row.class.words().to_string(),
                words::count(row.n),
                at(&row.latency, 0.5),
                at(&row.latency, 0.99),
                lost(row),
            ]);
        }
    }
    Table {
        caption: word!("Window by window, the three heaviest: measured").into(),
        heads: heads(&[word!("from"), word!("woken from"), word!("by"), "n", "p50", "p99", word!("time lost")]),
        rows,
        n_text_columns: 3,
    }
}

fn timers(traced: &Traced) -> Table {
    let rows = traced.timers.iter().map(|t| {
        vec![
            t.state.clone(),
            if t.is_after_exit { word!("after the exit event") } else { word!("before the exit event") }.to_string(),
            words::count(t.lateness.n),
            at(&t.lateness, 0.5),
            interval(&t.lateness, 0.5),
            at(&t.lateness, 0.99),
        ]
    });
    Table {
        caption: word!("How late timers of idle CPUs were, whole machine: measured").into(),
        heads: heads(&[word!("idle state"), word!("handled"), "n", "p50", word!("95 % of this window"), "p99"]),
        rows: rows.collect(),
        n_text_columns: 2,
    }
}

fn states(traced: &Traced) -> Table {
    let all = traced.window.length_ns().max(1) as f64 * traced.n_cpus.max(1) as f64;
    let rows = traced.states.iter().map(|s| {
        let hardware = match (s.hardware.label, s.hardware.residency_ratio) {
            (Label::Measured, Some(ratio)) => words::percent(ratio),
            (Label::PresentButDead, _) => word!("present, dead").into(),
            _ => "unavailable".into(),
        };
        vec![
            s.state.clone(),
            words::count(s.n_requested),
            s.n_entered.map_or("unavailable".into(), words::count),
            words::percent(s.time_ns as f64 / all),
            s.entered_time_ns.map_or("unavailable".into(), |t| words::percent(t as f64 / all)),
            hardware,
            at(&s.length, 0.5),
            at(&s.length, 0.99),
        ]
    });
    let why = traced.states.iter().find(|s| s.hardware.label == Label::Unavailable && s.hardware.source != "not read");
    let why = why.map_or(String::new(), |s| say!("; hardware residency: {}", kept_words::shown(&s.hardware.source)));
    Table {
        caption: say!("Idle states, whole machine: requested (trace), entered (sysfs), reached (hardware){why}"),
        heads: heads(&[
            word!("idle state"),
            word!("requested"),
            word!("entered"),
            word!("time"),
            word!("by sysfs"),
            word!("hardware"),
            word!("stay p50"),
            word!("stay p99"),
        ]),
        rows: rows.collect(),
        n_text_columns: 1,
    }
}

fn processes(traced: &Traced) -> Table {
    let rows = traced.processes.iter().take(N_PROCESSES).map(|p| {
        vec![
            clean(&p.name),
            p.tgid.to_string(),
            p.state.clone(),
            words::count(p.n),
            words::ns(p.total_ns as f64 / p.n.max(1) as f64),
            words::ns(p.total_ns as f64),
        ]
    });
    let more = traced.processes.len().saturating_sub(N_PROCESSES);
    let more = if more > 0 { say!(" ({more} more in --json)") } else { String::new() };
    Table {
        caption: say!("Who was woken out of idle: measured{more}"),
        heads: heads(&[word!("process"), word!("pid"), word!("out of"), "n", word!("mean"), word!("time lost")]),
        rows: rows.collect(),
        n_text_columns: 3,
    }
}

/// By cgroup, pod or container.
fn who_pays(payers: &Payers, window_ns: u64) -> Table {
    let per_s = 1e9 / window_ns.max(1) as f64;
    let rows = payers.rows.iter().take(N_PROCESSES).map(|p| {
        vec![
            clean(&p.name),
            clean(&p.state),
            words::count(p.n),
            words::ns(p.total_ns as f64 / p.n.max(1) as f64),
            words::ns(p.total_ns as f64),
            words::ns(p.total_ns as f64 * per_s),
        ]
    });
    let (what, n_hidden) = (payers.by.word(), payers.rows.len().saturating_sub(N_PROCESSES) as u64 + payers.n_more);
    let hidden_ns: u64 = payers.rows.iter().skip(N_PROCESSES).map(|p| p.total_ns).sum::<u64>() + payers.more_total_ns;
    let more = match n_hidden {
        0 => String::new(),
        n => say!("; {} more rows lost {} together", words::count(n), words::ns(hidden_ns as f64)),
    };
    Table {
        caption: say!("Who pays, by {what}: wake-ups out of idle of what was woken, measured{more}"),
        heads: heads(&[what, word!("out of"), "n", word!("mean"), word!("time lost"), word!("lost a second")]),
        rows: rows.collect(),
        n_text_columns: 2,
    }
}

fn observer(traced: &Traced) -> String {
    let own = &traced.own;
    let programs = own.programs_ns.map_or(String::new(), |ns| say!(", eBPF programs {}", words::ns(ns as f64)));
    let registers = match own.n_register_interrupts {
        0 => String::new(),
        n => say!(" Reading residency registers interrupted CPUs {n} times, before and after."),
    };
    say!(
        "wakewatt itself was woken {}, {} of them out of idle, and used {} of CPU time{programs}; these are not \
         among the wake-ups above.{registers}",
        words::plural(usize::try_from(own.n).unwrap_or(usize::MAX), "time"),
        words::count(own.n_from_idle),
        words::ns(own.cpu_ns as f64)
    )
}
