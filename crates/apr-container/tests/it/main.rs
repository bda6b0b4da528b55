//! The public API.

#![allow(missing_docs, clippy::unwrap_used, clippy::std_instead_of_alloc, clippy::std_instead_of_core)]
#![cfg(any(feature = "zstd", feature = "ruzstd"))]

#[cfg(feature = "crypto")]
mod authentic;
mod metadata;
mod metadata_refusals;
mod peer_metadata;
#[cfg(feature = "crypto")]
mod protect;
#[cfg(feature = "crypto")]
mod raw;
mod sample;
mod serde_codec;
mod serde_refusals;
#[cfg(all(feature = "crypto", feature = "std"))]
mod streamed;
mod v1;
mod v2;
