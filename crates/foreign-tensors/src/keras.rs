//! Keras' `.keras` files.
