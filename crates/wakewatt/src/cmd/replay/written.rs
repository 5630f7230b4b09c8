//! The files of a replay: page, run file, tables. Each place is tried before the first pass.

use super::Told;
use super::passes::Passes;
use crate::cli::replay::ReplayArgs;
use crate::output::{self, Outlet};
use crate::report::replay::ReplayReport;
use crate::saved::{self, Saving};
use crate::view::csv;
use anyhow::{Context, Result};
use std::time::SystemTime;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::Samples;
use wakewatt_core::samples::replayed::Replayed;
use wakewatt_models::replay::rows::{COLUMNS, Value, rows};

/// Where they go.
pub(super) struct Written {
    page: Option<Outlet>,
    saving: Option<Saving>,
    csv: Option<Outlet>,
    parquet: Option<Outlet>,
    /// The recording's name, in tables and headings.
    name: String,
}

impl Written {
    /// Tries every place.
    pub(super) fn open(args: &ReplayArgs) -> Result<Written> {
        let outlet = |file: &Option<std::path::PathBuf>, option| {
            file.as_deref().map(|file| Outlet::open(file, option)).transpose()
        };
        let saving = match &args.save {
            None => None,
            // The facts are the recorded machine's, not those of the one that replays.
            Some(file) => {
                let passes = Passes { file: &args.file, changes: Vec::new(), corrections: Vec::new() };
                saved::start(Some(file), "replay", &passes.header()?.machine())?
            }
        };
        Ok(Written {
            page: outlet(&args.output, "-o")?,
            saving,
            csv: outlet(&args.csv, "--csv")?,
            parquet: outlet(&args.parquet, "--parquet")?,
            name: args.file.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default(),
        })
    }

    /// Writes them all; the first that cannot be written is the error, after the others were tried.
    pub(super) fn write(&self, told: &Told) -> Result<()> {
        let page = self.page.as_ref().map_or(Ok(()), |outlet| self.page(outlet, told));
        let run = self.saving.as_ref().map_or(Ok(()), |saving| saving.finish(&evidence(&told.replays)));
        let csv = self.csv.as_ref().map_or(Ok(()), |outlet| {
            outlet.write(&table(&self.name, &told.replays))?;
            remark("CSV", outlet)
        });
        let parquet = self.parquet.as_ref().map_or(Ok(()), |outlet| self.parquet(outlet, told));
        [page, run, csv, parquet].into_iter().collect()
    }

    fn page(&self, outlet: &Outlet, told: &Told) -> Result<()> {
        let (Some(replayed), Some(sweep)) = (told.asked(), &told.sweep) else { return Ok(()) };
        let report = ReplayReport {
            title: self.name.clone(),
            generated_at: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            replayed,
            sweep,
            slo: told.slo.as_ref(),
            upgrade: told.upgrade.as_ref(),
        };
        outlet.write(&report.to_html().context("the HTML page")?)?;
        remark("Report", outlet)
    }

    #[cfg(feature = "parquet")]
    fn parquet(&self, outlet: &Outlet, told: &Told) -> Result<()> {
        let bytes = super::parquet::bytes(&self.name, &told.replays).map_err(|e| {
            crate::exit::Failure::error(crate::exit::Code::BadFile, format!("{}: {e}", outlet.path().display()))
        })?;
        outlet.write_bytes(&bytes)?;
        remark("Parquet", outlet)
    }

    #[cfg(not(feature = "parquet"))]
    fn parquet(&self, _: &Outlet, _: &Told) -> Result<()> {
        Err(crate::features::Feature::Parquet.lacking("replay --parquet"))
    }
}

fn remark(what: &str, outlet: &Outlet) -> Result<()> {
    output::remark(&format!("{what}: {}", outlet.path().display()));
    Ok(())
}

fn evidence(replays: &[Replayed]) -> Evidence {
    Evidence::of(Samples { replays: replays.to_vec(), ..Samples::default() })
}

/// A row for each CPU, setting and state; what is not known is empty.
fn table(name: &str, replays: &[Replayed]) -> String {
    let head: Vec<String> = COLUMNS.iter().map(|c| c.name.to_string()).collect();
    let field = |value: Value| match value {
        Value::Text(text) => text.unwrap_or_default(),
        Value::Whole(n) => n.map_or(String::new(), |n| n.to_string()),
        Value::Number(n) => n.map_or(String::new(), |n| n.to_string()),
        Value::Flag(is) => is.map_or(String::new(), |is| is.to_string()),
    };
    let rows = rows(name, replays).map(|row| COLUMNS.iter().map(|c| field((c.value)(&row))).collect());
    let all: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    csv::text(csv::Ends::Unix, &all)
}
