//! Every number of the report as text, with its label and its window, before any layout.
//!
//! The three formats read this and nothing else, so a number cannot differ between them. Text is plain here: escaping
//! is the format's business (HTML by the template engine, figures by their writer).

use super::{Report, words};
use serde::Serialize;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::kept_words;
use wakewatt_core::samples::Samples;

mod beside;
mod break_even;
mod cores;
mod costs;
mod disk;
mod energy;
mod experiment;
mod findings;
pub(crate) mod fitted;
pub(super) mod fleet;
mod found;
mod idle;
mod load;
mod memory;
mod order;
mod metrics;
mod pings;
mod ramp;
pub(super) mod replay;
pub(super) mod rollout;
mod samples;
pub(super) mod simulated;
pub(super) mod section;
mod study;
mod timeline;
mod todo;
mod waker;
mod work;

use super::figure::Figure;
use super::table::{Table, heads};
pub(super) use findings::{FindingView, Ruled, how_to_apply};
pub(super) use section::Section;
pub(super) use todo::Todo;
use wakewatt_words::{say, told, word};

/// A big number at the top.
#[derive(Debug, Serialize)]
pub(super) struct Headline {
    pub(super) value: String,
    pub(super) name: String,
    pub(super) note: String,
    pub(super) label: &'static str,
    pub(super) arm: Option<usize>,
}

/// What the experiment shows.
#[derive(Debug, Default, Serialize)]
pub(super) struct ExperimentView {
    pub(super) arms: Vec<(String, String, Vec<String>)>,
    pub(super) distributions: Vec<Figure>,
    pub(super) forest: Option<Figure>,
    pub(super) rounds: Vec<Figure>,
    pub(super) effects: Table,
    /// The tail, and what the arms changed beside what was compared.
    pub(super) beside: Vec<Table>,
    pub(super) pooled: Table,
    pub(super) blocks: Table,
    pub(super) changed: Table,
    pub(super) is_restored: bool,
}

/// The whole report as text.
#[derive(Debug, Serialize)]
pub(super) struct View {
    pub(super) title: String,
    pub(super) generated_at: String,
    pub(super) version: String,
    pub(super) origin: String,
    pub(super) kind: &'static str,
    pub(super) sentence: String,
    pub(super) how_sure: String,
    pub(super) busy: Option<String>,
    pub(super) warnings: Vec<String>,
    /// The one thing to do; none where no rule was asked.
    pub(super) todo: Option<todo::Todo>,
    pub(super) headlines: Vec<Headline>,
    pub(super) experiment: Option<ExperimentView>,
    /// Is everything back that doctor turned? None where it turned nothing.
    pub(super) is_restored: Option<bool>,
    pub(super) trace: Option<super::trace::view::TraceView>,
    pub(super) idle_tables: Vec<Table>,
    /// What was measured beside the experiment; those that the user asked for first.
    pub(super) sections: Vec<Section>,
    pub(super) findings: Vec<FindingView>,
    /// How to use the findings' commands; none where there are none.
    pub(super) how_to_apply: Option<&'static str>,
    pub(super) no: Vec<Ruled>,
    pub(super) cannot_tell: Vec<Ruled>,
    pub(super) not_seen: Vec<String>,
    pub(super) as_found: Table,
    pub(super) sheets: Vec<Table>,
    pub(super) method: Vec<(String, String)>,
}

impl View {
    /// All figures, in reading order.
    pub(super) fn into_figures(self) -> Vec<Figure> {
        let mut all: Vec<Figure> = Vec::new();
        if let Some(run) = self.experiment {
            all.extend(run.distributions);
            all.extend(run.rounds);
            all.extend(run.forest);
        }
        all.extend(self.trace.and_then(|t| t.heat));
        all.extend(self.sections.into_iter().flat_map(|s| s.figures));
        all
    }
}

/// Turns a report into text.
pub(super) fn of(report: &Report) -> View {
    let verdict = report.verdict();
    let evidence = &report.evidence;
    let zero_at_ns = zero_at_ns(evidence);
    let experiment = evidence.samples.experiment.as_ref().map(|run| experiment::view(run, "", zero_at_ns));
    let others = sections(evidence, zero_at_ns);
    // Beside an experiment it is where that began. On a page the numbers are among the raw ones; alone it is what was asked for.
    let found = experiment.is_none().then(|| found::section(evidence, zero_at_ns)).flatten();
    let found = found.map(|section| Section { tables: Vec::new(), is_result: others.is_empty(), ..section });
    let (findings, no, cannot_tell) = findings::answers(&report.rulings);
    let is_restored = is_restored(evidence);
    View {
        todo: todo::of(&findings, report.rulings.len(), cannot_tell.len(), is_restored),
        title: report.title.clone(),
        generated_at: match report.generated_at.split_once(", of ") {
            Some((now, origin)) => say!("{now}, of {origin}", origin = kept_words::shown(origin)),
            None => report.generated_at.clone(),
        },
        version: report.version.clone(),
        origin: kept_words::shown(&evidence.facts.origin),
        kind: verdict.kind.word(),
        sentence: verdict.sentence,
        how_sure: verdict.how_sure + &chosen(&report.evidence),
        busy: verdict.busy,
        warnings: verdict.warnings,
        headlines: experiment::headlines(evidence),
        is_restored,
        experiment,
        trace: evidence.samples.trace.as_ref().map(|traced| super::trace::view::of(traced, false)),
        idle_tables: idle::tables(evidence),
        as_found: found::as_found(evidence, zero_at_ns),
        sections: found.into_iter().chain(others).chain(costs(report)).collect(),
        how_to_apply: findings.iter().any(|f| !f.commands.is_empty()).then(how_to_apply),
        findings,
        no,
        cannot_tell,
        not_seen: not_seen(report),
        sheets: report
            .host_sheets
            .iter()
            .map(|(topic, sheet)| samples::sheet_table(told(topic.title), sheet))
            .collect(),
        method: samples::method(evidence, zero_at_ns),
    }
}

/// What a command that measures shows of it: the samples as found are a section there, beside those of the page.
pub(super) fn measured(evidence: &Evidence) -> Vec<Section> {
    let zero_at_ns = zero_at_ns(evidence);
    found::section(evidence, zero_at_ns).into_iter().chain(sections(evidence, zero_at_ns)).collect()
}

/// In reading order: what the user asked to have measured, then what the machine is like. One line for each kind of sample.
fn sections(evidence: &Evidence, zero_at_ns: u64) -> Vec<Section> {
    let Samples {
        // These stand outside these sections: as found, the experiment, the trace, and between the idle tables.
        wakeups: _,
        network: _,
        trace: _,
        experiment: _,
        // These go by evidence: which loads belong to a planned experiment, its own comparisons hang on.
        conclusions: _,
        load: _,
        timelines: _,
        icmp,
        work,
        memory,
        cores,
        disk,
        disk_experiment,
        speed,
        idle_states,
        experiments,
        energy,
        replays,
    } = &evidence.samples;
    let mut all: Vec<Section> = study::section(evidence).into_iter().collect();
    all.extend(evidence.samples.experiment.as_ref().and_then(waker::section));
    all.extend(evidence.samples.experiment.as_ref().and_then(order::section));
    all.extend(load::sections(evidence));
    all.extend(timeline::section(evidence));
    all.extend(replays.iter().enumerate().map(|(at, replayed)| replay::section(replayed, &format!("replay-{at}-"))));
    for (i, run) in experiments.iter().enumerate() {
        let title = run.metrics.first().map_or(word!("Experiment").to_string(), |m| say!("Experiment: {}", m.title));
        all.push(experiment::section(run, &format!("experiment-{i}-"), &title, zero_at_ns));
    }
    if let Some(run) = disk_experiment {
        all.push(experiment::section(run, "disk-experiment-", word!("Disk reads under each setting"), zero_at_ns));
    }
    all.extend(pings::section(icmp, zero_at_ns));
    all.extend(work.as_ref().and_then(|sample| work::section(sample, zero_at_ns)));
    all.extend(costs::section(idle_states));
    all.extend(ramp::section(speed));
    all.extend(memory.as_ref().and_then(memory::section));
    all.extend(cores::section(cores));
    all.extend(disk::section(disk));
    all.extend(energy::section(energy));
    all
}

/// What the measured watts cost, where that was asked for.
fn costs(report: &Report) -> Option<Section> {
    let lines = report.rates.sentences(&report.evidence);
    (!lines.is_empty()).then(|| Section { remarks: lines.clone(), lines, ..Section::new(word!("What it costs")) })
}

/// The first moment anything was measured: windows are counted from it.
fn zero_at_ns(evidence: &Evidence) -> u64 {
    let blocks = evidence.samples.experiment.iter().flat_map(|run| &run.blocks).map(|b| b.window);
    let wakeups = evidence.samples.wakeups.iter().map(|s| s.window);
    let network = evidence.samples.network.iter().map(|s| s.window);
    let icmp = evidence.samples.icmp.iter().map(|s| s.window);
    let work = evidence.samples.work.iter().map(|s| s.window);
    blocks.chain(wakeups).chain(network).chain(icmp).chain(work).map(|w| w.start_at_ns).min().unwrap_or(0)
}

fn is_restored(evidence: &Evidence) -> Option<bool> {
    let runs = super::verdict::turned(evidence);
    (!runs.is_empty()).then(|| runs.iter().all(|run| run.is_restored()))
}

/// Why these settings were turned and no others.
fn chosen(evidence: &Evidence) -> String {
    match &evidence.chosen_because[..] {
        [] => String::new(),
        all => {
            let all: Vec<String> = all.iter().map(|why| kept_words::shown(why)).collect();
            say!(" Tested for the largest potential gain: {}.", words::clauses(&all))
        }
    }
}

/// What was not done, then every file that is there and could not be used.
fn not_seen(report: &Report) -> Vec<String> {
    let mut all: Vec<String> = report.evidence.not_done.iter().map(ToString::to_string).collect();
    for sample in &report.evidence.samples.network {
        if let Err(why) = &sample.split {
            all.push(say!("split of the {} round trip: {why}", sample.transport.word()));
        }
    }
    for (topic, sheet) in &report.host_sheets {
        for (row, gap) in sheet.troubles() {
            all.push(format!("{}, {}: {} ({})", told(topic.title), row.label, gap, told(gap.kind.word())));
        }
    }
    let mut unique: Vec<String> = Vec::new();
    for line in all.iter().map(|line| words::sentence_case(line)) {
        if !unique.contains(&line) {
            unique.push(line);
        }
    }
    unique
}
