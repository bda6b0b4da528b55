//! Authenticated metadata, and the inference key, which is read from no others.

use apr_crypto::{Access, DecryptionKey, RecipientPublic, Signer};

use super::open::{plaintext, verified};
use crate::error::{Error, ErrorKind};
use crate::limits::{ReadOptions, Strictness};
use crate::metadata::{Metadata, Value};
use crate::v1::container::Container;
use crate::v1::save::SaveOptions;

/// Key of the custom metadata with the public key that requests to the model are encrypted to.
const INFERENCE_KEY: &str = "inference_pub_key";

/// Metadata of a file that a trusted key signed, or that are bound to a payload encrypted with a password. Only
/// [`authenticate`] returns them.
///
/// ```compile_fail,E0451
/// # use apr_container::{AuthenticMetadata, Metadata};
/// let forged = AuthenticMetadata { metadata: Metadata::default(), signer: None };
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct AuthenticMetadata<'k> {
    metadata: Metadata,
    signer: Option<Signer<'k>>,
}

impl<'k> AuthenticMetadata<'k> {
    /// The metadata.
    #[must_use]
    pub const fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The trusted key that signed them; `None` if a password authenticates them.
    #[must_use]
    pub const fn signer(&self) -> Option<Signer<'k>> {
        self.signer
    }

    /// The public key that requests to this model are encrypted to: what [`SaveOptions::with_inference_key`] wrote, or
    /// its bytes as 64 hexadecimal digits.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InferenceKey`] if there is none, or the entry is not a public key.
    pub fn inference_key(&self) -> Result<InferenceKey, Error> {
        let value = self.metadata.custom.get(INFERENCE_KEY);
        let key = value.ok_or("the metadata hold no inference key").and_then(key_of);
        key.map(InferenceKey).map_err(|what| ErrorKind::InferenceKey { what }.into())
    }
}

/// The public key of a model's owner, out of metadata that a trusted key or a password authenticates. There is no other way to obtain one: the
/// author of a forged key could decrypt the requests.
///
/// ```
/// use apr_container::{ModelType, Protection, ReadOptions, SaveOptions, authenticate, to_vec};
/// use apr_crypto::Access;
/// use apr_crypto::inference::{RequestOptions, encrypt_for_model};
/// use apr_crypto::{OsRandom, RecipientSecret, SigningKey};
/// # use apr_container::{EncodePayload, Error, PayloadWriter};
/// # struct Weights;
/// # impl EncodePayload for Weights {
/// #     fn encode_payload(&self, out: &mut PayloadWriter<'_>) -> Result<(), Error> { out.f32s(&[0.5]) }
/// # }
///
/// let (owner, maker) = (RecipientSecret::generate(&mut OsRandom)?, SigningKey::generate(&mut OsRandom)?);
/// let options = SaveOptions::default()
///     .with_inference_key(&owner.public())
///     .with_protection(Protection::default().signed_by(&maker));
/// let file = to_vec(&Weights, ModelType::Custom, &options)?;
///
/// // The client has the maker's key from a trusted channel.
/// let known = maker.verifying_key();
/// let authentic = authenticate(&file, &Access::default().with_trust(&known), &ReadOptions::STRICT)?;
/// let key = authentic.inference_key()?;
/// assert_eq!(key.public(), &owner.public());
/// let options = RequestOptions::default();
/// let (request, pending) = encrypt_for_model(&mut OsRandom, key.public(), b"model 3", b"37.2", &options)?;
/// # Ok::<(), apr_container::Error>(())
/// ```
///
/// It cannot be created from a key, a string or bytes:
///
/// ```compile_fail,E0423
/// # let owner = apr_crypto::RecipientSecret::from_bytes(&[1; 32]).public();
/// let key = apr_container::InferenceKey(owner);
/// ```
///
/// ```compile_fail,E0277
/// # let owner = apr_crypto::RecipientSecret::from_bytes(&[1; 32]).public();
/// let key = apr_container::InferenceKey::from(owner);
/// ```
///
/// ```compile_fail,E0277
/// let key: apr_container::InferenceKey = "apr-public-1".parse().unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InferenceKey(RecipientPublic);

impl InferenceKey {
    /// The key, to encrypt to.
    #[must_use]
    pub const fn public(&self) -> &RecipientPublic {
        &self.0
    }
}

impl SaveOptions<'_> {
    /// With the public key that requests to the model are encrypted to. Readers take it from a signed file, or from one
    /// encrypted with a password: see [`authenticate`].
    #[must_use]
    pub fn with_inference_key(mut self, key: &RecipientPublic) -> Self {
        self.metadata.set_inference_key(key);
        self
    }
}

impl Metadata {
    /// Sets the public key that requests to the model are encrypted to, as [`SaveOptions::with_inference_key`] does.
    pub fn set_inference_key(&mut self, key: &RecipientPublic) {
        let text = alloc::string::ToString::to_string(key);
        self.custom.insert(INFERENCE_KEY.into(), Value::from(text.as_str()));
    }

    /// Whether the metadata name this key for encrypted requests, for servers that have its secret half; `None` if they name none.
    #[must_use]
    pub fn names_inference_key(&self, key: &RecipientPublic) -> Option<bool> {
        self.custom.get(INFERENCE_KEY).map(|value| key_of(value).is_ok_and(|found| found == *key))
    }

    /// The public key that an entry for encrypted requests is the text of: a line `apr-public-1...`, or 64 hexadecimal digits.
    ///
    /// The text proves nothing: [`authenticate`] returns the key of a file that is authenticated.
    #[must_use]
    pub fn parse_inference_key(text: &str) -> Option<RecipientPublic> {
        match base16ct::mixed::decode_vec(text).ok().and_then(|bytes| bytes.try_into().ok()) {
            Some(bytes) => RecipientPublic::from_bytes(&bytes).ok(),
            None => text.parse().ok(),
        }
    }
}

/// The key in an entry of the metadata, or what is wrong with it.
fn key_of(value: &Value) -> Result<RecipientPublic, &'static str> {
    let text = value.as_str().ok_or("the inference key is no text")?;
    Metadata::parse_inference_key(text).ok_or("the inference key is not a public key")
}

/// The metadata of a file, if they are authenticated: by the signature of a trusted key, whether or not the payload can be
/// decrypted; or by the binding inside a payload that the password decrypts.
///
/// A key in the file that the caller did not trust proves nothing ([`Trust::Anyone`](apr_crypto::Trust::Anyone)), nor does a payload
/// encrypted to a recipient: anyone can encrypt to a public key.
///
/// # Errors
///
/// Those of [`Container::from_bytes_with`] and of the metadata; [`ErrorKind::Unauthenticated`]; of a required signature
/// [`ErrorKind::NotSigned`], [`ErrorKind::SignatureInvalid`], [`ErrorKind::UntrustedSigner`]; of a password
/// [`ErrorKind::NotEncrypted`], [`ErrorKind::DecryptionFailed`], [`ErrorKind::Rebound`] and, in strict and in compat mode,
/// [`ErrorKind::Unbound`]; [`ErrorKind::SignatureUnchecked`].
pub fn authenticate<'k>(
    file: &[u8],
    access: &Access<'k>,
    options: &ReadOptions,
) -> Result<AuthenticMetadata<'k>, Error> {
    let container = Container::from_bytes_with(file, options)?;
    let signer = verified(&container, access, options)?;
    match (signer, access.key()) {
        (Some(Signer::Trusted(..)), _) => {}
        (_, Some(key @ DecryptionKey::Password(_))) => {
            // Compat mode accepts a payload without a binding, which authenticates nothing.
            let strict = ReadOptions { strictness: Strictness::Strict, ..*options };
            plaintext(&container, key, &strict)?;
        }
        _ => return Err(ErrorKind::Unauthenticated.into()),
    }
    let signer = signer.filter(Signer::is_trusted);
    Ok(AuthenticMetadata { metadata: container.metadata()?, signer })
}
