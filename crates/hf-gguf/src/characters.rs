//! What is known of characters: those of the text that identifies pre-tokenizers, of ASCII, Latin-1 and the alphabet of byte-level
//! BPE. Tables of all of Unicode would be larger than the rest of the crate, for one text of 350 characters.

/// The text that identifies pre-tokenizers.
pub(crate) const CHECK_TEXT: &str = concat!(
    "\n \n\n \n\n\n \t \t\t \t\n  \n   \n    \n     \n",
    "🚀 (normal) 😶\u{200d}🌫\u{fe0f} (multiple emojis concatenated) ✅ 🦙🦙 ",
    "3 33 333 3333 33333 333333 3333333 33333333 3.3 3..3 3...3 ",
    "\u{1780}\u{17b6}\u{1793}\u{17cb}\u{178f}\u{17c2}\u{1796}\u{17b7}\u{179f}\u{17c1}\u{179f}\u{17a2}\u{17b6}\u{1785}",
    "😁 ?我想在apple工作1314151天～ ------======= нещо на Български ",
    "''''''```````\"\"\"\"......!!!!!!?????? ",
    "I've been 'told he's there, 'RE you sure? 'M not sure I'll make it, 'D you like some tea? We'Ve a'lL",
);

/// The general category of a character in the Unicode Character Database, by its abbreviation: `Lu`. `None` if it is not known here.
///
/// Categories of these characters have not changed since Unicode 11.
pub(crate) fn category(c: char) -> Option<&'static str> {
    let code = u32::from(c);
    Some(match c {
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => "Cc",
        ' ' | '\u{a0}' => "Zs",
        '0'..='9' => "Nd",
        'A'..='Z' => "Lu",
        'a'..='z' => "Ll",
        '_' => "Pc",
        '-' => "Pd",
        '(' | '[' | '{' => "Ps",
        ')' | ']' | '}' => "Pe",
        '$' | '¢'..='¥' => "Sc",
        '+' | '<'..='>' | '|' | '~' | '¬' | '±' | '×' | '÷' | '～' => "Sm",
        '^' | '`' | '¨' | '¯' | '´' | '¸' => "Sk",
        '!'..='~' | '¡' | '§' | '¶' | '·' | '¿' => "Po",
        '«' => "Pi",
        '»' => "Pf",
        '\u{ad}' | '\u{200d}' => "Cf",
        '²' | '³' | '¹' | '¼'..='¾' => "No",
        '¦' | '©' | '®' | '°' | '▁' | '✅' | '\u{fffd}' => "So",
        '🌫' | '😁' | '😶' | '🚀' | '🦙' => "So",
        'ª' | 'º' | 'ក' | 'ច' | 'ត' | 'ន' | 'ព' | 'ស' | 'អ' => "Lo",
        _ if is_ideograph(c) => "Lo",
        '\u{17b6}' | '\u{17c1}' | '\u{17c2}' => "Mc",
        '\u{17b7}' | '\u{17cb}' | '\u{fe0f}' => "Mn",
        // Upper and lower case of the letters of the text, and those between them.
        'А'..='Я' => "Lu",
        'а'..='я' => "Ll",
        _ if code < 0x180 && c.is_uppercase() => "Lu",
        _ if code < 0x180 => "Ll",
        _ => return None,
    })
}

/// The script of a character of a known [`category`]. `None` if the character is not known here.
pub(crate) fn script(c: char) -> Option<&'static str> {
    let category = category(c)?;
    Some(match c {
        '\u{1780}'..='\u{17ff}' => "Khmer",
        _ if is_ideograph(c) => "Han",
        '\u{400}'..='\u{4ff}' => "Cyrillic",
        '\u{fe0f}' | '\u{200d}' => "Inherited",
        'µ' => "Common",
        _ if category.starts_with('L') => "Latin",
        _ => "Common",
    })
}

/// Scripts of no known character: a class of one of these has none of them.
pub(crate) const OTHER_SCRIPTS: &[&str] = &[
    "Arabic",
    "Armenian",
    "Bengali",
    "Bopomofo",
    "Devanagari",
    "Ethiopic",
    "Georgian",
    "Greek",
    "Gujarati",
    "Gurmukhi",
    "Hangul",
    "Hebrew",
    "Hiragana",
    "Kannada",
    "Katakana",
    "Lao",
    "Malayalam",
    "Mongolian",
    "Myanmar",
    "Oriya",
    "Sinhala",
    "Tamil",
    "Telugu",
    "Thai",
    "Tibetan",
];

/// Letters, marks, numbers and connectors: `\w` of Oniguruma.
pub(crate) fn is_word(c: char) -> Option<bool> {
    let category = category(c)?;
    Some(category.starts_with(['L', 'M', 'N']) || category == "Pc")
}

/// `\w` of the crate `regex`: of numbers only digits, and what joins letters.
pub(crate) fn is_unicode_word(c: char) -> Option<bool> {
    Some((is_word(c)? && category(c)? != "No") || c == '\u{200d}')
}

/// ASCII punctuation and symbols, and the categories of punctuation.
pub(crate) fn is_punctuation(c: char) -> Option<bool> {
    Some(c.is_ascii_punctuation() || category(c)?.starts_with('P'))
}

/// Unified ideographs.
pub(crate) const fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}')
}

/// Whether a character is known to be its own normal form in every form but those of compatibility, and to combine with no other
/// known one.
pub(crate) fn is_plain(c: char) -> bool {
    c.is_ascii()
        || is_ideograph(c)
        || CHECK_TEXT.contains(c)
        || c == '▁'
        || (matches!(c, 'А'..='я') && !matches!(c, 'Й' | 'й'))
}

/// Letters of byte-level BPE: each byte is a character that can be printed.
pub(crate) const fn byte_letter(byte: u8) -> char {
    // The 68 bytes that are not printed follow U+00FF, in order.
    let code = match byte {
        0..=0x20 => 0x100 + byte as u32,
        0x7f..=0xa0 => 0x121 + (byte - 0x7f) as u32,
        0xad => 0x143,
        _ => byte as u32,
    };
    match char::from_u32(code) {
        Some(letter) => letter,
        None => char::REPLACEMENT_CHARACTER,
    }
}

/// The byte of a letter of byte-level BPE.
pub(crate) const fn letter_byte(letter: char) -> Option<u8> {
    let code = letter as u32;
    match code {
        0x100..=0x120 => Some((code - 0x100) as u8),
        0x121..=0x142 => Some((code - 0x121) as u8 + 0x7f),
        0x143 => Some(0xad),
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => Some(code as u8),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn categories_agree_with_the_classes_of_the_standard_library() {
        let text = CHECK_TEXT.chars().flat_map(|c| c.to_lowercase().chain(c.to_uppercase()));
        let known = (0..0x180).filter_map(char::from_u32).chain(CHECK_TEXT.chars()).chain(text).chain(['▁']);
        for c in known {
            let own = category(c).unwrap();
            let is = |first: char| own.starts_with(first);
            assert!(!is('L') || c.is_alphabetic(), "{c:?}");
            assert!(is('L') || is('M') || !c.is_alphabetic(), "{c:?}");
            assert_eq!(is('N'), c.is_numeric(), "{c:?}");
            assert_eq!(own == "Cc", c.is_control(), "{c:?}");
            assert_eq!(own == "Lu", c.is_uppercase(), "{c:?}");
            assert_eq!(own == "Ll" || "ªº".contains(c), c.is_lowercase(), "{c:?}");
            assert!(!c.is_ascii_punctuation() || is('P') || is('S'), "{c:?}");
            assert!(script(c).is_some() && !OTHER_SCRIPTS.contains(&script(c).unwrap()), "{c:?}");
        }
        assert_eq!(category('α'), None);
    }

    #[test]
    fn letters_of_bytes_are_different_and_come_back() {
        let mut seen = alloc::collections::BTreeSet::new();
        for byte in 0..=255 {
            let letter = byte_letter(byte);
            assert!(seen.insert(letter) && !letter.is_whitespace() && !letter.is_control(), "{byte:#x}");
            assert_eq!(letter_byte(letter), Some(byte));
        }
        assert_eq!((byte_letter(b' '), byte_letter(b'\n'), byte_letter(0xad)), ('Ġ', 'Ċ', 'Ń'));
        assert_eq!((letter_byte(' '), letter_byte('\u{ad}'), letter_byte('\u{144}')), (None, None, None));
    }
}
