//! What `POST /private` of a prediction server carries inside requests and responses, and the signed key of its owner.
//!
//! The layouts and the steps of both sides are specified in `docs/private-inference.md`.

use alloc::string::String;
use alloc::vec::Vec;

use crate::encrypt::aead::try_with_capacity;
use crate::encrypt::recipient::RecipientPublic;
use crate::error::{Error, ErrorKind};
use crate::keys::AnyPublicKey;
use crate::sign::{Trust, VerifyingKey, minisign};

/// Media type of encrypted requests and responses.
pub const MEDIA_TYPE: &str = "application/vnd.apr.private";
/// The trusted comment of a signature over an inference key. A signature with another comment is for another purpose.
pub const SIGNED_KEY_COMMENT: &str = "apr inference key";
/// Bytes of a request beside its padded body.
pub const REQUEST_OVERHEAD: usize = 68;

const REQUEST: &str = "query, media types and a body";
const RESPONSE: &str = "status, media type and a body";

/// The context of requests in one session of a server: from its start to its end.
#[must_use]
pub fn context(session: &str) -> String {
    ["apr-serve private 1 ", session].concat()
}

/// The inference key in `file`, the text of a public key's file, if a trusted key signed it for this purpose: a signature of
/// minisign's with the trusted comment [`SIGNED_KEY_COMMENT`].
///
/// # Errors
///
/// [`ErrorKind::Signature`] if no trusted key signed the file, [`ErrorKind::KeyPurpose`] if it was signed for another purpose; those of
/// signatures and keys as text.
pub fn signed_key(file: &str, signature: &str, trust: Trust<'_>) -> Result<RecipientPublic, Error> {
    let signature = minisign::Signature::from_text(signature)?;
    let verify = |key: &VerifyingKey| {
        let key = minisign::PublicKey::new(signature.key_id(), *key);
        key.verify_file(file.as_bytes(), &signature).map(|comment| comment == SIGNED_KEY_COMMENT)
    };
    let found = match trust {
        Trust::Key(key) => verify(key).ok(),
        Trust::AnyOf(keys) => keys.iter().find_map(|(_, key)| verify(key).ok()),
        // A key that came with the signature says nothing about who signed.
        Trust::NoSignature | Trust::Anyone => None,
    };
    match found {
        Some(true) => AnyPublicKey::from_text(file)?.key.into_recipient(),
        Some(false) => Err(ErrorKind::KeyPurpose { expected: SIGNED_KEY_COMMENT }.into()),
        None => Err(ErrorKind::Signature.into()),
    }
}

/// A request for predictions, as it is encrypted: the parts of `POST /predict`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServiceRequest<'a> {
    /// The query of the URL, without `?`.
    pub query: &'a str,
    /// `Content-Type`; JSON if it is empty.
    pub media_type: &'a str,
    /// `Accept`; JSON if it is empty.
    pub accept: &'a str,
    /// The rows.
    pub body: &'a [u8],
}

impl<'a> ServiceRequest<'a> {
    /// Writes the request.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Message`] if a text has more than 65,535 bytes; [`ErrorKind::OutOfMemory`].
    pub fn to_vec(&self) -> Result<Vec<u8>, Error> {
        write(&[], [self.query, self.media_type, self.accept], self.body, REQUEST)
    }

    /// Reads a request.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Message`] if the bytes are none.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut rest = bytes;
        let mut next = || text(&mut rest).ok_or(ErrorKind::Message { expected: REQUEST });
        let (query, media_type, accept) = (next()?, next()?, next()?);
        Ok(Self { query, media_type, accept, body: rest })
    }
}

/// The response of `POST /predict`, as it is encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServiceResponse<'a> {
    /// The status that HTTP would have.
    pub status: u16,
    /// Values of a row of a raw body, else 0.
    pub n_columns: u32,
    /// `Content-Type`.
    pub media_type: &'a str,
    /// The model that answered; empty if none did.
    pub model: &'a str,
    /// Predictions, or the JSON of an error.
    pub body: &'a [u8],
}

impl<'a> ServiceResponse<'a> {
    /// Writes the response.
    ///
    /// # Errors
    ///
    /// As [`ServiceRequest::to_vec`].
    pub fn to_vec(&self) -> Result<Vec<u8>, Error> {
        let [a, b] = self.status.to_le_bytes();
        let [c, d, e, f] = self.n_columns.to_le_bytes();
        write(&[a, b, c, d, e, f], [self.media_type, self.model], self.body, RESPONSE)
    }

    /// Reads a response.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Message`] if the bytes are none.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, Error> {
        let read = || {
            let (status, rest) = bytes.split_first_chunk()?;
            let (n_columns, mut rest) = rest.split_first_chunk()?;
            let (media_type, model) = (text(&mut rest)?, text(&mut rest)?);
            let (status, n_columns) = (u16::from_le_bytes(*status), u32::from_le_bytes(*n_columns));
            Some(Self { status, n_columns, media_type, model, body: rest })
        };
        read().ok_or_else(|| ErrorKind::Message { expected: RESPONSE }.into())
    }
}

/// `front`, each text after its length in 2 bytes, the body.
fn write<const N: usize>(
    front: &[u8],
    texts: [&str; N],
    body: &[u8],
    expected: &'static str,
) -> Result<Vec<u8>, Error> {
    let texts_len = texts.iter().map(|text| 2 + text.len()).sum::<usize>();
    let len = body.len().checked_add(front.len() + texts_len);
    let mut out = try_with_capacity(len.ok_or(ErrorKind::OutOfMemory { len: body.len() as u64 })?)?;
    out.extend_from_slice(front);
    for text in texts {
        let len = u16::try_from(text.len()).map_err(|_| ErrorKind::Message { expected })?;
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(text.as_bytes());
    }
    out.extend_from_slice(body);
    Ok(out)
}

/// The next text; `None` if it is cut off, or no UTF-8.
fn text<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let (len, after) = rest.split_first_chunk()?;
    let (text, after) = after.split_at_checked(u16::from_le_bytes(*len).into())?;
    *rest = after;
    core::str::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encrypt::recipient::RecipientSecret;
    use crate::sign::SigningKey;

    const ASKED: ServiceRequest<'_> =
        ServiceRequest { query: "proba=true", media_type: "text/csv", accept: "", body: b"1,2\n" };
    const ANSWERED: ServiceResponse<'_> = ServiceResponse {
        status: 200,
        n_columns: 3,
        media_type: "application/json",
        model: "2f6a0c3d9be14f77",
        body: b"{}",
    };

    #[test]
    fn contents_are_those_of_the_specification() {
        let asked = ASKED.to_vec().unwrap();
        assert_eq!(asked, b"\x0a\0proba=true\x08\0text/csv\0\x001,2\n");
        assert_eq!(ServiceRequest::from_bytes(&asked).unwrap(), ASKED);
        let answered = ANSWERED.to_vec().unwrap();
        assert_eq!(answered, b"\xc8\0\x03\0\0\0\x10\0application/json\x10\x002f6a0c3d9be14f77{}");
        assert_eq!(ServiceResponse::from_bytes(&answered).unwrap(), ANSWERED);
        assert_eq!(context("00ff"), "apr-serve private 1 00ff");
    }

    #[test]
    fn what_is_cut_off_is_refused() {
        let (asked, answered) = (ASKED.to_vec().unwrap(), ANSWERED.to_vec().unwrap());
        for len in 0..asked.len() - ASKED.body.len() {
            assert_eq!(ServiceRequest::from_bytes(&asked[..len]).unwrap_err().code(), "cy-message");
        }
        for len in 0..answered.len() - ANSWERED.body.len() {
            assert_eq!(ServiceResponse::from_bytes(&answered[..len]).unwrap_err().code(), "cy-message");
        }
        assert!(ServiceRequest::from_bytes(b"\x01\0\xff\0\0\0\0").is_err());
        let long = "q".repeat(65_536);
        let asked = ServiceRequest { query: &long, ..ASKED };
        assert_eq!(asked.to_vec().unwrap_err().code(), "cy-message");
    }

    #[test]
    fn a_signed_key_is_of_a_trusted_signer_and_for_this_purpose() {
        let (maker, stranger) = (SigningKey::from_seed(&[1; 32]), SigningKey::from_seed(&[2; 32]));
        let owner = RecipientSecret::from_bytes(&[3; 32]).public();
        let file = alloc::format!("# the owner\n{owner}\n");
        let sign = |key: &SigningKey, comment: &str| {
            let key = minisign::SecretKey::from(SigningKey::from_seed(key.expose_seed()));
            let mut hash = minisign::Prehash::new();
            hash.update(file.as_bytes());
            let signature = key.sign(&hash.finish(), comment, "").unwrap();
            alloc::string::ToString::to_string(&signature)
        };
        let known = maker.verifying_key();
        let signed = sign(&maker, SIGNED_KEY_COMMENT);
        assert_eq!(signed_key(&file, &signed, Trust::Key(&known)).unwrap(), owner);
        let code =
            |file: &str, signature: &str, trust| signed_key(file, signature, trust).unwrap_err().code();
        assert_eq!(code(&file, &sign(&maker, "file:owner.key.pub"), Trust::Key(&known)), "cy-key-purpose");
        assert_eq!(code(&file, &sign(&stranger, SIGNED_KEY_COMMENT), Trust::Key(&known)), "cy-signature");
        assert_eq!(code(&file.replace("the", "an"), &signed, Trust::Key(&known)), "cy-signature");
        for trust in [Trust::Anyone, Trust::NoSignature] {
            assert_eq!(code(&file, &signed, trust), "cy-signature");
        }
    }
}
