//! Any bytes as an HDF5 file and as a `.keras` archive: refused, or tensors of as many bytes as they declare and entries that are JSON.

#![no_main]

use apr_fuzz::foreign::check;
use foreign_tensors::{Error, Model, NoCompanions, Options, Tensor, hdf5, keras};
use libfuzzer_sys::fuzz_target;

/// Bytes of all tensors: a small file may have many long ones that were never written, all fill values.
const MAX_TENSORS: u64 = 1 << 24;

fuzz_target!(|input: &[u8]| {
    check_short(&hdf5::read(&input, &NoCompanions, &Options::default()), input);
    if input.starts_with(b"PK") {
        check_short(&keras::read(&input, &NoCompanions, &Options::default()), input);
    }
});

fn check_short(model: &Result<Model, Error>, input: &[u8]) {
    let len: u64 = model.iter().flat_map(Model::tensors).map(Tensor::byte_len).fold(0, u64::saturating_add);
    if len <= MAX_TENSORS {
        check(model, input);
    }
}
