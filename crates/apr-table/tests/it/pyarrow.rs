//! Files of pyarrow: `tests/data/README.md`.

use apr_table::{Accepted, ErrorKind, Problem, Table};
use serde_json::Value;

use crate::open;

const ANYTHING: Accepted = Accepted { missing: true, infinite: true };

fn expected() -> Value {
    serde_json::from_slice::<Value>(&crate::bytes("expected.json")).unwrap()["columns"].take()
}

/// The cells of a column as texts, and as numbers where they all are.
fn read(table: &mut Table<'_>, column: usize) -> (Vec<Value>, Result<Vec<f64>, Problem>) {
    table.choose(&[column]).unwrap();
    let (mut texts, mut numbers) = (Vec::new(), Ok(Vec::new()));
    while let Some(batch) = table.next_batch().unwrap() {
        assert_eq!(batch.first_row() as usize, texts.len());
        texts.extend((0..batch.n_rows()).map(|row| Value::from(batch.text(row, column).unwrap())));
        if let Ok(rows) = &mut numbers
            && let Err(error) = batch.append_rows::<f64>(&[column], ANYTHING, rows)
        {
            numbers = Err(error.problem);
        }
    }
    (texts, numbers)
}

/// Whether two texts are the same or the same number.
fn is_same(found: &Value, expected: &Value) -> bool {
    let number = |value: &Value| value.as_str().and_then(|text| text.parse::<f64>().ok());
    match (number(found), number(expected)) {
        (Some(found), Some(expected)) => found.to_bits() == expected.to_bits(),
        // NaN is missing.
        (None, Some(expected)) if expected.is_nan() => found.is_null(),
        _ => found == expected,
    }
}

#[test]
fn every_column_has_the_cells_that_pyarrow_wrote() {
    let expected = expected();
    let files = [
        "none.parquet",
        "snappy.parquet",
        "gzip.parquet",
        "zstd.parquet",
        "lz4.parquet",
        "version2.parquet",
        "gzip2.parquet",
        "uncompressed.arrow",
        "lz4.arrow",
        "zstd.arrow",
        "polars.arrow",
        "polars_zstd.arrow",
        "stream.arrows",
        "compressed.arrows",
        "deltas.arrows",
        "nulls.arrows",
    ];
    for file in files {
        let names = open(file).unwrap().names().to_vec();
        for (column, name) in names.iter().enumerate() {
            let (texts, numbers) = read(&mut open(file).unwrap(), column);
            let cells = expected[name].as_array().unwrap();
            assert_eq!(texts.len(), cells.len(), "{file} {name}");
            for (found, cell) in texts.iter().zip(cells) {
                // pyarrow prints the nearest double of a float, Rust the shortest digits of it.
                let is_float = name == "float" && {
                    let number = |value: &Value| value.as_str().unwrap().parse::<f64>().unwrap() as f32;
                    number(found) == number(cell)
                };
                assert!(is_float || is_same(found, cell), "{file} {name}: {found} {cell}");
            }
            let is_text =
                name.contains("string") || ["dictionary", "some_dictionary", "deltas"].contains(&&**name);
            assert_eq!(numbers.is_err(), is_text, "{file} {name} {numbers:?}");
            for (number, cell) in numbers.into_iter().flatten().zip(cells) {
                let cell = match cell.as_str() {
                    None => f64::NAN,
                    Some("true") => 1.0,
                    Some("false") => 0.0,
                    Some(text) => text.parse().unwrap(),
                };
                assert!(
                    number == cell || (number.is_nan() && cell.is_nan()),
                    "{file} {name}: {number} {cell}"
                );
            }
        }
    }
}

#[test]
fn rows_have_the_columns_in_the_order_asked_for() {
    for file in ["none.parquet", "stream.arrows"] {
        let mut table = open(file).unwrap();
        let [double, int8] =
            ["double", "int8"].map(|name| table.names().iter().position(|n| n == name).unwrap());
        table.choose(&[double, int8]).unwrap();
        let mut rows = Vec::new();
        while let Some(batch) = table.next_batch().unwrap() {
            batch.append_rows::<f32>(&[double, int8], Accepted::FINITE, &mut rows).unwrap();
        }
        assert_eq!(rows.len(), 50, "{file}");
        assert_eq!(rows[..4], [0.0, 127.0, 0.1, -126.0]);
    }
}

#[test]
fn cells_that_are_not_accepted_are_refused_with_their_place() {
    for (name, row, problem) in [
        ("some_int", 3, "the cell is empty"),
        ("not_finite", 0, "`NaN` is not a finite number"),
        ("string", 0, "the text `é0` is not a number"),
        ("null", 0, "the cell is empty"),
        ("dictionary", 0, "the text `red` is not a number"),
    ] {
        for file in ["none.parquet", "stream.arrows"] {
            let mut table = open(file).unwrap();
            let column = table.names().iter().position(|n| n == name).unwrap();
            table.choose(&[column]).unwrap();
            let batch = table.next_batch().unwrap().unwrap();
            let mut rows = vec![7.0];
            let error = batch.append_rows::<f64>(&[column], Accepted::FINITE, &mut rows).unwrap_err();
            assert_eq!((error.row, error.column, error.problem.to_string().as_str()), (row, column, problem));
            assert_eq!(rows, [7.0]);
            if row > 0 {
                batch.slice(0, 3).append_rows::<f64>(&[column], Accepted::FINITE, &mut rows).unwrap();
                assert_eq!(rows, [7.0, 0.0, 1.0, 2.0]);
                assert_eq!(batch.slice(2, 99).first_row(), 2);
            }
        }
    }
}

#[test]
fn columns_of_other_types_are_refused_by_name() {
    for file in ["other_types.parquet", "other_types.arrows"] {
        let names = open(file).unwrap().names().to_vec();
        assert_eq!(names.len(), 7);
        for (column, name) in names.iter().enumerate().skip(1) {
            let error = open(file).unwrap().choose(&[column]).unwrap_err();
            let expected = match (name.as_str(), file) {
                ("time", _) => "timestamp",
                ("decimal", "other_types.arrows") => "decimal128",
                (name, _) => name,
            };
            assert!(matches!(*error.kind(), ErrorKind::ColumnType { found } if found == expected), "{error}");
            assert_eq!(error.subject().unwrap().name(), name);
        }
        assert_eq!(read(&mut open(file).unwrap(), 0).1.unwrap().len(), 25);
    }
    assert!(matches!(open("brotli.parquet"), Err(error) if *error.kind() == ErrorKind::Compression {}));
    for file in ["empty.parquet", "empty.arrows", "polars_empty.arrow"] {
        assert!(open(file).unwrap().next_batch().unwrap().is_none());
    }
}
