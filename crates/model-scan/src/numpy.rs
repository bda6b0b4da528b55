//! Array files of NumPy: whether a pickle follows the header.

use pickle_core::Error;
use read_at::ReadAt;

/// The first bytes of an array file.
pub(crate) const MAGIC: &[u8] = b"\x93NUMPY";

/// Headers of more bytes are not written, nor read by NumPy itself.
const MAX_HEADER: u64 = 1 << 16;

/// What follows the header.
pub(crate) enum Data {
    /// Elements.
    Elements,
    /// A pickle, from this offset.
    Pickle(u64),
    /// The header cannot be read.
    Unknown,
}

/// Reads the header. `numpy.load` evaluates it as a literal of Python, with escapes and adjacent strings: what could be the type
/// `object` is taken for it.
pub(crate) fn data(source: &dyn ReadAt) -> Result<Data, Error> {
    let mut start = [0; 12];
    let len = source.total_len().min(12);
    source.read_exact_at(0, start.get_mut(..usize::try_from(len).unwrap_or(12)).unwrap_or_default())?;
    let [.., major, _, a, b, c, d] = start;
    let (begin, len) = match major {
        1 => (10, u64::from(u16::from_le_bytes([a, b]))),
        2 | 3 => (12, u64::from(u32::from_le_bytes([a, b, c, d]))),
        _ => return Ok(Data::Unknown),
    };
    let end = begin + len;
    if len > MAX_HEADER || end > source.total_len() {
        return Ok(Data::Unknown);
    }
    let mut header = alloc::vec![0; usize::try_from(len).unwrap_or_default()];
    source.read_exact_at(begin, &mut header)?;
    Ok(if may_hold_objects(&header) { Data::Pickle(end) } else { Data::Elements })
}

fn may_hold_objects(header: &[u8]) -> bool {
    let mut rest = header;
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\'' | b'"')) {
        let (quote, text) = (rest.get(at), rest.get(at + 1..).unwrap_or_default());
        // Names of keys and fields, and types: up to the same quotation mark.
        let len = text.iter().position(|byte| Some(byte) == quote).unwrap_or(text.len());
        if names_objects(text.get(..len).unwrap_or_default()) {
            return true;
        }
        rest = text.get(len + 1..).unwrap_or_default();
    }
    header.contains(&b'\\')
}

/// `O`, `|O8`, `object`, `f4,O`: anything but a plain type that has the letter or the word.
fn names_objects(text: &[u8]) -> bool {
    let code = text.trim_ascii_start();
    let code =
        code.strip_prefix(b"<").or(code.strip_prefix(b">")).or(code.strip_prefix(b"|")).unwrap_or(code);
    let plain = matches!(code, [b'b' | b'i' | b'u' | b'f' | b'c' | b'S' | b'U' | b'V' | b'M' | b'm', rest @ ..]
        if rest.first().is_some_and(u8::is_ascii_digit) && !rest.contains(&b','));
    !plain && (text.contains(&b'O') || text.windows(6).any(|word| word == b"object"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_up_to_their_limit() {
        let data_of = |len: u32, more: &[u8]| {
            let header = [b"'O'".as_slice(), &b" ".repeat(len as usize - 3)].concat();
            let bytes = [MAGIC, &[2, 0], &len.to_le_bytes(), &header, more].concat();
            match data(&bytes.as_slice()).expect("in memory") {
                Data::Pickle(at) => Some(at),
                Data::Elements | Data::Unknown => None,
            }
        };
        assert_eq!((data_of(3, b"."), data_of(3, b"")), (Some(15), Some(15)));
        assert_eq!((data_of(1 << 16, b"."), data_of((1 << 16) + 1, b".")), (Some((1 << 16) + 12), None));
    }

    #[test]
    fn types_that_could_be_objects_are_found() {
        for (header, objects) in [
            (b"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}".as_slice(), false),
            (b"{'descr': '|O', 'fortran_order': False, 'shape': (2,)}", true),
            (b"{\"descr\": \"O8\"}", true),
            (b"{'descr': 'object'}", true),
            (b"{'descr': '\\x4f'}", true),
            (b"{'descr': [('a', '<f4'), ('b', '|O')]}", true),
            (b"{'descr': 'f4,O'}", true),
            (b"{'descr': [('a', '<M8[ns]'), ('b', '<i8')]}", false),
            // A quotation mark inside of the other kind.
            (b"{'descr': [(\"'\", '<i4'), ('b', 'O')]}", true),
            (b"{'descr': [(\"'\", 'O')]}", true),
            (b"{'descr': [('a\"', '<i4'), ('b', 'object')]}", true),
            (b"{'descr': [('a\"', '<i4'), (\"b'\", '<f4')]}", false),
            (b"{'descr': 'O", true),
            // Between texts.
            (b"{'descr': '<f4', 'shape': (O,), 'fortran_order': False}", false),
        ] {
            assert_eq!(may_hold_objects(header), objects, "{}", header.escape_ascii());
        }
    }
}
