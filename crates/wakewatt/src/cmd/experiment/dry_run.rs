//! `experiment PLAN --dry-run`: what would be written per arm, what is left out and why, how long it takes. Reads only, so
//! it works for a recorded host too.

use super::conduct::check_arms;
use crate::exit::Code;
use crate::output;
use crate::view::wrap::wrap;
use anyhow::Result;
use serde::Serialize;
use std::fmt::Write as _;
use wakewatt_core::samples::experiment::Arm;
use wakewatt_core::samples::study::Skipped;
use wakewatt_core::source::Source;
use wakewatt_core::stats::sequential::Looks;
use wakewatt_lab::plan::{Plan, PlanKind, PlanWorkload};
use wakewatt_lab::setting_arms::resolve_arms;
use wakewatt_tune::knob::Host;

/// The document of a dry run.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct DryRun {
    /// The plan's name.
    pub name: String,
    /// Its question.
    pub question: String,
    /// What each arm would write; the first is the baseline.
    pub arms: Vec<Arm>,
    /// What is left out, and why.
    pub skipped: Vec<Skipped>,
    /// What to know of an arm: arm and note.
    pub notes: Vec<(String, String)>,
    /// Rounds at which the numbers are looked at.
    pub looks: Vec<usize>,
    /// Time of one round.
    pub round_ns: u64,
    /// Time until each look; the budget may end it before.
    pub looks_ns: Vec<u64>,
    /// The time budget.
    pub budget_ns: u64,
    /// What else to know.
    pub remarks: Vec<String>,
}

/// Shows it.
pub(super) fn run(plan: &Plan, source: &dyn Source, is_json: bool) -> Result<Code> {
    let dry = make(plan, source)?;
    if is_json {
        output::print(&output::json("experiment-plan", &dry)?)?;
    } else {
        output::print(&text(&dry, output::width()))?;
    }
    Ok(Code::Fine)
}

/// One block of a workload, as long as it says.
fn workload_ns(workload: &PlanWorkload, settle_ns: u64) -> u64 {
    let level_ns = settle_ns + workload.measure_ns + workload.measure_ns / 5;
    let measure_ns = workload.measure_ns;
    match &workload.kind {
        PlanKind::Steps { shares, .. } => level_ns.saturating_mul(shares.len() as u64),
        PlanKind::Shop { clients } => level_ns.saturating_mul(clients.len() as u64),
        PlanKind::Command { .. } | PlanKind::Wakeup { .. } | PlanKind::Network { .. } | PlanKind::Disk { .. } => {
            settle_ns + measure_ns
        }
    }
}

fn make(plan: &Plan, source: &dyn Source) -> Result<DryRun> {
    let (ready, skipped) = resolve_arms(&Host::read(source), plan);
    let mut remarks = Vec::new();
    if let Err(why) = check_arms(plan, &ready, &skipped, &mut remarks) {
        remarks.push(format!("it would be refused: {why}"));
    }
    let block_ns: u64 = plan.workloads.iter().map(|w| workload_ns(w, plan.settle_ns)).sum();
    let again_ns = if plan.again_every > 0 { block_ns / plan.again_every as u64 } else { 0 };
    let round_ns = block_ns.saturating_mul(ready.len() as u64).saturating_add(again_ns);
    let looks = match Looks::spread(&plan.looks, ready.len().saturating_sub(1)) {
        Ok((looks, dropped)) => {
            if !dropped.is_empty() {
                remarks.push(format!("no look after {dropped:?} rounds: nothing could be proven so early"));
            }
            looks.all().iter().map(|l| l.n_rounds).collect()
        }
        Err(why) => {
            remarks.push(format!("it would be refused: {why}"));
            Vec::new()
        }
    };
    let looks_ns: Vec<u64> = looks.iter().map(|n| round_ns.saturating_mul(*n as u64)).collect();
    if looks_ns.first().is_some_and(|first| *first > plan.budget_ns) {
        remarks.push(
            "the time budget ends before the first look, so nothing could be concluded: give more, or measure shorter"
                .into(),
        );
    }
    if plan.workloads.iter().any(|w| matches!(w.kind, PlanKind::Command { .. })) {
        remarks.push("how long the command runs is not known here, so the times are too short".into());
    }
    Ok(DryRun {
        name: plan.name.clone(),
        question: plan.question.clone(),
        notes: ready.iter().flat_map(|a| a.notes.iter().map(|n| (a.arm.id.clone(), n.clone()))).collect(),
        arms: ready.into_iter().map(|a| a.arm).collect(),
        skipped,
        looks,
        round_ns,
        looks_ns,
        budget_ns: plan.budget_ns,
        remarks,
    })
}

/// A time for people: whole seconds, minutes, hours.
fn long(ns: u64) -> String {
    let s = ns / 1_000_000_000;
    match s {
        0..=119 => format!("{s} s"),
        120..=7199 => format!("{} min", s / 60),
        _ => format!("{}.{} h", s / 3600, s % 3600 / 360),
    }
}

fn text(dry: &DryRun, width: usize) -> String {
    let mut out = String::new();
    let mut say = |first: &str, rest: &str, words: &str| {
        let _ = writeln!(out, "{}", wrap(first, rest, words, width));
    };
    say("", "", &format!("{}: {}", dry.name, dry.question));
    for (at, arm) in dry.arms.iter().enumerate() {
        let role = if at == 0 { ", the baseline" } else { "" };
        say("\n", "", &format!("{} ({}{role})", arm.id, arm.title));
        arm.settings.iter().for_each(|line| say("    ", "      ", line));
        let notes = dry.notes.iter().filter(|(id, _)| *id == arm.id);
        notes.for_each(|(_, note)| say("    note: ", "      ", note));
    }
    if !dry.skipped.is_empty() {
        say("\nLeft out", "", "");
        dry.skipped.iter().for_each(|s| say("  - ", "    ", &format!("{}: {}", s.what, s.why)));
    }
    say("\nTime", "", "");
    say("  ", "  ", &format!("one round {}, budget {}", long(dry.round_ns), long(dry.budget_ns)));
    for (n, ns) in dry.looks.iter().zip(&dry.looks_ns) {
        say("  ", "  ", &format!("look after {n} rounds: about {}", long(*ns)));
    }
    dry.remarks.iter().for_each(|remark| say("\nNote: ", "  ", remark));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    #[test]
    fn a_dry_run_names_the_arms_and_the_time() {
        let text_of = "format = 1\nname = \"x\"\nquestion = \"Q?\"\nsettle = \"1s\"\nmeasure = \"9s\"\nlooks = [8]\nbudget = \"1min\"\n[[arm]]\nname = \"found\"\n[[arm]]\nname = \"poll\"\nmax_latency = \"poll\"\n[[arm]]\nname = \"fast\"\nset = [\"freq.governor=performance\"]\n[[workload]]\nkind = \"wakeup\"\n";
        let plan = wakewatt_lab::plan::parse(text_of, &|_| Err("none".into())).unwrap();
        let tree =
            Tree::from_text("//- /sys/devices/system/cpu/online\n0-1\n//- /sys/devices/system/cpu/present\n0-1\n");
        let dry = make(&plan, &tree).unwrap();
        assert!(dry.skipped.iter().any(|s| s.what == "arm fast" && s.why.contains("freq.governor")));
        assert!(dry.remarks.iter().any(|r| r.contains("before the first look")) || dry.arms.len() < 2, "{dry:?}");
        let said = text(&dry, 100);
        assert!(said.contains("nothing is written") && said.contains("Left out"), "{said}");
        assert_eq!((long(90_000_000_000), long(7_200_000_000_000)), ("90 s".into(), "2.0 h".into()));
    }
}
