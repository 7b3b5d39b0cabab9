//! Apache Parquet: one row group, all columns optional.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use super::{Cell, Column, ColumnKind, Table};

pub(super) fn write(table: &Table, output: impl Write + Send) -> Result<()> {
    let fields: Result<Vec<_>> = table.columns.iter().map(|it| field(it).map(Arc::new)).collect();
    let schema = Type::group_type_builder("wirestorm").with_fields(fields?).build()?;
    let compression = Compression::SNAPPY;
    let properties = WriterProperties::builder().set_compression(compression).build();
    let mut writer = SerializedFileWriter::new(output, Arc::new(schema), Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    let mut index = 0;
    while let Some(mut column) = group.next_column()? {
        let cells = || table.rows.iter().filter_map(|row| row.get(index));
        let levels: Vec<i16> = cells().map(|cell| i16::from(*cell != Cell::None)).collect();
        let written = match column.untyped() {
            ColumnWriter::ByteArrayColumnWriter(writer) => {
                let values: Vec<ByteArray> = cells()
                    .filter_map(|cell| match cell {
                        Cell::Text(text) => Some(text.as_str().into()),
                        _ => None,
                    })
                    .collect();
                writer.write_batch(&values, Some(&levels), None)
            }
            ColumnWriter::Int64ColumnWriter(writer) => {
                let values: Vec<i64> = cells()
                    .filter_map(|cell| match cell {
                        Cell::Integer(integer) => Some(*integer),
                        _ => None,
                    })
                    .collect();
                writer.write_batch(&values, Some(&levels), None)
            }
            ColumnWriter::DoubleColumnWriter(writer) => {
                let values: Vec<f64> = cells()
                    .filter_map(|cell| match cell {
                        Cell::Real(real) => Some(*real),
                        _ => None,
                    })
                    .collect();
                writer.write_batch(&values, Some(&levels), None)
            }
            _ => Err(ParquetError::General("a column of another type".to_owned())),
        };
        written?;
        column.close()?;
        index += 1;
    }
    group.close()?;
    writer.close()?;
    Ok(())
}

fn field(column: &Column) -> Result<Type> {
    let (physical, logical) = match column.kind {
        ColumnKind::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        ColumnKind::Integer => (PhysicalType::INT64, None),
        ColumnKind::Real => (PhysicalType::DOUBLE, None),
    };
    Type::primitive_type_builder(column.name, physical)
        .with_logical_type(logical)
        .with_repetition(Repetition::OPTIONAL)
        .build()
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    use super::*;

    #[test]
    fn values_and_nulls_are_read_back() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("trials.parquet");
        write(&super::super::tests::table(), std::fs::File::create(&path).unwrap()).unwrap();
        let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 2);
        let names: Vec<_> = rows[0].get_column_iter().map(|(name, _)| name.clone()).collect();
        assert_eq!(names[..4], ["run", "trial", "started_unix_ns", "test"]);
        assert_eq!(rows[0].get_long(1).unwrap(), 1);
        assert_eq!(rows[0].get_long(2).unwrap(), 1_795_000_000_000_000_001);
        assert_eq!(rows[0].get_string(3).unwrap(), "a \"test\", with a comma");
        assert_eq!(rows[0].get_double(14).unwrap(), 1.0 / 3.0);
        assert_eq!(rows[0].get_long(15).unwrap(), -5);
        assert!(rows[0].get_long(12).is_err(), "null: arrivals were not counted");
        assert_eq!(rows[1].get_string(3).unwrap(), "plain");
    }
}
