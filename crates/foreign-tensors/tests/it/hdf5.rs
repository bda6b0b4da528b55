//! HDF5 and Keras.

use crate::vectors::check;

#[test]
fn vectors_of_hdf5_are_read() {
    check(&["hdf5", "hostile/hdf5"]);
}
