//! Protection of files whose payload is not decoded.

use alloc::vec::Vec;

use apr_crypto::{Access, Rng};

use super::open::{plaintext, verified};
use super::remove_entries;
use super::seal::{Protection, seal};
use crate::codec::{EncodePayload, PayloadWriter};
use crate::error::{Error, ErrorKind};
use crate::limits::ReadOptions;
use crate::metadata::Metadata;
use crate::model_type::ModelType;
use crate::v1::container::{Container, Payload};
use crate::v1::header::Header;
use crate::v1::save::{NoRandom, Plan, SaveOptions};

/// The parts of a file: header, metadata, and the payload as bytes, decompressed and not decoded. With it, a program adds and
/// removes protection whatever the payload is, including types that only another program can decode.
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
/// let model = RawModel::open(&file, &Access::default(), &ReadOptions::STRICT)?;
/// let sold = model.to_vec_protected(&Protection::default().for_recipient(&buyer.public()), &mut OsRandom)?;
///
/// let access = Access::default().with_recipient(&buyer);
/// let bought = RawModel::open(&sold, &access, &ReadOptions::STRICT)?;
/// assert_eq!(bought.to_vec()?, file);
/// # Ok::<(), apr_container::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RawModel {
    header: Header,
    /// The metadata, without the entries of the protection.
    pub metadata: Metadata,
    payload: Vec<u8>,
}

impl RawModel {
    /// Opens a file, protected or not: verifies, then decrypts, as [`load_from_bytes_with`](crate::load_from_bytes_with) does.
    ///
    /// # Errors
    ///
    /// Those of [`load_from_bytes_with`](crate::load_from_bytes_with) except for the model type and decoding; unreadable metadata.
    pub fn open(file: &[u8], access: &Access<'_>, options: &ReadOptions) -> Result<Self, Error> {
        let container = Container::from_bytes_with(file, options)?;
        verified(&container, access, options)?;
        let payload = match (container.payload(), access.key()) {
            (Payload::Plain(payload), None) => payload.to_vec()?,
            (Payload::Encrypted(_), None) => return Err(ErrorKind::Encrypted.at(21)),
            (_, Some(key)) => plaintext(&container, key, options)?.into_payload(),
        };
        let mut metadata = container.metadata()?;
        remove_entries(&mut metadata);
        Ok(Self { header: *container.header(), metadata, payload })
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

    /// The file without protection, in its compression. If this library wrote the file and the metadata are unchanged, these are
    /// the bytes from before it was protected.
    ///
    /// # Errors
    ///
    /// As [`to_vec`](crate::to_vec).
    pub fn to_vec(&self) -> Result<Vec<u8>, Error> {
        self.to_vec_protected(&Protection::default(), &mut NoRandom)
    }

    /// The file with this protection, in its compression.
    ///
    /// # Errors
    ///
    /// As [`to_vec_with_rng`](crate::to_vec_with_rng).
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
