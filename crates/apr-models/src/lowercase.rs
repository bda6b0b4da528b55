//! Lower case of strings, by the same rules on every platform.

#[cfg(any(apr_small, test))]
mod packed;

#[cfg(apr_small)]
pub(crate) use self::packed::lowercase;

/// The string in lower case.
#[cfg(not(apr_small))]
pub(crate) fn lowercase(text: &str) -> alloc::string::String {
    text.to_lowercase()
}
