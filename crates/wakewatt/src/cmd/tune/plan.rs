//! `wakewatt tune plan`: what would change. Reads only, so it also works for a recorded host.

use super::gather;
use super::predict::{self, Planned};
use crate::cli::tune::PlanArgs;
use crate::exit::Code;
use crate::output::{self, Colour};
use crate::trusted::Use;
use crate::view::width::{padded, places};
use crate::view::wrap::wrap;
use crate::view::{Style, origin};
use anyhow::Result;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_tune::knob::{Host, Reversible};
use wakewatt_tune::planning::{PlannedBoot, PlannedStep, TunePlan, plan};
use wakewatt_tune::resolve::Change;
use wakewatt_words::{Language, say, within, word};

/// Runs it: the document in English, the text in the reader's language.
pub(super) fn run(args: &PlanArgs, colour: Colour) -> Result<Code> {
    let language = if args.json { Language::English } else { wakewatt_words::wanted() };
    within(language, || planned(args, colour))
}

fn planned(args: &PlanArgs, colour: Colour) -> Result<Code> {
    let requested = gather(&args.wanted, Use::Looking)?;
    let source = crate::cmd::open(&args.from)?;
    let host = Host::read(&*source);
    // Another machine's own transactions are not in what is told of it.
    let held = if args.from.is_here() { super::held_arguments() } else { Vec::new() };
    let boot = requested.boot(&*source, &held).map(|made| match made {
        Ok((plan, loader)) => Ok(PlannedBoot::of(&plan, loader)),
        Err(why) => Err(why.to_string()),
    });
    let plan = plan(&host, &requested.purpose, &requested.requests, boot);
    let predicted = predict::predict(&args.predict, &plan, &host)?;
    let is_told = predicted.as_ref().is_none_or(|p| p.cannot_tell.is_none());
    let is_possible = plan.refused.is_empty() && plan.no_boot_because.is_none();
    let planned = Planned { plan, predicted };
    if args.json {
        output::print(&output::json("tune-plan", &planned)?)?;
    } else {
        let width = output::width();
        let expected = planned.predicted.as_ref().map_or(String::new(), |p| predict::text(p, width));
        output::print(&(text(&planned.plan, Style { is_on: colour.is_on() }, width) + &expected))?;
    }
    Ok(if is_possible && is_told { Code::Fine } else { Code::Refused })
}

/// The plan for people.
pub(super) fn text(plan: &TunePlan, style: Style, width: usize) -> String {
    let mut out = String::new();
    let mut say = |first: &str, rest: &str, words: &str| {
        let _ = writeln!(out, "{}", wrap(first, rest, words, width));
    };
    if plan.is_without_effect {
        say(&format!("{} ", style.bold(word!("No effect:"))), "           ", word!("this plan changes nothing here."));
    }
    let (purpose, host) = (&plan.purpose, origin(&plan.origin));
    say(&format!("{} ", style.bold(word!("Plan"))), "     ", &say!("{purpose}, for {host}"));
    for line in &plan.budget {
        let head = word!("budget ");
        say(head, &" ".repeat(places(head)), line);
    }
    for (at, planned) in plan.steps.iter().enumerate() {
        let step = &planned.step;
        let title = format!("{} = {}", step.request.name, step.request.to.join("|"));
        let head = if planned.title.is_empty() { String::new() } else { format!("({})", planned.title) };
        say(&format!("\n{:>2}. {} ", at + 1, style.bold(&title)), "    ", &head);
        if let Some(why) = &planned.no_effect {
            say("      ", "        ", &say!("No effect: {why}", why = why.words()));
        }
        for line in grouped(&step.changes) {
            say("      ", "        ", &line);
        }
        if let Some(later) = &step.later {
            say("      ", "        ", &say!("not there yet: {later}"));
        }
        for why in &step.left_out {
            say(&say!("      left out: "), "        ", why);
        }
        // What changes nothing has no price and no risk.
        if planned.no_effect.is_some() || (step.changes.is_empty() && step.later.is_none()) {
            continue;
        }
        let mut field = |name: &str, words: &str| {
            if !words.is_empty() {
                say(&format!("      {} ", style.dim(&padded(name, 6))), "             ", words);
            }
        };
        field(word!("why"), &step.request.reason);
        field(word!("price"), &planned.price);
        field(word!("risk"), &planned.risk);
        field(word!("undo"), undo_words(planned));
        step.notes.iter().for_each(|note| field(word!("reach"), note));
        planned.also_set_by.iter().for_each(|who| field(word!("also"), &say!("{who}: it may overrule this")));
    }
    if let Some(boot) = &plan.boot {
        boot_text(&mut say, boot, style);
    }
    let mut list = |title: &str, lines: &[String]| {
        if !lines.is_empty() {
            say(&format!("\n{}", style.bold(title)), "", "");
            lines.iter().for_each(|line| say("  - ", "    ", line));
        }
    };
    list(word!("Not possible here"), &plan.refused);
    list(word!("Not possible at boot"), plan.no_boot_because.as_slice());
    list(word!("Only a reboot, the firmware or the hypervisor can"), &plan.beyond);
    out
}

fn undo_words(planned: &PlannedStep) -> &'static str {
    match planned.reversible {
        Reversible::Exactly => word!("exact: the old value is journaled first"),
        Reversible::ByItself => word!("by itself: it ends with the process that holds it"),
        Reversible::ByReboot => word!("only a reboot restores everything"),
    }
}

fn boot_text(say: &mut impl FnMut(&str, &str, &str), boot: &PlannedBoot, style: Style) {
    say(
        &format!("\n{} ", style.bold(word!("At the next boot"))),
        "",
        &say!("{arguments} by {loader}", arguments = boot.arguments.join(" "), loader = boot.loader),
    );
    for strange in &boot.unknown {
        let what = say!(
            "{strange} is not a kernel parameter wakewatt knows (--any-boot-argument); make sure who wants it, and what it does"
        );
        say(&format!("      {} ", style.red(word!("WARNING"))), "        ", &what);
    }
    for file in &boot.files {
        let what = if file.after.is_none() {
            word!("goes")
        } else if file.before.is_none() {
            word!("is made")
        } else {
            word!("changes")
        };
        say("      ", "        ", &format!("{} {what}", file.path));
        let had: Vec<&str> = file.before.as_deref().unwrap_or("").lines().collect();
        for line in file.after.as_deref().unwrap_or("").lines().filter(|l| !had.contains(l)) {
            say("        + ", "          ", line);
        }
    }
    for command in &boot.commands {
        say(&say!("      runs "), "           ", command);
    }
    say(&say!("      try once: "), "        ", &boot.try_once);
    for note in &boot.notes {
        say("      ", "        ", note);
    }
}

/// Equal changes on one line: `CPUs 0-63: schedutil -> performance`, or the value alone where it is there.
fn grouped(changes: &[Change]) -> Vec<String> {
    let mut groups: BTreeMap<(String, String, bool), (CpuSet, Vec<String>)> = BTreeMap::new();
    let mut order = Vec::new();
    for change in changes {
        let key = (change.before_shown.clone(), change.to_shown.clone(), change.is_so());
        if !groups.contains_key(&key) {
            order.push(key.clone());
        }
        let group = groups.entry(key).or_default();
        group.0 = group.0.union(&change.cpus);
        group.1.push(change.place.clone());
    }
    let line = |key: &(String, String, bool)| {
        let (cpus, places) = &groups[key];
        let at = match (cpus.is_empty(), places.len()) {
            (false, _) => say!("CPUs {cpus}"),
            (true, 1..=3) => places.join(", "),
            (true, n) => say!("{places} and {n_more} more", places = places[..2].join(", "), n_more = n - 2),
        };
        if key.2 { format!("{at}: {}", key.1) } else { format!("{at}: {} -> {}", key.0, key.1) }
    };
    order.iter().map(line).collect()
}
