//! Any bytes: an error or a valid table, in both strictness levels, through every function.

#![no_main]

use conformance::{ours, reading};
use libfuzzer_sys::fuzz_target;
use st_core::{ErrorKind, Header, ReadOptions, SafeTensors, ShardIndex};

fuzz_target!(|input: &[u8]| {
    for file in apr_fuzz::files(input) {
        let strict = check(&file, &ReadOptions::STRICT);
        let compat = check(&file, &ReadOptions::COMPAT);
        // Refusing less: what the strict reader accepts means the same to the other.
        if strict {
            assert!(compat);
            let contents =
                [ReadOptions::STRICT, ReadOptions::COMPAT].map(|options| ours::read(&file, &options));
            assert_eq!(contents[0], contents[1]);
        }
        assert_eq!(reading::find_disagrees(&file), None);
        for name in ["", "a", "__metadata__", "layers.0.weight"] {
            if let Ok(Some(found)) = st_core::find(&file, name) {
                assert!(file.as_ptr_range().start <= found.data().as_ptr());
                found.dims().count();
            }
        }
    }
    if let Ok(index) = ShardIndex::from_json(input) {
        let again = ShardIndex::from_json(index.to_json().as_bytes()).expect("what we write we read");
        assert_eq!(again.to_json(), index.to_json());
        assert!(index.shard_names().count() <= index.weight_map().count());
        index.check(|_| None);
    }
});

/// Reads a file and proves what the reader promises; returns whether it was accepted.
fn check(file: &[u8], options: &ReadOptions) -> bool {
    let from_prefix = |len: usize| Header::from_prefix(&file[..len], file.len() as u64, options);
    let tensors = match SafeTensors::from_bytes_with(file, options) {
        Ok(tensors) => tensors,
        Err(error) => {
            assert!(error.offset().is_none_or(|offset| offset <= file.len() as u64), "{error}");
            assert!(ErrorKind::CODES.contains(&error.code()));
            assert_eq!(Header::from_bytes(file, options).err().as_ref(), Some(&error));
            let _ = error.to_string();
            return false;
        }
    };
    let header = tensors.header();
    assert_eq!(header.file_len(), file.len() as u64);
    let mut end = header.data_start();
    for (idx, info) in header.iter().enumerate() {
        assert_eq!((info.index(), info.file_range().start), (idx, end));
        end = info.file_range().end;
        assert_eq!(info.dtype().byte_len(info.shape()), Ok(info.byte_len()));
        assert_eq!(header.tensor(info.name()).map(|found| found.index()), Some(idx));
        let view = tensors.tensor(info.name()).expect("it is in the table");
        let range = info.file_range().start as usize..end as usize;
        assert!(std::ptr::eq(view.data(), &file[range]));
        let count = info.element_count() as usize;
        assert!(view.to_f32().map_or(true, |values| values.count() == count));
        assert!(view.to_f64().map_or(true, |values| values.count() == count));
    }
    assert_eq!(end, header.file_len());
    if let Some(metadata) = header.metadata() {
        assert!(metadata.iter().all(|(key, value)| metadata.get(key) == Some(value)));
    }
    let prefix = from_prefix(header.data_start() as usize).expect("the prefix is all it needs");
    assert!(prefix.iter().map(|info| info.name()).eq(header.iter().map(|info| info.name())));
    assert!(from_prefix(header.data_start() as usize - 1).is_err());
    let _ = format!("{header:?}");
    true
}
