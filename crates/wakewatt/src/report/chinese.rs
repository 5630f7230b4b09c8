//! Is a page in Chinese in Chinese?
//!
//! Whatever English is left shows as sentences: four words of small letters in a row, outside what is typed (code, pre), paths and
//! style. Names of files, units and settings are single words and stay; so does what is data: reasons that a run file has in English.

use super::text::{self, Style};
use super::{Report, html, sample};
use crate::view::width::{pieces, places};
use std::io::Read as _;
use std::path::Path;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::record::host_file;
use wakewatt_core::record::run_file::RunFile;
use wakewatt_core::rules::judge;
use wakewatt_host::material;
use wakewatt_words::{Language, within};

/// So many English words in a row are a sentence.
const WORDS: usize = 4;
/// Elements whose text is no prose.
const AS_IS: [&str; 3] = ["code", "pre", "style"];

/// What a browser shows and reads out, element by element.
fn shown(html: &str) -> Vec<String> {
    let (mut all, mut as_is) = (Vec::new(), 0usize);
    for piece in html.split_inclusive('>') {
        let (text, tag) = piece.split_at(piece.find('<').unwrap_or(piece.len()));
        if as_is == 0 {
            all.push(text.replace('\u{a0}', " ").replace("&#x2f;", "/"));
        }
        let name = tag.trim_start_matches('<').trim_start_matches('/').split([' ', '>']).next().unwrap_or_default();
        if AS_IS.contains(&name) {
            as_is = if tag.starts_with("</") { as_is.saturating_sub(1) } else { as_is + 1 };
        }
    }
    all
}

/// The words of a text.
fn words(text: &str) -> Vec<&str> {
    text.split([' ', '\n', ',', '.', ';', ':', '(', ')', '"', '\\']).filter(|word| !word.is_empty()).collect()
}

/// The first English sentence of a text, unless it is data.
fn english(text: &str, data: &str) -> Option<String> {
    let is_word = |word: &&str| word.len() > 1 && word.bytes().all(|b| b.is_ascii_lowercase());
    // A line to type is no sentence.
    let is_typed = |run: &[&str]| run.iter().any(|word| matches!(*word, "wakewatt" | "sudo"));
    let is_left = |run: &[&str]| run.iter().all(is_word) && !is_typed(run) && !data.contains(&run.join(" "));
    // What stands before a colon and what behind may be two pieces of data.
    let mut parts = text.split([':', ';', '：', '；']).map(words);
    parts.any(|all| all.windows(WORDS).any(is_left)).then(|| text.trim().to_string())
}

/// What stands in English in the run file, and facts as rows: their labels and what the machine says of itself.
fn data(report: &Report) -> String {
    let mut all = serde_json::to_string(&report.evidence).unwrap();
    for row in report.evidence.facts.sheets().into_iter().flat_map(|(_, sheet)| sheet.rows) {
        let said = row.cell.map_or_else(|gap| gap.to_string(), |cell| cell.to_string());
        all += &format!(" {} {said}", row.label);
    }
    words(&all).join(" ")
}

/// Page and text in Chinese.
fn chinese(report: &Report, width: usize) -> (String, String) {
    within(Language::Chinese, || {
        let report = report.translated();
        (html::render(&report).unwrap(), text::render(&report, Style { width, is_coloured: false }))
    })
}

/// A report of a host that was only looked at.
pub(super) fn recorded(text: &str) -> Report {
    let facts = Snapshot::read(&host_file::read(text, "recorded").unwrap(), |_| true);
    let evidence = Evidence { facts, ..Evidence::default() };
    let rulings = judge(&evidence);
    Report::new(super::title(&evidence.facts), "", evidence, rulings)
}

fn reports() -> Vec<Report> {
    let mut all: Vec<Report> = sample::all().into_iter().map(|(_, report)| report).collect();
    // Some answers of the samples are made up, by rules that there are not.
    all.iter_mut().for_each(|report| report.rulings = judge(&report.evidence));
    all.push(recorded(include_str!("../../../../fixtures/hosts/vm-haltpoll-2cpu.host")));
    all.push(recorded(include_str!("../../../../fixtures/hosts/icx2s0.host")));
    all
}

/// Every sentence of these pages that is left.
fn left(reports: &[Report]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for report in reports {
        let ((page, text), data) = (chinese(report, 80), data(report));
        assert!(page.contains("<html lang=\"zh-Hans\""));
        let of_text = text.lines().filter(|line| !line.contains("sudo ")).map(ToString::to_string);
        all.extend(shown(&page).into_iter().chain(of_text).filter_map(|part| english(&part, &data)));
    }
    all.sort();
    all.dedup();
    all
}

#[test]
fn no_sentence_of_the_report_itself_is_english() {
    let mut all = reports();
    for report in &mut all {
        report.rulings.clear();
        report.evidence.not_done.clear();
    }
    let left = left(&all);
    assert!(left.is_empty(), "{} left:\n{}", left.len(), left.join("\n"));
}

/// A run that was proved on a machine and kept.
fn kept(file: &str) -> Report {
    let mut text = String::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/runs/2026-11-22-vm-2cpu-epyc/blocks");
    material::open(&folder.join(file)).unwrap().read_to_string(&mut text).unwrap();
    let evidence = RunFile::read(&text).unwrap().evidence("run kept.run (doctor, 2026-11-22T17:52:39Z)").unwrap();
    let rulings = judge(&evidence);
    Report::new(super::title(&evidence.facts), "", evidence, rulings)
}

/// What a run file keeps is English, but for what the kernel and the machine said of themselves nobody needs to read it so.
#[test]
fn no_sentence_of_a_proved_run_is_english() {
    for file in ["doctor.run.gz", "k3-disk.run.gz", "k0-shop-200.run.gz"] {
        let report = kept(file);
        let cells = report.evidence.facts.sheets().into_iter().flat_map(|(_, sheet)| sheet.rows);
        let said: String = cells.filter_map(|row| row.cell.ok()).map(|cell| format!(" {cell}")).collect();
        // So do meters that do not work.
        let remarks = report.evidence.samples.conclusions.iter().flat_map(|c| &c.remarks);
        let meters = remarks.filter_map(|remark| remark.split_once("no meter of this machine works: "));
        let said = meters.fold(said, |all, (_, meters)| format!("{all} {meters}"));
        let said = words(&said).join(" ");
        let (page, text) = chinese(&report, 80);
        let all = shown(&page).into_iter().chain([text.replace('\n', " ")]);
        let left: Vec<String> = all.filter_map(|part| english(&part, &said)).collect();
        assert!(left.is_empty(), "{file}: {} left:\n{}", left.len(), left.join("\n"));
        if file == "doctor.run.gz" {
            assert!(page.contains("空闲状态：eventfd 唤醒"), "why this was turned");
            assert!(page.contains("trace") && !page.contains("sched_waking to sched_switch"), "places of findings");
        }
    }
}

#[test]
fn no_sentence_of_a_whole_page_is_english() {
    // Whoever adds a rule may do so before its translation is there; `cargo xtask words --check` says what is missing.
    let rules = include_str!("../../../../languages/zh/rules.po");
    if rules.matches("\nmsgid \"").count() < 100 || rules.contains("\nmsgstr \"\"\n\n") {
        let test = "no_sentence_of_a_whole_page_is_english";
        wakewatt_testing::skipped(test, wakewatt_testing::Lacks::Here, "the catalogue of the rules has gaps");
        return;
    }
    let left = left(&reports());
    assert!(left.is_empty(), "{} left:\n{}", left.len(), left.join("\n"));
}

#[test]
fn the_text_fits_eighty_places_and_breaks_where_chinese_may_break() {
    for report in reports() {
        for width in [60, 80] {
            let (_, text) = chinese(&report, width);
            // A path or a list of CPUs is never broken.
            let is_whole =
                |line: &&str| line.split_whitespace().flat_map(pieces).any(|piece| places(piece) > width / 2);
            for line in text.lines().filter(|line| !line.contains('/') && !is_whole(line)) {
                assert!(places(line) <= width, "{} > {width}: {line}", places(line));
                let begin = line.trim_start();
                assert!(!begin.starts_with(['，', '。', '；', '：', '、', '）', '」', '！', '？']), "{line}");
                assert!(!line.ends_with(['（', '「']), "{line}");
            }
        }
    }
}

#[test]
fn what_is_left_is_found() {
    assert_eq!(
        english("这是 how long leaving takes at worst 的", ""),
        Some("这是 how long leaving takes at worst 的".into())
    );
    assert_eq!(english("空闲状态 C6 exit latency 133 us", ""), None);
    assert_eq!(english("现在 the menu looks at it", &words("\"why\":\"the menu looks at it\"").join(" ")), None);
    assert_eq!(shown("<p>a</p><pre><code>b c</code></pre>d").join("|"), "|a||d");
}
