//! Trained models predict rows that they did not learn from as well as those of scikit-learn: `held_out.json`.

use apr_models::{
    BoostingOptions, DecisionTreeClassifier, DecisionTreeRegressor, ForestOptions,
    GradientBoostingClassifier, GradientBoostingRegressor, IsolationForest, IsolationOptions, Matrix,
    RandomForestClassifier, RandomForestRegressor, TreeOptions, Vector,
};
use serde_json::Value;

use super::{file, floats, matrix, number, whole, wholes};

const FOLDS: usize = 5;

fn subset(x: &Matrix, rows: &[usize]) -> Matrix {
    let values = rows.iter().flat_map(|&row| x.row(row).unwrap()).copied().collect();
    Matrix::from_vec(rows.len(), x.n_cols(), values).unwrap()
}

/// Predictions of each row by a model that was trained on the other folds.
fn predicted<Y: Copy>(x: &Matrix, y: &[Y], learn: impl Fn(&Matrix, &[Y], &Matrix) -> Vec<Y>) -> Vec<Y> {
    let mut found = y.to_vec();
    for fold in 0..FOLDS {
        let (held, rest): (Vec<usize>, Vec<usize>) = (0..y.len()).partition(|row| row % FOLDS == fold);
        let of_rest: Vec<Y> = rest.iter().map(|&row| y[row]).collect();
        let answers = learn(&subset(x, &rest), &of_rest, &subset(x, &held));
        held.iter().zip(answers).for_each(|(&row, answer)| found[row] = answer);
    }
    found
}

fn accuracy(x: &Matrix, y: &[usize], learn: impl Fn(&Matrix, &[usize], &Matrix) -> Vec<usize>) -> f64 {
    let found = predicted(x, y, learn);
    found.iter().zip(y).filter(|(found, expected)| found == expected).count() as f64 / y.len() as f64
}

fn r2(x: &Matrix, y: &[f32], learn: impl Fn(&Matrix, &Vector, &Matrix) -> Vector) -> f64 {
    let found =
        predicted(x, y, |x, y, asked| learn(x, &Vector::from_vec(y.to_vec()), asked).as_slice().to_vec());
    let mean = y.iter().copied().map(f64::from).sum::<f64>() / y.len() as f64;
    let sum = |of: &dyn Fn(usize) -> f64| (0..y.len()).map(|row| of(row).powi(2)).sum::<f64>();
    1.0 - sum(&|row| f64::from(y[row]) - f64::from(found[row])) / sum(&|row| f64::from(y[row]) - mean)
}

/// Trained on rows of the most frequent class outside of fold 0: how well the scores rank those of fold 0 above other classes.
fn novelty(x: &Matrix, y: &[usize], seed: u64) -> f64 {
    let count = |class: usize| y.iter().filter(|&&other| other == class).count();
    let normal = (0..=*y.iter().max().unwrap()).rev().max_by_key(|&class| count(class)).unwrap();
    let rows = |wanted: &dyn Fn(usize) -> bool| (0..y.len()).filter(|&row| wanted(row)).collect::<Vec<_>>();
    let learned = rows(&|row| y[row] == normal && row % FOLDS != 0);
    let options = IsolationOptions { seed, ..IsolationOptions::default() };
    let model = IsolationForest::fit(&subset(x, &learned), &options).unwrap();
    let scores = |rows: &[usize]| model.try_score_samples(&subset(x, rows)).unwrap().into_vec();
    let above = scores(&rows(&|row| y[row] == normal && row % FOLDS == 0));
    let below = scores(&rows(&|row| y[row] != normal));
    let pairs = above.iter().flat_map(|above| below.iter().map(move |below| (above, below)));
    let ranked: f64 = pairs
        .map(|(above, below)| if above == below { 0.5 } else { f64::from(u8::from(above > below)) })
        .sum();
    ranked / (above.len() * below.len()) as f64
}

fn score(case: &Value, x: &Matrix, target: &Value, seed: u64) -> f64 {
    let tree = TreeOptions {
        min_samples_leaf: case["params"].get("min_samples_leaf").map_or(1, whole),
        ..TreeOptions::default()
    };
    let forest = ForestOptions { seed, ..ForestOptions::default() };
    let boosting = BoostingOptions { seed, ..BoostingOptions::default() };
    let model = case["model"].as_str().unwrap();
    if case["target"] == "class" {
        let y = wholes(target);
        return match model {
            "isolation_forest" => novelty(x, &y, seed),
            _ => accuracy(x, &y, |x, y, asked| match model {
                "decision_tree" => DecisionTreeClassifier::fit(x, y, &tree).unwrap().predict(asked),
                "random_forest" => RandomForestClassifier::fit(x, y, &forest).unwrap().predict(asked),
                _ => GradientBoostingClassifier::fit(x, y, &boosting).unwrap().predict(asked),
            }),
        };
    }
    r2(x, &floats(target), |x, y, asked| match model {
        "decision_tree" => DecisionTreeRegressor::fit(x, y, &tree).unwrap().predict(asked),
        "random_forest" => RandomForestRegressor::fit(x, y, &forest).unwrap().predict(asked),
        _ => GradientBoostingRegressor::fit(x, y, &boosting).unwrap().predict(asked),
    })
}

/// At most 0.01 below the mean of scikit-learn's seeds, or no worse than the worst of them.
#[test]
fn trees_predict_unseen_rows_as_well() {
    let (held_out, tables) = (file("held_out"), file("tables"));
    for case in held_out["cases"].as_array().unwrap() {
        let name = case["table"].as_str().unwrap();
        let table = [&held_out, &tables].into_iter().find_map(|file| file["tables"].get(name)).unwrap();
        let (x, target) = (matrix(&table["x"]), &table["targets"][case["target"].as_str().unwrap()]);
        // A single tree has no seed.
        let seeds = if case["model"] == "decision_tree" { 1 } else { 3 };
        let found = (0..seeds).map(|seed| score(case, &x, target, seed)).sum::<f64>() / seeds as f64;
        let bound = f64::min(case["score"].as_f64().unwrap() - 0.01, case["least"].as_f64().unwrap());
        assert!(found >= bound, "{name}, {}: {found}, {:.4} there", case["model"], number(&case["score"]));
    }
}
