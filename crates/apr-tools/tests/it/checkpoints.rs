//! Folders of training checkpoints, and folders that hold something else than a model.

use alloc::collections::BTreeMap;
use std::fs;

use sha2::{Digest as _, Sha256};
use st_core::{Dtype, TensorView};
use st_mmap::{CheckpointData, Checkpoints};

use crate::sandbox::{Sandbox, Tensor, file};

/// A pickle of protocol 2 that would call a function.
const PICKLE: &[u8] = b"\x80\x02cos\nsystem\nq\0X\x04\0\0\0trueq\x01\x85q\x02Rq\x03.";

/// A folder `run1` with the steps 10, 20 and 30.
pub(crate) fn add_run(sandbox: &Sandbox) {
    let weights = [0.5_f32, -1.0].map(f32::to_le_bytes);
    let model = [("w", TensorView::new(Dtype::F32, &[2], weights.as_flattened()).unwrap())];
    for step in [10, 20, 30] {
        let metrics = [("loss", 1.0 / step as f64), ("accuracy", step as f64 / 40.0)];
        let data = CheckpointData {
            step,
            model: &model,
            metrics: metrics.map(|(name, value)| (name.to_owned(), value)).into(),
            model_class: "Linear",
            ..CheckpointData::default()
        };
        Checkpoints::new(sandbox.path("run1")).save(&data).unwrap();
    }
}

fn tensors() -> Vec<u8> {
    file(&[Tensor::counting("w", &[2, 2], 0.0)], &BTreeMap::new())
}

#[test]
fn a_folder_of_checkpoints_is_listed_and_checked() {
    let sandbox = Sandbox::empty();
    add_run(&sandbox);
    let listed = sandbox.run(&["run1"]);
    assert_eq!(listed.exit, 0, "{}", listed.stderr);
    for part in ["3 checkpoints", "step_10", "step_30", "loss 0.1", "accuracy 0.75", "not compared"] {
        assert!(listed.stdout.contains(part), "{part}\n{}", listed.stdout);
    }
    assert!(listed.stderr.contains("apr check run1"), "{}", listed.stderr);
    let (exit, value) = sandbox.json(&["inspect", "run1", "--verify"]);
    assert_eq!((exit, &value["schema"]), (0, &"apr.checkpoints/1".into()));
    let last = &value["checkpoints"][2];
    assert_eq!(
        (&last["step"], &last["metrics"]["accuracy"], &last["manifest"]),
        (&30.into(), &0.75.into(), &true.into())
    );
    assert_eq!(
        (&last["layout"], &last["verified"], &last["model_class"]),
        (&"steps".into(), &true.into(), &"Linear".into())
    );
    let (exit, value) = sandbox.json(&["check", "run1"]);
    assert_eq!((exit, value["files"].as_array().unwrap().len()), (0, 3));
    assert_eq!(
        (&value["files"][0]["file"], &value["files"][0]["verified_files"]),
        (&"run1/step_10".into(), &2.into())
    );
}

#[test]
fn one_damaged_checkpoint_of_a_folder_is_refused() {
    let sandbox = Sandbox::empty();
    add_run(&sandbox);
    let mut meta = sandbox.read("run1/step_20/meta.json");
    let at = meta.iter().position(|&byte| byte == b'L').unwrap();
    meta[at] ^= 1;
    sandbox.write("run1/step_20/meta.json", &meta);
    let (exit, value) = sandbox.json(&["check", "run1"]);
    assert_eq!(exit, 4);
    let accepted: Vec<_> = value["files"].as_array().unwrap().iter().map(|file| file["ok"].clone()).collect();
    assert_eq!(accepted, [true, false, true]);
    let shown = sandbox.run(&["inspect", "run1", "--verify"]);
    assert_eq!(shown.exit, 4);
    assert!(
        shown.stdout.contains("refused") && shown.stdout.contains("sm-checksum-mismatch"),
        "{}",
        shown.stdout
    );
    assert_eq!(sandbox.run(&["run1"]).exit, 0, "nothing is compared unless it is asked for");
    // What cannot be read is told, and the others are listed.
    sandbox.write("run1/step_10/meta.json", b"{");
    let shown = sandbox.run(&["run1"]);
    assert!(shown.stdout.contains("sm-meta") && shown.stdout.contains("step_30"), "{}", shown.stdout);
    assert_eq!((shown.exit, sandbox.run(&["inspect", "run1", "--verify"]).exit), (0, 4));
    // The tensors are shown all the same.
    let shown = sandbox.run(&["run1/step_10"]);
    assert_eq!(shown.exit, 0, "{}", shown.stderr);
    assert!(shown.stdout.contains("sm-meta") && shown.stdout.contains("└─ w"), "{}", shown.stdout);
}

#[test]
fn a_checkpoint_says_which_step_it_is() {
    let sandbox = Sandbox::empty();
    add_run(&sandbox);
    let shown = sandbox.run(&["run1/step_30"]);
    for part in ["Checkpoint", "step", "30", "loss 0.033333", "accuracy 0.75", "Linear"] {
        assert!(shown.stdout.contains(part), "{part}\n{}", shown.stdout);
    }
    assert!(!shown.stdout.contains("no metadata"), "{}", shown.stdout);
    let (_, value) = sandbox.json(&["inspect", "run1/step_30"]);
    assert_eq!((&value["checkpoint"]["step"], &value["checkpoint"]["manifest"]), (&30.into(), &true.into()));
    let (_, value) = sandbox.json(&["inspect", "run1/step_30/model.safetensors"]);
    assert!(value.get("checkpoint").is_none());
}

#[test]
fn a_checkpoint_without_manifest_is_accepted_on_request_only() {
    let sandbox = Sandbox::empty();
    add_run(&sandbox);
    fs::remove_file(sandbox.path("run1/step_20/manifest.json")).unwrap();
    let refused = sandbox.run(&["check", "run1/step_20"]);
    assert_eq!(refused.exit, 4);
    assert!(refused.stderr.contains("--allow-missing-manifest"), "{}", refused.stderr);
    for path in ["run1/step_20", "run1"] {
        let accepted = sandbox.run(&["check", path, "--allow-missing-manifest"]);
        assert_eq!(accepted.exit, 0, "{}", accepted.stderr);
        assert!(accepted.stdout.contains("no manifest"), "{}", accepted.stdout);
    }
    // A manifest that is there counts all the same.
    sandbox.write("run1/step_30/meta.json", b"{\"step\": 30}");
    assert_eq!(sandbox.run(&["check", "run1", "--allow-missing-manifest"]).exit, 4);
}

#[test]
fn checkpoints_of_trainers_are_listed() {
    let sandbox = Sandbox::empty();
    for step in [500, 1000] {
        let folder = format!("out/checkpoint-{step}");
        fs::create_dir_all(sandbox.path(&folder)).unwrap();
        sandbox.write(&format!("{folder}/model.safetensors"), &tensors());
        let state = format!(
            r#"{{"global_step": {step}, "log_history": [{{"loss": 2.5, "step": 1}}, {{"loss": 0.5, "step": {step}}}, {{"eval_loss": 0.75}}]}}"#
        );
        sandbox.write(&format!("{folder}/trainer_state.json"), state.as_bytes());
    }
    let listed = sandbox.run(&["out"]);
    assert_eq!(listed.exit, 0, "{}", listed.stderr);
    let rows: Vec<&str> = listed.stdout.lines().filter(|line| line.starts_with("checkpoint-")).collect();
    assert!(rows[0].starts_with("checkpoint-500 ") && rows[1].starts_with("checkpoint-1000 "), "{rows:?}");
    assert!(rows[1].contains("no manifest") && rows[1].contains("eval_loss 0.75, loss 0.5"), "{rows:?}");
    let checked = sandbox.run(&["check", "out"]);
    assert_eq!(checked.exit, 0, "{}", checked.stderr);
    assert!(checked.stdout.contains("has no manifest"), "{}", checked.stdout);
    let shown = sandbox.run(&["out/checkpoint-500"]);
    assert!(shown.stdout.contains("step") && shown.stdout.contains("eval_loss 0.75"), "{}", shown.stdout);
    // A state that cannot be read is not this program's to judge.
    sandbox.write("out/checkpoint-500/trainer_state.json", b"{\"loss\": NaN");
    assert_eq!(sandbox.run(&["out"]).exit, 0);
    // A folder that is a model itself stays one, and other commands say what to name.
    let refused = sandbox.run(&["tensors", "out"]);
    assert_eq!(refused.exit, 3);
    assert!(
        refused.stderr.contains("2 checkpoints") && refused.stderr.contains("out/checkpoint-1000"),
        "{}",
        refused.stderr
    );
    sandbox.write("out/model.safetensors", &tensors());
    assert_eq!(sandbox.json(&["inspect", "out"]).1["schema"], "apr.inspect/2");
}

#[test]
fn files_that_can_run_code_are_named() {
    let sandbox = Sandbox::empty();
    fs::create_dir_all(sandbox.path("repo/.git")).unwrap();
    fs::create_dir_all(sandbox.path("repo/onnx")).unwrap();
    sandbox.write("repo/model.safetensors", &tensors());
    // By content, whatever the name; by name where the content says nothing.
    sandbox.write("repo/pytorch_model.bin", PICKLE);
    sandbox.write("repo/onnx/scheduler.pt", PICKLE);
    sandbox.write("repo/model.joblib", b"\x78\x9cnot a whole zlib stream");
    sandbox.write("repo/vocab.bin", b"0123456789 words, and no pickle");
    sandbox.write("repo/.git/object.pkl", PICKLE);
    let ran = sandbox.run(&["check", "repo"]);
    assert_eq!(ran.exit, 4, "the model is valid, the pickles run commands: {}", ran.stderr);
    for part in [
        "ok repo",
        "repo/pytorch_model.bin: a pickle",
        "scheduler.pt",
        "model.joblib",
        "can run code when loaded",
    ] {
        assert!(ran.stdout.contains(part), "{part}\n{}", ran.stdout);
    }
    assert!(!ran.stdout.contains("vocab.bin") && !ran.stdout.contains(".git"), "{}", ran.stdout);
    let (_, value) = sandbox.json(&["check", "repo"]);
    let named: Vec<&str> =
        value["runs_code"].as_array().unwrap().iter().map(|file| file["file"].as_str().unwrap()).collect();
    assert_eq!(named, ["repo/model.joblib", "repo/onnx/scheduler.pt", "repo/pytorch_model.bin"]);
}

#[test]
fn a_pickle_in_a_checkpoint_is_named() {
    let sandbox = Sandbox::empty();
    add_run(&sandbox);
    sandbox.write("run1/step_20/optimizer.pkl", PICKLE);
    let files = ["meta.json", "model.safetensors", "optimizer.pkl"];
    let digests = files.map(|name| {
        let digest = Sha256::digest(sandbox.read(&format!("run1/step_20/{name}")));
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        (name.to_owned(), hex)
    });
    let manifest = serde_json::to_vec(&BTreeMap::from(digests)).unwrap();
    sandbox.write("run1/step_20/manifest.json", &manifest);
    for path in ["run1/step_20", "run1"] {
        let ran = sandbox.run(&["check", path]);
        assert_eq!(ran.exit, 4, "it runs a command: {}", ran.stderr);
        assert!(
            ran.stdout.contains("optimizer.pkl: a pickle") && ran.stdout.contains("3 files"),
            "{}",
            ran.stdout
        );
        let ran = sandbox.run(&["inspect", path]);
        assert!(ran.stdout.contains("optimizer.pkl: a pickle"), "{}", ran.stdout);
    }
}

#[test]
fn a_folder_without_a_model_says_what_it_has() {
    let sandbox = Sandbox::empty();
    let refusal = |folder: &str| {
        let ran = sandbox.run(&["inspect", folder]);
        assert_eq!(ran.exit, 3, "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains("error[sm-no-model]"), "{}", ran.stderr);
        ran.stderr
    };
    for folder in ["shards", "some-shards", "named", "other", "empty"] {
        fs::create_dir(sandbox.path(folder)).unwrap();
    }
    for idx in 1..=4 {
        sandbox.write(&format!("shards/model-0000{idx}-of-00004.safetensors"), &tensors());
    }
    let told = refusal("shards");
    assert!(told.contains("the folder has 4 shards, and the index is missing"), "{told}");
    assert!(told.contains("model.safetensors.index.json"), "{told}");
    sandbox.write("some-shards/model-00002-of-00004.safetensors", &tensors());
    assert!(refusal("some-shards").contains("1 of 4 shards"), "{}", refusal("some-shards"));
    sandbox.write("named/tiny.gguf", b"GGUF");
    assert!(refusal("named").contains("for example named/tiny.gguf"), "{}", refusal("named"));
    sandbox.write("other/config.json", b"{}");
    assert!(refusal("other").contains("it has config.json"), "{}", refusal("other"));
    assert!(refusal("empty").contains("it is empty"), "{}", refusal("empty"));
}
