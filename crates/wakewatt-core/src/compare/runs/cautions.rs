//! What must not be concluded from two sides of runs, and what would tell.

use super::{Basis, EffectDifference, SampleDifference};
use crate::covers::Covers;
use crate::evidence::Evidence;
use crate::samples::load::LoadRun;
use crate::stats::sessions::MIN_WINDOWS;
use wakewatt_words::{say, told, word};

/// In sentences.
pub(super) fn of(
    a: &Evidence,
    b: &Evidence,
    samples: &[SampleDifference],
    effects: &[EffectDifference],
) -> Vec<String> {
    let mut lines: Vec<String> = other_work(a, b).into_iter().chain(modelled(a, b)).collect();
    if samples.is_empty() && effects.is_empty() {
        lines.push(
            word!(
                "No quantity was measured in both runs with the same parameters, so nothing measured can be compared."
            )
            .into(),
        );
        return lines;
    }
    let model = |e: &Evidence| (e.facts.topology.processor().map(ToString::to_string), e.facts.cpus.running().count());
    let machine =
        if model(a) == model(b) { word!("machine (the same model)") } else { word!("machine (different models)") };
    let version = |e: &Evidence| e.facts.kernel.release.get().cloned();
    let kernel = match (version(a), version(b)) {
        (Some(a), Some(b)) if a == b => word!("time (the kernel release is the same)").to_string(),
        (Some(a), Some(b)) => say!("time and kernel ({a} and {b})"),
        _ => word!("time and kernel").to_string(),
    };
    lines.push(say!(
        "The runs are not paired: {machine}, {kernel} and every setting differ together, so no number above is the effect \
         of one setting. To know one, turn it on one machine: wakewatt doctor, or wakewatt measure disk --experiment."
    ));
    let has = |basis| samples.iter().any(|d| d.basis == basis);
    if has(Basis::FewWindows) {
        lines.push(say!(
            "With fewer than {MIN_WINDOWS} windows on a side nothing is called different: an interval that covers one window says how \
             well that window was measured, and the next one of the same machine mostly lies outside it."
        ));
    }
    if has(Basis::Windows) {
        lines.push(
            word!("One run on each side: their intervals cover these runs. Another hour or another boot may differ by more; several \
             runs on each side in turns (compare A1 A2 A3 --against B1 B2 B3) say by how much.")
                .into(),
        );
    }
    let hours = |covers: &Option<Covers>| *covers == Some(Covers::Hours);
    if samples.iter().map(|d| &d.covers).chain(effects.iter().map(|e| &e.covers)).any(hours) {
        lines.push(
            word!("The sides did not take turns: a machine that drifts from hour to hour differs between them by itself. For an interval that covers \
             the machines measure A, B, B, A and so on.")
                .into(),
        );
    }
    if !effects.is_empty() {
        lines.push(
            word!("A ratio of ratios is free of what makes one machine slower as a whole, but not of what makes a setting matter \
             more: hardware, kernel, the other settings.")
                .into(),
        );
    }
    lines
}

/// A replay predicts; what it says first of how far it may be trusted holds here, too.
fn modelled(a: &Evidence, b: &Evidence) -> Vec<String> {
    let of = |(name, e): (&str, &Evidence)| {
        let first = e.samples.replays.first()?;
        let n = e.samples.replays.len();
        let setting = if n == 1 { told(first.setting_words()).to_string() } else { say!("{n} settings") };
        Some(say!("{name} is a replay ({setting}): modelled, not measured. {}", first.trust))
    };
    [("A", a), ("B", b)].into_iter().filter_map(of).collect()
}

/// Loads of one title whose transactions are not the same work.
fn other_work(a: &Evidence, b: &Evidence) -> Option<String> {
    let other = |x: &&LoadRun| {
        let same = b.samples.load.iter().filter(|y| y.kind == x.kind && y.title == x.title);
        let theirs: Vec<u64> = same.filter_map(|y| y.work_units).collect();
        let ours = x.work_units?;
        (!theirs.is_empty() && !theirs.contains(&ours)).then(|| (ours, theirs[0]))
    };
    let (title, (ours, theirs)) = a.samples.load.iter().find_map(|x| Some((&x.title, other(&x)?)))?;
    Some(say!(
        "\"{title}\": a transaction is {ours} units of work in A and {theirs} in B, because each run found out by its own clock \
         what takes so long, so neither rates nor watts are compared. Repeat one with --work {ours}."
    ))
}
