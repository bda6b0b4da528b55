//! Categories of features as the numbers that a model takes.

use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use apr_models::Accepts;
use located_error::cut;

/// The categories of features, whose numbers are what the model takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Categories {
    /// For each feature the names of its categories in the order of their numbers, from 0; none if its values are numbers.
    pub of_features: Vec<Vec<String>>,
    /// What is done about others.
    pub unknown: UnknownCategory,
}

/// What is done about a category that the model does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownCategory {
    /// The sample is refused.
    #[default]
    Refuse,
    /// It has the number -1, which no category has.
    Ignore,
}

impl UnknownCategory {
    pub(crate) fn of(name: Option<&str>) -> Self {
        if name == Some("ignore") { Self::Ignore } else { Self::Refuse }
    }
}

/// The numbers of the categories of one column, by their names.
#[derive(Clone, Debug, Default)]
pub struct CategoryNumbers {
    names: Vec<String>,
    numbers: BTreeMap<String, usize>,
    unknown: UnknownCategory,
}

/// Why a cell has no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CategoryError<'a> {
    /// The cell is null, or holds nothing but blanks.
    Empty,
    /// It is none of the categories.
    Unknown {
        /// What the cell holds.
        name: &'a str,
        /// The names of the categories.
        known: &'a [String],
    },
    /// The column has more categories than are numbered.
    TooMany {
        /// [`CategoryNumbers::MAX`].
        limit: usize,
    },
}

impl CategoryNumbers {
    /// Most categories of a column: their numbers are exact in 32-bit floats, and a table of one column for each stays a table.
    pub const MAX: usize = 1 << 16;

    /// Those of a model, in the order of their numbers.
    #[must_use]
    pub fn new(names: &[String], unknown: UnknownCategory) -> Self {
        let numbers = names.iter().cloned().zip(0..).collect();
        Self { names: names.to_vec(), numbers, unknown }
    }

    /// The number of the category in a cell, without blanks around it; of an empty cell, or of none, NaN if missing values are accepted.
    ///
    /// # Errors
    ///
    /// [`CategoryError::Empty`] and [`CategoryError::Unknown`].
    pub fn number<'a>(&'a self, cell: Option<&'a str>, accepts: Accepts) -> Result<f32, CategoryError<'a>> {
        let Some(name) = name_in(cell) else { return missing(accepts) };
        match (self.numbers.get(name), self.unknown) {
            (Some(&number), _) => Ok(number as f32),
            (None, UnknownCategory::Ignore) => Ok(-1.0),
            (None, UnknownCategory::Refuse) => Err(CategoryError::Unknown { name, known: &self.names }),
        }
    }

    /// The same, where a text that is no category becomes one, with the next number.
    ///
    /// # Errors
    ///
    /// [`CategoryError::Empty`] and [`CategoryError::TooMany`].
    pub fn number_or_add(
        &mut self,
        cell: Option<&str>,
        accepts: Accepts,
    ) -> Result<f32, CategoryError<'static>> {
        let Some(name) = name_in(cell) else { return missing(accepts) };
        if let Some(&number) = self.numbers.get(name) {
            return Ok(number as f32);
        }
        let number = self.names.len();
        if number == Self::MAX {
            return Err(CategoryError::TooMany { limit: Self::MAX });
        }
        self.numbers.insert(name.to_owned(), number);
        self.names.push(name.to_owned());
        Ok(number as f32)
    }

    /// The names in the order of their numbers.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The same, without the numbers.
    #[must_use]
    pub fn into_names(self) -> Vec<String> {
        self.names
    }
}

/// The name of the category in a cell, if there is one.
fn name_in(cell: Option<&str>) -> Option<&str> {
    cell.map(str::trim).filter(|name| !name.is_empty())
}

fn missing<'a>(accepts: Accepts) -> Result<f32, CategoryError<'a>> {
    match accepts {
        Accepts::Finite => Err(CategoryError::Empty),
        _ => Ok(f32::NAN),
    }
}

/// Names that are shown of a list.
const SHOWN: usize = 12;

impl fmt::Display for CategoryError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the cell is empty"),
            Self::Unknown { name, known } => {
                write!(f, "`{}` is none of the categories of the training: ", cut(name, 60))?;
                for (idx, name) in known.iter().take(SHOWN).enumerate() {
                    write!(f, "{}{}", if idx > 0 { ", " } else { "" }, cut(name, 40))?;
                }
                match known.len().checked_sub(SHOWN) {
                    Some(more @ 1..) => write!(f, " and {more} more"),
                    _ => Ok(()),
                }
            }
            Self::TooMany { limit } => write!(f, "the column has more than {limit} categories"),
        }
    }
}

impl core::error::Error for CategoryError<'_> {}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString as _;

    use super::*;

    #[test]
    fn categories_are_numbered_as_they_are_found_and_known_again() {
        let mut found = CategoryNumbers::default();
        let numbers = ["red", " blue", "red ", "n/a"]
            .map(|cell| found.number_or_add(Some(cell), Accepts::Finite).unwrap());
        assert_eq!(numbers, [0.0, 1.0, 0.0, 2.0]);
        assert_eq!(found.number_or_add(Some(" "), Accepts::Finite), Err(CategoryError::Empty));
        assert!(found.number_or_add(None, Accepts::Missing).unwrap().is_nan());
        let names = found.into_names();
        assert_eq!(names, ["red", "blue", "n/a"]);
        let known = CategoryNumbers::new(&names, UnknownCategory::Refuse);
        assert_eq!(known.number(Some("blue"), Accepts::Finite), Ok(1.0));
        assert_eq!(known.number(None, Accepts::Finite), Err(CategoryError::Empty));
        let refused = known.number(Some(" green "), Accepts::Finite).unwrap_err();
        assert_eq!(refused.to_string(), "`green` is none of the categories of the training: red, blue, n/a");
        let known = CategoryNumbers::new(&names, UnknownCategory::Ignore);
        assert_eq!(known.number(Some("green"), Accepts::Finite), Ok(-1.0));
    }

    #[test]
    fn a_column_has_a_limited_number_of_categories() {
        let names: Vec<String> = (0..CategoryNumbers::MAX).map(|number| format!("{number}")).collect();
        let mut numbers = CategoryNumbers::new(&names, UnknownCategory::Refuse);
        let limit = CategoryNumbers::MAX;
        assert_eq!(
            numbers.number_or_add(Some("other"), Accepts::Finite),
            Err(CategoryError::TooMany { limit })
        );
        assert_eq!(numbers.number_or_add(Some("7"), Accepts::Finite), Ok(7.0));
        let shown = numbers.number(Some("other"), Accepts::Finite).unwrap_err().to_string();
        assert!(shown.ends_with("10, 11 and 65524 more"), "{shown}");
    }
}
