//! Parsing strictness and resource limits.

/// Which files are accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strictness {
    /// What llama.cpp reads: versions 2 and 3, little-endian, consecutive tensors without gaps. The default.
    #[default]
    Strict,
    /// More than that: version 1, big-endian files, gaps and any order of the data, arrays of arrays, an empty key, long
    /// tensor names, more than four dimensions, a last tensor without padding. `docs/gguf.md` has the table.
    Compat,
}

/// Upper bounds on the resources that a header may request.
///
/// Every count is compared with the bytes left in the file before these bounds come into play, and memory is proportional
/// to the header whatever they are; they exist for callers with less memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes before the data section. Default 1 GiB.
    pub header_bytes: u64,
    /// Most keys. Default 1,048,576.
    pub keys: u64,
    /// Most tensors. Default 1,048,576.
    pub tensors: u64,
    /// Longest string in bytes, keys and values alike. Default 2^30, that of llama.cpp.
    pub string_bytes: u64,
    /// Most elements of an array. Default 2^30, that of llama.cpp.
    pub array_count: u64,
    /// Most dimensions in [`Strictness::Compat`]; [`Strictness::Strict`] has 4. Default 8.
    pub rank: u32,
    /// Longest tensor name in [`Strictness::Compat`]; [`Strictness::Strict`] has 63. Default 65,535.
    pub name_bytes: u64,
    /// Arrays within each other in [`Strictness::Compat`], at most 64; [`Strictness::Strict`] has 1. Default 16.
    pub nesting: u32,
}

impl Limits {
    /// The documented defaults.
    pub const DEFAULT: Self = Self {
        header_bytes: 1 << 30,
        keys: 1 << 20,
        tensors: 1 << 20,
        string_bytes: 1 << 30,
        array_count: 1 << 30,
        rank: 8,
        name_bytes: 65_535,
        nesting: 16,
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
    /// Which files are accepted.
    pub strictness: Strictness,
    /// Resource limits.
    pub limits: Limits,
}

impl ReadOptions {
    /// Strict, with the default limits.
    pub const STRICT: Self = Self { strictness: Strictness::Strict, limits: Limits::DEFAULT };

    /// Compat, with the default limits.
    pub const COMPAT: Self = Self { strictness: Strictness::Compat, limits: Limits::DEFAULT };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_the_strict_ones() {
        assert_eq!(ReadOptions::default(), ReadOptions::STRICT);
        assert_eq!(Limits::default(), ReadOptions::COMPAT.limits);
    }
}
