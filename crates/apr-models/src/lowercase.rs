//! Texts in lower case, by the same rules everywhere.

#[cfg(any(target_arch = "wasm32", test))]
mod packed;

#[cfg(target_arch = "wasm32")]
pub(crate) use self::packed::lowercase;

/// The text in lower case.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn lowercase(text: &str) -> alloc::string::String {
    text.to_lowercase()
}
