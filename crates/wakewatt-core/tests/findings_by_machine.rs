//! Every rule on every recorded machine: one table, so that a change to a rule shows on whom it falls.
//!
//! A rule is easily right on the machine it was written for and false on the next. The golden file
//! `fixtures/golden/findings.md` has a row for each rule and a column for each machine of `fixtures/hosts`; what a recording
//! alone allows is judged, nothing is measured. Below the table stands why: each yes with the evidence that it gives itself, so
//! that the reasons cannot drift from the rules. A change that is meant: `UPDATE_EXPECT=1 cargo test -p wakewatt-core --test
//! findings_by_machine`, and the diff is read like code. After a merge that conflicts there, run it again.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // The bans are for core itself; a test may read files.

use expect_test::expect_file;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use wakewatt_core::evidence::Evidence;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::record::host_file;
use wakewatt_core::rules::{Answer, Finding, RULES, Ruling, Weight, judge};
use wakewatt_words::{Language, within};

/// What stands above the table.
const HEAD: &str = "\
# Findings by machine

Every rule on every recorded machine of `fixtures/hosts`, facts only. **P** problem, **R** risk, **N** note, `-` no, `/` does not apply, `?` cannot tell.
Below the table each yes has its reason: the finding's title, and in brackets what it rests on, as the finding itself lists it. Made by `core/tests/findings_by_machine.rs`; TESTING.md says how to accept a change.

";

fn hosts() -> Vec<(String, PathBuf)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let recorded = files.filter(|path| path.extension().is_some_and(|e| e == "host"));
    let mut hosts: Vec<(String, PathBuf)> =
        recorded.map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), path)).collect();
    hosts.sort();
    hosts
}

/// What a recording tells.
fn evidence(name: &str, path: &Path) -> Evidence {
    let tree = host_file::read(&std::fs::read_to_string(path).unwrap(), name).unwrap();
    Evidence { facts: Snapshot::read(&tree, |_| true), ..Evidence::default() }
}

/// One machine: what each rule answers.
fn answers(name: &str, path: &Path) -> BTreeMap<&'static str, Answer> {
    let evidence = evidence(name, path);
    RULES.iter().map(|rule| (rule.id(), rule.answer(&evidence))).collect()
}

fn sign(answer: &Answer) -> &'static str {
    match answer {
        Answer::No { .. } => "-",
        Answer::DoesNotApply { .. } => "/",
        Answer::CannotTell { .. } => "?",
        Answer::Yes(finding) => match finding.weight {
            Weight::Problem => "**P**",
            Weight::Risk => "**R**",
            Weight::Note => "**N**",
        },
    }
}

/// "- rule (N, high): title [path: says; path: says]", a line of the list.
fn reason(finding: &Finding) -> String {
    let sign = format!("{:?}, {:?}", finding.weight, finding.confidence).to_lowercase();
    let on: Vec<String> = finding.evidence.iter().map(|basis| format!("{}: {}", basis.path, basis.says)).collect();
    let rule = finding.id.trim_start_matches("rule.");
    format!("- **{rule}** ({sign}): {} [`{}`]", finding.title, on.join("; ").replace('`', "'"))
}

#[test]
fn the_table_of_rules_and_machines() {
    let machines: Vec<(String, BTreeMap<_, _>)> = std::thread::scope(|threads| {
        let start = |(name, path): (String, PathBuf)| threads.spawn(move || (name.clone(), answers(&name, &path)));
        let started: Vec<_> = hosts().into_iter().map(start).collect();
        started.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(machines.len() >= 16, "fewer machines than there were");
    let mut table = String::from(HEAD);
    let names: Vec<&str> = machines.iter().map(|(name, _)| name.as_str()).collect();
    let _ = writeln!(table, "| rule | {} |", names.join(" | "));
    let _ = writeln!(table, "|---|{}", "---|".repeat(names.len()));
    for rule in RULES {
        let signs: Vec<&str> = machines.iter().map(|(_, answers)| sign(&answers[rule.id()])).collect();
        let _ = writeln!(table, "| {} | {} |", rule.id().trim_start_matches("rule."), signs.join(" | "));
    }
    for (name, answers) in &machines {
        let _ = writeln!(table, "\n## {name}\n");
        let findings = RULES.iter().filter_map(|rule| match &answers[rule.id()] {
            Answer::Yes(finding) => Some(finding),
            Answer::No { .. } | Answer::DoesNotApply { .. } | Answer::CannotTell { .. } => None,
        });
        let mut n_above_a_note = 0;
        for finding in findings {
            n_above_a_note += usize::from(finding.weight < Weight::Note);
            assert!(!finding.evidence.is_empty(), "{name}: {} rests on nothing", finding.id);
            let _ = writeln!(table, "{}", reason(finding));
        }
        assert!(
            n_above_a_note <= 3,
            "{name}: {n_above_a_note} findings above a note, on a machine with stock settings"
        );
    }
    expect_file!["../../../fixtures/golden/findings.md"].assert_eq(&table);
}

/// What a person reads of an answer, each with what it is.
fn texts(ruling: &Ruling) -> Vec<(&'static str, String)> {
    let mut all = vec![("question", ruling.question.clone())];
    match &ruling.answer {
        Answer::No { because } | Answer::DoesNotApply { because } => all.push(("because", because.clone())),
        Answer::CannotTell { because, try_this } => {
            all.extend([("because", because.clone()), ("try this", try_this.to_string())]);
        }
        Answer::Yes(f) => {
            let own = [("title", &f.title), ("cost", &f.cost.text), ("remedy", &f.remedy), ("price", &f.price)];
            all.extend(own.map(|(what, text)| (what, text.clone())));
            all.push(("verify", f.verify.clone()));
            all.extend(f.evidence.iter().flat_map(|b| [("where", b.path.clone()), ("says", b.says.clone())]));
            all.extend(f.plan.iter().flat_map(|p| p.steps()).map(|step| ("reason", step.reason.clone())));
        }
    }
    all
}

/// What an answer decides, whatever words it is said in.
fn decided(ruling: &Ruling) -> String {
    let Answer::Yes(f) = &ruling.answer else {
        return format!("{} {}", ruling.rule, sign(&ruling.answer));
    };
    let steps = f.plan.iter().flat_map(|p| p.steps()).map(|s| (&s.knob, &s.on, &s.to, &s.path));
    let cost = (f.cost.basis, f.cost.latency_ns, f.cost.throughput_ratio);
    let commands = f.plan.as_ref().map(|p| p.commands());
    format!("{} {:?} {:?} {cost:?} {:?} {commands:?}", f.id, f.weight, f.confidence, steps.collect::<Vec<_>>())
}

/// Four or more plain lower-case words in a row, unless they are a command to type.
fn english_in(text: &str) -> Option<String> {
    let mut run: Vec<&str> = Vec::new();
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase());
    for word in text.split(' ').chain([""]) {
        // The last word of a run may carry the stop behind it.
        let bare = word.trim_end_matches(['.', ',', ';', ':', '?', ')']);
        if is_word(bare) {
            run.push(bare);
        }
        if !is_word(bare) || bare != word {
            if run.len() >= 4 && !matches!(run[0], "wakewatt" | "sudo") {
                return Some(run.join(" "));
            }
            run.clear();
        }
    }
    None
}

#[test]
fn every_rule_says_the_same_in_chinese() {
    assert_eq!(english_in("the CPU is busy and does little.").as_deref(), Some("is busy and does little"));
    assert_eq!(english_in("重启之后 wakewatt inspect idle boot"), None);
    let mut left: Vec<String> = Vec::new();
    for (name, path) in hosts() {
        let evidence = evidence(&name, &path);
        let english = judge(&evidence);
        let chinese = within(Language::Chinese, || judge(&evidence));
        let decide = |all: &[Ruling]| all.iter().map(decided).collect::<Vec<_>>();
        assert_eq!(decide(&english), decide(&chinese), "{name}: a word decides something");
        for ruling in &chinese {
            let found = within(Language::Chinese, || texts(ruling));
            for (what, text) in found.iter().filter_map(|(what, text)| Some((what, english_in(text)?))) {
                left.push(format!("{} ({what}): {text}", ruling.rule));
            }
        }
    }
    left.sort();
    left.dedup();
    assert!(left.is_empty(), "English in Chinese answers:\n{}", left.join("\n"));
}
