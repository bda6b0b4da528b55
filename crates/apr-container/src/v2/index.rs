//! Header, metadata and tensor index, owned and validated.

use alloc::borrow::Cow;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use located_error::Subject;

use crate::error::{Error, ErrorKind};
use crate::limits::ReadOptions;
use crate::v2;
use crate::v2::body::Body;
use crate::v2::flags::Flags;
use crate::v2::header::{Header, aligned};
use crate::v2::metadata::Metadata;
use crate::v2::sections::{Extent, Sections, extent};
use crate::v2::table::{Record, Table};
use crate::v2::view::TensorView;
use crate::v2::warning::Warning;
use tensor_dtype::AprType;

/// The part of a file before its tensors: header, metadata, and each tensor's name, type, shape and offset.
///
/// An `Index` exists only for a valid file: every tensor is within the file, has the length that its type and shape require, and a
/// unique name. In strict reading the parts and the tensors are also contiguous, without gaps or overlaps, each aligned to 64
/// bytes. The tensor data are not read, so that a file of any size can be described, marked as encrypted or not;
/// [`Container`](crate::v2::Container) gives access to them.
///
/// ```
/// use apr_container::ReadOptions;
/// use apr_container::v2::{AprType, Index, TensorView, WriteOptions, to_vec};
///
/// let view = TensorView::new("w", AprType::U8, &[3], b"abc")?;
/// let file = to_vec(&[view], &WriteOptions::default())?;
///
/// // A file larger than memory: only the part before the tensors is read.
/// let mut read = 0;
/// let index = Index::read(file.len() as u64, &ReadOptions::STRICT, |offset, bytes| {
///     read += bytes.len();
///     bytes.copy_from_slice(&file[offset as usize..][..bytes.len()]);
///     Ok(())
/// })?;
/// let w = index.tensor("w").expect("it is there");
/// assert_eq!(file[w.file_range().start as usize..][..3], *b"abc");
/// assert_eq!(read as u64, w.file_range().start);
/// # Ok::<(), apr_container::Error>(())
/// ```
#[derive(Clone)]
pub struct Index {
    header: Header,
    metadata: Metadata,
    table: Table,
    extent: Extent,
    file_len: u64,
    warnings: Vec<Warning>,
}

impl Index {
    /// Reads the index of a whole file in memory.
    ///
    /// # Errors
    ///
    /// As [`from_prefix`](Self::from_prefix).
    pub fn from_bytes(file: &[u8], options: &ReadOptions) -> Result<Self, Error> {
        Self::from_prefix(file, file.len() as u64, options)
    }

    /// The length of the prefix that [`from_prefix`](Self::from_prefix) needs, from the first 64 bytes of a file (all of a shorter
    /// file).
    ///
    /// # Errors
    ///
    /// Those of [`Header::from_bytes`]; [`ErrorKind::Limit`], [`v2::ErrorKind::Misplaced`], [`ErrorKind::Truncated`] for parts of
    /// invalid length or offset.
    pub fn prefix_len(first64: &[u8], file_len: u64, options: &ReadOptions) -> Result<u64, Error> {
        let header = Header::from_bytes(first64, options)?;
        Ok(Sections::new(&header, file_len, options)?.index.end)
    }

    /// Reads the beginning of a file that is `file_len` bytes long.
    ///
    /// # Errors
    ///
    /// Those of [`Header::from_bytes`]; [`v2::ErrorKind::ColumnMajor`], [`v2::ErrorKind::WholeCompressed`]; for the parts
    /// [`ErrorKind::Limit`], [`v2::ErrorKind::Misplaced`], [`ErrorKind::Truncated`] (also if `prefix` is too short); those of
    /// [`Metadata::from_json`]; for the tensors, with the name as subject, [`ErrorKind::InvalidUtf8`],
    /// [`v2::ErrorKind::DuplicateTensor`], [`v2::ErrorKind::IndexOrder`], [`v2::ErrorKind::SizeMismatch`], [`v2::ErrorKind::SizeOverflow`],
    /// [`v2::ErrorKind::Misaligned`], [`ErrorKind::Truncated`].
    ///
    /// Strict also: [`v2::ErrorKind::NameTooLong`], [`v2::ErrorKind::TooManyDimensions`], [`v2::ErrorKind::UnknownDtype`],
    /// [`v2::ErrorKind::Misplaced`] for gaps and overlaps, [`v2::ErrorKind::Padding`], [`v2::ErrorKind::TrailingBytes`].
    pub fn from_prefix(prefix: &[u8], file_len: u64, options: &ReadOptions) -> Result<Self, Error> {
        Self::parse(file_len, options, &mut |offset, len| {
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            let part = prefix.get(start..).and_then(|rest| rest.get(..len));
            let (needed, available) = (offset.saturating_add(len as u64), prefix.len() as u64);
            part.map(Cow::Borrowed).ok_or(ErrorKind::Truncated { part: "prefix", needed, available }.into())
        })
    }

    /// Reads a file of `file_len` bytes through `read_at`, which fills a buffer with the bytes at an offset. Nothing after
    /// the tensor index is read.
    ///
    /// # Errors
    ///
    /// Those of `read_at` and of [`from_prefix`](Self::from_prefix), [`ErrorKind::OutOfMemory`].
    pub fn read(
        file_len: u64,
        options: &ReadOptions,
        mut read_at: impl FnMut(u64, &mut [u8]) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        Self::parse(file_len, options, &mut |offset, len| {
            let mut bytes = vec![];
            bytes.try_reserve_exact(len).map_err(|_| ErrorKind::OutOfMemory { bytes: len as u64 })?;
            bytes.resize(len, 0);
            read_at(offset, &mut bytes)?;
            Ok(Cow::Owned(bytes))
        })
    }

    fn parse(file_len: u64, options: &ReadOptions, fetch: &mut Fetch<'_, '_>) -> Result<Self, Error> {
        let header_len = file_len.min(Header::LEN as u64) as usize;
        let header = Header::from_bytes(&fetch(0, header_len)?, options)?;
        Self::parse_after(header, file_len, options, fetch)
    }

    /// Reads a decompressed body after its header.
    pub(crate) fn after_header(header: Header, body: Body<'_>, options: &ReadOptions) -> Result<Self, Error> {
        let fetch = &mut |offset: u64, len: usize| {
            let part = body.get(offset..offset.saturating_add(len as u64));
            let (needed, available) = (offset.saturating_add(len as u64), body.file_len());
            part.map(Cow::Borrowed).ok_or(ErrorKind::Truncated { part: "block", needed, available }.into())
        };
        let mut index = Self::parse_after(header, body.file_len(), options, fetch)?;
        for warning in &mut index.warnings {
            if let Warning::NotCompressed { algorithm } = *warning {
                *warning = Warning::Inflated { algorithm };
            }
        }
        Ok(index)
    }

    fn parse_after(
        header: Header,
        file_len: u64,
        options: &ReadOptions,
        fetch: &mut Fetch<'_, '_>,
    ) -> Result<Self, Error> {
        if header.flags.intersects(Flags::COLUMN_MAJOR) {
            return Err(v2::ErrorKind::ColumnMajor.at(6));
        }
        match (Self::parse_parts(header, file_len, options, fetch), header.algorithm()) {
            // Uncompressed metadata begin with `{` there; no compressed block does.
            (Err(_), Some(algorithm))
                if fetch(Header::LEN as u64, 1).is_ok_and(|byte| byte.first() != Some(&b'{')) =>
            {
                Err(v2::ErrorKind::WholeCompressed { algorithm }.at(Header::LEN as u64))
            }
            (result, _) => result,
        }
    }

    fn parse_parts(
        header: Header,
        file_len: u64,
        options: &ReadOptions,
        fetch: &mut Fetch<'_, '_>,
    ) -> Result<Self, Error> {
        let sections = Sections::new(&header, file_len, options)?;
        let part = |range: &Range<u64>| {
            let len = usize::try_from(range.end - range.start);
            len.map_err(|_| Error::from(ErrorKind::OutOfMemory { bytes: range.end - range.start }))
        };
        let bytes = fetch(sections.metadata.start, part(&sections.metadata)?)?;
        let (text, padding) = bytes.split_at(bytes.len().min(header.metadata_len as usize));
        let begin = sections.metadata.start;
        let metadata = Metadata::from_json(text, options).map_err(|error| error.shifted(begin))?;
        check_padding(padding, begin + text.len() as u64)?;
        drop(bytes);

        let begin = sections.index.start;
        let bytes = fetch(begin, part(&sections.index)?)?;
        let (table, used) =
            Table::read(&bytes, header.n_tensors, options).map_err(|error| error.shifted(begin))?;
        if options.is_strict() {
            let (found, expected) = (header.data_offset, aligned(begin + used as u64).unwrap_or(u64::MAX));
            if found != expected {
                return Err(v2::ErrorKind::Misplaced { part: "tensor data", found, expected }.at(32));
            }
            check_padding(bytes.get(used..).unwrap_or_default(), begin + used as u64)?;
            // A later minor version may define more types.
            let unknown = table.records.iter().find(|record| record.dtype.known().is_none());
            if let Some(record) = unknown.filter(|_| header.version <= Header::VERSION) {
                let kind = v2::ErrorKind::UnknownDtype { found: record.stored_dtype };
                return Err(Error::from(kind).about(Subject::tensor(table.name(record))));
            }
        }
        let extent = extent(&header, &table, file_len, options)?;
        let warnings = warnings(&header, &table, extent);
        Ok(Self { header, metadata, table, extent, file_len, warnings })
    }

    /// The header.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// The metadata.
    #[must_use]
    pub const fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Number of tensors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.records.len()
    }

    /// Whether there is no tensor.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table.records.is_empty()
    }

    /// The tensor of this name, found in logarithmic time.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<TensorInfo<'_>> {
        self.get(self.table.find(name)?)
    }

    /// The tensor at this place in the order of the names.
    #[must_use]
    pub fn get(&self, idx: usize) -> Option<TensorInfo<'_>> {
        let record = self.table.records.get(idx)?;
        Some(TensorInfo { index: self, record })
    }

    /// The tensors in the order of their names.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter { index: self, records: self.table.records.iter() }
    }

    /// Where the tensor data begin, in bytes from the start of the file.
    #[must_use]
    pub const fn data_start(&self) -> u64 {
        self.header.data_offset
    }

    /// Where the padding after the last tensor ends; a footer begins here.
    #[must_use]
    pub const fn data_end(&self) -> u64 {
        self.extent.padded_end
    }

    /// Length of the file in bytes, as given by the caller.
    #[must_use]
    pub const fn file_len(&self) -> u64 {
        self.file_len
    }

    /// Warnings about the file, except for its footer, which was not read.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }
}

/// Gives the bytes at an offset.
type Fetch<'b, 'f> = dyn FnMut(u64, usize) -> Result<Cow<'b, [u8]>, Error> + 'f;

fn check_padding(padding: &[u8], begin: u64) -> Result<(), Error> {
    match padding.iter().position(|byte| *byte != 0) {
        Some(at) => Err(v2::ErrorKind::Padding.at(begin + at as u64)),
        None => Ok(()),
    }
}

fn warnings(header: &Header, table: &Table, extent: Extent) -> Vec<Warning> {
    let mut found = Vec::new();
    let mut warn = |is_so: bool, warning: Warning| {
        if is_so {
            found.push(warning);
        }
    };
    warn(header.version != Header::VERSION, Warning::OtherVersion(header.version));
    warn(header.has_reserved(), Warning::ReservedInUse);
    if let Some(algorithm) = header.algorithm() {
        warn(true, Warning::NotCompressed { algorithm });
    }
    warn(header.flags.intersects(Flags::ENCRYPTED), Warning::Encrypted);
    warn(header.flags.intersects(Flags::SIGNED), Warning::SignatureUnchecked);
    warn(table.records.iter().any(|record| record.dtype.known().is_none()), Warning::UnknownDtypes);
    warn(extent.overlaps, Warning::OverlappingTensors);
    found
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index")
            .field("header", &self.header)
            .field("metadata", &self.metadata)
            .field("tensors", &self.iter())
            .field("file_len", &self.file_len)
            .field("warnings", &self.warnings)
            .finish()
    }
}

impl<'i> IntoIterator for &'i Index {
    type Item = TensorInfo<'i>;
    type IntoIter = Iter<'i>;

    fn into_iter(self) -> Iter<'i> {
        self.iter()
    }
}

/// The entry of one tensor in the index.
#[derive(Clone, Copy)]
pub struct TensorInfo<'i> {
    index: &'i Index,
    record: &'i Record,
}

impl<'i> TensorInfo<'i> {
    /// Name.
    #[must_use]
    pub fn name(&self) -> &'i str {
        self.index.table.name(self.record)
    }

    /// Type of the elements; a former number appears as today's.
    #[must_use]
    pub const fn dtype(&self) -> AprType {
        self.record.dtype
    }

    /// The number of the type as the file has it.
    #[must_use]
    pub const fn stored_dtype(&self) -> u8 {
        self.record.stored_dtype
    }

    /// Dimensions, the slowest first; empty for a scalar.
    #[must_use]
    pub fn shape(&self) -> &'i [u64] {
        self.index.table.shape(self.record)
    }

    /// Size in bytes, without padding.
    #[must_use]
    pub const fn byte_len(&self) -> u64 {
        self.record.len
    }

    /// Where its bytes are, from the start of the data section.
    #[must_use]
    pub const fn data_offset(&self) -> u64 {
        self.record.offset
    }

    /// Where its bytes are, from the start of the file.
    #[must_use]
    pub const fn file_range(&self) -> Range<u64> {
        let start = self.index.header.data_offset + self.record.offset;
        start..start + self.record.len
    }

    /// The tensor in the whole file; `None` if that is another file than the one described.
    #[must_use]
    pub fn view<'a>(&self, file: &'a [u8]) -> Option<TensorView<'a>>
    where
        'i: 'a,
    {
        self.view_in(Body::whole(file))
    }

    pub(crate) fn view_in<'a>(&self, body: Body<'a>) -> Option<TensorView<'a>>
    where
        'i: 'a,
    {
        let data = body.get(self.file_range())?;
        Some(TensorView::proven(self.name(), self.dtype(), self.shape(), data))
    }
}

impl fmt::Debug for TensorInfo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TensorInfo")
            .field("name", &self.name())
            .field("dtype", &self.dtype())
            .field("shape", &self.shape())
            .field("data_offset", &self.data_offset())
            .field("byte_len", &self.byte_len())
            .finish()
    }
}

/// The tensors of an [`Index`] in the order of their names.
#[derive(Clone)]
pub struct Iter<'i> {
    index: &'i Index,
    records: core::slice::Iter<'i, Record>,
}

impl<'i> Iterator for Iter<'i> {
    type Item = TensorInfo<'i>;

    fn next(&mut self) -> Option<TensorInfo<'i>> {
        let record = self.records.next()?;
        Some(TensorInfo { index: self.index, record })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.records.size_hint()
    }
}

impl ExactSizeIterator for Iter<'_> {}

impl fmt::Debug for Iter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}
