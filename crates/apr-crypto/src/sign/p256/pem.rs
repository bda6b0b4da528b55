//! P-256 keys in the formats of OpenSSL (RFC 5915, RFC 5958, RFC 5480).
//!
//! The DER of these keys is compared byte for byte, not parsed.

use alloc::string::String;
use alloc::vec::Vec;

use zeroize::Zeroizing;

use super::{SigningKey, VerifyingKey};
use crate::error::{Error, ErrorKind};
use crate::keys::Fingerprint;
use crate::keys::pem::{decode, encode};
use crate::secret::{SecretText, constant_time_eq};

const PRIVATE: &str = "PRIVATE KEY";
const SEC1: &str = "EC PRIVATE KEY";
const PUBLIC: &str = "PUBLIC KEY";
const PARAMETERS: &str = "-----BEGIN EC PARAMETERS-----";
const PARAMETERS_END: &str = "-----END EC PARAMETERS-----";

const FORMAT: &str = "a P-256 private key";

/// What a fingerprint is made of, before the compressed point.
const LABEL: &str = "apr-p256-verify-";

/// `SEQUENCE { id-ecPublicKey, prime256v1 }`.
const ALGORITHM: [u8; 21] =
    [0x30, 0x13, 6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];

/// `[0] { prime256v1 }`.
const PARAMETER: [u8; 12] = [0xa0, 10, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];

/// `[1] { BIT STRING` without unused bits; 65 bytes follow.
const POINT: [u8; 5] = [0xa1, 0x44, 3, 0x42, 0];

impl SigningKey {
    /// Reads a private key: PKCS#8, as `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256` writes it, or SEC 1, as
    /// `openssl ecparam -name prime256v1 -genkey` does. Not under a password.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Text`]; [`ErrorKind::KeyMismatch`] if it carries a public key that is not its own.
    pub fn from_pem(text: &str) -> Result<Self, Error> {
        let text = after_parameters(text);
        let is_sec1 = text.trim_start().starts_with("-----BEGIN EC PRIVATE KEY-----");
        if is_sec1 && text.contains("ENCRYPTED") {
            let what = "it is under a password: `openssl pkey` takes it off";
            return Err(ErrorKind::Text { format: "a PEM file", what }.into());
        }
        let der = decode(text, if is_sec1 { SEC1 } else { PRIVATE })?;
        let what = "not a P-256 key, or not the DER of one";
        let parts = if is_sec1 { sec1(&der) } else { pkcs8(&der) };
        let (number, point) = parts.ok_or(ErrorKind::Text { format: FORMAT, what })?;
        let key = Self::from_bytes(number)?;
        if !point.is_none_or(|point| constant_time_eq(point, &key.verifying_key().to_sec1_bytes())) {
            return Err(ErrorKind::KeyMismatch.into());
        }
        Ok(key)
    }

    /// The PKCS#8 private key in PEM, as OpenSSL writes it.
    #[must_use]
    pub fn to_pem(&self) -> SecretText {
        let mut der = Zeroizing::new(Vec::with_capacity(138));
        let point = self.verifying_key().to_sec1_bytes();
        let parts: [&[u8]; 7] = [
            &[0x30, 0x81, 0x87, 2, 1, 0],
            &ALGORITHM,
            &[4, 0x6d],
            &[0x30, 0x6b, 2, 1, 1, 4, 0x20],
            &*self.expose(),
            &POINT,
            &point,
        ];
        parts.iter().for_each(|part| der.extend_from_slice(part));
        encode(&der, PRIVATE)
    }
}

impl VerifyingKey {
    /// Reads a public key, as `openssl pkey -pubout` writes it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Text`]; [`ErrorKind::InvalidKey`] if there is no such point.
    pub fn from_pem(text: &str) -> Result<Self, Error> {
        let der = decode(text, PUBLIC)?;
        let after = |len, bits| {
            let rest = der.strip_prefix(&[0x30, len]).and_then(|rest| rest.strip_prefix(&ALGORITHM));
            rest.and_then(|rest| rest.strip_prefix(&[3, bits, 0]))
                .filter(|rest| rest.len() == usize::from(bits) - 1)
        };
        let what = "not a P-256 key, or not the DER of one";
        let point = after(0x59, 0x42).or_else(|| after(0x39, 0x22));
        Self::from_sec1_bytes(point.ok_or(ErrorKind::Text { format: "a P-256 public key", what })?)
    }

    /// The public key in PEM, as OpenSSL writes it.
    #[must_use]
    pub fn to_pem(&self) -> String {
        let der = [&[0x30, 0x59], &ALGORITHM[..], &[3, 0x42, 0], &self.to_sec1_bytes()].concat();
        encode(&der, PUBLIC).as_str().into()
    }

    /// The key's short name: of `apr-p256-verify-` and the compressed point.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(LABEL, &self.to_compressed())
    }
}

#[cfg(feature = "std")]
mod files {
    use std::path::Path;

    use super::{SigningKey, VerifyingKey};
    use crate::error::Error;
    use crate::keys::file::{Access, create, read, text_of};
    use crate::keys::pem::MAX_TEXT_LEN;

    impl SigningKey {
        /// Reads a private key's file. On Unix, one that group or others may read, change or execute is refused.
        ///
        /// # Errors
        ///
        /// [`Exposed`](crate::ErrorKind::Exposed), [`NotRegular`](crate::ErrorKind::NotRegular),
        /// [`File`](crate::ErrorKind::File), and those of [`from_pem`](Self::from_pem).
        pub fn open_file(path: &Path) -> Result<Self, Error> {
            let text = read(path, Access::Secret, MAX_TEXT_LEN)?;
            text_of(&text).and_then(Self::from_pem).map_err(|error| error.in_file(path))
        }

        /// Creates a private key's file, mode 0600, and syncs it to disk. A file that exists is never replaced.
        ///
        /// # Errors
        ///
        /// [`FileExists`](crate::ErrorKind::FileExists), [`File`](crate::ErrorKind::File).
        pub fn create_file(&self, path: &Path) -> Result<(), Error> {
            create(path, self.to_pem().as_str(), Access::Secret)
        }
    }

    impl VerifyingKey {
        /// Reads a public key's file.
        ///
        /// # Errors
        ///
        /// [`NotRegular`](crate::ErrorKind::NotRegular), [`File`](crate::ErrorKind::File), and those of
        /// [`from_pem`](Self::from_pem).
        pub fn open_file(path: &Path) -> Result<Self, Error> {
            let text = read(path, Access::Any, MAX_TEXT_LEN)?;
            text_of(&text).and_then(Self::from_pem).map_err(|error| error.in_file(path))
        }

        /// Creates a public key's file, and syncs it to disk. A file that exists is never replaced.
        ///
        /// # Errors
        ///
        /// [`FileExists`](crate::ErrorKind::FileExists), [`File`](crate::ErrorKind::File).
        pub fn create_file(&self, path: &Path) -> Result<(), Error> {
            create(path, &self.to_pem(), Access::Any)
        }
    }
}

/// A secret number, and the point stored beside it.
type Parts<'a> = (&'a [u8; 32], Option<&'a [u8]>);

fn pkcs8(der: &[u8]) -> Option<Parts<'_>> {
    let inner = |head: &[u8], lengths: [u8; 2]| {
        let rest = der.strip_prefix(head)?.strip_prefix(&[2, 1, 0])?.strip_prefix(&ALGORITHM)?;
        rest.strip_prefix(&[4, lengths[0], 0x30, lengths[1], 2, 1, 1, 4, 0x20])
    };
    if let Some(rest) = inner(&[0x30, 0x81, 0x87], [0x6d, 0x6b]) {
        return with_point(rest, &POINT);
    }
    inner(&[0x30, 0x41], [0x27, 0x25]).and_then(without_point)
}

fn sec1(der: &[u8]) -> Option<Parts<'_>> {
    if let Some(rest) = der.strip_prefix(&[0x30, 0x77, 2, 1, 1, 4, 0x20]) {
        return with_point(rest, &[&PARAMETER[..], &POINT].concat());
    }
    let rest = der.strip_prefix(&[0x30, 0x31, 2, 1, 1, 4, 0x20])?;
    without_point(rest.strip_suffix(&PARAMETER)?)
}

fn with_point<'a>(rest: &'a [u8], between: &[u8]) -> Option<Parts<'a>> {
    let (number, rest) = rest.split_first_chunk()?;
    let point = rest.strip_prefix(between).filter(|point| point.len() == VerifyingKey::LEN)?;
    Some((number, Some(point)))
}

fn without_point(rest: &[u8]) -> Option<Parts<'_>> {
    Some((rest.try_into().ok()?, None))
}

/// `openssl ecparam -genkey` puts the name of the curve before the key, which names it again.
fn after_parameters(text: &str) -> &str {
    match text.trim_start().strip_prefix(PARAMETERS).and_then(|rest| rest.split_once(PARAMETERS_END)) {
        Some((_, rest)) => rest,
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use proptest::prelude::*;

    use super::*;

    /// Written by OpenSSL 3.0: `ecparam -name prime256v1 -genkey`, `pkcs8 -topk8 -nocrypt` of that, `ec -pubout`.
    const OPENSSL_SEC1: &str = "-----BEGIN EC PARAMETERS-----\n\
        BggqhkjOPQMBBw==\n\
        -----END EC PARAMETERS-----\n\
        -----BEGIN EC PRIVATE KEY-----\n\
        MHcCAQEEIFJLy0zVvClLmxeUiFpB+vuDJW5SVSn5FQWKmi6EZSRMoAoGCCqGSM49\n\
        AwEHoUQDQgAEARfGygFizbvkEg7c7cNZSfIH3+7e14l3qFkc6Ip4OrY8ddBl5P5T\n\
        bXHxKawaYjOFPjlkR+alg11oain+OrwKrw==\n\
        -----END EC PRIVATE KEY-----\n";
    const OPENSSL_PKCS8: &str = "-----BEGIN PRIVATE KEY-----\n\
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgUkvLTNW8KUubF5SI\n\
        WkH6+4MlblJVKfkVBYqaLoRlJEyhRANCAAQBF8bKAWLNu+QSDtztw1lJ8gff7t7X\n\
        iXeoWRzoing6tjx10GXk/lNtcfEprBpiM4U+OWRH5qWDXWhqKf46vAqv\n\
        -----END PRIVATE KEY-----\n";
    const OPENSSL_PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\n\
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEARfGygFizbvkEg7c7cNZSfIH3+7e\n\
        14l3qFkc6Ip4OrY8ddBl5P5TbXHxKawaYjOFPjlkR+alg11oain+OrwKrw==\n\
        -----END PUBLIC KEY-----\n";

    fn number() -> Zeroizing<[u8; 32]> {
        SigningKey::from_pem(OPENSSL_PKCS8).unwrap().expose()
    }

    #[test]
    fn openssl_there_and_back() {
        let key = SigningKey::from_pem(OPENSSL_PKCS8).unwrap();
        assert_eq!(key.to_pem().as_str(), OPENSSL_PKCS8);
        assert_eq!(key.verifying_key().to_pem(), OPENSSL_PUBLIC);
        assert_eq!(VerifyingKey::from_pem(OPENSSL_PUBLIC).unwrap(), key.verifying_key());
        let (_, alone) = OPENSSL_SEC1.split_once("-----END EC PARAMETERS-----\n").unwrap();
        for text in [OPENSSL_SEC1, alone, &format!("\r\n{}", OPENSSL_SEC1.replace('\n', "\r\n"))] {
            assert_eq!(SigningKey::from_pem(text).unwrap().verifying_key(), key.verifying_key());
        }
    }

    /// The public key is optional in both structures, and a point may be compressed.
    #[test]
    fn shorter_spellings_are_read() {
        let number = number();
        let public = SigningKey::from_bytes(&number).unwrap().verifying_key();
        let parts: [&[u8]; 4] =
            [&[0x30, 0x41, 2, 1, 0], &ALGORITHM, &[4, 0x27, 0x30, 0x25, 2, 1, 1, 4, 0x20], &*number];
        let text = encode(&parts.concat(), PRIVATE);
        assert_eq!(SigningKey::from_pem(text.as_str()).unwrap().verifying_key(), public);
        let text = encode(&[&[0x30, 0x31, 2, 1, 1, 4, 0x20], &number[..], &PARAMETER].concat(), SEC1);
        assert_eq!(SigningKey::from_pem(text.as_str()).unwrap().verifying_key(), public);
        let compressed = public.to_compressed();
        let text = encode(&[&[0x30, 0x39], &ALGORITHM[..], &[3, 0x22, 0], &compressed].concat(), PUBLIC);
        assert_eq!(VerifyingKey::from_pem(text.as_str()).unwrap(), public);
    }

    #[test]
    fn everything_else_is_refused() {
        let code = |text: &str| SigningKey::from_pem(text).unwrap_err().code();
        let der = decode(OPENSSL_PKCS8, PRIVATE).unwrap();
        // Every other byte in the structure is another structure, or another key.
        for idx in 0..der.len() {
            let mut other = der.clone();
            other[idx] ^= 1;
            let expected = match idx {
                36..68 | 73.. => "cy-key-mismatch",
                _ => "cy-text",
            };
            assert_eq!(code(encode(&other, PRIVATE).as_str()), expected, "{idx}");
        }
        let (_, alone) = OPENSSL_SEC1.split_once("-----END EC PARAMETERS-----\n").unwrap();
        let der = decode(alone, SEC1).unwrap();
        for idx in 0..der.len() {
            let mut other = der.clone();
            other[idx] ^= 1;
            let expected = if matches!(idx, 7..39 | 56..) { "cy-key-mismatch" } else { "cy-text" };
            assert_eq!(code(encode(&other, SEC1).as_str()), expected, "{idx}");
        }
        for len in [0, 1, 70, der.len() - 1] {
            assert_eq!(code(encode(&der[..len], SEC1).as_str()), "cy-text");
        }
        assert_eq!(code(encode(&[&der[..], &[0]].concat(), SEC1).as_str()), "cy-text");
        let zero: [&[u8]; 4] =
            [&[0x30, 0x41, 2, 1, 0], &ALGORITHM, &[4, 0x27, 0x30, 0x25, 2, 1, 1, 4, 0x20], &[0; 32]];
        assert_eq!(code(encode(&zero.concat(), PRIVATE).as_str()), "cy-text");
        let locked = alone.replace("KEY-----\nMH", "KEY-----\nProc-Type: 4,ENCRYPTED\n\nMH");
        let error = SigningKey::from_pem(&locked).unwrap_err();
        assert!(format!("{error}").contains("under a password"), "{error}");
        assert_eq!(code(PARAMETERS), "cy-text");
        assert_eq!(code(OPENSSL_PUBLIC), "cy-text");
    }

    #[test]
    fn other_public_keys_are_refused() {
        let code = |text: &str| VerifyingKey::from_pem(text).unwrap_err().code();
        let der = decode(OPENSSL_PUBLIC, PUBLIC).unwrap();
        for idx in 0..der.len() {
            let mut other = der.clone();
            other[idx] ^= 1;
            let text = encode(&other, PUBLIC);
            assert_eq!(code(text.as_str()), if idx < 26 { "cy-text" } else { "cy-invalid-key" }, "{idx}");
        }
        assert_eq!(code(encode(&der[..90], PUBLIC).as_str()), "cy-text");
        assert_eq!(code(encode(&[&der[..], &[0]].concat(), PUBLIC).as_str()), "cy-text");
        assert_eq!(code(OPENSSL_PKCS8), "cy-text");
    }

    #[test]
    fn a_fingerprint_is_of_its_kind_alone() {
        let key = VerifyingKey::from_pem(OPENSSL_PUBLIC).unwrap();
        assert_eq!(key.fingerprint(), Fingerprint::of("apr-p256-verify-", &key.to_compressed()));
        assert_ne!(key.fingerprint(), Fingerprint::of(crate::keys::stored::VERIFY, &key.to_compressed()));
    }

    proptest! {
        #[test]
        fn random_text_does_not_panic(text: String, der: Vec<u8>, label in 0..3_usize) {
            let _ = SigningKey::from_pem(&text);
            let text = encode(&der, [PRIVATE, SEC1, PUBLIC][label]);
            let _ = SigningKey::from_pem(text.as_str());
            let _ = VerifyingKey::from_pem(text.as_str());
        }
    }
}
