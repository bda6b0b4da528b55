//! Mixtures of experts: how they ask, what they learn, how they are stored.

use apr_container::{ErrorKind as ContainerErrorKind, ModelType, SaveOptions, to_vec};
use apr_models::{
    ErrorKind, LinearRegression, Matrix, MixtureOfExperts, Model, MoeConfig, MoeTraining, Regressor,
    SoftmaxGating, Vector, WeightedRegressor,
};

use crate::data::{Numbers, TempFolder, matrix};

type Moe = MixtureOfExperts<LinearRegression, SoftmaxGating>;

fn expert(slopes: &[f32]) -> LinearRegression {
    LinearRegression::from_parts(Vector::from_vec(slopes.to_vec()), 0.0).unwrap()
}

/// Three experts of one feature that say 1, 10 and 100 times the feature, with the scores 1, 2 and 3 times it.
fn three(top_k: usize) -> Moe {
    MixtureOfExperts::builder()
        .gating(SoftmaxGating::from_parts(1, 3, 1.0, vec![1.0, 2.0, 3.0]).unwrap())
        .expert(expert(&[1.0]))
        .expert(expert(&[10.0]))
        .expert(expert(&[100.0]))
        .config(MoeConfig::default().with_top_k(top_k))
        .build()
        .unwrap()
}

#[test]
fn experts_of_the_greatest_scores_share_by_exponentials() {
    let one = matrix(&[[1.0]]);
    let e = core::f64::consts::E;
    let two = (100.0 * e + 10.0) / (e + 1.0);
    let all = (100.0 * e * e + 10.0 * e + 1.0) / (e * e + e + 1.0);
    for (top_k, expected) in [(1, 100.0), (2, two), (3, all), (9, all)] {
        let found = f64::from(three(top_k).predict(&one)[0]);
        assert!((found - expected).abs() < 1e-5, "{top_k}: {found} instead of {expected}");
    }
    // Below zero the first expert has the greatest score; equal scores go to the first as well.
    assert_eq!(three(1).predict(&matrix(&[[-2.0], [0.0]])).as_slice(), &[-2.0, 0.0]);
    let weights = three(1).routing_weights(&[0.0]).unwrap();
    assert_eq!(weights, [1.0 / 3.0; 3]);
    assert!(three(2).predict(&matrix(&[[f32::NAN]]))[0].is_nan());
    // Scores far apart are no trouble.
    assert_eq!(three(3).predict(&matrix(&[[1e30]]))[0], 1e32);
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let builder = || MixtureOfExperts::builder().gating(SoftmaxGating::new(2, 2));
    let code = |built: Result<Moe, apr_models::Error>| built.unwrap_err().code();
    assert_eq!(code(Moe::builder().expert(expert(&[1.0])).build()), "am-part");
    assert_eq!(code(builder().build()), "am-part");
    assert_eq!(code(builder().expert(expert(&[1.0, 2.0])).build()), "am-part-length");
    assert_eq!(code(builder().expert(expert(&[1.0])).expert(expert(&[2.0])).build()), "am-part");
    let pair = || builder().expert(expert(&[1.0, 2.0])).expert(expert(&[2.0, 3.0]));
    assert_eq!(code(pair().config(MoeConfig::default().with_top_k(0)).build()), "am-part");
    assert_eq!(pair().build().unwrap().n_features(), Some(2));
    assert!(SoftmaxGating::from_parts(1, 1, 0.0, vec![1.0]).is_err());
    assert!(SoftmaxGating::from_parts(1, 1, 1.0, vec![f32::NAN]).is_err());
    assert!(SoftmaxGating::from_parts(usize::MAX, 2, 1.0, vec![]).is_err());
}

#[test]
fn more_than_sixty_four_experts_predict_too() {
    let n_experts = 100;
    let weights = (0..n_experts).map(|idx| idx as f32).collect();
    let mut builder = Moe::builder().gating(SoftmaxGating::from_parts(1, n_experts, 0.01, weights).unwrap());
    for idx in 0..n_experts {
        builder = builder.expert(expert(&[idx as f32]));
    }
    let moe = builder.build().unwrap();
    assert_eq!(moe.predict(&matrix(&[[1.0], [-1.0]])).as_slice(), &[99.0, -0.0]);
}

/// `|a|` plus a little noise, with a second feature that is always 1.
fn bend(n_rows: usize) -> (Matrix, Vector) {
    let (mut a, mut noise) = (Numbers(8), Numbers(9));
    let a: Vec<f32> = a.by_ref().take(n_rows).collect();
    let y = a.iter().map(|value| value.abs() + 0.01 * noise.next().unwrap()).collect();
    let rows: Vec<[f32; 2]> = a.into_iter().map(|value| [value, 1.0]).collect();
    (matrix(&rows), y)
}

#[test]
fn two_experts_learn_a_bend() {
    let (x, y) = bend(400);
    let untrained = || {
        Moe::builder()
            .gating(SoftmaxGating::new(2, 2).with_temperature(0.5))
            .expert(LinearRegression::new())
            .expert(LinearRegression::new())
            .config(MoeConfig::default().with_top_k(2))
            .build()
            .unwrap()
    };
    for seed in 0..4 {
        let mut moe = untrained();
        moe.fit(&x, &y, &MoeTraining { seed, ..MoeTraining::default() }).unwrap();
        let score = moe.try_score(&x, &y).unwrap();
        assert!(score > 0.995, "seed {seed}: {score}");
        let mut slopes: Vec<f32> = moe.experts().iter().map(|expert| expert.coefficients()[0]).collect();
        slopes.sort_by(f32::total_cmp);
        assert!((slopes[0] + 1.0).abs() < 0.05 && (slopes[1] - 1.0).abs() < 0.05, "seed {seed}: {slopes:?}");
        assert_eq!(moe.gating().temperature(), 0.5);

        let mut again = untrained();
        again.fit(&x, &y, &MoeTraining { seed, ..MoeTraining::default() }).unwrap();
        assert_eq!(again, moe, "the same seed gives the same bits");
    }
    let line = LinearRegression::new();
    let mut line = line;
    line.fit(&x, &y).unwrap();
    assert!(line.score(&x, &y) < 0.2, "one expert alone cannot");
}

#[test]
fn training_refuses_what_does_not_fit_and_leaves_the_model_as_it_was() {
    let (x, y) = bend(8);
    let mut moe = Moe::builder()
        .gating(SoftmaxGating::new(2, 2))
        .expert(expert(&[1.0, 2.0]))
        .expert(expert(&[3.0, 4.0]))
        .build()
        .unwrap();
    let before = moe.clone();
    let training = MoeTraining::default();
    let short = Vector::from_vec(vec![1.0]);
    assert_eq!(moe.fit(&x, &short, &training).unwrap_err().code(), "am-target-length");
    assert_eq!(moe.fit(&matrix(&[[1.0]]), &short, &training).unwrap_err().code(), "am-feature-count");
    assert_eq!(moe.fit(&matrix(&[[1.0, 1.0]]), &short, &training).unwrap_err().code(), "am-too-few-samples");
    let holes: Vector =
        y.iter().enumerate().map(|(idx, value)| if idx == 3 { f32::NAN } else { value }).collect();
    assert_eq!(moe.fit(&x, &holes, &training).unwrap_err().code(), "am-target-not-finite");
    let infinite = matrix(&[[1.0, 1.0], [f32::INFINITY, 1.0], [2.0, 1.0]]);
    let y3 = Vector::from_vec(vec![1.0, 2.0, 3.0]);
    assert_eq!(moe.fit(&infinite, &y3, &training).unwrap_err().code(), "am-feature-not-finite");
    assert_eq!(moe, before);
}

#[test]
fn weights_count_as_repetitions() {
    let x = matrix(&[[0.0], [1.0], [2.0], [5.0]]);
    let y = Vector::from_vec(vec![1.0, 2.0, 2.0, 7.0]);
    let mut weighted = LinearRegression::new();
    weighted.fit_weighted(&x, &y, &[3.0, 1.0, 2.0, 0.0]).unwrap();
    let repeated = matrix(&[[0.0], [0.0], [0.0], [1.0], [2.0], [2.0]]);
    let targets = Vector::from_vec(vec![1.0, 1.0, 1.0, 2.0, 2.0, 2.0]);
    let mut plain = LinearRegression::new();
    plain.fit(&repeated, &targets).unwrap();
    assert!((weighted.coefficients()[0] - plain.coefficients()[0]).abs() < 1e-7);
    assert!((weighted.intercept() - plain.intercept()).abs() < 1e-7);
    for weights in [&[1.0; 3][..], &[0.0; 4], &[1.0, -1.0, 1.0, 1.0], &[f64::NAN; 4]] {
        assert!(weighted.fit_weighted(&x, &y, weights).is_err());
    }
}

#[test]
fn a_bundle_is_one_file_and_its_experts_can_be_read_alone() {
    let folder = TempFolder::new();
    let path = folder.file("bundle.apr");
    let moe = three(2);
    moe.save_apr(&path).unwrap();
    assert_eq!(Moe::load(&path).unwrap(), moe);
    let info = apr_container::inspect(&path).unwrap();
    assert_eq!(info.model_type, ModelType::MixtureOfExperts);

    let file = std::fs::read(&path).unwrap();
    for idx in 0..3 {
        assert_eq!(Moe::read_expert(&file, idx).unwrap().as_ref(), moe.experts().get(idx));
    }
    assert_eq!(Moe::read_expert(&file, 3).unwrap(), None);
    let mut damaged = file.clone();
    damaged[file.len() - 30] ^= 1;
    let error = Moe::read_expert(&damaged, 0).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Container(error) if matches!(error.kind(), ContainerErrorKind::ChecksumMismatch { .. }))
    );

    // Another model is refused by its type.
    let other = to_vec(
        &LinearRegression::from_parts(Vector::from_vec(vec![1.0]), 0.0).unwrap(),
        ModelType::LinearRegression,
        &SaveOptions::default(),
    );
    assert_eq!(Moe::read_expert(&other.unwrap(), 0).unwrap_err().code(), "ac-wrong-type");
}
