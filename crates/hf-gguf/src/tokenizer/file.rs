//! `tokenizer.json`: the vocabulary and the merges in arenas, everything else as trees.

use alloc::boxed::Box;
use alloc::vec::Vec;

use json_scan::{Check, RawStr, Scanner};

use super::scan::{Stop, Trees};
use super::strings::{Index, Strings};
use crate::error::{Error, ErrorKind};
use crate::json::{Json, Object};
use crate::text::utf8;

/// Name of the file.
pub(crate) const FILE: &str = "tokenizer.json";
/// Most tokens of a vocabulary. The largest published ones have a million.
pub(crate) const MAX_TOKENS: usize = 1 << 22;
/// Most merges: several for each token, as converters of other formats write them.
const MAX_MERGES: usize = 1 << 23;
/// The vocabulary of a model.
#[derive(Clone, Debug)]
pub(crate) struct Vocabulary {
    pub(crate) strings: Strings,
    ids: Vec<u32>,
    /// Of Unigram models, one for each string.
    pub(crate) scores: Vec<f32>,
    index: Index,
    /// Indices of the strings that count, by id.
    by_id: Vec<u32>,
}

/// The merges of a BPE model.
#[derive(Clone, Debug, Default)]
pub(crate) struct Merges {
    /// One string `a b` for a merge, or two.
    strings: Strings,
    are_pairs: bool,
}

/// A tokenizer as the library `tokenizers` writes it.
#[derive(Clone, Debug)]
pub(crate) struct TokenizerFile {
    pub(crate) vocabulary: Vocabulary,
    pub(crate) merges: Merges,
    /// Members of `model` but `vocab` and `merges`.
    pub(crate) model: Object,
    /// Members of the file but `model`.
    pub(crate) members: Object,
}

impl Vocabulary {
    /// A vocabulary of strings with their ids. Of equal strings the last counts, as in a dictionary.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TokenTwice`] if two different strings have one id.
    pub(crate) fn new(file: &str, strings: Strings, ids: Vec<u32>, scores: Vec<f32>) -> Result<Self, Error> {
        let index = Index::new(&strings);
        let counts = |idx: usize| index.find(&strings, strings.get(idx)) == Some(idx);
        let mut by_id: Vec<u32> =
            (0..strings.len()).filter(|&idx| counts(idx)).map(|idx| idx as u32).collect();
        let id = |idx: &u32| ids.get(*idx as usize).copied().unwrap_or_default();
        by_id.sort_by_key(id);
        if let Some(pair) = by_id.windows(2).find(|pair| id(&pair[0]) == id(&pair[1])) {
            let (first, second) = (strings.get(pair[0] as usize), strings.get(pair[1] as usize));
            return Err(ErrorKind::twice(file, id(&pair[0]), first, second));
        }
        Ok(Self { strings, ids, scores, index, by_id })
    }

    /// `vocab.json`: an object of ids.
    ///
    /// # Errors
    ///
    /// As [`TokenizerFile::from_bytes`].
    pub(crate) fn from_json(file: &'static str, bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(file);
        let mut scanner = Scanner::new(utf8(file, bytes)?, Check::Syntax);
        scanner.skip_white_space();
        let read = reader.vocabulary(&mut scanner).and_then(|()| Ok(scanner.finish()?));
        read.map_err(|stop| stop.in_file(file))?;
        Self::new(file, reader.strings, reader.ids, Vec::new())
    }

    /// Number of tokens.
    pub(crate) const fn len(&self) -> usize {
        self.by_id.len()
    }

    /// The id of a token.
    pub(crate) fn id(&self, token: &str) -> Option<u32> {
        self.ids.get(self.index.find(&self.strings, token)?).copied()
    }

    /// The tokens in the order of their ids.
    pub(crate) fn tokens(&self) -> impl DoubleEndedIterator<Item = (u32, &str)> {
        self.by_id.iter().map(|&idx| (self.ids[idx as usize], self.strings.get(idx as usize)))
    }

    /// The token of an id.
    pub(crate) fn token(&self, id: u32) -> Option<&str> {
        let place = self.by_id.binary_search_by_key(&id, |&idx| self.ids[idx as usize]).ok()?;
        Some(self.strings.get(self.by_id[place] as usize))
    }
}

impl Merges {
    /// Merges of one string each, as in `merges.txt`.
    pub(crate) const fn of_lines(strings: Strings) -> Self {
        Self { strings, are_pairs: false }
    }

    /// Number of merges.
    pub(crate) const fn len(&self) -> usize {
        if self.are_pairs { self.strings.len() / 2 } else { self.strings.len() }
    }

    /// Both halves of each merge; `None` for a string that is not two of them.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = Option<(&str, &str)>> {
        (0..self.len()).map(|idx| {
            if self.are_pairs {
                return Some((self.strings.get(2 * idx), self.strings.get(2 * idx + 1)));
            }
            self.strings.get(idx).split_once(' ').filter(|(_, second)| !second.contains(' '))
        })
    }

    /// Each merge as GGUF has it: a space in a half of a pair is written `Ġ`.
    pub(crate) fn lines(&self) -> Vec<alloc::string::String> {
        let line = |idx: usize| {
            if self.are_pairs {
                let half = |idx| self.strings.get(idx).replace(' ', "Ġ");
                alloc::format!("{} {}", half(2 * idx), half(2 * idx + 1))
            } else {
                self.strings.get(idx).into()
            }
        };
        (0..self.len()).map(line).collect()
    }
}

impl TokenizerFile {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotUtf8`], [`ErrorKind::Json`], [`ErrorKind::Limit`], [`ErrorKind::TokenTwice`], [`ErrorKind::ConfigMissing`].
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        Reader::new(FILE).read(utf8(FILE, bytes)?).map_err(|stop| stop.in_file(FILE))
    }

    /// A member of `model` that is a string and not null.
    pub(crate) fn model_str(&self, name: &str) -> Option<&str> {
        self.model.get(name).and_then(Json::as_str)
    }

    /// A truth value of `model`.
    pub(crate) fn model_bool(&self, name: &str) -> Option<bool> {
        self.model.get(name).and_then(Json::as_bool)
    }

    /// A member that is not null.
    pub(crate) fn member(&self, name: &str) -> Option<&Json> {
        self.members.get(name).filter(|value| !value.is_null())
    }

    /// The kind of the model. Files of old versions do not name it; those of BPE have merges.
    pub(crate) fn model_type(&self) -> &str {
        let unnamed = if self.merges.len() > 0 { "BPE" } else { "" };
        self.model_str("type").unwrap_or(unnamed)
    }
}

/// What has been read.
struct Reader {
    file: &'static str,
    trees: Trees,
    strings: Strings,
    ids: Vec<u32>,
    scores: Vec<f32>,
    merges: Merges,
    // Many at once: an object is ordered each time that a member is set.
    model: Vec<(Box<str>, Json)>,
    members: Vec<(Box<str>, Json)>,
    has_vocabulary: bool,
}

impl Reader {
    fn new(file: &'static str) -> Self {
        Self {
            file,
            trees: Trees::of(file),
            strings: Strings::default(),
            ids: Vec::new(),
            scores: Vec::new(),
            merges: Merges::default(),
            model: Vec::new(),
            members: Vec::new(),
            has_vocabulary: false,
        }
    }

    fn read(mut self, text: &str) -> Result<TokenizerFile, Stop> {
        let mut scanner = Scanner::new(text, Check::Syntax);
        scanner.skip_white_space();
        scanner.members(|scanner, name, _| {
            if name.is("model") && scanner.peek() == Some(b'{') {
                return scanner.members(|scanner, name, _| self.model_member(scanner, name));
            }
            self.members.push(self.trees.member(scanner, name)?);
            Ok(())
        })?;
        scanner.finish()?;
        if !self.has_vocabulary {
            return Err(ErrorKind::missing(FILE, "`model.vocab`").into());
        }
        let vocabulary = Vocabulary::new(FILE, self.strings, self.ids, self.scores)?;
        Ok(TokenizerFile {
            vocabulary,
            merges: self.merges,
            model: self.model.into(),
            members: self.members.into(),
        })
    }

    fn model_member(&mut self, scanner: &mut Scanner<'_>, name: RawStr<'_>) -> Result<(), Stop> {
        match (name.is("vocab"), name.is("merges"), scanner.peek()) {
            (true, _, Some(b'{')) => self.vocabulary(scanner),
            (true, _, Some(b'[')) => self.pieces(scanner),
            (_, true, Some(b'[')) => self.merges(scanner),
            _ => {
                self.model.push(self.trees.member(scanner, name)?);
                Ok(())
            }
        }
    }

    /// `{"token": id}`.
    fn vocabulary(&mut self, scanner: &mut Scanner<'_>) -> Result<(), Stop> {
        self.begin_vocabulary();
        scanner.members(|scanner, token, at| {
            let id = scanner.integer()?;
            let id =
                u32::try_from(id).map_err(|_| ErrorKind::beyond(self.file, id, 1 << 32).at(at as u64))?;
            self.token(token)?;
            self.ids.push(id);
            Ok(())
        })
    }

    /// `[["piece", score]]`, of Unigram models: the ids are the indices.
    fn pieces(&mut self, scanner: &mut Scanner<'_>) -> Result<(), Stop> {
        self.begin_vocabulary();
        scanner.items(|scanner, at| {
            let mut idx = 0;
            scanner.items(|scanner, at| {
                match idx {
                    0 => self.token(scanner.string()?)?,
                    1 => {
                        let score: f64 = scanner.number()?.parse().unwrap_or(f64::NAN);
                        self.scores.push(score as f32);
                        scanner.skip_white_space();
                    }
                    _ => return Err(value("a piece and its score", "more values", at)),
                }
                idx += 1;
                Ok(())
            })?;
            self.ids.push(self.ids.len() as u32);
            if idx == 2 { Ok(()) } else { Err(value("a piece and its score", "fewer values", at)) }
        })
    }

    /// Of a name that occurs twice, the last value counts.
    fn begin_vocabulary(&mut self) {
        self.has_vocabulary = true;
        (self.strings, self.ids, self.scores) = (Strings::default(), Vec::new(), Vec::new());
    }

    fn token(&mut self, token: RawStr<'_>) -> Result<(), Error> {
        if self.strings.len() == MAX_TOKENS {
            return Err(ErrorKind::limit(self.file, "tokens", MAX_TOKENS));
        }
        self.strings.push_with(|text| token.unescape_into(text));
        Ok(())
    }

    /// `["a b"]` or `[["a", "b"]]`.
    fn merges(&mut self, scanner: &mut Scanner<'_>) -> Result<(), Stop> {
        self.merges = Merges::default();
        scanner.items(|scanner, at| {
            let is_pair = scanner.peek() == Some(b'[');
            if self.merges.strings.len() > 0 && is_pair != self.merges.are_pairs {
                return Err(value("merges of one form", "strings beside pairs", at));
            }
            self.merges.are_pairs = is_pair;
            if self.merges.len() == MAX_MERGES {
                return Err(ErrorKind::limit(FILE, "merges", MAX_MERGES).into());
            }
            if !is_pair {
                let merge = scanner.string()?;
                self.merges.strings.push_with(|text| merge.unescape_into(text));
                return Ok(());
            }
            let mut n_halves = 0;
            scanner.items(|scanner, at| {
                n_halves += 1;
                if n_halves > 2 {
                    return Err(value("two halves of a merge", "three", at));
                }
                let half = scanner.string()?;
                self.merges.strings.push_with(|text| half.unescape_into(text));
                Ok(())
            })?;
            if n_halves == 2 { Ok(()) } else { Err(value("two halves of a merge", "fewer", at)) }
        })
    }
}

/// Of a value of another form than expected.
fn value(expected: &'static str, found: &str, at: usize) -> Stop {
    let kind = ErrorKind::ConfigValue { file: FILE.into(), expected, found: found.into() };
    Error::from(kind).at(at as u64).into()
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    fn read(text: &str) -> Result<TokenizerFile, Error> {
        TokenizerFile::from_bytes(text.as_bytes())
    }

    #[test]
    fn vocabulary_and_merges_of_both_forms_are_read() {
        let file = read(
            r#" {"version": "1.0", "model": {"type": "BPE", "vocab": {"b": 1, "a": 0, "a b": 3, "\u0120": 2, "b": 4},
                "merges": ["a b", "x"], "unk_token": null}, "decoder": {"type": "ByteLevel"}} "#,
        )
        .unwrap();
        let tokens: Vec<_> = file.vocabulary.tokens().collect();
        assert_eq!(tokens, [(0, "a"), (2, "Ġ"), (3, "a b"), (4, "b")]);
        assert_eq!((file.vocabulary.id("b"), file.vocabulary.id("c")), (Some(4), None));
        assert_eq!((file.vocabulary.token(3), file.vocabulary.token(1)), (Some("a b"), None));
        assert_eq!(file.merges.pairs().collect::<Vec<_>>(), [Some(("a", "b")), None]);
        assert_eq!((file.model_type(), file.model_str("unk_token")), ("BPE", None));
        assert_eq!(
            file.member("decoder").and_then(|decoder| decoder.get("type")).and_then(Json::as_str),
            Some("ByteLevel")
        );

        let file =
            read(r#"{"model": {"merges": [["a", " b"]], "vocab": [["<unk>", 0], ["x", -1.5e0]]}}"#).unwrap();
        assert_eq!(file.merges.lines(), ["a Ġb"]);
        assert_eq!((file.model_type(), &file.vocabulary.scores[..]), ("BPE", &[0.0, -1.5][..]));
    }

    #[test]
    fn damage_is_refused() {
        let cases = [
            (r#"{"model": {"vocab": {"a": 0, "b": 0}}}"#, "hg-token-twice"),
            (r#"{"model": {"vocab": {"a": -1}}}"#, "hg-json"),
            (r#"{"model": {"vocab": {"a": 1.0}}}"#, "hg-json"),
            (r#"{"model": {"vocab": {"a": 4294967296}}}"#, "hg-token-id"),
            (r#"{"model": {"vocab": [["a"]]}}"#, "hg-config-value"),
            (r#"{"model": {"vocab": [["a", 1, 2]]}}"#, "hg-config-value"),
            (r#"{"model": {"vocab": {}, "merges": ["a b", ["a", "b"]]}}"#, "hg-config-value"),
            (r#"{"model": {"vocab": {}, "merges": [["a", "b", "c"]]}}"#, "hg-config-value"),
            (r#"{"model": {"merges": []}}"#, "hg-config-missing"),
            (r#"{"model": {"vocab": 3}}"#, "hg-config-missing"),
            (r#"{"model": 3}"#, "hg-config-missing"),
            ("[]", "hg-json"),
            (r#"{"model": {"vocab": {"a": 0}}} x"#, "hg-json"),
        ];
        for (text, code) in cases {
            let error = read(text).unwrap_err();
            assert_eq!(error.code(), code, "{text}: {error}");
        }
        let deep = alloc::format!(r#"{{"normalizer": {}"#, "[".repeat(1 << 20));
        assert!(read(&deep).unwrap_err().to_string().contains("deep"));
    }
}
