//! Trees grown here are those of scikit-learn where no splits are equally good; where some are, ours is as good.

use apr_models::{DecisionTreeClassifier, DecisionTreeRegressor, TreeNode, TreeOptions, Vector};

use super::trees::{classes, values};
use super::{Case, cases, number, whole, wholes};

fn options(case: &Case) -> TreeOptions {
    let setting = |name: &str| case.case["params"].get(name).map(whole);
    TreeOptions {
        max_depth: setting("max_depth"),
        min_samples_leaf: setting("min_samples_leaf").unwrap_or(1),
        ..TreeOptions::default()
    }
}

/// Samples and impurity of a node.
fn measures<L>(node: &TreeNode<L>) -> (usize, f64) {
    let (TreeNode::Split { n_samples, impurity, .. } | TreeNode::Leaf { n_samples, impurity, .. }) = node;
    (*n_samples, f64::from(*impurity))
}

/// Compares two trees from the root down to the first splits that differ, which must be equally good; how many nodes were equal, and
/// how many splits not.
fn compare<L: PartialEq + core::fmt::Debug>(ours: &[TreeNode<L>], theirs: &[TreeNode<L>]) -> (usize, usize) {
    let (mut equal, mut tied) = (0, 0);
    let mut ahead = vec![(0, 0)];
    while let Some((our, their)) = ahead.pop() {
        let ((our_samples, our_impurity), (samples, impurity)) =
            (measures(&ours[our]), measures(&theirs[their]));
        assert_eq!(our_samples, samples, "{:?} {:?}", ours[our], theirs[their]);
        assert!((our_impurity - impurity).abs() <= 1e-6 * impurity, "{:?} {:?}", ours[our], theirs[their]);
        match (&ours[our], &theirs[their]) {
            (TreeNode::Leaf { value, .. }, TreeNode::Leaf { value: expected, .. }) => {
                assert_eq!(value, expected);
                equal += 1;
            }
            (
                &TreeNode::Split { feature, threshold, left, right, .. },
                &TreeNode::Split { feature: f, threshold: t, left: l, right: r, .. },
            ) => {
                if (feature, threshold) == (f, t) {
                    equal += 1;
                    ahead.extend([(left, l), (right, r)]);
                    continue;
                }
                tied += 1;
                let left_over = |nodes: &[TreeNode<L>], sides: [usize; 2]| -> f64 {
                    sides
                        .map(|side| measures(&nodes[side]))
                        .map(|(n, impurity)| n as f64 * impurity)
                        .iter()
                        .sum()
                };
                let (found, expected) = (left_over(ours, [left, right]), left_over(theirs, [l, r]));
                assert!((found - expected).abs() <= 1e-5 * expected, "{:?} {:?}", ours[our], theirs[their]);
            }
            different => panic!("{different:?}"),
        }
    }
    (equal, tied)
}

#[test]
fn classifiers_grow_as_there() {
    for case in cases("decision_tree_classifier") {
        let y: Vec<usize> = case.target("train_rows").into_iter().map(whole).collect();
        let model = DecisionTreeClassifier::fit(&case.x("train_rows"), &y, &options(&case)).unwrap();
        let ours: Vec<_> = model.nodes().collect();
        let theirs = classes(case.part("tree"), &wholes(case.part("classes")));
        let (equal, tied) = compare(&ours, &theirs);
        // Two features of iris divide the root alike.
        assert!(equal > 0 || case.name().starts_with("iris"), "{}: {equal} equal, {tied} tied", case.name());
        assert_eq!(ours.len(), theirs.len(), "{}", case.name());
    }
}

#[test]
fn regressors_grow_as_there() {
    for case in cases("decision_tree_regressor") {
        let y = case.target("train_rows").into_iter().map(number).collect();
        let x = case.x("train_rows");
        let model = DecisionTreeRegressor::fit(&x, &Vector::from_vec(y), &options(&case)).unwrap();
        let ours: Vec<_> = model.nodes().collect();
        let theirs = values(case.part("tree"));
        let (equal, tied) = compare(&ours, &theirs);
        assert!(equal > ours.len() / 2, "{}: {equal} equal, {tied} tied", case.name());
        assert_eq!(ours.len(), theirs.len(), "{}", case.name());
    }
}
