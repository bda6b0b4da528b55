//! A loaded model.

use alloc::ffi::CString;

use apr_models::{Float, Floats, InputKind, Label, Model as _, OutputKind, Predictions, Samples};
use model_file::NamedModel;

use crate::failure::{Failure, terminated, usage};

/// A model that predicts. Threads may use one at the same time.
#[derive(Debug)]
pub struct Model {
    named: NamedModel,
    features: Vec<CString>,
    labels: Vec<CString>,
    name: CString,
}

/// Results of a prediction: `[n_rows, n_columns]`, row-major.
#[derive(Debug)]
pub struct Table {
    /// Values of a row.
    pub n_columns: usize,
    /// The values.
    pub values: Vec<f64>,
}

impl Model {
    pub(crate) fn new(named: NamedModel) -> Self {
        let names = named.features.iter().flatten();
        let features = names.map(|name| terminated(name)).collect();
        let numbers = named.model.class_numbers().unwrap_or_default();
        let labels = numbers.into_iter().map(|class| terminated(&text(named.label(class), class))).collect();
        let name = terminated(named.model.name());
        Self { named, features, labels, name }
    }

    /// Name of the model's type, for example `LinearRegression`.
    pub fn name(&self) -> &CString {
        &self.name
    }

    /// Features of a row; `None` of models that take texts or rows of any length.
    pub fn n_features(&self) -> Option<usize> {
        self.named.n_features()
    }

    /// Whether samples are texts.
    pub fn takes_texts(&self) -> bool {
        self.named.model.capabilities().input() == Some(InputKind::Text)
    }

    /// The names of the features, if the file has them.
    pub fn features(&self) -> &[CString] {
        &self.features
    }

    /// The labels of the classes, in the order of the columns of probabilities.
    pub fn labels(&self) -> &[CString] {
        &self.labels
    }

    /// Whether the model has this output.
    pub fn supports(&self, output: OutputKind) -> bool {
        self.named.model.capabilities().supports(output)
    }

    /// Predicts rows: `[n_rows, n_features]`, row-major.
    ///
    /// # Errors
    ///
    /// Rows of another number of features; an output that the model does not have; the errors of the model.
    pub fn predict(&self, rows: &[f64], n_rows: usize, output: OutputKind) -> Result<Table, Failure> {
        if n_rows == 0 && self.supports(output) {
            return Ok(Table { n_columns: 0, values: Vec::new() });
        }
        // Before anything is allocated for so many rows.
        let n_features = self.named.model.capabilities().n_features();
        let fits = match n_features {
            Some(n_features) => n_rows.checked_mul(n_features) == Some(rows.len()),
            None => rows.len() >= n_rows,
        };
        if !fits {
            return Err(usage("the rows do not have as many values as the model has features"));
        }
        let narrow;
        let samples = match self.named.model.capabilities().input() {
            Some(InputKind::F32) => {
                narrow = rows.iter().map(|&value| value as f32).collect::<Vec<_>>();
                Samples::F32(&narrow)
            }
            _ => Samples::F64(rows),
        };
        self.table(&self.named.model.predict(samples, n_rows, output)?)
    }

    /// Predicts texts.
    ///
    /// # Errors
    ///
    /// As [`predict`](Self::predict).
    pub fn predict_texts(&self, texts: &[&str], output: OutputKind) -> Result<Table, Failure> {
        self.table(&self.named.model.predict(Samples::Text(texts), texts.len(), output)?)
    }

    fn table(&self, predictions: &Predictions) -> Result<Table, Failure> {
        let floats = |floats: &Floats| floats.iter().map(Float::to_f64).collect();
        Ok(match predictions {
            Predictions::Values(values) => Table { n_columns: 1, values: floats(values) },
            Predictions::Rows { values, n_columns } => {
                Table { n_columns: *n_columns, values: floats(values) }
            }
            Predictions::Classes(classes) => Table { n_columns: 1, values: self.indices(classes) },
            Predictions::Probabilities { values, n_columns, .. } => {
                Table { n_columns: *n_columns, values: floats(values) }
            }
            Predictions::Outliers(marks) => {
                Table { n_columns: 1, values: marks.iter().map(|&mark| f64::from(mark)).collect() }
            }
            Predictions::Terms(rows) => {
                let n_columns = self.named.model.terms().map_or(0, |terms| terms.iter().count());
                let len = rows.n_rows().checked_mul(n_columns).filter(|&len| len <= isize::MAX as usize / 8);
                let len =
                    len.ok_or_else(|| usage("the weights of all terms take more memory than there is"))?;
                let mut values = Vec::new();
                values
                    .try_reserve_exact(len)
                    .map_err(|_| usage("the weights of all terms take too much memory"))?;
                values.resize(len, 0.0);
                for (idx, out) in values.chunks_exact_mut(n_columns.max(1)).enumerate() {
                    for (column, weight) in rows.row(idx) {
                        if let Some(place) = out.get_mut(column) {
                            *place = weight.to_f64();
                        }
                    }
                }
                Table { n_columns, values }
            }
            _ => return Err(usage("predictions of this kind are not available in C")),
        })
    }

    /// The positions of classes among the labels; of clusters, whose number is not known, their numbers.
    fn indices(&self, classes: &[usize]) -> Vec<f64> {
        let numbers = self.named.model.class_numbers();
        let index = |&class: &usize| match &numbers {
            Some(numbers) => numbers.binary_search(&class).unwrap_or(class),
            None => class,
        };
        classes.iter().map(|class| index(class) as f64).collect()
    }
}

/// A label as text: numbers with the shortest digits that give them back.
fn text(label: Option<Label<'_>>, class: usize) -> String {
    match label {
        Some(Label::Integer(number)) => number.to_string(),
        Some(Label::Text(text)) => text.to_owned(),
        Some(Label::Boolean(is_true)) => is_true.to_string(),
        Some(Label::Number(number)) => number.to_string(),
        _ => class.to_string(),
    }
}
