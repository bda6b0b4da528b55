//! The constants and structs of C.

use core::ffi::c_char;

use apr_models::OutputKind;

use crate::failure::{Failure, Status, usage};

/// Accept what the reference implementations accept, not only what the specifications allow.
pub const APR_COMPAT: u32 = 1;
/// Accept signed files without verifying their signatures.
pub const APR_ALLOW_UNVERIFIED: u32 = 2;
/// Require a valid signature by any key. It detects changes and does not show the origin of the file.
pub const APR_ANY_SIGNER: u32 = 4;

/// How a file is opened. Set all of it to zero, then `size`, then what is wanted.
#[repr(C)]
#[derive(Debug)]
pub struct apr_options {
    /// `sizeof(apr_options)`.
    pub size: usize,
    /// `APR_COMPAT` and the other flags, combined by `|`.
    pub flags: u32,
    /// Text of the public key that must have signed the file, or null.
    pub verify_key: *const c_char,
    /// Text of a recipient's secret key, or null.
    pub identity: *const c_char,
    /// The password that the file is encrypted under, or that of `identity`; or null.
    pub password: *const c_char,
}

/// Why the last call failed.
#[repr(C)]
#[derive(Debug)]
pub struct apr_error {
    /// The group.
    pub status: Status,
    /// Stable identifier, for example `st-offsets`; `apr explain CODE` explains it.
    pub code: *const c_char,
    /// What is wrong and where: one line of UTF-8.
    pub message: *const c_char,
    /// What to do next, or an empty string.
    pub help: *const c_char,
    /// Bytes from the start of the file, or `UINT64_MAX`.
    pub offset: u64,
}

/// A tensor. Its pointers are valid until the file is closed.
#[repr(C)]
#[derive(Debug)]
pub struct apr_tensor {
    /// The name in UTF-8, ended by a zero byte; it may contain others.
    pub name: *const c_char,
    /// Bytes of the name, without that zero byte.
    pub name_len: usize,
    /// Name of the type: `F32`, `BF16`, `Q4_K`, ...
    pub dtype: *const c_char,
    /// Number of dimensions.
    pub rank: usize,
    /// Dimensions, the slowest first.
    pub shape: *const u64,
    /// Bytes of the data.
    pub byte_len: u64,
    /// Offset of the data in the file, or `UINT64_MAX` if they are not stored there as they are, as in sealed files and sets of shards.
    pub file_offset: u64,
}

/// What a model is. Its pointers are valid until the model is freed.
#[repr(C)]
#[derive(Debug)]
pub struct apr_model_info {
    /// Type of the model: `LinearRegression`, `Pipeline`, ...
    pub name: *const c_char,
    /// Features of a row; 0 of models that take texts or rows of any length.
    pub n_features: usize,
    /// Number of classes; 0 of models that do not predict classes.
    pub n_classes: usize,
    /// Whether samples are texts.
    pub takes_texts: bool,
}

/// What is wanted of a model.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum apr_output {
    /// A value, a row of values, the index of a class, or 1 for an inlier and -1 for an outlier.
    Predictions = 0,
    /// The probability of each class.
    Probabilities = 1,
    /// A score for each class or pair of classes, or for how far a sample is from being an outlier.
    DecisionFunction = 2,
    /// The logarithm of the density, or the opposite of the anomaly score.
    ScoreSamples = 3,
    /// The transformed sample.
    Transformed = 4,
}

/// Results of a prediction. The library owns `values` until `apr_table_free`.
#[repr(C)]
#[derive(Debug)]
pub struct apr_table {
    /// Number of rows: one for each sample.
    pub n_rows: usize,
    /// Values of a row.
    pub n_columns: usize,
    /// `n_rows * n_columns` values, row after row.
    pub values: *mut f64,
}

/// The output with this number: C passes any integer.
pub(crate) fn output_kind(number: i32) -> Result<OutputKind, Failure> {
    const ALL: [(apr_output, OutputKind); 5] = [
        (apr_output::Predictions, OutputKind::Predictions),
        (apr_output::Probabilities, OutputKind::Probabilities),
        (apr_output::DecisionFunction, OutputKind::DecisionFunction),
        (apr_output::ScoreSamples, OutputKind::ScoreSamples),
        (apr_output::Transformed, OutputKind::Transformed),
    ];
    let known = ALL.into_iter().find(|&(output, _)| output as i32 == number);
    known.map(|(_, kind)| kind).ok_or_else(|| usage("no output has this number"))
}
