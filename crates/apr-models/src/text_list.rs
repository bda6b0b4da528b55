//! Strings in one allocation.

use alloc::string::String;
use alloc::vec::Vec;

use apr_container::{PayloadReader, PayloadWriter};

use crate::error::{Error, ErrorKind};
use crate::tensors::Tensors;

/// Texts in a fixed order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TextList {
    /// One after the other.
    text: String,
    /// Where each ends.
    ends: Vec<usize>,
}

impl TextList {
    pub(crate) const fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, idx: usize) -> Option<&str> {
        let end = *self.ends.get(idx)?;
        let start = idx.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.text.get(start..end)
    }

    pub(crate) fn last(&self) -> Option<&str> {
        self.get(self.len().checked_sub(1)?)
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let text = self.text.get(start..end).unwrap_or_default();
            start = end;
            text
        })
    }

    pub(crate) fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    pub(crate) fn encode(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        out.usize(self.len())?;
        self.iter().try_for_each(|text| out.str(text))
    }

    /// Reads texts and gives each to `accept`, which may keep it.
    pub(crate) fn decode(
        input: &mut PayloadReader<'_>,
        accept: &mut dyn FnMut(&str) -> Result<(), Error>,
    ) -> Result<(), apr_container::Error> {
        for _ in 0..input.count(8)? {
            let text = input.string()?;
            // A place and the text itself, in lists that double and, while they move, are there twice.
            input.charge((3 * size_of::<usize>() + 2 * text.len()) as u64)?;
            accept(&text)?;
        }
        Ok(())
    }

    /// As two tensors: the concatenated strings, and the end of each.
    pub(crate) fn push_to(&self, tensors: &mut Tensors, text: &str, ends: &str) -> Result<(), Error> {
        tensors.push_u8(text, &[self.text.len()], self.text.as_bytes())?;
        tensors.push_counts(ends, &self.ends)
    }

    /// Takes texts from two tensors and gives each to `accept`, which may keep it.
    pub(crate) fn take_from(
        tensors: &Tensors,
        text: &str,
        ends: &str,
        accept: &mut dyn FnMut(&str) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let refuse = |problem| Error::from(ErrorKind::PartInvalid { part: "texts", problem }).of_tensor(text);
        let whole = core::str::from_utf8(tensors.bytes(text)?).map_err(|_| refuse("bytes are not UTF-8"))?;
        let mut start = 0;
        for end in tensors.counts(ends)? {
            let text = whole.get(start..end);
            accept(text.ok_or_else(|| refuse("ends must not fall, and lie between characters"))?)?;
            start = end;
        }
        match start == whole.len() {
            true => Ok(()),
            false => Err(refuse("the last end is not the end of the bytes")),
        }
    }
}

impl<S: AsRef<str>> FromIterator<S> for TextList {
    fn from_iter<I: IntoIterator<Item = S>>(texts: I) -> Self {
        let mut list = Self::default();
        texts.into_iter().for_each(|text| list.push(text.as_ref()));
        list
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn tensors_that_cut_a_character_are_refused() {
        let list: TextList = ["aä", "", "b"].into_iter().collect();
        let take = |tensors: &Tensors| {
            let mut found = TextList::default();
            TextList::take_from(tensors, "text", "ends", &mut |text| {
                found.push(text);
                Ok(())
            })
            .map(|()| found)
        };
        let mut tensors = Tensors::new();
        list.push_to(&mut tensors, "text", "ends").unwrap();
        assert_eq!(take(&tensors).unwrap(), list);
        for ends in [vec![2, 4], vec![3, 5], vec![3], vec![4, 3], vec![], vec![usize::MAX]] {
            let mut tensors = Tensors::new();
            tensors.push_u8("text", &[4], "aäb".as_bytes()).unwrap();
            tensors.push_counts("ends", &ends).unwrap();
            assert!(take(&tensors).is_err(), "{ends:?}");
        }
        let mut tensors = Tensors::new();
        tensors.push_u8("text", &[1], &[0xFF]).unwrap();
        tensors.push_counts("ends", &[1]).unwrap();
        assert!(take(&tensors).is_err());
    }
}
