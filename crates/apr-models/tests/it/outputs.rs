//! Training of trees whose leaves have several numbers.

use apr_models::{
    Accepts, ClassWeight, DecisionTreeRegressor, Head, Input, Link, Matrix, OutputShape, Pipeline, Samples,
    Step, TreeOptions, TreesStep, ValueKind, Vector,
};
use proptest::prelude::*;

use crate::data::Numbers;

/// What the tree of these samples says of them: `[n_samples, n_outputs]`.
fn learned(x: &Matrix, y: &Matrix, options: &TreeOptions) -> Vec<f64> {
    let tree = TreesStep::fit(x, y, options).unwrap();
    let input = Input::Numbers { n_features: x.n_cols(), accepts: Accepts::Finite };
    let head = Head::Values { kind: ValueKind::Predictions, link: Link::None, shape: OutputShape::Matrix };
    let model = Pipeline::from_parts(input, vec![Step::Trees(tree)], head).unwrap();
    let mut out = vec![0.0; x.n_rows() * y.n_cols()];
    model.values_into(Samples::F32(x.as_slice()), &mut out).unwrap();
    out
}

fn matrix(n_cols: usize, values: Vec<f32>) -> Matrix {
    Matrix::from_vec(values.len() / n_cols, n_cols, values).unwrap()
}

#[test]
fn trees_are_those_of_scikit_learn() {
    let number = |value: usize, divisor: f32| value as f32 / divisor;
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for row in 0..24 {
        let [a, b] = [number(row * 7 % 13, 4.0), number(row * row * 5 % 17, 8.0)];
        x.extend([a, b]);
        y.extend([number(row * 3 % 8, 8.0) + a / 8.0, number(row % 5, 8.0) + b / 4.0, a * b / 8.0]);
    }
    let (x, y) = (matrix(2, x), matrix(3, y));
    // DecisionTreeRegressor(random_state=0, ...).fit(x, y).predict(x[:6]) of scikit-learn 1.9.1; the same for other random states.
    let depth = TreeOptions { max_depth: Some(3), ..TreeOptions::default() };
    let leaves = TreeOptions { max_leaves: Some(5), min_samples_leaf: 2, ..TreeOptions::default() };
    for (options, expected) in [
        (
            depth,
            [
                [0.0, 0.0, 0.0],
                [0.566_406_25, 0.3125, 0.078_613_281_25],
                [0.566_406_25, 0.3125, 0.078_613_281_25],
                [0.629_464_285_714_285_7, 0.6875, 0.176_897_321_428_571_42],
                [0.629_464_285_714_285_7, 0.6875, 0.176_897_321_428_571_42],
                [1.041_666_666_666_666_7, 0.395_833_333_333_333_3, 0.220_052_083_333_333_34],
            ],
        ),
        (
            leaves,
            [
                [0.218_75, 0.125, 0.0],
                [0.584_821_428_571_428_6, 0.321_428_571_428_571_45, 0.089_843_75],
                [0.584_821_428_571_428_6, 0.321_428_571_428_571_45, 0.089_843_75],
                [0.566_406_25, 0.703_125, 0.182_128_906_25],
                [0.566_406_25, 0.703_125, 0.182_128_906_25],
                [0.929_687_5, 0.406_25, 0.229_492_187_5],
            ],
        ),
    ] {
        let found = learned(&x, &y, &options);
        for (found, expected) in found.iter().zip(expected.as_flattened()) {
            assert!((found - expected).abs() < 1e-12, "{options:?}: {found} {expected}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn trees_of_one_output_are_regressors(
        n_rows in 1..300_usize, n_cols in 1..4_usize, seed: u64, depth in proptest::option::of(1..6_usize),
        min_samples_leaf in 1..6_usize,
    ) {
        let mut numbers = Numbers(seed);
        let x = matrix(n_cols, numbers.by_ref().take(n_rows * n_cols).map(|value| (value * 8.0).round()).collect());
        let y: Vec<f32> = numbers.take(n_rows).collect();
        let options = TreeOptions { max_depth: depth, min_samples_leaf, ..TreeOptions::default() };
        let expected = DecisionTreeRegressor::fit(&x, &Vector::from_vec(y.clone()), &options).unwrap().predict(&x);
        for (found, expected) in learned(&x, &matrix(1, y), &options).iter().zip(expected.iter()) {
            prop_assert!((*found as f32 - expected).abs() <= 1e-6, "{found} {expected}");
        }
    }

    #[test]
    fn leaves_of_probabilities_have_probabilities(n_rows in 1..300_usize, seed: u64, max_depth in 1..9_usize) {
        let mut numbers = Numbers(seed);
        let x = matrix(2, numbers.by_ref().take(n_rows * 2).collect());
        let mut y: Vec<f32> = numbers.take(n_rows * 3).map(|value| value.max(0.0) + 1e-3).collect();
        y.chunks_exact_mut(3).for_each(|row| {
            let sum: f32 = row.iter().sum();
            row.iter_mut().for_each(|value| *value /= sum);
        });
        let options = TreeOptions { max_depth: Some(max_depth), ..TreeOptions::default() };
        for row in learned(&x, &matrix(3, y), &options).chunks_exact(3) {
            prop_assert!(row.iter().all(|value| (0.0..=1.0).contains(value)));
            prop_assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-6);
        }
    }
}

#[test]
fn what_cannot_be_learned_is_refused() {
    let x = matrix(1, vec![0.0, 1.0, 2.0]);
    let y = matrix(2, vec![0.0, 1.0, 1.0, 0.0, 0.5, 0.5]);
    let fit =
        |x: &Matrix, y: &Matrix, options: &TreeOptions| TreesStep::fit(x, y, options).unwrap_err().code();
    let defaults = TreeOptions::default();
    assert_eq!(fit(&x, &matrix(2, vec![0.0; 4]), &defaults), "am-target-length");
    assert_eq!(fit(&x, &matrix(1, vec![0.0, f32::NAN, 0.0]), &defaults), "am-target-not-finite");
    assert_eq!(fit(&matrix(1, vec![0.0, f32::INFINITY, 0.0]), &y, &defaults), "am-feature-not-finite");
    assert_eq!(fit(&x, &y, &TreeOptions { max_depth: Some(0), ..defaults.clone() }), "am-part");
    assert_eq!(fit(&x, &y, &TreeOptions { class_weight: ClassWeight::Balanced, ..defaults }), "am-part");
}
