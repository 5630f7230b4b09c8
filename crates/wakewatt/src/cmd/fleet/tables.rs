//! `fleet tables`: a folder of what many nodes said, as two Parquet tables.
//!
//! `facts.parquet` has a row for each host and fact, `measures.parquet` one for each host, quantity and window. A file that
//! cannot be read is told and left out, as everywhere; a host is a group of rows, whose columns are all that is held twice.

use crate::cli::collect::TablesArgs;
use crate::exit::Code;
use anyhow::Result;
#[cfg(not(feature = "parquet"))]
use std::path::Path;

/// Runs `fleet tables`.
pub(super) fn run(args: &TablesArgs) -> Result<Code> {
    write(&args.folder, args.output.as_deref().unwrap_or(&args.folder))?;
    Ok(Code::Fine)
}

/// Writes both tables of a folder.
#[cfg(not(feature = "parquet"))]
pub(super) fn write(_: &Path, _: &Path) -> Result<()> {
    Err(crate::features::Feature::Parquet.lacking("fleet tables"))
}

#[cfg(feature = "parquet")]
pub(super) use written::write;

#[cfg(feature = "parquet")]
mod written {
    use super::super::files::{Files, machines};
    use crate::exit::{Code, Failure};
    use crate::output::{self, Outlet};
    use crate::parquet_column::{Column, Table};
    use crate::{recording, saved};
    use anyhow::Result;
    use std::path::Path;
    use wakewatt_core::record::wtrace::{Item, PairSummary, Summing};
    use wakewatt_fleet::rows::{self, FactRow, MeasureRow};
    use wakewatt_host::place::Folder;

    const FACTS: &str = "message facts {
        optional binary host (UTF8);
        optional binary class (UTF8);
        optional binary topic (UTF8);
        optional binary id (UTF8);
        optional binary label (UTF8);
        optional binary cpus (UTF8);
        optional binary value (UTF8);
        optional double number;
        optional binary unit (UTF8);
        optional binary missing (UTF8);
        optional int64 is_reading;
    }";
    const MEASURES: &str = "message measures {
        optional binary host (UTF8);
        optional binary class (UTF8);
        optional binary command (UTF8);
        optional binary made_at (UTF8);
        optional binary kind (UTF8);
        optional binary id (UTF8);
        optional binary title (UTF8);
        optional binary unit (UTF8);
        optional int64 window;
        optional double value;
        optional double low;
        optional double high;
    }";

    /// Writes both tables of a folder.
    pub(in super::super) fn write(folder: &Path, to: &Path) -> Result<()> {
        let files = Files::of(folder)?;
        // As `report --csv` does.
        Folder::make(to)?;
        let outlet = |name: &str| Outlet::open(&to.join(name), "-o");
        let (facts_to, measures_to) = (outlet("facts.parquet")?, outlet("measures.parquet")?);
        let machines = machines(&files)?;
        let classes = rows::classes(&machines);
        let class = |host: &str| classes.get(host).cloned().unwrap_or_else(|| "hardware not known".into());
        let broken = |why: parquet::errors::ParquetError| Failure::error(Code::BadFile, why.to_string());
        let (mut facts_bytes, mut measures_bytes) = (Vec::new(), Vec::new());
        let mut facts = Table::begin(FACTS, &mut facts_bytes).map_err(broken)?;
        let mut measures = Table::begin(MEASURES, &mut measures_bytes).map_err(broken)?;
        let (mut n_facts, mut n_measures) = (0, 0);
        for machine in &machines {
            let host = machine.name.as_str();
            let rows = rows::facts(&machine.evidence.facts);
            n_facts += rows.len();
            facts.group(fact_columns(host, &class(host), &rows)).map_err(broken)?;
        }
        for host in files.names() {
            // A run's evidence is read already; only who made it, and when, is not.
            if let Some((machine, (run, _))) =
                machines.iter().find(|m| m.name == host).zip(files.run(host).and_then(|path| saved::open(path).ok()))
            {
                let rows = rows::measures(&machine.evidence);
                n_measures += rows.len();
                let columns = measure_columns(host, &class(host), [&run.command, &run.made_at], &rows);
                measures.group(columns).map_err(broken)?;
            }
            match files.trace(host).map(summary).transpose() {
                Ok(None) => {}
                Ok(Some(summary)) => {
                    let rows = rows::traced(&summary);
                    n_measures += rows.len();
                    measures.group(measure_columns(host, &class(host), ["trace", ""], &rows)).map_err(broken)?;
                }
                Err(why) => output::remark(&format!("left out: {why:#}")),
            }
        }
        facts.finish().map_err(broken)?;
        measures.finish().map_err(broken)?;
        facts_to.write_bytes(&facts_bytes)?;
        measures_to.write_bytes(&measures_bytes)?;
        for (to, n, bytes) in [(&facts_to, n_facts, &facts_bytes), (&measures_to, n_measures, &measures_bytes)] {
            output::remark(&format!("Parquet: {}, {n} rows, {} KiB", to.path().display(), bytes.len().div_ceil(1024)));
        }
        Ok(())
    }

    fn summary(path: &Path) -> Result<PairSummary> {
        let mut stream = recording::stream(path)?;
        let header = stream.header.clone();
        let mut sum = Summing::new(&header);
        stream.by_ref().for_each(|item| match &item {
            Item::Pairs(pairs) => sum.pairs(pairs),
            Item::Mark(mark) => sum.mark(mark),
            Item::Choices(_) => {}
        });
        if let Some(why) = recording::not_whole(stream.ending()) {
            output::remark(&format!("{}: {why}", path.display()));
        }
        Ok(sum.finish())
    }

    fn same(text: &str, n: usize) -> Column {
        Column::Text(vec![(!text.is_empty()).then(|| text.to_string()); n])
    }

    fn fact_columns(host: &str, class: &str, rows: &[FactRow]) -> Vec<Column> {
        let text = |of: &dyn Fn(&FactRow) -> Option<String>| Column::Text(rows.iter().map(of).collect());
        vec![
            same(host, rows.len()),
            same(class, rows.len()),
            text(&|r| Some(r.topic.into())),
            text(&|r| Some(r.id.clone())),
            text(&|r| Some(r.label.clone())),
            text(&|r| r.cpus.clone()),
            text(&|r| r.value.clone()),
            Column::Number(rows.iter().map(|r| r.number).collect()),
            text(&|r| r.unit.map(str::to_string)),
            text(&|r| r.missing.clone()),
            Column::Whole(rows.iter().map(|r| Some(i64::from(r.is_reading))).collect()),
        ]
    }

    fn measure_columns(host: &str, class: &str, [command, made_at]: [&str; 2], rows: &[MeasureRow]) -> Vec<Column> {
        let text = |of: &dyn Fn(&MeasureRow) -> String| Column::Text(rows.iter().map(|r| Some(of(r))).collect());
        let number = |of: &dyn Fn(&MeasureRow) -> Option<f64>| Column::Number(rows.iter().map(of).collect());
        vec![
            same(host, rows.len()),
            same(class, rows.len()),
            same(command, rows.len()),
            same(made_at, rows.len()),
            text(&|r| r.kind.clone()),
            text(&|r| r.id.clone()),
            text(&|r| r.title.clone()),
            text(&|r| r.unit.into()),
            Column::Whole(rows.iter().map(|r| Some(r.window)).collect()),
            number(&|r| Some(r.value)),
            number(&|r| r.interval.map(|i| i.0)),
            number(&|r| r.interval.map(|i| i.1)),
        ]
    }
}
