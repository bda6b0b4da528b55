//! Writes messages of Protocol Buffers.

use alloc::vec::Vec;

/// The fields of a message.
#[derive(Clone, Debug, Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    /// The bytes.
    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }

    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// An integer, a truth value or an enumeration.
    pub(super) fn varint(&mut self, field: u64, value: u64) {
        self.number(field << 3);
        self.number(value);
    }

    /// Bytes or a string.
    pub(super) fn bytes(&mut self, field: u64, value: &[u8]) {
        self.number(field << 3 | 2);
        self.number(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    /// A message.
    pub(super) fn message(&mut self, field: u64, value: &Self) {
        self.bytes(field, &value.0);
    }

    /// A float.
    pub(super) fn float(&mut self, field: u64, value: f32) {
        self.number(field << 3 | 5);
        self.0.extend_from_slice(&value.to_le_bytes());
    }
}
