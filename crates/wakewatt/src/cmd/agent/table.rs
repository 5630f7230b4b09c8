//! `agent query --output`: an answer as a Parquet table, a row for each series and step, so that DuckDB, Polars or pandas take it as it is.
//!
//! The series stands as it was kept, name and labels. Changes of settings are rows of their own: `changed` has the setting, and they have no value.

use crate::output::Outlet;
use anyhow::Result;
use wakewatt_agent::history::query::Answer;

/// Writes the file.
#[cfg(not(feature = "parquet"))]
pub(super) fn write(_: &Outlet, _: &Answer) -> Result<()> {
    Err(crate::features::Feature::Parquet.lacking("agent query --output"))
}

/// Writes the file.
#[cfg(feature = "parquet")]
pub(super) fn write(outlet: &Outlet, answer: &Answer) -> Result<()> {
    use crate::exit::{Code, Failure};
    let rows = columns::rows(answer);
    let bytes = columns::bytes(&rows)
        .map_err(|why| Failure::error(Code::BadFile, format!("{}: {why}", outlet.path().display())))?;
    outlet.write_bytes(&bytes)?;
    crate::output::remark(&format!("Parquet: {}, {} rows", outlet.path().display(), rows.len()));
    Ok(())
}

#[cfg(feature = "parquet")]
mod columns {
    use crate::parquet_column::{column, values};
    use parquet::basic::Compression;
    use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
    use parquet::errors::Result;
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
    use parquet::schema::parser::parse_message_type;
    use std::io::Write;
    use std::sync::Arc;
    use wakewatt_agent::history::query::Answer;

    const SCHEMA: &str = "message history {
        required int64 time (TIMESTAMP(MILLIS,true));
        optional binary series (UTF8);
        optional double value;
        optional double least;
        optional double most;
        optional int64 seen_ms;
        optional binary changed (UTF8);
        optional binary changed_from (UTF8);
        optional binary changed_to (UTF8);
    }";

    /// A point or a change.
    #[derive(Default)]
    pub(super) struct Row<'a> {
        wall_ms: u64,
        series: Option<&'a str>,
        value: Option<f64>,
        range: Option<(f64, f64)>,
        seen_ms: Option<u64>,
        changed: Option<[&'a str; 3]>,
    }

    /// Points by series, then changes.
    pub(super) fn rows(answer: &Answer) -> Vec<Row<'_>> {
        let points = answer.series.iter().flat_map(|(name, points)| {
            points.iter().map(|p| Row {
                wall_ms: p.wall_ms,
                series: Some(name),
                value: Some(p.value),
                range: p.range,
                seen_ms: Some(p.seen_ms),
                changed: None,
            })
        });
        let changes = answer.changes.iter().map(|change| Row {
            wall_ms: change.wall_ms,
            changed: Some([&change.what, &change.from, &change.to]),
            ..Row::default()
        });
        points.chain(changes).collect()
    }

    /// The whole file.
    pub(super) fn bytes(rows: &[Row<'_>]) -> Result<Vec<u8>> {
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let mut out = Vec::new();
        let schema = Arc::new(parse_message_type(SCHEMA)?);
        let mut file = SerializedFileWriter::new(&mut out, schema, Arc::new(properties))?;
        let mut group = file.next_row_group()?;
        let whole = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let times: Vec<i64> = rows.iter().map(|row| whole(row.wall_ms)).collect();
        column::<Int64Type, _>(&mut group, &times, None)?;
        texts(&mut group, rows, |row| row.series)?;
        values::<_, DoubleType, _>(&mut group, rows, |row| row.value)?;
        values::<_, DoubleType, _>(&mut group, rows, |row| row.range.map(|range| range.0))?;
        values::<_, DoubleType, _>(&mut group, rows, |row| row.range.map(|range| range.1))?;
        values::<_, Int64Type, _>(&mut group, rows, |row| row.seen_ms.map(whole))?;
        for part in 0..3 {
            texts(&mut group, rows, |row| row.changed.map(|changed| changed[part]))?;
        }
        group.close()?;
        file.close()?;
        Ok(out)
    }

    fn texts<W: Write + Send>(
        group: &mut SerializedRowGroupWriter<'_, W>,
        rows: &[Row<'_>],
        text: impl for<'a> Fn(&'a Row<'a>) -> Option<&'a str>,
    ) -> Result<()> {
        values::<_, ByteArrayType, _>(group, rows, |row| {
            text(row).map(|text| ByteArray::from(text.as_bytes().to_vec()))
        })
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use parquet::file::reader::{FileReader, SerializedFileReader};
        use parquet::record::RowAccessor;
        use wakewatt_agent::history::Change;
        use wakewatt_agent::history::query::Point;

        #[test]
        fn points_and_changes_are_rows_of_one_table() {
            let point = |wall_ms, range| Point { wall_ms, value: f64::INFINITY, seen_ms: 10_000, range };
            let answer = Answer {
                series: [("m{state=\"C6\"}".to_string(), vec![point(5, Some((1.0, 3.0))), point(15, None)])].into(),
                changes: vec![Change {
                    wall_ms: 7,
                    what: "idle_governor".into(),
                    to: "teo".into(),
                    ..Change::default()
                }],
                ..Answer::default()
            };
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&bytes(&rows(&answer)).unwrap()).unwrap();
            let table = SerializedFileReader::new(file).unwrap();
            let all: Vec<_> = table.get_row_iter(None).unwrap().map(std::result::Result::unwrap).collect();
            assert_eq!((all.len(), all[0].get_string(1).unwrap().as_str()), (3, "m{state=\"C6\"}"));
            assert_eq!((all[0].get_double(2).unwrap(), all[0].get_double(4).unwrap()), (f64::INFINITY, 3.0));
            assert!(all[1].get_double(3).is_err() && all[2].get_double(2).is_err(), "nulls, not zeros");
            assert_eq!(all[2].get_string(6).unwrap().as_str(), "idle_governor");
        }
    }
}
