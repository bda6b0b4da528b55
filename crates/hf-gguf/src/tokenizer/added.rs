//! Tokens that were added to a vocabulary after it was trained.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use super::file::Vocabulary;
use crate::error::{Error, ErrorKind};
use crate::json::Json;

/// Most tokens that are added.
const MAX_ADDED: usize = 1 << 20;

/// How an added token is looked for in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Flags {
    /// Only as a word of its own.
    pub(super) single_word: bool,
    /// With the white space before it.
    pub(super) lstrip: bool,
    /// With the white space after it.
    pub(super) rstrip: bool,
    /// In the normalized text.
    pub(super) normalized: bool,
    /// Whether it controls the model instead of being text.
    pub(super) special: bool,
}

/// A token with its flags.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AddedToken {
    pub(super) content: Box<str>,
    pub(super) flags: Flags,
}

/// The added tokens of a tokenizer, as the library `tokenizers` keeps them.
#[derive(Clone, Debug, Default)]
pub(super) struct AddedTokens {
    /// Id and flags by content; flags are those of the last time that it was added.
    by_content: BTreeMap<Box<str>, (u32, Flags)>,
    /// Content by id.
    by_id: BTreeMap<u32, Box<str>>,
    /// What is looked for in a text: special tokens with the flags of their first time, then the others, each time.
    special: Vec<AddedToken>,
    other: Vec<AddedToken>,
    special_contents: BTreeSet<Box<str>>,
}

impl AddedToken {
    /// A token of which only the text is known.
    pub(super) fn of(content: &str, special: bool) -> Self {
        Self { content: content.into(), flags: Flags { special, normalized: !special, ..Flags::default() } }
    }

    /// A token as an object; `None` for another value. A token whose object does not say so is looked for in the normalized text
    /// unless it is special.
    pub(super) fn from_json(json: &Json) -> Option<Self> {
        let content = json.get("content")?.as_str()?.into();
        let flag = |name| json.get(name).and_then(Json::as_bool);
        let special = flag("special").unwrap_or_default();
        let flags = Flags {
            single_word: flag("single_word").unwrap_or_default(),
            lstrip: flag("lstrip").unwrap_or_default(),
            rstrip: flag("rstrip").unwrap_or_default(),
            normalized: flag("normalized").unwrap_or(!special),
            special,
        };
        Some(Self { content, flags })
    }
}

impl AddedTokens {
    /// Adds tokens: one that the vocabulary has keeps its id, another takes the next id.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Limit`]; [`ErrorKind::TokenTwice`] if the next id is that of another token already.
    pub(super) fn add(
        &mut self,
        file: &str,
        tokens: &[AddedToken],
        vocabulary: &Vocabulary,
    ) -> Result<(), Error> {
        for token in tokens {
            if token.flags.special
                && !token.content.is_empty()
                && self.special_contents.insert(token.content.clone())
            {
                self.special.push(token.clone());
            }
        }
        let current = self.by_content.iter().map(|(content, (_, flags))| (content.clone(), *flags));
        let mut existing: BTreeSet<(Box<str>, Flags)> = current.collect();
        let n_tokens = vocabulary.len() as u64;
        let last = self.by_id.last_key_value().map(|(id, _)| u64::from(*id));
        let mut next =
            last.filter(|last| *last >= n_tokens || n_tokens == 0).map_or(n_tokens, |last| last + 1);
        for token in tokens {
            if token.content.is_empty() || !existing.insert((token.content.clone(), token.flags)) {
                continue;
            }
            let known = self.by_content.get(&token.content).map(|(id, _)| *id);
            let id = match known.or_else(|| vocabulary.id(&token.content)) {
                Some(id) => id,
                None => {
                    let id = u32::try_from(next).map_err(|_| ErrorKind::beyond(file, next, 1 << 32))?;
                    if let Some(other) = vocabulary.token(id) {
                        return Err(ErrorKind::twice(file, id, other, &token.content));
                    }
                    next += 1;
                    id
                }
            };
            self.by_content.insert(token.content.clone(), (id, token.flags));
            self.by_id.insert(id, token.content.clone());
            if !self.special_contents.contains(&token.content) {
                self.other.push(token.clone());
            }
            if self.by_id.len() > MAX_ADDED || self.other.len() > MAX_ADDED {
                return Err(ErrorKind::limit(file, "added tokens", MAX_ADDED));
            }
        }
        Ok(())
    }

    /// The id of an added token.
    pub(super) fn id(&self, content: &str) -> Option<u32> {
        self.by_content.get(content).map(|(id, _)| *id)
    }

    /// The added token of an id.
    pub(super) fn token(&self, id: u32) -> Option<&str> {
        self.by_id.get(&id).map(|content| &**content)
    }

    /// The added tokens in the order of their ids.
    pub(super) fn tokens(&self) -> impl DoubleEndedIterator<Item = (u32, &str, Flags)> {
        self.by_id.iter().map(|(id, content)| (*id, &**content, self.flags(content)))
    }

    fn flags(&self, content: &str) -> Flags {
        self.by_content.get(content).map(|(_, flags)| *flags).unwrap_or_default()
    }

    /// Tokens that are looked for in the raw text: their own text is encoded as the token.
    pub(super) fn raw(&self) -> BTreeSet<&str> {
        let all = self.special.iter().chain(&self.other);
        all.filter(|token| !token.flags.normalized).map(|token| &*token.content).collect()
    }

    /// The same tokens without those that are not special.
    pub(super) fn only_special(&self) -> Self {
        Self { other: Vec::new(), ..self.clone() }
    }

    /// What is looked for in the raw or in the normalized text, where `written` is how a token is written. Special tokens are only passed
    /// over if so asked.
    pub(super) fn patterns<E>(
        &self,
        normalized: bool,
        passes_special: bool,
        mut written: impl FnMut(&str) -> Result<String, E>,
    ) -> Result<Patterns, E> {
        let mut patterns = Patterns::default();
        let tokens = self.special.iter().chain(&self.other);
        for AddedToken { content, .. } in tokens.filter(|token| token.flags.normalized == normalized) {
            let Some(id) = self.id(content) else { continue };
            let is_passed = passes_special && self.special_contents.contains(content);
            patterns.insert(written(content)?, Found { id, flags: self.flags(content), is_passed });
        }
        Ok(patterns)
    }
}

/// Texts of added tokens, of which the longest is found at each position.
#[derive(Clone, Debug, Default)]
pub(super) struct Patterns {
    /// Of equal texts, the first token is found.
    by_text: BTreeMap<String, Found>,
    /// Lengths of the texts in characters.
    lengths: BTreeSet<usize>,
    firsts: BTreeSet<char>,
}

/// An added token that is found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) id: u32,
    pub(super) flags: Flags,
    /// Whether it remains text.
    pub(super) is_passed: bool,
}

impl Patterns {
    fn insert(&mut self, text: String, found: Found) {
        self.lengths.insert(text.chars().count());
        self.firsts.extend(text.chars().next());
        self.by_text.entry(text).or_insert(found);
    }

    /// Whether one of the texts is empty: it would be found everywhere.
    pub(super) fn has_empty(&self) -> bool {
        self.lengths.contains(&0)
    }

    /// The first token at or after `from`, where it begins, and where it ends. Calls `look` with the number of characters before it compares them.
    pub(super) fn find<E>(
        &self,
        text: &[char],
        from: usize,
        mut look: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<Option<(Found, usize, usize)>, E> {
        let mut candidate = String::new();
        for begin in from..text.len() {
            if !self.firsts.contains(&text[begin]) {
                continue;
            }
            for &len in self.lengths.iter().rev() {
                let Some(chars) = text.get(begin..begin + len) else { continue };
                look(len as u64)?;
                candidate.clear();
                candidate.extend(chars);
                if let Some(found) = self.by_text.get(&candidate) {
                    return Ok(Some((*found, begin, begin + len)));
                }
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::super::strings::Strings;
    use super::*;

    fn vocabulary(tokens: &[&str]) -> Vocabulary {
        let strings: Strings = tokens.iter().copied().collect();
        Vocabulary::new("x", strings, (0..tokens.len() as u32).collect(), Vec::new()).unwrap()
    }

    #[test]
    fn ids_follow_the_vocabulary_and_flags_are_the_last_ones() {
        let vocabulary = vocabulary(&["a", "<s>", "b"]);
        let mut added = AddedTokens::default();
        let tokens =
            ["<pad>", "<s>", "", "x"].map(|content| AddedToken::of(content, content.starts_with('<')));
        added.add("x", &tokens, &vocabulary).unwrap();
        let ids: Vec<_> = added.tokens().map(|(id, content, flags)| (id, content, flags.special)).collect();
        assert_eq!(ids, [(1, "<s>", true), (3, "<pad>", true), (4, "x", false)]);
        // Added again as special: it is looked for as the classic token that it was first, too.
        added.add("x", &[AddedToken::of("x", true), AddedToken::of("y", false)], &vocabulary).unwrap();
        let ids: Vec<_> = added.tokens().map(|(id, _, flags)| (id, flags.special)).collect();
        assert_eq!(ids, [(1, true), (3, true), (4, true), (5, false)]);
        assert_eq!((added.special.len(), added.other.len()), (3, 2));
        assert_eq!(added.only_special().other.len(), 0);
    }

    #[test]
    fn an_id_that_is_taken_is_refused() {
        let strings: Strings = ["a", "b"].into_iter().collect();
        let vocabulary = Vocabulary::new("x", strings, vec![0, 2], Vec::new()).unwrap();
        let error = AddedTokens::default().add("x", &[AddedToken::of("c", false)], &vocabulary).unwrap_err();
        assert_eq!(error.code(), "hg-token-twice");
    }

    #[test]
    fn the_longest_token_is_found_first() {
        let mut added = AddedTokens::default();
        let tokens = ["ab", "abc", "bcd", "d"].map(|content| AddedToken::of(content, true));
        added.add("x", &tokens, &vocabulary(&[])).unwrap();
        let patterns = added.patterns(false, false, |content| Ok::<_, ()>(content.into())).unwrap();
        let text: Vec<char> = "xabcdab".chars().collect();
        let mut found = Vec::new();
        let mut from = 0;
        while let Some((token, begin, end)) = patterns.find(&text, from, |_| Ok::<_, ()>(())).unwrap() {
            found.push((token.id, begin, end));
            from = end;
        }
        assert_eq!(found, [(1, 1, 4), (3, 4, 5), (0, 5, 7)]);
    }
}
