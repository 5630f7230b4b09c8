//! The node now as text: every number with its unit, every gap with its reason.

use super::tiles::{self, Tile};
use crate::report::table::{Table, heads};
use crate::report::words::{ns_rough, percent};
use serde::Serialize;
use std::time::{Duration, UNIX_EPOCH};
use wakewatt_agent::node::{Node, State};
use wakewatt_core::rules::Weight;
use wakewatt_core::samples::payers::PayerKind;
use wakewatt_core::units::{show_bytes, three_digits};
use wakewatt_core::watch::Reading;
use wakewatt_words::{say, word};

/// What the template fills in.
#[derive(Debug, Serialize)]
pub(super) struct View {
    now: String,
    verdict: String,
    window: String,
    tiles: Vec<Tile>,
    states: Option<Table>,
    woken: Option<Table>,
    no_woken: Option<String>,
    paying: Option<Table>,
    no_paying: String,
    findings: Vec<Finding>,
    judged: String,
    settings: Vec<(String, String, String)>,
    troubles: Vec<String>,
    own: String,
}

#[derive(Debug, Serialize)]
struct Finding {
    weight: &'static str,
    title: String,
    cost: String,
    remedy: String,
    rule: String,
}

/// A moment as people read it.
pub(super) fn when(wall_ms: u64) -> String {
    let text = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_millis(wall_ms)).to_string();
    text.replace('T', " ").replace('Z', word!(" UTC"))
}

/// `since` says when a setting was last seen to change.
pub(super) fn of(node: &Node, since: &dyn Fn(&str) -> Option<String>) -> View {
    let troubles = node.sources.iter();
    View {
        now: when(node.wall_ms),
        verdict: node.verdict.clone(),
        window: node.window_ns.map_or(word!("rates come with the second reading").into(), |ns| {
            say!("Shares and rates are of the last {}.", ns_rough(ns as f64))
        }),
        tiles: tiles::of(node),
        states: (!node.states.is_empty()).then(|| states(node)),
        woken: (!node.latency.rows.is_empty()).then(|| woken(node)),
        no_woken: node.latency.rows.is_empty().then(|| no_woken(node)),
        paying: (!node.payers.rows.is_empty()).then(|| paying(node)),
        no_paying: no_paying(node),
        findings: findings(node),
        judged: node.judged_ms.map_or(String::new(), when),
        settings: node
            .settings
            .iter()
            .map(|s| (s.what.replace('_', " "), s.is.clone(), since(&s.what).unwrap_or_default()))
            .collect(),
        troubles: troubles.filter_map(|s| Some(format!("{}: {}", s.source, s.trouble.as_ref()?))).collect(),
        own: own(node),
    }
}

fn no_woken(node: &Node) -> String {
    match &node.latency.none_because {
        Some(why) => say!("Not measured: {why}."),
        None => word!("No CPU was woken from an idle state in the last minutes.").into(),
    }
}

fn findings(node: &Node) -> Vec<Finding> {
    let of = |found: &wakewatt_agent::Found| Finding {
        weight: match found.weight {
            Weight::Problem => "problem",
            Weight::Risk => "risk",
            Weight::Note => "note",
        },
        title: found.title.clone(),
        cost: found.cost.clone(),
        remedy: found.remedy.clone(),
        rule: found.rule.clone(),
    };
    node.findings.iter().map(of).collect()
}

/// A number, or the word for why there is none.
fn cell(reading: Reading<f64>, text: impl Fn(f64) -> String) -> String {
    match reading {
        Reading::Known(value) => text(value),
        Reading::Missing(why) => why.word().into(),
    }
}

fn states(node: &Node) -> Table {
    let per_s = |reading: Reading<f64>| cell(reading, three_digits);
    let claimed = |ns: Option<u64>| ns.map_or("–".to_string(), |ns| ns_rough(ns as f64));
    let row = |state: &State| {
        let off = if state.n_disabled > 0 { say!(" (off on {})", state.n_disabled) } else { String::new() };
        vec![
            format!("{}{off}", state.name),
            cell(state.share_ratio, percent),
            per_s(state.wakeups_per_s),
            per_s(state.above_per_s),
            per_s(state.below_per_s),
            claimed(state.exit_latency_ns),
        ]
    };
    Table {
        caption: word!("Share of the CPUs’ time; stays per second on all CPUs; those too short for the state; those long enough for a deeper one; what leaving takes, as the kernel claims").into(),
        heads: heads(&[word!("state"), word!("share"), word!("stays/s"), word!("short/s"), word!("deeper/s"), word!("to leave")]),
        rows: node.states.iter().map(row).collect(),
        n_text_columns: 1,
    }
}

fn woken(node: &Node) -> Table {
    let few = |ns: Option<u64>| ns.map_or(word!("too few").to_string(), |ns| ns_rough(ns as f64));
    let rows = node.latency.rows.iter().map(|row| {
        vec![row.state.clone(), row.class.words().into(), row.n.to_string(), few(row.p50_ns), few(row.p99_ns)]
    });
    Table {
        caption: say!("From made runnable to running, in the last {}", ns_rough(node.latency.window_ns as f64)),
        heads: heads(&[word!("woken from"), word!("by"), word!("wake-ups"), word!("median"), "p99"]),
        rows: rows.collect(),
        n_text_columns: 2,
    }
}

fn no_paying(node: &Node) -> String {
    match &node.payers.none_because {
        Some(why) => say!("Not measured: {why}."),
        None => word!("Nobody was woken out of an idle state in the last minutes.").into(),
    }
}

/// Who paid, the heaviest first.
fn paying(node: &Node) -> Table {
    let payers = &node.payers;
    let per_s = 1e9 / payers.window_ns.max(1) as f64;
    let rows = payers.rows.iter().map(|row| {
        vec![
            row.payer.clone().unwrap_or_else(|| word!("all others").into()),
            row.state.clone(),
            three_digits(row.n as f64 * per_s),
            ns_rough(row.total_ns as f64 / row.n.max(1) as f64),
            ns_rough(row.total_ns as f64 * per_s),
        ]
    });
    let by = payers.by.map_or("payer", PayerKind::word);
    Table {
        caption: say!(
            "Wake-ups out of idle by {by}, of what was woken, in the last {}: measured",
            ns_rough(payers.window_ns as f64)
        ),
        heads: heads(&[by, word!("out of"), "n/s", word!("mean"), word!("lost/s")]),
        rows: rows.collect(),
        n_text_columns: 2,
    }
}

fn own(node: &Node) -> String {
    let own = &node.own;
    let lived_ms = node.wall_ms.saturating_sub(node.started_ms);
    let share = if lived_ms > 0 { own.cpu_ns as f64 / 1e6 / lived_ms as f64 } else { 0.0 };
    let memory = own.resident_bytes.map_or(String::new(), |bytes| say!(", {} of memory", show_bytes(bytes)));
    say!(
        "wakewatt {}, started {}: {} of one CPU since then{memory}, {} interrupts of other CPUs by reading; the last reading took {}.",
        own.version,
        when(node.started_ms),
        percent(share),
        own.n_remote_interrupts,
        ns_rough(own.reading_ns as f64)
    )
}
