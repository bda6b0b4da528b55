//! K-means: each sample belongs to the nearest centroid.

use alloc::vec::Vec;

use apr_container::{PayloadReader, PayloadWriter};

use crate::checks;
use crate::error::{Error, ErrorKind, Operation};
use crate::matrix::Matrix;
use crate::model::{Classifier, check_rows};
use crate::payload::fields::read;
use crate::payload::values::{write_matrix, write_option, write_optional_u64};
use crate::tensors::Tensors;
use crate::workers::{Alone, Workers};

mod fit;
mod view;

pub use self::view::KMeansView;

/// Initializations of [`KMeans::fit`] (`n_init`).
const RESTARTS: usize = 10;

/// k-means clustering: each sample belongs to the nearest centre by Euclidean distance, to the first one in a tie.
///
/// ```
/// use apr_models::{Classifier, KMeans, Matrix};
///
/// let x = Matrix::from_vec(4, 1, vec![1.0, 1.2, 8.0, 8.4])?;
/// let mut model = KMeans::new(2)?.with_random_state(7);
/// model.fit(&x)?;
/// let labels = model.predict(&x);
/// assert_eq!(labels[0], labels[1]);
/// assert_ne!(labels[1], labels[2]);
/// assert!((model.inertia() - 0.1).abs() < 1e-6);
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct KMeans {
    n_clusters: usize,
    max_iter: usize,
    tol: f32,
    random_state: Option<u64>,
    centroids: Option<Matrix>,
    labels: Option<Vec<usize>>,
    inertia: f32,
    n_iter: usize,
}

impl KMeans {
    /// An unfitted model for this many clusters.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`] for no cluster.
    pub fn new(n_clusters: usize) -> Result<Self, Error> {
        checks::expect(N_CLUSTERS, n_clusters > 0, "at least one is needed")?;
        Ok(Self {
            n_clusters,
            max_iter: 300,
            tol: 1e-4,
            random_state: None,
            centroids: None,
            labels: None,
            inertia: 0.0,
            n_iter: 0,
        })
    }

    /// A fitted model with these centres: `[n_clusters, n_features]`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartNotFinite`].
    pub fn from_parts(centroids: Matrix) -> Result<Self, Error> {
        checks::expect_finite(CENTROIDS, centroids.as_slice())?;
        let n_clusters = centroids.n_rows();
        Ok(Self { centroids: Some(centroids), ..Self::new(n_clusters)? })
    }

    /// Sets the seed of training; 0 by default.
    #[must_use]
    pub const fn with_random_state(mut self, seed: u64) -> Self {
        self.random_state = Some(seed);
        self
    }

    /// Sets the maximum number of iterations of each run.
    #[must_use]
    pub const fn with_max_iter(mut self, max_iter: usize) -> Self {
        self.max_iter = max_iter;
        self
    }

    /// The same model, whose training goes from whole rounds to single samples once the squares of the centres' moves
    /// sum up to at most `tol` times the mean variance of a feature.
    #[must_use]
    pub const fn with_tol(mut self, tol: f32) -> Self {
        self.tol = tol;
        self
    }

    /// Fits the centres to the samples `x` (`[n_samples, n_features]`): runs 10 initializations and keeps the result
    /// of lowest inertia. On an error the model is unchanged.
    ///
    /// Each run draws its initial centres by greedy k-means++ (Arthur and Vassilvitskii, SODA 2007), then assigns
    /// all samples and moves all centres until nothing changes (Lloyd, IEEE Trans. Inf. Theory 28, 1982), then moves
    /// single samples as long as that lowers the sum of squares (Hartigan, *Clustering Algorithms*, 1975, chapter 4).
    /// Computed in `f64`; the same samples and seed give the same bits on every platform.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TooFewSamples`] for fewer samples than clusters, [`ErrorKind::FeatureNotFinite`].
    pub fn fit(&mut self, x: &Matrix) -> Result<(), Error> {
        self.fit_restarting(x, RESTARTS)
    }

    /// As [`fit`](Self::fit) with this number of initializations, at least one.
    ///
    /// # Errors
    ///
    /// As [`fit`](Self::fit).
    pub fn fit_restarting(&mut self, x: &Matrix, restarts: usize) -> Result<(), Error> {
        self.fit_on(&Alone, x, restarts)
    }

    /// As [`fit_restarting`](Self::fit_restarting), with initializations by the workers.
    ///
    /// # Errors
    ///
    /// As [`fit`](Self::fit).
    pub fn fit_on(&mut self, workers: &dyn Workers, x: &Matrix, restarts: usize) -> Result<(), Error> {
        let best = fit::fit(workers, x, self.n_clusters, self.settings(), restarts.max(1))?;
        self.centroids = Some(best.centroids);
        self.labels = Some(best.labels);
        self.inertia = best.inertia as f32;
        self.n_iter = best.n_iter;
        Ok(())
    }

    fn settings(&self) -> fit::Settings {
        fit::Settings { max_iter: self.max_iter, tol: self.tol.into(), seed: self.random_state.unwrap_or(0) }
    }

    /// Clusters.
    #[must_use]
    pub const fn n_clusters(&self) -> usize {
        self.n_clusters
    }

    /// The centres: `[n_clusters, n_features]`; `None` until the model is fitted.
    #[must_use]
    pub const fn centroids(&self) -> Option<&Matrix> {
        self.centroids.as_ref()
    }

    /// The cluster of each sample of the training, `None` if the model does not know.
    #[must_use]
    pub fn labels(&self) -> Option<&[usize]> {
        self.labels.as_deref()
    }

    /// The inertia of training: the sum of the squared distances of its samples to their centres.
    #[must_use]
    pub const fn inertia(&self) -> f32 {
        self.inertia
    }

    /// Iterations of the run that was kept.
    #[must_use]
    pub const fn n_iter(&self) -> usize {
        self.n_iter
    }

    /// Maximum number of iterations.
    #[must_use]
    pub const fn max_iter(&self) -> usize {
        self.max_iter
    }

    /// The change that ends the whole rounds of training.
    #[must_use]
    pub const fn tol(&self) -> f32 {
        self.tol
    }

    /// The seed of training.
    #[must_use]
    pub const fn random_state(&self) -> Option<u64> {
        self.random_state
    }

    /// Reads the model from named tensors: `centroids`, `n_clusters`, `max_iter`, `tol`, `random_state`, `inertia`,
    /// `n_iter`. Labels of the training are not among them.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OtherModel`], [`ErrorKind::UnexpectedTensor`], the errors of [`Tensors`] for missing or
    /// malformed tensors, [`ErrorKind::PartLength`] if there are not as many centres as clusters, and all of
    /// [`from_parts`](Self::from_parts).
    pub fn from_tensors(tensors: &Tensors) -> Result<Self, Error> {
        let known = [CENTROIDS, N_CLUSTERS, MAX_ITER, TOL, RANDOM_STATE, INERTIA, N_ITER];
        tensors.expect_parts(Self::NAME, &known)?;
        let model = Self::from_parts(tensors.matrix(CENTROIDS)?)?;
        let (expected, found) = (tensors.count(N_CLUSTERS)?, model.n_clusters);
        checks::expect_len(CENTROIDS, expected, found)?;
        tensors.parts(|parts| Self {
            max_iter: parts.count(MAX_ITER),
            tol: parts.number(TOL),
            random_state: parts.optional_integer(RANDOM_STATE),
            inertia: parts.number(INERTIA),
            n_iter: parts.count(N_ITER),
            ..model
        })
    }
}

const CENTROIDS: &str = "centroids";
const N_CLUSTERS: &str = "n_clusters";
const MAX_ITER: &str = "max_iter";
const TOL: &str = "tol";
const RANDOM_STATE: &str = "random_state";
const INERTIA: &str = "inertia";
const N_ITER: &str = "n_iter";

impl KMeans {
    fn push_tensors(&self, tensors: &mut Tensors) -> Result<(), Error> {
        let Some(centroids) = &self.centroids else {
            return Err(ErrorKind::NotFitted { operation: Operation::Save }.into());
        };
        tensors.push_f32(CENTROIDS, &[centroids.n_rows(), centroids.n_cols()], centroids.as_slice())?;
        tensors.push_count(N_CLUSTERS, self.n_clusters)?;
        tensors.push_count(MAX_ITER, self.max_iter)?;
        tensors.push_number(TOL, self.tol)?;
        tensors.push_optional(RANDOM_STATE, self.random_state)?;
        tensors.push_number(INERTIA, self.inertia)?;
        tensors.push_count(N_ITER, self.n_iter)
    }
}

impl Classifier for KMeans {
    fn predict_into(&self, rows: &[f32], out: &mut [usize]) -> Result<(), Error> {
        let Some(centroids) = &self.centroids else {
            return Err(ErrorKind::NotFitted { operation: Operation::Predict }.into());
        };
        check_rows(rows, out.len(), centroids.n_cols())?;
        for (place, row) in out.iter_mut().zip(rows.chunks_exact(centroids.n_cols())) {
            *place = nearest(row, centroids.rows().map(|centre| centre.iter().copied()));
        }
        Ok(())
    }
}

/// The first of the centres that are nearest to `row`.
fn nearest(row: &[f32], centres: impl Iterator<Item = impl Iterator<Item = f32>>) -> usize {
    fit::least(centres.map(|centre| {
        let differences = row.iter().zip(centre).map(|(&value, centre)| f64::from(value) - f64::from(centre));
        differences.map(|difference| difference * difference).sum::<f64>()
    }))
}

stored_model! {
    /// Clusters, rounds allowed, tolerance, optional seed, centres and labels, inertia, rounds taken.
    KMeans "KMeans" [KMeans]
    n_features: |model| model.centroids.as_ref().map(Matrix::n_cols);
    is_fitted: |model| model.centroids.is_some();
}

impl KMeans {
    fn encode_fields(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        out.usize(self.n_clusters)?;
        out.usize(self.max_iter)?;
        out.f32(self.tol)?;
        write_optional_u64(out, self.random_state)?;
        write_option(out, self.centroids.as_ref(), write_matrix)?;
        write_option(out, self.labels.as_ref(), |out, labels| out.usizes(labels))?;
        out.f32(self.inertia)?;
        out.usize(self.n_iter)
    }

    fn decode_fields(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        read(input, |fields| {
            let (n_clusters, max_iter, tol) = (fields.usize(), fields.usize(), fields.f32());
            let (random_state, centroids) = (fields.optional_u64(), fields.optional_matrix());
            let has_each = centroids.as_ref().is_none_or(|centroids| centroids.n_rows() == n_clusters);
            fields.check(has_each, "not as many centres as clusters");
            let labels = fields.optional_usizes();
            let (inertia, n_iter) = (fields.f32(), fields.usize());
            Self { n_clusters, max_iter, tol, random_state, centroids, labels, inertia, n_iter }
        })
    }
}
