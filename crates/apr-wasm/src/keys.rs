//! Keys, detached signatures, and private inference.

use alloc::string::ToString;
use alloc::vec::Vec;

use apr_container::Metadata;
use apr_crypto::inference::{Padding, PendingRequest, RequestOptions, encrypt_for_model as encrypt};
use apr_crypto::{
    Access, AnyPublicKey, AnySecretKey, Argon2Limits, Error, ErrorKind, Password, PublicKey, RecipientSecret,
    Rng, SecretKey, Signer, SigningKey, Trust, Trusted, TrustedKeys, VerifyingKey, minisign,
};
use model_file::{Contents, ModelFile};
use read_at::ReadAt;

use crate::failure::Failure;
use crate::json::Json;
use crate::wire::{Answer, Arguments};

/// Random bytes from JavaScript.
pub(crate) struct Drawn<'r>(pub(crate) &'r [u8]);

impl Rng for Drawn<'_> {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), Error> {
        let (now, rest) = self.0.split_at_checked(out.len()).ok_or(ErrorKind::Randomness)?;
        out.copy_from_slice(now);
        self.0 = rest;
        Ok(())
    }
}

/// The key that decrypts a file, and the keys whose signature it must have.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    password: Option<Password>,
    identity: Option<RecipientSecret>,
    trusted: Trusted,
}

impl Keys {
    /// A byte (0 nothing, 1 a password, 2 a secret key) and the text, then a byte (0 none, 1 these keys, 2 any key), the number
    /// of keys and their texts.
    ///
    /// # Errors
    ///
    /// If a string is not a key of its kind.
    pub(crate) fn read(args: &mut Arguments<'_>) -> Result<Self, Failure> {
        let mut keys = Self::default();
        match args.u8()? {
            0 => {}
            1 => keys.password = Some(Password::new(args.text()?.as_bytes())),
            _ => {
                let (text, password) = (args.text()?, args.text()?);
                let ask = || Ok::<_, Error>(Password::new(password.as_bytes()));
                let key = AnySecretKey::from_text_with(text, &Argon2Limits::default(), ask)?;
                keys.identity = Some(key.key.into_recipient()?);
            }
        }
        keys.trusted = match args.u8()? {
            0 => Trusted::NoSignature,
            1 => {
                let mut trusted = TrustedKeys::new();
                for number in 0..args.u32()? {
                    let key = AnyPublicKey::from_text(args.text()?)?.key.into_verifying()?;
                    if trusted.name_of(&key).is_none() {
                        trusted.add(&number.to_string(), key)?;
                    }
                }
                Trusted::AnyOf(trusted)
            }
            _ => Trusted::Anyone,
        };
        Ok(keys)
    }

    /// Whether they open nothing and demand no signature.
    pub(crate) const fn are_empty(&self) -> bool {
        self.password.is_none() && self.identity.is_none() && matches!(self.trusted, Trusted::NoSignature)
    }

    pub(crate) const fn trust(&self) -> Trust<'_> {
        self.trusted.trust()
    }

    /// The key to decrypt with, and the trusted keys.
    pub(crate) fn access(&self) -> Access<'_> {
        let access = Access::default().with_trust(self.trust());
        match (&self.password, &self.identity) {
            (Some(password), _) => access.with_password(password),
            (None, Some(identity)) => access.with_recipient(identity),
            (None, None) => access,
        }
    }
}

/// The signer of an `.apr` file of version 1.
pub(crate) fn signer_of<R: ReadAt>(file: &ModelFile<R>) -> Option<String> {
    let Contents::AprV1(file) = file.contents() else { return None };
    Some(found_json(file.signer()?.as_signer()))
}

/// The signer that a reader found as JSON.
pub(crate) fn found_json(signer: Signer<'_>) -> String {
    signer_json(signer.key(), signer.is_trusted())
}

/// The signer as JSON.
pub(crate) fn signer_json(key: &VerifyingKey, is_trusted: bool) -> String {
    let mut json = Json::object();
    json.text("fingerprint", &key.fingerprint().to_string());
    json.text("publicKey", &key.to_string());
    json.truth("trusted", is_trusted);
    json.finish()
}

/// A byte (0 to sign, 1 to encrypt), then random bytes.
///
/// # Errors
///
/// If there is too little randomness.
pub(crate) fn generate(args: &mut Arguments<'_>) -> Result<Answer, Failure> {
    let is_signing = args.u8()? == 0;
    let rng = &mut Drawn(args.clone().rest());
    let key: SecretKey = match is_signing {
        true => SigningKey::generate(rng)?.into(),
        false => RecipientSecret::generate(rng)?.into(),
    };
    let public = key.public();
    let fingerprint = match &public {
        PublicKey::Recipient(key) => key.fingerprint(),
        PublicKey::Verifying(key) => key.fingerprint(),
    };
    let mut json = Json::object();
    json.text("publicKey", &public.to_string());
    json.text("fingerprint", &fingerprint.to_string());
    json.text("secretKey", key.to_text().as_str());
    Ok(Answer { json: json.finish(), bytes: Vec::new() })
}

/// A signature and a public key as strings, then the signed bytes.
///
/// # Errors
///
/// If the signature is not valid for these bytes and this key.
pub(crate) fn verify_detached(args: &mut Arguments<'_>) -> Result<Answer, Failure> {
    let signature = minisign::Signature::from_text(args.text()?)?;
    let key = AnyPublicKey::from_text(args.text()?)?;
    let id = key.key_id.unwrap_or_else(|| signature.key_id());
    let key = minisign::PublicKey::new(id, key.key.into_verifying()?);
    let comment = key.verify_file(args.clone().rest(), &signature)?;
    let mut json = Json::object();
    json.text("trustedComment", comment);
    json.text("fingerprint", &key.key().fingerprint().to_string());
    Ok(Answer { json: json.finish(), bytes: Vec::new() })
}

/// A public key, as in a key file or as in the metadata of a model, a context, 256 random bytes, seconds since 1970, the input.
///
/// # Errors
///
/// If the key is not one to encrypt to.
pub(crate) fn encrypt_for_model(args: &mut Arguments<'_>) -> Result<(Vec<u8>, PendingRequest), Failure> {
    let text = args.text()?;
    let key = match AnyPublicKey::from_text(text) {
        Ok(key) => key.key.into_recipient()?,
        // Metadata may have it as hexadecimal digits.
        Err(error) => Metadata::parse_inference_key(text).ok_or(error)?,
    };
    let (context, random, now) = (args.bytes()?, args.bytes()?, args.u64()?);
    let options = RequestOptions::default().sent_at(now).with_padding(Padding::PowerOfTwo);
    Ok(encrypt(&mut Drawn(random), &key, context, args.clone().rest(), &options)?)
}
