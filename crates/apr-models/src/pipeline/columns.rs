//! The step of preprocessing: columns that are chosen, filled and compared.

use alloc::vec::Vec;

use apr_container::{PayloadReader, PayloadWriter};

use crate::checks;
use crate::error::{Error, ErrorKind};
use crate::matrix::Matrix;
use crate::pipeline::rows::Block;

/// In lists of numbers: there is none.
const NONE: f64 = f64::INFINITY;

/// An output of [`Columns`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Column {
    /// The column before the step.
    pub column: u32,
    /// What NaN is replaced by; it stays NaN without.
    pub fill: Option<f64>,
    /// With it the output is 1 where the value, after `fill`, equals this one, and 0 elsewhere.
    pub equals: Option<f64>,
}

/// Columns chosen one by one, missing values filled, categories as columns of 0 and 1: scikit-learn's `SimpleImputer`, its
/// `OneHotEncoder` of categories that are numbers, and its `ColumnTransformer` of the two.
///
/// ```
/// use apr_models::{
///     Accepts, Column, Columns, Head, Input, Link, OutputShape, Pipeline, Samples, Step, ValueKind,
/// };
///
/// // The first column, its missing values replaced by 7; then whether the second one is 0, and whether it is 2.
/// let category = |number| Column { column: 1, fill: None, equals: Some(number) };
/// let step = Columns::new(&[Column { column: 0, fill: Some(7.0), equals: None }, category(0.0), category(2.0)])?;
/// let model = Pipeline::from_parts(
///     Input::Numbers { n_features: 2, accepts: Accepts::Missing },
///     vec![Step::Columns(step)],
///     Head::Values { kind: ValueKind::Transformed, link: Link::None, shape: OutputShape::Matrix },
/// )?;
/// let mut out = [0.0; 6];
/// model.values_into(Samples::F64(&[1.5, 2.0, f64::NAN, 9.0]), &mut out)?;
/// assert_eq!(out, [1.5, 0.0, 1.0, 7.0, 0.0, 0.0]);
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    columns: Vec<u32>,
    /// [`NONE`] where nothing is filled.
    fills: Vec<f64>,
    /// [`NONE`] where nothing is compared.
    equals: Vec<f64>,
}

impl Columns {
    /// A column for each output.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::EmptyMatrix`] without an output, [`ErrorKind::PartInvalid`] for values of a column that are not finite.
    pub fn new(outputs: &[Column]) -> Result<Self, Error> {
        let number = |value: Option<f64>| match value {
            // Infinite numbers are no values; as such they would be none.
            Some(value) if value.is_infinite() => f64::NAN,
            value => value.unwrap_or(NONE),
        };
        Self::from_lists(
            outputs.iter().map(|output| output.column).collect(),
            outputs.iter().map(|output| number(output.fill)).collect(),
            outputs.iter().map(|output| number(output.equals)).collect(),
        )
    }

    fn from_lists(columns: Vec<u32>, fills: Vec<f64>, equals: Vec<f64>) -> Result<Self, Error> {
        let n_columns = columns.len();
        checks::expect_table(COLUMNS, 1, n_columns, fills.len())?;
        checks::expect_len(COLUMNS, n_columns, equals.len())?;
        // All but what is not a number and negative infinity.
        let are_numbers = fills.iter().chain(&equals).all(|&value| value > f64::NEG_INFINITY);
        checks::expect(COLUMNS, are_numbers, "must be filled and compared with finite numbers")?;
        Ok(Self { columns, fills, equals })
    }

    /// Outputs of a row.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.columns.len()
    }

    /// Never: there is at least one output.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// The outputs in order.
    pub fn outputs(&self) -> impl ExactSizeIterator<Item = Column> {
        let number = |value: f64| (value != NONE).then_some(value);
        let lists = self.columns.iter().zip(&self.fills).zip(&self.equals);
        lists.map(move |((&column, &fill), &equals)| Column {
            column,
            fill: number(fill),
            equals: number(equals),
        })
    }

    /// The outputs of samples, rounded: `[n_samples, n_outputs]` of `x` (`[n_samples, n_features]`, NaN where values are missing).
    /// What a model learns from that will follow the step.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`] for a column that samples do not have, [`ErrorKind::MatrixTooLarge`] if memory lacks.
    pub fn apply(&self, x: &Matrix) -> Result<Matrix, Error> {
        let (n_rows, n_cols) = (x.n_rows(), self.n_outputs(x.n_cols())?);
        let too_large = ErrorKind::MatrixTooLarge { n_rows, n_cols };
        let mut values: Vec<f32> = Vec::new();
        let len = n_rows.checked_mul(n_cols).filter(|&len| values.try_reserve_exact(len).is_ok());
        len.ok_or(too_large)?;
        let (mut wide, mut out) = (Vec::new(), alloc::vec![0.0; n_cols]);
        for row in x.rows() {
            wide.clear();
            wide.extend(row.iter().map(|&value| f64::from(value)));
            self.write(&wide, &mut out);
            values.extend(out.iter().map(|&value| value as f32));
        }
        Matrix::from_vec(n_rows, n_cols, values)
    }

    pub(crate) fn n_outputs(&self, width: usize) -> Result<usize, Error> {
        let are_there = self.columns.iter().all(|&column| (column as usize) < width);
        checks::expect(COLUMNS, are_there, "must be columns of the rows")?;
        Ok(self.columns.len())
    }

    pub(crate) fn run(&self, rows: &mut Block<'_>) {
        rows.replace_rows(self.columns.len(), |row, out| self.write(row, out));
    }

    fn write(&self, row: &[f64], out: &mut [f64]) {
        let lists = self.columns.iter().zip(&self.fills).zip(&self.equals);
        for (place, ((&column, &fill), &equals)) in out.iter_mut().zip(lists) {
            let mut value = row.get(column as usize).copied().unwrap_or_default();
            if value.is_nan() && fill != NONE {
                value = fill;
            }
            *place = if equals == NONE { value } else { f64::from(u8::from(value == equals)) };
        }
    }

    pub(crate) fn encode(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        out.u32s(&self.columns)?;
        out.f64s(&self.fills)?;
        out.f64s(&self.equals)
    }

    pub(crate) fn decode(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let (columns, fills) = (input.u32s()?, input.f64s()?);
        Ok(Self::from_lists(columns, fills, input.f64s()?)?)
    }
}

const COLUMNS: &str = "columns";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_cannot_be_are_refused() {
        let column = |column, fill, equals| Column { column, fill, equals };
        assert_eq!(Columns::new(&[]).unwrap_err().code(), "am-empty-matrix");
        for broken in [
            column(0, Some(f64::NAN), None),
            column(0, Some(f64::INFINITY), None),
            column(0, None, Some(f64::NEG_INFINITY)),
        ] {
            assert_eq!(Columns::new(&[column(0, None, None), broken]).unwrap_err().code(), "am-part");
        }
        let step = Columns::new(&[column(2, None, Some(1.0))]).unwrap();
        assert_eq!((step.n_outputs(3).unwrap(), step.n_outputs(2).unwrap_err().code()), (1, "am-part"));
        assert_eq!(step.outputs().collect::<Vec<_>>(), [column(2, None, Some(1.0))]);
    }
}
