//! Kinds of errors in data, models and files.

mod text;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use json_scan::Quoted;
use st_core::Dtype;

use crate::quant_type::QuantType;

/// Why an operation was refused, with the tensor concerned if a file was read.
///
/// One pointer long: results are returned from every step of a decoder, and what fails is rare.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    tensor: Option<Box<str>>,
}

impl Error {
    /// What was wrong.
    #[must_use]
    pub const fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// Name of the tensor concerned.
    #[must_use]
    pub fn tensor(&self) -> Option<&str> {
        match &self.0.kind {
            ErrorKind::Format(error) => {
                error.subject().map(st_core::Subject::name).or(self.0.tensor.as_deref())
            }
            ErrorKind::Container(error) => error.subject().map(apr_container::Subject::name),
            _ => self.0.tensor.as_deref(),
        }
    }

    /// Stable identifier of the kind, for example `am-not-fitted`; for a kind that wraps another error, that error's.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.0.kind.code()
    }

    /// The same error about rows that follow `n_before` others: where it names a row, that row among all of them. For who asks
    /// about a table a part at a time.
    #[must_use]
    pub fn offset_rows(mut self, n_before: usize) -> Self {
        if let ErrorKind::FeatureNotFinite { row, .. } | ErrorKind::BeyondSingle { row, .. } =
            &mut self.0.kind
        {
            *row = row.saturating_add(n_before);
        }
        self
    }

    pub(crate) fn of_tensor(mut self, name: &str) -> Self {
        self.0.tensor = Some(name.into());
        self
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self(Box::new(Inner { kind, tensor: None }))
    }
}

impl From<st_core::Error> for Error {
    fn from(error: st_core::Error) -> Self {
        ErrorKind::Format(error).into()
    }
}

impl From<apr_container::Error> for Error {
    fn from(error: apr_container::Error) -> Self {
        ErrorKind::Container(error).into()
    }
}

/// The error of a constructor for parameters of a payload.
impl From<Error> for apr_container::Error {
    fn from(error: Error) -> Self {
        match *error.0 {
            Inner { kind: ErrorKind::Container(error), .. } => error,
            inner => Self::model(inner.kind.code(), Error(Box::new(inner))),
        }
    }
}

#[cfg(feature = "quantize")]
impl From<apr_quant::Error> for Error {
    fn from(error: apr_quant::Error) -> Self {
        ErrorKind::Quant(error).into()
    }
}

#[cfg(feature = "std")]
impl From<durable_file::Error> for Error {
    fn from(error: durable_file::Error) -> Self {
        ErrorKind::File(error).into()
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, tensor } = &*self.0;
        f.debug_struct("Error").field("kind", kind).field("tensor", tensor).finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.kind.fmt(f)?;
        match &self.0.tensor {
            Some(tensor) => write!(f, ", tensor {}", Quoted(tensor)),
            None => Ok(()),
        }
    }
}

/// No `source`: the message of the wrapped error, and of the operating system's error in it, is part of `Display`, so that a
/// printed chain contains everything once. [`Error::kind`] gives access to both.
impl core::error::Error for Error {}

/// The operation of a model without coefficients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Write itself to a file.
    Save,
    /// Predict, or score its predictions.
    Predict,
}

/// One number of a linear model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// The coefficient of a feature, counted from 0.
    Coefficient(usize),
    /// The intercept.
    Intercept,
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Coefficient(feature) => write!(f, "coefficient of feature {feature}"),
            Self::Intercept => f.write_str("intercept"),
        }
    }
}

/// The kind of an error. Rows, columns and features count from 0.
#[derive(Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A matrix without rows or without columns.
    EmptyMatrix {
        /// Requested rows.
        n_rows: usize,
        /// Requested columns.
        n_cols: usize,
    },
    /// A matrix whose number of values, or whose working copy in 64-bit floats, this machine cannot address.
    MatrixTooLarge {
        /// Rows.
        n_rows: usize,
        /// Columns.
        n_cols: usize,
    },
    /// Not as many values as the shape needs.
    MatrixLength {
        /// Requested rows.
        n_rows: usize,
        /// Requested columns.
        n_cols: usize,
        /// Values given.
        given: usize,
    },
    /// Not one target for each sample.
    TargetLength {
        /// Samples.
        n_rows: usize,
        /// Targets given.
        given: usize,
    },
    /// A feature that is not finite.
    FeatureNotFinite {
        /// The sample.
        row: usize,
        /// The feature.
        col: usize,
    },
    /// A value that is infinite as a 32-bit float, where the trees of a pipeline compare those.
    BeyondSingle {
        /// The sample.
        row: usize,
        /// The column of the step's input: for the first step the feature.
        col: usize,
        /// The step with the trees, counted from 0.
        step: usize,
    },
    /// A target that is not finite.
    TargetNotFinite {
        /// The sample.
        row: usize,
    },
    /// A fitted number that `f32` cannot hold: the features and the target are of too different magnitude.
    OutOfRange {
        /// Which number.
        parameter: Parameter,
        /// Its value.
        value: f64,
    },
    /// The model has not been fitted.
    NotFitted {
        /// The operation.
        operation: Operation,
    },
    /// Samples with another number of features than the model was fitted on.
    FeatureCount {
        /// Features of the model.
        expected: usize,
        /// Columns of the matrix.
        found: usize,
    },
    /// A model of no coefficients.
    NoCoefficients,
    /// A coefficient or intercept that is not finite.
    WeightNotFinite {
        /// Which number.
        parameter: Parameter,
    },
    /// The file lacks a tensor of this model.
    MissingTensor,
    /// The file has a tensor that is not part of this model.
    UnexpectedTensor,
    /// A tensor of another element type than F32.
    WrongDtype {
        /// Its type.
        found: Dtype,
    },
    /// A tensor of another rank than 1.
    WrongRank {
        /// Its number of dimensions.
        found: usize,
    },
    /// An intercept of more or fewer values than one.
    InterceptLength {
        /// Its number of values.
        found: u64,
    },
    /// A tensor of another shape than its part of the model has.
    TensorShape {
        /// The requirement.
        expected: &'static str,
        /// Its dimensions.
        found: Vec<usize>,
    },
    /// A tensor that stands for whole numbers holds something else.
    TensorInteger,
    /// The file's metadata say that it holds another model.
    OtherModel {
        /// Asked for.
        expected: &'static str,
        /// In the file.
        found: Box<str>,
    },
    /// Nothing says which model a file holds, and its content fits none.
    UnknownModel,
    /// A model was asked about samples and has nothing to say about them.
    NoPredictions {
        /// Its type here.
        model: &'static str,
    },
    /// This program was built without what the model needs.
    NotBuiltIn {
        /// What it was built without.
        what: &'static str,
    },
    /// A pipeline was asked for something that it does not say.
    NoSuchOutput {
        /// For what.
        output: &'static str,
    },
    /// A part of a model has another length than its other parts call for.
    PartLength {
        /// Which part.
        part: &'static str,
        /// Values needed.
        expected: usize,
        /// Values given.
        found: usize,
    },
    /// A part of a model, or a setting of its training, has a value it cannot have.
    PartInvalid {
        /// Which part.
        part: &'static str,
        /// What it should be.
        problem: &'static str,
    },
    /// A number of a model that is not finite.
    PartNotFinite {
        /// Which part.
        part: &'static str,
        /// Which value of it, counted from 0.
        idx: usize,
    },
    /// The values given are not the same number for each sample.
    InputLength {
        /// Samples: one for each place of the results.
        n_rows: usize,
        /// Values given.
        given: usize,
    },
    /// The slice for the results has no place for each of them, or more places.
    OutputLength {
        /// Results.
        needed: usize,
        /// Places.
        given: usize,
    },
    /// A class that training cannot use.
    Label {
        /// The sample.
        row: usize,
        /// What it should be.
        problem: &'static str,
    },
    /// Fewer samples than the training needs.
    TooFewSamples {
        /// Samples needed.
        needed: usize,
        /// Samples given.
        given: usize,
    },
    /// A payload layout of a version this reader does not know.
    Layout {
        /// In the payload.
        found: u32,
        /// The newest one known.
        known: u32,
    },
    /// A form of a model type that this reader does not know.
    Form {
        /// In the payload.
        found: u32,
        /// The last one known.
        known: u32,
    },
    /// Another form of the model type than the one asked for, for example a regressor instead of a classifier.
    OtherForm {
        /// In the payload.
        found: u32,
        /// Asked for.
        expected: u32,
    },
    /// The payload is a bare list of numbers, as some writers store it under any model type.
    BareNumbers {
        /// How many it says there are.
        count: u64,
    },
    /// The numbers of a training grew beyond all bounds.
    Diverged {
        /// The pass over the samples, counted from 0.
        epoch: usize,
    },
    /// No item has that id.
    UnknownItem {
        /// Asked for.
        id: Box<str>,
    },
    /// A model without matrices of weights, in which nothing can be quantized.
    NoWeightMatrices {
        /// Its type here.
        model: &'static str,
    },
    /// A way to hold numbers that nothing is quantized to.
    NotWritable {
        /// Which.
        quant_type: QuantType,
    },
    /// The bytes are not a valid `.apr` file, or not this model's.
    Container(apr_container::Error),
    /// The bytes are not a valid safetensors file.
    Format(st_core::Error),
    /// The numbers cannot be quantized.
    #[cfg(feature = "quantize")]
    Quant(apr_quant::Error),
    /// The file could not be read or written.
    #[cfg(feature = "std")]
    File(durable_file::Error),
}

impl ErrorKind {
    /// Every identifier of this crate's own kinds that [`Error::code`] can return.
    pub const CODES: &'static [&'static str] = &[
        "am-empty-matrix",
        "am-matrix-too-large",
        "am-matrix-length",
        "am-target-length",
        "am-feature-not-finite",
        "am-beyond-single",
        "am-target-not-finite",
        "am-out-of-range",
        "am-not-fitted",
        "am-feature-count",
        "am-no-coefficients",
        "am-weight-not-finite",
        "am-missing-tensor",
        "am-unexpected-tensor",
        "am-dtype",
        "am-rank",
        "am-intercept-length",
        "am-tensor-shape",
        "am-tensor-integer",
        "am-other-model",
        "am-unknown-model",
        "am-no-predictions",
        "am-not-built-in",
        "am-no-such-output",
        "am-part-length",
        "am-part",
        "am-part-not-finite",
        "am-input-length",
        "am-output-length",
        "am-label",
        "am-too-few-samples",
        "am-layout",
        "am-form",
        "am-other-form",
        "am-bare-numbers",
        "am-diverged",
        "am-unknown-item",
        "am-no-weight-matrices",
        "am-not-writable",
    ];

    /// Stable identifier of the kind; that of the error inside for a wrapped one.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::EmptyMatrix { .. } => "am-empty-matrix",
            Self::MatrixTooLarge { .. } => "am-matrix-too-large",
            Self::MatrixLength { .. } => "am-matrix-length",
            Self::TargetLength { .. } => "am-target-length",
            Self::FeatureNotFinite { .. } => "am-feature-not-finite",
            Self::BeyondSingle { .. } => "am-beyond-single",
            Self::TargetNotFinite { .. } => "am-target-not-finite",
            Self::OutOfRange { .. } => "am-out-of-range",
            Self::NotFitted { .. } => "am-not-fitted",
            Self::FeatureCount { .. } => "am-feature-count",
            Self::NoCoefficients => "am-no-coefficients",
            Self::WeightNotFinite { .. } => "am-weight-not-finite",
            Self::MissingTensor => "am-missing-tensor",
            Self::UnexpectedTensor => "am-unexpected-tensor",
            Self::WrongDtype { .. } => "am-dtype",
            Self::WrongRank { .. } => "am-rank",
            Self::InterceptLength { .. } => "am-intercept-length",
            Self::TensorShape { .. } => "am-tensor-shape",
            Self::TensorInteger => "am-tensor-integer",
            Self::OtherModel { .. } => "am-other-model",
            Self::UnknownModel => "am-unknown-model",
            Self::NoPredictions { .. } => "am-no-predictions",
            Self::NotBuiltIn { .. } => "am-not-built-in",
            Self::NoSuchOutput { .. } => "am-no-such-output",
            Self::PartLength { .. } => "am-part-length",
            Self::PartInvalid { .. } => "am-part",
            Self::PartNotFinite { .. } => "am-part-not-finite",
            Self::InputLength { .. } => "am-input-length",
            Self::OutputLength { .. } => "am-output-length",
            Self::Label { .. } => "am-label",
            Self::TooFewSamples { .. } => "am-too-few-samples",
            Self::Layout { .. } => "am-layout",
            Self::Form { .. } => "am-form",
            Self::OtherForm { .. } => "am-other-form",
            Self::BareNumbers { .. } => "am-bare-numbers",
            Self::Diverged { .. } => "am-diverged",
            Self::UnknownItem { .. } => "am-unknown-item",
            Self::NoWeightMatrices { .. } => "am-no-weight-matrices",
            Self::NotWritable { .. } => "am-not-writable",
            Self::Container(error) => error.code(),
            Self::Format(error) => error.code(),
            #[cfg(feature = "quantize")]
            Self::Quant(error) => error.code(),
            #[cfg(feature = "std")]
            Self::File(error) => error.code(),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn every_kind_has_a_code_and_a_text_of_its_own() {
        let kinds = [
            ErrorKind::EmptyMatrix { n_rows: 0, n_cols: 2 },
            ErrorKind::MatrixTooLarge { n_rows: usize::MAX, n_cols: 2 },
            ErrorKind::MatrixLength { n_rows: usize::MAX, n_cols: usize::MAX, given: 1 },
            ErrorKind::TargetLength { n_rows: 2, given: 1 },
            ErrorKind::FeatureNotFinite { row: 1, col: 2 },
            ErrorKind::BeyondSingle { row: 1, col: 2, step: 0 },
            ErrorKind::TargetNotFinite { row: 1 },
            ErrorKind::OutOfRange { parameter: Parameter::Coefficient(3), value: 1e60 },
            ErrorKind::NotFitted { operation: Operation::Save },
            ErrorKind::FeatureCount { expected: 1, found: 2 },
            ErrorKind::NoCoefficients,
            ErrorKind::WeightNotFinite { parameter: Parameter::Intercept },
            ErrorKind::MissingTensor,
            ErrorKind::UnexpectedTensor,
            ErrorKind::WrongDtype { found: Dtype::I32 },
            ErrorKind::WrongRank { found: 2 },
            ErrorKind::InterceptLength { found: 2 },
            ErrorKind::TensorShape { expected: "a matrix", found: alloc::vec![1, 2, 3] },
            ErrorKind::TensorInteger,
            ErrorKind::OtherModel { expected: "Ridge", found: "Lasso".into() },
            ErrorKind::UnknownModel,
            ErrorKind::NoPredictions { model: "DBSCAN" },
            ErrorKind::NotBuiltIn { what: "pipelines" },
            ErrorKind::NoSuchOutput { output: "decisions" },
            ErrorKind::PartLength { part: "weights", expected: 1, found: 2 },
            ErrorKind::PartInvalid { part: "alpha", problem: "not negative" },
            ErrorKind::PartNotFinite { part: "weights", idx: 1 },
            ErrorKind::InputLength { n_rows: 3, given: 4 },
            ErrorKind::OutputLength { needed: 1, given: 2 },
            ErrorKind::Label { row: 1, problem: "0 or 1 is needed" },
            ErrorKind::TooFewSamples { needed: 2, given: 1 },
            ErrorKind::Layout { found: 2, known: 1 },
            ErrorKind::Form { found: 3, known: 2 },
            ErrorKind::OtherForm { found: 2, expected: 1 },
            ErrorKind::BareNumbers { count: 7 },
            ErrorKind::Diverged { epoch: 3 },
            ErrorKind::UnknownItem { id: "x".into() },
            ErrorKind::NoWeightMatrices { model: "Ridge" },
            ErrorKind::NotWritable { quant_type: QuantType::Q4_1 },
        ];
        assert_eq!(kinds.each_ref().map(ErrorKind::code), ErrorKind::CODES);
        for (idx, code) in ErrorKind::CODES.iter().enumerate() {
            assert!(code.starts_with("am-") && !ErrorKind::CODES[..idx].contains(code), "{code}");
        }
        for kind in kinds {
            let error = Error::from(kind).of_tensor("a\n");
            assert!(error.to_string().ends_with(", tensor \"a\\n\""), "{error}");
            assert_eq!(error.tensor(), Some("a\n"));
        }
    }

    #[test]
    fn texts_say_what_and_where() {
        let text = |kind: ErrorKind| Error::from(kind).to_string();
        assert_eq!(
            text(ErrorKind::OutOfRange { parameter: Parameter::Coefficient(3), value: 1e60 }),
            "coefficient of feature 3 is 1e60, outside the range of 32-bit floats: scale the features or the target"
        );
        assert_eq!(
            text(ErrorKind::WeightNotFinite { parameter: Parameter::Intercept }),
            "intercept is not a finite number"
        );
    }

    #[test]
    fn errors_of_the_format_speak_for_themselves() {
        let inner =
            st_core::SafeTensors::from_bytes(&[1, 2, 3]).map(|_| ()).expect_err("three bytes are no file");
        let error = Error::from(inner.clone());
        assert_eq!((error.to_string(), error.code()), (inner.to_string(), inner.code()));
        assert!(core::error::Error::source(&error).is_none());
    }
}
