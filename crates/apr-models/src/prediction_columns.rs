//! Predictions as columns of a table.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use crate::any_model::AnyModel;
use crate::pipeline::{Label, Labels};
use crate::predictions::{Floats, Predictions};

/// A column of predictions: a value for each sample.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictionColumn {
    /// `prediction`; of a class `probability.NAME`; of a row of values `output.1` and so on.
    pub name: String,
    /// The values.
    pub values: ColumnValues,
}

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnValues {
    /// 32-bit floats.
    F32(Vec<f32>),
    /// 64-bit floats.
    F64(Vec<f64>),
    /// Integers: labels, clusters, marks of outliers.
    I64(Vec<i64>),
    /// Labels.
    Bool(Vec<bool>),
    /// Labels.
    Text(Vec<String>),
}

/// The column of predictions, whatever they are.
const PREDICTION: &str = "prediction";

impl AnyModel {
    /// The label of a predicted class: its name among `names`, if the label is an integer that has one.
    #[must_use]
    pub fn named_label<'m>(&'m self, class: usize, names: Option<&'m [String]>) -> Option<Label<'m>> {
        let label = self.label(class)?;
        let name = match label {
            Label::Integer(number) => names.zip(usize::try_from(number).ok()),
            _ => None,
        };
        Some(name.and_then(|(names, number)| names.get(number)).map_or(label, |name| Label::Text(name)))
    }

    /// Predictions of this model as columns; `names` are the names of the classes. The columns have the same names and types for all
    /// predictions of one kind. `None` for weights of terms, which are sparse.
    ///
    /// ```
    /// use apr_models::{AnyModel, ColumnValues, Floats, LinearRegression, Predictions, Vector};
    ///
    /// let model = AnyModel::from(LinearRegression::from_parts(Vector::from_vec(vec![2.0]), 1.0)?);
    /// let columns = model.prediction_columns(Predictions::Values(Floats::F32(vec![3.0, 5.0])), None);
    /// let column = columns.and_then(|columns| columns.into_iter().next()).expect("one column");
    /// assert_eq!((&*column.name, column.values), ("prediction", ColumnValues::F32(vec![3.0, 5.0])));
    /// # Ok::<(), apr_models::Error>(())
    /// ```
    #[must_use]
    pub fn prediction_columns(
        &self,
        predictions: Predictions,
        names: Option<&[String]>,
    ) -> Option<Vec<PredictionColumn>> {
        let prediction = |values| PredictionColumn { name: PREDICTION.to_string(), values };
        Some(match predictions {
            Predictions::Values(values) => vec![prediction(values.into())],
            Predictions::Classes(classes) => vec![prediction(self.labels_of(&classes, names))],
            Predictions::Outliers(marks) => {
                vec![prediction(ColumnValues::I64(marks.into_iter().map(i64::from).collect()))]
            }
            Predictions::Rows { values, n_columns } => {
                let name = |column| format!("output.{}", column + 1);
                columns_of(&values, (0..n_columns).map(name).collect()).collect()
            }
            Predictions::Probabilities { classes, values, n_columns } => {
                let labels = prediction(self.labels_of(&classes, names));
                let probabilities = columns_of(&values, self.probability_names(n_columns, names));
                core::iter::once(labels).chain(probabilities).collect()
            }
            Predictions::Terms(_) => return None,
        })
    }

    fn labels_of(&self, classes: &[usize], names: Option<&[String]>) -> ColumnValues {
        let labels = || classes.iter().map(|&class| self.named_label(class, names));
        let own = if let Self::Pipeline(pipeline) = self { pipeline.labels() } else { None };
        match own {
            Some(Labels::Booleans(_)) => {
                ColumnValues::Bool(labels().map(|label| label == Some(Label::Boolean(true))).collect())
            }
            Some(Labels::Numbers(_)) => {
                let number = |label| if let Some(Label::Number(value)) = label { value } else { f64::NAN };
                ColumnValues::F64(labels().map(number).collect())
            }
            Some(Labels::Texts(_)) => ColumnValues::Text(labels().map(text).collect()),
            _ if names.is_some() => ColumnValues::Text(labels().map(text).collect()),
            _ => {
                let integer = |label| if let Some(Label::Integer(value)) = label { value } else { -1 };
                ColumnValues::I64(labels().map(integer).collect())
            }
        }
    }

    /// Names of the columns of probabilities: by class, or by number if two classes have one name.
    fn probability_names(&self, n_columns: usize, names: Option<&[String]>) -> Vec<String> {
        let label = |column| text(self.named_label(self.class_of_column(column), names));
        let by_label: Vec<String> =
            (0..n_columns).map(|column| format!("probability.{}", label(column))).collect();
        match by_label.iter().collect::<BTreeSet<_>>().len() == n_columns {
            true => by_label,
            false => (0..n_columns).map(|column| format!("probability.{}", column + 1)).collect(),
        }
    }
}

/// The text of a label.
fn text(label: Option<Label<'_>>) -> String {
    match label {
        Some(Label::Integer(value)) => value.to_string(),
        Some(Label::Text(text)) => text.to_string(),
        Some(Label::Boolean(value)) => value.to_string(),
        Some(Label::Number(value)) => value.to_string(),
        None => String::new(),
    }
}

impl From<Floats> for ColumnValues {
    fn from(values: Floats) -> Self {
        match values {
            Floats::F32(values) => Self::F32(values),
            Floats::F64(values) => Self::F64(values),
        }
    }
}

/// The columns of rows: `[n_samples, names.len()]`, row-major.
fn columns_of(values: &Floats, names: Vec<String>) -> impl Iterator<Item = PredictionColumn> {
    let width = names.len().max(1);
    names.into_iter().enumerate().map(move |(column, name)| {
        let values = match values {
            Floats::F32(values) => {
                ColumnValues::F32(values.iter().skip(column).step_by(width).copied().collect())
            }
            Floats::F64(values) => {
                ColumnValues::F64(values.iter().skip(column).step_by(width).copied().collect())
            }
        };
        PredictionColumn { name, values }
    })
}

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned as _;

    use super::*;
    use crate::{KnnClassifier, KnnWeights, Matrix};

    /// Classes 3 and 7.
    fn model() -> AnyModel {
        let x = Matrix::from_vec(2, 1, vec![0.0, 1.0]).unwrap();
        KnnClassifier::fit(x, &[3, 7], 1, KnnWeights::Uniform).unwrap().into()
    }

    fn probabilities() -> Predictions {
        Predictions::Probabilities {
            classes: vec![7, 3],
            values: Floats::F32(vec![0.25, 0.75, 1.0, 0.0]),
            n_columns: 2,
        }
    }

    #[test]
    fn classes_without_names_are_integers() {
        let columns = model().prediction_columns(probabilities(), None).unwrap();
        let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["prediction", "probability.3", "probability.7"]);
        assert_eq!(columns[0].values, ColumnValues::I64(vec![7, 3]));
        assert_eq!(columns[2].values, ColumnValues::F32(vec![0.75, 0.0]));
    }

    #[test]
    fn classes_with_names_are_texts_also_where_one_has_none() {
        let mut names: Vec<String> = (0..7).map(|number| format!("c{number}")).collect();
        let columns = model().prediction_columns(probabilities(), Some(&names)).unwrap();
        assert_eq!(columns[0].values, ColumnValues::Text(vec!["7".to_owned(), "c3".to_owned()]));
        assert_eq!(columns[1].name, "probability.c3");
        names.push("c3".to_owned());
        let columns = model().prediction_columns(probabilities(), Some(&names)).unwrap();
        assert_eq!(columns[1].name, "probability.1");
    }

    #[test]
    fn rows_are_columns_by_number() {
        let rows = Predictions::Rows { values: Floats::F64(vec![1.0, 2.0, 3.0, 4.0]), n_columns: 2 };
        let columns = model().prediction_columns(rows, None).unwrap();
        assert_eq!(columns[1].name, "output.2");
        assert_eq!(columns[1].values, ColumnValues::F64(vec![2.0, 4.0]));
    }
}
