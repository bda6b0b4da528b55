//! Classes of characters.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::Missing;
use crate::characters::{OTHER_SCRIPTS, category, is_word as is_word_char, script};

/// A set of characters.
#[derive(Clone, Debug, Default)]
pub(super) struct Class {
    /// Intersected: a character is in one item of each.
    pub(super) parts: Vec<Vec<Item>>,
    pub(super) is_negated: bool,
    /// Whether upper and lower case are the same.
    pub(super) ignores_case: bool,
}

/// Characters of a class.
#[derive(Clone, Debug)]
pub(super) enum Item {
    Range(char, char),
    /// Those of this property, or all others.
    Property(Property, bool),
    Class(Box<Class>),
}

/// A property of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Property {
    /// A general category, or several that begin with the same letter.
    Category([u8; 2]),
    Script(&'static str),
    Alphabetic,
    Uppercase,
    Lowercase,
    Digit,
    Space,
    Word,
    HexDigit,
}

/// Of the scripts of known characters.
const SCRIPTS: &[&str] = &["Common", "Cyrillic", "Han", "Inherited", "Khmer", "Latin"];

impl Class {
    /// The class of one character.
    pub(super) fn of(c: char) -> Self {
        Self { parts: alloc::vec![alloc::vec![Item::Range(c, c)]], ..Self::default() }
    }

    /// The class of a property.
    pub(super) fn with(property: Property, is_negated: bool) -> Self {
        Self { parts: alloc::vec![alloc::vec![Item::Property(property, is_negated)]], ..Self::default() }
    }

    /// Number of its items.
    pub(super) fn cost(&self) -> u64 {
        let cost = |item: &Item| if let Item::Class(class) = item { class.cost() } else { 1 };
        self.parts.iter().flatten().map(cost).sum()
    }

    /// Whether the character is in the class.
    pub(super) fn has(&self, c: char) -> Result<bool, Missing> {
        let mut found = self.has_exactly(c)?;
        if self.ignores_case && !found {
            let mut cases = c.to_lowercase().chain(c.to_uppercase()).filter(|other| *other != c);
            found =
                cases.try_fold(false, |found, other| Ok::<_, Missing>(found || self.has_exactly(other)?))?;
        }
        Ok(found != self.is_negated)
    }

    fn has_exactly(&self, c: char) -> Result<bool, Missing> {
        for part in &self.parts {
            let mut found = false;
            for item in part {
                found = found
                    || match item {
                        Item::Range(first, last) => (*first..=*last).contains(&c),
                        Item::Property(property, is_negated) => property.has(c)? != *is_negated,
                        Item::Class(class) => class.has(c)?,
                    };
            }
            if !found {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Property {
    /// The property of this name in `\p{...}`; upper case, spaces, `_` and `-` make no difference.
    pub(super) fn named(name: &str) -> Option<Self> {
        let name: Vec<u8> = name.bytes().filter(|byte| !b" _-".contains(byte)).collect();
        let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
        let long = [
            ("Letter", "L"),
            ("Mark", "M"),
            ("Number", "N"),
            ("Punctuation", "P"),
            ("Symbol", "S"),
            ("Separator", "Z"),
            ("Other", "C"),
        ];
        let category = |text: &[u8]| match text {
            [first] if b"LMNPSZC".contains(first) => Some(Self::Category([*first, 0])),
            [first, second] if b"LMNPSZC".contains(first) && second.is_ascii_lowercase() => {
                Some(Self::Category([*first, *second]))
            }
            _ => None,
        };
        let mut capitalized = name.to_ascii_lowercase();
        if let Some(first) = capitalized.first_mut() {
            first.make_ascii_uppercase();
        }
        let other = [
            ("Alphabetic", Self::Alphabetic),
            ("Alpha", Self::Alphabetic),
            ("Uppercase", Self::Uppercase),
            ("Upper", Self::Uppercase),
            ("Lowercase", Self::Lowercase),
            ("Lower", Self::Lowercase),
            ("Digit", Self::Digit),
            ("Space", Self::Space),
            ("WhiteSpace", Self::Space),
            ("Word", Self::Word),
            ("XDigit", Self::HexDigit),
        ];
        category(&capitalized)
            .or_else(|| {
                long.iter().find(|(long, _)| is(long)).and_then(|(_, short)| category(short.as_bytes()))
            })
            .or_else(|| other.iter().find(|(name, _)| is(name)).map(|(_, property)| *property))
            .or_else(|| {
                SCRIPTS.iter().chain(OTHER_SCRIPTS).find(|name| is(name)).map(|name| Self::Script(name))
            })
    }

    fn has(self, c: char) -> Result<bool, Missing> {
        let known = |found: Option<bool>| found.ok_or_else(|| unknown(c));
        match self {
            Self::Space => Ok(c.is_whitespace()),
            Self::Alphabetic => Ok(c.is_alphabetic()),
            Self::Uppercase => Ok(c.is_uppercase()),
            Self::Lowercase => Ok(c.is_lowercase()),
            Self::HexDigit => Ok(c.is_ascii_hexdigit()),
            Self::Digit => known(category(c).map(|category| category == "Nd")),
            Self::Word => known(is_word_char(c)),
            Self::Script(name) => known(script(c).map(|script| script == name)),
            Self::Category([first, second]) => known(category(c).map(|category| {
                let bytes = category.as_bytes();
                bytes[0] == first && (second == 0 || bytes[1] == second)
            })),
        }
    }
}

/// Whether there is a character, and it is one of words.
pub(super) fn is_word(c: Option<char>) -> Result<bool, Missing> {
    c.map_or(Ok(false), |c| is_word_char(c).ok_or_else(|| unknown(c)))
}

fn unknown(c: char) -> Missing {
    Missing::new(&alloc::format!("the class of the character U+{:04X}", u32::from(c)))
}
