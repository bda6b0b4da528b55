//! Removal of accents.

use alloc::string::String;
use alloc::vec::Vec;

use apr_container::{PayloadReader, PayloadWriter};

use crate::checks;
use crate::error::Error;
use crate::text_list::TextList;

/// The syllables of Hangul, and how many have the same first letter, or the same first two.
const SYLLABLES: core::ops::RangeInclusive<u32> = 0xAC00..=0xD7A3;
const PER_FIRST: u32 = 588;
const PER_VOWEL: u32 = 28;

/// Bytes of the longest replacement.
const MAX_REPLACEMENT: usize = 64;

/// What becomes of the syllables of Hangul.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HangulRule {
    /// They stay.
    #[default]
    Whole,
    /// They become their two or three letters, as in Unicode's decomposed forms.
    Letters,
}

/// Treatment of the other characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OtherCharacters {
    /// They stay.
    #[default]
    Stay,
    /// Those that are not ASCII are dropped.
    DropNonAscii,
}

/// What characters are written as, one by one: letters without their accents, for example. ASCII stays as it is.
///
/// ```
/// use apr_models::{AccentFold, HangulRule, OtherCharacters};
///
/// let fold = AccentFold::new([('é', "e"), ('ﬁ', "fi")], HangulRule::Whole, OtherCharacters::DropNonAscii)?;
/// assert_eq!(fold.apply("café ﬁn €"), "cafe fin ");
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccentFold {
    from: Vec<u32>,
    to: TextList,
    hangul: HangulRule,
    others: OtherCharacters,
}

impl AccentFold {
    /// Takes characters, strictly increasing and none of them ASCII, with what each becomes: at most 64 bytes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`](crate::ErrorKind::PartInvalid) for others.
    pub fn new<S: AsRef<str>>(
        replacements: impl IntoIterator<Item = (char, S)>,
        hangul: HangulRule,
        others: OtherCharacters,
    ) -> Result<Self, Error> {
        let (mut from, mut to) = (Vec::new(), TextList::default());
        for (character, text) in replacements {
            from.push(u32::from(character));
            to.push(text.as_ref());
        }
        Self { from, to, hangul, others }.checked()
    }

    fn checked(self) -> Result<Self, Error> {
        let ordered =
            self.from.is_sorted_by(|a, b| a < b) && self.from.first().is_none_or(|&first| first > 127);
        checks::expect("characters to replace", ordered, "must increase strictly and not be ASCII")?;
        let characters = self.from.iter().all(|&point| char::from_u32(point).is_some());
        checks::expect("characters to replace", characters, "must be characters of Unicode")?;
        checks::expect_len("replacements", self.from.len(), self.to.len())?;
        // What a text may grow by is bounded; the longest decomposition in Unicode has 33 bytes.
        let short = self.to.iter().all(|text| text.len() <= MAX_REPLACEMENT);
        checks::expect("replacements", short, "must be at most 64 bytes each")?;
        Ok(self)
    }

    /// The string with every character replaced.
    #[must_use]
    pub fn apply(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        self.apply_to(text, &mut out);
        out
    }

    /// As [`apply`](Self::apply), appending to `out`.
    pub(crate) fn apply_to(&self, text: &str, out: &mut String) {
        if text.is_ascii() {
            out.push_str(text);
            return;
        }
        for character in text.chars() {
            let point = u32::from(character);
            if point < 128 {
                out.push(character);
            } else if let Ok(place) = self.from.binary_search(&point) {
                out.push_str(self.to.get(place).unwrap_or_default());
            } else if self.others == OtherCharacters::DropNonAscii {
                // The letters of Hangul are not ASCII either.
            } else if self.hangul == HangulRule::Letters && SYLLABLES.contains(&point) {
                let number = point - SYLLABLES.start();
                let last = number % PER_VOWEL;
                let letters =
                    [0x1100 + number / PER_FIRST, 0x1161 + number % PER_FIRST / PER_VOWEL, 0x11A7 + last];
                let count = if last == 0 { 2 } else { 3 };
                out.extend(letters.into_iter().take(count).filter_map(char::from_u32));
            } else {
                out.push(character);
            }
        }
    }

    pub(crate) fn encode(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        out.u32s(&self.from)?;
        self.to.encode(out)?;
        out.bool(self.hangul == HangulRule::Letters)?;
        out.variant(u32::from(self.others == OtherCharacters::DropNonAscii))
    }

    pub(crate) fn decode(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let from = input.u32s()?;
        let mut to = TextList::default();
        TextList::decode(input, &mut |text| {
            to.push(text);
            Ok(())
        })?;
        let hangul = if input.bool()? { HangulRule::Letters } else { HangulRule::Whole };
        let others = match input.variant(2)? {
            0 => OtherCharacters::Stay,
            _ => OtherCharacters::DropNonAscii,
        };
        Ok(Self { from, to, hangul, others }.checked()?)
    }
}
