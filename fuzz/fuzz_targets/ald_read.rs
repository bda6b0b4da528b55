//! Any bytes as a dataset of alimentar, as they are and with a checksum that is right: an error, or batches whose cells are read or
//! refused. The parts of one, stored in another way, have the same rows or are refused too.

#![no_main]

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use apr_crypto::Access;
use apr_fuzz::ald::{Parts, Stored, recipient, signer, with_checksum};
use apr_table::ald::{Ald, Encryption};
use apr_table::{Accepted, Error, Table};
use libfuzzer_sys::fuzz_target;

/// Most rows that are read.
const MAX_ROWS: u64 = 1 << 20;

fuzz_target!(init: {
    // The library panics about some inputs, which is an error of the reader; other panics end the run.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| if !apr_table::catches_panics() { report(info) }));
}, |input: &[u8]| {
    let _ = read(input.to_vec());
    if let Some(file) = with_checksum(input) {
        let _ = read(file);
    }
    let Some(parts) = Parts::of(input).filter(|parts| parts.n_rows() <= MAX_ROWS) else { return };
    let plain = parts.single(Stored::Plain, false, false).map(read);
    let stored = [Stored::Plain, Stored::Zstd, Stored::Lz4][input.len() % 3];
    for other in [
        parts.single(stored, false, false),
        parts.single(stored, true, false),
        parts.single(stored, true, true),
        parts.streaming(stored),
    ] {
        let other = other.map(read);
        let is_same = match (&plain, &other) {
            (Some(Ok(plain)), Some(Ok(other))) => plain == other,
            (plain, other) => plain.as_ref().is_none_or(Result::is_err) && other.as_ref().is_none_or(Result::is_err),
        };
        assert!(is_same, "{stored:?}: {plain:?}, {other:?}");
    }
});

/// A hash of the cells.
fn read(file: Vec<u8>) -> Result<u64, Error> {
    let ald = Ald::open(file)?;
    assert!(ald.notes().len() <= 4 && ald.n_chunks() as u64 <= ald.payload_len().max(1));
    let (secret, signer) = (recipient(), signer().verifying_key());
    let mut access = Access::default();
    if ald.encryption() == Some(Encryption::Recipient) {
        access = access.with_recipient(&secret);
    }
    if ald.is_signed() {
        access = access.with_trust(&signer);
    }
    let declared = ald.n_rows_declared();
    let (mut table, _) = Table::ald(ald, &access)?;
    // Rows of nulls take no bytes.
    if declared > MAX_ROWS {
        return Ok(declared);
    }
    let width = table.names().len();
    let (mut hasher, mut rows, mut n_rows) = (DefaultHasher::new(), Vec::new(), 0);
    while let Some(batch) = table.next_batch()? {
        n_rows += batch.n_rows() as u64;
        for column in 0..width {
            (0..batch.n_rows().min(64)).for_each(|row| batch.text(row, column).ok().hash(&mut hasher));
            rows.clear();
            let accepted = Accepted { missing: true, infinite: true };
            match batch.append_rows::<f64>(&[column], accepted, &mut rows) {
                Ok(()) => rows.iter().for_each(|value| value.to_bits().hash(&mut hasher)),
                Err(error) => assert!(rows.is_empty() && error.column == column),
            }
        }
    }
    assert_eq!(n_rows, declared);
    Ok(hasher.finish())
}
