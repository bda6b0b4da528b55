//! Any file of version 1: an error or a model, the same through every function, in both strictness levels.

#![no_main]

use std::{env, fs, process};

use apr_container::v1::Container;
use apr_container::{
    Error, Expect, ModelInfo, PayloadLayout, ReadOptions, SaveOptions, UncheckedSignature,
    encode_payload_to_vec, inspect_bytes_with, inspect_from, load_from_bytes_with, load_with, to_vec,
};
use apr_fuzz::apr::first;
use apr_models::{AnyModel, LinearRegression, Model, Numbers};
use libfuzzer_sys::fuzz_target;

const STRICT: ReadOptions = ReadOptions::STRICT.with_unchecked_signature(UncheckedSignature::Allow);
const COMPAT: ReadOptions = ReadOptions::COMPAT;

fuzz_target!(|input: &[u8]| {
    for file in first::files(input) {
        let strict = check(&file, &STRICT);
        let compat = check(&file, &COMPAT);
        // Refusing less: what the strict reader accepts means the same to the other.
        for (strict, compat) in strict.iter().zip(&compat) {
            assert!(strict.is_none() || strict == compat, "{strict:?} in strict, {compat:?} in compat");
        }
        // A file that asks to be verified is not loaded as if it did not.
        let refusing = load_from_bytes_with::<AnyModel>(&file, Expect::AnyKnown, &ReadOptions::STRICT);
        if let Ok(container) = Container::from_bytes(&file) {
            assert!(refusing.is_err() || container.signature().is_none());
        }
        if input.first().is_some_and(|byte| byte % 16 == 5) {
            on_disk(&file);
        }
    }
});

/// Results of each function: metadata, payload, models, as bytes.
type Results = [Option<Vec<u8>>; 5];

fn check(file: &[u8], options: &ReadOptions) -> Results {
    let info = inspect_bytes_with(file, options).map_err(|error| sound(file, error)).ok();
    let read = inspect_from(&file, options).map_err(|error| sound(file, error)).ok();
    assert!(info.is_none() || info.as_ref().map(described) == read.as_ref().map(described));

    let container = Container::from_bytes_with(file, options).map_err(|error| sound(file, error)).ok();
    if let (Some(container), Some(info)) = (&container, &info) {
        assert_eq!(container.metadata_bytes().len() as u64, info.metadata_size);
        let parts = [32, info.metadata_size, info.payload_size, container.unowned().len() as u64, 4]
            .iter()
            .sum::<u64>();
        assert_eq!(parts + container.signature().map_or(0, |_| 96), info.file_size);
    }
    let payload = container.and_then(|container| container.payload().plain().ok()?.to_vec().ok());
    [
        read.and_then(|info| info.metadata.to_msgpack().ok()),
        payload,
        load::<AnyModel>(file, options),
        load::<LinearRegression>(file, options),
        load::<Numbers>(file, options),
    ]
}

/// Equal metadata may hold what is not equal to itself.
fn described(info: &ModelInfo) -> String {
    format!("{info:?}")
}

fn sound(file: &[u8], error: Error) {
    // Offsets of compressed payloads count their uncompressed bytes.
    assert!(error.offset().is_none_or(|offset| offset <= 1 << 30 | file.len() as u64), "{error}");
    assert!(error.code().starts_with("ac-") || error.code().starts_with("am-"), "{}", error.code());
    assert!(!error.to_string().is_empty());
}

/// Loads a model, uses it, and saves it so that it is loaded again; gives its payload in the newest layout.
fn load<M>(file: &[u8], options: &ReadOptions) -> Option<Vec<u8>>
where
    M: apr_container::DecodePayload + apr_container::EncodePayload + Model,
{
    let model = match load_from_bytes_with::<M>(file, Expect::AnyKnown, options) {
        Ok(model) => model,
        Err(error) => {
            sound(file, error);
            return None;
        }
    };
    let container = Container::from_bytes_with(file, options).expect("its model was loaded");
    let model_type = container.header().model_type;
    let encoded = PayloadLayout::ALL.map(|layout| encode_payload_to_vec(&model, layout).ok());
    let save = SaveOptions::default().with_created_at(0).with_compression(container.header().compression);
    if let Some(encoded) = &encoded[2] {
        match to_vec(&model, model_type, &save) {
            Ok(saved) => {
                assert_eq!(
                    Container::from_bytes(&saved)
                        .and_then(|saved| saved.payload().plain()?.to_vec())
                        .ok()
                        .as_ref(),
                    Some(encoded)
                );
                let again =
                    load_from_bytes_with::<M>(&saved, model_type, options).expect("what we write we read");
                assert_eq!(encode_payload_to_vec(&again, PayloadLayout::V0_72).ok().as_ref(), Some(encoded));
            }
            // A file may hold a model that was never fitted, which is not saved again.
            Err(error) => assert_eq!(error.code(), "am-not-fitted"),
        }
    }
    let _ = model.to_tensors();
    encoded.into_iter().next_back().flatten()
}

/// Reading a file and reading bytes give the same result.
fn on_disk(file: &[u8]) {
    let path = env::temp_dir().join(format!("apr-v1-{}.apr", process::id()));
    fs::write(&path, file).expect("the file can be written");
    for options in [STRICT, COMPAT] {
        let bytes = load_from_bytes_with::<AnyModel>(file, Expect::AnyKnown, &options);
        let disk = load_with::<AnyModel>(&path, Expect::AnyKnown, &options);
        let encoded = |model: &AnyModel| encode_payload_to_vec(model, PayloadLayout::V0_72).ok();
        match (&bytes, &disk) {
            (Ok(bytes), Ok(disk)) => assert_eq!(encoded(bytes), encoded(disk)),
            (Err(_), Err(_)) => {}
            _ => panic!("{:?} from bytes, {:?} from disk", bytes.map(drop), disk.map(drop)),
        }
    }
}
