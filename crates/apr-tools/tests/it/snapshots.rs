//! What is printed, word for word. `UPDATE_SNAPSHOTS=1 cargo test -p apr-tools` rewrites the files.

use std::env;
use std::fs;
use std::path::Path;

use st_core::Dtype;
use st_structures::{Entry, NamedTuple, Node, Structure, Tensor as StructureTensor};

use crate::sandbox::{Ran, Sandbox};
use crate::scanning::{PAYLOAD, PLAIN, UNKNOWN};

/// Compares a run with `tests/snapshots/NAME.txt`.
fn check(name: &str, args: &[&str], ran: &Ran) {
    let Ran { exit, stdout, stderr } = ran;
    let found = format!("$ apr {}\nexit {exit}\n--- stdout\n{stdout}--- stderr\n{stderr}", args.join(" "));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(name).with_extension("txt");
    if env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(&path, found).unwrap();
        return;
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == kept, "{} has changed:\n{found}\n--- instead of\n{kept}", path.display());
}

fn run(cases: &[(&str, &[&str])]) {
    let sandbox = Sandbox::with_models();
    for (name, args) in cases {
        check(name, args, &sandbox.run(args));
    }
}

#[test]
fn inspect() {
    run(&[
        ("inspect", &["inspect", "model.safetensors"]),
        ("inspect-json", &["inspect", "model.safetensors", "--json"]),
        ("inspect-sharded", &["inspect", "sharded"]),
        ("inspect-quirk", &["inspect", "quirk.safetensors", "--compat"]),
    ]);
}

#[test]
fn scan() {
    let sandbox = Sandbox::empty();
    fs::create_dir(sandbox.path("models")).unwrap();
    sandbox.write("models/evil.pkl", PAYLOAD);
    sandbox.write("models/object.pkl", UNKNOWN);
    sandbox.write("models/plain.pkl", PLAIN);
    sandbox.write("models/cut.pkl", &PLAIN[..8]);
    let cases: [(&str, &[&str]); 4] = [
        ("scan", &["scan", "models", "missing"]),
        ("scan-json", &["scan", "models", "--json"]),
        ("scan-safe", &["scan", "models/plain.pkl"]),
        ("scan-sarif", &["scan", "models/evil.pkl", "--sarif"]),
    ];
    for (name, args) in cases {
        check(name, args, &sandbox.run(args));
    }
}

#[test]
fn jobs() {
    let sandbox = Sandbox::with_models();
    // The digits of a job depend on the times of its inputs.
    let time = std::time::UNIX_EPOCH + core::time::Duration::from_secs(1_000_000_000);
    for name in ["model.safetensors", "broken.safetensors"] {
        fs::File::options().write(true).open(sandbox.path(name)).unwrap().set_modified(time).unwrap();
    }
    let plan = [
        &["plan", "-o", "job.json", "--from", "model.safetensors", "--from", "broken.safetensors"][..],
        &["--to", "out", "--", "convert", "{in}", "{out}.safetensors", "--align", "64"],
    ]
    .concat();
    let plan_json = [&["--json"], &plan[..]].concat();
    let cases: [(&str, &[&str]); 13] = [
        ("job-plan-json", &plan_json),
        ("job-plan", &plan),
        ("job-status", &["status", "job.json"]),
        ("job-status-json", &["status", "job.json", "--json"]),
        ("job-finish-early", &["finish", "job.json"]),
        ("job-run", &["run-task", "job.json", "0"]),
        ("job-run-json", &["run-task", "job.json", "0", "--json"]),
        ("job-run-no-such", &["run-task", "job.json", "1"]),
        ("job-finish", &["finish", "job.json"]),
        ("job-finish-json", &["finish", "job.json", "--json"]),
        ("job-abort-json", &["abort", "job.json", "--json"]),
        ("job-abort", &["abort", "job.json"]),
        ("job-refused", &["batch", "--from", "model.apr", "--to", "out", "--", "train", "{in}"]),
    ];
    for (name, args) in cases {
        check(name, args, &sandbox.run(args));
    }
}

#[test]
fn apr_files() {
    run(&[
        ("apr1-inspect", &["model.apr"]),
        ("apr1-inspect-json", &["inspect", "model.apr", "--verify", "--json"]),
        ("apr1-tensors", &["tensors", "model.apr"]),
        ("apr2-inspect", &["inspect", "tensors.apr", "--verify"]),
        ("apr2-inspect-json", &["inspect", "tensors.apr", "--json"]),
        ("apr-check", &["check", "model.apr", "tensors.apr"]),
        ("apr-check-json", &["check", "model.apr", "tensors.apr", "--json"]),
        ("compatible", &["compatible", "model.apr", "tensors.apr"]),
        ("compatible-json", &["compatible", "model.apr", "model.apr", "--json"]),
        ("apr-convert", &["convert", "model.apr", "out.safetensors"]),
        ("apr-convert-json", &["convert", "model.apr", "out.apr", "--compression", "zstd", "--json"]),
        ("apr-convert-refused", &["convert", "tensors.apr", "out2.safetensors"]),
    ]);
}

#[test]
fn gguf_files() {
    run(&[
        ("gguf-inspect", &["model.gguf"]),
        ("gguf-inspect-json", &["inspect", "model.gguf", "--json"]),
        ("gguf-quantization", &["inspect", "model.gguf", "--quantization"]),
        ("gguf-quantization-json", &["inspect", "model.gguf", "--quantization", "--json"]),
        ("apr2-quantization", &["inspect", "tensors.apr", "--quantization"]),
        ("gguf-tensors", &["tensors", "model.gguf", "--digest"]),
        ("gguf-check", &["check", "model.gguf", "cut.gguf"]),
        ("gguf-check-json", &["check", "model.gguf", "--json"]),
        ("gguf-convert-refused", &["convert", "model.gguf", "out.safetensors"]),
        ("gguf-convert", &["convert", "model.gguf", "out.safetensors", "--dequantize", "f32"]),
        ("gguf-convert-json", &["convert", "model.gguf", "out.gguf", "--select", "blk.*", "--json"]),
        ("gguf-diff", &["diff", "model.gguf", "out.safetensors"]),
        ("gguf-export", &["export", "model.apr", "--format", "gguf", "-o", "out/", "--dry-run"]),
    ]);
}

#[test]
fn quantized_files() {
    run(&[
        ("quantize", &["quantize", "tiny_llama.gguf", "--type", "q4_k_m", "-o", "small.gguf"]),
        ("quantize-dry-run", &["quantize", "tiny_llama.gguf", "-t", "q4_0", "-o", "small.apr", "--dry-run"]),
        (
            "quantize-json",
            &["quantize", "model.safetensors", "-t", "bf16", "-o", "q.gguf", "--select", "head.*", "--json"],
        ),
        ("quantize-refused", &["quantize", "model.safetensors", "-t", "q8_0", "-o", "r.gguf"]),
    ]);
}

#[test]
fn protected_files() {
    run(&[
        ("sold-inspect", &["sold.apr"]),
        ("sold-inspect-json", &["inspect", "sold.apr", "--json"]),
        (
            "sold-inspect-opened",
            &["inspect", "sold.apr", "--trusted-keys", "trusted.txt", "--identity", "buyer.key"],
        ),
        ("sold-check", &["check", "sold.apr", "--signer", "maker.key.pub", "--identity", "buyer.key"]),
        ("sold-check-json", &["check", "sold.apr", "--any-signer", "--json"]),
        ("locked-inspect", &["locked.apr"]),
        ("key-show", &["key", "show", "maker.key"]),
        ("key-show-json", &["key", "show", "buyer.key.pub", "--json"]),
        ("keygen", &["keygen", "sign", "-o", "imported.key", "--from", "ed25519.pem"]),
        (
            "encrypt",
            &["encrypt", "model.apr", "-o", "e.apr", "--recipient", "buyer.key.pub", "--sign", "maker.key"],
        ),
        (
            "encrypt-dry-run",
            &["encrypt", "model.apr", "-o", "e2.apr", "--recipient", "buyer.key.pub", "--dry-run"],
        ),
        ("encrypt-refused", &["encrypt", "model.sealed", "-o", "e3.apr", "--recipient", "buyer.key.pub"]),
        (
            "decrypt-json",
            &["decrypt", "sold.apr", "-o", "d.apr", "--identity", "buyer.key", "--any-signer", "--json"],
        ),
        ("decrypt-refused", &["decrypt", "locked.apr", "-o", "d2.apr", "--identity", "buyer.key"]),
        ("license-show", &["license", "show", "sold.apr", "--trusted-keys", "trusted.txt"]),
        ("license-show-json", &["license", "show", "licensed.apr", "--json"]),
        ("license-check", &["license", "check", "licensed.apr", "--seats", "11", "--at", "3000-01-01"]),
        ("license-set", &["license", "set", "model.apr", "-o", "l.apr", "--licensee", "Example Ltd"]),
    ]);
}

#[test]
fn sealed_files() {
    let open =
        ["open", "model.sealed", "-o", "t.bin", "--identity", "buyer.key", "--signer", "maker.key.pub"];
    run(&[
        ("sealed-inspect", &["model.sealed"]),
        ("sealed-inspect-json", &["inspect", "model.sealed", "--json"]),
        (
            "sealed-inspect-opened",
            &["inspect", "model.sealed", "--trusted-keys", "trusted.txt", "--identity", "buyer.key"],
        ),
        ("sealed-tensors", &["tensors", "model.sealed"]),
        ("sealed-open", &[&open[..], &["--tensor", "head.weight"]].concat()),
        ("sealed-open-no-tensor", &[&open[..], &["--tensor", "head.bias", "--force"]].concat()),
        ("sealed-open-unverified", &["open", "model.sealed", "-o", "o.bin", "--identity", "buyer.key"]),
        (
            "seal-dry-run",
            &["seal", "model.apr", "-o", "s.sealed", "--recipient", "buyer.key.pub", "--dry-run"],
        ),
        ("seal-nothing", &["seal", "model.apr", "-o", "s.sealed"]),
        ("rekey", &["rekey", "model.sealed", "--identity", "buyer.key", "--recipient", "second.key.pub"]),
    ]);
}

#[test]
fn tables() {
    run(&[
        ("predict", &["predict", "model.apr", "--input", "rows.csv"]),
        ("predict-json", &["predict", "model.apr", "--input", "rows.csv", "--json"]),
        ("predict-refused", &["predict", "model.apr", "--input", "classes.csv"]),
        ("embed", &["embed", "model.apr", "-o", "prices", "--crates", "checkout"]),
        (
            "embed-json",
            &[
                "embed",
                "made.apr",
                "--signer",
                "maker.key.pub",
                "-o",
                "signed",
                "--crates",
                "checkout",
                "--dry-run",
                "--json",
            ],
        ),
        ("embed-without-crates", &["embed", "model.apr", "-o", "unbuilt"]),
        ("embed-refused", &["embed", "locked.apr", "-o", "locked"]),
        ("size", &["size"]),
        ("size-of-model", &["size", "made.apr"]),
        ("size-json", &["size", "model.apr", "--json"]),
        ("train", &["train", "ridge", "--data", "table.csv", "--target", "price", "-o", "price.apr"]),
        (
            "train-validated",
            &["train", "ridge", "--data", "table.csv", "--target", "price", "-o", "v.apr", "--folds", "2"],
        ),
        ("score", &["score", "price.apr", "--data", "table.csv"]),
        ("score-json", &["score", "price.apr", "--data", "table.csv", "--json"]),
        ("train-refused", &["train", "ridge", "--data", "classes.csv", "--target", "kind", "-o", "kind.apr"]),
    ]);
}

#[test]
fn tensors() {
    run(&[
        ("tensors", &["tensors", "model.safetensors"]),
        ("tensors-digest-json", &["tensors", "model.safetensors", "--json", "--digest"]),
        ("tensors-sharded-json", &["tensors", "sharded", "--json", "--select", "encoder.*.bias"]),
    ]);
}

#[test]
fn verdicts() {
    run(&[
        ("check", &["check", "model.safetensors", "sharded"]),
        ("check-json", &["check", "model.safetensors", "broken.safetensors", "--json"]),
        ("check-broken", &["check", "broken.safetensors"]),
        ("check-quirk", &["check", "quirk.safetensors"]),
        ("check-foreign", &["check", "table.parquet"]),
        ("diff-equal", &["diff", "model.safetensors", "sharded"]),
        ("diff", &["diff", "model.safetensors", "changed.safetensors"]),
        ("diff-all", &["diff", "model.safetensors", "changed.safetensors", "--all"]),
        ("diff-groups", &["diff", "model.safetensors", "halves.safetensors"]),
        ("diff-json", &["diff", "model.safetensors", "changed.safetensors", "--json"]),
    ]);
}

#[test]
fn checkpoints() {
    let sandbox = Sandbox::empty();
    crate::checkpoints::add_run(&sandbox);
    for (name, args) in [
        ("checkpoints", &["run1"][..]),
        ("checkpoints-json", &["inspect", "run1", "--verify", "--json"]),
        ("checkpoints-step", &["run1/step_30"]),
        ("checkpoints-check", &["check", "run1"]),
        ("checkpoint-list", &["checkpoint", "list", "run1"]),
        ("checkpoint-verify", &["checkpoint", "verify", "run1"]),
        ("checkpoint-resume", &["checkpoint", "resume", "run1"]),
        ("checkpoint-resume-json", &["checkpoint", "resume", "run1", "--json"]),
        ("checkpoint-diff", &["checkpoint", "diff", "run1", "10", "30"]),
        ("checkpoint-diff-json", &["checkpoint", "diff", "run1", "10", "30", "--json"]),
        ("checkpoint-prune-dry-run", &["checkpoint", "prune", "run1", "--keep-last", "1", "--dry-run"]),
        ("checkpoint-prune-json", &["checkpoint", "prune", "run1", "--keep-best", "1:loss:max", "--json"]),
        ("checkpoint-prune", &["checkpoint", "prune", "run1", "--keep-every", "100"]),
    ] {
        check(name, args, &sandbox.run(args));
    }
}

#[test]
fn structures() {
    let sandbox = Sandbox::empty();
    let text = |text: &str| Node::Str(text.to_owned());
    let tensor = |name: &str, len: usize| {
        let tensor = StructureTensor::new(Dtype::F32, &[len / 4], vec![0; len].into()).unwrap();
        Entry::new(text(name), Node::Tensor(tensor))
    };
    let layers = (0..30).map(|idx| Node::Dict(vec![tensor("w", 4 * (idx + 1))])).collect();
    let row = NamedTuple { name: "State".to_owned(), fields: vec![("count".to_owned(), Node::Int(7))] };
    let root = Node::Dict(vec![
        Entry::new(text("layers"), Node::List(layers)),
        Entry::new(text("optimizer"), Node::NamedTuple(row)),
        Entry::new(
            text("hostile \u{1b}[31m"),
            Node::Tuple(vec![text("\u{7}"), Node::None, Node::Bool(true)]),
        ),
    ]);
    let mut structure = Structure::new(root);
    structure.metadata.insert("run".to_owned(), "7".to_owned());
    sandbox.write("state.safetensors", &structure.to_vec().unwrap());
    sandbox.write("broken.safetensors", &crate::sandbox::raw(
        r#"{"__metadata__":{"_safestructures_schema_":"{\"data_type\": \"list\"}","_safestructures_schema_version_":"1.0.0"}}"#,
        &[],
    ));
    for (name, args) in
        [("structure", &["state.safetensors"][..]), ("structure-broken", &["broken.safetensors"])]
    {
        check(name, args, &sandbox.run(args));
    }
}

#[test]
fn a_set_of_shards_that_does_not_fit_together() {
    let sandbox = Sandbox::with_models();
    fs::remove_file(sandbox.path("sharded/model-00002-of-00003.safetensors")).unwrap();
    for (name, args) in [
        ("check-shards", &["check", "sharded"][..]),
        ("check-shards-json", &["check", "sharded", "--json"]),
        ("unshard-refused", &["unshard", "sharded", "-o", "joined.safetensors"]),
    ] {
        check(name, args, &sandbox.run(args));
    }
}

#[test]
fn plans() {
    run(&[
        (
            "convert-dry-run",
            &["convert", "model.safetensors", "out.safetensors", "--align", "64", "--dry-run"],
        ),
        ("convert-json", &["convert", "model.safetensors", "out.safetensors", "--set", "a=b", "--json"]),
        ("convert", &["convert", "model.safetensors", "out2.safetensors"]),
        ("shard-dry-run", &["shard", "model.safetensors", "-o", "out", "--max-size", "200", "--dry-run"]),
        ("shard-json", &["shard", "model.safetensors", "-o", "out", "--max-size", "200", "--json"]),
        ("unshard-dry-run", &["unshard", "sharded", "-o", "joined.safetensors", "--dry-run"]),
        ("demo-dry-run", &["demo", "--dry-run", "--keep", "files"]),
    ]);
}

#[cfg(unix)]
#[test]
fn signatures() {
    run(&[
        ("sign", &["sign", "model.safetensors", "model.gguf", "--key", "publisher.key"]),
        ("sign-inside", &["sign", "model.apr", "--inside", "-o", "signed.apr", "--key", "publisher.key"]),
        ("sign-json", &["sign", "sharded", "--key", "publisher.pem", "--json"]),
        ("verify", &["verify", "published.safetensors", "--key", "publisher.pub"]),
        (
            "verify-folder",
            &["verify", "checkpoint", "--key", "publisher-p256.pub", "--signature", "checkpoint.sig"],
        ),
        ("verify-folder-json", &["verify", "checkpoint", "--key", "publisher-p256.pub", "--json"]),
        ("verify-listed", &["verify", "published.apr", "--trusted-keys", "publishers.txt"]),
        ("verify-any-signer", &["verify", "published.apr", "--any-signer"]),
        ("verify-differs", &["verify", "changed", "--key", "publisher-p256.pub"]),
        ("verify-other-key", &["verify", "published.safetensors", "--key", "other.pub"]),
        ("verify-unsigned", &["verify", "quirk.safetensors", "--key", "publisher.pub"]),
        ("verify-untrusted", &["verify", "published.apr", "--key", "other.pub"]),
    ]);
}

#[test]
fn errors() {
    run(&[
        ("error-missing", &["inspect", "missing.safetensors"]),
        ("error-missing-json", &["inspect", "missing.safetensors", "--json"]),
        ("error-foreign", &["table.parquet"]),
        ("error-folder", &["tensors", "empty"]),
        ("error-usage", &["tensors", "model.safetensors", "--digset"]),
        ("error-usage-json", &["tensrs", "--json"]),
        ("error-exists", &["convert", "model.safetensors", "same.safetensors"]),
        ("error-rename", &["convert", "model.safetensors", "out.safetensors", "--rename", "*.weight=w"]),
        ("error-selection", &["convert", "model.safetensors", "out.safetensors", "--select", "weight"]),
        ("error-size", &["shard", "model.safetensors", "-o", "out", "--max-size", "5XB"]),
    ]);
}

#[test]
fn help() {
    run(&[
        ("help", &["--help"]),
        ("help-inspect", &["inspect", "--help"]),
        ("help-tensors", &["tensors", "--help"]),
        ("help-compatible", &["compatible", "--help"]),
        ("help-bench-formats", &["bench", "formats", "--help"]),
        ("help-dump", &["dump", "--help"]),
        ("help-check", &["check", "--help"]),
        ("help-checkpoint", &["checkpoint", "--help"]),
        ("help-checkpoint-list", &["checkpoint", "list", "--help"]),
        ("help-checkpoint-verify", &["checkpoint", "verify", "--help"]),
        ("help-checkpoint-resume", &["checkpoint", "resume", "--help"]),
        ("help-checkpoint-prune", &["checkpoint", "prune", "--help"]),
        ("help-checkpoint-diff", &["checkpoint", "diff", "--help"]),
        ("help-diff", &["diff", "--help"]),
        ("help-convert", &["convert", "--help"]),
        ("help-export", &["export", "--help"]),
        ("help-shard", &["shard", "--help"]),
        ("help-unshard", &["unshard", "--help"]),
        ("help-train", &["train", "--help"]),
        ("help-train-kmeans", &["train", "kmeans", "--help"]),
        ("help-train-ridge", &["train", "ridge", "--help"]),
        ("help-train-gradient-boosting", &["train", "gradient-boosting", "--help"]),
        ("help-train-random-forest", &["train", "random-forest", "--help"]),
        ("help-predict", &["predict", "--help"]),
        ("help-score", &["score", "--help"]),
        ("help-distill", &["distill", "--help"]),
        ("help-embed", &["embed", "--help"]),
        ("help-size", &["size", "--help"]),
        ("help-serve", &["serve", "--help"]),
        ("help-keygen", &["keygen", "--help"]),
        ("help-key-show", &["key", "show", "--help"]),
        ("help-encrypt", &["encrypt", "--help"]),
        ("help-decrypt", &["decrypt", "--help"]),
        ("help-seal", &["seal", "--help"]),
        ("help-open", &["open", "--help"]),
        ("help-rekey", &["rekey", "--help"]),
        ("help-license", &["license", "--help"]),
        ("help-license-check", &["license", "check", "--help"]),
        ("help-license-set", &["license", "set", "--help"]),
        ("help-sign", &["sign", "--help"]),
        ("help-scan", &["scan", "--help"]),
        ("help-verify", &["verify", "--help"]),
        ("help-demo", &["demo", "--help"]),
        ("help-explain", &["explain", "--help"]),
        ("help-completions", &["completions", "--help"]),
        ("help-man", &["man", "--help"]),
        ("explain", &["explain", "st-offsets"]),
        ("explain-json", &["explain", "sm-checksum-mismatch", "--json"]),
        ("explain-all", &["explain"]),
        ("explain-unknown", &["explain", "st-ofsets"]),
    ]);
}

#[test]
fn demo() {
    let sandbox = Sandbox::empty();
    let args = ["demo", "--keep", "files"];
    let mut ran = sandbox.run(&args);
    ran.stdout = without_times(&ran.stdout.replace(env!("CARGO_BIN_EXE_apr"), "apr"));
    check("demo", &args, &ran);
}

/// Times differ from run to run, and with them the widths of the columns of their table.
fn without_times(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["STEP", ..] => out.push_str(&words.join(" ")),
            [step @ .., number, "us" | "ms" | "s"] if number.parse::<f64>().is_ok() => {
                out.extend([&step.join(" "), " ?"]);
            }
            _ => out.push_str(line),
        }
        out.push('\n');
    }
    out
}
