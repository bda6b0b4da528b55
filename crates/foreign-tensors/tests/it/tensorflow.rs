//! TensorFlow.

#[test]
fn every_vector_gives_its_tensors_or_is_refused() {
    crate::vectors::check(&["tf", "hostile/tf"]);
}

#[test]
fn mutants_are_refused_or_read_within_bounds() {
    crate::mutants::survive(&["tf", "hostile/tf"]);
}
