//! Strictness and resource limits of readers.

/// Which files are accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strictness {
    /// Files as the format's known writers create them, and no others. The default.
    #[default]
    Strict,
    /// Also what the format's known readers tolerate: bytes between payload and checksum, trailing bytes after
    /// the payload's last value, a wrong uncompressed size, unreadable metadata, versions below 1.0, a wrong
    /// footer of version 2.
    Compat,
}

/// What to do with a signature that was not verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum UncheckedSignature {
    /// Refuse to load: a signed file is meant to be verified. The default.
    #[default]
    Refuse,
    /// Load as if the file were not signed.
    Allow,
}

/// Bound on a quantity that depends on the stored length of a payload: `floor + stored * ratio` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expansion {
    /// Bytes allowed for any payload.
    pub floor: u64,
    /// Bytes allowed in addition for each stored byte.
    pub ratio: u64,
}

impl Expansion {
    /// No bound: for files from a source you trust.
    pub const UNBOUNDED: Self = Self { floor: u64::MAX, ratio: u64::MAX };

    /// The bound for a payload of `stored` bytes.
    #[must_use]
    pub const fn allowed(&self, stored: u64) -> u64 {
        self.floor.saturating_add(stored.saturating_mul(self.ratio))
    }
}

/// Resource limits of a reader, checked before memory is allocated.
///
/// With the defaults, reading a file of `n` bytes takes at most 8 MiB + 24 `n` of memory, whatever it declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum length of the metadata. Default 16 MiB.
    pub metadata_bytes: u64,
    /// Maximum nesting of metadata. Default 64; more than 256 counts as 256, which fits the stack of any thread.
    pub metadata_depth: usize,
    /// Maximum memory for `n` bytes of metadata: this plus 3 `n`. Default 1 MiB.
    pub metadata_memory: u64,
    /// Maximum length of a payload after decompression. Default 1 TiB for payloads that are stored as they are; compressed ones
    /// may not exceed 1 GiB, the bound of the other implementations.
    pub payload_bytes: u64,
    /// Maximum length of a compressed payload after decompression, by its stored length. Default 6 MiB plus 20 times its stored length: a payload of random
    /// weights shrinks by a tenth, one of mostly zeros may need a higher bound.
    pub expansion: Expansion,
    /// Maximum memory of a model's values while they are decoded. Default 7 MiB plus 20 times the payload's stored length:
    /// decoded values are at most a few times as large as the stored ones, unless a file consists of very many very small
    /// parts.
    pub model_memory: Expansion,
    /// Maximum nesting of a payload of a user's type. Default 128. Trees of models do not count: they are read
    /// without recursion.
    pub payload_depth: usize,
    /// Maximum number of list elements without bytes (`()` and the like) in one payload of a user's type. Default 2^20.
    pub empty_elements: u64,
    /// Maximum number of tensors in a file of version 2. Default 2^21.
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

    /// For files from a source you trust: no bound on expansion and on the memory of a model.
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
    /// The resource limits.
    pub limits: Limits,
    /// What to do with a signature that was not verified.
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
