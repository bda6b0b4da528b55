//! Files under a password, for a recipient, and signed, there and back.

use std::path::Path;

use apr_container::{
    Compression, LoadOptions, ModelType, PayloadLayout, Protection, ReadOptions, encode_payload_to_vec,
    load_with, save,
};
use apr_crypto::{Access, Password, RecipientSecret, SigningKey};
use apr_models::{LinearRegression, Vector};

use super::{Outcome, options, same};
use crate::peers::Peer;

const PASSWORD: &str = "my-strong-password";
const RECIPIENT: [u8; 32] = [7; 32];
const SIGNER: [u8; 32] = [1; 32];

/// How a file is protected.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lock {
    Password,
    Recipient,
    Signature,
    /// Encrypted and signed, which no peer writes: it reads the encrypted file in it.
    RecipientAndSignature,
}

impl Lock {
    pub(crate) const ALL: [Self; 4] =
        [Self::Password, Self::Recipient, Self::Signature, Self::RecipientAndSignature];

    /// The name of the row.
    pub(crate) fn row(self) -> &'static str {
        match self {
            Self::Password => "under a password",
            Self::Recipient => "for a recipient",
            Self::Signature => "signed",
            Self::RecipientAndSignature => "for a recipient, signed",
        }
    }
}

/// One model in every compression the peer knows: we protect, the peer opens; then the other way round.
pub(crate) fn check(lock: Lock, peer: &Peer, folder: &Path) -> Vec<Outcome> {
    let compressions =
        Compression::KNOWN.into_iter().filter(|kind| *kind != Compression::LZ4 || peer.knows_lz4());
    compressions
        .flat_map(|compression| {
            let back = match lock {
                Lock::RecipientAndSignature => None,
                _ => Some(back(lock, peer, compression, folder)),
            };
            [Some(there(lock, peer, compression, folder)), back].into_iter().flatten().map(move |outcome| {
                outcome.map_err(|why| format!("{}, {}, {compression}: {why}", lock.row(), peer.name))
            })
        })
        .collect()
}

fn model() -> LinearRegression {
    let coefficients = (0..100).map(|idx| idx as f32 * 0.5 - 7.0).collect();
    LinearRegression::from_parts(Vector::from_vec(coefficients), 1.5).expect("finite weights")
}

fn payload(model: &LinearRegression, layout: PayloadLayout) -> Result<Vec<u8>, String> {
    encode_payload_to_vec(model, layout).map_err(|error| error.to_string())
}

fn there(lock: Lock, peer: &Peer, compression: Compression, folder: &Path) -> Outcome {
    let path = folder.join("protected.apr");
    let (password, recipient) = (Password::from(PASSWORD), RecipientSecret::from_bytes(&RECIPIENT).public());
    let signer = SigningKey::from_seed(&SIGNER);
    let none = Protection::default();
    let protection = match lock {
        Lock::Password => none.with_password(&password),
        Lock::Recipient => none.for_recipient(&recipient),
        Lock::Signature => none.signed_by(&signer),
        Lock::RecipientAndSignature => none.for_recipient(&recipient).signed_by(&signer),
    };
    let model = model();
    let options = options(peer, compression).with_protection(protection);
    save(&model, ModelType::LinearRegression, &path, options).map_err(|error| error.to_string())?;
    let theirs = functions(peer.layout).open(lock, &path)?;
    same("the peer's payload", &payload(&model, peer.layout)?, &theirs)
}

fn back(lock: Lock, peer: &Peer, compression: Compression, folder: &Path) -> Outcome {
    let (plain, path) = (folder.join("plain.apr"), folder.join("theirs.apr"));
    let model = model();
    save(&model, ModelType::LinearRegression, &plain, options(peer, Compression::None))
        .map_err(|error| error.to_string())?;
    functions(peer.layout).protect(lock, &plain, &path, compression.0)?;
    let (password, recipient) = (Password::from(PASSWORD), RecipientSecret::from_bytes(&RECIPIENT));
    let signer = SigningKey::from_seed(&SIGNER).verifying_key();
    let none = Access::default();
    let access = match lock {
        Lock::Password => none.with_password(&password),
        Lock::Signature => none.with_trust(&signer),
        Lock::Recipient | Lock::RecipientAndSignature => none.with_recipient(&recipient),
    };
    let options = LoadOptions { read: ReadOptions::COMPAT, access };
    let found = load_with(&path, ModelType::LinearRegression, options).map_err(|error| error.to_string())?;
    same("our payload", &payload(&model, peer.layout)?, &payload(&found, peer.layout)?)
}

/// The functions of one peer that encrypt and sign.
trait Functions {
    /// The payload of the linear regression in a protected file.
    fn open(&self, lock: Lock, path: &Path) -> Result<Vec<u8>, String>;
    /// Protects what a plain file holds; `compression` is byte 20 of the header.
    fn protect(&self, lock: Lock, plain: &Path, path: &Path, compression: u8) -> Outcome;
}

fn functions(layout: PayloadLayout) -> &'static dyn Functions {
    match layout {
        PayloadLayout::V0_10 => &v0_10::Peer,
        PayloadLayout::V0_15 => &v0_15::Peer,
        _ => &v0_72::Peer,
    }
}

macro_rules! functions {
    ($module:ident, $root:ident, [$($byte:literal => $variant:ident),*]) => {
        mod $module {
            use $root::format::{self, Compression, ModelType, SaveOptions};
            use $root::linear_model::LinearRegression;

            use super::*;

            const KIND: ModelType = ModelType::LinearRegression;

            pub(super) struct Peer;

            impl Functions for Peer {
                fn open(&self, lock: Lock, path: &Path) -> Result<Vec<u8>, String> {
                    let secret = x25519_dalek_2::StaticSecret::from(RECIPIENT);
                    let signer = ed25519_dalek_2::SigningKey::from_bytes(&SIGNER).verifying_key();
                    let model: LinearRegression = match lock {
                        Lock::Password => format::load_encrypted(path, KIND, PASSWORD),
                        Lock::Signature => format::load_verified(path, KIND, Some(&signer)),
                        Lock::Recipient | Lock::RecipientAndSignature => {
                            format::load_as_recipient(path, KIND, &secret)
                        }
                    }
                    .map_err(|error| error.to_string())?;
                    bincode::serialize(&model).map_err(|error| error.to_string())
                }

                fn protect(&self, lock: Lock, plain: &Path, path: &Path, compression: u8) -> Outcome {
                    let model: LinearRegression =
                        format::load(plain, KIND).map_err(|error| error.to_string())?;
                    let compression = match compression {
                        $($byte => Compression::$variant,)*
                        other => return Err(format!("no compression {other}")),
                    };
                    let options = SaveOptions::new().with_compression(compression);
                    let public = x25519_dalek_2::PublicKey::from(&x25519_dalek_2::StaticSecret::from(RECIPIENT));
                    let signer = ed25519_dalek_2::SigningKey::from_bytes(&SIGNER);
                    match lock {
                        Lock::Password => format::save_encrypted(&model, KIND, path, options, PASSWORD),
                        Lock::Signature => format::save_signed(&model, KIND, path, options, &signer),
                        Lock::Recipient | Lock::RecipientAndSignature => {
                            format::save_for_recipient(&model, KIND, path, options, &public)
                        }
                    }
                    .map_err(|error| error.to_string())
                }
            }
        }
    };
}

functions!(v0_10, aprender_010, [0 => None, 1 => ZstdDefault, 2 => ZstdMax, 3 => Lz4]);
functions!(v0_15, aprender_015, [0 => None, 1 => ZstdDefault, 2 => ZstdMax, 3 => Lz4]);
functions!(v0_72, aprender_072, [0 => None, 1 => ZstdDefault, 2 => ZstdMax, 3 => Lz4]);
