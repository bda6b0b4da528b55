//! Methods of `apr.Model` that compute an output for samples.

/// A method of `apr.Model`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// `predict`.
    Predict,
    /// `predict_proba`.
    PredictProba,
    /// `decision_function`.
    DecisionFunction,
    /// `score_samples`.
    ScoreSamples,
    /// `transform`.
    Transform,
    /// `scores`.
    Scores,
}
