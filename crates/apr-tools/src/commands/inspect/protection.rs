//! Which parts of an `.apr` file of version 1 are authenticated, and by what.

use std::io::{self, Read as _, Seek as _, SeekFrom, Write};

use apr_container::{KeyHint, ModelInfo};
use apr_crypto::{RecipientPublic, VerifyingKey};

use crate::input::{Rules, Source};
use crate::report::json::JsonWriter;
use crate::secrets::SignedBy;

/// Bytes before the metadata.
const HEADER_LEN: u64 = 32;

/// What stands between a file and whoever would change it.
pub(super) struct Protection {
    /// Whether the checksum was compared. It finds damage; whoever changes a file can compute it anew.
    is_compared: bool,
    signature: Option<Signature>,
    encryption: Option<Encryption>,
}

struct Signature {
    /// The key in the file; `None` if its bytes are none.
    key: Option<VerifyingKey>,
    /// Whose it is, once it was checked.
    signer: Option<SignedBy>,
}

struct Encryption {
    /// If the metadata say so. Nobody vouches for that until the payload is opened.
    mode: Option<KeyHint>,
    /// The beginning of the recipient's public key, in hexadecimal digits.
    recipient: Option<String>,
    /// Whether the metadata hold a commitment to the key.
    has_commitment: bool,
    /// Whether the payload was decrypted and says that it belongs to this header and these metadata; `None` if nobody looked.
    is_bound: Option<bool>,
    /// Whether it was a password that opened it.
    is_by_password: bool,
}

/// What authenticates header, metadata and payload.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Nothing,
    /// A signature by whoever has the key in the file: nobody.
    Anyone,
    Signature,
    /// The password: whoever made the file knew it. A recipient's key vouches for nobody, since everybody can encrypt to it.
    Password,
}

impl Protection {
    pub(super) fn new(
        source: &Source,
        info: &ModelInfo,
        is_compared: bool,
        signer: Option<SignedBy>,
        is_decrypted: bool,
        rules: &Rules,
    ) -> Self {
        let payload_at = HEADER_LEN + info.metadata_size;
        let is_by_password = is_decrypted && source.keys().has_password();
        let signature = info.signed.then(|| {
            let key = bytes_at::<32>(source, payload_at + info.payload_size + 64);
            Signature { key: key.and_then(|key| VerifyingKey::from_bytes(&key).ok()), signer }
        });
        let encryption = info.encrypted.then(|| {
            let mode = info.key_hint();
            let id = (mode == Some(KeyHint::Recipient))
                .then(|| bytes_at::<{ RecipientPublic::ID_LEN }>(source, payload_at + 32))
                .flatten();
            Encryption {
                mode,
                recipient: id.map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect()),
                has_commitment: info.has_key_commitment(),
                // Strict reading opens no payload that is not bound.
                is_bound: (is_decrypted && rules.is_strict()).then_some(true),
                is_by_password,
            }
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
            (By::Password, ..) => "header, metadata and payload, by whoever knows the password",
            (By::Anyone, ..) => "nothing; unchanged since somebody signed it, and that can be anyone",
            (By::Nothing, Some(_), _) => {
                "nothing yet; the signature covers header, metadata and payload (--signer, --trusted-keys)"
            }
            (By::Nothing, None, Some(Encryption { mode: Some(KeyHint::Recipient), .. })) => {
                "nothing; everybody can encrypt to a public key, and only a signature shows who did"
            }
            (By::Nothing, None, Some(Encryption { has_commitment: true, .. })) => {
                "nothing yet; with its password, header, metadata and payload are (--ask-password)"
            }
            (By::Nothing, None, Some(_)) => {
                "nothing; the payload would be when opened, header and metadata never (made by another program)"
            }
            (By::Nothing, None, None) => "nothing; the checksum finds damage, not malice",
        };
        lines.push(("authentic", text.to_owned()));
        lines
    }

    pub(super) fn write_json<W: Write>(&self, json: &mut JsonWriter<W>) -> io::Result<()> {
        json.object()?;
        json.field_str("checksum", if self.is_compared { "right" } else { "not-compared" })?;
        json.field_opt("signature", self.signature.as_ref(), Signature::write_json)?;
        json.field_opt("encryption", self.encryption.as_ref(), Encryption::write_json)?;
        let (parts, by): (&[&str], _) = match self.by() {
            By::Nothing | By::Anyone => (&[], None),
            By::Signature => (&["header", "metadata", "payload"], Some("signature")),
            By::Password => (&["header", "metadata", "payload"], Some("password")),
        };
        json.field_strings("authentic", parts.iter().copied())?;
        json.field_opt_str("by", by)?;
        json.end_object()
    }
}

impl Signature {
    fn text(&self) -> String {
        let state = match (&self.signer, &self.key) {
            (Some(signer), _) if signer.name.is_some() => format!("valid, {}", signer.by()),
            (Some(signer), _) => format!("valid, {}: that is anyone", signer.by()),
            (None, Some(key)) => format!("not checked; the file brings the key {}", key.fingerprint()),
            (None, None) => "not checked; the file brings no valid key".to_owned(),
        };
        format!("Ed25519, {state}")
    }

    fn write_json<W: Write>(&self, json: &mut JsonWriter<W>) -> io::Result<()> {
        json.object()?;
        json.field_str("algorithm", "Ed25519")?;
        json.field_opt_str("key", self.key.map(|key| key.to_string()).as_deref())?;
        json.field_opt_str("fingerprint", self.key.map(|key| key.fingerprint().to_string()).as_deref())?;
        json.field_strings("covers", ["header", "metadata", "payload"])?;
        json.field_str("state", if self.signer.is_some() { "valid" } else { "unchecked" })?;
        json.field_opt("signer", self.signer.as_ref(), SignedBy::write_json)?;
        json.end_object()
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

    fn write_json<W: Write>(&self, json: &mut JsonWriter<W>) -> io::Result<()> {
        json.object()?;
        json.field_str("algorithm", "AES-256-GCM")?;
        let mode = match self.mode {
            Some(KeyHint::Password) => Some("password"),
            Some(KeyHint::Recipient) => Some("recipient"),
            _ => None,
        };
        json.field_opt_str("mode", mode)?;
        json.field_opt_str("recipient_id", self.recipient.as_deref())?;
        json.field_bool("commitment", self.has_commitment)?;
        json.key("bound")?;
        match self.is_bound {
            Some(bound) => json.bool(bound)?,
            None => json.null()?,
        }
        json.end_object()
    }
}

/// Bytes of the file, if they are there.
fn bytes_at<const N: usize>(source: &Source, offset: u64) -> Option<[u8; N]> {
    let mut file = durable_file::open_regular(source.path(), u64::MAX).ok()?.into_file();
    file.seek(SeekFrom::Start(offset)).ok()?;
    let mut bytes = [0; N];
    file.read_exact(&mut bytes).ok()?;
    Some(bytes)
}
