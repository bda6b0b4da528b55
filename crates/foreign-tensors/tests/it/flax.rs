//! Flax.

#[test]
fn every_vector_gives_its_tensors_or_is_refused() {
    crate::vectors::check(&["flax", "hostile/flax"]);
}
