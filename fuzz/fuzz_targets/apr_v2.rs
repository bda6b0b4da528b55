//! Any file of version 2: an error or valid tensors, the same through every function, written again unchanged.

#![no_main]

use apr_container::v2::{
    Container, Element, Footer, Index, Metadata, ShardManifest, Stored, TensorView, WriteOptions, to_vec,
};
use apr_container::{Error, ErrorKind, ReadOptions};
use apr_fuzz::apr::second;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    for file in second::files(input) {
        let strict = check(&file, &ReadOptions::STRICT);
        let compat = check(&file, &ReadOptions::COMPAT);
        // Refusing less: what the strict reader accepts means the same to the other.
        assert!(strict.is_none() || strict == compat);
    }
    if let Ok(manifest) = ShardManifest::from_json(input, &ReadOptions::STRICT) {
        let text = manifest.to_json();
        let again =
            ShardManifest::from_json(text.as_bytes(), &ReadOptions::STRICT).expect("what we write we read");
        assert_eq!(again.to_json(), text);
        assert!(manifest.weight_map().iter().all(|(name, idx)| manifest.shard_of(name) == Some(*idx)));
    }
    for options in [ReadOptions::STRICT, ReadOptions::COMPAT] {
        if let Ok(metadata) = Metadata::from_json(input, &options) {
            let text = metadata.to_json();
            assert_eq!(Metadata::from_json(text.as_bytes(), &options).ok(), Some(metadata));
        }
    }
});

fn sound(file: &[u8], error: &Error) {
    // A block that was decompressed may be longer than its file.
    assert!(error.offset().is_none_or(|offset| offset <= 1 << 30 | file.len() as u64), "{error}");
    let codes = [ErrorKind::CODES, apr_container::v2::ErrorKind::CODES].concat();
    assert!(codes.contains(&error.code()), "{}", error.code());
}

/// Reads a file and proves what the reader promises; returns its tensors as text.
fn check(file: &[u8], options: &ReadOptions) -> Option<Vec<String>> {
    let index = Index::from_bytes(file, options);
    let read = Index::read(file.len() as u64, options, |offset, buffer| {
        let part = usize::try_from(offset).ok().and_then(|begin| file.get(begin..)?.get(..buffer.len()));
        buffer.copy_from_slice(part.expect("only what is there is asked for"));
        Ok(())
    });
    match (&index, &read) {
        (Ok(index), Ok(read)) => assert_eq!(format!("{index:?}"), format!("{read:?}")),
        (Err(one), Err(other)) => assert_eq!(one.code(), other.code()),
        _ => panic!("{index:?} from bytes, {read:?} from a reader"),
    }
    let raw = Container::from_bytes_with(file, options);
    assert!(raw.is_err() || index.is_ok());
    let stored = match Stored::from_bytes(file, options) {
        Ok(stored) => stored,
        Err(error) => {
            sound(file, &error);
            assert!(raw.is_err());
            return None;
        }
    };
    assert_eq!(raw.is_ok(), matches!(stored, Stored::Raw(_)));
    let container = stored.container();
    if *options == ReadOptions::STRICT {
        assert!(!matches!(container.footer(), Footer::Wrong { .. }));
    }
    let _ = (container.warnings().count(), format!("{container:?}"));
    let Ok(tensors) = container.tensors() else { return Some(Vec::new()) };
    let views: Vec<TensorView<'_>> = tensors.collect();
    assert_eq!(views.len(), container.len());
    for view in &views {
        let info = container.index().tensor(view.name()).expect("it is in the index");
        assert_eq!(
            (info.shape(), info.dtype(), info.byte_len()),
            (view.shape(), view.dtype(), view.data().len() as u64)
        );
        assert!(std::ptr::eq(view.data(), container.data(view.name()).expect("as the view")));
        if let Ok(values) = view.to_f32() {
            assert_eq!(values.len() as u64, view.element_count());
        }
        let _ = (elements::<f32>(view), elements::<f64>(view), elements::<i64>(view), elements::<u8>(view));
    }
    if *options == ReadOptions::STRICT {
        let options = WriteOptions::like(container.index());
        match to_vec(&views, &options) {
            Ok(written) => {
                // Types of a later version are carried; the version written does not have them.
                let known = views.iter().all(|view| view.dtype().known().is_some());
                let options = if known { ReadOptions::STRICT } else { ReadOptions::COMPAT };
                let again = Container::from_bytes_with(&written, &options).expect("what we write we read");
                assert!(again.tensors().expect("not encrypted").eq(views.iter().copied()));
                assert_eq!(again.metadata(), container.metadata());
            }
            // A later minor version may hold what this writer does not know.
            Err(error) => assert_ne!(container.header().version(), (2, 0), "{error}"),
        }
    }
    Some(views.iter().map(|view| format!("{view:?}{:?}", view.data())).collect())
}

fn elements<T: Element + PartialEq>(view: &TensorView<'_>) -> Option<usize> {
    let elements = view.elements::<T>().ok()?;
    let count = elements.len();
    if let Ok(slice) = view.as_slice::<T>() {
        assert_eq!(slice.len(), count);
    }
    assert_eq!(elements.count(), count);
    Some(count)
}
