//! The open brackets of a value, one bit each.

use alloc::vec::Vec;

#[cfg(not(apr_small))]
type Word = u128;
/// Machines of 32 bits shift it by one instruction.
#[cfg(apr_small)]
type Word = u32;

/// Open arrays and objects; those of the first word need no allocation.
#[derive(Debug, Default)]
pub(crate) struct Nesting {
    /// Full words, outermost first.
    full: Vec<Word>,
    /// The innermost bracket is the lowest bit: whether it is an object.
    bits: Word,
    /// Bits in use.
    len: u32,
}

impl Nesting {
    pub(crate) fn push(&mut self, is_object: bool) {
        if self.len == Word::BITS {
            self.full.push(self.bits);
            self.len = 0;
        }
        self.bits = self.bits << 1 | Word::from(is_object);
        self.len += 1;
    }

    pub(crate) fn depth(&self) -> usize {
        self.full.len() * Word::BITS as usize + self.len as usize
    }

    /// Whether the innermost open bracket is that of an object; `None` if none is open.
    pub(crate) const fn innermost(&self) -> Option<bool> {
        if self.len > 0 { Some(self.bits & 1 == 1) } else { None }
    }

    pub(crate) fn pop(&mut self) {
        self.bits >>= 1;
        self.len -= 1;
        if self.len == 0
            && let Some(bits) = self.full.pop()
        {
            (self.bits, self.len) = (bits, Word::BITS);
        }
    }
}
