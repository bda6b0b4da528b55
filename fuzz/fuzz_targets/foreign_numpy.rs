//! Any bytes as an array or an archive of arrays of NumPy: an error, or tensors of which each gives as many bytes as its shape says, or an error.

#![no_main]

use apr_fuzz::foreign::check_up_to;
use foreign_tensors::{NoCompanions, Options, numpy};
use libfuzzer_sys::fuzz_target;

/// Longer tensors are not read: most of them repeat a few bytes.
const MAX_TENSOR: u64 = 1 << 22;

fuzz_target!(|input: &[u8]| {
    check_up_to(MAX_TENSOR, &numpy::read(&input, &NoCompanions, &Options::default()), input);
    let mut options = Options::default();
    options.void_is_bf16 = true;
    check_up_to(MAX_TENSOR, &numpy::read(&input, &NoCompanions, &options), input);
});
