use apr_models::*;

#[test]
fn moments_are_those_of_each_class() {
    let x = Matrix::from_vec(4, 2, vec![1.0, 10.0, 5.0, 20.0, 3.0, 10.0, 9.0, 40.0]).unwrap();
    let model = NaiveBayes::fit(&x, &[4, 9, 4, 9], &NaiveBayesOptions { var_smoothing: 0.5 }).unwrap();
    assert_eq!((model.classes(), model.prior()), (&[4, 9][..], &[0.5, 0.5][..]));
    assert_eq!(model.mean(), [2.0, 10.0, 7.0, 30.0]);
    // Half of the variance of the second feature: (10, 20, 10, 40) around 20.
    assert_eq!(model.variance(), [76.0, 75.0, 79.0, 175.0]);
    // The second sample is nearer to the mean of 9, but 4 is the narrower class.
    assert_eq!(model.predict(&x), [4, 4, 4, 9]);
    let proba = model.try_predict_proba(&x).unwrap();
    assert!(proba.rows().all(|row| (row.iter().sum::<f32>() - 1.0).abs() < 1e-6));
}

#[test]
fn what_has_no_variance_is_refused() {
    let x = Matrix::from_vec(2, 1, vec![1.0, 1.0]).unwrap();
    let error = NaiveBayes::fit(&x, &[0, 1], &NaiveBayesOptions::default()).unwrap_err();
    assert_eq!(error.code(), "am-part");
    for var_smoothing in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(NaiveBayes::fit(&x, &[0, 1], &NaiveBayesOptions { var_smoothing }).is_err());
    }
    assert!(NaiveBayes::fit(&x, &[0], &NaiveBayesOptions::default()).is_err());
}
