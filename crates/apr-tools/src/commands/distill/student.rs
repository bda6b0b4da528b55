//! The model that learns.

use apr_container::{Map, Value};
use apr_models::{
    Accepts, Activation, AnyModel, ClassHead, DecisionFunction, DecisionRule, DecisionTreeRegressor, Head,
    Input, Labels as ClassLabels, LinearRegression, Matrix, NeuralLoss, NeuralOptions, NeuralTargets,
    Optimizer, Pipeline, ProbabilityRule, SoftTargets, Step, TreeOptions, TreesStep, Vector,
};
use clap::{Args, ValueEnum};

use super::lessons::{Lessons, Soft};
use super::network::{Hints, Outputs, learn};
use super::rows::{Labels, Rows};
use super::teacher::{numbers, probabilities, table};
use crate::commands::train::decimal;
use crate::commands::train::network::hidden;
use crate::error::{CODE_USAGE, Failure};

#[derive(Debug, Args)]
#[command(next_help_heading = "Student")]
pub(super) struct StudentArgs {
    /// What the student is: a softmax layer for classes, a linear regression for numbers, a decision tree, or a network; without it, one
    /// of the first two.
    #[arg(long, value_name = "KIND", value_enum)]
    student: Option<Kind>,
    /// Outputs of the hidden layers of a network, separated by commas.
    #[arg(long, value_name = "N,N", default_value = "32")]
    hidden: String,
    /// Passes over the rows.
    #[arg(long, value_name = "N", default_value = "200")]
    epochs: usize,
    /// Rows per step.
    #[arg(long, value_name = "N", default_value = "32")]
    batch_size: usize,
    /// Learning rate (Adam).
    #[arg(long, value_name = "NUMBER", default_value = "0.001")]
    learning_rate: f32,
    /// Maximum depth of a tree.
    #[arg(long, value_name = "N", default_value = "12")]
    max_depth: usize,
    /// Maximum number of leaves of a tree; the split with the largest gain is made first.
    #[arg(long, value_name = "N")]
    max_leaves: Option<usize>,
    /// Minimum number of rows of a leaf of a tree.
    #[arg(long, value_name = "N", default_value = "5")]
    min_samples_leaf: usize,
}

/// A value of `--student`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Kind {
    Softmax,
    Linear,
    Tree,
    Mlp,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Softmax => "softmax",
            Self::Linear => "linear",
            Self::Tree => "tree",
            Self::Mlp => "mlp",
        }
    }
}

impl StudentArgs {
    /// The kind of the student: the smallest one, unless another is asked for.
    ///
    /// # Errors
    ///
    /// If it cannot learn what the teachers predict.
    pub(super) fn kind(&self, of_classes: bool) -> Result<Kind, Failure> {
        match (self.student, of_classes) {
            (None, true) => Ok(Kind::Softmax),
            (None, false) => Ok(Kind::Linear),
            (Some(Kind::Linear), true) => {
                let what = "a linear student learns numbers, and the teacher predicts classes";
                Err(Failure::new(CODE_USAGE, what))
            }
            (Some(Kind::Softmax), false) => {
                let what = "a softmax student learns classes, and the teacher predicts numbers";
                Err(Failure::new(CODE_USAGE, what))
            }
            (Some(kind), _) => Ok(kind),
        }
    }

    /// Outputs of the hidden layers of a network.
    ///
    /// # Errors
    ///
    /// If they are no numbers.
    pub(super) fn hidden(&self) -> Result<Vec<usize>, Failure> {
        hidden(&self.hidden)
    }

    /// Settings of that kind, for the metadata.
    pub(super) fn hyperparameters(&self, kind: Kind, hidden: &[usize], seed: u64) -> Map<Value> {
        let mut settings: Map<Value> = Map::default();
        settings.insert("student".to_owned(), kind.name());
        if matches!(kind, Kind::Softmax | Kind::Mlp) {
            let hidden = if kind == Kind::Mlp { hidden } else { &[] };
            settings.insert("hidden".to_owned(), widths(hidden));
            settings.insert("epochs".to_owned(), self.epochs);
            settings.insert("batch_size".to_owned(), self.batch_size);
            settings.insert("learning_rate".to_owned(), decimal(self.learning_rate));
        }
        if kind == Kind::Tree {
            settings.insert("max_depth".to_owned(), self.max_depth);
            settings.insert("max_leaves".to_owned(), self.max_leaves.map_or(Value::Nil, Value::from));
            settings.insert("min_samples_leaf".to_owned(), self.min_samples_leaf);
        }
        settings.insert("seed".to_owned(), seed);
        settings
    }

    /// Passes over the rows, if that kind makes any.
    pub(super) fn epochs(&self, kind: Kind) -> u32 {
        let makes_any = matches!(kind, Kind::Softmax | Kind::Mlp);
        if makes_any { u32::try_from(self.epochs).unwrap_or(u32::MAX) } else { 0 }
    }
}

/// Outputs of layers, for the metadata.
pub(super) fn widths(widths: &[usize]) -> Vec<Value> {
    widths.iter().map(|&width| width.into()).collect()
}

/// Trains students on the same rows with the same settings.
pub(super) struct Learner<'l> {
    pub(super) args: &'l StudentArgs,
    pub(super) temperature: f64,
    pub(super) alpha: f64,
    pub(super) seed: u64,
    rows: &'l Rows,
    /// All samples.
    x: Matrix,
    /// Those with labels, which come first.
    labeled: Matrix,
}

impl<'l> Learner<'l> {
    /// Of rows, of which the first ones have labels.
    ///
    /// # Errors
    ///
    /// If they are more than this machine can hold.
    pub(super) fn new(
        args: &'l StudentArgs,
        (temperature, alpha, seed): (f64, f64, u64),
        rows: &'l Rows,
        n_labeled: usize,
    ) -> Result<Self, Failure> {
        let x = rows.matrix()?;
        let values = x.as_slice().iter().take(n_labeled * rows.n_features).copied().collect();
        let labeled = Matrix::from_vec(n_labeled, rows.n_features, values)?;
        Ok(Self { args, temperature, alpha, seed, rows, x, labeled })
    }

    /// A student of these lessons, a network of these hidden layers if it is one. Layers that are to give a teacher's learn that first.
    ///
    /// # Errors
    ///
    /// If a setting is out of its range, or the training diverges.
    pub(super) fn learn(
        &self,
        kind: Kind,
        hidden: &[usize],
        lessons: &Lessons,
        hints: &Hints<'_>,
    ) -> Result<AnyModel, Failure> {
        match (lessons, &self.rows.labels) {
            (Lessons::Classes(soft), Labels::Classes(classes)) => {
                if kind == Kind::Tree {
                    return self.tree_of_classes(&self.x, &self.mixed(soft, classes)?);
                }
                let targets = NeuralTargets::Distilled(self.targets(soft, classes));
                self.network_of_classes(kind, hidden, &self.x, (soft.plain.n_cols(), targets), hints)
            }
            (Lessons::Numbers(teacher), Labels::Numbers(labels)) => {
                // The least squared errors to both, weighted, are those to their weighted mean.
                let blend = |(&teacher, label): (&f64, &Option<f64>)| {
                    label.map_or(teacher, |label| self.alpha * teacher + (1.0 - self.alpha) * label) as f32
                };
                let blended = teacher.iter().zip(labels).map(blend).collect();
                self.of_numbers(kind, hidden, &self.x, blended, hints)
            }
            _ => Err(differs()),
        }
    }

    /// The same student of the labels alone.
    ///
    /// # Errors
    ///
    /// As [`learn`](Self::learn).
    pub(super) fn learn_labels(
        &self,
        kind: Kind,
        hidden: &[usize],
        n_classes: usize,
    ) -> Result<AnyModel, Failure> {
        match &self.rows.labels {
            Labels::Classes(classes) => {
                let known: Vec<usize> = classes.iter().flatten().copied().collect();
                if kind == Kind::Tree {
                    let mut certain = vec![0.0; known.len() * n_classes];
                    for (row, &class) in certain.chunks_exact_mut(n_classes).zip(&known) {
                        row.iter_mut().skip(class).take(1).for_each(|value| *value = 1.0);
                    }
                    return self.tree_of_classes(&self.labeled, &table(&certain, n_classes)?);
                }
                let targets = NeuralTargets::Classes(&known);
                self.network_of_classes(kind, hidden, &self.labeled, (n_classes, targets), &Hints::default())
            }
            Labels::Numbers(labels) => {
                let known = labels.iter().flatten().map(|&label| label as f32).collect();
                self.of_numbers(kind, hidden, &self.labeled, known, &Hints::default())
            }
        }
    }

    /// The mean loss of a model on the rows that it learned from.
    ///
    /// # Errors
    ///
    /// Those of the model.
    pub(super) fn loss(&self, kind: Kind, model: &AnyModel, lessons: &Lessons) -> Result<f64, Failure> {
        match (lessons, &self.rows.labels) {
            (Lessons::Classes(soft), Labels::Classes(classes)) => {
                let said = table(&probabilities(model, self.rows)?, soft.plain.n_cols())?;
                let targets = self.targets(soft, classes);
                let plain = SoftTargets { softened: &soft.plain, temperature: 1.0, ..targets };
                Ok(if kind == Kind::Tree { plain } else { targets }.loss(&said)?)
            }
            (Lessons::Numbers(teacher), Labels::Numbers(labels)) => {
                Ok(loss_of_numbers(&numbers(model, self.rows)?, teacher, labels, self.alpha))
            }
            _ => Err(differs()),
        }
    }

    fn targets<'t>(&self, soft: &'t Soft, classes: &'t [Option<usize>]) -> SoftTargets<'t> {
        let &Self { temperature, alpha, .. } = self;
        SoftTargets { softened: &soft.softened, classes, temperature, alpha }
    }

    /// For each row alpha times the teacher's probabilities, and the rest for the class that it has.
    fn mixed(&self, soft: &Soft, classes: &[Option<usize>]) -> Result<Matrix, Failure> {
        let width = soft.plain.n_cols();
        let mut mixed: Vec<f64> = soft.plain.as_slice().iter().map(|&value| value.into()).collect();
        for (row, class) in mixed.chunks_exact_mut(width).zip(classes) {
            if let Some(class) = *class {
                row.iter_mut().for_each(|value| *value *= self.alpha);
                row.iter_mut().skip(class).take(1).for_each(|value| *value += 1.0 - self.alpha);
            }
        }
        table(&mixed, width)
    }

    fn tree_options(&self) -> TreeOptions {
        let &StudentArgs { max_depth, max_leaves, min_samples_leaf, .. } = self.args;
        TreeOptions { max_depth: Some(max_depth), max_leaves, min_samples_leaf, ..TreeOptions::default() }
    }

    /// A tree whose leaves have probabilities. The classes are called by their numbers, so that names are found as those of networks are.
    fn tree_of_classes(&self, x: &Matrix, probabilities: &Matrix) -> Result<AnyModel, Failure> {
        let tree = TreesStep::fit(x, probabilities, &self.tree_options())?;
        let head = ClassHead {
            labels: ClassLabels::Integers((0..).take(probabilities.n_cols()).collect()),
            rule: DecisionRule::ArgMax,
            probabilities: ProbabilityRule::Normalized,
            decision_function: DecisionFunction::None,
        };
        let input = Input::Numbers { n_features: x.n_cols(), accepts: Accepts::Finite };
        Ok(Pipeline::from_parts(input, vec![Step::Trees(tree)], Head::Classes(head))?.into())
    }

    fn network_of_classes(
        &self,
        kind: Kind,
        hidden: &[usize],
        x: &Matrix,
        (n_classes, targets): (usize, NeuralTargets<'_>),
        hints: &Hints<'_>,
    ) -> Result<AnyModel, Failure> {
        let layers = layers(kind, hidden, (n_classes, Activation::Softmax));
        let options = self.options(NeuralLoss::CrossEntropy);
        Ok(learn(x, &Outputs::Classes(targets), &layers, &options, hints)?.into())
    }

    fn of_numbers(
        &self,
        kind: Kind,
        hidden: &[usize],
        x: &Matrix,
        y: Vec<f32>,
        hints: &Hints<'_>,
    ) -> Result<AnyModel, Failure> {
        match kind {
            Kind::Linear => {
                let mut model = LinearRegression::new();
                model.fit(x, &Vector::from_vec(y))?;
                Ok(model.into())
            }
            Kind::Tree => {
                Ok(DecisionTreeRegressor::fit(x, &Vector::from_vec(y), &self.tree_options())?.into())
            }
            Kind::Mlp | Kind::Softmax => {
                let layers = layers(kind, hidden, (1, Activation::Identity));
                let options = self.options(NeuralLoss::MeanSquared);
                Ok(learn(x, &Outputs::Numbers(&y), &layers, &options, hints)?.into())
            }
        }
    }

    fn options(&self, loss: NeuralLoss) -> NeuralOptions {
        NeuralOptions {
            optimizer: Optimizer::adam(self.args.learning_rate),
            epochs: self.args.epochs,
            batch_size: self.args.batch_size,
            seed: self.seed,
            ..NeuralOptions::new(loss)
        }
    }
}

fn differs() -> Failure {
    Failure::new(CODE_USAGE, "labels and predictions of the teacher are of different kinds")
}

fn layers(kind: Kind, hidden: &[usize], last: (usize, Activation)) -> Vec<(usize, Activation)> {
    let hidden = if kind == Kind::Mlp { hidden } else { &[] };
    hidden.iter().map(|&width| (width, Activation::Relu)).chain([last]).collect()
}

/// The mean of `alpha` times the squared difference from the teacher and `1 - alpha` times that from the label.
fn loss_of_numbers(found: &[f64], teacher: &[f64], labels: &[Option<f64>], alpha: f64) -> f64 {
    let losses = found.iter().zip(teacher).zip(labels).map(|((found, teacher), label)| {
        let from_teacher = (found - teacher).powi(2);
        label.map_or(from_teacher, |label| alpha * from_teacher + (1.0 - alpha) * (found - label).powi(2))
    });
    losses.sum::<f64>() / found.len() as f64
}
