//! Tables that are written.

use std::io::{self, Write};

use apr_table::{
    Accepted, CellType, Cells, ColumnSpec, Error, ErrorKind, Table, TableFormat, TableWriter, Values,
};

const FORMATS: [TableFormat; 3] = [TableFormat::ArrowFile, TableFormat::ArrowStream, TableFormat::Parquet];

fn columns() -> Vec<ColumnSpec> {
    let column =
        |name: &str, cell_type, is_nullable| ColumnSpec { name: name.into(), cell_type, is_nullable };
    vec![
        column("f32", CellType::F32, false),
        column("a.b", CellType::F64, true),
        column("i64", CellType::I64, true),
        column("bool", CellType::Bool, true),
        column("é", CellType::Text, true),
        column("label", CellType::Text, false),
    ]
}

/// The cells of these rows: in the nullable columns every third is null.
fn rows(range: core::ops::Range<i64>) -> Vec<Cells> {
    let is_valid = Some(range.clone().map(|row| row % 3 != 0).collect::<Vec<_>>());
    let nullable = |values| Cells { values, is_valid: is_valid.clone() };
    let names: Vec<String> = range.clone().map(|row| format!("text {row}")).collect();
    let labels = range.clone().map(|row| ["red", "", "blue"][row as usize % 3]);
    vec![
        Values::F32(range.clone().map(|row| row as f32 / 3.0).collect()).into(),
        nullable(Values::F64(range.clone().map(|row| row as f64 / 3.0).collect())),
        nullable(Values::I64(range.clone().map(|row| i64::MAX - row).collect())),
        nullable(Values::Bool(range.clone().map(|row| row % 2 == 0).collect())),
        nullable(Values::Text(names.iter().map(String::as_str).collect())),
        Values::Text(labels.collect()).into(),
    ]
}

fn written(format: TableFormat, n_rows: i64, at_once: i64) -> Vec<u8> {
    let mut writer = TableWriter::new(Vec::new(), format, columns()).unwrap();
    for begin in (0..n_rows).step_by(at_once as usize) {
        writer.write(rows(begin..n_rows.min(begin + at_once))).unwrap();
    }
    writer.finish().unwrap()
}

fn read(bytes: Vec<u8>) -> Table<'static> {
    match bytes.starts_with(b"PAR1") {
        true => Table::parquet_in_memory(bytes).unwrap(),
        false => Table::arrow(io::Cursor::new(bytes)).unwrap(),
    }
}

#[test]
fn what_is_written_is_read() {
    for format in FORMATS {
        let mut table = read(written(format, 20_000, 1000));
        assert_eq!(table.names(), ["f32", "a.b", "i64", "bool", "é", "label"]);
        let mut row = 0_i64;
        while let Some(batch) = table.next_batch().unwrap() {
            let mut numbers = Vec::new();
            let missing = Accepted { missing: true, infinite: false };
            batch.append_rows::<f64>(&[0, 1], missing, &mut numbers).unwrap();
            for (at, pair) in (0..batch.n_rows()).zip(numbers.chunks_exact(2)) {
                let is_null = row % 3 == 0;
                assert_eq!((pair[0] as f32, pair[1].is_nan()), (row as f32 / 3.0, is_null));
                assert!(is_null || pair[1] == row as f64 / 3.0);
                let text = |column| batch.text(at, column).unwrap().map(String::from);
                assert_eq!(text(2), (!is_null).then(|| (i64::MAX - row).to_string()));
                assert_eq!(text(3), (!is_null).then(|| (row % 2 == 0).to_string()));
                assert_eq!(text(4), (!is_null).then(|| format!("text {row}")));
                assert_eq!(text(5).unwrap(), ["red", "", "blue"][row as usize % 3]);
                row += 1;
            }
        }
        assert_eq!(row, 20_000, "{format:?}");
    }
}

#[test]
fn the_same_rows_give_the_same_bytes_in_whatever_batches() {
    for format in FORMATS {
        let whole = written(format, 150_000, 150_000);
        for at_once in [1000, 65_536, 70_001] {
            assert!(written(format, 150_000, at_once) == whole, "{format:?} {at_once}");
        }
    }
    // A table without rows has its columns.
    for format in FORMATS {
        let mut table = read(written(format, 0, 1));
        assert_eq!(table.names().len(), 6);
        assert!(table.next_batch().unwrap().is_none(), "{format:?}");
    }
}

#[test]
fn long_texts_are_written_in_small_groups() {
    let column = ColumnSpec { name: "t".into(), cell_type: CellType::Text, is_nullable: false };
    let text = "x".repeat(1 << 20);
    for format in FORMATS {
        let mut writer = TableWriter::new(Vec::new(), format, vec![column.clone()]).unwrap();
        for _ in 0..80 {
            writer.write(vec![Values::Text([text.as_str()].into_iter().collect()).into()]).unwrap();
        }
        let mut table = read(writer.finish().unwrap());
        let (mut n_rows, mut largest) = (0, 0);
        while let Some(batch) = table.next_batch().unwrap() {
            (n_rows, largest) = (n_rows + batch.n_rows(), largest.max(batch.n_rows()));
        }
        assert_eq!(n_rows, 80, "{format:?}");
        assert!(largest <= 64, "{format:?} {largest}");
    }
}

#[test]
fn cells_of_other_columns_are_refused() {
    let mut twice = columns();
    twice.push(twice[0].clone());
    for format in FORMATS {
        let error = TableWriter::new(Vec::new(), format, twice.clone()).unwrap_err();
        assert_eq!((error.kind(), error.subject().unwrap().name()), (&ErrorKind::DuplicateColumn {}, "f32"));
        let write = |cells: Vec<Cells>| -> Error {
            TableWriter::new(Vec::new(), format, columns()).unwrap().write(cells).unwrap_err()
        };
        let mut swapped = rows(0..3);
        swapped.swap(0, 1);
        let mut short = rows(0..3);
        short[2] = rows(0..2).remove(2);
        let mut null = rows(0..3);
        null[0].is_valid = Some(vec![true; 3]);
        for cells in [swapped, short, null, rows(0..3).split_off(1), Vec::new()] {
            assert_eq!(*write(cells).kind(), ErrorKind::Columns {});
        }
    }
}

/// Takes so many bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0 -= bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_named() {
    for format in FORMATS {
        let len = written(format, 1000, 1000).len();
        for left in (0..len).step_by(len / 50) {
            let write = || {
                let mut writer = TableWriter::new(Full(left), format, columns())?;
                writer.write(rows(0..1000))?;
                writer.finish().map(drop)
            };
            let error = write().unwrap_err();
            assert_eq!(error.kind(), &ErrorKind::Write {}, "{format:?} {left} {error}");
            let cause = located_error::io_error(&error).unwrap();
            assert_eq!(cause.kind(), io::ErrorKind::StorageFull, "{format:?} {left}");
        }
    }
}
