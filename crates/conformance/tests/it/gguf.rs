//! GGUF: every vector as recorded, every truncation and every changed byte of the small ones survived.

use conformance::gguf;
use conformance::vectors::StrictVerdict;
use gguf_core::{ErrorKind, Gguf, Header, Prefix, ReadOptions};

#[test]
fn every_cell_is_what_the_sidecars_say() {
    let suite = gguf::suite().unwrap();
    assert_eq!(suite.failures().collect::<Vec<_>>(), Vec::<String>::new());
    // More may be added.
    assert!(suite.vectors() >= 100, "{}", suite.vectors());
}

/// Compat refuses less, and what both read means the same to both.
#[test]
fn compat_reads_what_strict_reads() {
    for vector in gguf::vectors().unwrap() {
        let file = gguf::read(&vector).unwrap();
        let [strict, compat] =
            [ReadOptions::STRICT, ReadOptions::COMPAT].map(|options| Gguf::from_bytes_with(&file, &options));
        if let Ok(strict) = &strict {
            assert_eq!(gguf::difference(strict, compat.as_ref().unwrap()), None, "{}", vector.file);
        }
        for verdict in &vector.verdicts {
            if let StrictVerdict::Refuse { code, offset } = verdict {
                assert!(ErrorKind::CODES.contains(&code.as_str()), "{}: {code}", vector.file);
                assert!(offset.is_none_or(|offset| offset <= file.len() as u64), "{}", vector.file);
            }
        }
    }
}

#[test]
fn no_truncation_and_no_changed_byte_breaks_a_reader() {
    let mut cases = 0;
    for vector in gguf::vectors().unwrap() {
        let mut file = gguf::read(&vector).unwrap();
        if file.len() > 400 {
            continue;
        }
        for len in 0..file.len() {
            let short = &file[..len];
            drop(gguf::read_both(short));
            // The same from a prefix of the whole file: more is asked for, and never less than is there.
            let prefix = Header::from_prefix(short, file.len() as u64, &ReadOptions::COMPAT);
            if let Ok(Prefix::More { needed }) = prefix {
                assert!((len as u64 + 1..=file.len() as u64).contains(&needed), "{}, {len}", vector.file);
            }
            cases += 1;
        }
        for at in 0..file.len() {
            let old = file[at];
            for new in [0, 1, 0x7f, 0x80, 0xff, old ^ 1, old ^ 0x20, old.wrapping_add(1)] {
                file[at] = new;
                let [strict, compat] = gguf::read_both(&file);
                assert!(strict.is_err() || compat.is_ok(), "{}, byte {at} = {new}", vector.file);
                if let Ok(gguf) = Gguf::from_bytes_with(&file, &ReadOptions::COMPAT) {
                    walk(&gguf);
                }
                cases += 1;
            }
            file[at] = old;
        }
    }
    assert!(cases > 50_000, "{cases}");
}

/// Looks at everything a file gives.
fn walk(gguf: &Gguf<'_>) {
    for entry in gguf.entries() {
        // Texts of one file differ, so each is found under its own key; one that is not UTF-8 cannot be asked for.
        if let Ok(key) = entry.key().to_str() {
            assert_eq!(gguf.entry(key).map(gguf_core::Entry::key), Some(entry.key()));
        }
        if let Some(array) = entry.value().as_array() {
            assert_eq!(array.iter().count(), array.len());
            assert!(array.is_empty() || array.get(array.len() - 1).is_some());
        }
    }
    for info in gguf.tensors() {
        let data = gguf.tensor_data(info).unwrap();
        assert_eq!(data.len() as u64, info.byte_len());
        assert_eq!(info.dims().len(), info.shape().len());
        if let Ok(name) = info.name().to_str() {
            assert_eq!(gguf.tensor(name).map(gguf_core::TensorInfo::info_offset), Ok(info.info_offset()));
        }
    }
    let _ = (gguf::rewrite(gguf), format!("{gguf:?}"), gguf.trailing_bytes());
}
