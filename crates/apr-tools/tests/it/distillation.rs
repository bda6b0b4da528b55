//! `apr distill`: students, what they record, and how they are compared with their teachers.

use std::fs;

use apr_models::{AnyModel, DecisionPairs, OutputKind, PlattScaling, Predictions, Samples, held_out};
use serde_json::{Value, json};

use crate::protection::reseal;
use crate::sandbox::Sandbox;

fn json(sandbox: &Sandbox, args: &[&str]) -> Value {
    let (exit, value) = sandbox.json(args);
    assert_eq!(exit, 0, "{args:?}\n{value:#}");
    value
}

const CLASSES: [&str; 3] = ["left", "middle", "right"];

/// Three classes along a line that noise blurs, and a teacher.
fn with_teacher() -> (Sandbox, Vec<[f32; 2]>, Vec<usize>) {
    let sandbox = Sandbox::with_models();
    let (mut samples, mut classes, mut table) = (Vec::new(), Vec::new(), "x,y,side\n".to_owned());
    for row in 0..120_u16 {
        let (x, y) = (f32::from(row % 12) / 4.0, f32::from(row * 7 % 11) / 8.0);
        let class = ((x + if row % 17 == 0 { 0.9 } else { 0.1 }) as usize).min(2);
        table.push_str(&format!("{x},{y},{}\n", CLASSES[class]));
        samples.push([x, y]);
        classes.push(class);
    }
    sandbox.write("sides.csv", table.as_bytes());
    json(&sandbox, &["train", "naive-bayes", "--data", "sides.csv", "--target", "side", "-o", "teacher.apr"]);
    (sandbox, samples, classes)
}

fn predicted(sandbox: &Sandbox, file: &str, samples: &[[f32; 2]], output: OutputKind) -> Vec<Vec<f64>> {
    let model = AnyModel::load(sandbox.path(file)).unwrap();
    let flat = Samples::F32(samples.as_flattened());
    match model.predict(flat, samples.len(), output).unwrap() {
        Predictions::Probabilities { values, n_columns, .. } | Predictions::Rows { values, n_columns } => {
            let values: Vec<f64> = values.iter().map(apr_models::Float::to_f64).collect();
            values.chunks_exact(n_columns).map(<[f64]>::to_vec).collect()
        }
        other => panic!("{other:?}"),
    }
}

type Table = Vec<Vec<f64>>;

/// Every row in proportion to what a function makes of its values.
fn in_proportion(rows: &Table, of: impl Fn(f64) -> f64) -> Table {
    let row = |row: &Vec<f64>| {
        let sum: f64 = row.iter().map(|&value| of(value)).sum();
        row.iter().map(|&value| of(value) / sum).collect()
    };
    rows.iter().map(row).collect()
}

fn softened(rows: &Table, temperature: f64) -> Table {
    in_proportion(rows, |value| value.max(1e-7).powf(1.0 / temperature))
}

/// The values of several tables, made one.
fn joined(tables: &[Table], of: impl Fn(&[f64]) -> f64) -> Table {
    let value =
        |row: usize, column: usize| of(&tables.iter().map(|table| table[row][column]).collect::<Vec<_>>());
    (0..tables[0].len()).map(|row| (0..3).map(|column| value(row, column)).collect()).collect()
}

/// What teachers say of samples, and that at the temperature that a student learns at.
type Taught = (Table, Table);

/// Teachers, options, the temperature, and what the teachers say.
type Case<'c> = (&'c [&'c str], &'c [&'c str], f64, &'c dyn Fn(&[[f32; 2]]) -> Taught);

/// Final loss and KL divergence by their definitions, from nothing but the files.
#[test]
fn loss_and_divergence_follow_from_the_files() {
    let (sandbox, samples, classes) = with_teacher();
    let train = |file: &str, args: &[&str]| {
        json(
            &sandbox,
            &[&["train"], args, &["--data", "sides.csv", "--target", "side", "-o", file][..]].concat(),
        );
    };
    train("forest.apr", &["random-forest", "--trees", "20", "--max-depth", "3"]);
    train("network.apr", &["mlp", "--hidden", "6,5", "--epochs", "40"]);
    train("svm.apr", &["svm", "--kernel", "linear"]);
    let out = held_out(samples.len(), Some(&classes), 0.2, 4);
    let part = |wanted: bool| {
        let rows = (0..samples.len()).filter(|&row| out[row] == wanted);
        rows.map(|row| (samples[row], classes[row])).unzip::<_, _, Vec<_>, Vec<_>>()
    };
    let ((learned, labels), (tested, _)) = (part(false), part(true));
    let said =
        |file: &str, samples: &[[f32; 2]]| predicted(&sandbox, file, samples, OutputKind::Probabilities);

    let plain = |file: &'static str, temperature: f64| {
        move |samples: &[[f32; 2]]| -> Taught {
            let said = said(file, samples);
            (said.clone(), softened(&said, temperature))
        }
    };
    // A vote more for each class.
    let voted = |samples: &[[f32; 2]]| -> Table {
        let smooth = |row: Vec<f64>| row.iter().map(|share| (20.0 * share + 1.0) / 23.0).collect();
        said("forest.apr", samples).into_iter().map(smooth).collect()
    };
    let forest =
        |samples: &[[f32; 2]]| -> Taught { (said("forest.apr", samples), softened(&voted(samples), 3.0)) };
    let weighted = |values: &[f64]| (2.0 * values[0] + values[1]) / 3.0;
    let ensemble = |samples: &[[f32; 2]]| -> Taught {
        let (bayes, forest, votes) =
            (said("teacher.apr", samples), said("forest.apr", samples), voted(samples));
        let softened = [softened(&bayes, 3.0), softened(&votes, 3.0)];
        (joined(&[bayes, forest], weighted), joined(&softened, weighted))
    };
    let logits = |samples: &[[f32; 2]]| -> Taught {
        let (bayes, forest, votes) =
            (said("teacher.apr", samples), said("forest.apr", samples), voted(samples));
        let of_logits = |values: &[f64]| {
            weighted(&values.iter().map(|value| value.max(1e-7).ln()).collect::<Vec<_>>()).exp()
        };
        let mean = |tables: &[Table]| in_proportion(&joined(tables, of_logits), |value| value);
        (mean(&[bayes.clone(), forest]), softened(&mean(&[bayes, votes]), 3.0))
    };
    let scaling = {
        let decisions = predicted(&sandbox, "svm.apr", &learned, OutputKind::DecisionFunction).concat();
        PlattScaling::fit(&decisions, &labels, 3, DecisionPairs::OneVsRest).unwrap()
    };
    let scaled = |samples: &[[f32; 2]]| -> Taught {
        let decisions = predicted(&sandbox, "svm.apr", samples, OutputKind::DecisionFunction).concat();
        let mut found = vec![0.0; samples.len() * 3];
        scaling.probabilities_into(&decisions, &mut found).unwrap();
        let said: Table = found.chunks_exact(3).map(<[f64]>::to_vec).collect();
        (said.clone(), softened(&said, 3.0))
    };
    let (bayes, certain, network) =
        (plain("teacher.apr", 3.0), plain("teacher.apr", 1.0), plain("network.apr", 3.0));
    let mlp = &["--student", "mlp", "--hidden", "8", "--epochs", "50"][..];
    let both = &["teacher.apr", "forest.apr"][..];
    let cases: [Case<'_>; 9] = [
        (&["teacher.apr"], &["--epochs", "50"], 3.0, &bayes),
        (&["teacher.apr"], mlp, 3.0, &bayes),
        (&["teacher.apr"], &["--student", "tree", "--max-depth", "3"], 1.0, &certain),
        (&["forest.apr"], mlp, 3.0, &forest),
        (both, &["--weights", "2,1", "--epochs", "20"], 3.0, &ensemble),
        (both, &["--weights", "2,1", "--average", "logits", "--epochs", "20"], 3.0, &logits),
        (&["svm.apr"], &["--epochs", "20"], 3.0, &scaled),
        (&["teacher.apr"], &[mlp, &["--method", "progressive", "--assistants", "2"]].concat(), 3.0, &bayes),
        (
            &["network.apr"],
            &["--student", "mlp", "--hidden", "4,3", "--epochs", "30", "--layer-map", "0:0,1:1"],
            3.0,
            &network,
        ),
    ];
    for (teachers, options, temperature, taught) in cases {
        let args = ["--data", "sides.csv", "--target", "side", "-o", "student.apr", "--force", "--seed", "4"];
        let report = json(&sandbox, &[&["distill"], teachers, &args[..], options].concat());
        assert_eq!((&report["rows"], &report["test_rows"]), (&json!(96), &json!(24)));

        let (_, teacher) = taught(&learned);
        let student = said("student.apr", &learned);
        let cooled = softened(&student, temperature);
        let mut loss = 0.0;
        for (row, &label) in labels.iter().enumerate() {
            let terms = teacher[row].iter().zip(&cooled[row]).filter(|(teacher, _)| **teacher > 0.0);
            let divergence: f64 = terms.map(|(q, p)| q * (q / p).ln()).sum();
            loss += 0.7 * temperature * temperature * divergence - 0.3 * student[row][label].ln();
        }
        loss /= learned.len() as f64;
        let found = report["final_loss"].as_f64().unwrap();
        assert!((loss - found).abs() < 1e-5 * loss.max(1.0), "{teachers:?} {options:?}: {loss} {found}");

        let (teacher, student) = (taught(&tested).0, said("student.apr", &tested));
        let terms =
            teacher.iter().flatten().zip(student.iter().flatten()).filter(|(teacher, _)| **teacher > 0.0);
        let sum: f64 = terms.map(|(p, q)| p * (p / q).ln()).sum();
        let found = report["metrics"]["student"]["kl"].as_f64().unwrap();
        assert!((sum / tested.len() as f64 - found).abs() < 1e-6, "{teachers:?} {options:?}: {sum} {found}");
    }
}

#[test]
fn the_student_names_its_teacher_and_its_data() {
    let (sandbox, ..) = with_teacher();
    let args =
        ["distill", "teacher.apr", "--data", "sides.csv", "-o", "student.apr", "--report", "report.json"];
    let printed = json(&sandbox, &args);
    let written: Value = serde_json::from_slice(&sandbox.read("report.json")).unwrap();
    assert_eq!((&written["schema"], &written["metrics"]), (&json!("apr.distill/1"), &printed["metrics"]));

    let digest = |file: &str| {
        let (_, info) = sandbox.json(&["inspect", file, "--digest"]);
        info["sha256"].as_str().map(str::to_owned)
    };
    let (_, info) = sandbox.json(&["inspect", "student.apr"]);
    let metadata = &info["metadata"];
    let distilled = &metadata["distillation_info"];
    assert_eq!(distilled["method"], "Standard");
    assert_eq!(distilled["teacher"]["model_type"], "NaiveBayes");
    assert_eq!(distilled["teacher"]["hash"], metadata["distillation"]);
    if let Some(digest) = digest("teacher.apr") {
        assert_eq!(distilled["teacher"]["hash"], digest);
    }
    assert_eq!(distilled["params"]["temperature"], 3.0);
    let found = distilled["params"]["final_loss"].as_f64().unwrap();
    assert!((found - printed["final_loss"].as_f64().unwrap()).abs() < 1e-6);
    assert_eq!(metadata["custom"]["apr.classes"], json!(CLASSES));
    assert_eq!(metadata["metrics"]["test.kl"], printed["metrics"]["student"]["kl"]);
    // The same again is the same file.
    let again = ["distill", "teacher.apr", "--data", "sides.csv", "-o", "again.apr"];
    json(&sandbox, &again);
    assert_eq!(sandbox.read("student.apr"), sandbox.read("again.apr"));
    let ran = sandbox.run(&["predict", "student.apr", "-i", "sides.csv"]);
    assert!(ran.exit == 0 && ran.stdout.lines().all(|line| CLASSES.contains(&line)), "{}", ran.stderr);
}

#[test]
fn an_ensemble_is_the_weighted_mean_of_its_teachers() {
    let (sandbox, ..) = with_teacher();
    json(&sandbox, &["train", "mlp", "--data", "sides.csv", "--target", "side", "-o", "other.apr"]);
    let distill = |teachers: &[&str], more: &[&str]| {
        let options = ["--data", "sides.csv", "--epochs", "5", "-o", "student.apr", "--force"];
        json(&sandbox, &[&["distill"], teachers, &options[..], more].concat())
    };
    let one = distill(&["teacher.apr"], &[]);
    let weighted = distill(&["teacher.apr", "other.apr"], &["--weights", "1,0"]);
    assert_eq!(one["metrics"]["student"]["kl"], weighted["metrics"]["student"]["kl"]);
    let mean = distill(&["teacher.apr", "other.apr"], &[]);
    assert_ne!(one["metrics"]["student"]["kl"], mean["metrics"]["student"]["kl"]);
    let (_, info) = sandbox.json(&["inspect", "student.apr"]);
    let distilled = &info["metadata"]["distillation_info"];
    assert_eq!(
        (&distilled["method"], distilled["teacher"]["ensemble_teachers"].as_array().unwrap().len()),
        (&json!("Ensemble"), 2)
    );
}

#[test]
fn numbers_and_rows_without_labels_are_learned() {
    let sandbox = Sandbox::with_models();
    json(&sandbox, &["train", "ridge", "--data", "table.csv", "--target", "price", "-o", "teacher.apr"]);
    let table = String::from_utf8(sandbox.read("table.csv")).unwrap();
    let names: Vec<&str> = table.lines().next().unwrap().split(',').collect();
    let n_features = names.len() - 1;
    let mut more = names.iter().filter(|name| **name != "price").copied().collect::<Vec<_>>().join(",");
    for row in 0..30_usize {
        let cells: Vec<String> =
            (0..n_features).map(|column| (row * (column + 3) % 19).to_string()).collect();
        more.push_str(&format!("\n{}", cells.join(",")));
    }
    sandbox.write("more.csv", more.as_bytes());
    let args = ["distill", "teacher.apr", "--data", "table.csv", "--alpha", "1", "--test-share", "0.3"];
    let report = json(&sandbox, &[&args[..], &["--unlabeled", "more.csv", "-o", "student.apr"]].concat());
    assert_eq!(report["student"], "linear");
    assert_eq!(report["rows"].as_u64().unwrap() + report["test_rows"].as_u64().unwrap(), 36);
    // With alpha 1 it is the teacher: another plane through the same points.
    assert!(report["metrics"]["student"]["rmse_to_teacher"].as_f64().unwrap() < 1e-3, "{report:#}");
}

#[test]
fn what_cannot_be_distilled_is_refused() {
    let (sandbox, ..) = with_teacher();
    json(&sandbox, &["train", "kmeans", "--clusters", "2", "--data", "rows.csv", "-o", "k.apr"]);
    json(&sandbox, &["train", "ridge", "--data", "table.csv", "--target", "price", "-o", "r.apr"]);
    sandbox.write("unknown.csv", b"x,y,side\n1,2,left\n3,4,up\n");
    let data = ["--data", "sides.csv"];
    for (exit, part, args) in [
        (2, "--data", &["distill", "teacher.apr"][..]),
        (2, "clusters", &["distill", "k.apr", "--data", "rows.csv", "--target", "a"]),
        (
            2,
            "several are an ensemble",
            &[&["distill", "teacher.apr", "teacher.apr", "--method", "standard"], &data[..]].concat(),
        ),
        (
            2,
            "has several teachers",
            &[&["distill", "teacher.apr", "--method", "ensemble"], &data[..]].concat(),
        ),
        (
            2,
            "no list of 2 weights",
            &[&["distill", "teacher.apr", "teacher.apr", "--weights", "1"], &data[..]].concat(),
        ),
        (2, "same features", &[&["distill", "teacher.apr", "r.apr"], &data[..]].concat()),
        (2, "learns numbers", &[&["distill", "teacher.apr", "--student", "linear"], &data[..]].concat()),
        (2, "from 0 to 1", &[&["distill", "teacher.apr", "--alpha", "2"], &data[..]].concat()),
        (2, "above 0", &[&["distill", "teacher.apr", "--temperature", "0"], &data[..]].concat()),
        (2, "a teacher is a file", &[&["distill", "-"], &data[..]].concat()),
        (3, "line 3, column 3 (side)", &["distill", "teacher.apr", "--data", "unknown.csv"]),
    ] {
        let ran = sandbox.run(&[args, &["-o", "new.apr"]].concat());
        assert_eq!(ran.exit, exit, "{args:?}\n{}", ran.stderr);
        assert!(ran.stderr.contains(part) && !ran.stderr.contains("internal"), "{args:?}\n{}", ran.stderr);
        assert!(!fs::exists(sandbox.path("new.apr")).unwrap(), "{args:?}");
    }
}

#[test]
fn trees_are_models_as_any_other() {
    let (sandbox, samples, classes) = with_teacher();
    let args = ["distill", "teacher.apr", "--data", "sides.csv", "--student", "tree", "--max-leaves", "4"];
    let report = json(&sandbox, &[&args[..], &["-o", "tree.apr"]].concat());
    assert_eq!((&report["student"], &report["temperature"]), (&json!("tree"), &json!(1.0)));
    let (_, info) = sandbox.json(&["inspect", "tree.apr"]);
    let settings = &info["metadata"]["hyperparameters"];
    assert_eq!((&settings["max_leaves"], &settings["min_samples_leaf"]), (&json!(4), &json!(5)));
    assert_eq!(info["metadata"]["distillation_info"]["params"]["epochs"], json!(0));

    json(&sandbox, &["convert", "tree.apr", "tree.safetensors"]);
    let score = json(&sandbox, &["score", "tree.apr", "--data", "sides.csv"]);
    assert!(score["metrics"]["accuracy"].as_f64().or(score["accuracy"].as_f64()).unwrap() > 0.8, "{score:#}");
    let told = |file: &str| sandbox.run(&["predict", file, "-i", "sides.csv", "--proba"]).stdout;
    assert_eq!(told("tree.apr"), told("tree.safetensors"));
    let mut right = 0;
    for (line, &class) in told("tree.apr").lines().zip(&classes) {
        let (label, shares) = line.split_once(',').unwrap();
        let shares: Vec<f64> = shares.split(',').map(|share| share.parse().unwrap()).collect();
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{line}");
        let best = (0..3).max_by(|&a, &b| shares[a].total_cmp(&shares[b])).unwrap();
        assert_eq!(label, CLASSES[best], "{line}");
        right += usize::from(best == class);
    }
    assert!(right * 5 > samples.len() * 4, "{right}");

    json(&sandbox, &["train", "ridge", "--data", "table.csv", "--target", "price", "-o", "ridge.apr"]);
    let args =
        ["distill", "ridge.apr", "--data", "table.csv", "--student", "tree", "--min-samples-leaf", "1"];
    let report = json(&sandbox, &[&args[..], &["-o", "numbers.apr"]].concat());
    assert!(report["metrics"]["student"]["rmse"].is_number() && report["gains"]["mse"]["low"].is_number());
    assert_eq!(sandbox.run(&["predict", "numbers.apr", "-i", "table.csv"]).exit, 0);
}

#[test]
fn the_report_says_what_is_better_and_what_is_worse() {
    let (sandbox, ..) = with_teacher();
    json(&sandbox, &["train", "mlp", "--data", "sides.csv", "--target", "side", "-o", "other.apr"]);
    let args = ["distill", "teacher.apr", "other.apr", "--data", "sides.csv", "--epochs", "5", "-o", "s.apr"];
    let report = json(&sandbox, &args);
    assert_eq!(report["method"], "ensemble");
    let members = report["members"].as_array().unwrap();
    assert_eq!(
        members.iter().map(|member| &member["teacher"]).collect::<Vec<_>>(),
        ["teacher.apr", "other.apr"]
    );
    assert!(
        members.iter().all(|member| member["weight"] == 0.5 && member["metrics"]["agreement"].is_number())
    );
    let metrics = &report["metrics"];
    let sizes = ["teacher.apr", "other.apr"].map(|file| sandbox.read(file).len());
    assert_eq!(metrics["teacher"]["bytes"], json!(sizes.iter().sum::<usize>()));
    assert_eq!(metrics["student"]["bytes"], json!(sandbox.read("s.apr").len()));
    for metric in ["accuracy", "agreement", "kl", "log_loss"] {
        let gain = |of: &str| report["gains"][metric][of].as_f64().unwrap();
        let of = |model: &str| metrics[model][metric].as_f64().unwrap();
        assert!((gain("difference") - (of("student") - of("labels_only"))).abs() < 1e-9, "{report:#}");
        assert!(gain("low") <= gain("difference") && gain("difference") <= gain("high"), "{report:#}");
    }
    // A teacher of another table is no good one: the note says so.
    let wrong: String = String::from_utf8(sandbox.read("sides.csv")).unwrap();
    let wrong = wrong.replace("left", "LEFT").replace("right", "left").replace("LEFT", "right");
    sandbox.write("wrong.csv", wrong.as_bytes());
    json(&sandbox, &["train", "naive-bayes", "--data", "wrong.csv", "--target", "side", "-o", "wrong.apr"]);
    let ran =
        sandbox.run(&["distill", "wrong.apr", "--data", "sides.csv", "-o", "misled.apr", "--alpha", "1"]);
    assert!(ran.exit == 0 && ran.stderr.contains("distilling lowered the accuracy by"), "{}", ran.stderr);
    assert!(ran.stdout.contains("gain, 95 % interval"), "{}", ran.stdout);
}

#[test]
fn progressive_students_name_their_way() {
    let (sandbox, ..) = with_teacher();
    let common = ["--data", "sides.csv", "--epochs", "10", "--force", "-o", "s.apr"];
    let through = ["distill", "teacher.apr", "--student", "mlp", "--hidden", "6,4", "--assistants", "2"];
    let report = json(&sandbox, &[&through[..], &common].concat());
    let widths: Vec<&Value> = report["assistants"].as_array().unwrap().iter().map(|a| &a["hidden"]).collect();
    assert_eq!(widths, [&json!([24, 16]), &json!([12, 8])]);
    let metadata = || sandbox.json(&["inspect", "s.apr"]).1["metadata"].clone();
    assert_eq!(metadata()["hyperparameters"]["assistants"], json!([[24, 16], [12, 8]]));
    assert_eq!(metadata()["distillation_info"]["method"], "Progressive");
    // A softmax layer follows a network of the hidden layers given.
    let report =
        json(&sandbox, &[&["distill", "teacher.apr", "--method", "progressive"][..], &common].concat());
    assert_eq!((&report["student"], &report["assistants"][0]["hidden"]), (&json!("softmax"), &json!([32])));

    let train =
        ["train", "mlp", "--data", "sides.csv", "--target", "side", "--hidden", "9,8,7", "-o", "net.apr"];
    json(&sandbox, &train);
    let mapped = ["distill", "net.apr", "--student", "mlp", "--hidden", "5,4", "--layer-map", "0:0,1:2"];
    json(&sandbox, &[&mapped[..], &common].concat());
    let info = &metadata()["distillation_info"];
    let pair = |s: u64, t: u64| json!({"student_layer": s, "teacher_layer": t, "weight": 1.0});
    assert_eq!(info["layer_mapping"], json!([pair(0, 0), pair(1, 2)]));
    assert_eq!(info["teacher"]["architecture"], "2-9-8-7-3");
    // Of the projections nothing stays, and the layers began elsewhere.
    let first = sandbox.read("s.apr");
    json(&sandbox, &[&mapped[..6], &common].concat());
    assert!(first.len().abs_diff(sandbox.read("s.apr").len()) < 200);
    let told = |bytes: &[u8]| {
        sandbox.write("told.apr", bytes);
        sandbox.run(&["predict", "told.apr", "-i", "sides.csv", "--proba"]).stdout
    };
    assert_ne!(told(&first), told(&sandbox.read("s.apr")));
    // Numbers too.
    json(
        &sandbox,
        &["train", "mlp", "--data", "table.csv", "--target", "price", "--hidden", "6", "-o", "n.apr"],
    );
    let mapped = [
        "distill",
        "n.apr",
        "--data",
        "table.csv",
        "--student",
        "mlp",
        "--hidden",
        "3",
        "--layer-map",
        "0:0",
    ];
    json(&sandbox, &[&mapped[..], &["--epochs", "10", "--force", "-o", "s.apr"]].concat());
}

#[test]
fn layers_that_cannot_be_matched_are_refused_by_name() {
    let (sandbox, ..) = with_teacher();
    let train =
        ["train", "mlp", "--data", "sides.csv", "--target", "side", "--hidden", "6,5", "-o", "net.apr"];
    json(&sandbox, &train);
    for (part, teacher, options) in [
        ("the student has 1 hidden layer", "net.apr", &["--student", "mlp", "--layer-map", "0:0,1:1"][..]),
        (
            "`1:2` of --layer-map: the teacher has 2 hidden layers",
            "net.apr",
            &["--hidden", "4,4", "--student", "mlp", "--layer-map", "0:0,1:2,2:4"],
        ),
        ("names layer 0 of the student twice", "net.apr", &["--student", "mlp", "--layer-map", "0:0,0:1"]),
        ("names layer 1 of the teacher twice", "net.apr", &["--student", "mlp", "--layer-map", "0:1,1:1"]),
        (
            "layer 0 of the student comes before layer 1",
            "net.apr",
            &["--student", "mlp", "--layer-map", "1:0,0:1"],
        ),
        (
            "layer 0 of the teacher comes before layer 1",
            "net.apr",
            &["--student", "mlp", "--layer-map", "0:1,1:0"],
        ),
        ("is no list of pairs", "net.apr", &["--student", "mlp", "--layer-map", "0-0"]),
        ("is no list of pairs", "net.apr", &["--student", "mlp", "--layer-map", "-1:0"]),
        ("the teacher is a NaiveBayes", "teacher.apr", &["--student", "mlp", "--layer-map", "0:0"]),
        ("a softmax student has none", "net.apr", &["--layer-map", "0:0"]),
        ("a tree student has none", "net.apr", &["--student", "tree", "--layer-map", "0:0"]),
        ("two ways", "net.apr", &["--student", "mlp", "--layer-map", "0:0", "--assistants", "1"]),
        ("--layer-map is for progressive", "net.apr", &["--method", "standard", "--layer-map", "0:0"]),
        ("--assistants is for progressive", "net.apr", &["--method", "standard", "--assistants", "1"]),
        ("1 to 8 are possible", "net.apr", &["--assistants", "0"]),
        ("1 to 8 are possible", "net.apr", &["--assistants", "9"]),
        ("the student is a tree", "net.apr", &["--student", "tree", "--assistants", "1"]),
        ("wider than --hidden says", "net.apr", &["--hidden", "", "--assistants", "1"]),
        (
            "wider than --hidden says",
            "net.apr",
            &["--hidden", "18446744073709551615", "--student", "mlp", "--assistants", "1"],
        ),
        ("a tree learns probabilities as they are", "net.apr", &["--student", "tree", "--temperature", "2"]),
        ("--average without several", "net.apr", &["--average", "logits"]),
        ("max_depth", "net.apr", &["--student", "tree", "--max-depth", "0"]),
    ] {
        // A value that begins with a minus sign is one of its option.
        let options: Vec<String> = match options.iter().position(|option| option.starts_with("-1")) {
            Some(at) => [&options[..at - 1], &[&*format!("{}={}", options[at - 1], options[at])]]
                .concat()
                .iter()
                .map(|o| (*o).to_owned())
                .collect(),
            None => options.iter().map(|option| (*option).to_owned()).collect(),
        };
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let ran = sandbox
            .run(&[&["distill", teacher, "--data", "sides.csv", "-o", "new.apr"][..], &options].concat());
        assert_eq!(ran.exit, 2, "{options:?}\n{}", ran.stderr);
        assert!(ran.stderr.contains(part), "{options:?}\n{}", ran.stderr);
        assert!(!fs::exists(sandbox.path("new.apr")).unwrap(), "{options:?}");
    }
    json(&sandbox, &["train", "ridge", "--data", "table.csv", "--target", "price", "-o", "r.apr"]);
    let args = ["distill", "r.apr", "r.apr", "--data", "table.csv", "--average", "logits", "-o", "new.apr"];
    assert!(sandbox.run(&args).stderr.contains("numbers have no logits"));
    let args =
        ["distill", "net.apr", "net.apr", "--data", "sides.csv", "--method", "progressive", "-o", "new.apr"];
    assert!(sandbox.run(&args).stderr.contains("has one teacher"));
}

#[test]
fn rows_are_made_as_many_as_asked_and_the_same_again() {
    let (sandbox, ..) = with_teacher();
    let args = [
        "distill",
        "teacher.apr",
        "--data",
        "sides.csv",
        "--student",
        "tree",
        "--synthesize",
        "300",
        "--seed",
        "9",
    ];
    let report = json(&sandbox, &[&args[..], &["-o", "a.apr"]].concat());
    assert_eq!((&report["rows"], &report["synthesized"]), (&json!(396), &json!(300)));
    json(&sandbox, &[&args[..], &["-o", "b.apr"]].concat());
    assert_eq!(sandbox.read("a.apr"), sandbox.read("b.apr"));
    let (_, info) = sandbox.json(&["inspect", "a.apr"]);
    assert_eq!(info["metadata"]["hyperparameters"]["synthesized"], 300);
    assert_eq!(info["metadata"]["training"]["samples"], 396);
    let huge = [
        "distill",
        "teacher.apr",
        "--data",
        "sides.csv",
        "--synthesize",
        "9223372036854775807",
        "-o",
        "c.apr",
    ];
    let ran = sandbox.run(&huge);
    assert!(ran.exit == 2 && ran.stderr.contains("too large"), "{}", ran.stderr);
}

/// Provenance is worth what its signature is.
#[test]
fn a_signature_covers_the_provenance() {
    let (sandbox, ..) = with_teacher();
    json(&sandbox, &["distill", "teacher.apr", "--data", "sides.csv", "--epochs", "3", "-o", "student.apr"]);
    json(&sandbox, &["sign", "student.apr", "--inside", "-o", "signed.apr", "--key", "maker.key"]);
    let (exit, info) = sandbox.json(&["inspect", "signed.apr", "--signer", "maker.key.pub"]);
    let hash = info["metadata"]["distillation_info"]["teacher"]["hash"].as_str().unwrap().to_owned();
    assert_eq!(exit, 0);
    let signed = sandbox.read("signed.apr");
    for wanted in
        [hash.as_str(), "Standard", "temperature", "alpha", "final_loss", "data_sha256", "NaiveBayes"]
    {
        let found: Vec<usize> =
            (0..signed.len()).filter(|&at| signed[at..].starts_with(wanted.as_bytes())).collect();
        assert!(!found.is_empty(), "{wanted}");
        for at in found {
            let mut changed = signed.clone();
            changed[at + wanted.len() - 1] ^= 1;
            sandbox.write("changed.apr", &reseal(changed));
            let ran = sandbox.run(&["inspect", "changed.apr", "--signer", "maker.key.pub"]);
            assert_eq!(ran.exit, 4, "{wanted}: {}", ran.stderr);
        }
    }
}

#[test]
fn inputs_that_are_read_twice_and_outputs_of_one_name_are_refused() {
    let (sandbox, ..) = with_teacher();
    let cases: [(&[&str], &str); 3] = [
        (&["--data", "sides.csv", "-o", "s.apr", "--report", "s.apr", "--force"], "same place"),
        (&["--data", "-", "-o", "s.apr"], "read twice"),
        (&["--data", "sides.csv", "--unlabeled", "-", "-o", "s.apr"], "read twice"),
    ];
    for (args, what) in cases {
        let ran = sandbox.run(&[&["distill", "teacher.apr"], args].concat());
        assert!(ran.exit == 2 && ran.stderr.contains(what), "{args:?} {} {}", ran.exit, ran.stderr);
        assert!(!sandbox.path("s.apr").exists());
    }
}
