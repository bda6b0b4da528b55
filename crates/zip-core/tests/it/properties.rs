//! Any bytes.

use proptest::prelude::*;
use zip_core::{Archive, Limits};

use super::{build, plans};

/// What an archive promises.
fn check(bytes: &[u8]) -> bool {
    let Ok((archive, found)) = Archive::open(bytes, &Limits::DEFAULT) else { return false };
    assert!(found.iter().all(|finding| finding.entry.is_none_or(|entry| entry < archive.entries().len())));
    for entry in archive.entries() {
        if let Some(data) = entry.data() {
            assert!(data.start <= data.end && data.end <= bytes.len() as u64);
        }
        if let Ok(data) = archive.read(entry, 1 << 16) {
            assert_eq!(data.len() as u64, entry.len_declared());
            if let Some(range) = entry.stored() {
                assert_eq!(data, bytes[range.start as usize..range.end as usize]);
            }
        }
    }
    true
}

#[test]
fn any_changed_byte_is_refused_or_read() {
    let (bytes, _) = build(&plans());
    for at in 0..bytes.len() {
        for change in [1, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= change;
            check(&changed);
        }
        check(&bytes[..at]);
        check(&bytes[at..]);
    }
}

proptest! {
    #[test]
    fn any_bytes_before_an_end_record_are_refused_or_read(front in proptest::collection::vec(any::<u8>(), 0..200), len in 0_u8..200, at in 0_u8..200, count in 0_u8..3) {
        let end = [b"PK\x05\x06\0\0\0\0".as_slice(), &[count, 0, count, 0, len, 0, 0, 0, at, 0, 0, 0, 0, 0]].concat();
        check(&[front, end].concat());
    }

    #[test]
    fn several_changes_are_refused_or_read(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12)) {
        let (mut bytes, _) = build(&plans());
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        check(&bytes);
    }
}
