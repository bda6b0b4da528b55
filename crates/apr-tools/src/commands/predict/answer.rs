//! What a model can be asked, and what its answers are called.

use apr_models::{
    Answers, AnyModel, Head, InputKind, Model as _, OutputKind, Pipeline, Samples, Terms, ValueKind,
};

use crate::error::{CODE_NO_PREDICTION, Failure};
use crate::known::Known;

/// A model, and what is wanted of it.
pub(super) struct Asked<'k> {
    known: &'k Known,
    /// What it is asked about.
    pub(super) input_kind: InputKind,
    wanted: OutputKind,
    terms: Option<Terms<'k>>,
}

impl<'k> Asked<'k> {
    /// What the model can be asked.
    ///
    /// # Errors
    ///
    /// If it predicts nothing, or has no probabilities and they are wanted.
    pub(super) fn new(known: &'k Known, wanted: OutputKind) -> Result<Self, Failure> {
        let model = &known.model;
        let refused = |what: String| Failure::new(CODE_NO_PREDICTION, what).in_file(&known.path);
        let Some(input_kind) = model.input_kind() else {
            return Err(refused(format!("a {} predicts nothing about rows", model.name())));
        };
        if wanted == OutputKind::Probabilities && !model.gives_probabilities() {
            let what = format!("a {} gives no probabilities", model.name());
            return Err(refused(what).help("leave --proba out"));
        }
        Ok(Self { known, input_kind, wanted, terms: model.terms() })
    }

    /// Answers for each of so many rows or texts.
    ///
    /// # Errors
    ///
    /// What the model refuses.
    pub(super) fn ask(&self, rows: Samples<'_>, n_rows: usize) -> Result<Answers, apr_models::Error> {
        self.known.model.answers(rows, n_rows, self.wanted)
    }

    /// What an answer is, as JSON calls it; of a model of numbers, the answers tell.
    pub(super) fn kind(&self, answers: Option<&Answers>) -> Option<&'static str> {
        Some(match (&self.known.model, answers) {
            (AnyModel::Pipeline(pipeline), _) => kind_of_pipeline(pipeline),
            (AnyModel::NgramLm(_), _) => "log-probability",
            (AnyModel::CountVectorizer(_) | AnyModel::TfIdf(_), _) => "terms",
            (_, None) => return None,
            (_, Some(Answers::Numbers(_))) => "value",
            (_, Some(Answers::Classes(_) | Answers::Probabilities(..))) => "class",
            (_, Some(Answers::Outliers(_))) => "outlier",
            (_, Some(_)) => "row",
        })
    }

    /// The term of that number.
    pub(super) fn term(&self, number: usize) -> &str {
        self.terms.as_ref().and_then(|terms| terms.get(number)).unwrap_or_default()
    }

    /// The class of a column of probabilities.
    pub(super) fn class_of_column(&self, column: usize) -> usize {
        let classes = self.known.model.probability_classes();
        classes.and_then(|classes| classes.get(column)).copied().unwrap_or(column)
    }
}

fn kind_of_pipeline(pipeline: &Pipeline) -> &'static str {
    match pipeline.head() {
        Head::Values { .. } if pipeline.gives_terms() => "terms",
        Head::Values { kind: ValueKind::Predictions, .. } if pipeline.n_outputs() == 1 => "value",
        Head::Values { .. } => "row",
        Head::Outliers(_) => "outlier",
        _ => "class",
    }
}
