//! Verification of long files without reading them into memory.

use alloc::vec;

use apr_crypto::{Signature, Signer, Trust, VerifyingKey};
use read_at::ReadAt;

use super::trust::verify_signature;
use crate::crc::Crc32;
use crate::error::{Error, ErrorKind};
use crate::limits::ReadOptions;
use crate::v1::header::{CHECKSUM_LEN, Geometry, HEADER_LEN, Header, SIGNATURE_LEN};

/// Maximum length of a file that is read as a whole, whatever its header declares: in a corrupted file, the checksum mismatch is
/// more informative than a wrong length.
const SHORT_LEN: u64 = 16 << 20;

/// Length of the buffer for longer files.
const BUFFER_LEN: usize = 256 << 10;

/// The signer of a file that is read once, in pieces: memory does not grow with its length. `None` for [`Trust::NoSignature`].
///
/// The results are those of [`verify_signature`]. A file longer than 16 MiB is refused before more than its header and its
/// signature are read if its lengths do not fit, it is not signed, or the signer is not trusted.
///
/// ```
/// # use apr_container::{EncodePayload, Error, ModelType, PayloadWriter, Protection, SaveOptions, to_vec};
/// # struct Weights;
/// # impl EncodePayload for Weights {
/// #     fn encode_payload(&self, out: &mut PayloadWriter<'_>) -> Result<(), Error> { out.f32s(&[0.5]) }
/// # }
/// use apr_container::{ReadOptions, verify_source};
/// use apr_crypto::{OsRandom, Signer, SigningKey};
///
/// let maker = SigningKey::generate(&mut OsRandom)?;
/// # let options = SaveOptions::default().with_protection(Protection::default().signed_by(&maker));
/// # let file = to_vec(&Weights, ModelType::Custom, &options)?;
/// // Any `ReadAt`: bytes, an open file, a range of a remote object.
/// let key = maker.verifying_key();
/// let signer = verify_source(&file, &key, &ReadOptions::STRICT)?;
/// assert_eq!(signer, Some(Signer::Trusted(key, None)));
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
///
/// Those of [`verify_signature`]; [`ErrorKind::Crypto`] if the source cannot be read.
pub fn verify_source<'k>(
    source: &(impl ReadAt + ?Sized),
    trust: impl Into<Trust<'k>>,
    options: &ReadOptions,
) -> Result<Option<Signer<'k>>, Error> {
    let (len, trust) = (source.total_len(), trust.into());
    if len <= SHORT_LEN {
        // It fits, since it is short.
        let mut file = vec![0; len as usize];
        source.read_exact_at(0, &mut file)?;
        return verify_signature(&file, trust, options);
    }
    let Claim { geometry, signed } = Claim::read(source, trust, options)?;
    let invalid = || ErrorKind::SignatureInvalid.at(geometry.payload_end);
    let mut verification = match &signed {
        Some((signer, signature)) => Some(signer.key().verification(signature).map_err(|_| invalid())?),
        None => None,
    };

    let mut checksum = Crc32::default();
    let mut buffer = vec![0; BUFFER_LEN];
    let mut offset = 0;
    while offset < geometry.checksum_at {
        let left = geometry.checksum_at - offset;
        let step = usize::try_from(left).unwrap_or(usize::MAX).min(BUFFER_LEN);
        let (piece, _) = buffer.split_at_mut(step);
        source.read_exact_at(offset, piece)?;
        checksum.update(piece);
        let left = geometry.payload_end.saturating_sub(offset);
        let (covered, _) = piece.split_at(usize::try_from(left).unwrap_or(usize::MAX).min(step));
        if let Some(verification) = &mut verification {
            verification.update(covered);
        }
        offset += step as u64;
    }
    let mut expected = [0; CHECKSUM_LEN];
    source.read_exact_at(geometry.checksum_at, &mut expected)?;
    let (expected, actual) = (u32::from_le_bytes(expected), checksum.get());
    if expected != actual {
        return Err(ErrorKind::ChecksumMismatch { expected, actual }.at(geometry.checksum_at));
    }
    if let Some(verification) = verification {
        verification.finish().map_err(|_| invalid())?;
    }
    Ok(signed.map(|(signer, _)| signer))
}

/// Refuses a file longer than 16 MiB that [`verify_signature`] would refuse for its header or for the key of its signature,
/// before the rest of it is read. A shorter file is not read at all.
///
/// For programs that go on to use the bytes of a file: what they use has to be what they verified, so they read the whole file.
///
/// # Errors
///
/// Those of [`Header::from_bytes`]; [`ErrorKind::Truncated`], [`ErrorKind::Limit`], and in strict reading
/// [`ErrorKind::Unowned`] and [`ErrorKind::UncompressedSize`]; [`ErrorKind::NotSigned`], [`ErrorKind::UntrustedSigner`];
/// [`ErrorKind::Crypto`] if the source cannot be read.
pub fn check_source<'k>(
    source: &(impl ReadAt + ?Sized),
    trust: impl Into<Trust<'k>>,
    options: &ReadOptions,
) -> Result<(), Error> {
    if source.total_len() <= SHORT_LEN {
        return Ok(());
    }
    Claim::read(source, trust.into(), options).map(drop)
}

/// The checked lengths of a long file, and its signature, whose key is accepted, if one is required.
struct Claim<'k> {
    geometry: Geometry,
    signed: Option<(Signer<'k>, Signature)>,
}

impl<'k> Claim<'k> {
    fn read(source: &(impl ReadAt + ?Sized), trust: Trust<'k>, options: &ReadOptions) -> Result<Self, Error> {
        let mut header = [0; HEADER_LEN];
        source.read_exact_at(0, &mut header)?;
        let header = Header::from_bytes(&header, options)?;
        let geometry = header.geometry(source.total_len(), options)?;
        if matches!(trust, Trust::NoSignature) {
            return Ok(Self { geometry, signed: None });
        }
        if !header.is_signed() {
            return Err(ErrorKind::NotSigned.at(21));
        }
        let mut signature = [0; Signature::LEN];
        let mut embedded = [0; VerifyingKey::LEN];
        const { assert!(Signature::LEN + VerifyingKey::LEN == SIGNATURE_LEN) };
        source.read_exact_at(geometry.payload_end, &mut signature)?;
        source.read_exact_at(geometry.payload_end + Signature::LEN as u64, &mut embedded)?;
        let accepted =
            trust.accept(&embedded).map_err(|rejected| ErrorKind::from(rejected).at(geometry.payload_end))?;
        let signed = accepted.map(|signer| (signer, Signature::from_bytes(signature)));
        Ok(Self { geometry, signed })
    }
}
