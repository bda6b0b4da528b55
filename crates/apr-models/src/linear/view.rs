//! Views of linear models over the bytes of a payload.

use apr_container::{F32s, PayloadReader, ViewPayload};

use super::dot;
use crate::error::{Error, ErrorKind, Operation};
use crate::model::check_rows;

/// Coefficients borrowed from the payload, and the intercept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PlaneView<'data> {
    /// Never empty.
    coefficients: F32s<'data>,
    intercept: f32,
}

impl<'data> PlaneView<'data> {
    /// The parts that [`Plane::decode`](super::Plane::decode) reads. A model without coefficients is no view.
    pub(crate) fn read(
        input: &mut PayloadReader<'_>,
        payload: &'data [u8],
    ) -> Result<Self, apr_container::Error> {
        let coefficients = if input.option()? { Some(input.f32s_in(payload)?) } else { None };
        let intercept = input.f32()?;
        match coefficients.filter(|coefficients| !coefficients.is_empty()) {
            Some(coefficients) => Ok(Self { coefficients, intercept }),
            None => Err(Error::from(ErrorKind::NotFitted { operation: Operation::Predict }).into()),
        }
    }

    pub(crate) const fn coefficients(&self) -> F32s<'data> {
        self.coefficients
    }

    pub(crate) const fn intercept(&self) -> f32 {
        self.intercept
    }

    /// The values of the samples before rounding.
    pub(crate) fn values(
        &self,
        rows: &[f32],
        n_rows: usize,
    ) -> Result<impl ExactSizeIterator<Item = f64>, Error> {
        let n_features = self.coefficients.len();
        check_rows(rows, n_rows, n_features)?;
        let rows = rows.chunks_exact(n_features);
        Ok(rows.map(|row| dot::value(row, self.coefficients.iter(), self.intercept)))
    }

    fn values_into(&self, rows: &[f32], out: &mut [f32]) -> Result<(), Error> {
        check_rows(rows, out.len(), self.coefficients.len())?;
        dot::values_into(rows, self.coefficients.iter(), self.intercept, out);
        Ok(())
    }
}

/// A linear regression over the bytes of its payload: it copies and allocates nothing, and the bytes need no
/// alignment. Its predictions equal, bit for bit, those of the model that
/// [`Embedded::load`](apr_container::Embedded::load) gives.
///
/// The view of [`LinearRegression`](crate::LinearRegression), [`Ridge`](crate::Ridge), [`Lasso`](crate::Lasso) and
/// [`ElasticNet`](crate::ElasticNet).
///
/// ```
/// use apr_container::{Embedded, embed_model};
/// use apr_models::LinearRegression;
///
/// static PRICE: Embedded<LinearRegression> =
///     embed_model!(concat!(env!("CARGO_MANIFEST_DIR"), "/../conformance/vectors/apr/a0150_linreg_none_plain.apr"));
///
/// let (view, model) = (PRICE.view()?, PRICE.load()?);
/// let sample = vec![0.5; view.n_features()];
/// assert_eq!(view.try_predict_one(&sample)?, model.try_predict_one(&sample)?);
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearView<'data> {
    plane: PlaneView<'data>,
}

impl<'data> LinearView<'data> {
    /// Features of a sample, at least one.
    #[must_use]
    pub const fn n_features(&self) -> usize {
        self.plane.coefficients().len()
    }

    /// The coefficients: `[n_features]`.
    #[must_use]
    pub const fn coefficients(&self) -> F32s<'data> {
        self.plane.coefficients()
    }

    /// The intercept.
    #[must_use]
    pub const fn intercept(&self) -> f32 {
        self.plane.intercept()
    }

    /// Predicts each row of `rows` (`[n_samples, n_features]`, row-major) into `out` (`[n_samples]`). Allocates
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InputLength`] and [`ErrorKind::FeatureCount`] if `rows` is not `out.len()` rows of the model's
    /// features.
    pub fn predict_into(&self, rows: &[f32], out: &mut [f32]) -> Result<(), Error> {
        self.plane.values_into(rows, out)
    }

    /// Predicts one sample `row`: `[n_features]`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::FeatureCount`].
    pub fn try_predict_one(&self, row: &[f32]) -> Result<f32, Error> {
        let mut out = [0.0];
        self.predict_into(row, &mut out)?;
        Ok(out[0])
    }
}

/// `before` and `after` skip the other fields of the payload.
fn view<'data>(
    input: &mut PayloadReader<'_>,
    payload: &'data [u8],
    before: u64,
    after: u64,
) -> Result<LinearView<'data>, apr_container::Error> {
    input.skip(before)?;
    let plane = PlaneView::read(input, payload)?;
    input.bool()?;
    input.skip(after)?;
    Ok(LinearView { plane })
}

/// `model: bytes before the plane, bytes after the rule of the intercept`
macro_rules! views {
    ($($model:ident: $before:literal, $after:literal;)*) => {
        $(impl ViewPayload for crate::$model {
            type View<'data> = LinearView<'data>;

            fn view_payload<'data>(
                input: &mut PayloadReader<'_>,
                payload: &'data [u8],
            ) -> Result<LinearView<'data>, apr_container::Error> {
                view(input, payload, $before, $after)
            }
        })*
    };
}

views! {
    LinearRegression: 0, 0;
    Ridge: 4, 0;
    Lasso: 4, 12;
    ElasticNet: 8, 12;
}
