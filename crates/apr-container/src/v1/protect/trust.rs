//! Verification of the signature of a file in memory.

use apr_crypto::{Signature, Signer, Trust, VerifyingKey};

use crate::error::{Error, ErrorKind};
use crate::limits::ReadOptions;
use crate::v1::container::{Container, SignatureBlock};

/// The signer of a file, encrypted or not; nothing of it is decrypted or decoded. `None` for [`Trust::NoSignature`].
///
/// # Errors
///
/// Those of [`Container::from_bytes_with`]; [`ErrorKind::NotSigned`], [`ErrorKind::SignatureInvalid`],
/// [`ErrorKind::UntrustedSigner`].
pub fn verify_signature<'k>(
    file: &[u8],
    trust: impl Into<Trust<'k>>,
    options: &ReadOptions,
) -> Result<Option<Signer<'k>>, Error> {
    verify_block(trust.into(), Container::from_bytes_with(file, options)?.signature())
}

/// Verifies the signature before anything else is done with the file.
pub(crate) fn verify_block<'k>(
    trust: Trust<'k>,
    block: Option<SignatureBlock<'_>>,
) -> Result<Option<Signer<'k>>, Error> {
    if matches!(trust, Trust::NoSignature) {
        return Ok(None);
    }
    let Some(block) = block else { return Err(ErrorKind::NotSigned.at(21)) };
    let at = block.signed_bytes().len() as u64;
    let invalid = || ErrorKind::SignatureInvalid.at(at);
    let signature: [u8; Signature::LEN] = block.signature().try_into().map_err(|_| invalid())?;
    let embedded: &[u8; VerifyingKey::LEN] = block.public_key().try_into().map_err(|_| invalid())?;
    let accepted = trust.accept(embedded).map_err(|rejected| ErrorKind::from(rejected).at(at))?;
    let Some(signer) = accepted else { return Ok(None) };
    signer.key().verify(block.signed_bytes(), &Signature::from_bytes(signature)).map_err(|_| invalid())?;
    Ok(Some(signer))
}
