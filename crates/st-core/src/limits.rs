//! Parsing strictness and resource limits.

/// Which headers are accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strictness {
    /// What the format's specification allows and no careful writer exceeds: on top of [`Strictness::Compat`]
    /// it refuses duplicate tensor names and metadata keys, tensor entries in array form, dtypes in map form
    /// and white space before the opening brace. The default.
    #[default]
    Strict,
    /// Exactly the results of the `safetensors` crate 0.8.0, quirks included: of two equal names the last
    /// one counts.
    Compat,
}

/// Upper bounds on the resources of a header.
///
/// Every limit is checked before the memory it bounds is allocated. Memory used by a parsed header is
/// proportional to the header itself whatever the limits are; they exist for callers with less memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest JSON header in bytes. The format itself allows 100,000,000 ([`MAX_HEADER_LEN`]); larger values
    /// are treated as that.
    pub header_bytes: u64,
    /// Most tensors in a file. Default 2,097,152, more than the longest header can hold.
    pub tensors: usize,
    /// Most dimensions of a tensor. Default 1,024.
    pub rank: usize,
    /// Longest tensor name in bytes after unescaping. Default 65,536.
    pub name_bytes: usize,
    /// Most bytes of metadata, keys and values together, after unescaping. Default 64 MiB.
    pub metadata_bytes: usize,
}

/// Longest JSON header the format allows, in bytes.
pub const MAX_HEADER_LEN: u64 = 100_000_000;

impl Limits {
    /// The documented defaults.
    pub const DEFAULT: Self = Self {
        header_bytes: MAX_HEADER_LEN,
        tensors: 1 << 21,
        rank: 1024,
        name_bytes: 1 << 16,
        metadata_bytes: 1 << 26,
    };

    /// Only the limit of the format: the length of the header.
    pub const OFFICIAL: Self = Self {
        header_bytes: MAX_HEADER_LEN,
        tensors: usize::MAX,
        rank: usize::MAX,
        name_bytes: usize::MAX,
        metadata_bytes: usize::MAX,
    };
}

/// [`Limits::DEFAULT`].
impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// How to read a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Which headers are accepted.
    pub strictness: Strictness,
    /// Resource limits.
    pub limits: Limits,
}

impl ReadOptions {
    /// Strict, with the default limits.
    pub const STRICT: Self = Self { strictness: Strictness::Strict, limits: Limits::DEFAULT };

    /// The results of the `safetensors` crate 0.8.0, which limits only the length of the header.
    pub const COMPAT: Self = Self { strictness: Strictness::Compat, limits: Limits::OFFICIAL };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_the_strict_ones() {
        assert_eq!(ReadOptions::default(), ReadOptions::STRICT);
        assert_eq!(Limits::default(), ReadOptions::STRICT.limits);
        assert_eq!(ReadOptions::COMPAT.strictness, Strictness::Compat);
    }
}
