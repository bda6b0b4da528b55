//! HDF5 and Keras.

use crate::vectors::check;

#[test]
fn vectors_of_hdf5_are_read() {
    check(&["hdf5", "hostile/hdf5"]);
}

#[test]
fn vectors_of_keras_are_read() {
    check(&["keras", "hostile/keras"]);
}

#[test]
fn mutants_are_refused_or_read_within_bounds() {
    crate::mutants::survive(&["hdf5", "hostile/hdf5"]);
}

#[test]
fn mutants_of_keras_are_refused_or_read_within_bounds() {
    crate::mutants::survive(&["keras", "hostile/keras"]);
}
