//! `.apr` version 1: a header of 32 bytes, metadata, the payload of one model, and a checksum.
//!
//! [`save`](crate::save()), [`load`](crate::load()) and [`inspect`](crate::inspect()) are the usual entry points;
//! [`Container`] gives the parts of a file one by one. `docs/apr-format.md` is the specification.

mod candidates;
mod container;
pub(crate) mod embedded;
#[cfg(feature = "std")]
pub(crate) mod file;
mod flags;
mod header;
pub(crate) mod inspect;
pub(crate) mod load;
#[cfg(feature = "crypto")]
pub(crate) mod protect;
pub(crate) mod save;
#[cfg(not(feature = "crypto"))]
pub(crate) mod without_keys;

pub use self::container::{Container, EncryptedPayload, Payload, PlainPayload, SignatureBlock};
pub use self::flags::Flags;
pub use self::header::Header;
