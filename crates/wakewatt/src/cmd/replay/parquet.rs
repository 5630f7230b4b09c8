//! Replays as a Parquet table: a row for each CPU, setting and idle state, with the machine in every row, so that DuckDB, Polars or Spark take the
//! files of a fleet as one table.
//!
//! The columns are those of the models crate (`replay/rows.rs`); the schema is made from them. All may be null.

use crate::parquet_column::values;
use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::fmt::Write as _;
use std::sync::Arc;
use wakewatt_core::samples::replayed::Replayed;
use wakewatt_models::replay::rows::{COLUMNS, Row, Type, Value, rows};

fn schema() -> String {
    let mut out = String::from("message replays {\n");
    for c in COLUMNS {
        let of = match c.of {
            Type::Text => ("binary", " (UTF8)"),
            Type::Whole => ("int64", ""),
            Type::Number => ("double", ""),
            Type::Flag => ("boolean", ""),
        };
        let _ = writeln!(out, "    optional {} {}{};", of.0, c.name, of.1);
    }
    out + "}"
}

/// The whole file.
pub(super) fn bytes(name: &str, replays: &[Replayed]) -> Result<Vec<u8>> {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut out = Vec::new();
    let mut file = SerializedFileWriter::new(&mut out, Arc::new(parse_message_type(&schema())?), Arc::new(properties))?;
    let all: Vec<Row<'_>> = rows(name, replays).collect();
    let mut group = file.next_row_group()?;
    for c in COLUMNS {
        let g = &mut group;
        match c.of {
            Type::Text => values::<_, ByteArrayType, _>(g, &all, |row| match (c.value)(row) {
                Value::Text(text) => text.map(|t| ByteArray::from(t.into_bytes())),
                _ => None,
            })?,
            Type::Whole => values::<_, Int64Type, _>(g, &all, |row| match (c.value)(row) {
                Value::Whole(n) => n.map(|n| i64::try_from(n).unwrap_or(i64::MAX)),
                _ => None,
            })?,
            Type::Number => values::<_, DoubleType, _>(g, &all, |row| match (c.value)(row) {
                Value::Number(n) => n,
                _ => None,
            })?,
            Type::Flag => values::<_, BoolType, _>(g, &all, |row| match (c.value)(row) {
                Value::Flag(is) => is,
                _ => None,
            })?,
        }
    }
    group.close()?;
    file.close()?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;
    use std::io::Write as _;
    use wakewatt_core::samples::replayed::{CpuReplay, ExitBasis, Side, StateTold};

    #[test]
    fn a_row_for_each_cpu_and_state_with_nulls_where_nothing_is_known() {
        let state = |name: &str| StateTold {
            state: name.into(),
            n: 3,
            time_ns: 7,
            time_ratio: 1.0,
            n_above: 0,
            n_below: 0,
            n_wakes: 2,
            exit_ns: 1,
            worst_exit_ns: 2,
            exit_basis: ExitBasis::Claimed,
        };
        let side = |name| Side { states: vec![state(name)], ..Side::default() };
        let cpu = |cpu| CpuReplay { cpu, identical_ratio: None, table: 0, recorded: side("C1"), predicted: side("C6") };
        let replays = [Replayed { cpus: vec![cpu(0), cpu(1)], is_trusted: Some(true), ..Replayed::default() }];
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes("a.wtrace", &replays).unwrap()).unwrap();
        let table = SerializedFileReader::new(file).unwrap();
        let all: Vec<_> = table.get_row_iter(None).unwrap().map(std::result::Result::unwrap).collect();
        let at = |name: &str| COLUMNS.iter().position(|c| c.name == name).unwrap();
        assert_eq!((all.len(), all[0].get_string(at("trace")).unwrap().as_str()), (4, "a.wtrace"));
        assert_eq!(all[3].get_long(at("predicted_stays")).unwrap(), 3);
        assert!(all[3].get_long(at("recorded_stays")).is_err() && all[0].get_double(at("identical_ratio")).is_err());
        assert_eq!((all[0].get_bool(at("is_trusted")).unwrap(), all[3].get_long(at("cpu")).unwrap()), (true, 1));
    }
}
