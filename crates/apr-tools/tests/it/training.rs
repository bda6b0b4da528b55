//! `apr train`: models that are saved, inspected, and asked.

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

pub(crate) fn train(sandbox: &Sandbox, args: &[&str]) -> Value {
    let (exit, value) = sandbox.json(&[&["train"], args].concat());
    assert_eq!(exit, 0, "{args:?}\n{value:#}");
    value
}

pub(crate) fn lines(sandbox: &Sandbox, args: &[&str]) -> Vec<String> {
    let ran = sandbox.run(&[&["predict"], args].concat());
    assert_eq!(ran.exit, 0, "{args:?}\n{}", ran.stderr);
    ran.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn regressions_learn_a_plane() {
    let sandbox = Sandbox::with_models();
    let (mut table, mut prices) = ("id,age,size,price\n".to_owned(), Vec::new());
    for row in 0..40_i16 {
        let (age, size) = (f32::from(row % 7), f32::from(row * 13 % 11));
        prices.push(5.0 * size - 2.0 * age + 30.0);
        table.push_str(&format!("{row},{age},{size},{}\n", prices[prices.len() - 1]));
    }
    sandbox.write("plane.csv", table.as_bytes());
    for (algorithm, options, tolerance) in [
        ("linear-regression", &[][..], 1e-3),
        ("ridge", &["--alpha", "1e-6"], 1e-3),
        ("lasso", &["--alpha", "1e-5", "--tol", "1e-9"], 1e-3),
        ("lasso", &["--alpha", "1e-5", "--tol", "1e-9", "--standardize", "--force"], 1e-3),
        ("elastic-net", &["--alpha", "1e-6", "--tol", "1e-9"], 1e-3),
        ("knn", &["--neighbours", "1"], 1e-3),
        ("knn", &["--neighbours", "1", "--weights", "distance", "--standardize", "--force"], 1e-3),
        ("moe", &["--experts", "1"], 1e-3),
        ("mlp", &["--hidden", "", "--epochs", "300"], 0.5),
    ] {
        let file = format!("{algorithm}.apr");
        let args = ["--data", "plane.csv", "--target", "price", "--drop", "id", "-o", &file];
        let report = train(&sandbox, &[&[algorithm][..], &args, options].concat());
        assert_eq!((&report["features"], &report["target"]), (&json!(["age", "size"]), &json!("price")));
        assert!(report["metrics"]["train.r2"].as_f64().unwrap() > 0.99, "{report:#}");
        let found = lines(&sandbox, &[&file, "-i", "plane.csv"]);
        assert_eq!(found.len(), prices.len());
        for (found, price) in found.iter().zip(&prices) {
            assert!(
                (found.parse::<f32>().unwrap() - price).abs() < tolerance,
                "{algorithm}: {found} {price}"
            );
        }
    }
}

#[test]
fn what_a_column_cannot_be_learned_as_is_said() {
    let sandbox = Sandbox::with_models();
    let rows = |make: &dyn Fn(u32) -> String| (0..40).map(make).collect::<String>();
    let times = rows(&|row| format!("{},{},{}\n", 1_700_000_000 + row, row % 2, f64::from(row) + 0.25));
    sandbox.write("times.csv", format!("seconds,kind,value\n{times}").as_bytes());
    let args = ["--data", "times.csv", "--force", "-o", "m.apr", "--target"];
    let run = |algorithm: &str, target: &str, more: &[&str]| {
        sandbox.run(&[&["train", algorithm], &args[..], &[target], more].concat())
    };
    let ran = run("linear-regression", "value", &[]);
    assert!(ran.exit == 0 && ran.stderr.contains("`seconds` has large numbers"), "{ran:?}");
    let ran = run("softmax", "kind", &["--drop", "seconds"]);
    assert!(ran.exit == 0 && !ran.stderr.contains("large numbers"), "{ran:?}");
    for algorithm in ["softmax", "svm", "naive-bayes"] {
        let ran = run(algorithm, "value", &["--drop", "seconds"]);
        assert!(ran.exit == 2 && ran.stderr.contains("not classes"), "{ran:?}");
    }
    let ran = run("softmax", "kind", &["--class-weight", "1=2,0=1,1=3"]);
    assert!(ran.exit == 2 && ran.stderr.contains("two weights"), "{ran:?}");
}

/// As in the data set of diabetes: 331 rows, 182 different whole numbers from 25 to 346.
#[test]
fn values_of_a_quantity_are_classes_only_if_that_is_asked_for() {
    let sandbox = Sandbox::with_models();
    let mut table = "bmi,bp,progression\n".to_owned();
    for row in 0..331_u32 {
        let value = 25 + row * 37 % 182;
        table.push_str(&format!("{}.{},{},{value}\n", value / 10, row % 10, 60 + row * 7 % 50));
    }
    sandbox.write("progress.csv", table.as_bytes());
    let args = ["--data", "progress.csv", "--target", "progression", "--force", "-o", "p.apr"];
    let run = |algorithm: &[&str]| sandbox.run(&[&["train"], algorithm, &args[..]].concat());
    for algorithm in [
        &["svm"][..],
        &["svm", "--kernel", "linear"],
        &["softmax"],
        &["naive-bayes"],
        &["logistic-regression"],
    ] {
        let ran = run(algorithm);
        assert_eq!(ran.exit, 2, "{ran:?}");
        for expected in [
            "am-continuous-target",
            "182 different numbers in 331 samples: values to predict, not classes",
            "`apr train gradient-boosting`",
            "--classes",
        ] {
            assert!(ran.stderr.contains(expected), "{algorithm:?}: {}", ran.stderr);
        }
        assert!(!sandbox.path("p.apr").exists(), "{algorithm:?}");
    }
    // What the message names.
    for algorithm in ["gradient-boosting", "random-forest", "ridge", "knn", "mlp"] {
        let report = train(&sandbox, &[&[algorithm][..], &args].concat());
        assert!(report["metrics"]["train.r2"].is_f64(), "{algorithm}: {report:#}");
    }
    for algorithm in ["naive-bayes", "knn", "decision-tree"] {
        let report = train(&sandbox, &[&[algorithm, "--classes"][..], &args].concat());
        assert!(report["metrics"]["train.accuracy"].is_f64(), "{algorithm}: {report:#}");
    }
}

#[test]
fn classes_keep_their_names() {
    let sandbox = Sandbox::with_models();
    let expected = ["red", "red", "red", "blue", "blue", "blue"];
    for (algorithm, options) in [
        ("logistic-regression", &[][..]),
        ("naive-bayes", &[]),
        ("mlp", &[]),
        ("softmax", &["--class-weight", "balanced"]),
        ("softmax", &["--standardize", "--force", "--c", "100"]),
        ("knn", &["--neighbours", "3"]),
        ("knn", &["--neighbours", "3", "--standardize", "--force"]),
    ] {
        let file = format!("{algorithm}.apr");
        let args = [algorithm, "--data", "classes.csv", "--target", "kind", "-o", &file, "--name", "kinds"];
        let report = train(&sandbox, &[&args[..], options].concat());
        assert_eq!(
            (&report["classes"], &report["metrics"]["train.accuracy"]),
            (&json!(["blue", "red"]), &json!(1.0))
        );
        assert_eq!(lines(&sandbox, &[&file, "-i", "classes.csv"]), expected, "{algorithm}");
        let (_, value) = sandbox.json(&["predict", &file, "-i", "classes.csv", "--proba"]);
        assert_eq!(value["kind"], "class");
        for (found, name) in value["predictions"].as_array().unwrap().iter().zip(expected) {
            let of = |class: &str| found["probabilities"][class].as_f64().unwrap();
            assert!(
                found["class"] == name && of(name) > 0.5 && (of("red") + of("blue") - 1.0).abs() < 1e-5,
                "{found}"
            );
        }
        let shown = lines(&sandbox, &[&file, "-i", "classes.csv", "--proba"]);
        assert!(shown.iter().all(|line| line.split(',').count() == 3), "{shown:?}");
        let (_, info) = sandbox.json(&["inspect", &file]);
        assert_eq!(info["metadata"]["model_name"], "kinds");
        assert_eq!(info["metadata"]["custom"]["apr.classes"], json!(["blue", "red"]));
        assert_eq!(info["metadata"]["training"], json!({"samples": 6, "source": "classes.csv"}));
    }
}

#[test]
fn support_vectors_have_classes_and_decisions() {
    let sandbox = Sandbox::with_models();
    let expected = ["red", "red", "red", "blue", "blue", "blue"];
    let table = "x,y,k\n0,0,10\n0,900,10\n3,100,9\n3,1000,9\n6,0,-2\n6,900,-2\n";
    sandbox.write("three.csv", table.as_bytes());
    for options in [
        &["--kernel", "linear"][..],
        &["--kernel", "linear", "--standardize", "--class-weight", "balanced"],
        &["--kernel", "rbf", "--gamma", "0.1"],
        &["--kernel", "rbf", "--standardize", "--gamma", "auto"],
    ] {
        let args = ["svm", "--data", "classes.csv", "--target", "kind", "-o", "svm.apr", "--force"];
        let report = train(&sandbox, &[&args[..], options].concat());
        assert_eq!(report["metrics"]["train.accuracy"], 1.0, "{options:?} {report:#}");
        assert_eq!(report["metrics"]["converged"], true, "{options:?} {report:#}");
        assert_eq!(lines(&sandbox, &["svm.apr", "-i", "classes.csv"]), expected, "{options:?}");
        if options.contains(&"--standardize") {
            // Three classes of numbers, in other units than their features differ by.
            let args =
                ["svm", "--data", "three.csv", "--target", "k", "-o", "svm.apr", "--force", "--c", "100"];
            train(&sandbox, &[&args[..], options].concat());
            assert_eq!(lines(&sandbox, &["svm.apr", "-i", "three.csv"]), ["10", "10", "9", "9", "-2", "-2"]);
        }
    }
}

#[test]
fn weights_of_classes_and_samples_decide_where_the_table_contradicts_itself() {
    let sandbox = Sandbox::with_models();
    sandbox.write("odd.csv", b"x,k,w\n0,a,1\n0,b,5\n0,a,1\n1,a,5\n1,b,1\n1,b,1\n");
    for algorithm in [
        &["softmax"][..],
        &["logistic-regression"],
        &["svm", "--kernel", "linear"],
        &["svm", "--kernel", "rbf"],
    ] {
        let answers = |options: &[&str]| {
            let args = ["--data", "odd.csv", "--target", "k", "-o", "w.apr", "--force"];
            let report = train(&sandbox, &[algorithm, &args, options].concat());
            assert_eq!(report["features"], json!(["x"]), "{algorithm:?}");
            let found = lines(&sandbox, &["w.apr", "-i", "odd.csv"]);
            (found[0].clone() + &found[3], report)
        };
        let plain = &["--drop", "w"];
        assert_eq!(answers(plain).0, "ab", "{algorithm:?}");
        let (found, report) = answers(&["--sample-weight", "w"]);
        assert_eq!((found.as_str(), &report["hyperparameters"]["sample_weight"]), ("ba", &json!("w")));
        let (found, report) = answers(&["--drop", "w", "--class-weight", "b=40"]);
        assert_eq!((found.as_str(), &report["hyperparameters"]["class_weight"]), ("bb", &json!("b=40")));
        assert_eq!(answers(&["--drop", "w", "--class-weight", "uniform"]).0, "ab", "{algorithm:?}");
        let rare = ["train", algorithm[0], "--class-weight", "c=2", "--data", "odd.csv", "--target", "k"];
        let ran = sandbox.run(&[&rare[..], &["-o", "no.apr"]].concat());
        assert!(ran.exit == 2 && ran.stderr.contains("no class `c`"), "{}", ran.stderr);
    }
    // Two of the rare class beside one of each at the same place.
    sandbox.write("rare.csv", b"x,k\n0,a\n0,a\n0,a\n0,a\n0,b\n0,b\n9,a\n9,a\n");
    for (weights, expected) in [("uniform", "a"), ("balanced", "b")] {
        for algorithm in ["softmax", "logistic-regression"] {
            let args = ["--data", "rare.csv", "--target", "k", "-o", "r.apr", "--force", "--class-weight"];
            train(&sandbox, &[&[algorithm][..], &args, &[weights]].concat());
            assert_eq!(lines(&sandbox, &["r.apr", "-i", "rare.csv"])[0], expected, "{algorithm} {weights}");
        }
    }
}

#[test]
fn networks_stop_when_rows_set_aside_are_predicted_no_better() {
    let sandbox = Sandbox::with_models();
    let row = |row: usize| format!("{},{},{}\n", row % 7, row * 5 % 11, ["low", "high"][row * 3 % 17 / 9]);
    let table: String = (0..120).map(row).collect();
    sandbox.write("t.csv", format!("a,b,kind\n{table}").as_bytes());
    let args = ["mlp", "--hidden", "8", "--epochs", "400", "--early-stopping", "0.25", "--patience", "5"];
    let columns = ["--data", "t.csv", "--target", "kind", "-o", "n.apr"];
    let report = train(&sandbox, &[&args[..], &columns].concat());
    assert!(report["metrics"]["epochs"].as_u64().unwrap() < 400, "{report:#}");
    assert!(report["metrics"]["validation_loss"].is_number() && report["metrics"]["loss"].is_number());
    assert_eq!(report["hyperparameters"]["early_stopping"], 0.25);
    let whole = ["mlp", "--epochs", "20", "--force"];
    let report = train(&sandbox, &[&whole[..], &columns].concat());
    assert_eq!(report["metrics"].get("validation_loss"), None);
}

#[test]
fn numbers_are_classes_if_that_is_asked_for() {
    let sandbox = Sandbox::with_models();
    sandbox.write("n.csv", b"x,y\n0,10\n0.1,10\n5,9\n5.1,9\n0.2,10\n4.9,9\n");
    let report = train(&sandbox, &["naive-bayes", "--data", "n.csv", "--target", "y", "-o", "a.apr"]);
    assert_eq!(report["classes"], json!(["9", "10"]), "numbers are ordered by value");
    assert_eq!(lines(&sandbox, &["a.apr", "-i", "n.csv"]), ["10", "10", "9", "9", "10", "9"]);
    let report = train(&sandbox, &["mlp", "--data", "n.csv", "--target", "y", "-o", "b.apr"]);
    assert_eq!(report["classes"], Value::Null);
    let report = train(&sandbox, &["mlp", "--classes", "--data", "n.csv", "--target", "2", "-o", "c.apr"]);
    assert_eq!(report["classes"], json!(["9", "10"]));
}

#[test]
fn clusters_and_projections_need_no_target() {
    let sandbox = Sandbox::with_models();
    let report = train(
        &sandbox,
        &[
            "kmeans",
            "--clusters",
            "2",
            "--seed",
            "3",
            "--data",
            "classes.csv",
            "--drop",
            "kind",
            "-o",
            "k.apr",
        ],
    );
    assert!(report["metrics"]["inertia"].as_f64().unwrap() < 1.0, "{report:#}");
    let clusters = lines(&sandbox, &["k.apr", "-i", "classes.csv"]);
    assert!(clusters[..3].iter().all(|cluster| *cluster == clusters[0]) && clusters[0] != clusters[3]);
    for options in [&[][..], &["--covariance", "spherical", "--standardize", "--force"]] {
        let args = ["gmm", "--components", "2", "--data", "classes.csv", "--drop", "kind", "-o", "g.apr"];
        let report = train(&sandbox, &[&args[..], options].concat());
        assert!(report["metrics"]["log_likelihood"].as_f64().unwrap() > -5.0, "{report:#}");
        let found = lines(&sandbox, &["g.apr", "-i", "classes.csv"]);
        assert!(found[..3].iter().all(|one| *one == found[0]) && found[0] != found[3], "{found:?}");
    }
    let args = ["dbscan", "--min-samples", "2", "--eps", "1", "--data", "classes.csv", "--drop", "kind"];
    let report = train(&sandbox, &[&args[..], &["-o", "d.apr"]].concat());
    assert_eq!((&report["metrics"]["clusters"], &report["metrics"]["noise"]), (&json!(2), &json!(0)));
    train(&sandbox, &["pca", "--components", "1", "--data", "classes.csv", "--drop", "3", "-o", "p.apr"]);
    let (_, value) = sandbox.json(&["predict", "p.apr", "-i", "classes.csv"]);
    assert_eq!((&value["kind"], value["predictions"][0].as_array().unwrap().len()), (&json!("row"), 1));
}

#[test]
fn recommenders_hold_items_with_vectors_or_texts() {
    let sandbox = Sandbox::with_models();
    sandbox.write("items.csv", b"name,a,b\ndune,1,0\nsolaris,0.9,0.1\nemma,0,1\n");
    sandbox.write("texts.txt", b"desert planet\nocean planet\nvillage marriage\n");
    let report = train(&sandbox, &["recommender", "--id", "name", "--data", "items.csv", "-o", "a.apr"]);
    assert_eq!((&report["metrics"]["items"], &report["features"]), (&json!(3), &json!(["a", "b"])));
    let model = apr_models::AnyModel::load(sandbox.path("a.apr")).unwrap();
    let apr_models::AnyModel::ContentRecommender(model) = model else { panic!("{model:?}") };
    assert_eq!(model.similar_to("dune", 1).unwrap()[0].id, "solaris");
    train(&sandbox, &["recommender", "--data", "texts.txt", "-o", "b.apr"]);
    let model = apr_models::AnyModel::load(sandbox.path("b.apr")).unwrap();
    let apr_models::AnyModel::ContentRecommender(model) = model else { panic!("{model:?}") };
    assert_eq!(model.recommend_text("a planet of deserts", 1).unwrap()[0].id, "1");
    // Similar items of rows by the names of their columns, of texts, and of items.
    sandbox.write("rows.csv", b"b,other,a\n0,7,1\n1,7,0\n");
    assert_eq!(lines(&sandbox, &["a.apr", "-i", "rows.csv", "--top", "1"]), ["dune:1", "emma:1"]);
    sandbox.write("ids.txt", b"solaris\nemma\nsolarium\n");
    let ran = sandbox.run(&["predict", "a.apr", "-i", "ids.txt", "--ids"]);
    assert!(ran.exit == 2 && ran.stderr.contains("solarium"), "{}", ran.stderr);
    let answers: Vec<&str> = ran.stdout.lines().collect();
    assert!(answers[0].starts_with("dune:0.99") && answers[1].starts_with("solaris:0.1"), "{answers:?}");
    assert_eq!(
        (answers.len(), answers[0].split(' ').count()),
        (2, 2),
        "rows before the one at fault are answered"
    );
    let (exit, value) = sandbox.json(&["predict", "b.apr", "-i", "texts.txt", "--top", "2"]);
    assert_eq!((exit, &value["kind"], &value["rows"]), (0, &json!("similar"), &json!(3)));
    assert_eq!(value["predictions"][1][0]["item"], "2");
    assert!((value["predictions"][1][0]["similarity"].as_f64().unwrap() - 1.0).abs() < 1e-6);
    assert_eq!(lines(&sandbox, &["a.apr", "-i", "items.csv", "--column", "name", "--ids"]).len(), 3);
    for args in [
        &["a.apr", "-i", "ids.txt", "--proba"][..],
        &["a.apr", "-i", "items.csv", "--column", "name"],
        &["model.apr", "-i", "rows.csv", "--ids"],
        &["a.apr", "-i", "ids.txt", "--ids", "--top", "0"],
    ] {
        let ran = sandbox.run(&[&["predict"], args].concat());
        assert_eq!(ran.exit, 2, "{args:?}\n{}", ran.stderr);
    }
    sandbox.write("twice.csv", b"name,a\ndune,1\ndune,2\n");
    let ran = sandbox.run(&["train", "recommender", "--id", "name", "--data", "twice.csv", "-o", "c.apr"]);
    assert_eq!(ran.exit, 2, "{}", ran.stderr);
}

#[test]
fn the_same_training_gives_the_same_file() {
    let sandbox = Sandbox::with_models();
    for (algorithm, data, options) in [
        ("mlp", "classes.csv", &["--target", "kind", "--seed", "5"][..]),
        ("moe", "table.csv", &["--target", "price", "--seed", "5"]),
        ("kmeans", "rows.csv", &["--clusters", "2", "--seed", "5"]),
        ("gmm", "rows.csv", &["--components", "2", "--covariance", "diag", "--seed", "5"]),
        ("svm", "classes.csv", &["--target", "kind", "--standardize"]),
        ("softmax", "classes.csv", &["--target", "kind"]),
    ] {
        for file in ["a.apr", "b.apr"] {
            let args = [&[algorithm, "--data", data, "-o", file, "--force"], options].concat();
            train(&sandbox, &args);
        }
        assert_eq!(sandbox.read("a.apr"), sandbox.read("b.apr"), "{algorithm}");
    }
}

#[test]
fn the_number_of_threads_changes_no_byte() {
    let sandbox = Sandbox::with_models();
    let row = |row: usize| format!("{},{},{},{}\n", row % 7, row * 5 % 11, row * row % 13, row % 3);
    let table: String = (0..200).map(row).collect();
    sandbox.write("t.csv", format!("a,b,c,k\n{table}").as_bytes());
    for args in [
        &["random-forest", "--trees", "9", "--classes", "--folds", "3", "--target", "k"][..],
        &["random-forest", "--trees", "5", "--test-share", "0.2", "--target", "c"],
        &["gradient-boosting", "--trees", "5", "--folds", "4", "--target", "c"],
        &["kmeans", "--clusters", "5", "--restarts", "7"],
        &["gmm", "--components", "3", "--restarts", "5", "--covariance", "diag"],
        &["naive-bayes", "--target", "k", "--folds", "5"],
    ] {
        let files: Vec<Vec<u8>> = ["1", "2", "5"]
            .iter()
            .map(|threads| {
                let rest = ["--data", "t.csv", "-o", "m.apr", "--force", "--threads", threads];
                train(&sandbox, &[args, &rest].concat());
                sandbox.read("m.apr")
            })
            .collect();
        assert!(files.iter().all(|file| *file == files[0]), "{args:?}");
    }
    let ran = sandbox.run(&["train", "kmeans", "--threads", "0", "--data", "t.csv", "-o", "no.apr"]);
    assert_eq!(ran.exit, 2, "{}", ran.stderr);
}

#[test]
fn a_model_can_be_piped_into_a_question() {
    let sandbox = Sandbox::with_models();
    let args = ["train", "ridge", "--data", "-", "--target", "price", "-o", "-"];
    let mut child = sandbox.command(&args).stdin(std::process::Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), &sandbox.read("table.csv")).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let ran = sandbox.run_with_input(&["predict", "-", "-i", "table.csv"], &output.stdout);
    assert_eq!((ran.exit, ran.stdout.lines().count()), (0, 6), "{}", ran.stderr);
}

#[test]
fn what_cannot_be_learned_is_refused_before_anything_is_written() {
    let sandbox = Sandbox::with_models();
    sandbox.write("bad.csv", b"a,b\n1,2\n3,x\n");
    sandbox.write("header.csv", b"a,b\n");
    sandbox.write("empty.csv", b"");
    sandbox.write("three.csv", b"x,k\n1,a\n2,b\n3,c\n");
    for (exit, args) in [
        (3, &["ridge", "--data", "bad.csv", "--target", "a"][..]),
        (3, &["ridge", "--data", "bad.csv", "--target", "b"]),
        (3, &["ridge", "--data", "header.csv", "--target", "b"]),
        (3, &["ridge", "--data", "empty.csv", "--target", "b"]),
        (3, &["ridge", "--data", "three.csv", "--target", "x", "--drop", "k"]),
        (2, &["ridge", "--data", "three.csv", "--target", "x", "--drop", "x"]),
        (2, &["logistic-regression", "--data", "three.csv", "--target", "k"]),
        (2, &["kmeans", "--clusters", "9", "--data", "rows.csv"]),
        (2, &["gmm", "--components", "9", "--data", "rows.csv"]),
        (2, &["gmm", "--components", "2", "--reg-covar", "-1", "--data", "rows.csv"]),
        (2, &["dbscan", "--eps", "0", "--data", "rows.csv"]),
        (2, &["dbscan", "--min-samples", "0", "--data", "rows.csv"]),
        (2, &["lasso", "--alpha", "-1", "--data", "table.csv", "--target", "price"]),
        (2, &["elastic-net", "--l1-ratio", "2", "--data", "table.csv", "--target", "price"]),
        (2, &["softmax", "--c", "0", "--data", "three.csv", "--target", "k"]),
        (2, &["svm", "--c", "-1", "--data", "three.csv", "--target", "k"]),
        (2, &["svm", "--gamma", "x", "--data", "three.csv", "--target", "k"]),
        (2, &["svm", "--kernel", "linear", "--max-iter", "0", "--data", "three.csv", "--target", "k"]),
        (2, &["knn", "--data", "three.csv", "--target", "k"]),
        (2, &["naive-bayes", "--class-weight", "balanced", "--data", "three.csv", "--target", "k"]),
        (2, &["pca", "--components", "9", "--data", "rows.csv"]),
        (2, &["mlp", "--hidden", "a", "--data", "three.csv", "--target", "k"]),
        (2, &["moe", "--experts", "0", "--data", "table.csv", "--target", "price"]),
        (2, &["moe", "--experts", "100000000000", "--data", "table.csv", "--target", "price"]),
        (2, &["kmeans", "--data", "rows.csv", "--clusters", "2", "--delimiter", "xy"]),
    ] {
        let ran = sandbox.run(&[&["train"], args, &["-o", "new.apr"]].concat());
        assert_eq!(ran.exit, exit, "{args:?}\n{}", ran.stderr);
        assert!(!ran.stderr.contains("internal"), "{}", ran.stderr);
        assert!(!sandbox.path("new.apr").exists(), "{args:?}");
    }
}
