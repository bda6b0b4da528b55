//! Any bytes as pickled arrays: an error, or tensors of which each gives as many bytes as its shape says, or an error.

#![no_main]

use foreign_tensors::{Error, Model, NoCompanions, Options, joblib};
use libfuzzer_sys::fuzz_target;
use read_at::ReadAt;

/// Longer tensors are not read: most of them repeat a few bytes.
const MAX_TENSOR: u64 = 1 << 22;

fuzz_target!(|input: &[u8]| {
    let mut options = Options::default();
    options.limits.decompressed_bytes = 1 << 20;
    check(input, joblib::read(&input, &NoCompanions, &options));
});

fn check(input: &[u8], model: Result<Model, Error>) {
    let Ok(model) = model else { return };
    for tensor in model.tensors().iter().filter(|tensor| tensor.byte_len() <= MAX_TENSOR) {
        if let Ok(bytes) = tensor.to_vec(&model, &input) {
            assert_eq!(bytes.len() as u64, tensor.byte_len());
        }
        if let Some((file, range)) = tensor.stored() {
            // The decompressed stream is the only companion.
            let len = match file.checked_sub(1) {
                None => input.len() as u64,
                Some(companion) => model.companions()[companion].total_len(),
            };
            assert!(range.end <= len);
        }
    }
    for alias in model.aliases() {
        assert!(model.tensors().iter().any(|tensor| tensor.name() == alias.of));
    }
}
