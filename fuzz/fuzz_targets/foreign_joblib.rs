//! Any bytes as pickled arrays: an error, or tensors of which each gives as many bytes as its shape says, or an error.

#![no_main]

use apr_fuzz::foreign::check_up_to;
use foreign_tensors::{NoCompanions, Options, joblib};
use libfuzzer_sys::fuzz_target;

/// Longer tensors are not read: most of them repeat a few bytes.
const MAX_TENSOR: u64 = 1 << 22;

fuzz_target!(|input: &[u8]| {
    let mut options = Options::default();
    options.limits.decompressed_bytes = 1 << 20;
    check_up_to(MAX_TENSOR, &joblib::read(&input, &NoCompanions, &options), input);
});
