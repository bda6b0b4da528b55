//! The fields of a payload, one after the other.

use alloc::vec::Vec;

use apr_container::{Error, PayloadReader};

use crate::matrix::Matrix;
use crate::payload::values::{read_matrices, read_matrix};

/// Fields of a payload in their order. Once one of them cannot be read, or is refused, all others are 0 or empty and nothing
/// more is read: a caller that reads ten fields checks for an error once, after the last.
pub(crate) struct Fields<'f, 'r> {
    input: &'f mut PayloadReader<'r>,
    error: Option<Error>,
}

/// Result of `make` on the fields that it reads. After an error, `make` continues with zeros and empty lists, which no caller
/// sees: lengths and indices are checked afterwards or by [`Fields::check`].
pub(crate) fn read<'r, T>(
    input: &mut PayloadReader<'r>,
    make: impl FnOnce(&mut Fields<'_, 'r>) -> T,
) -> Result<T, Error> {
    let mut fields = Fields { input, error: None };
    let made = make(&mut fields);
    match fields.error {
        None => Ok(made),
        Some(error) => Err(error),
    }
}

macro_rules! fields {
    ($($name:ident: $field:ty;)*) => {
        $(pub(crate) fn $name(&mut self) -> $field {
            self.take(PayloadReader::$name)
        })*
    };
}

macro_rules! optional_fields {
    ($($name:ident: $field:ty = $read:ident;)*) => {
        $(pub(crate) fn $name(&mut self) -> Option<$field> {
            if self.option() { Some(self.$read()) } else { None }
        })*
    };
}

impl<'r> Fields<'_, 'r> {
    fields! {
        bool: bool;
        option: bool;
        u64: u64;
        usize: usize;
        f32: f32;
        f64: f64;
        bytes: Vec<u8>;
        usizes: Vec<usize>;
        f32s: Vec<f32>;
        f64s: Vec<f64>;
        i32s: Vec<i32>;
        u32s: Vec<u32>;
        u64s: Vec<u64>;
    }

    optional_fields! {
        optional_u64: u64 = u64;
        optional_usize: usize = usize;
        optional_f32: f32 = f32;
        optional_f32s: Vec<f32> = f32s;
        optional_i32s: Vec<i32> = i32s;
        optional_usizes: Vec<usize> = usizes;
        optional_matrix: Matrix = matrix;
        optional_matrices: Vec<Matrix> = matrices;
    }

    /// The number of an alternative below `n_variants`.
    pub(crate) fn variant(&mut self, n_variants: u32) -> u32 {
        self.take(|input| input.variant(n_variants))
    }

    pub(crate) fn matrix(&mut self) -> Matrix {
        self.take_or(Matrix::none, read_matrix)
    }

    pub(crate) fn matrices(&mut self) -> Vec<Matrix> {
        self.take(read_matrices)
    }

    /// A matrix of values that were read.
    pub(crate) fn matrix_of(&mut self, n_rows: usize, n_cols: usize, values: Vec<f32>) -> Matrix {
        self.take_or(Matrix::none, |_| Ok(Matrix::from_vec(n_rows, n_cols, values)?))
    }

    /// Fields that are read in another way.
    pub(crate) fn take<T: Default>(
        &mut self,
        read: impl FnOnce(&mut PayloadReader<'r>) -> Result<T, Error>,
    ) -> T {
        self.take_or(T::default, read)
    }

    /// As [`take`](Self::take) where nothing is not the default.
    pub(crate) fn take_or<T>(
        &mut self,
        nothing: impl FnOnce() -> T,
        read: impl FnOnce(&mut PayloadReader<'r>) -> Result<T, Error>,
    ) -> T {
        if self.error.is_none() {
            match read(self.input) {
                Ok(field) => return field,
                Err(error) => self.error = Some(error),
            }
        }
        nothing()
    }

    /// Refuses the fields if this is not so.
    pub(crate) fn check(&mut self, holds: bool, what: &'static str) {
        if !holds && self.error.is_none() {
            self.error = Some(self.input.invalid(what));
        }
    }
}
