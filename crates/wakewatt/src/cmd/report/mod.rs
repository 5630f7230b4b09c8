//! `wakewatt report`: a saved run as a page, as text, as tables.
//!
//! The rules are asked again, so a run from before a rule existed is judged by it too. Nothing is measured here and nothing
//! read but the file.

mod tables;

use crate::cli::ReportArgs;
use crate::exit::{Code, Failure};
use crate::features::Feature;
use crate::output::{self, Colour};
use crate::quantity_table;
use crate::report::export::{self, Format, Theme};
use crate::report::{self, Report, text::Style};
use crate::saved;
use anyhow::Result;
use std::path::Path;
use std::time::SystemTime;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::record::cited;
use wakewatt_core::rules::judge;
use wakewatt_host::place::{Folder, PlaceError};
use wakewatt_words::{say, spoken};

/// The page's name when none is given and nothing else was asked for.
const DEFAULT_PAGE: &str = "wakewatt-report.html";

pub fn run(args: &ReportArgs, colour: Colour) -> Result<Code> {
    // Before anything is read: half of what was asked for is not what was asked for.
    args.png.iter().try_for_each(|_| Feature::Png.need("report --png"))?;
    args.parquet.iter().try_for_each(|_| Feature::Parquet.need("report --parquet"))?;
    let (run, evidence) = saved::open(&args.run)?;
    let mut rulings = judge(&evidence);
    cited::cite(&mut rulings, &run.cited);
    let now = humantime::format_rfc3339_seconds(SystemTime::now());
    let generated_at = format!("{now}, of {}", evidence.facts.origin);
    let mut report = Report::new(report::title(&evidence.facts), generated_at, evidence, rulings);
    report.rates = args.rates.rates();
    if args.json {
        output::print(&report.to_json("report")?)?;
    } else if args.markdown {
        output::print(&report.to_markdown())?;
    } else if !args.is_quiet() {
        output::print(&report.to_text(Style { width: output::width().min(100), is_coloured: colour.is_on() }))?;
    }
    let is_default = args.output.is_none() && !args.is_quiet() && !args.json && !args.markdown;
    let page = args.output.as_deref().or(is_default.then_some(Path::new(DEFAULT_PAGE)));
    if let Some(file) = page {
        output::write_file(file, &report.to_html()?)?;
        output::remark(&spoken(|| say!("Report: {path}", path = file.display())));
    }
    if let Some(folder) = &args.csv {
        write_tables(folder, &report.evidence)?;
    }
    let theme = if args.dark { Theme::Dark } else { Theme::Light };
    for (folder, format) in [(&args.csv, Format::Csv), (&args.svg, Format::Svg), (&args.png, Format::Png)] {
        if let Some(folder) = folder {
            write_charts(&report, folder, format, theme)?;
        }
    }
    if let Some(file) = &args.parquet {
        quantity_table::write(file, &report.evidence, &run.made_at, &run.command)?;
    }
    Ok(Code::Fine)
}

fn write_charts(report: &Report, folder: &Path, format: Format, theme: Theme) -> Result<()> {
    let files =
        export::write(report, folder, &[format], theme).map_err(|e| Failure::error(Code::BadFile, format!("{e:#}")))?;
    let said = spoken(|| match files.len() {
        0 => say!("no charts: the run holds nothing to draw"),
        n => say!("{n} charts"),
    });
    let (kind, folder) = (format.extension().to_uppercase(), folder.display());
    output::remark(&spoken(|| say!("{kind} in {folder}: {said}")));
    Ok(())
}

/// One file per kind of sample that the run holds.
fn write_tables(folder: &Path, evidence: &Evidence) -> Result<()> {
    let bad = |why: PlaceError| Failure::error(Code::BadFile, format!("--csv {why}"));
    let folder = Folder::make(folder).map_err(bad)?;
    let tables = tables::of(&evidence.samples);
    for table in &tables {
        let place = folder.place(&format!("{}.csv", table.name)).map_err(bad)?;
        place.write(table.to_csv().as_bytes()).map_err(bad)?;
    }
    let names: Vec<&str> = tables.iter().map(|t| t.name.as_str()).collect();
    let said = spoken(|| if names.is_empty() { say!("no samples, so no tables") } else { names.join(", ") });
    let folder = folder.path().display();
    output::remark(&spoken(|| say!("{kind} in {folder}: {said}", kind = "CSV")));
    Ok(())
}
