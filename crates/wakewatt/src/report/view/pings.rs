//! Pings: the round trip, and how long each stretch of the way took, by the idle state its CPU was woken from.

use super::super::charts::distribution::Curve;
use super::super::figure::Figure;
use super::super::table::{Table, heads};
use super::super::words;
use super::samples::{DISTRIBUTION_HEADS, distribution_cells, distribution_figure};
use super::section::{Section, label_word};
use crate::icmp_text::who_pays;
use wakewatt_core::samples::Label;
use wakewatt_core::samples::icmp::{HiddenExit, IcmpPart, IcmpSample};
use wakewatt_core::stats::distribution::Distribution;
use wakewatt_words::{say, told, word};

/// The section; none if nobody was pinged.
pub(super) fn section(samples: &[IcmpSample], zero_at_ns: u64) -> Option<Section> {
    let mut out = Section::new(word!("Pings, divided along their way"));
    for (i, s) in samples.iter().enumerate() {
        out.intro.push(say!(
            "Ping to {} from CPU {}, one each {}, {} sent by a {} socket; measured, {}.",
            s.peer,
            s.requester_cpu,
            words::ns(s.gap_ns as f64),
            words::count(s.n_sent),
            s.socket,
            words::window(&s.window, zero_at_ns)
        ));
        out.figures.extend(figure(i, s));
        out.tables.push(table(s));
        let p50 = s.round_trip.p50_ns().map(|ns| say!("ping to {}: {} median", s.peer, words::ns(ns as f64)));
        out.lines.extend(p50);
        if let Some(payer) = &s.payer {
            let says = who_pays(payer, s.is_peer_local);
            out.lines.push(says.clone());
            out.remarks.push(says);
        }
        out.remarks.extend(remarks(s));
    }
    (!out.is_empty()).then_some(out)
}

fn figure(i: usize, s: &IcmpSample) -> Option<Figure> {
    if s.round_trip.n == 0 {
        return None;
    }
    let (id, name) = (format!("ping-{i}"), say!("ping to {}", s.peer));
    let title = word!("Round trip of a ping");
    let caption = word!("How often each round trip occurred (top) and the percentiles (below).");
    distribution_figure(id, title, caption, &[Curve { name: &name, index: 0, latency: &s.round_trip }], None)
}

fn table(s: &IcmpSample) -> Table {
    let row = |what: String, label: &str, share: String, time: &Distribution| {
        let mut row = vec![what, told(label).to_string(), share];
        row.extend(distribution_cells(time));
        row
    };
    let mut rows = vec![row(word!("round trip").into(), "measured", "–".into(), &s.round_trip)];
    for part in &s.parts {
        let share = part.share_ratio.map_or("–".into(), words::percent);
        rows.push(row(part.stretch.words().into(), label_word(part.label), share, &part.time));
        for cell in &part.by_state {
            let from = cell.state.as_deref().map_or(word!("awake").into(), |state| say!("woken from {state}"));
            let what = say!("{}, CPU {} {from}", part.stretch.words(), cell.cpu);
            rows.push(row(what, label_word(part.label), "–".into(), &cell.time));
        }
    }
    if let (Some(requester), false) = (&s.requester, s.parts.iter().any(|p| p.time.n > 0)) {
        let what = word!("requester: arrival to answer, by the kernel’s receive stamps");
        rows.push(row(what.into(), "measured", "–".into(), requester));
    }
    let mut names = heads(&[word!("stretch"), word!("label"), word!("share of the mean")]);
    names.extend(heads(DISTRIBUTION_HEADS));
    let caption = say!(
        "Ping to {}: percentiles with their {}",
        s.peer,
        words::interval_of(wakewatt_core::covers::Covers::Window)
    );
    Table { caption, heads: names, rows, n_text_columns: 2 }
}

fn remarks(s: &IcmpSample) -> Vec<String> {
    let of_all = |n: u64, what: &str| {
        (n > 0).then(|| say!("{} of {} requests {what}.", words::count(n), words::count(s.n_sent)))
    };
    let mut all: Vec<String> = [
        of_all(s.n_lost, word!("were not answered")),
        of_all(s.n_late_replies, word!("were answered after the time-out")),
        of_all(s.n_late_starts, word!("were sent later than planned")),
        of_all(s.n_unsplit, word!("could not be divided: a stamp is missing")),
        s.ended_early.as_ref().map(|why| say!("It ended early: {why}.")),
    ]
    .into_iter()
    .flatten()
    .collect();
    all.extend(s.hidden.iter().map(hidden));
    let said = |part: &IcmpPart| {
        let why = part.remark.as_ref()?;
        let word = if part.label == Label::Unavailable { word!("unavailable: ") } else { "" };
        Some(format!("{}: {word}{why}", part.stretch.words()))
    };
    all.extend(s.parts.iter().filter_map(said));
    if !s.is_peer_local && s.parts.iter().any(|p| p.time.n > 0) {
        all.push(
            word!("The responder's half is inside the wire: run `wakewatt respond --icmp --for 30s` there meanwhile, and take its \
             parts off.")
                .into(),
        );
    }
    all
}

/// What lies before the first stamp can only be modelled.
fn hidden(h: &HiddenExit) -> String {
    let claimed = h.claimed_ns.map_or(word!("which claims no exit latency").into(), |ns| {
        say!("which claims up to {} ({})", words::ns(ns as f64), told(label_word(h.label)))
    });
    say!(
        "Inside the wire, before the first stamp: the card's interrupt woke the {}'s CPU {} from {}, {claimed}, {} times.",
        h.side,
        h.cpu,
        h.state,
        words::count(h.n)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::samples::icmp::{StatePart, Stretch, payer};
    use wakewatt_core::samples::{Scheduling, Window};

    #[test]
    fn every_stretch_has_its_label_and_what_is_missing_says_why() {
        let time = Distribution::from_ns((0..100).map(|_| 38_000));
        let by_state = vec![StatePart { cpu: 1, state: Some("C6".into()), time: time.clone() }];
        let (label, remark) = (Label::Measured, None);
        let wake = IcmpPart { stretch: Stretch::ResponderWake, label, remark, time, share_ratio: Some(0.62), by_state };
        let parts = vec![IcmpPart::unavailable(Stretch::Wire, "no tracepoint"), wake];
        let round_trip = Distribution::from_ns((0..100).map(|_| 61_000));
        let hidden = HiddenExit {
            side: "requester".into(),
            cpu: 0,
            state: "C6".into(),
            n: 3,
            claimed_ns: Some(170_000),
            label: Label::Modelled,
        };
        let sample = IcmpSample {
            peer: "host1".into(),
            is_peer_local: true,
            socket: "ping".into(),
            requester_cpu: 0,
            gap_ns: 1_000_000,
            scheduling: Scheduling::Fifo(80),
            payer: payer(&round_trip, &parts),
            round_trip,
            requester: None,
            parts,
            hidden: vec![hidden],
            n_sent: 102,
            n_lost: 2,
            n_late_replies: 0,
            n_late_starts: 0,
            n_unsplit: 0,
            ended_early: None,
            window: Window { start_at_ns: 5_000_000_000, end_at_ns: 6_000_000_000 },
            idle: vec![],
        };
        let section = section(&[sample], 0).unwrap();
        let cells: Vec<[&str; 3]> =
            section.tables[0].rows.iter().map(|r| [r[0].as_str(), r[1].as_str(), r[2].as_str()]).collect();
        assert_eq!(
            cells,
            [
                ["round trip", "measured", "–"],
                ["wire, both ways", "unavailable", "–"],
                ["responder: arrival to processing", "measured", "62 %"],
                ["responder: arrival to processing, CPU 1 woken from C6", "measured", "–"],
            ]
        );
        assert!(section.tables[0].rows[0][6].starts_with("61 us ["), "{:?}", section.tables[0].rows[0]);
        assert_eq!(section.lines[0], "ping to host1: 61 us median");
        assert!(section.lines[1].starts_with("The responder's CPU 1 was woken from C6"), "{:?}", section.lines);
        let remarks = section.remarks.join(" ");
        for part in ["2 of 102 requests were not answered", "up to 170 us (modelled)", "unavailable: no tracepoint"] {
            assert!(remarks.contains(part), "{part}: {remarks}");
        }
        assert_eq!(section.figures.len(), 1);
        assert!(super::section(&[], 0).is_none());
    }
}
