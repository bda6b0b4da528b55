//! Files that are verified, or refused, without being in memory.

use core::cell::Cell;

use apr_container::{
    Compression, Error, ModelType, Protection, ReadOptions, SaveOptions, check_source, to_vec,
    verify_signature, verify_source,
};
use apr_crypto::{Signer, SigningKey, Trust};
use read_at::ReadAt;

use crate::sample::Sample;

/// Bytes that say how many of them were read.
struct Counted<'f> {
    file: &'f [u8],
    read: Cell<usize>,
}

impl ReadAt for Counted<'_> {
    fn total_len(&self) -> u64 {
        self.file.total_len()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), read_at::Error> {
        self.read.set(self.read.get() + out.len());
        self.file.read_exact_at(offset, out)
    }
}

fn streamed<'k>(file: &[u8], trust: Trust<'k>) -> (Result<Option<Signer<'k>>, &'static str>, usize) {
    let source = Counted { file, read: Cell::new(0) };
    let found = verify_source(&source, trust, &ReadOptions::STRICT).map_err(|error| error.code());
    (found, source.read.get())
}

/// Recomputes the checksum, as any attacker can.
fn reseal(file: &mut [u8]) {
    let body = file.len() - 4;
    let crc = crc32fast::hash(&file[..body]);
    file[body..].copy_from_slice(&crc.to_le_bytes());
}

fn code<T>(result: Result<T, Error>) -> &'static str {
    result.map(|_| ()).unwrap_err().code()
}

#[test]
fn long_files_get_the_verdicts_of_files_in_memory() {
    let (maker, other) = (SigningKey::from_seed(&[1; 32]), SigningKey::from_seed(&[2; 32]));
    let (maker_key, other_key) = (maker.verifying_key(), other.verifying_key());
    let options = SaveOptions::default().with_compression(Compression::None).with_created_at(1_795_241_427);
    // 17 MiB, and a short one, which is read as a whole.
    for count in [0, 17 << 18] {
        let model = Sample::new(count);
        let options = options.clone().with_protection(Protection::default().signed_by(&maker));
        let file = to_vec(&model, ModelType::Custom, &options).unwrap();
        let trust = Trust::Key(&maker_key);
        let (found, read) = streamed(&file, trust);
        assert_eq!(found, Ok(Some(Signer::Trusted(maker_key, None))));
        assert!(read < file.len() + 200);
        assert_eq!(streamed(&file, Trust::Anyone).0, Ok(Some(Signer::Unknown(maker_key))));
        assert_eq!(streamed(&file, Trust::NoSignature).0, Ok(None));
        assert_eq!(streamed(&file, Trust::Key(&other_key)).0, Err("ac-untrusted-signer"));

        // Damage, and a change with a recomputed checksum.
        let mut changed = file.clone();
        let middle = changed.len() / 2;
        changed[middle] ^= 1;
        assert_eq!(streamed(&changed, trust).0, Err("ac-checksum"));
        reseal(&mut changed);
        assert_eq!(streamed(&changed, trust).0, Err("ac-signature"));
        assert_eq!(code(verify_signature(&changed, trust, &ReadOptions::STRICT)), "ac-signature");
        // The first bit of the signature.
        let mut changed = file.clone();
        let signature = changed.len() - 100;
        changed[signature] ^= 1;
        reseal(&mut changed);
        assert_eq!(streamed(&changed, trust).0, Err("ac-signature"));
    }
}

#[test]
fn a_long_file_whose_header_does_not_fit_is_refused_before_it_is_read() {
    let key = SigningKey::from_seed(&[1; 32]);
    let (by, other) = (key.verifying_key(), SigningKey::from_seed(&[2; 32]).verifying_key());
    let options = SaveOptions::default().with_compression(Compression::None);
    let file = |protection: Protection<'_>| {
        let model = Sample::constant(17 << 18);
        to_vec(&model, ModelType::Custom, &options.clone().with_protection(protection)).unwrap()
    };
    let (signed, plain) = (file(Protection::default().signed_by(&key)), file(Protection::default()));
    let longer = [&signed[..], &[0; 32]].concat();
    for (file, trust, expected) in [
        (&longer[..], Trust::Key(&by), "ac-unowned"),
        (&longer, Trust::NoSignature, "ac-unowned"),
        (&signed[..signed.len() - 32], Trust::Key(&by), "ac-truncated"),
        (&signed, Trust::Key(&other), "ac-untrusted-signer"),
        (&plain, Trust::Key(&by), "ac-not-signed"),
        (&plain, Trust::Anyone, "ac-not-signed"),
        (&vec![0; 17 << 20], Trust::Anyone, "ac-magic"),
    ] {
        let (found, read) = streamed(file, trust);
        assert_eq!(found, Err(expected));
        assert!(read <= 32 + 96, "{expected}: {read}");
        assert_eq!(code(check_source(file, trust, &ReadOptions::STRICT)), expected);
    }
    let source = Counted { file: &signed, read: Cell::new(0) };
    check_source(&source, &by, &ReadOptions::STRICT).unwrap();
    assert_eq!(source.read.get(), 32 + 96);
}
