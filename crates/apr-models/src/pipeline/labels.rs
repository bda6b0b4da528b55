//! Labels of classes.

use alloc::string::String;
use alloc::vec::Vec;

use apr_container::{PayloadReader, PayloadWriter};

use crate::checks;
use crate::error::Error;

const PART: &str = "labels";

/// Labels of one type, as in scikit-learn's `classes_`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Labels {
    /// Integers.
    Integers(Vec<i64>),
    /// Texts.
    Texts(Vec<String>),
    /// Booleans.
    Booleans(Vec<bool>),
    /// Floats.
    Numbers(Vec<f64>),
}

/// One label.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Label<'p> {
    /// An integer.
    Integer(i64),
    /// A string.
    Text(&'p str),
    /// A boolean.
    Boolean(bool),
    /// A float.
    Number(f64),
}

impl Labels {
    /// Number of labels.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::Integers(labels) => labels.len(),
            Self::Texts(labels) => labels.len(),
            Self::Booleans(labels) => labels.len(),
            Self::Numbers(labels) => labels.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The label at that index.
    #[must_use]
    pub fn get(&self, place: usize) -> Option<Label<'_>> {
        match self {
            Self::Integers(labels) => labels.get(place).copied().map(Label::Integer),
            Self::Texts(labels) => labels.get(place).map(|label| Label::Text(label)),
            Self::Booleans(labels) => labels.get(place).copied().map(Label::Boolean),
            Self::Numbers(labels) => labels.get(place).copied().map(Label::Number),
        }
    }

    /// Proves that they are `expected`, and in order: the names of classes.
    pub(crate) fn check(&self, expected: usize) -> Result<(), Error> {
        checks::expect_len(PART, expected, self.len())?;
        let increasing = match self {
            Self::Integers(labels) => labels.is_sorted_by(|a, b| a < b),
            Self::Texts(labels) => labels.is_sorted_by(|a, b| a < b),
            Self::Booleans(labels) => labels.is_sorted_by(|a, b| !a & b),
            Self::Numbers(labels) => {
                checks::expect_finite(PART, labels)?;
                labels.is_sorted_by(|a, b| a < b)
            }
        };
        checks::expect(PART, increasing, "must increase strictly")
    }

    pub(crate) fn encode(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        match self {
            Self::Integers(labels) => {
                out.variant(0)?;
                out.usize(labels.len())?;
                labels.iter().try_for_each(|&label| out.i64(label))
            }
            Self::Texts(labels) => {
                out.variant(1)?;
                out.usize(labels.len())?;
                labels.iter().try_for_each(|label| out.str(label))
            }
            Self::Booleans(labels) => {
                out.variant(2)?;
                out.usize(labels.len())?;
                labels.iter().try_for_each(|&label| out.bool(label))
            }
            Self::Numbers(labels) => {
                out.variant(3)?;
                out.f64s(labels)
            }
        }
    }

    pub(crate) fn decode(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        Ok(match input.variant(4)? {
            0 => Self::Integers(input.list(8, PayloadReader::i64)?),
            1 => Self::Texts(input.list(8, PayloadReader::string)?),
            2 => Self::Booleans(input.list(1, PayloadReader::bool)?),
            _ => Self::Numbers(input.f64s()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned;
    use alloc::vec;

    use super::*;

    #[test]
    fn labels_of_classes_are_in_order() {
        let texts = |labels: &[&str]| Labels::Texts(labels.iter().map(|&label| label.to_owned()).collect());
        for labels in [
            Labels::Integers(vec![i64::MIN, -3]),
            texts(&["", "a"]),
            Labels::Booleans(vec![false, true]),
            Labels::Numbers(vec![-0.5, 0.0]),
        ] {
            assert!(labels.check(2).is_ok(), "{labels:?}");
            assert_eq!(labels.check(3).unwrap_err().code(), "am-part-length");
            assert_eq!(labels.get(2), None);
        }
        for labels in [
            Labels::Integers(vec![1, 1]),
            texts(&["b", "a"]),
            Labels::Booleans(vec![true, false]),
            Labels::Booleans(vec![true, true]),
            Labels::Numbers(vec![0.0, -0.0]),
        ] {
            assert_eq!(labels.check(2).unwrap_err().code(), "am-part", "{labels:?}");
        }
        assert_eq!(Labels::Numbers(vec![f64::NAN]).check(1).unwrap_err().code(), "am-part-not-finite");
    }
}
