//! Encrypted secret keys of minisign: scrypt, XOR, and a checksum that detects a wrong password.

use blake2::digest::consts::U32;
use blake2::{Blake2b, Digest};
use scrypt::Params;
use zeroize::Zeroizing;

use super::SecretKey;
use super::key::Fields;
use crate::array::split;
use crate::encrypt::aead::try_with_capacity;
use crate::encrypt::password::{Argon2Cost, Argon2Limits, Password};
use crate::error::{Error, ErrorKind};
use crate::secret::constant_time_eq;

/// Block size that libsodium always chooses; a unit of memory is 128 times as long.
const R: u32 = 8;

impl SecretKey {
    /// Reads a secret key's file, with the password from `ask` if it is encrypted.
    ///
    /// `limits` bound what the password may cost, as they do for keys of ours: memory, and memory times passes. What `minisign
    /// -G` writes takes 1 GiB, which is the most that the default allows, and some seconds.
    ///
    /// # Errors
    ///
    /// Errors of `ask`; [`ErrorKind::Open`] for a wrong password or a changed file; [`ErrorKind::Cost`],
    /// [`ErrorKind::OutOfMemory`]; [`ErrorKind::KeyMismatch`] if its halves do not belong together; [`ErrorKind::Text`].
    pub fn from_text_with<E: From<Error>>(
        text: &str,
        limits: &Argon2Limits,
        ask: impl FnOnce() -> Result<Password, E>,
    ) -> Result<Self, E> {
        let fields = Fields::from_text(text)?;
        if fields.kdf() != *b"Sc" {
            return Ok(Self::from_fields(&fields)?);
        }
        // The cost is checked before the password is asked for.
        let (salt, cost) = split::<48, 32, 16>(fields.cost());
        let params = params(cost, limits)?;
        Ok(Self::unlock(&fields, &ask()?, salt, &params)?)
    }

    fn unlock(fields: &Fields, password: &Password, salt: &[u8; 32], params: &Params) -> Result<Self, Error> {
        let mut secret = Zeroizing::new(*fields.secret());
        let mut mask = Zeroizing::new([0; 104]);
        // The crate below asks for this memory in a way that cannot fail.
        let len = params.n() * 128 * u64::from(R);
        drop(try_with_capacity(usize::try_from(len).map_err(|_| ErrorKind::OutOfMemory { len })?)?);
        scrypt::scrypt(password.bytes(), salt, params, &mut *mask)
            .expect("104 bytes are neither none nor too many");
        secret.iter_mut().zip(&*mask).for_each(|(byte, mask)| *byte ^= mask);

        let (rest, checksum) = split::<104, 72, 32>(&secret);
        let expected = Blake2b::<U32>::new().chain_update(b"Ed").chain_update(rest).finalize();
        if !constant_time_eq(&expected, checksum) {
            return Err(ErrorKind::Open.into());
        }
        Self::from_halves(&secret)
    }
}

/// The parameters that libsodium derives from work and memory, if they are within `limits`.
fn params(cost: &[u8; 16], limits: &Argon2Limits) -> Result<Params, Error> {
    let (work, memory) = split::<16, 8, 8>(cost);
    let work = u64::from_le_bytes(*work).max(1 << 15);
    let memory = u64::from_le_bytes(*memory);
    let units = if work < memory / 32 { work / 4 } else { memory / 128 } / u64::from(R);
    // The largest power of two that is not above, at least 2.
    let log_n = units.max(2).ilog2();
    // One where it is the work that limits the memory.
    let passes = ((work / 4) >> log_n).min(0x3fff_ffff) / u64::from(R);

    let kib = (1_u64 << log_n).saturating_mul(128 * u64::from(R)) / 1024;
    let too_much = ErrorKind::Cost { what: "memory in KiB", found: kib, min: 1, max: u64::from(u32::MAX) };
    let narrow = |value: u64| u32::try_from(value).map_err(|_| too_much);
    let cost = Argon2Cost::new(narrow(kib)?, narrow(passes)?, 1, limits)?;
    let log_n = u8::try_from(log_n).map_err(|_| too_much)?;
    Params::new(log_n, R, cost.passes()).map_err(|_| too_much.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made by a program of thirty lines in Python from minisign's page of formats (`hashlib.scrypt`, `hashlib.blake2b`): work
    /// 262144, memory 8 MiB, password `pass`, the key with seed 01..01.
    const LOCKED: &str = "untrusted comment: minisign encrypted secret key\nRWRTY0IyAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8AAAQAAAAAAAAAgAAAAAAAeDfykX94mIdMDv1nKZEMjv7HyaRWDPYfPFZOOiwDHwBpKDjHbYXLzcAxdEN2AYsxmL2uCWuHEUJ7Xv9OVO4uBOf70IubkIhPxituwzsl9azG6C7Xxw+ClbarNq6R/lNFEPK1snkb4xE=\n";

    fn open(text: &str, password: &str) -> Result<SecretKey, Error> {
        SecretKey::from_text_with(text, &Argon2Limits::default(), || Ok(Password::from(password)))
    }

    #[test]
    fn the_right_password_opens() {
        let key = open(LOCKED, "pass").unwrap();
        assert_eq!(key.into_key().expose_seed(), &[1; 32]);
        assert_eq!(open(LOCKED, "Pass").unwrap_err().kind(), &ErrorKind::Open);
        assert_eq!(SecretKey::from_text(LOCKED).unwrap_err().kind(), &ErrorKind::MinisignPassword);
    }

    #[test]
    fn a_key_without_password_asks_for_none() {
        let text = SecretKey::from(crate::SigningKey::from_seed(&[1; 32])).to_text();
        let never = || -> Result<Password, Error> { panic!("asked") };
        let key = SecretKey::from_text_with(text.as_str(), &Argon2Limits::default(), never).unwrap();
        assert_eq!(key.into_key().expose_seed(), &[1; 32]);
        assert!(SecretKey::from_text_with("", &Argon2Limits::default(), never).is_err());
    }

    fn changed(at: usize, bytes: &[u8]) -> alloc::string::String {
        use base64ct::{Base64, Encoding};
        let mut all = Base64::decode_vec(LOCKED.lines().nth(1).unwrap()).unwrap();
        all[at..at + bytes.len()].copy_from_slice(bytes);
        alloc::format!("untrusted comment:\n{}\n", Base64::encode_string(&all))
    }

    /// Salt, id, seed, public key, checksum: one error.
    #[test]
    fn changed_files_do_not_open() {
        for at in [6, 37, 54, 62, 93, 94, 125, 126, 157] {
            assert_eq!(open(&changed(at, &[0xa5]), "pass").unwrap_err().kind(), &ErrorKind::Open, "{at}");
        }
        assert_eq!(open(&changed(2, b"S0"), "pass").unwrap_err().code(), "cy-text");
    }

    /// Before the password is asked for, and before memory is.
    #[test]
    fn what_it_may_cost_is_bounded() {
        let never = || -> Result<Password, Error> { panic!("asked") };
        let cost = |work: u64, memory: u64| {
            let text = changed(38, &[work.to_le_bytes(), memory.to_le_bytes()].concat());
            *SecretKey::from_text_with(&text, &Argon2Limits::default(), never).unwrap_err().kind()
        };
        let kib = |kind| match kind {
            ErrorKind::Cost { what: "memory in KiB", found, .. } => found,
            other => panic!("{other:?}"),
        };
        assert_eq!(kib(cost(1 << 26, 1 << 31)), 1 << 21);
        assert_eq!(kib(cost(1 << 26, u64::MAX)), 1 << 21);
        assert_eq!(kib(cost(1 << 56, u64::MAX)), 1 << 51);
        assert_eq!(kib(cost(0, 1 << 21)), 1 << 10);
        assert_eq!(kib(cost(1 << 15, 1 << 30)), 1 << 10);
        assert!(matches!(cost(u64::MAX, 1 << 23), ErrorKind::Cost { what: "passes", .. }));
        assert!(matches!(cost(1 << 28, 1 << 30), ErrorKind::Cost { what: "memory times passes in KiB", .. }));
        let narrow = Argon2Limits::default().with_memory_kib(8..=1024);
        assert_eq!(SecretKey::from_text_with(LOCKED, &narrow, never).unwrap_err().code(), "cy-cost");
    }

    /// What `minisign -G` chooses: 2^20 blocks of 1 KiB, one pass.
    #[test]
    fn parameters_are_those_of_libsodium() {
        let params = |work: u64, memory: u64| {
            let cost = [work.to_le_bytes(), memory.to_le_bytes()].concat().try_into().unwrap();
            params(&cost, &Argon2Limits::default())
                .map(|params| (params.log_n(), params.r(), params.p()))
                .unwrap()
        };
        assert_eq!(params(33_554_432, 1 << 30), (20, 8, 1));
        assert_eq!(params(1 << 20, 1 << 24), (14, 8, 2));
        assert_eq!(params(1 << 20, 1 << 30), (15, 8, 1));
    }

    /// Written by minisign 0.11: `minisign -G` with the password `password`. Takes 1 GiB and seconds.
    #[test]
    fn a_key_of_minisign_opens() {
        if std::env::var_os("APR_CRYPTO_SLOW").is_none() {
            return;
        }
        let text = "untrusted comment: minisign encrypted secret key\n\
            RWRTY0IyseTkZfqu8aGXKZ/nlEPLhoFuEaZ1a6nYeKNh+jWpk0oAAAACAAAAAAAAAEAAAAAAqtLRTtMHS5IrjrOPd/1eDsy/eKoGXNnNYGVlfASEbLmciFh1+cJtVFFzwYWnTER1i18VPKq0gCm2gT0Y7wDUOEre4X6RTTBP83ns3tXNODfKBT1KYLHnf5MCbSHYyQoYvJSYJiL5sNg=\n";
        let public = "untrusted comment: minisign public key FE679ECA8EBD199\n\
            RWSZ0euo7HnmDwQGnWGY3hJVB9qSB0HfaoeLFv+1Dx3MMHxZvALcohFi\n";
        assert_eq!(alloc::string::ToString::to_string(&open(text, "password").unwrap().public()), public);
    }
}
