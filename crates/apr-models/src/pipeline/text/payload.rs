//! Processing of strings, in payloads (`docs/payloads.md`, section 21).

use apr_container::{PayloadReader, PayloadWriter};

use super::{TextInput, TextParts, TextTerms};
use crate::payload::values::{read_option, write_option};
use crate::pipeline::characters::CharacterClass;
use crate::pipeline::fold::AccentFold;
use crate::terms::{LetterCase, TermCount};
use crate::vocabulary::Vocabulary;

impl TextInput {
    pub(crate) fn encode(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        let parts = &self.parts;
        out.bool(parts.case == LetterCase::Lower)?;
        write_option(out, parts.accents.as_ref(), |out, fold| fold.encode(out))?;
        match &parts.terms {
            TextTerms::Words { class, least, edges } => {
                out.variant(0)?;
                class.encode(out)?;
                out.usize(*least)?;
                write_option(out, edges.as_ref(), |out, class| class.encode(out))?;
            }
            TextTerms::Characters => out.variant(1)?,
            TextTerms::CharactersInWords => out.variant(2)?,
        }
        out.usize(parts.ngram_min)?;
        out.usize(parts.ngram_max)?;
        parts.stop_words.encode(out)?;
        parts.vocabulary.encode(out)?;
        write_option(out, parts.columns.as_deref(), PayloadWriter::u32s)?;
        out.bool(parts.counts == TermCount::Once)
    }

    pub(crate) fn decode(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let case = if input.bool()? { LetterCase::Lower } else { LetterCase::Keep };
        let accents = read_option(input, AccentFold::decode)?;
        let terms = match input.variant(3)? {
            0 => TextTerms::Words {
                class: CharacterClass::decode(input)?,
                least: input.usize()?,
                edges: read_option(input, CharacterClass::decode)?,
            },
            1 => TextTerms::Characters,
            _ => TextTerms::CharactersInWords,
        };
        let (ngram_min, ngram_max) = (input.usize()?, input.usize()?);
        let (stop_words, vocabulary) = (Vocabulary::decode(input)?, Vocabulary::decode(input)?);
        let columns = read_option(input, PayloadReader::u32s)?;
        let counts = if input.bool()? { TermCount::Once } else { TermCount::Every };
        let has_columns = columns.is_some();
        let parts =
            TextParts { case, accents, terms, ngram_min, ngram_max, stop_words, vocabulary, columns, counts };
        let read = Self::new(parts)?;
        match has_columns == read.parts.columns.is_some() {
            true => Ok(read),
            false => Err(input.invalid("columns that are in the order of the terms")),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::super::tests::{parts, words};
    use super::*;
    use crate::pipeline::alone::{bytes_of, survives_damage};
    use crate::pipeline::fold::{HangulRule, OtherCharacters};

    const TEXTS: [&str; 3] = ["D\u{e9}j\u{e0} vu, the vu", "  ", "x\u{1c}y z\u{3000}\u{3000}w"];

    #[test]
    fn payloads_are_read_as_they_were_written_and_damage_never_panics() {
        let fold =
            AccentFold::new([('\u{e9}', "e"), ('\u{301}', "")], HangulRule::Letters, OtherCharacters::Stay);
        let inputs = [
            TextParts {
                accents: Some(fold.unwrap()),
                stop_words: Vocabulary::from_texts(["the"]).unwrap(),
                columns: Some(vec![1, 2, 0]),
                ..parts(words(2), (1, 3))
            },
            parts(TextTerms::Characters, (2, 2)),
            TextParts { counts: TermCount::Once, ..parts(TextTerms::CharactersInWords, (1, 64)) },
        ];
        for parts in inputs {
            survives_damage(&TextInput::new(parts).unwrap(), |input, damaged| {
                assert_eq!(bytes_of(&input), damaged);
                assert_eq!(input.count(&TEXTS).n_rows(), TEXTS.len());
            });
        }
    }
}
