//! `doctor --preflight`: two seconds before a benchmark, as text or a document, and a code for the job.

mod text;

use crate::cli::{DoctorArgs, Required};
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupt;
use crate::output::{self, Colour};
use crate::progress::Progress;
use crate::view::Style;
use anyhow::Result;
use serde::Serialize;
use text::{percent, shown_name, text};
use wakewatt_host::affinity::allowed_cpus;
use wakewatt_lab::preflight::{Fitness, Looked, Matter, Preflight, preflight};
use wakewatt_words::{say, spoken, word};

/// What is printed.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Document {
    /// What two seconds showed.
    #[serde(flatten)]
    found: Preflight,
    /// What `--require` asked for and is not so, in sentences; empty where the machine is fit.
    unfit_because: Vec<String>,
}

pub(super) fn run(args: &DoctorArgs, colour: Colour) -> Result<Code> {
    let interrupt = Interrupt::listen()?;
    let src = crate::cmd::open(&args.from)?;
    let allowed = allowed_cpus()
        .map_err(|e| Failure::error(Code::CouldNotMeasure, format!("cannot tell which CPUs may be used: {e}")))?;
    let bar = Progress::start("preflight");
    let look = || {
        let found = preflight(interrupt.lab(&*src, &bar), &allowed);
        Document { unfit_because: args.require.iter().filter_map(|r| unfit(*r, &found)).collect(), found }
    };
    // What was found is told where it is found, and a document is English.
    let document = if args.json { look() } else { spoken(look) };
    drop(bar);
    let is_measured = document.found.self_difference.is_some();
    let code = match (interrupt.is_set(), document.unfit_because.is_empty()) {
        (true, _) => Code::Interrupted,
        (_, false) => Code::Findings,
        _ if is_measured => Code::Fine,
        _ => Code::CouldNotMeasure,
    };
    let shown = match args.json {
        true => output::json("doctor-preflight", &document).and_then(|text| output::print(&text)),
        false => output::print(&spoken(|| text(&document, Style { is_on: colour.is_on() }, output::width()))),
    };
    Ok(output::settled(shown, code))
}

/// Why what is asked for is not so. Not knowing is not being fit.
fn unfit(required: Required, found: &Preflight) -> Option<String> {
    let over = |what: &str, ratio: Option<f64>, limit: f64| match ratio {
        Some(ratio) if ratio <= limit => None,
        Some(ratio) => Some(say!("{what} {}, {} is allowed", percent(ratio), percent(limit))),
        None => Some(say!("{what} an amount that is not known here")),
    };
    match required {
        Required::SelfDifference(limit) => {
            let at_most = found.self_difference.as_ref().map(|d| d.at_most_ratio);
            over(word!("the machine may differ from itself by"), at_most, limit)
        }
        Required::Quiet => {
            let is_noisy = |l: &&Looked| match l.matter {
                // Not knowing who else works is not being quiet. That a guest is not told of steal is what most are.
                Matter::Others => l.fitness != Fitness::Good,
                Matter::Steal | Matter::Heat => l.fitness == Fitness::Noisy,
                _ => false,
            };
            let noisy: Vec<String> =
                found.looked.iter().filter(is_noisy).map(|l| format!("{}: {}", shown_name(l.matter), l.says)).collect();
            (!noisy.is_empty()).then(|| noisy.join("; "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::width::places;
    use wakewatt_words::{Language, within};

    #[test]
    fn what_is_required_and_not_known_is_unfit() {
        let found = Preflight {
            self_difference: None,
            not_measured_because: Some("stopped".into()),
            steal_ratio: None,
            foreign_ratio: None,
            n_throttles: 0,
            looked: vec![Looked { matter: Matter::Others, fitness: Fitness::Noisy, says: "9 %".into(), remedy: None }],
            took_ns: 1,
        };
        assert!(unfit(Required::SelfDifference(0.5), &found).unwrap().contains("not known"));
        assert_eq!(unfit(Required::Quiet, &found).unwrap(), "others: 9 %");
        assert_eq!(unfit(Required::Quiet, &Preflight { looked: vec![], ..found }), None);
    }

    #[test]
    fn in_chinese_nothing_is_english_and_the_columns_are_straight() {
        let matters = [Matter::Governor, Matter::Smt, Matter::Steal];
        let fitness = [Fitness::Good, Fitness::Noisy, Fitness::Unknown];
        let looked = |(matter, fitness)| Looked { matter, fitness, says: "|".into(), remedy: None };
        let found = Preflight {
            self_difference: None,
            not_measured_because: None,
            steal_ratio: None,
            foreign_ratio: None,
            n_throttles: 0,
            looked: matters.into_iter().zip(fitness).map(looked).collect(),
            took_ns: 1,
        };
        let document = Document { unfit_because: vec![], found };
        for language in [Language::English, Language::Chinese] {
            let text = within(language, || text(&document, Style { is_on: false }, 80));
            let at: Vec<usize> = text.lines().filter_map(|l| Some(places(l.split_once('|')?.0))).collect();
            assert!(at.len() == 3 && at.iter().all(|n| *n == at[0] && *n >= 20), "{at:?}: {text}");
        }
        let said = within(Language::Chinese, || unfit(Required::SelfDifference(0.5), &document.found).unwrap());
        assert!(!said.contains("known"), "{said}");
    }
}
