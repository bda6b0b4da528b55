//! The other side of private inference for the tests in Node.js: `owner KEY MODEL CONTEXT < request > response` opens a request
//! with the owner's secret key line, asks the linear regression in the file MODEL about the 32-bit floats in it, and encrypts the
//! answer.

use core::error::Error;
use std::io::{Read as _, Write as _};

use apr_container::{ModelType, load_from_bytes};
use apr_crypto::inference::{Padding, decrypt_request, encrypt_response};
use apr_crypto::{Argon2Limits, OsRandom, StoredKey};
use apr_models::{LinearRegression, Matrix};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(key), Some(model), Some(context), None) = (args.next(), args.next(), args.next(), args.next())
    else {
        return Err("usage: owner KEY MODEL CONTEXT".into());
    };
    let StoredKey::Open(key) = StoredKey::from_text(&key, &Argon2Limits::default())? else {
        return Err("the key is under a password".into());
    };
    let owner = key.into_recipient()?;
    let model: LinearRegression = load_from_bytes(&std::fs::read(model)?, ModelType::LinearRegression)?;
    let mut message = Vec::new();
    std::io::stdin().read_to_end(&mut message)?;

    let request = decrypt_request(&owner, context.as_bytes(), &message)?;
    let numbers: Vec<f32> =
        request.input().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    let answers = model.predict(&Matrix::from_vec(1, numbers.len(), numbers)?);
    let output = answers.as_slice()[0].to_le_bytes();
    std::io::stdout().write_all(&encrypt_response(&mut OsRandom, &request, &output, Padding::None)?)?;
    Ok(())
}
