//! What users of the original interface rely on.

use apr_models::{LinearRegression, Matrix, Vector};

use crate::data::TempFolder;

#[test]
fn saving_creates_the_file() {
    let x = Matrix::from_vec(4, 2, vec![1.0, 2.0, 2.0, 1.0, 3.0, 4.0, 4.0, 3.0]).unwrap();
    let y = Vector::from_vec(vec![5.0, 4.0, 11.0, 10.0]);
    let mut model = LinearRegression::new();
    model.fit(&x, &y).unwrap();

    let folder = TempFolder::new();
    let path = folder.file("test_model.safetensors");
    model.save_safetensors(&path).unwrap();
    assert!(path.exists());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn file_begins_with_the_length_of_its_header() {
    let x = Matrix::from_vec(3, 2, vec![1.0, 0.0, 0.0, 1.0, 1.0, 1.0]).unwrap();
    let y = Vector::from_vec(vec![1.0, 2.0, 3.0]);
    let mut model = LinearRegression::new();
    model.fit(&x, &y).unwrap();
    let folder = TempFolder::new();
    let path = folder.file("test_header.safetensors");
    model.save_safetensors(&path).unwrap();

    let bytes = std::fs::read(&path).unwrap();
    assert!(bytes.len() >= 8);
    let header_bytes: [u8; 8] = bytes[0..8].try_into().unwrap();
    let metadata_len = u64::from_le_bytes(header_bytes);
    assert!(metadata_len > 0, "Metadata length must be > 0");
    assert!(metadata_len < 10000, "Metadata should be reasonable size");
}

#[test]
fn header_describes_both_tensors() {
    let x = Matrix::from_vec(3, 2, vec![1.0, 0.0, 0.0, 1.0, 1.0, 1.0]).unwrap();
    let y = Vector::from_vec(vec![1.0, 2.0, 3.0]);
    let mut model = LinearRegression::new();
    model.fit(&x, &y).unwrap();
    let folder = TempFolder::new();
    let path = folder.file("test_metadata.safetensors");
    model.save_safetensors(&path).unwrap();

    let bytes = std::fs::read(&path).unwrap();
    let header_bytes: [u8; 8] = bytes[0..8].try_into().unwrap();
    let metadata_len = u64::from_le_bytes(header_bytes) as usize;
    let metadata_json = &bytes[8..8 + metadata_len];
    let metadata: serde_json::Value =
        serde_json::from_str(core::str::from_utf8(metadata_json).unwrap()).unwrap();

    assert!(metadata.get("coefficients").is_some());
    assert_eq!(metadata["coefficients"]["dtype"], "F32");
    assert_eq!(metadata["coefficients"]["shape"], serde_json::json!([2]));
    assert_eq!(metadata["coefficients"]["data_offsets"], serde_json::json!([0, 8]));
    assert!(metadata.get("intercept").is_some());
    assert_eq!(metadata["intercept"]["dtype"], "F32");
    assert_eq!(metadata["intercept"]["shape"], serde_json::json!([1]));
    assert_eq!(metadata["intercept"]["data_offsets"], serde_json::json!([8, 12]));
}

#[test]
fn round_trip_keeps_the_model() {
    let x = Matrix::from_vec(
        5,
        3,
        vec![1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0],
    )
    .unwrap();
    let y = Vector::from_vec(vec![2.0, 3.0, 4.0, 5.0, 6.0]);
    let mut model_original = LinearRegression::new();
    model_original.fit(&x, &y).unwrap();
    let original_coeffs = model_original.coefficients();
    let original_intercept = model_original.intercept();

    let folder = TempFolder::new();
    let path = folder.file("test_roundtrip.safetensors");
    model_original.save_safetensors(&path).unwrap();
    let model_loaded = LinearRegression::load_safetensors(&path).unwrap();

    let loaded_coeffs = model_loaded.coefficients();
    assert_eq!(loaded_coeffs.len(), original_coeffs.len());
    for i in 0..original_coeffs.len() {
        let diff = (loaded_coeffs[i] - original_coeffs[i]).abs();
        assert!(diff < 1e-6, "Coefficient {i} must match");
    }
    let diff = (model_loaded.intercept() - original_intercept).abs();
    assert!(diff < 1e-6, "Intercept must match");

    let pred_original = model_original.predict(&x);
    let pred_loaded = model_loaded.predict(&x);
    for i in 0..pred_original.len() {
        let diff = (pred_loaded[i] - pred_original[i]).abs();
        assert!(diff < 1e-5, "Prediction {i} must match");
    }
}

#[test]
fn missing_file_is_reported_as_missing() {
    let folder = TempFolder::new();
    let result = LinearRegression::load_safetensors(folder.file("nonexistent.safetensors"));
    let error_msg = result.unwrap_err().to_string();
    assert!(
        error_msg.contains("No such file") || error_msg.contains("not found"),
        "Error should mention file not found: {error_msg}"
    );
}

#[test]
fn corrupted_header_is_refused() {
    let folder = TempFolder::new();
    let path = folder.file("test_corrupted.safetensors");
    std::fs::write(&path, [1, 2, 3]).unwrap();
    assert!(LinearRegression::load_safetensors(&path).is_err(), "Should reject corrupted file");
}

#[test]
fn unfitted_model_is_not_saved() {
    let folder = TempFolder::new();
    let path = folder.file("unfitted.safetensors");
    let error = LinearRegression::new().save_safetensors(&path).unwrap_err();
    assert!(error.to_string().contains("Cannot save unfitted model. Call fit() first."));
    assert!(!path.exists());
}

#[test]
fn plain_strings_name_files() {
    let folder = TempFolder::new();
    let path = folder.file("named.safetensors");
    let name: &str = path.to_str().unwrap();
    let model = LinearRegression::from_parts(Vector::from_vec(vec![1.0]), 2.0).unwrap();
    model.save_safetensors(name).unwrap();
    assert_eq!(LinearRegression::load_safetensors(String::from(name)).unwrap(), model);
}
