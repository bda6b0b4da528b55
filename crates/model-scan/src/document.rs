//! A document of JSON from its beginning to its end, as a reader of JSON sees it: unlike [`crate::json`], which finds keys between other bytes.

use alloc::string::String;
use alloc::vec::Vec;

use pickle_core::Error;

use crate::json;
use crate::reader::Reader;
use crate::template;

/// Longest text; of a longer one, the beginning is kept, which is longer than this.
const MAX_TEXT: usize = template::MAX;
/// Objects and lists in each other: Python's reader stops before.
const MAX_DEPTH: usize = 1024;

/// An object or a list that is open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Step {
    pub(crate) is_list: bool,
    /// The key that was read last, and where it is.
    pub(crate) key: String,
    pub(crate) at: u64,
    /// The number of the element.
    pub(crate) idx: u64,
    expects_key: bool,
}

/// What is at a place of a document.
#[derive(Debug)]
pub(crate) enum Event<'e> {
    /// An object or a list begins; it is not among the steps yet.
    Open,
    /// It ends; it is the last of the steps.
    Close,
    Text(&'e str),
    /// A number, `true`, `false` or `null`.
    Word(&'e str),
}

/// Calls `visit` with what is open, and what is there. Whether the end was reached: a document that is too deep has none.
pub(crate) fn walk(
    reader: &mut Reader<'_>,
    mut at: u64,
    mut visit: impl FnMut(&[Step], Event<'_>),
) -> Result<bool, Error> {
    let mut steps = Vec::<Step>::new();
    while let Some(byte) = reader.byte(at)? {
        let start = at;
        at += 1;
        match byte {
            b'{' | b'[' => {
                visit(&steps, Event::Open);
                if steps.len() == MAX_DEPTH {
                    return Ok(false);
                }
                let is_list = byte == b'[';
                steps.push(Step { is_list, expects_key: !is_list, ..Step::default() });
            }
            b'}' | b']' => {
                visit(&steps, Event::Close);
                steps.pop();
            }
            b',' => {
                if let Some(step) = steps.last_mut() {
                    step.idx += 1;
                    step.expects_key = !step.is_list;
                }
            }
            b':' | b' ' | b'\t' | b'\r' | b'\n' => {}
            b'"' => {
                let mut text = String::new();
                if !json::string(reader, &mut at, &mut text, MAX_TEXT)? {
                    skip_string(reader, &mut at)?;
                }
                match steps.last_mut() {
                    Some(step) if step.expects_key => {
                        (step.key, step.at, step.expects_key) = (text, start, false);
                    }
                    _ => visit(&steps, Event::Text(&text)),
                }
            }
            _ => {
                let mut word = String::from(char::from(byte));
                while let Some(byte) = reader.byte(at)?.filter(|byte| !b",:{}[]\" \t\r\n".contains(byte)) {
                    at += 1;
                    if word.len() < 32 {
                        word.push(char::from(byte));
                    }
                }
                visit(&steps, Event::Word(&word));
            }
        }
    }
    Ok(true)
}

/// Passes the rest of a text that is too long.
fn skip_string(reader: &mut Reader<'_>, at: &mut u64) -> Result<(), Error> {
    while let Some(byte) = reader.byte(*at)? {
        *at += if byte == b'\\' { 2 } else { 1 };
        if byte == b'"' {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    fn shown(text: &str) -> (Vec<String>, bool) {
        let source = text.as_bytes();
        let mut shown = Vec::new();
        let is_whole = walk(&mut Reader::new(&source), 0, |steps, event| {
            let path: Vec<_> =
                steps
                    .iter()
                    .map(|step| {
                        if step.is_list {
                            format!("{}", step.idx)
                        } else {
                            format!("{}@{}", step.key, step.at)
                        }
                    })
                    .collect();
            let event = match event {
                Event::Open => "open".into(),
                Event::Close => "close".into(),
                Event::Text(text) => format!("'{text}'"),
                Event::Word(word) => word.into(),
            };
            shown.push(format!("{} {event}", path.join("/")));
        });
        (shown, is_whole.expect("in memory"))
    }

    #[test]
    fn values_are_found_with_their_keys() {
        let text = "{\"a\" : [1, \"b\\u0063\", {\"d\":\nnull}], \"e\":{\"a\":true}, \"f\":\"\"}";
        let expected = [
            " open",
            "a@1 open",
            "a@1/0 1",
            "a@1/1 'bc'",
            "a@1/2 open",
            "a@1/2/d@23 null",
            "a@1/2/d@23 close",
            "a@1/2 close",
            "e@36 open",
            "e@36/a@41 true",
            "e@36/a@41 close",
            "f@52 ''",
            "f@52 close",
        ];
        assert_eq!(shown(text).0, expected);
        assert_eq!(shown("[\"a\",\"b\"]").0, [" open", "0 'a'", "1 'b'", "1 close"]);
        assert_eq!(shown("\"a\" b}").0, [" 'a'", " b", " close"]);
        assert_eq!(shown("[tru\"a\"").0, [" open", "0 tru", "0 'a'"]);
        assert_eq!(shown(&format!("[{}]", "1".repeat(50))).0[1], format!("0 {}", "1".repeat(32)));
    }

    #[test]
    fn texts_of_any_length_end_where_they_end() {
        let long = format!("[\"{}\\\"\",\"b\"]", "a".repeat(MAX_TEXT + 1));
        let (found, is_whole) = shown(&long);
        assert_eq!((found.len(), found[2].as_str(), is_whole), (4, "1 'b'", true));
        assert_eq!(found[1].len(), MAX_TEXT + 1 + "0 ''".len());
    }

    #[test]
    fn documents_are_not_deeper_than_readers_go() {
        assert!(shown(&"[".repeat(MAX_DEPTH)).1);
        let (found, is_whole) = shown(&"[".repeat(MAX_DEPTH + 1));
        assert_eq!((found.len(), is_whole), (MAX_DEPTH + 1, false));
    }
}
