//! Encrypted and signed files of the peers.

use conformance::apr::protected;
use conformance::apr::vectors::Vectors;

use apr_container::{Expect, ReadOptions, Serde, inspect_bytes, load_from_bytes_with};
use apr_crypto::{OsRandom, SigningKey};
use apr_sealed::{Part, Plan, SealOptions};

#[test]
fn every_protected_file_of_the_peers_is_opened_and_no_changed_one() {
    let suite = protected::suite(&Vectors::load().unwrap()).unwrap();
    assert_eq!(suite.failures().collect::<Vec<_>>(), [] as [&str; 0]);
    assert_eq!(suite.vectors(), 26 + 21 + 33);
}

/// Neither with its own magic bytes nor with those of an `.apr` file.
#[test]
fn a_sealed_file_is_no_apr_file() {
    let signer = SigningKey::from_seed(&[1; 32]);
    let plan = Plan::new([Part::tensor("weight", "F32", [2], 8)]).unwrap();
    let options = SealOptions::default().signed_by(&signer);
    let file = apr_sealed::to_vec(&plan, &[7; 8], &options, &mut OsRandom).unwrap();
    assert_eq!(inspect_bytes(&file).unwrap_err().code(), "ac-magic");
    let loaded = load_from_bytes_with::<Serde<u8>>(&file, Expect::AnyKnown, &ReadOptions::COMPAT);
    assert_eq!(loaded.map(|_| ()).unwrap_err().code(), "ac-magic");
    for magic in [&b"APRN"[..], b"APR2", b"APR\0"] {
        let mut downgraded = file.clone();
        downgraded[..4].copy_from_slice(magic);
        assert!(inspect_bytes(&downgraded).is_err());
    }
}
