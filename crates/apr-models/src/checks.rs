//! Checks of the parameters of a model.

use alloc::vec::Vec;

use crate::error::{Error, ErrorKind};

/// All parts, unless one of them is refused. `collect` does the same in several functions for each kind of part.
pub(crate) fn all<T, E>(parts: impl Iterator<Item = Result<T, E>>) -> Result<Vec<T>, E> {
    let mut all = Vec::with_capacity(parts.size_hint().0);
    for part in parts {
        all.push(part?);
    }
    Ok(all)
}

/// Proves that a part holds as many values as the other parts call for.
pub(crate) fn expect_len(part: &'static str, expected: usize, found: usize) -> Result<(), Error> {
    match expected == found {
        true => Ok(()),
        false => Err(ErrorKind::PartLength { part, expected, found }.into()),
    }
}

/// Proves that a part holds a table of `n_rows` and `n_cols`, both at least 1.
pub(crate) fn expect_table(
    part: &'static str,
    n_rows: usize,
    n_cols: usize,
    found: usize,
) -> Result<(), Error> {
    if n_rows == 0 || n_cols == 0 {
        return Err(ErrorKind::EmptyMatrix { n_rows, n_cols }.into());
    }
    match n_rows.checked_mul(n_cols) {
        Some(expected) => expect_len(part, expected, found),
        None => Err(ErrorKind::MatrixTooLarge { n_rows, n_cols }.into()),
    }
}

/// Proves that all values are finite.
pub(crate) fn expect_finite<T: Copy + Into<f64>>(part: &'static str, values: &[T]) -> Result<(), Error> {
    match values.iter().position(|&value| !value.into().is_finite()) {
        Some(idx) => Err(ErrorKind::PartNotFinite { part, idx }.into()),
        None => Ok(()),
    }
}

/// Checks that `holds` is true; `problem` describes the requirement.
pub(crate) fn expect(part: &'static str, holds: bool, problem: &'static str) -> Result<(), Error> {
    match holds {
        true => Ok(()),
        false => Err(ErrorKind::PartInvalid { part, problem }.into()),
    }
}

/// Most trees of an ensemble that is trained: more than any has, and their seeds fit into memory.
const MAX_ESTIMATORS: usize = 1_000_000;

/// Checks the number of trees of an ensemble.
pub(crate) fn expect_estimators(count: usize) -> Result<(), Error> {
    expect("n_estimators", (1..=MAX_ESTIMATORS).contains(&count), "1 to 1,000,000 are possible")
}

/// Proves that a number is finite and at least 0.
pub(crate) fn expect_not_negative(part: &'static str, value: f64) -> Result<(), Error> {
    expect(part, value.is_finite() && value >= 0.0, "a finite number of at least 0 is needed")
}

/// Proves that every value of samples is a finite number.
pub(crate) fn expect_finite_rows(rows: &[f32], n_cols: usize) -> Result<(), Error> {
    match rows.iter().position(|value| !value.is_finite()) {
        Some(idx) => {
            let n_cols = n_cols.max(1);
            Err(ErrorKind::FeatureNotFinite { row: idx / n_cols, col: idx % n_cols }.into())
        }
        None => Ok(()),
    }
}
