//! Secret buffers: zeroized on drop, redacted `Debug`, no `Clone`.

use alloc::boxed::Box;
use alloc::string::String;

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::error::Error;
use crate::random::Rng;

/// Implements `Debug` with the name of the type and none of its content.
macro_rules! redacted {
    ($type:ident $(<$($lifetime:lifetime),+>)?) => {
        impl core::fmt::Debug for $type $(<$($lifetime),+>)? {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(concat!(stringify!($type), "(..)"))
            }
        }
    };
}

pub(crate) use redacted;

/// `N` bytes, zeroized on drop. They are on the heap, so that moving the owner does not copy them.
pub(crate) struct Secret<const N: usize>(Box<[u8; N]>);

impl<const N: usize> Secret<N> {
    pub(crate) fn zeroed() -> Self {
        Self(Box::new([0; N]))
    }

    pub(crate) fn copy_of(bytes: &[u8; N]) -> Self {
        let mut secret = Self::zeroed();
        secret.0.copy_from_slice(bytes);
        secret
    }

    pub(crate) fn generate(rng: &mut (impl Rng + ?Sized)) -> Result<Self, Error> {
        let mut secret = Self::zeroed();
        rng.fill(&mut *secret.0)?;
        Ok(secret)
    }

    pub(crate) fn bytes(&self) -> &[u8; N] {
        &self.0
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8; N] {
        &mut self.0
    }
}

impl<const N: usize> Drop for Secret<N> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl<const N: usize> ZeroizeOnDrop for Secret<N> {}

/// Text that contains a secret key, for a file or a terminal; wiped when dropped.
///
/// ```
/// use apr_crypto::RecipientSecret;
/// # let rng = &mut apr_crypto::OsRandom;
///
/// let text = RecipientSecret::generate(rng)?.to_text();
/// assert!(text.as_str().starts_with("apr-secret-1"));
/// assert_eq!(format!("{text:?}"), "SecretText(..)");
/// # Ok::<(), apr_crypto::Error>(())
/// ```
///
/// It cannot be copied or printed by accident:
///
/// ```compile_fail,E0599
/// # let text = apr_crypto::RecipientSecret::generate(&mut apr_crypto::OsRandom).unwrap().to_text();
/// let copy = text.clone();
/// ```
///
/// ```compile_fail,E0277
/// # let text = apr_crypto::RecipientSecret::generate(&mut apr_crypto::OsRandom).unwrap().to_text();
/// println!("{text}");
/// ```
pub struct SecretText(String);

impl SecretText {
    /// With capacity for `capacity` bytes: a string that grew beyond it would leave a copy in freed memory.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self(String::with_capacity(capacity))
    }

    pub(crate) fn push_str(&mut self, text: &str) {
        if self.0.len() + text.len() > self.0.capacity() {
            let mut longer = String::with_capacity((self.0.len() + text.len()) * 2);
            longer.push_str(&self.0);
            self.0.zeroize();
            self.0 = longer;
        }
        self.0.push_str(text);
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Drop for SecretText {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl ZeroizeOnDrop for SecretText {}

redacted!(SecretText);

/// Whether two byte strings are equal, in time that depends on their lengths alone.
///
/// ```
/// assert!(apr_crypto::constant_time_eq(b"tag", b"tag"));
/// assert!(!apr_crypto::constant_time_eq(b"tag", b"tab"));
/// ```
#[must_use]
pub fn constant_time_eq(a: &[u8], b: &[u8]) -> bool {
    subtle::ConstantTimeEq::ct_eq(a, b).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_wiped() {
        let mut secret = Secret::copy_of(&[7; 32]);
        assert_eq!(secret.bytes(), &[7; 32]);
        // What `drop` does, looked at before the memory is gone.
        secret.bytes_mut().zeroize();
        assert_eq!(secret.bytes(), &[0; 32]);
    }

    #[test]
    fn secret_text_grows_without_leaving_a_copy() {
        let mut text = SecretText::with_capacity(4);
        for _ in 0..100 {
            text.push_str("abc");
        }
        assert_eq!(text.as_str().len(), 300);
    }

    #[test]
    fn unequal_lengths_are_unequal() {
        assert!(!constant_time_eq(b"", b"a"));
        assert!(constant_time_eq(b"", b""));
    }
}
