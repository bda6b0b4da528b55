//! Gradient boosted trees.

use apr_models::{
    BoostedClassifierParts, BoostedRegressorParts, GradientBoostingClassifier, GradientBoostingRegressor,
};

use super::trees::{questions, values as tree};
use super::{cases, floats, reloaded, wholes, wide};

#[test]
fn boosted_trees_tell_classes_apart_as_there() {
    for case in cases("gradient_boosting_classifier") {
        let stages = case.part("stages").as_array().unwrap();
        let model = GradientBoostingClassifier::from_parts(BoostedClassifierParts {
            classes: wholes(case.part("classes")),
            n_features: case.x("rows").n_cols(),
            learning_rate: case.part("learning_rate").as_f64().unwrap(),
            start: wide(&floats(case.part("init"))),
            trees: stages.iter().flat_map(|stage| stage.as_array().unwrap()).map(tree).collect(),
        });
        let model = reloaded(model.unwrap(), GradientBoostingClassifier::from_tensors);
        for (x, expected) in questions(&case) {
            assert_eq!(model.predict(&x), wholes(&expected["predict"]), "{}", case.name());
            let proba = model.try_predict_proba(&x).unwrap();
            case.close("predict_proba", &wide(proba.as_slice()), &expected["predict_proba"]);
            let mut scores = vec![0.0; x.n_rows() * model.start().len()];
            model.decision_function_into(x.as_slice(), &mut scores).unwrap();
            case.close("decision_function", &scores, &expected["decision_function"]);
        }
    }
}

#[test]
fn boosted_trees_add_up_as_there() {
    for case in cases("gradient_boosting_regressor") {
        let model = GradientBoostingRegressor::from_parts(BoostedRegressorParts {
            n_features: case.x("rows").n_cols(),
            learning_rate: case.part("learning_rate").as_f64().unwrap(),
            start: case.part("init").as_f64().unwrap(),
            trees: case.part("trees").as_array().unwrap().iter().map(tree).collect(),
        });
        let model = reloaded(model.unwrap(), GradientBoostingRegressor::from_tensors);
        for (x, expected) in questions(&case) {
            case.close("predict", &wide(model.predict(&x).as_slice()), &expected["predict"]);
        }
    }
}
