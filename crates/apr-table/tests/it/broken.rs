//! Files that are cut, changed or made to exhaust memory.

use apr_table::{Accepted, Table};

use crate::bytes;

/// Reads everything; what matters is that it ends with a value or an error.
fn read(bytes: &[u8]) -> Option<u64> {
    let table = match bytes.starts_with(b"PAR1") {
        true => Table::parquet_in_memory(bytes.to_vec()),
        false => Table::arrow(bytes),
    };
    let mut table = table.ok()?;
    let columns: Vec<usize> = (0..table.names().len()).collect();
    let mut n_rows = 0;
    while let Some(batch) = table.next_batch().ok()? {
        n_rows += batch.n_rows() as u64;
        let mut rows = Vec::new();
        for &column in &columns {
            let _ =
                batch.append_rows::<f64>(&[column], Accepted { missing: true, infinite: true }, &mut rows);
            let _ = batch.text(0, column);
        }
    }
    Some(n_rows)
}

#[test]
fn streams_that_are_cut_are_refused() {
    let whole = bytes("stream.arrows");
    assert_eq!(read(&whole), Some(25));
    for len in 0..whole.len() {
        // Between two messages, a stream without an end mark is whole.
        if let Some(n_rows) = read(&whole[..len]) {
            assert!([0, 10, 20, 25].contains(&n_rows), "{len} {n_rows}");
        }
    }
}

#[test]
fn parquet_files_that_are_changed_are_read_or_refused() {
    for file in ["zstd.parquet", "version2.parquet", "samples.parquet"] {
        let whole = bytes(file);
        for len in (0..whole.len()).step_by(97) {
            assert_eq!(read(&whole[..len]), None);
        }
        for at in (0..whole.len()).step_by(3) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x55;
            read(&bytes);
        }
    }
}

#[test]
fn lengths_are_compared_with_the_limits_before_memory_is_taken() {
    for file in ["stream.arrows", "compressed.arrows"] {
        let whole = bytes(file);
        for at in (0..whole.len().min(20_000)).step_by(4) {
            for value in [0xff, 0x7f] {
                let mut bytes = whole.clone();
                bytes[at..at + 4].copy_from_slice(&[value; 4]);
                read(&bytes);
            }
        }
    }
}
