//! Scalers: each feature is shifted and scaled independently.

use alloc::vec::Vec;

use apr_container::{PayloadReader, PayloadWriter};

use crate::checks;
use crate::error::{Error, ErrorKind, Operation};
use crate::model::{Model, Transformer, check_rows};
use crate::payload::fields::{Fields, read};
use crate::payload::values::write_option;
use crate::tensors::Tensors;

/// A spread up to this counts as none: the feature is not stretched.
const NO_SPREAD: f32 = 1e-10;

/// Standardization: `(x - mean) / std` for each feature.
///
/// A feature whose deviation is at most 1e-10 is not divided.
///
/// ```
/// use apr_models::{Matrix, StandardScaler, Transformer};
///
/// let scaler = StandardScaler::from_parts(vec![1.0, 5.0], vec![2.0, 0.0])?;
/// let x = Matrix::from_vec(1, 2, vec![4.0, 7.0])?;
/// assert_eq!(scaler.transform(&x).as_slice(), &[1.5, 2.0]);
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct StandardScaler {
    mean: Option<Vec<f32>>,
    std: Option<Vec<f32>>,
    with_mean: bool,
    with_std: bool,
}

/// Min-max scaling: maps `data_min..=data_max` of each feature linearly to a range.
///
/// A feature whose two values are at most 1e-10 apart becomes the lower end of the range.
///
/// ```
/// use apr_models::{Matrix, MinMaxScaler, Transformer};
///
/// let scaler = MinMaxScaler::from_parts(vec![0.0], vec![10.0], (-1.0, 1.0))?;
/// let x = Matrix::from_vec(2, 1, vec![5.0, 20.0])?;
/// assert_eq!(scaler.transform(&x).as_slice(), &[0.0, 3.0]);
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct MinMaxScaler {
    data_min: Option<Vec<f32>>,
    data_max: Option<Vec<f32>>,
    feature_min: f32,
    feature_max: f32,
}

impl StandardScaler {
    /// A scaler of these means and deviations, one of each for each feature.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartLength`]; [`ErrorKind::PartNotFinite`]; [`ErrorKind::PartInvalid`] for a negative deviation, or
    /// without a feature.
    pub fn from_parts(mean: Vec<f32>, std: Vec<f32>) -> Result<Self, Error> {
        check_pair((MEAN, &mean), (STD, &std))?;
        checks::expect(STD, std.iter().all(|&std| std >= 0.0), "a deviation is negative")?;
        Ok(Self { mean: Some(mean), std: Some(std), with_mean: true, with_std: true })
    }

    /// The same scaler, which leaves the deviations as they are.
    #[must_use]
    pub const fn without_scaling(mut self) -> Self {
        self.with_std = false;
        self
    }

    /// The same scaler, which leaves the means as they are.
    #[must_use]
    pub const fn without_centring(mut self) -> Self {
        self.with_mean = false;
        self
    }

    /// What is subtracted from each feature, `None` if the scaler is not fitted.
    #[must_use]
    pub fn mean(&self) -> Option<&[f32]> {
        self.mean.as_deref()
    }

    /// What each feature is divided by, `None` if the scaler is not fitted.
    #[must_use]
    pub fn std(&self) -> Option<&[f32]> {
        self.std.as_deref()
    }

    /// Whether means are subtracted.
    #[must_use]
    pub const fn is_centring(&self) -> bool {
        self.with_mean
    }

    /// Whether features are divided.
    #[must_use]
    pub const fn is_scaling(&self) -> bool {
        self.with_std
    }

    /// Reads the scaler from named tensors: `mean`, `std`, and `with_mean` and `with_std` as 0 or 1.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OtherModel`], [`ErrorKind::UnexpectedTensor`], the errors of [`Tensors`] for missing or
    /// malformed tensors, and all of [`from_parts`](Self::from_parts).
    pub fn from_tensors(tensors: &Tensors) -> Result<Self, Error> {
        tensors.expect_parts(Self::NAME, &[MEAN, STD, WITH_MEAN, WITH_STD])?;
        let (mean, std) = tensors.parts(|parts| (parts.vector(MEAN), parts.vector(STD)))?;
        let scaler = Self::from_parts(mean, std)?;
        tensors.parts(|parts| Self {
            with_mean: parts.is_set(WITH_MEAN),
            with_std: parts.is_set(WITH_STD),
            ..scaler
        })
    }
}

impl MinMaxScaler {
    /// A scaler that maps from `data_min[i]` and `data_max[i]` of each feature `i` to the two ends of `range`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartLength`]; [`ErrorKind::PartNotFinite`]; [`ErrorKind::PartInvalid`] for an end that is not
    /// finite, or without a feature.
    pub fn from_parts(data_min: Vec<f32>, data_max: Vec<f32>, range: (f32, f32)) -> Result<Self, Error> {
        check_pair((DATA_MIN, &data_min), (DATA_MAX, &data_max))?;
        let (feature_min, feature_max) = range;
        checks::expect(
            "range",
            feature_min.is_finite() && feature_max.is_finite(),
            "two finite ends are needed",
        )?;
        Ok(Self { data_min: Some(data_min), data_max: Some(data_max), feature_min, feature_max })
    }

    /// What becomes the lower end of the range, `None` if the scaler is not fitted.
    #[must_use]
    pub fn data_min(&self) -> Option<&[f32]> {
        self.data_min.as_deref()
    }

    /// What becomes the upper end of the range, `None` if the scaler is not fitted.
    #[must_use]
    pub fn data_max(&self) -> Option<&[f32]> {
        self.data_max.as_deref()
    }

    /// The ends of the range.
    #[must_use]
    pub const fn range(&self) -> (f32, f32) {
        (self.feature_min, self.feature_max)
    }

    /// Reads the scaler from named tensors: `data_min`, `data_max`, `feature_min`, `feature_max`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OtherModel`], [`ErrorKind::UnexpectedTensor`], the errors of [`Tensors`] for missing or
    /// malformed tensors, and all of [`from_parts`](Self::from_parts).
    pub fn from_tensors(tensors: &Tensors) -> Result<Self, Error> {
        tensors.expect_parts(Self::NAME, &[DATA_MIN, DATA_MAX, FEATURE_MIN, FEATURE_MAX])?;
        let (range, data_min, data_max) = tensors.parts(|parts| {
            let range = (parts.number(FEATURE_MIN), parts.number(FEATURE_MAX));
            (range, parts.vector(DATA_MIN), parts.vector(DATA_MAX))
        })?;
        Self::from_parts(data_min, data_max, range)
    }
}

const MEAN: &str = "mean";
const STD: &str = "std";
const WITH_MEAN: &str = "with_mean";
const WITH_STD: &str = "with_std";
const DATA_MIN: &str = "data_min";
const DATA_MAX: &str = "data_max";
const FEATURE_MIN: &str = "feature_min";
const FEATURE_MAX: &str = "feature_max";

fn check_pair(first: (&'static str, &[f32]), second: (&'static str, &[f32])) -> Result<(), Error> {
    checks::expect(first.0, !first.1.is_empty(), "at least one feature is needed")?;
    let (expected, found) = (first.1.len(), second.1.len());
    checks::expect_len(second.0, expected, found)?;
    for (part, values) in [first, second] {
        checks::expect_finite(part, values)?;
    }
    Ok(())
}

/// The two lists of a fitted scaler.
fn both<'s>(
    first: &'s Option<Vec<f32>>,
    second: &'s Option<Vec<f32>>,
    operation: Operation,
) -> Result<(&'s [f32], &'s [f32]), Error> {
    match (first, second) {
        (Some(first), Some(second)) => Ok((first, second)),
        _ => Err(ErrorKind::NotFitted { operation }.into()),
    }
}

/// Refuses lists of unequal length in a payload, where they may be missing or hold any number.
/// Two optional lists of one length.
fn decode_pair(fields: &mut Fields<'_, '_>) -> [Option<Vec<f32>>; 2] {
    let pair = [fields.optional_f32s(), fields.optional_f32s()];
    let [first, second] = pair.each_ref().map(|list| list.as_ref().map(Vec::len));
    fields.check(first == second, "the two lists of a scaler differ in length");
    pair
}

fn check_places(rows: &[f32], out: &[f32], n_features: usize) -> Result<(), Error> {
    if rows.len() != out.len() {
        return Err(ErrorKind::OutputLength { needed: rows.len(), given: out.len() }.into());
    }
    // Division without remainder, or the rows are refused.
    check_rows(rows, rows.len().div_ceil(n_features.max(1)), n_features)
}

impl StandardScaler {
    fn push_tensors(&self, tensors: &mut Tensors) -> Result<(), Error> {
        let (mean, std) = both(&self.mean, &self.std, Operation::Save)?;
        tensors.push_f32(MEAN, &[mean.len()], mean)?;
        tensors.push_f32(STD, &[std.len()], std)?;
        tensors.push_number(WITH_MEAN, f32::from(u8::from(self.with_mean)))?;
        tensors.push_number(WITH_STD, f32::from(u8::from(self.with_std)))
    }
}

impl Transformer for StandardScaler {
    fn n_outputs(&self) -> Option<usize> {
        self.n_features()
    }

    fn transform_into(&self, rows: &[f32], out: &mut [f32]) -> Result<(), Error> {
        let (mean, std) = both(&self.mean, &self.std, Operation::Predict)?;
        check_places(rows, out, mean.len())?;
        let width = mean.len().max(1);
        for (row, places) in rows.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
            for (((place, &value), &mean), &std) in places.iter_mut().zip(row).zip(mean).zip(std) {
                let centred = if self.with_mean { value - mean } else { value };
                *place = if self.with_std && std > NO_SPREAD { centred / std } else { centred };
            }
        }
        Ok(())
    }
}

impl MinMaxScaler {
    fn push_tensors(&self, tensors: &mut Tensors) -> Result<(), Error> {
        let (data_min, data_max) = both(&self.data_min, &self.data_max, Operation::Save)?;
        tensors.push_f32(DATA_MIN, &[data_min.len()], data_min)?;
        tensors.push_f32(DATA_MAX, &[data_max.len()], data_max)?;
        tensors.push_number(FEATURE_MIN, self.feature_min)?;
        tensors.push_number(FEATURE_MAX, self.feature_max)
    }
}

impl Transformer for MinMaxScaler {
    fn n_outputs(&self) -> Option<usize> {
        self.n_features()
    }

    fn transform_into(&self, rows: &[f32], out: &mut [f32]) -> Result<(), Error> {
        let (least, greatest) = both(&self.data_min, &self.data_max, Operation::Predict)?;
        check_places(rows, out, least.len())?;
        let (range, width) = (self.feature_max - self.feature_min, least.len().max(1));
        for (row, places) in rows.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
            for (((place, &value), &least), &greatest) in places.iter_mut().zip(row).zip(least).zip(greatest)
            {
                let spread = greatest - least;
                *place = if spread.abs() > NO_SPREAD {
                    (value - least) / spread * range + self.feature_min
                } else {
                    self.feature_min
                };
            }
        }
        Ok(())
    }
}

stored_model! {
    /// Optional lists of means and deviations, then whether each is used.
    StandardScaler "StandardScaler" [Custom or any]
    n_features: |model| model.mean.as_ref().map(Vec::len);
    is_fitted: |model| model.mean.is_some() && model.std.is_some();
}

impl StandardScaler {
    fn encode_fields(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        write_option(out, self.mean.as_ref(), |out, mean| out.f32s(mean))?;
        write_option(out, self.std.as_ref(), |out, std| out.f32s(std))?;
        out.bool(self.with_mean)?;
        out.bool(self.with_std)
    }

    fn decode_fields(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        read(input, |fields| {
            let [mean, std] = decode_pair(fields);
            Self { mean, std, with_mean: fields.bool(), with_std: fields.bool() }
        })
    }
}

stored_model! {
    /// Optional lists of least and greatest values, then the ends of the range.
    MinMaxScaler "MinMaxScaler" [Custom or any]
    n_features: |model| model.data_min.as_ref().map(Vec::len);
    is_fitted: |model| model.data_min.is_some() && model.data_max.is_some();
}

impl MinMaxScaler {
    fn encode_fields(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        write_option(out, self.data_min.as_ref(), |out, values| out.f32s(values))?;
        write_option(out, self.data_max.as_ref(), |out, values| out.f32s(values))?;
        out.f32(self.feature_min)?;
        out.f32(self.feature_max)
    }

    fn decode_fields(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        read(input, |fields| {
            let [data_min, data_max] = decode_pair(fields);
            Self { data_min, data_max, feature_min: fields.f32(), feature_max: fields.f32() }
        })
    }
}
