//! The labels of a classifier.

use alloc::vec::Vec;

use apr_container::{PayloadReader, PayloadWriter};

use crate::checks;
use crate::error::{Error, ErrorKind};
use crate::matrix::Matrix;

/// Labels in strictly increasing order; models count classes by their places here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Classes {
    labels: Vec<usize>,
}

impl Classes {
    /// Takes labels that increase strictly and are at least `needed`.
    pub(crate) fn from_labels(labels: Vec<usize>, needed: usize) -> Result<Self, Error> {
        if labels.len() < needed {
            return Err(
                ErrorKind::PartLength { part: "classes", expected: needed, found: labels.len() }.into()
            );
        }
        match labels.is_sorted_by(|a, b| a < b) {
            true => Ok(Self { labels }),
            false => {
                Err(ErrorKind::PartInvalid { part: "classes", problem: "labels must increase strictly" }
                    .into())
            }
        }
    }

    /// The labels that occur in `y`, one for each sample of `x`, and the place of each sample's among them.
    pub(crate) fn of_targets(x: &Matrix, y: &[usize]) -> Result<(Self, Vec<u32>), Error> {
        if y.len() != x.n_rows() {
            return Err(ErrorKind::TargetLength { n_rows: x.n_rows(), given: y.len() }.into());
        }
        let mut labels = y.to_vec();
        labels.sort_unstable();
        labels.dedup();
        checks::expect("classes", u32::try_from(labels.len()).is_ok(), "there are more than 32 bits count")?;
        // Found: the list was made from them.
        let places = y.iter().map(|label| labels.binary_search(label).map_or(0, |place| place as u32));
        let places = places.collect();
        Ok((Self { labels }, places))
    }

    pub(crate) const fn len(&self) -> usize {
        self.labels.len()
    }

    pub(crate) const fn labels(&self) -> &[usize] {
        self.labels.as_slice()
    }

    /// The label at that place, which must be one of them.
    pub(crate) fn label(&self, place: usize) -> usize {
        self.labels.get(place).copied().unwrap_or_default()
    }

    pub(crate) fn encode(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        out.usizes(&self.labels)
    }

    pub(crate) fn decode(input: &mut PayloadReader<'_>, needed: usize) -> Result<Self, apr_container::Error> {
        Ok(Self::from_labels(input.usizes()?, needed)?)
    }
}

/// Place of the first of the largest values; 0 if there are none. A value that is not a number is never larger.
pub(crate) fn largest(values: impl IntoIterator<Item = f64>) -> usize {
    let mut best = (0, f64::NEG_INFINITY);
    for (place, value) in values.into_iter().enumerate() {
        if value > best.1 {
            best = (place, value);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn labels_are_sorted_and_found() {
        let x = Matrix::from_vec(4, 1, vec![0.0; 4]).unwrap();
        let (classes, places) = Classes::of_targets(&x, &[7, 2, 7, 900]).unwrap();
        assert_eq!((classes.labels(), places.as_slice()), (&[2, 7, 900][..], &[1, 0, 1, 2][..]));
        assert!(Classes::of_targets(&x, &[1]).is_err());
        assert!(Classes::from_labels(vec![1, 1], 1).is_err());
        assert!(Classes::from_labels(vec![], 1).is_err());
    }

    #[test]
    fn first_of_equal_values_is_the_largest() {
        assert_eq!(largest([1.0, 3.0, 3.0]), 1);
        assert_eq!(largest([f64::NAN, -1.0]), 1);
        assert_eq!(largest([f64::NAN, f64::NAN]), 0);
        assert_eq!(largest([]), 0);
    }
}
