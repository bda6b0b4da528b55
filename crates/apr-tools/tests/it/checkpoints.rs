//! Folders of training checkpoints, and folders that hold something else than a model.

use alloc::collections::BTreeMap;
use std::fs;

use sha2::{Digest as _, Sha256};
use st_core::{Dtype, TensorView};
use st_mmap::{CheckpointData, Checkpoints, OptimizerData, PartData};

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
fn a_pickle_in_a_folder_without_a_model_is_dangerous_too() {
    let sandbox = Sandbox::empty();
    fs::create_dir(sandbox.path("files")).unwrap();
    sandbox.write("files/weights.pt", PICKLE);
    assert_eq!(sandbox.run(&["check", "files"]).exit, 4);
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
    // Its digest is the one in the manifest.
    let ran = sandbox.run(&["checkpoint", "verify", "run1"]);
    assert!(ran.exit == 4 && ran.stdout.contains("dangerous"), "{} {}", ran.exit, ran.stdout);
    let (exit, value) = sandbox.json(&["checkpoint", "verify", "run1"]);
    assert_eq!((exit, &value["checkpoints"][1]["runs_code"][0]["verdict"]), (4, &"dangerous".into()));
    assert_eq!(sandbox.run(&["checkpoint", "verify", "run1", "--step", "10"]).exit, 0);
    assert_eq!(sandbox.run(&["inspect", "run1", "--verify"]).exit, 4);
}

/// Saves a run `run` with these steps and losses; of even steps also the accuracy.
fn add_losses(sandbox: &Sandbox, losses: &[(u64, f64)]) {
    let weights = [0_u8; 8];
    for &(step, loss) in losses {
        let mut metrics = BTreeMap::from([("val_loss".to_owned(), loss)]);
        if step % 2 == 0 {
            metrics.insert("accuracy".to_owned(), step as f64 / 100.0);
        }
        let value = (step as f32).to_le_bytes();
        let moments = [value, value].concat();
        let data = CheckpointData {
            step,
            model: &[("w", TensorView::new(Dtype::F32, &[2], &moments).unwrap())],
            optimizer: Some(OptimizerData {
                tensors: &[("m", TensorView::new(Dtype::F32, &[2], &weights).unwrap())],
                metadata: None,
                json: "{}",
            }),
            parts: &[PartData { name: "ema", tensors: &[], metadata: None }],
            metrics,
            model_class: "Net",
            optimizer_class: "AdamW",
            framework: "torch",
            ..CheckpointData::default()
        };
        Checkpoints::new(sandbox.path("run")).save(&data).unwrap();
    }
}

/// The steps that are there.
fn steps(sandbox: &Sandbox) -> Vec<u64> {
    Checkpoints::new(sandbox.path("run")).steps().unwrap()
}

#[test]
fn a_run_is_listed_with_charts() {
    let sandbox = Sandbox::empty();
    add_losses(&sandbox, &[(1, 0.9), (2, f64::NAN), (3, 0.5), (4, 0.1)]);
    let listed = sandbox.run(&["checkpoint", "list", "run"]);
    assert_eq!(listed.exit, 0, "{}", listed.stderr);
    for part in [
        "4 checkpoints",
        "step_4",
        "< 1 min",
        "val_loss 0.1",
        "\naccuracy\n",
        "\nval_loss\n",
        "0.9 │",
        "1 of 4 values are not finite",
    ] {
        assert!(listed.stdout.contains(part), "{part}\n{}", listed.stdout);
    }
    let one = sandbox.run(&["checkpoint", "list", "run", "--metric", "val_loss"]).stdout;
    assert!(one.contains("\nval_loss\n") && !one.contains("\naccuracy\n"), "{one}");
    assert!(!sandbox.run(&["checkpoint", "list", "run", "--no-chart"]).stdout.contains('│'));
    let refused = sandbox.run(&["checkpoint", "list", "run", "--metric", "valloss"]);
    assert!(refused.exit == 2 && refused.stderr.contains("did you mean `val_loss`?"), "{}", refused.stderr);
    let (exit, value) = sandbox.json(&["checkpoint", "list", "run"]);
    assert_eq!((exit, &value["schema"]), (0, &"apr.checkpoints/1".into()));
    let row = &value["checkpoints"][1];
    assert_eq!((&row["step"], &row["metrics"]["val_loss"]), (&2.into(), &"nan".into()));
    assert_eq!(
        (&row["framework"], &row["format_version"], &row["parts"][0]),
        (&"torch".into(), &"1.1".into(), &"ema".into())
    );
    assert!(row["modified"].as_u64().unwrap() > 1_700_000_000 && row["verified"].is_null());
    // What is no folder of checkpoints.
    fs::create_dir(sandbox.path("empty")).unwrap();
    let empty = sandbox.run(&["checkpoint", "list", "empty"]);
    assert!(empty.exit == 0 && empty.stdout.contains("0 checkpoints"), "{}{}", empty.stdout, empty.stderr);
    assert_eq!(sandbox.run(&["checkpoint", "list", "nothing"]).exit, 5);
    let inner = sandbox.run(&["checkpoint", "list", "run/step_3"]);
    assert!(inner.exit == 2 && inner.stderr.contains("name the folder above it"), "{}", inner.stderr);
}

#[test]
fn a_thousand_steps_are_listed_without_their_tensors() {
    let sandbox = Sandbox::empty();
    add_losses(&sandbox, &[(1, 0.5)]);
    let model = sandbox.path("run/step_1/model.safetensors");
    for step in 2..=1000 {
        let folder = sandbox.path(&format!("run/step_{step}"));
        fs::create_dir(&folder).unwrap();
        let meta = format!("{{\"step\": {step}, \"metrics\": {{\"val_loss\": {}}}}}", 1.0 / f64::from(step));
        fs::write(folder.join("meta.json"), meta).unwrap();
        // A file that is longer than any disk: a reader would not come back.
        fs::File::create(folder.join("model.safetensors")).unwrap().set_len(1 << 40).unwrap();
    }
    fs::remove_file(model).unwrap();
    let listed = sandbox.run(&["checkpoint", "list", "run"]);
    assert!(listed.exit == 0 && listed.stdout.contains("1,000 checkpoints"), "{}", listed.stderr);
    let positions = |line: &str| line.trim_start().starts_with("1 ") && line.ends_with(" 1000");
    assert!(listed.stdout.lines().any(positions), "{}", listed.stdout);
    let pruned =
        sandbox.run(&["checkpoint", "prune", "run", "--keep-last", "3", "--keep-best", "2:val_loss:max"]);
    assert_eq!((pruned.exit, steps(&sandbox)), (0, vec![1, 2, 998, 999, 1000]), "{}", pruned.stderr);
}

#[test]
fn checkpoints_are_verified_all_or_some() {
    let sandbox = Sandbox::empty();
    add_losses(&sandbox, &[(1, 0.9), (2, 0.5), (3, 0.5)]);
    let all = sandbox.run(&["checkpoint", "verify", "run"]);
    assert!(all.exit == 0 && all.stdout.matches("verified").count() == 3, "{}{}", all.stdout, all.stderr);
    let part = sandbox.path("run/step_2/ema.safetensors");
    fs::write(&part, [fs::read(&part).unwrap(), b" ".to_vec()].concat()).unwrap();
    let all = sandbox.run(&["checkpoint", "verify", "run"]);
    assert!(
        all.exit == 4 && all.stdout.contains("step_2: ") && all.stdout.contains("ema.safetensors"),
        "{}",
        all.stdout
    );
    assert_eq!(sandbox.run(&["checkpoint", "verify", "run", "--step", "1", "--step", "3"]).exit, 0);
    let (exit, value) = sandbox.json(&["checkpoint", "verify", "run", "--step", "2"]);
    assert_eq!((exit, value["checkpoints"].as_array().unwrap().len()), (4, 1));
    assert_eq!(value["checkpoints"][0]["problems"][0]["code"], "sm-checksum-mismatch");
    let absent = sandbox.run(&["checkpoint", "verify", "run", "--step", "77"]);
    assert!(absent.exit == 3 && absent.stderr.contains("the nearest step is 3"), "{}", absent.stderr);
    // Without a manifest only on request.
    fs::remove_file(sandbox.path("run/step_3/manifest.json")).unwrap();
    let refused = sandbox.run(&["checkpoint", "verify", "run", "--step", "3"]);
    assert!(refused.exit == 4 && refused.stdout.contains("sm-missing-manifest"), "{}", refused.stdout);
    let accepted = sandbox.run(&["checkpoint", "verify", "run", "--step", "3", "--allow-missing-manifest"]);
    assert!(accepted.exit == 0 && accepted.stdout.contains("no manifest"), "{}", accepted.stdout);
    sandbox.write("run/step_3/model.safetensors", b"torn");
    assert_eq!(
        sandbox.run(&["checkpoint", "verify", "run", "--step", "3", "--allow-missing-manifest"]).exit,
        3
    );
}

#[test]
fn the_newest_sound_checkpoint_is_named() {
    let sandbox = Sandbox::empty();
    add_losses(&sandbox, &[(9, 0.9), (10, 0.5), (100, 0.1)]);
    let resume = |more: &[&str]| sandbox.run(&[&["checkpoint", "resume", "run"], more].concat());
    assert_eq!((resume(&[]).exit, resume(&[]).stdout.as_str()), (0, "run/step_100\n"));
    sandbox.write("run/step_100/optimizer.json", b"[]");
    fs::remove_file(sandbox.path("run/step_10/manifest.json")).unwrap();
    let ran = resume(&[]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (0, "run/step_9\n"));
    for part in ["skipped step_100", "optimizer.json", "skipped step_10: ", "sm-missing-manifest"] {
        assert!(ran.stderr.contains(part), "{part}\n{}", ran.stderr);
    }
    assert_eq!(resume(&["--allow-missing-manifest"]).stdout, "run/step_10\n");
    let (exit, value) = sandbox.json(&["checkpoint", "resume", "run"]);
    assert_eq!((exit, &value["checkpoint"], &value["step"]), (0, &"run/step_9".into(), &9.into()));
    assert_eq!(value["skipped"][0]["problem"]["code"], "sm-checksum-mismatch");
    sandbox.write("run/step_9/model.safetensors", b"");
    let none = resume(&[]);
    assert!(
        none.exit == 4 && none.stdout.is_empty() && none.stderr.contains("no checkpoint that is sound"),
        "{}",
        none.stderr
    );
    fs::create_dir(sandbox.path("empty")).unwrap();
    let none = sandbox.run(&["checkpoint", "resume", "empty"]);
    assert!(
        none.exit == 1 && none.stdout.is_empty() && none.stderr.contains("has no checkpoints"),
        "{}",
        none.stderr
    );
    let (exit, value) = sandbox.json(&["checkpoint", "resume", "empty"]);
    assert!(exit == 1 && value["checkpoint"].is_null());
}

#[test]
fn a_trainers_checkpoints_are_named_on_request_and_never_removed() {
    let sandbox = Sandbox::empty();
    add_losses(&sandbox, &[(1, 0.5), (2, 0.4)]);
    fs::create_dir(sandbox.path("run/checkpoint-500")).unwrap();
    sandbox.write("run/checkpoint-500/model.safetensors", &tensors());
    assert_eq!(sandbox.run(&["checkpoint", "resume", "run"]).stdout, "run/step_2\n");
    assert_eq!(
        sandbox.run(&["checkpoint", "resume", "run", "--allow-missing-manifest"]).stdout,
        "run/checkpoint-500\n"
    );
    assert_eq!(sandbox.run(&["checkpoint", "verify", "run"]).exit, 4);
    assert_eq!(sandbox.run(&["checkpoint", "verify", "run", "--allow-missing-manifest"]).exit, 0);
    let ran = sandbox.run(&["checkpoint", "prune", "run", "--keep-last", "1"]);
    assert!(ran.exit == 0 && ran.stderr.contains("1 checkpoint of another trainer left"), "{}", ran.stderr);
    assert!(sandbox.path("run/checkpoint-500").is_dir() && steps(&sandbox) == [2]);
}

#[test]
fn rules_decide_what_is_removed() {
    let sandbox = Sandbox::empty();
    add_losses(&sandbox, &[(1, 0.9), (2, 0.2), (3, f64::NAN), (4, 0.3), (5, 0.8), (6, 0.7)]);
    let prune = |more: &[&str]| sandbox.run(&[&["checkpoint", "prune", "run"], more].concat());
    let rules = ["--keep-last", "1", "--keep-best", "2:val_loss", "--keep-every", "5"];
    let before = sandbox.listing();
    let dry = prune(&[&rules[..], &["--dry-run"]].concat());
    assert!(
        dry.exit == 0 && dry.stdout.contains("2 checkpoints would be removed"),
        "{}{}",
        dry.stdout,
        dry.stderr
    );
    assert_eq!(sandbox.listing(), before, "nothing was touched");
    let none = prune(&["--keep-best", "2:valloss:min"]);
    assert!(none.exit == 2 && none.stderr.contains("did you mean `val_loss`?"), "{}", none.stderr);
    for wrong in [
        &[][..],
        &["--keep-last", "0"],
        &["--keep-best", "1:top1"],
        &["--keep-best", "loss"],
        &["--keep-every", "0"],
    ] {
        assert_eq!(prune(wrong).exit, 2, "{wrong:?}");
    }
    assert_eq!(sandbox.listing(), before, "what is refused removes nothing");
    let ran = prune(&rules);
    assert_eq!((ran.exit, steps(&sandbox)), (0, vec![2, 4, 5, 6]), "{}", ran.stderr);
    for part in ["2 checkpoints removed", "step_2  best val_loss", "step_5  every", "step_6  last"] {
        assert!(ran.stdout.contains(part), "{part}\n{}", ran.stdout);
    }
    // A damaged one does not count if it is looked at, and stays.
    sandbox.write("run/step_6/ema.safetensors", b"");
    sandbox.write("run/step_5/meta.json", b"{");
    let (exit, value) = sandbox.json(&["checkpoint", "prune", "run", "--keep-last", "1", "--verify"]);
    assert_eq!((exit, steps(&sandbox)), (0, vec![4, 5, 6]));
    assert_eq!((&value["removed"], &value["kept"][0]["step"]), (&serde_json::json!([2]), &4.into()));
    let unusable: Vec<_> =
        value["unusable"].as_array().unwrap().iter().map(|row| row["step"].clone()).collect();
    assert_eq!(unusable, [5, 6]);
}

/// A process that prunes is killed at any moment: all that are to be kept are there, whole.
#[test]
fn a_killed_prune_leaves_all_that_are_kept() {
    let sandbox = Sandbox::empty();
    let losses: Vec<(u64, f64)> = (1..=40).map(|step| (step, 1.0 / step as f64)).collect();
    add_losses(&sandbox, &losses);
    let template = sandbox.path("template");
    fs::rename(sandbox.path("run"), &template).unwrap();
    let rules = ["--keep-last", "3", "--keep-best", "2:val_loss:max", "--keep-every", "15"];
    let kept = [1, 2, 15, 30, 38, 39, 40];
    let mut interrupted = 0;
    for round in 0_u64..12 {
        copy(&template, &sandbox.path("run"));
        let mut child =
            sandbox.command(&[&["checkpoint", "prune", "run"], &rules[..]].concat()).spawn().unwrap();
        std::thread::sleep(core::time::Duration::from_micros(2_000 + 1_500 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let left = steps(&sandbox);
        interrupted += usize::from(left.len() > kept.len() && left.len() < 40);
        let checkpoints = Checkpoints::new(sandbox.path("run"));
        for step in &left {
            checkpoints.load(*step).unwrap_or_else(|error| panic!("round {round}: {error}"));
        }
        assert!(kept.iter().all(|step| left.contains(step)), "round {round}: {left:?}");
        // The next run finishes.
        assert_eq!(sandbox.run(&[&["checkpoint", "prune", "run"], &rules[..]].concat()).exit, 0);
        assert_eq!(steps(&sandbox), kept);
        assert_eq!(fs::read_dir(sandbox.path("run")).unwrap().count(), kept.len());
        fs::remove_dir_all(sandbox.path("run")).unwrap();
    }
    eprintln!("{interrupted} of 12 were interrupted in the middle");
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[test]
fn two_steps_are_compared() {
    let sandbox = Sandbox::empty();
    add_losses(&sandbox, &[(1, 0.9), (2, 0.5), (3, f64::NAN)]);
    let diff = |more: &[&str]| sandbox.run(&[&["checkpoint", "diff", "run"], more].concat());
    let ran = diff(&["1", "2"]);
    assert_eq!(ran.exit, 1, "{}", ran.stderr);
    for part in [
        "METRIC",
        "accuracy    -  0.02",
        "val_loss  0.9   0.5",
        "changed  w",
        "relative error 1",
        "different: 0 equal, 1 changed",
    ] {
        assert!(ran.stdout.contains(part), "{part}\n{}", ran.stdout);
    }
    let equal = diff(&["1", "2", "--part", "optimizer", "--part", "ema"]);
    assert!(
        equal.exit == 0 && equal.stdout.matches("equal: ").count() == 2,
        "{}{}",
        equal.stdout,
        equal.stderr
    );
    let (exit, value) = sandbox.json(&["checkpoint", "diff", "run", "2", "3"]);
    assert_eq!((exit, &value["equal"], &value["parts"][0]["part"]), (1, &false.into(), &"model".into()));
    assert_eq!(
        (&value["metrics"][1]["b"], &value["parts"][0]["comparison"]["summary"]["changed"]),
        (&"nan".into(), &1.into())
    );
    assert!(diff(&["1", "9"]).stderr.contains("the nearest step is 3"));
    for part in ["other", "../step_2/model"] {
        let refused = diff(&["1", "2", "--part", part]);
        assert!(
            refused.exit == 2 && refused.stderr.contains("parts are model, optimizer, ema"),
            "{}",
            refused.stderr
        );
    }
}

#[test]
fn a_checkpoint_of_a_later_major_version_is_refused_by_name() {
    let sandbox = Sandbox::empty();
    add_losses(&sandbox, &[(1, 0.9), (2, 0.5)]);
    let meta = String::from_utf8(sandbox.read("run/step_2/meta.json")).unwrap();
    sandbox.write("run/step_2/meta.json", meta.replace("1.1", "2.0").as_bytes());
    let listed = sandbox.run(&["checkpoint", "list", "run"]);
    assert!(listed.exit == 0 && listed.stdout.contains("format version 2.0"), "{}", listed.stdout);
    let explained = sandbox.run(&["explain", "sm-version"]);
    assert!(explained.exit == 0 && explained.stdout.contains("newer release"), "{}", explained.stdout);
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
