//! `apr train` on tables with missing values and categories.

use serde_json::{Value, json};

use crate::sandbox::Sandbox;
use crate::training::{lines, train};

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// Rows whose class and price depend on a number that is missing in every eighth row, and on a colour.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::with_models();
    let mut table = "size,colour,price,kind\n".to_owned();
    for row in 0..96_u32 {
        let (size, colour) = (row * 7 % 12, ["red", "green", "blue"][(row * 5 % 3) as usize]);
        let price = 2 * size + if colour == "green" { 30 } else { 0 };
        let kind = if price >= 26 { "dear" } else { "cheap" };
        let size = if row % 8 == 5 { String::new() } else { size.to_string() };
        table.push_str(&format!("{size},{colour},{price},{kind}\n"));
    }
    sandbox.write("t.csv", table.as_bytes());
    sandbox
}

const KIND: &str =
    "--data t.csv --target kind --drop price --missing median --categorical colour -o m.apr --force";
const PRICE: &str =
    "--data t.csv --target price --drop kind --missing mean --categorical colour -o m.apr --force";

#[test]
fn every_algorithm_predicts_tables_as_they_are() {
    let sandbox = sandbox();
    let table = String::from_utf8(sandbox.read("t.csv")).unwrap();
    let column = |place: usize| table.lines().skip(1).map(move |line| line.split(',').nth(place).unwrap());
    for algorithm in [
        "logistic-regression",
        "softmax --standardize",
        "svm --kernel linear",
        "svm --standardize",
        "knn --neighbours 1",
        "naive-bayes",
        "mlp --epochs 60",
        "decision-tree",
        "random-forest --trees 20",
        "gradient-boosting",
    ] {
        let report = train(&sandbox, &[words(algorithm), words(KIND)].concat());
        assert_eq!((&report["model"], &report["features"]), (&json!("Pipeline"), &json!(["size", "colour"])));
        let settings = &report["hyperparameters"];
        let expected = ["median", "one-hot", "error"];
        assert_eq!([&settings["missing"], &settings["encoding"], &settings["unknown_category"]], expected);
        let found = lines(&sandbox, &["m.apr", "-i", "t.csv"]);
        let right = found.iter().zip(column(3)).filter(|(found, expected)| found == expected).count();
        let accuracy = report["metrics"]["train.accuracy"].as_f64().unwrap();
        assert!(
            accuracy > 0.9 && (right as f64 / 96.0 - accuracy).abs() < 1e-9,
            "{algorithm}: {right} {accuracy}"
        );
        let (exit, scores) = sandbox.json(&["score", "m.apr", "--data", "t.csv"]);
        assert_eq!((exit, &scores["metrics"]["accuracy"]), (0, &json!(accuracy)), "{algorithm}");
    }
    for algorithm in [
        "linear-regression",
        "ridge",
        "lasso --alpha 0.01",
        "elastic-net --alpha 0.01 --standardize",
        "knn --neighbours 1 --standardize",
        "mlp --epochs 200",
        "decision-tree",
        "random-forest --trees 20",
        "gradient-boosting",
    ] {
        let report = train(&sandbox, &[words(algorithm), words(PRICE)].concat());
        let r2 = report["metrics"]["train.r2"].as_f64().unwrap();
        assert!(r2 > 0.8, "{algorithm} {r2}");
        let (_, scores) = sandbox.json(&["score", "m.apr", "--data", "t.csv"]);
        assert_eq!(scores["metrics"]["r2"], report["metrics"]["train.r2"], "{algorithm}");
    }
    let all =
        "--data t.csv --drop price --drop kind --missing most-frequent --categorical colour -o m.apr --force";
    for algorithm in
        ["kmeans --clusters 3", "gmm --components 2 --covariance diag", "isolation-forest", "pca", "dbscan"]
    {
        train(&sandbox, &[words(algorithm), words(all)].concat());
        if algorithm != "dbscan" {
            assert_eq!(lines(&sandbox, &["m.apr", "-i", "t.csv"]).len(), 96, "{algorithm}");
        }
    }
}

#[test]
fn categories_keep_their_names_and_unknown_ones_are_refused_or_ignored() {
    let sandbox = sandbox();
    sandbox.write("new.csv", b"colour,size\ngreen,3\npink,3\n,3\n");
    for (option, exit) in [("--unknown-category error", 3), ("--unknown-category ignore", 0)] {
        train(&sandbox, &[words("random-forest"), words(KIND), words(option)].concat());
        let (_, info) = sandbox.json(&["inspect", "m.apr"]);
        let custom = &info["metadata"]["custom"];
        assert_eq!(custom["apr.categories"], json!([[], ["blue", "green", "red"]]));
        let named: Vec<&Value> =
            custom["feature_importances"].as_array().unwrap().iter().map(|pair| &pair[0]).collect();
        assert!(named.contains(&&json!("colour=green")) && named.contains(&&json!("size")), "{named:?}");
        let ran = sandbox.run(&["predict", "m.apr", "-i", "new.csv"]);
        assert_eq!(ran.exit, exit, "{}", ran.stderr);
        assert_eq!(ran.stdout.lines().next(), Some("dear"));
        if exit == 3 {
            assert!(ran.stderr.contains("line 3, column 1 (colour)"), "{}", ran.stderr);
            assert!(
                ran.stderr.contains("`pink`") && ran.stderr.contains("blue, green, red"),
                "{}",
                ran.stderr
            );
        }
    }
    // The most frequent category is that of an empty cell.
    let found = lines(&sandbox, &["m.apr", "-i", "new.csv"]);
    assert_eq!(found.len(), 3);
    // In a file of tensors they keep their names, too.
    assert_eq!(sandbox.run(&["convert", "m.apr", "m.safetensors"]).exit, 0);
    assert_eq!(lines(&sandbox, &["m.safetensors", "-i", "new.csv"]), found);
}

#[test]
fn ordinal_numbers_are_those_of_the_sorted_names() {
    let sandbox = Sandbox::with_models();
    sandbox.write("t.csv", b"grade,y\n10,30\n9,20\n2,10\n10,30\n2,10\n");
    let args = "linear-regression --data t.csv --target y --categorical grade --encoding ordinal -o o.apr";
    let report = train(&sandbox, &words(args));
    // 2, 9, 10 are 0, 1, 2: a line.
    assert!(report["metrics"]["train.r2"].as_f64().unwrap() > 0.999_99, "{report:#}");
    sandbox.write("ask.csv", b"grade\n9\n");
    let found = lines(&sandbox, &["o.apr", "-i", "ask.csv"]);
    assert!((found[0].parse::<f64>().unwrap() - 20.0).abs() < 1e-3, "{found:?}");
}

#[test]
fn folds_learn_what_they_fill_with() {
    let sandbox = sandbox();
    let report =
        train(&sandbox, &[words("softmax --folds 4 --test-share 0.25 --threads 2"), words(KIND)].concat());
    assert!(report["metrics"]["cv.accuracy.mean"].as_f64().unwrap() > 0.8, "{report:#}");
    assert_eq!(report["metrics"]["test.samples"], 24);
}

#[test]
fn json_lines_and_parquet_have_categories_too() {
    let sandbox = Sandbox::with_models();
    let row = |row: usize| {
        let colour = ["\"a\"", "\"b\"", "null"][row % 3];
        format!("{{\"colour\": {colour}, \"y\": {}}}\n", row % 3 % 2)
    };
    sandbox.write("t.jsonl", (0..12).map(row).collect::<String>().as_bytes());
    let args = "linear-regression --data t.jsonl --target y --missing mean --categorical colour -o m.apr";
    let report = train(&sandbox, &words(args));
    assert!(report["metrics"]["train.r2"].as_f64().unwrap() > 0.99, "{report:#}");
    let found = lines(&sandbox, &["m.apr", "-i", "t.jsonl"]);
    assert!(
        found[1].parse::<f64>().unwrap() > 0.99 && found[2].parse::<f64>().unwrap().abs() < 0.01,
        "{found:?}"
    );
}

#[test]
fn what_cannot_be_prepared_is_refused_by_name() {
    let sandbox = sandbox();
    sandbox.write("none.csv", b"a,b,y\n1,,1\n2,,2\n");
    let many: String = (0..70_000).map(|row| format!("n{row},1\n")).collect();
    sandbox.write("many.csv", format!("a,y\n{many}").as_bytes());
    for (exit, args, part) in [
        (3, "ridge --data t.csv --target price --drop kind --drop colour", "the cell is empty"),
        (3, "ridge --data t.csv --target price --drop kind --missing mean", "`red` is not a number"),
        (3, "ridge --data t.csv --target price --drop kind --categorical colour", "the cell is empty"),
        (2, "ridge --data t.csv --target price --drop kind --categorical kind", "`kind`"),
        (3, "ridge --data t.csv --target price --drop kind --categorical nothing", "`nothing`"),
        (3, "ridge --data none.csv --target y --missing mean", "`b` has no value"),
        (3, "ridge --data many.csv --target y --categorical a", "65536 categories"),
        (
            2,
            "moe --data t.csv --target price --drop kind --categorical colour --missing mean",
            "MixtureOfExperts",
        ),
        (2, "ridge --data t.csv --target price --encoding ordinal", "--categorical"),
        (2, "ridge --data t.csv --target price --missing native", "native"),
    ] {
        let ran = sandbox.run(&[words("train"), words(args), words("-o new.apr")].concat());
        assert!(ran.exit == exit && ran.stderr.contains(part), "{args}\n{}", ran.stderr);
        assert!(!sandbox.path("new.apr").exists(), "{args}");
    }
}

/// Names that are numbers in another order than texts stay names.
#[test]
fn pipelines_keep_the_names_of_classes_that_are_numbers() {
    let sandbox = Sandbox::with_models();
    for names in [[1, 2, 3], [9, 10, 11], [0, 1, 2], [-5, 3, 20]] {
        let rows = (0..30).map(|row| format!("{},{}\n", 5 * (row % 3) + row % 2, names[row % 3]));
        sandbox.write("t.csv", format!("x,k\n{}", rows.collect::<String>()).as_bytes());
        for algorithm in ["svm --standardize", "knn --standardize --classes", "naive-bayes --missing mean"] {
            let args = "--data t.csv --target k -o m.apr --force";
            let report = train(&sandbox, &[words(algorithm), words(args)].concat());
            assert_eq!(
                (&report["model"], &report["metrics"]["train.accuracy"]),
                (&json!("Pipeline"), &json!(1.0))
            );
            let found = lines(&sandbox, &["m.apr", "-i", "t.csv"]);
            let expected: Vec<String> = (0..30).map(|row| names[row % 3].to_string()).collect();
            assert_eq!(found, expected, "{algorithm}");
        }
    }
}

/// What `tests/data/make_mixed.py` wrote.
fn mixed() -> (Sandbox, Value) {
    let sandbox = Sandbox::with_models();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    for name in ["mixed.csv", "mixed.parquet", "asked.csv", "asked.parquet"] {
        std::fs::copy(folder.join(name), sandbox.path(name)).unwrap();
    }
    let expected = std::fs::read_to_string(folder.join("mixed.json")).unwrap();
    (sandbox, serde_json::from_str(&expected).unwrap())
}

#[test]
fn predictions_are_those_of_pipelines_of_scikit_learn() {
    let (sandbox, expected) = mixed();
    for (name, expected) in expected["found"].as_object().unwrap() {
        let (missing, encoding) = name.split_once(' ').unwrap();
        let prepared = format!(
            "--missing {missing} --encoding {encoding} --categorical city,plan --unknown-category ignore"
        );
        for table in ["mixed.csv", "mixed.parquet"] {
            let args = format!("--data {table} -o m.apr --force {prepared}");
            train(&sandbox, &words(&format!("softmax --target kind --drop price {args}")));
            let asked = table.replace("mixed", "asked");
            let (_, found) = sandbox.json(&["predict", "m.apr", "-i", &asked, "--proba"]);
            let found = found["predictions"].as_array().unwrap();
            for (found, expected) in found.iter().zip(expected["probabilities"].as_array().unwrap()) {
                for (place, class) in ["high", "low", "middle"].iter().enumerate() {
                    let found = found["probabilities"][class].as_f64().unwrap();
                    let expected = expected[place].as_f64().unwrap();
                    assert!((found - expected).abs() < 1e-3, "{name} {table}: {found} {expected}");
                }
            }
            train(&sandbox, &words(&format!("ridge --target price --drop kind {args}")));
            let found = lines(&sandbox, &["m.apr", "-i", &asked]);
            assert_eq!(found.len(), 25);
            for (found, expected) in found.iter().zip(expected["values"].as_array().unwrap()) {
                let (found, expected) = (found.parse::<f64>().unwrap(), expected.as_f64().unwrap());
                assert!((found - expected).abs() < 1e-4, "{name} {table}: {found} {expected}");
            }
        }
    }
}

#[cfg(feature = "tables")]
#[test]
fn a_category_that_parquet_has_and_the_model_has_not_is_refused_with_its_row() {
    let (sandbox, _) = mixed();
    let args = "ridge --target price --drop kind --data mixed.parquet --missing mean --categorical city,plan -o m.apr";
    train(&sandbox, &words(args));
    let ran = sandbox.run(&["predict", "m.apr", "-i", "asked.parquet"]);
    assert!(ran.exit == 3 && ran.stderr.contains("row 4, column 3 (city)"), "{}", ran.stderr);
    assert_eq!(ran.stdout.lines().count(), 3, "rows before it are predicted");
}

#[test]
fn missing_targets_make_no_classes_of_numbers() {
    let sandbox = Sandbox::with_models();
    let refused = |table: &str, args: &str, what: &str| {
        sandbox.write("x.csv", table.as_bytes());
        let ran = sandbox.run(&words(&format!("train {args} --data x.csv --target y -o x.apr --force")));
        assert!(ran.exit != 0 && ran.stderr.contains(what), "{args}: {}", ran.stderr);
    };
    for first in ["nan", "NA", "none", "inf"] {
        let table = format!("x,y\n1,{first}\n2,2.5\n3,3.5\n4,4.5\n");
        for algorithm in ["gradient-boosting", "random-forest", "knn --neighbours 1", "mlp --epochs 1"] {
            refused(&table, algorithm, "cli-table-cell");
        }
    }
    refused("x,y\n1,0\n2,1\n3,NA\n4,0\n", "svm", "the value is missing");
    refused("x,y\n1,0\n2,1\n3,NA\n4,0\n", "random-forest --classes", "the value is missing");
    refused("x,y\n1,p\n2,p\n", "mlp --epochs 1", "one class, `p`");
    refused("x,x,y\n1,2,3\n2,3,4\n5,1,1\n", "ridge", "several columns are named `x`");
    // Among words it is one.
    sandbox.write("x.csv", b"x,y\n1,none\n2,mild\n3,severe\n4,none\n");
    let report = train(&sandbox, &words("decision-tree --data x.csv --target y -o x.apr --force"));
    assert_eq!(report["classes"], json!(["mild", "none", "severe"]));
}

#[test]
fn numbers_are_in_the_order_of_their_values() {
    let sandbox = Sandbox::with_models();
    sandbox.write("x.csv", b"c,y\n1.0,0\n2.0,1\n10.0,2\n1.0,0\n2.0,1\n10.0,2\n");
    let ordinal = "--categorical c --encoding ordinal -o x.apr --force";
    let report = train(&sandbox, &words(&format!("linear-regression --data x.csv --target y {ordinal}")));
    assert!(report["metrics"]["train.r2"].as_f64().unwrap() > 0.999_99, "{report:#}");
    sandbox.write("x.csv", b"x,y\n1,10.5\n2,-1.5\n3,1e1\n4,2.5\n");
    let report = train(&sandbox, &words("svm --classes --data x.csv --target y -o x.apr --force"));
    assert_eq!(report["classes"], json!(["-1.5", "2.5", "1e1", "10.5"]));
}

#[test]
fn a_student_knows_the_categories_of_its_teacher() {
    let sandbox = sandbox();
    let teacher =
        "random-forest --trees 20 --data t.csv --target kind --drop price --drop size --categorical colour";
    train(&sandbox, &[words(teacher), words("--unknown-category ignore -o m.apr --force")].concat());
    let ran = sandbox.run(&words("distill m.apr --data t.csv --student tree -o s.apr --force"));
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    let found = lines(&sandbox, &["s.apr", "-i", "t.csv"]);
    assert_eq!(found.len(), 96);
    sandbox.write("one.csv", b"colour\nviolet\n");
    assert_eq!(lines(&sandbox, &["s.apr", "-i", "one.csv"]).len(), 1);
}

#[test]
fn categories_that_would_fill_the_memory_are_refused() {
    let sandbox = Sandbox::empty();
    let rows: String = (0..20_000).map(|row| format!("k{row},{},{}\n", row % 7, row % 2)).collect();
    sandbox.write("many.csv", format!("c,a,y\n{rows}").as_bytes());
    let train = ["train", "logistic-regression", "--data", "many.csv", "--target", "y", "--categorical", "c"];
    let ran = sandbox.run(&[&train[..], &["-o", "x.apr"]].concat());
    assert!(ran.exit == 2 && ran.stderr.contains("--encoding ordinal"), "{ran:?}");
}
