//! Splitting of texts: added tokens and pre-tokenizers.

use alloc::vec::Vec;
use core::cmp::Ordering;

use super::{Halt, Part, Piece, bool_of, each, pattern_of, str_of};
use crate::characters::{byte_letter, is_punctuation, is_unicode_word};
use crate::json::Json;
use crate::regex::{Budget, Regex};
use crate::tokenizer::added::{Flags, Patterns};

/// The expression of `ByteLevel`, from GPT-2.
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// A pre-tokenizer.
#[derive(Debug)]
pub(super) enum PreTokenizer {
    Sequence(Vec<Self>),
    ByteLevel { prefix_space: bool, regex: Option<Regex> },
    Regex { regex: Regex, behavior: Behavior, is_inverted: bool },
    Digits { are_single: bool },
    Punctuation(Behavior),
    WhiteSpace,
    Words,
    Bert,
    Delimiter(char),
    Metaspace { replacement: char, prepend: Prepend, is_split: bool },
    FixedLength(usize),
}

/// What becomes of the parts that a pattern matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behavior {
    Removed,
    Isolated,
    MergedWithPrevious,
    MergedWithNext,
    Contiguous,
}

/// Where `Metaspace` puts its character before a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prepend {
    First,
    Never,
    Always,
}

impl PreTokenizer {
    pub(super) fn new(json: &Json, steps: &mut usize, levels: usize) -> Result<Self, Halt> {
        let kind = str_of(json, "type").unwrap_or_default();
        *steps = steps.checked_sub(1).ok_or_else(|| Halt::missing("a pre-tokenizer of so many steps"))?;
        let behavior = || json.get("behavior").map_or(Ok(Behavior::Isolated), Behavior::new);
        Ok(match kind {
            "Sequence" => {
                let levels = levels
                    .checked_sub(1)
                    .ok_or_else(|| Halt::missing("a pre-tokenizer of so many levels"))?;
                let all = json.get("pretokenizers").and_then(Json::as_array).unwrap_or_default();
                Self::Sequence(
                    all.iter().map(|json| Self::new(json, steps, levels)).collect::<Result<_, _>>()?,
                )
            }
            "ByteLevel" => {
                let has_regex = bool_of(json, "use_regex").unwrap_or(true);
                let regex = has_regex.then(|| Regex::new(GPT2)).transpose()?;
                Self::ByteLevel { prefix_space: bool_of(json, "add_prefix_space").unwrap_or(true), regex }
            }
            "Split" => {
                let is_inverted = bool_of(json, "invert").unwrap_or_default();
                Self::Regex { regex: pattern_of(json)?, behavior: behavior()?, is_inverted }
            }
            "Digits" => Self::Digits { are_single: bool_of(json, "individual_digits").unwrap_or_default() },
            "Punctuation" => Self::Punctuation(behavior()?),
            "WhitespaceSplit" => Self::WhiteSpace,
            "Whitespace" => Self::Words,
            "BertPreTokenizer" => Self::Bert,
            "CharDelimiterSplit" | "Delimiter" => Self::Delimiter(one_char(json, "delimiter")?),
            "Metaspace" => {
                let prepend = match (str_of(json, "prepend_scheme"), bool_of(json, "add_prefix_space")) {
                    (Some("first"), _) => Prepend::First,
                    (Some("never"), _) | (_, Some(false)) => Prepend::Never,
                    _ => Prepend::Always,
                };
                let is_split = bool_of(json, "split").unwrap_or(true);
                Self::Metaspace { replacement: one_char(json, "replacement")?, prepend, is_split }
            }
            "FixedLength" => {
                let length = json.get("length").and_then(Json::as_i64).unwrap_or(5);
                let length = usize::try_from(length).ok().filter(|length| *length > 0);
                Self::FixedLength(length.ok_or_else(|| Halt::missing("a pre-tokenizer of this length"))?)
            }
            _ => return Err(Halt::missing(&alloc::format!("the pre-tokenizer `{kind}`"))),
        })
    }

    /// Sets `add_prefix_space` if this is a `ByteLevel`.
    pub(super) const fn set_prefix_space(&mut self, value: bool) {
        if let Self::ByteLevel { prefix_space, .. } = self {
            *prefix_space = value;
        }
    }

    /// Sets `add_prefix_space` of each `ByteLevel`.
    pub(super) fn set_inner_prefix_space(&mut self) {
        self.set_prefix_space(true);
        if let Self::Sequence(all) = self {
            all.iter_mut().for_each(Self::set_inner_prefix_space);
        }
    }

    pub(super) fn apply(&self, mut parts: Vec<Part>, budget: &mut Budget) -> Result<Vec<Part>, Halt> {
        if let Self::Sequence(all) = self {
            for step in all {
                parts = step.apply(parts, budget)?;
            }
            return Ok(parts);
        }
        let parts = each(parts, |piece| {
            budget.take_text(&piece.text)?;
            self.split(piece, budget)
        })?;
        match self {
            Self::Bert => each(parts, |piece| {
                let ranges = by_char(&piece.text, |c| is_punctuation(c).ok_or_else(|| unknown(c)))?;
                Ok(piece.cut(&Behavior::Isolated.apply(ranges)))
            }),
            _ => Ok(parts),
        }
    }

    fn split(&self, mut piece: Piece, budget: &mut Budget) -> Result<Vec<Part>, Halt> {
        let (ranges, behavior) = match self {
            Self::Sequence(_) => return Ok(alloc::vec![Part::Text(piece)]),
            Self::ByteLevel { prefix_space, regex } => {
                if *prefix_space && piece.text.first() != Some(&' ') {
                    piece.text.insert(0, ' ');
                }
                let parts = match regex {
                    Some(regex) => {
                        let ranges = by_regex(regex, &piece.text, budget)?;
                        piece.cut(&Behavior::Isolated.apply(ranges))
                    }
                    None => alloc::vec![Part::Text(piece)],
                };
                return each(parts, |piece| Ok(alloc::vec![Part::Text(piece.into_bytes())]));
            }
            Self::Regex { regex, behavior, is_inverted } => {
                let mut ranges = by_regex(regex, &piece.text, budget)?;
                if *is_inverted {
                    ranges.iter_mut().for_each(|(_, _, is_match)| *is_match = !*is_match);
                }
                (ranges, *behavior)
            }
            Self::Digits { are_single: true } => {
                (by_char(&piece.text, |c| Ok(c.is_numeric()))?, Behavior::Isolated)
            }
            Self::Digits { are_single: false } => {
                (by_char(&piece.text, |c| Ok(c.is_numeric()))?, Behavior::Contiguous)
            }
            Self::Punctuation(behavior) => {
                (by_char(&piece.text, |c| is_punctuation(c).ok_or_else(|| unknown(c)))?, *behavior)
            }
            Self::WhiteSpace | Self::Bert => {
                (by_char(&piece.text, |c| Ok(c.is_whitespace()))?, Behavior::Removed)
            }
            Self::Words => {
                let mut ranges = by_regex(
                    &Regex::new(r"[\p{L}\p{M}\p{Nd}\p{Pc}\x{200d}]+|[^\p{L}\p{M}\p{Nd}\p{Pc}\x{200d}\s]+")?,
                    &piece.text,
                    budget,
                )?;
                ranges.iter_mut().for_each(|(_, _, is_match)| *is_match = !*is_match);
                (ranges, Behavior::Removed)
            }
            Self::Delimiter(delimiter) => (by_char(&piece.text, |c| Ok(c == *delimiter))?, Behavior::Removed),
            Self::Metaspace { replacement, prepend, is_split } => {
                piece.text.iter_mut().filter(|c| **c == ' ').for_each(|c| *c = *replacement);
                let wants = *prepend == Prepend::Always || (*prepend == Prepend::First && piece.n_first > 0);
                if wants && piece.text.first() != Some(replacement) {
                    piece.text.insert(0, *replacement);
                }
                if !is_split {
                    return Ok(alloc::vec![Part::Text(piece)]);
                }
                (by_char(&piece.text, |c| Ok(c == *replacement))?, Behavior::MergedWithNext)
            }
            Self::FixedLength(length) => {
                let begins = (0..piece.text.len()).step_by(*length);
                let end = |begin: usize| (begin + length).min(piece.text.len());
                (begins.map(|begin| (begin, end(begin), false)).collect(), Behavior::Isolated)
            }
        };
        Ok(piece.cut(&behavior.apply(ranges)))
    }
}

/// A range of characters, and whether the pattern matches it.
type Range = (usize, usize, bool);

impl Behavior {
    fn new(json: &Json) -> Result<Self, Halt> {
        Ok(match json.as_str().unwrap_or_default() {
            "Removed" => Self::Removed,
            "Isolated" => Self::Isolated,
            "MergedWithPrevious" => Self::MergedWithPrevious,
            "MergedWithNext" => Self::MergedWithNext,
            "Contiguous" => Self::Contiguous,
            other => return Err(Halt::missing(&alloc::format!("the behavior `{other}` of a pre-tokenizer"))),
        })
    }

    /// The ranges that are kept.
    fn apply(self, ranges: Vec<Range>) -> Vec<(usize, usize)> {
        let mut kept: Vec<(usize, usize)> = Vec::with_capacity(ranges.len());
        let mut previous = false;
        match self {
            Self::Removed => {
                kept.extend(ranges.iter().filter(|range| !range.2).map(|range| (range.0, range.1)));
            }
            Self::Isolated => kept.extend(ranges.iter().map(|range| (range.0, range.1))),
            Self::MergedWithNext => {
                for (begin, end, is_match) in ranges.into_iter().rev() {
                    match kept.last_mut() {
                        Some(last) if is_match && !previous => last.0 = begin,
                        _ => kept.push((begin, end)),
                    }
                    previous = is_match;
                }
                kept.reverse();
            }
            Self::MergedWithPrevious | Self::Contiguous => {
                for (begin, end, is_match) in ranges {
                    let joins =
                        if self == Self::Contiguous { is_match == previous } else { is_match && !previous };
                    match kept.last_mut() {
                        Some(last) if joins => last.1 = end,
                        _ => kept.push((begin, end)),
                    }
                    previous = is_match;
                }
            }
        }
        kept
    }
}

impl Piece {
    /// These ranges of it.
    fn cut(&self, ranges: &[(usize, usize)]) -> Vec<Part> {
        let piece = |&(begin, end): &(usize, usize)| Self {
            text: self.text.get(begin..end).unwrap_or_default().to_vec(),
            n_first: if begin == 0 { self.n_first } else { 0 },
        };
        ranges.iter().map(|range| Part::Text(piece(range))).collect()
    }

    /// A letter for each of its bytes.
    fn into_bytes(self) -> Self {
        let mut bytes = [0; 4];
        let mut text = Vec::with_capacity(self.text.len());
        for c in &self.text {
            text.extend(c.encode_utf8(&mut bytes).bytes().map(byte_letter));
        }
        Self { text, n_first: self.n_first }
    }
}

impl Patterns {
    /// Splits a text at the added tokens in it.
    pub(super) fn split(&self, piece: Piece, budget: &mut Budget) -> Result<Vec<Part>, Halt> {
        if self.has_empty() {
            return Err(Halt::missing("an added token of which its normalizer leaves nothing"));
        }
        let text = &piece.text;
        let mut parts = Vec::new();
        let (mut from, mut begin) = (0, 0);
        while let Some((found, mut start, mut end)) = self.find(text, from, |work| budget.take(work))? {
            from = end;
            let Flags { single_word, lstrip, rstrip, .. } = found.flags;
            if found.is_passed || (single_word && !stands_alone(text, start, end)?) {
                continue;
            }
            if lstrip {
                let before = text.get(begin..start).unwrap_or_default();
                let spaces = before.iter().rev().take_while(|c| c.is_whitespace()).count();
                start = (start - spaces).max(begin);
            }
            if rstrip {
                let spaces = text[end..].iter().take_while(|c| c.is_whitespace()).count();
                // The next token may begin within them.
                budget.take(spaces as u64)?;
                end += spaces;
            }
            if begin < start {
                parts.extend(piece.cut(&[(begin, start)]));
            }
            match start.cmp(&end) {
                Ordering::Less => parts.push(Part::Token(found.id)),
                // White space that the token before has taken already.
                Ordering::Equal => {}
                Ordering::Greater => {
                    return Err(Halt::missing("an added token within the white space of another one"));
                }
            }
            begin = end;
        }
        parts.extend(piece.cut(&[(begin, text.len())]));
        Ok(parts)
    }
}

/// Whether no letter, digit or mark is before or after this range.
fn stands_alone(text: &[char], start: usize, end: usize) -> Result<bool, Halt> {
    let is_word = |c: Option<&char>| c.map_or(Ok(false), |&c| is_unicode_word(c).ok_or_else(|| unknown(c)));
    Ok(!is_word(start.checked_sub(1).and_then(|before| text.get(before)))? && !is_word(text.get(end))?)
}

/// Ranges of single characters that `is_match`, and those between them.
fn by_char(text: &[char], is_match: impl Fn(char) -> Result<bool, Halt>) -> Result<Vec<Range>, Halt> {
    let mut ranges = Vec::new();
    let mut begin = 0;
    for (idx, &c) in text.iter().enumerate() {
        if is_match(c)? {
            if begin < idx {
                ranges.push((begin, idx, false));
            }
            ranges.push((idx, idx + 1, true));
            begin = idx + 1;
        }
    }
    if begin < text.len() {
        ranges.push((begin, text.len(), false));
    }
    Ok(ranges)
}

/// Ranges that an expression matches, and those between them.
fn by_regex(regex: &Regex, text: &[char], budget: &mut Budget) -> Result<Vec<Range>, Halt> {
    let mut ranges = Vec::new();
    let mut before = 0;
    for (begin, end) in regex.matches(text, budget)? {
        if before != begin {
            ranges.push((before, begin, false));
        }
        ranges.push((begin, end, true));
        before = end;
    }
    if before != text.len() {
        ranges.push((before, text.len(), false));
    }
    Ok(ranges)
}

fn one_char(json: &Json, name: &str) -> Result<char, Halt> {
    let mut chars = str_of(json, name).unwrap_or_default().chars();
    match (chars.next(), chars.next()) {
        (Some(c), None) => Ok(c),
        _ => Err(Halt::missing("a step with a delimiter of this form")),
    }
}

fn unknown(c: char) -> Halt {
    Halt::missing(&alloc::format!("the class of the character U+{:04X}", u32::from(c)))
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;

    fn split(json: &str, text: &str) -> Vec<String> {
        let json = Json::from_bytes("x", json.as_bytes()).unwrap();
        let pre_tokenizer = PreTokenizer::new(&json, &mut 64, 8).unwrap();
        let part = Part::Text(Piece { text: text.chars().collect(), n_first: 1 });
        let parts = pre_tokenizer.apply(alloc::vec![part], &mut Budget::default()).unwrap();
        let text = |part| match part {
            Part::Text(piece) => piece.text.into_iter().collect(),
            Part::Token(id) => alloc::format!("#{id}"),
        };
        parts.into_iter().map(text).collect()
    }

    #[test]
    fn behaviors_are_those_of_the_library() {
        let cases = [
            ("Removed", &["The", "final", "countdown"][..]),
            ("Isolated", &["The", "-", "final", "-", "-", "countdown"]),
            ("MergedWithPrevious", &["The-", "final-", "-", "countdown"]),
            ("MergedWithNext", &["The", "-final", "-", "-countdown"]),
            ("Contiguous", &["The", "-", "final", "--", "countdown"]),
        ];
        for (behavior, expected) in cases {
            let json = alloc::format!(
                r#"{{"type": "Split", "pattern": {{"String": "-"}}, "behavior": "{behavior}", "invert": false}}"#
            );
            assert_eq!(split(&json, "The-final--countdown"), *expected, "{behavior}");
        }
        let inverted =
            r#"{"type": "Split", "pattern": {"Regex": "\\w+"}, "behavior": "Removed", "invert": true}"#;
        assert_eq!(split(inverted, "a, bc!"), ["a", "bc"]);
    }

    #[test]
    fn steps_split_as_those_of_the_library() {
        let cases: &[(&str, &str, &[&str])] = &[
            (
                r#"{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true}"#,
                "Hi é!",
                &["ĠHi", "ĠÃ©", "!"],
            ),
            (r#"{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}"#, "a b", &["aĠb"]),
            (r#"{"type": "Digits", "individual_digits": true}"#, "a123 b", &["a", "1", "2", "3", " b"]),
            (r#"{"type": "Digits", "individual_digits": false}"#, "a123 b", &["a", "123", " b"]),
            (r#"{"type": "Punctuation", "behavior": "Contiguous"}"#, "a,,b$", &["a", ",,", "b", "$"]),
            (r#"{"type": "WhitespaceSplit"}"#, " a\t b,", &["a", "b,"]),
            (r#"{"type": "Whitespace"}"#, "a_1, b", &["a_1", ",", "b"]),
            (r#"{"type": "BertPreTokenizer"}"#, "Hey, you!", &["Hey", ",", "you", "!"]),
            (
                r#"{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true}"#,
                "a b",
                &["▁a", "▁b"],
            ),
            (
                r#"{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "split": false}"#,
                "a b",
                &["a▁b"],
            ),
            (r#"{"type": "CharDelimiterSplit", "delimiter": "-"}"#, "a-b", &["a", "b"]),
            (r#"{"type": "FixedLength", "length": 2}"#, "abcde", &["ab", "cd", "e"]),
            (
                r#"{"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": true},
                    {"type": "Metaspace", "replacement": "_", "prepend_scheme": "first"}]}"#,
                "a1 b",
                &["_a", "1", "_b"],
            ),
        ];
        for (json, text, expected) in cases {
            assert_eq!(split(json, text), *expected, "{json}");
        }
    }

    #[test]
    fn unknown_steps_are_named() {
        for json in [
            r#"{"type": "UnicodeScripts"}"#,
            "{}",
            r#"{"type": "Split"}"#,
            r#"{"type": "FixedLength", "length": 0}"#,
        ] {
            let json = Json::from_bytes("x", json.as_bytes()).unwrap();
            assert!(matches!(PreTokenizer::new(&json, &mut 64, 8), Err(Halt::Missing(_))));
        }
        let many = alloc::format!(
            r#"{{"type": "Sequence", "pretokenizers": [{}]}}"#,
            [r#"{"type": "Whitespace"}"#; 100].join(",")
        );
        let json = Json::from_bytes("x", many.as_bytes()).unwrap();
        assert!(matches!(PreTokenizer::new(&json, &mut 64, 8), Err(Halt::Missing(_))));
    }
}
