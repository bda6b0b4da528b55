//! Saving and loading any model.

use apr_models::{LinearRegression, Matrix, Vector};
use proptest::prelude::*;

use crate::data::TempFolder;

fn sample() -> impl Strategy<Value = (Matrix, Vector)> {
    (1_usize..10, 1_usize..5).prop_flat_map(|(n_rows, n_cols)| {
        let x = prop::collection::vec(-1e3_f32..1e3, n_rows * n_cols);
        let y = prop::collection::vec(-1e3_f32..1e3, n_rows);
        (x, y).prop_map(move |(x, y)| (Matrix::from_vec(n_rows, n_cols, x).unwrap(), Vector::from_vec(y)))
    })
}

fn finite() -> impl Strategy<Value = f32> {
    any::<u32>().prop_map(f32::from_bits).prop_filter("finite", |value| value.is_finite())
}

proptest! {
    #[test]
    fn predictions_survive_a_file((x, y) in sample()) {
        let mut model = LinearRegression::new();
        model.fit(&x, &y).unwrap();
        let folder = TempFolder::new();
        let path = folder.file("prop_test.safetensors");
        model.save_safetensors(&path).unwrap();
        let loaded = LinearRegression::load_safetensors(&path).unwrap();
        let (pred1, pred2) = (model.predict(&x), loaded.predict(&x));
        for i in 0..x.n_rows() {
            prop_assert!((pred1[i] - pred2[i]).abs() < 1e-5);
        }
    }

    #[test]
    fn every_bit_survives(weights in prop::collection::vec(finite(), 1..40), intercept in finite()) {
        let model = LinearRegression::from_parts(Vector::from_vec(weights), intercept).unwrap();
        let file = model.to_safetensors().unwrap();
        let loaded = LinearRegression::from_safetensors(&file).unwrap();
        // Bytes again, because `==` takes -0 for 0.
        prop_assert_eq!(loaded.to_safetensors().unwrap(), file);
    }

    #[test]
    fn fit_never_beats_itself((x, y) in sample(), shift in prop::collection::vec(-1.0_f32..1.0, 5)) {
        // No other plane has smaller residuals.
        let mut model = LinearRegression::new();
        model.fit(&x, &y).unwrap();
        let moved = model.coefficients().iter().zip(&shift).map(|(value, shift)| value + shift).collect();
        let other = LinearRegression::from_parts(moved, model.intercept() + shift[4]).unwrap();
        prop_assert!(model.score(&x, &y) >= other.score(&x, &y) - 1e-5);
    }

    #[test]
    fn any_finite_table_fits_or_is_out_of_range(
        (n_rows, n_cols, values) in (1_usize..6, 1_usize..6).prop_flat_map(|(n_rows, n_cols)| {
            (Just(n_rows), Just(n_cols), prop::collection::vec(finite(), n_rows * (n_cols + 1)))
        })
    ) {
        let y = Vector::from_vec(values[n_rows * n_cols..].to_vec());
        let x = Matrix::from_vec(n_rows, n_cols, values[..n_rows * n_cols].to_vec()).unwrap();
        let mut model = LinearRegression::new();
        match model.fit(&x, &y) {
            Ok(()) => prop_assert!(model.coefficients().iter().all(f32::is_finite) && model.intercept().is_finite()),
            Err(error) => prop_assert_eq!(error.code(), "am-out-of-range"),
        }
    }
}

#[test]
fn saving_replaces_the_old_model() {
    let folder = TempFolder::new();
    let path = folder.file("model.safetensors");
    for n_features in [1000, 1, 10] {
        let model = LinearRegression::from_parts(Vector::from_vec(vec![1.5; n_features]), 2.0).unwrap();
        model.save_safetensors(&path).unwrap();
        assert_eq!(LinearRegression::load_safetensors(&path).unwrap(), model);
    }
}

#[test]
fn bytes_are_those_of_the_specification() {
    let model = LinearRegression::from_parts(Vector::from_vec(vec![2.0, -1.0]), 0.5).unwrap();
    let header = concat!(
        r#"{"coefficients":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"#,
        r#""intercept":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}}"#
    );
    let mut expected = header.len().next_multiple_of(8).to_le_bytes().to_vec();
    expected.extend(format!("{header:<width$}", width = header.len().next_multiple_of(8)).bytes());
    expected.extend([2.0_f32, -1.0, 0.5].iter().flat_map(|value| value.to_le_bytes()));
    assert_eq!(model.to_safetensors().unwrap(), expected);
}
