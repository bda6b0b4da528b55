//! The name of a pre-tokenizer: how text is split before bytes are merged.
//!
//! GGUF files name it instead of describing it. The reference implementation encodes one text and looks the hash of the ids up in a
//! table, and so does this module.

mod shape;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use sha2::{Digest, Sha256};

use super::added::AddedTokens;
use super::encode::{Changes, Halt, Steps};
use super::file::TokenizerFile;
use crate::characters::CHECK_TEXT;
use crate::error::{Error, ErrorKind};
use crate::regex::Budget;

pub(super) use self::shape::{ignores_merges, steps};

/// Hashes and names.
const KNOWN: &str = include_str!("../../data/pre-hashes.tsv");

/// A tokenizer, as far as the name of its pre-tokenizer depends on it.
#[derive(Debug)]
pub(super) struct Subject<'t> {
    pub(super) file: &'t TokenizerFile,
    pub(super) added: &'t AddedTokens,
    pub(super) changes: &'t Changes,
}

impl Subject<'_> {
    /// The name of the pre-tokenizer.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownPre`], [`ErrorKind::PreNotComputed`]; what makes the tokenizer contradict itself.
    pub(super) fn name(&self) -> Result<&'static str, Error> {
        let not_computed = |halt| match halt {
            Halt::Error(error) => error,
            Halt::Missing(what) => ErrorKind::PreNotComputed { what, suggestion: self.shape().into() }.into(),
        };
        let steps = Steps::new(self.file, self.changes).map_err(not_computed)?;
        let hash = hash(&encoded(&steps, self.added, true).map_err(not_computed)?);
        known(&hash).ok_or_else(|| {
            let (cause, suggestion) = self.cause(&steps);
            ErrorKind::UnknownPre { hash: hash.into(), cause, suggestion: suggestion.into() }.into()
        })
    }

    /// The name that the form of the pre-tokenizer suggests.
    fn shape(&self) -> &'static str {
        shape::name(self.file)
    }

    /// Why the hash may be unknown, and the name that fits.
    fn cause(&self, steps: &Steps<'_>) -> (&'static str, &'static str) {
        let special = self.added.only_special();
        let variants = [
            (&special, true, "tokens were added that occur in the text; without them the hash is known"),
            (
                self.added,
                false,
                "the template that puts tokens around the text was changed; without it the hash is known",
            ),
            (
                &special,
                false,
                "tokens were added that occur in the text, and the template was changed; without both the hash is known",
            ),
        ];
        let found = variants.into_iter().find_map(|(added, specials, cause)| {
            let ids = encoded(steps, added, specials).ok()?;
            Some((cause, self.known_with_begin(&ids)?))
        });
        found.unwrap_or((
            "the vocabulary was trained anew, or the model is newer than the table",
            self.shape(),
        ))
    }

    /// The name of these ids, alone or after the token that begins a text.
    fn known_with_begin(&self, ids: &[u32]) -> Option<&'static str> {
        let begins = self.file.vocabulary.id("<s>").into_iter().chain(
            ["<s>", "<|begin_of_text|>", "<|startoftext|>", "<bos>", "<｜begin▁of▁sentence｜>"]
                .into_iter()
                .filter_map(|token| self.added.id(token)),
        );
        let with = |begin: u32| known(&hash(&[&[begin], ids].concat()));
        known(&hash(ids)).or_else(|| begins.into_iter().find_map(with))
    }
}

/// The ids of the text.
fn encoded(steps: &Steps<'_>, added: &AddedTokens, specials: bool) -> Result<Vec<u32>, Halt> {
    let mut budget = Budget::default();
    steps.with(added, &mut budget)?.encode(CHECK_TEXT, specials, &mut budget)
}

/// SHA-256 of the ids in the form `[1, 22, 333]`, in hexadecimal digits.
pub(super) fn hash(ids: &[u32]) -> String {
    let digest = Sha256::digest(format!("{ids:?}"));
    let mut text = String::with_capacity(64);
    for byte in digest {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The name for a hash.
fn known(hash: &str) -> Option<&'static str> {
    KNOWN.lines().find_map(|line| line.strip_prefix(hash)?.strip_prefix('\t'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_that_of_the_reference() {
        assert_eq!(CHECK_TEXT.len(), 431);
        let digest = Sha256::digest(CHECK_TEXT);
        assert_eq!(digest[..8], [0xa3, 0x61, 0x79, 0xc1, 0xe2, 0xb1, 0xcf, 0xcf]);
    }

    #[test]
    fn the_table_has_95_hashes_of_names() {
        let rows: Vec<_> = KNOWN.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(rows.len(), 95);
        for row in rows {
            let (hash, name) = row.split_once('\t').unwrap();
            assert!(hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{row}");
            assert!(!name.is_empty() && !name.contains(char::is_whitespace), "{row}");
            assert_eq!(known(hash), Some(name));
        }
        assert_eq!(known("# Pre-tokenizers"), None);
        assert_eq!(hash(&[1, 22, 333]).len(), 64);
    }
}
