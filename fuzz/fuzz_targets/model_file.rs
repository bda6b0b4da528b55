//! Any bytes are refused or opened as a model file, described, and their tensors read; the last byte chooses the options.

#![no_main]

use apr_crypto::Access;
use apr_fuzz::sealed::recipient;
use libfuzzer_sys::fuzz_target;
use model_file::{Contents, Error, FileKind, ModelFile, OpenOptions, ReadOptions};

fuzz_target!(|input: &[u8]| {
    let choice = input.last().copied().unwrap_or_default();
    let mut read = if choice & 1 == 0 { ReadOptions::STRICT } else { ReadOptions::COMPAT };
    if choice & 2 != 0 {
        read = read.with_unchecked_signatures();
    }
    let secret = recipient();
    let mut options = OpenOptions::new().with_read_options(read);
    match choice & 12 {
        4 => options = options.with_access(Access::default()),
        8 => options = options.with_access(Access::default().with_recipient(&secret)),
        _ => {}
    }
    let Ok(kind) = FileKind::of_source(&input) else { return };
    let file = match ModelFile::from_bytes(input, &options) {
        Ok(file) => file,
        Err(error) => return sound(&error),
    };
    // The graph says that a file of ONNX is ONNX-ML; its first bytes do not.
    let found = if file.format().name() == "onnx-ml" { "onnx" } else { file.format().name() };
    assert!(file.is_sealed() || kind.expected().name() == found);
    let Ok(description) = file.describe().inspect_err(sound) else { return };
    assert_eq!(description.format, file.format().name());
    let Ok(tensors) = file.tensors().inspect_err(sound) else { return };
    if !matches!(file.contents(), Contents::AprV1(_)) {
        assert_eq!(description.tensors.len(), tensors.len());
    }
    for tensor in tensors.iter().take(4) {
        let Ok(bytes) = tensor.to_vec().inspect_err(sound) else { continue };
        assert_eq!(bytes.len() as u64, tensor.byte_len());
        let mut beyond = vec![0; 1];
        assert!(tensor.read(tensor.byte_len(), &mut beyond).is_err());
        if tensor.elements() < 1 << 16 {
            let _ = tensor.to_f32().inspect_err(sound);
        }
    }
    let _ = file.model().inspect_err(sound);
    let _ = file.verify().inspect_err(sound);
});

fn sound(error: &Error) {
    assert!(!error.code().is_empty() && !error.to_string().is_empty());
}
