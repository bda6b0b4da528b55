//! Support vector machines.

mod fit;
mod hinge;
mod kernel;
mod linear;
mod smo;
mod stored;

use alloc::vec::Vec;

pub use self::fit::KernelSvmOptions;
pub use self::hinge::LinearSvmOptions;
use self::kernel::KernelMachine;
pub use self::kernel::{KernelParts, SvmKernel};
use self::linear::LinearMachine;
pub use self::linear::LinearParts;

use crate::classes::{Classes, largest};
use crate::convergence::Convergence;
use crate::error::{Error, ErrorKind};
use crate::kernels::svm::most_votes;
use crate::matrix::Matrix;
use crate::model::{self, Classifier};
use crate::probability::check_outputs;
use crate::scratch::with_scratch;

/// Decisions of one sample that fit the stack: those of 16 classes one against one.
const DECISIONS_ON_STACK: usize = 120;

/// Support vector classifier: linear (one hyperplane for two classes, one-vs-rest for more, as scikit-learn's
/// `LinearSVC`) or with a kernel function (one-vs-one, as scikit-learn's `SVC` and libsvm: Chang and Lin, ACM TIST 2,
/// 2011).
///
/// The decision function is summed in `f64`. With two classes a value above 0 means the second one. One-vs-rest
/// takes the class of the largest value, one-vs-one the class of most votes; the smallest label wins a tie.
///
/// ```
/// use apr_models::{Classifier, LinearParts, Matrix, Svm};
///
/// // x0 - x1 > 0.5 is the class 7.
/// let model = Svm::linear(LinearParts {
///     classes: vec![4, 7],
///     weights: Matrix::from_vec(1, 2, vec![1.0, -1.0])?,
///     intercepts: vec![-0.5],
/// })?;
/// assert_eq!(model.predict(&Matrix::from_vec(2, 2, vec![2.0, 0.0, 0.0, 0.0])?), [7, 4]);
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Svm {
    classes: Classes,
    machine: Machine,
}

#[derive(Clone, Debug, PartialEq)]
enum Machine {
    Linear(LinearMachine),
    Kernel(KernelMachine),
}

impl Svm {
    /// A linear machine: a row of weights for two classes, one for each class for more.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartLength`] for fewer than two classes or lists that do not fit them,
    /// [`ErrorKind::PartInvalid`] for labels that do not increase, [`ErrorKind::PartNotFinite`].
    pub fn linear(parts: LinearParts) -> Result<Self, Error> {
        let classes = Classes::from_labels(parts.classes, 2)?;
        let machine = LinearMachine::new(&classes, parts.weights, parts.intercepts)?;
        Ok(Self { classes, machine: Machine::Linear(machine) })
    }

    /// A machine of support vectors.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartLength`] for fewer than two classes or lists that do not fit them and the support vectors,
    /// [`ErrorKind::PartInvalid`] for labels that do not increase or a `gamma` that is not above 0,
    /// [`ErrorKind::PartNotFinite`].
    pub fn kernel(parts: KernelParts) -> Result<Self, Error> {
        let classes = Classes::from_labels(parts.classes.clone(), 2)?;
        let machine = KernelMachine::new(&classes, parts)?;
        Ok(Self { classes, machine: Machine::Kernel(machine) })
    }

    /// Fits a linear machine to samples `x` (`[n_samples, n_features]`) and their labels `y` (`[n_samples]`): the least
    /// squared hinge loss, of two classes, or of each class against the rest, as scikit-learn 1.9.1's `LinearSVC` with
    /// its own settings. The constant term has a penalty, too.
    ///
    /// A truncated Newton method in `f64` on standardized features, rounded once; the same input gives the same bits on
    /// every platform. The penalty is on the weights of the features as they are: scale them first if their units
    /// differ. Time of a step is O(`n_samples` · `n_features`).
    ///
    /// ```
    /// use apr_models::{Classifier, LinearSvmOptions, Matrix, Svm};
    ///
    /// let x = Matrix::from_vec(4, 1, vec![0.0, 1.0, 4.0, 5.0])?;
    /// let (model, convergence) = Svm::fit_linear(&x, &[2, 2, 7, 7], &LinearSvmOptions::default())?;
    /// assert!(convergence.converged);
    /// assert_eq!(model.predict(&x), [2, 2, 7, 7]);
    /// # Ok::<(), apr_models::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TargetLength`], [`ErrorKind::FeatureNotFinite`], [`ErrorKind::PartLength`] for fewer than two classes
    /// [`ErrorKind::PartInvalid`] for an option that is out of its range,
    /// [`ErrorKind::OutOfRange`] if a weight does not fit `f32`.
    pub fn fit_linear(
        x: &Matrix,
        y: &[usize],
        options: &LinearSvmOptions,
    ) -> Result<(Self, Convergence), Error> {
        hinge::fit(x, y, None, options)
    }

    /// As [`fit_linear`](Self::fit_linear), with a weight for each sample, which its class's weight is multiplied by.
    ///
    /// # Errors
    ///
    /// As [`fit_linear`](Self::fit_linear), and for weights that are not one finite number of at least 0 for each sample, or
    /// leave a class without any.
    pub fn fit_linear_weighted(
        x: &Matrix,
        y: &[usize],
        weights: &[f32],
        options: &LinearSvmOptions,
    ) -> Result<(Self, Convergence), Error> {
        hinge::fit(x, y, Some(weights), options)
    }

    /// Fits a machine of support vectors to samples `x` (`[n_samples, n_features]`) and their labels `y`
    /// (`[n_samples]`): each class against each other one, as scikit-learn 1.9.1's `SVC` and libsvm.
    ///
    /// Sequential minimal optimization in `f64`; the same input gives the same bits on every platform. Up to 200 MB of
    /// the kernel matrix stay in memory.
    ///
    /// ```
    /// use apr_models::{Classifier, KernelSvmOptions, Matrix, Svm, SvmKernel};
    ///
    /// // Inside and outside of a circle.
    /// let x = Matrix::from_vec(6, 2, vec![0.1, 0.0, 0.0, -0.1, 3.0, 0.0, -3.0, 0.0, 0.0, 3.0, 0.0, -3.0])?;
    /// let options = KernelSvmOptions::new(SvmKernel::rbf_scale(&x)?);
    /// let (model, _) = Svm::fit_kernel(&x, &[0, 0, 1, 1, 1, 1], &options)?;
    /// assert_eq!(model.predict(&x), [0, 0, 1, 1, 1, 1]);
    /// # Ok::<(), apr_models::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`fit_linear`](Self::fit_linear).
    pub fn fit_kernel(
        x: &Matrix,
        y: &[usize],
        options: &KernelSvmOptions,
    ) -> Result<(Self, Convergence), Error> {
        fit::fit(x, y, None, options)
    }

    /// As [`fit_kernel`](Self::fit_kernel), with a weight for each sample, which its class's weight is multiplied by. Samples of
    /// weight 0 are left out.
    ///
    /// # Errors
    ///
    /// As [`fit_linear_weighted`](Self::fit_linear_weighted).
    pub fn fit_kernel_weighted(
        x: &Matrix,
        y: &[usize],
        weights: &[f32],
        options: &KernelSvmOptions,
    ) -> Result<(Self, Convergence), Error> {
        fit::fit(x, y, Some(weights), options)
    }

    /// Labels, strictly increasing.
    #[must_use]
    pub const fn classes(&self) -> &[usize] {
        self.classes.labels()
    }

    /// The parts of a linear machine.
    #[must_use]
    pub fn linear_parts(&self) -> Option<LinearParts> {
        match &self.machine {
            Machine::Linear(machine) => Some(LinearParts {
                classes: self.classes().to_vec(),
                weights: machine.weights.clone(),
                intercepts: machine.intercepts.clone(),
            }),
            Machine::Kernel(_) => None,
        }
    }

    /// The parts of a machine of support vectors.
    #[must_use]
    pub fn kernel_parts(&self) -> Option<KernelParts> {
        match &self.machine {
            Machine::Linear(_) => None,
            Machine::Kernel(machine) => Some(machine.to_parts(self.classes().to_vec())),
        }
    }

    /// Values of the decision function of a sample: 1 for two classes; otherwise one for each class of a linear
    /// machine, and one for each pair of classes, (0, 1), (0, 2), ... (1, 2), ..., with a kernel function.
    #[must_use]
    pub const fn n_decisions(&self) -> usize {
        match &self.machine {
            Machine::Linear(machine) => machine.intercepts.len(),
            Machine::Kernel(machine) => machine.intercepts().len(),
        }
    }

    /// The decision function of each row of `rows` (`[n_samples, n_features]`, row-major) into `out`
    /// (`[n_samples, n_decisions]`, row-major); see [`n_decisions`](Self::n_decisions). Allocates nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutputLength`], [`ErrorKind::InputLength`] and [`ErrorKind::FeatureCount`] if the lengths do not
    /// fit each other and the model.
    pub fn decision_function_into(&self, rows: &[f32], out: &mut [f64]) -> Result<(), Error> {
        let (n_features, n_decisions) = (self.width(), self.n_decisions());
        check_outputs(rows, out.len(), n_features, n_decisions)?;
        for (row, out) in rows.chunks_exact(n_features).zip(out.chunks_exact_mut(n_decisions)) {
            self.decide(row, out);
        }
        Ok(())
    }

    /// The decision function of each row of `x`: `[n_samples, n_decisions]`, row-major.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::FeatureCount`].
    pub fn decision_function(&self, x: &Matrix) -> Result<Vec<f64>, Error> {
        let (n_rows, n_cols) = (x.n_rows(), self.n_decisions());
        let len = n_rows.checked_mul(n_cols).ok_or(ErrorKind::MatrixTooLarge { n_rows, n_cols })?;
        let mut out = alloc::vec![0.0; len];
        self.decision_function_into(x.as_slice(), &mut out)?;
        Ok(out)
    }

    /// Features of a sample.
    const fn width(&self) -> usize {
        match &self.machine {
            Machine::Linear(machine) => machine.weights.n_cols(),
            Machine::Kernel(machine) => machine.n_features(),
        }
    }

    fn decide(&self, row: &[f32], out: &mut [f64]) {
        match &self.machine {
            Machine::Linear(machine) => machine.decide(row, out),
            Machine::Kernel(machine) => machine.decide(row, out),
        }
    }

    /// Place of the class that the decisions speak for.
    fn choose(&self, decisions: &[f64]) -> usize {
        match (decisions, &self.machine) {
            (&[decision], _) => usize::from(decision > 0.0),
            (_, Machine::Linear(_)) => largest(decisions.iter().copied()),
            (_, Machine::Kernel(_)) => most_votes(decisions, self.classes.len()),
        }
    }
}

/// A machine of support vectors needs no memory but the stack for up to 16 classes, a linear one for up to 120.
impl Classifier for Svm {
    fn predict_into(&self, rows: &[f32], out: &mut [usize]) -> Result<(), Error> {
        model::check_rows(rows, out.len(), self.width())?;
        with_scratch::<f64, DECISIONS_ON_STACK, _>(self.n_decisions(), |decisions| {
            for (row, place) in rows.chunks_exact(self.width()).zip(out) {
                self.decide(row, decisions);
                *place = self.classes.label(self.choose(decisions));
            }
        });
        Ok(())
    }
}
