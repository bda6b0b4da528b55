use alloc::format;
use alloc::vec::Vec;
use core::fmt::Write as _;
use std::{env, fs, path::Path};

use super::*;

const TABLES: &str = include_str!("tables.rs");

fn all() -> impl Iterator<Item = char> {
    (0..=0x10_FFFF).filter_map(char::from_u32)
}

#[test]
fn every_character_has_the_lower_case_of_the_standard_library() {
    for character in all() {
        let text = String::from(character);
        assert_eq!(lowercase(&text), text.to_lowercase(), "{character:?}");
    }
}

/// Each character between a sigma and what makes it the last letter of a word, or not; planes without letters and marks take
/// long and say nothing.
#[test]
fn a_sigma_ends_a_word_where_the_standard_library_says_so() {
    for character in (0..0x2_0000).chain(0xE_0000..0xE_1000).filter_map(char::from_u32) {
        for text in [
            format!("{character}Σ"),
            format!("a{character}Σ"),
            format!("aΣ{character}"),
            format!("aΣ{character}a"),
        ] {
            assert_eq!(lowercase(&text), text.to_lowercase(), "{text:?}");
        }
    }
}

#[test]
fn the_tables_are_those_of_the_standard_library() {
    let made = tables_of_the_standard_library();
    if env::var_os("UPDATE_SNAPSHOTS").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lowercase/packed/tables.rs");
        fs::write(path, made).expect("the sources can be written");
    } else {
        assert!(made == TABLES, "run the test with UPDATE_SNAPSHOTS=1");
    }
}

/// Sources of the tables.
fn tables_of_the_standard_library() -> String {
    let mut out = String::from(
        "//! Made by a test of `packed`.\n\n\
         /// Characters that share the distance to their lower case: the first one, times 2048; how many, times 2; 1 if only every other\n\
         /// character is one. Then the distance, as a 32-bit integer.\n\
         pub(super) const LOWER: &[[u32; 2]] = &[\n",
    );
    for [first, distance] in distances() {
        writeln!(out, "    [{first:#x}, {distance:#x}],").expect("a text takes all");
    }
    let is_cased = |character: char| ends_word(&[character]);
    let is_ignorable = |character: char| !is_cased(character) && ends_word(&['a', character]);
    let (cased, ignorable) = (runs(&is_cased), runs(&is_ignorable));
    out.push_str(
        "];\n\n\
         /// Runs of characters that have case and are not passed over: how many others come before each, and its length, seven bits a\n\
         /// byte, the lowest first, the eighth for more to come.\n",
    );
    push_bytes(&mut out, "CASED", &cased);
    out.push_str(
        "\n\
         /// Runs of characters that are passed over when the letters of a word are looked for: marks, apostrophes and the like.\n",
    );
    push_bytes(&mut out, "IGNORABLE", &ignorable);
    out
}

/// Entries of `LOWER`, the shortest by taking each run as far as it goes.
fn distances() -> Vec<[u32; 2]> {
    let distance = |code: u32| {
        let character = char::from_u32(code).filter(|character| !character.is_ascii())?;
        let mut lower = character.to_lowercase();
        let distance = u32::from(lower.next()?).wrapping_sub(code);
        (distance != 0 && lower.next().is_none()).then_some(distance)
    };
    let (mut entries, mut code) = (Vec::new(), 0);
    while code <= u32::from(char::MAX) {
        let Some(first) = distance(code) else {
            code += 1;
            continue;
        };
        let reach =
            |step: u32| (0..1023).take_while(|idx| distance(code + idx * step) == Some(first)).count() as u32;
        let (together, every_other) = (reach(1), reach(2));
        let (count, step) = if together > 1 || every_other == 1 { (together, 1) } else { (every_other, 2) };
        entries.push([code << 11 | count << 1 | (step - 1), first]);
        code += (count - 1) * step + 1;
    }
    entries
}

/// Whether a sigma after these characters is the last letter of a word.
fn ends_word(before: &[char]) -> bool {
    before.iter().chain(&['Σ']).collect::<String>().to_lowercase().ends_with('ς')
}

/// Lengths of the runs of characters without and with the property in turn.
fn runs(has: &dyn Fn(char) -> bool) -> Vec<u8> {
    let (mut bytes, mut len, mut is_inside) = (Vec::new(), 0_u32, false);
    for code in 0..=u32::from(char::MAX) {
        if char::from_u32(code).is_some_and(has) != is_inside {
            while len > 0x7F {
                bytes.push(len as u8 & 0x7F | 0x80);
                len >>= 7;
            }
            bytes.push(len as u8);
            (len, is_inside) = (0, !is_inside);
        }
        len += 1;
    }
    bytes
}

fn push_bytes(out: &mut String, name: &str, bytes: &[u8]) {
    writeln!(out, "pub(super) const {name}: &[u8] = &[").expect("a text takes all");
    for line in bytes.chunks(24) {
        let numbers: Vec<String> = line.iter().map(|byte| format!("{byte}")).collect();
        writeln!(out, "    {},", numbers.join(", ")).expect("a text takes all");
    }
    out.push_str("];\n");
}
