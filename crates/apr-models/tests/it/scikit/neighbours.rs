//! Nearest neighbours, and naive Bayes beside them.

use apr_models::{
    KnnClassifier, KnnRegressor, KnnWeights, NaiveBayes, NaiveBayesOptions, NaiveBayesParts, Neighbour,
    Vector,
};

use super::{Case, cases, floats, reloaded, whole, wholes, wide};

/// Proves that the neighbours of each row are the expected ones, as rows of the table, and the last as far away.
fn check_neighbours(case: &Case, nearest: impl Fn(&[f32]) -> Vec<Neighbour>) {
    let train_rows = case.rows("train_rows").unwrap();
    let k = whole(&case.case["params"]["n_neighbors"]);
    let expected = wholes(&case.expected("neighbors")["data"]);
    let mut distances = Vec::new();
    for (row, expected) in case.x("rows").rows().zip(expected.chunks(k)) {
        let found = nearest(row);
        let mut rows: Vec<usize> = found.iter().map(|neighbour| train_rows[neighbour.row]).collect();
        rows.sort_unstable();
        assert_eq!(rows, expected, "{}", case.name());
        distances.push(f64::from(found.last().unwrap().distance));
    }
    case.close("kth_distance", &distances, case.expected("kth_distance"));
}

#[test]
fn neighbours_vote_as_there() {
    for case in cases("k_neighbors_classifier") {
        let k = whole(&case.case["params"]["n_neighbors"]);
        let (x, y) = (case.x("train_rows"), case.classes("train_rows"));
        let model = KnnClassifier::fit(x, &y, k, KnnWeights::Uniform).unwrap();
        let model = reloaded(model, KnnClassifier::from_tensors);
        assert_eq!(model.classes(), wholes(case.part("classes")));
        check_neighbours(&case, |row| model.nearest(row).unwrap());
        let asked = case.x("rows");
        assert_eq!(model.predict(&asked), wholes(case.expected("predict")), "{}", case.name());
        let proba = model.try_predict_proba(&asked).unwrap();
        case.close("predict_proba", &wide(proba.as_slice()), case.expected("predict_proba"));
    }
}

#[test]
fn neighbours_are_averaged_as_there() {
    for case in cases("k_neighbors_regressor") {
        let k = whole(&case.case["params"]["n_neighbors"]);
        let y = Vector::from_vec(case.numbers("train_rows"));
        let model = KnnRegressor::fit(case.x("train_rows"), y, k, KnnWeights::Uniform).unwrap();
        let model = reloaded(model, KnnRegressor::from_tensors);
        check_neighbours(&case, |row| model.nearest(row).unwrap());
        let found = model.predict(&case.x("rows"));
        case.close("predict", &wide(found.as_slice()), case.expected("predict"));
    }
}

fn check_bayes(case: &Case, model: &NaiveBayes) {
    let x = case.x("rows");
    assert_eq!(model.predict(&x), wholes(case.expected("predict")), "{}", case.name());
    let proba = model.try_predict_proba(&x).unwrap();
    case.close("predict_proba", &wide(proba.as_slice()), case.expected("predict_proba"));
}

#[test]
fn densities_are_those_of_there() {
    for case in cases("gaussian_nb") {
        let wide_part = |name: &str| wide(&floats(&case.part(name)["data"]));
        let model = NaiveBayes::from_parts(NaiveBayesParts {
            classes: wholes(case.part("classes")),
            prior: wide(&floats(case.part("class_prior"))),
            mean: wide_part("theta"),
            variance: wide_part("var"),
        });
        let model = reloaded(model.unwrap(), NaiveBayes::from_tensors);
        check_bayes(&case, &model);
        let mut joint = Vec::new();
        for row in case.x("rows").rows() {
            let mut scores = vec![0.0; model.classes().len()];
            model.joint_log_likelihood_into(row, &mut scores).unwrap();
            joint.extend(scores);
        }
        case.close("joint_log_likelihood", &joint, case.expected("joint_log_likelihood"));
    }
}

#[test]
fn means_and_variances_are_learned_as_there() {
    for case in cases("gaussian_nb") {
        let options =
            NaiveBayesOptions { var_smoothing: case.case["params"]["var_smoothing"].as_f64().unwrap() };
        let (x, y) = (case.x("train_rows"), case.classes("train_rows"));
        let model = reloaded(NaiveBayes::fit(&x, &y, &options).unwrap(), NaiveBayes::from_tensors);
        case.close("theta", model.mean(), case.part("theta"));
        case.close("var", model.variance(), case.part("var"));
        case.close("class_prior", model.prior(), case.part("class_prior"));
        assert_eq!(model.predict(&case.x("rows")), wholes(case.expected("predict")), "{}", case.name());
    }
}
