//! Metadata that somebody trusted vouches for, and what may be taken from no others.

use apr_crypto::{Access, DecryptionKey, RecipientPublic, Signer};

use super::open::{plaintext, verified};
use crate::error::{Error, ErrorKind};
use crate::limits::{ReadOptions, Strictness};
use crate::metadata::{Metadata, Value};
use crate::v1::container::Container;
use crate::v1::save::SaveOptions;

/// Key of the custom metadata with the public key to which questions to the model are encrypted.
const INFERENCE_KEY: &str = "inference_pub_key";

/// Metadata of a file that a trusted key signed, or that a password ties to its encrypted payload. Only [`authenticate`]
/// makes them.
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

    /// The trusted key that signed them; `None` if a password vouches for them.
    #[must_use]
    pub const fn signer(&self) -> Option<Signer<'k>> {
        self.signer
    }

    /// The public key to which questions to this model are encrypted: what [`SaveOptions::with_inference_key`] wrote, or
    /// its bytes as 64 hexadecimal digits.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InferenceKey`] if there is none, or something else in its place.
    pub fn inference_key(&self) -> Result<InferenceKey, Error> {
        let wrong = |what| Error::from(ErrorKind::InferenceKey { what });
        let value = self.metadata.custom.get(INFERENCE_KEY);
        let text = value.ok_or_else(|| wrong("the metadata hold no inference key"))?.as_str();
        let text = text.ok_or_else(|| wrong("the inference key is no text"))?;
        let key = match base16ct::mixed::decode_vec(text).ok().and_then(|bytes| bytes.try_into().ok()) {
            Some(bytes) => RecipientPublic::from_bytes(&bytes).ok(),
            None => text.parse().ok(),
        };
        key.map(InferenceKey).ok_or_else(|| wrong("the inference key is not a public key"))
    }
}

/// The public key of a model's owner, out of metadata that a trusted key or a password authenticates. There is no other way to one: a key
/// that anybody can have put into a file lets them read the questions.
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
/// // The client knows the maker's key from elsewhere.
/// let known = maker.verifying_key();
/// let authentic = authenticate(&file, &Access::default().with_trust(&known), &ReadOptions::STRICT)?;
/// let key = authentic.inference_key()?;
/// assert_eq!(key.public(), &owner.public());
/// let options = RequestOptions::default();
/// let (request, pending) = encrypt_for_model(&mut OsRandom, key.public(), b"model 3", b"37.2", &options)?;
/// # Ok::<(), apr_container::Error>(())
/// ```
///
/// Neither a key nor a text nor bytes become one:
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
    /// With the public key to which questions to the model are encrypted. Readers take it from a signed file, or from one
    /// encrypted with a password: see [`authenticate`].
    #[must_use]
    pub fn with_inference_key(mut self, key: &RecipientPublic) -> Self {
        let text = alloc::string::ToString::to_string(key);
        self.metadata.custom.insert(INFERENCE_KEY.into(), Value::from(text.as_str()));
        self
    }
}

/// The metadata of a file, if somebody trusted vouches for them: a signature by a trusted key, whether or not the payload is
/// encrypted and can be read; or the binding inside a payload that this password opens.
///
/// A key in the file that the caller did not trust proves nothing ([`Trust::Anyone`](apr_crypto::Trust::Anyone)), nor does a payload
/// encrypted to a recipient: everybody can encrypt to a public key.
///
/// # Errors
///
/// Those of [`Container::from_bytes_with`] and of the metadata; [`ErrorKind::Unauthenticated`]; of a demanded signature
/// [`ErrorKind::NotSigned`], [`ErrorKind::SignatureInvalid`], [`ErrorKind::UntrustedSigner`]; of a password
/// [`ErrorKind::NotEncrypted`], [`ErrorKind::DecryptionFailed`], [`ErrorKind::Rebound`] and, however strict the reading,
/// [`ErrorKind::Unbound`]; [`ErrorKind::SignatureUnchecked`].
pub fn authenticate<'k>(
    file: &[u8],
    access: &Access<'k>,
    options: &ReadOptions,
) -> Result<AuthenticMetadata<'k>, Error> {
    let container = Container::from_bytes_with(file, options)?;
    let signer = verified(&container, access, options)?;
    match (signer, access.key()) {
        (Some(Signer::Trusted(_)), _) => {}
        (_, Some(key @ DecryptionKey::Password(_))) => {
            // What is tolerated in a model's payload, that it is bound to nothing, vouches for nothing.
            let strict = ReadOptions { strictness: Strictness::Strict, ..*options };
            plaintext(&container, key, &strict)?;
        }
        _ => return Err(ErrorKind::Unauthenticated.into()),
    }
    let signer = signer.filter(|signer| matches!(signer, Signer::Trusted(_)));
    Ok(AuthenticMetadata { metadata: container.metadata()?, signer })
}
