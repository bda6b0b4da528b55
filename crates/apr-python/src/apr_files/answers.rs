//! What models say about samples and texts.

use apr_models::{Activation, AnyModel, Matrix, Model as _, Predictions, SparseRows};

use super::model::Question;
use super::refusal::Refusal;
use super::samples::Numbers;

/// Labels as Python counts: the largest that a machine has memory for fits.
fn labels(classes: Vec<usize>) -> Numbers {
    Numbers::labels(classes.into_iter().map(|class| class as i64))
}

/// What the model says to a question.
pub(crate) fn answer(model: &AnyModel, question: Question, x: &Matrix) -> Result<Numbers, Refusal> {
    match question {
        Question::Predictions => predict(model, x),
        Question::Probabilities => probabilities(model, x),
        Question::Transformed => transform(model, x),
        Question::Scores => scores(model, x),
        Question::Decisions => Err(none(model, "decision function")),
        Question::ScoresOfSamples => Err(none(model, "scores of samples")),
    }
}

/// What the model predicts: a number, a label or a row for each sample.
fn predict(model: &AnyModel, x: &Matrix) -> Result<Numbers, Refusal> {
    if let Some(network) = classifying_network(model) {
        return Ok(labels(network.classes(x)?));
    }
    Ok(match model.try_predict(x)? {
        Predictions::Numbers(values) => Numbers::row(values.into_vec()),
        Predictions::Classes(classes) => labels(classes),
        Predictions::Outliers(marks) => Numbers::labels(marks.into_iter().map(i64::from)),
        Predictions::Samples(rows) => Numbers::table(rows),
        _ => return Err(none(model, "predictions")),
    })
}

/// The probability of each class, a row for each sample.
fn probabilities(model: &AnyModel, x: &Matrix) -> Result<Numbers, Refusal> {
    if let Some(network) = classifying_network(model) {
        return both(network.outputs(x)?);
    }
    match model {
        AnyModel::LogisticRegression(model) => {
            let second = model.try_predict_proba(x)?;
            both(Matrix::from_vec(x.n_rows(), 1, second.into_vec())?)
        }
        AnyModel::RandomForestClassifier(model) => Ok(Numbers::table(model.try_predict_proba(x)?)),
        AnyModel::GaussianMixture(model) => Ok(Numbers::table(model.try_predict_proba(x)?)),
        AnyModel::NaiveBayes(model) => Ok(Numbers::table(model.try_predict_proba(x)?)),
        AnyModel::KnnClassifier(model) => Ok(Numbers::table(model.try_predict_proba(x)?)),
        AnyModel::GradientBoostingClassifier(model) => Ok(Numbers::table(model.try_predict_proba(x)?)),
        _ => Err(none(model, "probabilities")),
    }
}

/// The samples as the model transforms them.
fn transform(model: &AnyModel, x: &Matrix) -> Result<Numbers, Refusal> {
    match model {
        AnyModel::StandardScaler(_)
        | AnyModel::MinMaxScaler(_)
        | AnyModel::Pca(_)
        | AnyModel::NeuralSequential(_) => match model.try_predict(x)? {
            Predictions::Samples(rows) => Ok(Numbers::table(rows)),
            _ => Err(none(model, "transformed samples")),
        },
        _ => Err(none(model, "transformed samples")),
    }
}

/// What predictions are decided by.
fn scores(model: &AnyModel, x: &Matrix) -> Result<Numbers, Refusal> {
    let n_rows = x.n_rows();
    Ok(match model {
        AnyModel::IsolationForest(model) => Numbers::row(model.try_score_samples(x)?.into_vec()),
        AnyModel::GaussianMixture(model) => Numbers::row(model.try_score_samples(x)?.into_vec()),
        AnyModel::Svm(model) => Numbers::F64(model.decisions(x)?, vec![n_rows, model.n_decisions()]),
        AnyModel::GradientBoostingClassifier(model) => {
            let n_cols = model.start().len();
            let too_large =
                || apr_models::Error::from(apr_models::ErrorKind::MatrixTooLarge { n_rows, n_cols });
            let mut out = vec![0.0; n_rows.checked_mul(n_cols).ok_or_else(too_large)?];
            model.decision_function_into(x.as_slice(), &mut out)?;
            Numbers::F64(out, vec![n_rows, n_cols])
        }
        _ => return Err(none(model, "scores")),
    })
}

/// Whether the model is asked about texts.
pub(crate) fn reads_texts(model: &AnyModel) -> bool {
    matches!(model, AnyModel::NgramLm(_) | AnyModel::TfIdf(_) | AnyModel::CountVectorizer(_))
}

/// The logarithm of the probability of each text, words divided by white space.
pub(crate) fn scores_of_texts(model: &AnyModel, texts: &[String]) -> Result<Numbers, Refusal> {
    let AnyModel::NgramLm(language) = model else { return Err(none(model, "scores")) };
    let score = |text: &String| language.log_probability(&text.split_whitespace().collect::<Vec<&str>>());
    Ok(Numbers::F64(texts.iter().map(score).collect(), vec![texts.len()]))
}

/// The weighted terms of each text.
pub(crate) fn terms(model: &AnyModel, texts: &[String]) -> Result<SparseRows, Refusal> {
    match model {
        AnyModel::TfIdf(model) => Ok(model.transform(texts)),
        AnyModel::CountVectorizer(model) => Ok(model.transform(texts)),
        _ => Err(none(model, "terms")),
    }
}

/// The terms, by their columns.
pub(crate) fn vocabulary(model: &AnyModel) -> Option<&apr_models::Vocabulary> {
    match model {
        AnyModel::TfIdf(model) => Some(model.vocabulary()),
        AnyModel::CountVectorizer(model) => Some(model.vocabulary()),
        _ => None,
    }
}

/// The labels that the columns of the probabilities stand for, where they are not counted from 0.
pub(crate) fn classes(model: &AnyModel) -> Option<&[usize]> {
    match model {
        AnyModel::NaiveBayes(model) => Some(model.classes()),
        AnyModel::KnnClassifier(model) => Some(model.classes()),
        AnyModel::GradientBoostingClassifier(model) => Some(model.classes()),
        AnyModel::Svm(model) => Some(model.classes()),
        _ => None,
    }
}

fn none(model: &AnyModel, what: &str) -> Refusal {
    Refusal::no_answer(format!("a {} gives no {what}", model.name()))
}

/// A network whose outputs are probabilities.
fn classifying_network(model: &AnyModel) -> Option<&apr_models::NeuralSequential> {
    let AnyModel::NeuralSequential(network) = model else { return None };
    let last = network.layers().last().map(|layer| (layer.activation(), layer.n_outputs()));
    matches!(last, Some((Activation::Softmax, _) | (Activation::Sigmoid, 1))).then_some(network)
}

/// Probabilities of both classes where there is one column, that of the second.
fn both(probabilities: Matrix) -> Result<Numbers, Refusal> {
    if probabilities.n_cols() != 1 {
        return Ok(Numbers::table(probabilities));
    }
    let values = probabilities.as_slice().iter().flat_map(|&second| [1.0 - second, second]).collect();
    Ok(Numbers::F32(values, vec![probabilities.n_rows(), 2]))
}
