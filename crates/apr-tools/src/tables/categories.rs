//! Columns of texts as the numbers of their categories.

use std::collections::HashMap;

use super::Accepts;
use crate::terminal::escape;

/// Most categories of a column: their numbers are exact in 32-bit floats, and a table of one column for each stays a table.
const MAX_CATEGORIES: usize = 1 << 16;

/// What becomes of a text that is no category yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// It becomes one.
    Add,
    /// It is an error.
    Refuse,
    /// It gets the number -1, which no category has.
    Ignore,
}

/// The categories of a column.
#[derive(Debug)]
pub(crate) struct Categories {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
    unknown: Unknown,
}

impl Categories {
    /// Those that will be found in a table.
    pub(crate) fn found() -> Self {
        Self { names: Vec::new(), numbers: HashMap::new(), unknown: Unknown::Add }
    }

    /// Those of a model, by their numbers.
    pub(crate) fn known(names: &[String], unknown: Unknown) -> Self {
        let numbers = names.iter().cloned().zip(0..).collect();
        Self { names: names.to_vec(), numbers, unknown }
    }

    /// The number of the category in a cell; of an empty one, or of none, NaN if missing values are accepted.
    pub(super) fn number(&mut self, cell: Option<&str>, accepts: Accepts) -> Result<f32, String> {
        let name = cell.unwrap_or_default().trim();
        if name.is_empty() {
            return match accepts {
                Accepts::Finite => Err("the cell is empty".to_owned()),
                _ => Ok(f32::NAN),
            };
        }
        if let Some(&number) = self.numbers.get(name) {
            return Ok(number as f32);
        }
        match self.unknown {
            Unknown::Add if self.names.len() == MAX_CATEGORIES => {
                Err(format!("the column has more than {MAX_CATEGORIES} categories"))
            }
            Unknown::Add => {
                let number = self.names.len();
                self.numbers.insert(name.to_owned(), number);
                self.names.push(name.to_owned());
                Ok(number as f32)
            }
            Unknown::Refuse => {
                let what = format!("`{}` is none of the categories of the training", escape::cut(name, 60));
                Err(format!("{what}: {}", super::listed(&self.names)))
            }
            Unknown::Ignore => Ok(-1.0),
        }
    }

    /// The names in the order in which they were found.
    pub(crate) fn into_names(self) -> Vec<String> {
        self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn categories_are_numbered_as_they_are_found_and_known_again() {
        let mut found = Categories::found();
        let numbers =
            ["red", " blue", "red ", "n/a"].map(|cell| found.number(Some(cell), Accepts::Finite).unwrap());
        assert_eq!(numbers, [0.0, 1.0, 0.0, 2.0]);
        assert!(found.number(Some(" "), Accepts::Finite).unwrap_err().contains("empty"));
        assert!(found.number(None, Accepts::Missing).unwrap().is_nan());
        let names = found.into_names();
        assert_eq!(names, ["red", "blue", "n/a"]);
        let mut known = Categories::known(&names, Unknown::Refuse);
        assert_eq!(known.number(Some("blue"), Accepts::Finite), Ok(1.0));
        assert!(known.number(Some("green"), Accepts::Finite).unwrap_err().contains("red, blue, n/a"));
        assert_eq!(
            Categories::known(&names, Unknown::Ignore).number(Some("green"), Accepts::Finite),
            Ok(-1.0)
        );
    }
}
