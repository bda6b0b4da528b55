//! Writing header texts, byte for byte as the official writer does, metadata in key order.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use crate::grammar::METADATA_KEY;
use tensor_dtype::Dtype;

/// What is written of a tensor.
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
        push_string(out, METADATA_KEY);
        out.extend_from_slice(b":{");
        for (key, value) in metadata {
            out.extend_from_slice(separator);
            push_string(out, key);
            out.push(b':');
            push_string(out, value);
            separator = b",";
        }
        out.push(b'}');
        separator = b",";
    }
    for entry in entries {
        out.extend_from_slice(separator);
        push_string(out, entry.name);
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

/// Appends a JSON string; only what JSON requires is escaped.
pub(crate) fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|byte| matches!(byte, ..0x20 | b'"' | b'\\')) {
        let (plain, special) = rest.split_at(at);
        out.extend_from_slice(plain);
        push_escape(out, special[0]);
        rest = &special[1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// Appends the escape of a quote, a backslash or a control character.
pub(crate) fn push_escape(out: &mut Vec<u8>, byte: u8) {
    let short = match byte {
        0x08 => b'b',
        0x09 => b't',
        0x0a => b'n',
        0x0c => b'f',
        0x0d => b'r',
        b'"' | b'\\' => byte,
        _ => return push_unicode_escape(out, byte.into()),
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// Appends the escape of a UTF-16 unit: `\u` and four hexadecimal digits.
pub(crate) fn push_unicode_escape(out: &mut Vec<u8>, unit: u16) {
    out.extend_from_slice(b"\\u");
    for shift in [12, 8, 4, 0] {
        out.push(b"0123456789abcdef"[usize::from(unit >> shift & 15)]);
    }
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
