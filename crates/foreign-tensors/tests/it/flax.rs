//! Flax.

#[test]
fn every_vector_gives_its_tensors_or_is_refused() {
    crate::vectors::check(&["flax", "hostile/flax"]);
}

#[test]
fn mutants_are_refused_or_read_within_bounds() {
    crate::mutants::survive(&["flax", "hostile/flax"]);
}
