//! Any bytes as a file of ONNX: refused, or tensors of as many bytes as they declare and entries that are JSON.

#![no_main]

use apr_fuzz::foreign::{Folder, check};
use foreign_tensors::{Options, onnx};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    check(&onnx::read(&input, &Folder(&input[..input.len() / 2]), &Options::default()), input);
});
