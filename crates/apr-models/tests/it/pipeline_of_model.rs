//! Pipelines made of models of other types, alone and after preprocessing.

use apr_models::{
    Accepts, Activation, AnyModel, BoostingOptions, Column, Columns, Contamination, CovarianceType, Dbscan,
    DecisionTreeClassifier, DecisionTreeRegressor, ElasticNet, ForestOptions, GaussianMixture,
    GaussianMixtureOptions, GradientBoostingClassifier, GradientBoostingRegressor, Input, IsolationForest,
    IsolationOptions, KMeans, KernelSvmOptions, KnnClassifier, KnnRegressor, KnnWeights, Label, Labels,
    Lasso, LinearRegression, LinearSvmOptions, LogisticRegression, Matrix, NaiveBayes, NaiveBayesOptions,
    NeuralLoss, NeuralOptions, NeuralSequential, NeuralTargets, OutputKind, Pca, PcaOptions, PcaScaling,
    Pipeline, Predictions, RandomForestClassifier, RandomForestRegressor, Ridge, Samples, SoftmaxOptions,
    Step, Svm, SvmKernel, TreeOptions, Vector,
};
use proptest::prelude::*;

use crate::data::Numbers;

/// Rows of three features, classes of three kinds, and numbers.
fn table() -> (Matrix, Vec<usize>, Vector) {
    let x = Matrix::from_vec(90, 3, Numbers(5).take(270).collect()).unwrap();
    let noise: Vec<f32> = Numbers(6).take(90).collect();
    let class = |(row, noise): (&[f32], &f32)| {
        usize::from(row[0] + 0.3 * noise > 0.2) + usize::from(row[0] + row[1] > 0.9)
    };
    let classes = x.rows().zip(&noise).map(class).collect();
    let numbers = x.rows().zip(&noise).map(|(row, noise)| 3.0 * row[0] - row[2] * row[2] + noise);
    let numbers = Vector::from_vec(numbers.collect());
    (x, classes, numbers)
}

fn regressions(x: &Matrix, y: &Vector) -> Vec<AnyModel> {
    let mut linear = LinearRegression::new();
    let mut ridge = Ridge::new(0.5).unwrap();
    let (mut lasso, mut net) = (Lasso::new(0.01).unwrap(), ElasticNet::new(0.01, 0.5).unwrap());
    linear.fit(x, y).unwrap();
    ridge.fit(x, y).unwrap();
    lasso.fit(x, y).unwrap();
    net.fit(x, y).unwrap();
    let mut network = NeuralSequential::random(
        3,
        &[(5, Activation::Tanh), (4, Activation::Sigmoid), (1, Activation::Identity)],
        1,
    )
    .unwrap();
    let targets = Matrix::from_vec(90, 1, y.as_slice().to_vec()).unwrap();
    let options = NeuralOptions { epochs: 5, ..NeuralOptions::new(NeuralLoss::MeanSquared) };
    network.fit(x, NeuralTargets::Values(&targets), &options).unwrap();
    let forest = ForestOptions { n_estimators: 9, ..ForestOptions::default() };
    let boosting = BoostingOptions { n_estimators: 9, ..BoostingOptions::default() };
    vec![
        linear.into(),
        ridge.into(),
        lasso.into(),
        net.into(),
        network.into(),
        KnnRegressor::fit(x.clone(), y.clone(), 4, KnnWeights::Distance).unwrap().into(),
        DecisionTreeRegressor::fit(x, y, &TreeOptions::default()).unwrap().into(),
        RandomForestRegressor::fit(x, y, &forest).unwrap().into(),
        GradientBoostingRegressor::fit(x, y, &boosting).unwrap().into(),
    ]
}

fn classifiers(x: &Matrix, y: &[usize]) -> Vec<AnyModel> {
    let two: Vec<usize> = y.iter().map(|&class| class.min(1)).collect();
    let mut logistic = LogisticRegression::new().with_l2_penalty(0.01);
    logistic.fit(x, &two).unwrap();
    let mut network =
        NeuralSequential::random(3, &[(5, Activation::Relu), (3, Activation::Softmax)], 1).unwrap();
    let options = NeuralOptions { epochs: 5, ..NeuralOptions::new(NeuralLoss::CrossEntropy) };
    network.fit(x, NeuralTargets::Classes(y), &options).unwrap();
    let mut single = NeuralSequential::random(3, &[(1, Activation::Sigmoid)], 1).unwrap();
    single.fit(x, NeuralTargets::Classes(&two), &options).unwrap();
    let forest = ForestOptions { n_estimators: 9, ..ForestOptions::default() };
    let boosting = BoostingOptions { n_estimators: 9, ..BoostingOptions::default() };
    let of_both = |y: &[usize]| -> [AnyModel; 4] {
        let linear = LinearSvmOptions::default();
        let rbf = KernelSvmOptions::new(SvmKernel::Rbf { gamma: 0.7 });
        let planes = KernelSvmOptions::new(SvmKernel::Linear);
        [
            Svm::fit_linear(x, y, &linear).unwrap().0.into(),
            Svm::fit_kernel(x, y, &rbf).unwrap().0.into(),
            Svm::fit_kernel(x, y, &planes).unwrap().0.into(),
            GradientBoostingClassifier::fit(x, y, &boosting).unwrap().into(),
        ]
    };
    let others = [
        logistic.into(),
        network.into(),
        single.into(),
        NeuralSequential::softmax_regression(x, y, &SoftmaxOptions::default()).unwrap().0.into(),
        KnnClassifier::fit(x.clone(), y, 4, KnnWeights::Uniform).unwrap().into(),
        NaiveBayes::fit(x, y, &NaiveBayesOptions::default()).unwrap().into(),
        DecisionTreeClassifier::fit(x, y, &TreeOptions::default()).unwrap().into(),
        RandomForestClassifier::fit(x, y, &forest).unwrap().into(),
    ];
    others.into_iter().chain(of_both(&two)).chain(of_both(y)).collect()
}

fn others(x: &Matrix) -> Vec<AnyModel> {
    let mut clusters = KMeans::new(4).unwrap();
    clusters.fit(x).unwrap();
    let kinds = [CovarianceType::Full, CovarianceType::Tied, CovarianceType::Diag, CovarianceType::Spherical];
    let mixtures = kinds.map(|covariance_type| {
        let options = GaussianMixtureOptions { covariance_type, ..GaussianMixtureOptions::new(3) };
        AnyModel::from(GaussianMixture::fit(x, &options).unwrap().0)
    });
    let outliers = [Contamination::Auto, Contamination::Share(0.1)].map(|contamination| {
        let options = IsolationOptions { n_estimators: 20, contamination, ..IsolationOptions::default() };
        AnyModel::from(IsolationForest::fit(x, &options).unwrap())
    });
    let planes = [PcaScaling::Keep, PcaScaling::Whiten]
        .map(|scaling| AnyModel::from(Pca::fit(x, &PcaOptions { scaling, ..PcaOptions::new(2) }).unwrap()));
    mixtures.into_iter().chain(outliers).chain(planes).chain([clusters.into()]).collect()
}

fn assert_same(model: &AnyModel, pipeline: &AnyModel, rows: &Matrix) {
    let capabilities = (model.capabilities(), pipeline.capabilities());
    for output in [OutputKind::Predictions, OutputKind::Probabilities, OutputKind::ScoreSamples] {
        if !(capabilities.0.supports(output) && capabilities.1.supports(output)) {
            continue;
        }
        let samples = Samples::F32(rows.as_slice());
        let predict = |model: &AnyModel| model.predict(samples, rows.n_rows(), output).unwrap();
        let (expected, found) = (predict(model), predict(pipeline));
        let values = |predictions: &Predictions| -> Vec<f64> {
            match predictions {
                Predictions::Values(values)
                | Predictions::Rows { values, .. }
                | Predictions::Probabilities { values, .. } => {
                    values.iter().map(apr_models::Float::to_f64).collect()
                }
                Predictions::Classes(classes) => classes.iter().map(|&class| class as f64).collect(),
                Predictions::Outliers(marks) => marks.iter().map(|&mark| mark.into()).collect(),
                other => panic!("{other:?}"),
            }
        };
        let (expected, found) = (values(&expected), values(&found));
        assert_eq!(expected.len(), found.len(), "{model:?}");
        for (found, expected) in found.iter().zip(&expected) {
            let tolerance = 3e-5 * (1.0 + expected.abs());
            assert!((found - expected).abs() < tolerance, "{output:?} {found} {expected} {model:?}");
        }
    }
}

#[test]
fn pipelines_predict_what_their_models_do() {
    let (x, classes, numbers) = table();
    // Also rows that no model has seen.
    let unseen = Matrix::from_vec(40, 3, Numbers(77).take(120).map(|value| 1.5 * value).collect()).unwrap();
    let models = [regressions(&x, &numbers), classifiers(&x, &classes), others(&x)].concat();
    assert_eq!(models.len(), 9 + 16 + 9);
    for model in &models {
        let pipeline = AnyModel::from(Pipeline::of_model(model, 3, None).unwrap());
        assert_same(model, &pipeline, &x);
        assert_same(model, &pipeline, &unseen);
    }
}

#[test]
fn labels_are_those_of_the_caller_or_the_model() {
    let (x, classes, _) = table();
    let shifted: Vec<usize> = classes.iter().map(|class| 3 * class + 2).collect();
    let model = AnyModel::from(NaiveBayes::fit(&x, &shifted, &NaiveBayesOptions::default()).unwrap());
    let own = Pipeline::of_model(&model, 3, None).unwrap();
    assert_eq!(own.label(1), Some(Label::Integer(5)));
    let texts = Labels::Texts(["high", "low", "middle"].map(str::to_owned).to_vec());
    let named = Pipeline::of_model(&model, 3, Some(texts)).unwrap();
    assert_eq!(named.label(2), Some(Label::Text("middle")));
    for labels in [Labels::Integers(vec![1, 2]), Labels::Integers(vec![3, 2, 1])] {
        assert!(Pipeline::of_model(&model, 3, Some(labels)).is_err());
    }
    let tree = DecisionTreeClassifier::fit(&x, &classes, &TreeOptions::default()).unwrap().into();
    assert!(Pipeline::of_model(&tree, 3, Some(Labels::Integers(vec![0, 1]))).is_err());
    assert!(Pipeline::of_model(&tree, 1, None).is_err(), "it tests other features");
}

#[test]
fn models_that_steps_cannot_compute_are_refused() {
    let (x, ..) = table();
    let labels = AnyModel::from(Dbscan::fit(&x, 0.5, 3).unwrap());
    for model in [labels, LinearRegression::new().into(), KMeans::new(2).unwrap().into()] {
        let error = Pipeline::of_model(&model, 3, None).unwrap_err();
        assert!(matches!(error.code(), "am-part" | "am-empty-matrix" | "am-not-fitted"), "{error}");
    }
}

#[test]
fn samples_are_filled_and_encoded_before_the_model() {
    // A number that may be missing, and a category of three.
    let raw: Vec<f32> = (0..60_u8)
        .flat_map(|row| {
            let number = if row % 7 == 3 { f32::NAN } else { f32::from(row % 5) };
            [number, f32::from(row % 3)]
        })
        .collect();
    let raw = Matrix::from_vec(60, 2, raw).unwrap();
    let is = |category: f64| Column { column: 1, fill: None, equals: Some(category) };
    let filled = Column { column: 0, fill: Some(2.0), equals: None };
    let step = Columns::new(&[filled, is(0.0), is(1.0), is(2.0)]).unwrap();
    let x = step.apply(&raw).unwrap();
    assert_eq!(x.row(3).unwrap(), [2.0, 1.0, 0.0, 0.0]);
    assert!(x.as_slice().iter().all(|value| value.is_finite()));
    let y: Vec<usize> = x.rows().map(|row| usize::from(row[0] > 2.5 && row[2] == 0.0)).collect();
    let options = ForestOptions { n_estimators: 5, ..ForestOptions::default() };
    let forest = AnyModel::from(RandomForestClassifier::fit(&x, &y, &options).unwrap());
    let input = Input::Numbers { n_features: 2, accepts: Accepts::Missing };
    let whole = Pipeline::of_model(&forest, 4, None).unwrap();
    let whole = AnyModel::from(whole.preceded_by(input.clone(), vec![Step::Columns(step.clone())]).unwrap());
    let predict = |model: &AnyModel, rows: &Matrix| {
        model.predict(Samples::F32(rows.as_slice()), rows.n_rows(), OutputKind::Predictions).unwrap()
    };
    assert_eq!(predict(&whole, &raw), predict(&forest, &x));
    // A category that is not in the training is none of the others.
    let unknown = Matrix::from_vec(1, 2, vec![4.0, -1.0]).unwrap();
    let as_zeros = Matrix::from_vec(1, 4, vec![4.0, 0.0, 0.0, 0.0]).unwrap();
    assert_eq!(predict(&whole, &unknown), predict(&forest, &as_zeros));
    let narrow = Pipeline::of_model(&forest, 4, None).unwrap();
    let one = Input::Numbers { n_features: 1, accepts: Accepts::Missing };
    assert_eq!(narrow.preceded_by(one, vec![Step::Columns(step)]).unwrap_err().code(), "am-part");
}

proptest! {
    /// The step is what its definition says, in a pipeline and for training.
    #[test]
    fn columns_follow_their_definition(
        values in prop::collection::vec(prop_oneof![Just(f32::NAN), (-2_i8..3).prop_map(f32::from)], 12),
        outputs in prop::collection::vec(
            (0_u32..3, prop::option::of(-2_i8..3), prop::option::of(-2_i8..3)),
            1..9,
        ),
    ) {
        let outputs: Vec<Column> = outputs
            .into_iter()
            .map(|(column, fill, equals)| Column { column, fill: fill.map(f64::from), equals: equals.map(f64::from) })
            .collect();
        let step = Columns::new(&outputs).unwrap();
        let x = Matrix::from_vec(4, 3, values).unwrap();
        let found = step.apply(&x).unwrap();
        for (row, found) in x.rows().zip(found.rows()) {
            for (output, found) in outputs.iter().zip(found) {
                let value = row[output.column as usize];
                let value = if value.is_nan() { output.fill.map_or(value, |fill| fill as f32) } else { value };
                let expected = output.equals.map_or(value, |other| f32::from(u8::from(f64::from(value) == other)));
                prop_assert!(found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan());
            }
        }
    }
}
