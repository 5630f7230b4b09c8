//! What two seconds showed, for people: how much the machine differs from itself, then each thing that was looked at with what to do about it.

use super::Document;
use crate::view::Style;
use crate::view::width::{padded, places};
use crate::view::wrap::wrap;
use std::fmt::Write as _;
use wakewatt_core::units::{show_ns, three_digits};
use wakewatt_lab::preflight::{Fitness, Looked, Matter};
use wakewatt_words::{say, word};

pub(super) fn text(document: &Document, style: Style, width: usize) -> String {
    let found = &document.found;
    let mut out = String::new();
    let headline = match (&found.self_difference, &found.not_measured_because) {
        (Some(d), _) => say!(
            "Two runs of the same may differ by up to {share} here, for no reason but this machine.",
            share = percent(d.at_most_ratio)
        ),
        (None, why) => say!("Not measured: {why}.", why = why.as_deref().unwrap_or(word!("nothing said why"))),
    };
    let _ = writeln!(out, "{}", style.bold(&wrap("", "", &headline, width)));
    if let Some(d) = &found.self_difference {
        let how = say!(
            "Measured: the same work in {n_pairs} pairs of windows of {window}, taking turns on CPU {cpu}: {difference} (95 % interval {low} to {high}). Longest window {worst} over the middle one; {interrupted} of the time went to interruptions, the longest {longest}.",
            n_pairs = d.n_pairs,
            window = show_ns(d.window_ns),
            cpu = d.cpu,
            difference = signed(d.ratio),
            low = signed(d.low_ratio),
            high = signed(d.high_ratio),
            worst = signed(d.worst_window_ratio),
            interrupted = percent(d.interrupted_ratio),
            longest = show_ns(d.longest_ns),
        );
        let _ = writeln!(out, "{}", wrap("", "", &how, width));
        let limit = word!("That is the least: hours, boots and other hosts differ by more. Take turns, and repeat.");
        let _ = writeln!(out, "{}", style.dim(&wrap("", "", limit, width)));
    }
    out.push('\n');
    let heads: Vec<String> = found.looked.iter().map(head).collect();
    // Names are wider in another language.
    let n = heads.iter().map(|head| places(head) + 1).max().unwrap_or(0).max(20);
    for (head, looked) in heads.iter().zip(&found.looked) {
        let _ = writeln!(out, "{}", wrap(&padded(head, n), &" ".repeat(n), &looked.says, width));
        if let Some(remedy) = &looked.remedy {
            let _ = writeln!(out, "{}", wrap(&format!("{:n$}-> ", ""), &" ".repeat(n + 3), remedy, width));
        }
    }
    for why in &document.unfit_because {
        let _ = writeln!(out, "\n{}", style.red(&wrap(word!("Unfit: "), "", &say!("{why}."), width)));
    }
    out
}

/// How it is, and what.
fn head(looked: &Looked) -> String {
    let word = match looked.fitness {
        Fitness::Good => word!("good"),
        Fitness::Noisy => word!("noisy"),
        Fitness::Unknown => word!("unknown"),
    };
    format!("  {} {}", padded(word, 7), shown_name(looked.matter))
}

pub(super) fn shown_name(matter: Matter) -> &'static str {
    match matter {
        Matter::Governor => word!("governor"),
        Matter::Turbo => word!("turbo"),
        Matter::Idle => word!("idle"),
        Matter::Smt => "SMT",
        Matter::Guest => word!("guest"),
        Matter::Steal => word!("steal"),
        Matter::Others => word!("others"),
        Matter::Heat => word!("heat"),
    }
}

pub(super) fn percent(ratio: f64) -> String {
    format!("{} %", three_digits(ratio * 100.0))
}

fn signed(ratio: f64) -> String {
    format!("{:+.2} %", ratio * 100.0)
}
