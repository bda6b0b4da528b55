//! Decoding of payloads.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::list::{Decoded, List, Pieces};
use super::source::{Source, collect};
use crate::codec::payload_layout::PayloadLayout;
use crate::error::{Error, ErrorKind};
use crate::limits::{Limits, ReadOptions, Strictness};
use crate::model_type::ModelType;

/// What is known about a payload besides its bytes.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) layout: PayloadLayout,
    pub(crate) model_type: ModelType,
    pub(crate) model_name: Option<String>,
    pub(crate) options: ReadOptions,
    /// Maximum memory of the values.
    pub(crate) memory: u64,
}

impl Context {
    /// For a payload that takes `stored_len` bytes in its file.
    pub(crate) const fn new(
        layout: PayloadLayout,
        model_type: ModelType,
        options: ReadOptions,
        stored_len: u64,
    ) -> Self {
        let memory = options.limits.model_memory.allowed(stored_len);
        Self { layout, model_type, model_name: None, options, memory }
    }
}

/// Reads a payload's values in order, and refuses counts that its bytes cannot hold.
///
/// A list never gets memory for more elements than the remaining bytes can hold.
pub struct PayloadReader<'r> {
    source: Input<'r>,
    context: &'r Context,
    /// Bytes read.
    offset: u64,
    /// Maximum length of the payload.
    end: u64,
    /// Memory charged so far.
    charged: u64,
}

/// The source of the bytes. Bytes in memory are read without a call.
enum Input<'r> {
    Memory(&'r [u8]),
    Source(&'r mut dyn Source),
}

impl Source for Input<'_> {
    fn fill(&mut self) -> Result<&[u8], Error> {
        match self {
            Self::Memory(rest) => Ok(rest),
            Self::Source(source) => source.fill(),
        }
    }

    fn consume(&mut self, len: usize) {
        match self {
            Self::Memory(rest) => *rest = rest.get(len..).unwrap_or_default(),
            Self::Source(source) => source.consume(len),
        }
    }
}

macro_rules! scalars {
    ($($name:ident)*) => {
        $(
        #[doc = concat!("A `", stringify!($name), "`, little-endian; all bits of a float are kept.")]
        ///
        /// # Errors
        ///
        /// [`ErrorKind::PayloadEnd`], and errors of the source.
        #[inline]
        pub fn $name(&mut self) -> Result<$name, Error> {
            Ok($name::from_le_bytes(self.array()?))
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
        /// [`ErrorKind::Count`], [`ErrorKind::PayloadEnd`], [`ErrorKind::OutOfMemory`], and errors of the source.
        pub fn $name(&mut self) -> Result<Vec<$element>, Error> {
            let count = self.count(size_of::<$element>() as u64)?;
            self.$raw(count)
        }

        #[doc = concat!("`count` values of `", stringify!($element), "` one after the other.")]
        ///
        /// # Errors
        ///
        /// [`ErrorKind::Count`], [`ErrorKind::PayloadEnd`], [`ErrorKind::OutOfMemory`], and errors of the source.
        pub fn $raw(&mut self, count: usize) -> Result<Vec<$element>, Error> {
            self.numbers(count, |bytes| <$element>::from_le_bytes(*bytes))
        })*
    };
}

impl<'r> PayloadReader<'r> {
    /// Reads up to `len` bytes of `source`.
    pub(crate) fn new(source: &'r mut dyn Source, len: u64, context: &'r Context) -> Self {
        let source = match source.in_memory().is_some() {
            true => Input::Memory(source.in_memory().unwrap_or_default()),
            false => Input::Source(source),
        };
        Self { source, context, offset: 0, end: len, charged: 0 }
    }

    /// The layout to read.
    #[must_use]
    pub const fn layout(&self) -> PayloadLayout {
        self.context.layout
    }

    /// The container's model type.
    #[must_use]
    pub const fn model_type(&self) -> ModelType {
        self.context.model_type
    }

    /// The model's name within its type, `custom["apr.model"]` of the metadata: a hint, not validated.
    #[must_use]
    pub fn model_name(&self) -> Option<&str> {
        self.context.model_name.as_deref()
    }

    /// Which files are accepted.
    #[must_use]
    pub const fn strictness(&self) -> Strictness {
        self.context.options.strictness
    }

    /// The resource limits.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.context.options.limits
    }

    /// Bytes read so far.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes left, at most: compressed payloads may end earlier.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.end - self.offset
    }

    scalars! { u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f32 f64 }

    /// A Boolean value.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidBool`] for a byte that is neither 0 nor 1; as [`array`](Self::array).
    pub fn bool(&mut self) -> Result<bool, Error> {
        let at = self.offset;
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            found => Err(ErrorKind::InvalidBool { found }.at(at)),
        }
    }

    /// The tag of an optional value: whether one follows.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidOption`] for a byte that is neither 0 nor 1; as [`array`](Self::array).
    pub fn option(&mut self) -> Result<bool, Error> {
        let at = self.offset;
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            found => Err(ErrorKind::InvalidOption { found }.at(at)),
        }
    }

    /// A variant index below `n_variants`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidVariant`]; as [`array`](Self::array).
    pub fn variant(&mut self, n_variants: u32) -> Result<u32, Error> {
        let at = self.offset;
        match self.u32()? {
            found if found < n_variants => Ok(found),
            found => Err(ErrorKind::InvalidVariant { found, n_variants }.at(at)),
        }
    }

    /// A size.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidValue`] if this machine cannot address it; as [`array`](Self::array).
    pub fn usize(&mut self) -> Result<usize, Error> {
        let at = self.offset;
        let value = self.u64()?;
        usize::try_from(value)
            .map_err(|_| ErrorKind::InvalidValue { what: "size beyond this machine's addresses" }.at(at))
    }

    /// The length of a list whose elements take at least `min_element_len` bytes each (at least one), proven to fit
    /// the bytes left.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Count`]; as [`array`](Self::array).
    pub fn count(&mut self, min_element_len: u64) -> Result<usize, Error> {
        let at = self.offset;
        let count = self.u64()?;
        let available = self.remaining();
        let fits = count <= available / min_element_len.max(1);
        match usize::try_from(count) {
            Ok(count) if fits => Ok(count),
            _ => Err(ErrorKind::Count { count, available }.at(at)),
        }
    }

    /// A list of structs that take at least `min_element_len` bytes each: its length, then each element as `read` decodes it.
    /// Memory for all of them is reserved before the first is read; memory that they point to is not charged.
    ///
    /// # Errors
    ///
    /// As [`count`](Self::count) and [`charge`](Self::charge), [`ErrorKind::OutOfMemory`], and what `read` refuses.
    pub fn list<T>(
        &mut self,
        min_element_len: u64,
        mut read: impl FnMut(&mut Self) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let mut elements = Vec::new();
        let count = self.begin_list(min_element_len, &mut elements)?;
        for _ in 0..count {
            elements.push(read(self)?);
        }
        Ok(elements)
    }

    /// Counts memory that values take beside the lists of this reader: structures that grow with the payload.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ModelMemory`].
    pub fn charge(&mut self, bytes: u64) -> Result<(), Error> {
        let (needed, allowed) = (self.charged.saturating_add(bytes), self.context.memory);
        if needed > allowed {
            return Err(ErrorKind::ModelMemory { needed, allowed }.at(self.offset));
        }
        self.charged = needed;
        Ok(())
    }

    /// Decodes bytes that were read from here as a whole payload in the same layout. Its memory is charged here as well.
    ///
    /// # Errors
    ///
    /// What `decode` refuses; [`ErrorKind::PayloadTrailing`].
    pub fn decode_part<M>(
        &mut self,
        bytes: &[u8],
        decode: impl FnOnce(&mut PayloadReader<'_>) -> Result<M, Error>,
    ) -> Result<M, Error> {
        let (offset, end, charged) = (0, bytes.len() as u64, self.charged);
        let mut part =
            PayloadReader { source: Input::Memory(bytes), context: self.context, offset, end, charged };
        let model = decode(&mut part)?;
        let left_over = part.remaining();
        match left_over {
            0 => Ok(model),
            count => Err(ErrorKind::PayloadTrailing { count }.at(part.offset)),
        }
    }

    /// The length of a list, for which memory is reserved.
    fn begin_list(&mut self, min_element_len: u64, list: &mut dyn List) -> Result<usize, Error> {
        let count = self.count(min_element_len)?;
        self.reserve_list(count, list)?;
        Ok(count)
    }

    fn reserve_list(&mut self, count: usize, list: &mut dyn List) -> Result<(), Error> {
        let bytes = (count as u64).saturating_mul(list.element_size() as u64);
        self.charge(bytes)?;
        if list.reserve(count) { Ok(()) } else { Err(ErrorKind::OutOfMemory { bytes }.at(self.offset)) }
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PayloadEnd`], and errors of the source.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        if let Input::Memory(rest) = &mut self.source
            && N as u64 <= self.end - self.offset
            && let Some((bytes, behind)) = rest.split_first_chunk()
        {
            *rest = behind;
            self.offset += N as u64;
            return Ok(*bytes);
        }
        self.array_from_source()
    }

    fn array_from_source<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let chunk = self.source.fill()?;
        if let Some(bytes) = chunk.first_chunk::<N>()
            && N as u64 <= self.end - self.offset
        {
            let bytes = *bytes;
            self.source.consume(N);
            self.offset += N as u64;
            return Ok(bytes);
        }
        let mut bytes = [0; N];
        self.fill_across_chunks(&mut bytes)?;
        Ok(bytes)
    }

    /// A string: its length in bytes, then UTF-8.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidUtf8`]; as [`bytes`](Self::bytes).
    pub fn string(&mut self) -> Result<String, Error> {
        let at = self.offset;
        String::from_utf8(self.bytes()?).map_err(|_| ErrorKind::InvalidUtf8.at(at))
    }

    /// Bytes: their number, then the bytes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Count`], [`ErrorKind::PayloadEnd`], [`ErrorKind::OutOfMemory`], and errors of the source.
    pub fn bytes(&mut self) -> Result<Vec<u8>, Error> {
        let count = self.count(1)?;
        self.bytes_raw(count)
    }

    /// A list of sizes: its length, then eight bytes each.
    ///
    /// # Errors
    ///
    /// As [`usize`](Self::usize) and [`bytes`](Self::bytes).
    pub fn usizes(&mut self) -> Result<Vec<usize>, Error> {
        let at = self.offset;
        let count = self.count(8)?;
        let mut beyond = false;
        let values = self.numbers(count, |bytes| {
            usize::try_from(u64::from_le_bytes(*bytes)).unwrap_or_else(|_| {
                beyond = true;
                0
            })
        })?;
        match beyond {
            false => Ok(values),
            true => Err(ErrorKind::InvalidValue { what: "size beyond this machine's addresses" }.at(at)),
        }
    }

    lists! {
        f32s, f32s_raw, f32;
        f64s, f64s_raw, f64;
        i32s, i32s_raw, i32;
        u32s, u32s_raw, u32;
        u64s, u64s_raw, u64;
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    ///
    /// As [`bytes`](Self::bytes).
    pub fn bytes_raw(&mut self, count: usize) -> Result<Vec<u8>, Error> {
        self.numbers(count, |bytes: &[u8; 1]| bytes[0])
    }

    /// All remaining bytes.
    ///
    /// # Errors
    ///
    /// As [`charge`](Self::charge), [`ErrorKind::OutOfMemory`], and errors of the source.
    pub fn rest(&mut self) -> Result<Vec<u8>, Error> {
        if self.context.options.is_strict() {
            // The number of remaining bytes is known.
            let left = self.remaining();
            self.charge(left)?;
            let bytes = collect(&mut self.source, left)?;
            self.offset += bytes.len() as u64;
            return Ok(bytes);
        }
        let mut bytes = Vec::new();
        loop {
            let taken = self.source.fill()?.len();
            if taken == 0 {
                return Ok(bytes);
            }
            self.reserve(&mut bytes, taken)?;
            bytes.extend_from_slice(self.source.fill()?);
            self.source.consume(taken);
            self.offset += taken as u64;
        }
    }

    /// Reserves memory for `count` more bytes. The capacity doubles; while a block of memory moves, it exists twice.
    fn reserve(&mut self, bytes: &mut Vec<u8>, count: usize) -> Result<(), Error> {
        let (len, old) = (bytes.len(), bytes.capacity());
        if old - len >= count {
            return Ok(());
        }
        let new = old.saturating_mul(2).max(len.saturating_add(count));
        self.charge(new as u64)?;
        let made = bytes.try_reserve_exact(new - len);
        self.charged -= old as u64;
        made.map_err(|_| ErrorKind::OutOfMemory { bytes: new as u64 }.at(self.offset))
    }

    /// Skips `count` bytes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PayloadEnd`], and errors of the source.
    pub fn skip(&mut self, count: u64) -> Result<(), Error> {
        self.prove(count)?;
        let mut left = count;
        while left > 0 {
            let chunk_len = self.source.fill()?.len();
            let step = usize::try_from(left).unwrap_or(usize::MAX).min(chunk_len);
            if step == 0 {
                return Err(ErrorKind::PayloadEnd { needed: left, available: 0 }.at(self.offset));
            }
            self.source.consume(step);
            self.offset += step as u64;
            left -= step as u64;
        }
        Ok(())
    }

    /// The error for a value, just read, that contradicts the layout.
    #[must_use]
    pub fn invalid(&self, what: &'static str) -> Error {
        ErrorKind::InvalidValue { what }.at(self.offset)
    }

    /// `count` elements of `N` bytes each.
    fn numbers<T, const N: usize>(
        &mut self,
        count: usize,
        from_bytes: impl FnMut(&[u8; N]) -> T,
    ) -> Result<Vec<T>, Error> {
        let mut numbers = Decoded::<_, _, N> { values: Vec::new(), from_bytes };
        self.pieces(count, N, &mut numbers)?;
        Ok(numbers.values)
    }

    /// Appends the next `count` elements of `len` bytes each, at most 8, to a list, as many at a time as are contiguous.
    fn pieces(&mut self, count: usize, len: usize, list: &mut dyn Pieces) -> Result<(), Error> {
        let available = self.remaining();
        if count as u64 > available / len as u64 {
            return Err(ErrorKind::Count { count: count as u64, available }.at(self.offset));
        }
        self.reserve_list(count, list.as_list())?;
        let mut left = count;
        while left > 0 {
            let chunk = self.source.fill()?;
            let whole = (chunk.len() / len).min(left);
            if whole == 0 {
                // An element that spans two chunks, or the end.
                let mut bytes = [0; 8];
                let bytes = bytes.get_mut(..len).unwrap_or_default();
                self.fill_across_chunks(bytes)?;
                list.take(bytes);
                left -= 1;
                continue;
            }
            let taken = whole * len;
            list.take(chunk.get(..taken).unwrap_or_default());
            self.source.consume(taken);
            self.offset += taken as u64;
            left -= whole;
        }
        Ok(())
    }

    fn fill_across_chunks(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        self.prove(bytes.len() as u64)?;
        let (at, mut filled) = (self.offset, 0);
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let chunk = self.source.fill()?;
            let step = chunk.len().min(rest.len());
            if step == 0 {
                let needed = (filled + rest.len()) as u64;
                return Err(ErrorKind::PayloadEnd { needed, available: filled as u64 }.at(at));
            }
            let (Some(rest), Some(chunk)) = (rest.get_mut(..step), chunk.get(..step)) else { break };
            rest.copy_from_slice(chunk);
            self.source.consume(step);
            self.offset += step as u64;
            filled += step;
        }
        Ok(())
    }

    fn prove(&self, needed: u64) -> Result<(), Error> {
        let available = self.remaining();
        match needed <= available {
            true => Ok(()),
            false => Err(ErrorKind::PayloadEnd { needed, available }.at(self.offset)),
        }
    }

    /// Checks that no bytes are left over (strict), or skips them. Returns the length of the payload.
    pub(crate) fn finish(&mut self) -> Result<u64, Error> {
        let read = self.offset;
        let mut left_over = 0;
        loop {
            let len = self.source.fill()?.len();
            if len == 0 {
                break;
            }
            self.source.consume(len);
            left_over += len as u64;
        }
        match left_over > 0 && self.context.options.is_strict() {
            true => Err(ErrorKind::PayloadTrailing { count: left_over }.at(read)),
            false => Ok(read + left_over),
        }
    }
}

impl fmt::Debug for PayloadReader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PayloadReader")
            .field("context", self.context)
            .field("offset", &self.offset)
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}
