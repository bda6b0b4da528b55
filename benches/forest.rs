//! Trees of pipelines: one row, and many.
//!
//! `cargo bench --bench forest -- [--write] [--rounds N] [ROW...]`. The forest is made up: trees that divide the samples
//! they would have been trained on at random, down to single ones. With `FOREST` set to a folder that `forest.py` wrote, it
//! is scikit-learn's, and its answers are compared first.

use std::fs;
use std::path::Path;

use apr_benches::{Plan, Work, contender};
use apr_container::{ModelType, PayloadLayout, decode_payload_from_slice};
use apr_models::{
    Accepts, ClassHead, Classifier, DecisionFunction, DecisionRule, DecisionTreeClassifier, Head, Input,
    Labels, Matrix, Pipeline, ProbabilityRule, RandomForestClassifier, Samples, Step, TreeNode, TreeOutputs,
    TreeThresholds, TreesParts, TreesStep,
};

const N_TREES: usize = 300;
const N_SAMPLES: usize = 9000;
const N_FEATURES: usize = 20;
const N_ROWS: usize = 3000;
const LEAF: u32 = u32::MAX;

fn main() {
    let mut plan = Plan::from_arguments(&["median", "best", "median ratio to the first"]);
    if let Ok(folder) = std::env::var("FOREST") {
        let (model, rows) = from_scikit_learn(Path::new(&folder));
        run(&mut plan, "scikit-learn's forest", &model, &rows, None);
        return;
    }
    let (model, votes) = Grown::forest();
    let mut dice = Dice(7);
    let rows: Vec<f64> = (0..N_ROWS * N_FEATURES).map(|_| f64::from(dice.uniform() as f32)).collect();
    run(&mut plan, "forest", &model, &rows, Some(&votes));
    plan.finish("forest");
}

fn run(plan: &mut Plan, name: &str, model: &Pipeline, rows: &[f64], votes: Option<&RandomForestClassifier>) {
    let Input::Numbers { n_features: width, .. } = *model.input() else { return };
    let n_probabilities = model.n_probabilities().expect("a forest of classes");
    for (row, rows) in
        [(format!("{name}, one row"), &rows[..width]), (format!("{name}, a row of many"), rows)]
    {
        let n_rows = rows.len() / width;
        let mut shares = vec![0.0; n_rows * n_probabilities];
        let narrow: Vec<f32> = rows.iter().map(|&value| value as f32).collect();
        let narrow = Matrix::from_vec(n_rows, width, narrow).expect("as many values");
        let mut contenders = vec![contender("Pipeline, probabilities", || {
            model.predict_proba_into(Samples::F64(rows), &mut shares).expect("rows of the model");
        })];
        contenders.extend(votes.map(|votes| {
            contender("RandomForestClassifier, votes", || {
                votes.try_predict(&narrow).expect("rows of the model")
            })
        }));
        plan.run(&row, Work::Times(n_rows as u32), contenders);
    }
}

/// A payload, rows and what scikit-learn says of them.
fn from_scikit_learn(folder: &Path) -> (Pipeline, Vec<f64>) {
    let read = |name: &str| fs::read(folder.join(name)).expect("forest.py has written this");
    let numbers = |name: &str| -> Vec<f64> {
        read(name).as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()
    };
    let model: Pipeline =
        decode_payload_from_slice(&read("payload"), PayloadLayout::default(), ModelType::Custom)
            .expect("sound");
    let (rows, expected) = (numbers("rows"), numbers("expected"));
    let mut found = vec![0.0; expected.len()];
    model.predict_proba_into(Samples::F64(&rows), &mut found).expect("rows of the model");
    assert_eq!(found, expected, "the answers are scikit-learn's, to the bit");
    (model, rows)
}

/// Trees in the order of walks, and the same for the other forest.
#[derive(Default)]
struct Grown {
    features: Vec<u32>,
    thresholds: Vec<f32>,
    leaves: Vec<u32>,
    nodes: Vec<TreeNode<usize>>,
}

impl Grown {
    fn forest() -> (Pipeline, RandomForestClassifier) {
        let (mut all, mut trees, mut tree_nodes, mut dice) = (Self::default(), vec![], vec![], Dice(1));
        for _ in 0..N_TREES {
            all.nodes.clear();
            all.grow(N_SAMPLES, &mut [(0.0, 1.0); N_FEATURES], &mut dice);
            tree_nodes.push(all.nodes.len() as u32);
            trees.push(DecisionTreeClassifier::from_parts(&all.nodes, N_FEATURES).expect("a whole tree"));
        }
        let parts = TreesParts {
            n_outputs: 2,
            outputs: TreeOutputs::All,
            start: &[0.0, 0.0],
            divisor: N_TREES as f64,
            leaf_rows: &[1.0, 0.0, 0.0, 1.0],
            tree_nodes: &tree_nodes,
            features: &all.features,
            thresholds: TreeThresholds::Single(&all.thresholds),
            leaves: &all.leaves,
        };
        let steps = vec![Step::Trees(TreesStep::new(&parts).expect("whole trees"))];
        let input = Input::Numbers { n_features: N_FEATURES, accepts: Accepts::Finite };
        let head = ClassHead {
            labels: Labels::Integers(vec![0, 1]),
            rule: DecisionRule::ArgMax,
            probabilities: ProbabilityRule::Scores,
            decision_function: DecisionFunction::None,
        };
        let model = Pipeline::from_parts(input, steps, Head::Classes(head)).expect("parts that fit");
        (model, RandomForestClassifier::from_parts(trees).expect("trees of one width"))
    }

    /// A node that so many samples would reach, between those bounds of each feature. Returns its place.
    fn grow(&mut self, n_samples: usize, bounds: &mut [(f64, f64); N_FEATURES], dice: &mut Dice) -> usize {
        let place = self.nodes.len();
        // Samples of one class end a tree sooner.
        if n_samples < 2 || (n_samples < 12 && dice.uniform() < 0.4) {
            let value = usize::from(dice.uniform() < 0.5);
            self.features.push(LEAF);
            self.leaves.push(value as u32);
            self.nodes.push(TreeNode::Leaf { value, n_samples: 0, impurity: 0.0 });
            return place;
        }
        let feature = (dice.uniform() * N_FEATURES as f64) as usize;
        let part = 0.1 + 0.8 * dice.uniform();
        let (low, high) = bounds[feature];
        let threshold = low + part * (high - low);
        self.features.push(feature as u32);
        self.thresholds.push(threshold as f32);
        self.nodes.push(TreeNode::Leaf { value: 0, n_samples: 0, impurity: 0.0 });
        let n_left = ((n_samples as f64 * part) as usize).clamp(1, n_samples - 1);
        bounds[feature] = (low, threshold);
        let left = self.grow(n_left, bounds, dice);
        bounds[feature] = (threshold, high);
        let right = self.grow(n_samples - n_left, bounds, dice);
        bounds[feature] = (low, high);
        let threshold = threshold as f32;
        self.nodes[place] = TreeNode::Split { feature, threshold, left, right, n_samples: 0, impurity: 0.0 };
        place
    }
}

/// Numbers from 0 to 1, the same every time.
struct Dice(u64);

impl Dice {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f64 / (1_u64 << 24) as f64
    }
}
