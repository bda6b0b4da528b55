//! `apr check --values`, `apr dump`, `apr inspect --histograms`, and `apr compatible`.

use alloc::collections::BTreeMap;

use serde_json::json;
use st_core::Dtype;

use crate::sandbox::{Sandbox, Tensor, file};

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// A file with every kind of remarkable values.
fn with_values() -> Sandbox {
    let sandbox = Sandbox::with_models();
    let tensors = [
        Tensor::counting("sound", &[2, 3], 1.0),
        Tensor::new(
            "broken",
            Dtype::F32,
            &[5],
            floats(&[1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-40]),
        ),
        Tensor::new("ones", Dtype::F32, &[4], floats(&[1.0; 4])),
        Tensor::new("half", Dtype::F16, &[2], vec![0x01, 0x00, 0x00, 0x3c]),
        Tensor::new("empty", Dtype::F32, &[0], vec![]),
    ];
    sandbox.write("values.safetensors", &file(&tensors, &BTreeMap::new()));
    sandbox.write("sound.safetensors", &file(&tensors[..1], &BTreeMap::new()));
    sandbox
}

#[test]
fn values_that_are_not_finite_are_found() {
    let sandbox = with_values();
    let ran = sandbox.run(&["check", "--values", "values.safetensors"]);
    assert_eq!(ran.exit, 1);
    assert!(ran.stdout.starts_with("not finite values.safetensors: "), "{}", ran.stdout);
    let lines: Vec<&str> = ran.stdout.lines().skip(1).map(str::trim).collect();
    assert_eq!(
        lines,
        [
            "! tensor `broken`: of 5 values 1 NaN, 2 infinite, 1 subnormal",
            "! tensor `ones`: all 4 values are 1",
            "! tensor `half`: of 2 values 1 subnormal",
        ]
    );
    let (exit, report) = sandbox.json(&["check", "--values", "values.safetensors", "sound.safetensors"]);
    assert_eq!(exit, 1);
    let oks = [&report["ok"], &report["files"][0]["ok"], &report["files"][1]["ok"]];
    assert_eq!(oks, [&json!(false), &json!(false), &json!(true)]);
    let values = &report["files"][0]["values"];
    assert_eq!((&values["tensors"], &values["unread"]), (&json!(5), &json!(0)));
    let expected = json!({
        "tensor": "broken", "values": 5, "nan": 1, "infinite": 2, "subnormal": 1, "constant": false,
        "min": values["findings"][0]["min"], "max": 1.0
    });
    assert_eq!(values["findings"][0], expected);
    assert_eq!(values["findings"].as_array().unwrap().len(), 3);
    assert_eq!(report["files"][1]["values"]["findings"], json!([]));
    assert_eq!(sandbox.run(&["check", "values.safetensors"]).exit, 0);
    assert_eq!(sandbox.run(&["check", "--values", "sound.safetensors"]).exit, 0);
    assert_eq!(sandbox.run_with_input(&["check", "--values", "-"], b"").exit, 2);
}

#[test]
fn values_of_every_format_are_looked_at() {
    let sandbox = with_values();
    let ran = sandbox.run(&["convert", "values.safetensors", "v.npz"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    for (from, to) in [("values.safetensors", "v.gguf"), ("values.safetensors", "v.apr")] {
        let ran = sandbox.run(&["convert", from, to]);
        assert_eq!(ran.exit, 0, "{}", ran.stderr);
    }
    for name in ["v.npz", "v.gguf", "v.apr"] {
        let (exit, report) = sandbox.json(&["check", "--values", name]);
        assert_eq!(exit, 1, "{name}");
        let findings = report["files"][0]["values"]["findings"].as_array().unwrap();
        assert!(findings.iter().any(|found| found["nan"] == 1 && found["infinite"] == 2), "{name}");
    }
    // Blocks are decoded: rows of zeros are constant.
    let zeros = Tensor::new("zeros", Dtype::F32, &[2, 256], floats(&[0.0; 512]));
    sandbox.write("zeros.safetensors", &file(&[zeros], &BTreeMap::new()));
    let ran = sandbox.run(&["quantize", "zeros.safetensors", "-t", "q4_k", "-o", "zeros.gguf"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    let (_, report) = sandbox.json(&["check", "--values", "zeros.gguf"]);
    let finding = &report["files"][0]["values"]["findings"][0];
    assert_eq!((&finding["values"], &finding["constant"]), (&json!(512), &json!(true)), "{report:#}");
    // A checkpoint, and a model whose payload is decoded.
    assert_eq!(sandbox.run(&["check", "--values", "model.apr"]).exit, 0);
}

#[test]
fn parts_of_tensors_are_dumped() {
    let sandbox = with_values();
    let dump = |args: &[&str]| {
        let ran = sandbox.run(&[&["dump", "values.safetensors"], args].concat());
        assert_eq!(ran.exit, 0, "{}", ran.stderr);
        ran.stdout
    };
    assert_eq!(dump(&["sound"]), "1 2 3\n4 5 6\n");
    assert_eq!(dump(&["sound", "--format", "csv", "--slice", ":, ::2"]), "1,3\n4,6\n");
    assert_eq!(dump(&["sound", "--slice", "-1,0"]), "4\n");
    assert_eq!(dump(&["sound", "--slice", "...,1"]), "2 5\n");
    assert_eq!(dump(&["broken"]), "1 NaN inf -inf 1e-40\n");
    assert_eq!(dump(&["half"]), "5.9604645e-8 1\n");
    assert_eq!(dump(&["empty"]), "");
    let (exit, report) = sandbox.json(&["dump", "values.safetensors", "broken", "--slice", ":3"]);
    assert_eq!(exit, 0);
    assert_eq!(
        (&report["shape"], &report["values"], &report["slice"]),
        (&json!([3]), &json!([1.0, "nan", "inf"]), &json!(":3"))
    );
    assert_eq!(sandbox.run(&["dump", "sound.safetensors"]).stdout, "1 2 3\n4 5 6\n");
    for (name, begin) in [("x.npy", b"\x93NUMPY".as_slice()), ("x.CSV", b"1,2,3"), ("x.txt", b"1 2 3")] {
        assert_eq!(sandbox.run(&["dump", "sound.safetensors", "-o", name]).exit, 0);
        assert!(sandbox.read(name).starts_with(begin), "{name}");
    }
}

#[test]
fn arrays_are_written_for_numpy() {
    let sandbox = with_values();
    let ran = sandbox.run(&[
        "dump",
        "values.safetensors",
        "sound",
        "--slice",
        "1",
        "--format",
        "npy",
        "-o",
        "a.npy",
    ]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    let (_, report) = sandbox.json(&["dump", "a.npy"]);
    assert_eq!((&report["shape"], &report["values"]), (&json!([3]), &json!([4.0, 5.0, 6.0])));
    // Of a type that NumPy lacks, 32-bit floats.
    let bf16 = Tensor::new("w", Dtype::Bf16, &[2], vec![0x80, 0x3f, 0x00, 0xc0]);
    sandbox.write("bf16.safetensors", &file(&[bf16], &BTreeMap::new()));
    let ran = sandbox.run(&["dump", "bf16.safetensors", "--format", "npy", "-o", "b.npy"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    let (_, report) = sandbox.json(&["dump", "b.npy"]);
    assert_eq!((&report["dtype"], &report["values"]), (&json!("F32"), &json!([1.0, -2.0])));
    // What is there already stays.
    let ran = sandbox.run(&["dump", "bf16.safetensors", "-o", "b.npy"]);
    assert_eq!(ran.exit, 2);
}

#[test]
fn what_cannot_be_dumped_is_refused() {
    let sandbox = with_values();
    for (args, code) in [
        (&["dump", "values.safetensors"][..], "cli-usage"),
        (&["dump", "values.safetensors", "sond"], "cli-usage"),
        (&["dump", "values.safetensors", "sound", "--slice", "2"], "cli-usage"),
        (&["dump", "values.safetensors", "sound", "--slice", "0,0,0"], "cli-usage"),
        (&["dump", "values.safetensors", "sound", "--slice", "::-1"], "cli-usage"),
    ] {
        let (exit, report) = sandbox.json(args);
        assert_eq!((exit, &report["error"]["code"]), (2, &json!(code)), "{args:?} {report:#}");
    }
}

#[test]
fn histograms_are_of_finite_values() {
    let sandbox = with_values();
    let (exit, report) = sandbox.json(&["inspect", "values.safetensors", "--histograms"]);
    assert_eq!(exit, 0);
    let row = |name: &str| {
        let rows = report["tensors"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap()
    };
    let sound = &row("sound")["range"];
    assert_eq!((&sound["min"], &sound["max"], &sound["mean"]), (&json!(1.0), &json!(6.0), &json!(3.5)));
    assert_eq!(sound["histogram"], json!([1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1]));
    assert_eq!(row("broken")["values"]["nan"], 1);
    assert!(row("empty").get("range").is_none());
    assert_eq!(row("ones")["range"]["histogram"][0], 4);
}

#[test]
fn models_are_compared_by_what_callers_rely_on() {
    let sandbox = Sandbox::with_models();
    let table = |name: &str, text: &str| sandbox.write(name, text.as_bytes());
    table("a.csv", "x,y,kind\n1,2,red\n2,1,blue\n3,5,red\n4,4,blue\n");
    table("b.csv", "y,x,kind\n2,1,red\n1,2,blue\n5,3,red\n4,4,blue\n");
    table("c.csv", "x,y,kind\n1,2,red\n2,1,blue\n3,5,green\n4,4,blue\n");
    table("d.csv", "x,y,z,kind\n1,2,0,red\n2,1,1,blue\n3,5,2,red\n4,4,3,blue\n");
    for name in ["a", "b", "c", "d"] {
        let (data, out) = (format!("{name}.csv"), format!("{name}.apr"));
        let ran = sandbox.run(&["train", "naive-bayes", "--data", &data, "--target", "kind", "-o", &out]);
        assert_eq!(ran.exit, 0, "{}", ran.stderr);
    }
    let kinds = |args: &[&str], expected_exit: i32| -> Vec<String> {
        let (exit, report) = sandbox.json(&[&["compatible"], args].concat());
        assert_eq!(exit, expected_exit, "{args:?} {report:#}");
        assert_eq!(report["compatible"], expected_exit == 0);
        let reasons = report["reasons"].as_array().unwrap();
        reasons.iter().map(|reason| reason["kind"].as_str().unwrap().to_owned()).collect()
    };
    assert!(kinds(&["a.apr", "a.apr"], 0).is_empty());
    assert_eq!(kinds(&["a.apr", "b.apr"], 1), ["feature-order"]);
    assert_eq!(kinds(&["a.apr", "b.apr", "--by-name"], 0), ["feature-order"]);
    assert_eq!(kinds(&["a.apr", "c.apr"], 1), ["class-added"]);
    assert_eq!(kinds(&["c.apr", "a.apr"], 1), ["class-removed"]);
    assert_eq!(kinds(&["a.apr", "d.apr"], 1), ["feature-added"]);
    assert_eq!(kinds(&["d.apr", "a.apr", "--by-name"], 0), ["feature-removed"]);
    // Rows that both are asked about.
    assert!(kinds(&["a.apr", "a.apr", "--table", "c.csv"], 0).is_empty());
    assert_eq!(kinds(&["a.apr", "d.apr", "--table", "a.csv"], 1), ["feature-added", "table"]);
    assert_eq!(kinds(&["d.apr", "a.apr", "--by-name", "--table", "d.csv"], 0), ["feature-removed"]);
    let ran = sandbox.run(&["compatible", "d.apr", "a.apr", "--table", "a.csv"]);
    assert!(ran.exit == 3 && ran.stderr.contains("OLD predicts"), "{} {}", ran.exit, ran.stderr);
    let ran = sandbox.run(&["compatible", "a.apr", "d.apr", "--by-name", "--table", "-"]);
    assert!(ran.exit == 2 && ran.stderr.contains("read once"), "{} {}", ran.exit, ran.stderr);
    // Files of tensors.
    assert!(kinds(&["model.safetensors", "model.safetensors"], 0).is_empty());
    assert!(kinds(&["model.safetensors", "model.gguf"], 1).contains(&"format".to_owned()));
    let ran = sandbox.run(&["compatible", "a.apr", "missing.apr"]);
    assert_eq!(ran.exit, 5);
}
