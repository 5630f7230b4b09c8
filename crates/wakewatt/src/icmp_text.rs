//! Pings as text: the one sentence of `measure network --icmp`, and what `respond --icmp` saw.

use crate::view::table::Table;
use std::fmt::Write as _;
use wakewatt_core::distribution::Distribution;
use wakewatt_core::samples::Label;
use wakewatt_core::samples::icmp::{HiddenExit, IcmpAnswers, IcmpPart, Payer, Stretch};
use wakewatt_core::units::show_ns;

/// The one sentence.
pub(crate) fn who_pays(payer: &Payer, is_peer_local: bool) -> String {
    let times = format!("{} of {} (medians)", show_ns(payer.time_ns), show_ns(payer.round_trip_ns));
    let side = payer.stretch.side();
    match (payer.stretch, payer.cpu, &payer.state) {
        (Stretch::Wire, ..) if is_peer_local => format!("No CPU's wake-up is the largest part; the wire is: {times}."),
        (Stretch::Wire, ..) => format!("The largest part is outside this host (wire and responder): {times}."),
        (_, Some(cpu), Some(state)) => format!("The {side}'s CPU {cpu} was woken from {state}: {times}."),
        (stretch, Some(cpu), None) => {
            format!("No idle state is behind the largest part, {} on CPU {cpu}: {times}.", stretch.words())
        }
        (stretch, None, _) => format!("No wake-up is the largest part; {} is: {times}.", stretch.words()),
    }
}

/// What was answered here.
pub(crate) fn answers_text(answers: &IcmpAnswers, width: usize) -> String {
    let mut out = String::new();
    let seconds = answers.window.length_ns() as f64 / 1e9;
    let _ = writeln!(out, "{} pings answered in {seconds:.1} s, measured on this host\n", answers.n_answered);
    if answers.n_answered == 0 {
        out.push_str("No echo request was answered here. Ping this host meanwhile, such as with\n");
        out.push_str("  wakewatt measure network --icmp --peer THIS-HOST\n");
        return out;
    }
    let heads = ["", "p50", "p99", "share", "n"].map(String::from);
    let rows: Vec<Vec<String>> = answers.parts.iter().flat_map(rows).collect();
    out += &Table { heads: &heads, rows: &rows, n_text_columns: 1 }.text(width);
    for part in &answers.parts {
        if let Some(remark) = &part.remark {
            let _ = writeln!(out, "  {}: {remark}", part.stretch.words());
        }
    }
    hidden_lines(&mut out, &answers.hidden);
    if let Some(n) = answers.n_missed.filter(|n| *n > 0) {
        let _ = writeln!(out, "  {n} events were not seen (a program was already running on that CPU)");
    }
    let slowest = answers.parts.iter().flat_map(|p| &p.by_state).max_by_key(|s| s.time.n);
    if let Some((cell, state)) = slowest.and_then(|s| Some((s, s.state.as_ref()?))) {
        let share = cell.time.n as f64 / answers.n_answered as f64 * 100.0;
        let took = cell.time.p50_ns().map_or(String::new(), |ns| format!(", which took {} (median)", show_ns(ns)));
        let _ = writeln!(out, "\nFor {share:.0} % of them CPU {} was woken from {state}{took}.", cell.cpu);
    }
    out
}

/// A row per stretch, and one per CPU and idle state that it was woken from.
fn rows(part: &IcmpPart) -> Vec<Vec<String>> {
    let at = |ns: Option<u64>| ns.map_or("-".into(), show_ns);
    let row = |name: String, time: &Distribution, share: Option<f64>| {
        let share = share.map_or("-".into(), |s| format!("{:.0} %", s * 100.0));
        vec![name, at(time.p50_ns()), at(time.p99_ns()), share, time.n.to_string()]
    };
    if part.label == Label::Unavailable {
        return vec![vec![part.stretch.words().into(), "unavailable".into()]];
    }
    let mut all = vec![row(part.stretch.words().into(), &part.time, part.share_ratio)];
    all.extend(part.by_state.iter().map(|cell| {
        let from = cell.state.as_deref().map_or("awake".into(), |s| format!("from {s}"));
        row(format!("  CPU {} {from}", cell.cpu), &cell.time, None)
    }));
    all
}

fn hidden_lines(out: &mut String, hidden: &[HiddenExit]) {
    for h in hidden {
        let claimed = h.claimed_ns.map_or("which claims no exit latency".into(), |ns| {
            format!("which claims up to {} (modelled, not measured)", show_ns(ns))
        });
        let _ = writeln!(
            out,
            "  before the first stamp, inside the wire: the card's interrupt woke the {}'s CPU {} from {}, {claimed}, {} times",
            h.side, h.cpu, h.state, h.n
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payer(stretch: Stretch, cpu: Option<u32>, state: Option<&str>) -> Payer {
        Payer { stretch, cpu, state: state.map(str::to_string), time_ns: 38_000, round_trip_ns: 61_000 }
    }

    #[test]
    fn one_sentence_says_who_pays() {
        let says = |p: Payer| who_pays(&p, true);
        assert_eq!(
            says(payer(Stretch::ResponderWake, Some(1), Some("haltpoll idle"))),
            "The responder's CPU 1 was woken from haltpoll idle: 38us of 61us (medians)."
        );
        assert!(says(payer(Stretch::RequesterRun, Some(0), Some("C6"))).starts_with("The requester's CPU 0"));
        assert!(says(payer(Stretch::ResponderWake, Some(1), None)).starts_with("No idle state"));
        assert!(says(payer(Stretch::Send, None, None)).contains("call to device is"));
        assert!(who_pays(&payer(Stretch::Wire, None, None), false).contains("outside this host"));
    }
}
