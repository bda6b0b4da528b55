//! How much memory metadata may take.

use alloc::string::String;

use super::value::Value;
use crate::error::{Error, ErrorKind};
use crate::limits::Limits;

/// Most bytes that a map takes for five entries, as readers have counted them from the beginning: what a tree of the standard
/// library takes, and more than a [`Map`](crate::map::Map) does.
const FIVE_ENTRIES: u64 = (12 * (size_of::<String>() + size_of::<Value>()) + 144) as u64;

/// Memory used for each byte of metadata, at most, beyond what is allowed for all.
const RATIO: u64 = 3;

/// Counts the memory that values take when they are read. The writer counts as well, so that what is written can be read.
#[derive(Debug)]
pub(super) struct Budget {
    used: u64,
    allowed: u64,
}

impl Budget {
    /// For `len` bytes of metadata.
    pub(super) fn new(len: u64, limits: &Limits) -> Self {
        let mut budget = Self { used: 0, allowed: 0 };
        budget.allow(len, limits);
        budget
    }

    /// For metadata whose length is not known yet.
    pub(super) const fn open() -> Self {
        Self { used: 0, allowed: u64::MAX }
    }

    /// Allows what `len` bytes may take; whether that is enough.
    pub(super) fn allow(&mut self, len: u64, limits: &Limits) -> bool {
        self.allowed = limits.metadata_memory.saturating_add(len.saturating_mul(RATIO));
        self.used <= self.allowed
    }

    /// Before `bytes` are allocated.
    pub(super) fn charge(&mut self, bytes: u64) -> Result<(), Error> {
        self.used = self.used.saturating_add(bytes);
        if self.used > self.allowed {
            return Err(self.exceeded());
        }
        Ok(())
    }

    /// Before a list of `count` elements of so many bytes each is allocated.
    pub(super) fn charge_list(&mut self, count: usize, size: usize) -> Result<(), Error> {
        self.charge((count as u64).saturating_mul(size as u64))
    }

    /// Before an entry is added to a map of `len` entries.
    pub(super) fn charge_entry(&mut self, len: usize) -> Result<(), Error> {
        if len.is_multiple_of(5) { self.charge(FIVE_ENTRIES) } else { Ok(()) }
    }

    /// The error for more than is allowed.
    pub(super) fn exceeded(&self) -> Error {
        ErrorKind::MetadataTooDense { needed: self.used, allowed: self.allowed }.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_exact() {
        let limits = Limits { metadata_memory: 100, ..Limits::DEFAULT };
        let mut budget = Budget::new(10, &limits);
        assert!(budget.charge_list(32, 4).is_ok() && budget.charge(2).is_ok());
        let error = budget.charge(1).expect_err("131 of 130 bytes");
        assert!(matches!(error.kind(), ErrorKind::MetadataTooDense { needed: 131, allowed: 130 }));
        assert!(budget.charge_list(usize::MAX, 8).is_err() && budget.charge_entry(5).is_err());
    }

    #[test]
    fn five_entries_cover_a_list_that_is_half_full() {
        let lists = size_of::<alloc::vec::Vec<(String, Value)>>();
        assert!(FIVE_ENTRIES as usize >= 10 * (size_of::<String>() + size_of::<Value>()) + 2 * lists);
    }
}
