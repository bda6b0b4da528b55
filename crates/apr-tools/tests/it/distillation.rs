//! `apr distill`: students, what they record, and how they are compared with their teachers.

use std::fs;

use apr_models::{AnyModel, Matrix, OutputKind, Predictions, Samples, SoftTargets, held_out};
use serde_json::{Value, json};

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

fn probabilities(sandbox: &Sandbox, file: &str, samples: &[[f32; 2]]) -> Matrix {
    let model = AnyModel::load(sandbox.path(file)).unwrap();
    let flat = Samples::F32(samples.as_flattened());
    match model.predict(flat, samples.len(), OutputKind::Probabilities).unwrap() {
        Predictions::Probabilities { values, n_columns, .. } => {
            Matrix::from_vec(samples.len(), n_columns, values.iter().map(apr_models::Float::to_f32).collect())
                .unwrap()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn loss_and_divergence_follow_from_the_files() {
    let (sandbox, samples, classes) = with_teacher();
    for (name, options) in
        [("softmax", &[][..]), ("mlp", &["--student", "mlp", "--hidden", "8", "--epochs", "50"])]
    {
        let args =
            ["distill", "teacher.apr", "--data", "sides.csv", "-o", "student.apr", "--force", "--seed", "4"];
        let report = json(&sandbox, &[&args, options].concat());
        assert_eq!(
            (&report["student"], &report["rows"], &report["test_rows"]),
            (&json!(name), &json!(96), &json!(24))
        );

        let out = held_out(samples.len(), Some(&classes), 0.2, 4);
        let part = |wanted: bool| {
            let rows = (0..samples.len()).filter(|&row| out[row] == wanted);
            rows.map(|row| (samples[row], classes[row])).unzip::<_, _, Vec<_>, Vec<_>>()
        };
        let (learned, labels) = part(false);
        let labels: Vec<Option<usize>> = labels.into_iter().map(Some).collect();
        let teacher = probabilities(&sandbox, "teacher.apr", &learned);
        let softened = SoftTargets::soften(&teacher, 3.0).unwrap();
        let soft = SoftTargets { softened: &softened, classes: &labels, temperature: 3.0, alpha: 0.7 };
        let loss = soft.loss(&probabilities(&sandbox, "student.apr", &learned)).unwrap();
        let found = report["final_loss"].as_f64().unwrap();
        assert!((loss - found).abs() < 1e-9, "{loss} {found}");

        let (tested, _) = part(true);
        let (teacher, student) = (
            probabilities(&sandbox, "teacher.apr", &tested),
            probabilities(&sandbox, "student.apr", &tested),
        );
        let terms = teacher.as_slice().iter().zip(student.as_slice()).filter(|(teacher, _)| **teacher > 0.0);
        let sum: f64 = terms.map(|(&p, &q)| f64::from(p) * (f64::from(p) / f64::from(q)).ln()).sum();
        let found = report["metrics"]["student"]["kl"].as_f64().unwrap();
        assert!((sum / tested.len() as f64 - found).abs() < 1e-6, "{sum} {found}");
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
