//! HDF5, and Keras' `.h5` files.
