//! Encoding of payloads.

use core::fmt;

use super::sink::Sink;
use crate::codec::payload_layout::PayloadLayout;
use crate::error::Error;

/// Length of the buffer: single values are a few bytes each.
const BUFFER_LEN: usize = 2048;

/// Writes a payload's values in order.
pub struct PayloadWriter<'w> {
    sink: &'w mut dyn Sink,
    layout: PayloadLayout,
    buffer: [u8; BUFFER_LEN],
    buffered: usize,
    handed_on: u64,
}

macro_rules! scalars {
    ($($name:ident)*) => {
        $(
        #[doc = concat!("A `", stringify!($name), "`, little-endian; all bits of a float are kept.")]
        ///
        /// # Errors
        ///
        /// Errors of the destination.
        #[inline]
        pub fn $name(&mut self, value: $name) -> Result<(), Error> {
            self.bytes_raw(&value.to_le_bytes())
        })*
    };
}

macro_rules! lists {
    ($($name:ident, $raw:ident, $element:ty;)*) => {
        $(
        #[doc = concat!("A list of `", stringify!($element), "`: its length, then the elements.")]
        ///
        /// # Errors
        ///
        /// Errors of the destination.
        pub fn $name(&mut self, values: &[$element]) -> Result<(), Error> {
            self.usize(values.len())?;
            self.$raw(values)
        }

        #[doc = concat!("Values of `", stringify!($element), "` one after the other, without their number.")]
        ///
        /// # Errors
        ///
        /// Errors of the destination.
        pub fn $raw(&mut self, values: &[$element]) -> Result<(), Error> {
            if cfg!(target_endian = "little") {
                return self.bytes_raw(bytemuck::cast_slice(values));
            }
            values.iter().try_for_each(|value| self.bytes_raw(&value.to_le_bytes()))
        })*
    };
}

impl<'w> PayloadWriter<'w> {
    pub(crate) fn new(sink: &'w mut dyn Sink, layout: PayloadLayout) -> Self {
        Self { sink, layout, buffer: [0; BUFFER_LEN], buffered: 0, handed_on: 0 }
    }

    /// The layout to write.
    #[must_use]
    pub const fn layout(&self) -> PayloadLayout {
        self.layout
    }

    /// Bytes written so far.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.handed_on + self.buffered as u64
    }

    scalars! { u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f32 f64 }

    /// A Boolean value: one byte, 0 or 1.
    ///
    /// # Errors
    ///
    /// Errors of the destination.
    pub fn bool(&mut self, value: bool) -> Result<(), Error> {
        self.u8(value.into())
    }

    /// A size: eight bytes.
    ///
    /// # Errors
    ///
    /// Errors of the destination.
    pub fn usize(&mut self, value: usize) -> Result<(), Error> {
        self.u64(value as u64)
    }

    /// A variant index: four bytes.
    ///
    /// # Errors
    ///
    /// Errors of the destination.
    pub fn variant(&mut self, variant: u32) -> Result<(), Error> {
        self.u32(variant)
    }

    /// The tag of an optional value, which follows if there is one.
    ///
    /// # Errors
    ///
    /// Errors of the destination.
    pub fn option(&mut self, is_some: bool) -> Result<(), Error> {
        self.bool(is_some)
    }

    /// A string: its length in bytes, then UTF-8.
    ///
    /// # Errors
    ///
    /// Errors of the destination.
    pub fn str(&mut self, text: &str) -> Result<(), Error> {
        self.bytes(text.as_bytes())
    }

    /// Bytes: their number, then the bytes.
    ///
    /// # Errors
    ///
    /// Errors of the destination.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.usize(bytes.len())?;
        self.bytes_raw(bytes)
    }

    /// A list of sizes: its length, then eight bytes each.
    ///
    /// # Errors
    ///
    /// Errors of the destination.
    pub fn usizes(&mut self, values: &[usize]) -> Result<(), Error> {
        self.usize(values.len())?;
        values.iter().try_for_each(|&value| self.usize(value))
    }

    lists! {
        f32s, f32s_raw, f32;
        f64s, f64s_raw, f64;
        i32s, i32s_raw, i32;
        u32s, u32s_raw, u32;
        u64s, u64s_raw, u64;
    }

    /// Bytes without their number. Long slices are written without a copy.
    ///
    /// # Errors
    ///
    /// Errors of the destination.
    #[inline]
    pub fn bytes_raw(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if let Some(space) = self.buffer.get_mut(self.buffered..self.buffered + bytes.len()) {
            space.copy_from_slice(bytes);
            self.buffered += bytes.len();
            return Ok(());
        }
        self.bytes_beyond_buffer(bytes)
    }

    fn bytes_beyond_buffer(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.hand_on()?;
        if let Some(space) = self.buffer.get_mut(..bytes.len()) {
            space.copy_from_slice(bytes);
            self.buffered = bytes.len();
            return Ok(());
        }
        self.handed_on += bytes.len() as u64;
        self.sink.put(bytes)
    }

    fn hand_on(&mut self) -> Result<(), Error> {
        self.handed_on += self.buffered as u64;
        let bytes = self.buffer.get(..self.buffered).unwrap_or_default();
        self.buffered = 0;
        self.sink.put(bytes)
    }

    /// Writes the rest of the buffer; returns the number of bytes written.
    pub(crate) fn finish(mut self) -> Result<u64, Error> {
        self.hand_on()?;
        Ok(self.handed_on)
    }
}

impl fmt::Debug for PayloadWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PayloadWriter")
            .field("layout", &self.layout)
            .field("position", &self.position())
            .finish_non_exhaustive()
    }
}
