//! Rows of little-endian 32-bit floats.

use apr_models::Accepts;

use crate::categories::Takes;
use crate::json::columns;
use crate::refusal::Refusal;

const HELP: &str = "the body is rows of 32-bit little-endian floats, one row after the other";

/// Reads the rows of a body one after the other.
#[derive(Debug)]
pub(crate) struct RawRows<'b> {
    rows: core::slice::ChunksExact<'b, u8>,
    n_columns: usize,
    n_rows: usize,
}

impl<'b> RawRows<'b> {
    /// Divides a body into rows, with the columns that the request states and the model takes.
    ///
    /// # Errors
    ///
    /// If the number of columns is unknown, the request contradicts the model, or the body is not a whole number of rows.
    pub(crate) fn new(
        body: &'b [u8],
        declared: Option<usize>,
        expected: Option<usize>,
    ) -> Result<Self, Refusal> {
        let n_columns = match (declared, expected) {
            (Some(found), Some(expected)) if found != expected => return Err(columns(expected, found)),
            (Some(n_columns), _) | (None, Some(n_columns)) => n_columns,
            (None, None) => {
                let what = "the number of columns is unknown";
                return Err(Refusal::of_body("sv-raw", what, "add ?columns=N to the address"));
            }
        };
        let row_len = n_columns.checked_mul(4).filter(|&len| len > 0);
        let Some(row_len) = row_len.filter(|len| body.len().is_multiple_of(*len)) else {
            let what =
                format_args!("{} bytes are no rows of {n_columns} 32-bit floats", body.len()).to_string();
            return Err(Refusal::of_body("sv-raw", what, HELP));
        };
        Ok(Self { rows: body.chunks_exact(row_len), n_columns, n_rows: 0 })
    }

    /// Values of a row.
    pub(crate) fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// Appends the values of the next row; `false` if there is none.
    ///
    /// # Errors
    ///
    /// If a number is none that the model takes.
    pub(crate) fn next_numbers(&mut self, takes: Takes<'_>, out: &mut Vec<f32>) -> Result<bool, Refusal> {
        let Some(row) = self.rows.next() else { return Ok(false) };
        let begin = out.len();
        out.extend(row.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap_or_default())));
        let is_refused = |value: &f32| match takes.accepts {
            Accepts::Finite => !value.is_finite(),
            Accepts::Missing => value.is_infinite(),
            Accepts::Anything => false,
        };
        let found = out.get(begin..).unwrap_or_default();
        if let Some(column) = found.iter().position(is_refused) {
            let what = "not a finite number, and the model takes none such";
            let place = format_args!("row {}, column {column}", self.n_rows).to_string();
            return Err(Refusal::of_body("sv-number", what, "GET /model says what the model takes").at(place));
        }
        if let Some(categories) = takes.categories {
            let place = |(column, refusal): (usize, Refusal)| {
                refusal.at(format_args!("row {}, column {column}", self.n_rows))
            };
            categories.check_numbers(found).map_err(place)?;
        }
        self.n_rows += 1;
        Ok(true)
    }
}
