//! What is said, never more than the numbers: of a node, of the fleet, of what is lacking.

use crate::document::{Fleet, Label, Node, NodeMeasure, Word};
use crate::measure::{Measure, Quantity};
use crate::table::Table;
use wakewatt_core::units::three_digits;

/// The measure that a node's sentence speaks of: the first that is called odd, costs before the others; else the first.
pub(super) fn leading(node: &Node) -> Option<&NodeMeasure> {
    let is_odd = |m: &&NodeMeasure| matches!(m.word, Word::Dearer | Word::Cheaper);
    node.measures.iter().find(is_odd).or(node.measures.first())
}

/// `x1.24`, in words that say which way.
fn against(m: &NodeMeasure) -> String {
    format!("{} times that of its peers at its load", three_digits(m.ratio))
}

fn interval(m: &NodeMeasure) -> String {
    let what = if m.is_range { "all windows" } else { "95 %" };
    format!("{what}: {} to {}", three_digits(m.low_ratio), three_digits(m.high_ratio))
}

/// The word and the sentence of a node.
pub(super) fn of_node(node: &Node) -> (Word, String) {
    let Some(leading) = leading(node) else {
        return (Word::CannotTell, "cannot tell: fewer than three windows count".into());
    };
    let title = leading.measure.title();
    let sentence = match leading.word {
        Word::Dearer | Word::Cheaper => {
            let also: Vec<String> = node
                .measures
                .iter()
                .filter(|m| m.measure != leading.measure && matches!(m.word, Word::Dearer | Word::Cheaper))
                .map(|m| format!("{} ×{}", m.measure.title(), three_digits(m.ratio)))
                .collect();
            let also = if also.is_empty() { String::new() } else { format!("; also {}", also.join(", ")) };
            format!("{title} is {} ({}){also}{}", against(leading), interval(leading), clocks(node))
        }
        Word::Like => format!("{title}: no difference of 5 % or more is shown ({})", interval(leading)),
        Word::Ranked => {
            format!("{title}: number {} of {} ({})", leading.rank, leading.n_ranked, interval(leading))
        }
        Word::CannotTell => format!("cannot tell: {}", leading.why.as_deref().unwrap_or("too little is known")),
    };
    (leading.word, sentence)
}

/// More time and equal cycles: then it is the clock.
fn clocks(node: &Node) -> &'static str {
    let word = |m: Measure| node.measure(m).map(|m| m.word);
    match (word(Measure::CpuPerWork), word(Measure::CyclesPerWork)) {
        (Some(Word::Dearer), Some(Word::Like)) => {
            "; its cycles per request are not shown to differ, so the clock is what to look at"
        }
        _ => "",
    }
}

/// The answer.
pub(super) fn of_fleet(fleet: &Fleet) -> String {
    let n = |word: Word| fleet.nodes.iter().filter(|n| n.word == word).count();
    let n_judged = n(Word::Dearer) + n(Word::Cheaper) + n(Word::Like);
    let nodes = |n: usize| if n == 1 { "1 node".to_string() } else { format!("{n} nodes") };
    let names = |word: Word| -> String {
        let all: Vec<&str> = fleet.nodes.iter().filter(|n| n.word == word).map(|n| n.name.as_str()).collect();
        let shown = all.iter().take(8).copied().collect::<Vec<_>>().join(", ");
        if all.len() > 8 { format!("{shown} and {} more", all.len() - 8) } else { shown }
    };
    if fleet.nodes.is_empty() {
        return "No node was found.".into();
    }
    if n_judged == 0 {
        let n_ranked = n(Word::Ranked);
        return match n_ranked {
            0 if fleet.firmware.is_some() => told_of_firmware(fleet),
            0 => format!("Cannot tell which of {} are odd; the nodes say why.", nodes(fleet.nodes.len())),
            _ => format!("{} ranked, none called odd: no class has eight of them.", nodes(n_ranked)),
        };
    }
    // A larger share of system time, say, is no price of work.
    let is_cost = |word: Word| {
        let mut odd = fleet.nodes.iter().filter(|n| n.word == word);
        odd.all(|n| leading(n).is_some_and(|m| m.measure.is_cost()))
    };
    let mut parts = Vec::new();
    if n(Word::Dearer) > 0 {
        let pay = match is_cost(Word::Dearer) {
            true => "pay more for the same work than their peers",
            false => "have more of what was compared than their peers",
        };
        parts.push(format!("{} of {} {pay}: {}", n(Word::Dearer), nodes(n_judged), names(Word::Dearer)));
    }
    if n(Word::Cheaper) > 0 {
        let pay = if is_cost(Word::Cheaper) { "pay less" } else { "have less of it" };
        parts.push(format!("{} of {} {pay}: {}", n(Word::Cheaper), nodes(n_judged), names(Word::Cheaper)));
    }
    let uneven = if fleet.firmware.as_ref().is_some_and(|f| !f.uneven.is_empty()) {
        told_of_firmware(fleet)
    } else {
        String::new()
    };
    if parts.is_empty() {
        let none = format!("No node of {n_judged} is shown to differ from its peers by 5 % or more. {uneven}");
        return none.trim_end().to_string();
    }
    format!("{}. {uneven}", parts.join(". ")).trim_end().to_string()
}

/// What firmware says where nothing else may be said.
fn told_of_firmware(fleet: &Fleet) -> String {
    fleet.firmware.as_ref().map_or_else(String::new, crate::document::Firmware::sentence)
}

/// What follows from what is not there.
pub(super) fn remarks(fleet: &Fleet) -> Vec<String> {
    let mut out = Vec::new();
    let has = |m: Measure| fleet.measures.iter().any(|s| s.measure == m && s.label != Label::Unavailable);
    let is_store = fleet.window_s.is_some();
    if is_store && !Measure::ALL.iter().any(|m| m.is_cost() && has(*m)) {
        out.push("What work costs is not known: name the work with --work. Only shares and load are compared, and \"dearer\" then means more of these.".into());
    }
    let n_small = fleet.classes.iter().filter(|c| c.is_ranked_only).map(|c| c.n_nodes).sum::<usize>();
    if n_small > 0 {
        out.push(format!("Nodes of classes with fewer than eight: {n_small}. They are ranked, not judged: so few cannot show what is usual among them."));
    }
    out.push("A difference of 10 % hides in what equal nodes differ by; an experiment on the node (wakewatt experiment) shows what statistics of a fleet cannot.".into());
    out
}

/// Why a measure is not there.
pub(super) fn lacking(table: &Table, measure: Measure) -> String {
    let has = |q: Quantity| table.has(q);
    let why = match measure {
        Measure::P90 | Measure::P99 => "no latency is known (--latency)",
        Measure::LoadPerBusyCpu | Measure::SystemShare if !has(Quantity::Busy) => "no CPU time is known",
        Measure::LoadPerBusyCpu => "no load average is known",
        Measure::SystemShare => "CPU time is not divided into system and user",
        _ if !has(Quantity::Work) => "no work is known (--work, or runs of load)",
        Measure::JoulesPerWork => "no energy is known (RAPL counters, or --power)",
        Measure::CyclesPerWork => "no clock and no counted cycles are known",
        Measure::CpuPerWork => "no CPU time is known for the windows in which there is work",
    };
    why.into()
}
