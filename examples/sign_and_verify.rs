//! Signs a model, verifies the signature while loading, and detects a modified file.

use core::error::Error;
use std::fs;

use apr_container::{ModelType, SaveOptions, load_verified, save_signed};
use apr_crypto::{OsRandom, SigningKey};
use apr_models::{LinearRegression, Vector};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::temp_dir().join(format!("apr-example-signed-{}.apr", std::process::id()));
    let model = LinearRegression::from_parts(Vector::from_vec(vec![2.0, 3.0]), 1.0)?;

    let key = SigningKey::generate(&mut OsRandom)?;
    save_signed(&model, ModelType::LinearRegression, &path, SaveOptions::default(), &key)?;

    // Readers get the public key over another channel than the file.
    let trusted = key.verifying_key();
    let loaded: LinearRegression = load_verified(&path, ModelType::LinearRegression, &trusted)?;
    assert_eq!(loaded, model);

    // One changed bit: nothing of the file is used.
    let mut file = fs::read(&path)?;
    let middle = file.len() / 2;
    file[middle] ^= 1;
    fs::write(&path, file)?;
    let modified = load_verified::<LinearRegression>(&path, ModelType::LinearRegression, &trusted);
    let error = modified.expect_err("the file was modified");
    println!("{}: {error}", error.code());
    fs::remove_file(&path)?;
    Ok(())
}

#[test]
fn runs() {
    main().expect("the example succeeds");
}
