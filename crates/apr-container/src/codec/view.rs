//! Views: models that are read in place.

use core::fmt;

use crate::codec::{DecodePayload, PayloadReader};
use crate::error::Error;

/// A model that can predict from the bytes of its payload, without a copy of them.
pub trait ViewPayload: DecodePayload {
    /// The model over a payload that lives as long as `'data`.
    type View<'data>;

    /// Finds the model's parts in `payload`, which `input` reads from its first byte to its last, and validates what
    /// predictions need as [`decode_payload`](DecodePayload::decode_payload) does. Lists stay in place
    /// ([`PayloadReader::f32s_in`]).
    ///
    /// # Errors
    ///
    /// As [`decode_payload`](DecodePayload::decode_payload); [`Error::model`] for a model that cannot predict.
    fn view_payload<'data>(
        input: &mut PayloadReader<'_>,
        payload: &'data [u8],
    ) -> Result<Self::View<'data>, Error>;
}

/// A list of `f32` in the bytes of a payload, little-endian, wherever it begins: no alignment is needed.
#[derive(Clone, Copy)]
pub struct F32s<'data> {
    bytes: &'data [[u8; 4]],
}

impl<'data> F32s<'data> {
    /// The number of values.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether the list is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The value at an index, `None` beyond the end.
    #[must_use]
    pub fn get(&self, idx: usize) -> Option<f32> {
        self.bytes.get(idx).copied().map(f32::from_le_bytes)
    }

    /// The values in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = f32> + DoubleEndedIterator + Clone + use<'data> {
        self.bytes.iter().copied().map(f32::from_le_bytes)
    }

    /// The values in chunks of `len`; a shorter rest is left out.
    ///
    /// # Panics
    ///
    /// If `len` is 0.
    pub fn chunks_exact(&self, len: usize) -> impl ExactSizeIterator<Item = Self> + Clone + use<'data> {
        self.bytes.chunks_exact(len).map(|bytes| Self { bytes })
    }
}

impl fmt::Debug for F32s<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Equal numbers, as `f32` compares them.
impl PartialEq for F32s<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl PayloadReader<'_> {
    /// A list of `f32`, left where it is in `payload`, which this reader reads from its first byte.
    ///
    /// # Errors
    ///
    /// As [`count`](Self::count) and [`skip`](Self::skip).
    pub fn f32s_in<'data>(&mut self, payload: &'data [u8]) -> Result<F32s<'data>, Error> {
        let count = self.count(4)?;
        let begin = self.offset();
        self.skip((count as u64).saturating_mul(4))?;
        // Both ends are within the payload, which is in memory: they fit `usize`.
        let bytes = payload.get(begin as usize..self.offset() as usize).unwrap_or_default();
        Ok(F32s { bytes: bytes.as_chunks().0 })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::codec::payload_layout::PayloadLayout;
    use crate::codec::{Context, SliceSource};
    use crate::limits::ReadOptions;
    use crate::model_type::ModelType;

    /// The list in the payload after its first byte.
    fn list(payload: &[u8]) -> Result<F32s<'_>, Error> {
        let context = Context::new(PayloadLayout::default(), ModelType::Custom, ReadOptions::STRICT, 0);
        let mut source = SliceSource::new(payload);
        let mut input = PayloadReader::new(&mut source, payload.len() as u64, &context);
        input.u8()?;
        input.f32s_in(payload)
    }

    #[test]
    fn a_list_is_found_at_any_address_and_never_beyond_its_payload() {
        let numbers = [1.5_f32, -0.0, f32::INFINITY, 7.0];
        let mut payload = Vec::from([9]);
        payload.extend(4_u64.to_le_bytes());
        numbers.iter().for_each(|number| payload.extend(number.to_le_bytes()));
        let found = list(&payload).unwrap();
        assert_eq!((found.len(), found.get(3), found.get(4)), (4, Some(7.0), None));
        assert!(found.iter().map(f32::to_bits).eq(numbers.map(f32::to_bits)));
        assert_eq!(found.chunks_exact(3).len(), 1);
        assert_eq!(alloc::format!("{found:?}"), "[1.5, -0.0, inf, 7.0]");
        for len in 0..payload.len() {
            assert!(list(&payload[..len]).is_err(), "{len}");
        }
        payload[1] = 5;
        assert_eq!(list(&payload).unwrap_err().code(), "ac-count");
    }
}
