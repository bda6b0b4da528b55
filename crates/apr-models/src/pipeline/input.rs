//! The input of a pipeline.

use alloc::boxed::Box;

use apr_container::{PayloadReader, PayloadWriter};

use crate::checks;
use crate::error::{Error, ErrorKind};
use crate::pipeline::rows::Samples;
use crate::pipeline::text::TextInput;

/// Maximum number of features: trees use a bit of their index for something else.
const MAX_FEATURES: usize = (1 << 31) - 2;

/// Type of the samples.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Input {
    /// Rows of numbers.
    Numbers {
        /// Features of a sample.
        n_features: usize,
        /// Which values they may have.
        accepts: Accepts,
    },
    /// Strings, whose terms are counted.
    Texts(Box<TextInput>),
}

/// Which values features may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepts {
    /// Finite values.
    Finite,
    /// Also NaN: a missing value.
    Missing,
    /// Also infinite values.
    Anything,
}

impl Input {
    pub(crate) fn check(&self) -> Result<(), Error> {
        let possible = (1..=MAX_FEATURES).contains(&self.width());
        checks::expect("number of features", possible, "must be at least 1 and below 2^31 - 1")
    }

    /// Values of a row before the first step.
    pub(crate) const fn width(&self) -> usize {
        match self {
            Self::Numbers { n_features, .. } => *n_features,
            Self::Texts(texts) => texts.n_outputs(),
        }
    }

    /// Proves that samples are of the kind it takes, and their values those it accepts.
    pub(crate) fn check_rows(&self, rows: Samples<'_>) -> Result<(), Error> {
        let refuse = |problem| Err(ErrorKind::PartInvalid { part: "samples", problem }.into());
        let (n_cols, found) = match (self, rows) {
            (Self::Numbers { n_features, accepts }, Samples::F64(values)) => {
                (n_features, accepts.refused(values))
            }
            (Self::Numbers { n_features, accepts }, Samples::F32(values)) => {
                (n_features, accepts.refused(values))
            }
            (Self::Texts(_), Samples::Text(_)) => return Ok(()),
            (Self::Numbers { .. }, Samples::Text(_)) => {
                return refuse("the model takes rows of numbers, not texts");
            }
            (Self::Texts(_), _) => return refuse("the model takes texts, not rows of numbers"),
        };
        match found {
            Some(idx) => {
                let n_cols = (*n_cols).max(1);
                Err(ErrorKind::FeatureNotFinite { row: idx / n_cols, col: idx % n_cols }.into())
            }
            None => Ok(()),
        }
    }

    pub(crate) fn encode(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        match self {
            Self::Numbers { n_features, accepts } => {
                out.variant(0)?;
                out.usize(*n_features)?;
                out.variant(*accepts as u32)
            }
            Self::Texts(texts) => {
                out.variant(1)?;
                texts.encode(out)
            }
        }
    }

    pub(crate) fn decode(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        if input.variant(2)? == 1 {
            return Ok(Self::Texts(Box::new(TextInput::decode(input)?)));
        }
        let n_features = input.usize()?;
        let accepts = input.variant(Accepts::ALL.len() as u32)?;
        Ok(Self::Numbers { n_features, accepts: Accepts::ALL[accepts as usize] })
    }
}

impl Accepts {
    const ALL: [Self; 3] = [Self::Finite, Self::Missing, Self::Anything];

    /// Place of the first value that may not be.
    fn refused<T: Copy + Into<f64>>(self, values: &[T]) -> Option<usize> {
        match self {
            Self::Finite => values.iter().position(|&value| !value.into().is_finite()),
            Self::Missing => values.iter().position(|&value| value.into().is_infinite()),
            Self::Anything => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_refused_where_they_stand() {
        let (nan, inf) = (f64::NAN, f64::NEG_INFINITY);
        let at = |accepts, rows: &[f64]| {
            let error = Input::Numbers { n_features: 2, accepts }.check_rows(Samples::F64(rows)).err()?;
            match error.kind() {
                &ErrorKind::FeatureNotFinite { row, col } => Some((row, col)),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(at(Accepts::Finite, &[0.0, f64::MAX, 1.0, nan]), Some((1, 1)));
        assert_eq!(at(Accepts::Missing, &[nan, 0.0, inf, nan]), Some((1, 0)));
        assert_eq!(at(Accepts::Anything, &[nan, inf]), None);
        let input = Input::Numbers { n_features: 1, accepts: Accepts::Anything };
        assert_eq!(input.check_rows(Samples::Text(&["a"])).unwrap_err().code(), "am-part");
        for n_features in [0, MAX_FEATURES + 1, usize::MAX] {
            let input = Input::Numbers { n_features, accepts: Accepts::Finite };
            assert_eq!(input.check().unwrap_err().code(), "am-part");
        }
    }
}
