//! The compat reader beside the official crate: the same verdict, error class and content on any bytes.

#![no_main]

use conformance::reading::compat_disagrees;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    for file in apr_fuzz::files(input) {
        assert_eq!(compat_disagrees(&file), None);
    }
});
