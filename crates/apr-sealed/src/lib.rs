//! Sealed files: any model, of any size, encrypted or signed or both, any tensor of which can be read alone, verified.
//!
//! What is sealed is a sequence of [`Part`]s, tensors and whatever stands between them. Opening a file reads its header;
//! reading one tensor then reads the chunks that hold it and a few hashes, decrypts, verifies, and touches nothing else. All
//! parts in order are the original file, byte for byte. New recipients are added in place, without touching the payload.
//! `docs/sealed-format.md` is the specification and says what is promised and what is not.
//!
//! ```
//! use apr_sealed::{Part, Plan, SealOptions, SealedLimits, SealedReader};
//! use apr_crypto::{Access, OsRandom, RecipientSecret, Signer, SigningKey};
//!
//! let (seller, buyer) = (SigningKey::generate(&mut OsRandom)?, RecipientSecret::generate(&mut OsRandom)?);
//! let plan = Plan::new([Part::tensor("weight", "F32", [2], 8), Part::tensor("bias", "F32", [1], 4)])?;
//! let options = SealOptions::default().for_recipient(buyer.public()).signed_by(&seller);
//! let file = apr_sealed::to_vec(&plan, &[7; 12], &options, &mut OsRandom)?;
//!
//! let seller_public = seller.verifying_key();
//! let access = Access::default().with_recipient(&buyer).with_trust(&seller_public);
//! let reader = SealedReader::open(&file, &access, &SealedLimits::default())?;
//! assert_eq!(reader.signer(), Some(Signer::Trusted(None)));
//! assert_eq!(reader.tensor("bias")?, [7; 4]);
//! # Ok::<(), apr_sealed::Error>(())
//! ```
//!
//! - Writing: [`Plan`] lays the parts out, [`SealOptions`] say for whom; [`to_vec`] in memory; with `std` `Sealer` streams,
//!   `seal_file` replaces a file durably. Extra memory is a few MiB for any size.
//! - Reading: [`SealedReader`] over any [`ReadAt`](read_at::ReadAt). [`SealedHeader`] is what anyone can see. [`verify`] checks
//!   signature and content without any key to decrypt.
//! - Other recipients: [`Rekeying`], with `std` `rekey`.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod directory;
mod engine;
mod error;
mod fields;
mod fixed;
mod header;
mod limits;
mod options;
mod plan;
mod reader;
mod recipients;
mod rekey;
#[cfg(feature = "std")]
mod sealer;
mod slot;
mod stored;

pub use crate::engine::{SealedLayout, to_vec};
pub use crate::error::{Error, ErrorKind};
pub use crate::fixed::Suite;
pub use crate::header::{SealedHeader, verify};
pub use crate::limits::SealedLimits;
pub use crate::options::SealOptions;
pub use crate::plan::{Part, PartKind, Plan};
pub use crate::reader::SealedReader;
#[cfg(all(feature = "std", any(unix, windows)))]
pub use crate::reader::open_file;
#[cfg(all(feature = "std", any(unix, windows)))]
pub use crate::rekey::rekey;
pub use crate::rekey::{RekeyOptions, Rekeying};
#[cfg(feature = "std")]
pub use crate::sealer::{Sealer, seal_file};
pub use crate::slot::StanzaKind;

/// How a sealed file begins: not with text, and damaged by whatever changes line ends.
pub const MAGIC: [u8; 8] = *b"\x89APRS\r\n\x1a";
