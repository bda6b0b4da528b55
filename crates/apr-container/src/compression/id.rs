//! Compression ids: the type that headers and errors name.

use core::fmt;

/// How a payload is compressed: byte 20 of the header.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Compression(pub u8);

#[expect(non_upper_case_globals, reason = "spelled as the format's documents spell them")]
impl Compression {
    /// Not compressed. The default.
    pub const None: Self = Self(0);
    /// zstd, level 3.
    pub const ZstdDefault: Self = Self(1);
    /// zstd, level 19: for archives.
    pub const ZstdMax: Self = Self(2);
    /// The uncompressed length (`u32`, little-endian), then an lz4 block. Known to aprender since 0.25.
    pub const LZ4: Self = Self(3);
}

impl Compression {
    /// Every compression in the specification.
    pub const KNOWN: [Self; 4] = [Self::None, Self::ZstdDefault, Self::ZstdMax, Self::LZ4];

    /// The name, if the specification lists the compression.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::None => Some("none"),
            Self::ZstdDefault => Some("zstd"),
            Self::ZstdMax => Some("zstd-max"),
            Self::LZ4 => Some("lz4"),
            _ => None,
        }
    }

    /// The compression of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::KNOWN.into_iter().find(|compression| compression.name() == Some(name))
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => write!(f, "0x{:02X}", self.0),
        }
    }
}

/// As [`Display`](fmt::Display).
impl fmt::Debug for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
