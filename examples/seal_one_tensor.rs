//! Encrypts a model for a recipient, signs it, and reads a single tensor out of the sealed file.

use core::error::Error;

use apr_crypto::{Access, OsRandom, RecipientSecret, Signer, SigningKey};
use apr_sealed::{Part, Plan, SealOptions, SealedLimits, SealedReader};

fn main() -> Result<(), Box<dyn Error>> {
    let seller = SigningKey::generate(&mut OsRandom)?;
    let buyer = RecipientSecret::generate(&mut OsRandom)?;

    // The content is two tensors, 8 and 4 bytes long.
    let plan = Plan::new([Part::tensor("weight", "F32", [2], 8), Part::tensor("bias", "F32", [1], 4)])?;
    let options = SealOptions::default().for_recipient(buyer.public()).signed_by(&seller);
    let file = apr_sealed::to_vec(&plan, &[7; 12], &options, &mut OsRandom)?;

    // The buyer knows the seller's public key. Opening verifies the signature; reading decrypts and verifies what it reads.
    let trusted = seller.verifying_key();
    let access = Access::default().with_recipient(&buyer).with_trust(&trusted);
    let reader = SealedReader::open(&file, &access, &SealedLimits::default())?;
    assert_eq!(reader.signer(), Some(Signer::Trusted(trusted, None)));
    let bias = reader.tensor("bias")?;
    println!("{} bytes of {}: bias is {bias:?}", bias.len(), file.len());
    assert_eq!(bias, [7; 4]);

    // Another key does not open it.
    let other = RecipientSecret::generate(&mut OsRandom)?;
    let access = Access::default().with_recipient(&other).with_trust(&trusted);
    let error = SealedReader::open(&file, &access, &SealedLimits::default()).expect_err("not a recipient");
    println!("{}: {error}", error.code());
    Ok(())
}

#[test]
fn runs() {
    main().expect("the example succeeds");
}
