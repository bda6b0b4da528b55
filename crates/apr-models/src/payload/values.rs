//! Optional values, vectors and matrices in payloads.

use alloc::vec::Vec;

use apr_container::{Error, PayloadReader, PayloadWriter};

use crate::matrix::Matrix;

/// Shortest matrix: three numbers.
const MATRIX_LEN: u64 = 24;

pub(crate) fn write_option<'w, T: ?Sized>(
    out: &mut PayloadWriter<'w>,
    value: Option<&T>,
    write: impl FnOnce(&mut PayloadWriter<'w>, &T) -> Result<(), Error>,
) -> Result<(), Error> {
    out.option(value.is_some())?;
    value.map_or(Ok(()), |value| write(out, value))
}

pub(crate) fn read_option<'r, T>(
    input: &mut PayloadReader<'r>,
    read: impl FnOnce(&mut PayloadReader<'r>) -> Result<T, Error>,
) -> Result<Option<T>, Error> {
    input.option()?.then(|| read(input)).transpose()
}

pub(crate) fn write_optional_usize(out: &mut PayloadWriter<'_>, value: Option<usize>) -> Result<(), Error> {
    write_option(out, value.as_ref(), |out, &value| out.usize(value))
}

pub(crate) fn write_optional_u64(out: &mut PayloadWriter<'_>, value: Option<u64>) -> Result<(), Error> {
    write_option(out, value.as_ref(), |out, &value| out.u64(value))
}

pub(crate) fn read_optional_usize(input: &mut PayloadReader<'_>) -> Result<Option<usize>, Error> {
    read_option(input, PayloadReader::usize)
}

/// Values row by row, then the numbers of rows and columns.
pub(crate) fn write_matrix(out: &mut PayloadWriter<'_>, matrix: &Matrix) -> Result<(), Error> {
    out.f32s(matrix.as_slice())?;
    out.usize(matrix.n_rows())?;
    out.usize(matrix.n_cols())
}

pub(crate) fn read_matrix(input: &mut PayloadReader<'_>) -> Result<Matrix, Error> {
    let values = input.f32s()?;
    let (n_rows, n_cols) = (input.usize()?, input.usize()?);
    Ok(Matrix::from_vec(n_rows, n_cols, values)?)
}

pub(crate) fn write_matrices(out: &mut PayloadWriter<'_>, matrices: &[Matrix]) -> Result<(), Error> {
    out.usize(matrices.len())?;
    matrices.iter().try_for_each(|matrix| write_matrix(out, matrix))
}

pub(crate) fn read_matrices(input: &mut PayloadReader<'_>) -> Result<Vec<Matrix>, Error> {
    input.list(MATRIX_LEN, read_matrix)
}

pub(crate) fn skip_matrix(input: &mut PayloadReader<'_>) -> Result<(), Error> {
    skip_list(input, 4)?;
    input.skip(16)
}

/// Skips a list of elements of `element_len` bytes.
pub(crate) fn skip_list(input: &mut PayloadReader<'_>, element_len: u64) -> Result<(), Error> {
    let count = input.count(element_len)?;
    input.skip((count as u64).saturating_mul(element_len))
}

/// Passes over an optional value.
pub(crate) fn skip_option<'r>(
    input: &mut PayloadReader<'r>,
    skip: impl FnOnce(&mut PayloadReader<'r>) -> Result<(), Error>,
) -> Result<(), Error> {
    if input.option()? { skip(input) } else { Ok(()) }
}
