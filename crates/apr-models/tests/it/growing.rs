//! Training of trees, forests and boosted trees: what holds for any data, and what is refused.

use apr_container::{EncodePayload, PayloadLayout, encode_payload_to_vec};
use apr_models::{
    Alone, BoostingOptions, ClassWeight, Contamination, DecisionTreeClassifier, DecisionTreeRegressor,
    EarlyStopping, Error, ErrorKind, ForestOptions, GradientBoostingClassifier, GradientBoostingRegressor,
    IsolationForest, IsolationOptions, Job, Matrix, MaxFeatures, Model, RandomForestClassifier,
    RandomForestRegressor, TreeNode, TreeOptions, TreeSamples, Vector, Workers,
};
use proptest::prelude::*;

use crate::data::Numbers;

/// A table of `n_rows` with few distinct values in some columns, and classes that depend on it.
fn table(n_rows: usize, n_cols: usize, seed: u64) -> (Matrix, Vec<usize>) {
    let mut numbers = Numbers(seed);
    let mut values: Vec<f32> = numbers.by_ref().take(n_rows * n_cols).collect();
    values.iter_mut().step_by(3).for_each(|value| *value = (*value * 4.0).round());
    let x = Matrix::from_vec(n_rows, n_cols, values).unwrap();
    let class = |(row, noise): (&[f32], f32)| {
        usize::from(row[0] > 0.0) + usize::from(row[n_cols - 1] + 0.2 * noise > 0.3)
    };
    let y = x.rows().zip(numbers).map(class).collect();
    (x, y)
}

fn values(y: &[usize]) -> Vector {
    Vector::from_vec(y.iter().map(|&class| class as f32 * 1.5 - 7.0).collect())
}

fn bytes<M: Model + EncodePayload>(model: &M) -> Vec<u8> {
    encode_payload_to_vec(model, PayloadLayout::default()).unwrap()
}

/// Samples of a node, its depth, and whether it is a leaf, in the order of the nodes.
fn outline<L>(nodes: &[TreeNode<L>]) -> Vec<(usize, usize, bool)> {
    let mut depths = vec![0; nodes.len()];
    let mut found = Vec::new();
    for (idx, node) in nodes.iter().enumerate() {
        found.push(match node {
            TreeNode::Split { left, right, n_samples, .. } => {
                (depths[*left], depths[*right]) = (depths[idx] + 1, depths[idx] + 1);
                (*n_samples, depths[idx], false)
            }
            TreeNode::Leaf { n_samples, .. } => (*n_samples, depths[idx], true),
        });
    }
    found
}

fn limits() -> impl Strategy<Value = TreeOptions> {
    (proptest::option::of(1..6_usize), proptest::option::of(2..9_usize), 2..12_usize, 1..6_usize).prop_map(
        |(max_depth, max_leaves, min_samples_split, min_samples_leaf)| TreeOptions {
            max_depth,
            max_leaves,
            min_samples_split,
            min_samples_leaf,
            ..TreeOptions::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn leaves_divide_the_samples_within_the_limits(
        n_rows in 1..700_usize, n_cols in 1..5_usize, seed: u64, options in limits(),
    ) {
        let (x, y) = table(n_rows, n_cols, seed);
        let model = DecisionTreeClassifier::fit(&x, &y, &options).unwrap();
        let nodes: Vec<_> = model.nodes().collect();
        let outline = outline(&nodes);
        let leaves = || outline.iter().filter(|(_, _, is_leaf)| *is_leaf);
        prop_assert_eq!(leaves().map(|(n_samples, _, _)| n_samples).sum::<usize>(), n_rows);
        prop_assert!(outline.iter().all(|&(_, depth, _)| depth <= options.max_depth.unwrap_or(usize::MAX)));
        prop_assert!(leaves().count() <= options.max_leaves.unwrap_or(usize::MAX));
        let split = |&(n_samples, _, is_leaf): &(usize, usize, bool)| is_leaf || n_samples >= options.min_samples_split;
        prop_assert!(outline.iter().all(split));
        prop_assert!(outline.iter().skip(1).all(|&(n_samples, _, _)| n_samples >= options.min_samples_leaf));
        // Rows reach the leaves that counted them.
        let mut reached = vec![0; nodes.len()];
        for row in x.rows() {
            let mut idx = 0;
            while let TreeNode::Split { feature, threshold, left, right, .. } = nodes[idx] {
                idx = if row[feature] <= threshold { left } else { right };
            }
            reached[idx] += 1;
        }
        for (reached, (n_samples, _, is_leaf)) in reached.iter().zip(&outline) {
            prop_assert_eq!(*reached, if *is_leaf { *n_samples } else { 0 });
        }
        let importances = model.feature_importances();
        let sum: f64 = importances.iter().sum();
        prop_assert!(importances.len() == n_cols && (nodes.len() == 1 && sum == 0.0 || (sum - 1.0).abs() < 1e-9));
    }

    #[test]
    fn whole_trees_repeat_what_the_table_says(n_rows in 1..400_usize, seed: u64) {
        // No two rows are equal in a column of distinct values.
        let (mut values, y): (Vec<f32>, Vec<usize>) =
            (0..n_rows as u16).map(f32::from).zip(Numbers(seed).map(|number| usize::from(number > 0.0))).unzip();
        values.reverse();
        let x = Matrix::from_vec(n_rows, 1, values).unwrap();
        let model = DecisionTreeClassifier::fit(&x, &y, &TreeOptions::default()).unwrap();
        prop_assert_eq!(model.predict(&x), y.clone());
        let numbers = Vector::from_vec(Numbers(seed).take(n_rows).collect());
        let model = DecisionTreeRegressor::fit(&x, &numbers, &TreeOptions::default()).unwrap();
        for (found, expected) in model.predict(&x).iter().zip(numbers.iter()) {
            prop_assert!((found - expected).abs() <= 1e-6);
        }
    }

    #[test]
    fn isolation_trees_divide_their_samples(n_rows in 2..400_usize, n_cols in 1..4_usize, seed: u64) {
        let (x, _) = table(n_rows, n_cols, seed);
        let options = IsolationOptions { n_estimators: 3, seed, ..IsolationOptions::default() };
        let model = IsolationForest::fit(&x, &options).unwrap();
        for nodes in model.trees() {
            let outline = outline(&nodes);
            let leaves = outline.iter().filter(|(_, _, is_leaf)| *is_leaf);
            prop_assert_eq!(leaves.map(|(n_samples, _, _)| n_samples).sum::<usize>(), n_rows.min(256));
            prop_assert!(outline.iter().all(|&(n_samples, depth, _)| n_samples > 0 && depth <= 8));
        }
    }
}

#[test]
fn same_seed_same_bytes() {
    let (x, y) = table(600, 5, 3);
    let numbers = values(&y);
    let forest = |seed| ForestOptions { n_estimators: 5, seed, ..ForestOptions::default() };
    let boosting = |seed| BoostingOptions {
        n_estimators: 8,
        subsample: 0.7,
        early_stopping: Some(EarlyStopping::default()),
        seed,
        ..BoostingOptions::default()
    };
    let isolation = |seed| IsolationOptions { n_estimators: 5, seed, ..IsolationOptions::default() };
    let all = |seed| {
        [
            bytes(&RandomForestClassifier::fit(&x, &y, &forest(seed)).unwrap()),
            bytes(&RandomForestRegressor::fit(&x, &numbers, &forest(seed)).unwrap()),
            bytes(&GradientBoostingClassifier::fit(&x, &y, &boosting(seed)).unwrap()),
            bytes(&GradientBoostingRegressor::fit(&x, &numbers, &boosting(seed)).unwrap()),
            bytes(&IsolationForest::fit(&x, &isolation(seed)).unwrap()),
        ]
    };
    let (first, again, other) = (all(1), all(1), all(2));
    assert_eq!(first, again);
    assert!(first.iter().zip(&other).all(|(first, other)| first != other));
}

#[test]
fn bits_are_those_of_every_platform() {
    // A checksum of the models; differs if a sum is taken in another order.
    let (x, y) = table(900, 6, 11);
    let fletcher = |bytes: Vec<u8>| {
        let (mut a, mut b) = (0_u64, 0_u64);
        for byte in bytes {
            a = (a + u64::from(byte)) % 65_521;
            b = (b + a) % 65_521;
        }
        b << 16 | a
    };
    let boosting = BoostingOptions { n_estimators: 10, max_leaves: Some(7), ..BoostingOptions::default() };
    let forest = ForestOptions { n_estimators: 4, ..ForestOptions::default() };
    let isolation =
        IsolationOptions { contamination: Contamination::Share(0.1), ..IsolationOptions::default() };
    let found = [
        fletcher(bytes(&GradientBoostingClassifier::fit(&x, &y, &boosting).unwrap())),
        fletcher(bytes(&RandomForestRegressor::fit(&x, &values(&y), &forest).unwrap())),
        fletcher(bytes(&IsolationForest::fit(&x, &isolation).unwrap())),
    ];
    assert_eq!(found, [266_396_523, 1_775_575_587, 183_737_370]);
}

#[test]
fn settings_are_stored() {
    let (x, y) = table(100, 3, 1);
    let tree = TreeOptions {
        max_depth: Some(4),
        min_samples_split: 5,
        min_samples_leaf: 2,
        ..TreeOptions::default()
    };
    assert_eq!(DecisionTreeClassifier::fit(&x, &y, &tree).unwrap().max_depth(), Some(4));
    let regressor = DecisionTreeRegressor::fit(&x, &values(&y), &tree).unwrap();
    assert_eq!(
        (regressor.max_depth(), regressor.min_samples_split(), regressor.min_samples_leaf()),
        (Some(4), 5, 2)
    );
    let options = ForestOptions { n_estimators: 3, tree, seed: 9, ..ForestOptions::default() };
    let forest = RandomForestClassifier::fit(&x, &y, &options).unwrap();
    assert_eq!((forest.n_estimators(), forest.max_depth(), forest.random_state()), (3, Some(4), Some(9)));
    let isolation =
        IsolationOptions { contamination: Contamination::Share(0.2), seed: 4, ..IsolationOptions::default() };
    let model = IsolationForest::fit(&x, &isolation).unwrap();
    assert_eq!(model.contamination(), 0.2);
    let outliers = model.try_predict(&x).unwrap().iter().filter(|&&answer| answer == -1).count();
    assert_eq!(outliers, 20);
    let auto = IsolationForest::fit(&x, &IsolationOptions::default()).unwrap();
    assert_eq!((auto.threshold(), auto.contamination()), (Some(-0.5), 0.0));
}

#[test]
fn weights_count_like_repeated_samples() {
    let (x, y) = table(120, 3, 5);
    let weights: Vec<f32> = (0..120_u8).map(|row| f32::from(row % 4)).collect();
    let repeated: Vec<usize> = (0..120).flat_map(|row| vec![row; row % 4]).collect();
    let rows = repeated.iter().flat_map(|&row| x.row(row).unwrap()).copied().collect();
    let long = Matrix::from_vec(repeated.len(), 3, rows).unwrap();
    let of_long: Vec<usize> = repeated.iter().map(|&row| y[row]).collect();
    let options = TreeOptions { max_depth: Some(3), ..TreeOptions::default() };
    let splits = |nodes: Vec<TreeNode<usize>>| -> Vec<_> {
        let of = |node: &TreeNode<usize>| match *node {
            TreeNode::Split { feature, threshold, .. } => (Some(feature), threshold, 0),
            TreeNode::Leaf { value, .. } => (None, 0.0, value),
        };
        nodes.iter().map(of).collect()
    };
    let weighted = DecisionTreeClassifier::fit_weighted(&x, &y, &weights, &options).unwrap();
    let plain = DecisionTreeClassifier::fit(&long, &of_long, &options).unwrap();
    assert_eq!(splits(weighted.nodes().collect()), splits(plain.nodes().collect()));

    let boosting = BoostingOptions { n_estimators: 5, ..BoostingOptions::default() };
    let (weighted, _) =
        GradientBoostingClassifier::fit_with_report(&x, &y, Some(&weights), &boosting).unwrap();
    let plain = GradientBoostingClassifier::fit(&long, &of_long, &boosting).unwrap();
    let (found, expected) = (weighted.try_predict_proba(&x).unwrap(), plain.try_predict_proba(&x).unwrap());
    for (found, expected) in found.as_slice().iter().zip(expected.as_slice()) {
        assert!((found - expected).abs() < 1e-5);
    }
}

#[test]
fn class_weights_favour_rare_classes() {
    // Without weights the rare class loses every leaf.
    let x = Matrix::from_vec(100, 1, (0..100_u8).map(|row| f32::from(row % 2)).collect()).unwrap();
    let y: Vec<usize> = (0..100).map(|row| usize::from(row % 10 == 3)).collect();
    let asked = Matrix::from_vec(1, 1, vec![1.0]).unwrap();
    let with = |class_weight| TreeOptions { class_weight, ..TreeOptions::default() };
    let answer =
        |class_weight| DecisionTreeClassifier::fit(&x, &y, &with(class_weight)).unwrap().predict(&asked);
    assert_eq!(answer(ClassWeight::Uniform), [0]);
    assert_eq!(answer(ClassWeight::Balanced), [1]);
    assert_eq!(answer(ClassWeight::Manual(vec![1.0, 4.5])), [1]);
    let boosting = BoostingOptions { class_weight: ClassWeight::Balanced, ..BoostingOptions::default() };
    assert_eq!(GradientBoostingClassifier::fit(&x, &y, &boosting).unwrap().predict(&asked), [1]);
}

#[test]
fn boosting_stops_at_the_best_stage() {
    let (x, y) = table(400, 4, 8);
    let options = BoostingOptions {
        n_estimators: 200,
        learning_rate: 0.5,
        early_stopping: Some(EarlyStopping { validation_share: 0.25, patience: 4 }),
        ..BoostingOptions::default()
    };
    let (model, report) = GradientBoostingClassifier::fit_with_report(&x, &y, None, &options).unwrap();
    assert_eq!(model.n_trees(), 3 * report.n_stages);
    assert_eq!(report.validation_loss.len(), report.n_stages + 4);
    let best = report.validation_loss.iter().copied().fold(f64::INFINITY, f64::min);
    assert_eq!(report.validation_loss[report.n_stages - 1], best);
    assert!((report.feature_importances.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    let (model, report) =
        GradientBoostingRegressor::fit_with_report(&x, &values(&y), None, &options).unwrap();
    assert!(model.n_trees() == report.n_stages && report.n_stages < 200);
}

#[test]
fn small_and_constant_tables_are_learned() {
    let one = Matrix::from_vec(1, 2, vec![1.0, 2.0]).unwrap();
    assert_eq!(DecisionTreeClassifier::fit(&one, &[7], &TreeOptions::default()).unwrap().predict(&one), [7]);
    assert_eq!(
        RandomForestClassifier::fit(&one, &[7], &ForestOptions::default()).unwrap().predict(&one),
        [7]
    );
    let alike = Matrix::from_vec(4, 1, vec![3.0; 4]).unwrap();
    let y = Vector::from_vec(vec![1.0, 2.0, 3.0, 6.0]);
    let tree = DecisionTreeRegressor::fit(&alike, &y, &TreeOptions::default()).unwrap();
    assert_eq!((tree.nodes().count(), tree.predict(&alike).as_slice()[0]), (1, 3.0));
    assert_eq!(tree.feature_importances(1), [0.0]);
    let boosted = GradientBoostingRegressor::fit(&alike, &y, &BoostingOptions::default()).unwrap();
    assert_eq!(boosted.predict(&alike).as_slice(), [3.0; 4]);
    let isolated = IsolationForest::fit(&alike, &IsolationOptions::default()).unwrap();
    assert_eq!(isolated.try_predict(&alike).unwrap(), [1; 4]);
    // Neighbouring numbers are told apart.
    let near = Matrix::from_vec(2, 1, vec![1.0_f32.next_up(), 1.0]).unwrap();
    let tree = DecisionTreeClassifier::fit(&near, &[0, 1], &TreeOptions::default()).unwrap();
    assert_eq!(tree.predict(&near), [0, 1]);
}

#[track_caller]
fn refused<M>(result: Result<M, Error>, name: &str) {
    let error = result.err().unwrap();
    match error.kind() {
        ErrorKind::PartInvalid { part, .. } | ErrorKind::PartLength { part, .. } => assert_eq!(*part, name),
        other => panic!("{other:?}"),
    }
}

#[test]
fn options_outside_of_their_range_are_named() {
    let (x, y) = table(20, 2, 1);
    let tree = TreeOptions::default;
    let fit = |options: TreeOptions| DecisionTreeClassifier::fit(&x, &y, &options);
    refused(fit(TreeOptions { max_depth: Some(0), ..tree() }), "max_depth");
    refused(fit(TreeOptions { max_leaves: Some(1), ..tree() }), "max_leaves");
    refused(fit(TreeOptions { min_samples_split: 1, ..tree() }), "min_samples_split");
    refused(fit(TreeOptions { min_samples_leaf: 0, ..tree() }), "min_samples_leaf");
    refused(fit(TreeOptions { class_weight: ClassWeight::Manual(vec![-1.0]), ..tree() }), "class_weight");
    refused(fit(TreeOptions { class_weight: ClassWeight::Manual(vec![0.0; 9]), ..tree() }), "class_weight");
    let balanced = TreeOptions { class_weight: ClassWeight::Balanced, ..tree() };
    refused(DecisionTreeRegressor::fit(&x, &values(&y), &balanced), "class_weight");
    let weighted = |weights: &[f32]| DecisionTreeClassifier::fit_weighted(&x, &y, weights, &tree());
    refused(weighted(&[1.0; 3]), "sample_weight");
    refused(weighted(&[0.0; 20]), "sample_weight");
    refused(weighted(&[f32::NAN; 20]), "sample_weight");

    let forest = ForestOptions::default;
    let fit = |options: ForestOptions| RandomForestClassifier::fit(&x, &y, &options);
    refused(fit(ForestOptions { n_estimators: 0, ..forest() }), "n_estimators");
    refused(fit(ForestOptions { max_features: Some(MaxFeatures::Count(0)), ..forest() }), "max_features");

    let boosting = BoostingOptions::default;
    let fit = |options: BoostingOptions| GradientBoostingClassifier::fit(&x, &y, &options);
    refused(fit(BoostingOptions { n_estimators: 0, ..boosting() }), "n_estimators");
    refused(fit(BoostingOptions { learning_rate: f64::NAN, ..boosting() }), "learning_rate");
    refused(fit(BoostingOptions { l2: -1.0, ..boosting() }), "l2");
    refused(fit(BoostingOptions { subsample: 0.0, ..boosting() }), "subsample");
    let stopping = |stopping| BoostingOptions { early_stopping: Some(stopping), ..boosting() };
    refused(fit(stopping(EarlyStopping { validation_share: 1.0, patience: 1 })), "validation_share");
    refused(fit(stopping(EarlyStopping { validation_share: 0.1, patience: 0 })), "patience");
    refused(GradientBoostingClassifier::fit(&x, &[1; 20], &boosting()), "classes");

    let isolation = IsolationOptions::default;
    let fit = |options: IsolationOptions| IsolationForest::fit(&x, &options);
    refused(fit(IsolationOptions { n_estimators: 0, ..isolation() }), "n_estimators");
    refused(fit(IsolationOptions { max_samples: Some(1), ..isolation() }), "max_samples");
    refused(
        fit(IsolationOptions { contamination: Contamination::Share(0.6), ..isolation() }),
        "contamination",
    );
    let error = fit(IsolationOptions { max_samples: Some(21), ..isolation() }).err().unwrap();
    assert!(matches!(error.kind(), ErrorKind::TooFewSamples { needed: 21, given: 20 }));
}

#[test]
fn values_that_are_not_finite_are_refused() {
    let x = Matrix::from_vec(3, 2, vec![1.0, 2.0, 3.0, f32::NAN, 5.0, 6.0]).unwrap();
    let errors = [
        DecisionTreeClassifier::fit(&x, &[0, 1, 1], &TreeOptions::default()).err(),
        RandomForestClassifier::fit(&x, &[0, 1, 1], &ForestOptions::default()).err(),
        GradientBoostingClassifier::fit(&x, &[0, 1, 1], &BoostingOptions::default()).err(),
        IsolationForest::fit(&x, &IsolationOptions::default()).err(),
    ];
    for error in errors {
        assert!(matches!(error.unwrap().kind(), ErrorKind::FeatureNotFinite { row: 1, col: 1 }));
    }
    let (x, _) = table(3, 2, 1);
    let y = Vector::from_vec(vec![1.0, f32::INFINITY, 2.0]);
    let errors = [
        DecisionTreeRegressor::fit(&x, &y, &TreeOptions::default()).err(),
        RandomForestRegressor::fit(&x, &y, &ForestOptions::default()).err(),
        GradientBoostingRegressor::fit(&x, &y, &BoostingOptions::default()).err(),
    ];
    for error in errors {
        assert!(matches!(error.unwrap().kind(), ErrorKind::TargetNotFinite { row: 1 }));
    }
    let error = DecisionTreeClassifier::fit(&x, &[1], &TreeOptions::default()).err().unwrap();
    assert!(matches!(error.kind(), ErrorKind::TargetLength { n_rows: 3, given: 1 }));
}

#[test]
fn forests_without_drawing_and_choice_are_one_tree() {
    let (x, y) = table(300, 1, 2);
    let options = ForestOptions {
        n_estimators: 3,
        max_features: Some(MaxFeatures::All),
        samples: TreeSamples::All,
        ..ForestOptions::default()
    };
    let forest = RandomForestClassifier::fit(&x, &y, &options).unwrap();
    assert!(forest.trees().windows(2).all(|pair| pair[0] == pair[1]));
    let importances = RandomForestRegressor::fit(&x, &values(&y), &options).unwrap().feature_importances(1);
    assert_eq!(importances, [1.0]);
}

/// Workers that do jobs on threads, the last one first.
struct Threads(usize);

impl Workers for Threads {
    fn count(&self) -> usize {
        self.0
    }

    fn run(&self, jobs: Vec<Job<'_>>) {
        std::thread::scope(|scope| {
            for job in jobs.into_iter().rev() {
                scope.spawn(job);
            }
        });
    }
}

#[test]
fn workers_change_no_bit() {
    // Enough values that histograms are shared.
    let (x, y) = table(60_000, 5, 17);
    let numbers = values(&y);
    let boosting = BoostingOptions { n_estimators: 2, ..BoostingOptions::default() };
    let forest = ForestOptions { n_estimators: 5, seed: 3, ..ForestOptions::default() };
    let all = |workers: &dyn Workers| {
        [
            bytes(&GradientBoostingClassifier::fit_on(workers, &x, &y, None, &boosting).unwrap().0),
            bytes(&GradientBoostingRegressor::fit_on(workers, &x, &numbers, None, &boosting).unwrap().0),
            bytes(&RandomForestClassifier::fit_on(workers, &x, &y, None, &forest).unwrap()),
        ]
    };
    let expected = all(&Alone);
    assert_eq!(all(&Threads(3)), expected);
    assert_eq!(bytes(&RandomForestClassifier::fit(&x, &y, &forest).unwrap()), expected[2]);
}
