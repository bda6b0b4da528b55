//! Models of every type the peers can read, each with the parts that are easily got wrong: absent values, negative zero, the
//! smallest and greatest numbers, one element and many.

use std::path::Path;

use apr_container::{
    DecodePayload, EncodePayload, Error, Expect, ModelType, PayloadLayout, ReadOptions, SaveOptions,
    encode_payload_to_vec, load_with, save,
};
use apr_models::{
    AnyModel, ClassWeight, CovarianceType, Dbscan, DecisionTreeClassifier, DecisionTreeRegressor, ElasticNet,
    FitMode, GaussianMixture, Intercept, IsolationForest, KMeans, Lasso, LinearRegression,
    LogisticRegression, Matrix, MinMaxScaler, MixtureOfExperts, MoeConfig, Numbers, QuantType,
    QuantizedBlock, RandomForestClassifier, RandomForestRegressor, Ridge, SoftmaxGating, StandardScaler,
    TreeNode, Vector,
};

type Save = dyn Fn(&Path, SaveOptions<'_>) -> Result<(), String>;

/// A model of ours, and what the peers call its type.
pub(crate) struct Sample {
    pub(crate) rust_type: &'static str,
    what: &'static str,
    /// Version 1 that has the type.
    pub(crate) since: PayloadLayout,
    pub(crate) save: Box<Save>,
    /// The payload in a layout's layout.
    pub(crate) payload: Box<dyn Fn(PayloadLayout) -> Result<Vec<u8>, String>>,
    /// Loads a file as the same type, and makes its payload again.
    pub(crate) reread: fn(&Path, PayloadLayout) -> Result<Vec<u8>, String>,
}

impl Sample {
    fn of<M>(rust_type: &'static str, what: &'static str, model_type: ModelType, model: M) -> Self
    where
        M: EncodePayload + DecodePayload + Clone + 'static,
    {
        let twin = model.clone();
        Self {
            rust_type,
            what,
            since: PayloadLayout::V0_10,
            save: Box::new(move |path, options| save(&model, model_type, path, options).map_err(text)),
            payload: Box::new(move |layout| encode_payload_to_vec(&twin, layout).map_err(text)),
            reread: reread::<M>,
        }
    }

    fn since(mut self, layout: PayloadLayout) -> Self {
        self.since = layout;
        self
    }

    /// The name of the row.
    pub(crate) fn name(&self) -> String {
        match self.what {
            "" => self.rust_type.to_owned(),
            what => format!("{}, {what}", self.rust_type),
        }
    }
}

/// Loads a file as some type, and makes its payload again.
fn reread<M: EncodePayload + DecodePayload>(path: &Path, layout: PayloadLayout) -> Result<Vec<u8>, String> {
    let model: M = load_with(path, Expect::AnyKnown, &ReadOptions::STRICT).map_err(text)?;
    encode_payload_to_vec(&model, layout).map_err(text)
}

/// Loads a file as whatever it holds, and makes its payload again.
pub(crate) fn reread_any(path: &Path, layout: PayloadLayout) -> Result<Vec<u8>, String> {
    reread::<AnyModel>(path, layout)
}

fn text(error: Error) -> String {
    error.to_string()
}

/// Numbers that are the same in every run.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 16
    }

    fn below(&mut self, end: usize) -> usize {
        self.bits() as usize % end
    }

    /// Between -2 and 2.
    fn number(&mut self) -> f32 {
        (self.bits() & 0xFF_FFFF) as f32 / (1 << 22) as f32 - 2.0
    }

    fn numbers(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.number()).collect()
    }
}

/// The edges of what a valid model can hold.
const EDGES: [f32; 8] =
    [0.0, -0.0, f32::MIN_POSITIVE, f32::from_bits(1), f32::MAX, f32::MIN, f32::EPSILON, 16_777_217.0];

fn edges() -> Vector {
    Vector::from_vec(EDGES.to_vec())
}

/// Every sample.
pub(crate) fn all() -> Result<Vec<Sample>, String> {
    let mut samples = Vec::new();
    for family in [linear, logistic, trees, clusters, scalers, mixtures, lists] {
        family(&mut samples).map_err(|error| error.to_string())?;
    }
    Ok(samples)
}

fn linear(samples: &mut Vec<Sample>) -> Result<(), apr_models::Error> {
    let mut random = Random::new(1);
    let kind = ModelType::LinearRegression;
    let mut add = |what, model| samples.push(Sample::of("LinearRegression", what, kind, model));
    add("not fitted", LinearRegression::new());
    add("one coefficient", LinearRegression::from_parts(Vector::from_vec(vec![-2.5]), -0.0)?);
    add("edges", LinearRegression::from_parts(edges(), f32::MAX)?.with_intercept(Intercept::Zero));
    add("100,000", LinearRegression::from_parts(Vector::from_vec(random.numbers(100_000)), 0.25)?);
    let few = || Vector::from_vec(Random::new(2).numbers(5));
    samples.push(Sample::of("Ridge", "", kind, Ridge::from_parts(0.1, few(), 1.5)?));
    samples.push(Sample::of("Ridge", "not fitted", kind, Ridge::new(1.0)?.with_intercept(Intercept::Zero)));
    let lasso = Lasso::from_parts(0.01, few(), -1.5)?.with_stop(12_345, 1e-6);
    samples.push(Sample::of("Lasso", "", kind, lasso));
    let net =
        ElasticNet::from_parts(0.01, 0.7, edges(), 0.0)?.with_stop(1, 0.0).with_intercept(Intercept::Zero);
    samples.push(Sample::of("ElasticNet", "", kind, net));
    Ok(())
}

fn logistic(samples: &mut Vec<Sample>) -> Result<(), apr_models::Error> {
    let mut add = |what, model| {
        samples.push(Sample::of("LogisticRegression", what, ModelType::LogisticRegression, model))
    };
    add("not fitted", LogisticRegression::new());
    let fitted = || LogisticRegression::from_parts(edges(), -0.0);
    add("balanced", fitted()?.with_class_weight(ClassWeight::Balanced).with_max_iter(7).with_tol(0.0));
    let weighted = fitted()?.with_class_weight(ClassWeight::Manual(vec![0.25, 4.0])).with_l2_penalty(0.125);
    add("weighted, in small batches", weighted.with_descent(0.5, FitMode::MiniBatch(32)));
    add("one by one", fitted()?.with_descent(1e-9, FitMode::Stochastic));
    Ok(())
}

/// A tree whose nodes lie in no particular order, with `n_splits` tests.
fn nodes<L: Copy>(
    random: &mut Random,
    n_splits: usize,
    mut leaf: impl FnMut(&mut Random) -> L,
) -> Vec<TreeNode<L>> {
    let mut nodes = vec![];
    let mut end = |random: &mut Random| TreeNode::Leaf {
        value: leaf(random),
        n_samples: random.below(1000),
        impurity: random.number().abs(),
    };
    nodes.push(end(random));
    // Each step turns a leaf into a test of its own with two leaves.
    for _ in 0..n_splits {
        let leaves: Vec<usize> =
            (0..nodes.len()).filter(|&idx| matches!(nodes[idx], TreeNode::Leaf { .. })).collect();
        let idx = leaves[random.below(leaves.len())];
        let (left, right) = (nodes.len(), nodes.len() + 1);
        let (feature, threshold) = (random.below(5), random.number());
        let (n_samples, impurity) = (random.below(1000), random.number().abs());
        nodes[idx] = TreeNode::Split { feature, threshold, left, right, n_samples, impurity };
        nodes.extend([end(random), end(random)]);
    }
    nodes
}

/// A tree that goes down on one side only.
fn chain(depth: usize) -> Vec<TreeNode<usize>> {
    let end = |value| TreeNode::Leaf { value, n_samples: 1, impurity: 0.0 };
    let step = |idx: usize| {
        let (left, right) = (2 * idx + 1, 2 * idx + 2);
        let split = TreeNode::Split {
            feature: idx % 3,
            threshold: -0.0,
            left,
            right,
            n_samples: depth,
            impurity: 0.5,
        };
        [split, end(idx % 2)]
    };
    let mut nodes: Vec<TreeNode<usize>> = (0..depth).flat_map(step).collect();
    nodes.push(end(1));
    // A split, its left leaf, then the next split, which is its right child.
    nodes
}

fn trees(samples: &mut Vec<Sample>) -> Result<(), apr_models::Error> {
    let mut random = Random::new(3);
    let class = |random: &mut Random| random.below(4);
    let value = |random: &mut Random| random.number();
    let kind = ModelType::DecisionTree;
    let mut add = |what, model| samples.push(Sample::of("DecisionTreeClassifier", what, kind, model));
    add("not fitted", DecisionTreeClassifier::default());
    add("one leaf", DecisionTreeClassifier::from_parts(&nodes(&mut random, 0, class), 5)?);
    add(
        "300 tests",
        DecisionTreeClassifier::from_parts(&nodes(&mut random, 300, class), 5)?.with_max_depth(Some(40)),
    );
    add("100 deep", DecisionTreeClassifier::from_parts(&chain(100), 3)?);
    let mut add = |what, model| samples.push(Sample::of("DecisionTreeRegressor", what, kind, model));
    add("one leaf", DecisionTreeRegressor::from_parts(&nodes(&mut random, 0, value))?);
    add("300 tests", DecisionTreeRegressor::from_parts(&nodes(&mut random, 300, value))?);

    let kind = ModelType::RandomForest;
    let forest: Result<Vec<_>, _> = (0..7)
        .map(|size| DecisionTreeClassifier::from_parts(&nodes(&mut random, size * 9, class), 5))
        .collect();
    let forest = RandomForestClassifier::from_parts(forest?)?.with_training(Some(9), Some(u64::MAX));
    samples.push(Sample::of("RandomForestClassifier", "7 trees", kind, forest));
    let forest: Result<Vec<_>, _> =
        (0..5).map(|size| DecisionTreeRegressor::from_parts(&nodes(&mut random, size * 9, value))).collect();
    samples.push(Sample::of(
        "RandomForestRegressor",
        "5 trees",
        kind,
        RandomForestRegressor::from_parts(forest?)?,
    ));
    Ok(())
}

fn clusters(samples: &mut Vec<Sample>) -> Result<(), apr_models::Error> {
    let mut random = Random::new(4);
    let mut add = |what, model| samples.push(Sample::of("KMeans", what, ModelType::KMeans, model));
    add("not fitted", KMeans::new(3)?.with_max_iter(5).with_tol(0.5));
    add("centres alone", KMeans::from_parts(Matrix::from_vec(2, 4, EDGES.map(|edge| edge / 4.0).to_vec())?)?);
    let mut fitted = KMeans::new(4)?.with_random_state(u64::MAX);
    fitted.fit(&Matrix::from_vec(200, 3, random.numbers(600))?)?;
    add("fitted", fitted);

    let kind = ModelType::Custom;
    let labels = (0..1000).map(|_| random.below(9) as i32 - 1).collect();
    samples.push(Sample::of("DBSCAN", "", kind, Dbscan::from_parts(0.5, 5, labels)?));
    samples.push(Sample::of("DBSCAN", "no samples", kind, Dbscan::from_parts(f32::MIN_POSITIVE, 0, vec![])?));

    let covariances = [[1.0, 0.25, 0.25, 2.0], [0.5, -0.125, -0.125, 0.75], [4.0, 0.0, 0.0, 1e-3]];
    for (what, kind_of_covariance) in [
        ("full", CovarianceType::Full),
        ("tied", CovarianceType::Tied),
        ("diagonal", CovarianceType::Diag),
        ("spherical", CovarianceType::Spherical),
    ] {
        let means = Matrix::from_vec(3, 2, random.numbers(6))?;
        let covariances = covariances.map(|values| Matrix::from_vec(2, 2, values.to_vec()));
        let covariances = covariances.into_iter().collect::<Result<Vec<_>, _>>()?;
        let model =
            GaussianMixture::from_parts(kind_of_covariance, means, covariances, vec![0.25, 0.25, 0.5])?;
        let model = model.with_training(77, 1e-6, Some(42));
        samples.push(Sample::of("GaussianMixture", what, kind, model));
    }

    let grown: Vec<_> = (0..9).map(|size| nodes(&mut random, size * 5, |_| ())).collect();
    let forest = IsolationForest::from_parts(&grown, 64, -0.5)?;
    samples.push(Sample::of("IsolationForest", "9 trees", kind, forest.with_training(0.0625, Some(7))));
    Ok(())
}

fn scalers(samples: &mut Vec<Sample>) -> Result<(), apr_models::Error> {
    let mut random = Random::new(5);
    let kind = ModelType::Custom;
    let std = EDGES.map(f32::abs).to_vec();
    let mut add = |what, model| samples.push(Sample::of("StandardScaler", what, kind, model));
    add("edges", StandardScaler::from_parts(EDGES.to_vec(), std.clone())?.without_scaling());
    add("", StandardScaler::from_parts(random.numbers(8), std)?.without_centring());
    let (low, high) = (random.numbers(8), random.numbers(8));
    let ordered = |pick: fn(f32, f32) -> f32| low.iter().zip(&high).map(|(a, b)| pick(*a, *b)).collect();
    let model = MinMaxScaler::from_parts(ordered(f32::min), ordered(f32::max), (-1.0, 1.0))?;
    samples.push(Sample::of("MinMaxScaler", "", kind, model));
    Ok(())
}

fn mixtures(samples: &mut Vec<Sample>) -> Result<(), apr_models::Error> {
    let mut random = Random::new(6);
    let gating = SoftmaxGating::from_parts(3, 4, 0.5, random.numbers(12))?;
    let mut builder = MixtureOfExperts::<LinearRegression>::builder().gating(gating);
    for _ in 0..4 {
        builder = builder
            .expert(LinearRegression::from_parts(Vector::from_vec(random.numbers(3)), random.number())?);
    }
    let config = MoeConfig::default().with_top_k(2).with_capacity_factor(1.25).with_expert_dropout(0.1);
    let model = builder.config(config.with_load_balance_weight(0.01)).build()?;
    let sample = Sample::of("MixtureOfExperts", "4 linear", ModelType::MixtureOfExperts, model);
    samples.push(sample.since(PayloadLayout::V0_15));
    Ok(())
}

/// Lists of numbers, which files of any type can hold.
fn lists(samples: &mut Vec<Sample>) -> Result<(), apr_models::Error> {
    // Bits that no constructor sees: numbers that are none, with their payloads.
    let none = [f32::NAN, -f32::NAN, f32::from_bits(0x7FA0_0001), f32::INFINITY, f32::NEG_INFINITY];
    samples.push(Sample::of("Vec<f32>", "none", ModelType::Pca, Numbers::from(vec![])));
    samples.push(Sample::of("Vec<f32>", "no numbers", ModelType::NeuralCustom, Numbers::from(none.to_vec())));
    let many = Random::new(8).numbers(100_003);
    samples.push(Sample::of("Vec<f32>", "100,003", ModelType::Knn, Numbers::from(many)));
    let mut random = Random::new(9);
    for (what, quant_type, block_len) in [("Q8_0", QuantType::Q8_0, 34), ("Q4_0", QuantType::Q4_0, 18)] {
        let blocks = (0..7 * block_len).map(|_| random.bits() as u8).collect();
        let model = QuantizedBlock::from_parts(quant_type, vec![5, 43], blocks)?;
        samples.push(Sample::of("QuantizedBlock", what, ModelType::NeuralSequential, model));
    }
    let own = QuantizedBlock::from_parts(QuantType::Custom, vec![2, 2], vec![1, 2, 3])?;
    samples.push(Sample::of("QuantizedBlock", "custom", ModelType::NeuralSequential, own));
    Ok(())
}
