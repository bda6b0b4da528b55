//! Files whose models nobody needs to know.

use alloc::vec::Vec;

use apr_crypto::{Access, Error as CryptoError, ErrorKind as CryptoErrorKind, Rng};

use super::open::{Opened, plaintext, verified};
use super::seal::{Protection, seal};
use super::{COMMITMENT_KEY, MODE_KEY};
use crate::codec::{EncodePayload, PayloadWriter};
use crate::error::{Error, ErrorKind};
use crate::limits::ReadOptions;
use crate::metadata::Metadata;
use crate::model_type::ModelType;
use crate::v1::container::{Container, Payload};
use crate::v1::header::Header;
use crate::v1::save::{Plan, SaveOptions};

/// A file taken apart: what its header says, its metadata, and the payload as bytes, decompressed and not decoded. With it, a
/// program protects files and takes the protection off whatever they hold, types of their makers' own included.
///
/// ```
/// use apr_container::{ModelType, Protection, RawModel, ReadOptions, SaveOptions, to_vec};
/// use apr_crypto::{Access, OsRandom, RecipientSecret};
/// # use apr_container::{EncodePayload, Error, PayloadWriter};
/// # struct Weights(Vec<f32>);
/// # impl EncodePayload for Weights {
/// #     fn encode_payload(&self, out: &mut PayloadWriter<'_>) -> Result<(), Error> { out.f32s(&self.0) }
/// # }
///
/// let file = to_vec(&Weights(vec![0.5]), ModelType::Custom, &SaveOptions::default())?;
///
/// let buyer = RecipientSecret::generate(&mut OsRandom)?;
/// let model = RawModel::open(&file, &Access::default(), &ReadOptions::STRICT)?.model;
/// let sold = model.to_vec_protected(&Protection::default().for_recipient(&buyer.public()), &mut OsRandom)?;
///
/// let access = Access::default().with_recipient(&buyer);
/// let bought = RawModel::open(&sold, &access, &ReadOptions::STRICT)?.model;
/// assert_eq!(bought.to_vec()?, file);
/// # Ok::<(), apr_container::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RawModel {
    header: Header,
    /// What the file says about its model. What protection needs there is taken out and put in on the way.
    pub metadata: Metadata,
    payload: Vec<u8>,
}

impl RawModel {
    /// Opens a file, protected or not: verifies, then decrypts, as [`open_protected`](super::open_protected) does.
    ///
    /// # Errors
    ///
    /// Those of [`open_protected`](super::open_protected) but for decoding; unreadable metadata.
    pub fn open<'k>(
        file: &[u8],
        access: &Access<'k>,
        options: &ReadOptions,
    ) -> Result<Opened<'k, Self>, Error> {
        let container = Container::from_bytes_with(file, options)?;
        let signer = verified(&container, access, options)?;
        let payload = match (container.payload(), access.key()) {
            (Payload::Plain(payload), None) => payload.to_vec()?,
            (Payload::Plain(_), Some(_)) => return Err(ErrorKind::NotEncrypted.at(21)),
            (Payload::Encrypted(_), None) => return Err(ErrorKind::Encrypted.at(21)),
            (Payload::Encrypted(payload), Some(key)) => {
                plaintext(&container, payload, key, options)?.into_payload()
            }
        };
        let mut metadata = container.metadata()?;
        metadata.custom.remove(COMMITMENT_KEY);
        metadata.custom.remove(MODE_KEY);
        Ok(Opened { model: Self { header: *container.header(), metadata, payload }, signer })
    }

    /// Kind of model.
    #[must_use]
    pub const fn model_type(&self) -> ModelType {
        self.header.model_type
    }

    /// The payload's bytes before compression.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// The file without protection, in its compression. Of a file written here, with unchanged metadata, the same bytes as
    /// before it was protected.
    ///
    /// # Errors
    ///
    /// As [`to_vec`](crate::to_vec).
    pub fn to_vec(&self) -> Result<Vec<u8>, Error> {
        self.to_vec_protected(&Protection::default(), &mut Unneeded)
    }

    /// The file with this protection, in its compression.
    ///
    /// # Errors
    ///
    /// As [`to_vec_protected`](super::to_vec_protected).
    pub fn to_vec_protected(
        &self,
        protection: &Protection<'_>,
        rng: &mut (impl Rng + ?Sized),
    ) -> Result<Vec<u8>, Error> {
        let mut metadata = self.metadata.clone();
        let locked = protection.lock(&mut metadata, rng)?;
        let plan = Plan::like(&self.header, &metadata, self.payload.len() as u64)?;
        let options = SaveOptions {
            compression: self.header.compression,
            quality: self.header.quality(),
            ..SaveOptions::default()
        };
        seal(&Bytes(&self.payload), plan, &options, locked.as_ref(), protection.signer(), rng)
    }
}

/// A payload that is written as it is.
struct Bytes<'p>(&'p [u8]);

impl EncodePayload for Bytes<'_> {
    fn encode_payload(&self, out: &mut PayloadWriter<'_>) -> Result<(), Error> {
        out.bytes_raw(self.0)
    }
}

/// Randomness for what takes none.
struct Unneeded;

impl Rng for Unneeded {
    fn fill(&mut self, _out: &mut [u8]) -> Result<(), CryptoError> {
        Err(CryptoErrorKind::Randomness.into())
    }
}
