//! Texts in lower case, by the same rules everywhere.

#[cfg(any(target_arch = "wasm32", test))]
mod tables;

#[cfg(target_arch = "wasm32")]
pub(crate) use self::tables::lowercase;

/// The text in lower case.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn lowercase(text: &str) -> alloc::string::String {
    text.to_lowercase()
}
