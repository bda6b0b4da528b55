//! Normalizers.

use alloc::string::String;
use alloc::vec::Vec;

use super::{Bert, Halt, Piece, bool_of, pattern_of, str_of};
use crate::characters::{byte_letter, category, is_ideograph, is_plain};
use crate::json::Json;
use crate::regex::{Budget, Regex};

/// A normalizer.
#[derive(Debug)]
pub(super) enum Normalizer {
    Sequence(Vec<Self>),
    Bert { cleans: bool, bert: Bert },
    Strip { left: bool, right: bool },
    StripAccents,
    Unicode(Form),
    Lowercase,
    Nmt,
    Replace { regex: Regex, content: String },
    Prepend(String),
    ByteLevel,
}

/// A normalization form of Unicode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Composed,
    Decomposed,
    /// Of compatibility, composed or decomposed: the same for the characters that are known.
    Compatible,
}

/// What is normalized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Text,
    /// An added token that is looked for in the text: characters that the text cannot have may stay as they are.
    Token,
}

impl Normalizer {
    pub(super) fn new(json: &Json, steps: &mut usize, levels: usize) -> Result<Self, Halt> {
        let kind = str_of(json, "type").unwrap_or_default();
        *steps = steps.checked_sub(1).ok_or_else(|| Halt::missing("a normalizer of so many steps"))?;
        let flag = |name| bool_of(json, name);
        Ok(match kind {
            "Sequence" => {
                let levels =
                    levels.checked_sub(1).ok_or_else(|| Halt::missing("a normalizer of so many levels"))?;
                let all = json.get("normalizers").and_then(Json::as_array).unwrap_or_default();
                Self::Sequence(
                    all.iter().map(|json| Self::new(json, steps, levels)).collect::<Result<_, _>>()?,
                )
            }
            "BertNormalizer" => {
                let bert = Bert {
                    lowercase: flag("lowercase").unwrap_or(true),
                    strip_accents: flag("strip_accents"),
                    chinese: flag("handle_chinese_chars").unwrap_or(true),
                };
                Self::Bert { cleans: flag("clean_text").unwrap_or(true), bert }
            }
            "Strip" => {
                let side = |name| flag(name).unwrap_or(true);
                Self::Strip { left: side("strip_left"), right: side("strip_right") }
            }
            "StripAccents" => Self::StripAccents,
            "NFC" => Self::Unicode(Form::Composed),
            "NFD" => Self::Unicode(Form::Decomposed),
            "NFKC" | "NFKD" => Self::Unicode(Form::Compatible),
            "Lowercase" => Self::Lowercase,
            "Nmt" => Self::Nmt,
            "Replace" => Self::Replace {
                regex: pattern_of(json)?,
                content: str_of(json, "content").unwrap_or_default().into(),
            },
            "Prepend" => Self::Prepend(str_of(json, "prepend").unwrap_or_default().into()),
            "ByteLevel" => Self::ByteLevel,
            _ => return Err(Halt::missing(&alloc::format!("the normalizer `{kind}`"))),
        })
    }

    /// Sets the settings that the class has as arguments, if one of them differs.
    pub(super) const fn set_bert(&mut self, new: Bert) {
        if let Self::Bert { bert, .. } = self {
            *bert = new;
        }
    }

    pub(super) fn apply(&self, piece: &mut Piece, budget: &mut Budget) -> Result<(), Halt> {
        self.run(piece, Target::Text, budget)
    }

    /// Normalizes an added token.
    pub(super) fn apply_to_token(&self, piece: &mut Piece, budget: &mut Budget) -> Result<(), Halt> {
        self.run(piece, Target::Token, budget)
    }

    fn run(&self, piece: &mut Piece, target: Target, budget: &mut Budget) -> Result<(), Halt> {
        budget.take_text(&piece.text)?;
        match self {
            Self::Sequence(all) => all.iter().try_for_each(|step| step.run(piece, target, budget))?,
            Self::Bert { cleans, bert } => bert_steps(piece, *cleans, *bert, target)?,
            Self::Strip { left, right } => {
                let end = piece.text.iter().rposition(|c| !c.is_whitespace()).map_or(0, |last| last + 1);
                piece.text.truncate(if *right { end } else { piece.text.len() });
                let begin = piece.text.iter().take_while(|c| *left && c.is_whitespace()).count();
                piece.text.drain(..begin);
                piece.n_first = piece.n_first.saturating_sub(begin);
            }
            Self::StripAccents => piece.retain(|c| Ok(!known(c)?.starts_with('M')))?,
            Self::Unicode(form) => form.apply(piece, target)?,
            Self::Lowercase => lowercase(piece),
            Self::Nmt => {
                piece.retain(|c| {
                    Ok(!matches!(c, '\u{1}'..='\u{8}' | '\u{b}' | '\u{e}'..='\u{1f}' | '\u{7f}' | '\u{8f}' | '\u{9f}'))
                })?;
                let is_space = |c: &char| {
                    matches!(
                        c,
                        '\t' | '\n' | '\u{c}' | '\r' | '\u{1680}' | '\u{200b}'
                            ..='\u{200f}' | '\u{2028}' | '\u{2029}' | '\u{2581}' | '\u{feff}' | '\u{fffd}'
                    )
                };
                piece.text.iter_mut().filter(|c| is_space(c)).for_each(|c| *c = ' ');
            }
            Self::Replace { regex, content } => replace(piece, regex, content, budget)?,
            Self::Prepend(prefix) => {
                if !piece.text.is_empty() {
                    piece.text.splice(0..0, prefix.chars());
                    piece.n_first += if piece.n_first > 0 { prefix.chars().count() } else { 0 };
                }
            }
            Self::ByteLevel => {
                let text: String = piece.text.iter().collect();
                piece.text = text.bytes().map(byte_letter).collect();
            }
        }
        budget.take_text(&piece.text)
    }
}

impl Form {
    fn apply(self, piece: &mut Piece, target: Target) -> Result<(), Halt> {
        for c in &mut piece.text {
            match (self, *c) {
                (_, '\u{1fef}') => *c = '`',
                (Self::Compatible, '\u{ff5e}') => *c = '~',
                // They neither change nor combine with each other.
                (Self::Composed, c) if category(c).is_some() => {}
                (_, c) if is_plain(c) => {}
                // Its normal form cannot be in the text either: no character of the text is composed, and the one that has
                // another code point, too, is above.
                (Self::Composed, _) if target == Target::Token => {}
                (_, c) => {
                    return Err(Halt::missing(&alloc::format!(
                        "normalizing the character U+{:04X}",
                        u32::from(c)
                    )));
                }
            }
        }
        Ok(())
    }
}

impl Piece {
    fn retain(&mut self, keep: impl Fn(char) -> Result<bool, Halt>) -> Result<(), Halt> {
        let kept = self.text.iter().map(|c| keep(*c)).collect::<Result<Vec<_>, _>>()?;
        let removed = kept.iter().take(self.n_first).filter(|kept| !**kept).count();
        self.n_first -= removed.min(self.n_first);
        let mut kept = kept.into_iter();
        self.text.retain(|_| kept.next() == Some(true));
        Ok(())
    }
}

fn bert_steps(piece: &mut Piece, cleans: bool, bert: Bert, target: Target) -> Result<(), Halt> {
    if cleans {
        piece.retain(|c| Ok(!matches!(c, '\0' | '\u{fffd}') && !is_control(c)?))?;
        piece.text.iter_mut().filter(|c| c.is_whitespace()).for_each(|c| *c = ' ');
    }
    if bert.chinese {
        let spaced =
            |c: char| if is_chinese(c) { [Some(' '), Some(c), Some(' ')] } else { [Some(c), None, None] };
        piece.text = piece.text.iter().flat_map(|c| spaced(*c)).flatten().collect();
    }
    if bert.strip_accents.unwrap_or(bert.lowercase) {
        Form::Decomposed.apply(piece, target)?;
        piece.retain(|c| Ok(known(c)? != "Mn"))?;
    }
    if bert.lowercase {
        lowercase(piece);
    }
    Ok(())
}

fn lowercase(piece: &mut Piece) {
    piece.text = piece.text.iter().flat_map(|c| c.to_lowercase()).collect();
}

fn replace(piece: &mut Piece, regex: &Regex, content: &str, budget: &mut Budget) -> Result<(), Halt> {
    let mut text = Vec::with_capacity(piece.text.len());
    let mut before = 0;
    let mut n_first = piece.n_first;
    for (begin, end) in regex.matches(&piece.text, budget)? {
        text.extend_from_slice(&piece.text[before..begin]);
        text.extend(content.chars());
        if begin == 0 && end > 0 {
            // What replaces several characters stands for the last of them.
            let rest = piece.n_first.checked_sub(end);
            n_first = rest.map_or(0, |rest| rest + content.chars().count());
        }
        before = end;
        budget.take_text(&text)?;
    }
    text.extend_from_slice(&piece.text[before..]);
    (piece.text, piece.n_first) = (text, n_first);
    Ok(())
}

/// Characters that no reader shows: controls, formats, and what is not assigned. White space of ASCII is text.
fn is_control(c: char) -> Result<bool, Halt> {
    Ok(!matches!(c, '\t' | '\n' | '\r') && !c.is_alphabetic() && known(c)?.starts_with('C'))
}

/// The blocks of Chinese characters, as BERT has them.
const fn is_chinese(c: char) -> bool {
    is_ideograph(c)
        || matches!(c, '\u{20000}'..='\u{2a6df}' | '\u{2a700}'..='\u{2b73f}' | '\u{2b740}'..='\u{2b81f}' | '\u{2b920}'..='\u{2ceaf}'
            | '\u{f900}'..='\u{faff}' | '\u{2f800}'..='\u{2fa1f}')
}

fn known(c: char) -> Result<&'static str, Halt> {
    category(c)
        .ok_or_else(|| Halt::missing(&alloc::format!("the class of the character U+{:04X}", u32::from(c))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::characters::CHECK_TEXT;

    fn normalize(json: &str, text: &str) -> Result<(String, bool), Halt> {
        let json = Json::from_bytes("x", json.as_bytes()).unwrap();
        let mut piece = Piece { text: text.chars().collect(), n_first: 1 };
        Normalizer::new(&json, &mut 64, 8)?.apply(&mut piece, &mut Budget::default())?;
        Ok((piece.text.into_iter().collect(), piece.n_first > 0))
    }

    #[test]
    fn normalizers_are_those_of_the_library() {
        let cases = [
            (r#"{"type": "Lowercase"}"#, "AБc", "aбc", true),
            (r#"{"type": "Strip", "strip_left": true, "strip_right": false}"#, " \ta ", "a ", false),
            (r#"{"type": "Strip", "strip_left": false, "strip_right": true}"#, " a \n", " a", true),
            (r#"{"type": "StripAccents"}"#, "ក\u{17b6}\u{fe0f}x", "កx", true),
            (r#"{"type": "NFC"}"#, "I've 我\u{1fef}～", "I've 我`～", true),
            (r#"{"type": "NFKC"}"#, "a～", "a~", true),
            (r#"{"type": "Replace", "pattern": {"String": " "}, "content": "▁"}"#, "a b ", "a▁b▁", true),
            (r#"{"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": ""}"#, " a b", "ab", false),
            (r#"{"type": "Prepend", "prepend": "▁"}"#, "a", "▁a", true),
            (r#"{"type": "Prepend", "prepend": "▁"}"#, "", "", true),
            (r#"{"type": "ByteLevel"}"#, "é ", "Ã©Ġ", true),
            (r#"{"type": "Nmt"}"#, "\u{1}a\u{200d}▁", "a  ", false),
            (
                r#"{"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true}"#,
                "A\u{200d}\n我\u{fe0f}Б",
                "a  我 б",
                true,
            ),
            (
                r#"{"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "_"}, {"type": "Replace", "pattern": {"String": "_a"}, "content": "b"}]}"#,
                "ac",
                "bc",
                true,
            ),
        ];
        for (json, text, expected, is_first) in cases {
            assert_eq!(normalize(json, text).unwrap(), (expected.into(), is_first), "{json}");
        }
    }

    #[test]
    fn what_is_not_known_is_named() {
        for (json, text) in [
            (r#"{"type": "Precompiled", "precompiled_charsmap": ""}"#, "a"),
            (r#"{"type": "NFD"}"#, "é"),
            (r#"{"type": "NFC"}"#, "α"),
            (r#"{"type": "StripAccents"}"#, "\u{301}"),
            (
                r#"{"type": "Replace", "pattern": {"String": ""}, "content": "0123456789012345678901234567890123456789"}"#,
                &"a".repeat(1 << 14),
            ),
        ] {
            assert!(matches!(normalize(json, text), Err(Halt::Missing(_))), "{json}");
        }
    }

    #[test]
    fn the_text_is_its_own_normal_form() {
        for form in ["NFC", "NFD"] {
            let json = alloc::format!(r#"{{"type": "{form}"}}"#);
            assert_eq!(normalize(&json, CHECK_TEXT).unwrap().0, CHECK_TEXT);
        }
        assert_eq!(normalize(r#"{"type": "NFKD"}"#, CHECK_TEXT).unwrap().0, CHECK_TEXT.replace('～', "~"));
    }
}
