//! Sets of characters.

use alloc::vec::Vec;

use apr_container::{PayloadReader, PayloadWriter};

use crate::checks;
use crate::error::Error;

/// One after the last code point.
const END: u32 = 0x11_0000;

/// A set of characters, for example those that `\w` matches in some language's regular expressions. It is written out as
/// ranges, so that results do not depend on the Unicode version of a library.
///
/// ```
/// use apr_models::CharacterClass;
///
/// // From a to z, and ä.
/// let class = CharacterClass::from_bounds(vec![0x61, 0x7B, 0xE4, 0xE5])?;
/// assert!(class.contains('q') && class.contains('ä') && !class.contains('Q'));
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CharacterClass {
    /// From the first (included) to the second (excluded), from the third to the fourth, and so on.
    bounds: Vec<u32>,
    /// A bit for each of the first 128.
    ascii: u128,
}

impl CharacterClass {
    /// Takes code points: where the first range begins, the one after its end, where the next begins, and so on.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`](crate::ErrorKind::PartInvalid) if they do not increase strictly up to 0x110000, or are
    /// not an even number of them.
    pub fn from_bounds(bounds: Vec<u32>) -> Result<Self, Error> {
        let sound = bounds.len().is_multiple_of(2)
            && bounds.is_sorted_by(|a, b| a < b)
            && bounds.last().is_none_or(|&last| last <= END);
        checks::expect("class of characters", sound, "must be pairs of code points that increase strictly")?;
        let mut class = Self { bounds, ascii: 0 };
        class.ascii = (0..128).filter(|&point| class.find(point)).fold(0, |map, point| map | 1 << point);
        Ok(class)
    }

    /// Whether the character is one of the set.
    #[must_use]
    pub fn contains(&self, character: char) -> bool {
        let point = u32::from(character);
        if point < 128 { self.ascii >> point & 1 == 1 } else { self.find(point) }
    }

    fn find(&self, point: u32) -> bool {
        self.bounds.partition_point(|&bound| bound <= point) % 2 == 1
    }

    pub(crate) fn encode(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        out.u32s(&self.bounds)
    }

    pub(crate) fn decode(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        Ok(Self::from_bounds(input.u32s()?)?)
    }
}

/// White space as Python's `str.split` and `\s` have it.
pub(crate) fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\u{1C}'..='\u{1F}').contains(&character)
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn ranges_are_what_they_say() {
        let class = CharacterClass::from_bounds(vec![0, 1, 65, 91, 127, 129, 0xFFFF, END]).unwrap();
        for (character, inside) in [
            ('\0', true),
            ('\u{1}', false),
            ('@', false),
            ('A', true),
            ('Z', true),
            ('[', false),
            ('\u{7F}', true),
            ('\u{80}', true),
            ('\u{81}', false),
            ('\u{FFFE}', false),
            ('\u{FFFF}', true),
            (char::MAX, true),
        ] {
            assert_eq!(class.contains(character), inside, "{character:?}");
        }
        assert!(!CharacterClass::from_bounds(vec![]).unwrap().contains('a'));
    }

    #[test]
    fn bounds_that_are_no_ranges_are_refused() {
        for bounds in [vec![1], vec![1, 1], vec![2, 1], vec![1, 3, 3, 4], vec![1, END + 1], vec![1, 2, 3]] {
            assert_eq!(CharacterClass::from_bounds(bounds).unwrap_err().code(), "am-part");
        }
    }

    /// The code points for which `str.isspace` holds in Python 3.11.
    #[test]
    fn white_space_is_that_of_python() {
        let python = |point: u32| {
            matches!(
                point,
                9..=13 | 28..=32 | 133 | 160 | 5760 | 8192..=8202 | 8232 | 8233 | 8239 | 8287 | 12288
            )
        };
        for character in '\0'..=char::MAX {
            assert_eq!(is_space(character), python(character.into()), "{character:?}");
        }
    }
}
