//! Every model becomes a payload, in every layout, and tensors, and comes back.

use core::fmt::Debug;

use apr_container::{
    DecodePayload, EncodePayload, Error, Expect, ModelType, PayloadLayout, PayloadReader, ReadOptions,
    SaveOptions, decode_payload_from_slice, encode_payload_to_vec, load_from_bytes_with, to_vec,
};
use apr_models::{
    AnyModel, ClassWeight, CovarianceType, Custom, Dbscan, DecisionTreeClassifier, DecisionTreeRegressor,
    ElasticNet, FitMode, GaussianMixture, Intercept, IsolationForest, KMeans, Lasso, LinearRegression,
    LogisticRegression, Matrix, MinMaxScaler, MixtureOfExperts, Model, MoeConfig, Numbers, QuantType,
    QuantizedBlock, RandomForestClassifier, RandomForestRegressor, Ridge, SoftmaxGating, StandardScaler,
    Tensors, TreeNode, Vector,
};
use proptest::prelude::*;

/// A model of that type, passed over.
struct Skipped<M>(core::marker::PhantomData<M>);

impl<M: DecodePayload> DecodePayload for Skipped<M> {
    fn decode_payload(input: &mut PayloadReader<'_>) -> Result<Self, Error> {
        M::skip_payload(input)?;
        Ok(Self(core::marker::PhantomData))
    }
}

/// Proves that a payload comes back, equal but for what the layout lacks, that it can be passed over, and that no shorter
/// one is accepted.
fn check_payload<M>(model: &M) -> Result<(), TestCaseError>
where
    M: Model + EncodePayload + DecodePayload + PartialEq + Debug,
{
    let model_type = model.model_type();
    for layout in PayloadLayout::ALL {
        let payload = encode_payload_to_vec(model, layout).unwrap();
        let read: M = decode_payload_from_slice(&payload, layout, model_type).unwrap();
        prop_assert_eq!(encode_payload_to_vec(&read, layout).unwrap(), payload.clone());
        if layout == PayloadLayout::V0_72 {
            prop_assert_eq!(&read, model);
        }
        prop_assert!(decode_payload_from_slice::<Skipped<M>>(&payload, layout, model_type).is_ok());
        for len in 0..payload.len() {
            prop_assert!(decode_payload_from_slice::<M>(&payload[..len], layout, model_type).is_err());
            let skipped = decode_payload_from_slice::<Skipped<M>>(&payload[..len], layout, model_type);
            prop_assert!(skipped.is_err());
        }
        // Any change may be read as another model, but never as a panic.
        for idx in 0..payload.len() {
            let mut changed = payload.clone();
            changed[idx] ^= 0x81;
            drop(decode_payload_from_slice::<M>(&changed, layout, model_type));
            drop(decode_payload_from_slice::<Skipped<M>>(&changed, layout, model_type));
        }
    }
    Ok(())
}

/// Proves that tensors come back as the model, and as whichever model they are of.
fn check_tensors<M>(
    model: &M,
    from_tensors: impl Fn(&Tensors) -> Result<M, apr_models::Error>,
) -> Result<(), TestCaseError>
where
    M: Model + Clone + PartialEq + Debug,
    AnyModel: From<M>,
{
    let file = model.to_tensors().unwrap().to_safetensors().unwrap();
    let tensors = Tensors::from_safetensors(&file).unwrap();
    prop_assert_eq!(&from_tensors(&tensors).unwrap(), model);
    prop_assert_eq!(tensors.model(), Some(model.name()));
    prop_assert_eq!(AnyModel::from_safetensors(&file).unwrap(), AnyModel::from(model.clone()));
    // One tensor less, or one more, is another model; settings that have a default may be missing.
    let mut more = tensors.clone();
    more.push_f32("other", &[1], &[0.0]).unwrap();
    prop_assert_eq!(from_tensors(&more).unwrap_err().code(), "am-unexpected-tensor");
    let mut renamed = tensors;
    renamed.set_metadata("apr.model", "Elsewhere");
    prop_assert_eq!(from_tensors(&renamed).unwrap_err().code(), "am-other-model");
    Ok(())
}

/// Proves that the model is found without its name.
fn check_any<M>(model: &M) -> Result<(), TestCaseError>
where
    M: Model + EncodePayload + Clone,
    AnyModel: From<M>,
{
    let payload = encode_payload_to_vec(model, PayloadLayout::V0_72).unwrap();
    let read: AnyModel =
        decode_payload_from_slice(&payload, PayloadLayout::V0_72, model.model_type()).unwrap();
    prop_assert_eq!(read, AnyModel::from(model.clone()));
    Ok(())
}

fn number() -> impl Strategy<Value = f32> {
    prop_oneof![-1e3_f32..1e3, Just(0.0), Just(-0.0), Just(f32::MAX), Just(1e-40)]
}

fn numbers(count: usize) -> impl Strategy<Value = Vec<f32>> {
    prop::collection::vec(number(), count)
}

fn weights() -> impl Strategy<Value = (Vector, f32)> {
    (prop::collection::vec(number(), 1..20).prop_map(Vector::from_vec), number())
}

fn rule() -> impl Strategy<Value = Intercept> {
    prop_oneof![Just(Intercept::Fitted), Just(Intercept::Zero)]
}

fn seed() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![Just(None), any::<u64>().prop_map(Some), (0..100_u64).prop_map(Some)]
}

fn matrix(
    rows: impl Strategy<Value = usize>,
    cols: impl Strategy<Value = usize>,
) -> impl Strategy<Value = Matrix> {
    (rows, cols).prop_flat_map(|(rows, cols)| {
        numbers(rows * cols).prop_map(move |values| Matrix::from_vec(rows, cols, values).unwrap())
    })
}

/// A random tree: each choice makes a split or a leaf of the next open place.
fn nodes<L: Debug + Clone>(leaf: impl Strategy<Value = L>) -> impl Strategy<Value = Vec<TreeNode<L>>> {
    let node = (0..4_usize, number(), leaf, 0..1000_usize, 0.0..1.0_f32, any::<bool>());
    prop::collection::vec(node, 1..30).prop_map(|drawn| {
        // Breadth first; the last places become leaves.
        let n_nodes = drawn.len() - (drawn.len() + 1) % 2;
        let mut n_placed = 1;
        let place = |(idx, (feature, threshold, value, n_samples, impurity, splits))| {
            if splits && idx < n_placed && n_placed + 2 <= n_nodes {
                n_placed += 2;
                let (left, right) = (n_placed - 2, n_placed - 1);
                TreeNode::Split { feature, threshold, left, right, n_samples, impurity }
            } else {
                TreeNode::Leaf { value, n_samples, impurity }
            }
        };
        let mut nodes: Vec<TreeNode<L>> = drawn.into_iter().enumerate().map(place).collect();
        nodes.truncate(n_placed);
        nodes
    })
}

fn classifier_tree() -> impl Strategy<Value = DecisionTreeClassifier> {
    (nodes(0..50_usize), prop::option::of(0..9_usize)).prop_map(|(nodes, depth)| {
        DecisionTreeClassifier::from_parts(&nodes, 4).unwrap().with_max_depth(depth)
    })
}

fn regressor_tree() -> impl Strategy<Value = DecisionTreeRegressor> {
    (nodes(number()), prop::option::of(0..9_usize), 0..9_usize).prop_map(|(nodes, depth, bound)| {
        DecisionTreeRegressor::from_parts(&nodes).unwrap().with_bounds(depth, bound, bound + 1)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn linear_models((coefficients, intercept) in weights(), rule in rule(), alpha in 0.0..9.0_f32, rounds in 0..9999_usize) {
        let model = LinearRegression::from_parts(coefficients.clone(), intercept).unwrap().with_intercept(rule);
        check_payload(&model)?;
        check_tensors(&model, LinearRegression::from_tensors)?;
        check_any(&model)?;
        prop_assert_eq!(LinearRegression::from_safetensors(&model.to_safetensors().unwrap()).unwrap(), model);
        let model = Ridge::from_parts(alpha, coefficients.clone(), intercept).unwrap().with_intercept(rule);
        check_payload(&model)?;
        check_tensors(&model, Ridge::from_tensors)?;
        check_any(&model)?;
        let model = Lasso::from_parts(alpha, coefficients.clone(), intercept).unwrap();
        let model = model.with_intercept(rule).with_stop(rounds, 0.5);
        check_payload(&model)?;
        check_tensors(&model, Lasso::from_tensors)?;
        check_any(&model)?;
        let model = ElasticNet::from_parts(alpha, 0.25, coefficients, intercept).unwrap();
        let model = model.with_intercept(rule).with_stop(rounds, 0.5);
        check_payload(&model)?;
        check_tensors(&model, ElasticNet::from_tensors)?;
        check_any(&model)?;
    }

    #[test]
    fn logistic_regressions(
        (coefficients, intercept) in weights(),
        weight in prop_oneof![
            Just(ClassWeight::Uniform),
            Just(ClassWeight::Balanced),
            prop::collection::vec(number(), 0..4).prop_map(ClassWeight::Manual)
        ],
        mode in prop_oneof![Just(FitMode::Batch), Just(FitMode::Stochastic), any::<usize>().prop_map(FitMode::MiniBatch)],
    ) {
        let model = LogisticRegression::from_parts(coefficients, intercept).unwrap();
        check_tensors(&model, LogisticRegression::from_tensors)?;
        let model = model.with_class_weight(weight).with_descent(0.5, mode).with_l2_penalty(0.25).with_max_iter(7);
        check_payload(&model)?;
        check_any(&model)?;
    }

    #[test]
    fn trees(classifier in classifier_tree(), regressor in regressor_tree()) {
        check_payload(&classifier)?;
        check_tensors(&classifier, DecisionTreeClassifier::from_tensors)?;
        check_any(&classifier)?;
        check_payload(&regressor)?;
        check_tensors(&regressor, DecisionTreeRegressor::from_tensors)?;
        check_any(&regressor)?;
    }

    #[test]
    fn forests(
        classifiers in prop::collection::vec(classifier_tree(), 1..4),
        regressors in prop::collection::vec(regressor_tree(), 1..4),
        seed in seed(),
    ) {
        let model = RandomForestClassifier::from_parts(classifiers).unwrap().with_training(Some(3), seed);
        check_payload(&model)?;
        check_tensors(&model, RandomForestClassifier::from_tensors)?;
        check_any(&model)?;
        let model = RandomForestRegressor::from_parts(regressors).unwrap().with_training(None, seed);
        check_payload(&model)?;
        check_tensors(&model, RandomForestRegressor::from_tensors)?;
        check_any(&model)?;
    }

    #[test]
    fn isolation_forests(trees in prop::collection::vec(nodes(Just(())), 1..4), seed in seed()) {
        let model = IsolationForest::from_parts(&trees, 9, -0.25).unwrap().with_training(0.5, seed);
        check_any(&model)?;
        check_payload(&model)?;
        check_tensors(&model, IsolationForest::from_tensors)?;
    }

    #[test]
    fn clusters(centroids in matrix(1..5_usize, 1..5_usize), seed in seed(), labels in prop::collection::vec(-1..9_i32, 0..9)) {
        let model = KMeans::from_parts(centroids).unwrap().with_max_iter(1 << 30).with_tol(0.5);
        let model = seed.map_or(model.clone(), |seed| model.with_random_state(seed));
        check_payload(&model)?;
        check_tensors(&model, KMeans::from_tensors)?;
        check_any(&model)?;
        let model = Dbscan::from_parts(0.5, (1 << 24) + 1, labels).unwrap();
        check_payload(&model)?;
        check_tensors(&model, Dbscan::from_tensors)?;
        check_any(&model)?;
    }

    #[test]
    fn mixtures(means in matrix(1..4_usize, 1..4_usize), seed in seed(), kind in 0..4_usize) {
        use CovarianceType::{Diag, Full, Spherical, Tied};
        let (n_components, n_features) = means.shape();
        let unit: Vec<f32> =
            (0..n_features * n_features).map(|idx| if idx % (n_features + 1) == 0 { 2.0 } else { 0.25 }).collect();
        let covariance = Matrix::from_vec(n_features, n_features, unit).unwrap();
        let model = GaussianMixture::from_parts(
            [Full, Tied, Diag, Spherical][kind],
            means,
            vec![covariance; n_components],
            vec![0.25; n_components],
        );
        let model = model.unwrap().with_training(9, 0.5, seed);
        check_payload(&model)?;
        check_tensors(&model, GaussianMixture::from_tensors)?;
        check_any(&model)?;
    }

    #[test]
    fn scalers(first in prop::collection::vec(-9.0..9.0_f32, 1..9), with in any::<bool>()) {
        let second: Vec<f32> = first.iter().map(|value| value.abs() + 1.0).collect();
        let model = StandardScaler::from_parts(first.clone(), second.clone()).unwrap();
        let model = if with { model.without_scaling() } else { model.without_centring() };
        check_payload(&model)?;
        check_tensors(&model, StandardScaler::from_tensors)?;
        check_any(&model)?;
        let model = MinMaxScaler::from_parts(first, second, (-1.0, 2.0)).unwrap();
        check_payload(&model)?;
        check_tensors(&model, MinMaxScaler::from_tensors)?;
        check_any(&model)?;
    }

    #[test]
    fn mixtures_of_experts(
        slopes in prop::collection::vec(numbers(3), 1..5),
        gate in numbers(12),
        top_k in 1..4_usize,
    ) {
        let n_experts = slopes.len();
        let gating = SoftmaxGating::from_parts(3, n_experts, 0.5, gate[..3 * n_experts].to_vec()).unwrap();
        let mut builder = MixtureOfExperts::builder().gating(gating).config(MoeConfig::default().with_top_k(top_k));
        for slopes in slopes {
            builder = builder.expert(LinearRegression::from_parts(Vector::from_vec(slopes), 0.5).unwrap());
        }
        let model = builder.build().unwrap();
        check_payload(&model)?;
        check_tensors(&model, MixtureOfExperts::from_tensors)?;
        check_any(&model)?;
        for compressed in [false, true] {
            let mut options = SaveOptions::default();
            if compressed {
                options.layout = PayloadLayout::V0_15;
            }
            let file = to_vec(&model, ModelType::MixtureOfExperts, &options).unwrap();
            for (idx, expert) in model.experts().iter().enumerate() {
                let read = MixtureOfExperts::<LinearRegression, SoftmaxGating>::read_expert(&file, idx).unwrap();
                prop_assert_eq!(read.as_ref(), Some(expert));
            }
        }
    }

    #[test]
    fn lists_of_numbers(values in prop::collection::vec(number(), 0..40)) {
        check_payload(&Numbers::from(values.clone()))?;
        check_tensors(&Numbers::from(values.clone()), Numbers::from_tensors)?;
        let blocks: Vec<u8> = values.iter().cycle().take(if values.is_empty() { 0 } else { 68 }).map(|value| *value as u8).collect();
        let shape = if blocks.is_empty() { vec![0] } else { vec![7, 5] };
        let model = QuantizedBlock::from_parts(QuantType::Q8_0, shape, blocks).unwrap();
        check_payload(&model)?;
        check_tensors(&model, QuantizedBlock::from_tensors)?;
    }
}

#[test]
fn models_without_name_are_found_unfitted_and_with_weights_that_are_no_numbers() {
    fn check<M: Model + EncodePayload + Clone>(model: &M)
    where
        AnyModel: From<M>,
    {
        check_any(model).unwrap();
    }
    check(&LinearRegression::new());
    // The low byte of most of these says that coefficients are absent, or that they follow.
    for alpha in [0.0, 1.0, 0.1, f32::MIN_POSITIVE, f32::from_bits(0x3F00_0001), f32::MAX] {
        check(&Ridge::new(alpha).unwrap());
        check(&Ridge::new(alpha).unwrap().with_intercept(Intercept::Zero));
        // These two are not trained here, so only files hold unfitted ones.
        let plane = |alpha: &[u8]| [alpha, &[0, 0, 0, 0, 0, 1], &7_u64.to_le_bytes(), &alpha[..4]].concat();
        let (alpha, ratio) = (alpha.to_le_bytes(), 0.25_f32.to_le_bytes());
        let (lasso, net) = (plane(&alpha), plane(&[alpha, ratio].concat()));
        let read = |payload: &[u8]| -> AnyModel {
            decode_payload_from_slice(payload, PayloadLayout::V0_72, ModelType::LinearRegression).unwrap()
        };
        assert!(matches!(read(&lasso), AnyModel::Lasso(model) if !model.is_fitted()));
        assert!(matches!(read(&net), AnyModel::ElasticNet(model) if !model.is_fitted()));
    }
    check(&DecisionTreeClassifier::default());
    check(&DecisionTreeRegressor::default());
    check(&KMeans::new(3).unwrap());

    let infinite = f32::INFINITY.to_le_bytes();
    let ridge = [&0.5_f32.to_le_bytes()[..], &[1, 1], &[0; 7], &infinite, &infinite, &[1]].concat();
    let read: AnyModel =
        decode_payload_from_slice(&ridge, PayloadLayout::V0_72, ModelType::LinearRegression).unwrap();
    assert!(matches!(&read, AnyModel::Ridge(model) if model.intercept().is_infinite()), "{read:?}");
    // A linear regression of three coefficients whose last byte is no truth value has the length of an elastic net that
    // was never fitted, with a penalty of 1e-42.
    let damaged = [&[1, 3][..], &[0; 7], &[0; 12], &1.0_f32.to_le_bytes(), &[2]].concat();
    let refused =
        decode_payload_from_slice::<AnyModel>(&damaged, PayloadLayout::V0_72, ModelType::LinearRegression);
    assert_eq!(refused.unwrap_err().code(), "ac-bool");
    // What may be anyone's own type is not taken for an unfitted model.
    let scaler = [0, 0, 1, 1];
    let refused = decode_payload_from_slice::<AnyModel>(&scaler, PayloadLayout::V0_72, ModelType::Custom);
    assert_eq!(refused.unwrap_err().code(), "am-unknown-model");
}

#[test]
fn what_follows_a_model_without_name_is_ignored_as_that_of_a_named_one() {
    struct Followed(LinearRegression, u8);

    impl EncodePayload for Followed {
        fn encode_payload(&self, out: &mut apr_container::PayloadWriter<'_>) -> Result<(), Error> {
            self.0.encode_payload(out)?;
            out.bytes_raw(&vec![0; self.1.into()])
        }
    }

    let model = LinearRegression::from_parts(Vector::from_vec(vec![0.5, -2.0]), 1.0).unwrap();
    for count in 1..40 {
        let followed = Followed(model.clone(), count);
        let file = to_vec(&followed, ModelType::LinearRegression, &SaveOptions::default()).unwrap();
        let load = |options| load_from_bytes_with::<AnyModel>(&file, Expect::AnyKnown, options);
        assert_eq!(load(&ReadOptions::STRICT).unwrap_err().code(), "ac-payload-trailing", "{count}");
        assert_eq!(load(&ReadOptions::COMPAT).unwrap(), AnyModel::from(model.clone()), "{count}");
    }
}

#[test]
fn unfitted_models_and_weights_that_are_no_numbers_are_read_as_they_are() {
    let unfitted = [0, 0, 0, 0, 0, 0];
    let empty = [&[1][..], &[0; 8], &2.0_f32.to_le_bytes(), &[1]].concat();
    let quiet = 0x7FC0_1234_u32.to_le_bytes();
    let infinite = f32::NEG_INFINITY.to_le_bytes();
    let specials = [&[1, 2][..], &[0; 7], &quiet, &infinite, &quiet, &[0]].concat();
    for payload in [&unfitted[..], &empty, &specials] {
        for layout in PayloadLayout::ALL {
            let model: LinearRegression =
                decode_payload_from_slice(payload, layout, ModelType::LinearRegression).unwrap();
            assert_eq!(encode_payload_to_vec(&model, layout).unwrap(), payload);
            let any: AnyModel =
                decode_payload_from_slice(payload, layout, ModelType::LinearRegression).unwrap();
            assert_eq!(encode_payload_to_vec(&any, layout).unwrap(), payload);
        }
    }
    let model: LinearRegression =
        decode_payload_from_slice(&unfitted, PayloadLayout::V0_72, ModelType::LinearRegression).unwrap();
    assert!(!model.is_fitted());
    assert_eq!(model.intercept_rule(), Intercept::Zero);
    assert_eq!(model.to_tensors().unwrap_err().code(), "am-not-fitted");
}

/// Proves that a model without weights is not saved, and that one in a file is read and written again.
fn check_unfitted<M>(model: &M)
where
    M: Model + EncodePayload + Debug,
    AnyModel: From<M>,
    M: Clone,
{
    let model_type = model.model_type();
    let refused = to_vec(model, model_type, &SaveOptions::default()).unwrap_err();
    assert_eq!(refused.code(), "am-not-fitted", "{model:?}");
    assert_eq!(refused.to_string(), "Cannot save unfitted model. Call fit() first.");
    assert!(to_vec(&&Custom(model), ModelType::Custom, &SaveOptions::default()).is_err());
    let any = AnyModel::from(model.clone());
    let file = to_vec(&any, model_type, &SaveOptions::default()).unwrap();
    let read = load_from_bytes_with::<AnyModel>(&file, Expect::AnyKnown, &ReadOptions::STRICT).unwrap();
    assert_eq!(read, any);
}

#[test]
fn unfitted_models_are_not_saved() {
    /// Of models that only files hold without weights.
    fn read<M: Model + EncodePayload + DecodePayload + Debug + Clone>(payload: &[u8], model_type: ModelType)
    where
        AnyModel: From<M>,
    {
        check_unfitted(&decode_payload_from_slice::<M>(payload, PayloadLayout::V0_72, model_type).unwrap());
    }
    check_unfitted(&LinearRegression::new());
    check_unfitted(&Ridge::new(1.0).unwrap());
    check_unfitted(&LogisticRegression::new());
    check_unfitted(&DecisionTreeClassifier::default());
    check_unfitted(&DecisionTreeRegressor::default());
    check_unfitted(&RandomForestClassifier::default());
    check_unfitted(&RandomForestRegressor::default());
    check_unfitted(&KMeans::new(2).unwrap());
    check_unfitted(&IsolationForest::default());
    // Alpha (of an elastic net also the share of absolute values), no coefficients, intercept, rule, steps, tolerance.
    let plane = [&[0, 0, 0, 0, 0, 1][..], &7_u64.to_le_bytes(), &1e-4_f32.to_le_bytes()].concat();
    let alpha = 0.5_f32.to_le_bytes();
    read::<Lasso>(&[&alpha[..], &plane].concat(), ModelType::LinearRegression);
    read::<ElasticNet>(&[&alpha[..], &alpha, &plane].concat(), ModelType::LinearRegression);
    read::<StandardScaler>(&[0, 0, 1, 1], ModelType::Custom);
    read::<MinMaxScaler>(&[0; 10], ModelType::Custom);
    read::<Dbscan>(&[0; 13], ModelType::Custom);
    read::<GaussianMixture>(&[&[1][..], &[0; 28]].concat(), ModelType::Custom);
    // One expert that was fitted does not make up for one that was not.
    let mut fitted = LinearRegression::new();
    let x = Matrix::from_vec(3, 1, vec![0.0, 1.0, 2.0]).unwrap();
    fitted.fit(&x, &Vector::from_vec(vec![1.0, 3.0, 5.0])).unwrap();
    let experts = |[first, second]: [LinearRegression; 2]| {
        let builder = MixtureOfExperts::builder().gating(SoftmaxGating::new(1, 2));
        let experts = builder.expert(first).expert(second).build().unwrap();
        to_vec(&experts, ModelType::MixtureOfExperts, &SaveOptions::default())
    };
    assert!(experts([fitted.clone(), fitted.clone()]).is_ok());
    assert_eq!(experts([fitted, LinearRegression::new()]).unwrap_err().code(), "am-not-fitted");
}

#[test]
fn a_payload_that_fits_no_model_keeps_the_error_of_the_model_its_type_is_named_after() {
    let read = |payload: &[u8], model_type| {
        decode_payload_from_slice::<AnyModel>(payload, PayloadLayout::V0_72, model_type).unwrap_err().code()
    };
    assert_eq!(read(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2], ModelType::LinearRegression), "ac-bool");
    assert_eq!(read(&[1, 255, 255, 255, 255, 0, 0, 0, 0], ModelType::LinearRegression), "ac-count");
    assert_eq!(read(&[7; 9], ModelType::Custom), "am-unknown-model");
    assert_eq!(read(&[7; 9], ModelType(0x7777)), "am-unknown-model");
}
