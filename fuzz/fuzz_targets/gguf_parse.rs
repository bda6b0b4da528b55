//! Any bytes: an error or a valid file, in both levels, whole or from a prefix.

#![no_main]

use conformance::gguf;
use gguf_core::{Gguf, Header, Prefix, ReadOptions};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    for file in apr_fuzz::gguf::files(input) {
        let strict = check(&file, &ReadOptions::STRICT);
        let compat = check(&file, &ReadOptions::COMPAT);
        // Refusing less: what the strict reader accepts means the same to the other.
        if let Some(strict) = strict {
            let compat = compat.expect("compat refuses less");
            assert_eq!(gguf::difference(&strict, &compat), None);
            let again = gguf::rewrite(&strict).expect("what llama.cpp reads can be written");
            let again = Gguf::from_bytes(&again).expect("what we write we read");
            assert_eq!(gguf::difference(&strict, &again), None);
        }
    }
});

/// Reads a file and proves what the reader promises.
fn check<'a>(file: &'a [u8], options: &ReadOptions) -> Option<Gguf<'a>> {
    let whole = Header::from_bytes(file, options);
    if let Ok(header) = &whole {
        let len = header.header_len() as usize;
        let prefix = |len: usize| Header::from_prefix(&file[..len], file.len() as u64, options);
        let Ok(Prefix::Header(short)) = prefix(len) else { panic!("the header is all it needs") };
        assert_eq!(format!("{short:?}"), format!("{header:?}"));
        let Ok(Prefix::More { needed }) = prefix(len - 1) else { panic!("a byte is missing") };
        assert_eq!(needed as usize, len);
    }
    let gguf = Gguf::from_bytes_with(file, options).ok()?;
    for entry in gguf.entries() {
        if let Some(array) = entry.value().as_array() {
            assert_eq!(array.iter().count(), array.len());
            assert!(array.get(array.len()).is_none());
        }
        if let Ok(key) = entry.key().to_str() {
            assert!(gguf.get(key).is_some());
        }
    }
    for info in gguf.tensors() {
        let data = gguf.tensor_data(info).expect("inside the file");
        assert_eq!(data.len() as u64, info.byte_len());
        let rows = info.element_count() / info.row_len().max(1);
        assert_eq!(info.dtype().byte_len_of_rows(info.row_len(), rows), Ok(info.byte_len()));
        if let Ok(name) = info.name().to_str() {
            assert_eq!(gguf.tensor(name).map(|found| found.info_offset()), Ok(info.info_offset()));
        }
    }
    let _ = (gguf.trailing_bytes(), gguf::rewrite(&gguf));
    Some(gguf)
}
