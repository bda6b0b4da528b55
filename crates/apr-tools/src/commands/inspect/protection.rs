//! Which parts of an `.apr` file of version 1 are authenticated, and by what.

use apr_container::KeyHint;
use apr_crypto::VerifyingKey;
use serde::Serialize;

use crate::input::{AprV1, Model, Rules};
use crate::secrets::SignedBy;

/// What protects a file from modification.
pub(super) struct Protection {
    /// Whether the checksum was compared. It detects corruption; an attacker can recompute it.
    is_compared: bool,
    signature: Option<Signature>,
    encryption: Option<Encryption>,
}

struct Signature {
    /// The key in the file; `None` if its bytes are none.
    key: Option<VerifyingKey>,
    /// The signer, once the signature was verified.
    signer: Option<SignedBy>,
}

struct Encryption {
    /// As the metadata state it; not authenticated until the payload is decrypted.
    mode: Option<KeyHint>,
    /// The beginning of the recipient's public key, in hexadecimal digits.
    recipient: Option<String>,
    /// Whether the metadata hold a commitment to the key.
    has_commitment: bool,
    /// Whether the payload was decrypted and is bound to this header and these metadata; `None` if it was not read.
    is_bound: Option<bool>,
    /// Whether it was a password that opened it.
    is_by_password: bool,
}

/// What authenticates header, metadata and payload.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Nothing,
    /// A signature by a key that is not trusted.
    Anyone,
    Signature,
    /// The password: the maker of the file knew it. A recipient's key proves nothing, since anyone can encrypt to it.
    Password,
}

impl Protection {
    pub(super) fn new(
        model: &Model,
        file: &AprV1,
        is_compared: bool,
        signer: Option<SignedBy>,
        rules: &Rules,
    ) -> Self {
        let (info, is_decrypted) = (file.info(), file.is_decrypted());
        let signature = info.signed.then(|| Signature { key: model.file().signer_declared(), signer });
        let encryption = info.encrypted.then(|| Encryption {
            mode: info.key_hint(),
            recipient: model.file().recipient_declared().map(|id| base16ct::lower::encode_string(&id)),
            has_commitment: info.has_key_commitment(),
            // Strict reading opens no payload that is not bound.
            is_bound: (is_decrypted && rules.is_strict()).then_some(true),
            is_by_password: is_decrypted && model.source().keys().has_password(),
        });
        Self { is_compared, signature, encryption }
    }

    fn by(&self) -> By {
        let signer = self.signature.as_ref().and_then(|signature| signature.signer.as_ref());
        let is_shared_secret =
            |encryption: &Encryption| encryption.is_bound == Some(true) && encryption.is_by_password;
        match (signer, self.encryption.as_ref().is_some_and(is_shared_secret)) {
            (Some(SignedBy { name: Some(_), .. }), _) => By::Signature,
            (_, true) => By::Password,
            (Some(_), false) => By::Anyone,
            (None, false) => By::Nothing,
        }
    }

    /// Lines of a report: labels and texts.
    pub(super) fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = Vec::new();
        if let Some(signature) = &self.signature {
            lines.push(("signature", signature.text()));
        }
        if let Some(encryption) = &self.encryption {
            let labels = ["encryption", "", ""];
            lines.extend(labels.into_iter().zip(encryption.lines()));
        }
        let text = match (self.by(), &self.signature, &self.encryption) {
            (By::Signature, ..) => "header, metadata and payload, by the signature",
            (By::Password, ..) => "header, metadata and payload, by the password",
            (By::Anyone, ..) => "nothing; the signature is valid, but its key is not one you trust",
            (By::Nothing, Some(_), _) => {
                "nothing yet; the signature covers header, metadata and payload (--signer, --trusted-keys)"
            }
            (By::Nothing, None, Some(Encryption { mode: Some(KeyHint::Recipient), .. })) => {
                "nothing; anyone can encrypt to a public key, and only a signature shows who did"
            }
            (By::Nothing, None, Some(Encryption { has_commitment: true, .. })) => {
                "nothing yet; with its password, header, metadata and payload are (--ask-password)"
            }
            (By::Nothing, None, Some(_)) => {
                "nothing; the payload would be when opened, header and metadata never (made by another program)"
            }
            (By::Nothing, None, None) => "not signed (the checksum only detects corruption)",
        };
        lines.push(("authenticity", text.to_owned()));
        lines
    }

    pub(super) fn report(&self) -> AuthenticationFields<'_> {
        let (authentic, by): (&[&str], _) = match self.by() {
            By::Nothing | By::Anyone => (&[], None),
            By::Signature => (&["header", "metadata", "payload"], Some("signature")),
            By::Password => (&["header", "metadata", "payload"], Some("password")),
        };
        AuthenticationFields {
            checksum: if self.is_compared { "right" } else { "not-compared" },
            signature: self.signature.as_ref().map(Signature::report),
            encryption: self.encryption.as_ref().map(Encryption::report),
            authentic,
            by,
        }
    }
}

/// What authenticates which part.
#[derive(Serialize)]
pub(super) struct AuthenticationFields<'a> {
    checksum: &'static str,
    signature: Option<SignatureFields<'a>>,
    encryption: Option<EncryptionFields<'a>>,
    authentic: &'static [&'static str],
    by: Option<&'static str>,
}

#[derive(Serialize)]
struct SignatureFields<'a> {
    algorithm: &'static str,
    key: Option<String>,
    fingerprint: Option<String>,
    covers: [&'static str; 3],
    state: &'static str,
    signer: Option<&'a SignedBy>,
}

#[derive(Serialize)]
struct EncryptionFields<'a> {
    algorithm: &'static str,
    mode: Option<&'static str>,
    recipient_id: Option<&'a str>,
    commitment: bool,
    bound: Option<bool>,
}

impl Signature {
    fn text(&self) -> String {
        let state = match (&self.signer, &self.key) {
            (Some(signer), _) if signer.name.is_some() => format!("valid, {}", signer.by()),
            (Some(signer), _) => format!("valid, {}", signer.by()),
            (None, Some(key)) => format!("not checked; the file brings the key {}", key.fingerprint()),
            (None, None) => "not checked; the file brings no valid key".to_owned(),
        };
        format!("Ed25519, {state}")
    }

    fn report(&self) -> SignatureFields<'_> {
        SignatureFields {
            algorithm: "Ed25519",
            key: self.key.map(|key| key.to_string()),
            fingerprint: self.key.map(|key| key.fingerprint().to_string()),
            covers: ["header", "metadata", "payload"],
            state: if self.signer.is_some() { "valid" } else { "unchecked" },
            signer: self.signer.as_ref(),
        }
    }
}

impl Encryption {
    fn lines(&self) -> [String; 3] {
        let mode = match (self.mode, &self.recipient) {
            (Some(KeyHint::Password), _) => "under a password, the metadata say".to_owned(),
            (Some(KeyHint::Recipient), Some(id)) => {
                format!("for the recipient whose key begins with {id}, the metadata say")
            }
            (Some(KeyHint::Recipient), None) => "for a recipient, the metadata say".to_owned(),
            _ => "under a password or for a recipient: the metadata do not say".to_owned(),
        };
        let commitment = match self.has_commitment {
            true => "with a commitment to the key",
            false => "without a commitment to the key",
        };
        let state = match self.is_bound {
            Some(true) => "opened: the payload is bound to header and metadata",
            _ => "what binds the payload to header and metadata is inside: not opened",
        };
        [format!("AES-256-GCM, {mode}"), commitment.to_owned(), state.to_owned()]
    }

    fn report(&self) -> EncryptionFields<'_> {
        EncryptionFields {
            algorithm: "AES-256-GCM",
            mode: match self.mode {
                Some(KeyHint::Password) => Some("password"),
                Some(KeyHint::Recipient) => Some("recipient"),
                _ => None,
            },
            recipient_id: self.recipient.as_deref(),
            commitment: self.has_commitment,
            bound: self.is_bound,
        }
    }
}
