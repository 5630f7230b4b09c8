//! `experiment PLAN --dry-run`: what the lab says the plan would do, for people or as a document.

use crate::exit::Code;
use crate::output;
use crate::view::wrap::wrap;
use anyhow::Result;
use std::fmt::Write as _;
use wakewatt_core::kept_words;
use wakewatt_core::samples::titles;
use wakewatt_core::source::Source;
use wakewatt_lab::conduct::{DryRun, forecast};
use wakewatt_lab::plan::Plan;
use wakewatt_words::{say, spoken, word};

/// Shows it.
pub(super) fn run(plan: &Plan, source: &dyn Source, is_json: bool) -> Result<Code> {
    let dry = forecast(plan, source);
    if is_json {
        output::print(&output::json("experiment-plan", &dry)?)?;
    } else {
        output::print(&spoken(|| text(&dry, output::width())))?;
    }
    Ok(Code::Fine)
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
    say("", "", &format!("{}: {}", dry.name, kept_words::shown(&dry.question)));
    for (at, arm) in dry.arms.iter().enumerate() {
        let role = if at == 0 { word!(", the baseline") } else { "" };
        say("\n", "", &format!("{} ({}{role})", arm.id, titles::shown(&arm.title)));
        arm.settings.iter().for_each(|line| say("    ", "      ", &kept_words::shown(line)));
        let notes = dry.notes.iter().filter(|(id, _)| *id == arm.id);
        notes.for_each(|(_, note)| say(word!("    note: "), "      ", &kept_words::shown(note)));
    }
    if !dry.skipped.is_empty() {
        say(&format!("\n{}", word!("Left out")), "", "");
        dry.skipped.iter().for_each(|s| {
            say("  - ", "    ", &format!("{}: {}", kept_words::shown(&s.what), kept_words::shown(&s.why)))
        });
    }
    if let Some(primary) = dry.metrics.first() {
        say(
            &format!("\n{}", word!("The looks decide by ")),
            "  ",
            &format!("{} ({})", primary.id, titles::shown(&primary.title)),
        );
    }
    say(&format!("\n{}", word!("Time")), "", "");
    let (prepare, round, budget) = (long(dry.prepare_ns), long(dry.round_ns), long(dry.budget_ns));
    say("  ", "  ", &say!("preparation about {prepare}, one round {round}, budget {budget} for the rounds"));
    for (n, ns) in dry.looks.iter().zip(&dry.looks_ns) {
        say("  ", "  ", &say!("look after {n} rounds: about {time}", time = long(*ns)));
    }
    dry.remarks.iter().for_each(|remark| say(&format!("\n{}", word!("Note: ")), "  ", &kept_words::shown(remark)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    #[test]
    fn what_is_left_out_and_how_long_it_takes_is_said() {
        let (_, plan) = wakewatt_lab::plan::SHIPPED.iter().find(|(name, _)| *name == "idle").unwrap();
        let plan = wakewatt_lab::plan::parse(plan, &|_| Err("none".into())).unwrap();
        let cpu = "/sys/devices/system/cpu";
        let tree =
            Tree::from_text(&format!("//- {cpu}/online\n0-1\n//- {cpu}/present\n0-1\n//- /dev/cpu_dma_latency\nx\n"));
        let said = text(&forecast(&plan, &tree), 100);
        assert!(said.contains("nothing is written") && said.contains("Left out"), "{said}");
        assert_eq!((long(90_000_000_000), long(7_200_000_000_000)), ("90 s".into(), "2.0 h".into()));
    }
}
