//! A recording as a Parquet table: one row per idle interval, units in the column names, null where a value is unknown.
//!
//! The low-level writer without Arrow: thirteen columns of fixed types need no more, and Arrow would double the binary's
//! dependencies. Snappy, because every reader has it and it is pure Rust here. The recording's header travels as JSON in
//! the file's key-value metadata.

use crate::parquet_column::column;
use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use wakewatt_core::record::wtrace::{Item, Reader, Tables};
use wakewatt_core::samples::idle_pair::IdlePair;

const SCHEMA: &str = "message idle_intervals {
    required int32 cpu;
    required int64 enter_at_ns;
    required int64 duration_ns;
    required int32 state_index;
    required binary state (UTF8);
    optional int64 sleep_length_ns;
    optional int64 next_event_ns;
    optional int64 entry_lag_ns;
    optional boolean is_tick_stopped;
    optional boolean is_tick_fired;
    required boolean is_first;
    required binary ended_by (UTF8);
    optional int32 n_iowait;
}";
const ROWS_PER_GROUP: usize = 1 << 20;

/// Writes everything the reader still holds; how many rows.
pub(super) fn write(reader: &mut Reader<'_>, out: impl Write + Send) -> Result<usize> {
    let header = reader.header.clone();
    let json = serde_json::to_string(&header).map_err(|e| ParquetError::External(Box::new(e)))?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(vec![KeyValue::new("wakewatt_header".to_string(), json)]))
        .build();
    let mut file = SerializedFileWriter::new(out, Arc::new(parse_message_type(SCHEMA)?), Arc::new(properties))?;
    let tables = Tables::of(&header).unwrap_or_default();
    let mut names: BTreeMap<(u32, u8), ByteArray> = BTreeMap::new();
    let mut waiting: Vec<IdlePair> = Vec::new();
    let mut n = 0;
    for item in reader.by_ref() {
        if let Item::Pairs(pairs) = item {
            n += pairs.len();
            for p in &pairs {
                names.entry((p.cpu, p.state)).or_insert_with(|| text(&tables.state_name(p.cpu, p.state)));
            }
            waiting.extend(pairs);
            if waiting.len() >= ROWS_PER_GROUP {
                group(file.next_row_group()?, &waiting, &names)?;
                waiting.clear();
            }
        }
    }
    if !waiting.is_empty() {
        group(file.next_row_group()?, &waiting, &names)?;
    }
    file.close()?;
    Ok(n)
}

fn text(t: &str) -> ByteArray {
    ByteArray::from(t.as_bytes().to_vec())
}

fn group<W: Write + Send>(
    mut group: SerializedRowGroupWriter<'_, W>,
    pairs: &[IdlePair],
    names: &BTreeMap<(u32, u8), ByteArray>,
) -> Result<()> {
    let int = |v: u64| i64::try_from(v).unwrap_or(i64::MAX);
    let g = &mut group;
    // In the order of the schema.
    all::<Int32Type, W>(g, pairs, |p| p.cpu.cast_signed())?;
    all::<Int64Type, W>(g, pairs, |p| int(p.enter_at_ns))?;
    all::<Int64Type, W>(g, pairs, |p| int(p.duration_ns))?;
    all::<Int32Type, W>(g, pairs, |p| i32::from(p.state))?;
    all::<ByteArrayType, W>(g, pairs, |p| names.get(&(p.cpu, p.state)).cloned().unwrap_or_default())?;
    some::<Int64Type, W>(g, pairs, |p| p.sleep_length_ns)?;
    some::<Int64Type, W>(g, pairs, |p| p.next_event_ns)?;
    some::<Int64Type, W>(g, pairs, |p| p.entry_lag_ns.map(int))?;
    some::<BoolType, W>(g, pairs, |p| p.is_tick_stopped)?;
    some::<BoolType, W>(g, pairs, |p| p.is_tick_fired)?;
    all::<BoolType, W>(g, pairs, |p| p.is_first)?;
    all::<ByteArrayType, W>(g, pairs, |p| text(p.ended_by.words()))?;
    some::<Int32Type, W>(g, pairs, |p| p.n_iowait.map(i32::from))?;
    group.close().map(|_| ())
}

/// A column without nulls.
fn all<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    pairs: &[IdlePair],
    value: impl Fn(&IdlePair) -> T::T,
) -> Result<()> {
    column::<T, W>(group, &pairs.iter().map(value).collect::<Vec<_>>(), None)
}

/// A column with nulls.
fn some<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    pairs: &[IdlePair],
    value: impl Fn(&IdlePair) -> Option<T::T>,
) -> Result<()> {
    let values: Vec<Option<T::T>> = pairs.iter().map(value).collect();
    let levels: Vec<i16> = values.iter().map(|v| i16::from(v.is_some())).collect();
    column::<T, W>(group, &values.into_iter().flatten().collect::<Vec<_>>(), Some(&levels))
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;
    use wakewatt_core::record::wtrace::{Encoder, Header};

    #[test]
    fn a_table_holds_what_was_recorded_and_nulls_stay_null() {
        let (mut encoder, mut bytes) = Encoder::start(&Header::default());
        let pair = IdlePair { cpu: 1, enter_at_ns: 50, duration_ns: 7, ..IdlePair::default() };
        let full = IdlePair { next_event_ns: Some(-4), n_iowait: Some(3), is_tick_fired: Some(true), ..pair };
        encoder.push(pair);
        encoder.push(full);
        bytes.extend(encoder.end());
        let mut file = tempfile::tempfile().unwrap();
        let n = write(&mut Reader::new(&bytes).unwrap(), &mut file).unwrap();
        let table = SerializedFileReader::new(file).unwrap();
        let rows: Vec<_> = table.get_row_iter(None).unwrap().map(std::result::Result::unwrap).collect();
        assert_eq!((n, rows.len()), (2, 2));
        assert_eq!(
            (rows[0].get_int(0).unwrap(), rows[0].get_long(2).unwrap(), rows[0].get_string(4).unwrap().as_str()),
            (1, 7, "state0")
        );
        assert!(rows[0].get_long(6).is_err(), "null");
        assert_eq!((rows[1].get_long(6).unwrap(), rows[1].get_int(12).unwrap()), (-4, 3));
        assert!(rows[1].get_bool(9).unwrap());
        let metadata = table.metadata().file_metadata().key_value_metadata().unwrap();
        assert!(metadata.iter().any(|kv| kv.key == "wakewatt_header"));
    }
}
