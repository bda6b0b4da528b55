//! The `.apr` format: vectors of both versions through our readers, writers and models.

pub mod exports;
pub mod v1;
pub mod hostile;
pub mod kitchen;
pub mod vectors;
pub mod models;
pub mod protected;
pub mod recorded;
pub mod seal;
pub mod v2;
