//! Any bytes as a checkpoint, a program or an index of PyTorch: an error, or tensors of which each gives as many bytes as its shape says, or an error.

#![no_main]

use apr_fuzz::foreign::check_up_to;
use foreign_tensors::{NoCompanions, Options, torch};
use libfuzzer_sys::fuzz_target;

/// Longer tensors are not read: most of them repeat a few bytes.
const MAX_TENSOR: u64 = 1 << 22;

fuzz_target!(|input: &[u8]| {
    check_up_to(MAX_TENSOR, &torch::read(&input, &NoCompanions, &Options::default()), input);
    let mut options = Options::default();
    options.object = "model".into();
    check_up_to(MAX_TENSOR, &torch::read(&input, &NoCompanions, &options), input);
});
