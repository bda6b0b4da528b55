//! The parts of a model, taken from its tensors.

use alloc::vec::Vec;

use super::Tensors;
use crate::error::{Error, ErrorKind};
use crate::matrix::Matrix;

/// Parts of a model that are looked up one after the other. Once one of them is missing, or refused, all others are 0 or empty:
/// as [`Fields`](crate::payload::fields::Fields) of a payload.
pub(crate) struct Parts<'t> {
    tensors: &'t Tensors,
    error: Option<Error>,
}

impl Tensors {
    /// Result of `make` on the parts that it reads. After an error, `make` continues with zeros and empty lists, which no
    /// caller gets
    /// to see.
    pub(crate) fn parts<'t, T>(&'t self, make: impl FnOnce(&mut Parts<'t>) -> T) -> Result<T, Error> {
        let mut parts = Parts { tensors: self, error: None };
        let made = make(&mut parts);
        match parts.error {
            None => Ok(made),
            Some(error) => Err(error),
        }
    }

    /// Refuses a file that names another model, and one with a tensor that is not one of these.
    pub(crate) fn expect_parts(&self, model: &'static str, names: &[&str]) -> Result<(), Error> {
        self.expect_model(model)?;
        self.expect_only(&|name| names.contains(&name))
    }
}

macro_rules! parts {
    ($($name:ident: $part:ty;)*) => {
        $(pub(crate) fn $name(&mut self, name: &str) -> $part {
            self.take(|tensors| tensors.$name(name))
        })*
    };
}

impl<'t> Parts<'t> {
    parts! {
        number: f32;
        integer: u64;
        optional_integer: Option<u64>;
        count: usize;
        optional_count: Option<usize>;
        vector: Vec<f32>;
        f64s: Vec<f64>;
        integers: Vec<u64>;
        counts: Vec<usize>;
    }

    pub(crate) fn matrix(&mut self, name: &str) -> Matrix {
        self.take_or(Matrix::none, |tensors| tensors.matrix(name))
    }

    /// A yes or no, which is stored as a number.
    pub(crate) fn is_set(&mut self, name: &str) -> bool {
        self.number(name) != 0.0
    }

    /// The one number of an F64 tensor.
    pub(crate) fn wide_number(&mut self, name: &'static str) -> f64 {
        match *self.f64s(name) {
            [value] => value,
            ref values => {
                let found = values.len();
                self.refuse(|| ErrorKind::PartLength { part: name, expected: 1, found });
                0.0
            }
        }
    }

    /// Whole numbers, of which those beyond 32 bits are as good as the greatest there is: a place in no list.
    pub(crate) fn places(&mut self, name: &str) -> Vec<u32> {
        let places = self.integers(name);
        places.into_iter().map(|place| u32::try_from(place).unwrap_or(u32::MAX)).collect()
    }

    /// A part that is found in another way.
    pub(crate) fn take<T: Default>(&mut self, find: impl FnOnce(&'t Tensors) -> Result<T, Error>) -> T {
        self.take_or(T::default, find)
    }

    /// As [`take`](Self::take) where nothing is not the default.
    pub(crate) fn take_or<T>(
        &mut self,
        nothing: impl FnOnce() -> T,
        find: impl FnOnce(&'t Tensors) -> Result<T, Error>,
    ) -> T {
        if self.error.is_none() {
            match find(self.tensors) {
                Ok(part) => return part,
                Err(error) => self.error = Some(error),
            }
        }
        nothing()
    }

    /// Checks that `holds` is true; `problem` describes the requirement.
    pub(crate) fn check(&mut self, part: &'static str, holds: bool, problem: &'static str) {
        if !holds {
            self.refuse(|| ErrorKind::PartInvalid { part, problem });
        }
    }

    fn refuse(&mut self, why: impl FnOnce() -> ErrorKind) {
        if self.error.is_none() {
            self.error = Some(why().into());
        }
    }
}
