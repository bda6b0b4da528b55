//! What is refused before anything is done, and what it costs to refuse it.

use std::cell::Cell;

use apr_crypto::{Access, Argon2Cost, Argon2Limits, Password, Trust};
use apr_sealed::{ErrorKind, Part, Plan, SealOptions, SealedHeader, SealedLayout, SealedLimits};
use read_at::ReadAt;

use super::{cheap, code, header, keys, limits, open, read_all, sample, seal};

#[test]
fn options_that_protect_nothing_or_contradict_each_other_are_refused() {
    let keys = keys();
    let (plan, _) = sample(1);
    let alice = keys.alice.public();
    let empty = Password::from("");
    let none = SealOptions::default;
    let cases = [
        (none(), "ac-sealed-unprotected"),
        (none().with_password(&keys.password).for_recipient(alice), "ac-value"),
        (none().with_password(&empty), "ac-limit"),
        (none().with_bound_recipients().signed_by(&keys.signer), "ac-value"),
        (none().with_bound_recipients().for_recipient(alice), "ac-value"),
        (none().for_recipient(alice).with_capacity_for(20_000), "ac-limit"),
        (none().for_recipient(alice).with_public("", "x"), "ac-value"),
        (none().for_recipient(alice).with_private("", "x"), "ac-value"),
    ];
    for (options, expected) in cases {
        assert_eq!(code(SealedLayout::new(&plan, &options)), expected);
        let sealed = apr_sealed::to_vec(&plan, &[], &options, &mut apr_crypto::OsRandom);
        assert_eq!(code(sealed), expected);
    }
    let options = none().signed_by(&keys.signer);
    let error = apr_sealed::to_vec(&plan, &[0; 9], &options, &mut apr_crypto::OsRandom).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::DataLength { needed: 57, given: 9 }), "{error}");
    let error = apr_sealed::to_vec(&plan, &[0; 99], &options, &mut apr_crypto::OsRandom).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::DataLength { needed: 57, given: 99 }), "{error}");
}

#[test]
fn demands_that_a_file_does_not_meet_are_errors_of_their_own() {
    let keys = keys();
    let (plan, content) = sample(1);
    let none = SealOptions::default;
    let recipient = seal(&plan, &content, &none().for_recipient(keys.alice.public()));
    let password = seal(&plan, &content, &none().with_password_at(&keys.password, cheap()));
    let signed = seal(&plan, &content, &none().signed_by(&keys.signer));
    let (nothing, key) = (Access::default(), Access::default().with_recipient(&keys.alice));
    let word = Access::default().with_password(&keys.password);
    let trust = Access::default().with_trust(&keys.verifying);
    assert_eq!(code(open(&recipient, &nothing)), "ac-encrypted");
    assert_eq!(code(open(&recipient, &word)), "ac-sealed-lock");
    assert_eq!(code(open(&password, &key)), "ac-sealed-lock");
    assert_eq!(code(open(&recipient, &Access::default().with_recipient(&keys.eve))), "ac-decryption");
    let wrong = Password::from("my-string-password");
    assert_eq!(code(open(&password, &Access::default().with_password(&wrong))), "ac-decryption");
    assert_eq!(code(open(&recipient, &key.with_trust(&keys.verifying))), "ac-not-signed");
    assert_eq!(code(open(&recipient, &key.with_trust(Trust::Anyone))), "ac-not-signed");
    assert_eq!(code(open(&signed, &key.with_trust(&keys.verifying))), "ac-not-encrypted");
    assert_eq!(code(open(&signed, &nothing)), "ac-signed");
    assert_eq!(code(open(&signed, &Access::default().with_trust(&keys.forged))), "ac-untrusted-signer");
    assert_eq!(code(apr_sealed::verify(&recipient, &keys.verifying, &limits())), "ac-not-signed");
    assert_eq!(code(apr_sealed::verify(&signed, Trust::NoSignature, &limits())), "ac-signed");
    let reader = open(&signed, &trust).unwrap();
    assert_eq!(code(reader.tensor("missing")), "ac-v2-not-found");
    for (part, offset, len) in [(0, 5, 1), (0, u64::MAX, 1), (9, 0, 1), (1, 0, 17)] {
        assert_eq!(code(reader.read_part(part, offset, &mut vec![0; len])), "cy-range");
    }
}

/// A malicious file that asks for an expensive key derivation.
#[test]
fn a_password_may_not_cost_more_than_the_reader_allows() {
    let keys = keys();
    let (plan, content) = sample(1);
    let large = Argon2Cost::new(64 * 1024, 1, 1, &Argon2Limits::default()).unwrap();
    let file = seal(&plan, &content, &SealOptions::default().with_password_at(&keys.password, large));
    let access = Access::default().with_password(&keys.password);
    assert_eq!(read_all(&file, &access).unwrap(), content);
    assert_eq!(header(&file).password_cost(&Argon2Limits::default()).unwrap(), Some(large));
    let argon2 = Argon2Limits::default().with_memory_kib(8 * 1024..=32 * 1024);
    assert_eq!(code(header(&file).password_cost(&argon2)), "cy-cost");
    let small = SealedLimits { argon2, ..SealedLimits::default() };
    assert_eq!(code(apr_sealed::SealedReader::open(&file, &access, &small)), "cy-cost");
    // And not less either.
    let cheap = seal(&plan, &content, &SealOptions::default().with_password_at(&keys.password, cheap()));
    assert_eq!(code(apr_sealed::SealedReader::open(&cheap, &access, &SealedLimits::default())), "cy-cost");
}

/// A source that claims any length and counts what is asked of it.
struct Claiming<'f> {
    bytes: &'f [u8],
    len: u64,
    asked: Cell<u64>,
}

impl ReadAt for Claiming<'_> {
    fn total_len(&self) -> u64 {
        self.len
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), read_at::Error> {
        self.asked.set(self.asked.get() + out.len() as u64);
        for (idx, byte) in (offset..).zip(out) {
            *byte = self.bytes.get(usize::try_from(idx).unwrap()).copied().unwrap_or_default();
        }
        Ok(())
    }
}

/// Nothing is read, and hence nothing allocated, for lengths the file does not have or the reader does not allow.
#[test]
fn claims_cost_nothing() {
    let keys = keys();
    let (plan, content) = sample(1);
    let both = SealOptions::default().signed_by(&keys.signer).for_recipient(keys.alice.public());
    let file = seal(&plan, &content, &both);
    for (at, width) in [(32, 8), (40, 8), (48, 4), (52, 4)] {
        for value in [1_u64 << 20, (1 << 20) + 512, 64 << 20, 1 << 31, 1 << 40, u64::MAX - 4_000, u64::MAX] {
            let mut claim = file.clone();
            claim[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
            if at == 32 {
                claim[66..74].copy_from_slice(&value.to_le_bytes());
            }
            if claim == file {
                continue;
            }
            let bytes = claim.as_slice();
            let source = Claiming { bytes, len: bytes.len() as u64, asked: Cell::new(0) };
            assert!(SealedHeader::read(&source, &limits()).is_err());
            assert_eq!(source.asked.get(), 208, "{at} {value}");
        }
    }
    // A long source with a long directory: the limit holds.
    let mut claim = file.clone();
    claim[40..48].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    let len = file.len() as u64 - map_directory(&file) + (1 << 40);
    for pad in 0..64 {
        let source = Claiming { bytes: &claim, len: len + pad - 32, asked: Cell::new(0) };
        let error = SealedHeader::read(&source, &limits()).unwrap_err();
        assert!(["ac-limit", "ac-sealed-length"].contains(&error.code()));
        assert_eq!(source.asked.get(), 208);
    }
}

fn map_directory(file: &[u8]) -> u64 {
    super::map(file).directory.len() as u64
}

#[test]
fn limits_are_the_readers() {
    let keys = keys();
    let parts = (0..100).map(|idx| Part::tensor(&format!("t{idx}"), "U8", [0], 0));
    let plan = Plan::new(parts).unwrap();
    let options = SealOptions::default().signed_by(&keys.signer).with_public("a", &"x".repeat(200));
    let file = seal(&plan, &[], &options);
    let access = Access::default().with_trust(&keys.verifying);
    let accepts = |limits: SealedLimits| apr_sealed::SealedReader::open(&file, &access, &limits).map(|_| ());
    accepts(limits()).unwrap();
    accepts(SealedLimits { parts: 100, ..limits() }).unwrap();
    assert_eq!(code(accepts(SealedLimits { parts: 99, ..limits() })), "ac-limit");
    assert_eq!(code(accepts(SealedLimits { public_bytes: 203, ..limits() })), "ac-limit");
    accepts(SealedLimits { public_bytes: 204, ..limits() }).unwrap();
    assert_eq!(code(accepts(SealedLimits { directory_bytes: 100, ..limits() })), "ac-limit");
}

/// No header, however mangled, leads to anything but an error or the same file.
#[test]
fn mangled_headers_never_panic() {
    let keys = keys();
    let (plan, content) = sample(1);
    let both = SealOptions::default().signed_by(&keys.signer).for_recipient(keys.alice.public());
    let file = seal(&plan, &content, &both);
    let access = Access::default().with_recipient(&keys.alice).with_trust(Trust::Anyone);
    for at in 0..208 {
        for value in [0, 1, 2, 0x7f, 0x80, 0xff] {
            let mut changed = file.clone();
            changed[at] = value;
            assert!(changed == file || read_all(&changed, &access).is_err());
        }
    }
    assert_eq!(header(&file).file_id().len(), 16);
    for short in [&b""[..], b"\x89", b"\x89APRS\r\n\x1a", b"GGUF", &file[..207]] {
        assert!(SealedHeader::read(short, &limits()).is_err());
    }
}
