//! Columns of texts as the numbers of their categories.

use model_file::{CategoryError, CategoryNumbers, UnknownCategory};

use super::Accepts;
use crate::terminal::escape;

/// The categories of a column.
#[derive(Debug)]
pub(crate) enum Categories {
    /// Those that are found in a table: each text becomes one.
    Found(CategoryNumbers),
    /// Those of a model.
    Known(CategoryNumbers),
}

impl Categories {
    /// Those that will be found in a table.
    pub(crate) fn found() -> Self {
        Self::Found(CategoryNumbers::default())
    }

    /// Those of a model, by their numbers.
    pub(crate) fn known(names: &[String], unknown: UnknownCategory) -> Self {
        Self::Known(CategoryNumbers::new(names, unknown))
    }

    /// The number of the category in a cell; of an empty one, or of none, NaN if missing values are accepted.
    pub(super) fn number(&mut self, cell: Option<&str>, accepts: Accepts) -> Result<f32, String> {
        let number = match self {
            Self::Found(numbers) => numbers.number_or_add(cell, accepts),
            Self::Known(numbers) => numbers.number(cell, accepts),
        };
        number.map_err(|error| match error {
            CategoryError::Unknown { name, known } => {
                let what = format!("`{}` is none of the categories of the training", escape::cut(name, 60));
                format!("{what}: {}", super::listed(known))
            }
            other => other.to_string(),
        })
    }

    /// The names in the order in which they were found.
    pub(crate) fn into_names(self) -> Vec<String> {
        match self {
            Self::Found(numbers) | Self::Known(numbers) => numbers.into_names(),
        }
    }
}
