//! Neighbours of pipelines: what scikit-learn says of the same, and what they refuse.

use apr_models::{
    Accepts, ClassHead, DecisionFunction, DecisionRule, Head, Input, KnnWeights, Labels, Link,
    NeighbourMetric, NeighbourOutput, NeighbourSearch, NeighboursParts, NeighboursStep, OutputShape,
    Pipeline, ProbabilityRule, Samples, Step, Table, ValueKind,
};

use crate::pipeline::{Fields, ask_anything, survives_damage};

const SAMPLES: [f64; 42] = [
    1.75, -1.0, -1.25, -0.25, 1.5, 0.0, 1.5, 0.5, 0.0, -0.25, -0.5, -1.0, 2.0, -0.25, 1.0, -2.0, 0.75, -0.5,
    1.0, -0.75, 2.0, -2.0, -1.5, 0.25, 1.5, -0.5, -1.0, 1.5, 0.25, -1.25, -1.25, 0.0, 2.0, -1.75, -2.0, 2.0,
    1.0, -0.25, 0.5, 0.25, -1.25, -2.0,
];
const CLASS_OF: [u32; 14] = [1, 0, 0, 1, 0, 1, 1, 0, 1, 2, 1, 1, 1, 1];
const TARGETS: [f64; 28] = [
    -1.25, -1.0, 2.25, 0.0, -1.25, 0.75, 1.75, -1.0, 1.5, -0.25, 1.25, 1.0, 0.5, 0.0, 0.5, -1.0, 1.0, 0.25,
    -0.25, -1.25, 1.25, 1.25, 0.0, 1.25, -0.5, 1.25, 0.0, 2.0,
];
/// The second is the fifth of the samples.
const ASKED: [f64; 15] = [0.0, 0.0, 0.0, 2.0, -0.25, 1.0, 1.25, -0.5, 2.0, -1.0, 1.0, 0.3, 0.1, 0.2, -1.7];
/// `_tree.get_arrays()[1]`, the same for all trees over these samples.
const ORDER: [u32; 14] = [3, 13, 5, 1, 7, 10, 11, 9, 0, 8, 2, 6, 12, 4];

fn tree(leaf_size: usize) -> NeighbourSearch {
    NeighbourSearch::KdTree { leaf_size, order: ORDER.to_vec() }
}

fn classes() -> NeighbourOutput {
    NeighbourOutput::Classes { n_classes: 3, class_of: CLASS_OF.to_vec() }
}

fn targets() -> NeighbourOutput {
    NeighbourOutput::Values { n_outputs: 2, targets: TARGETS.as_slice().into() }
}

fn parts(
    k: usize,
    metric: NeighbourMetric,
    search: NeighbourSearch,
    answer: NeighbourOutput,
) -> NeighboursParts {
    let samples = Table::dense(14, SAMPLES.as_slice().into()).unwrap();
    NeighboursParts { k, metric, weights: KnnWeights::Distance, samples, search, answer }
}

fn pipeline(parts: NeighboursParts) -> Pipeline {
    let n_features = parts.samples.n_cols();
    let head = match &parts.answer {
        NeighbourOutput::Classes { n_classes, .. } => Head::Classes(ClassHead {
            labels: Labels::Integers((0..*n_classes as i64).collect()),
            rule: DecisionRule::ArgMax,
            probabilities: ProbabilityRule::Normalized,
            decision_function: DecisionFunction::None,
        }),
        NeighbourOutput::Values { .. } => {
            Head::Values { kind: ValueKind::Predictions, link: Link::None, shape: OutputShape::Matrix }
        }
    };
    let step = Step::Neighbours(NeighboursStep::new(parts).unwrap());
    Pipeline::from_parts(Input::Numbers { n_features, accepts: Accepts::Finite }, vec![step], head).unwrap()
}

fn close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
    }
}

/// Expected here and below: scikit-learn 1.9.1, `KNeighborsClassifier(...).predict_proba` and `predict`.
#[test]
fn shares_are_those_of_scikit_learn() {
    use NeighbourMetric::{Cosine, Euclidean, Minkowski};
    let uniform =
        NeighboursParts { weights: KnnWeights::Uniform, ..parts(5, Minkowski(1.5), tree(2), classes()) };
    let cosine = parts(4, Cosine, NeighbourSearch::InOrder, classes());
    let unit: Vec<f64> = SAMPLES
        .chunks(3)
        .flat_map(|row| {
            let length = row.iter().map(|value| value * value).sum::<f64>().sqrt();
            row.iter().map(move |value| value / length)
        })
        .collect();
    let cosine = NeighboursParts { samples: Table::dense(14, unit.into()).unwrap(), ..cosine };
    for (parts, expected, labels) in [
        (
            parts(4, Minkowski(3.0), tree(3), classes()),
            [
                [0.40892203352982015, 0.5910779664701798, 0.0],
                [1.0, 0.0, 0.0],
                [0.26249423100564706, 0.7375057689943529, 0.0],
                [0.3790494541133914, 0.6209505458866085, 0.0],
                [0.0, 0.7769887948638177, 0.22301120513618228],
            ],
            [1, 0, 1, 1, 1],
        ),
        (
            uniform,
            [[0.4, 0.6, 0.0], [0.4, 0.6, 0.0], [0.4, 0.6, 0.0], [0.2, 0.8, 0.0], [0.0, 0.8, 0.2]],
            [1, 1, 1, 1, 1],
        ),
        (
            parts(4, Euclidean, tree(3), classes()),
            [
                [0.42494689196676166, 0.5750531080332384, 0.0],
                [1.0, 0.0, 0.0],
                [0.2611243240797443, 0.7388756759202556, 0.0],
                [0.3768412635303797, 0.6231587364696202, 0.0],
                [0.0, 0.7646012413782726, 0.2353987586217274],
            ],
            [1, 0, 1, 1, 1],
        ),
        (
            cosine,
            [
                [0.5, 0.5, 0.0],
                [0.9999999999999807, 1.9355663693482902e-14, 0.0],
                [0.06241831068509118, 0.9375816893149088, 0.0],
                [0.4404967139827985, 0.5595032860172016, 0.0],
                [0.0, 0.7860388240866669, 0.21396117591333308],
            ],
            [0, 0, 1, 1, 1],
        ),
    ] {
        let model = pipeline(parts);
        let mut shares = [0.0; 15];
        model.predict_proba_into(Samples::F64(&ASKED), &mut shares).unwrap();
        close(&shares, expected.as_flattened());
        let mut places = [9; 5];
        model.predict_indices_into(Samples::F64(&ASKED), &mut places).unwrap();
        assert_eq!(places, labels);
    }
}

/// `KNeighborsRegressor(...).predict`.
#[test]
fn means_are_those_of_scikit_learn() {
    for (parts, expected) in [
        (
            parts(4, NeighbourMetric::Minkowski(3.0), NeighbourSearch::InOrder, targets()),
            [
                [0.5776713436320096, 0.22641909456318993],
                [1.5, -0.25],
                [0.3810236693291972, 0.18625114922240643],
                [1.7157527795016208, 0.3176473688133141],
                [0.767319634058885, -0.14324256005732325],
            ],
        ),
        (
            parts(3, NeighbourMetric::Manhattan, tree(3), targets()),
            [
                [1.1666666666666667, 0.0833333333333333],
                [1.5, -0.25],
                [0.5, 0.16666666666666666],
                [1.6883040405870626, 0.6192697952527632],
                [0.5347222222222224, -0.10879629629629635],
            ],
        ),
    ] {
        let mut means = [0.0; 10];
        pipeline(parts).values_into(Samples::F64(&ASKED), &mut means).unwrap();
        close(&means, expected.as_flattened());
    }
}

#[test]
fn bytes_are_those_of_the_page() {
    let samples = Table::dense(2, vec![0.0_f64, 1.0].into()).unwrap();
    let answer = NeighbourOutput::Classes { n_classes: 2, class_of: vec![1, 0] };
    let search = NeighbourSearch::KdTree { leaf_size: 30, order: vec![1, 0] };
    let metric = NeighbourMetric::Minkowski(3.0);
    let parts = NeighboursParts { k: 1, metric, weights: KnnWeights::Distance, samples, search, answer };
    let model = pipeline(parts);
    let expected = Fields::pipeline(1, 1)
        .u32(6)
        .u64(1)
        .u32(3)
        .f64(3.0)
        .u32(1)
        .u32(0)
        .u64(2)
        .narrow(&[0.0, 1.0])
        .u32(1)
        .u64(30)
        .u32s(&[1, 0])
        .u32(0)
        .u64(2)
        .u32s(&[1, 0]);
    let head = Fields::default().u32(1).u32(0).u64(2).u64(0).u64(1).u32(2).u32(4).u32(0);
    let payload =
        apr_container::encode_payload_to_vec(&model, apr_container::PayloadLayout::default()).unwrap();
    assert_eq!(payload, expected.bytes(&head.0).0);
}

#[test]
fn what_cannot_be_is_refused() {
    use NeighbourMetric::{Chebyshev, Cosine, Euclidean, Manhattan, Minkowski};
    let dense = || Table::dense(3, vec![0.0_f64, 1.0, 2.0].into()).unwrap();
    let sparse = || Table::sparse(1, vec![0, 0, 1, 2], vec![0, 0], vec![1.0_f64, 2.0].into()).unwrap();
    let good = || NeighboursParts {
        k: 2,
        metric: Euclidean,
        weights: KnnWeights::Uniform,
        samples: dense(),
        search: NeighbourSearch::InOrder,
        answer: NeighbourOutput::Classes { n_classes: 2, class_of: vec![0, 1, 1] },
    };
    let ordered = |leaf_size, order: &[u32]| NeighbourSearch::KdTree { leaf_size, order: order.to_vec() };
    let of =
        |n_classes, class_of: &[u32]| NeighbourOutput::Classes { n_classes, class_of: class_of.to_vec() };
    let values = |n_outputs, targets: &[f64]| NeighbourOutput::Values { n_outputs, targets: targets.into() };
    assert!(NeighboursStep::new(good()).is_ok());
    assert!(NeighboursStep::new(NeighboursParts { samples: sparse(), ..good() }).is_ok());
    let huge_leaves = ordered(usize::MAX, &[2, 1, 0]);
    assert!(NeighboursStep::new(NeighboursParts { search: huge_leaves, ..good() }).is_ok());
    for (code, parts) in [
        ("am-part", NeighboursParts { k: 0, ..good() }),
        ("am-part", NeighboursParts { k: 4, ..good() }),
        ("am-part", NeighboursParts { k: usize::MAX, ..good() }),
        ("am-part", NeighboursParts { metric: Minkowski(0.5), ..good() }),
        ("am-part", NeighboursParts { metric: Minkowski(f64::NAN), ..good() }),
        ("am-part", NeighboursParts { metric: Minkowski(f64::INFINITY), ..good() }),
        ("am-part", NeighboursParts { metric: Manhattan, samples: sparse(), ..good() }),
        ("am-part", NeighboursParts { metric: Chebyshev, samples: sparse(), ..good() }),
        ("am-part", NeighboursParts { metric: Cosine, search: ordered(1, &[2, 1, 0]), ..good() }),
        ("am-part", NeighboursParts { samples: sparse(), search: ordered(1, &[2, 1, 0]), ..good() }),
        ("am-part", NeighboursParts { search: ordered(0, &[2, 1, 0]), ..good() }),
        ("am-part-length", NeighboursParts { search: ordered(1, &[1, 0]), ..good() }),
        ("am-part", NeighboursParts { search: ordered(1, &[1, 0, 1]), ..good() }),
        ("am-part", NeighboursParts { search: ordered(1, &[1, 0, 3]), ..good() }),
        ("am-part", NeighboursParts { search: ordered(1, &[1, 0, u32::MAX]), ..good() }),
        ("am-part", NeighboursParts { answer: of(0, &[0, 0, 0]), ..good() }),
        ("am-part", NeighboursParts { answer: of(4, &[0, 0, 0]), ..good() }),
        ("am-part", NeighboursParts { answer: of(usize::MAX, &[0, 0, 0]), ..good() }),
        ("am-part", NeighboursParts { answer: of(2, &[0, 2, 0]), ..good() }),
        ("am-part-length", NeighboursParts { answer: of(2, &[0, 1]), ..good() }),
        ("am-empty-matrix", NeighboursParts { answer: values(0, &[]), ..good() }),
        ("am-part-length", NeighboursParts { answer: values(2, &[0.0; 3]), ..good() }),
        ("am-part-not-finite", NeighboursParts { answer: values(1, &[0.0, f64::NAN, 0.0]), ..good() }),
    ] {
        let error = NeighboursStep::new(parts.clone()).unwrap_err();
        assert_eq!(error.code(), code, "{parts:?}");
    }
    let overflowing = NeighboursParts { answer: values(usize::MAX / 2, &[0.0; 3]), ..good() };
    assert!(NeighboursStep::new(overflowing).is_err());
}

#[test]
fn forged_counts_are_refused_before_anything_is_made_of_them() {
    let begun = |k: u64| Fields::pipeline(1, 1).u32(6).u64(k).u32(0).u32(0);
    let samples = |fields: Fields| fields.u32(0).u64(2).narrow(&[0.0, 1.0]);
    let classes = |fields: Fields| fields.u32(0).u64(1).u32s(&[0, 0]).rows();
    assert!(classes(samples(begun(1)).u32(0)).read().is_ok());
    for (fields, code, why) in [
        (classes(samples(begun(u64::MAX)).u32(0)), "am-part", "more neighbours than samples"),
        (begun(1).u32(0).u64(u64::MAX).narrow(&[0.0]), "am-empty-matrix", "more samples than numbers"),
        (begun(1).u32(0).u64(2).u32(1).u64(1 << 60), "ac-count", "more numbers than bytes"),
        (begun(1).u32(1).u64(u64::MAX).u64(1 << 61), "ac-count", "more starts of rows than bytes"),
        (samples(begun(1)).u32(1).u64(1).u64(1 << 62), "ac-count", "an order longer than the bytes"),
        (samples(begun(1)).u32(2), "ac-variant", "an unknown search"),
        (samples(begun(1)).u32(0).u32(0).u64(u64::MAX).u32s(&[0, 0]).rows(), "am-part", "too many classes"),
        (
            samples(begun(1)).u32(0).u32(1).u64(u64::MAX).narrow(&[0.0; 2]).rows(),
            "am-matrix-too-large",
            "too many targets",
        ),
    ] {
        let found = fields.read().unwrap_err();
        assert_eq!(found.code(), code, "{why}: {found}");
    }
}

#[test]
fn damage_is_refused_or_read_as_other_neighbours() {
    survives_damage(&pipeline(parts(2, NeighbourMetric::Minkowski(3.0), tree(2), classes())), ask_anything);
    survives_damage(
        &pipeline(parts(3, NeighbourMetric::Chebyshev, NeighbourSearch::InOrder, targets())),
        ask_anything,
    );
    let sparse = Table::sparse(2, vec![0, 1, 1, 3], vec![1, 0, 1], vec![1.0_f64, 0.6, 0.8].into()).unwrap();
    let answer = NeighbourOutput::Classes { n_classes: 2, class_of: vec![0, 1, 1] };
    let cosine = parts(2, NeighbourMetric::Cosine, NeighbourSearch::InOrder, answer);
    survives_damage(&pipeline(NeighboursParts { samples: sparse, ..cosine }), ask_anything);
}
