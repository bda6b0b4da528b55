//! Any bytes as an Arrow IPC stream or file, or as a Parquet file: an error, or batches whose cells are read or refused, one by one and in rows.

#![no_main]

use apr_table::{Accepted, Table};
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: {
    // The library panics about some inputs, which is an error of the reader; other panics end the run.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| if !apr_table::catches_panics() { report(info) }));
}, |input: &[u8]| {
    let table = match input.starts_with(b"PAR1") {
        true => Table::parquet_in_memory(input.to_vec()),
        false => Table::arrow(input),
    };
    let Ok(mut table) = table else { return };
    let width = table.names().len();
    let mut rows = Vec::new();
    while let Ok(Some(batch)) = table.next_batch() {
        for column in 0..width {
            let texts = (0..batch.n_rows().min(64)).filter(|&row| matches!(batch.text(row, column), Ok(Some(_)))).count();
            rows.clear();
            match batch.append_rows::<f64>(&[column], Accepted { missing: true, infinite: true }, &mut rows) {
                Ok(()) => assert_eq!(rows.len(), batch.n_rows()),
                Err(error) => assert!(rows.is_empty() && error.row >= batch.first_row() && error.column == column),
            }
            assert!(texts <= batch.n_rows());
        }
    }
});
