//! The parameters of linear models: a coefficient for each feature and an intercept.

use apr_container::{PayloadReader, PayloadWriter};

use crate::error::{Error, ErrorKind, Operation, Parameter};
use crate::model::check_rows;
use crate::payload::fields::Fields;
use crate::payload::values::{skip_list, skip_option, write_option};
use crate::tensors::Tensors;
use crate::vector::Vector;

mod dot;
pub(crate) mod regressor;
mod view;

pub use self::view::LinearView;
pub(crate) use self::view::PlaneView;

/// Whether `fit` estimates the intercept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Intercept {
    /// It is estimated.
    #[default]
    Fitted,
    /// It stays 0: the hyperplane passes through the origin.
    Zero,
}

impl Intercept {
    const fn is_fitted(self) -> bool {
        matches!(self, Self::Fitted)
    }

    const fn of(is_fitted: bool) -> Self {
        if is_fitted { Self::Fitted } else { Self::Zero }
    }
}

/// Coefficients and intercept, as a model stores them.
///
/// Payloads may hold a model that was never fitted, one without a single coefficient, or one with weights that are no
/// numbers; [`from_parts`](Self::from_parts) makes only valid ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Plane {
    coefficients: Option<Vector>,
    intercept: f32,
}

static NO_COEFFICIENTS: Vector = Vector::from_vec(alloc::vec::Vec::new());

impl Plane {
    pub(crate) const fn new() -> Self {
        Self { coefficients: None, intercept: 0.0 }
    }

    pub(crate) fn from_parts(coefficients: Vector, intercept: f32) -> Result<Self, Error> {
        if coefficients.is_empty() {
            return Err(ErrorKind::NoCoefficients.into());
        }
        if let Some(feature) = coefficients.iter().position(|value| !value.is_finite()) {
            return Err(ErrorKind::WeightNotFinite { parameter: Parameter::Coefficient(feature) }.into());
        }
        if !intercept.is_finite() {
            return Err(ErrorKind::WeightNotFinite { parameter: Parameter::Intercept }.into());
        }
        Ok(Self { coefficients: Some(coefficients), intercept })
    }

    pub(crate) fn is_fitted(&self) -> bool {
        !self.coefficients().is_empty()
    }

    pub(crate) fn coefficients(&self) -> &Vector {
        self.coefficients.as_ref().unwrap_or(&NO_COEFFICIENTS)
    }

    pub(crate) const fn intercept(&self) -> f32 {
        self.intercept
    }

    pub(crate) fn n_features(&self) -> Option<usize> {
        self.is_fitted().then(|| self.coefficients().len())
    }

    fn fitted(&self, operation: Operation) -> Result<&[f32], Error> {
        match self.is_fitted() {
            true => Ok(self.coefficients().as_slice()),
            false => Err(ErrorKind::NotFitted { operation }.into()),
        }
    }

    /// The value of one sample before rounding.
    pub(crate) fn value(&self, row: &[f32]) -> Result<f64, Error> {
        let coefficients = self.fitted(Operation::Predict)?;
        check_rows(row, 1, coefficients.len())?;
        Ok(dot::value(row, coefficients.iter().copied(), self.intercept))
    }

    /// The values of the samples before rounding.
    pub(crate) fn values(
        &self,
        rows: &[f32],
        n_rows: usize,
    ) -> Result<impl ExactSizeIterator<Item = f64>, Error> {
        let coefficients = self.fitted(Operation::Predict)?;
        check_rows(rows, n_rows, coefficients.len())?;
        let rows = rows.chunks_exact(coefficients.len());
        Ok(rows.map(|row| dot::value(row, coefficients.iter().copied(), self.intercept)))
    }

    /// The value of each sample, summed in `f64` feature by feature and rounded once.
    pub(crate) fn values_into(&self, rows: &[f32], out: &mut [f32]) -> Result<(), Error> {
        let coefficients = self.fitted(Operation::Predict)?;
        check_rows(rows, out.len(), coefficients.len())?;
        dot::values_into(rows, coefficients.iter().copied(), self.intercept, out);
        Ok(())
    }

    pub(crate) fn encode(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        write_option(out, self.coefficients.as_ref(), |out, coefficients| out.f32s(coefficients.as_slice()))?;
        out.f32(self.intercept)
    }

    pub(crate) fn decode(fields: &mut Fields<'_, '_>) -> Self {
        let coefficients = fields.optional_f32s().map(Vector::from_vec);
        Self { coefficients, intercept: fields.f32() }
    }

    pub(crate) fn skip(input: &mut PayloadReader<'_>) -> Result<(), apr_container::Error> {
        skip_option(input, |input| skip_list(input, 4))?;
        input.skip(4)
    }

    pub(crate) fn push_to(&self, tensors: &mut Tensors) -> Result<(), Error> {
        let coefficients = self.fitted(Operation::Save)?;
        tensors.push_f32(COEFFICIENTS, &[coefficients.len()], coefficients)?;
        tensors.push_number(INTERCEPT, self.intercept)
    }

    pub(crate) fn read_from(tensors: &Tensors) -> Result<Self, Error> {
        let coefficients = Vector::from_vec(tensors.vector(COEFFICIENTS)?);
        let [intercept] = *tensors.vector(INTERCEPT)? else {
            let found = tensors.view(INTERCEPT)?.element_count();
            return Err(Error::from(ErrorKind::InterceptLength { found }).of_tensor(INTERCEPT));
        };
        Self::from_parts(coefficients, intercept).map_err(|error| {
            let intercept_alone =
                matches!(error.kind(), ErrorKind::WeightNotFinite { parameter: Parameter::Intercept });
            error.of_tensor(if intercept_alone { INTERCEPT } else { COEFFICIENTS })
        })
    }
}

pub(crate) const COEFFICIENTS: &str = "coefficients";
pub(crate) const INTERCEPT: &str = "intercept";
/// 1 if training chose the intercept, 0 if it stayed 0; absent for 1.
const FIT_INTERCEPT: &str = "fit_intercept";

pub(crate) fn is_part(name: &str) -> bool {
    [COEFFICIENTS, INTERCEPT, FIT_INTERCEPT].contains(&name)
}

/// An intercept that training was to choose is the rule and has no tensor.
pub(crate) fn push_intercept_rule(tensors: &mut Tensors, rule: Intercept) -> Result<(), Error> {
    if rule.is_fitted() { Ok(()) } else { tensors.push_number(FIT_INTERCEPT, 0.0) }
}

pub(crate) fn read_intercept_rule(tensors: &Tensors) -> Result<Intercept, Error> {
    let is_fitted = tensors.optional(FIT_INTERCEPT, Tensors::number)?.is_none_or(|value| value != 0.0);
    Ok(Intercept::of(is_fitted))
}

pub(crate) fn encode_rule(rule: Intercept, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
    out.bool(rule.is_fitted())
}

pub(crate) fn decode_rule(fields: &mut Fields<'_, '_>) -> Intercept {
    Intercept::of(fields.bool())
}
