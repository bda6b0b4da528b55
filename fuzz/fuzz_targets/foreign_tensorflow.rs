//! Any bytes as the index of a checkpoint, and as values of one whose checksums are sound: refused, or tensors of as many bytes as they
//! declare.

#![no_main]

use apr_fuzz::foreign::{Folder, check, index};
use foreign_tensors::{Options, tensorflow};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let folder = Folder(&[0; 64]);
    check(&tensorflow::read(&input, &folder, &Options::default()), input);
    // Keys of parts of the variable `v` first, then names.
    let mut values = input.split(|byte| *byte == 0xfe);
    let header = values.next().unwrap_or_default();
    // Element `at` alone, in the writer's code for numbers.
    let part = |at: usize| vec![0, b'v', 0, 1, 1, 1, 0x80 + at as u8, 0x81];
    let key = |at: usize| match at {
        0..8 => part(at),
        8 => b"v".to_vec(),
        at => format!("w{at:03}").into_bytes(),
    };
    let mut pairs = vec![(Vec::new(), header)];
    pairs.extend(values.take(100).enumerate().map(|(at, value)| (key(at), value)));
    let file = index(pairs.iter().map(|(key, value)| (key.as_slice(), *value)));
    check(&tensorflow::read(&file, &folder, &Options::default()), &file);
});
