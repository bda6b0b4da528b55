//! Trees and forests, built from theirs; also asked about rows on thresholds and a bit above.

use apr_models::{
    DecisionTreeClassifier, DecisionTreeRegressor, IsolationForest, Matrix, RandomForestClassifier,
    RandomForestRegressor, TreeNode,
};
use serde_json::Value;

use super::{Case, cases, floats, matrix, number, reloaded, whole, wholes, wide};

/// The nodes of a tree whose leaves say what `leaf` makes of their place.
fn nodes<L>(tree: &Value, leaf: impl Fn(usize) -> L) -> Vec<TreeNode<L>> {
    let thresholds = floats(&tree["threshold"]);
    let n_samples = wholes(&tree["n_node_samples"]);
    // Trees that isolate have none.
    let impurity = |idx: usize| tree["impurity"].get(idx).map_or(0.0, number);
    let child = |side: &str, idx: usize| usize::try_from(tree[side][idx].as_i64().unwrap()).ok();
    (0..whole(&tree["n_nodes"]))
        .map(|idx| match (child("left", idx), child("right", idx)) {
            (Some(left), Some(right)) => TreeNode::Split {
                feature: whole(&tree["feature"][idx]),
                threshold: thresholds[idx],
                left,
                right,
                n_samples: n_samples[idx],
                impurity: impurity(idx),
            },
            _ => TreeNode::Leaf { value: leaf(idx), n_samples: n_samples[idx], impurity: impurity(idx) },
        })
        .collect()
}

/// A tree whose leaves say a number.
pub(super) fn values(tree: &Value) -> Vec<TreeNode<f32>> {
    let values = floats(&tree["value"]);
    nodes(tree, |idx| values[idx])
}

/// A tree whose leaves say the class of the greatest share, of equal ones the first.
pub(super) fn classes(tree: &Value, classes: &[usize]) -> Vec<TreeNode<usize>> {
    let shares = floats(&tree["value"]);
    nodes(tree, |idx| {
        let shares = &shares[idx * classes.len()..][..classes.len()];
        let greatest = shares.iter().copied().fold(f32::MIN, f32::max);
        classes[shares.iter().position(|&share| share == greatest).unwrap()]
    })
}

/// What is asked and what is answered: the rows of the table, and the probe beside them.
pub(super) fn questions(case: &Case) -> [(Matrix, Value); 2] {
    let probe = &case.case["probe"];
    [(case.x("rows"), case.case["expected"].clone()), (matrix(&probe["x"]), probe["expected"].clone())]
}

fn forest(case: &Case) -> &[Value] {
    case.part("trees").as_array().unwrap()
}

#[test]
fn trees_say_the_classes_of_there() {
    for case in cases("decision_tree_classifier") {
        let n_features = case.x("rows").n_cols();
        let nodes = classes(case.part("tree"), &wholes(case.part("classes")));
        let model = DecisionTreeClassifier::from_parts(&nodes, n_features).unwrap();
        let model = reloaded(model, DecisionTreeClassifier::from_tensors);
        for (x, expected) in questions(&case) {
            assert_eq!(model.predict(&x), wholes(&expected["predict"]), "{}", case.name());
        }
    }
}

#[test]
fn trees_say_the_values_of_there() {
    for case in cases("decision_tree_regressor") {
        let model = DecisionTreeRegressor::from_parts(&values(case.part("tree"))).unwrap();
        let model = reloaded(model, DecisionTreeRegressor::from_tensors);
        for (x, expected) in questions(&case) {
            case.close("predict", &wide(model.predict(&x).as_slice()), &expected["predict"]);
        }
    }
}

/// Votes, as the peers count them; scikit-learn itself adds shares.
#[test]
fn forests_vote_as_the_trees_of_there() {
    for case in cases("random_forest_classifier") {
        let (n_features, known) = (case.x("rows").n_cols(), wholes(case.part("classes")));
        let trees = forest(&case)
            .iter()
            .map(|tree| DecisionTreeClassifier::from_parts(&classes(tree, &known), n_features).unwrap());
        let model = RandomForestClassifier::from_parts(trees.collect()).unwrap();
        let model = reloaded(model, RandomForestClassifier::from_tensors);
        for (x, expected) in questions(&case) {
            assert_eq!(model.predict(&x), wholes(&expected["hard_predict"]), "{}", case.name());
            let shares = model.try_predict_proba(&x).unwrap();
            let votes = shares.as_slice().iter().map(|share| share * forest(&case).len() as f32);
            let votes: Vec<usize> = votes.map(|votes| votes.round() as usize).collect();
            assert_eq!(votes, wholes(&expected["hard_votes"]["data"]), "{}", case.name());
        }
    }
}

#[test]
fn forests_average_as_there() {
    for case in cases("random_forest_regressor") {
        let trees =
            forest(&case).iter().map(|tree| DecisionTreeRegressor::from_parts(&values(tree)).unwrap());
        let model = RandomForestRegressor::from_parts(trees.collect()).unwrap();
        let model = reloaded(model, RandomForestRegressor::from_tensors);
        for (x, expected) in questions(&case) {
            case.close("predict", &wide(model.predict(&x).as_slice()), &expected["predict"]);
        }
    }
}

#[test]
fn outliers_are_those_of_there() {
    for case in cases("isolation_forest") {
        let trees = forest(&case).iter().map(|tree| {
            let mut nodes = nodes(tree, |_| ());
            for node in &mut nodes {
                // Left goes what is below a cut; there, what is at most the threshold.
                if let TreeNode::Split { threshold, .. } = node {
                    *threshold = threshold.next_up();
                }
            }
            nodes
        });
        let trees: Vec<_> = trees.collect();
        let (max_samples, offset) = (whole(case.part("max_samples")), number(case.part("offset")));
        let model = IsolationForest::from_parts(&trees, max_samples, offset).unwrap();
        let mean_depth = number(case.part("average_path_length_of_max_samples"));
        assert!((model.c_norm() - mean_depth).abs() < 1e-6 * mean_depth, "{}", case.name());
        let model = reloaded(model, IsolationForest::from_tensors);
        for (x, expected) in questions(&case) {
            let scores = model.try_score_samples(&x).unwrap();
            case.close("score_samples", &wide(scores.as_slice()), &expected["score_samples"]);
            for (idx, found) in model.try_predict(&x).unwrap().into_iter().enumerate() {
                if expected["sure"][idx] == true {
                    assert_eq!(
                        i64::from(found),
                        expected["predict"][idx].as_i64().unwrap(),
                        "{}",
                        case.name()
                    );
                }
            }
        }
    }
}
