//! Writes headers, byte-identical to the official writer, with metadata in key order.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use json_scan::{Escape, push_string_bytes};

use crate::grammar::METADATA_KEY;
use tensor_dtype::Dtype;

/// The written fields of a tensor.
pub(crate) struct Entry<'a> {
    pub(crate) name: &'a str,
    pub(crate) dtype: Dtype,
    pub(crate) shape: &'a [usize],
    pub(crate) offsets: (u64, u64),
}

/// Appends the JSON text of a header, without padding.
pub(crate) fn write<'a>(
    out: &mut Vec<u8>,
    metadata: Option<&BTreeMap<String, String>>,
    entries: impl Iterator<Item = Entry<'a>>,
) {
    out.push(b'{');
    let mut separator: &[u8] = b"";
    if let Some(metadata) = metadata {
        push_string_bytes(out, METADATA_KEY, Escape::Minimal);
        out.extend_from_slice(b":{");
        for (key, value) in metadata {
            out.extend_from_slice(separator);
            push_string_bytes(out, key, Escape::Minimal);
            out.push(b':');
            push_string_bytes(out, value, Escape::Minimal);
            separator = b",";
        }
        out.push(b'}');
        separator = b",";
    }
    for entry in entries {
        out.extend_from_slice(separator);
        push_string_bytes(out, entry.name, Escape::Minimal);
        out.extend_from_slice(b":{\"dtype\":\"");
        out.extend_from_slice(entry.dtype.name().as_bytes());
        out.extend_from_slice(b"\",\"shape\":[");
        let mut comma: &[u8] = b"";
        for &dim in entry.shape {
            out.extend_from_slice(comma);
            push_integer(out, dim as u64);
            comma = b",";
        }
        out.extend_from_slice(b"],\"data_offsets\":[");
        push_integer(out, entry.offsets.0);
        out.push(b',');
        push_integer(out, entry.offsets.1);
        out.extend_from_slice(b"]}");
        separator = b",";
    }
    out.push(b'}');
}

/// Appends a decimal number.
pub(crate) fn push_integer(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            return out.extend_from_slice(&digits[at..]);
        }
    }
}
