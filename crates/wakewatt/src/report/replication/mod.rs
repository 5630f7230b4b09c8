//! Joined sessions in words: what they say together, each by itself, and what weakens it.

mod page;

pub(crate) use page::html;

use super::words;
use crate::view::Style;
use crate::view::wrap::wrap;
use std::fmt::Write as _;
use wakewatt_core::compare::replication::{Caveat, JoinedEffect, Replication};
use wakewatt_core::samples::experiment::Verdict;
use wakewatt_words::{say, word};

/// Effects of secondary metrics shown; JSON has all.
const N_SECONDARY: usize = 12;

/// All of it.
pub(crate) fn text(found: &Replication, style: Style, width: usize) -> String {
    wakewatt_words::spoken(|| spoken_text(found, style, width))
}

fn spoken_text(found: &Replication, style: Style, width: usize) -> String {
    let mut out = String::new();
    let mut say = |first: &str, rest: &str, words: &str| {
        let _ = writeln!(out, "{}", wrap(first, rest, words, width));
    };
    let plan = found.plan.as_ref().map_or(String::new(), |plan| format!("{plan}: "));
    say("", "", &format!("{plan}{}", who(found)));
    let (primary, secondary): (Vec<_>, Vec<_>) = found.effects.iter().partition(|e| e.is_primary);
    let n_shown = secondary.len().min(N_SECONDARY);
    for (title, effects) in
        [(word!("Together"), &primary[..]), (word!("Secondary, each for itself"), &secondary[..n_shown])]
    {
        if effects.is_empty() {
            continue;
        }
        say(&format!("\n{}", style.bold(title)), "", "");
        for effect in effects {
            say("  - ", "    ", &sentence(effect));
            say("    ", "      ", &apart(effect));
            say("    ", "      ", &scatter(effect));
        }
    }
    if n_shown < secondary.len() {
        say("  ", "  ", &say!("… and {} more in --json", secondary.len() - n_shown));
    }
    let caveats = found.caveats.iter().map(|caveat| caveat_words(*caveat, found));
    let left_out = found.left_out.iter().map(|l| format!("{}: {}", l.name, l.why));
    for (title, lines) in [(word!("To know"), caveats.collect::<Vec<_>>()), (word!("Left out"), left_out.collect())] {
        if !lines.is_empty() {
            say(&format!("\n{}", style.bold(title)), "", "");
            lines.iter().for_each(|line| say("  - ", "    ", line));
        }
    }
    out
}

/// `3 sessions of 1 host, 2 boots`.
fn who(found: &Replication) -> String {
    let boots = found.n_boots.map_or(String::new(), |n| format!(", {}", words::plural(n, "boot")));
    let hosts = words::plural(found.n_hosts, "host");
    say!("{} of {hosts}{boots}", words::plural(found.sessions.len(), "session"))
}

/// What the sessions say together.
fn sentence(effect: &JoinedEffect) -> String {
    let interval = effect.ratio_low.zip(effect.ratio_high).map_or(word!("no interval").into(), |(low, high)| {
        format!("{}, {}", words::ratio_interval(low, high), words::interval_of(effect.covers))
    });
    let verdict = match effect.verdict {
        Verdict::Higher | Verdict::Lower => "differs",
        Verdict::NoDifference => word!("no difference worth a word"),
        Verdict::Undecided => word!("undecided"),
    };
    say!(
        "{}: {verdict}; with “{}” {} times what it is with “{}” ({interval})",
        effect.metric.title,
        effect.baseline,
        words::ratio(effect.ratio),
        effect.arm,
    )
}

/// Each session by itself.
fn apart(effect: &JoinedEffect) -> String {
    let one = |s: &wakewatt_core::compare::replication::SessionEffect| {
        let interval = words::ratio_interval(s.ratio_low, s.ratio_high);
        format!("{} {} ({interval}, {})", s.name, words::ratio(s.ratio), words::plural(s.n_rounds, "round"))
    };
    let each: Vec<String> = effect.sessions.iter().map(one).collect();
    say!("each run by itself: {}", words::listed(&each))
}

fn scatter(effect: &JoinedEffect) -> String {
    let percent = |ln: f64| words::percent(ln.exp() - 1.0);
    let (upper, lower) = match effect.covers {
        wakewatt_core::covers::Covers::Machines => (word!("host to host"), word!("session to session")),
        _ => (word!("session to session"), word!("round to round")),
    };
    let between = effect.scatter.between_ln.map(|ln| say!("from {upper} {}", percent(ln)));
    let within = effect.scatter.within_ln.map(|ln| say!("from {lower} {}", percent(ln)));
    let any = effect.any_time.map(|any| {
        say!(
            "all rounds as of one run: {}, covers these runs alone",
            words::ratio_interval(any.ratio_low, any.ratio_high)
        )
    });
    let parts: Vec<String> = between.into_iter().chain(within).chain(any).collect();
    words::clauses(&parts)
}

fn caveat_words(caveat: Caveat, found: &Replication) -> String {
    match caveat {
        Caveat::OnlyTwo if found.n_hosts > 1 => {
            word!("Two hosts are one difference between hosts: their interval is 12.7 times its error. A third narrows it most.").into()
        }
        Caveat::OnlyTwo => {
            word!("Two sessions are one difference between sessions: their interval is 12.7 times its error. A third narrows it most.")
                .into()
        }
        Caveat::OneBoot => word!("All sessions are of one boot; what a boot changes is not in the interval.").into(),
        Caveat::CloseTogether => {
            word!("Sessions less than ten minutes apart are taken to resemble each other, so the interval is wide: spread them.").into()
        }
        Caveat::HostsByLooks => {
            word!("Run files name no host: runs with the same processor and memory count as one. Name them where that is wrong: \
             HOST=FILE.")
                .into()
        }
        Caveat::BetweenDominates => {
            word!("In some metric the sessions differ by more than their rounds explain: more sessions narrow that interval, longer \
             ones do not.")
                .into()
        }
    }
}
