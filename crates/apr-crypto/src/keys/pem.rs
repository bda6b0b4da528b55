//! PKCS#8 and SubjectPublicKeyInfo in PEM (RFC 8410, RFC 7468).
//!
//! The DER of these two kinds of key has one encoding each; it is compared byte for byte, not parsed.

use alloc::string::String;
use alloc::vec::Vec;

use base64ct::{Base64, Encoding};
use zeroize::Zeroizing;

use crate::encrypt::aead::try_with_capacity;
use crate::encrypt::recipient::{RecipientPublic, RecipientSecret};
use crate::error::{Error, ErrorKind};
use crate::keys::stored::{PublicKey, SecretKey};
use crate::secret::{SecretText, constant_time_eq};
use crate::sign::ed25519::{SigningKey, VerifyingKey};

const PRIVATE: &str = "PRIVATE KEY";
const PUBLIC: &str = "PUBLIC KEY";

/// Maximum length of the text.
pub(crate) const MAX_TEXT_LEN: usize = 4096;

/// Last byte of the object identifier: 1.3.101.110 is X25519, 1.3.101.112 Ed25519.
const X25519: u8 = 0x6e;
const ED25519: u8 = 0x70;

/// `SEQUENCE { INTEGER 0, SEQUENCE { OID }, OCTET STRING { OCTET STRING` (RFC 8410, section 7), and the 32 bytes follow.
const fn private_v1(algorithm: u8) -> [u8; 16] {
    [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, algorithm, 4, 0x22, 4, 0x20]
}

/// The same as version 1, which carries the public key at the end.
const fn private_v2(algorithm: u8) -> [u8; 16] {
    [0x30, 0x51, 2, 1, 1, 0x30, 5, 6, 3, 0x2b, 0x65, algorithm, 4, 0x22, 4, 0x20]
}

/// `[1] IMPLICIT BIT STRING`, no unused bits; the 32 bytes of the public key follow.
const PRIVATE_V2_PUBLIC: [u8; 3] = [0x81, 0x21, 0];

/// `SEQUENCE { SEQUENCE { OID }, BIT STRING` without unused bits (RFC 8410, section 4), and the 32 bytes follow.
const fn public(algorithm: u8) -> [u8; 12] {
    [0x30, 0x2a, 0x30, 5, 6, 3, 0x2b, 0x65, algorithm, 3, 0x21, 0]
}

impl SecretKey {
    /// Reads a PKCS#8 private key, as `openssl genpkey -algorithm ed25519` (or `x25519`) writes it. Not under a password.
    ///
    /// ```
    /// use apr_crypto::SecretKey;
    ///
    /// // RFC 8410, section 10.3.
    /// let text = "-----BEGIN PRIVATE KEY-----\n\
    ///             MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n\
    ///             -----END PRIVATE KEY-----\n";
    /// let key = SecretKey::from_pkcs8_pem(text)?;
    /// assert_eq!(key.to_pkcs8_pem().as_str(), text);
    /// # Ok::<(), apr_crypto::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Text`]; [`ErrorKind::KeyMismatch`] if it carries a public key that is not its own.
    pub fn from_pkcs8_pem(text: &str) -> Result<Self, Error> {
        let der = decode(text, PRIVATE)?;
        for algorithm in [ED25519, X25519] {
            let (key, public) = if let Some(key) = der.strip_prefix(&private_v1(algorithm)) {
                (<&[u8; 32]>::try_from(key).ok(), None)
            } else if let Some(rest) = der.strip_prefix(&private_v2(algorithm)) {
                let Some((key, rest)) = rest.split_first_chunk() else { break };
                let Some(public) = rest.strip_prefix(&PRIVATE_V2_PUBLIC).filter(|public| public.len() == 32)
                else {
                    break;
                };
                (Some(key), Some(public))
            } else {
                continue;
            };
            let Some(key) = key else { break };
            let secret: Self = match algorithm {
                ED25519 => SigningKey::from_seed(key).into(),
                _ => RecipientSecret::from_bytes(key).into(),
            };
            let matches = public.is_none_or(|public| constant_time_eq(secret.public().bytes(), public));
            return if matches { Ok(secret) } else { Err(ErrorKind::KeyMismatch.into()) };
        }
        let what = "not an Ed25519 or X25519 key, or not the DER of one";
        Err(ErrorKind::Text { format: "a PKCS#8 private key", what }.into())
    }

    /// The PKCS#8 private key in PEM, as OpenSSL writes it.
    #[must_use]
    pub fn to_pkcs8_pem(&self) -> SecretText {
        let (algorithm, bytes) = match self {
            Self::Signing(key) => (ED25519, key.expose_seed()),
            Self::Recipient(key) => (X25519, key.expose()),
        };
        let mut der = Zeroizing::new(Vec::with_capacity(48));
        der.extend_from_slice(&private_v1(algorithm));
        der.extend_from_slice(bytes);
        encode(&der, PRIVATE)
    }
}

impl PublicKey {
    /// Reads a public key, as `openssl pkey -pubout` writes it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Text`]; [`ErrorKind::WeakKey`], [`ErrorKind::InvalidKey`].
    pub fn from_spki_pem(text: &str) -> Result<Self, Error> {
        let der = decode(text, PUBLIC)?;
        let key =
            |algorithm| der.strip_prefix(&public(algorithm)).and_then(|key| <&[u8; 32]>::try_from(key).ok());
        if let Some(key) = key(ED25519) {
            return Ok(VerifyingKey::from_bytes(key)?.into());
        }
        if let Some(key) = key(X25519) {
            return Ok(RecipientPublic::from_bytes(key)?.into());
        }
        let what = "not an Ed25519 or X25519 key, or not the DER of one";
        Err(ErrorKind::Text { format: "a public key", what }.into())
    }

    /// The public key in PEM, as OpenSSL writes it.
    #[must_use]
    pub fn to_spki_pem(&self) -> String {
        let algorithm = match self {
            Self::Verifying(_) => ED25519,
            Self::Recipient(_) => X25519,
        };
        let der = [&public(algorithm)[..], self.bytes()].concat();
        encode(&der, PUBLIC).as_str().into()
    }

    fn bytes(&self) -> &[u8; 32] {
        match self {
            Self::Recipient(key) => key.as_bytes(),
            Self::Verifying(key) => key.as_bytes(),
        }
    }
}

/// Lines of 64 letters between the two boundaries.
pub(crate) fn encode(der: &[u8], label: &str) -> SecretText {
    let base64 = Zeroizing::new(Base64::encode_string(der));
    let mut text = SecretText::with_capacity(base64.len() + 128);
    for part in ["-----BEGIN ", label, "-----\n"] {
        text.push_str(part);
    }
    let mut rest = base64.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at_checked(64).unwrap_or((rest, ""));
        text.push_str(line);
        text.push_str("\n");
        rest = after;
    }
    for part in ["-----END ", label, "-----\n"] {
        text.push_str(part);
    }
    text
}

/// The bytes between the two boundaries, which must be the first and the last line that is not empty.
pub(crate) fn decode(text: &str, label: &'static str) -> Result<Zeroizing<Vec<u8>>, Error> {
    let wrong = |what| Error::from(ErrorKind::Text { format: "a PEM file", what });
    if text.len() > MAX_TEXT_LEN {
        return Err(wrong("more than 4096 bytes"));
    }
    let mut lines = text.lines().map(str::trim_end).skip_while(|line| line.is_empty());
    let boundary = |line: &str, word: &str| {
        let inner = line.strip_prefix("-----").and_then(|line| line.strip_suffix("-----"));
        inner.and_then(|inner| inner.strip_prefix(word)).map(|found| found == label)
    };
    match lines.next().and_then(|line| boundary(line, "BEGIN ")) {
        Some(true) => {}
        Some(false) if text.contains("BEGIN ENCRYPTED PRIVATE KEY") => {
            return Err(wrong("it is under a password: `openssl pkey` takes it off"));
        }
        Some(false) if label == PRIVATE => return Err(wrong("the label is not `PRIVATE KEY`")),
        Some(false) => return Err(wrong("the label is not `PUBLIC KEY`")),
        None => return Err(wrong("no `-----BEGIN` line at its beginning")),
    }
    let mut base64 = Zeroizing::new(String::with_capacity(text.len()));
    loop {
        let line = lines.next().ok_or_else(|| wrong("no `-----END` line"))?;
        match boundary(line, "END ") {
            Some(true) => break,
            Some(false) => return Err(wrong("`-----BEGIN` and `-----END` differ")),
            None => base64.push_str(line),
        }
    }
    if lines.any(|line| !line.is_empty()) {
        return Err(wrong("text after the `-----END` line"));
    }
    let mut der = Zeroizing::new(try_with_capacity(base64.len())?);
    der.resize(base64.len(), 0);
    let len = Base64::decode(base64.as_str(), &mut der).map_err(|_| wrong("not base64"))?.len();
    der.truncate(len);
    Ok(der)
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString;

    use proptest::prelude::*;

    use super::*;
    use crate::hex::hex;

    /// Written by OpenSSL 3.0.
    const OPENSSL: [(&str, &str); 2] = [
        (
            "-----BEGIN PRIVATE KEY-----\n\
             MC4CAQAwBQYDK2VwBCIEIC1nZxcd0WmyqPsFmKpSg+QxmS8vV+TVpS+kgFYps8KL\n\
             -----END PRIVATE KEY-----\n",
            "-----BEGIN PUBLIC KEY-----\n\
             MCowBQYDK2VwAyEAeM3EUFMIyps5NBoJXbgK3OrSCVxa4A9zEPQsw4i4Y7c=\n\
             -----END PUBLIC KEY-----\n",
        ),
        (
            "-----BEGIN PRIVATE KEY-----\n\
             MC4CAQAwBQYDK2VuBCIEIEhwQi9p0CCn+0qheaKAxxhiKf7droL9W39LdfLtpK9m\n\
             -----END PRIVATE KEY-----\n",
            "-----BEGIN PUBLIC KEY-----\n\
             MCowBQYDK2VuAyEAYhzjB8qDK6eFsSWs6k8htN1+xL44Ku7ibYSP+eIFB3c=\n\
             -----END PUBLIC KEY-----\n",
        ),
    ];

    #[test]
    fn openssl_there_and_back() {
        for (private, public) in OPENSSL {
            let key = SecretKey::from_pkcs8_pem(private).unwrap();
            assert_eq!(key.to_pkcs8_pem().as_str(), private);
            assert_eq!(PublicKey::from_spki_pem(public).unwrap(), key.public());
            assert_eq!(key.public().to_spki_pem(), public);
            // With the line ends of another system and empty lines around.
            let other = format!("\r\n{}\r\n", private.replace('\n', "\r\n"));
            assert_eq!(SecretKey::from_pkcs8_pem(&other).unwrap().public(), key.public());
        }
    }

    /// RFC 8410, section 10.3: the key with its public key, in the version that RFC 5958 added. (The attributes of the
    /// RFC's second example are not taken.)
    #[test]
    fn version_2_carries_its_public_key() {
        let key = SecretKey::from(SigningKey::from_seed(&[5; 32]));
        let other = SecretKey::from(SigningKey::from_seed(&[6; 32]));
        let pem = |public: &[u8]| {
            // SEQUENCE, version 1, the algorithm, the key; then [1], implicitly a BIT STRING.
            let (head, tail) = (hex("3051020101300506032b657004220420"), hex("812100"));
            let der = [&head[..], &[5; 32], &tail, public].concat();
            encode(&der, PRIVATE).as_str().to_string()
        };
        let read = SecretKey::from_pkcs8_pem(&pem(key.public().bytes())).unwrap();
        assert_eq!(read.public(), key.public());
        let error = SecretKey::from_pkcs8_pem(&pem(other.public().bytes())).unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::KeyMismatch);
        assert_eq!(SecretKey::from_pkcs8_pem(&pem(&[1; 31])).unwrap_err().code(), "cy-text");
    }

    #[test]
    fn everything_else_is_refused() {
        let (private, public) = OPENSSL[0];
        let what = |text: &str| match SecretKey::from_pkcs8_pem(text).map_err(|error| *error.kind()) {
            Err(ErrorKind::Text { what, .. }) => what,
            other => panic!("{other:?}"),
        };
        assert_eq!(what(""), "no `-----BEGIN` line at its beginning");
        assert_eq!(what(&format!("x\n{private}")), "no `-----BEGIN` line at its beginning");
        assert_eq!(what(public), "the label is not `PRIVATE KEY`");
        let encrypted = private.replace("PRIVATE", "ENCRYPTED PRIVATE");
        assert_eq!(what(&encrypted), "it is under a password: `openssl pkey` takes it off");
        assert_eq!(what(&private.replace("END PRIVATE", "END PUBLIC")), "`-----BEGIN` and `-----END` differ");
        assert_eq!(what(&private.replace("END", "end")), "no `-----END` line");
        assert_eq!(what(&format!("{private}{private}")), "text after the `-----END` line");
        assert_eq!(what(&private.replace("MC4C", "MC4*")), "not base64");
        assert_eq!(what(&"\n".repeat(4097)), "more than 4096 bytes");
        assert_eq!(what(&"\n".repeat(4096)), "no `-----BEGIN` line at its beginning");
        // A byte more, a byte less, another algorithm, an encrypted key.
        for der in [
            [&private_v1(ED25519)[..], &[1; 33]].concat(),
            [&private_v1(ED25519)[..], &[1; 31]].concat(),
            [&private_v1(0x71)[..], &[1; 32]].concat(),
            [&private_v2(ED25519)[..], &[1; 32]].concat(),
            alloc::vec![0x30, 0x80],
            Vec::new(),
        ] {
            let text = encode(&der, PRIVATE);
            assert_eq!(what(text.as_str()), "not an Ed25519 or X25519 key, or not the DER of one");
            let text = encode(&der, PUBLIC);
            assert_eq!(PublicKey::from_spki_pem(text.as_str()).unwrap_err().code(), "cy-text");
        }
        let weak = encode(&[&super::public(X25519)[..], &[0; 32]].concat(), PUBLIC);
        assert_eq!(PublicKey::from_spki_pem(weak.as_str()).unwrap_err().code(), "cy-weak-key");
        assert_eq!(
            PublicKey::from_spki_pem(private).unwrap_err().kind(),
            &ErrorKind::Text { format: "a PEM file", what: "the label is not `PUBLIC KEY`" }
        );
    }

    proptest! {
        #[test]
        fn random_text_does_not_panic(text: String, der: Vec<u8>, private: bool) {
            let _ = SecretKey::from_pkcs8_pem(&text);
            let label = if private { PRIVATE } else { PUBLIC };
            let text = encode(&der, label);
            let _ = SecretKey::from_pkcs8_pem(text.as_str());
            let _ = PublicKey::from_spki_pem(text.as_str());
        }
    }
}
