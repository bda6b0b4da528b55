//! Streaming verification of files larger than memory.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use std::io::{ErrorKind as IoErrorKind, Read};

use located_error::Subject;

use crate::crc::Crc32;
use crate::error::{Error, ErrorKind};
use crate::limits::ReadOptions;
use crate::v2;
use crate::v2::body::Checksums;
use crate::v2::container::{Footer, Found, admit};
use crate::v2::header::{ALIGN, FOOTER_LEN};
use crate::v2::index::Index;

/// Bytes read at a time.
const BUFFER_LEN: u64 = 1 << 20;

impl Index {
    /// Reads the whole file this index was read from, once from its beginning, and finds what
    /// [`Container::from_bytes_with`](super::Container::from_bytes_with) finds, with 1 MiB of memory whatever the file's length.
    ///
    /// ```
    /// use apr_container::ReadOptions;
    /// use apr_container::v2::{AprType, Footer, Index, TensorView, WriteOptions, to_vec};
    ///
    /// let file = to_vec(&[TensorView::new("w", AprType::U8, &[3], b"abc")?], &WriteOptions::default())?;
    /// let index = Index::from_bytes(&file, &ReadOptions::STRICT)?;
    /// assert!(matches!(index.verify(file.as_slice(), &ReadOptions::STRICT)?, Footer::Present(_)));
    /// # Ok::<(), apr_container::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`]; [`ErrorKind::Truncated`] and [`v2::ErrorKind::TrailingBytes`] if the reader does not have the file's
    /// length; [`ErrorKind::SignatureUnchecked`]; strict also [`ErrorKind::Encrypted`], [`ErrorKind::ChecksumMismatch`],
    /// [`v2::ErrorKind::Padding`].
    pub fn verify(&self, mut reader: impl Read, options: &ReadOptions) -> Result<Footer, Error> {
        let sealed_end = self.file_len().saturating_sub(FOOTER_LEN);
        let mut gaps = Gaps::new(self, options);
        let (mut crc, mut last) = (Crc32::default(), [0; FOOTER_LEN as usize]);
        let mut buffer = vec![0; BUFFER_LEN.min(self.file_len()) as usize];
        let mut position = 0;
        while position < self.file_len() {
            // First the bytes that the checksum covers, then the last four.
            let end = if position < sealed_end { sealed_end } else { self.file_len() };
            let len = (end - position).min(buffer.len() as u64) as usize;
            let buffer = buffer.get_mut(..len).unwrap_or_default();
            let read = read_some(&mut reader, buffer)?;
            if read == 0 {
                let (needed, available) = (self.file_len(), position);
                return Err(ErrorKind::Truncated { part: "file", needed, available }.into());
            }
            let bytes = buffer.get(..read).unwrap_or_default();
            if position < sealed_end {
                crc.update(bytes);
            } else {
                let at = (position - sealed_end) as usize;
                last.iter_mut().skip(at).zip(bytes).for_each(|(place, byte)| *place = *byte);
            }
            gaps.look_at(position, bytes);
            position += read as u64;
        }
        if read_some(&mut reader, &mut [0])? > 0 {
            return Err(v2::ErrorKind::TrailingBytes { count: 1 }.at(position));
        }
        let found = match self.file_len() == self.data_end() {
            true => Found::ABSENT,
            false => Found::judge(self, Checksums { expected: u32::from_le_bytes(last), actual: crc.get() }),
        };
        admit(self, found, options)?;
        match gaps.first_filled {
            Some((at, idx)) => Err(v2::ErrorKind::Padding
                .at(at)
                .about(Subject::tensor(self.get(idx).map_or("", |info| info.name())))),
            None => Ok(found.footer),
        }
    }
}

fn read_some(reader: &mut impl Read, buffer: &mut [u8]) -> Result<usize, Error> {
    loop {
        match reader.read(buffer) {
            Err(error) if error.kind() == IoErrorKind::Interrupted => {}
            result => return Ok(result?),
        }
    }
}

/// The padding after tensors, in the order of the file. Empty in compat mode, which ignores it.
struct Gaps {
    /// Ranges of the file, and the index of the tensor before each.
    ranges: Vec<(Range<u64>, usize)>,
    passed: usize,
    first_filled: Option<(u64, usize)>,
}

impl Gaps {
    fn new(index: &Index, options: &ReadOptions) -> Self {
        let gap = |(idx, end): (usize, u64)| (end..end.next_multiple_of(ALIGN), idx);
        let ends = index.iter().map(|info| info.file_range().end).enumerate();
        let mut ranges: Vec<_> = match options.is_strict() {
            true => ends.map(gap).filter(|(range, _)| !range.is_empty()).collect(),
            false => Vec::new(),
        };
        ranges.sort_unstable_by_key(|(range, _)| range.start);
        Self { ranges, passed: 0, first_filled: None }
    }

    /// Checks the bytes of the file from `position` on, which follow those of the last call.
    fn look_at(&mut self, position: u64, bytes: &[u8]) {
        let end = position + bytes.len() as u64;
        while let Some((range, idx)) = self.ranges.get(self.passed)
            && range.start < end
        {
            let from = range.start.max(position);
            let part = bytes.get((from - position) as usize..(range.end.min(end) - position) as usize);
            let filled = part.unwrap_or_default().iter().position(|byte| *byte != 0);
            if self.first_filled.is_none() {
                self.first_filled = filled.map(|at| (from + at as u64, *idx));
            }
            if range.end > end {
                break;
            }
            self.passed += 1;
        }
    }
}
