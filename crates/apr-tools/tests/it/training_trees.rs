//! `apr train` of trees, forests, boosted trees and isolation forests.

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

/// Rows of two features and a weight; the class depends on the first, the number on both.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::with_models();
    let mut table = "far,noise,weight,kind,number\n".to_owned();
    for row in 0..60_i32 {
        let (far, noise) = (row * 7 % 60, row * 11 % 13);
        let kind = if far < 40 { "near" } else { "away" };
        table.push_str(&format!("{far},{noise},{},{kind},{}\n", i32::from(far != 3), 2 * far + noise));
    }
    sandbox.write("rows.csv", table.as_bytes());
    sandbox
}

fn train(sandbox: &Sandbox, args: &[&str]) -> Value {
    let (exit, value) = sandbox.json(&[&["train"], args].concat());
    assert_eq!(exit, 0, "{args:?}\n{value:#}");
    value
}

const CLASSES: &str = "--data rows.csv --target kind --drop number --drop weight -o";
const NUMBERS: &str = "--data rows.csv --target number --drop kind --drop weight -o";

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

#[test]
fn trees_learn_classes_and_numbers() {
    let sandbox = sandbox();
    let algorithms = [
        ("decision-tree", "DecisionTree"),
        ("random-forest", "RandomForest"),
        ("gradient-boosting", "GradientBoosting"),
    ];
    for (algorithm, model) in algorithms {
        let out = format!("{algorithm}.apr");
        let report = train(&sandbox, &[&[algorithm], &words(CLASSES)[..], &[&out]].concat());
        assert_eq!(report["model"], format!("{model}Classifier"));
        assert_eq!(report["metrics"]["train.accuracy"], 1.0, "{algorithm}");
        let (exit, shown) = sandbox.json(&["inspect", &out]);
        assert_eq!(exit, 0);
        let ranked = &shown["metadata"]["custom"]["feature_importances"];
        assert_eq!(ranked[0][0], "far", "{shown:#}");
        assert!(ranked[0][1].as_f64().unwrap() > 0.8);

        let report = train(&sandbox, &[&[algorithm, "--force"], &words(NUMBERS)[..], &[&out]].concat());
        assert_eq!(report["model"], format!("{model}Regressor"));
        assert!(report["metrics"]["train.r2"].as_f64().unwrap() > 0.98, "{report:#}");
        // A number may be a class.
        let report =
            train(&sandbox, &[&[algorithm, "--force", "--classes"], &words(NUMBERS)[..], &[&out]].concat());
        assert_eq!(report["model"], format!("{model}Classifier"));
    }
}

#[test]
fn settings_reach_the_training_and_the_file() {
    let sandbox = sandbox();
    let settings = "--trees 7 --max-features 1 --samples all --max-depth 2 --min-samples-leaf 3 --seed 5";
    let args = [&["random-forest"], &words(settings)[..], &words(CLASSES), &["a.apr"]].concat();
    let report = train(&sandbox, &args);
    let expected = json!({"trees": 7, "max_features": 1, "samples": "all", "max_depth": 2, "min_samples_leaf": 3,
        "min_samples_split": 2, "seed": 5});
    assert_eq!(report["hyperparameters"], expected);

    let settings = "--trees 400 --early-stopping 0.2 --patience 3 --max-leaves 6 --subsample 0.8 --l2 1 --learning-rate 0.4";
    let args = [&["gradient-boosting"], &words(settings)[..], &words(NUMBERS), &["b.apr"]].concat();
    let report = train(&sandbox, &args);
    assert!(report["metrics"]["stages"].as_u64().unwrap() < 400);
    assert!(report["metrics"]["validation_loss"].is_number());
    assert_eq!(report["hyperparameters"].get("max_depth"), None);
    let same = train(&sandbox, &[&args[..args.len() - 1], &["c.apr"]].concat());
    assert_eq!(same["metrics"], report["metrics"]);
}

#[test]
fn weights_change_what_is_learned() {
    let sandbox = sandbox();
    let one_leaf = ["decision-tree", "--max-leaves", "2", "--min-samples-leaf", "30"];
    let answers = |weights: &[&str]| {
        train(&sandbox, &[&one_leaf[..], weights, &words(CLASSES), &["w.apr", "--force"]].concat());
        let ran = sandbox.run(&["predict", "w.apr", "--input", "rows.csv"]);
        assert_eq!(ran.exit, 0, "{}", ran.stderr);
        ran.stdout.lines().filter(|line| line.contains("away")).count()
    };
    assert_eq!(answers(&[]), 30);
    assert_eq!(answers(&["--class-weight", "near=100"]), 0);

    // A sample without weight is not learned from.
    let args = "decision-tree --data rows.csv --target number --drop kind --drop noise --sample-weight weight -o s.apr";
    let report = train(&sandbox, &words(args));
    assert_eq!(report["features"], json!(["far"]));
    assert!(report["metrics"]["train.rmse"].as_f64().unwrap() > 0.0);
}

#[test]
fn isolation_forests_find_outliers() {
    let sandbox = sandbox();
    let table = (0..50).map(|row| format!("{},{}\n", row % 7, row % 5)).chain(["90,80\n".to_owned()]);
    sandbox.write("outliers.csv", format!("a,b\n{}", table.collect::<String>()).as_bytes());
    let args = "isolation-forest --contamination 0.02 --data outliers.csv -o i.apr";
    let report = train(&sandbox, &words(args));
    assert_eq!(report["metrics"]["outliers"], 1, "{report:#}");
    let ran = sandbox.run(&["predict", "i.apr", "--input", "outliers.csv"]);
    assert_eq!(ran.stdout.lines().position(|line| line.trim() == "-1"), Some(50), "{}", ran.stdout);
    let auto = train(&sandbox, &words("isolation-forest --data outliers.csv -o auto.apr"));
    assert_eq!(auto["metrics"]["threshold"], -0.5);
}

#[test]
fn settings_that_cannot_be_are_refused_by_name() {
    let sandbox = sandbox();
    let refused = [
        ("decision-tree --max-depth 0", CLASSES, "max_depth"),
        ("decision-tree --class-weight other=2", CLASSES, "`other`"),
        ("decision-tree --class-weight near", CLASSES, "`near`"),
        ("decision-tree --class-weight balanced", NUMBERS, "numbers, not classes"),
        ("random-forest --trees 0", CLASSES, "--trees"),
        ("gradient-boosting --subsample 2", NUMBERS, "subsample"),
        ("gradient-boosting --early-stopping 1", NUMBERS, "validation_share"),
        ("decision-tree --sample-weight number", NUMBERS, "column of weights"),
    ];
    for (settings, columns, named) in refused {
        let args = [&["train"], &words(settings)[..], &words(columns), &["refused.apr"]].concat();
        let ran = sandbox.run(&args);
        assert!(ran.exit == 2 && ran.stderr.contains(named), "{settings}: {} {}", ran.exit, ran.stderr);
    }
}
