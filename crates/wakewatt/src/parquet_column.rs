//! Columns of a Parquet row group, written by the low-level writer: what all tables of wakewatt are made of.

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::io::Write;
use std::sync::Arc;

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

/// A column as values; what a row does not have is null.
pub(crate) enum Column {
    /// Words.
    Text(Vec<Option<String>>),
    /// Numbers.
    Number(Vec<Option<f64>>),
    /// Whole numbers.
    Whole(Vec<Option<i64>>),
}

/// A table of columns that are all optional, written group by group: what is in memory is one group, and what it became.
pub(crate) struct Table<'a> {
    file: SerializedFileWriter<&'a mut Vec<u8>>,
}

impl<'a> Table<'a> {
    /// With this schema.
    pub(crate) fn begin(schema: &str, out: &'a mut Vec<u8>) -> Result<Table<'a>> {
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let file = SerializedFileWriter::new(out, Arc::new(parse_message_type(schema)?), Arc::new(properties))?;
        Ok(Table { file })
    }

    /// Some rows, their columns in the order of the schema.
    pub(crate) fn group(&mut self, columns: Vec<Column>) -> Result<()> {
        let mut group = self.file.next_row_group()?;
        for one in columns {
            match one {
                Column::Text(rows) => values::<_, ByteArrayType, _>(&mut group, &rows, |text| {
                    text.as_ref().map(|text| ByteArray::from(text.as_bytes().to_vec()))
                }),
                Column::Number(rows) => values::<_, DoubleType, _>(&mut group, &rows, |number| *number),
                Column::Whole(rows) => values::<_, Int64Type, _>(&mut group, &rows, |number| *number),
            }?;
        }
        group.close().map(drop)
    }

    /// The end of the file.
    pub(crate) fn finish(self) -> Result<()> {
        self.file.close().map(drop)
    }
}
