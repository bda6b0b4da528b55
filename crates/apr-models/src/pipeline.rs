//! Steps one after the other that turn samples into scores, and what the scores mean.

mod kernel;
mod linear;
mod normals;
pub(crate) mod reals;
pub(crate) mod rows;
mod simple;
pub(crate) mod table;

pub use self::kernel::{KernelStep, StepKernel};
pub use self::linear::LinearStep;
pub use self::normals::{NormalsStep, Spread};
pub use self::reals::Reals;
pub use self::rows::{RowsIn, SparseRows64};
pub use self::simple::{CentresStep, ScaleAdd, ShiftDivide, StepActivation};
pub use self::table::Table;
