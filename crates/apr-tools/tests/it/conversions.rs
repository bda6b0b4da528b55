//! Models on their way from one format to another and back.

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

fn convert(sandbox: &Sandbox, args: &[&str]) -> Value {
    let (exit, value) = sandbox.json(&[&["convert"], args].concat());
    assert_eq!(exit, 0, "{args:?}\n{value:#}");
    value
}

#[test]
fn a_model_comes_back_the_same_from_every_format() {
    let sandbox = Sandbox::with_models();
    for (between, options, version) in [
        ("a.safetensors", &[][..], None),
        ("b.apr", &["--format", "apr2"], Some(2)),
        ("c.apr", &["--compression", "zstd"], Some(1)),
        ("d.apr", &["--compression", "zstd-max"], Some(1)),
        ("e.apr", &["--compression", "lz4"], Some(1)),
    ] {
        let there = convert(&sandbox, &[&["model.apr", between], options].concat());
        let format = if version.is_some() { "apr" } else { "safetensors" };
        assert_eq!((&there["format"], &there["lost"]), (&json!(format), &json!([])), "{between}");
        assert_eq!(there["version"], json!(version), "{between}");
        let diff = sandbox.run(&["diff", "model.apr", between, "--ignore-metadata"]);
        assert_eq!(diff.exit, 0, "{between}\n{}", diff.stdout);
        let back =
            convert(&sandbox, &[between, "back.apr", "--format", "apr1", "--compression", "none", "--force"]);
        assert_eq!((&back["model"], &back["lost"]), (&json!("LinearRegression"), &json!([])), "{between}");
        assert_eq!(sandbox.read("back.apr"), sandbox.read("model.apr"), "{between}");
    }
}

#[test]
fn trained_models_come_back_the_same() {
    let sandbox = Sandbox::with_models();
    for (algorithm, data, options) in [
        ("ridge", "table.csv", &["--target", "price"][..]),
        ("naive-bayes", "classes.csv", &["--target", "kind"]),
        ("mlp", "classes.csv", &["--target", "kind"]),
        ("moe", "table.csv", &["--target", "price"]),
        ("pca", "rows.csv", &[]),
        ("tfidf", "texts.txt", &[]),
        ("count-vectorizer", "texts.txt", &[]),
        ("ngram", "texts.txt", &[]),
    ] {
        let model = format!("{algorithm}.apr");
        let args = [&["train", algorithm, "--data", data, "-o", &model], options].concat();
        assert_eq!(sandbox.run(&args).exit, 0, "{args:?}");
        let through = format!("{algorithm}.safetensors");
        let there = convert(&sandbox, &[&model, &through]);
        assert_eq!(there["lost"], json!([]), "{algorithm}");
        convert(&sandbox, &[&through, "back.apr", "--force"]);
        assert_eq!(sandbox.read("back.apr"), sandbox.read(&model), "{algorithm}");
    }
}

#[test]
fn tensors_come_back_the_same() {
    let sandbox = Sandbox::with_models();
    convert(&sandbox, &["model.safetensors", "plain.safetensors", "--exclude", "mask"]);
    let there = convert(&sandbox, &["plain.safetensors", "t.apr"]);
    assert_eq!(
        (&there["format"], &there["version"], &there["lost"], &there["tensors"]),
        (&json!("apr"), &json!(2), &json!([]), &json!(9))
    );
    assert_eq!(there["metadata"]["format"], "pt");
    assert_eq!(sandbox.run(&["check", "t.apr"]).exit, 0);
    let diff = sandbox.run(&["diff", "plain.safetensors", "t.apr", "--ignore-metadata"]);
    assert_eq!(diff.exit, 0, "{}", diff.stdout);
    convert(&sandbox, &["t.apr", "u.apr", "--rename", "head.*=top.*", "--set", "author=me"]);
    let (_, listed) = sandbox.json(&["inspect", "u.apr"]);
    assert_eq!(listed["metadata"]["author"], "me");
    convert(&sandbox, &["tensors.apr", "same.apr"]);
    assert_eq!(sandbox.read("same.apr"), sandbox.read("tensors.apr"));
    convert(&sandbox, &["tensors.apr", "some.safetensors", "--exclude", "packed"]);
    convert(&sandbox, &["some.safetensors", "some.apr"]);
    let diff = sandbox.run(&["diff", "tensors.apr", "some.apr"]);
    assert!(
        diff.stdout.contains("2 equal, 0 changed, 0 added, 1 removed; metadata equal"),
        "{}",
        diff.stdout
    );
}

#[test]
fn what_a_format_cannot_hold_is_refused_by_name() {
    let sandbox = Sandbox::with_models();
    for (args, code, tensor) in [
        (&["tensors.apr", "x.safetensors"][..], "cli-not-carried", Some("packed")),
        (&["model.safetensors", "x.apr"], "cli-not-carried", Some("mask")),
        (&["tensors.apr", "x.apr", "--format", "apr1"], "cli-no-prediction", Some("packed")),
        (&["changed.safetensors", "x.apr", "--format", "apr1"], "am-unknown-model", None),
    ] {
        let (exit, value) = sandbox.json(&[&["convert"], args].concat());
        let error = &value["error"];
        assert!(matches!(exit, 2 | 3) && error["code"] == code, "{args:?}: {error:#}");
        assert_eq!(error["tensor"].as_str(), tensor, "{args:?}");
    }
    assert!(!sandbox.path("x.apr").exists() && !sandbox.path("x.safetensors").exists());
}

#[test]
fn an_entry_changed_by_hand_is_noticed() {
    let sandbox = Sandbox::with_models();
    convert(&sandbox, &["model.apr", "a.safetensors"]);
    let (exit, value) = sandbox.json(&["convert", "a.safetensors", "x.apr", "--set", "apr.metadata={"]);
    assert_eq!((exit, &value["error"]["code"]), (2, &json!("cli-not-carried")));
    convert(&sandbox, &["a.safetensors", "x.apr", "--unset", "apr.metadata", "--set", "colour=red"]);
    let (_, value) = sandbox.json(&["inspect", "x.apr"]);
    assert_eq!(
        (&value["metadata"]["custom"]["colour"], &value["metadata"]["model_name"]),
        (&json!("red"), &Value::Null)
    );
}

#[test]
fn layouts_of_older_readers_can_be_written() {
    let sandbox = Sandbox::with_models();
    for layout in ["0.10.0", "0.15.0", "0.72.3"] {
        let file = format!("{layout}.apr");
        assert_eq!(convert(&sandbox, &["model.apr", &file, "--layout", layout])["layout"], layout);
        let (_, value) = sandbox.json(&["inspect", &file, "--verify"]);
        assert_eq!(value["verified"]["layout"], layout);
    }
}

#[test]
fn a_layout_is_refused_if_its_readers_do_not_read_the_model() {
    let sandbox = Sandbox::with_models();
    let train = |algorithm: &str, options: &[&str]| {
        let args = ["train", algorithm, "--data", "table.csv", "-o"];
        let output = format!("{algorithm}.apr");
        assert_eq!(sandbox.run(&[&args[..], &[&output], options].concat()).exit, 0, "{algorithm}");
    };
    train("moe", &["--target", "price"]);
    train("mlp", &["--target", "price"]);
    train("pca", &[]);
    for (input, layout, is_read) in [
        ("moe.apr", "0.10.0", false),
        ("moe.apr", "0.15.0", true),
        ("mlp.apr", "0.10.0", false),
        ("mlp.apr", "0.72.3", false),
        ("pca.apr", "0.15.0", false),
    ] {
        let (exit, value) = sandbox.json(&["convert", input, "o.apr", "--layout", layout]);
        assert_eq!(exit == 0, is_read, "{input} {layout}: {value:#}");
        assert_eq!(sandbox.path("o.apr").exists(), is_read);
        if is_read {
            std::fs::remove_file(sandbox.path("o.apr")).unwrap();
        } else {
            assert_eq!(value["error"]["code"], "cli-not-carried");
        }
    }
    convert(&sandbox, &["mlp.apr", "o.apr"]);
}

#[test]
fn compression_that_makes_a_model_larger_is_said() {
    let sandbox = Sandbox::with_models();
    for (algorithm, compression, is_larger) in [
        ("linear-regression", "none", false),
        ("linear-regression", "lz4", true),
        ("linear-regression", "zstd", true),
        ("mlp", "lz4", false),
        ("mlp", "zstd", false),
    ] {
        let train =
            ["train", algorithm, "--data", "table.csv", "--target", "price", "-o", "m.apr", "--force"];
        let convert = ["convert", "m.apr", "small.apr", "--force"];
        for args in [&train[..], &convert] {
            let ran = sandbox.run(&[args, &["--compression", compression]].concat());
            assert_eq!(ran.exit, 0, "{}", ran.stderr);
            let said = ran.stderr.contains("does not make this model smaller");
            assert_eq!(said, is_larger, "{args:?} {compression}\n{}", ran.stderr);
        }
    }
}

#[test]
fn what_gets_lost_is_said() {
    let sandbox = Sandbox::with_models();
    let args =
        ["train", "logistic-regression", "--data", "classes.csv", "--target", "kind", "-o", "kind.apr"];
    assert_eq!(sandbox.run(&args).exit, 0);
    let vector = |name: &str| format!("{}/../conformance/vectors/apr/{name}", env!("CARGO_MANIFEST_DIR"));
    let (tree, forest) = (vector("a0723_dtree.safetensors"), vector("a0723_rforest_zstd-default_plain.apr"));
    let zstd = vector("a0723_linreg_zstd-default_signed.apr");
    for (args, lost) in [
        (
            &["kind.apr", "old.apr", "--layout", "0.10.0"][..],
            "parts of the model that layout 0.10.0 does not hold",
        ),
        (&["kind.apr", "new.apr", "--layout", "0.72.3"], ""),
        (&[&tree, "tree.apr", "--format", "apr1"], "tensor node_samples as it was"),
        (&[&forest, "forest.apr"], "the training data ("),
        (&[&zstd, "unsigned.apr", "--allow-unverified"], "the signature"),
    ] {
        let value = convert(&sandbox, args);
        let said: Vec<&str> =
            value["lost"].as_array().unwrap().iter().map(|part| part.as_str().unwrap()).collect();
        let fits =
            if lost.is_empty() { said.is_empty() } else { said.len() == 1 && said[0].starts_with(lost) };
        assert!(fits, "{args:?}: {said:?}");
    }
}

#[test]
fn standard_output_and_plans_are_as_for_safetensors() {
    let sandbox = Sandbox::with_models();
    for (input, options) in [
        ("model.apr", &["--format", "apr1"][..]),
        ("tensors.apr", &[]),
        ("model.apr", &["--format", "safetensors"]),
    ] {
        let plan = convert(&sandbox, &[&[input, "out", "--dry-run"], options].concat());
        assert!(plan["written"] == false && !sandbox.path("out").exists());
        let output = sandbox.command(&[&["convert", input, "-"], options].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(plan["bytes"], output.stdout.len(), "{input} {options:?}");
        convert(&sandbox, &[&[input, "out"], options].concat());
        assert_eq!(sandbox.read("out"), output.stdout);
        std::fs::remove_file(sandbox.path("out")).unwrap();
    }
}

#[test]
fn two_arrays_do_not_get_one_name() {
    let sandbox = Sandbox::with_models();
    let ran = sandbox.run(&["convert", "tensors.apr", "a.npz", "--rename", "*=x", "--exclude", "packed"]);
    assert!(ran.exit == 2 && ran.stderr.contains("two tensors would have the same name"), "{ran:?}");
}
