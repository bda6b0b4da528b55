//! Lower case in WebAssembly.
//!
//! The standard library has a pair of characters for each letter, 13 KB of a module that is fetched. Here neighbours that are as
//! far from their lower case share an entry. The answers are those of `str::to_lowercase`: a test compares every character.
//! The tables are made of what the standard library answers; where its version of Unicode changes,
//! `UPDATE_SNAPSHOTS=1 cargo test -p apr-models --lib lowercase` makes them anew.

use alloc::string::String;

#[rustfmt::skip]
mod tables;

/// The string in lower case.
pub(crate) fn lowercase(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, character) in text.char_indices() {
        match character {
            '\u{130}' => out.push_str("i\u{307}"),
            // The one letter that depends on its place: at the end of a word it has another form.
            'Σ' => {
                let before = text.get(..at).unwrap_or_default();
                let behind = text.get(at + 'Σ'.len_utf8()..).unwrap_or_default();
                let ends = reaches_letter(&mut before.chars().rev()) && !reaches_letter(&mut behind.chars());
                out.push(if ends { 'ς' } else { 'σ' });
            }
            _ => out.push(lower(character)),
        }
    }
    out
}

fn lower(character: char) -> char {
    if character.is_ascii() {
        return character.to_ascii_lowercase();
    }
    let code = u32::from(character);
    let idx = tables::LOWER.partition_point(|[first, _]| first >> 11 <= code);
    let entry = idx.checked_sub(1).and_then(|idx| tables::LOWER.get(idx));
    let Some([first, distance]) = entry else { return character };
    let (from_first, step) = (code - (first >> 11), (first & 1) + 1);
    let count = first >> 1 & 0x3FF;
    if from_first.is_multiple_of(step) && from_first / step < count {
        char::from_u32(code.wrapping_add(*distance)).unwrap_or(character)
    } else {
        character
    }
}

/// Whether the next character that is not passed over has case.
fn reaches_letter(characters: &mut dyn Iterator<Item = char>) -> bool {
    for character in characters {
        if !is_in(tables::IGNORABLE, character) {
            return is_in(tables::CASED, character);
        }
    }
    false
}

fn is_in(runs: &[u8], character: char) -> bool {
    let (code, mut at) = (u32::from(character), 0);
    let (mut number, mut shift, mut is_inside) = (0_u32, 0, false);
    for byte in runs {
        number |= u32::from(byte & 0x7F) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            at += number;
            if code < at {
                return is_inside;
            }
            (number, shift, is_inside) = (0, 0, !is_inside);
        }
    }
    false
}

#[cfg(test)]
mod tests;
