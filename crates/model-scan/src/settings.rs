//! Configuration: what it makes loaders and programs run.

mod lists;
mod rules;

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use pickle_core::Error;
use read_at::{ReadAt, Window};

use crate::kept::Kept;
use crate::keras;
use crate::problem::Problem;
use crate::reader::Reader;
use crate::template;

/// What a file of JSON, GGUF or safetensors makes others run: offsets and problems, at most `kept` of them. `name` is that of the file or of the
/// member of an archive, with its folders; empty if it has none.
pub(crate) fn scan(
    source: &dyn ReadAt,
    start: &[u8],
    name: &str,
    kept: usize,
) -> Result<Vec<(u64, Problem)>, Error> {
    if start.starts_with(b"GGUF") {
        let mut found = Kept::new(kept);
        gguf(&mut Reader::new(source), &mut found)?;
        return Ok(found.sorted());
    }
    // The header of safetensors, after its length.
    let header = start.first_chunk::<8>().map_or(u64::MAX, |len| u64::from_le_bytes(*len));
    if start.get(8) == Some(&b'{') && header <= source.total_len().saturating_sub(8) {
        let header = Window::new(source, 8, header)?;
        let found = rules::scan(&mut Reader::new(&header), 0, name, kept)?;
        return Ok(found.into_iter().map(|(at, problem)| (at + 8, problem)).collect());
    }
    let mut reader = Reader::new(source);
    let mut at = if start.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    while reader.byte(at)?.is_some_and(|byte| byte.is_ascii_whitespace()) {
        at += 1;
    }
    if !matches!(reader.byte(at)?, Some(b'{' | b'[')) {
        return Ok(Vec::new());
    }
    let mut found = Kept::new(kept);
    for (at, problem) in rules::scan(&mut reader, at, name, kept)? {
        found.add(at, problem);
    }
    for (at, problem) in keras::model(source, kept)? {
        found.add(at, problem);
    }
    Ok(found.sorted())
}

/// Chat templates among the keys of a GGUF file, up to the first that cannot be read.
fn gguf(reader: &mut Reader<'_>, found: &mut Kept) -> Result<(), Error> {
    // Versions are small numbers: `00 00 00 03` is one in a file for machines that are big-endian.
    let is_big = reader.byte(4)? == Some(0);
    let mut at = 16;
    let Some(count) = number(reader, &mut at, 8, is_big)? else { return Ok(()) };
    for _ in 0..count {
        let Some(len) = number(reader, &mut at, 8, is_big)? else { return Ok(()) };
        let key = reader.bytes(at, len.min(64))?;
        let here = at;
        at = at.saturating_add(len);
        let Some(kind) = number(reader, &mut at, 4, is_big)? else { return Ok(()) };
        if kind == 8 && key.starts_with(b"tokenizer.chat_template") {
            let mut text = at;
            let Some(len) = number(reader, &mut text, 8, is_big)? else { return Ok(()) };
            let bytes = reader.bytes(text, len.min(template::MAX as u64 + 1))?;
            found.add(here, template::judge(&String::from_utf8_lossy(&bytes)));
        }
        if !skip(reader, &mut at, kind, is_big)? {
            return Ok(());
        }
    }
    Ok(())
}

/// `None` beyond the end.
fn number(reader: &mut Reader<'_>, at: &mut u64, len: u32, is_big: bool) -> Result<Option<u64>, Error> {
    let mut number = 0;
    for idx in 0..len {
        let Some(byte) = reader.byte(*at)? else { return Ok(None) };
        number |= u64::from(byte) << (8 * if is_big { len - 1 - idx } else { idx });
        *at += 1;
    }
    Ok(Some(number))
}

fn width(kind: u64) -> Option<u64> {
    match kind {
        0 | 1 | 7 => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}

/// Arrays inside each other that are passed; readers in Python stop before.
const MAX_DEPTH: usize = 1024;

/// Passes a value, and says whether that is possible.
fn skip(reader: &mut Reader<'_>, at: &mut u64, kind: u64, is_big: bool) -> Result<bool, Error> {
    // Types and numbers of the elements to pass, of the innermost array last.
    let mut left = vec![(kind, 1_u64)];
    while let Some((kind, count)) = left.pop() {
        if let Some(width) = width(kind) {
            *at = at.saturating_add(count.saturating_mul(width));
            continue;
        }
        let Some(others) = count.checked_sub(1) else { continue };
        left.push((kind, others));
        match kind {
            8 => {
                let Some(len) = number(reader, at, 8, is_big)? else { return Ok(false) };
                *at = at.saturating_add(len);
            }
            9 if left.len() <= MAX_DEPTH => {
                let element = number(reader, at, 4, is_big)?;
                let (Some(element), Some(count)) = (element, number(reader, at, 8, is_big)?) else {
                    return Ok(false);
                };
                left.push((element, count));
            }
            _ => return Ok(false),
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(bytes: &[u8], kept: usize) -> Vec<(u64, &'static str)> {
        let found = scan(&bytes, bytes, "", kept).expect("in memory");
        found.iter().map(|(at, problem)| (*at, problem.code())).collect()
    }

    #[test]
    fn keys_of_json_are_judged_by_their_values() {
        for (text, expected) in [
            (r#"{"auto_map":{"a":"b"}}"#, &["sc-remote-code"][..]),
            (r#"{"auto_map":"a.b"}"#, &["sc-remote-code"]),
            (r#"{"auto_map":{}}"#, &[]),
            (r#"{"chat_template":"{{ x }}"}"#, &["sc-chat-template"]),
            (r#"{"chat_template":"{{ x.__class__ }}"}"#, &["sc-template-code"]),
            (r#"{"template":"{{ x.__class__ }}"}"#, &["sc-template-code"]),
            (r#"{"template":"{{ x }}"}"#, &[]),
            (r#"{"class_name":"Lambda"}"#, &["sc-keras-layer"]),
            (r#"{"class_name":"Dense"}"#, &[]),
            (r#"["auto_map",1]"#, &[]),
            (r#"[{"auto_map":"a.b"}]"#, &["sc-remote-code"]),
        ] {
            let found: Vec<_> = codes(text.as_bytes(), 9).into_iter().map(|(_, code)| code).collect();
            assert_eq!(found, expected, "{text}");
        }
        let marked = b"\xef\xbb\xbf {\"auto_map\":\"a\"}";
        assert_eq!(codes(marked, 9), [(5, "sc-remote-code")]);
    }

    fn text(text: &[u8]) -> Vec<u8> {
        [&(text.len() as u64).to_le_bytes(), text].concat()
    }

    /// A GGUF file with these values before its template, and the offset of that.
    fn gguf_after(values: &[(u8, Vec<u8>)], template: &[u8]) -> (Vec<u8>, u64) {
        let mut bytes = [b"GGUF\x03\0\0\0".as_slice(), &[0; 8]].concat();
        bytes.extend((values.len() as u64 + 1).to_le_bytes());
        for (kind, value) in values {
            bytes.extend([text(b"key").as_slice(), &[*kind, 0, 0, 0], value].concat());
        }
        let at = bytes.len() as u64 + 8;
        bytes.extend([text(b"tokenizer.chat_template").as_slice(), &[8, 0, 0, 0], &text(template)].concat());
        (bytes, at)
    }

    #[test]
    fn templates_of_gguf_are_found_after_any_value() {
        let array = |kind: u8, count: u64, values: &[u8]| {
            [&[kind, 0, 0, 0], count.to_le_bytes().as_slice(), values].concat()
        };
        let widths =
            [(0, 1), (1, 1), (2, 2), (3, 2), (4, 4), (5, 4), (6, 4), (7, 1), (10, 8), (11, 8), (12, 8)];
        for (kind, width) in widths {
            let values = [(kind, alloc::vec![7; width]), (9, array(kind, 3, &alloc::vec![7; 3 * width]))];
            let (bytes, at) = gguf_after(&values, b"{{ x.__class__ }}");
            assert_eq!(codes(&bytes, 9), [(at, "sc-template-code")], "{kind}");
        }
        let texts = array(8, 2, &[text(b"one"), text(&[b'x'; 300])].concat());
        let (mut bytes, at) = gguf_after(&[(8, text(b"{{ x.__class__ }}")), (9, texts)], b"{{ x }}");
        assert_eq!(codes(&bytes, 9), [(at, "sc-chat-template")]);
        // Of another type, it is no text.
        let kind = at as usize + "tokenizer.chat_template".len();
        bytes[kind] = 9;
        assert_eq!(codes(&bytes, 9), []);
        let nested =
            array(9, 3, &[array(9, 0, b""), array(8, 1, &text(b"one")), array(2, 1, &[0; 2])].concat());
        let deep = |depth| (0..depth).fold(array(4, 0, b""), |inner, _| array(9, 1, &inner));
        for value in [nested, array(9, 0, b""), array(13, 0, b""), deep(1000)] {
            let (bytes, at) = gguf_after(&[(9, value)], b"{{ x }}");
            assert_eq!(codes(&bytes, 9), [(at, "sc-chat-template")]);
        }
        for unknown in [(13, Vec::new()), (9, array(13, 1, b"")), (9, deep(1024))] {
            assert_eq!(codes(&gguf_after(&[unknown], b"{{ x }}").0, 9), []);
        }
        let (long, at) = gguf_after(&[], &alloc::vec![b'x'; template::MAX + 1]);
        assert_eq!(codes(&long, 9), [(at, "sc-unopened")]);
    }

    #[test]
    fn templates_of_big_endian_gguf_are_found() {
        let text = |text: &[u8]| [&(text.len() as u64).to_be_bytes(), text].concat();
        let texts = [[0, 0, 0, 8].as_slice(), &2_u64.to_be_bytes(), &text(b"a"), &text(b"bc")].concat();
        let bytes = [
            b"GGUF\0\0\0\x03".as_slice(),
            &[0; 8],
            &2_u64.to_be_bytes(),
            &text(b"key"),
            &[0, 0, 0, 9],
            &texts,
            &text(b"tokenizer.chat_template"),
            &[0, 0, 0, 8],
            &text(b"{{ x.__class__ }}"),
        ];
        assert_eq!(codes(&bytes.concat(), 9), [(78, "sc-template-code")]);
    }

    #[test]
    fn metadata_of_safetensors_is_read_like_a_document() {
        let file =
            |header: &str| [&(header.len() as u64).to_le_bytes(), header.as_bytes(), b"tensors"].concat();
        let hostile = r#"{"__metadata__":{"config":"{\"_target_\":\"os.x\"}"}}"#;
        assert_eq!(codes(&file(hostile), 9), [(25, "sc-config-code")]);
        assert_eq!(
            codes(&file(r#"{"__metadata__":{"chat_template":"{{ x._y }}"}}"#), 9),
            [(25, "sc-template-code")]
        );
        assert_eq!(codes(&file(r#"{"__metadata__":{"format":"pt"}}"#), 9), []);
        // The header is longer than the file.
        let mut cut = file(hostile);
        cut[0] += 20;
        assert_eq!(codes(&cut, 9), []);
        // A document that begins after white space, or in a list.
        assert_eq!(codes(b"\n [{\"_target_\":\"os.x\"}]", 9), [(4, "sc-config-code")]);
        assert_eq!(codes(b"x{\"_target_\":\"os.x\"}", 9), []);
    }
}
