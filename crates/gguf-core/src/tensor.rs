//! An entry of the table of tensors.

use alloc::vec::Vec;
use core::fmt;
use core::iter::{FusedIterator, Rev};
use core::ops::Range;

use tensor_dtype::{Dtype, GgmlType};

use crate::cursor::{Cursor, Form, Stop};
use crate::error::{Error, ErrorKind};
use crate::options::{ReadOptions, Strictness};
use crate::value::Text;

/// Most dimensions of a tensor in llama.cpp.
pub(crate) const MAX_RANK: usize = 4;
/// Longest tensor name in llama.cpp.
pub(crate) const MAX_NAME: usize = 63;

/// A tensor: name, type, dimensions and offset.
#[derive(Clone, Copy, PartialEq)]
pub struct TensorInfo<'data> {
    name: Text<'data>,
    dims: Dims<'data>,
    dtype: Dtype,
    /// From the start of the data section.
    offset: u64,
    byte_len: u64,
    data_start: u64,
    info_offset: u64,
}

impl<'data> TensorInfo<'data> {
    /// Its name. Two tensors of a file have different names.
    #[must_use]
    pub const fn name(&self) -> Text<'data> {
        self.name
    }

    /// Data type of its elements.
    #[must_use]
    pub const fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Identifier of the data type in GGUF files.
    #[must_use]
    pub const fn ggml_type(&self) -> GgmlType {
        match self.dtype.ggml_type() {
            Some(number) => number,
            // Types of tensors read from files have one.
            None => GgmlType(u32::MAX),
        }
    }

    /// Dimensions as the file has them, the fastest first: `[columns, rows]` of a matrix.
    #[must_use]
    pub const fn dims(&self) -> Dims<'data> {
        self.dims
    }

    /// Dimensions as safetensors and `NumPy` have them, the slowest first: `[rows, columns]` of a matrix.
    pub fn shape(&self) -> Rev<Dims<'data>> {
        self.dims.rev()
    }

    /// Elements of a row: the fastest dimension; 1 for a scalar.
    #[must_use]
    pub fn row_len(&self) -> u64 {
        let mut dims = self.dims;
        dims.next().unwrap_or(1)
    }

    /// Number of elements.
    #[must_use]
    pub fn element_count(&self) -> u64 {
        let mut dims = self.dims;
        if dims.any(|dim| dim == 0) { 0 } else { self.dims.product() }
    }

    /// Begin of the data, from the start of the data section.
    #[must_use]
    pub const fn data_offset(&self) -> u64 {
        self.offset
    }

    /// Size of the data without padding.
    #[must_use]
    pub const fn byte_len(&self) -> u64 {
        self.byte_len
    }

    /// Byte range of the data in the file.
    #[must_use]
    pub const fn file_range(&self) -> Range<u64> {
        // No overflow: proven when the table was read.
        let begin = self.data_start + self.offset;
        begin..begin + self.byte_len
    }

    /// Where the row of the table begins in the file.
    #[must_use]
    pub const fn info_offset(&self) -> u64 {
        self.info_offset
    }

    /// Reads a row. Places are checked when all rows are there.
    pub(crate) fn read(cursor: &mut Cursor<'data>, options: &ReadOptions) -> Result<Self, Stop> {
        let info_offset = cursor.offset();
        let strict = options.strictness == Strictness::Strict;
        let name = cursor.text(options.limits.string_bytes)?;
        let about = |stop: Stop| stop.map(|error| error.of_tensor(name));
        let max = if strict { MAX_NAME as u64 } else { options.limits.name_bytes };
        if name.len() as u64 > max {
            let kind = ErrorKind::NameLength { len: name.len() as u64, max };
            return Err(Error::from(kind).at(info_offset).of_tensor(name).into());
        }
        let offset = cursor.offset();
        let n_dims = cursor.u32().map_err(about)?;
        let max = if strict { MAX_RANK as u32 } else { options.limits.rank };
        if n_dims > max {
            let kind = ErrorKind::Rank { n_dims: n_dims.into(), max: max.into() };
            return Err(Error::from(kind).at(offset).of_tensor(name).into());
        }
        let offset = cursor.offset();
        let dims_len = u64::from(n_dims) * cursor.form.len_bytes() as u64;
        let dims = Dims { bytes: cursor.take(dims_len).map_err(about)?, form: cursor.form };
        let refused = |error: Error| Stop::from(error.at(offset).of_tensor(name));
        let n_rows = dims.check().map_err(refused)?;

        let offset = cursor.offset();
        let id = GgmlType(cursor.u32().map_err(about)?);
        let refused = |kind: ErrorKind| Stop::from(Error::from(kind).at(offset).of_tensor(name));
        let dtype = id.known().ok_or_else(|| refused(ErrorKind::of_unknown_type(id)))?;
        let row_len = { dims }.next().unwrap_or(1);
        let byte_len = dtype.byte_len_of_rows(row_len, n_rows);
        let byte_len = byte_len.map_err(|error| refused(ErrorKind::of_size(dtype, error)))?;
        let offset = cursor.u64().map_err(about)?;
        Ok(Self { name: Text::new(name), dims, dtype, offset, byte_len, data_start: 0, info_offset })
    }

    /// Places the tensor after the header. Returns its end, including padding, from the start of the data section.
    pub(crate) fn place(
        &mut self,
        data_start: u64,
        expected: u64,
        alignment: u32,
        strictness: Strictness,
    ) -> Result<u64, Error> {
        let refused =
            |kind: ErrorKind| Error::from(kind).at(self.info_offset).of_tensor(self.name.as_bytes());
        if strictness == Strictness::Strict && self.offset != expected {
            return Err(refused(ErrorKind::Offset { found: self.offset, expected }));
        }
        let padded = self.byte_len.checked_next_multiple_of(alignment.into());
        let end = padded.and_then(|padded| self.offset.checked_add(padded));
        let end = end.filter(|end| data_start.checked_add(*end).is_some());
        let end = end.ok_or_else(|| refused(ErrorKind::SizeOverflow))?;
        self.data_start = data_start;
        Ok(end)
    }
}

impl fmt::Debug for TensorInfo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TensorInfo")
            .field("name", &self.name)
            .field("dtype", &self.dtype)
            .field("shape", &self.shape().collect::<Vec<_>>())
            .field("file_range", &self.file_range())
            .finish()
    }
}

/// Dimensions of a tensor, the fastest first.
#[derive(Clone, Copy)]
pub struct Dims<'data> {
    bytes: &'data [u8],
    form: Form,
}

impl Dims<'_> {
    /// Checks that dimensions and elements fit 63 bits, by llama.cpp's rule; returns the number of rows.
    fn check(self) -> Result<u64, Error> {
        const MAX: u64 = i64::MAX as u64;
        if let Some(dim) = { self }.find(|dim| *dim > MAX) {
            return Err(ErrorKind::Dimension { dim }.into());
        }
        if { self }.any(|dim| dim == 0) {
            return Ok(0);
        }
        let mut dims = self;
        let mut count = dims.next().unwrap_or(1);
        let mut n_rows = 1u64;
        for dim in dims {
            if MAX / dim <= count {
                return Err(ErrorKind::TooManyElements.into());
            }
            // Both are below 2^63, as just checked.
            count *= dim;
            n_rows *= dim;
        }
        Ok(n_rows)
    }
}

impl Iterator for Dims<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let (first, rest) = self.bytes.split_at_checked(self.form.len_bytes())?;
        self.bytes = rest;
        Some(self.form.number(first))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.bytes.len() / self.form.len_bytes();
        (len, Some(len))
    }
}

impl DoubleEndedIterator for Dims<'_> {
    fn next_back(&mut self) -> Option<u64> {
        let at = self.bytes.len().checked_sub(self.form.len_bytes())?;
        let (rest, last) = self.bytes.split_at_checked(at)?;
        self.bytes = rest;
        Some(self.form.number(last))
    }
}

impl ExactSizeIterator for Dims<'_> {}
impl FusedIterator for Dims<'_> {}

impl PartialEq for Dims<'_> {
    fn eq(&self, other: &Self) -> bool {
        Iterator::eq(*self, *other)
    }
}

impl fmt::Debug for Dims<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(*self).finish()
    }
}
