//! ONNX.

#[test]
fn every_vector_gives_its_tensors_or_is_refused() {
    crate::vectors::check(&["onnx", "hostile/onnx"]);
}

#[test]
fn mutants_are_refused_or_read_within_bounds() {
    crate::mutants::survive(&["onnx", "hostile/onnx"]);
}
