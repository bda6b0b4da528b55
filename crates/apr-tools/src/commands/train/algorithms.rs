//! Every algorithm: its settings, and how it trains.

use core::str::FromStr;

use apr_container::{Map, Value};
use apr_models::{
    AnyModel, Classifier as _, CountVectorizer, CountVectorizerOptions, DocumentCount, KMeans,
    LinearRegression, LogisticRegression, MixtureOfExperts, MoeConfig, MoeTraining, NaiveBayes,
    NaiveBayesOptions, NgramLm, NgramLmOptions, Pca, PcaOptions, PcaScaling, Regressor, Ridge, SoftmaxGating,
    TextRules, TfIdf, TfIdfOptions, Vector,
};
use clap::{Arg, ArgAction, ArgMatches};

use super::data::{Data, Needs, Table};
use super::{Trained, network};
use crate::error::{CODE_USAGE, Failure};

/// How a model is trained.
pub(super) struct Algorithm {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) needs: Needs,
    /// Its settings.
    pub(super) args: fn() -> Vec<Arg>,
    pub(super) train: fn(&ArgMatches, &Data) -> Result<Trained, Failure>,
    /// Below its help page.
    pub(super) notes: &'static str,
}

/// All algorithms, in the order of the help page.
pub(super) const ALGORITHMS: &[Algorithm] = &[
    Algorithm {
        name: "linear-regression",
        about: "A number, by ordinary least squares",
        needs: Needs::Numbers,
        args: Vec::new,
        train: linear_regression,
        notes: "Examples:\n  apr train linear-regression --data table.csv --target price -o price.apr",
    },
    Algorithm {
        name: "ridge",
        about: "A number, by least squares with a penalty on large coefficients",
        needs: Needs::Numbers,
        args: || vec![setting("alpha", "NUMBER", "1", "Weight of the penalty")],
        train: ridge,
        notes: "Examples:\n  apr train ridge --alpha 0.1 --data table.csv --target price -o price.apr",
    },
    Algorithm {
        name: "logistic-regression",
        about: "One of two classes, by a linear function",
        needs: Needs::Classes,
        args: || {
            vec![
                setting("l2", "NUMBER", "0.001", "Weight of the penalty on large coefficients; 0 for none"),
                setting("max-iter", "N", "100", "Most steps"),
            ]
        },
        train: logistic_regression,
        notes: "Examples:\n  apr train logistic-regression --data classes.csv --target kind -o kind.apr",
    },
    Algorithm {
        name: "naive-bayes",
        about: "One of several classes, each with a normal distribution of every feature",
        needs: Needs::Classes,
        args: || {
            vec![setting("var-smoothing", "NUMBER", "1e-9", "Share of the greatest variance added to all")]
        },
        train: naive_bayes,
        notes: "Examples:\n  apr train naive-bayes --data classes.csv --target kind -o kind.apr",
    },
    Algorithm {
        name: "mlp",
        about: "A number or one of several classes, by a neural network",
        needs: Needs::Either,
        args: network::args,
        train: network::train,
        notes: "Features, and a target of numbers, are brought to the mean 0 and the deviation 1 for training; that \
                becomes part of the first and of the last layer.\n\n\
                Examples:\n  apr train mlp --hidden 16,8 --data classes.csv --target kind -o kind.apr",
    },
    Algorithm {
        name: "moe",
        about: "A number, by linear regressions each of which knows a part of the samples",
        needs: Needs::Numbers,
        args: || {
            vec![
                setting("experts", "N", "2", "Linear regressions"),
                setting("top-k", "N", "1", "Experts asked for a sample"),
                setting("restarts", "N", "5", "Starts; the best result stays"),
                seed(),
            ]
        },
        train: mixture,
        notes: "Examples:\n  apr train moe --experts 2 --data table.csv --target price -o price.apr",
    },
    Algorithm {
        name: "kmeans",
        about: "Clusters of samples that are near each other",
        needs: Needs::Samples,
        args: || {
            vec![
                setting("clusters", "N", "8", "Clusters"),
                setting("max-iter", "N", "300", "Most steps of a start"),
                setting("restarts", "N", "10", "Starts; the best result stays"),
                seed(),
            ]
        },
        train: kmeans,
        notes: "Examples:\n  apr train kmeans --clusters 2 --data rows.csv -o groups.apr",
    },
    Algorithm {
        name: "pca",
        about: "Fewer features that keep most of the variance",
        needs: Needs::Samples,
        args: || {
            vec![
                setting("components", "N", "2", "Features to keep"),
                flag("whiten", "Give each new feature the variance 1"),
            ]
        },
        train: pca,
        notes: "Examples:\n  apr train pca --components 2 --data rows.csv -o plane.apr",
    },
    Algorithm {
        name: "tfidf",
        about: "Texts to weighted counts of their words",
        needs: Needs::Texts,
        args: text_args,
        train: tf_idf,
        notes: "Examples:\n  apr train tfidf --data texts.txt -o words.apr",
    },
    Algorithm {
        name: "count-vectorizer",
        about: "Texts to counts of their words",
        needs: Needs::Texts,
        args: text_args,
        train: count_vectorizer,
        notes: "Examples:\n  apr train count-vectorizer --data texts.txt -o words.apr",
    },
    Algorithm {
        name: "ngram",
        about: "How likely a sentence is, by runs of its words",
        needs: Needs::Texts,
        args: || {
            vec![
                setting("order", "N", "3", "Words of the longest run"),
                setting("min-count", "N", "1", "Words seen less often count as unknown"),
            ]
        },
        train: ngram,
        notes: "A line is a sentence; its words are what stands between white space.\n\n\
                Examples:\n  apr train ngram --data texts.txt -o language.apr",
    },
];

pub(super) fn setting(
    name: &'static str,
    value: &'static str,
    default: &'static str,
    help: &'static str,
) -> Arg {
    Arg::new(name).long(name).value_name(value).default_value(default).help_heading("Settings").help(help)
}

pub(super) fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help_heading("Settings").help(help)
}

pub(super) fn seed() -> Arg {
    setting("seed", "N", "0", "Decides about everything random")
}

/// The value of a setting.
///
/// # Errors
///
/// If it is none of its type.
pub(super) fn value<T: FromStr>(matches: &ArgMatches, name: &str) -> Result<T, Failure> {
    let text = matches.get_one::<String>(name).map(String::as_str).unwrap_or_default();
    text.trim().parse().map_err(|_| {
        let what = format!("`--{name} {text}` is not a number that can stand there");
        Failure::new(CODE_USAGE, what)
    })
}

/// The number of 64 bits with the digits of one of 32 bits: what somebody typed, for example.
pub(super) fn decimal(value: f32) -> Value {
    value.to_string().parse::<f64>().unwrap_or(value.into()).into()
}

/// Settings and measures by name.
pub(super) fn named<const N: usize>(values: [(&str, Value); N]) -> Map<Value> {
    values.map(|(name, value)| (name.to_owned(), value)).into()
}

fn linear_regression(_: &ArgMatches, data: &Data) -> Result<Trained, Failure> {
    let table = data.table()?;
    let mut model = LinearRegression::new();
    model.fit(&table.x, table.numbers()?)?;
    let metrics = regression_metrics(&model, table)?;
    Ok(Trained { model: model.into(), hyperparameters: Map::new(), metrics })
}

fn ridge(matches: &ArgMatches, data: &Data) -> Result<Trained, Failure> {
    let (table, alpha) = (data.table()?, value::<f32>(matches, "alpha")?);
    let mut model = Ridge::new(alpha)?;
    model.fit(&table.x, table.numbers()?)?;
    let metrics = regression_metrics(&model, table)?;
    Ok(Trained { model: model.into(), hyperparameters: named([("alpha", decimal(alpha))]), metrics })
}

fn regression_metrics(model: &impl Regressor, table: &Table) -> Result<Map<Value>, Failure> {
    let predictions: Vec<f32> = model.try_predict(&table.x)?.iter().collect();
    Ok(fit_metrics(&predictions, table.numbers()?))
}

/// R², and the root of the mean squared error.
pub(super) fn fit_metrics(predictions: &[f32], y: &Vector) -> Map<Value> {
    let count = y.len() as f64;
    let mean = y.iter().map(f64::from).sum::<f64>() / count;
    let squares = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        predictions
            .iter()
            .zip(y.iter())
            .map(|(&found, expected)| of(found.into(), expected.into()).powi(2))
            .sum()
    };
    let (missed, spread) =
        (squares(&|found, expected| found - expected), squares(&|_, expected| expected - mean));
    let rmse = ("rmse".to_owned(), (missed / count).sqrt().into());
    // Of a constant target nothing can be explained.
    let r2 = (spread > 0.0).then(|| ("r2".to_owned(), (1.0 - missed / spread).into()));
    [rmse].into_iter().chain(r2).collect()
}

/// The share of samples that are right.
fn accuracy(found: &[usize], expected: &[usize]) -> Value {
    let right = found.iter().zip(expected).filter(|(found, expected)| found == expected).count();
    (right as f64 / expected.len() as f64).into()
}

/// The mean negative logarithm of the probability that the right class was given.
fn log_loss(probabilities: impl Iterator<Item = f32>, n_samples: usize) -> Value {
    let sum: f64 = probabilities.map(|value| f64::from(value).max(1e-15).ln()).sum();
    // From 0, so that no loss at all is not -0.
    ((0.0 - sum) / n_samples as f64).into()
}

fn logistic_regression(matches: &ArgMatches, data: &Data) -> Result<Trained, Failure> {
    let table = data.table()?;
    let (ids, names) = table.classes()?;
    if names.len() != 2 {
        let what = format!("a logistic regression tells two classes apart, the target has {}", names.len());
        let failure = Failure::new(CODE_USAGE, what).because(crate::csv::listed(names));
        return Err(failure.help("naive-bayes and mlp take any number of classes"));
    }
    let (l2, max_iter) = (value::<f32>(matches, "l2")?, value::<usize>(matches, "max-iter")?);
    let mut model = LogisticRegression::new().with_l2_penalty(l2).with_max_iter(max_iter);
    model.fit(&table.x, ids)?;
    let second = model.try_predict_proba(&table.x)?;
    let right = second.iter().zip(ids).map(|(second, &id)| if id == 1 { second } else { 1.0 - second });
    let metrics = named([
        ("accuracy", accuracy(&model.try_predict(&table.x)?, ids)),
        ("log_loss", log_loss(right, ids.len())),
    ]);
    let hyperparameters = named([("l2", decimal(l2)), ("max_iter", max_iter.into())]);
    Ok(Trained { model: model.into(), hyperparameters, metrics })
}

fn naive_bayes(matches: &ArgMatches, data: &Data) -> Result<Trained, Failure> {
    let table = data.table()?;
    let (ids, _) = table.classes()?;
    let var_smoothing = value::<f64>(matches, "var-smoothing")?;
    let model = NaiveBayes::fit(&table.x, ids, &NaiveBayesOptions { var_smoothing })?;
    let probabilities = model.try_predict_proba(&table.x)?;
    let right = probabilities.rows().zip(ids).filter_map(|(row, &id)| row.get(id).copied());
    let metrics = named([
        ("accuracy", accuracy(&model.try_predict(&table.x)?, ids)),
        ("log_loss", log_loss(right, ids.len())),
    ]);
    Ok(Trained {
        model: model.into(),
        hyperparameters: named([("var_smoothing", var_smoothing.into())]),
        metrics,
    })
}

fn mixture(matches: &ArgMatches, data: &Data) -> Result<Trained, Failure> {
    let table = data.table()?;
    let (experts, top_k) = (value::<usize>(matches, "experts")?, value::<usize>(matches, "top-k")?);
    let (restarts, seed) = (value::<usize>(matches, "restarts")?, value::<u64>(matches, "seed")?);
    // Each takes at least one sample.
    if experts == 0 || experts > table.x.n_rows() {
        return Err(Failure::new(CODE_USAGE, format!("{experts} experts for {} samples", table.x.n_rows())));
    }
    let mut builder = MixtureOfExperts::builder()
        .gating(SoftmaxGating::new(table.x.n_cols(), experts))
        .config(MoeConfig::default().with_top_k(top_k));
    for _ in 0..experts {
        builder = builder.expert(LinearRegression::new());
    }
    let mut model = builder.build()?;
    model.fit(&table.x, table.numbers()?, &MoeTraining { seed, restarts, ..MoeTraining::default() })?;
    let metrics = regression_metrics(&model, table)?;
    let hyperparameters = named([
        ("experts", experts.into()),
        ("top_k", top_k.into()),
        ("restarts", restarts.into()),
        ("seed", seed.into()),
    ]);
    Ok(Trained { model: AnyModel::MixtureOfExperts(model), hyperparameters, metrics })
}

fn kmeans(matches: &ArgMatches, data: &Data) -> Result<Trained, Failure> {
    let table = data.table()?;
    let clusters = value::<usize>(matches, "clusters")?;
    let (max_iter, restarts) = (value::<usize>(matches, "max-iter")?, value::<usize>(matches, "restarts")?);
    let seed = value::<u64>(matches, "seed")?;
    let mut model = KMeans::new(clusters)?.with_random_state(seed).with_max_iter(max_iter);
    model.fit_restarting(&table.x, restarts)?;
    let metrics = named([("inertia", decimal(model.inertia())), ("iterations", model.n_iter().into())]);
    let hyperparameters = named([
        ("clusters", clusters.into()),
        ("max_iter", max_iter.into()),
        ("restarts", restarts.into()),
        ("seed", seed.into()),
    ]);
    Ok(Trained { model: model.into(), hyperparameters, metrics })
}

fn pca(matches: &ArgMatches, data: &Data) -> Result<Trained, Failure> {
    let (table, components) = (data.table()?, value::<usize>(matches, "components")?);
    let scaling = if matches.get_flag("whiten") { PcaScaling::Whiten } else { PcaScaling::Keep };
    let model = Pca::fit(&table.x, &PcaOptions { n_components: components, scaling })?;
    let kept = &model.parts().explained_variance_ratio;
    let metrics = named([
        ("explained_variance", kept.iter().map(|&share| f64::from(share)).sum::<f64>().into()),
        ("explained_variance_ratio", Value::Array(kept.iter().map(|&share| decimal(share)).collect())),
    ]);
    let hyperparameters =
        named([("components", components.into()), ("whiten", (scaling == PcaScaling::Whiten).into())]);
    Ok(Trained { model: model.into(), hyperparameters, metrics })
}

fn text_args() -> Vec<Arg> {
    vec![
        setting("ngrams", "N", "1", "Longest run of words that counts as a term"),
        setting("min-documents", "N", "1", "Leave out terms that are in fewer texts"),
        Arg::new("max-terms")
            .long("max-terms")
            .value_name("N")
            .help_heading("Settings")
            .help("Keep only this many terms, the most frequent ones"),
    ]
}

fn counts(matches: &ArgMatches) -> Result<(CountVectorizerOptions, Map<Value>), Failure> {
    let (ngrams, min_documents) =
        (value::<usize>(matches, "ngrams")?, value::<usize>(matches, "min-documents")?);
    let max_terms = match matches.get_one::<String>("max-terms") {
        Some(_) => Some(value::<usize>(matches, "max-terms")?),
        None => None,
    };
    let options = CountVectorizerOptions {
        rules: TextRules { ngram_max: ngrams, ..TextRules::default() },
        min_documents: DocumentCount::Number(min_documents),
        max_terms,
        ..CountVectorizerOptions::default()
    };
    let mut settings = named([("ngrams", ngrams.into()), ("min_documents", min_documents.into())]);
    settings.extend(max_terms.map(|terms| ("max_terms".to_owned(), terms.into())));
    Ok((options, settings))
}

fn tf_idf(matches: &ArgMatches, data: &Data) -> Result<Trained, Failure> {
    let (counts, hyperparameters) = counts(matches)?;
    let model = TfIdf::fit(data.texts()?, &TfIdfOptions { counts, ..TfIdfOptions::default() })?;
    let metrics = named([("terms", model.vocabulary().len().into())]);
    Ok(Trained { model: model.into(), hyperparameters, metrics })
}

fn count_vectorizer(matches: &ArgMatches, data: &Data) -> Result<Trained, Failure> {
    let (options, hyperparameters) = counts(matches)?;
    let model = CountVectorizer::fit(data.texts()?, &options)?;
    let metrics = named([("terms", model.vocabulary().len().into())]);
    Ok(Trained { model: model.into(), hyperparameters, metrics })
}

fn ngram(matches: &ArgMatches, data: &Data) -> Result<Trained, Failure> {
    let (order, min_count) = (value::<usize>(matches, "order")?, value::<usize>(matches, "min-count")?);
    let sentences: Vec<Vec<&str>> =
        data.texts()?.iter().map(|text| text.split_whitespace().collect()).collect();
    let model = NgramLm::fit(&sentences, &NgramLmOptions { order, min_count, ..NgramLmOptions::default() })?;
    let metrics = named([("perplexity", model.perplexity(&sentences)?.into())]);
    Ok(Trained {
        model: model.into(),
        hyperparameters: named([("order", order.into()), ("min_count", min_count.into())]),
        metrics,
    })
}
