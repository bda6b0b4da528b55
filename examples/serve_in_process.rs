//! Answers requests for predictions in the process, as `apr serve` answers them over HTTP.

use core::error::Error;

use apr_models::{AnyModel, LinearRegression, OutputKind, Vector};
use apr_serve::{Model, Options};

fn main() -> Result<(), Box<dyn Error>> {
    let plane = LinearRegression::from_parts(Vector::from_vec(vec![2.0, 3.0]), 1.0)?;
    let model = Model::new(AnyModel::from(plane))?;
    let options = Options::default();

    let body = br#"{"rows": [[1, 0], [2, 1]]}"#;
    let response = model.answer_json(body, OutputKind::Predictions, &options).map_err(|_| "refused")?;
    println!("{}", String::from_utf8(response)?);

    // An invalid request gets a status and a body with a stable code and a position.
    let body = br#"{"rows": [[1, "x"]]}"#;
    let (status, body) =
        model.answer_json(body, OutputKind::Predictions, &options).expect_err("not a number");
    println!("{status} {}", String::from_utf8(body)?);
    assert_eq!(status, 400);
    Ok(())
}

#[test]
fn runs() {
    main().expect("the example succeeds");
}
