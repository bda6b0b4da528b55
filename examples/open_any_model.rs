//! Opens model files of several formats through one API: lists what they contain, reads a tensor, predicts.

use core::error::Error;

use apr_container::{ModelType, SaveOptions};
use apr_models::{LinearRegression, Matrix, Model as _, Vector};
use model_file::{ModelFile, OpenOptions};
use st_core::{Dtype, TensorView, WriteOptions};

fn main() -> Result<(), Box<dyn Error>> {
    // A model as `.apr`, and a tensor as safetensors. `ModelFile::open` takes a path instead.
    let model = LinearRegression::from_parts(Vector::from_vec(vec![2.0]), 1.0)?;
    let apr = apr_container::to_vec(&model, ModelType::LinearRegression, &SaveOptions::default())?;
    let values = [0.5_f32, -1.5].map(f32::to_le_bytes);
    let view = TensorView::new(Dtype::F32, &[2], values.as_flattened())?;
    let safetensors = st_core::to_vec(&[("weight", view)], &WriteOptions::default())?;

    for bytes in [&apr, &safetensors] {
        let file = ModelFile::from_bytes(bytes, &OpenOptions::new())?;
        let description = file.describe()?;
        println!("{} {:?}: {} bytes", description.format, description.version, description.file_size);
        for tensor in file.tensors()? {
            println!("  {} {:?} {:?}", tensor.name(), tensor.shape(), tensor.to_f32()?);
        }
    }

    let named = ModelFile::from_bytes(&apr, &OpenOptions::new())?.model()?;
    let x = Matrix::from_vec(1, 1, vec![3.0])?;
    println!("{} predicts {:?}", named.model.name(), named.model.try_predict(&x)?);

    // A file of another format is refused by name.
    let error =
        ModelFile::from_bytes(b"<!DOCTYPE html><html>", &OpenOptions::new()).expect_err("not a model");
    println!("{}: {error}", error.code());
    Ok(())
}

#[test]
fn runs() {
    main().expect("the example succeeds");
}
