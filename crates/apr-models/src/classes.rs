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

/// Numbers of so many samples that may be classes, if none has a fraction: a tenth of the samples, or ten; half of few samples.
const fn most_numbered(n_samples: usize) -> usize {
    let (tenth, half) = (n_samples / 10, n_samples / 2);
    let few = match half {
        0..=2 => 2,
        3..=9 => half,
        _ => 10,
    };
    if tenth > few { tenth } else { few }
}

/// Checks that numbers can be the classes of `n_samples` samples. `values` are the different ones, each once.
///
/// Measurements (prices, temperatures) are numbers too, and a classifier would make a class of each: few samples of every class, and no notion
/// that 150 is near 151. Numbers with fractions are refused, and more different ones than a tenth of the samples (up to ten are accepted, of few samples half).
///
/// ```
/// use apr_models::check_class_numbers;
///
/// assert!(check_class_numbers([0.0, 1.0, 2.0], 150).is_ok());
/// let error = check_class_numbers((25..207).map(f64::from), 331).unwrap_err();
/// assert_eq!(error.to_string(), "target of 182 different numbers in 331 samples: values to predict, not classes");
/// ```
///
/// # Errors
///
/// [`ErrorKind::ContinuousTarget`].
pub fn check_class_numbers(values: impl IntoIterator<Item = f64>, n_samples: usize) -> Result<(), Error> {
    let (mut n_values, mut n_fractions) = (0, 0);
    for value in values {
        n_values += 1;
        n_fractions += usize::from(libm::trunc(value) != value);
    }
    match n_fractions == 0 && n_values <= most_numbered(n_samples) {
        true => Ok(()),
        false => Err(ErrorKind::ContinuousTarget { n_samples, n_values, n_fractions }.into()),
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
    fn numbers_are_classes_if_they_are_few_and_whole() {
        let count = |n: i32| (0..n).map(f64::from);
        for (n_values, n_samples, is_accepted) in [
            (1, 1, true),
            (2, 2, true),
            (3, 3, false),
            (3, 6, true),
            (10, 20, true),
            (10, 100, true),
            (11, 100, false),
            (33, 331, true),
            (34, 331, false),
        ] {
            let checked = check_class_numbers(count(n_values), n_samples);
            assert_eq!(checked.is_ok(), is_accepted, "{n_values} of {n_samples}");
        }
        let error = check_class_numbers([0.0, 0.5], 1000).unwrap_err();
        let expected =
            "target of 2 different numbers in 1000 samples, 1 with fractions: values to predict, not classes";
        assert_eq!((error.code(), alloc::format!("{error}").as_str()), ("am-continuous-target", expected));
    }

    #[test]
    fn first_of_equal_values_is_the_largest() {
        assert_eq!(largest([1.0, 3.0, 3.0]), 1);
        assert_eq!(largest([f64::NAN, -1.0]), 1);
        assert_eq!(largest([f64::NAN, f64::NAN]), 0);
        assert_eq!(largest([]), 0);
    }
}
