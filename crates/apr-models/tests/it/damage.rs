//! Files that are not, or no longer, a linear regression.

use apr_models::{ErrorKind, LinearRegression, Parameter, Subject, Vector};

use crate::data::TempFolder;

fn model() -> LinearRegression {
    LinearRegression::from_parts(Vector::from_vec(vec![1.0, -2.0, 3.5]), 0.25).unwrap()
}

/// A file of this header, and of `data_len` zero bytes.
fn file(header: &str, data_len: usize) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.bytes());
    file.resize(file.len() + data_len, 0);
    file
}

#[test]
fn every_changed_byte_loads_as_a_model_of_that_size_or_is_refused() {
    let sound = model().to_safetensors().unwrap();
    let data_start = sound.len() - 16;
    for idx in 0..sound.len() {
        for change in 1..=255_u8 {
            let mut bytes = sound.clone();
            bytes[idx] ^= change;
            match LinearRegression::from_safetensors(&bytes) {
                Ok(loaded) => {
                    // Within the header only the padding has more than one form.
                    assert!(idx >= data_start || sound[idx] == b' ', "byte {idx} changed by {change:#x}");
                    assert_eq!(loaded.coefficients().len(), 3);
                }
                Err(error) => {
                    let known = ErrorKind::CODES.contains(&error.code()) || error.code().starts_with("st-");
                    assert!(known && !error.to_string().is_empty());
                }
            }
        }
    }
}

#[test]
fn every_shorter_file_is_refused() {
    let sound = model().to_safetensors().unwrap();
    for len in 0..sound.len() {
        let error = LinearRegression::from_safetensors(&sound[..len]).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Format(_)), "{len} bytes: {error}");
    }
    let mut longer = sound.clone();
    longer.push(0);
    assert!(matches!(LinearRegression::from_safetensors(&longer).unwrap_err().kind(), ErrorKind::Format(_)));
}

#[test]
fn other_tensors_are_named_in_the_refusal() {
    let f32s = |name: &str, shape: &str, begin: usize, end: usize| {
        format!(r#""{name}":{{"dtype":"F32","shape":{shape},"data_offsets":[{begin},{end}]}}"#)
    };
    let cases = [
        ("{}".into(), 0, "am-missing-tensor", "coefficients"),
        (format!("{{{}}}", f32s("intercept", "[1]", 0, 4)), 4, "am-missing-tensor", "coefficients"),
        (format!("{{{}}}", f32s("coefficients", "[1]", 0, 4)), 4, "am-missing-tensor", "intercept"),
        (
            format!(
                "{{{},{},{}}}",
                f32s("coefficients", "[1]", 0, 4),
                f32s("intercept", "[1]", 4, 8),
                f32s("scale\\u001b[2J", "[1]", 8, 12)
            ),
            12,
            "am-unexpected-tensor",
            "scale\u{1b}[2J",
        ),
        (
            format!("{{{},{}}}", f32s("coefficients", "[1,1]", 0, 4), f32s("intercept", "[1]", 4, 8)),
            8,
            "am-rank",
            "coefficients",
        ),
        (
            format!("{{{},{}}}", f32s("coefficients", "[1]", 0, 4), f32s("intercept", "[]", 4, 8)),
            8,
            "am-rank",
            "intercept",
        ),
        (
            format!("{{{},{}}}", f32s("coefficients", "[1]", 0, 4), f32s("intercept", "[2]", 4, 12)),
            12,
            "am-intercept-length",
            "intercept",
        ),
        (
            format!("{{{},{}}}", f32s("coefficients", "[1]", 0, 4), f32s("intercept", "[0]", 4, 4)),
            4,
            "am-intercept-length",
            "intercept",
        ),
        (
            format!("{{{},{}}}", f32s("coefficients", "[0]", 0, 0), f32s("intercept", "[1]", 0, 4)),
            4,
            "am-no-coefficients",
            "coefficients",
        ),
        (
            format!(
                r#"{{"coefficients":{{"dtype":"I32","shape":[1],"data_offsets":[0,4]}},{}}}"#,
                f32s("intercept", "[1]", 4, 8)
            ),
            8,
            "am-dtype",
            "coefficients",
        ),
    ];
    for (header, data_len, code, tensor) in cases {
        let error = LinearRegression::from_safetensors(&file(&header, data_len)).unwrap_err();
        assert_eq!((error.code(), error.subject().map(Subject::name)), (code, Some(tensor)), "{header}");
        assert!(!error.to_string().contains('\u{1b}'), "control characters are escaped");
    }
}

#[test]
fn metadata_is_ignored() {
    let header = concat!(
        r#"{"__metadata__":{"format":"pt"},"intercept":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"#,
        r#""coefficients":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}"#
    );
    let loaded = LinearRegression::from_safetensors(&file(header, 12)).unwrap();
    assert_eq!(loaded.coefficients().as_slice(), &[0.0, 0.0]);
}

#[test]
fn unaligned_data_is_read() {
    let header = concat!(
        r#"{"coefficients":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"#,
        r#""intercept":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}"#
    );
    for padding in 0..8 {
        let mut bytes = file(&format!("{header}{}", " ".repeat(padding)), 8);
        let end = bytes.len();
        bytes[end - 8..].copy_from_slice(&[1.5_f32.to_le_bytes(), (-2.5_f32).to_le_bytes()].concat());
        let loaded = LinearRegression::from_safetensors(&bytes).unwrap();
        assert_eq!((loaded.coefficients()[0], loaded.intercept()), (1.5, -2.5));
    }
}

#[test]
fn weights_that_are_not_finite_are_refused() {
    let sound = model().to_safetensors().unwrap();
    let data_start = sound.len() - 16;
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for weight in 0..4 {
            let mut bytes = sound.clone();
            bytes[data_start + 4 * weight..][..4].copy_from_slice(&bad.to_le_bytes());
            let error = LinearRegression::from_safetensors(&bytes).unwrap_err();
            let expected = if weight < 3 { Parameter::Coefficient(weight) } else { Parameter::Intercept };
            assert!(
                matches!(error.kind(), ErrorKind::WeightNotFinite { parameter } if *parameter == expected)
            );
            assert_eq!(
                error.subject().map(Subject::name),
                Some(if weight < 3 { "coefficients" } else { "intercept" })
            );
        }
    }
}

#[test]
fn folders_are_not_models() {
    let folder = TempFolder::new();
    let error = LinearRegression::load_safetensors(folder.path()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::File(_)));
    let error = model().save_safetensors(folder.path()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::File(_)));
    let error = model().save_safetensors(folder.file("missing/model.safetensors")).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::File(_)));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
