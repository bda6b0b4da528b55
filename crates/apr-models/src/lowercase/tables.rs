//! Lower case in WebAssembly.
//!
//! The standard library has a pair of characters for each letter, 13 KB of a module that is fetched. Here neighbours that are as
//! far from their lower case share an entry. The answers are those of `str::to_lowercase`; a test compares every character, and
//! the tables with the standard library's version of Unicode.

use alloc::string::String;

/// Characters that share the distance to their lower case: the first one, times 2048; how many, times 2; 1 if only every other
/// character is one. Then the distance, as a 32-bit integer.
const LOWER: &[[u32; 2]] = &[
    [0x6002e, 0x20],
    [0x6c00e, 0x20],
    [0x80031, 0x1],
    [0x99007, 0x1],
    [0x9c811, 0x1],
    [0xa502f, 0x1],
    [0xbc002, 0xffffff87],
    [0xbc807, 0x1],
    [0xc0802, 0xd2],
    [0xc1005, 0x1],
    [0xc3002, 0xce],
    [0xc3802, 0x1],
    [0xc4804, 0xcd],
    [0xc5802, 0x1],
    [0xc7002, 0x4f],
    [0xc7802, 0xca],
    [0xc8002, 0xcb],
    [0xc8802, 0x1],
    [0xc9802, 0xcd],
    [0xca002, 0xcf],
    [0xcb002, 0xd3],
    [0xcb802, 0xd1],
    [0xcc002, 0x1],
    [0xce002, 0xd3],
    [0xce802, 0xd5],
    [0xcf802, 0xd6],
    [0xd0007, 0x1],
    [0xd3002, 0xda],
    [0xd3802, 0x1],
    [0xd4802, 0xda],
    [0xd6002, 0x1],
    [0xd7002, 0xda],
    [0xd7802, 0x1],
    [0xd8804, 0xd9],
    [0xd9805, 0x1],
    [0xdb802, 0xdb],
    [0xdc002, 0x1],
    [0xde002, 0x1],
    [0xe2002, 0x2],
    [0xe2802, 0x1],
    [0xe3802, 0x2],
    [0xe4002, 0x1],
    [0xe5002, 0x2],
    [0xe5813, 0x1],
    [0xef013, 0x1],
    [0xf8802, 0x2],
    [0xf9005, 0x1],
    [0xfb002, 0xffffff9f],
    [0xfb802, 0xffffffc8],
    [0xfc029, 0x1],
    [0x110002, 0xffffff7e],
    [0x111013, 0x1],
    [0x11d002, 0x2a2b],
    [0x11d802, 0x1],
    [0x11e802, 0xffffff5d],
    [0x11f002, 0x2a28],
    [0x120802, 0x1],
    [0x121802, 0xffffff3d],
    [0x122002, 0x45],
    [0x122802, 0x47],
    [0x12300b, 0x1],
    [0x1b8005, 0x1],
    [0x1bb002, 0x1],
    [0x1bf802, 0x74],
    [0x1c3002, 0x26],
    [0x1c4006, 0x25],
    [0x1c6002, 0x40],
    [0x1c7004, 0x3f],
    [0x1c8822, 0x20],
    [0x1d1812, 0x20],
    [0x1e7802, 0x8],
    [0x1ec019, 0x1],
    [0x1fa002, 0xffffffc4],
    [0x1fb802, 0x1],
    [0x1fc802, 0xfffffff9],
    [0x1fd002, 0x1],
    [0x1fe806, 0xffffff7e],
    [0x200020, 0x50],
    [0x208040, 0x20],
    [0x230023, 0x1],
    [0x245037, 0x1],
    [0x260002, 0xf],
    [0x26080f, 0x1],
    [0x268061, 0x1],
    [0x29884c, 0x30],
    [0x85004c, 0x1c60],
    [0x863802, 0x1c60],
    [0x866802, 0x1c60],
    [0x9d00a0, 0x97d0],
    [0x9f800c, 0x8],
    [0xe44802, 0x1],
    [0xe48056, 0xfffff440],
    [0xe5e806, 0xfffff440],
    [0xf00097, 0x1],
    [0xf4f002, 0xffffe241],
    [0xf50061, 0x1],
    [0xf84010, 0xfffffff8],
    [0xf8c00c, 0xfffffff8],
    [0xf94010, 0xfffffff8],
    [0xf9c010, 0xfffffff8],
    [0xfa400c, 0xfffffff8],
    [0xfac809, 0xfffffff8],
    [0xfb4010, 0xfffffff8],
    [0xfc4010, 0xfffffff8],
    [0xfcc010, 0xfffffff8],
    [0xfd4010, 0xfffffff8],
    [0xfdc004, 0xfffffff8],
    [0xfdd004, 0xffffffb6],
    [0xfde002, 0xfffffff7],
    [0xfe4008, 0xffffffaa],
    [0xfe6002, 0xfffffff7],
    [0xfec004, 0xfffffff8],
    [0xfed004, 0xffffff9c],
    [0xff4004, 0xfffffff8],
    [0xff5004, 0xffffff90],
    [0xff6002, 0xfffffff9],
    [0xffc004, 0xffffff80],
    [0xffd004, 0xffffff82],
    [0xffe002, 0xfffffff7],
    [0x1093002, 0xffffe2a3],
    [0x1095002, 0xffffdf41],
    [0x1095802, 0xffffdfba],
    [0x1099002, 0x1c],
    [0x10b0020, 0x10],
    [0x10c1802, 0x1],
    [0x125b034, 0x1a],
    [0x1600060, 0x30],
    [0x1630002, 0x1],
    [0x1631002, 0xffffd609],
    [0x1631802, 0xfffff11a],
    [0x1632002, 0xffffd619],
    [0x1633807, 0x1],
    [0x1636802, 0xffffd5e4],
    [0x1637002, 0xffffd603],
    [0x1637802, 0xffffd5e1],
    [0x1638002, 0xffffd5e2],
    [0x1639002, 0x1],
    [0x163a802, 0x1],
    [0x163f004, 0xffffd5c1],
    [0x1640065, 0x1],
    [0x1675805, 0x1],
    [0x1679002, 0x1],
    [0x532002f, 0x1],
    [0x534001d, 0x1],
    [0x539100f, 0x1],
    [0x539903f, 0x1],
    [0x53bc805, 0x1],
    [0x53be802, 0xffff75fc],
    [0x53bf00b, 0x1],
    [0x53c5802, 0x1],
    [0x53c6802, 0xffff5ad8],
    [0x53c8005, 0x1],
    [0x53cb015, 0x1],
    [0x53d5002, 0xffff5abc],
    [0x53d5802, 0xffff5ab1],
    [0x53d6002, 0xffff5ab5],
    [0x53d6802, 0xffff5abf],
    [0x53d7002, 0xffff5abc],
    [0x53d8002, 0xffff5aee],
    [0x53d8802, 0xffff5ad6],
    [0x53d9002, 0xffff5aeb],
    [0x53d9802, 0x3a0],
    [0x53da011, 0x1],
    [0x53e2002, 0xffffffd0],
    [0x53e2802, 0xffff5abd],
    [0x53e3002, 0xffff75c8],
    [0x53e3805, 0x1],
    [0x53e5802, 0xffff5a99],
    [0x53e6011, 0x1],
    [0x53ee002, 0xffff59bf],
    [0x53fa802, 0x1],
    [0x7f90834, 0x20],
    [0x8200050, 0x28],
    [0x8258048, 0x28],
    [0x82b8016, 0x27],
    [0x82be01e, 0x27],
    [0x82c600e, 0x27],
    [0x82ca004, 0x27],
    [0x8640066, 0x40],
    [0x86a802c, 0x20],
    [0x8c50040, 0x20],
    [0xb720040, 0x20],
    [0xb750032, 0x1b],
    [0xf480044, 0x22],
];

/// Runs of characters that have case and are not passed over: how many others come before each, and its length, seven bits a
/// byte, the lowest first, the eighth for more to come.
const CASED: &[u8] = &[
    65, 26, 6, 26, 47, 1, 10, 1, 4, 1, 5, 23, 1, 31, 1, 195, 1, 1, 4, 4, 208, 1, 2, 26, 192, 1, 4, 2, 2, 3,
    3, 1, 1, 6, 1, 1, 3, 1, 1, 1, 20, 1, 83, 1, 139, 1, 8, 166, 1, 1, 38, 9, 41, 151, 22, 38, 1, 1, 5, 1, 2,
    43, 2, 3, 160, 5, 86, 2, 6, 130, 17, 11, 5, 43, 2, 3, 64, 44, 63, 13, 1, 34, 101, 150, 2, 2, 6, 2, 38, 2,
    6, 2, 8, 1, 1, 1, 1, 1, 1, 1, 31, 2, 53, 1, 7, 1, 1, 3, 3, 1, 7, 3, 4, 2, 6, 4, 13, 5, 3, 1, 7, 133, 2,
    1, 4, 1, 2, 10, 1, 1, 3, 5, 6, 1, 1, 1, 1, 1, 1, 4, 1, 6, 4, 1, 2, 4, 5, 5, 4, 1, 17, 32, 3, 2, 177, 6,
    52, 150, 14, 124, 2, 103, 6, 4, 3, 2, 12, 38, 1, 1, 5, 1, 146, 242, 1, 46, 18, 28, 134, 1, 78, 1, 23, 3,
    4, 1, 77, 24, 2, 3, 1, 181, 6, 43, 5, 9, 7, 80, 192, 158, 1, 7, 12, 5, 137, 8, 26, 6, 26, 165, 9, 80, 96,
    36, 4, 36, 116, 11, 1, 15, 1, 7, 1, 2, 1, 11, 1, 15, 1, 7, 1, 2, 195, 13, 51, 13, 51, 93, 22, 10, 22,
    154, 22, 64, 224, 170, 1, 64, 32, 25, 2, 25, 172, 202, 1, 85, 1, 71, 1, 2, 2, 1, 2, 2, 2, 4, 1, 12, 1, 1,
    1, 7, 1, 65, 1, 4, 2, 8, 1, 7, 1, 28, 1, 4, 1, 5, 1, 1, 3, 7, 1, 212, 2, 2, 25, 1, 25, 1, 31, 1, 25, 1,
    31, 1, 25, 1, 31, 1, 25, 1, 31, 1, 25, 1, 8, 180, 14, 10, 1, 20, 6, 6, 213, 19, 68, 236, 15, 26, 6, 26,
    6, 26,
];

/// Runs of characters that are passed over when the letters of a word are looked for: marks, apostrophes and the like.
const IGNORABLE: &[u8] = &[
    39, 1, 6, 1, 11, 1, 35, 1, 1, 1, 71, 1, 4, 1, 1, 1, 4, 1, 2, 2, 247, 3, 192, 1, 4, 2, 4, 1, 9, 2, 1, 1,
    251, 1, 7, 207, 1, 1, 5, 1, 49, 45, 1, 1, 1, 2, 1, 2, 1, 1, 44, 1, 11, 6, 10, 11, 1, 1, 35, 1, 10, 21,
    16, 1, 101, 8, 1, 10, 1, 4, 33, 1, 1, 1, 30, 27, 91, 11, 58, 11, 4, 1, 2, 1, 24, 24, 43, 3, 44, 1, 7, 2,
    5, 9, 41, 58, 55, 1, 1, 1, 4, 8, 4, 1, 3, 7, 10, 2, 13, 1, 15, 1, 58, 1, 4, 4, 8, 1, 20, 2, 26, 1, 2, 2,
    57, 1, 4, 2, 4, 2, 2, 3, 3, 1, 30, 2, 3, 1, 11, 2, 57, 1, 4, 5, 1, 2, 4, 1, 20, 2, 22, 6, 1, 1, 58, 1, 2,
    1, 1, 4, 8, 1, 7, 2, 11, 2, 30, 1, 61, 1, 12, 1, 50, 1, 3, 1, 55, 1, 1, 3, 5, 3, 1, 4, 7, 2, 11, 2, 29,
    1, 58, 1, 2, 1, 6, 1, 5, 2, 20, 2, 28, 2, 57, 2, 4, 4, 8, 1, 20, 2, 29, 1, 72, 1, 7, 3, 1, 1, 90, 1, 2,
    7, 11, 9, 98, 1, 2, 9, 9, 1, 1, 7, 73, 2, 27, 1, 1, 1, 1, 1, 55, 14, 1, 5, 1, 2, 5, 11, 1, 36, 9, 1, 102,
    4, 1, 6, 1, 2, 2, 2, 25, 2, 4, 3, 16, 4, 13, 1, 2, 2, 6, 1, 15, 1, 94, 1, 224, 4, 3, 178, 7, 3, 29, 2,
    30, 2, 30, 2, 64, 2, 1, 7, 8, 1, 2, 11, 3, 1, 5, 1, 45, 5, 51, 1, 65, 2, 34, 1, 118, 3, 4, 2, 9, 1, 6, 3,
    219, 1, 2, 2, 1, 58, 1, 1, 7, 1, 1, 1, 1, 2, 8, 6, 10, 2, 1, 39, 1, 8, 46, 2, 12, 20, 4, 48, 1, 1, 5, 1,
    1, 5, 1, 40, 9, 12, 2, 32, 4, 2, 2, 1, 3, 56, 1, 1, 2, 3, 1, 1, 3, 58, 8, 2, 2, 64, 6, 82, 3, 1, 13, 1,
    7, 4, 1, 6, 1, 3, 2, 50, 63, 13, 1, 34, 101, 189, 3, 1, 1, 3, 11, 3, 13, 3, 13, 3, 13, 2, 12, 5, 8, 2,
    10, 1, 2, 1, 2, 5, 49, 5, 1, 10, 1, 1, 13, 1, 16, 13, 51, 33, 139, 23, 2, 113, 3, 125, 1, 15, 1, 96, 32,
    47, 1, 213, 3, 1, 36, 4, 3, 5, 5, 1, 93, 6, 93, 3, 150, 222, 1, 1, 226, 9, 6, 142, 2, 1, 98, 4, 1, 10, 1,
    1, 28, 4, 80, 2, 14, 34, 78, 1, 23, 3, 102, 4, 3, 2, 8, 1, 3, 1, 4, 1, 25, 2, 5, 1, 151, 1, 2, 26, 18,
    13, 1, 38, 8, 25, 11, 46, 3, 48, 1, 2, 4, 2, 2, 17, 1, 21, 2, 66, 6, 2, 2, 2, 2, 12, 1, 8, 1, 35, 1, 11,
    1, 51, 1, 1, 3, 2, 2, 5, 2, 1, 1, 27, 1, 14, 2, 5, 2, 1, 1, 100, 5, 9, 3, 121, 1, 2, 1, 4, 1, 176, 158,
    1, 1, 147, 1, 17, 189, 4, 16, 3, 1, 12, 16, 34, 1, 2, 1, 169, 1, 1, 7, 1, 6, 1, 11, 1, 35, 1, 1, 1, 47,
    1, 45, 2, 67, 1, 21, 3, 129, 4, 1, 226, 1, 1, 149, 1, 5, 133, 8, 6, 1, 42, 1, 9, 198, 4, 3, 1, 2, 5, 4,
    40, 3, 4, 1, 165, 1, 2, 189, 4, 4, 38, 1, 26, 5, 1, 1, 187, 2, 2, 24, 1, 52, 6, 70, 11, 49, 4, 123, 1,
    54, 15, 41, 1, 2, 2, 10, 3, 49, 4, 2, 2, 2, 1, 4, 1, 10, 1, 50, 3, 36, 5, 1, 8, 62, 1, 12, 2, 52, 9, 10,
    4, 2, 1, 95, 3, 2, 1, 1, 2, 6, 1, 2, 1, 157, 1, 1, 3, 8, 21, 2, 57, 2, 3, 1, 37, 7, 3, 5, 70, 6, 13, 1,
    1, 1, 1, 1, 14, 2, 85, 8, 2, 3, 1, 1, 23, 1, 84, 6, 1, 1, 4, 2, 1, 2, 238, 1, 4, 6, 2, 1, 2, 27, 2, 85,
    8, 2, 1, 1, 2, 106, 1, 1, 1, 2, 6, 1, 1, 101, 1, 1, 1, 2, 4, 1, 5, 131, 2, 9, 1, 2, 128, 2, 2, 1, 1, 4,
    1, 144, 1, 4, 2, 2, 4, 1, 32, 10, 40, 6, 2, 4, 8, 1, 9, 6, 2, 3, 46, 13, 1, 2, 198, 1, 1, 1, 3, 1, 1,
    201, 1, 7, 1, 6, 1, 1, 82, 22, 2, 7, 1, 2, 1, 2, 122, 6, 3, 1, 1, 2, 1, 7, 1, 1, 72, 2, 3, 1, 1, 1, 65,
    1, 153, 2, 2, 11, 2, 52, 5, 5, 1, 1, 1, 23, 1, 213, 41, 17, 6, 15, 200, 89, 12, 3, 3, 192, 19, 5, 59, 7,
    9, 4, 252, 3, 3, 40, 2, 226, 3, 1, 63, 17, 64, 2, 1, 2, 13, 2, 252, 127, 4, 1, 7, 1, 2, 158, 25, 2, 1, 4,
    220, 36, 46, 2, 23, 160, 4, 3, 9, 16, 2, 7, 30, 4, 148, 1, 3, 187, 15, 55, 4, 50, 8, 1, 14, 1, 22, 5, 1,
    15, 208, 10, 7, 1, 17, 2, 7, 1, 2, 1, 5, 5, 62, 33, 1, 160, 1, 14, 240, 2, 1, 61, 4, 251, 3, 5, 254, 1,
    2, 243, 1, 1, 2, 1, 7, 2, 5, 1, 9, 1, 208, 3, 7, 109, 8, 175, 21, 5, 129, 152, 48, 1, 30, 96, 128, 1,
    240, 1,
];

/// The text in lower case.
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
    let idx = LOWER.partition_point(|[first, _]| first >> 11 <= code);
    let entry = idx.checked_sub(1).and_then(|idx| LOWER.get(idx));
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
        if !is_in(IGNORABLE, character) {
            return is_in(CASED, character);
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
mod tests {
    use alloc::format;

    use super::*;

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
}
