use apr_models::*;

#[test]
fn mean_is_weighted_by_inverse_distance() {
    let x = Matrix::from_vec(3, 1, vec![0.0, 1.0, 4.0]).unwrap();
    let y = Vector::from_vec(vec![10.0, 20.0, 40.0]);
    let model = KnnRegressor::fit(x, y, 2, KnnWeights::Distance).unwrap();
    let asked = Matrix::from_vec(2, 1, vec![3.0, 1.0]).unwrap();
    let found = model.predict(&asked);
    assert!((found[0] - (20.0 / 2.0 + 40.0) / 1.5).abs() < 1e-5);
    assert_eq!(found[1], 20.0);
}

#[test]
fn targets_are_checked() {
    let x = || Matrix::from_vec(2, 1, vec![0.0, 1.0]).unwrap();
    let new = |y| KnnRegressor::fit(x(), Vector::from_vec(y), 1, KnnWeights::Uniform);
    assert_eq!(new(vec![1.0]).unwrap_err().code(), "am-target-length");
    assert_eq!(new(vec![1.0, f32::NAN]).unwrap_err().code(), "am-target-not-finite");
}
