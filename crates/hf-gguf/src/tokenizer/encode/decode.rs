//! Decoders: from tokens to text.

use alloc::string::String;
use alloc::vec::Vec;

use super::{Halt, MAX_LEVELS, MAX_STEPS, bool_of, pattern_of, str_of};
use crate::characters::letter_byte;
use crate::json::Json;
use crate::regex::{Budget, Regex};

/// A decoder.
#[derive(Debug)]
pub(in crate::tokenizer) enum Decoder {
    Sequence(Vec<Self>),
    ByteLevel,
    WordPiece {
        prefix: String,
        cleans_up: bool,
    },
    /// BPE with a suffix at the end of words.
    Suffix(String),
    Metaspace {
        replacement: String,
        drops_first: bool,
    },
    Replace {
        regex: Regex,
        content: String,
    },
    Strip {
        content: char,
        start: usize,
        stop: usize,
    },
    Fuse,
    ByteFallback,
}

impl Decoder {
    /// The decoder of a file.
    pub(in crate::tokenizer) fn new(json: &Json) -> Result<Self, Halt> {
        let mut steps = MAX_STEPS;
        Self::within(json, &mut steps, MAX_LEVELS)
    }

    fn within(json: &Json, steps: &mut usize, levels: usize) -> Result<Self, Halt> {
        *steps = steps.checked_sub(1).ok_or_else(|| Halt::missing("a decoder of so many steps"))?;
        let kind = str_of(json, "type").unwrap_or_default();
        let text = |name, default: &str| str_of(json, name).unwrap_or(default).into();
        Ok(match kind {
            "Sequence" => {
                let levels =
                    levels.checked_sub(1).ok_or_else(|| Halt::missing("a decoder of so many levels"))?;
                let all = json.get("decoders").and_then(Json::as_array).unwrap_or_default();
                Self::Sequence(
                    all.iter().map(|json| Self::within(json, steps, levels)).collect::<Result<_, _>>()?,
                )
            }
            "ByteLevel" => Self::ByteLevel,
            "WordPiece" => Self::WordPiece {
                prefix: text("prefix", "##"),
                cleans_up: bool_of(json, "cleanup").unwrap_or(true),
            },
            "Fuse" => Self::Fuse,
            "BPEDecoder" => Self::Suffix(text("suffix", "</w>")),
            "Metaspace" => {
                let is_never = str_of(json, "prepend_scheme") == Some("never")
                    || bool_of(json, "add_prefix_space") == Some(false);
                Self::Metaspace { replacement: text("replacement", "▁"), drops_first: !is_never }
            }
            "Replace" => Self::Replace { regex: pattern_of(json)?, content: text("content", "") },
            "Strip" => {
                let count = |name| {
                    json.get(name).and_then(Json::as_i64).and_then(|count| usize::try_from(count).ok())
                };
                let content =
                    str_of(json, "content").and_then(|content| content.chars().next()).unwrap_or(' ');
                Self::Strip { content, start: count("start").unwrap_or(0), stop: count("stop").unwrap_or(0) }
            }
            "ByteFallback" => Self::ByteFallback,
            _ => return Err(Halt::missing(&alloc::format!("the decoder `{kind}`"))),
        })
    }

    /// The text of tokens; without a decoder, they have spaces between them.
    pub(in crate::tokenizer) fn text(
        decoder: Option<&Self>,
        tokens: Vec<String>,
        budget: &mut Budget,
    ) -> Result<String, Halt> {
        Ok(match decoder {
            Some(decoder) => decoder.decode(tokens, budget)?.concat(),
            None => tokens.join(" "),
        })
    }

    fn decode(&self, mut tokens: Vec<String>, budget: &mut Budget) -> Result<Vec<String>, Halt> {
        budget.take(tokens.iter().map(|token| token.len() as u64 + 1).sum())?;
        match self {
            Self::Sequence(all) => {
                return all.iter().try_fold(tokens, |tokens, step| step.decode(tokens, budget));
            }
            Self::ByteLevel => {
                let bytes = |token: &String| {
                    let bytes: Option<Vec<u8>> = token.chars().map(letter_byte).collect();
                    bytes.unwrap_or_else(|| token.as_bytes().to_vec())
                };
                let bytes: Vec<u8> = tokens.iter().flat_map(bytes).collect();
                return Ok(alloc::vec![String::from_utf8_lossy(&bytes).into_owned()]);
            }
            Self::Fuse => return Ok(alloc::vec![tokens.concat()]),
            Self::ByteFallback => return Ok(joined_bytes(tokens)),
            _ => {}
        }
        let last = tokens.len().saturating_sub(1);
        for (idx, token) in tokens.iter_mut().enumerate() {
            *token = self.decode_one(token, idx == 0, idx == last, budget)?;
        }
        Ok(tokens)
    }

    /// A token, by a decoder that changes each one for itself.
    fn decode_one(
        &self,
        token: &str,
        is_first: bool,
        is_last: bool,
        budget: &mut Budget,
    ) -> Result<String, Halt> {
        Ok(match self {
            Self::Sequence(_) | Self::ByteLevel | Self::Fuse | Self::ByteFallback => token.into(),
            Self::WordPiece { prefix, cleans_up } => {
                let text = match token.strip_prefix(prefix.as_str()) {
                    _ if is_first => token.into(),
                    Some(rest) => rest.into(),
                    None => alloc::format!(" {token}"),
                };
                if *cleans_up { clean_up(&text, true) } else { text }
            }
            Self::Suffix(suffix) => token.replace(suffix.as_str(), if is_last { "" } else { " " }),
            Self::Metaspace { replacement, drops_first } => {
                token.replace(replacement.as_str(), if is_first && *drops_first { "" } else { " " })
            }
            Self::Replace { regex, content } => {
                let chars: Vec<char> = token.chars().collect();
                let mut text = String::new();
                let mut before = 0;
                for (begin, end) in regex.matches(&chars, budget)? {
                    text.extend(&chars[before..begin]);
                    text.push_str(content);
                    budget.take(content.len() as u64)?;
                    before = end;
                }
                text.extend(&chars[before..]);
                text
            }
            Self::Strip { content, start, stop } => {
                let begin = token.chars().take(*start).take_while(|c| c == content).count();
                let rest: Vec<char> = token.chars().skip(begin).collect();
                let end = rest.iter().rev().take(*stop).take_while(|c| *c == content).count();
                rest.iter().take(rest.len() - end).collect()
            }
        })
    }
}

/// Tokens like `<0xE5>` that follow each other as one text; as many replacement characters if they are none.
fn joined_bytes(tokens: Vec<String>) -> Vec<String> {
    let mut joined: Vec<String> = Vec::new();
    let mut bytes: Vec<u8> = Vec::new();
    let end = |bytes: &mut Vec<u8>, joined: &mut Vec<String>| {
        let bytes = core::mem::take(bytes);
        let n_bytes = bytes.len();
        match String::from_utf8(bytes) {
            Ok(text) if n_bytes > 0 => joined.push(text),
            Ok(_) => {}
            Err(_) => joined.extend((0..n_bytes).map(|_| String::from(char::REPLACEMENT_CHARACTER))),
        }
    };
    for token in tokens {
        let digits = token.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>'));
        match digits.filter(|digits| digits.len() == 2).and_then(|digits| u8::from_str_radix(digits, 16).ok())
        {
            Some(byte) => bytes.push(byte),
            None => {
                end(&mut bytes, &mut joined);
                joined.push(token);
            }
        }
    }
    end(&mut bytes, &mut joined);
    joined
}

/// Removes spaces before punctuation and English contractions.
pub(in crate::tokenizer) fn clean_up(text: &str, with_do_not: bool) -> String {
    let mut text: String = text.into();
    for (from, to) in [
        (" .", "."),
        (" ?", "?"),
        (" !", "!"),
        (" ,", ","),
        (" ' ", "'"),
        (" n't", "n't"),
        (" 'm", "'m"),
        (" do not", " don't"),
        (" 's", "'s"),
        (" 've", "'ve"),
        (" 're", "'re"),
    ] {
        if with_do_not || from != " do not" {
            text = text.replace(from, to);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_decoded_as_by_the_library() {
        let cases: &[(&str, &[&str], &str)] = &[
            (r#"{"type": "ByteLevel"}"#, &["ĠÃ", "©"], " é"),
            (r#"{"type": "ByteLevel"}"#, &["<｜a｜>"], "<｜a｜>"),
            (r#"{"type": "ByteLevel"}"#, &["Ã"], "\u{fffd}"),
            (
                r###"{"type": "WordPiece", "prefix": "##", "cleanup": true}"###,
                &["a", "##b", "do not ."],
                "ab don't.",
            ),
            (r#"{"type": "BPEDecoder", "suffix": "</w>"}"#, &["a</w>", "b</w>"], "a b"),
            (r#"{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"}"#, &["▁a", "▁"], "a "),
            (r#"{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"}"#, &["▁a"], " a"),
            (
                r#"{"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                    {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}"#,
                &["▁▁a▁", "<0xC3>", "<0xA9>"],
                " a é",
            ),
            (r#"{"type": "ByteFallback"}"#, &["<0x41>"], "A"),
            (r#"{"type": "ByteFallback"}"#, &["<0xE5>", "<0x8F>", "a"], "\u{fffd}\u{fffd}a"),
        ];
        let read = |json: &str| Json::from_bytes("x", json.as_bytes()).unwrap();
        let text = |decoder: Option<&Decoder>, tokens: &[&str]| {
            let tokens = tokens.iter().map(|token| String::from(*token)).collect();
            Decoder::text(decoder, tokens, &mut Budget::default()).unwrap()
        };
        for (json, tokens, expected) in cases {
            let decoder = Decoder::new(&read(json)).unwrap();
            assert_eq!(text(Some(&decoder), tokens), *expected, "{json}");
        }
        assert_eq!(text(None, &["a", "b"]), "a b");
        assert!(matches!(Decoder::new(&Json::Null), Err(Halt::Missing(_))));
        let many = [r#"{"type": "Fuse"}"#; MAX_STEPS].join(",");
        let many = alloc::format!(r#"{{"type": "Sequence", "decoders": [{many}]}}"#);
        assert!(matches!(Decoder::new(&read(&many)), Err(Halt::Missing(_))));
    }
}
