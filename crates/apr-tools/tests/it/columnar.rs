//! Tables that are no comma-separated values: JSON lines, Arrow IPC, Parquet, arrays of NumPy, datasets of alimentar.

use std::fs;
use std::path::Path;

use apr_crypto::SigningKey;
use serde_json::json;

use crate::sandbox::{Sandbox, Tensor, file, line};

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
    for name in ["samples.parquet", "samples.arrows", "samples.npy", "fortran.npy", "samples.npz"] {
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
fn predictions_of_a_model_become_columns() {
    let sandbox = samples();
    sandbox.write("none.csv", b"a,b\n");
    for output in ["p.parquet", "p.arrow", "p.arrows"] {
        for (input, n_rows) in [("samples.csv", 4), ("none.csv", 0)] {
            let args = ["predict", "model.apr", "-i", input, "-o", output, "--force"];
            let (exit, report) = sandbox.json(&args);
            assert_eq!((exit, &report["rows"]), (0, &n_rows.into()), "{output} {input}: {report}");
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
fn arrays_of_one_dimension_are_columns() {
    let sandbox = Sandbox::with_models();
    let column = |name: &str, values: &[f32]| {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Tensor::new(name, st_core::Dtype::F32, &[values.len()], bytes)
    };
    let write = |name: &str, columns: &[Tensor]| {
        sandbox.write("c.safetensors", &file(columns, &Default::default()));
        assert_eq!(sandbox.run(&["convert", "c.safetensors", name, "--force"]).exit, 0);
    };
    let columns = [column("age", &[1.0, 2.0, 3.0, 4.0]), column("size", &[0.0, 1.0, 0.0, 1.0])];
    let prices = column("price", &[2.0, 5.0, 6.0, 9.0]);
    write("t.npz", &[columns[0].clone(), columns[1].clone(), prices]);
    let args = ["train", "linear-regression", "--data", "t.npz", "--target", "price", "-o", "p.apr"];
    let (exit, report) = sandbox.json(&args);
    assert_eq!((exit, &report["features"], &report["target"]), (0, &json!(["age", "size"]), &json!("price")));
    write("rows.npz", &columns);
    let ran = sandbox.run(&["predict", "p.apr", "-i", "rows.npz"]);
    let found: Vec<f32> = ran.stdout.lines().map(|line| line.parse().unwrap()).collect();
    assert!(found.iter().zip([2.0, 5.0, 6.0, 9.0]).all(|(a, b)| (a - b).abs() < 1e-4), "{ran:?}");
    write("t.npz", &[column("age", &[1.0, 2.0]), column("size", &[0.0])]);
    let ran = sandbox.run(&["train", "pca", "--data", "t.npz", "-o", "q.apr"]);
    assert!(ran.exit == 3 && ran.stderr.contains("of one dimension and one length"), "{ran:?}");
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

#[test]
fn arrays_are_tables() {
    let sandbox = samples();
    let expected = sandbox.run(&["predict", "model.apr", "-i", "samples.csv"]).stdout;
    // Names are of columns; arrays have none, and come in the order of the features.
    sandbox.write("rows.csv", b"1,2\n3,4\n-0.5,100\n2.5,0\n");
    let by_number = sandbox.run(&["predict", "model.apr", "-i", "rows.csv"]);
    assert_eq!(by_number.stdout, expected);
    for name in ["samples.npy", "fortran.npy", "samples.npz"] {
        let ran = sandbox.run(&["predict", "model.apr", "-i", name]);
        assert_eq!((ran.exit, &ran.stdout), (0, &expected), "{name} {}", ran.stderr);
        let ran = sandbox.run_with_input(&["predict", "model.apr", "-i", "-"], &sandbox.read(name));
        assert!(ran.exit == 6 && ran.stderr.contains("by its name"), "{name} {}", ran.stderr);
    }
    let ran = sandbox.run(&["predict", "model.apr", "-i", "samples.npz", "--array", "X"]);
    assert_eq!((ran.exit, &ran.stdout), (0, &expected), "{}", ran.stderr);

    let train = |options: &[&str]| {
        sandbox.run(&[&["train", "knn", "--neighbours", "1", "-o", "k.apr", "--force"], options].concat())
    };
    let ran = train(&["--data", "samples.npz", "--target", "y"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    let ran = sandbox.run(&["predict", "k.apr", "-i", "rows.csv"]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (0, "0\n1\n1\n0\n"), "{}", ran.stderr);
    let ran = sandbox.run(&["score", "k.apr", "--data", "samples.npz", "--target", "y"]);
    assert!(ran.exit == 0 && ran.stdout.contains("r2"), "{} {}", ran.stdout, ran.stderr);
    let ran = train(&["--data", "samples.npy", "--target", "2"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);

    for (options, text) in [
        (&["--data", "samples.npz", "--target", "mean"][..], "one value for each of 4 rows"),
        (&["--data", "samples.npz", "--target", "words"], "no column `words`"),
        (&["--data", "samples.npz", "--target", "z"], "no column `z`"),
        (&["--data", "samples.npz", "--target", "y", "--array", "z"], "no array `z`"),
        (&["--data", "samples.npz", "--target", "y", "--array", "mean"], "two dimensions"),
    ] {
        let ran = train(options);
        assert_eq!(ran.exit, 3, "{options:?} {}", ran.stderr);
        assert!(
            ran.stderr.contains("cli-table-columns") && ran.stderr.contains(text),
            "{options:?} {}",
            ran.stderr
        );
    }
    let mut cut = sandbox.read("samples.npy");
    cut.truncate(cut.len() - 1);
    sandbox.write("cut.npy", &cut);
    assert_eq!(sandbox.run(&["predict", "model.apr", "-i", "cut.npy"]).exit, 3);
}

#[test]
fn datasets_are_opened_with_the_keys_they_need() {
    let sandbox = Sandbox::with_models();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../apr-table/tests/data/ald");
    for name in ["none.ald", "streaming-zstd3.ald", "password.ald", "recipient.ald", "signed.ald"] {
        fs::copy(folder.join(name), sandbox.path(name)).unwrap();
    }
    sandbox.write("word.txt", b"correct horse\n");
    sandbox.set_mode("word.txt", 0o600);
    sandbox.write("wrong.txt", b"wrong\n");
    sandbox.set_mode("wrong.txt", 0o600);
    sandbox.write("signer.pub", line(SigningKey::from_seed(&[9; 32]).verifying_key()).as_bytes());
    let train = |name: &str, options: &[&str]| {
        let args = ["train", "linear-regression", "--data", name, "--target", "n", "--drop", "label"];
        let rest = ["--drop", "y", "-o", "d.apr", "--force"];
        sandbox.run(&[&args[..], &rest, options].concat())
    };
    let with_word = ["--password-file", "word.txt"];
    let with_key = ["--signer", "signer.pub"];
    let digests = || sandbox.json(&["tensors", "--digest", "d.apr"]).1["tensors"].clone();
    let ran = train("none.ald", &[]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    let expected = digests();
    for (name, options) in
        [("streaming-zstd3.ald", &[][..]), ("password.ald", &with_word), ("signed.ald", &with_key)]
    {
        let ran = train(name, options);
        assert_eq!((ran.exit, digests()), (0, expected.clone()), "{name} {}", ran.stderr);
    }
    for (name, options, exit, code) in [
        ("password.ald", &[][..], 6, "tb-ald-encrypted"),
        ("password.ald", &["--password-file", "wrong.txt"], 4, "tb-ald-decryption"),
        ("recipient.ald", &with_word, 4, "tb-ald-decryption"),
        ("none.ald", &with_word, 4, "tb-ald-not-encrypted"),
        ("none.ald", &with_key, 4, "tb-ald-not-signed"),
        ("signed.ald", &[], 4, "tb-ald-signed"),
        ("rows.csv", &with_word, 4, "ac-not-encrypted"),
        ("rows.csv", &with_key, 4, "ac-not-signed"),
    ] {
        let ran = train(name, options);
        assert!(
            ran.exit == exit && ran.stderr.contains(code),
            "{name} {options:?} {} {}",
            ran.exit,
            ran.stderr
        );
    }
    // The password of the table is not for the model, which is plain.
    let score = |options: &[&str]| {
        sandbox.run(&[&["score", "d.apr", "--data", "password.ald", "--target", "n"], options].concat())
    };
    let ran = score(&with_word);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    assert_eq!(score(&[]).exit, 6);
    // One that is read once is for both.
    let ran = sandbox.shell(
        "apr encrypt d.apr -o e.apr --password-file word.txt && \
         apr predict e.apr -i password.ald --password-fd 0 < word.txt",
    );
    assert_eq!((ran.exit, ran.stdout.lines().count()), (0, 4), "{}", ran.stderr);
}
