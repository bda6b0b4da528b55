//! Options of opening.

use apr_container::{Limits, UncheckedSignature};
#[cfg(feature = "sealed")]
use apr_crypto::Access;
#[cfg(feature = "sealed")]
use apr_sealed::SealedLimits;
use st_core::Strictness;

#[cfg(feature = "foreign")]
use crate::error::{Error, ErrorKind};
#[cfg(feature = "foreign")]
use crate::kind::{FileKind, ModelFormat};

/// Strictness and limits of the reader of each format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Of safetensors.
    pub safetensors: st_core::ReadOptions,
    /// Of `.apr`, both versions.
    pub apr: apr_container::ReadOptions,
    /// Of GGUF.
    #[cfg(feature = "gguf")]
    pub gguf: gguf_core::ReadOptions,
}

impl ReadOptions {
    /// Accepts what the specifications allow. The default.
    pub const STRICT: Self = Self {
        safetensors: st_core::ReadOptions::STRICT,
        apr: apr_container::ReadOptions::STRICT,
        #[cfg(feature = "gguf")]
        gguf: gguf_core::ReadOptions::STRICT,
    };

    /// Accepts what the reference implementations accept.
    pub const COMPAT: Self = Self {
        safetensors: st_core::ReadOptions::COMPAT,
        apr: apr_container::ReadOptions::COMPAT,
        #[cfg(feature = "gguf")]
        gguf: gguf_core::ReadOptions::COMPAT,
    };

    /// Accepts signed files without verifying the signature.
    #[must_use]
    pub const fn with_unchecked_signatures(mut self) -> Self {
        self.apr.unchecked_signature = UncheckedSignature::Allow;
        self
    }

    /// Lets a small file become a large model: for files from a trusted origin.
    #[must_use]
    pub const fn with_unlimited_expansion(mut self) -> Self {
        self.apr.limits = Limits::TRUSTED;
        self
    }

    /// `strict` or `compat`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        if self.is_strict() { "strict" } else { "compat" }
    }

    /// Whether the options are those of strict reading.
    #[must_use]
    pub fn is_strict(&self) -> bool {
        self.safetensors.strictness == Strictness::Strict
    }
}

/// How to open a file.
///
/// ```
/// use model_file::{OpenOptions, ReadOptions};
///
/// let options = OpenOptions::new().with_read_options(ReadOptions::COMPAT);
/// assert!(!options.read_options().is_strict());
/// ```
#[derive(Clone, Debug, Default)]
pub struct OpenOptions<'k> {
    read: ReadOptions,
    pub(crate) inflation: Inflation,
    #[cfg(feature = "foreign")]
    pub(crate) foreign: foreign_tensors::Options,
    #[cfg(feature = "sealed")]
    access: Option<Access<'k>>,
    #[cfg(feature = "sealed")]
    sealed_limits: SealedLimits,
    #[cfg(not(feature = "sealed"))]
    keys: core::marker::PhantomData<&'k ()>,
}

/// What opening does with an `.apr` file of version 2 that is compressed as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Inflation {
    #[default]
    OnOpen,
    Refused,
}

impl<'k> OpenOptions<'k> {
    /// Strict reading with the default limits and without keys.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With strictness and limits for each format.
    #[must_use]
    pub fn with_read_options(mut self, options: ReadOptions) -> Self {
        self.read = options;
        self
    }

    /// With what of the files of other programs is read, and limits on it.
    #[cfg(feature = "foreign")]
    #[must_use]
    pub fn with_foreign(mut self, options: foreign_tensors::Options) -> Self {
        self.foreign = options;
        self
    }

    /// # Errors
    ///
    /// [`ErrorKind::NoNestedObjects`] if one is asked for and the format has none.
    #[cfg(feature = "foreign")]
    pub(crate) fn check_object(&self, kind: FileKind) -> Result<(), Error> {
        if self.foreign.object.is_empty() || matches!(kind, FileKind::Model(ModelFormat::Foreign(_))) {
            return Ok(());
        }
        Err(ErrorKind::NoNestedObjects { found: kind }.into())
    }

    /// With the key that decrypts the file and the keys whose signature it must have. A sealed file is opened with them, and the
    /// file inside it is what [`ModelFile`](crate::ModelFile) shows.
    #[cfg(feature = "sealed")]
    #[must_use]
    pub fn with_access(mut self, access: Access<'k>) -> Self {
        self.access = Some(access);
        self
    }

    /// With limits on what a sealed file may require.
    #[cfg(feature = "sealed")]
    #[must_use]
    pub fn with_sealed_limits(mut self, limits: SealedLimits) -> Self {
        self.sealed_limits = limits;
        self
    }

    /// Refuses an `.apr` file of version 2 that is compressed as a whole (`ac-v2-compressed`) instead of reading all of it: for
    /// programs that show what they know of a remote file before they fetch it.
    #[must_use]
    pub const fn without_inflation(mut self) -> Self {
        self.inflation = Inflation::Refused;
        self
    }

    /// The same limits and keys with compat reading.
    #[cfg(feature = "std")]
    pub(crate) fn compat(&self) -> Self {
        let apr = apr_container::ReadOptions::COMPAT.with_limits(self.read.apr.limits);
        let mut options = self.clone();
        options.read = ReadOptions { apr, ..ReadOptions::COMPAT };
        options
    }

    /// Without keys.
    #[cfg(feature = "std")]
    #[cfg_attr(not(feature = "sealed"), allow(unused_mut, reason = "there are no keys"))]
    pub(crate) fn without_access(mut self) -> Self {
        #[cfg(feature = "sealed")]
        {
            self.access = None;
        }
        self
    }

    /// Strictness and limits.
    #[must_use]
    pub const fn read_options(&self) -> &ReadOptions {
        &self.read
    }

    #[cfg(feature = "sealed")]
    pub(crate) const fn access(&self) -> Option<Access<'k>> {
        self.access
    }

    #[cfg(feature = "sealed")]
    pub(crate) const fn sealed_limits(&self) -> &SealedLimits {
        &self.sealed_limits
    }
}
