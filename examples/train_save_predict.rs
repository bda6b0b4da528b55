//! Fits a linear regression, saves it as `.apr`, reads its metadata, loads it and predicts.

use core::error::Error;
use std::fs;

use apr_container::{Compression, ModelType, SaveOptions, inspect, load, save};
use apr_models::{LinearRegression, Matrix, Vector};

fn main() -> Result<(), Box<dyn Error>> {
    // x: [n_samples = 4, n_features = 2], row-major; y = 1 + 2a + 3b.
    let x = Matrix::from_vec(4, 2, vec![1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 2.0, 1.0])?;
    let y = Vector::from_vec(vec![3.0, 4.0, 6.0, 8.0]);
    let mut model = LinearRegression::new();
    model.fit(&x, &y)?;

    let path = std::env::temp_dir().join(format!("apr-example-{}.apr", std::process::id()));
    let options = SaveOptions::default().with_name("plane").with_compression(Compression::LZ4);
    save(&model, ModelType::LinearRegression, &path, options)?;

    // Reads header and metadata, not the payload.
    println!("{:?}", inspect(&path)?.metadata.model_name);

    let loaded: LinearRegression = load(&path, ModelType::LinearRegression)?;
    println!("coefficients {:?}, intercept {}", loaded.coefficients(), loaded.intercept());
    assert_eq!(loaded.predict(&x), model.predict(&x));
    fs::remove_file(&path)?;
    Ok(())
}

#[test]
fn runs() {
    main().expect("the example succeeds");
}
