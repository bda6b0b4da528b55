//! Trees of pipelines: their bytes, their sums, what they refuse.

use apr_models::{
    Accepts, ClassHead, DecisionFunction, DecisionRule, Head, Input, Labels, Link, OutputShape, Pipeline,
    ProbabilityRule, Samples, Step, TreeOutputs, TreeThresholds, TreesParts, TreesStep, ValueKind,
};

use crate::pipeline::{Fields, ask_anything, survives_damage};

const LEAF: u32 = u32::MAX;
const MISSING_LEFT: u32 = 1 << 31;

/// Two trees of two features for two classes: `x0 <= 0.5`, whose right side asks `x1 <= -2` and takes missing values to the
/// left; and one that always says the same.
fn forest() -> TreesParts<'static> {
    TreesParts {
        n_outputs: 2,
        outputs: TreeOutputs::All,
        start: &[0.0, 0.0],
        divisor: 2.0,
        leaf_rows: &[1.0, 0.0, 0.25, 0.75, 0.0, 1.0],
        tree_nodes: &[5, 1],
        features: &[0, LEAF, 1 | MISSING_LEFT, LEAF, LEAF, LEAF],
        thresholds: TreeThresholds::Single(&[0.5, -2.0]),
        leaves: &[0, 1, 2, 1],
    }
}

fn pipeline(parts: &TreesParts<'_>, n_features: usize, head: Head) -> Pipeline {
    let step = Step::Trees(TreesStep::new(parts).unwrap());
    Pipeline::from_parts(Input::Numbers { n_features, accepts: Accepts::Missing }, vec![step], head).unwrap()
}

fn classes() -> Head {
    Head::Classes(ClassHead {
        labels: Labels::Texts(vec!["no".into(), "yes".into()]),
        rule: DecisionRule::ArgMax,
        probabilities: ProbabilityRule::Scores,
        decision_function: DecisionFunction::None,
    })
}

fn rows() -> Head {
    Head::Values { kind: ValueKind::Predictions, link: Link::None, shape: OutputShape::Matrix }
}

/// The fields of [`forest`] in front of its lists.
fn begun() -> Fields {
    Fields::pipeline(2, 1).u32(4).u32(0).u64(2).u32(0).narrow(&[0.0, 0.0]).f64(2.0)
}

#[test]
fn forests_average_shares() {
    let model = pipeline(&forest(), 2, classes());
    let nan = f64::NAN;
    let rows = [0.5, 9.0, 0.6, -2.0, 0.6, 9.0, 0.6, nan, nan, -3.0];
    let mut shares = [0.0; 10];
    model.predict_proba_into(Samples::F64(&rows), &mut shares).unwrap();
    // A missing value goes right where its split says nothing of it.
    assert_eq!(shares, [0.625, 0.375, 0.25, 0.75, 0.125, 0.875, 0.25, 0.75, 0.25, 0.75]);
    let mut places = [9; 5];
    model.predict_indices_into(Samples::F64(&rows), &mut places).unwrap();
    assert_eq!(places, [0, 1, 1, 1, 1]);
}

#[test]
fn boosted_trees_take_turns_and_compare_64_bits() {
    let parts = TreesParts {
        n_outputs: 2,
        outputs: TreeOutputs::InTurn,
        start: &[0.5, -0.5],
        divisor: 1.0,
        leaf_rows: &[1.0, 2.0, 4.0, 8.0],
        tree_nodes: &[3, 1, 1, 3],
        features: &[0, LEAF, LEAF, LEAF, LEAF, 0, LEAF, LEAF],
        thresholds: TreeThresholds::Double(&[0.1, 0.1]),
        leaves: &[0, 1, 2, 3, 2, 0],
    };
    let model = pipeline(&parts, 1, rows());
    // The next number above 0.1, and as a 32-bit float the same.
    let above = f64::from_bits(0.1_f64.to_bits() + 1);
    let mut sums = [0.0; 4];
    model.values_into(Samples::F64(&[0.1, above]), &mut sums).unwrap();
    assert_eq!(sums, [0.5 + 1.0 + 8.0, -0.5 + 4.0 + 4.0, 0.5 + 2.0 + 8.0, -0.5 + 4.0 + 1.0]);
}

#[test]
fn bytes_are_those_of_the_page() {
    let model = pipeline(&forest(), 2, rows());
    let mut expected = begun()
        .narrow(&[1.0, 0.0, 0.25, 0.75, 0.0, 1.0])
        .u32s(&[5, 1])
        .u32s(&[0, LEAF, 1 | MISSING_LEFT, LEAF, LEAF, LEAF])
        .u64(2)
        .bytes(&0.5_f32.to_le_bytes())
        .bytes(&(-2.0_f32).to_le_bytes())
        .u32s(&[0, 1, 2, 1])
        .u32(0)
        .u32(0)
        .u32(0)
        .bytes(&[0]);
    // Missing values are accepted.
    expected.0[20] = 1;
    let payload =
        apr_container::encode_payload_to_vec(&model, apr_container::PayloadLayout::default()).unwrap();
    assert_eq!(payload, expected.0);
    assert_eq!(expected.read().unwrap(), model);
}

#[test]
fn forged_lists_are_refused_before_anything_is_made_of_them() {
    let rows = |fields: Fields| fields.narrow(&[1.0, 0.0, 0.25, 0.75, 0.0, 1.0]);
    let walks = |tree_nodes: &[u32], features: &[u32], thresholds: &[f32], leaves: &[u32]| {
        let fields = rows(begun()).u32s(tree_nodes).u32s(features).u64(thresholds.len() as u64);
        let fields = thresholds.iter().fold(fields, |fields, value| fields.bytes(&value.to_le_bytes()));
        fields.u32s(leaves).rows()
    };
    let good = [0, LEAF, 1, LEAF, LEAF, LEAF];
    assert!(walks(&[5, 1], &good, &[0.5, -2.0], &[0, 1, 2, 1]).read().is_ok());
    let limits = [0.5, -2.0];
    let all = [0, 1, 2, 1];
    for (fields, code, why) in [
        (walks(&[5, 1], &good, &[0.5, f32::NAN], &all), "am-part", "a threshold that is no number"),
        (walks(&[5, 1], &good, &[0.5], &all), "am-part", "a split without a threshold"),
        (walks(&[5, 1], &good, &[0.5, 1.0, 2.0], &all), "am-part", "a threshold without a split"),
        (walks(&[5, 1], &good, &limits, &[0, 1, 2]), "am-part", "a leaf that says nothing"),
        (walks(&[5, 1], &good, &limits, &[0, 1, 2, 1, 0]), "am-part", "a result without a leaf"),
        (walks(&[5, 1], &good, &limits, &[0, 1, 3, 1]), "am-part", "a leaf row that is not there"),
        (walks(&[5, 1], &good, &limits, &[0, 1, u32::MAX, 1]), "am-part", "the farthest leaf row"),
        (walks(&[5, 1], &good, &limits, &[1, 0, 2, 1]), "ac-value", "leaf rows in another order"),
        (walks(&[5, 1], &good, &limits, &[0, 1, 0, 1]), "ac-value", "a leaf row without a leaf"),
        (walks(&[4, 2], &good, &limits, &all), "am-part", "a tree that ends too early"),
        (walks(&[6], &good, &limits, &all), "am-part", "a tree that goes on behind its end"),
        (walks(&[5, 1, 0], &good, &limits, &all), "am-part", "a tree of no nodes"),
        (walks(&[5], &good, &limits, &all), "am-part", "a node of no tree"),
        (walks(&[5, u32::MAX], &good, &limits, &all), "am-part", "more nodes than there are"),
        (walks(&[u32::MAX; 3], &good, &limits, &all), "am-part", "nodes beyond 32 bits"),
        (walks(&[], &[], &[], &[]), "am-part", "no trees"),
        (walks(&[5, 1], &[0, LEAF, 2, LEAF, LEAF, LEAF], &limits, &all), "am-part", "column 2 of 2"),
        (walks(&[5, 1], &[0, LEAF, LEAF - 1, LEAF, LEAF, LEAF], &limits, &all), "am-part", "the last column"),
        (rows(begun()).u64(u64::MAX), "ac-count", "more trees than bytes"),
        (rows(begun()).u32s(&[5, 1]).u64(1 << 40), "ac-count", "more nodes than bytes"),
        (rows(begun()).u32s(&[5, 1]).u32s(&good).u64(1 << 62), "ac-count", "more thresholds than bytes"),
        (begun().u32(1).u64(u64::MAX / 4), "ac-count", "more leaf rows than bytes"),
    ] {
        assert_eq!(fields.read().unwrap_err().code(), code, "{why}");
    }
}

#[test]
fn forged_numbers_are_refused() {
    // One tree that is a leaf; the numbers in front of it are forged.
    let tree =
        |fields: Fields, row: &[f32]| fields.narrow(row).u32s(&[1]).u32s(&[LEAF]).u64(0).u32s(&[0]).rows();
    let start = |n_outputs: u64, turn: u32, start: &[f32], divisor: f64| {
        Fields::pipeline(2, 1).u32(4).u32(0).u64(n_outputs).u32(turn).narrow(start).f64(divisor)
    };
    assert!(tree(start(1, 0, &[0.0], 1.0), &[1.0]).read().is_ok());
    for (fields, code, why) in [
        (tree(start(0, 0, &[], 1.0), &[1.0]), "am-part", "no outputs"),
        (
            tree(start(u64::MAX, 0, &[0.0], 1.0), &[1.0]),
            "am-part-length",
            "outputs without numbers to begin with",
        ),
        (tree(start(1 << 61, 1, &[0.0], 1.0), &[1.0]), "am-part-length", "as many that bytes overflow"),
        (tree(start(2, 0, &[0.0; 2], 1.0), &[1.0]), "am-part", "half a leaf row"),
        (tree(start(2, 1, &[0.0; 2], 1.0), &[1.0]), "am-part", "one tree for two outputs in turn"),
        (tree(start(1, 2, &[0.0], 1.0), &[1.0]), "ac-variant", "an unknown turn"),
        (tree(start(1, 0, &[0.0], 0.0), &[1.0]), "am-part", "a divisor of 0"),
        (tree(start(1, 0, &[0.0], -1.0), &[1.0]), "am-part", "a divisor below 0"),
        (tree(start(1, 0, &[0.0], f64::NAN), &[1.0]), "am-part-not-finite", "a divisor that is no number"),
        (tree(start(1, 0, &[f32::INFINITY], 1.0), &[1.0]), "am-part-not-finite", "an infinite beginning"),
        (tree(start(1, 0, &[0.0], 1.0), &[f32::NAN]), "am-part-not-finite", "a leaf that says no number"),
    ] {
        assert_eq!(fields.read().unwrap_err().code(), code, "{why}");
    }
}

#[test]
fn trees_may_be_as_deep_as_they_have_splits() {
    const DEPTH: u32 = 200_000;
    // A chain to the left: every right side is a leaf.
    let features: Vec<u32> = (0..DEPTH).map(|_| 0).chain((0..=DEPTH).map(|_| LEAF)).collect();
    let thresholds: Vec<f32> = (0..DEPTH).rev().map(|split| split as f32).collect();
    let leaves: Vec<u32> = (0..=DEPTH).map(|leaf| leaf % 3).collect();
    let parts = TreesParts {
        n_outputs: 1,
        start: &[0.0],
        divisor: 1.0,
        leaf_rows: &[1.0, 2.0, 3.0],
        tree_nodes: &[2 * DEPTH + 1],
        features: &features,
        thresholds: TreeThresholds::Single(&thresholds),
        leaves: &leaves,
        ..forest()
    };
    let model = pipeline(&parts, 1, rows());
    let payload =
        apr_container::encode_payload_to_vec(&model, apr_container::PayloadLayout::default()).unwrap();
    assert_eq!(Fields(payload).read().unwrap(), model);
    let mut sums = [0.0; 3];
    model.values_into(Samples::F64(&[-1.0, 0.5, 1e9]), &mut sums).unwrap();
    assert_eq!(sums, [1.0, 2.0, f64::from(DEPTH % 3) + 1.0]);
}

#[test]
fn damage_is_refused_or_read_as_other_trees() {
    survives_damage(&pipeline(&forest(), 2, classes()), ask_anything);
    let wide = TreesParts {
        outputs: TreeOutputs::InTurn,
        start: &[0.1, 0.2],
        leaf_rows: &[0.1, 0.2, 0.3, 0.4],
        thresholds: TreeThresholds::Double(&[0.5, -2.0]),
        leaves: &[0, 1, 2, 3],
        ..forest()
    };
    survives_damage(&pipeline(&wide, 3, rows()), ask_anything);
}
