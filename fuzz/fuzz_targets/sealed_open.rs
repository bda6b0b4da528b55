//! Any sealed file is refused or read, and sealed again with the same content; a change after everything in it was made
//! right is refused.

#![no_main]

use apr_crypto::{Access, Argon2Limits, Trust};
use apr_fuzz::sealed::{Counter, make, recipient, signer};
use apr_sealed::{
    Error, RekeyOptions, Rekeying, SealOptions, SealedHeader, SealedLimits, SealedReader, verify,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    read(input);
    let made = make(input);
    let content = read(&made.file);
    assert!(!made.is_changed || content.is_none(), "a change was not noticed");
});

fn limits() -> SealedLimits {
    SealedLimits { argon2: Argon2Limits::default().with_memory_kib(8..=64), ..SealedLimits::default() }
}

fn sound(error: &Error) {
    assert!(error.code().starts_with("ac-") || error.code().starts_with("cy-"), "{}", error.code());
    assert!(!error.to_string().is_empty());
}

/// The content, if the file opens and all of it is authentic.
fn read(file: &[u8]) -> Option<Vec<u8>> {
    let (secret, signer, limits) = (recipient(), signer(), limits());
    let key = signer.verifying_key();
    let header = SealedHeader::read(file, &limits).inspect_err(sound).ok()?;
    assert_eq!(header.lens().iter().sum::<u64>(), file.len() as u64);
    assert_eq!(header.is_encrypted(), !header.stanzas().is_empty());
    let mut access = Access::default();
    if header.is_signed() {
        access = access.with_trust(&key);
        let anyone = header.verify(Trust::Anyone).is_ok();
        assert!(anyone || header.verify(Trust::Key(&key)).is_err());
    }
    if header.is_encrypted() {
        access = access.with_recipient(&secret);
    }
    let reader = SealedReader::open(file, &access, &limits).inspect_err(sound).ok()?;
    reader.verify_all().inspect_err(sound).ok()?;
    if header.is_signed() {
        verify(file, &key, &limits).expect("everything was verified");
    }
    let mut content = Vec::new();
    reader.restore(&mut content).expect("everything was verified");
    assert_eq!(content.len() as u64, reader.content_len());
    let mut rest = content.as_slice();
    for (idx, part) in reader.parts().iter().enumerate() {
        let (bytes, after) = rest.split_at(part.len() as usize);
        rest = after;
        assert_eq!(reader.find(part.name()), Some(idx).filter(|_| !part.name().is_empty()));
        let mut alone = vec![1; bytes.len()];
        reader.read_part(idx, 0, &mut alone).expect("everything was verified");
        assert!(alone == bytes);
    }
    again(&reader, &content);
    if header.is_encrypted() {
        let more = RekeyOptions::default().for_recipient(secret.public()).signed_by(&signer);
        if let Err(error) = Rekeying::prepare(file, &access, &more, &limits, &mut Counter(60)) {
            assert_eq!(error.code(), "ac-sealed-room");
        }
    }
    Some(content)
}

/// Sealed again, it is read again.
fn again(reader: &SealedReader<'_, &[u8]>, content: &[u8]) {
    let (key, plan) = (signer(), apr_sealed::Plan::new(reader.parts().iter().cloned()).expect("it was read"));
    let mut options = SealOptions::default().signed_by(&key).for_recipient(recipient().public());
    options.public = reader.public_metadata().clone();
    options.private = reader.private_metadata().clone();
    let file = apr_sealed::to_vec(&plan, content, &options, &mut Counter(80)).expect("it was read");
    let (secret, public) = (recipient(), key.verifying_key());
    let access = Access::default().with_recipient(&secret).with_trust(&public);
    let again = SealedReader::open(file.as_slice(), &access, &limits()).expect("it was sealed");
    assert_eq!(again.parts(), reader.parts());
    assert_eq!(again.private_metadata(), reader.private_metadata());
    let mut same = Vec::new();
    again.restore(&mut same).expect("it was sealed");
    assert!(same == content);
}
