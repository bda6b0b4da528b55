//! Texts in lower case, by the same rules everywhere.

#[cfg(any(apr_small, test))]
mod packed;

#[cfg(apr_small)]
pub(crate) use self::packed::lowercase;

/// The text in lower case.
#[cfg(not(apr_small))]
pub(crate) fn lowercase(text: &str) -> alloc::string::String {
    text.to_lowercase()
}
