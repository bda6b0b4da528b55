//! Predicts from a model in the program's read-only data, without a copy and without the allocator.
//!
//! The file is checked at compile time; the same code runs on a microcontroller without `std`
//! (`crates/conformance/firmware`).

use core::error::Error;

use apr_container::{Embedded, embed_model};
use apr_models::LinearRegression;

static MODEL: Embedded<LinearRegression> =
    embed_model!("../crates/conformance/vectors/apr/a0723_linreg_none_plain.apr");

fn main() -> Result<(), Box<dyn Error>> {
    let model = MODEL.view()?;
    let sample = vec![1.0; model.n_features()];
    let prediction = model.try_predict_one(&sample)?;
    println!("{} features, prediction {prediction}", model.n_features());
    Ok(())
}

#[test]
fn runs() {
    main().expect("the example succeeds");
}
