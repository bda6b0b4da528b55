//! The file beside the model: a Sigstore bundle around a DSSE envelope around a statement (OpenSSF Model Signing 1.0,
//! section 4).

use alloc::borrow::Cow;
use core::fmt;

use apr_crypto::dsse_pae;
use apr_crypto::p256::{Signature, SigningKey, VerifyingKey};
use base64ct::{Base64, Encoding};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::error::{Error, ErrorKind};
use crate::limits::Limits;
use crate::manifest::Manifest;
use crate::statement::{self, PAYLOAD_TYPE};

const MEDIA_TYPE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

/// A signature of a list of files, with the list. Nothing of it is checked before [`verify`](Self::verify), and nothing of the
/// list is to be had.
///
/// ```
/// # let folder = std::env::temp_dir().join(format!("apr-manifest-doc-bundle-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # std::fs::write(folder.join("weights.bin"), "weights")?;
/// use apr_crypto::{OsRandom, p256::SigningKey};
/// use apr_manifest::{Bundle, Limits, Manifest, SignOptions};
///
/// let key = SigningKey::generate(&mut OsRandom)?;
/// let manifest = Manifest::of(&folder, None, &SignOptions::default(), &|_, _| ())?;
/// let json = Bundle::sign(&manifest, &key).to_json();
///
/// let bundle = Bundle::from_json(json.as_bytes(), &Limits::default())?;
/// assert_eq!(bundle.verify(&key.verifying_key(), &Limits::default())?, manifest);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Bundle {
    payload: Vec<u8>,
    signature: Signature,
    hint: Option<String>,
}

impl Bundle {
    /// Signs a list.
    #[must_use]
    pub fn sign(manifest: &Manifest, key: &SigningKey) -> Self {
        let payload = statement::to_json(manifest);
        let signature = key.sign(&dsse_pae(PAYLOAD_TYPE, &payload));
        Self { payload, signature, hint: Some(key_hint(&key.verifying_key())) }
    }

    /// Reads a bundle that a key signed. Those with certificates are named and refused.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Limit`] if it is longer than the limit, [`ErrorKind::Json`], [`ErrorKind::Bundle`],
    /// [`ErrorKind::Unsupported`]; an [`apr_crypto::Error`] for a signature that is none.
    pub fn from_json(json: &[u8], limits: &Limits) -> Result<Self, Error> {
        let (found, limit) = (json.len() as u64, limits.bundle_len);
        if found > limit {
            return Err(ErrorKind::Limit { what: "bytes of signature", found, limit }.into());
        }
        let wrong = |what| Error::from(ErrorKind::Bundle { what });
        let unsupported = |what| Err(ErrorKind::Unsupported { what }.into());
        let Raw { media_type, material, envelope, message } = statement::parse("the bundle", json)?;
        match &*media_type {
            MEDIA_TYPE => {}
            other if other.starts_with("application/vnd.dev.sigstore.bundle") => {
                return unsupported("a Sigstore bundle of another version than 0.3");
            }
            _ => return Err(wrong("its media type is not that of a Sigstore bundle")),
        }
        if material.certificate.is_some() || material.chain.is_some() {
            return unsupported("one with a certificate; only those with a plain key are");
        }
        let hint = material.key.ok_or_else(|| wrong("it names no key"))?.hint;
        let Some(envelope) = envelope else {
            return match message {
                Some(_) => unsupported("one of a message, without a list of files"),
                None => Err(wrong("it has no DSSE envelope")),
            };
        };
        if envelope.payload_type != PAYLOAD_TYPE {
            return Err(wrong("its payload is not an in-toto statement"));
        }
        let [RawSignature { sig }] = <[RawSignature<'_>; 1]>::try_from(envelope.signatures)
            .map_err(|_| wrong("it has not one signature"))?;
        let decode = |text: &str, what| Base64::decode_vec(text).map_err(|_| wrong(what));
        let payload = decode(&envelope.payload, "its payload is not base64")?;
        let signature = Signature::from_der(&decode(&sig, "its signature is not base64")?)?;
        Ok(Self { payload, signature, hint: hint.map(Cow::into_owned) })
    }

    /// The file's text.
    #[must_use]
    pub fn to_json(&self) -> String {
        let raw = Raw {
            media_type: MEDIA_TYPE.into(),
            material: RawMaterial {
                key: Some(RawKey { hint: self.hint.as_deref().map(Cow::Borrowed) }),
                entries: Some([]),
                certificate: None,
                chain: None,
            },
            envelope: Some(RawEnvelope {
                payload: Base64::encode_string(&self.payload).into(),
                payload_type: PAYLOAD_TYPE.into(),
                signatures: vec![RawSignature {
                    sig: Base64::encode_string(&self.signature.to_der()).into(),
                }],
            }),
            message: None,
        };
        raw.to_json()
    }

    /// The hint of the bundle about its key, usually [`key_hint`] of it. Not authenticated.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The list, if `key` signed it and it is one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OtherKey`] if the bundle names another key; an [`apr_crypto::Error`] if the signature does not match; of what
    /// was signed: [`ErrorKind::Json`], [`ErrorKind::Statement`], [`ErrorKind::Name`], [`ErrorKind::Root`],
    /// [`ErrorKind::Unsupported`], [`ErrorKind::Limit`].
    pub fn verify(&self, key: &VerifyingKey, limits: &Limits) -> Result<Manifest, Error> {
        if self.hint.as_ref().is_some_and(|hint| *hint != key_hint(key) && *hint != der_hint(key)) {
            return Err(ErrorKind::OtherKey.into());
        }
        key.verify(&dsse_pae(PAYLOAD_TYPE, &self.payload), &self.signature)?;
        statement::from_json(&self.payload, limits)
    }
}

/// Without the list, which is not verified.
impl fmt::Debug for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bundle")
            .field("hint", &self.hint)
            .field("signature", &self.signature)
            .finish_non_exhaustive()
    }
}

impl Raw<'_> {
    fn to_json(&self) -> String {
        serde_json::to_string(self).expect("text and lists are JSON") + "\n"
    }
}

/// What a bundle names a key by: SHA-256, in hexadecimal, of its PEM as OpenSSL writes it.
#[must_use]
pub fn key_hint(key: &VerifyingKey) -> String {
    hex_sha256(key.to_pem().as_bytes())
}

/// The same of the DER inside, which the specification's wording allows as well.
fn der_hint(key: &VerifyingKey) -> String {
    let pem = key.to_pem();
    let base64: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    hex_sha256(&Base64::decode_vec(&base64).unwrap_or_default())
}

fn hex_sha256(data: &[u8]) -> String {
    base16ct::lower::encode_string(&Sha256::digest(data))
}

#[derive(Serialize, Deserialize)]
struct Raw<'a> {
    #[serde(rename = "mediaType", borrow)]
    media_type: Cow<'a, str>,
    #[serde(rename = "verificationMaterial", borrow)]
    material: RawMaterial<'a>,
    #[serde(rename = "dsseEnvelope", borrow)]
    envelope: Option<RawEnvelope<'a>>,
    #[serde(rename = "messageSignature", skip_serializing)]
    message: Option<IgnoredAny>,
}

#[derive(Serialize, Deserialize)]
struct RawMaterial<'a> {
    #[serde(rename = "publicKey", borrow)]
    key: Option<RawKey<'a>>,
    /// Of a transparency log; with a plain key there are none, and none are read.
    #[serde(rename = "tlogEntries", skip_deserializing)]
    entries: Option<[(); 0]>,
    #[serde(skip_serializing)]
    certificate: Option<IgnoredAny>,
    #[serde(rename = "x509CertificateChain", skip_serializing)]
    chain: Option<IgnoredAny>,
}

/// Before version 1.1 the key itself was here, as `rawBytes`. Whose key it is has to be known anyway.
#[derive(Serialize, Deserialize)]
struct RawKey<'a> {
    #[serde(borrow)]
    hint: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
struct RawEnvelope<'a> {
    #[serde(borrow)]
    payload: Cow<'a, str>,
    #[serde(rename = "payloadType", borrow)]
    payload_type: Cow<'a, str>,
    #[serde(borrow)]
    signatures: Vec<RawSignature<'a>>,
}

#[derive(Deserialize)]
struct RawSignature<'a> {
    #[serde(borrow)]
    sig: Cow<'a, str>,
}

impl Serialize for RawSignature<'_> {
    /// With an empty `keyid`, as the reference implementation writes it.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut out = serializer.serialize_struct("Signature", 2)?;
        out.serialize_field("sig", &self.sig)?;
        out.serialize_field("keyid", "")?;
        out.end()
    }
}
