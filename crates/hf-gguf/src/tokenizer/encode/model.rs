//! Models: from pieces of text to ids.

use alloc::boxed::Box;
use alloc::collections::BinaryHeap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::Halt;
use crate::error::{Error, ErrorKind};
use crate::json::Json;
use crate::regex::Budget;
use crate::tokenizer::file::{FILE, TokenizerFile, Vocabulary};

/// Longest prefix or suffix of pieces; known ones have 2 to 5 bytes.
const MAX_AFFIX: usize = 64;

/// A model of a tokenizer.
#[derive(Debug)]
pub(super) enum Model<'f> {
    Bpe(Bpe<'f>),
    WordPiece(WordPiece<'f>),
}

/// Byte pair encoding: merges by rank.
#[derive(Debug)]
pub(super) struct Bpe<'f> {
    vocabulary: &'f Vocabulary,
    merges: MergeTable,
    unknown: Option<u32>,
    prefix: &'f str,
    suffix: &'f str,
    fuses_unknown: bool,
    has_byte_fallback: bool,
    ignores_merges: bool,
}

/// The longest token that the vocabulary has, again and again.
#[derive(Debug)]
pub(super) struct WordPiece<'f> {
    vocabulary: &'f Vocabulary,
    unknown: &'f str,
    prefix: &'f str,
    max_chars: usize,
}

impl<'f> Model<'f> {
    pub(super) fn new(file: &'f TokenizerFile) -> Result<Self, Halt> {
        match file.model_type() {
            "BPE" => Ok(Self::Bpe(Bpe::new(file)?)),
            "WordPiece" => Ok(Self::WordPiece(WordPiece {
                vocabulary: &file.vocabulary,
                unknown: file.model_str("unk_token").unwrap_or("[UNK]"),
                prefix: affix(file, "continuing_subword_prefix", "##")?,
                max_chars: file
                    .model
                    .get("max_input_chars_per_word")
                    .and_then(Json::as_i64)
                    .and_then(|max| usize::try_from(max).ok())
                    .unwrap_or(100),
            })),
            other => Err(Halt::missing(&format!("the model `{other}`"))),
        }
    }

    /// Appends the ids of a piece of text.
    pub(super) fn encode(&self, text: &[char], ids: &mut Vec<u32>, budget: &mut Budget) -> Result<(), Halt> {
        budget.take_text(text)?;
        match self {
            Self::Bpe(bpe) => bpe.encode(text, ids, budget),
            Self::WordPiece(word_piece) => word_piece.encode(text, ids, budget),
        }
    }
}

/// What is put before or behind each piece of a word: it costs its length each time.
fn affix<'f>(file: &'f TokenizerFile, name: &str, usual: &'static str) -> Result<&'f str, Halt> {
    match file.model_str(name) {
        Some(text) if text.len() > MAX_AFFIX => Err(Halt::missing("a prefix or suffix of this length")),
        text => Ok(text.unwrap_or(usual)),
    }
}

impl<'f> Bpe<'f> {
    fn new(file: &'f TokenizerFile) -> Result<Self, Halt> {
        if file.model.get("dropout").and_then(Json::as_f64).is_some_and(|dropout| dropout > 0.0) {
            return Err(Halt::missing("a model that leaves out merges at random"));
        }
        let vocabulary = &file.vocabulary;
        let prefix = affix(file, "continuing_subword_prefix", "")?;
        let unknown = match file.model_str("unk_token") {
            Some(token) => vocabulary.id(token),
            None => None,
        };
        Ok(Self {
            vocabulary,
            merges: MergeTable::new(file, prefix)?,
            unknown,
            prefix,
            suffix: affix(file, "end_of_word_suffix", "")?,
            fuses_unknown: file.model_bool("fuse_unk").unwrap_or_default(),
            has_byte_fallback: file.model_bool("byte_fallback").unwrap_or_default(),
            ignores_merges: file.model_bool("ignore_merges").unwrap_or_default(),
        })
    }

    fn encode(&self, text: &[char], ids: &mut Vec<u32>, budget: &mut Budget) -> Result<(), Halt> {
        if self.ignores_merges {
            let whole: String = text.iter().collect();
            if let Some(id) = self.vocabulary.id(&whole) {
                ids.push(id);
                return Ok(());
            }
        }
        let word = self.symbols(text);
        self.merges.merge(word, ids, budget)
    }

    /// The ids of the characters.
    fn symbols(&self, text: &[char]) -> Vec<u32> {
        let mut word = Vec::with_capacity(text.len());
        let mut pending = None;
        let mut symbol = String::new();
        for (idx, &c) in text.iter().enumerate() {
            symbol.clear();
            symbol.push_str(if idx > 0 { self.prefix } else { "" });
            symbol.push(c);
            symbol.push_str(if idx + 1 == text.len() { self.suffix } else { "" });
            if let Some(id) = self.vocabulary.id(&symbol) {
                word.extend(pending.take());
                word.push(id);
                continue;
            }
            if self.has_byte_fallback {
                let bytes: Option<Vec<u32>> =
                    symbol.bytes().map(|byte| self.vocabulary.id(&format!("<0x{byte:02X}>"))).collect();
                if let Some(bytes) = bytes {
                    // The library writes an unknown token before them after them.
                    word.extend(bytes);
                    continue;
                }
            }
            if let Some(unknown) = self.unknown {
                if !self.fuses_unknown {
                    word.extend(pending);
                }
                pending = Some(unknown);
            }
        }
        word.extend(pending);
        word
    }
}

/// Rank and result of each merge, by the ids of both halves.
#[derive(Debug)]
struct MergeTable(Box<[Merge]>);

#[derive(Clone, Copy, Debug)]
struct Merge {
    pair: (u32, u32),
    rank: u32,
    result: u32,
}

/// A symbol of a word, linked to those beside it.
#[derive(Clone, Copy)]
struct Symbol {
    id: u32,
    before: usize,
    after: usize,
    is_removed: bool,
}

/// No symbol.
const NONE: usize = usize::MAX;

impl MergeTable {
    /// # Errors
    ///
    /// [`ErrorKind::TokenUnknown`] if a half or the result of a merge is not in the vocabulary.
    fn new(file: &TokenizerFile, prefix: &str) -> Result<Self, Error> {
        let vocabulary = &file.vocabulary;
        let find =
            |token: &str| vocabulary.id(token).ok_or_else(|| ErrorKind::unknown(FILE, "a merge", token));
        let mut merges = Vec::with_capacity(file.merges.len());
        let mut joined = String::new();
        for (idx, pair) in file.merges.pairs().enumerate() {
            let Some((first, second)) = pair else {
                let expected = "two strings with a space between them in each merge";
                let found = "another string".into();
                return Err(ErrorKind::ConfigValue { file: FILE.into(), expected, found }.into());
            };
            joined.clear();
            joined.push_str(first);
            joined.push_str(
                second.get(prefix.len()..).ok_or_else(|| ErrorKind::unknown(FILE, "a merge", second))?,
            );
            merges.push(Merge {
                pair: (find(first)?, find(second)?),
                rank: idx as u32,
                result: find(&joined)?,
            });
        }
        // Of equal pairs, the last counts.
        merges.sort_by_key(|merge| (merge.pair, Reverse(merge.rank)));
        merges.dedup_by_key(|merge| merge.pair);
        Ok(Self(merges.into()))
    }

    fn get(&self, pair: (u32, u32)) -> Option<Merge> {
        let place = self.0.binary_search_by_key(&pair, |merge| merge.pair).ok()?;
        Some(self.0[place])
    }

    /// Merges pairs by rank, of equal ranks from the left, and appends what is left.
    fn merge(&self, word: Vec<u32>, ids: &mut Vec<u32>, budget: &mut Budget) -> Result<(), Halt> {
        let link = |idx: usize, is_end: bool, step: usize| if is_end { NONE } else { idx.wrapping_add(step) };
        let last = word.len().saturating_sub(1);
        let symbol = |(idx, id): (usize, &u32)| Symbol {
            id: *id,
            before: link(idx, idx == 0, NONE),
            after: link(idx, idx == last, 1),
            is_removed: false,
        };
        let mut symbols: Vec<Symbol> = word.iter().enumerate().map(symbol).collect();
        let entry = |symbols: &[Symbol], at: usize| {
            let first = symbols.get(at)?;
            let second = symbols.get(first.after)?;
            let merge = self.get((first.id, second.id))?;
            Some(Reverse((merge.rank, at, merge.result)))
        };
        let mut queue: BinaryHeap<_> = (0..symbols.len()).filter_map(|at| entry(&symbols, at)).collect();
        while let Some(Reverse((_, at, result))) = queue.pop() {
            budget.take(1)?;
            // Entries of symbols that have changed since are passed over.
            let current = entry(&symbols, at).map(|Reverse((_, _, result))| result);
            if symbols[at].is_removed || current != Some(result) {
                continue;
            }
            let right = symbols[at].after;
            let after = symbols[right].after;
            symbols[right].is_removed = true;
            symbols[at].id = result;
            symbols[at].after = after;
            if let Some(next) = symbols.get_mut(after) {
                next.before = at;
            }
            queue.extend(entry(&symbols, symbols[at].before));
            queue.extend(entry(&symbols, at));
        }
        ids.extend(symbols.iter().filter(|symbol| !symbol.is_removed).map(|symbol| symbol.id));
        Ok(())
    }
}

impl WordPiece<'_> {
    fn encode(&self, text: &[char], ids: &mut Vec<u32>, budget: &mut Budget) -> Result<(), Halt> {
        let n_before = ids.len();
        let mut start = 0;
        let mut candidate = String::new();
        while start < text.len() && text.len() <= self.max_chars {
            let mut end = text.len();
            let id = loop {
                if end == start {
                    break None;
                }
                budget.take((end - start) as u64)?;
                candidate.clear();
                candidate.push_str(if start > 0 { self.prefix } else { "" });
                candidate.extend(&text[start..end]);
                match self.vocabulary.id(&candidate) {
                    None => end -= 1,
                    id => break id,
                }
            };
            match id {
                Some(id) => ids.push(id),
                None => break,
            }
            start = end;
        }
        if start < text.len() {
            ids.truncate(n_before);
            let unknown = self.vocabulary.id(self.unknown);
            ids.push(unknown.ok_or_else(|| ErrorKind::unknown(FILE, "`unk_token`", self.unknown))?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(json: &str, text: &str) -> Vec<u32> {
        let file = TokenizerFile::from_bytes(json.as_bytes()).unwrap();
        let chars: Vec<char> = text.chars().collect();
        let mut ids = Vec::new();
        Model::new(&file).unwrap().encode(&chars, &mut ids, &mut Budget::default()).unwrap();
        ids
    }

    const ABC: &str = r#""vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "bc": 4, "abc": 5, "<unk>": 6, "<0xC3>": 7, "<0xA9>": 8}"#;

    #[test]
    fn merges_go_by_rank_and_from_the_left() {
        let with = |merges: &str, rest: &str| {
            format!(r#"{{"model": {{"type": "BPE", {ABC}, "merges": {merges} {rest}}}}}"#)
        };
        assert_eq!(ids(&with(r#"["b c", "a bc", "a b"]"#, ""), "abcabab"), [5, 3, 3]);
        assert_eq!(ids(&with(r#"["a b", "b c"]"#, ""), "abc"), [3, 2]);
        assert_eq!(ids(&with(r#"[["a", "b"], ["ab", "c"]]"#, ""), "abcc"), [5, 2]);
        assert_eq!(ids(&with("[]", r#", "ignore_merges": true"#), "abc"), [5]);
        // Without an unknown token, characters are left out.
        assert_eq!(ids(&with("[]", ""), "axb"), [0, 1]);
        let unknown = r#", "unk_token": "<unk>""#;
        assert_eq!(ids(&with("[]", unknown), "axxb"), [0, 6, 6, 1]);
        assert_eq!(ids(&with("[]", &format!(r#"{unknown}, "fuse_unk": true"#)), "axxb"), [0, 6, 1]);
        assert_eq!(ids(&with("[]", &format!(r#"{unknown}, "byte_fallback": true"#)), "éxé"), [7, 8, 7, 8, 6]);
    }

    #[test]
    fn affixes_mark_symbols_within_and_at_the_end_of_words() {
        let json = r###"{"model": {"type": "BPE", "vocab": {"a": 0, "##b": 1, "##c</w>": 2, "ab": 3, "abc</w>": 4},
            "merges": ["a ##b", "ab ##c</w>"], "continuing_subword_prefix": "##", "end_of_word_suffix": "</w>"}}"###;
        assert_eq!(ids(json, "abc"), [4]);
        let long = json.replace("\"##\"", &format!("\"{}\"", "#".repeat(65)));
        let file = TokenizerFile::from_bytes(long.as_bytes()).unwrap();
        assert!(matches!(Model::new(&file), Err(Halt::Missing(_))));
    }

    #[test]
    fn word_pieces_are_the_longest() {
        let json = r###"{"model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 5,
            "vocab": {"[UNK]": 0, "un": 1, "##aff": 2, "##able": 3, "unaff": 4, "##b": 5}}}"###;
        assert_eq!(ids(json, "unaff"), [4]);
        assert_eq!(ids(json, "unb"), [1, 5]);
        assert_eq!(ids(json, "unx"), [0]);
        assert_eq!(ids(json, "unaffb"), [0]);
    }

    #[test]
    fn merges_of_unknown_tokens_are_refused() {
        for merges in [r#"["a x"]"#, r#"["x a"]"#, r#"["c a"]"#, r#"["a b c"]"#, r#"["ab"]"#] {
            let json = format!(r#"{{"model": {{"type": "BPE", {ABC}, "merges": {merges}}}}}"#);
            let file = TokenizerFile::from_bytes(json.as_bytes()).unwrap();
            let Err(Halt::Error(error)) = Model::new(&file) else { panic!("{merges}") };
            assert!(["hg-token-unknown", "hg-config-value"].contains(&error.code()), "{merges}: {error}");
        }
    }
}
