//! What a pipeline says: labels of any kind, and numbers with all of their digits.

use apr_models::{Accepts, Error, ErrorKind, Head, Input, Pipeline, RowsAre, RowsIn};

use super::answer::{Answers, Proba};
use crate::csv;
use crate::render::escape;

/// A pipeline, and what is wanted of it.
#[derive(Clone, Copy)]
pub(super) struct Piped<'k> {
    pub(super) model: &'k Pipeline,
    pub(super) proba: Proba,
}

impl Piped<'_> {
    /// Answers for each row, or each text.
    ///
    /// # Errors
    ///
    /// What the model refuses.
    pub(super) fn ask(self, rows: RowsIn<'_>, n_rows: usize) -> Result<Answers, Error> {
        let Self { model, proba } = self;
        if let Head::Rows { what, .. } = model.head() {
            if let RowsIn::Texts(texts) = rows
                && self.gives_terms()
            {
                return Ok(Answers::WideTerms(model.transform_texts(texts)?));
            }
            let mut values = room(n_rows, model.n_outputs())?;
            model.values_into(rows, &mut values)?;
            return Ok(match (what, model.n_outputs()) {
                (RowsAre::Predictions, 1) => Answers::Wide(values),
                (_, width) => Answers::WideRows { values, width },
            });
        }
        let mut places = vec![0; n_rows];
        model.places_into(rows, &mut places)?;
        let Some(n_shares) = model.n_shares().filter(|_| proba == Proba::Wanted) else {
            return Ok(Answers::Places(places));
        };
        let mut shares = room(n_rows, n_shares)?;
        model.shares_into(rows, &mut shares)?;
        Ok(Answers::Shares { places, shares, n_shares })
    }

    /// Whether the answers to texts are weights of terms.
    pub(super) fn gives_terms(self) -> bool {
        self.model.transform_texts(&[]).is_ok()
    }

    /// What an answer is, as JSON calls it.
    pub(super) fn kind(self) -> &'static str {
        match self.model.head() {
            Head::Rows { .. } if self.gives_terms() => "terms",
            Head::Rows { what: RowsAre::Predictions, .. } if self.model.n_outputs() == 1 => "value",
            Head::Rows { .. } => "row",
            Head::Outliers(_) => "outlier",
            _ => "class",
        }
    }

    /// The number in a cell, or what is wrong with it. Where the model takes missing values, a cell may be empty or say so.
    pub(super) fn number(self, cell: &str) -> Result<f64, String> {
        let text = cell.trim();
        let accepts = match self.model.input() {
            Input::Numbers { accepts, .. } => *accepts,
            _ => Accepts::Finite,
        };
        if accepts != Accepts::Finite && csv::is_missing(text) {
            return Ok(f64::NAN);
        }
        if text.is_empty() {
            return Err("the cell is empty".to_owned());
        }
        let shown = escape::cut(text, 60);
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(value),
            Ok(_) if text.bytes().any(|byte| byte.is_ascii_digit()) => {
                Err(format!("`{shown}` is beyond what a 64-bit float can hold"))
            }
            Ok(value) if accepts == Accepts::Anything => Ok(value),
            Ok(_) => Err(format!("`{shown}` is not a finite number")),
            Err(_) => Err(format!("`{shown}` is not a number")),
        }
    }
}

/// Zeros for `width` numbers a row.
fn room(n_rows: usize, width: usize) -> Result<Vec<f64>, Error> {
    let len = n_rows.checked_mul(width).ok_or(ErrorKind::MatrixTooLarge { n_rows, n_cols: width })?;
    Ok(vec![0.0; len])
}
