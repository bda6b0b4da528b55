//! The algorithms, their settings and their training.

use apr_container::{Map, Value};
use apr_models::{
    AnyModel, ClassWeight, CountVectorizer, CountVectorizerOptions, DocumentCount, KMeans, LinearRegression,
    LogisticRegression, MixtureOfExperts, MoeConfig, MoeTraining, NaiveBayes, NaiveBayesOptions, NgramLm,
    NgramLmOptions, Pca, PcaOptions, PcaScaling, Ridge, SoftmaxGating, TextRules, TfIdf, TfIdfOptions,
    Workers,
};
use clap::{Args, Subcommand};

use super::clusters::{self, DbscanArgs};
use super::data::{ClassesArg, Columns, Data, Needs};
use super::linear::{self, ElasticNetArgs, LassoArgs, SoftmaxArgs};
use super::network::{self, MlpArgs};
use super::preparation::PreparationArgs;
use super::recommender::RecommenderArgs;
use super::trees::{self, BoostingArgs, DecisionTreeArgs, IsolationForestArgs, RandomForestArgs};
use super::validation::ValidationArgs;
use super::vectors::{self, KnnArgs, SvmArgs};
use super::weights::WeightArgs;
use super::{CommonArgs, Trained};
use crate::error::{CODE_USAGE, Failure};

/// All algorithms, in the order of the help page.
#[derive(Debug, Subcommand)]
pub(super) enum Algorithm {
    /// Predict a value, by ordinary least squares.
    #[command(
        after_help = "Examples:\n  apr train linear-regression --data table.csv --target price -o price.apr"
    )]
    LinearRegression(Supervised<NoSettings>),
    /// Predict a value, by least squares with a penalty on large coefficients.
    #[command(
        after_help = "Examples:\n  apr train ridge --alpha 0.1 --data table.csv --target price -o price.apr"
    )]
    Ridge(Supervised<RidgeArgs>),
    /// Predict a value, by least squares with a penalty that leaves features out.
    #[command(
        after_help = "Examples:\n  apr train lasso --alpha 0.1 --data table.csv --target price -o price.apr"
    )]
    Lasso(Supervised<LassoArgs>),
    /// Predict a value, by least squares with the penalties of lasso and ridge.
    #[command(
        after_help = "Examples:\n  apr train elastic-net --alpha 0.1 --data table.csv --target price -o price.apr"
    )]
    ElasticNet(Supervised<ElasticNetArgs>),
    /// Predict one of two classes, by a linear function.
    #[command(
        after_help = "Examples:\n  apr train logistic-regression --data classes.csv --target kind -o kind.apr"
    )]
    LogisticRegression(Supervised<LogisticRegressionArgs>),
    /// Predict one of several classes, by a linear function for each.
    #[command(after_help = "Examples:\n  apr train softmax --data classes.csv --target kind -o kind.apr")]
    Softmax(Supervised<SoftmaxArgs>),
    /// Predict one of several classes, by support vectors.
    #[command(
        after_help = "With --standardize, `linear` makes the scaling part of the planes, and `rbf` saves a pipeline of \
        scaler and machine.\n\n\
        Examples:\n  apr train svm --standardize --data classes.csv --target kind -o kind.apr\n  \
        apr train svm --kernel linear --class-weight balanced --data classes.csv --target kind -o svm.apr"
    )]
    Svm(Supervised<SvmArgs>),
    /// Predict a value or one of several classes, by the nearest samples of the training.
    #[command(
        after_help = "The file holds the samples of TABLE. With --standardize it is a pipeline of scaler and samples.\n\n\
        Examples:\n  apr train knn --neighbours 1 --data classes.csv --target kind -o kind.apr"
    )]
    Knn(Supervised<KnnArgs>),
    /// Predict one of several classes, each with a normal distribution of every feature.
    #[command(after_help = "Examples:\n  apr train naive-bayes --data classes.csv --target kind -o kind.apr")]
    NaiveBayes(Supervised<NaiveBayesArgs>),
    /// Predict a value or one of several classes, by a neural network.
    #[command(
        after_help = "Features, and a target of numbers, are standardized to mean 0 and standard deviation 1 for \
        training; that becomes part of the first and of the last layer.\n\n\
        Examples:\n  apr train mlp --hidden 16,8 --data classes.csv --target kind -o kind.apr"
    )]
    Mlp(Supervised<MlpArgs>),
    /// Predict a value or one of several classes, by a tree of tests.
    #[command(
        after_help = "Examples:\n  apr train decision-tree --max-depth 4 --data classes.csv --target kind -o kind.apr"
    )]
    DecisionTree(Supervised<DecisionTreeArgs>),
    /// Predict a value or one of several classes, by many trees on random samples.
    #[command(
        after_help = "Examples:\n  apr train random-forest --trees 100 --data classes.csv --target kind -o kind.apr"
    )]
    RandomForest(Supervised<RandomForestArgs>),
    /// Predict a value or one of several classes, by trees each of which corrects those before it.
    #[command(
        after_help = "Examples:\n  apr train gradient-boosting --data table.csv --target price -o price.apr\n  \
        apr train gradient-boosting --early-stopping 0.2 --data table.csv --target price -o e.apr"
    )]
    GradientBoosting(Supervised<BoostingArgs>),
    /// Predict a value, by linear regressions each of which is specialized in a part of the samples.
    #[command(
        after_help = "Examples:\n  apr train moe --experts 2 --data table.csv --target price -o price.apr"
    )]
    Moe(Supervised<MixtureArgs>),
    /// Clusters of samples that are near each other.
    #[command(name = "kmeans")]
    #[command(after_help = "Examples:\n  apr train kmeans --clusters 2 --data rows.csv -o groups.apr")]
    KMeans(Unsupervised<KMeansArgs>),
    /// Clusters with a normal distribution each.
    #[command(after_help = "Examples:\n  apr train gmm --components 2 --data rows.csv -o groups.apr")]
    Gmm(Unsupervised<clusters::MixtureArgs>),
    /// Clusters of dense samples, and noise; the model is the labels of the samples.
    #[command(
        after_help = "Examples:\n  apr train dbscan --eps 1.5 --min-samples 2 --data rows.csv -o groups.apr"
    )]
    Dbscan(Unsupervised<DbscanArgs>),
    /// Outliers: samples that few random tests set apart.
    #[command(
        after_help = "Examples:\n  apr train isolation-forest --contamination 0.05 --data rows.csv -o outliers.apr"
    )]
    IsolationForest(Unsupervised<IsolationForestArgs>),
    /// Fewer features that keep most of the variance.
    #[command(after_help = "Examples:\n  apr train pca --components 2 --data rows.csv -o plane.apr")]
    Pca(Unsupervised<PcaArgs>),
    /// Texts to weighted counts of their words.
    #[command(name = "tfidf")]
    #[command(after_help = "Examples:\n  apr train tfidf --data texts.txt -o words.apr")]
    TfIdf(OfTexts<VocabularyArgs>),
    /// Texts to counts of their words.
    #[command(after_help = "Examples:\n  apr train count-vectorizer --data texts.txt -o words.apr")]
    CountVectorizer(OfTexts<VocabularyArgs>),
    /// How likely a sentence is, by runs of its words.
    #[command(after_help = "A line is a sentence; its words are separated by white space.\n\n\
        Examples:\n  apr train ngram --data texts.txt -o language.apr")]
    Ngram(OfTexts<NgramArgs>),
    /// Items that are like others, by their vectors or texts; the items are the model.
    #[command(after_help = "Examples:\n  apr train recommender --data texts.txt -o similar.apr")]
    Recommender(RecommenderArgs),
}

/// Arguments of an algorithm that learns a column of a table.
#[derive(Debug, Args)]
pub(super) struct Supervised<S: Args> {
    #[command(flatten)]
    shared: SupervisedArgs,
    #[command(flatten)]
    settings: S,
}

/// Those of all such algorithms: not compiled again for the settings of each.
#[derive(Debug, Args)]
struct SupervisedArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// The column to learn, by name or by number from 1.
    #[arg(long, value_name = "COLUMN")]
    target: String,
    #[command(flatten)]
    drop: DropArg,
    #[command(flatten)]
    preparation: PreparationArgs,
    #[command(flatten)]
    validation: ValidationArgs,
    #[command(flatten)]
    seed: SeedArg,
}

/// Arguments of an algorithm that learns from all columns of a table.
#[derive(Debug, Args)]
pub(super) struct Unsupervised<S: Args> {
    #[command(flatten)]
    common: CommonArgs,
    #[command(flatten)]
    drop: DropArg,
    #[command(flatten)]
    preparation: PreparationArgs,
    #[command(flatten)]
    settings: S,
}

/// Arguments of an algorithm that learns from texts.
#[derive(Debug, Args)]
pub(super) struct OfTexts<S: Args> {
    #[command(flatten)]
    common: CommonArgs,
    /// TABLE is a table, and the texts are in this column.
    #[arg(long, value_name = "COLUMN")]
    column: Option<String>,
    #[command(flatten)]
    settings: S,
}

#[derive(Debug, Args)]
pub(super) struct DropArg {
    /// Leave a column out, such as a row number (repeatable).
    #[arg(long, value_name = "COLUMN")]
    pub(super) drop: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct NoSettings {}

#[derive(Debug, Args)]
pub(super) struct RidgeArgs {
    /// Weight of the penalty.
    #[arg(long, value_name = "NUMBER", default_value = "1", help_heading = SETTINGS)]
    alpha: f32,
}

#[derive(Debug, Args)]
pub(super) struct LogisticRegressionArgs {
    /// Weight of the penalty on large coefficients; 0 for none.
    #[arg(long, value_name = "NUMBER", default_value = "0.001", help_heading = SETTINGS)]
    l2: f32,
    /// Maximum number of iterations.
    #[arg(long, value_name = "N", default_value = "100", help_heading = SETTINGS)]
    max_iter: usize,
    #[command(flatten)]
    classes: ClassesArg,
    #[command(flatten)]
    weights: WeightArgs,
}

#[derive(Debug, Args)]
pub(super) struct NaiveBayesArgs {
    /// Fraction of the largest variance that is added to all variances.
    #[arg(long, value_name = "NUMBER", default_value = "1e-9", help_heading = SETTINGS)]
    var_smoothing: f64,
    #[command(flatten)]
    classes: ClassesArg,
}

#[derive(Debug, Args)]
pub(super) struct MixtureArgs {
    /// Number of linear regressions.
    #[arg(long, value_name = "N", default_value = "2", help_heading = SETTINGS)]
    experts: usize,
    /// Experts evaluated for a sample.
    #[arg(long, value_name = "N", default_value = "1", help_heading = SETTINGS)]
    top_k: usize,
    /// Number of restarts; the best result is kept.
    #[arg(long, value_name = "N", default_value = "5", help_heading = SETTINGS)]
    restarts: usize,
}

#[derive(Debug, Args)]
pub(super) struct KMeansArgs {
    /// Number of clusters.
    #[arg(long, value_name = "N", default_value = "8", help_heading = SETTINGS)]
    clusters: usize,
    /// Maximum number of iterations of one start.
    #[arg(long, value_name = "N", default_value = "300", help_heading = SETTINGS)]
    max_iter: usize,
    /// Number of restarts; the best result is kept.
    #[arg(long, value_name = "N", default_value = "10", help_heading = SETTINGS)]
    restarts: usize,
    #[command(flatten)]
    seed: SeedArg,
}

#[derive(Debug, Args)]
pub(super) struct PcaArgs {
    /// Features to keep.
    #[arg(long, value_name = "N", default_value = "2", help_heading = SETTINGS)]
    components: usize,
    /// Give each new feature the variance 1.
    #[arg(long, help_heading = SETTINGS)]
    whiten: bool,
}

#[derive(Debug, Args)]
pub(super) struct VocabularyArgs {
    /// Longest run of words that counts as a term.
    #[arg(long, value_name = "N", default_value = "1", help_heading = SETTINGS)]
    ngrams: usize,
    /// Leave out terms that are in fewer texts.
    #[arg(long, value_name = "N", default_value = "1", help_heading = SETTINGS)]
    min_documents: usize,
    /// Keep only this many terms, the most frequent ones.
    #[arg(long, value_name = "N", help_heading = SETTINGS)]
    max_terms: Option<usize>,
}

#[derive(Debug, Args)]
pub(super) struct NgramArgs {
    /// Words of the longest run.
    #[arg(long, value_name = "N", default_value = "3", help_heading = SETTINGS)]
    order: usize,
    /// Words that occur less often count as unknown.
    #[arg(long, value_name = "N", default_value = "1", help_heading = SETTINGS)]
    min_count: usize,
}

#[derive(Clone, Copy, Debug, Args)]
pub(super) struct SeedArg {
    /// Seed of the random number generator.
    #[arg(long, value_name = "N", default_value = "0", help_heading = SETTINGS)]
    pub(super) seed: u64,
}

/// The heading of options that only one algorithm has.
pub(super) const SETTINGS: &str = "Settings";

/// What the command line asks for.
pub(super) struct Job<'a> {
    pub(super) name: &'static str,
    pub(super) common: &'a CommonArgs,
    pub(super) columns: Columns<'a>,
    pub(super) preparation: PreparationArgs,
    pub(super) validation: ValidationArgs,
    pub(super) seed: u64,
    pub(super) train: Training<'a>,
}

/// Trains the chosen model on the table.
pub(super) type Training<'a> = Box<dyn Fn(&Data, &dyn Workers) -> Result<Trained, Failure> + Sync + 'a>;

/// What a training gets besides its settings and data.
#[derive(Clone, Copy)]
pub(super) struct Run<'r> {
    pub(super) seed: u64,
    pub(super) workers: &'r dyn Workers,
}

impl Algorithm {
    pub(super) fn job(&self) -> Job<'_> {
        match self {
            Self::LinearRegression(args) => {
                args.job("linear-regression", Needs::Numbers, |_, data, _| linear_regression(data))
            }
            Self::Ridge(args) => args.job("ridge", Needs::Numbers, |args, data, _| ridge(args, data)),
            Self::Lasso(args) => args.job("lasso", Needs::Numbers, |args, data, _| linear::lasso(args, data)),
            Self::ElasticNet(args) => {
                args.job("elastic-net", Needs::Numbers, |args, data, _| linear::elastic_net(args, data))
            }
            Self::LogisticRegression(args) => {
                let of = (args.settings.classes.or(Needs::Classes), args.settings.weights.column());
                args.weighted_job("logistic-regression", of, |args, data, _| logistic_regression(args, data))
            }
            Self::Softmax(args) => {
                let of = (args.settings.classes.or(Needs::Classes), args.settings.weights.column());
                args.weighted_job("softmax", of, |args, data, _| linear::softmax(args, data))
            }
            Self::Svm(args) => {
                let of = (args.settings.classes.or(Needs::Classes), args.settings.weights.column());
                args.weighted_job("svm", of, |args, data, _| vectors::svm(args, data))
            }
            Self::Knn(args) => {
                args.job("knn", args.settings.needs(), |args, data, _| vectors::knn(args, data))
            }
            Self::NaiveBayes(args) => {
                args.job("naive-bayes", args.settings.classes.or(Needs::Classes), |args, data, _| {
                    naive_bayes(args, data)
                })
            }
            Self::Mlp(args) => args.job("mlp", args.settings.needs(), network::train),
            Self::DecisionTree(args) => {
                args.weighted_job("decision-tree", args.settings.target.asked(), |args, data, _| {
                    trees::decision_tree(args, data)
                })
            }
            Self::RandomForest(args) => {
                args.weighted_job("random-forest", args.settings.target().asked(), trees::random_forest)
            }
            Self::GradientBoosting(args) => {
                args.weighted_job("gradient-boosting", args.settings.target.asked(), trees::gradient_boosting)
            }
            Self::Moe(args) => args.job("moe", Needs::Numbers, mixture),
            Self::KMeans(args) => args.job("kmeans", kmeans),
            Self::Gmm(args) => args.job("gmm", clusters::mixture),
            Self::Dbscan(args) => args.job("dbscan", |args, data, _| clusters::dbscan(args, data)),
            Self::IsolationForest(args) => {
                args.job("isolation-forest", |args, data, _| trees::isolation_forest(args, data))
            }
            Self::Pca(args) => args.job("pca", |args, data, _| pca(args, data)),
            Self::TfIdf(args) => args.job("tfidf", |args, data, _| tf_idf(args, data)),
            Self::CountVectorizer(args) => {
                args.job("count-vectorizer", |args, data, _| count_vectorizer(args, data))
            }
            Self::Ngram(args) => args.job("ngram", |args, data, _| ngram(args, data)),
            Self::Recommender(args) => args.job(),
        }
    }
}

/// Fits a model with these settings.
type Train<S> = fn(&S, &Data, Run<'_>) -> Result<Trained, Failure>;

impl<S: Args + Sync> Supervised<S> {
    fn job(&self, name: &'static str, needs: Needs, train: Train<S>) -> Job<'_> {
        self.weighted_job(name, (needs, None), train)
    }

    /// Of an algorithm that takes weights of samples.
    fn weighted_job<'a>(
        &'a self,
        name: &'static str,
        (needs, weight): (Needs, Option<&'a str>),
        train: Train<S>,
    ) -> Job<'a> {
        let SupervisedArgs { common, target, drop, preparation, validation, seed } = &self.shared;
        let (columns, seed) = (Columns::Target { needs, target, dropped: &drop.drop, weight }, seed.seed);
        let train = Box::new(move |data: &Data, workers: &dyn Workers| {
            train(&self.settings, data, Run { seed, workers })
        });
        let preparation = preparation.clone();
        Job { name, common, columns, preparation, validation: *validation, seed, train }
    }
}

impl<S: Args + Sync> Unsupervised<S> {
    fn job(&self, name: &'static str, train: Train<S>) -> Job<'_> {
        let columns = Columns::All { dropped: &self.drop.drop };
        let train = Box::new(move |data: &Data, workers: &dyn Workers| {
            train(&self.settings, data, Run { seed: 0, workers })
        });
        let (preparation, validation) = (self.preparation.clone(), ValidationArgs::default());
        Job { name, common: &self.common, columns, preparation, validation, seed: 0, train }
    }
}

impl<S: Args + Sync> OfTexts<S> {
    fn job(&self, name: &'static str, train: Train<S>) -> Job<'_> {
        let columns = Columns::Texts { column: self.column.as_deref() };
        let train = Box::new(move |data: &Data, workers: &dyn Workers| {
            train(&self.settings, data, Run { seed: 0, workers })
        });
        let (preparation, validation) = (PreparationArgs::default(), ValidationArgs::default());
        Job { name, common: &self.common, columns, preparation, validation, seed: 0, train }
    }
}

/// The `f64` with the shortest decimal representation of an `f32`: 0.1 stays 0.1, as in an argument.
pub(crate) fn decimal(value: f32) -> Value {
    value.to_string().parse::<f64>().unwrap_or(value.into()).into()
}

/// Settings and measures by name.
pub(super) fn named<const N: usize>(values: [(&str, Value); N]) -> Map<Value> {
    values.map(|(name, value)| (name.to_owned(), value)).into()
}

fn linear_regression(data: &Data) -> Result<Trained, Failure> {
    let table = data.table()?;
    let mut model = LinearRegression::new();
    model.fit(&table.x, table.numbers()?)?;
    Ok(Trained::new(model, Map::new()))
}

fn ridge(args: &RidgeArgs, data: &Data) -> Result<Trained, Failure> {
    let (table, alpha) = (data.table()?, args.alpha);
    let mut model = Ridge::new(alpha)?;
    model.fit(&table.x, table.numbers()?)?;
    Ok(Trained::new(model, named([("alpha", decimal(alpha))])))
}

fn logistic_regression(args: &LogisticRegressionArgs, data: &Data) -> Result<Trained, Failure> {
    let table = data.table()?;
    let (ids, names) = table.classes()?;
    if names.len() != 2 {
        let what = format!("a logistic regression tells two classes apart, the target has {}", names.len());
        let failure = Failure::new(CODE_USAGE, what).because(crate::tables::listed(names));
        return Err(failure.help(match names.len() {
            0 | 1 => "there is nothing to learn from rows of one class: add rows of another",
            _ => "softmax, svm, naive-bayes, knn and mlp take any number of classes",
        }));
    }
    let &LogisticRegressionArgs { l2, max_iter, ref weights, .. } = args;
    let class_weight = match weights.class_weight(table)? {
        // What is balanced is that of scikit-learn for all algorithms.
        ClassWeight::Balanced => {
            let n_ones = ids.iter().sum::<usize>() as f64;
            let n_samples = ids.len() as f64;
            let weight = |count: f64| (n_samples / (2.0 * count)) as f32;
            ClassWeight::Manual(vec![weight(n_samples - n_ones), weight(n_ones)])
        }
        other => other,
    };
    let model = LogisticRegression::new().with_l2_penalty(l2).with_max_iter(max_iter);
    let mut model = model.with_class_weight(class_weight);
    match table.weights() {
        None => model.fit(&table.x, ids)?,
        Some(weights) => model.fit_weighted(&table.x, ids, weights)?,
    }
    let mut hyperparameters = named([("l2", decimal(l2)), ("max_iter", max_iter.into())]);
    hyperparameters.extend(weights.settings());
    Ok(Trained::new(model, hyperparameters))
}

fn naive_bayes(args: &NaiveBayesArgs, data: &Data) -> Result<Trained, Failure> {
    let table = data.table()?;
    let (ids, _) = table.classes()?;
    let var_smoothing = args.var_smoothing;
    let model = NaiveBayes::fit(&table.x, ids, &NaiveBayesOptions { var_smoothing })?;
    let hyperparameters = named([("var_smoothing", var_smoothing.into())]);
    Ok(Trained::new(model, hyperparameters))
}

fn mixture(args: &MixtureArgs, data: &Data, Run { seed, .. }: Run<'_>) -> Result<Trained, Failure> {
    let table = data.table()?;
    let &MixtureArgs { experts, top_k, restarts } = args;
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
    let hyperparameters = named([
        ("experts", experts.into()),
        ("top_k", top_k.into()),
        ("restarts", restarts.into()),
        ("seed", seed.into()),
    ]);
    Ok(Trained::new(AnyModel::MixtureOfExperts(model), hyperparameters))
}

fn kmeans(args: &KMeansArgs, data: &Data, run: Run<'_>) -> Result<Trained, Failure> {
    let table = data.table()?;
    let &KMeansArgs { clusters, max_iter, restarts, seed: SeedArg { seed } } = args;
    let mut model = KMeans::new(clusters)?.with_random_state(seed).with_max_iter(max_iter);
    model.fit_on(run.workers, &table.x, restarts)?;
    let metrics = named([("inertia", decimal(model.inertia())), ("iterations", model.n_iter().into())]);
    let hyperparameters = named([
        ("clusters", clusters.into()),
        ("max_iter", max_iter.into()),
        ("restarts", restarts.into()),
        ("seed", seed.into()),
    ]);
    Ok(Trained::new(model, hyperparameters).with_metrics(metrics))
}

fn pca(args: &PcaArgs, data: &Data) -> Result<Trained, Failure> {
    let (table, components) = (data.table()?, args.components);
    let scaling = if args.whiten { PcaScaling::Whiten } else { PcaScaling::Keep };
    let model = Pca::fit(&table.x, &PcaOptions { n_components: components, scaling })?;
    let kept = &model.parts().explained_variance_ratio;
    let metrics = named([
        ("explained_variance", kept.iter().map(|&share| f64::from(share)).sum::<f64>().into()),
        ("explained_variance_ratio", Value::Array(kept.iter().map(|&share| decimal(share)).collect())),
    ]);
    let hyperparameters =
        named([("components", components.into()), ("whiten", (scaling == PcaScaling::Whiten).into())]);
    Ok(Trained::new(model, hyperparameters).with_metrics(metrics))
}

pub(super) fn counts(args: &VocabularyArgs) -> (CountVectorizerOptions, Map<Value>) {
    let &VocabularyArgs { ngrams, min_documents, max_terms } = args;
    let options = CountVectorizerOptions {
        rules: TextRules { ngram_max: ngrams, ..TextRules::default() },
        min_documents: DocumentCount::Number(min_documents),
        max_terms,
        ..CountVectorizerOptions::default()
    };
    let mut settings = named([("ngrams", ngrams.into()), ("min_documents", min_documents.into())]);
    settings.extend(max_terms.map(|terms| ("max_terms".to_owned(), terms.into())));
    (options, settings)
}

fn tf_idf(args: &VocabularyArgs, data: &Data) -> Result<Trained, Failure> {
    let (counts, hyperparameters) = counts(args);
    let model = TfIdf::fit(data.texts()?, &TfIdfOptions { counts, ..TfIdfOptions::default() })?;
    let metrics = named([("terms", model.vocabulary().len().into())]);
    Ok(Trained::new(model, hyperparameters).with_metrics(metrics))
}

fn count_vectorizer(args: &VocabularyArgs, data: &Data) -> Result<Trained, Failure> {
    let (options, hyperparameters) = counts(args);
    let model = CountVectorizer::fit(data.texts()?, &options)?;
    let metrics = named([("terms", model.vocabulary().len().into())]);
    Ok(Trained::new(model, hyperparameters).with_metrics(metrics))
}

fn ngram(args: &NgramArgs, data: &Data) -> Result<Trained, Failure> {
    let &NgramArgs { order, min_count } = args;
    let sentences: Vec<Vec<&str>> =
        data.texts()?.iter().map(|text| text.split_whitespace().collect()).collect();
    let model = NgramLm::fit(&sentences, &NgramLmOptions { order, min_count, ..NgramLmOptions::default() })?;
    let metrics = named([("perplexity", model.perplexity(&sentences)?.into())]);
    Ok(Trained::new(model, named([("order", order.into()), ("min_count", min_count.into())]))
        .with_metrics(metrics))
}
