//! How a training by iterations ended.

/// How a training by iterations ended. A training that reached its maximum number of iterations gives the model of the
/// last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Convergence {
    /// Iterations, of several trainings that are parts of one the sum.
    pub iterations: usize,
    /// Whether the tolerance was reached, of several trainings that are parts of one by all of them.
    pub converged: bool,
}
