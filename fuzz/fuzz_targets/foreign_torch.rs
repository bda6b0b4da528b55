//! Any bytes as a checkpoint, a program or an index of PyTorch: an error, or tensors of which each gives as many bytes as its shape says, or an error.

#![no_main]

use foreign_tensors::{Error, Model, NoCompanions, Options, torch};
use libfuzzer_sys::fuzz_target;

/// Longer tensors are not read: most of them repeat a few bytes.
const MAX_TENSOR: u64 = 1 << 22;

fuzz_target!(|input: &[u8]| {
    check(input, torch::read(&input, &NoCompanions, &Options::default()));
    let mut options = Options::default();
    options.key = "model".into();
    check(input, torch::read(&input, &NoCompanions, &options));
});

fn check(input: &[u8], model: Result<Model, Error>) {
    let Ok(model) = model else { return };
    for tensor in model.tensors().iter().filter(|tensor| tensor.byte_len() <= MAX_TENSOR) {
        if let Ok(bytes) = tensor.to_vec(&model, &input) {
            assert_eq!(bytes.len() as u64, tensor.byte_len());
        }
        if let Some((file, range)) = tensor.stored() {
            assert!(file == 0 && range.end <= input.len() as u64);
        }
    }
    for alias in model.aliases() {
        assert!(model.tensors().iter().any(|tensor| tensor.name() == alias.of));
    }
}
