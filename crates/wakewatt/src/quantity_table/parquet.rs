//! A run's quantities as a Parquet table: one row per quantity and window, as `compare` joins them.
//!
//! The low-level writer, as in `trace/parquet.rs`. The unit is a column, because quantities of different units share the
//! table; null where there is no interval.

use crate::parquet_column::column;
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::sync::Arc;
use wakewatt_core::compare::quantities::{self, Quantity};
use wakewatt_core::evidence::Evidence;

const SCHEMA: &str = "message quantities {
    required binary id (UTF8);
    required binary kind (UTF8);
    required binary title (UTF8);
    required binary unit (UTF8);
    required int32 window;
    required double value;
    optional double low;
    optional double high;
}";

/// The whole file.
pub(super) fn bytes(evidence: &Evidence, made_at: &str, command: &str) -> Result<Vec<u8>> {
    let all = quantities::of(evidence);
    let rows: Vec<(&Quantity, usize)> = all.iter().flat_map(|q| (0..q.windows.len()).map(move |at| (q, at))).collect();
    let said = |key: &str, value: &str| KeyValue::new(format!("wakewatt_{key}"), value.to_string());
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(vec![said("made_at", made_at), said("command", command)]))
        .build();
    let mut out = Vec::new();
    let mut file = SerializedFileWriter::new(&mut out, Arc::new(parse_message_type(SCHEMA)?), Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    let text = |t: &str| ByteArray::from(t.as_bytes().to_vec());
    let texts = |of: &dyn Fn(&Quantity) -> &str| rows.iter().map(|(q, _)| text(of(q))).collect::<Vec<_>>();
    column::<ByteArrayType, _>(&mut group, &texts(&|q| &q.id), None)?;
    column::<ByteArrayType, _>(&mut group, &texts(&|q| &q.kind), None)?;
    column::<ByteArrayType, _>(&mut group, &texts(&|q| &q.title), None)?;
    column::<ByteArrayType, _>(&mut group, &texts(&|q| q.measure.unit()), None)?;
    let windows: Vec<i32> = rows.iter().map(|(_, at)| i32::try_from(*at).unwrap_or(i32::MAX)).collect();
    column::<Int32Type, _>(&mut group, &windows, None)?;
    let values: Vec<f64> = rows.iter().filter_map(|(q, at)| q.windows.get(*at).copied()).collect();
    column::<DoubleType, _>(&mut group, &values, None)?;
    for end in [|q: &Quantity| Some(q.interval?.low), |q: &Quantity| Some(q.interval?.high)] {
        let ends: Vec<Option<f64>> = rows.iter().map(|(q, _)| end(q)).collect();
        let levels: Vec<i16> = ends.iter().map(|v| i16::from(v.is_some())).collect();
        column::<DoubleType, _>(&mut group, &ends.into_iter().flatten().collect::<Vec<_>>(), Some(&levels))?;
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
    use std::io::Write;

    #[test]
    fn a_row_per_quantity_and_window() {
        let evidence = crate::report::sample::two_arms().evidence;
        let bytes = bytes(&evidence, "2026-11-21T09:00:00Z", "doctor").unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let table = SerializedFileReader::new(file).unwrap();
        let rows: Vec<_> = table.get_row_iter(None).unwrap().map(std::result::Result::unwrap).collect();
        let n: usize = quantities::of(&evidence).iter().map(|q| q.windows.len()).sum();
        assert!(n > 10 && rows.len() == n, "{n}");
        assert!(rows.iter().any(|r| r.get_string(3).unwrap() == "ns" && r.get_double(5).unwrap() > 1000.0));
        assert!(rows.iter().any(|r| r.get_double(6).is_err()), "several windows have no interval of their own");
    }
}
