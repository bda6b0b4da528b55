//! Tables that are no comma-separated values: JSON lines, Arrow IPC and Parquet.

use std::fs;
use std::path::Path;

use crate::sandbox::Sandbox;

const JSON_LINES: &str = "{\"note\":\"first\",\"b\":2,\"a\":1.0}\n{\"a\":3.0,\"b\":4,\"note\":null}\n\
    {\"b\":1e2,\"a\":-0.5}\n\n{\"note\":\"last\",\"b\":0,\"a\":2.5}\n";

const CSV: &str = "note,b,a\nfirst,2,1\nsecond,4,3\n,100,-0.5\nlast,0,2.5\n";

/// A column of texts where numbers are needed.
const LABELS_AS_NUMBERS: &[&str] = &[
    "train",
    "linear-regression",
    "--data",
    "samples.arrows",
    "--target",
    "b",
    "--drop",
    "day",
    "-o",
    "x.apr",
];

/// The same rows in every format.
fn samples() -> Sandbox {
    let sandbox = Sandbox::with_models();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../apr-table/tests/data");
    for name in ["samples.parquet", "samples.arrows"] {
        fs::copy(folder.join(name), sandbox.path(name)).unwrap();
    }
    sandbox.write("samples.jsonl", JSON_LINES.as_bytes());
    sandbox.write("samples.csv", CSV.as_bytes());
    sandbox
}

#[test]
fn every_format_gives_the_same_predictions() {
    let sandbox = samples();
    let expected = sandbox.run(&["predict", "model.apr", "-i", "samples.csv"]);
    assert_eq!(expected.exit, 0, "{}", expected.stderr);
    for name in ["samples.parquet", "samples.arrows", "samples.jsonl"] {
        let ran = sandbox.run(&["predict", "model.apr", "-i", name]);
        assert_eq!((ran.exit, &ran.stdout), (0, &expected.stdout), "{name} {}", ran.stderr);
        assert!(ran.stderr.contains("not among the features: note"), "{}", ran.stderr);
        let ran = sandbox.run_with_input(&["predict", "model.apr", "-i", "-"], &sandbox.read(name));
        if name == "samples.parquet" {
            assert!(ran.exit == 6 && ran.stderr.contains("Arrow IPC stream"), "{}", ran.stderr);
        } else {
            assert_eq!((ran.exit, &ran.stdout), (0, &expected.stdout), "{name} {}", ran.stderr);
        }
    }
}

#[test]
fn every_format_trains_the_same_model() {
    let sandbox = samples();
    let train = |name: &str, output: &str| {
        let args = ["train", "linear-regression", "--data", name, "--target", "a", "--drop", "note"];
        let is_text = name.ends_with(".csv") || name.ends_with(".jsonl");
        let day: &[&str] = if is_text { &[] } else { &["--drop", "day"] };
        sandbox.run(&[&args, day, &["-o", output]].concat())
    };
    let ran = train("samples.csv", "csv.apr");
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    let digests = |file: &str| sandbox.json(&["tensors", "--digest", file]).1["tensors"].clone();
    for (name, output) in
        [("samples.parquet", "p.apr"), ("samples.arrows", "a.apr"), ("samples.jsonl", "j.apr")]
    {
        let ran = train(name, output);
        assert_eq!(ran.exit, 0, "{name} {}", ran.stderr);
        assert_eq!(digests(output), digests("csv.apr"), "{name}");
    }
}

#[test]
fn what_does_not_fit_is_refused_with_its_place() {
    let sandbox = samples();
    sandbox.write("word.jsonl", b"{\"a\":1,\"b\":2}\n{\"a\":\"x\",\"b\":2}\n");
    for (args, exit, texts) in [
        (
            &["predict", "model.apr", "-i", "word.jsonl"][..],
            3,
            &["cli-table-cell", "line 2, column 1 (a)"][..],
        ),
        (
            &["train", "linear-regression", "--data", "samples.parquet", "--target", "a", "-o", "x.apr"],
            6,
            &["tb-type", "day"],
        ),
        (LABELS_AS_NUMBERS, 3, &["cli-table-cell", "row 1, column 1 (note)"]),
        (&["train", "ngram", "--data", "samples.parquet", "-o", "x.apr"], 6, &["--column"]),
    ] {
        let ran = sandbox.run(args);
        assert_eq!(ran.exit, exit, "{args:?} {}", ran.stderr);
        for text in texts {
            assert!(ran.stderr.contains(text), "{args:?} {}", ran.stderr);
        }
    }
    let (_, error) = sandbox.json(LABELS_AS_NUMBERS);
    assert_eq!((&error["error"]["row"], &error["error"]["column"]), (&1.into(), &1.into()));
}

/// The library that decodes pages asserts that the bits of a page are as many as its header says.
#[test]
fn what_the_library_panics_about_is_one_error() {
    let sandbox = Sandbox::with_models();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../apr-table/tests/data");
    let mut bytes = fs::read(folder.join("zstd.parquet")).unwrap();
    bytes[127] ^= 1;
    sandbox.write("panics.parquet", &bytes);
    let ran = sandbox.run(&["train", "ridge", "--data", "panics.parquet", "--target", "2", "-o", "x.apr"]);
    assert_eq!(ran.exit, 3, "{}", ran.stderr);
    assert!(ran.stderr.starts_with("error[tb-parquet]: invalid Parquet data\n"), "{}", ran.stderr);
}
