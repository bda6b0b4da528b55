//! Encrypted and signed files of the peers, opened with the keys of the vectors.

use apr_container::v1::Container;
use apr_container::{
    Expect, LoadOptions, PayloadLayout, ReadOptions, encode_payload_to_vec, load_from_bytes_with,
    verify_signature,
};
use apr_crypto::{Access, Password, RecipientSecret, Signer, Trust, VerifyingKey};
use apr_models::AnyModel;

use super::seal::seal;
use super::vectors::{Content, File, Protection, V1File, Vectors, inputs, read};
use crate::digest::sha256_hex;
use crate::matrix::{Outcome, Suite};
use crate::vectors::{Error, Missing};

const COLUMNS: &[&str] = &["strict", "compat", "payload", "signer", "another key", "a bit changed"];

const ABOUT: &str = "\
The same files, opened with the keys they were made for. The payload, decoded and encoded again, has to have the recorded
digest. Strict reading misses what the peers do not write, the binding of an encrypted payload to the file around it. Another
key, and one bit of the payload changed with the checksum made right again, have to be refused in either mode.";

/// The keys of the vectors, as test data shows them.
struct Keys {
    password: Password,
    recipient: RecipientSecret,
    signer: VerifyingKey,
}

/// Runs every protected file of the peers.
///
/// # Errors
///
/// A vector that cannot be read from disk, or inputs without keys.
pub fn suite(vectors: &Vectors) -> Result<Suite, Error> {
    let keys = keys()?;
    let other = Keys {
        password: Password::from("another"),
        recipient: RecipientSecret::from_bytes(&[1; 32]),
        signer: apr_crypto::SigningKey::from_seed(&[1; 32]).verifying_key(),
    };
    let mut suite = Suite::new("apr, version 1: encrypted and signed", ABOUT, COLUMNS);
    for file in &vectors.files {
        let Content::V1(facts) = &file.content else { continue };
        let (Some(access), Some(other)) = (keys.access(facts.protection), other.access(facts.protection))
        else {
            continue;
        };
        let case = Case { vectors, file, facts, keys: &keys, bytes: read(&file.name)? };
        let row = format!("{}: {}", file.peer, facts.protection.name());
        suite.record(&row, &file.name, case.outcomes(access, other));
    }
    Ok(suite)
}

impl Keys {
    fn access(&self, protection: Protection) -> Option<Access<'_>> {
        let none = Access::default();
        match protection {
            Protection::Password => Some(none.with_password(&self.password)),
            Protection::Recipient => Some(none.with_recipient(&self.recipient)),
            Protection::Signed => Some(none.with_trust(&self.signer)),
            Protection::Plain => None,
        }
    }
}

fn keys() -> Result<Keys, Error> {
    inputs(|inputs| {
        let keys = inputs.get("keys")?;
        let key = |kind: &str, name: &str| -> Result<[u8; 32], Missing> {
            let of = keys.get(kind)?;
            let bytes = base16ct::mixed::decode_vec(of.get(name)?.text()?).ok();
            bytes.and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| of.missing(name))
        };
        let signer = VerifyingKey::from_bytes(&key("signed", "ed25519_public_hex")?);
        Ok(Keys {
            password: Password::from(&*keys.get("password")?.get("password")?.text()?),
            recipient: RecipientSecret::from_bytes(&key("recipient", "x25519_secret_hex")?),
            signer: signer.map_err(|_| keys.missing("signed"))?,
        })
    })
}

struct Case<'a> {
    vectors: &'a Vectors,
    file: &'a File,
    facts: &'a V1File,
    keys: &'a Keys,
    bytes: Vec<u8>,
}

impl Case<'_> {
    fn outcomes(&self, access: Access<'_>, other: Access<'_>) -> [Outcome; 6] {
        let strict = open(&self.bytes, access, &ReadOptions::STRICT);
        let compat = open(&self.bytes, access, &ReadOptions::COMPAT);
        [
            self.strict(&strict.map(|_| ())),
            word("opened", &compat),
            compat.as_ref().map_or(Outcome::NotApplicable, |opened| self.payload(&opened.model)),
            self.signer(),
            self.refused(&self.bytes, other),
            self.refused(&self.changed(), access),
        ]
    }

    fn strict(&self, opened: &Result<(), &'static str>) -> Outcome {
        match opened {
            Ok(()) if self.facts.protection == Protection::Signed => Outcome::Expected("opened"),
            Err("ac-unbound") if self.facts.protection.is_encrypted() => Outcome::Expected("unbound"),
            other => Outcome::Wrong(format!("{other:?}")),
        }
    }

    fn payload(&self, model: &AnyModel) -> Outcome {
        let check = || -> Result<(), String> {
            let expected = self.vectors.payload(&self.facts.payload).map_err(|error| error.to_string())?;
            let version = self.file.peer.rsplit(' ').next().unwrap_or_default();
            let layout = PayloadLayout::from_version(version).ok_or("which layout?")?;
            let found = encode_payload_to_vec(model, layout).map_err(|error| error.to_string())?;
            let is_equal = sha256_hex(&found) == expected.sha256;
            is_equal.then_some(()).ok_or_else(|| "differs".to_owned())
        };
        Outcome::from_failure("equal", check().err())
    }

    /// A reader that accepts any signer learns which key signed.
    fn signer(&self) -> Outcome {
        if self.facts.protection != Protection::Signed {
            return Outcome::NotApplicable;
        }
        let access = Access::default().with_trust(Trust::Anyone);
        match open(&self.bytes, access, &ReadOptions::COMPAT).map(|opened| opened.signer) {
            Ok(Some(Signer::Unknown(key))) if key == self.keys.signer => Outcome::Expected("found"),
            other => Outcome::Wrong(format!("{other:?}")),
        }
    }

    fn changed(&self) -> Vec<u8> {
        let mut changed = self.bytes.clone();
        let metadata = Container::from_bytes_with(&self.bytes, &ReadOptions::COMPAT);
        let at = 32 + metadata.map_or(0, |found| found.metadata_bytes().len()) + 20;
        changed[at] ^= 1;
        seal(&mut changed);
        changed
    }

    fn refused(&self, file: &[u8], access: Access<'_>) -> Outcome {
        let opened = open(file, access, &ReadOptions::COMPAT).is_ok()
            || open(file, access, &ReadOptions::STRICT).is_ok();
        Outcome::from_failure("refused", opened.then(|| "opened".to_owned()))
    }
}

#[derive(Debug)]
struct Opened<'k> {
    model: AnyModel,
    signer: Option<Signer<'k>>,
}

fn open<'k>(file: &[u8], access: Access<'k>, options: &ReadOptions) -> Result<Opened<'k>, &'static str> {
    let code = |error: apr_container::Error| error.code();
    let load = LoadOptions { read: *options, access };
    let model = load_from_bytes_with(file, Expect::AnyKnown, load).map_err(code)?;
    Ok(Opened { model, signer: verify_signature(file, access.trust(), options).map_err(code)? })
}

fn word<T>(word: &'static str, result: &Result<T, &'static str>) -> Outcome {
    Outcome::from_failure(word, result.as_ref().err().map(|code| (*code).to_owned()))
}
