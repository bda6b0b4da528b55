//! The Python class of a model.

use std::path::PathBuf;

use apr_models::{AnyModel, Labels, Model as _};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

use super::answers;
use super::loaded::Loaded;
use super::method::Method;
use super::pipelines::{self, Rows};
use super::refusal::Refusal;
use super::samples::{SampleBuffer, sparse, sparse_wide, texts};
use super::save::{Saving, to_bytes, to_file};
use super::table_rows::TableRows;
use super::values::metadata_to_python;
use crate::arrow::BareColumn;
use crate::numpy::Numpy;

/// A fitted model, loaded from a file by apr.load. It is immutable, and any number of threads may use it at once.
///
/// Samples are an array of shape (n_samples, n_features): a numpy array of any type, byte order and strides, any other object
/// with the buffer protocol, or anything that numpy converts to an array. Models compute with float32; float32 in row-major
/// order is used without a copy, everything else is converted. Tables of pandas, polars and pyarrow, and whatever else has
/// `__arrow_c_stream__` or `__arrow_c_array__`, are read where they are, a few thousand rows at a time: columns by the names of
/// the features where the model knows them, otherwise in their order. A Pipeline, written by apr.sklearn.export, computes with
/// float64: rows of float64 or float32 are used without a copy, many rows are computed on all processors, and a pipeline of
/// texts takes a list of str, or a column of strings of pandas, polars or pyarrow. In tables, features with categories have their
/// names. The interpreter lock is released during predictions.
#[pyclass(frozen, module = "apr", name = "Model")]
pub struct Model {
    loaded: Loaded,
}

impl Model {
    pub(crate) fn new(loaded: Loaded) -> Self {
        Self { loaded }
    }

    /// The texts of a list, of a column, or of a table with one column.
    fn texts(&self, samples: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
        match TableRows::of(samples, &self.loaded, BareColumn::Texts)? {
            Some(table) => table.texts().map_err(|refusal| refusal.raise(samples.py(), None)),
            None => texts(samples),
        }
    }

    fn compute<'py>(
        &self,
        py: Python<'py>,
        samples: &Bound<'py, PyAny>,
        method: Method,
    ) -> PyResult<Bound<'py, PyAny>> {
        let model = &self.loaded.model;
        let answer = if let AnyModel::Pipeline(pipeline) = model {
            let rows = if pipelines::reads_texts(pipeline) {
                Rows::Texts(self.texts(samples)?)
            } else if let Some(table) = TableRows::of(samples, &self.loaded, BareColumn::NoTable)? {
                Rows::Table(table)
            } else {
                Rows::Numbers(SampleBuffer::wide(samples)?)
            };
            py.detach(|| pipelines::answer(pipeline, method, &rows))
        } else if let Some(table) = TableRows::of(samples, &self.loaded, BareColumn::NoTable)? {
            py.detach(|| answers::answer_table(model, method, &table))
        } else {
            let samples = SampleBuffer::of(samples)?;
            py.detach(|| answers::answer(model, method, &samples.matrix()?))
        };
        answer.map_err(|refusal| refusal.raise(py, None))?.to_array(py)
    }
}

#[pymethods]
#[expect(non_snake_case, reason = "keyword arguments are called as in scikit-learn")]
impl Model {
    /// The type of the model, for example "RandomForestClassifier".
    #[getter]
    fn model_type(&self) -> &'static str {
        self.loaded.model.name()
    }

    /// Number of features of a sample; None if the model does not store it.
    #[getter]
    fn n_features(&self) -> Option<usize> {
        self.loaded.model.n_features()
    }

    /// The metadata of the file as a new dict: "model_name", "description", "hyperparameters", "metrics", "custom" and so on,
    /// as far as they are present. They are not encrypted, also in an encrypted file.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        metadata_to_python(py, &self.loaded.metadata)
    }

    /// The signer of the file, if a signature was required: {"name": str or None, "fingerprint": str, "trusted": bool}.
    #[getter]
    fn signer<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.loaded.signer.as_ref().map(|signer| signer.to_dict(py)).transpose()
    }

    /// The labels of the columns of predict_proba, a list of int, of a Pipeline also of str, bool or float; None if classes
    /// count from 0.
    #[getter]
    fn classes<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        if let AnyModel::Pipeline(pipeline) = &self.loaded.model {
            return Ok(match pipeline.labels() {
                Some(Labels::Integers(labels)) => Some(PyList::new(py, labels)?),
                Some(Labels::Texts(labels)) => Some(PyList::new(py, labels)?),
                Some(Labels::Booleans(labels)) => Some(PyList::new(py, labels)?),
                Some(Labels::Numbers(labels)) => Some(PyList::new(py, labels)?),
                _ => None,
            });
        }
        self.loaded.model.classes().map(|classes| PyList::new(py, classes)).transpose()
    }

    /// The terms of the columns of `terms`, a list of str; None for models without terms.
    #[getter]
    fn vocabulary<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        let terms = self.loaded.model.terms();
        terms.map(|terms| PyList::new(py, terms.iter().collect::<Vec<_>>())).transpose()
    }

    /// The predictions for n samples: float32 of shape (n,) of a regression, int64 of shape (n,) of a classification or a
    /// clustering (-1 for outliers, 1 for others), float32 of shape (n, k) of a transformation or a network without classes. A
    /// Pipeline returns what scikit-learn returns: labels as int64, str, bool or float64 of shape (n,), values as float64 of
    /// shape (n,) or (n, k).
    ///
    /// Raises AprError ("am-feature-count", "am-no-predictions", "am-empty-matrix", "am-not-fitted", "am-feature-not-finite",
    /// of tables also "tb-type" and "cli-table-cell"), TypeError and ValueError for anything but an array of numbers.
    fn predict<'py>(&self, py: Python<'py>, X: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.compute(py, X, Method::Predict)
    }

    /// The probability of each class for each of n samples, float32 of shape (n, classes), float64 of a Pipeline. Raises as predict.
    fn predict_proba<'py>(&self, py: Python<'py>, X: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.compute(py, X, Method::PredictProba)
    }

    /// The n samples transformed by a scaler, a projection or a network, float32 of shape (n, k), float64 of a Pipeline; of
    /// clusters, the distances from their centroids; of a vectorizer, a column for each term (`terms` returns them sparse).
    /// Raises as predict.
    fn transform<'py>(&self, py: Python<'py>, X: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.compute(py, X, Method::Transform)
    }

    /// As scikit-learn's method of this name for n samples: float64 of shape (n,) for two classes and for outliers, of shape
    /// (n, k) otherwise. Of a Pipeline; other models have `scores`. Raises as predict.
    fn decision_function<'py>(&self, py: Python<'py>, X: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.compute(py, X, Method::DecisionFunction)
    }

    /// As scikit-learn's method of this name for n samples, log densities or scores that are lower for outliers: float64 of
    /// shape (n,). Of a Pipeline; other models have `scores`. Raises as predict.
    fn score_samples<'py>(&self, py: Python<'py>, X: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.compute(py, X, Method::ScoreSamples)
    }

    /// The scores that predictions are computed from: float32 of shape (n,) of an isolation forest and a Gaussian mixture,
    /// float64 of shape (n, k) of support vectors and boosted classes, and the output of the last step of a Pipeline. Of a
    /// language model, X is a list or column of n texts, and the scores are the logarithms of their probabilities, float64 of shape (n,).
    /// Raises as predict.
    fn scores<'py>(&self, py: Python<'py>, X: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let model = &self.loaded.model;
        if !answers::reads_texts(model) {
            return self.compute(py, X, Method::Scores);
        }
        let texts = self.texts(X)?;
        let answer = py.detach(|| answers::scores_of_texts(model, &texts));
        answer.map_err(|refusal| refusal.raise(py, None))?.to_array(py)
    }

    /// The weighted terms of a list or column of n texts: (data, indices, indptr) as scipy.sparse.csr_array takes them, with shape
    /// (n, len(vocabulary)); float32 (of a Pipeline float64), int64, int64. Raises AprError for models without terms.
    fn terms<'py>(&self, py: Python<'py>, texts: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
        let texts = self.texts(texts)?;
        let model = &self.loaded.model;
        if let AnyModel::Pipeline(pipeline) = model {
            let rows = py
                .detach(|| pipelines::terms(pipeline, &texts))
                .map_err(|refusal| refusal.raise(py, None))?;
            return sparse_wide(py, &rows)?.into_pyobject(py);
        }
        let rows = py.detach(|| answers::terms(model, &texts)).map_err(|refusal| refusal.raise(py, None))?;
        sparse(py, &rows)?.into_pyobject(py)
    }

    /// The model as numpy arrays by name, as in a safetensors file of it. Raises AprError ("am-not-fitted").
    fn tensors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let raise = |error: apr_models::Error| Refusal::from(error).raise(py, None);
        let tensors = self.loaded.model.to_tensors().map_err(raise)?;
        let (numpy, dict) = (Numpy::get(py)?, PyDict::new(py));
        for name in tensors.names() {
            let view = tensors.view(name).map_err(raise)?;
            dict.set_item(name, numpy.copied(py, view.dtype(), view.shape(), view.data())?)?;
        }
        Ok(dict)
    }

    /// Saves the model: apr.save(model, path, ...).
    #[pyo3(signature = (
        path, *, compression=None, metadata=None, password=None, recipients=None, sign_key=None, key_password=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn save(
        &self,
        py: Python<'_>,
        path: PathBuf,
        compression: Option<&str>,
        metadata: Option<&Bound<'_, PyDict>>,
        password: Option<&Bound<'_, PyAny>>,
        recipients: Option<&Bound<'_, PyAny>>,
        sign_key: Option<&Bound<'_, PyAny>>,
        key_password: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let saving = Saving { compression, metadata, password, recipients, sign_key, key_password };
        to_file(py, &self.loaded, path, &saving)
    }

    /// The bytes of the file that save writes.
    #[pyo3(signature = (
        *, compression=None, metadata=None, password=None, recipients=None, sign_key=None, key_password=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn to_bytes<'py>(
        &self,
        py: Python<'py>,
        compression: Option<&str>,
        metadata: Option<&Bound<'_, PyDict>>,
        password: Option<&Bound<'_, PyAny>>,
        recipients: Option<&Bound<'_, PyAny>>,
        sign_key: Option<&Bound<'_, PyAny>>,
        key_password: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let saving = Saving { compression, metadata, password, recipients, sign_key, key_password };
        to_bytes(py, &self.loaded, &saving)
    }

    fn __repr__(&self) -> String {
        let model = &self.loaded.model;
        match model.n_features() {
            Some(n_features) => format!("<apr.Model {}, n_features={n_features}>", model.name()),
            None => format!("<apr.Model {}>", model.name()),
        }
    }
}

/// Saves a model as an `.apr` file of version 1, replacing an existing file atomically.
///
/// compression: None, "zstd", "zstd-max" or "lz4".
/// metadata: a dict with the fields of the format ("model_name", "description", "hyperparameters", "metrics", "custom", ...);
///     by default that of the file the model was loaded from. A missing "created_at" is set from SOURCE_DATE_EPOCH or the clock.
/// password: encrypt with this str or bytes. recipients: encrypt for the owner of this public key (text or path); the format
///     supports one recipient.
/// sign_key: sign with this key: the path of the key's file, which only its owner may be able to read, or the text of the key.
///     key_password: the password of the key itself.
///
/// Only the payload is encrypted: anyone can read the metadata. Raises AprError, OSError, ValueError, TypeError.
#[pyfunction]
#[pyo3(signature = (
    model, path, *, compression=None, metadata=None, password=None, recipients=None, sign_key=None, key_password=None
))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn save(
    py: Python<'_>,
    model: &Bound<'_, Model>,
    path: PathBuf,
    compression: Option<&str>,
    metadata: Option<&Bound<'_, PyDict>>,
    password: Option<&Bound<'_, PyAny>>,
    recipients: Option<&Bound<'_, PyAny>>,
    sign_key: Option<&Bound<'_, PyAny>>,
    key_password: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let saving = Saving { compression, metadata, password, recipients, sign_key, key_password };
    to_file(py, &model.get().loaded, path, &saving)
}
