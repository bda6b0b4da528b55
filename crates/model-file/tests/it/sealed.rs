//! Sealed files: the file inside them is what is described.

use std::fs;
use std::path::Path;

use apr_crypto::{Access, OsRandom, RecipientSecret, SigningKey};
use apr_sealed::{Part, Plan, SealOptions};
use model_file::{ErrorKind, ModelFile, ModelFormat, OpenOptions};

#[test]
fn a_sealed_file_is_described_as_the_file_inside() {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors");
    let (seller, buyer) =
        (SigningKey::generate(&mut OsRandom).unwrap(), RecipientSecret::generate(&mut OsRandom).unwrap());
    let options = SealOptions::default().for_recipient(buyer.public()).signed_by(&seller);
    let signer = seller.verifying_key();
    for name in ["apr/a0100_dtree.safetensors", "apr/a0100_dbscan_none_plain.apr"] {
        let original = fs::read(vectors.join(name)).unwrap();
        let expected = ModelFile::from_bytes(&original, &OpenOptions::new()).unwrap().describe().unwrap();
        let plan = Plan::new([Part::raw(original.len() as u64)]).unwrap();
        let sealed = apr_sealed::to_vec(&plan, &original, &options, &mut OsRandom).unwrap();

        let closed = ModelFile::from_bytes(&sealed, &OpenOptions::new()).unwrap();
        assert_eq!((closed.format(), closed.is_sealed()), (ModelFormat::Sealed, true));
        assert_eq!(closed.signer_declared(), Some(signer));
        let described = closed.describe().unwrap();
        assert!(described.encrypted && described.signed && described.tensors.is_empty());

        let access = Access::default().with_recipient(&buyer).with_trust(&signer);
        let open = OpenOptions::new().with_access(access);
        assert_eq!(ModelFile::from_bytes(&sealed, &open).unwrap().describe().unwrap(), expected, "{name}");

        let other = RecipientSecret::generate(&mut OsRandom).unwrap();
        let wrong =
            OpenOptions::new().with_access(Access::default().with_recipient(&other).with_trust(&signer));
        let error = ModelFile::from_bytes(&sealed, &wrong).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Sealed(_)), "{}", error.code());
    }
}
