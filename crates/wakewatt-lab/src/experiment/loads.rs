//! The loads of an experiment for drawing: of every arm the levels of one round, the middle one by the primary metric.
//!
//! A curve of rate or watts against load wants levels that were measured together. Means over rounds would hide that a
//! level of a round was disturbed, and percentiles have no mean; so one round is shown whole, and which one is said. The
//! verdicts rest on all rounds and are drawn with their intervals elsewhere.

use super::{Calibrated, KeptBlock};
use std::cmp::Ordering;
use wakewatt_core::arrange::Arrange as _;
use wakewatt_core::samples::experiment::Arm;
use wakewatt_core::samples::load::{Kind, Length, LoadRun};

/// A workload that is a load, and what it was calibrated to.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// The id its levels are kept under.
    pub id: String,
    /// What makes the load.
    pub kind: Kind,
    /// Its maximum and its work, where it has them.
    pub calibrated: Option<Calibrated>,
}

/// One load run per arm and source that has counted blocks.
pub fn of(blocks: &[KeptBlock], arms: &[Arm], sources: &[Source], seed: u64) -> Vec<LoadRun> {
    let has_many = sources.len() > 1;
    let run = |source: &Source, arm: &Arm| {
        let (drawn, why) = drawn(blocks, &arm.id)?;
        let levels: Vec<_> =
            drawn.levels.iter().filter(|(id, _)| *id == source.id).map(|(_, level)| level.clone()).collect();
        if levels.is_empty() {
            return None;
        }
        let name = if has_many { format!("{}, {}", arm.title, source.id) } else { arm.title.clone() };
        let calibrated = source.calibrated.clone().unwrap_or_default();
        Some(LoadRun {
            kind: source.kind,
            title: name,
            length: Length::Custom,
            seed,
            settings: arm.settings.iter().map(|words| setting(words)).collect(),
            service_ns: calibrated.service_ns,
            work_units: calibrated.work_units,
            capacity_per_s: calibrated.per_s,
            levels,
            remarks: vec![format!(
                "round {} is drawn, {why}; what is proved rests on all of them",
                drawn.block.round + 1
            )],
            ..LoadRun::default()
        })
    };
    sources.iter().flat_map(|source| arms.iter().filter_map(move |arm| run(source, arm))).collect()
}

/// `knob on CPUs 0-3: a -> b (path)`: where, and what; other lines stay whole.
fn setting(words: &str) -> (String, String) {
    let (name, value) = words.split_once(": ").unwrap_or(("this arm", words));
    (name.into(), value.into())
}

/// The counted block whose primary value stands in the middle (of an even number the lower), or the last where none has one.
fn drawn<'a>(blocks: &'a [KeptBlock], arm: &str) -> Option<(&'a KeptBlock, String)> {
    let primary = |k: &KeptBlock| k.block.values.first().copied().flatten();
    let counted = || blocks.iter().filter(|k| k.block.arm == arm && k.block.rejected.is_none());
    let mut all: Vec<&KeptBlock> = counted().filter(|k| primary(k).is_some()).collect();
    all.arrange_by(|a, b| primary(a).partial_cmp(&primary(b)).unwrap_or(Ordering::Equal));
    match all.len().checked_sub(1).and_then(|last| all.get(last / 2)) {
        Some(middle) => Some((middle, format!("the middle one of {} by the primary metric", all.len()))),
        None => Some((counted().next_back()?, "the last one; none has a value of the primary metric".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::AGAIN;
    use super::*;
    use wakewatt_core::samples::Window;
    use wakewatt_core::samples::experiment::Block;
    use wakewatt_core::samples::load::{Ask, Level};

    fn block(round: usize, arm: &str, value: Option<f64>, rejected: Option<&str>) -> KeptBlock {
        let level = Level { ask: Ask::Share(0.5), per_s: round as f64, ..Level::default() };
        KeptBlock {
            block: Block {
                round,
                arm: arm.into(),
                window: Window::default(),
                values: vec![value],
                rejected: rejected.map(|why| why.to_string().into()),
                ..Block::default()
            },
            latencies: vec![],
            levels: vec![("steps".into(), level)],
            spent_ns: 0,
        }
    }

    #[test]
    fn the_middle_round_that_counted_is_shown_and_named() {
        let arm = |id: &str| Arm { id: id.into(), title: format!("arm {id}"), settings: vec!["x=1".into()] };
        let blocks = [
            block(0, "a", Some(9.0), None),
            block(1, "a", Some(1.0), None),
            block(2, "a", Some(5.0), None),
            block(3, "a", Some(4.0), Some("busy")),
            block(4, "a", None, None),
            block(0, AGAIN, Some(2.0), None),
            block(0, "b", Some(2.0), Some("busy")),
        ];
        let calibrated = Calibrated { per_s: Some(100.0), work_units: Some(7), ..Calibrated::default() };
        let source = Source { id: "steps".into(), kind: Kind::Steps, calibrated: Some(calibrated) };
        let other = Source { id: "shop".into(), kind: Kind::Shop, calibrated: None };
        let runs = of(&blocks, &[arm("a"), arm("b")], &[source.clone(), other], 3);
        assert_eq!(runs.len(), 1, "an arm without a counted block and a source without levels are absent");
        assert_eq!((runs[0].levels[0].per_s, runs[0].title.as_str()), (2.0, "arm a, steps"));
        assert_eq!((runs[0].capacity_per_s, runs[0].work_units), (Some(100.0), Some(7)));
        assert!(runs[0].remarks[0].starts_with("round 3 is drawn, the middle one of 3"), "{:?}", runs[0].remarks);
        let without = of(&blocks[4..5], &[arm("a")], std::slice::from_ref(&source), 3);
        assert!(without[0].remarks[0].contains("the last one; none has"), "{:?}", without[0].remarks);
        let alone = of(&blocks[..2], &[arm("a")], &[source], 3);
        assert_eq!((alone[0].levels[0].per_s, alone[0].title.as_str()), (1.0, "arm a"), "of two the lower");
    }
}
