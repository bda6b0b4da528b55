//! Steps with at most two parameters per column: scalers, activations, distances from centroids.

use apr_container::{PayloadReader, PayloadWriter};

use crate::checks;
use crate::error::Error;
use crate::kernels::activations::{relu, sigmoid};
use crate::kernels::products::squared_distance;
use crate::kernels::vectors::Vectors;
use crate::payload::values::{read_option, write_option};
use crate::pipeline::reals::{Reals, with_slice};
use crate::pipeline::rows::Block;

/// `(x - shift) / divisor`, column by column: scikit-learn's `StandardScaler`, and what `PCA` does last when it whitens.
#[derive(Clone, Debug, PartialEq)]
pub struct ShiftDivide {
    shift: Option<Reals>,
    divisor: Option<Reals>,
}

impl ShiftDivide {
    /// A number for each column in either list.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartNotFinite`](crate::ErrorKind::PartNotFinite),
    /// [`ErrorKind::PartInvalid`](crate::ErrorKind::PartInvalid) for a divisor of 0.
    pub fn new(shift: Option<Reals>, divisor: Option<Reals>) -> Result<Self, Error> {
        if let Some(shift) = &shift {
            shift.expect_finite("shift")?;
        }
        if let Some(divisor) = &divisor {
            divisor.expect_finite("divisor")?;
            checks::expect("divisor", divisor.iter().all(|value| value != 0.0), "must not be 0")?;
        }
        Ok(Self { shift, divisor })
    }

    pub(crate) fn n_outputs(&self, width: usize) -> Result<usize, Error> {
        for (part, values) in [("shift", &self.shift), ("divisor", &self.divisor)] {
            if let Some(values) = values {
                values.expect_len(part, width)?;
            }
        }
        Ok(width)
    }

    /// Whether a 0 stays one, so that sparse rows can stay sparse.
    pub(crate) const fn keeps_zeros(&self) -> bool {
        self.shift.is_none()
    }

    pub(crate) fn run(&self, rows: &mut Block<'_>) {
        if let Some(shift) = &self.shift {
            with_slice!(shift, shift => change(rows, shift, |x, by| x - by));
        }
        if let Some(divisor) = &self.divisor {
            with_slice!(divisor, divisor => change(rows, divisor, |x, by| x / by));
        }
    }

    pub(crate) fn encode(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        write_option(out, self.shift.as_ref(), |out, shift| shift.encode(out))?;
        write_option(out, self.divisor.as_ref(), |out, divisor| divisor.encode(out))
    }

    pub(crate) fn decode(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let shift = read_option(input, Reals::decode)?;
        Ok(Self::new(shift, read_option(input, Reals::decode)?)?)
    }
}

/// `x * scale + add`, column by column, then perhaps held between two bounds: scikit-learn's `MinMaxScaler`.
#[derive(Clone, Debug, PartialEq)]
pub struct ScaleAdd {
    scale: Reals,
    add: Reals,
    clip: Option<(f64, f64)>,
}

impl ScaleAdd {
    /// Both lists have a value for each column. NaN stays NaN, also with bounds.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartLength`](crate::ErrorKind::PartLength) for lists of unequal length,
    /// [`ErrorKind::PartNotFinite`](crate::ErrorKind::PartNotFinite),
    /// [`ErrorKind::PartInvalid`](crate::ErrorKind::PartInvalid) for bounds out of order.
    pub fn new(scale: Reals, add: Reals, clip: Option<(f64, f64)>) -> Result<Self, Error> {
        scale.expect_finite("scale")?;
        add.expect_finite("add")?;
        add.expect_len("add", scale.len())?;
        checks::expect(
            "clip",
            clip.is_none_or(|(low, high)| low <= high),
            "the low bound is above the high one",
        )?;
        Ok(Self { scale, add, clip })
    }

    pub(crate) fn n_outputs(&self, width: usize) -> Result<usize, Error> {
        self.scale.expect_len("scale", width)?;
        Ok(width)
    }

    /// Whether a 0 stays one, so that sparse rows can stay sparse.
    pub(crate) fn keeps_zeros(&self) -> bool {
        self.clip.is_none() && self.add.iter().all(|value| value == 0.0)
    }

    pub(crate) fn run(&self, rows: &mut Block<'_>) {
        with_slice!(&self.scale, scale => change(rows, scale, |x, by| x * by));
        with_slice!(&self.add, add => change(rows, add, |x, by| x + by));
        if let Some((low, high)) = self.clip {
            for value in rows.values_mut() {
                // Not `clamp`, whose bounds may panic; not `max`, which drops what is not a number.
                *value = match *value {
                    x if x < low => low,
                    x if x > high => high,
                    x => x,
                };
            }
        }
    }

    pub(crate) fn encode(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        self.scale.encode(out)?;
        self.add.encode(out)?;
        write_option(out, self.clip.as_ref(), |out, &(low, high)| {
            out.f64(low)?;
            out.f64(high)
        })
    }

    pub(crate) fn decode(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let (scale, add) = (Reals::decode(input)?, Reals::decode(input)?);
        let clip = read_option(input, |input| Ok((input.f64()?, input.f64()?)))?;
        Ok(Self::new(scale, add, clip)?)
    }
}

/// A function of each value, between the layers of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepActivation {
    /// 0 for negative values.
    Relu,
    /// The hyperbolic tangent.
    Tanh,
    /// `1 / (1 + exp(-x))`.
    Logistic,
}

impl StepActivation {
    const ALL: [Self; 3] = [Self::Relu, Self::Tanh, Self::Logistic];

    /// As many as before, whatever the width.
    pub(crate) const fn n_outputs(self, width: usize) -> Result<usize, Error> {
        Ok(width)
    }

    pub(crate) fn run(self, rows: &mut Block<'_>) {
        let values = rows.values_mut().iter_mut();
        // A loop for each, which the compiler vectorizes where it can.
        match self {
            Self::Relu => values.for_each(|value| *value = relu(*value)),
            Self::Tanh => values.for_each(|value| *value = libm::tanh(*value)),
            Self::Logistic => values.for_each(|value| *value = sigmoid(*value)),
        }
    }

    pub(crate) fn encode(self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        out.variant(self as u32)
    }

    pub(crate) fn decode(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let variant = input.variant(Self::ALL.len() as u32)?;
        Ok(Self::ALL.get(variant as usize).copied().unwrap_or(Self::Relu))
    }
}

/// Euclidean distances from centres: scikit-learn's `KMeans`.
#[derive(Clone, Debug, PartialEq)]
pub struct CentroidDistances {
    n_centres: usize,
    centres: Reals,
}

impl CentroidDistances {
    /// A row for each centre, one after the other.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::EmptyMatrix`](crate::ErrorKind::EmptyMatrix),
    /// [`ErrorKind::PartLength`](crate::ErrorKind::PartLength),
    /// [`ErrorKind::PartNotFinite`](crate::ErrorKind::PartNotFinite).
    pub fn new(n_centres: usize, centres: Reals) -> Result<Self, Error> {
        let n_cols = centres.len().checked_div(n_centres).unwrap_or(0);
        checks::expect_table("centres", n_centres, n_cols, centres.len())?;
        centres.expect_finite("centres")?;
        Ok(Self { n_centres, centres })
    }

    pub(crate) fn n_outputs(&self, width: usize) -> Result<usize, Error> {
        checks::expect_table("centres", self.n_centres, width, self.centres.len())?;
        Ok(self.n_centres)
    }

    pub(crate) fn run(&self, rows: &mut Block<'_>) {
        let width = rows.width().max(1);
        with_slice!(&self.centres, centres => rows.replace_rows(self.n_centres, |row, out| {
            for (place, centre) in out.iter_mut().zip(centres.chunks_exact(width)) {
                *place = libm::sqrt(squared_distance(row, centre));
            }
        }));
    }

    pub(crate) fn encode(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        out.usize(self.n_centres)?;
        self.centres.encode(out)
    }

    pub(crate) fn decode(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let n_centres = input.usize()?;
        Ok(Self::new(n_centres, Reals::decode(input)?)?)
    }
}

/// Changes each value by the one that `list` has for its column.
fn change<T: Copy + Into<f64>>(rows: &mut Block<'_>, list: &[T], change: impl Fn(f64, f64) -> f64) {
    if let Some(rows) = rows.sparse_rows() {
        rows.for_each_row_mut(|columns, values| {
            for (value, &column) in values.iter_mut().zip(columns) {
                if let Some(&by) = list.get(column as usize) {
                    *value = change(*value, by.into());
                }
            }
        });
        return;
    }
    let values = rows.values_mut();
    match Vectors::detect() {
        Some(vectors) => vectors.run(
            #[inline(always)]
            || change_rows(values, list, change),
        ),
        None => change_rows(values, list, change),
    }
}

#[inline(always)]
fn change_rows<T: Copy + Into<f64>>(values: &mut [f64], list: &[T], change: impl Fn(f64, f64) -> f64) {
    for row in values.chunks_exact_mut(list.len().max(1)) {
        for (value, &by) in row.iter_mut().zip(list) {
            *value = change(*value, by.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;
    use crate::sparse::SparseRows;

    fn run(width: usize, rows: &[f64], work: impl FnOnce(&mut Block<'_>)) -> Vec<f64> {
        let mut values = [rows, &[0.0; 8]].concat();
        let mut spare = vec![f64::NAN; values.len()];
        let mut block = Block::dense(rows.len() / width, width, &mut values, &mut spare);
        work(&mut block);
        block.values().to_vec()
    }

    #[test]
    fn scalers_scale_and_bounds_hold() {
        let standard =
            ShiftDivide::new(Some(vec![1.0_f64, 0.1].into()), Some(vec![2.0_f64, 0.5].into())).unwrap();
        assert_eq!(run(2, &[3.0, 0.1, 1.0, 1.1], |rows| standard.run(rows)), [1.0, 0.0, 0.0, 2.0]);
        let scale =
            ScaleAdd::new(vec![0.5_f64, 2.0].into(), vec![0.0_f64, 1.0].into(), Some((0.0, 1.0))).unwrap();
        let found = run(2, &[1.0, -0.25, -3.0, f64::NAN], |rows| scale.run(rows));
        assert_eq!(&found[..3], [0.5, 0.5, 0.0]);
        assert!(found[3].is_nan());
    }

    #[test]
    fn sparse_rows_are_scaled_where_they_have_values() {
        let step = ShiftDivide::new(None, Some(vec![1.0_f64, 4.0, 0.1].into())).unwrap();
        assert!(step.keeps_zeros());
        let mut rows = SparseRows::new(3);
        rows.push(1, 2.0);
        rows.push(2, 1.0);
        rows.end_row();
        step.run(&mut Block::sparse(&mut rows, &mut [], &mut []));
        assert_eq!(rows.values(), [0.5, 10.0]);
    }

    #[test]
    fn activations_and_distances() {
        let row = [-1.0, 0.0, 2.0];
        assert_eq!(run(3, &row, |rows| StepActivation::Relu.run(rows)), [0.0, 0.0, 2.0]);
        assert_eq!(run(3, &row, |rows| StepActivation::Tanh.run(rows))[1], 0.0);
        assert_eq!(run(3, &row, |rows| StepActivation::Logistic.run(rows))[1], 0.5);
        let centres = CentroidDistances::new(3, vec![0.0_f32, 0.0, 3.0, 4.0, -3.0, 0.0].into()).unwrap();
        assert_eq!(run(2, &[0.0, 0.0, 3.0, 0.0], |rows| centres.run(rows)), [0.0, 5.0, 3.0, 3.0, 4.0, 6.0]);
    }

    #[test]
    fn parts_that_cannot_be_are_refused() {
        let list = |values: &[f64]| Reals::from(values);
        let code = |error: Error| error.code();
        assert_eq!(ShiftDivide::new(None, Some(list(&[1.0, 0.0]))).map_err(code), Err("am-part"));
        assert_eq!(ShiftDivide::new(Some(list(&[f64::NAN])), None).map_err(code), Err("am-part-not-finite"));
        assert_eq!(
            ShiftDivide::new(Some(list(&[1.0])), None).unwrap().n_outputs(2).map_err(code),
            Err("am-part-length")
        );
        assert_eq!(ScaleAdd::new(list(&[1.0]), list(&[]), None).map_err(code), Err("am-part-length"));
        for clip in [(1.0, 0.0), (f64::NAN, 1.0), (0.0, f64::NAN)] {
            assert_eq!(ScaleAdd::new(list(&[1.0]), list(&[1.0]), Some(clip)).map_err(code), Err("am-part"));
        }
        assert_eq!(CentroidDistances::new(0, list(&[])).map_err(code), Err("am-empty-matrix"));
        assert_eq!(CentroidDistances::new(2, list(&[1.0, 2.0, 3.0])).map_err(code), Err("am-part-length"));
        assert_eq!(CentroidDistances::new(usize::MAX, list(&[1.0])).map_err(code), Err("am-empty-matrix"));
        assert_eq!(
            CentroidDistances::new(2, list(&[1.0; 4])).unwrap().n_outputs(3).map_err(code),
            Err("am-part-length")
        );
    }
}
