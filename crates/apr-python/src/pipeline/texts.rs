//! The input of plans that read texts.

use apr_models::{
    AccentFold, CharacterClass, HangulRule, Input, LetterCase, OtherCharacters, TermCount, TextInput,
    TextParts, TextTerms, Vocabulary,
};
use pyo3::prelude::*;

use super::part::Part;
use crate::apr_files::Refusal;

/// Reads the parts of the input.
pub(crate) fn read(part: &Part<'_>) -> PyResult<Input> {
    let py = part.py();
    let raise =
        |part: &Part<'_>, error: apr_models::Error| Refusal::of_part(part.place(), error).raise(py, None);
    let class =
        |part: &Part<'_>| CharacterClass::from_bounds(part.list()?).map_err(|error| raise(part, error));
    let vocabulary = |name: &str| {
        let part = part.field(name)?;
        Vocabulary::from_sorted(part.texts()?).map_err(|error| raise(&part, error))
    };
    let terms = part.field("terms")?;
    let terms = match terms.kind()?.as_str() {
        "words" => TextTerms::Words {
            class: class(&terms.field("class")?)?,
            least: terms.field("least")?.count()?,
            edges: terms.optional("edges")?.map(|edges| class(&edges)).transpose()?,
        },
        "characters" => TextTerms::Characters,
        "characters_within_words" => TextTerms::CharactersInWords,
        _ => return Err(terms.unknown()),
    };
    let accents = part.optional("accents")?;
    let parts = TextParts {
        case: if part.field("lowercase")?.flag()? { LetterCase::Lower } else { LetterCase::Keep },
        accents: accents.map(|fold| accent_fold(&fold)?.map_err(|error| raise(&fold, error))).transpose()?,
        terms,
        ngram_min: part.field("ngram_min")?.count()?,
        ngram_max: part.field("ngram_max")?.count()?,
        stop_words: vocabulary("stop_words")?,
        vocabulary: vocabulary("vocabulary")?,
        columns: part.optional("columns")?.map(|columns| columns.list()).transpose()?,
        counts: if part.field("binary")?.flag()? { TermCount::Once } else { TermCount::Every },
    };
    let input = TextInput::new(parts).map_err(|error| raise(part, error))?;
    Ok(Input::Texts(input.into()))
}

fn accent_fold(part: &Part<'_>) -> PyResult<Result<AccentFold, apr_models::Error>> {
    let (from, to) = (part.field("from")?, part.field("to")?.texts()?);
    let characters: Option<Vec<char>> = from.list()?.into_iter().map(char::from_u32).collect();
    let Some(characters) = characters else { return Err(from.invalid("has numbers of no character")) };
    from.expect_rows(to.len(), &[characters.len()])?;
    let hangul = if part.field("hangul")?.flag()? { HangulRule::Letters } else { HangulRule::Whole };
    let words = [("stay", OtherCharacters::Stay), ("dropped", OtherCharacters::DropNonAscii)];
    let others = part.field("others")?.one_of(&words)?;
    Ok(AccentFold::new(characters.into_iter().zip(to), hangul, others))
}
