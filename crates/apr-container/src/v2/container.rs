//! A whole file in memory.

use alloc::borrow::Cow;
use core::fmt;

use located_error::Subject;

use crate::crc::crc32;
use crate::error::{Error, ErrorKind};
use crate::limits::{ReadOptions, UncheckedSignature};
use crate::v2;
use crate::v2::body::{Body, Checksums};
use crate::v2::flags::Flags;
use crate::v2::header::{ALIGN, FOOTER_LEN, Header};
use crate::v2::index::Index;
use crate::v2::metadata::Metadata;
use crate::v2::view::TensorView;
use crate::v2::warning::Warning;

/// The checksum after the tensors: the CRC-32 of everything before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Footer {
    /// Present, and it matches.
    Present(u32),
    /// Present, and it does not match: the file is corrupted (refused in strict reading).
    Wrong {
        /// Stored in the file.
        expected: u32,
        /// Computed over its bytes.
        actual: u32,
    },
    /// Absent, as in some files in circulation: corruption cannot be detected, including the loss of the footer itself.
    Absent,
    /// Not compared: see [`Container::without_checksum`].
    Unchecked,
}

/// A whole file in memory: an [`Index`], the bytes it describes, and the result of their checksum. Nothing is copied.
///
/// ```
/// use apr_container::v2::{Container, AprType, Footer, TensorView, WriteOptions, to_vec};
///
/// let weights = [1.0f32, 2.0].map(f32::to_le_bytes);
/// let view = TensorView::new("w", AprType::F32, &[2], weights.as_flattened())?;
/// let mut file = to_vec(&[view], &WriteOptions::default())?;
///
/// let container = Container::from_bytes(&file)?;
/// assert!(container.tensor("w")?.elements::<f32>()?.eq([1.0, 2.0]));
/// assert!(matches!(container.footer(), Footer::Present(_)));
/// assert_eq!(container.tensor("b").expect_err("it is not there").code(), "ac-v2-not-found");
///
/// // A single flipped bit is detected.
/// let last = file.len() - 70;
/// file[last] ^= 1;
/// assert_eq!(Container::from_bytes(&file).expect_err("corrupted").code(), "ac-checksum");
/// # Ok::<(), apr_container::Error>(())
/// ```
#[derive(Clone)]
pub struct Container<'data> {
    index: Cow<'data, Index>,
    body: Body<'data>,
    found: Found,
}

impl<'data> Container<'data> {
    /// Reads a file with [`ReadOptions::STRICT`].
    ///
    /// # Errors
    ///
    /// As [`from_bytes_with`](Self::from_bytes_with).
    pub fn from_bytes(file: &'data [u8]) -> Result<Self, Error> {
        Self::from_bytes_with(file, &ReadOptions::STRICT)
    }

    /// Reads a file.
    ///
    /// A file marked as encrypted is accepted in compat mode to be described; its tensors are not accessible in any mode.
    ///
    /// # Errors
    ///
    /// Those of [`Index::from_bytes`]; [`ErrorKind::SignatureUnchecked`] as
    /// [`ReadOptions::unchecked_signature`](crate::ReadOptions::unchecked_signature) says. Strict also: [`ErrorKind::Encrypted`],
    /// [`ErrorKind::ChecksumMismatch`] (instead of the error of a corrupted index), [`v2::ErrorKind::Padding`] for padding
    /// between tensors that is not zero.
    pub fn from_bytes_with(file: &'data [u8], options: &ReadOptions) -> Result<Self, Error> {
        let body = Body::whole(file);
        let index = Index::from_bytes(file, options).map_err(|error| damage_or(error, file, options))?;
        let found = Found::at_end_of(body, &index, index.header());
        let container = Self::open(Cow::Owned(index), body, found, options)?;
        if options.is_strict() {
            container.check_padding()?;
        }
        Ok(container)
    }

    /// Combines an index that was read before with the file it describes, without checking footer and padding: for files so large
    /// that reading all of them takes too long.
    ///
    /// # Errors
    ///
    /// [`v2::ErrorKind::DataLength`] if the file has another length; [`ErrorKind::Encrypted`], [`ErrorKind::SignatureUnchecked`]
    /// as [`from_bytes_with`](Self::from_bytes_with).
    pub fn without_checksum(index: Index, file: &'data [u8], options: &ReadOptions) -> Result<Self, Error> {
        let (needed, given) = (index.file_len(), file.len() as u64);
        if needed != given {
            return Err(v2::ErrorKind::DataLength { needed, given }.into());
        }
        Self::open(
            Cow::Owned(index),
            Body::whole(file),
            Found { footer: Footer::Unchecked, trailing: 0 },
            options,
        )
    }

    /// Opens a file of which all this is known.
    pub(crate) fn open(
        index: Cow<'data, Index>,
        body: Body<'data>,
        found: Found,
        options: &ReadOptions,
    ) -> Result<Self, Error> {
        admit(&index, found, options)?;
        Ok(Self { index, body, found })
    }

    /// A file that was opened before.
    pub(crate) const fn reopen(index: &'data Index, body: Body<'data>, found: Found) -> Self {
        Self { index: Cow::Borrowed(index), body, found }
    }

    /// In strict reading tensors are contiguous: after each there are at most 63 bytes of padding.
    pub(crate) fn check_padding(&self) -> Result<(), Error> {
        for info in &*self.index {
            let end = info.file_range().end;
            let padding = self.body.get(end..end.next_multiple_of(ALIGN)).unwrap_or_default();
            if let Some(at) = padding.iter().position(|byte| *byte != 0) {
                return Err(v2::ErrorKind::Padding.at(end + at as u64).about(Subject::tensor(info.name())));
            }
        }
        Ok(())
    }

    /// The same file, described by a borrowed index.
    pub(crate) fn reborrow(&self) -> Container<'_> {
        Container::reopen(&self.index, self.body, self.found)
    }

    /// Header, metadata and the offsets of the tensors.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> &Header {
        self.index.header()
    }

    /// The metadata.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        self.index.metadata()
    }

    /// Number of tensors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there is no tensor.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// The checksum after the tensors.
    #[must_use]
    pub const fn footer(&self) -> Footer {
        self.found.footer
    }

    /// The tensor of this name.
    ///
    /// # Errors
    ///
    /// [`v2::ErrorKind::TensorNotFound`] with the name, [`ErrorKind::Encrypted`].
    pub fn tensor(&self, name: &str) -> Result<TensorView<'_>, Error> {
        self.expect_readable()?;
        let view = self.index.tensor(name).and_then(|info| info.view_in(self.body));
        view.ok_or_else(|| Error::from(v2::ErrorKind::TensorNotFound).about(Subject::tensor(name)))
    }

    /// The bytes of the tensor of this name; they outlive this value.
    ///
    /// # Errors
    ///
    /// As [`tensor`](Self::tensor).
    pub fn data(&self, name: &str) -> Result<&'data [u8], Error> {
        self.expect_readable()?;
        let data = self.index.tensor(name).and_then(|info| self.body.get(info.file_range()));
        data.ok_or_else(|| Error::from(v2::ErrorKind::TensorNotFound).about(Subject::tensor(name)))
    }

    /// The tensors in the order of their names.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Encrypted`].
    pub fn tensors(&self) -> Result<impl ExactSizeIterator<Item = TensorView<'_>>, Error> {
        self.expect_readable()?;
        let body = self.body;
        Ok(self.index.iter().map(move |info| {
            // The index was proven for exactly this file.
            let view = info.view_in(body);
            view.unwrap_or(TensorView::proven(info.name(), info.dtype(), info.shape(), &[]))
        }))
    }

    /// Warnings about the file.
    pub fn warnings(&self) -> impl Iterator<Item = Warning> {
        let footer = match self.found.footer {
            Footer::Absent => Some(Warning::NoFooter),
            Footer::Wrong { expected, actual } => Some(Warning::WrongFooter { expected, actual }),
            Footer::Present(_) | Footer::Unchecked => None,
        };
        let count = self.found.trailing;
        let trailing = (count > 0).then_some(Warning::TrailingBytes { count });
        self.index.warnings().iter().copied().chain(footer).chain(trailing)
    }

    fn expect_readable(&self) -> Result<(), Error> {
        match self.header().flags().intersects(Flags::ENCRYPTED) {
            true => Err(ErrorKind::Encrypted.at(6)),
            false => Ok(()),
        }
    }
}

impl fmt::Debug for Container<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Container")
            .field("index", &*self.index)
            .field("footer", &self.footer())
            .finish_non_exhaustive()
    }
}

/// Decides whether a file may be opened.
pub(crate) fn admit(index: &Index, found: Found, options: &ReadOptions) -> Result<(), Error> {
    let flags = index.header().flags();
    if options.is_strict() && flags.intersects(Flags::ENCRYPTED) {
        return Err(ErrorKind::Encrypted.at(6));
    }
    if options.unchecked_signature == UncheckedSignature::Refuse && flags.intersects(Flags::SIGNED) {
        return Err(ErrorKind::SignatureUnchecked.at(6));
    }
    match found.footer {
        Footer::Wrong { expected, actual } if options.is_strict() => {
            let at = index.file_len() - FOOTER_LEN;
            Err(ErrorKind::ChecksumMismatch { expected, actual }.at(at))
        }
        _ => Ok(()),
    }
}

/// The end of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) footer: Footer,
    /// Bytes that are neither tensors nor padding nor footer.
    trailing: u64,
}

impl Found {
    /// Nothing after the tensors.
    pub(crate) const ABSENT: Self = Self { footer: Footer::Absent, trailing: 0 };

    /// Looks for a footer that matches this header.
    ///
    /// A footer is certain where the file is exactly four bytes longer than the padded tensors. Elsewhere (compat mode
    /// only) the last four bytes are one if they are right.
    pub(crate) fn at_end_of(body: Body<'_>, index: &Index, header: &Header) -> Self {
        match index.file_len() == index.data_end() {
            true => Self::ABSENT,
            false => body.checksums(header).map_or(Self::ABSENT, |sums| Self::judge(index, sums)),
        }
    }

    /// What the last four bytes are.
    pub(crate) fn judge(index: &Index, sums: Checksums) -> Self {
        let trailing = index.file_len().saturating_sub(index.data_end());
        let Checksums { expected, actual } = sums;
        match trailing.checked_sub(FOOTER_LEN) {
            trailing if sums.agree() => {
                Self { footer: Footer::Present(expected), trailing: trailing.unwrap_or(0) }
            }
            Some(0) => Self { footer: Footer::Wrong { expected, actual }, trailing: 0 },
            _ => Self { footer: Footer::Absent, trailing },
        }
    }

    pub(crate) const fn is_right(self) -> bool {
        matches!(self.footer, Footer::Present(_))
    }
}

/// The checksum mismatch of a corrupted file, which is more informative than the first invalid entry.
fn damage_or(error: Error, file: &[u8], options: &ReadOptions) -> Error {
    let in_content = !matches!(
        error.kind(),
        ErrorKind::TooSmall { .. }
            | ErrorKind::Magic { .. }
            | ErrorKind::UnsupportedVersion { .. }
            | ErrorKind::Reserved
            | ErrorKind::Limit { .. }
            | ErrorKind::Truncated { .. }
            | ErrorKind::OutOfMemory { .. }
    ) && !matches!(
        error.kind().v2(),
        Some(
            v2::ErrorKind::HeaderChecksum { .. }
                | v2::ErrorKind::ColumnMajor
                | v2::ErrorKind::WholeCompressed { .. }
        )
    );
    // Valid files are a multiple of 64 bytes long, and four more with a footer.
    let has_footer = file.len() as u64 % ALIGN == FOOTER_LEN;
    match file.split_last_chunk() {
        Some((sealed, last)) if options.is_strict() && in_content && has_footer => {
            let (expected, actual) = (u32::from_le_bytes(*last), crc32(sealed));
            match expected == actual {
                true => error,
                false => ErrorKind::ChecksumMismatch { expected, actual }.at(sealed.len() as u64),
            }
        }
        _ => error,
    }
}
