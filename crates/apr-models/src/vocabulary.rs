//! Sorted strings and their indices.

use alloc::vec::Vec;
use core::cmp::Ordering;

use apr_container::{PayloadReader, PayloadWriter};

use crate::error::{Error, ErrorKind};
use crate::tensors::Tensors;
use crate::text_list::TextList;

/// Most texts: their numbers, and a few more, are `u32`.
const MAX_TEXTS: usize = u32::MAX as usize - 15;

/// Texts in the order of their bytes, none empty, none twice; each has its place as number. Kept in one piece of
/// memory.
///
/// ```
/// use apr_models::Vocabulary;
///
/// let words = Vocabulary::from_sorted(["ant", "bee", "cat"])?;
/// assert_eq!(words.find("bee"), Some(1));
/// assert_eq!(words.get(2), Some("cat"));
/// assert!(Vocabulary::from_sorted(["bee", "ant"]).is_err());
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vocabulary {
    texts: TextList,
}

impl Vocabulary {
    /// Takes texts that are sorted by their bytes (the order of `str`).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`] for texts that are empty, not sorted, or twice there.
    pub fn from_sorted<S: AsRef<str>>(texts: impl IntoIterator<Item = S>) -> Result<Self, Error> {
        let mut vocabulary = Self::default();
        texts.into_iter().try_for_each(|text| vocabulary.append(text.as_ref()))?;
        Ok(vocabulary)
    }

    /// Takes texts in any order, also more than once.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`] for an empty text.
    pub fn from_texts<S: AsRef<str>>(texts: impl IntoIterator<Item = S>) -> Result<Self, Error> {
        let mut texts: Vec<S> = texts.into_iter().collect();
        texts.sort_unstable_by(|a, b| a.as_ref().cmp(b.as_ref()));
        texts.dedup_by(|a, b| a.as_ref() == b.as_ref());
        Self::from_sorted(texts)
    }

    /// Number of texts.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.texts.len() == 0
    }

    /// The text of that number.
    #[must_use]
    pub fn get(&self, number: usize) -> Option<&str> {
        self.texts.get(number)
    }

    /// The number of that text.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<u32> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.get(middle)?.cmp(text) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return u32::try_from(middle).ok(),
            }
        }
        None
    }

    /// The texts in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.texts.iter()
    }

    fn append(&mut self, text: &str) -> Result<(), Error> {
        let problem = match self.texts.last() {
            _ if text.is_empty() => "a text is empty",
            Some(last) if last >= text => "texts must be sorted by their bytes, none twice",
            _ if self.len() >= MAX_TEXTS => "there are more texts than 32 bits count",
            _ => {
                self.texts.push(text);
                return Ok(());
            }
        };
        Err(ErrorKind::PartInvalid { part: "vocabulary", problem }.into())
    }

    pub(crate) fn encode(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        self.texts.encode(out)
    }

    pub(crate) fn decode(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let mut vocabulary = Self::default();
        TextList::decode(input, &mut |text| vocabulary.append(text))?;
        Ok(vocabulary)
    }

    pub(crate) fn push_to(&self, tensors: &mut Tensors, text: &str, ends: &str) -> Result<(), Error> {
        self.texts.push_to(tensors, text, ends)
    }

    pub(crate) fn take_from(tensors: &Tensors, text: &str, ends: &str) -> Result<Self, Error> {
        let mut vocabulary = Self::default();
        TextList::take_from(tensors, text, ends, &mut |text| vocabulary.append(text))?;
        Ok(vocabulary)
    }
}
