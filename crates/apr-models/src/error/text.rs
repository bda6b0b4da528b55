//! Messages of errors.

use core::fmt;

use json_scan::Quoted;

use super::{ErrorKind, Operation};

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyMatrix { n_rows, n_cols } => {
                write!(f, "matrix of {n_rows} rows and {n_cols} columns: at least one of each is needed")
            }
            Self::MatrixTooLarge { n_rows, n_cols } => {
                write!(f, "matrix of {n_rows} rows and {n_cols} columns is too large for this machine")
            }
            Self::MatrixLength { n_rows, n_cols, given } => {
                // Saturating: a caller can build this kind with any numbers.
                let needed = n_rows.saturating_mul(*n_cols);
                write!(f, "matrix of {n_rows} rows and {n_cols} columns needs {needed} values, {given} given")
            }
            Self::TargetLength { n_rows, given } => {
                write!(f, "{n_rows} samples need as many targets, {given} given")
            }
            Self::FeatureNotFinite { row, col } => {
                write!(f, "feature in row {row}, column {col} is not a finite number: remove the row or replace the value")
            }
            Self::BeyondSingle { row, col, step } => write!(
                f,
                "value in row {row}, column {col} of what step {step} gets is beyond the range of 32-bit floats, which its \
                 trees compare: remove the row or replace the value"
            ),
            Self::TargetNotFinite { row } => {
                write!(f, "target in row {row} is not a finite number: remove the row or replace the value")
            }
            // Formatting floats takes 12 kB, and the npm package does nothing else that needs it.
            #[cfg(apr_small)]
            Self::OutOfRange { parameter, .. } => {
                write!(f, "{parameter} is outside the range of 32-bit floats: scale the features or the target")
            }
            #[cfg(not(apr_small))]
            Self::OutOfRange { parameter, value } => {
                write!(f, "{parameter} is {value:e}, outside the range of 32-bit floats: scale the features or the target")
            }
            // The one sentence users of the original interface already search for.
            Self::NotFitted { operation: Operation::Save } => {
                f.write_str("Cannot save unfitted model. Call fit() first.")
            }
            Self::NotFitted { operation: Operation::Predict } => {
                f.write_str("cannot predict with an unfitted model: call fit() first")
            }
            Self::FeatureCount { expected, found } => {
                write!(f, "model of {expected} features, samples of {found}")
            }
            Self::NoCoefficients => f.write_str("model without coefficients: at least one feature is needed"),
            Self::WeightNotFinite { parameter } => write!(f, "{parameter} is not a finite number"),
            Self::MissingTensor => f.write_str("tensor that this model needs is missing"),
            Self::UnexpectedTensor => {
                f.write_str("tensor does not belong to this model: the file holds another one, or more than one")
            }
            Self::WrongDtype { found } => write!(f, "tensor holds {found}, not the F32 of this model"),
            Self::WrongRank { found } => write!(f, "tensor has {found} dimensions, not 1"),
            Self::InterceptLength { found } => write!(f, "intercept has {found} values instead of 1"),
            Self::TensorShape { expected, found } => {
                f.write_str("tensor has the shape [")?;
                for (idx, dim) in found.iter().enumerate() {
                    write!(f, "{}{dim}", if idx == 0 { "" } else { ", " })?;
                }
                write!(f, "], {expected} is needed")
            }
            Self::TensorInteger => f.write_str("tensor does not hold whole numbers"),
            Self::OtherModel { expected, found } => {
                write!(f, "file holds {}, not a model of type {expected}", Quoted(found))
            }
            Self::UnknownModel => f.write_str(
                "nothing says which model this is, and it is none of those known here: name the model to load it as",
            ),
            Self::NoPredictions { model } => write!(f, "a {model} predicts nothing for new samples"),
            Self::NotBuiltIn { what } => write!(f, "this program was built without {what}"),
            Self::NoSuchOutput { output } => write!(f, "this model gives no {output}"),
            Self::PartLength { part, expected, found } => {
                write!(f, "{part}: {expected} values needed, {found} given")
            }
            Self::PartInvalid { part, problem } => write!(f, "{part}: {problem}"),
            Self::PartNotFinite { part, idx } => write!(f, "{part}: value {idx} is not a finite number"),
            Self::InputLength { n_rows, given } => {
                write!(f, "{given} values cannot be {n_rows} samples, one for each place of the results")
            }
            Self::OutputLength { needed, given } => {
                write!(f, "{needed} results need a slice of as many places, it has {given}")
            }
            Self::Label { row, problem } => write!(f, "class of row {row}: {problem}"),
            Self::TooFewSamples { needed, given } => {
                write!(f, "{given} samples, at least {needed} are needed")
            }
            Self::Layout { found, known } => write!(
                f,
                "payload layout {found}, this version reads up to {known}: update the program that reads it"
            ),
            Self::Form { found, known } => write!(
                f,
                "form {found} of this model type, this version reads 1 to {known}: update the program that reads it"
            ),
            Self::OtherForm { found, expected } => {
                write!(f, "form {found} of this model type, the model asked for has form {expected}")
            }
            Self::BareNumbers { count } => write!(
                f,
                "payload of {count} bare numbers, not a model of this type: load it as a list of numbers"
            ),
            Self::Diverged { epoch } => write!(
                f,
                "training diverged in epoch {epoch}: lower the learning rate, or scale the features and targets"
            ),
            Self::UnknownItem { id } => write!(f, "no item has the id {}", Quoted(id)),
            Self::NoWeightMatrices { model } => {
                write!(f, "a {model} has no matrices of weights: there is nothing to quantize")
            }
            Self::NotWritable { quant_type } => {
                let name = quant_type.name();
                write!(f, "nothing is quantized to {name} here: Q8_0 and Q4_0 are known")
            }
            Self::Container(error) => error.fmt(f),
            Self::Format(error) => error.fmt(f),
            #[cfg(feature = "quantize")]
            Self::Quant(error) => error.fmt(f),
            #[cfg(feature = "std")]
            Self::File(error) => {
                error.fmt(f)?;
                match error.io_error() {
                    Some(io) => write!(f, ": {io}"),
                    None => Ok(()),
                }
            }
        }
    }
}
