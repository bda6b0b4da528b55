//! Saving of models.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
#[cfg(feature = "std")]
use std::io::{Seek, SeekFrom, Write};
#[cfg(feature = "std")]
use std::path::Path;

#[cfg(feature = "crypto")]
use apr_crypto::Rng;
#[cfg(all(feature = "crypto", feature = "std"))]
use apr_crypto::{OsRandom, Password, RecipientPublic, SigningKey};

use crate::codec::MODEL_NAME_KEY;
use crate::codec::payload_layout::PayloadLayout;
use crate::codec::{EncodePayload, PayloadWriter, Sink, payload_len};
use crate::compression::{Compression, compress};
use crate::crc::Crc32;
use crate::error::{Error, ErrorKind};
use crate::metadata::{Metadata, Value};
use crate::model_type::ModelType;
use crate::v1::flags::Flags;
use crate::v1::header::{CHECKSUM_LEN, HEADER_LEN, Header, VERSION};
#[cfg(feature = "crypto")]
use crate::v1::protect::{Protection, remove_entries, seal};
#[cfg(not(feature = "crypto"))]
use crate::v1::without_keys::Protection;

/// How to save a model: metadata, compression, payload layout, and protection.
///
/// ```
/// use apr_container::{Compression, SaveOptions};
///
/// let mut options = SaveOptions::default()
///     .with_name("house-prices")
///     .with_description("fitted on last year's sales")
///     .with_compression(Compression::None);
/// options.metadata.hyperparameters.insert("learning_rate".to_string(), 0.01);
/// ```
#[derive(Clone, Debug, Default)]
pub struct SaveOptions<'k> {
    /// How to compress the payload. Default none.
    pub compression: Compression,
    /// The metadata. `created_at` is filled in when it is empty, `aprender_version` follows the layout.
    pub metadata: Metadata,
    /// The layout of the payload. Default the newest.
    pub layout: PayloadLayout,
    /// A quality score from 1 to 100.
    pub quality: Option<u8>,
    /// Encryption and signature. Default none.
    pub protection: Protection<'k>,
}

impl<'k> SaveOptions<'k> {
    /// With this name of the model.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.metadata.model_name = Some(name.into());
        self
    }

    /// With this description.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.metadata.description = Some(description.into());
        self
    }

    /// With this compression of the payload.
    #[must_use]
    pub const fn with_compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// With this protection: encrypted, signed, or both.
    #[cfg(feature = "crypto")]
    #[must_use]
    pub const fn with_protection(mut self, protection: Protection<'k>) -> Self {
        self.protection = protection;
        self
    }

    /// With these metadata in place of the previous ones.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Metadata) -> Self {
        self.metadata = metadata;
        self
    }

    /// With the payload in this layout, for readers of that release.
    #[must_use]
    pub fn with_layout(mut self, layout: PayloadLayout) -> Self {
        self.layout = layout;
        self
    }

    /// With this time of creation, in seconds since 1970-01-01 00:00 UTC. Without it the environment variable
    /// `SOURCE_DATE_EPOCH` counts, then the clock; without `std` the time is 0.
    #[must_use]
    pub fn with_created_at(mut self, unix_seconds: u64) -> Self {
        self.metadata.created_at = unix_seconds.to_string();
        self
    }

    /// With this quality score, from 1 to 100.
    #[must_use]
    pub const fn with_quality(mut self, score: u8) -> Self {
        self.quality = Some(score);
        self
    }
}

/// The model as the bytes of a file. Equal models and options give equal bytes, if the options contain the time of creation and
/// do not encrypt.
///
/// # Errors
///
/// [`ErrorKind::ModelTypeMismatch`] if `model_type` is not the model's, [`ErrorKind::TooLargeForFormat`] for metadata or
/// a payload of 4 GiB, [`ErrorKind::FeatureDisabled`], and what the model refuses to encode; with encryption those of
/// `to_vec_with_rng`.
pub fn to_vec<M: EncodePayload + ?Sized>(
    model: &M,
    model_type: ModelType,
    options: &SaveOptions<'_>,
) -> Result<Vec<u8>, Error> {
    #[cfg(all(feature = "crypto", feature = "std"))]
    return to_vec_with_rng(model, model_type, options, &mut OsRandom);
    #[cfg(all(feature = "crypto", not(feature = "std")))]
    return to_vec_with_rng(model, model_type, options, &mut NoRandom);
    #[cfg(not(feature = "crypto"))]
    plain_to_vec(model, &Plan::new(model, model_type, options)?, options)
}

/// As [`to_vec`], with salts, nonces and ephemeral keys from `rng`. No encrypted file equals another.
///
/// ```
/// use apr_container::{ModelType, Protection, SaveOptions, load_from_bytes_with, to_vec_with_rng};
/// use apr_crypto::{Access, OsRandom, RecipientSecret, SigningKey};
/// # use apr_container::{DecodePayload, EncodePayload, Error, PayloadReader, PayloadWriter};
/// # struct Weights(Vec<f32>);
/// # impl EncodePayload for Weights {
/// #     fn encode_payload(&self, out: &mut PayloadWriter<'_>) -> Result<(), Error> { out.f32s(&self.0) }
/// # }
/// # impl DecodePayload for Weights {
/// #     fn decode_payload(input: &mut PayloadReader<'_>) -> Result<Self, Error> { Ok(Self(input.f32s()?)) }
/// # }
///
/// let (seller, buyer) = (SigningKey::generate(&mut OsRandom)?, RecipientSecret::generate(&mut OsRandom)?);
/// let buyer_public = buyer.public();
/// let protection = Protection::default().for_recipient(&buyer_public).signed_by(&seller);
/// let options = SaveOptions::default().with_protection(protection);
/// let file = to_vec_with_rng(&Weights(vec![0.5]), ModelType::Custom, &options, &mut OsRandom)?;
///
/// let seller_public = seller.verifying_key();
/// let access = Access::default().with_recipient(&buyer).with_trust(&seller_public);
/// let model: Weights = load_from_bytes_with(&file, ModelType::Custom, access)?;
/// assert_eq!(model.0, [0.5]);
/// # Ok::<(), apr_container::Error>(())
/// ```
///
/// # Errors
///
/// Those of [`to_vec`]; [`ErrorKind::Limit`] for an empty password; [`ErrorKind::Crypto`] if there is no
/// randomness, no memory for the password, or the recipient's key protects nothing.
#[cfg(feature = "crypto")]
pub fn to_vec_with_rng<M: EncodePayload + ?Sized>(
    model: &M,
    model_type: ModelType,
    options: &SaveOptions<'_>,
    rng: &mut (impl Rng + ?Sized),
) -> Result<Vec<u8>, Error> {
    let protection = &options.protection;
    if protection.is_none() {
        return plain_to_vec(model, &Plan::new(model, model_type, options)?, options);
    }
    let mut options = options.clone();
    let locked = protection.lock(&mut options.metadata, rng)?;
    let plan = Plan::new(model, model_type, &options)?;
    seal(model, plan, &options, locked.as_ref(), protection.signer(), rng)
}

fn plain_to_vec<M: EncodePayload + ?Sized>(
    model: &M,
    plan: &Plan,
    options: &SaveOptions<'_>,
) -> Result<Vec<u8>, Error> {
    let mut file = Vec::new();
    if options.compression == Compression::None {
        let len = (HEADER_LEN + plan.metadata.len() + CHECKSUM_LEN) as u64 + plan.uncompressed_len();
        let reserved = usize::try_from(len).is_ok_and(|len| file.try_reserve_exact(len).is_ok());
        if !reserved {
            return Err(ErrorKind::OutOfMemory { bytes: len }.into());
        }
    }
    file.extend_from_slice(&[0; HEADER_LEN]);
    file.extend_from_slice(&plan.metadata);
    let payload_at = file.len();
    plan.write_payload(model, options, &[], &mut file)?;
    let header = plan.header((file.len() - payload_at) as u64, options)?;
    if let Some(place) = file.first_chunk_mut() {
        *place = header.to_bytes();
    }
    let mut crc = Crc32::default();
    crc.update(&file);
    file.put(&crc.get().to_le_bytes())?;
    Ok(file)
}

/// Saves a model, replacing the file at `path` if there is one. The file is complete and on disk or, on any error, as
/// it was before.
///
/// The payload is streamed from the model's memory, without a copy of it; a protected file is built in memory.
///
/// # Errors
///
/// Those of [`to_vec`], [`ErrorKind::File`], [`ErrorKind::Io`].
#[cfg(feature = "std")]
pub fn save<M: EncodePayload + ?Sized>(
    model: &M,
    model_type: ModelType,
    path: impl AsRef<Path>,
    options: SaveOptions<'_>,
) -> Result<(), Error> {
    let mut replacement = durable_file::Replacement::create(path.as_ref())?;
    write_to(model, model_type, &mut replacement, &options)?;
    Ok(replacement.commit()?)
}

/// Writes a model as a file of version 1, from the writer's current position. The header is written
/// last. For a file that must survive a crash use [`save`].
///
/// # Errors
///
/// Those of [`to_vec`], [`ErrorKind::Io`].
#[cfg(feature = "std")]
pub fn write_to<M: EncodePayload + ?Sized, W: Write + Seek>(
    model: &M,
    model_type: ModelType,
    out: &mut W,
    options: &SaveOptions<'_>,
) -> Result<(), Error> {
    #[cfg(feature = "crypto")]
    if !options.protection.is_none() {
        return Ok(out.write_all(&to_vec(model, model_type, options)?)?);
    }
    let plan = Plan::new(model, model_type, options)?;
    if options.compression == Compression::None {
        // All lengths are known: one pass from front to back.
        let header = plan.header(plan.uncompressed_len(), options)?;
        let mut out = WriteSink::new(out);
        out.put(&header.to_bytes())?;
        out.put(&plan.metadata)?;
        plan.write_payload(model, options, &[], &mut out)?;
        out.settle_crc();
        let crc = out.crc.get();
        out.put(&crc.to_le_bytes())?;
        return out.hand_on();
    }
    let begin = out.stream_position()?;
    let mut sink = WriteSink::new(out);
    sink.put(&[0; HEADER_LEN])?;
    sink.put(&plan.metadata)?;
    sink.hand_on()?;
    sink.crc = Crc32::default();
    let before = sink.written;
    plan.write_payload(model, options, &[], &mut sink)?;
    let header = plan.header(sink.written + sink.buffer.len() as u64 - before, options)?.to_bytes();
    sink.settle_crc();
    let mut crc = Crc32::default();
    crc.update(&header);
    crc.update(&plan.metadata);
    crc.append(&sink.crc);
    sink.put(&crc.get().to_le_bytes())?;
    sink.hand_on()?;
    let end = out.stream_position()?;
    out.seek(SeekFrom::Start(begin))?;
    out.write_all(&header)?;
    out.seek(SeekFrom::Start(end))?;
    Ok(())
}

/// The source of randomness of files that need none.
#[cfg(feature = "crypto")]
pub(crate) struct NoRandom;

#[cfg(feature = "crypto")]
impl Rng for NoRandom {
    fn fill(&mut self, _out: &mut [u8]) -> Result<(), apr_crypto::Error> {
        Err(apr_crypto::ErrorKind::Randomness.into())
    }
}

/// Saves a model encrypted with a password.
///
/// # Errors
///
/// As [`save`].
#[cfg(all(feature = "crypto", feature = "std"))]
pub fn save_encrypted<M: EncodePayload + ?Sized>(
    model: &M,
    model_type: ModelType,
    path: impl AsRef<Path>,
    options: SaveOptions<'_>,
    password: &str,
) -> Result<(), Error> {
    let password = Password::from(password);
    let protection = options.protection.with_password(&password);
    save(model, model_type, path, options.with_protection(protection))
}

/// Saves a model encrypted to the holder of the secret key that belongs to `recipient`.
///
/// # Errors
///
/// As [`save`].
#[cfg(all(feature = "crypto", feature = "std"))]
pub fn save_for_recipient<M: EncodePayload + ?Sized>(
    model: &M,
    model_type: ModelType,
    path: impl AsRef<Path>,
    options: SaveOptions<'_>,
    recipient: &RecipientPublic,
) -> Result<(), Error> {
    let protection = options.protection.for_recipient(recipient);
    save(model, model_type, path, options.with_protection(protection))
}

/// Saves a model with a signature.
///
/// # Errors
///
/// As [`save`].
#[cfg(all(feature = "crypto", feature = "std"))]
pub fn save_signed<M: EncodePayload + ?Sized>(
    model: &M,
    model_type: ModelType,
    path: impl AsRef<Path>,
    options: SaveOptions<'_>,
    key: &SigningKey,
) -> Result<(), Error> {
    let protection = options.protection.signed_by(key);
    save(model, model_type, path, options.with_protection(protection))
}

/// The parts of a file that are known before its payload is written.
pub(crate) struct Plan {
    version: (u8, u8),
    model_type: ModelType,
    pub(crate) metadata: Vec<u8>,
    /// Length of the model's values alone.
    payload_len: u64,
    /// Bytes after the model in the payload.
    pub(crate) trailer_len: u64,
    pub(crate) flags: Flags,
}

impl Plan {
    pub(crate) fn new<M: EncodePayload + ?Sized>(
        model: &M,
        model_type: ModelType,
        options: &SaveOptions<'_>,
    ) -> Result<Self, Error> {
        if let Some(found) = M::MODEL_TYPE.filter(|found| *found != model_type) {
            return Err(ErrorKind::ModelTypeMismatch { expected: model_type, found }.into());
        }
        if let Some(found) = options.quality.filter(|score| !(1..=100).contains(score)) {
            return Err(ErrorKind::Limit { what: "quality score", found: found.into(), limit: 100 }.into());
        }
        model.check_fitted()?;
        let mut metadata = options.metadata.clone();
        #[cfg(feature = "crypto")]
        if options.protection.is_none() {
            remove_entries(&mut metadata);
        }
        if metadata.created_at.is_empty() {
            metadata.created_at = now();
        }
        // Readers derive the layout from the version: it follows the layout, not the metadata of another file.
        metadata.aprender_version = options.layout.version().to_owned();
        match model.model_name() {
            Some(name) => metadata.custom.insert(MODEL_NAME_KEY.to_owned(), Value::from(name)),
            None => metadata.custom.remove(MODEL_NAME_KEY),
        };
        let mut flags = Flags::default();
        if metadata.license.is_some() {
            flags = flags.with(Flags::LICENSED);
        }
        let metadata = metadata.to_msgpack()?;
        let payload_len = payload_len(model, options.layout)?;
        Ok(Self { version: VERSION, model_type, metadata, payload_len, trailer_len: 0, flags })
    }

    /// For a file with the payload of another one that has this header, and with these metadata.
    #[cfg(feature = "crypto")]
    pub(crate) fn like(header: &Header, metadata: &Metadata, payload_len: u64) -> Result<Self, Error> {
        let of_content = Flags::ENCRYPTED.with(Flags::SIGNED).with(Flags::LICENSED);
        let mut flags = Flags(header.flags.0 & !of_content.0);
        if metadata.license.is_some() {
            flags = flags.with(Flags::LICENSED);
        }
        let (version, model_type) = (header.version, header.model_type);
        Ok(Self { version, model_type, metadata: metadata.to_msgpack()?, payload_len, trailer_len: 0, flags })
    }

    const fn uncompressed_len(&self) -> u64 {
        self.payload_len + self.trailer_len
    }

    pub(crate) fn header(&self, payload_len: u64, options: &SaveOptions<'_>) -> Result<Header, Error> {
        let field = |part: &'static str, len: u64| {
            let limit = u32::MAX.into();
            u32::try_from(len).map_err(|_| Error::from(ErrorKind::TooLargeForFormat { part, len, limit }))
        };
        Ok(Header {
            version: self.version,
            model_type: self.model_type,
            metadata_len: field("metadata", self.metadata.len() as u64)?,
            payload_len: field("payload", payload_len)?,
            uncompressed_len: field("payload", self.uncompressed_len())?,
            compression: options.compression,
            flags: self.flags,
            quality: options.quality.unwrap_or(0),
            reserved: [0; 9],
        })
    }

    pub(crate) fn write_payload<M: EncodePayload + ?Sized>(
        &self,
        model: &M,
        options: &SaveOptions<'_>,
        trailer: &[u8],
        out: &mut dyn Sink,
    ) -> Result<(), Error> {
        // Lengths that do not fit are refused before anything is written.
        self.header(0, options)?;
        compress(options.compression, self.uncompressed_len(), out, &mut |sink| {
            let mut out = PayloadWriter::new(&mut *sink, options.layout);
            model.encode_payload(&mut out)?;
            match out.finish()? {
                len if len == self.payload_len => sink.put(trailer),
                _ => {
                    Err(ErrorKind::InvalidValue { what: "the model encodes itself differently each time" }
                        .into())
                }
            }
        })
    }
}

#[cfg(feature = "std")]
fn now() -> String {
    let from_environment = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.parse::<u64>().ok());
    let since_epoch = || {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(0, |elapsed| elapsed.as_secs())
    };
    from_environment.unwrap_or_else(since_epoch).to_string()
}

#[cfg(not(feature = "std"))]
fn now() -> String {
    "0".to_owned()
}

/// Buffers small writes, and computes the checksum of all bytes.
#[cfg(feature = "std")]
struct WriteSink<'w, W> {
    out: &'w mut W,
    buffer: Vec<u8>,
    /// Bytes of `buffer` that the checksum covers already.
    settled: usize,
    written: u64,
    crc: Crc32,
}

#[cfg(feature = "std")]
impl<'w, W: Write> WriteSink<'w, W> {
    const BUFFER_LEN: usize = 16 << 10;
    /// The checksum and the write read the same bytes: in pieces that stay in the cache between the two.
    const PIECE_LEN: usize = 256 << 10;

    fn new(out: &'w mut W) -> Self {
        Self {
            out,
            buffer: Vec::with_capacity(Self::BUFFER_LEN),
            settled: 0,
            written: 0,
            crc: Crc32::default(),
        }
    }

    fn settle_crc(&mut self) {
        self.crc.update(self.buffer.get(self.settled..).unwrap_or_default());
        self.settled = self.buffer.len();
    }

    fn hand_on(&mut self) -> Result<(), Error> {
        self.settle_crc();
        self.out.write_all(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        self.settled = 0;
        Ok(())
    }
}

#[cfg(feature = "std")]
impl<W: Write> Sink for WriteSink<'_, W> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if bytes.len() <= Self::BUFFER_LEN - self.buffer.len() {
            self.buffer.extend_from_slice(bytes);
            return Ok(());
        }
        self.hand_on()?;
        for piece in bytes.chunks(Self::PIECE_LEN) {
            self.crc.update(piece);
            self.out.write_all(piece)?;
        }
        self.written += bytes.len() as u64;
        Ok(())
    }
}
