//! Positioned reads without mapping: a file that shrinks causes an error, not a signal.

use alloc::sync::Arc;
use core::ops::Range;
use std::path::Path;

use read_at::{AnySource, FileSource, ReadAt as _};
use st_core::{Header, ReadOptions, SlicePlan, TensorInfo};

use crate::arena::{Arena, LoadedSafeTensors};
use crate::error::{Error, ErrorKind, InFile, not_found};
use crate::gather::Windows;
use crate::map::{Mapping, PrivateMapping};
use crate::positioned::PositionedFile;

/// An open safetensors file: the header in memory, the tensors on disk.
///
/// Every read names its offset, so threads can share one value. Nothing is ever mapped unless
/// [`map`](Self::map) is called: a file that shrinks, or a network file system that fails, gives an error.
///
/// # Examples
///
/// ```
/// use st_core::{Bounds, Dtype, Index, SlicePlan, TensorView, WriteOptions};
/// use st_mmap::{Arena, SafeTensorsFile};
///
/// # let path = std::env::temp_dir().join(format!("st-mmap-doc-file-{}", std::process::id()));
/// let data: Vec<u8> = (0..24).collect();
/// st_mmap::save(&path, &[("w", TensorView::new(Dtype::U8, &[4, 6], &data)?)], &WriteOptions::default())?;
///
/// let file = SafeTensorsFile::open(&path)?; // Reads the header only.
/// let mut whole = [0; 24];
/// file.read_tensor("w", &mut whole)?;
/// assert_eq!(whole, *data);
///
/// // The second column.
/// let info = file.header().tensor("w").expect("saved above");
/// let plan = SlicePlan::new(info.dtype(), info.shape(), &[Index::Ellipsis, Index::Select(1)], Bounds::Exact)?;
/// let mut column = [0; 4];
/// file.read_slice("w", &plan, &mut column)?;
/// assert_eq!(column, [1, 7, 13, 19]);
///
/// // Everything, into a buffer that the next load uses again.
/// let mut arena = Arena::new();
/// assert_eq!(file.load(&mut arena)?.tensor("w")?.data(), data);
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SafeTensorsFile {
    file: PositionedFile,
    header: Arc<Header>,
}

impl SafeTensorsFile {
    /// Opens a file and reads its header, strictly and with the default limits.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::File`] if it cannot be opened or is not a regular file, [`ErrorKind::Format`] if the
    /// header is invalid.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path, &ReadOptions::STRICT)
    }

    /// Opens a file and reads its header.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Self, Error> {
        Self::read(PositionedFile::open(path.as_ref())?, options)
    }

    /// Reads the header of an open regular file, or of a source of another kind, which cannot be mapped; `path` names it in errors.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Format`] if the header is not valid, and those of reading.
    pub fn from_source(
        source: impl Into<AnySource>,
        path: &Path,
        options: &ReadOptions,
    ) -> Result<Self, Error> {
        Self::read(PositionedFile::new(source, path), options)
    }

    fn read(file: PositionedFile, options: &ReadOptions) -> Result<Self, Error> {
        let prefix = file.read_prefix(options)?;
        Self::from_prefix(file, &prefix, options)
    }

    /// From a file and the bytes of its header, read before.
    pub(crate) fn from_prefix(
        file: PositionedFile,
        prefix: &[u8],
        options: &ReadOptions,
    ) -> Result<Self, Error> {
        let header = Header::from_prefix(prefix, file.len(), options).in_file(file.path())?;
        Ok(Self { file, header: Arc::new(header) })
    }

    /// The table of tensors.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The path it was opened with.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Length of the file in bytes, when it was opened; the header describes as many.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.file.len()
    }

    /// Reads a tensor into a buffer of exactly its length.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Format`] if there is no such tensor, [`ErrorKind::BufferLength`], [`ErrorKind::Shrunk`] or
    /// [`ErrorKind::Io`]. After an error the content of the buffer is unspecified.
    pub fn read_tensor(&self, name: &str, out: &mut [u8]) -> Result<(), Error> {
        let info = self.info(name)?;
        self.fits(&info, info.byte_len(), out)?;
        self.file.read_at(out, info.file_range().start).map_err(|error| error.of_tensor(name))
    }

    /// Reads a byte range of a tensor, counted from its first byte, into a buffer of exactly that length.
    ///
    /// # Errors
    ///
    /// Those of [`read_tensor`](Self::read_tensor), and [`ErrorKind::RangeOutside`].
    pub fn read_range(&self, name: &str, range: Range<u64>, out: &mut [u8]) -> Result<(), Error> {
        let info = self.info(name)?;
        self.within(&info, &range)?;
        self.fits(&info, range.end - range.start, out)?;
        self.file.read_at(out, info.file_range().start + range.start).map_err(|error| error.of_tensor(name))
    }

    /// The open file, if it is one and not a source of another kind.
    #[must_use]
    pub fn as_file(&self) -> Option<&FileSource> {
        self.file.source().as_file()
    }

    /// Tells a source of other bytes than an open file that a tensor will be read from its beginning to its end.
    pub fn will_read(&self, info: &TensorInfo<'_>) {
        self.file.source().will_read(info.file_range());
    }

    /// Reads a slice of a tensor into a buffer of exactly [`SlicePlan::byte_len`] bytes.
    ///
    /// Ranges close to each other are fetched by one read, through at most 256 KiB of scratch memory;
    /// other ranges are read directly into `out`.
    ///
    /// # Errors
    ///
    /// Those of [`read_tensor`](Self::read_tensor), and [`ErrorKind::RangeOutside`] if the plan was made for a
    /// larger tensor.
    pub fn read_slice(&self, name: &str, plan: &SlicePlan, out: &mut [u8]) -> Result<(), Error> {
        let info = self.info(name)?;
        self.fits(&info, plan.byte_len(), out)?;
        let begin = info.file_range().start;

        // Two passes over the lazy ranges, one ahead of the other: no list of them is ever held.
        let mut ranges = plan.ranges();
        let mut scratch = Vec::new();
        let mut out = out;
        for window in Windows::new(plan.ranges()) {
            self.within(&info, &window.span)?;
            let span_len = (window.span.end - window.span.start) as usize;
            let offset = begin + window.span.start;
            if window.count == 1 {
                ranges.next();
                let (head, rest) = split(out, span_len).ok_or_else(|| self.outside(&info, &window.span))?;
                self.file.read_at(head, offset).map_err(|error| error.of_tensor(name))?;
                out = rest;
                continue;
            }
            scratch.resize(span_len.max(scratch.len()), 0);
            self.file.read_at(&mut scratch[..span_len], offset).map_err(|error| error.of_tensor(name))?;
            for range in ranges.by_ref().take(usize::try_from(window.count).unwrap_or(usize::MAX)) {
                let source =
                    (range.start - window.span.start) as usize..(range.end - window.span.start) as usize;
                let (head, rest) = split(out, source.len()).ok_or_else(|| self.outside(&info, &range))?;
                head.copy_from_slice(&scratch[source]);
                out = rest;
            }
        }
        Ok(())
    }

    /// Reads the data section, which is all tensors as they follow each other, into a buffer of exactly
    /// [`Header::data_len`] bytes; large files with several threads.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::BufferLength`], [`ErrorKind::Shrunk`] or [`ErrorKind::Io`]. After an error the content of the buffer is
    /// unspecified.
    pub fn read_data(&self, out: &mut [u8]) -> Result<(), Error> {
        let (needed, given) = (self.header.data_len(), out.len() as u64);
        if given != needed {
            return Err(ErrorKind::BufferLength { needed, given }.at(self.path()));
        }
        self.file.read_parallel(out, self.header.data_start())
    }

    /// Reads a range of the data section, from `offset` on, into a buffer: any number of tensors that follow each other, and parts of
    /// the first and the last.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::RangeOutside`], [`ErrorKind::Shrunk`] or [`ErrorKind::Io`]. After an error the content of the buffer is unspecified.
    pub fn read_data_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let (len, data_len) = (out.len() as u64, self.header.data_len());
        let end = offset.checked_add(len).filter(|end| *end <= data_len);
        if end.is_none() {
            let end = offset.saturating_add(len);
            return Err(ErrorKind::RangeOutside { start: offset, end, len: data_len }.at(self.path()));
        }
        self.file.read_at(out, self.header.data_start() + offset)
    }

    /// Tells a source of other bytes than an open file that a range of the data section will be read, from its beginning to its end.
    pub fn will_read_data(&self, range: Range<u64>) {
        let start = self.header.data_start();
        self.file.source().will_read(start.saturating_add(range.start)..start.saturating_add(range.end));
    }

    /// Reads all tensors into `arena`, large files with several threads.
    ///
    /// The first tensor byte lands on a multiple of 64, so every tensor whose offset is a multiple of its
    /// element size can be viewed as numbers without a copy; all files of the official writer are like that.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ArenaLimit`] or [`ErrorKind::OutOfMemory`] if there is not enough memory, [`ErrorKind::Shrunk`] or
    /// [`ErrorKind::Io`].
    pub fn load<'arena>(&self, arena: &'arena mut Arena) -> Result<LoadedSafeTensors<'arena>, Error> {
        let data = arena.space(self.header.data_len()).in_file(self.path())?;
        self.file.read_parallel(data, self.header.data_start())?;
        Ok(LoadedSafeTensors::new(Arc::clone(&self.header), data))
    }

    /// Maps the file that is open here so that it can be written to in memory, and only there.
    ///
    /// # Errors
    ///
    /// Those of [`map`](Self::map).
    ///
    /// # Examples
    ///
    /// ```
    /// use st_core::{Dtype, TensorView, WriteOptions};
    /// use st_mmap::SafeTensorsFile;
    ///
    /// # let path = std::env::temp_dir().join(format!("st-mmap-doc-private-{}", std::process::id()));
    /// st_mmap::save(&path, &[("w", TensorView::new(Dtype::U8, &[3], &[1, 2, 3])?)], &WriteOptions::default())?;
    /// let file = SafeTensorsFile::open(&path)?;
    /// let mut map = file.map_private()?;
    /// let start = file.header().data_start() as usize;
    /// map.bytes_mut()[start] = 9;
    /// assert_eq!(map.bytes()[start..], [9, 2, 3]);
    /// assert_eq!(file.map()?.tensor("w")?.data(), [1, 2, 3]);
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn map_private(&self) -> Result<PrivateMapping, Error> {
        self.file.map_private()
    }

    /// The table of tensors and the mapped file.
    pub(crate) fn map_parts(&self) -> Result<(Arc<Header>, Mapping), Error> {
        Ok((Arc::clone(&self.header), self.file.map()?))
    }

    fn info(&self, name: &str) -> Result<TensorInfo<'_>, Error> {
        self.header.tensor(name).ok_or_else(|| not_found(name).in_file(self.path()))
    }

    fn fits(&self, info: &TensorInfo<'_>, needed: u64, out: &[u8]) -> Result<(), Error> {
        let given = out.len() as u64;
        if given == needed {
            return Ok(());
        }
        Err(ErrorKind::BufferLength { needed, given }.at(self.path()).of_tensor(info.name()))
    }

    fn within(&self, info: &TensorInfo<'_>, range: &Range<u64>) -> Result<(), Error> {
        if range.start <= range.end && range.end <= info.byte_len() {
            return Ok(());
        }
        Err(self.outside(info, range))
    }

    fn outside(&self, info: &TensorInfo<'_>, range: &Range<u64>) -> Error {
        let kind = ErrorKind::RangeOutside { start: range.start, end: range.end, len: info.byte_len() };
        kind.at(self.path()).of_tensor(info.name())
    }
}

fn split(out: &mut [u8], len: usize) -> Option<(&mut [u8], &mut [u8])> {
    out.split_at_mut_checked(len)
}
