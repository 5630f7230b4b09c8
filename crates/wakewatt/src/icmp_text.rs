//! Pings as text: the table of `measure network --icmp` with the one sentence under it, and that of `respond --icmp`.

use std::fmt::Write as _;
use wakewatt_core::distribution::Distribution;
use wakewatt_core::samples::Label;
use wakewatt_core::samples::icmp::{HiddenExit, IcmpAnswers, IcmpPart, IcmpSample, Payer, Stretch};
use wakewatt_core::units::show_ns;

/// One sample, for people.
pub(crate) fn text(out: &mut String, sample: &IcmpSample) {
    let IcmpSample { peer, requester_cpu, gap_ns, .. } = sample;
    let _ = writeln!(
        out,
        "Ping to {peer} from CPU {requester_cpu}, one each {}, measured ({} socket)\n",
        show_ns(*gap_ns),
        sample.socket
    );
    heading(out);
    line(out, "round trip", &sample.round_trip, None, "");
    let is_split = sample.parts.iter().any(|p| p.time.n > 0);
    if is_split {
        sample.parts.iter().for_each(|p| part_lines(out, p));
    } else if let Some(requester) = &sample.requester {
        line(out, "requester: arrival to answer", requester, None, "by the kernel's receive stamps");
    }
    hidden_lines(out, &sample.hidden);
    for (n, what) in [
        (sample.n_lost, "were not answered"),
        (sample.n_late_replies, "were answered after the time-out"),
        (sample.n_unsplit, "could not be divided: a stamp is missing"),
    ] {
        if n > 0 {
            let _ = writeln!(out, "  {n} of {} requests {what}", sample.n_sent);
        }
    }
    if let Some(why) = &sample.ended_early {
        let _ = writeln!(out, "  ended early {why}");
    }
    match (&sample.payer, sample.parts.iter().find_map(|p| p.remark.as_deref())) {
        (Some(payer), _) => drop(writeln!(out, "\n{}", who_pays(payer, sample.is_peer_local))),
        (None, why) if !is_split => drop(writeln!(out, "\nNot divided: {}", why.unwrap_or("too few replies"))),
        _ => {}
    }
    if is_split && !sample.is_peer_local {
        let _ = writeln!(
            out,
            "The responder's half is inside the wire: run `wakewatt respond --icmp --for 30s` there meanwhile, and take its \
             parts off."
        );
    }
}

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
pub(crate) fn answers_text(answers: &IcmpAnswers) -> String {
    let mut out = String::new();
    let seconds = answers.window.length_ns() as f64 / 1e9;
    let _ = writeln!(out, "{} pings answered in {seconds:.1} s, measured on this host\n", answers.n_answered);
    if answers.n_answered == 0 {
        out.push_str("No echo request was answered here. Ping this host meanwhile, such as with\n");
        out.push_str("  wakewatt measure network --icmp --peer THIS-HOST\n");
        return out;
    }
    heading(&mut out);
    answers.parts.iter().for_each(|p| part_lines(&mut out, p));
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

fn heading(out: &mut String) {
    let _ = writeln!(out, "{:<34} {:>8} {:>8} {:>6} {:>7}", "", "p50", "p99", "share", "n");
}

fn line(out: &mut String, name: &str, time: &Distribution, share: Option<f64>, more: &str) {
    let at = |ns: Option<u64>| ns.map_or("-".into(), show_ns);
    let share = share.map_or(String::new(), |s| format!("{:.0} %", s * 100.0));
    let row = format!("{name:<34} {:>8} {:>8} {share:>6} {:>7}  {more}", at(time.p50_ns()), at(time.p99_ns()), time.n);
    let _ = writeln!(out, "{}", row.trim_end());
}

fn part_lines(out: &mut String, part: &IcmpPart) {
    let remark = part.remark.as_deref().unwrap_or_default();
    if part.label == Label::Unavailable {
        let _ = writeln!(out, "{:<34} unavailable: {remark}", part.stretch.words());
        return;
    }
    line(out, part.stretch.words(), &part.time, part.share_ratio, remark);
    for cell in &part.by_state {
        let from = cell.state.as_deref().map_or("awake".into(), |s| format!("from {s}"));
        line(out, &format!("    CPU {} {from}", cell.cpu), &cell.time, None, "");
    }
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
