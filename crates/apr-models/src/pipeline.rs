//! Steps one after the other that turn samples into scores, and what the scores mean.

pub(crate) mod reals;
pub(crate) mod rows;

pub use self::reals::Reals;
pub use self::rows::{RowsIn, SparseRows64};
