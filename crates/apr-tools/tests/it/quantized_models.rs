//! Models that predict, in fewer bits: they still do.

use core::fmt::Write as _;

use apr_container::v2;
use apr_container::{ModelType, SaveOptions, to_vec};
use apr_models::{
    AnyModel, CovarianceType, GaussianMixture, Matrix, Model as _, NaiveBayes, NaiveBayesOptions, QuantType,
};
use serde_json::Value;

use crate::sandbox::Sandbox;

/// Two groups of rows with six features each.
fn table() -> String {
    let mut table = "a,b,c,d,e,f,kind\n".to_owned();
    for row in 0..60_u32 {
        let group = f64::from(row % 2);
        for feature in 0..6_u32 {
            let noise = f64::from((row * 37 + feature * 101) % 23) / 23.0;
            let _ = write!(table, "{:.3},", group * f64::from(feature) - noise);
        }
        table += if row % 2 == 0 { "near\n" } else { "far\n" };
    }
    table
}

fn json(sandbox: &Sandbox, args: &[&str]) -> Value {
    let (exit, value) = sandbox.json(args);
    assert_eq!(exit, 0, "{args:?}\n{value:#}");
    value
}

fn predictions(sandbox: &Sandbox, model: &str) -> Vec<Value> {
    let report = json(sandbox, &["predict", model, "-i", "rows.csv"]);
    report["predictions"].as_array().unwrap().clone()
}

/// As a list of numbers, whatever a prediction is.
fn numbers(prediction: &Value) -> Vec<f64> {
    match prediction {
        Value::Array(values) => values.iter().map(|value| value.as_f64().unwrap()).collect(),
        other => vec![other.as_f64().unwrap()],
    }
}

fn trained(sandbox: &Sandbox) {
    sandbox.write("table.csv", table().as_bytes());
    let rows: Vec<String> = table().lines().map(|line| line.rsplit_once(',').unwrap().0.to_owned()).collect();
    sandbox.write("rows.csv", rows.join("\n").as_bytes());
    for args in [
        &["mlp", "--target", "kind", "--hidden", "32,32", "--epochs", "60"][..],
        &["naive-bayes", "--target", "kind"],
        &["kmeans", "--drop", "kind", "--clusters", "2"],
        &["pca", "--drop", "kind", "--components", "3"],
        &["linear-regression", "--target", "f", "--drop", "kind"],
    ] {
        let output = format!("{}.apr", args[0]);
        json(sandbox, &[&["train"], args, &["--data", "table.csv", "-o", &output]].concat());
    }
}

#[test]
fn quantized_models_predict() {
    let sandbox = Sandbox::empty();
    trained(&sandbox);
    for (model, tolerance) in [("mlp", 0.0), ("kmeans", 0.0), ("pca", 0.25)] {
        let input = format!("{model}.apr");
        let exact = predictions(&sandbox, &input);
        for (target, output) in [
            ("q4_0", "out.apr"),
            ("q8_0", "out.apr"),
            ("f16", "out.apr"),
            ("bf16", "out.apr"),
            ("q4_0", "out.gguf"),
            ("q8_0", "out.gguf"),
            ("f16", "out.safetensors"),
        ] {
            let report = json(&sandbox, &["quantize", &input, "-t", target, "-o", output, "--force"]);
            assert!(report["converted"].as_u64().unwrap() > 0, "{model} {target}");
            json(&sandbox, &["check", output]);
            let found = predictions(&sandbox, output);
            assert_eq!(found.len(), exact.len());
            for (found, exact) in found.iter().zip(&exact) {
                let is_near = match tolerance {
                    0.0 => found == exact,
                    _ => numbers(found).iter().zip(numbers(exact)).all(|(a, b)| (a - b).abs() < tolerance),
                };
                assert!(is_near, "{model} {target} {output}: {found} {exact}");
            }
            // And as a model of version 1 again, with the same answers.
            let back = ["convert", output, "back.apr", "--format", "apr1", "--force", "--dequantize", "f32"];
            if !target.ends_with("16") {
                json(&sandbox, &back);
                assert_eq!(predictions(&sandbox, "back.apr"), found, "{model} {target} {output}");
            }
        }
    }
    // The last layer has two outputs: its columns become blocks. The first has six inputs.
    let report = json(&sandbox, &["quantize", "mlp.apr", "-t", "q4_0", "-o", "mlp-q4.gguf"]);
    let weights = report["tensors"].as_array().unwrap().iter().filter(|row| row["to"] == "Q4_0");
    let shapes: Vec<(&Value, &Value)> = weights.map(|row| (&row["name"], &row["shape"])).collect();
    let expected =
        [("layer_0_weights", [6, 32]), ("layer_1_weights", [32, 32]), ("layer_2_weights", [2, 32])];
    let expected = expected.map(|(name, shape)| (Value::from(name), Value::from(shape.to_vec())));
    assert!(shapes.into_iter().eq(expected.iter().map(|(name, shape)| (name, shape))), "{report:#}");
    let found = predictions(&sandbox, "mlp-q4.gguf");
    for (options, output) in [
        (&["--dequantize", "f32", "--format", "apr1"][..], "back1.apr"),
        (&["--format", "apr2"], "back2.apr"),
        (&["--dequantize", "f32"], "back.safetensors"),
    ] {
        json(&sandbox, &[&["convert", "mlp-q4.gguf", output], options].concat());
        assert_eq!(predictions(&sandbox, output), found, "{output}");
    }
    json(&sandbox, &["quantize", "mlp-q4.gguf", "-t", "q8_0", "--allow-requantize", "-o", "mlp-q8.gguf"]);
    assert_eq!(predictions(&sandbox, "mlp-q8.gguf").len(), found.len());
    let report = json(&sandbox, &["quantize", "mlp.apr", "-t", "q4_0", "-o", "mlp-q4.apr"]);
    let shares = json(&sandbox, &["inspect", "mlp-q4.apr", "--quantization"]);
    let types = shares["types"].as_array().unwrap();
    let four = types.iter().find(|row| row["dtype"] == "AprQ4" || row["type"] == "AprQ4");
    assert!(four.is_some(), "{shares:#}");
    assert_eq!((&report["input_format"], &report["input_version"]), (&"apr".into(), &1.into()));
    assert_eq!((&report["format"], &report["version"]), (&"apr".into(), &2.into()));
    let ran = sandbox.run(&["quantize", "mlp.apr", "-t", "q4_0", "-o", "mlp-q4.apr", "--force"]);
    assert!(ran.stderr.contains("the new file is an .apr file of version 2"), "{}", ran.stderr);
}

#[test]
fn the_library_makes_the_same_tensors() {
    let sandbox = Sandbox::empty();
    trained(&sandbox);
    for model in ["mlp", "kmeans", "pca"] {
        for (target, quant_type) in [("q4_0", QuantType::Q4_0), ("q8_0", QuantType::Q8_0)] {
            let input = format!("{model}.apr");
            json(&sandbox, &["quantize", &input, "-t", target, "-o", "cli.apr", "--force"]);
            let loaded = AnyModel::load(sandbox.path(&input)).unwrap();
            let quantized = loaded.quantize(quant_type).unwrap();
            let file = sandbox.read("cli.apr");
            let container = v2::Container::from_bytes(&file).unwrap();
            let ours: Vec<_> = quantized.tensors().map(Result::unwrap).collect();
            assert!(container.tensors().unwrap().eq(ours), "{model} {target}");
            assert_eq!(AnyModel::from_bytes(&file).unwrap(), quantized.to_model().unwrap());
            // What the library saves, the program reads.
            quantized.save(sandbox.path("library.apr")).unwrap();
            json(&sandbox, &["check", "library.apr"]);
            assert_eq!(predictions(&sandbox, "library.apr").len(), 60);
        }
    }
}

#[test]
fn what_is_no_weight_stays_exact() {
    let sandbox = Sandbox::empty();
    trained(&sandbox);
    let reasons = |report: &Value| -> Vec<(String, String)> {
        let rows = report["tensors"].as_array().unwrap().iter();
        let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
        rows.map(|row| (text(row, "name"), text(row, "reason"))).collect()
    };
    let covariance = Matrix::from_vec(2, 2, vec![1e-3, 9e-4, 9e-4, 1e-3]).unwrap();
    let means = Matrix::from_vec(3, 2, vec![0.5, 1.0, -3.0, 2.0, 0.1, 0.2]).unwrap();
    let mixture =
        GaussianMixture::from_parts(CovarianceType::Full, means, vec![covariance; 3], vec![0.25; 3]).unwrap();
    sandbox.write("gmm.apr", &to_vec(&mixture, ModelType::Custom, &SaveOptions::default()).unwrap());
    sandbox.write("pairs.csv", b"0.4,1.1\n-2.9,2.0\n0,0\n");
    for output in ["gmm-q.apr", "gmm-q.gguf"] {
        let report = json(&sandbox, &["quantize", "gmm.apr", "-t", "q4_0", "-o", output]);
        let found = reasons(&report);
        assert!(found.contains(&("covariances".into(), "kept-exact".into())), "{found:?}");
        let report = json(&sandbox, &["predict", output, "-i", "pairs.csv"]);
        let exact = json(&sandbox, &["predict", "gmm.apr", "-i", "pairs.csv"]);
        assert_eq!(report["predictions"], exact["predictions"]);
    }
    // As tensors of a safetensors file that says so, it is the same model.
    json(&sandbox, &["convert", "gmm.apr", "gmm.safetensors"]);
    let report = json(&sandbox, &["quantize", "gmm.safetensors", "-t", "q8_0", "-o", "gmm-s.apr"]);
    assert!(reasons(&report).contains(&("covariances".into(), "kept-exact".into())));
    json(&sandbox, &["predict", "gmm-s.apr", "-i", "pairs.csv"]);

    let x = Matrix::from_vec(6, 2, vec![0.0, 0.1, 0.2, 0.0, 0.1, 0.3, 4.0, 5.0, 4.5, 5.5, 4.2, 4.9]).unwrap();
    let bayes = NaiveBayes::fit(&x, &[0, 0, 0, 1, 1, 1], &NaiveBayesOptions::default()).unwrap();
    sandbox.write("nb.apr", &to_vec(&bayes, ModelType::NaiveBayes, &SaveOptions::default()).unwrap());
    // Nothing but exact parts: a copy in another format is not what was asked for.
    for model in ["nb", "naive-bayes", "linear-regression"] {
        for output in ["q.apr", "q.gguf"] {
            let input = format!("{model}.apr");
            let (exit, value) = sandbox.json(&["quantize", &input, "-t", "q4_0", "-o", output]);
            assert_eq!((exit, &value["error"]["code"]), (2, &"cli-nothing-converted".into()), "{value:#}");
            assert!(value["error"]["why"].as_str().unwrap().contains("kept: "), "{value:#}");
            assert!(!sandbox.path(output).exists());
        }
    }
}

#[test]
fn blocks_that_nobody_names_are_no_model() {
    let sandbox = Sandbox::with_models();
    let (exit, error) = sandbox.json(&["predict", "tiny_llama.gguf", "-i", "rows.csv"]);
    assert!(exit == 3 || exit == 2, "{error:#}");
    json(&sandbox, &["quantize", "tiny_llama.gguf", "-t", "q4_0", "-o", "small.gguf"]);
    let (exit, error) = sandbox.json(&["predict", "small.gguf", "-i", "rows.csv"]);
    assert_eq!((exit, &error["error"]["code"]), (2, &"cli-no-prediction".into()), "{error:#}");
}
