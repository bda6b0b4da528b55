//! Linear models: what they predict, and what training finds.

use apr_models::{
    Activation, Dense, ElasticNet, Intercept, Lasso, LinearRegression, LogisticRegression, Matrix,
    NeuralSequential, Regressor, Ridge, SoftmaxOptions, Vector,
};

use super::{Case, cases, floats, matrix, number, reloaded, wholes, wide};

fn setting(case: &Case, name: &str) -> f32 {
    number(&case.case["params"][name])
}

fn rule(case: &Case) -> Intercept {
    if case.case["params"]["fit_intercept"] == false { Intercept::Zero } else { Intercept::Fitted }
}

fn weights(case: &Case) -> (Vector, f32) {
    (Vector::from_vec(floats(case.part("coef"))), number(case.part("intercept")))
}

/// Predicts the case's rows, and measures the errors on those it was trained on.
fn check(case: &Case, model: &impl Regressor, tolerance: &str) {
    let found = model.predict(&case.x("rows"));
    case.close_by("predict", tolerance, &wide(found.as_slice()), case.expected("predict"));
    let (x, y) = (case.x("train_rows"), case.numbers("train_rows"));
    let predictions = model.predict(&x);
    let squares = predictions.iter().zip(&y).map(|(found, y)| (f64::from(found) - f64::from(*y)).powi(2));
    let mse = squares.sum::<f64>() / y.len() as f64;
    case.close("mse", &[mse], case.expected("mse"));
    let r2 = model.try_score(&x, &Vector::from_vec(y)).unwrap();
    case.close("r2", &[r2.into()], case.expected("r2"));
}

/// Proves what training found, then what that predicts.
fn check_trained(case: &Case, coefficients: &Vector, intercept: f32, model: &impl Regressor) {
    case.close("coef", &wide(coefficients.as_slice()), case.part("coef"));
    case.close("intercept", &[intercept.into()], case.part("intercept"));
    check(case, model, "predict_trained");
}

#[test]
fn least_squares_predicts_and_learns_as_there() {
    for case in cases("linear_regression") {
        let (coefficients, intercept) = weights(&case);
        let model =
            LinearRegression::from_parts(coefficients, intercept).unwrap().with_intercept(rule(&case));
        check(&case, &reloaded(model, LinearRegression::from_tensors), "predict");
        let mut model = LinearRegression::new().with_intercept(rule(&case));
        model.fit(&case.x("train_rows"), &Vector::from_vec(case.numbers("train_rows"))).unwrap();
        check_trained(&case, model.coefficients(), model.intercept(), &model);
    }
}

#[test]
fn ridge_predicts_and_learns_as_there() {
    for case in cases("ridge") {
        let ((coefficients, intercept), alpha) = (weights(&case), setting(&case, "alpha"));
        let model = Ridge::from_parts(alpha, coefficients, intercept).unwrap().with_intercept(rule(&case));
        check(&case, &reloaded(model, Ridge::from_tensors), "predict");
        let mut model = Ridge::new(alpha).unwrap().with_intercept(rule(&case));
        model.fit(&case.x("train_rows"), &Vector::from_vec(case.numbers("train_rows"))).unwrap();
        check_trained(&case, model.coefficients(), model.intercept(), &model);
    }
}

#[test]
fn lasso_and_elastic_net_predict_and_learn_as_there() {
    for case in cases("lasso") {
        let (coefficients, intercept) = weights(&case);
        let alpha = setting(&case, "alpha");
        let model = Lasso::from_parts(alpha, coefficients, intercept).unwrap();
        check(&case, &reloaded(model, Lasso::from_tensors), "predict");
        let mut model = Lasso::new(alpha).unwrap().with_stop(10_000, 1e-9);
        let (x, y) = (case.x("train_rows"), Vector::from_vec(case.numbers("train_rows")));
        assert!(model.fit(&x, &y).unwrap().converged, "{}", case.name());
        check_trained(&case, model.coefficients(), model.intercept(), &model);
    }
    for case in cases("elastic_net") {
        let (coefficients, intercept) = weights(&case);
        let (alpha, l1_ratio) = (setting(&case, "alpha"), setting(&case, "l1_ratio"));
        let model = ElasticNet::from_parts(alpha, l1_ratio, coefficients, intercept).unwrap();
        check(&case, &reloaded(model, ElasticNet::from_tensors), "predict");
        let mut model = ElasticNet::new(alpha, l1_ratio).unwrap().with_stop(10_000, 1e-9);
        let (x, y) = (case.x("train_rows"), Vector::from_vec(case.numbers("train_rows")));
        assert!(model.fit(&x, &y).unwrap().converged, "{}", case.name());
        check_trained(&case, model.coefficients(), model.intercept(), &model);
    }
}

/// The cases of two classes, which are those this model knows.
fn two_classes() -> Vec<Case> {
    let mut cases = cases("logistic_regression");
    cases.retain(|case| wholes(case.part("classes")).len() == 2);
    assert_eq!(cases.len(), 5);
    cases
}

fn check_classes(case: &Case, model: &LogisticRegression) {
    let x = case.x("rows");
    assert_eq!(model.predict(&x), wholes(case.expected("predict")), "{}", case.name());
    let of_one = wide(model.try_predict_proba(&x).unwrap().as_slice());
    let of_both: Vec<f64> = of_one.into_iter().flat_map(|share| [1.0 - share, share]).collect();
    case.close("predict_proba", &of_both, case.expected("predict_proba"));
}

/// Mean logistic loss of the samples trained on, with and without penalty, in `f64`.
fn losses(case: &Case, model: &LogisticRegression) -> (f64, f64) {
    let (x, y) = (case.x("train_rows"), case.classes("train_rows"));
    let coefficients = wide(model.coefficients().as_slice());
    let of_sample = |(row, y): (&[f32], &usize)| {
        let products = coefficients.iter().zip(row).map(|(weight, &value)| weight * f64::from(value));
        let z = f64::from(model.intercept()) + products.sum::<f64>();
        let against = if *y == 1 { -z } else { z };
        against.max(0.0) + (-against.abs()).exp().ln_1p()
    };
    let mean = x.rows().zip(&y).map(of_sample).sum::<f64>() / y.len() as f64;
    let penalty = case.case["params"]["l2"].as_f64().unwrap() / 2.0;
    (mean + penalty * coefficients.iter().map(|weight| weight * weight).sum::<f64>(), mean)
}

#[test]
fn two_classes_are_told_apart_as_there() {
    for case in two_classes() {
        let coefficients = Vector::from_vec(floats(&case.part("coef")["data"]));
        let intercept = floats(case.part("intercept"))[0];
        let model = LogisticRegression::from_parts(coefficients, intercept).unwrap();
        check_classes(&case, &reloaded(model, LogisticRegression::from_tensors));
    }
}

#[test]
fn logistic_losses_are_as_low_as_there() {
    for case in two_classes() {
        let mut model = LogisticRegression::new().with_l2_penalty(setting(&case, "l2"));
        model.fit(&case.x("train_rows"), &case.classes("train_rows")).unwrap();
        let (objective, mean) = losses(&case, &model);
        let least = case.expected("objective").as_f64().unwrap();
        assert!(
            objective <= least * (1.0 + 1e-4),
            "{}: {objective}, there {least}, {:.1e} more",
            case.name(),
            objective / least - 1.0
        );
        let loss = case.expected("mean_log_loss").as_f64().unwrap();
        assert!(mean <= loss * (1.0 + 1e-4), "{}: loss {mean}, there {loss}", case.name());
        case.close("coef", &wide(model.coefficients().as_slice()), case.part("coef"));
        let found = model.predict(&case.x("rows"));
        assert_eq!(found, wholes(case.expected("predict")), "{}: classes by what was learned", case.name());
    }
}

#[test]
fn more_classes_are_a_network_of_one_layer() {
    let mut cases = cases("logistic_regression");
    cases.retain(|case| wholes(case.part("classes")).len() > 2);
    assert_eq!(cases.len(), 2);
    for case in cases {
        let coef = matrix(case.part("coef"));
        let (n_classes, n_features) = coef.shape();
        let transposed = (0..n_features).flat_map(|col| (0..n_classes).map(move |row| (row, col)));
        let weights = transposed.map(|(row, col)| coef.row(row).unwrap()[col]).collect();
        let weights = Matrix::from_vec(n_features, n_classes, weights).unwrap();
        let layer = Dense::new(weights, floats(case.part("intercept")), Activation::Softmax).unwrap();
        let network = NeuralSequential::from_layers(vec![layer]).unwrap();
        let proba = network.transform(&case.x("rows"));
        case.close("predict_proba", &wide(proba.as_slice()), case.expected("predict_proba"));

        let c = case.case["params"]["C"].as_f64().unwrap();
        let (x, y) = (case.x("train_rows"), case.classes("train_rows"));
        let options = SoftmaxOptions { c, ..SoftmaxOptions::default() };
        let (trained, convergence) = NeuralSequential::softmax_regression(&x, &y, &options).unwrap();
        assert!(convergence.converged);
        let layer = &trained.layers()[0];
        let coefficients: Vec<f64> = (0..n_classes)
            .flat_map(|class| (0..n_features).map(move |feature| (feature, class)))
            .map(|(feature, class)| layer.weights().get(feature, class).unwrap().into())
            .collect();
        case.close("coef", &coefficients, case.part("coef"));
        let least = case.expected("objective").as_f64().unwrap();
        let objective = softmax_objective(&case, &trained, &coefficients);
        assert!(objective <= least * (1.0 + 1e-5), "{}: {objective}, there {least}", case.name());
        assert_eq!(trained.classes(&case.x("rows")).unwrap(), wholes(case.expected("predict")));
    }
}

/// Mean negative logarithm of the probabilities of the classes trained on, plus the penalty, in `f64`.
fn softmax_objective(case: &Case, network: &NeuralSequential, coefficients: &[f64]) -> f64 {
    let layer = &network.layers()[0];
    let (x, y) = (case.x("train_rows"), case.classes("train_rows"));
    let of_sample = |(row, &y): (&[f32], &usize)| {
        let scores: Vec<f64> = (0..layer.n_outputs())
            .map(|class| {
                let products =
                    layer.weights().rows().zip(row).map(|(w, &x)| f64::from(w[class]) * f64::from(x));
                f64::from(layer.bias()[class]) + products.sum::<f64>()
            })
            .collect();
        scores.iter().map(|score| score.exp()).sum::<f64>().ln() - scores[y]
    };
    let mean = x.rows().zip(&y).map(of_sample).sum::<f64>() / y.len() as f64;
    let penalty = case.case["params"]["l2"].as_f64().unwrap() / 2.0;
    mean + penalty * coefficients.iter().map(|weight| weight * weight).sum::<f64>()
}

/// scikit-learn has one row of coefficients for two classes; here the rows of both differ by that one.
#[test]
fn two_classes_of_a_network_are_those_of_a_single_plane() {
    for case in two_classes() {
        let c = case.case["params"]["C"].as_f64().unwrap_or(f64::INFINITY);
        let (x, y) = (case.x("train_rows"), case.classes("train_rows"));
        let options = SoftmaxOptions { c, tol: 1e-7, ..SoftmaxOptions::default() };
        let (trained, _) = NeuralSequential::softmax_regression(&x, &y, &options).unwrap();
        let differences: Vec<f64> =
            trained.layers()[0].weights().rows().map(|row| f64::from(row[1]) - f64::from(row[0])).collect();
        case.close("coef", &differences, case.part("coef"));
    }
}
