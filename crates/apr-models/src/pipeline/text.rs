//! Counts of known terms in strings.

mod payload;

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::mem;

use crate::checks;
use crate::error::Error;
use crate::kernels::terms::{Word, find_words, for_each_run, slice};
use crate::lowercase::lowercase;
use crate::pipeline::characters::{CharacterClass, is_space};
use crate::pipeline::fold::AccentFold;
use crate::sparse::SparseRows;
use crate::terms::{LetterCase, TermCount};
use crate::vocabulary::Vocabulary;

/// Maximum number of tokens, or characters, of a term.
const MAX_TOKENS: usize = 64;

/// The unit of terms: words or characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextTerms {
    /// Words, joined by spaces. A word is a maximal sequence of characters of one class.
    Words {
        /// The characters of words.
        class: CharacterClass,
        /// Minimum length of a word: at least 1.
        least: usize,
        /// If there is such a class, a run between two characters is a word only if neither is of it: what `\b` on both
        /// sides of a regular expression asks for.
        edges: Option<CharacterClass>,
    },
    /// Characters. Two and more white spaces are one space.
    Characters,
    /// Characters of one word at a time, with a space before and after it. Words are separated by white space.
    CharactersInWords,
}

/// Parameters of a [`TextInput`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextParts {
    /// Treatment of capital letters, the first step.
    pub case: LetterCase,
    /// Treatment of accents, the second step.
    pub accents: Option<AccentFold>,
    /// The unit of terms: words or characters.
    pub terms: TextTerms,
    /// Minimum words or characters of a term: at least 1.
    pub ngram_min: usize,
    /// Maximum words or characters of a term: at most 64.
    pub ngram_max: usize,
    /// Words that are removed before terms are formed; empty if terms are made of characters.
    pub stop_words: Vocabulary,
    /// The known terms.
    pub vocabulary: Vocabulary,
    /// The column of each term; `None` if they are in the order of the terms.
    pub columns: Option<Vec<u32>>,
    /// How repeated terms are counted.
    pub counts: TermCount,
}

/// Text input of a pipeline: the counts of known terms, `[n_samples, n_terms]`.
///
/// ```
/// use apr_models::{CharacterClass, LetterCase, TermCount, TextInput, TextParts, TextTerms, Vocabulary};
///
/// let class = CharacterClass::from_bounds(vec![0x61, 0x7B])?;
/// let input = TextInput::new(TextParts {
///     case: LetterCase::Lower,
///     accents: None,
///     terms: TextTerms::Words { class, least: 2, edges: None },
///     ngram_min: 1,
///     ngram_max: 2,
///     stop_words: Vocabulary::default(),
///     vocabulary: Vocabulary::from_texts(["to be", "be", "or"])?,
///     columns: None,
///     counts: TermCount::Every,
/// })?;
/// let rows = input.count(&["To be or not to be"]);
/// assert_eq!((rows.columns(), rows.values()), (&[0, 1, 2][..], &[2.0, 1.0, 2.0][..]));
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextInput {
    parts: TextParts,
}

/// Memory that is used again for each text.
#[derive(Debug, Default)]
pub(crate) struct Work {
    text: String,
    other: String,
    /// Where words begin and end, or each character begins and the last one ends.
    places: Vec<Word>,
    columns: Vec<u32>,
}

impl TextInput {
    /// Checks the parts.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`](crate::ErrorKind::PartInvalid) for lengths that are impossible, no terms, stop words
    /// where there are no words, columns that are not each column once;
    /// [`ErrorKind::PartLength`](crate::ErrorKind::PartLength).
    pub fn new(mut parts: TextParts) -> Result<Self, Error> {
        let (min, max) = (parts.ngram_min, parts.ngram_max);
        checks::expect(
            "length of terms",
            1 <= min && min <= max && max <= MAX_TOKENS,
            "must be at least 1 and at most 64, the least not above the most",
        )?;
        match &parts.terms {
            TextTerms::Words { least, .. } => {
                checks::expect("length of words", *least > 0, "must be at least 1")?;
            }
            TextTerms::Characters | TextTerms::CharactersInWords => {
                checks::expect(
                    "stop words",
                    parts.stop_words.is_empty(),
                    "must be none where there are no words",
                )?;
            }
        }
        checks::expect("vocabulary", !parts.vocabulary.is_empty(), "must have a term")?;
        if let Some(columns) = &parts.columns {
            checks::expect_len("columns of terms", parts.vocabulary.len(), columns.len())?;
            let mut seen = vec![false; columns.len()];
            let each_once = columns
                .iter()
                .all(|&column| seen.get_mut(column as usize).is_some_and(|seen| !mem::replace(seen, true)));
            checks::expect("columns of terms", each_once, "must be each column once")?;
            if columns.is_sorted() {
                parts.columns = None;
            }
        }
        Ok(Self { parts })
    }

    /// Columns of a row: known terms.
    #[must_use]
    pub const fn n_outputs(&self) -> usize {
        self.parts.vocabulary.len()
    }

    /// The known terms in the order of their columns.
    #[must_use]
    pub fn terms(&self) -> Vec<&str> {
        let mut terms: Vec<&str> = self.parts.vocabulary.iter().collect();
        if let Some(columns) = &self.parts.columns {
            for (&column, term) in columns.iter().zip(self.parts.vocabulary.iter()) {
                if let Some(place) = terms.get_mut(column as usize) {
                    *place = term;
                }
            }
        }
        terms
    }

    /// What it was made from.
    #[must_use]
    pub const fn parts(&self) -> &TextParts {
        &self.parts
    }

    /// Counts the terms of texts.
    #[must_use]
    pub fn count(&self, texts: &[&str]) -> SparseRows<f64> {
        let mut rows = SparseRows::new(self.n_outputs());
        self.count_into(texts, &mut Work::default(), &mut rows);
        rows
    }

    /// As [`count`](Self::count), as further rows of the same width.
    pub(crate) fn count_into(&self, texts: &[&str], work: &mut Work, rows: &mut SparseRows<f64>) {
        for text in texts {
            let mut found = mem::take(&mut work.columns);
            found.clear();
            self.for_each_term(text, work, |term| found.extend(self.column(term)));
            found.sort_unstable();
            for same in found.chunk_by(|a, b| a == b) {
                if let Some(&column) = same.first() {
                    let count = match self.parts.counts {
                        TermCount::Every => same.len() as f64,
                        TermCount::Once => 1.0,
                    };
                    rows.push(column, count);
                }
            }
            rows.end_row();
            work.columns = found;
        }
    }

    fn column(&self, term: &str) -> Option<u32> {
        let number = self.parts.vocabulary.find(term)?;
        match &self.parts.columns {
            Some(columns) => columns.get(number as usize).copied(),
            None => Some(number),
        }
    }

    /// Gives `each` every term of the text as often as it is there.
    fn for_each_term(&self, text: &str, work: &mut Work, mut each: impl FnMut(&str)) {
        let Work { text: plain, other, places, .. } = work;
        plain.clear();
        match (self.parts.case, &self.parts.accents) {
            (LetterCase::Keep, None) => plain.push_str(text),
            (LetterCase::Keep, Some(fold)) => fold.apply_to(text, plain),
            (LetterCase::Lower, None) => *plain = lowercase(text),
            (LetterCase::Lower, Some(fold)) => fold.apply_to(&lowercase(text), plain),
        }
        match &self.parts.terms {
            TextTerms::Words { class, least, edges } => {
                let is_edge = |c| edges.as_ref().is_some_and(|edges| edges.contains(c));
                find_words(plain, |c| class.contains(c), *least, is_edge, places);
                let stop_words = &self.parts.stop_words;
                places.retain(|&place| stop_words.find(slice(plain, place)).is_none());
                for_each_run(plain, places, self.parts.ngram_min..=self.parts.ngram_max, other, &mut each);
            }
            TextTerms::Characters => {
                other.clear();
                join_spaces(plain, other);
                characters(other, places);
                for n in self.parts.ngram_min..=self.parts.ngram_max {
                    places.windows(n).for_each(|run| each(slice(other, ends(run))));
                }
            }
            TextTerms::CharactersInWords => {
                for word in plain.split(is_space).filter(|word| !word.is_empty()) {
                    other.clear();
                    other.extend([" ", word, " "]);
                    characters(other, places);
                    for n in self.parts.ngram_min..=self.parts.ngram_max {
                        if places.len() <= n {
                            // A short word is its own term, once.
                            each(other);
                            break;
                        }
                        places.windows(n).for_each(|run| each(slice(other, ends(run))));
                    }
                }
            }
        }
    }
}

/// From where the first begins to where the last ends.
fn ends(run: &[Word]) -> Word {
    (run.first().map_or(0, |first| first.0), run.last().map_or(0, |last| last.1))
}

fn characters(text: &str, places: &mut Vec<Word>) {
    places.clear();
    places.extend(text.char_indices().map(|(start, character)| (start, start + character.len_utf8())));
}

/// Copies the text with one space for every run of two and more white spaces; a single one stays what it is.
fn join_spaces(text: &str, out: &mut String) {
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let mut is_run = false;
        if is_space(character) {
            while characters.next_if(|&next| is_space(next)).is_some() {
                is_run = true;
            }
        }
        out.push(if is_run { ' ' } else { character });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::fold::{HangulRule, OtherCharacters};

    const TEXTS: [&str; 6] = [
        "D\u{e9}j\u{e0} vu, d\u{e9}j\u{e0}-vu!",
        "a  bb\tccc \u{a0} d",
        "  ",
        "",
        "x\u{1c}y z\u{3000}\u{3000}w",
        "\u{3a3}\u{391}\u{3a3} \u{130}x \u{fb01}n \u{d55c}\u{ae00} don't_stop 42",
    ];

    /// The characters of [`TEXTS`] that `\w` stands for, in small letters too.
    fn word_characters() -> CharacterClass {
        let ranges = [
            0x30..0x3A,
            0x41..0x5B,
            0x5F..0x60,
            0x61..0x7B,
            0xE0..0xF7,
            0x130..0x131,
            0x391..0x3CA,
            0xAC00..0xD7A4,
            0xFB01..0xFB02,
        ];
        CharacterClass::from_bounds(ranges.into_iter().flat_map(|range| [range.start, range.end]).collect())
            .unwrap()
    }

    pub(super) fn parts(terms: TextTerms, (ngram_min, ngram_max): (usize, usize)) -> TextParts {
        TextParts {
            case: LetterCase::Lower,
            accents: None,
            terms,
            ngram_min,
            ngram_max,
            stop_words: Vocabulary::default(),
            vocabulary: Vocabulary::from_texts(["bb", "vu", "a"]).unwrap(),
            columns: None,
            counts: TermCount::Every,
        }
    }

    pub(super) fn words(least: usize) -> TextTerms {
        let class = word_characters();
        TextTerms::Words { edges: Some(class.clone()), class, least }
    }

    fn terms(parts: &TextParts, text: &str) -> Vec<String> {
        let input = TextInput::new(parts.clone()).unwrap();
        let mut found = Vec::new();
        input.for_each_term(text, &mut Work::default(), |term| found.push(String::from(term)));
        found.sort_unstable();
        found
    }

    /// Expected here and below: `CountVectorizer(...).build_analyzer()` of scikit-learn 1.9.1, sorted.
    #[test]
    fn words_are_those_of_scikit_learn() {
        let default = parts(words(2), (1, 1));
        let expected: [&[&str]; 6] = [
            &["d\u{e9}j\u{e0}", "d\u{e9}j\u{e0}", "vu", "vu"],
            &["bb", "ccc"],
            &[],
            &[],
            &[],
            &["42", "don", "t_stop", "\u{3c3}\u{3b1}\u{3c2}", "\u{d55c}\u{ae00}", "\u{fb01}n"],
        ];
        for (text, expected) in TEXTS.iter().zip(expected) {
            assert_eq!(terms(&default, text), expected, "{text:?}");
        }
        // `token_pattern=r"\w+", ngram_range=(1, 2), stop_words=["bb"], lowercase=False`.
        let TextTerms::Words { class, .. } = words(1) else { return };
        let pairs = TextParts {
            case: LetterCase::Keep,
            stop_words: Vocabulary::from_texts(["bb"]).unwrap(),
            ..parts(TextTerms::Words { class, least: 1, edges: None }, (1, 2))
        };
        assert_eq!(terms(&pairs, TEXTS[1]), ["a", "a ccc", "ccc", "ccc d", "d"]);
        assert_eq!(terms(&pairs, TEXTS[4]), ["w", "x", "x y", "y", "y z", "z", "z w"]);
        let first = [
            "D\u{e9}j\u{e0}",
            "D\u{e9}j\u{e0} vu",
            "d\u{e9}j\u{e0}",
            "d\u{e9}j\u{e0} vu",
            "vu",
            "vu",
            "vu d\u{e9}j\u{e0}",
        ];
        assert_eq!(terms(&pairs, TEXTS[0]), first);
    }

    #[test]
    fn edges_ask_what_stands_beside_a_word() {
        // `token_pattern=r"\b[a-z]+\b"`.
        let class = CharacterClass::from_bounds(vec![0x61, 0x7B]).unwrap();
        let letters = TextTerms::Words { class, least: 1, edges: Some(word_characters()) };
        let expected: [&[&str]; 6] =
            [&["vu", "vu"], &["a", "bb", "ccc", "d"], &[], &[], &["w", "x", "y", "z"], &["don", "i", "x"]];
        for (text, expected) in TEXTS.iter().zip(expected) {
            assert_eq!(terms(&parts(letters.clone(), (1, 1)), text), expected, "{text:?}");
        }
    }

    #[test]
    fn characters_are_those_of_scikit_learn() {
        let within = parts(TextTerms::Characters, (2, 3));
        let expected: [&[&str]; 4] = [
            &[
                "\tc", "\tcc", " b", " bb", " d", "a ", "a b", "b\t", "b\tc", "bb", "bb\t", "c ", "c d",
                "cc", "cc", "cc ", "ccc",
            ],
            &[],
            &[],
            &["\u{1c}y", "\u{1c}y ", " w", " z", " z ", "x\u{1c}", "x\u{1c}y", "y ", "y z", "z ", "z w"],
        ];
        for (text, expected) in TEXTS[1..].iter().zip(expected) {
            assert_eq!(terms(&within, text), expected, "{text:?}");
        }
    }

    #[test]
    fn short_words_are_terms_of_their_own() {
        let words = parts(TextTerms::CharactersInWords, (4, 5));
        assert_eq!(terms(&words, TEXTS[1]), [" a ", " bb ", " ccc", " ccc ", " d ", "ccc "]);
        assert_eq!(terms(&words, TEXTS[4]), [" w ", " x ", " y ", " z "]);
        let first = [
            " d\u{e9}j",
            " d\u{e9}j",
            " d\u{e9}j\u{e0}",
            " d\u{e9}j\u{e0}",
            " vu,",
            " vu, ",
            "-vu!",
            "-vu! ",
            "d\u{e9}j\u{e0}",
            "d\u{e9}j\u{e0}",
            "d\u{e9}j\u{e0} ",
            "d\u{e9}j\u{e0}-",
            "j\u{e0}-v",
            "j\u{e0}-vu",
            "vu! ",
            "vu, ",
            "\u{e0}-vu",
            "\u{e0}-vu!",
            "\u{e9}j\u{e0} ",
            "\u{e9}j\u{e0}-",
            "\u{e9}j\u{e0}-v",
        ];
        assert_eq!(terms(&words, TEXTS[0]), first);
        let all = parts(TextTerms::CharactersInWords, (1, 4));
        let expected = [
            " ", " ", " ", " ", " ", " ", " ", " ", " w", " w ", " x", " x ", " y", " y ", " z", " z ", "w",
            "w ", "x", "x ", "y", "y ", "z", "z ",
        ];
        assert_eq!(terms(&all, TEXTS[4]), expected);
        assert!(terms(&all, "  ").is_empty() && terms(&all, "").is_empty());
    }

    #[test]
    fn accents_go_after_capital_letters() {
        let fold =
            AccentFold::new([('\u{e9}', "e")], HangulRule::Letters, OtherCharacters::DropNonAscii).unwrap();
        let folded = TextParts { accents: Some(fold), ..parts(words(2), (1, 1)) };
        assert_eq!(terms(&folded, "D\u{c9}J\u{c0} vu"), ["dej", "vu"]);
    }

    #[test]
    fn terms_have_their_columns() {
        // In the order of their bytes: a, bb, vu.
        let input = TextInput::new(parts(words(1), (1, 1))).unwrap();
        let rows = input.count(&["vu a vu", "", "bb x"]);
        assert_eq!(rows.lists(0), (&[0, 2][..], &[1.0, 2.0][..]));
        assert_eq!(rows.lists(1), (&[][..], &[][..]));
        assert_eq!(rows.lists(2), (&[1][..], &[1.0][..]));
        let columns = Some(vec![2, 0, 1]);
        let once = TextParts { columns, counts: TermCount::Once, ..parts(words(1), (1, 1)) };
        let rows = TextInput::new(once).unwrap().count(&["vu a vu"]);
        assert_eq!(rows.lists(0), (&[1, 2][..], &[1.0, 1.0][..]));
        let ordered = TextParts { columns: Some(vec![0, 1, 2]), ..parts(words(1), (1, 1)) };
        assert_eq!(TextInput::new(ordered).unwrap(), input);
    }

    #[test]
    fn impossible_parts_are_refused() {
        let good = || parts(words(2), (1, 1));
        let cases = [
            parts(words(0), (1, 1)),
            parts(words(1), (0, 1)),
            parts(words(1), (2, 1)),
            parts(words(1), (1, 65)),
            TextParts { vocabulary: Vocabulary::default(), ..good() },
            TextParts { columns: Some(vec![0, 1]), ..good() },
            TextParts { columns: Some(vec![0, 1, 1]), ..good() },
            TextParts { columns: Some(vec![0, 1, 3]), ..good() },
            TextParts { terms: TextTerms::Characters, stop_words: good().vocabulary, ..good() },
        ];
        for (number, parts) in cases.into_iter().enumerate() {
            assert!(TextInput::new(parts).is_err(), "{number}");
        }
    }
}
