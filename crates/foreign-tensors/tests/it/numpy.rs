//! NumPy and MLX.

use foreign_tensors::{ElementType, NoCompanions, Options, read};

use crate::vectors::{check, root};

#[test]
fn vectors() {
    check(&["numpy", "mlx", "hostile/numpy"]);
}

#[test]
fn mutants_are_read_or_refused() {
    crate::mutants::survive(&["numpy", "mlx", "hostile/numpy"]);
}

#[test]
fn void_elements_are_bfloat16_on_request() {
    let mut options = Options::default();
    for name in ["numpy/bf16_void.npy", "mlx/bf16.npz"] {
        let file = std::fs::read(root().join(name)).expect("a vector");
        options.void_is_bf16 = false;
        assert!(read(&file, &NoCompanions, &options).expect("a list").check().is_err(), "{name}");
        options.void_is_bf16 = true;
        let model = read(&file, &NoCompanions, &options).expect("a model");
        model.check().expect("all can be represented");
        assert!(
            model
                .tensors()
                .iter()
                .any(|tensor| tensor.dtype() == ElementType::Known(tensor_dtype::Dtype::Bf16))
        );
    }
}

#[test]
fn a_key_chooses_an_array() {
    let mut options = Options::default();
    options.object = "arr_1".into();
    let file = std::fs::read(root().join("numpy/positional.npz")).expect("a vector");
    let model = read(&file, &NoCompanions, &options).expect("an array");
    assert_eq!(model.tensors().len(), 1);
    options.object = "other".into();
    let error = read(&file, &NoCompanions, &options).expect_err("no such key");
    assert_eq!(error.code(), "ft-key");
    assert!(error.to_string().contains("arr_0, arr_1"), "{error}");
}

#[test]
fn strings_beside_arrays_are_json() {
    let file = std::fs::read(root().join("numpy/scipy_csr.npz")).expect("a vector");
    let model = read(&file, &NoCompanions, &Options::default()).expect("a sparse matrix");
    model.check().expect("all can be represented");
    assert_eq!((model.tensors().len(), model.entries()), (4, &[("format".into(), "\"csr\"".into())][..]));
}
