//! The report: one run, shown so that a reader who does not believe it can check it.
//!
//! Data flows one way: [`Report`] (what is known) -> [`verdict`] (what may be said) -> `view` (every number as text
//! with its label and its window) -> a format. `html`, `markdown` and `text` only lay out; none of them computes, so the
//! three can never disagree. To add a format: write one file that takes a [`Report`], add one line here.
//!
//! What the page owes a sceptic: the sentence first, how sure next, then every round in the order it ran, so that the
//! statistics are seen to follow from the data; then what was changed and put back, and what could not be seen.

use wakewatt_core::cost::Rates;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::facts::{Snapshot, Topic};
use wakewatt_core::rules::{Answer, Ruling, judge};
use wakewatt_core::samples::study::Study;
use wakewatt_core::sheet::Sheet;
use wakewatt_words::{Language, say, within, word};

pub mod charts;
mod data;
pub mod export;
mod figure;
mod finish;
pub mod fleet;
pub mod gate;
pub mod html;
pub mod json;
pub mod markdown;
#[cfg(feature = "agent")]
pub(crate) mod node;
pub mod modelled;
mod named;
pub mod replay;
pub(crate) mod replication;
pub mod rollout;
pub mod sample;
pub mod busy;
pub(crate) mod study_sentences;
mod table;
mod template;
pub mod terminal;
pub mod text;
pub mod trace;
pub mod verdict;
mod view;
mod words;

pub(crate) use view::fitted;
pub(crate) use words::value as value_words;

/// The heading of a report on this host: its processor and how many CPUs are online.
pub fn title(facts: &Snapshot) -> String {
    let n = facts.cpus.online.get().map_or(0, CpuSet::len);
    let cpu = facts.topology.processor().map_or(word!("unknown processor").to_string(), ToString::to_string);
    say!("{cpu}, {n} CPU{}", if n == 1 { "" } else { "s" })
}

/// Words of the report that stand in templates and constants, or that decide something as well and are translated where shown.
pub(crate) fn spoken_tables() -> Vec<(&'static str, &'static str)> {
    const LABELS: [&str; 24] = [
        "timer",
        "measured",
        "modelled",
        "claimed",
        "unavailable",
        "present but dead",
        "counter",
        "problem",
        "risk",
        "note",
        "high",
        "medium",
        "low",
        "look",
        "apply",
        "undo",
        "min",
        "mean",
        "max",
        "absent",
        "denied",
        "malformed",
        "unreadable",
        "not recorded",
    ];
    let words = LABELS.iter().chain(words::COUNTED).map(|word| ("words of the report", *word));
    let words = words.chain(view::fitted::LEVEL_HEADS.iter().map(|head| ("heads of tables", *head)));
    let words = words.chain(named::NAMES.iter().map(|name| ("names in run files", *name)));
    words.chain(template::spoken().into_iter().map(|text| ("templates of the report", text))).collect()
}

/// Everything a report is made of. It knows no clock: the time of writing is passed in.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Heading, e.g. the host's name as the user wants it shown.
    pub title: String,
    /// When it was written, as it shall be printed.
    pub generated_at: String,
    /// The version of wakewatt that made it.
    pub version: String,
    /// Facts, samples and the experiment.
    pub evidence: Evidence,
    /// Every rule's answer, findings first, already ranked.
    pub rulings: Vec<Ruling>,
    /// The host's facts as rows, one sheet per topic.
    pub host_sheets: Vec<(Topic, Sheet)>,
    /// What watts cost; nothing is priced unless asked for.
    pub rates: Rates,
}

impl Report {
    /// A report of this evidence; the sheets are taken from its facts.
    pub fn new(
        title: impl Into<String>,
        generated_at: impl Into<String>,
        evidence: Evidence,
        rulings: Vec<Ruling>,
    ) -> Report {
        let host_sheets = evidence.facts.sheets();
        let version = env!("CARGO_PKG_VERSION").to_string();
        let (title, generated_at, rates) = (title.into(), generated_at.into(), Rates::default());
        Report { title, generated_at, version, evidence, rulings, host_sheets, rates }
    }

    /// The one sentence, with how sure and what to be warned of.
    pub fn verdict(&self) -> verdict::Verdict {
        verdict::of(&self.evidence, &self.rulings)
    }

    /// The self-contained page.
    pub fn to_html(&self) -> anyhow::Result<String> {
        self.spoken(html::render)
    }

    /// The same for a ticket.
    pub fn to_markdown(&self) -> String {
        self.spoken(markdown::render)
    }

    /// The same as the JSON document of `doctor` or `report`, which `command` names.
    pub fn to_json(&self, command: &str) -> anyhow::Result<String> {
        json::render(self, command)
    }

    /// The terminal summary.
    pub fn to_text(&self, style: text::Style) -> String {
        self.spoken(|report| text::render(report, style))
    }

    /// Renders in the language of the person at it.
    fn spoken<T>(&self, render: impl FnOnce(&Report) -> T) -> T {
        if wakewatt_words::wanted() == wakewatt_words::language() {
            return render(self);
        }
        wakewatt_words::spoken(|| render(&self.translated()))
    }

    /// The same in the language in force: rules are asked once more, since an answer is made of words. What findings rest on
    /// keeps the places that an import has cited: those that rules do not say themselves.
    fn translated(&self) -> Report {
        let mut report = self.clone();
        named::translate(&mut report.evidence);
        let facts = &report.evidence.facts;
        if report.title == within(Language::English, || title(facts)) {
            report.title = title(facts);
        }
        report.host_sheets = facts.sheets();
        let own = within(Language::English, || judge(&self.evidence));
        let mut again = judge(&report.evidence);
        for ruling in &mut report.rulings {
            let Some(at) = again.iter().position(|r| r.rule == ruling.rule) else { continue };
            let old = std::mem::replace(ruling, again.swap_remove(at));
            if let (Answer::Yes(new), Answer::Yes(old)) = (&mut ruling.answer, old.answer) {
                let own = own.iter().find(|own| own.rule == ruling.rule).map(|own| &own.answer);
                let own = if let Some(Answer::Yes(own)) = own { &own.evidence[..] } else { &[] };
                if old.evidence.len() != new.evidence.len() || own.len() != new.evidence.len() {
                    new.evidence = old.evidence;
                    continue;
                }
                for ((new, old), own) in new.evidence.iter_mut().zip(old.evidence).zip(own) {
                    if old.path != own.path {
                        new.path = old.path;
                    }
                }
            }
        }
        let samples = &mut report.evidence.samples;
        if let (Some(conclusions), Some(run)) = (&mut samples.conclusions, &samples.experiment) {
            let study = Study { conclusions: conclusions.clone(), run: run.clone(), loads: Vec::new() };
            conclusions.sentences = study_sentences::of(&study);
        }
        report
    }
}

#[cfg(test)]
mod chinese;
