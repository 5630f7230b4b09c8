//! Small fleets with known culprits: who is accused, with which setting beside him, and what is said where too little is known.

use super::*;
use crate::document::Label;
use crate::table::{CLOCK_LIMIT, DEEPEST_IDLE, Hardware, Node as Row, Window};
use wakewatt_core::stats::random::Random;

const N_WINDOWS: usize = 12;

/// Nodes that do 100 requests a second and CPU, more or less; `cost` is CPU seconds per request by node.
fn fleet(n: usize, cost: impl Fn(usize) -> f64, load: impl Fn(usize) -> f64) -> Table {
    let mut random = Random::new(11);
    let nodes = (0..n).map(|at| {
        let mut node = Row::named(format!("node{at:02}"));
        node.hardware = Hardware { processor: Some("X".into()), n_cpus: Some(48), ..Hardware::default() };
        node.settings.insert(DEEPEST_IDLE.into(), if cost(at) > 0.03 { "C6, 170us" } else { "C1, 2us" }.into());
        node.settings.insert("kernel".into(), "6.1".into());
        let silent = 0.03 * random.normal();
        for window in 0..N_WINDOWS {
            let per_s = 4800.0 * load(at) * (1.0 + 0.2 * (window as f64).sin());
            let noise = (silent + 0.05 * random.normal()).exp();
            node.set(Quantity::Work, window, N_WINDOWS, per_s);
            node.set(Quantity::Busy, window, N_WINDOWS, per_s * cost(at) * noise / 48.0);
            node.set(Quantity::System, window, N_WINDOWS, per_s * 0.002);
            node.set(Quantity::Load, window, N_WINDOWS, 20.0 * noise);
        }
        node
    });
    let windows = (0..N_WINDOWS as u64).map(|w| Window { from_ms: w * 1000, to_ms: (w + 1) * 1000 }).collect();
    Table { windows, nodes: nodes.collect(), has_counted_cycles: false }
}

#[test]
fn the_guilty_stand_first_with_the_setting_that_differs() {
    let guilty = [3, 11, 17];
    let table = fleet(26, |at| if guilty.contains(&at) { 0.04 } else { 0.02 }, |at| if at == 20 { 1.4 } else { 1.0 });
    let found = compare(&table, Asked { work: Some("w".into()), ..Asked::default() });
    let odd: Vec<&str> = found.nodes.iter().take_while(|n| n.word == Word::Dearer).map(|n| n.name.as_str()).collect();
    assert_eq!(odd.len(), 3, "{}", found.sentence);
    assert!(["node03", "node11", "node17"].iter().all(|n| odd.contains(n)), "{odd:?}");
    assert!(found.sentence.starts_with("3 of 26 nodes pay more for the same work"), "{}", found.sentence);
    let first = &found.nodes[0];
    assert_eq!(first.leading().unwrap().measure, Measure::CpuPerWork);
    assert!((1.8..2.2).contains(&first.leading().unwrap().ratio), "{first:?}");
    assert_eq!(first.differs.len(), 1, "the kernel is everybody's");
    assert_eq!((first.differs[0].here.as_str(), first.differs[0].n_like_here), ("C6, 170us", 0));
    assert!(first.differs[0].predicted.as_deref().unwrap().contains("168us longer"));
    assert_eq!(first.course.len(), N_WINDOWS);
    let cycles = found.measures.iter().find(|m| m.measure == Measure::CyclesPerWork).unwrap();
    assert_eq!(cycles.label, Label::Unavailable, "there is no clock");
}

#[test]
fn a_slow_clock_is_told_from_more_work() {
    let mut table = fleet(12, |at| if at == 5 { 0.03 } else { 0.015 }, |_| 1.0);
    for (at, node) in table.nodes.iter_mut().enumerate() {
        node.settings.insert(CLOCK_LIMIT.into(), if at == 5 { "1400 MHz" } else { "2800 MHz" }.into());
        (0..N_WINDOWS).for_each(|w| node.set(Quantity::Clock, w, N_WINDOWS, if at == 5 { 1.4e9 } else { 2.8e9 }));
    }
    let found = compare(&table, Asked::default());
    assert!(found.nodes[0].sentence.contains("so the clock is what to look at"), "{}", found.nodes[0].sentence);
    assert!(
        found.nodes[0].differs.iter().any(|d| d.predicted.as_deref().is_some_and(|p| p.contains("100 % more time")))
    );
    let cycles = found.measures.iter().find(|m| m.measure == Measure::CyclesPerWork).unwrap();
    assert_eq!(cycles.label, Label::Modelled);
}

#[test]
fn small_classes_are_ranked_and_nothing_is_said_of_nothing() {
    let found = compare(&fleet(5, |at| if at == 2 { 0.09 } else { 0.02 }, |_| 1.0), Asked::default());
    assert!(found.nodes.iter().all(|n| n.word == Word::Ranked), "{}", found.sentence);
    assert_eq!(found.nodes[0].name, "node02");
    assert!(found.classes[0].is_ranked_only && found.sentence.contains("none called odd"));
    let none = compare(&Table::default(), Asked::default());
    assert_eq!(none.sentence, "No node was found.");
    let mut bare = Table { nodes: vec![Row::named("a"), Row::named("b")], ..Table::default() };
    bare.nodes[0].settings.insert("kernel".into(), "6.1".into());
    let found = compare(&bare, Asked::default());
    assert!(found.nodes.iter().all(|n| n.word == Word::CannotTell), "{found:?}");
}

#[test]
fn a_load_that_nobody_else_had_is_no_ground_for_a_verdict() {
    let table = fleet(12, |at| if at == 4 { 0.05 } else { 0.02 }, |at| if at == 4 { 0.05 } else { 1.0 });
    let found = compare(&table, Asked::default());
    let node = found.nodes.iter().find(|n| n.name == "node04").unwrap();
    assert_eq!(node.word, Word::CannotTell, "{}", node.sentence);
    assert!(node.sentence.contains("beyond what any peer had"), "{}", node.sentence);
}

#[test]
fn a_change_is_told_apart_from_what_all_did() {
    let mut table = fleet(12, |_| 0.02, |_| 1.0);
    for (at, node) in table.nodes.iter_mut().enumerate() {
        for window in 6..N_WINDOWS {
            let busy = node.get(Quantity::Busy, window).unwrap();
            // A release makes all dearer by a half; one node was set right at the same time.
            let factor = if at == 7 { 1.5 * 0.5 } else { 1.5 };
            node.set(Quantity::Busy, window, N_WINDOWS, busy * factor);
        }
    }
    let found = compare(&table, Asked { changed_at_ms: Some(6000), ..Asked::default() });
    let of = |name: &str| found.nodes.iter().find(|n| n.name == name).unwrap().change.clone().unwrap();
    assert!((0.4..0.62).contains(&of("node07").ratio), "{:?}", of("node07"));
    assert!((0.85..1.15).contains(&of("node01").ratio) && of("node01").after > of("node01").before);
    assert_eq!((of("node01").n_before, of("node01").n_after), (6, 6));
}

/// The promise for the whole answer, which asks several things of every node: of a thousand innocent fleets at most 5 % have
/// anybody called, by whatever measure.
#[test]
fn of_a_thousand_innocent_fleets_few_have_anybody_called_by_any_measure() {
    let innocent = |seed: u64| {
        let mut random = Random::new(seed);
        let nodes = (0..26).map(|at| {
            let mut node = Row::named(format!("node{at:02}"));
            node.hardware.n_cpus = Some(48);
            let mut silent = [0.0; 4];
            silent.iter_mut().for_each(|s| *s = 0.03 * random.normal());
            let own_load = 0.3 * random.normal();
            for window in 0..N_WINDOWS {
                let load = (own_load + 0.15 * random.normal()).exp();
                let mut noise = |at: usize| (silent[at] + 0.06 * random.normal()).exp();
                // Time of a request moves its tail, too, so that measures go together as they do in life.
                let time = noise(0);
                let busy = 1000.0 * load.powf(0.8) * 0.02 * time;
                let numbers = [
                    (Quantity::Work, 1000.0 * load),
                    (Quantity::Busy, busy),
                    (Quantity::System, busy * 0.2 * noise(1)),
                    (Quantity::Load, busy * 1.2 * noise(2)),
                    (Quantity::P90, 0.05 * time * load.powf(0.2)),
                    (Quantity::P99, 0.1 * time * noise(3) * load.powf(0.4)),
                ];
                numbers.into_iter().for_each(|(q, value)| node.set(q, window, N_WINDOWS, value));
            }
            node
        });
        let windows = vec![Window { from_ms: 0, to_ms: 1 }; N_WINDOWS];
        let nodes: Vec<Row> = nodes.collect();
        compare(&Table { windows, nodes, has_counted_cycles: false }, Asked::default())
    };
    let n = (0..1000).filter(|seed| innocent(*seed).nodes.iter().any(Node::is_odd)).count();
    println!("{n} of 1000 innocent fleets have somebody called");
    assert!(n <= 50, "{n} of 1000 innocent fleets have somebody called");
}
