use apr_models::*;
use st_core::Dtype;

#[test]
fn matrices_of_weights_are_told_from_everything_else() {
    for (dtype, shape, expected) in [
        (Dtype::F32, &[2, 1][..], true),
        (Dtype::Bf16, &[8, 8], true),
        (Dtype::F32, &[1, 8], false),
        (Dtype::F32, &[8], false),
        (Dtype::F32, &[], false),
        (Dtype::F32, &[2, 0], false),
        (Dtype::F32, &[2, 8, 8], false),
        (Dtype::F64, &[8, 8], false),
        (Dtype::U8, &[8, 8], false),
    ] {
        assert_eq!(Tensors::is_weight_matrix(dtype, shape), expected, "{dtype} {shape:?}");
    }
}
