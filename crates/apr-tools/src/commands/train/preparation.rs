//! Preprocessing that is saved with the model: missing values filled, categories as numbers.

use apr_container::{Map, Value};
use apr_models::{Accepts, AnyModel, Column, Columns, Input, Model as _, Pipeline, Step};
use clap::{Args, ValueEnum};

use super::Trained;
use super::algorithms::named;
use super::data::{Data, Table};
use super::vectors::labels;
use crate::error::{CODE_TABLE_COLUMNS, CODE_USAGE, Failure};
use crate::terminal::human::{self, grouped};

/// Largest table, and how many times the columns it may have, to which categories are expanded.
const MAX_ENCODED: u64 = 1 << 30;
const MANY: usize = 16;

#[derive(Clone, Debug, Default, Args)]
pub(super) struct PreparationArgs {
    /// What missing values are replaced by, here and in predictions; those of categories by the most frequent one.
    #[arg(long, value_name = "HOW", value_enum, default_value_t)]
    missing: Missing,
    /// Columns of categories instead of numbers, by name or by number from 1, separated by commas.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub(super) categorical: Vec<String>,
    /// Categories become a feature each, of 1 and 0, or one of their numbers in the order of their names.
    #[arg(long, value_name = "HOW", value_enum, default_value_t, requires = "categorical")]
    encoding: Encoding,
    /// What predictions do about a category that TABLE does not have; ignored, it is none of the others.
    #[arg(long, value_name = "HOW", value_enum, default_value_t, requires = "categorical")]
    unknown_category: UnknownCategory,
}

/// A value of `--missing`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Missing {
    #[default]
    Error,
    Mean,
    Median,
    MostFrequent,
}

/// A value of `--encoding`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Encoding {
    #[default]
    OneHot,
    Ordinal,
}

/// A value of `--unknown-category`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum UnknownCategory {
    #[default]
    Error,
    Ignore,
}

impl PreparationArgs {
    /// Which numbers are read.
    pub(super) fn accepts(&self) -> Accepts {
        if self.missing == Missing::Error { Accepts::Finite } else { Accepts::Missing }
    }

    /// Whether predictions ignore unknown categories.
    pub(super) fn ignores_unknown(&self) -> bool {
        self.unknown_category == UnknownCategory::Ignore
    }

    fn settings(&self) -> Map<Value> {
        let missing = match self.missing {
            Missing::Error => "error",
            Missing::Mean => "mean",
            Missing::Median => "median",
            Missing::MostFrequent => "most-frequent",
        };
        let mut settings = named([("missing", missing.into())]);
        if !self.categorical.is_empty() {
            let one_hot = self.encoding == Encoding::OneHot;
            settings.insert("encoding".to_owned(), if one_hot { "one-hot" } else { "ordinal" });
            let unknown = if self.ignores_unknown() { "ignore" } else { "error" };
            settings.insert("unknown_category".to_owned(), unknown);
        }
        settings
    }

    /// Trains on prepared samples, whose values are those of this table; the model takes samples as they are in tables.
    ///
    /// # Errors
    ///
    /// If a column has no value, there is no place for preprocessing before the model, and those of `train`.
    pub(super) fn train(
        &self,
        data: &Data,
        train: &dyn Fn(&Data) -> Result<Trained, Failure>,
    ) -> Result<Trained, Failure> {
        let table = match data {
            Data::Table(table) if self.missing != Missing::Error || !self.categorical.is_empty() => table,
            _ => return train(data),
        };
        let (outputs, names): (Vec<Column>, Vec<String>) = self.columns(table)?.into_iter().flatten().unzip();
        self.check_size(table, outputs.len())?;
        let step = Columns::new(&outputs)?;
        let prepared = table.with_features(step.apply(&table.x)?, names.clone());
        let trained = train(&Data::Table(prepared))?;
        let mut hyperparameters = trained.hyperparameters;
        hyperparameters.extend(self.settings());
        let model = self.preceded(trained.model, step, table, data.class_names())?;
        Ok(Trained { model, hyperparameters, feature_names: Some(names), ..trained })
    }

    /// Refuses a table that one-hot encoding would make many times as large.
    fn check_size(&self, table: &Table, n_columns: usize) -> Result<(), Failure> {
        let (n_rows, n_features) = table.x.shape();
        let bytes = (n_rows as u64).saturating_mul(n_columns as u64).saturating_mul(size_of::<f32>() as u64);
        if bytes <= MAX_ENCODED || n_columns / n_features < MANY {
            return Ok(());
        }
        let what = format!(
            "categories would become {} columns, and the table {}",
            grouped(n_columns as u64),
            human::bytes(bytes)
        );
        let failure = Failure::new(CODE_USAGE, what);
        Err(failure.help(
            "number them instead, which trees can use: --encoding ordinal; or leave the column out: --drop",
        ))
    }

    /// What becomes of each feature, with a name for each result.
    fn columns(&self, table: &Table) -> Result<Vec<Vec<(Column, String)>>, Failure> {
        let n_features = table.x.n_cols();
        let of_feature = |place: usize| {
            let name = table.feature(place);
            let column = u32::try_from(place).map_err(|_| Failure::new(CODE_USAGE, "too many columns"))?;
            let categories = table.categories().get(place).and_then(Option::as_ref);
            let fill = match self.missing {
                Missing::Error => None,
                missing => {
                    let values = table.x.as_slice().iter().skip(place).step_by(n_features).copied();
                    let mut values: Vec<f32> = values.filter(|value| !value.is_nan()).collect();
                    values.sort_unstable_by(f32::total_cmp);
                    let missing = if categories.is_some() { Missing::MostFrequent } else { missing };
                    let fill = fill(&values, missing).ok_or_else(|| {
                        Failure::new(CODE_TABLE_COLUMNS, format!("`{name}` has no value in any row"))
                    })?;
                    // As exact in the samples that the model learns from.
                    Some(f64::from(fill as f32))
                }
            };
            let column = |equals: Option<f64>| Column { column, fill, equals };
            Ok(match categories {
                Some(categories) if self.encoding == Encoding::OneHot => {
                    let of_category = |(number, category): (usize, &String)| {
                        (column(Some(number as f64)), format!("{name}={category}"))
                    };
                    categories.iter().enumerate().map(of_category).collect()
                }
                _ => vec![(column(None), name)],
            })
        };
        (0..n_features).map(of_feature).collect()
    }

    /// The model after the preprocessing.
    fn preceded(
        &self,
        model: AnyModel,
        step: Columns,
        table: &Table,
        classes: Option<&[String]>,
    ) -> Result<AnyModel, Failure> {
        let pipeline = match model {
            // Labels of the rows of the training: there is nothing to predict.
            AnyModel::Dbscan(_) => return Ok(model),
            AnyModel::Pipeline(pipeline) => pipeline,
            model => Pipeline::of_model(&model, step.len(), classes.map(labels)).map_err(|_| {
                let what = format!("a {} cannot be saved with preprocessing", model.name());
                let failure = Failure::new(CODE_USAGE, what);
                failure.help("leave --missing and --categorical out, or choose another algorithm")
            })?,
        };
        let input = Input::Numbers { n_features: table.x.n_cols(), accepts: self.accepts() };
        Ok(pipeline.preceded_by(input, vec![Step::Columns(step)])?.into())
    }
}

/// What missing values are replaced by, from the sorted ones that are there: scikit-learn's `SimpleImputer`. Of values that are equally frequent
/// it is the least.
fn fill(sorted: &[f32], missing: Missing) -> Option<f64> {
    let at = |place: usize| sorted.get(place).copied().map(f64::from);
    match missing {
        Missing::Error => None,
        Missing::Mean if sorted.is_empty() => None,
        Missing::Mean => Some(sorted.iter().copied().map(f64::from).sum::<f64>() / sorted.len() as f64),
        Missing::Median => Some((at(sorted.len() / 2)? + at(sorted.len().checked_sub(1)? / 2)?) / 2.0),
        Missing::MostFrequent => {
            let runs = sorted.chunk_by(|a, b| a == b).rev();
            runs.max_by_key(|run| run.len()).and_then(|run| run.first()).copied().map(f64::from)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_are_those_of_scikit_learn() {
        let sorted = [1.0, 1.0, 2.0, 4.0, 4.0, 9.0];
        for (missing, expected) in
            [(Missing::Mean, 3.5), (Missing::Median, 3.0), (Missing::MostFrequent, 1.0)]
        {
            assert_eq!(fill(&sorted, missing), Some(expected), "{missing:?}");
            assert_eq!(fill(&[], missing), None);
        }
        assert_eq!(fill(&sorted[..5], Missing::Median), Some(2.0));
    }
}
