//! Pipelines that predict what models of other types do.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use crate::any_model::AnyModel;
use crate::error::{Error, ErrorKind, Operation};
use crate::gaussian_mixture::GaussianMixture;
use crate::gradient_boosting::boosted::Boosted;
use crate::isolation_forest::IsolationForest;
use crate::kernels::neighbours::KnnWeights;
use crate::kernels::trees::arena::LEAF;
use crate::kmeans::KMeans;
use crate::matrix::Matrix;
use crate::naive_bayes::NaiveBayes;
use crate::neural::{Activation, NeuralSequential};
use crate::pca::{Pca, PcaScaling};
use crate::pipeline::{
    Accepts, CentroidDistances, ClassHead, ClusterRule, Covariance, DecisionFunction, DecisionRule,
    GaussianLogDensity, Head, Input, KernelStep, Labels, LinearStep, Link, NeighbourMetric, NeighbourOutput,
    NeighbourSearch, NeighboursParts, NeighboursStep, OutlierHead, OutputShape, Pipeline, ProbabilityRule,
    Reals, ScaleAdd, ShiftDivide, Step, StepActivation, StepKernel, Table, TreeOutputs, TreeThresholds,
    TreesParts, TreesStep, ValueKind,
};
use crate::svm::{KernelParts, LinearParts, Svm, SvmKernel};
use crate::tree::{Leaf, TreeNode};

impl Pipeline {
    /// The pipeline of samples of `n_features` values that predicts what `model` does, but in `f64`: the same classes, clusters
    /// and marks, and values that differ by rounding. `labels` are those of the classes, in the order in which the model has them;
    /// without them they are its own.
    ///
    /// For [`preceded_by`](Self::preceded_by): preprocessing that the model itself has no place for.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`] for a model that no steps compute: a mixture of experts, a scaler, models of texts, labels of
    /// training samples; [`ErrorKind::NotFitted`] and [`ErrorKind::EmptyMatrix`] for one that is not fitted; those of [`from_parts`](Self::from_parts) for other numbers of features or
    /// labels than the model's.
    pub fn of_model(model: &AnyModel, n_features: usize, labels: Option<Labels>) -> Result<Self, Error> {
        let numbered = |n_classes: usize| {
            let numbers = || match model.classes() {
                Some(classes) => classes.iter().map(|&class| class as i64).collect(),
                None => (0..n_classes as i64).collect(),
            };
            labels.clone().unwrap_or_else(|| Labels::Integers(numbers()))
        };
        let (steps, head) = match model {
            AnyModel::LinearRegression(model) => {
                plane(model.coefficients().as_slice(), model.intercept(), VALUE)?
            }
            AnyModel::Ridge(model) => plane(model.coefficients().as_slice(), model.intercept(), VALUE)?,
            AnyModel::Lasso(model) => plane(model.coefficients().as_slice(), model.intercept(), VALUE)?,
            AnyModel::ElasticNet(model) => plane(model.coefficients().as_slice(), model.intercept(), VALUE)?,
            AnyModel::LogisticRegression(model) => {
                let rule = (DecisionRule::NonNegative, ProbabilityRule::Logistic { factor: 1.0 });
                let head = class_head(numbered(2), rule);
                plane(model.coefficients().as_slice(), model.intercept(), head)?
            }
            AnyModel::NeuralSequential(model) => network(model, &numbered)?,
            AnyModel::Svm(model) => machine(model, numbered(model.classes().len()))?,
            AnyModel::KnnClassifier(model) => {
                let (n_classes, class_of) = (model.classes().len(), model.class_of.clone());
                let head =
                    class_head(numbered(n_classes), (DecisionRule::ArgMax, ProbabilityRule::Normalized));
                let answer = NeighbourOutput::Classes { n_classes, class_of };
                (vec![neighbours(model.samples(), (model.k(), model.weights()), answer)?], head)
            }
            AnyModel::KnnRegressor(model) => {
                let targets = model.targets().iter().collect::<Vec<f32>>().into();
                let answer = NeighbourOutput::Values { n_outputs: 1, targets };
                (vec![neighbours(model.samples(), (model.k(), model.weights()), answer)?], VALUE)
            }
            AnyModel::NaiveBayes(model) => bayes(model, numbered(model.classes().len()))?,
            AnyModel::DecisionTreeClassifier(model) => {
                voting([model.nodes().collect()], numbered(model.n_classes()))?
            }
            AnyModel::RandomForestClassifier(model) => {
                let trees = model.trees().iter().map(|tree| tree.nodes().collect());
                voting(trees, numbered(model.n_classes()))?
            }
            AnyModel::DecisionTreeRegressor(model) => averaging([model.nodes().collect()])?,
            AnyModel::RandomForestRegressor(model) => {
                averaging(model.trees().iter().map(|tree| tree.nodes().collect()))?
            }
            AnyModel::GradientBoostingRegressor(model) => (vec![boosting(&model.boosted)?], VALUE),
            AnyModel::GradientBoostingClassifier(model) => {
                let rule = match model.start().len() {
                    1 => (DecisionRule::Positive, ProbabilityRule::Logistic { factor: 1.0 }),
                    _ => (DecisionRule::ArgMax, ProbabilityRule::Softmax),
                };
                (vec![boosting(&model.boosted)?], class_head(numbered(model.classes().len()), rule))
            }
            AnyModel::KMeans(model) => clusters(model)?,
            AnyModel::GaussianMixture(model) => mixture(model)?,
            AnyModel::IsolationForest(model) => isolation(model)?,
            AnyModel::Pca(model) => projection(model)?,
            _ => {
                let problem = "no steps of a pipeline compute its predictions";
                return Err(ErrorKind::PartInvalid { part: "model", problem }.into());
            }
        };
        Self::from_parts(Input::Numbers { n_features, accepts: Accepts::Finite }, steps, head)
    }

    /// The pipeline whose samples go through these steps first.
    ///
    /// # Errors
    ///
    /// Those of [`from_parts`](Self::from_parts).
    pub fn preceded_by(self, input: Input, mut steps: Vec<Step>) -> Result<Self, Error> {
        steps.extend(self.steps);
        Self::from_parts(input, steps, self.head)
    }
}

type Parts = (Vec<Step>, Head);

const VALUE: Head =
    Head::Values { kind: ValueKind::Predictions, link: Link::None, shape: OutputShape::Vector };

fn class_head(labels: Labels, (rule, probabilities): (DecisionRule, ProbabilityRule)) -> Head {
    let decision_function = match probabilities {
        // Shares of votes and neighbours are no scores.
        ProbabilityRule::Scores | ProbabilityRule::Normalized => DecisionFunction::None,
        _ => DecisionFunction::Scores,
    };
    Head::Classes(ClassHead { labels, rule, probabilities, decision_function })
}

fn linear(n_outputs: usize, weights: Vec<f32>, bias: &[f32]) -> Result<Step, Error> {
    Ok(Step::Linear(LinearStep::new(n_outputs, weights.into(), bias.to_vec().into())?))
}

fn plane(coefficients: &[f32], intercept: f32, head: Head) -> Result<Parts, Error> {
    Ok((vec![linear(1, coefficients.to_vec(), &[intercept])?], head))
}

fn network(model: &NeuralSequential, labels: &dyn Fn(usize) -> Labels) -> Result<Parts, Error> {
    let mut steps = Vec::new();
    let mut head = None;
    for (idx, layer) in model.layers().iter().enumerate() {
        let (n_inputs, n_outputs) = layer.weights().shape();
        let weights = layer.weights().as_slice();
        let columns =
            (0..n_outputs).flat_map(|col| weights.iter().skip(col).step_by(n_outputs).take(n_inputs));
        steps.push(linear(n_outputs, columns.copied().collect(), layer.bias())?);
        let is_last = idx + 1 == model.layers().len();
        let activation = match layer.activation() {
            Activation::Softmax if is_last => {
                let rule = (DecisionRule::ArgMax, ProbabilityRule::Softmax);
                head = Some(class_head(labels(n_outputs), rule));
                continue;
            }
            Activation::Sigmoid if is_last && n_outputs == 1 => {
                let rule = (DecisionRule::Positive, ProbabilityRule::Logistic { factor: 1.0 });
                head = Some(class_head(labels(2), rule));
                continue;
            }
            Activation::Identity => continue,
            Activation::Relu => StepActivation::Relu,
            Activation::Tanh => StepActivation::Tanh,
            Activation::Sigmoid => StepActivation::Logistic,
            Activation::Softmax => {
                let problem = "a softmax that is not the last layer is no step of a pipeline";
                return Err(ErrorKind::PartInvalid { part: "model", problem }.into());
            }
        };
        steps.push(Step::Activation(activation));
    }
    let shape = if model.layers().last().is_some_and(|layer| layer.n_outputs() == 1) {
        OutputShape::Vector
    } else {
        OutputShape::Matrix
    };
    let values = Head::Values { kind: ValueKind::Predictions, link: Link::None, shape };
    Ok((steps, head.unwrap_or(values)))
}

fn machine(model: &Svm, labels: Labels) -> Result<Parts, Error> {
    if let Some(LinearParts { weights, intercepts, .. }) = model.linear_parts() {
        let rule = if weights.n_rows() == 1 { DecisionRule::Positive } else { DecisionRule::ArgMax };
        let step = linear(weights.n_rows(), weights.into_vec(), &intercepts)?;
        return Ok((vec![step], class_head(labels, (rule, ProbabilityRule::None))));
    }
    let parts = model.kernel_parts().expect("a machine that is not linear has support vectors");
    let KernelParts { classes, kernel, n_support, support_vectors, mut dual, mut intercepts } = parts;
    // The step has libsvm's signs: with two classes, values above 0 are for the first one.
    if classes.len() == 2 {
        dual.iter_mut().chain(&mut intercepts).for_each(|number| *number = -*number);
    }
    let kernel = match kernel {
        SvmKernel::Rbf { gamma } => StepKernel::Rbf { gamma },
        SvmKernel::Linear => StepKernel::Polynomial { gamma: 1.0, coef0: 0.0, degree: 1 },
    };
    let step = KernelStep::new(kernel, n_support, dense(&support_vectors)?, dual.into(), intercepts.into())?;
    let head = ClassHead {
        labels,
        rule: DecisionRule::OneVsOne,
        probabilities: ProbabilityRule::None,
        decision_function: DecisionFunction::OneVsOne,
    };
    Ok((vec![Step::Kernel(step)], Head::Classes(head)))
}

fn dense(rows: &Matrix) -> Result<Table, Error> {
    Table::dense(rows.n_rows(), rows.as_slice().to_vec().into())
}

fn neighbours(
    samples: &Matrix,
    (k, weights): (usize, KnnWeights),
    answer: NeighbourOutput,
) -> Result<Step, Error> {
    let (metric, search) = (NeighbourMetric::Euclidean, NeighbourSearch::InOrder);
    let parts = NeighboursParts { k, metric, weights, samples: dense(samples)?, search, answer };
    Ok(Step::Neighbours(NeighboursStep::new(parts)?))
}

fn bayes(model: &NaiveBayes, labels: Labels) -> Result<Parts, Error> {
    let variances = Covariance::Variances(model.variance().to_vec().into());
    let step =
        GaussianLogDensity::new(model.peak().to_vec().into(), model.mean().to_vec().into(), variances)?;
    let head = class_head(labels, (DecisionRule::ArgMax, ProbabilityRule::Softmax));
    Ok((vec![Step::GaussianLogDensity(step)], head))
}

/// Lists of nodes as a step has them.
#[derive(Default)]
struct TreeLists {
    tree_nodes: Vec<u32>,
    features: Vec<u32>,
    thresholds: Vec<f32>,
    leaves: Vec<u32>,
}

impl TreeLists {
    /// Adds a tree, whose left children follow their parents; `leaf` gives the row of a leaf at a depth.
    fn push<L: Leaf>(
        &mut self,
        nodes: &[TreeNode<L>],
        mut leaf: impl FnMut(&TreeNode<L>, usize) -> Result<u32, Error>,
    ) -> Result<(), Error> {
        // Right children that are still to come, with their depths.
        let (mut ahead, mut depth) = (Vec::new(), 0);
        for node in nodes {
            match node {
                &TreeNode::Split { feature, threshold, .. } => {
                    self.features.push(feature as u32);
                    self.thresholds.push(threshold);
                    depth += 1;
                    ahead.push(depth);
                }
                TreeNode::Leaf { .. } => {
                    self.features.push(LEAF);
                    self.leaves.push(leaf(node, depth)?);
                    depth = ahead.pop().unwrap_or(0);
                }
            }
        }
        self.tree_nodes.push(nodes.len() as u32);
        Ok(())
    }

    /// The step, which begins at `start` and divides by `divisor`.
    fn step(
        &self,
        outputs: TreeOutputs,
        start: &[f64],
        divisor: f64,
        leaf_rows: &[f64],
    ) -> Result<Step, Error> {
        let Self { tree_nodes, features, thresholds, leaves } = self;
        Ok(Step::Trees(TreesStep::new(&TreesParts {
            n_outputs: start.len(),
            outputs,
            start,
            divisor,
            leaf_rows,
            tree_nodes,
            features,
            thresholds: TreeThresholds::Single(thresholds),
            leaves,
        })?))
    }
}

/// Values of leaves, each once.
#[derive(Default)]
struct LeafValues {
    values: Vec<f64>,
    places: BTreeMap<u64, u32>,
}

impl LeafValues {
    fn place(&mut self, value: f64) -> u32 {
        let Self { values, places } = self;
        *places.entry(value.to_bits()).or_insert_with(|| {
            values.push(value);
            values.len() as u32 - 1
        })
    }
}

fn voting(trees: impl IntoIterator<Item = Vec<TreeNode<usize>>>, labels: Labels) -> Result<Parts, Error> {
    let k = labels.len();
    let mut lists = TreeLists::default();
    for tree in trees {
        lists.push(&tree, |node, _| match node {
            &TreeNode::Leaf { value: class, .. } if class >= k => {
                Err(ErrorKind::PartLength { part: "labels", expected: class + 1, found: k }.into())
            }
            TreeNode::Leaf { value: class, .. } => Ok(*class as u32),
            TreeNode::Split { .. } => Ok(0),
        })?;
    }
    let mut votes = Vec::new();
    let too_large = ErrorKind::MatrixTooLarge { n_rows: k, n_cols: k };
    let len = k.checked_mul(k).filter(|&len| votes.try_reserve_exact(len).is_ok()).ok_or(too_large)?;
    votes.resize(len, 0.0);
    votes.iter_mut().step_by(k + 1).for_each(|vote| *vote = 1.0);
    let n_trees = lists.tree_nodes.len() as f64;
    let step = lists.step(TreeOutputs::All, &vec![0.0; k], n_trees, &votes)?;
    Ok((vec![step], class_head(labels, (DecisionRule::ArgMax, ProbabilityRule::Scores))))
}

fn averaging(trees: impl IntoIterator<Item = Vec<TreeNode<f32>>>) -> Result<Parts, Error> {
    let (mut lists, mut leaves) = (TreeLists::default(), LeafValues::default());
    for tree in trees {
        lists.push(&tree, |node, _| Ok(leaves.place(value_of(node))))?;
    }
    let n_trees = lists.tree_nodes.len() as f64;
    Ok((vec![lists.step(TreeOutputs::All, &[0.0], n_trees, &leaves.values)?], VALUE))
}

fn value_of(node: &TreeNode<f32>) -> f64 {
    match node {
        TreeNode::Leaf { value, .. } => (*value).into(),
        TreeNode::Split { .. } => 0.0,
    }
}

fn boosting(boosted: &Boosted) -> Result<Step, Error> {
    let (mut lists, mut leaves) = (TreeLists::default(), LeafValues::default());
    for tree in boosted.to_nodes() {
        lists.push(&tree, |node, _| Ok(leaves.place(boosted.learning_rate * value_of(node))))?;
    }
    lists.step(TreeOutputs::InTurn, &boosted.start, 1.0, &leaves.values)
}

fn clusters(model: &KMeans) -> Result<Parts, Error> {
    let not_fitted = ErrorKind::NotFitted { operation: Operation::Predict };
    let centres = model.centroids().ok_or(not_fitted)?;
    let step = CentroidDistances::new(centres.n_rows(), centres.as_slice().to_vec().into())?;
    Ok((vec![Step::CentroidDistances(step)], Head::Clusters(ClusterRule::ArgMin)))
}

fn mixture(model: &GaussianMixture) -> Result<Parts, Error> {
    let (peaks, triangles): (Vec<f64>, Vec<Vec<f64>>) = model.components()?.into_iter().unzip();
    let means = model.means().map_or(&[][..], Matrix::as_slice);
    let n_features = means.len() / peaks.len().max(1);
    let is_diagonal = triangles.iter().all(|triangle| triangle.len() == n_features);
    let spread = if is_diagonal {
        let variances = triangles.iter().flatten().map(|deviation| deviation * deviation);
        Covariance::Variances(variances.collect::<Vec<f64>>().into())
    } else {
        let factors = triangles.iter().flat_map(|triangle| inverse_transposed(triangle, n_features));
        Covariance::PrecisionFactors(factors.collect::<Vec<f64>>().into())
    };
    let step = GaussianLogDensity::new(peaks.into(), means.to_vec().into(), spread)?;
    Ok((vec![Step::GaussianLogDensity(step)], Head::Clusters(ClusterRule::ArgMax)))
}

/// The transposed inverse of a lower triangle that is given row by row: `[n, n]`.
fn inverse_transposed(triangle: &[f64], n: usize) -> Vec<f64> {
    let mut inverse = vec![0.0; n * n];
    for (col, out) in inverse.chunks_exact_mut(n).enumerate() {
        for row in col..n {
            let factors = &triangle[row * (row + 1) / 2..][..=row];
            let known: f64 = factors[..row].iter().zip(&*out).map(|(factor, value)| factor * value).sum();
            out[row] = (f64::from(u8::from(row == col)) - known) / factors[row];
        }
    }
    inverse
}

fn isolation(model: &IsolationForest) -> Result<Parts, Error> {
    let (mut lists, mut leaves) = (TreeLists::default(), LeafValues::default());
    for tree in model.trees() {
        lists.push(&tree, |node, depth| {
            let n_samples = match node {
                TreeNode::Leaf { n_samples, .. } => *n_samples,
                TreeNode::Split { .. } => 0,
            };
            Ok(leaves.place(IsolationForest::path_length(depth, n_samples)))
        })?;
    }
    // Here values at the threshold go left, there right.
    lists.thresholds.iter_mut().for_each(|threshold| *threshold = threshold.next_down());
    let step = lists.step(TreeOutputs::All, &[0.0], 1.0, &leaves.values)?;
    let n_trees = lists.tree_nodes.len() as f64;
    let threshold = model.threshold().unwrap_or(f32::NEG_INFINITY);
    let head = OutlierHead {
        divisor: n_trees * f64::from(model.c_norm()),
        cut: least_length(|length| model.score(length / n_trees) >= threshold),
        offset: threshold.into(),
    };
    Ok((vec![step], Head::Outliers(head)))
}

/// The least number, not negative, for which `holds`, which does for all above it; infinite if there is none.
fn least_length(holds: impl Fn(f64) -> bool) -> f64 {
    // Bits of numbers that are not negative have their order.
    let (mut low, mut high) = (0, f64::INFINITY.to_bits());
    while low < high {
        let middle = low + (high - low) / 2;
        match holds(f64::from_bits(middle)) {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    f64::from_bits(high)
}

fn projection(model: &Pca) -> Result<Parts, Error> {
    let parts = model.parts();
    let (n_components, components) = (parts.components.n_rows(), parts.components.as_slice().to_vec());
    let centre = ShiftDivide::new(Some(parts.mean.clone().into()), None)?;
    let mut steps =
        vec![Step::ShiftDivide(centre), linear(n_components, components, &vec![0.0; n_components])?];
    if parts.scaling == PcaScaling::Whiten {
        let scales = Reals::from(model.scales().to_vec());
        steps.push(Step::ScaleAdd(ScaleAdd::new(scales, vec![0.0; n_components].into(), None)?));
    }
    let (kind, link, shape) = (ValueKind::Transformed, Link::None, OutputShape::Matrix);
    Ok((steps, Head::Values { kind, link, shape }))
}
