//! The flags of a header of version 2.

use crate::flags::flags;

/// Sixteen flags. Readers act on the compression flags, [`ENCRYPTED`](Self::ENCRYPTED), [`SIGNED`](Self::SIGNED) and
/// [`COLUMN_MAJOR`](Self::COLUMN_MAJOR); the others describe the content.
///
/// ```
/// use apr_container::v2::Flags;
///
/// let flags = Flags::ROW_MAJOR.with(Flags::QUANTIZED);
/// assert!(flags.contains(Flags::QUANTIZED) && !flags.intersects(Flags::COMPRESSED));
/// assert_eq!(format!("{flags:?}"), r#"0x0420{"QUANTIZED", "ROW_MAJOR"}"#);
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u16);

flags! {
    /// Meant to be compressed with lz4: see [`Stored`](crate::v2::Stored).
    LZ4 = 0;
    /// Meant to be compressed with zstd: see [`Stored`](crate::v2::Stored).
    ZSTD = 1;
    /// Encrypted; no known writer does it.
    ENCRYPTED = 2;
    /// Signed; no known writer does it.
    SIGNED = 3;
    /// One of several files.
    SHARDED = 4;
    /// Holds quantized weights.
    QUANTIZED = 5;
    /// Holds a filter bank for audio.
    HAS_FILTERBANK = 6;
    /// The metadata has a model card.
    HAS_MODEL_CARD = 7;
    /// Intended for streaming.
    STREAMING = 8;
    /// The metadata has a vocabulary.
    HAS_VOCAB = 9;
    /// Matrices are stored row by row; set by every writer since there is such a flag.
    ROW_MAJOR = 10;
    /// Matrices are stored column by column; every reader refuses that.
    COLUMN_MAJOR = 11;
}

impl Flags {
    /// Both compression flags.
    pub const COMPRESSED: Self = Self::LZ4.with(Self::ZSTD);

    /// The bits that have no meaning yet.
    pub const RESERVED: Self = Self(0xF000);

    /// Flags that this crate does not write, because it does not write what they announce.
    pub(crate) const NOT_WRITTEN: Self = Self::COMPRESSED
        .with(Self::ENCRYPTED)
        .with(Self::SIGNED)
        .with(Self::COLUMN_MAJOR)
        .with(Self::RESERVED);

    /// Whether one of `flags` is set.
    #[must_use]
    pub const fn intersects(self, flags: Self) -> bool {
        self.0 & flags.0 != 0
    }

    /// With these cleared.
    #[must_use]
    pub const fn without(self, flags: Self) -> Self {
        Self(self.0 & !flags.0)
    }
}
