//! Many short strings in one allocation, and an index of them.

use alloc::string::String;
use alloc::vec::Vec;

use sha2::{Digest, Sha256};

/// Strings one after the other: a vocabulary of a file of 100 MB has no more bytes here than there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Strings {
    text: String,
    /// Where each string ends. 32 bits: no file that is read has 4 GiB.
    ends: Vec<u32>,
}

impl Strings {
    /// Adds what `write` appends.
    pub(crate) fn push_with(&mut self, write: impl FnOnce(&mut String)) {
        write(&mut self.text);
        self.ends.push(self.text.len() as u32);
    }

    /// Adds a string.
    pub(crate) fn push(&mut self, string: &str) {
        self.push_with(|text| text.push_str(string));
    }

    /// The string at an index; the empty string beyond the last.
    pub(crate) fn get(&self, idx: usize) -> &str {
        let begin = idx.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or_default();
        let end = self.ends.get(idx).copied().unwrap_or(begin);
        self.text.get(begin as usize..end as usize).unwrap_or_default()
    }

    /// Number of strings.
    pub(crate) const fn len(&self) -> usize {
        self.ends.len()
    }

    /// The strings in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|idx| self.get(idx))
    }
}

impl<'s> FromIterator<&'s str> for Strings {
    fn from_iter<I: IntoIterator<Item = &'s str>>(iter: I) -> Self {
        let mut strings = Self::default();
        for string in iter {
            strings.push(string);
        }
        strings
    }
}

/// Finds strings. Of equal strings, the last is found.
///
/// An open table with linear probing. Its hash is keyed with the digest of all strings: an attacker who writes the file cannot choose
/// strings that collide, since each choice changes the key.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    /// Indices plus one; zero is empty.
    slots: Vec<u32>,
    key: [u64; 2],
}

impl Index {
    /// An index of these strings.
    pub(crate) fn new(strings: &Strings) -> Self {
        let digest = Sha256::digest(strings.text.as_bytes());
        let half = |begin: usize| u64::from_le_bytes(core::array::from_fn(|idx| digest[begin + idx]));
        // An odd factor loses no bits.
        let key = [half(0), half(8) | 1];
        let slots = alloc::vec![0; (strings.len() * 2).next_power_of_two().max(8)];
        let mut index = Self { slots, key };
        for idx in 0..strings.len() {
            let slot = index.slot(strings, strings.get(idx));
            index.slots[slot] = idx as u32 + 1;
        }
        index
    }

    /// The index of a string; `strings` are those of [`new`](Self::new).
    pub(crate) fn find(&self, strings: &Strings, string: &str) -> Option<usize> {
        (self.slots[self.slot(strings, string)] as usize).checked_sub(1)
    }

    /// The slot of the string, or the empty one where it would be. Half of the slots are empty.
    fn slot(&self, strings: &Strings, string: &str) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = self.hash(string) as usize & mask;
        while let Some(idx) = (self.slots[slot] as usize).checked_sub(1) {
            if strings.get(idx) == string {
                break;
            }
            slot = (slot + 1) & mask;
        }
        slot
    }

    /// Multiplies eight bytes at a time to 128 bits and adds both halves.
    fn hash(&self, string: &str) -> u64 {
        let [first, factor] = self.key;
        let mix = |state: u64, word: u64| {
            let product = u128::from(state ^ word) * u128::from(factor);
            (product as u64) ^ (product >> 64) as u64
        };
        let mut state = first ^ string.len() as u64;
        for chunk in string.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            state = mix(state.rotate_left(23), u64::from_le_bytes(word));
        }
        mix(state, factor)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn strings_are_found_and_the_last_of_equal_ones_wins() {
        let texts: Vec<String> = (0..5000).map(|number| format!("{}", number % 4000)).collect();
        let strings: Strings = texts.iter().map(String::as_str).collect();
        let index = Index::new(&strings);
        for (idx, text) in texts.iter().enumerate() {
            let last = if idx < 1000 { idx + 4000 } else { idx };
            assert_eq!(index.find(&strings, text), Some(last), "{text}");
        }
        assert_eq!(index.find(&strings, "4000"), None);
        assert_eq!(index.find(&strings, ""), None);
        let none = Strings::default();
        assert_eq!(Index::new(&none).find(&none, "a"), None);
        assert_eq!((none.get(0), none.len()), ("", 0));
    }
}
