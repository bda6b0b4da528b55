use apr_models::*;

const DOCUMENTS: [&str; 2] = ["aa aa bb", "aa"];

fn row(options: TfIdfOptions) -> Vec<f32> {
    let model = TfIdf::fit(&DOCUMENTS, &options).unwrap();
    model.transform(["bb aa aa aa cc"]).values().to_vec()
}

#[test]
fn weights_follow_the_options() {
    let plain = TfIdfOptions { norm: RowNorm::None, ..TfIdfOptions::default() };
    let log = |x: f64| libm::log(x) as f32;
    assert_eq!(row(plain.clone()), [3.0, 1.0 + log(1.5)]);
    assert_eq!(
        row(TfIdfOptions { inverse: InverseFrequency::Plain, ..plain.clone() }),
        [3.0, 1.0 + log(2.0)]
    );
    let none = TfIdfOptions { inverse: InverseFrequency::None, ..plain };
    assert_eq!(row(none.clone()), [3.0, 1.0]);
    assert_eq!(row(TfIdfOptions { norm: RowNorm::L1, ..none.clone() }), [0.75, 0.25]);
    assert_eq!(row(TfIdfOptions { frequency: TermFrequency::Logarithm, ..none }), [1.0 + log(3.0), 1.0]);
}

#[test]
fn factors_must_fit_the_terms() {
    let model = TfIdf::fit(&DOCUMENTS, &TfIdfOptions::default()).unwrap();
    let of = |idf| {
        TfIdf::from_parts(model.counts().clone(), TfIdfParts { idf: Some(idf), ..TfIdfParts::default() })
    };
    assert!(of(vec![1.0, 2.0]).is_ok());
    assert_eq!(of(vec![1.0]).unwrap_err().code(), "am-part-length");
    assert_eq!(of(vec![1.0, f32::NAN]).unwrap_err().code(), "am-part-not-finite");
    // A row of zeros has no norm to be divided by.
    let zeros = of(vec![0.0, 0.0]).unwrap().transform(["aa"]);
    assert_eq!(zeros.values(), [0.0]);
}
