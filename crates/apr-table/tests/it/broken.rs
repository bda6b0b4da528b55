//! Files that are cut, changed or made to exhaust memory.

use apr_table::{Accepted, Table};
use located_error::Category;

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

/// A file of polars.
#[test]
fn a_message_without_a_length_ends_where_the_next_one_begins() {
    let whole = bytes("polars.arrow");
    assert_eq!(read(&whole), Some(25));
    let error = |bytes: &[u8]| Table::arrow(bytes).map(drop).unwrap_err().code();
    let first = whole.windows(4).position(|word| word == [0xff; 4]).unwrap();
    for len in 8..first + 4 {
        assert_eq!(error(&whole[..len]), "tb-truncated", "{len}");
    }
    for idx in 8..first {
        let mut changed = whole.clone();
        changed[idx] ^= 0xff;
        // It ends with a value or an error.
        let _ = read(&changed);
    }
    let begin = [&b"ARROW1\0\0"[..], &[4, 0, 0, 0]].concat();
    assert_eq!(error(&[&begin[..], &[0xff; 400]].concat()), "tb-arrow");
    assert_eq!(error(&[&begin[..], &[0; 5 << 20]].concat()), "tb-limit");
    let categories = Table::arrow(&bytes("polars_categorical.arrow")[..]).unwrap().next_batch().map(drop);
    let entry = categories.unwrap_err().entry().unwrap();
    assert_eq!((entry.code, entry.category), ("tb-late-dictionaries", Category::Unsupported));
    assert!(entry.remedy.contains("write_ipc_stream"), "{}", entry.remedy);
    // Its table would be beyond its end.
    let out = [&b"ARROW1\0\0"[..], &[32, 0, 0, 0], &[0; 8], &[0xff; 4], &[0; 4]].concat();
    assert_eq!(error(&out), "tb-truncated");
}

/// Where each message of a stream begins.
fn messages(stream: &[u8]) -> Vec<usize> {
    let (mut places, mut at) = (Vec::new(), 0);
    loop {
        let len = u32::from_le_bytes(stream[at + 4..at + 8].try_into().unwrap()) as usize;
        if len == 0 {
            return places;
        }
        places.push(at);
        let message = arrow_ipc::root_as_message(&stream[at + 8..at + 8 + len]).unwrap();
        at += 8 + len + message.bodyLength() as usize;
    }
}

#[test]
fn an_error_is_at_the_beginning_of_its_message() {
    let whole = bytes("stream.arrows");
    for at in messages(&whole) {
        for (place, value) in [(at + 8, 0xff), (at + 7, 0x7f)] {
            let mut changed = whole.clone();
            changed[place] = value;
            let read = || {
                let mut table = Table::arrow(changed.as_slice())?;
                while table.next_batch()?.is_some() {}
                Ok::<_, apr_table::Error>(())
            };
            assert_eq!(read().unwrap_err().offset(), Some(at as u64), "{place}");
        }
    }
}

#[test]
fn parquet_files_that_are_changed_are_read_or_refused() {
    for file in ["zstd.parquet", "gzip.parquet", "version2.parquet", "samples.parquet"] {
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
