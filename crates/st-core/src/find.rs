//! Finds one tensor of a file, without a table and without allocation: for systems with little memory.

use core::iter::FusedIterator;

use crate::error::{Error, ErrorKind};
use crate::grammar::{Entry, Scan, Visit, visit_header};
use crate::header::{Header, LENGTH_FIELD};
use crate::limits::{ReadOptions, Strictness};
use tensor_dtype::Dtype;

/// Finds a tensor in a file, in one pass over the header and with constant memory.
///
/// `None` if there is no tensor of this name. The whole header is read and every entry's size is checked
/// against its shape, so what this refuses, [`Header::from_bytes`] refuses too. What only the table can
/// tell is not checked: duplicates of other names and of metadata keys, and, where the entries are not
/// listed in file order, that no two tensors overlap.
///
/// # Errors
///
/// As [`Header::from_bytes`] with [`ReadOptions::STRICT`] but without its limits; errors do not name the
/// tensor. Only an error takes memory from the allocator, up to 512 bytes.
///
/// ```
/// let file = b"\x3c\0\0\0\0\0\0\0{\"w\":{\"dtype\":\"U8\",\"shape\":[2,2],\"data_offsets\":[0,4]}}     abcd";
/// let w = st_core::find(file, "w")?.expect("it is there");
/// assert!(w.dims().eq([2, 2]));
/// assert_eq!(w.data(), b"abcd");
/// assert!(st_core::find(file, "v")?.is_none());
/// # Ok::<(), st_core::Error>(())
/// ```
pub fn find<'data>(file: &'data [u8], name: &str) -> Result<Option<Found<'data>>, Error> {
    let file_len = file.len() as u64;
    let Some((first8, rest)) = file.split_first_chunk::<8>() else {
        return Err(ErrorKind::HeaderTooSmall { available: file_len }.into());
    };
    let header_len = Header::declared_len(*first8, file_len, &ReadOptions::STRICT)?;
    // No longer than the file, so it fits.
    let (text, data) = rest.split_at(header_len as usize);
    let text = core::str::from_utf8(text)
        .map_err(|error| Error::from(ErrorKind::InvalidUtf8).at(LENGTH_FIELD + error.valid_up_to() as u64))?;
    let mut finder = Finder { name, found: None, elements: Some(1), end: 0, total: 0, in_order: true };
    visit_header(text, Strictness::Strict, &mut finder).map_err(|error| error.shifted(LENGTH_FIELD))?;

    let described = if finder.in_order { finder.end } else { finder.total };
    if described != data.len() as u64 {
        let expected = described.saturating_add(LENGTH_FIELD + header_len);
        return Err(ErrorKind::IncompleteFile { expected, actual: file_len }.into());
    }
    let Some(entry) = finder.found else {
        return Ok(None);
    };
    let (begin, end) = (entry.begin, entry.end);
    let range = usize::try_from(begin).ok().zip(usize::try_from(end).ok());
    let Some(data) = range.and_then(|(begin, end)| data.get(begin..end)) else {
        let kind = ErrorKind::InvalidOffsets { begin, end, expected: 0 };
        return Err(Error::from(kind).at(LENGTH_FIELD + entry.at as u64));
    };
    Ok(Some(Found { dtype: entry.dtype, shape: entry.shape, data }))
}

struct Finder<'n, 'h> {
    name: &'n str,
    found: Option<Entry<'h>>,
    /// Product of the dimensions so far.
    elements: Option<u64>,
    end: u64,
    total: u64,
    in_order: bool,
}

impl<'h> Visit<'h> for Finder<'_, 'h> {
    fn shape_begins(&mut self) {
        self.elements = Some(1);
    }

    fn dim(&mut self, dim: u64, _at: usize) -> Scan<()> {
        self.elements = self.elements.and_then(|elements| elements.checked_mul(dim));
        Ok(())
    }

    fn tensor(&mut self, entry: Entry<'h>) -> Scan<()> {
        let fault = |kind: ErrorKind| kind.in_text(entry.at);
        let Entry { begin, end, .. } = entry;
        self.in_order &= begin == self.end;
        if end < begin {
            return Err(fault(ErrorKind::InvalidOffsets { begin, end, expected: self.end }));
        }
        let bits = self.elements.and_then(|elements| elements.checked_mul(entry.dtype.bits().into()));
        let bits = bits.ok_or_else(|| fault(ErrorKind::SizeOverflow))?;
        if !bits.is_multiple_of(8) {
            return Err(fault(ErrorKind::PartialByte { bits }));
        }
        if end - begin != bits / 8 {
            return Err(fault(ErrorKind::SizeMismatch { declared: end - begin, computed: bits / 8 }));
        }
        self.end = end;
        self.total = self.total.saturating_add(end - begin);
        if entry.name.is(self.name) {
            if self.found.is_some() {
                return Err(fault(ErrorKind::DuplicateTensor));
            }
            self.found = Some(entry);
        }
        Ok(())
    }
}

/// A tensor found by [`find()`].
#[derive(Clone, Copy, Debug)]
pub struct Found<'data> {
    dtype: Dtype,
    /// A JSON array of integers that was read before.
    shape: &'data str,
    data: &'data [u8],
}

impl<'data> Found<'data> {
    /// Type of the elements.
    #[must_use]
    pub const fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Dimensions, the slowest first.
    #[must_use]
    pub const fn dims(&self) -> Dims<'data> {
        Dims { rest: self.shape.as_bytes() }
    }

    /// The bytes: as many as type and dimensions need.
    #[must_use]
    pub const fn data(&self) -> &'data [u8] {
        self.data
    }
}

/// The dimensions of a [`Found`] tensor.
#[derive(Clone, Debug)]
pub struct Dims<'data> {
    rest: &'data [u8],
}

impl Iterator for Dims<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let start = self.rest.iter().position(u8::is_ascii_digit)?;
        let digits = &self.rest[start..];
        let len = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
        let (digits, rest) = digits.split_at(len);
        self.rest = rest;
        Some(digits.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0')))
    }
}

impl FusedIterator for Dims<'_> {}
