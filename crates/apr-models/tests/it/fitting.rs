//! Least squares on well-behaved and on hostile tables. Expected fractions come from exact rational arithmetic.

use apr_models::{ErrorKind, LinearRegression, Matrix, Operation, Parameter, Vector};

use crate::data::{Numbers, assert_weights, fitted, matrix};

#[test]
fn exact_plane_is_found() {
    let x = matrix(&[[1.0, 2.0], [2.0, 1.0], [3.0, 4.0], [4.0, 3.0]]);
    let model = fitted(&x, &[5.0, 4.0, 11.0, 10.0]);
    assert_weights(&model, &[1.0, 2.0, 0.0], 1e-6);
    assert_eq!(model.predict(&x).as_slice(), &[5.0, 4.0, 11.0, 10.0]);
    assert_eq!(model.score(&x, &Vector::from_vec(vec![5.0, 4.0, 11.0, 10.0])), 1.0);
}

#[test]
fn repeated_features_share_their_weight() {
    let x = matrix(&[[1.0, 1.0, 2.0], [2.0, 2.0, 1.0], [4.0, 4.0, 7.0], [7.0, 7.0, 3.0], [8.0, 8.0, 5.0]]);
    let model = fitted(&x, &[3.0, 1.0, 4.0, 1.0, 5.0]);
    assert_weights(&model, &[-127.0 / 6726.0, -127.0 / 6726.0, 634.0 / 1121.0, 3128.0 / 3363.0], 1e-7);
    assert_eq!(model.coefficients()[0], model.coefficients()[1]);
}

#[test]
fn multiples_share_in_proportion() {
    let x = matrix(&[[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [5.0, 50.0]]);
    let model = fitted(&x, &[2.0, 3.0, 7.0, 8.0]);
    assert_weights(&model, &[8.0 / 505.0, 16.0 / 101.0, 3.0 / 5.0], 3e-7);
}

#[test]
fn sum_of_two_features_gives_the_shortest_solution() {
    let x = matrix(&[[1.0, 4.0, 5.0], [2.0, 1.0, 3.0], [5.0, 2.0, 7.0], [3.0, 3.0, 6.0], [7.0, 1.0, 8.0]]);
    let model = fitted(&x, &[1.0, 2.0, 3.0, 5.0, 8.0]);
    assert_weights(&model, &[19.0 / 30.0, -37.0 / 150.0, 29.0 / 75.0, -9.0 / 50.0], 3e-7);
}

#[test]
fn sum_rounded_to_f32_counts_as_the_sum() {
    // The third feature differs from the sum of the others by its rounding only: fitting that difference would give
    // coefficients of a million, made of noise.
    let mut numbers = Numbers(1);
    let noise: Vec<f32> = Numbers(2).take(200).collect();
    for offset in [0.0, 300.0] {
        let mut values = Vec::new();
        let mut y = Vec::new();
        for noise in &noise {
            let (a, b) = (numbers.next().unwrap(), numbers.next().unwrap() + offset);
            values.extend([a, b, a + b]);
            y.push(3.0 * a + b + noise / 10.0);
        }
        let x = Matrix::from_vec(noise.len(), 3, values).unwrap();
        let model = fitted(&x, &y);
        // 3a + b is closest to the origin as (5a - b + 4(a + b)) / 3.
        assert_weights(&model, &[5.0 / 3.0, -1.0 / 3.0, 4.0 / 3.0, f64::from(model.intercept())], 0.05);
        assert!(model.score(&x, &Vector::from_vec(y)) > 0.99);
    }
}

#[test]
fn one_hot_features_are_collinear_with_the_intercept() {
    let x = matrix(&[
        [1.0, 0.0, 0.0, 2.0],
        [1.0, 0.0, 0.0, 3.0],
        [0.0, 1.0, 0.0, 1.0],
        [0.0, 1.0, 0.0, 5.0],
        [0.0, 0.0, 1.0, 4.0],
        [0.0, 0.0, 1.0, 6.0],
    ]);
    let model = fitted(&x, &[1.0, 2.0, 3.0, 5.0, 8.0, 13.0]);
    assert_weights(&model, &[-41.0 / 14.0, -37.0 / 42.0, 80.0 / 21.0, 19.0 / 21.0, 13.0 / 6.0], 1e-7);
}

#[test]
fn constant_feature_gets_no_weight() {
    for constant in [0.0, 7.0, 0.1, -3e38, 1e-44] {
        let x = matrix(&[
            [1.0, constant, 2.0],
            [2.0, constant, 1.0],
            [4.0, constant, 7.0],
            [7.0, constant, 3.0],
            [8.0, constant, 5.0],
        ]);
        let model = fitted(&x, &[3.0, 1.0, 4.0, 1.0, 5.0]);
        assert_eq!(model.coefficients()[1], 0.0);
        assert_weights(&model, &[-127.0 / 3363.0, 0.0, 634.0 / 1121.0, 3128.0 / 3363.0], 1e-7);
    }
}

#[test]
fn fewer_samples_than_features_give_the_shortest_solution() {
    let x = matrix(&[[1.0, 2.0, 0.0, 3.0, -1.0], [0.0, 1.0, 4.0, 1.0, 2.0], [2.0, -1.0, 1.0, 0.0, 3.0]]);
    let model = fitted(&x, &[1.0, 5.0, -2.0]);
    assert_weights(&model, &[-0.75, 0.65, 1.25, 0.25, -0.2, -0.5], 1e-7);
}

#[test]
fn many_more_features_than_samples() {
    let (n_rows, n_cols) = (8, 20_000);
    let x = Matrix::from_vec(n_rows, n_cols, Numbers(3).take(n_rows * n_cols).collect()).unwrap();
    let y: Vec<f32> = Numbers(4).take(n_rows).collect();
    let model = fitted(&x, &y);
    for (prediction, target) in model.predict(&x).iter().zip(&y) {
        assert!((prediction - target).abs() < 1e-6);
    }
}

#[test]
fn single_sample_is_predicted_by_the_intercept() {
    let model = fitted(&matrix(&[[1.0, 2.0, 3.0]]), &[4.0]);
    assert_eq!(model.coefficients().as_slice(), &[0.0, 0.0, 0.0]);
    assert_eq!(model.intercept(), 4.0);
    assert_eq!(model.score(&matrix(&[[1.0, 2.0, 3.0]]), &Vector::from_vec(vec![4.0])), 1.0);
}

#[test]
fn single_feature_is_a_line() {
    assert_weights(&fitted(&matrix(&[[1.0], [3.0]]), &[4.0, 8.0]), &[2.0, 2.0], 1e-7);
    // A difference of one unit in the last place is still a difference.
    let model = fitted(&matrix(&[[16_777_214.0], [16_777_215.0]]), &[0.0, 1.0]);
    assert_eq!(model.coefficients().as_slice(), &[1.0]);
    assert_eq!(model.intercept(), -16_777_214.0);
}

#[test]
fn constant_target_is_predicted_exactly() {
    let x = matrix(&[[1.0, 0.3], [2.0, 0.7], [3.0, 0.1]]);
    let y = [0.1_f32; 3];
    let model = fitted(&x, &y);
    assert_eq!(model.coefficients().as_slice(), &[0.0, 0.0]);
    assert_eq!(model.predict(&x).as_slice(), &y);
    assert_eq!(model.score(&x, &Vector::from_vec(y.to_vec())), 1.0);
}

#[test]
fn units_do_not_matter() {
    let rows = [[1.0, 2.0], [2.0, 1.0], [4.0, 7.0], [7.0, 3.0], [8.0, 5.0]];
    let y = [3.0, 1.0, 4.0, 1.0, 5.0];
    let plain = fitted(&matrix(&rows), &y);
    for (first, second, target) in [
        (1e30, 1e30, 1e30),
        (1e-30, 1e-30, 1e-30),
        (1e30, 1e-30, 1.0),
        (1e-30, 1e30, 1.0),
        (1e12, 1.0, 1e-20),
        (1.0, 1e-20, 1e12),
        (1e37, 1.0, 1e37),
    ] {
        let scaled = rows.map(|[a, b]| [a * first, b * second]);
        let x = matrix(&scaled);
        let y: Vec<f32> = y.iter().map(|value| value * target).collect();
        let model = fitted(&x, &y);
        for (feature, unit) in [(0, first), (1, second)] {
            let expected = f64::from(plain.coefficients()[feature]) * f64::from(target) / f64::from(unit);
            let found = f64::from(model.coefficients()[feature]);
            assert!((found / expected - 1.0).abs() < 1e-5, "units {first:e} {second:e} {target:e}");
        }
        for (prediction, expected) in model.predict(&x).iter().zip(&plain.predict(&matrix(&rows))) {
            assert!((prediction / target - expected).abs() < 1e-5);
        }
    }
}

#[test]
fn repeated_features_of_unlike_units_give_the_large_one_the_weight() {
    // In units 1e30 apart the shortest solution uses the feature of the large numbers only; the third feature, of small
    // numbers, keeps its own coefficient.
    let x = matrix(&[[1e-15, 1e15, 3e-10], [2e-15, 2e15, 1e-10], [3e-15, 3e15, 4e-10], [4e-15, 4e15, 1e-10]]);
    let y = [4.0, 3.0, 7.0, 5.0];
    let model = fitted(&x, &y);
    assert!(model.coefficients()[0].abs() < 1e-20);
    assert!((model.coefficients()[1] * 1e15 - 1.0).abs() < 1e-5);
    assert!((model.coefficients()[2] * 1e-10 - 1.0).abs() < 1e-5);
    assert!(model.intercept().abs() < 1e-5);
}

#[test]
fn large_offsets_keep_small_differences() {
    let x = matrix(&[[1e7, 1947.0], [1e7 + 1.0, 1948.0], [1e7 + 2.0, 1950.0], [1e7 + 3.0, 1949.0]]);
    let model = fitted(&x, &[0.0, 3.0, 8.0, 7.0]);
    assert_eq!(model.coefficients().as_slice(), &[1.0, 2.0]);
    assert_eq!(model.intercept(), -10_003_894.0);
}

#[test]
fn hilbert_matrix_is_solved_to_the_last_digit() {
    // H[i][j] = 1 / (i + j + 1) in f32: the features agree to five digits. The exact solution for these f32 values.
    let values = (0..10_u8).flat_map(|i| (0..5_u8).map(move |j| 1.0 / f32::from(i + j + 1)));
    let x = Matrix::from_vec(10, 5, values.collect()).unwrap();
    let y: Vec<f32> = (0..10_u8).map(|i| f32::from(i + 1) * if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
    let expected = [
        6_995.943_668_005_348,
        -139_660.681_638_420_4,
        645_659.249_747_342_1,
        -1_044_566.970_994_732_9,
        546_156.149_363_692_4,
        -473.847_120_239_343_2,
    ];
    assert_weights(&fitted(&x, &y), &expected, 1e-7);
}

#[test]
fn hundred_thousand_samples() {
    let weights: Vec<f32> = Numbers(5).take(20).collect();
    let x = Matrix::from_vec(100_000, 20, Numbers(6).take(2_000_000).collect()).unwrap();
    let truth = LinearRegression::from_parts(Vector::from_vec(weights.clone()), 0.25).unwrap();
    let model = fitted(&x, truth.predict(&x).as_slice());
    let expected: Vec<f64> = weights.iter().map(|&weight| f64::from(weight)).chain([0.25]).collect();
    assert_weights(&model, &expected, 1e-7);
}

#[test]
fn blocks_of_a_tall_table_keep_the_shortest_solution() {
    // Rank 2 in 4 features, over several blocks.
    let mut values = Vec::new();
    let mut y = Vec::new();
    let mut numbers = Numbers(7);
    for _ in 0..5_000 {
        // Multiples of 1/256: sums are exact.
        let (a, b) = (
            (numbers.next().unwrap() * 256.0).round() / 256.0,
            (numbers.next().unwrap() * 256.0).round() / 256.0,
        );
        values.extend([a, a, b, a + b]);
        y.push(a + 2.0 * b + 1.0);
    }
    let model = fitted(&Matrix::from_vec(5_000, 4, values).unwrap(), &y);
    assert_weights(&model, &[0.0, 0.0, 1.0, 1.0, 1.0], 1e-7);
}

#[test]
fn same_input_gives_the_same_bits() {
    let x = Matrix::from_vec(3_000, 7, Numbers(8).take(21_000).collect()).unwrap();
    let y: Vec<f32> = Numbers(9).take(3_000).collect();
    assert_eq!(fitted(&x, &y).to_safetensors().unwrap(), fitted(&x, &y).to_safetensors().unwrap());
}

#[test]
fn wrong_shapes_are_refused() {
    assert!(matches!(
        Matrix::from_vec(0, 2, vec![]).unwrap_err().kind(),
        ErrorKind::EmptyMatrix { n_rows: 0, n_cols: 2 }
    ));
    assert!(matches!(Matrix::from_vec(2, 0, vec![]).unwrap_err().kind(), ErrorKind::EmptyMatrix { .. }));
    assert!(matches!(
        Matrix::from_vec(usize::MAX, 2, vec![1.0]).unwrap_err().kind(),
        ErrorKind::MatrixTooLarge { .. }
    ));
    assert!(matches!(
        Matrix::from_vec(2, 2, vec![1.0; 3]).unwrap_err().kind(),
        ErrorKind::MatrixLength { given: 3, .. }
    ));
    let x = matrix(&[[1.0], [2.0]]);
    let mut model = LinearRegression::new();
    for y in [vec![], vec![1.0], vec![1.0; 3]] {
        let given = y.len();
        let error = model.fit(&x, &Vector::from_vec(y)).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::TargetLength { n_rows: 2, given: found } if *found == given)
        );
    }
}

#[test]
fn numbers_that_are_not_finite_are_refused_with_their_place() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut model = fitted(&matrix(&[[1.0], [2.0]]), &[1.0, 2.0]);
        let before = model.clone();
        let error =
            model.fit(&matrix(&[[1.0, 2.0], [3.0, bad]]), &Vector::from_vec(vec![1.0, 2.0])).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::FeatureNotFinite { row: 1, col: 1 }));
        assert!(error.to_string().contains("row 1, column 1"));
        let error = model.fit(&matrix(&[[1.0], [3.0]]), &Vector::from_vec(vec![bad, 2.0])).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::TargetNotFinite { row: 0 }));
        assert_eq!(model, before, "a refused fit leaves the model as it was");
    }
}

#[test]
fn solutions_outside_f32_are_refused() {
    let out_of_range = |x: &[[f32; 1]], y: &[f32]| {
        let error = LinearRegression::new().fit(&matrix(x), &Vector::from_vec(y.to_vec())).unwrap_err();
        assert_eq!(error.code(), "am-out-of-range");
        match error.kind() {
            ErrorKind::OutOfRange { parameter, value } => (*parameter, *value),
            other => panic!("{other:?}"),
        }
    };
    let (parameter, value) = out_of_range(&[[0.0], [1e-30]], &[0.0, 1e30]);
    assert_eq!(parameter, Parameter::Coefficient(0));
    assert!((value / 1e60 - 1.0).abs() < 1e-6);
    let (parameter, _) = out_of_range(&[[0.0], [1e30]], &[0.0, 1e-30]);
    assert_eq!(parameter, Parameter::Coefficient(0));
    let (parameter, _) = out_of_range(&[[1e20], [1.000_001e20]], &[0.0, 1e38]);
    assert_eq!(parameter, Parameter::Intercept);
}

#[test]
fn unfitted_models_answer_without_panic() {
    let model = LinearRegression::new();
    assert!(!model.is_fitted());
    assert!(model.coefficients().is_empty());
    assert_eq!(model.intercept(), 0.0);
    let (x, y) = (matrix(&[[1.0]]), Vector::from_vec(vec![1.0]));
    let predict = |kind: &ErrorKind| matches!(kind, ErrorKind::NotFitted { operation: Operation::Predict });
    assert!(predict(model.try_predict(&x).unwrap_err().kind()));
    assert!(predict(model.try_score(&x, &y).unwrap_err().kind()));
    assert_eq!(model.to_safetensors().unwrap_err().code(), "am-not-fitted");
}

#[test]
#[should_panic(expected = "call fit() first")]
fn predict_panics_when_unfitted() {
    let _ = LinearRegression::new().predict(&matrix(&[[1.0]]));
}

#[test]
#[should_panic(expected = "model of 1 features, samples of 2")]
fn score_panics_for_another_number_of_features() {
    let model = fitted(&matrix(&[[1.0], [2.0]]), &[1.0, 2.0]);
    let _ = model.score(&matrix(&[[1.0, 2.0]]), &Vector::from_vec(vec![1.0]));
}

#[test]
fn predictions_need_the_right_shape() {
    let model = fitted(&matrix(&[[1.0], [2.0]]), &[1.0, 2.0]);
    assert!(matches!(
        model.try_predict(&matrix(&[[1.0, 2.0]])).unwrap_err().kind(),
        ErrorKind::FeatureCount { expected: 1, found: 2 }
    ));
    assert!(matches!(
        model.try_score(&matrix(&[[1.0]]), &Vector::from_vec(vec![])).unwrap_err().kind(),
        ErrorKind::TargetLength { n_rows: 1, given: 0 }
    ));
}

#[test]
fn predictions_are_summed_in_double_precision() {
    let model = LinearRegression::from_parts(Vector::from_vec(vec![1e30, 1.0, -1e30]), 0.5).unwrap();
    // In f32, or from left to right without the intercept's digits, the 1e30 would swallow the rest.
    let x = matrix(&[[1e-22, 1.0, 1e-22], [f32::NAN, 1.0, 1.0], [f32::MAX, 0.0, 0.0]]);
    let predictions = model.predict(&x);
    assert!((predictions[0] - 1.5).abs() < 1e-6);
    assert!(predictions[1].is_nan());
    assert_eq!(predictions[2], f32::INFINITY);
}

#[test]
fn score_follows_the_convention_for_constant_targets() {
    let model = LinearRegression::from_parts(Vector::from_vec(vec![1.0]), 0.0).unwrap();
    let x = matrix(&[[1.0], [2.0], [3.0]]);
    let score = |y: [f32; 3]| model.score(&x, &Vector::from_vec(y.to_vec()));
    assert_eq!(score([1.0, 2.0, 3.0]), 1.0);
    assert_eq!(score([2.0, 2.0, 2.0]), 0.0);
    assert_eq!(score([3.0, 2.0, 1.0]), -3.0);
    assert_eq!(score([2.0, 2.0, 4.0]), 1.0 - 2.0 / (8.0 / 3.0));
    // The spread of the target is small beside its offset.
    let far = LinearRegression::from_parts(Vector::from_vec(vec![1.0]), 1e7).unwrap();
    assert_eq!(far.score(&x, &Vector::from_vec(vec![1e7 + 1.0, 1e7 + 2.0, 1e7 + 3.0])), 1.0);
    assert_eq!(far.score(&x, &Vector::from_vec(vec![1e7 + 3.0, 1e7 + 2.0, 1e7 + 1.0])), -3.0);
}

#[test]
fn parts_are_checked() {
    let parts = |coefficients: &[f32], intercept| {
        LinearRegression::from_parts(Vector::from_vec(coefficients.to_vec()), intercept)
            .map_err(|error| error.code())
    };
    assert_eq!(parts(&[], 1.0), Err("am-no-coefficients"));
    assert_eq!(parts(&[1.0, f32::NAN], 1.0), Err("am-weight-not-finite"));
    assert_eq!(parts(&[1.0], f32::INFINITY), Err("am-weight-not-finite"));
    assert!(parts(&[f32::MAX, 0.0], -0.0).is_ok_and(|model| model.is_fitted()));
}
