//! One column of a Parquet row group, written by the low-level writer: what both tables of wakewatt are made of.

use parquet::data_type::DataType;
use parquet::errors::{ParquetError, Result};
use parquet::file::writer::SerializedRowGroupWriter;
use std::io::Write;

/// The next column; `levels` say which rows have a value (1) and which are null (0).
pub(crate) fn column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<()> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("the schema has fewer columns".into()));
    };
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}

/// A column in which a row may have nothing.
pub(crate) fn values<R, T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[R],
    value: impl Fn(&R) -> Option<T::T>,
) -> Result<()> {
    let all: Vec<Option<T::T>> = rows.iter().map(value).collect();
    let levels: Vec<i16> = all.iter().map(|v| i16::from(v.is_some())).collect();
    column::<T, W>(group, &all.into_iter().flatten().collect::<Vec<_>>(), Some(&levels))
}
