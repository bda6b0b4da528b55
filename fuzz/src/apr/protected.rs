//! Encrypted and signed containers under fixed keys: as they were saved, changed by someone without the keys, and made by someone
//! who has the recipient's public key and no manners.

use apr_container::v1::{Container, Flags, Header};
use apr_container::{Compression, ModelType, Protection, SaveOptions, to_vec_with_rng};
use apr_crypto::{Error, RecipientSecret, Rng, SigningKey};
use apr_models::{LinearRegression, Vector};

use super::{first, seal};
use crate::choices::Choices;

const HEADER_LEN: usize = 32;
const SIGNATURE_LEN: usize = 96;

/// Who the files are for.
#[must_use]
pub fn recipient() -> RecipientSecret {
    RecipientSecret::from_bytes(&[7; 32])
}

/// Who signs them.
#[must_use]
pub fn signer() -> SigningKey {
    SigningKey::from_seed(&[1; 32])
}

/// Randomness that repeats, so that a finding does.
#[derive(Clone, Copy, Debug)]
pub struct Repeating(pub u64);

impl Rng for Repeating {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), Error> {
        for byte in out {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = (self.0 >> 33) as u8;
        }
        Ok(())
    }
}

/// The model in the files.
#[must_use]
pub fn model() -> LinearRegression {
    LinearRegression::from_parts(Vector::from_vec(vec![0.5, -2.0, 3.25]), 1.5).expect("finite")
}

/// A valid file for the recipient, signed or not.
#[must_use]
pub fn sound(compression: Compression, signed: bool) -> Vec<u8> {
    let (to, by) = (recipient().public(), signer());
    let mut protection = Protection::default().for_recipient(&to);
    if signed {
        protection = protection.signed_by(&by);
    }
    let options = SaveOptions::default()
        .with_created_at(0)
        .with_name("x")
        .with_compression(compression)
        .with_protection(protection);
    let rng = &mut Repeating(9);
    to_vec_with_rng(&model(), ModelType::LinearRegression, &options, rng).expect("small")
}

/// What someone without the keys makes of a valid file: bytes changed, cut out, doubled, put in; lengths and checksum made
/// to fit.
#[must_use]
pub fn changed(file: &[u8], choices: &mut Choices<'_>) -> Vec<u8> {
    let mut file = file[..file.len() - 4].to_vec();
    for _ in 0..=choices.below(4) {
        let at = (choices.below(256) << 8 | choices.below(256)) % file.len();
        let len = choices.below(64).min(file.len() - at);
        match choices.below(6) {
            0 => file[at] = choices.byte(),
            1 => drop(file.drain(at..at + len)),
            2 => {
                let piece = file[at..at + len].to_vec();
                file.splice(at..at, piece);
            }
            3 => file.rotate_left(at),
            _ => file[at] ^= 1 << choices.below(8),
        }
        if file.len() < HEADER_LEN {
            return seal(file);
        }
    }
    if !choices.rarely(4) {
        fit(&mut file);
    }
    seal(file)
}

/// The length of the payload that the other lengths leave.
fn fit(file: &mut [u8]) {
    let number =
        |at: usize| u32::from_le_bytes([file[at], file[at + 1], file[at + 2], file[at + 3]]) as usize;
    let signature = if Flags(file[21]).contains(Flags::SIGNED) { SIGNATURE_LEN } else { 0 };
    let Some(payload) = file.len().checked_sub(HEADER_LEN + signature + number(8)) else { return };
    file[12..16].copy_from_slice(&(payload as u32).to_le_bytes());
}

/// A file for the recipient as anybody can make it: any header, metadata and payload of the plain generator, the payload
/// encrypted without a binding.
#[must_use]
pub fn by_anybody(input: &[u8]) -> Option<Vec<u8>> {
    let plain = first::files(input).pop()?;
    let container = Container::from_bytes_with(&plain, &apr_container::ReadOptions::COMPAT).ok()?;
    let stored = container.payload().plain().ok()?.stored().to_vec();
    let (to, rng) = (recipient().public(), &mut Repeating(3));
    let (ephemeral, key) = to.agree_v1(rng).ok()?;
    let sealed = key.seal(rng, b"", &stored).ok()?;
    let payload = [ephemeral.to_bytes().as_slice(), &to.id(), &sealed].concat();
    let flags = container.header().flags.with(Flags::ENCRYPTED);
    let header = Header { payload_len: payload.len() as u32, flags, ..*container.header() };
    Some(seal([&header.to_bytes(), container.metadata_bytes(), &payload].concat()))
}
