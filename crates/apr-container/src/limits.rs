//! How much a reader believes: strictness and resource limits.

/// Which files are accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strictness {
    /// What careful writers make: everything the format's known writers make, and nothing else. The default.
    #[default]
    Strict,
    /// What the format's known readers tolerate as well: bytes between payload and checksum, trailing bytes after
    /// the payload's last value, an uncompressed size that lies, unreadable metadata, versions below 1.0, a wrong
    /// footer of version 2.
    Compat,
}

/// What to do with a signature nobody has checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum UncheckedSignature {
    /// Refuse to load: a signed file says that its maker wants it verified. The default.
    #[default]
    Refuse,
    /// Load as if the file were not signed.
    Allow,
}

/// How many bytes a payload, stored in so many, may become or may take: `floor + stored * ratio`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expansion {
    /// Bytes for any payload.
    pub floor: u64,
    /// Bytes more for each stored byte.
    pub ratio: u64,
}

impl Expansion {
    /// No bound of this kind: for files from a source you trust.
    pub const UNBOUNDED: Self = Self { floor: u64::MAX, ratio: u64::MAX };

    /// Most bytes that `stored` ones may become.
    #[must_use]
    pub const fn allowed(&self, stored: u64) -> u64 {
        self.floor.saturating_add(stored.saturating_mul(self.ratio))
    }
}

/// Upper bounds on what a file may ask for, checked before the memory they stand for is allocated.
///
/// With the defaults, reading a file of `n` bytes takes at most 8 MiB + 24 `n` of memory, whatever it claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest metadata. Default 16 MiB.
    pub metadata_bytes: u64,
    /// Deepest nesting of metadata. Default 64; more than 256 is taken as 256, which fits the stack of any thread.
    pub metadata_depth: usize,
    /// Most memory that `n` bytes of metadata may take: this plus 3 `n`. Default 1 MiB.
    pub metadata_memory: u64,
    /// Longest payload after decompression. Default 1 TiB for payloads that are stored as they are; compressed ones
    /// may not exceed 1 GiB, the bound of the other implementations.
    pub payload_bytes: u64,
    /// How far a compressed payload may expand. Default 6 MiB plus 20 times its stored length: a payload of random
    /// weights shrinks by a tenth, one of mostly zeros may need a higher bound.
    pub expansion: Expansion,
    /// How much memory a model's values may take in all while they are decoded. Default 7 MiB plus 20 times the payload's
    /// stored length: what is decoded is at most a few times as large as what is stored, unless a file is made of very
    /// many very small parts.
    pub model_memory: Expansion,
    /// Deepest nesting of a payload of a user's type. Default 128. Trees of models do not count: they are read
    /// without recursion.
    pub payload_depth: usize,
    /// Most list elements without bytes (`()` and the like) in one payload of a user's type. Default 2^20.
    pub empty_elements: u64,
    /// Most tensors in a file of version 2. Default 2^21.
    pub tensors: u64,
}

impl Limits {
    /// The documented defaults.
    pub const DEFAULT: Self = Self {
        metadata_bytes: 16 << 20,
        metadata_depth: 64,
        metadata_memory: 1 << 20,
        payload_bytes: 1 << 40,
        expansion: Expansion { floor: 6 << 20, ratio: 20 },
        model_memory: Expansion { floor: 7 << 20, ratio: 20 },
        payload_depth: 128,
        empty_elements: 1 << 20,
        tensors: 1 << 21,
    };

    /// For files from a source you trust: payloads may expand and models may take as much memory as they say.
    pub const TRUSTED: Self = Self {
        metadata_memory: u64::MAX,
        expansion: Expansion::UNBOUNDED,
        model_memory: Expansion::UNBOUNDED,
        ..Self::DEFAULT
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
    /// How much they may ask for.
    pub limits: Limits,
    /// What to do with a signature nobody has checked.
    pub unchecked_signature: UncheckedSignature,
}

impl ReadOptions {
    /// Strict, with the default limits.
    pub const STRICT: Self = Self {
        strictness: Strictness::Strict,
        limits: Limits::DEFAULT,
        unchecked_signature: UncheckedSignature::Refuse,
    };

    /// What the known readers tolerate, with the default limits; like them it loads signed files unverified.
    pub const COMPAT: Self = Self {
        strictness: Strictness::Compat,
        limits: Limits::DEFAULT,
        unchecked_signature: UncheckedSignature::Allow,
    };

    /// The same with other limits.
    #[must_use]
    pub const fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The same with this treatment of unchecked signatures.
    #[must_use]
    pub const fn with_unchecked_signature(mut self, unchecked_signature: UncheckedSignature) -> Self {
        self.unchecked_signature = unchecked_signature;
        self
    }

    pub(crate) const fn is_strict(&self) -> bool {
        matches!(self.strictness, Strictness::Strict)
    }
}
