//! Detects the format of a model file by its first bytes, and loads the model of whichever type it contains.

use std::error::Error;

use apr_container::{ModelType, SaveOptions, to_vec};
use apr_models::{AnyModel, LinearRegression, Matrix, Model as _, Vector};
use model_file::FileKind;

fn main() -> Result<(), Box<dyn Error>> {
    let model = LinearRegression::from_parts(Vector::from_vec(vec![2.0]), 1.0)?;
    let file = to_vec(&model, ModelType::LinearRegression, &SaveOptions::default())?;

    for bytes in [file.as_slice(), b"GGUF\x03\0\0\0", b"<!DOCTYPE html><html>"] {
        match FileKind::of(bytes) {
            FileKind::Foreign(format) => println!("{}: {}", format.title(), format.help()),
            kind => println!("{kind:?}"),
        }
    }

    let any = AnyModel::from_bytes(&file)?;
    let x = Matrix::from_vec(1, 1, vec![3.0])?;
    println!("{} predicts {:?}", any.name(), any.try_predict(&x)?);
    Ok(())
}

#[test]
fn runs() {
    main().expect("the example succeeds");
}
