//! `cargo xtask bench recompute`: the published figures again, from the raw values kept under bench/runs.
//!
//! Three sources: the rounds of a bench against its peer (the .csv files; what was published stands in the folder's README),
//! the table of blocks in a saved page of `doctor` (to three digits, as the page has them), and run files in a folder
//! `blocks` (.run, or .run.gz). Each ratio is estimated anew and gets its interval by the signed ranks that are used now;
//! beside it stands what was published, with the interval of its day. Writes docs/methods/recomputed.md.

use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use wakewatt_core::record::run_file::RunFile;
use wakewatt_core::samples::experiment::Effect;
use wakewatt_core::stats::paired::Judge;

/// One published ratio.
struct Figure {
    from: String,
    what: String,
    /// As it was published; none where only its values were kept.
    published: Option<String>,
    now: Effect,
}

pub(crate) fn run() -> Result<()> {
    let top = crate::repository().join("bench/runs");
    let mut figures = Vec::new();
    for folder in sorted(&top)?.into_iter().filter(|p| p.is_dir()) {
        let name = folder.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let readme = std::fs::read_to_string(folder.join("README.md")).unwrap_or_default();
        for file in sorted(&folder)? {
            let from = format!("{name}/{}", file.file_name().map(|n| n.to_string_lossy()).unwrap_or_default());
            let ending = file.extension().map(|e| e.to_string_lossy().into_owned()).unwrap_or_default();
            let read = || std::fs::read_to_string(&file).with_context(|| file.display().to_string());
            match ending.as_str() {
                "csv" => figures.extend(of_rounds(&from, &read()?, &readme)),
                "html" => figures.extend(of_page(&from, &read()?)),
                _ => {}
            }
        }
        let blocks = folder.join("blocks");
        for file in if blocks.is_dir() { sorted(&blocks)? } else { Vec::new() } {
            figures.extend(of_run_file(&format!("{name}/blocks"), &file)?);
        }
    }
    let page = page(&figures);
    print!("{page}");
    std::fs::write(crate::repository().join("docs/methods/recomputed.md"), page)?;
    Ok(())
}

fn sorted(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(folder)?.flatten().map(|e| e.path()).collect();
    all.sort();
    Ok(all)
}

fn page(figures: &[Figure]) -> String {
    let mut out = String::from(
        "# Published figures, computed again\n\nMade by `cargo xtask bench recompute` from the raw values in bench/runs. *Published*: \
         the ratio with the interval of its day (a bootstrap over rounds,\nwhose ends hung on the seed). *Now*: the same values, Hodges-Lehmann ratio, interval by inverted \
         signed ranks and how often such an interval holds; it covers\nthat run. The k0-shop and k3-disk of 2026-11-21 (docs/journal/2026-11-21-proved-live.md) kept no blocks and cannot be \
         computed again; those of 2026-11-22 are below (`cargo xtask bench blocks --save CLASS` makes such runs).\n\n| from | ratio of | published | now | holds at | p | rounds |\n|---|---|---|---|---|---|---|\n",
    );
    for f in figures {
        let e = &f.now;
        let sure = e.confidence.map_or("-".into(), |c| format!("{:.1} %", 100.0 * c));
        let now = format!("{:.3} [{:.3}, {:.3}]", e.ratio, e.ratio_low, e.ratio_high);
        let published = f.published.as_deref().unwrap_or("not as a ratio");
        let _ = writeln!(
            out,
            "| {} | {} | {published} | {now} | {sure} | {} | {} |",
            f.from,
            f.what,
            wakewatt_core::units::p_value(e.p_value),
            e.n_pairs
        );
    }
    out
}

/// Ours and the peer's, by round.
type OfRounds = BTreeMap<String, [Option<f64>; 2]>;

/// Rounds of ours and a peer, one value a line.
fn of_rounds(from: &str, csv: &str, readme: &str) -> Vec<Figure> {
    let mut lines = csv.lines();
    if lines.next() != Some(super::versus::CSV_HEAD.trim_end()) {
        return Vec::new();
    }
    let mut rounds: BTreeMap<(String, String), OfRounds> = BTreeMap::new();
    for line in lines {
        // What is measured may hold commas; the other five columns do not.
        let columns: Vec<&str> = line.rsplitn(6, ',').collect();
        let [value, figure, who, _order, round, what] = columns[..] else { continue };
        let place = match who {
            "wakewatt" => 0,
            "peer again" => continue,
            _ => 1,
        };
        let figure = rounds.entry((what.into(), figure.into())).or_default();
        figure.entry(round.into()).or_default()[place] = value.parse().ok();
    }
    let one = |((what, figure), rounds): (&(String, String), &OfRounds)| {
        let pairs: Vec<(f64, f64)> = rounds.values().filter_map(|[ours, theirs]| ours.zip(*theirs)).collect();
        let now = Judge::default().effect(figure, "wakewatt", "peer", &pairs)?;
        let published = published(readme, now.ratio);
        Some(Figure { from: from.into(), what: format!("{what}, {figure}"), published, now })
    };
    rounds.iter().filter_map(one).collect()
}

/// `1.060 [1.029, 1.088]`, if the folder's README has this ratio: the estimate has not changed, only its interval.
fn published(readme: &str, ratio: f64) -> Option<String> {
    let start = format!("ratio {ratio:.3} [");
    let at = readme.find(&start)?;
    let text = &readme[at + "ratio ".len()..];
    Some(text[..=text.find(']')?].to_string())
}

/// The effects and blocks of a page.
fn of_page(from: &str, html: &str) -> Vec<Figure> {
    let blocks = table(html, "Blocks in the order they ran");
    let Some((heads, rows)) = blocks.split_first() else { return Vec::new() };
    let value = |round: &str, arm: &str, at: usize| {
        rows.iter().find(|r| r[0] == round && r[1] == arm).and_then(|r| nanoseconds(r.get(at)?))
    };
    let effects = table(html, "Effects: measured, paired by round");
    let one = |row: &Vec<String>| {
        let (baseline, arm) = row.get(1)?.split_once(" / ")?;
        let at = heads.iter().position(|head| head == &row[0])?;
        let mut numbers: Vec<&String> = rows.iter().map(|r| &r[0]).collect();
        numbers.dedup();
        let pairs: Vec<(f64, f64)> =
            numbers.iter().filter_map(|n| value(n, baseline, at).zip(value(n, arm, at))).collect();
        let now = Judge::default().effect(&row[0], baseline, arm, &pairs)?;
        let what = format!("{}, {baseline} / {arm}", row[0]);
        Some(Figure { from: from.into(), what, published: row.get(3).cloned(), now })
    };
    effects.iter().skip(1).filter_map(one).collect()
}

/// The cells of a table of ours, by the beginning of its label; the heads first.
fn table(html: &str, label: &str) -> Vec<Vec<String>> {
    let Some(at) = html.find(&format!("<table aria-label=\"{label}")) else { return Vec::new() };
    let body = &html[at..];
    let body = &body[..body.find("</table>").unwrap_or(body.len())];
    let text = |cell: &str| {
        let end = cell.find("</t").unwrap_or(cell.len());
        let start = cell.find('>').map_or(0, |at| at + 1);
        cell[start.min(end)..end].replace("&#x2f;", "/").replace("&amp;", "&")
    };
    let cells = |row: &str| -> Vec<String> {
        row.replace("<th ", "<td ").replace("<td>", "<td >").split("<td ").skip(1).map(text).collect()
    };
    body.split("<tr>").skip(1).map(cells).filter(|row| !row.is_empty()).collect()
}

/// `33.6 us` in nanoseconds.
fn nanoseconds(text: &str) -> Option<f64> {
    // A page keeps number and unit together.
    let (number, unit) = text.split_once(['\u{a0}', ' '])?;
    let by = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * by)
}

/// The text of a kept file, packed or not.
pub(super) fn unpacked(file: &Path) -> Result<String> {
    if file.extension().is_none_or(|e| e != "gz") {
        return std::fs::read_to_string(file).with_context(|| file.display().to_string());
    }
    let output = Command::new("gzip").arg("-dc").arg(file).output().context("gzip")?;
    anyhow::ensure!(output.status.success(), "gzip -dc {}", file.display());
    Ok(String::from_utf8(output.stdout)?)
}

/// Every experiment of a run file, beside the effects it was saved with.
fn of_run_file(from: &str, file: &Path) -> Result<Vec<Figure>> {
    let text = unpacked(file)?;
    let run = RunFile::read(&text).with_context(|| file.display().to_string())?;
    let mut figures = Vec::new();
    for experiment in run.samples.all_experiments() {
        for then in &experiment.effects {
            let pairs = experiment.pairs_of(then);
            let Some(now) = Judge::default().effect(&then.metric, &then.baseline, &then.arm, &pairs) else { continue };
            let published = Some(format!("{:.3} [{:.3}, {:.3}]", then.ratio, then.ratio_low, then.ratio_high));
            let what = format!("{}, {} / {}", then.metric, then.baseline, then.arm);
            figures.push(Figure { from: from.into(), what, published, now });
        }
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_published_ratio_is_found_again_from_its_rounds() {
        let mut csv = super::super::versus::CSV_HEAD.to_string();
        for round in 0..8 {
            let ours = 110.0 + f64::from(round % 3);
            let _ =
                write!(csv, "disk, one,{round},012,wakewatt,mean_ns,{ours}\ndisk, one,{round},012,fio,mean_ns,100\n");
        }
        let readme = "| disk | 1 us | fio 2 us; ratio 1.110 [1.100, 1.120] over 8 rounds |";
        let found = of_rounds("a/disk.csv", &csv, readme);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].what.as_str(), found[0].published.as_deref()),
            ("disk, one, mean_ns", Some("1.110 [1.100, 1.120]"))
        );
        assert!(found[0].now.n_pairs == 8 && of_rounds("x", "a,b\n1,2\n", readme).is_empty());
    }

    #[test]
    fn a_page_gives_its_blocks_back() {
        let page = std::fs::read_to_string(crate::repository().join("bench/runs/2026-11-21-vm-2cpu/doctor-quick.html"))
            .unwrap();
        let found = of_page("p", &page);
        let first = &found[0];
        assert_eq!((found.len(), first.published.as_deref(), first.now.n_pairs), (3, Some("11.4 (11.0–11.9)"), 6));
        assert!((first.now.ratio - 11.4).abs() < 0.05, "{}", first.now.ratio);
    }
}
