//! DBSCAN: the labels of the training samples.

use alloc::vec::Vec;

use apr_container::{PayloadReader, PayloadWriter};

use crate::checks;
use crate::error::{Error, ErrorKind, Operation};
use crate::matrix::Matrix;
use crate::payload::fields::read;
use crate::payload::values::write_option;
use crate::tensors::Tensors;

mod fit;

/// The result of DBSCAN (Ester, Kriegel, Sander and Xu, KDD 1996): a label for each training sample.
///
/// DBSCAN does not label other samples, so there is no prediction.
///
/// ```
/// use apr_models::{Dbscan, Matrix};
///
/// let x = Matrix::from_vec(6, 1, vec![1.0, 1.2, 1.4, 5.0, 5.1, 9.0])?;
/// let model = Dbscan::fit(&x, 0.25, 2)?;
/// assert_eq!(model.labels().unwrap(), [0, 0, 0, 1, 1, -1]);
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Dbscan {
    eps: f32,
    min_samples: usize,
    labels: Option<Vec<i32>>,
}

impl Dbscan {
    /// Finds the clusters of samples `x` (`[n_samples, n_features]`), counted in the order of their first core sample.
    ///
    /// A core sample has at least `min_samples` samples, itself included, at a Euclidean distance of at most `eps`; core
    /// samples that near to each other are in one cluster. Another sample is in the first cluster with a core sample that
    /// near, or noise. Squared distances are summed in `f64`. That is scikit-learn 1.9.1's `DBSCAN`.
    ///
    /// A k-d tree finds the neighbours, or, of at most 16,384 samples of more than 15 features, all distances. Memory beside `x` is
    /// O(`n_samples` · `n_features`), and for all distances a bit for each two samples.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`] if `eps` is not a positive finite number or `min_samples` is 0,
    /// [`ErrorKind::FeatureNotFinite`], [`ErrorKind::MatrixTooLarge`] for 2^31 samples and more.
    pub fn fit(x: &Matrix, eps: f32, min_samples: usize) -> Result<Self, Error> {
        let mut model = Self::from_parts(eps, min_samples, Vec::new())?;
        checks::expect(MIN_SAMPLES, min_samples > 0, "at least 1 is needed")?;
        model.labels = Some(fit::labels(x, eps, min_samples)?);
        Ok(model)
    }

    /// What training with these settings found: a cluster for each sample, counted from 0, or -1 for noise.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`] if `eps` is not a positive finite number, or for a label below -1.
    pub fn from_parts(eps: f32, min_samples: usize, labels: Vec<i32>) -> Result<Self, Error> {
        checks::expect(EPS, eps.is_finite() && eps > 0.0, "a positive finite number is needed")?;
        checks::expect(LABELS, labels.iter().all(|&label| label >= -1), "labels are -1 or more")?;
        Ok(Self { eps, min_samples, labels: Some(labels) })
    }

    /// Maximum distance of neighbours, `eps`.
    #[must_use]
    pub const fn eps(&self) -> f32 {
        self.eps
    }

    /// Neighbours of a core sample, `min_samples`.
    #[must_use]
    pub const fn min_samples(&self) -> usize {
        self.min_samples
    }

    /// The cluster of each sample of the training, -1 for noise; `None` if there was no training yet.
    #[must_use]
    pub fn labels(&self) -> Option<&[i32]> {
        self.labels.as_deref()
    }

    /// Reads the model from named tensors: `eps`, `min_samples`, `labels`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OtherModel`], [`ErrorKind::UnexpectedTensor`], the errors of [`Tensors`] for missing or
    /// malformed tensors, and all of [`from_parts`](Self::from_parts).
    pub fn from_tensors(tensors: &Tensors) -> Result<Self, Error> {
        tensors.expect_parts(Self::NAME, &[EPS, MIN_SAMPLES, LABELS])?;
        let labels = tensors.signed_integers(LABELS)?.into_iter().map(i32::try_from);
        let labels =
            checks::all(labels).map_err(|_| Error::from(ErrorKind::TensorInteger).of_tensor(LABELS))?;
        Self::from_parts(tensors.number(EPS)?, tensors.count(MIN_SAMPLES)?, labels)
    }
}

const EPS: &str = "eps";
const MIN_SAMPLES: &str = "min_samples";
const LABELS: &str = "labels";

impl Dbscan {
    fn push_tensors(&self, tensors: &mut Tensors) -> Result<(), Error> {
        let Some(labels) = &self.labels else {
            return Err(ErrorKind::NotFitted { operation: Operation::Save }.into());
        };
        tensors.push_number(EPS, self.eps)?;
        tensors.push_count(MIN_SAMPLES, self.min_samples)?;
        tensors.push_signed(LABELS, &labels.iter().map(|&label| label.into()).collect::<Vec<i64>>())
    }
}

stored_model! {
    /// `eps`, the neighbours of a core, optional list of labels.
    Dbscan "DBSCAN" [Custom or any]
    n_features: |_| None;
    is_fitted: |model| model.labels.is_some();
}

impl Dbscan {
    fn encode_fields(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        out.f32(self.eps)?;
        out.usize(self.min_samples)?;
        write_option(out, self.labels.as_ref(), |out, labels| out.i32s(labels))
    }

    fn decode_fields(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        read(input, |fields| Self {
            eps: fields.f32(),
            min_samples: fields.usize(),
            labels: fields.optional_i32s(),
        })
    }
}
