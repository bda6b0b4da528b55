//! `apr score`, and the metrics of `apr train` on rows that it held out.

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

fn json(sandbox: &Sandbox, args: &[&str]) -> Value {
    let (exit, value) = sandbox.json(args);
    assert_eq!(exit, 0, "{args:?}\n{value:#}");
    value
}

/// Classes that a line divides, but for a few rows.
fn with_classes() -> Sandbox {
    let sandbox = Sandbox::with_models();
    let mut table = "x,y,kind\n".to_owned();
    for row in 0..60 {
        let (x, y) = (row % 10, row * 7 % 13);
        let kind = if (x + y > 10) == (row % 19 != 0) { "high" } else { "low" };
        table.push_str(&format!("{x},{y},{kind}\n"));
    }
    sandbox.write("kinds.csv", table.as_bytes());
    sandbox
}

#[test]
fn a_file_is_scored_as_its_training_was() {
    let sandbox = with_classes();
    for (algorithm, table, target) in [
        ("logistic-regression", "kinds.csv", "kind"),
        ("naive-bayes", "kinds.csv", "kind"),
        ("mlp", "kinds.csv", "kind"),
        ("ridge", "table.csv", "price"),
        ("mlp", "table.csv", "price"),
    ] {
        let args = ["train", algorithm, "--data", table, "--target", target, "-o", "m.apr", "--force"];
        let trained = json(&sandbox, &args);
        let scored = json(&sandbox, &["score", "m.apr", "--data", table]);
        assert_eq!(scored["target"], target);
        let metrics = scored["metrics"].as_object().unwrap();
        assert!(metrics.len() >= 3, "{scored:#}");
        for (name, value) in metrics {
            // A training takes numbers as 32-bit floats, a score as 64-bit ones.
            let (trained, scored) = (&trained["metrics"][&format!("train.{name}")], value);
            let (trained, scored) = (trained.as_f64().unwrap(), scored.as_f64().unwrap());
            assert!(
                (trained - scored).abs() <= 1e-5 * trained.abs(),
                "{algorithm}: {name} {trained} {scored}"
            );
        }
    }
}

#[test]
fn classes_have_metrics_and_a_confusion_matrix() {
    let sandbox = Sandbox::with_models();
    json(&sandbox, &["train", "naive-bayes", "--data", "classes.csv", "--target", "kind", "-o", "m.apr"]);
    // One of the reds is called blue.
    let text = String::from_utf8(sandbox.read("classes.csv")).unwrap().replacen("red", "blue", 1);
    sandbox.write("wrong.csv", text.as_bytes());
    let scored = json(&sandbox, &["score", "m.apr", "--data", "wrong.csv"]);
    assert_eq!((&scored["rows"], &scored["confusion"]), (&json!(6), &json!([[3, 1], [0, 2]])));
    assert_eq!(
        scored["classes"][0],
        json!({"class": "blue", "rows": 4, "precision": 1.0, "recall": 0.75, "f1": 6.0 / 7.0})
    );
    assert_eq!(scored["metrics"]["accuracy"], 5.0 / 6.0);
    let shown = sandbox.run(&["score", "m.apr", "--data", "wrong.csv"]).stdout;
    assert!(shown.contains("accuracy") && shown.lines().last().unwrap().starts_with("red"), "{shown}");
}

#[test]
fn rows_are_held_out_of_the_training() {
    let sandbox = with_classes();
    let train = |args: &[&str]| {
        let common = ["--data", "kinds.csv", "--target", "kind", "-o", "m.apr", "--force"];
        json(&sandbox, &[&["train", "logistic-regression"], &common[..], args].concat())
    };
    let report = train(&["--test-share", "0.25", "--folds", "4", "--seed", "1"]);
    assert_eq!((&report["samples"], &report["metrics"]["test.samples"]), (&json!(45), &json!(15)));
    assert_eq!(report["hyperparameters"]["test_share"], 0.25);
    for name in ["accuracy", "f1_macro", "log_loss", "roc_auc"] {
        for part in [format!("train.{name}"), format!("test.{name}"), format!("cv.{name}.mean")] {
            let value = report["metrics"][&part].as_f64().unwrap();
            assert!((0.0..=1.0).contains(&value), "{part}: {value}");
        }
        assert!(report["metrics"][&format!("cv.{name}.std")].as_f64().unwrap() > 0.0);
    }
    let (_, info) = sandbox.json(&["inspect", "m.apr"]);
    assert_eq!(info["metadata"]["metrics"], report["metrics"]);
    assert_eq!(info["metadata"]["training"]["samples"], 45);
    assert_eq!(train(&["--test-share", "0.25", "--folds", "4", "--seed", "1"])["metrics"], report["metrics"]);
    assert_ne!(train(&["--test-share", "0.25", "--folds", "4", "--seed", "2"])["metrics"], report["metrics"]);
    // Cross-validation alone leaves all rows to the model.
    assert_eq!(train(&["--folds", "4"])["samples"], 60);
}

#[test]
fn targets_are_compared_as_what_they_mean() {
    let sandbox = Sandbox::with_models();
    sandbox.write("n.csv", b"x,y\n0,10\n0.1,10\n5,9\n5.1,9\n0.2,10\n4.9,9\n");
    json(&sandbox, &["train", "naive-bayes", "--data", "n.csv", "--target", "y", "-o", "n.apr"]);
    sandbox
        .write("m.jsonl", b"{\"x\": 0.1, \"y\": 10.0}\n{\"x\": 5, \"y\": 9}\n{\"x\": 4, \"y\": \" 9 \"}\n");
    let scored = json(&sandbox, &["score", "n.apr", "--data", "m.jsonl"]);
    assert_eq!(scored["metrics"]["accuracy"], 1.0);
    // Without names, all columns but the target are features.
    sandbox.write("bare.csv", b"10,0.1\n9,5\n");
    let scored = json(&sandbox, &["score", "n.apr", "--data", "bare.csv", "--target", "1"]);
    assert_eq!(scored["metrics"]["accuracy"], 1.0);
}

#[test]
fn what_cannot_be_scored_is_refused() {
    let sandbox = with_classes();
    let train = |args: &[&str]| json(&sandbox, &[&["train"], args].concat());
    train(&["kmeans", "--clusters", "2", "--data", "rows.csv", "-o", "k.apr"]);
    train(&["naive-bayes", "--data", "kinds.csv", "--target", "kind", "-o", "c.apr"]);
    train(&["ridge", "--data", "table.csv", "--target", "price", "-o", "r.apr"]);
    sandbox.write("unknown.csv", b"x,y,kind\n1,2,low\n3,4,medium\n");
    sandbox.write("empty.csv", b"x,y,kind\n");
    sandbox.write("single.csv", b"x,k\n1,a\n2,a\n3,b\n");
    for (exit, part, args) in [
        (2, "no target", &["score", "k.apr", "--data", "rows.csv", "--target", "a"][..]),
        (3, "line 3, column 3 (kind)", &["score", "c.apr", "--data", "unknown.csv"]),
        (3, "no rows", &["score", "c.apr", "--data", "empty.csv"]),
        (3, "no column", &["score", "c.apr", "--data", "kinds.csv", "--target", "z"]),
        (
            3,
            "besides the target",
            &["score", "r.apr", "--data", "rows.csv", "--target", "1", "--header", "no"],
        ),
        (2, "standard input", &["score", "-", "--data", "-"]),
        (2, "between 0 and 1", &["train", "ridge", "--test-share", "1"]),
        (2, "--folds", &["train", "ridge", "--folds", "1"]),
        (2, "no row on one side", &["train", "ridge", "--test-share", "0.01"]),
        (2, "--folds 99 of", &["train", "ridge", "--folds", "99"]),
    ] {
        let more = ["--data", "table.csv", "--target", "price", "-o", "new.apr"];
        let all = if args[0] == "train" { [args, &more].concat() } else { args.to_vec() };
        let ran = sandbox.run(&all);
        assert_eq!(ran.exit, exit, "{args:?}\n{}", ran.stderr);
        assert!(ran.stderr.contains(part) && !ran.stderr.contains("internal"), "{args:?}\n{}", ran.stderr);
        assert!(!sandbox.path("new.apr").exists(), "{args:?}");
    }
    let args =
        ["train", "naive-bayes", "--folds", "2", "--data", "single.csv", "--target", "k", "-o", "n.apr"];
    let ran = sandbox.run(&args);
    assert!(ran.exit == 3 && ran.stderr.contains("a class with one row"), "{}", ran.stderr);
}

#[test]
fn language_models_have_a_perplexity() {
    let sandbox = Sandbox::with_models();
    sandbox.write("texts.txt", b"the cat sat\nthe dog sat\na cat ran\n");
    let trained = json(&sandbox, &["train", "ngram", "--order", "2", "--data", "texts.txt", "-o", "n.apr"]);
    let scored = json(&sandbox, &["score", "n.apr", "--data", "texts.txt"]);
    assert_eq!(
        (&scored["target"], &scored["rows"], &scored["kind"]),
        (&Value::Null, &json!(3), &json!("log-probability"))
    );
    let (found, expected) = (&scored["metrics"]["perplexity"], &trained["metrics"]["perplexity"]);
    assert!((found.as_f64().unwrap() - expected.as_f64().unwrap()).abs() < 1e-9, "{found} {expected}");
    // By the lines of `predict`, whose logarithms add up to it.
    let logs = sandbox.run(&["predict", "n.apr", "-i", "texts.txt"]).stdout;
    let sum: f64 = logs.lines().map(|line| line.parse::<f64>().unwrap()).sum();
    assert!((found.as_f64().unwrap() - (-sum / 12.0).exp()).abs() < 1e-9);
    sandbox.write("texts.csv", b"id,text\n1,the cat sat\n2,the dog sat\n3,a cat ran\n");
    let column = json(&sandbox, &["score", "n.apr", "--data", "texts.csv", "--column", "text"]);
    assert_eq!(column["metrics"], scored["metrics"]);
    json(&sandbox, &["train", "tfidf", "--data", "texts.txt", "-o", "t.apr"]);
    sandbox.write("empty.txt", b"");
    for (exit, args) in [
        (2, &["t.apr", "--data", "texts.txt"][..]),
        (2, &["model.apr", "--data", "table.csv", "--column", "price"]),
        (2, &["n.apr", "--data", "texts.csv", "--column", "text", "--target", "id"]),
        (3, &["n.apr", "--data", "empty.txt"]),
    ] {
        let ran = sandbox.run(&[&["score"], args].concat());
        assert_eq!(ran.exit, exit, "{args:?}\n{}", ran.stderr);
    }
}
