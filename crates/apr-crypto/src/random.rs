//! Sources of randomness.

use crate::error::Error;

/// A source of randomness fit for keys: unpredictable, never repeating.
///
/// `OsRandom` (feature `getrandom`) is the operating system's. A microcontroller implements this
/// trait over its own generator:
///
/// ```
/// use apr_crypto::{Error, ErrorKind, Rng};
///
/// struct Peripheral;
///
/// impl Rng for Peripheral {
///     fn fill(&mut self, out: &mut [u8]) -> Result<(), Error> {
///         // Read from the hardware; an error if it is not ready.
///         Err(ErrorKind::Randomness.into())
///     }
/// }
///
/// let error = apr_crypto::AesKey::generate(&mut Peripheral).unwrap_err();
/// assert_eq!(error.kind(), &ErrorKind::Randomness);
/// ```
pub trait Rng {
    /// Fills all of `out`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Randomness`](crate::ErrorKind::Randomness) if there is none to be had; nothing is then made from
    /// what `out` holds.
    fn fill(&mut self, out: &mut [u8]) -> Result<(), Error>;
}

impl<R: Rng + ?Sized> Rng for &mut R {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), Error> {
        (**self).fill(out)
    }
}

/// The operating system's randomness.
///
/// ```
/// use apr_crypto::{OsRandom, RecipientSecret};
///
/// let secret = RecipientSecret::generate(&mut OsRandom)?;
/// println!("{}", secret.public());
/// # Ok::<(), apr_crypto::Error>(())
/// ```
#[cfg(feature = "getrandom")]
#[derive(Clone, Copy, Debug, Default)]
pub struct OsRandom;

#[cfg(feature = "getrandom")]
impl Rng for OsRandom {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), Error> {
        getrandom::fill(out).map_err(|error| Error::wrap(crate::ErrorKind::Randomness, error))
    }
}

/// Randomness for tests: bytes given beforehand, or a counter's hash.
#[cfg(test)]
pub(crate) mod fixed {
    use super::{Error, Rng};

    /// Hands out the bytes it was made from, once.
    pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

    impl Rng for Bytes<'_> {
        fn fill(&mut self, out: &mut [u8]) -> Result<(), Error> {
            let (now, rest) = self.0.split_at(out.len());
            out.copy_from_slice(now);
            self.0 = rest;
            Ok(())
        }
    }

    /// A reproducible stream.
    pub(crate) struct Seeded(pub(crate) u64);

    impl Rng for Seeded {
        fn fill(&mut self, out: &mut [u8]) -> Result<(), Error> {
            self.0 += 1;
            blake3::Hasher::new().update(&self.0.to_le_bytes()).finalize_xof().fill(out);
            Ok(())
        }
    }
}
