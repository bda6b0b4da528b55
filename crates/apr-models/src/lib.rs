//! Classic machine-learning models that train once and predict anywhere.
//!
//! [`LinearRegression`] is ordinary least squares on `f32` data: trained in `f64` by orthogonal factorizations,
//! exact about collinear and under-determined input, saved as a [safetensors](st_core) file of two tensors that any
//! reader of that format understands.
//!
//! ```
//! use apr_models::{LinearRegression, Matrix, Vector};
//!
//! // Four samples with two features each; y = 1 + 2a + 3b.
//! let x = Matrix::from_vec(4, 2, vec![1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 2.0, 1.0])?;
//! let y = Vector::from_vec(vec![3.0, 4.0, 6.0, 8.0]);
//!
//! let mut model = LinearRegression::new();
//! model.fit(&x, &y)?;
//! assert!((model.coefficients()[0] - 2.0).abs() < 1e-6);
//! assert!((model.intercept() - 1.0).abs() < 1e-6);
//!
//! let file = model.to_safetensors()?;
//! assert_eq!(LinearRegression::from_safetensors(&file)?, model);
//! # Ok::<(), apr_models::Error>(())
//! ```
//!
//! # Features
//!
//! - `std` (default): `LinearRegression::save_safetensors` and `LinearRegression::load_safetensors`. A save replaces
//!   the old file completely or leaves it untouched.
//!
//! Without it the crate needs only `alloc`, and everything but those two methods stays. Both builds compute the same
//! bits: the only function beyond `+ - * /` is the square root, which IEEE 754 rounds correctly.
//!
//! # Untrusted input
//!
//! A model file is checked completely before a model exists: the format (strictly), the names, types and shapes of its
//! tensors, and that every weight is a finite number. Nothing a file contains causes a panic, and memory stays
//! proportional to its size. Values given to [`LinearRegression::fit`] are checked too. Only
//! [`LinearRegression::predict`] and [`LinearRegression::score`] panic, and say when; their `try_` twins do not.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod error;
mod least_squares;
mod linear_regression;
mod matrix;
mod vector;

pub use crate::error::{Error, ErrorKind, Operation, Parameter};
pub use crate::linear_regression::LinearRegression;
pub use crate::matrix::{Matrix, Rows};
pub use crate::vector::Vector;
