//! Kinds of errors: of data, models and their files.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use json_scan::Quoted;
use located_error::Subject;
use st_core::Dtype;

use crate::quant_type::QuantType;

const DATA: &str = "look at the data where the message points";
const REPLACE: &str = "remove the row, or replace the value";
const OTHER_MODEL: &str = "look at the tensors with `apr tensors FILE`: it may be another kind of model";
const PARTS: &str =
    "check the file with `apr check FILE`: if the checksum matches, the program that wrote it is at fault";
const RETRAIN: &str = "train the model again, and look for such values in its data";
const UPDATE: &str = "update apr";

located_error::errors! {
    /// Why an operation was refused, with the tensor concerned if a file was read.
    pub struct Error;

    /// What was wrong. Rows, columns and features count from 0.
    #[derive(Debug)]
    pub enum ErrorKind {
        /// A matrix needs at least one row and one column.
        EmptyMatrix {
            /// Rows asked for.
            n_rows: usize,
            /// Columns asked for.
            n_cols: usize,
        } = "am-empty-matrix" (Usage),
            "matrix of {n_rows} rows and {n_cols} columns: at least one of each is needed"
            => DATA;
        /// The matrix, or its working copy in 64-bit floats, has more values than this machine can address.
        MatrixTooLarge {
            /// Rows.
            n_rows: usize,
            /// Columns.
            n_cols: usize,
        } = "am-matrix-too-large" (Usage),
            "matrix of {n_rows} rows and {n_cols} columns is too large for this machine"
            => "train on fewer rows, or a smaller model";
        /// The number of values is not that of rows times columns.
        MatrixLength {
            /// Rows asked for.
            n_rows: usize,
            /// Columns asked for.
            n_cols: usize,
            /// Values given.
            given: usize,
        } = "am-matrix-length" (Usage),
            "matrix of {n_rows} rows and {n_cols} columns: expected {} values, found {given}", n_rows.saturating_mul(*n_cols)
            => DATA;
        /// Every sample needs one target value, and there are more or fewer of them.
        TargetLength {
            /// Samples.
            n_rows: usize,
            /// Targets given.
            given: usize,
        } = "am-target-length" (Usage),
            "expected {n_rows} targets, one for each sample, found {given}"
            => DATA;
        /// The classes of a target are numbers, and too many for classes or with fractions: most likely measurements, of which every different
        /// value would become a class.
        ContinuousTarget {
            /// Samples.
            n_samples: usize,
            /// Different numbers.
            n_values: usize,
            /// Those of them that have fractions.
            n_fractions: usize,
        } = "am-continuous-target" (Usage),
            "target of {n_values} different numbers in {n_samples} samples{}: values to predict, not classes", Fractions(*n_fractions)
            => "train a model that predicts numbers, such as gradient-boosting, random-forest, ridge, knn or mlp; `apr train ALGORITHM --classes` makes a class of each number";
        /// A feature is infinite or not a number, and would make every coefficient so.
        FeatureNotFinite {
            /// The sample.
            row: usize,
            /// The feature.
            col: usize,
        } = "am-feature-not-finite" (Usage),
            "feature in row {row}, column {col} is not a finite number: remove the row or replace the value"
            => REPLACE;
        /// The trees of a pipeline compare 32-bit floats, and a value is beyond their range when it gets there.
        BeyondSingle {
            /// The sample.
            row: usize,
            /// The column of the step's input: of the first step, the feature.
            col: usize,
            /// The step with the trees, counted from 0.
            step: usize,
        } = "am-beyond-single" (Usage),
            "value in row {row}, column {col} of the input of step {step} is beyond the range of 32-bit floats, which its trees compare: remove the row or replace the value"
            => REPLACE;
        /// A target value is infinite or not a number, and would make every coefficient so.
        TargetNotFinite {
            /// The sample.
            row: usize,
        } = "am-target-not-finite" (Usage),
            "target in row {row} is not a finite number: remove the row or replace the value"
            => REPLACE;
        /// A fitted parameter is beyond what a 32-bit float can hold: features and target are of too different magnitude.
        OutOfRange {
            /// Which one.
            parameter: Parameter,
            /// Its value.
            value: f64,
        } = "am-out-of-range" (Usage),
            "{parameter} is {}outside the range of 32-bit floats: scale the features or the target", Shown(*value)
            => "scale the features or the target";
        /// The model has not been trained yet.
        NotFitted {
            /// What it was asked to do.
            operation: Operation,
        } = "am-not-fitted" (Usage),
            "{operation}"
            => "call fit() first";
        /// The samples have another number of features than the model was trained on.
        FeatureCount {
            /// Features of the model.
            expected: usize,
            /// Columns of the matrix.
            found: usize,
        } = "am-feature-count" (Usage),
            "model of {expected} features, samples of {found}"
            => DATA;
        /// A linear model needs at least one coefficient.
        NoCoefficients = "am-no-coefficients" (Invalid),
            "model without coefficients: at least one feature is needed"
            => OTHER_MODEL;
        /// A coefficient or the intercept is infinite or not a number, so every prediction would be.
        WeightNotFinite {
            /// Which one.
            parameter: Parameter,
        } = "am-weight-not-finite" (Invalid),
            "{parameter} is not a finite number"
            => RETRAIN;
        /// A model is stored as tensors of certain names, and one that this model needs is missing.
        MissingTensor = "am-missing-tensor" (Invalid),
            "a tensor of this model is missing"
            => OTHER_MODEL;
        /// The file has a tensor that this model does not have, so it is another model, of which only a part would be used.
        UnexpectedTensor = "am-unexpected-tensor" (Invalid),
            "tensor does not belong to this model: the file holds another model, or more than one"
            => OTHER_MODEL;
        /// The values of a model are stored as F32 (few of them as F64), and those of this tensor are not.
        WrongDtype {
            /// Its dtype.
            found: Dtype,
        } = "am-dtype" (Invalid),
            "expected a tensor of F32, found {found}"
            => OTHER_MODEL;
        /// The tensor must have one dimension, as a list of values has.
        WrongRank {
            /// Its number of dimensions.
            found: usize,
        } = "am-rank" (Invalid),
            "expected a tensor of 1 dimension, found {found}"
            => OTHER_MODEL;
        /// The intercept of a linear model is a single value.
        InterceptLength {
            /// Its number of values.
            found: u64,
        } = "am-intercept-length" (Invalid),
            "expected an intercept of 1 value, found {found}"
            => OTHER_MODEL;
        /// A tensor has another shape than its part of the model has.
        TensorShape {
            /// The expected shape, in words.
            expected: &'static str,
            /// Its dimensions.
            found: Vec<usize>,
        } = "am-tensor-shape" (Invalid),
            "tensor has the shape {:?}, {expected} is needed", found
            => OTHER_MODEL;
        /// A tensor that represents integers, such as counts or classes, holds a fraction, a negative number or something else.
        TensorInteger = "am-tensor-integer" (Invalid),
            "tensor does not hold integers"
            => OTHER_MODEL;
        /// The metadata of the file say that it holds another model.
        OtherModel {
            /// Requested.
            expected: &'static str,
            /// In the file.
            found: Box<str>,
        } = "am-other-model" (Invalid),
            "expected a model of type {expected}, found {}", Quoted(found)
            => OTHER_MODEL;
        /// The file does not name the model that it holds, or names one that is not known here, and its content has the form of none.
        UnknownModel = "am-unknown-model" (Invalid),
            "the file names no known model, and its content has the form of none: name the model to load it as"
            => "`apr inspect FILE` shows what the file says about itself; update apr if it was made by a newer program";
        /// The model has no predictions for samples: it is a list of values, or of labels.
        NoPredictions {
            /// Its type.
            model: &'static str,
        } = "am-no-predictions" (Usage),
            "a model of type {model} does not predict"
            => "`apr inspect --verify FILE` says what it is";
        /// This program was built without what the model needs, to be smaller: pipelines, or models that their files do not name.
        NotBuiltIn {
            /// What is missing.
            what: &'static str,
        } = "am-not-built-in" (Unsupported),
            "this program was built without {what}"
            => "open it with `apr`, or build with the features `pipelines` and `unnamed` of apr-models";
        /// The model has no such output: not every model has classes, probabilities, decision values or scores of samples.
        NoSuchOutput {
            /// The output.
            output: &'static str,
        } = "am-no-such-output" (Usage),
            "this model has no {output}"
            => "ask for what it predicts; `apr predict` does";
        /// A part of the model has another length than its other parts call for, so it cannot be one model.
        PartLength {
            /// Which part.
            part: &'static str,
            /// Values needed.
            expected: usize,
            /// Values given.
            found: usize,
        } = "am-part-length" (Invalid),
            "{part}: expected {expected} values, found {found}"
            => PARTS;
        /// A part of the model, or a setting of a training, has a value it cannot have. Predictions from such a model would be wrong or
        /// impossible.
        PartInvalid {
            /// Which part.
            part: &'static str,
            /// What it should be.
            problem: &'static str,
        } = "am-part" (Invalid),
            "{part}: {problem}"
            => PARTS;
        /// A value of the model is infinite or not a number, so predictions would be.
        PartNotFinite {
            /// Which part.
            part: &'static str,
            /// Which value of it, counted from 0.
            idx: usize,
        } = "am-part-not-finite" (Invalid),
            "{part}: value {idx} is not a finite number"
            => RETRAIN;
        /// The values given are not the same number for each sample.
        InputLength {
            /// Samples: the length of the output.
            n_rows: usize,
            /// Values given.
            given: usize,
        } = "am-input-length" (Usage),
            "{given} values cannot be divided into {n_rows} samples of the same length"
            => DATA;
        /// The output slice is longer or shorter than the results.
        OutputLength {
            /// Results.
            needed: usize,
            /// Length of the slice.
            given: usize,
        } = "am-output-length" (Usage),
            "expected an output slice of {needed} values, found {given}"
            => "this is a defect in the calling program: please report it";
        /// A sample has a class that this training cannot use.
        Label {
            /// The sample.
            row: usize,
            /// What it should be.
            problem: &'static str,
        } = "am-label" (Usage),
            "class of row {row}: {problem}"
            => DATA;
        /// The training needs more samples than there are.
        TooFewSamples {
            /// Samples needed.
            needed: usize,
            /// Samples given.
            given: usize,
        } = "am-too-few-samples" (Usage),
            "expected at least {needed} samples, found {given}"
            => "give it more data, or ask for less: fewer clusters, components or experts";
        /// The payload has a layout that was defined after this program was made.
        Layout {
            /// In the payload.
            found: u32,
            /// The newest one known.
            known: u32,
        } = "am-layout" (Unsupported),
            "unsupported payload layout {found}: this version reads up to {known}"
            => UPDATE;
        /// The payload is a form of its model type that was defined after this program was made.
        Form {
            /// In the payload.
            found: u32,
            /// The last one known.
            known: u32,
        } = "am-form" (Unsupported),
            "unsupported form {found} of this model type: this version reads 1 to {known}"
            => UPDATE;
        /// The file holds another form of the model type, such as a regressor instead of a classifier.
        OtherForm {
            /// In the payload.
            found: u32,
            /// Requested.
            expected: u32,
        } = "am-other-form" (Invalid),
            "expected form {expected} of this model type, found {found}"
            => "`apr inspect --verify FILE` says which one it is";
        /// The payload is a plain list of numbers. Some programs store one under any model type; it is no model.
        BareNumbers {
            /// Its declared length.
            count: u64,
        } = "am-bare-numbers" (Invalid),
            "the payload is a list of {count} numbers, not a model of this type: load it as a list"
            => "`apr tensors FILE` shows the numbers";
        /// The values of the training grew beyond all bounds.
        Diverged {
            /// The pass over the samples, counted from 0.
            epoch: usize,
        } = "am-diverged" (Usage),
            "training diverged in epoch {epoch}: lower the learning rate, or scale the features and targets"
            => "take smaller steps, for example --learning-rate 0.001";
        /// The recommender knows no item of that id.
        UnknownItem {
            /// The id.
            id: Box<str>,
        } = "am-unknown-item" (Usage),
            "unknown item {}", Quoted(id)
            => DATA;
        /// The model consists of single values, lists or trees: there is no matrix of weights that fewer bits would make smaller.
        NoWeightMatrices {
            /// Its type.
            model: &'static str,
        } = "am-no-weight-matrices" (Usage),
            "a model of type {model} has no matrices of weights to quantize"
            => "save it as it is, with compression if it is large";
        /// Weights are not saved in this type: it has no blocks in .apr files.
        NotWritable {
            /// The type.
            quant_type: QuantType,
        } = "am-not-writable" (Usage),
            "quantizing a model to {} is not supported: use Q8_0 or Q4_0", quant_type.name()
            => "choose Q8_0 or Q4_0";
    }

    wrapped {
        /// The bytes are not a valid `.apr` file, or not this model's.
        Container(apr_container::Error);
        /// The bytes are not a valid safetensors file.
        Format(st_core::Error);
        /// The values cannot be quantized.
        Quant(apr_quant::Error) if "quantize";
        /// The file could not be read or written.
        File(durable_file::Error) if "std";
    }
}

impl Error {
    /// The same error about rows that follow `n_before` others: a row that it names is counted from the first of all. For predictions
    /// over a table in batches.
    #[must_use]
    pub fn offset_rows(mut self, n_before: usize) -> Self {
        if let ErrorKind::FeatureNotFinite { row, .. } | ErrorKind::BeyondSingle { row, .. } =
            &mut self.0.kind
        {
            *row = row.saturating_add(n_before);
        }
        self
    }

    pub(crate) fn of_tensor(self, name: &str) -> Self {
        self.of(Subject::tensor(name))
    }
}

/// The error of a constructor about the parts that a payload holds.
impl From<Error> for apr_container::Error {
    fn from(error: Error) -> Self {
        match *error.0 {
            located_error::Context { kind: ErrorKind::Container(error), .. } => error,
            context => Self::model(Error(Box::new(context))),
        }
    }
}

/// An operation that needs a fitted model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Saving.
    Save,
    /// Predicting, or scoring the predictions.
    Predict,
}

/// The message of [`ErrorKind::NotFitted`]. The one for saving is aprender's, which its users search for.
impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Save => "Cannot save unfitted model. Call fit() first.",
            Self::Predict => "cannot predict with an unfitted model: call fit() first",
        })
    }
}

/// A parameter of a linear model.
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

/// A value and a comma. Not in the npm package: formatting floats takes 12 kB, and nothing else in it needs that.
struct Shown(f64);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if cfg!(apr_small) { Ok(()) } else { write!(f, "{:e}, ", self.0) }
    }
}

/// How many of the numbers have fractions, if any has.
struct Fractions(usize);

impl fmt::Display for Fractions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            n => write!(f, ", {n} with fractions"),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn the_table_of_kinds_is_complete() {
        let problems = located_error::problems(ErrorKind::TABLE, "am-");
        assert!(problems.is_empty(), "{problems:?}");
    }

    #[test]
    fn messages_name_what_and_where() {
        let text = |kind: ErrorKind| Error::from(kind).of_tensor("a\n").to_string();
        assert_eq!(
            text(ErrorKind::OutOfRange { parameter: Parameter::Coefficient(3), value: 1e60 }),
            "coefficient of feature 3 is 1e60, outside the range of 32-bit floats: scale the features or the target, \
             tensor \"a\\n\""
        );
        assert_eq!(
            text(ErrorKind::WeightNotFinite { parameter: Parameter::Intercept }),
            "intercept is not a finite number, tensor \"a\\n\""
        );
        // Saturates: a caller can build this kind with any values.
        let length = ErrorKind::MatrixLength { n_rows: usize::MAX, n_cols: usize::MAX, given: 1 };
        assert!(text(length).contains(&usize::MAX.to_string()));
    }

    #[test]
    fn errors_of_the_format_keep_their_message_and_code() {
        let inner =
            st_core::SafeTensors::from_bytes(&[1, 2, 3]).map(|_| ()).expect_err("three bytes are no file");
        let error = Error::from(inner.clone());
        assert_eq!((error.to_string(), error.code()), (inner.to_string(), inner.code()));
        assert!(core::error::Error::source(&error).is_none());
    }
}
