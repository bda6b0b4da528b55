//! Checkpoint folders.

use alloc::collections::BTreeMap;
use core::num::{NonZeroU64, NonZeroUsize};
use core::time::Duration;
use std::path::Path;
use std::time::Instant;

use sha2::{Digest, Sha256};
use st_core::{Dtype, TensorView};
use st_mmap::{
    Arena, CheckpointData, Checkpoints, ErrorKind, FileRole, Kept, KeptBy, LoadOptions, OptimizerData,
    PartData, Retention, Verification,
};

use crate::scratch::{Scratch, names, noise};

/// SHA-256 of the empty input, from the standard's own examples.
const EMPTY_SHA256: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn keep(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

/// Saves a checkpoint with everything a checkpoint can have.
fn save(checkpoints: &Checkpoints, step: u64) {
    let weights = noise(4 * 30, step);
    let moments = noise(4 * 30, step + 1000);
    let path = checkpoints
        .save(&CheckpointData {
            step,
            model: &[
                ("w", TensorView::new(Dtype::F32, &[5, 6], &weights).unwrap()),
                ("b", TensorView::new(Dtype::U8, &[3], &[1, 2, 3]).unwrap()),
            ],
            optimizer: Some(OptimizerData {
                tensors: &[("w.m", TensorView::new(Dtype::F32, &[30], &moments).unwrap())],
                metadata: None,
                json: r#"{"lr": 0.001, "groups": [["w", "b"]]}"#,
            }),
            metrics: BTreeMap::from([("loss".to_owned(), 0.5), ("diverged".to_owned(), f64::NAN)]),
            model_class: "Linear",
            optimizer_class: "Adam",
            ..CheckpointData::default()
        })
        .unwrap();
    assert_eq!(path, checkpoints.path_of(step));
}

#[test]
fn what_is_saved_is_loaded() {
    let scratch = Scratch::new();
    let checkpoints = Checkpoints::new(scratch.join("deep/er"));
    save(&checkpoints, 100);
    assert_eq!(
        names(&checkpoints.path_of(100)),
        ["manifest.json", "meta.json", "model.safetensors", "optimizer.json", "optimizer.safetensors"]
    );
    assert_eq!(names(checkpoints.folder()), ["step_100"]);

    let checkpoint = checkpoints.load(100).unwrap();
    assert!(checkpoint.is_verified());
    assert_eq!((checkpoint.step(), checkpoint.path()), (100, checkpoints.path_of(100).as_path()));
    let meta = checkpoint.meta();
    assert_eq!(
        (meta.step(), meta.model_class(), meta.optimizer_class()),
        (100, Some("Linear"), Some("Adam"))
    );
    assert_eq!(meta.metrics()["loss"], 0.5);
    assert!(meta.metrics()["diverged"].is_nan());

    let weights = noise(4 * 30, 100);
    let mut arena = Arena::new();
    assert_eq!(checkpoint.load_model(&mut arena).unwrap().tensor("w").unwrap().data(), weights);
    assert_eq!(checkpoint.model().map().unwrap().tensor("w").unwrap().data(), weights);
    let moments = checkpoint.load_optimizer(&mut arena).unwrap().unwrap();
    assert_eq!(moments.tensor("w.m").unwrap().data(), noise(4 * 30, 1100));
    assert_eq!(checkpoint.optimizer().unwrap().header().len(), 1);
    assert_eq!(checkpoint.optimizer_json(), Some(r#"{"lr": 0.001, "groups": [["w", "b"]]}"#));
    let roles: Vec<_> = checkpoint.files().iter().map(|file| (file.name.as_str(), file.role)).collect();
    assert_eq!(
        roles,
        [
            ("meta.json", FileRole::Meta),
            ("model.safetensors", FileRole::Model),
            ("optimizer.json", FileRole::OptimizerState),
            ("optimizer.safetensors", FileRole::OptimizerTensors),
        ]
    );
    assert!(
        checkpoint.files().iter().all(|file| file.sha256.as_ref().is_some_and(|sha256| sha256.len() == 64))
    );

    // Same data, same bytes.
    let again = Checkpoints::new(scratch.join("again"));
    save(&again, 100);
    for name in names(&again.path_of(100)) {
        let (a, b) = (checkpoints.path_of(100).join(&name), again.path_of(100).join(&name));
        assert_eq!(std::fs::read(a).unwrap(), std::fs::read(b).unwrap(), "{name}");
    }
}

#[test]
fn a_checkpoint_may_be_without_optimizer_and_metrics() {
    let scratch = Scratch::new();
    let checkpoints = Checkpoints::new(scratch.path());
    checkpoints.save(&CheckpointData::default()).unwrap();
    let checkpoint = checkpoints.load(0).unwrap();
    assert!(checkpoint.model().header().is_empty());
    assert!(checkpoint.optimizer().is_none() && checkpoint.optimizer_json().is_none());
    assert!(checkpoint.load_optimizer(&mut Arena::new()).unwrap().is_none());
    assert_eq!(checkpoint.meta().metrics().len(), 0);
}

#[test]
fn a_step_is_never_overwritten_and_a_failed_save_leaves_nothing() {
    let scratch = Scratch::new();
    let checkpoints = Checkpoints::new(scratch.path());
    save(&checkpoints, 1);
    let error = checkpoints.save(&CheckpointData { step: 1, ..CheckpointData::default() }).unwrap_err();
    assert_eq!((error.code(), error.path()), ("df-exists", Some(checkpoints.path_of(1).as_path())));
    assert_eq!(checkpoints.load(1).unwrap().model().header().len(), 2);

    let not_json = OptimizerData { tensors: &[], metadata: None, json: "{" };
    let data = CheckpointData { step: 2, optimizer: Some(not_json), ..CheckpointData::default() };
    assert_eq!(checkpoints.save(&data).unwrap_err().code(), "sm-json");
    let view = TensorView::new(Dtype::U8, &[0], &[]).unwrap();
    let data = CheckpointData { step: 2, model: &[("a", view), ("a", view)], ..CheckpointData::default() };
    assert_eq!(checkpoints.save(&data).unwrap_err().code(), "st-duplicate-tensor");
    let long = "n".repeat((1 << 16) + 1);
    let data = CheckpointData { step: 2, model: &[(&long, view)], ..CheckpointData::default() };
    assert_eq!(checkpoints.save(&data).unwrap_err().code(), "st-limit", "it could not be loaded");
    let data = CheckpointData { step: 2, model: &[(&long[1..], view)], ..CheckpointData::default() };
    checkpoints.load(checkpoints.save(&data).map(|_| 2).unwrap()).unwrap();
    std::fs::remove_dir_all(checkpoints.path_of(2)).unwrap();
    assert_eq!(names(scratch.path()), ["step_1"]);
}

#[test]
fn damage_in_every_file_is_found() {
    let scratch = Scratch::new();
    let checkpoints = Checkpoints::new(scratch.path());
    save(&checkpoints, 5);
    let folder = checkpoints.path_of(5);
    for name in names(&folder) {
        let path = folder.join(&name);
        let good = std::fs::read(&path).unwrap();
        // Places in the header length, the header, the data; for each one flipped bit.
        for at in [0, 7, 8, 20, good.len() / 2, good.len() - 1] {
            let mut bad = good.clone();
            bad[at] ^= 1;
            std::fs::write(&path, bad).unwrap();
            let error = checkpoints.load(5).unwrap_err();
            if name == "manifest.json" {
                let codes = ["sm-manifest", "sm-checksum-mismatch", "sm-missing-file", "sm-unlisted-file"];
                assert!(codes.contains(&error.code()), "{at} {error}");
            } else {
                assert!(
                    matches!(error.kind(), ErrorKind::ChecksumMismatch { file } if *file == name),
                    "{at} {error}"
                );
                assert!(error.to_string().contains(&format!("checksum mismatch for {name}")));
                assert_eq!(error.path(), Some(path.as_path()));
            }
        }
        for len in [0, good.len() - 1] {
            std::fs::write(&path, &good[..len]).unwrap();
            let code = checkpoints.load(5).unwrap_err().code();
            assert_eq!(
                code,
                if name == "manifest.json" { "sm-manifest" } else { "sm-checksum-mismatch" },
                "{name} {len}"
            );
        }
        std::fs::write(&path, [&good[..], b" "].concat()).unwrap();
        assert_eq!(checkpoints.load(5).is_ok(), name == "manifest.json", "a manifest may end in white space");
        std::fs::write(&path, good).unwrap();
    }
    assert!(checkpoints.load(5).is_ok());
}

#[test]
fn missing_and_added_files_are_found() {
    let scratch = Scratch::new();
    let checkpoints = Checkpoints::new(scratch.path());
    save(&checkpoints, 5);
    let folder = checkpoints.path_of(5);
    for name in names(&folder) {
        std::fs::rename(folder.join(&name), scratch.join("away")).unwrap();
        let error = checkpoints.load(5).unwrap_err();
        match error.kind() {
            ErrorKind::MissingManifest => assert_eq!(name, "manifest.json"),
            ErrorKind::MissingFile { file } => assert_eq!(*file, name),
            other => panic!("{other:?}"),
        }
        std::fs::rename(scratch.join("away"), folder.join(&name)).unwrap();
    }
    std::fs::write(folder.join("extra"), b"").unwrap();
    let error = checkpoints.load(5).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::UnlistedFile { file } if file == "extra"), "{error}");
    std::fs::remove_file(folder.join("extra")).unwrap();
    std::fs::create_dir(folder.join("sub")).unwrap();
    assert_eq!(checkpoints.load(5).unwrap_err().code(), "sm-unlisted-file");
    std::fs::remove_dir(folder.join("sub")).unwrap();

    assert_eq!(checkpoints.load(6).unwrap_err().code(), "sm-step-not-found");
    std::fs::write(checkpoints.path_of(6), b"a file").unwrap();
    let error = checkpoints.load(6).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::StepNotFound { step: 6 }), "{error}");
    assert_eq!(checkpoints.steps().unwrap(), [5]);
}

/// Writes a folder as the Python recipe does, with this manifest.
fn write_recipe(checkpoints: &Checkpoints, step: u64, manifest: &str) {
    let folder = checkpoints.path_of(step);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("model.safetensors"), b"\x02\0\0\0\0\0\0\0{}").unwrap();
    std::fs::write(folder.join("optimizer.pkl"), b"").unwrap();
    let meta = format!(
        "{{\n  \"step\": {step},\n  \"metrics\": {{\n    \"loss\": NaN\n  }},\n  \"model_class\": \"Net\",\n  \"optimizer_class\": \"Adam\"\n}}"
    );
    std::fs::write(folder.join("meta.json"), meta).unwrap();
    std::fs::write(folder.join("manifest.json"), manifest).unwrap();
}

fn sha256(path: &Path) -> String {
    let digest = Sha256::digest(std::fs::read(path).unwrap());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_python_recipe_is_read_without_its_pickle() {
    let scratch = Scratch::new();
    let checkpoints = Checkpoints::new(scratch.path());
    write_recipe(&checkpoints, 100, "{}");
    let folder = checkpoints.path_of(100);
    let [model, meta] = ["model.safetensors", "meta.json"].map(|name| sha256(&folder.join(name)));
    let manifest = format!(
        r#"{{"optimizer.pkl": "{EMPTY_SHA256}", "model.safetensors": "{model}", "meta.json": "{meta}"}}"#
    );
    std::fs::write(folder.join("manifest.json"), &manifest).unwrap();

    let checkpoint = checkpoints.load(100).unwrap();
    assert!(checkpoint.is_verified() && checkpoint.optimizer().is_none());
    assert!(checkpoint.meta().metrics()["loss"].is_nan());
    assert_eq!(checkpoint.meta().model_class(), Some("Net"));
    let pickle = checkpoint.files().iter().find(|file| file.name == "optimizer.pkl").unwrap();
    assert_eq!((pickle.role, pickle.role.to_string().as_str()), (FileRole::IgnoredPickle, "ignored pickle"));
    assert_eq!(pickle.sha256.as_deref(), Some(EMPTY_SHA256));

    std::fs::write(folder.join("notes.txt"), b"").unwrap();
    let more = manifest.replacen('{', &format!("{{\"notes.txt\": \"{EMPTY_SHA256}\", "), 1);
    std::fs::write(folder.join("manifest.json"), more).unwrap();
    let roles: Vec<_> =
        checkpoints.load(100).unwrap().files().iter().map(|file| file.role.to_string()).collect();
    assert_eq!(roles, ["meta", "model", "other", "ignored pickle"]);
    std::fs::remove_file(folder.join("notes.txt")).unwrap();
    std::fs::write(folder.join("manifest.json"), &manifest).unwrap();

    std::fs::write(folder.join("optimizer.pkl"), b"cos\nsystem\n").unwrap();
    let error = checkpoints.load(100).unwrap_err();
    assert!(error.to_string().contains("checksum mismatch for optimizer.pkl"), "{error}");

    // An entry for the manifest itself, left by an interrupted save of the recipe, means nothing.
    std::fs::write(folder.join("optimizer.pkl"), b"").unwrap();
    let own = manifest.replacen('{', &format!("{{\"manifest.json\": \"{EMPTY_SHA256}\", "), 1);
    std::fs::write(folder.join("manifest.json"), own).unwrap();
    assert!(checkpoints.load(100).is_ok());
}

#[test]
fn without_manifest_only_on_request() {
    let scratch = Scratch::new();
    let checkpoints = Checkpoints::new(scratch.path());
    write_recipe(&checkpoints, 7, "");
    std::fs::remove_file(checkpoints.path_of(7).join("manifest.json")).unwrap();
    let optional = LoadOptions { verification: Verification::ManifestOptional, ..LoadOptions::default() };
    assert_eq!(checkpoints.load(7).unwrap_err().code(), "sm-missing-manifest");
    assert!(checkpoints.resume().unwrap().checkpoint.is_none());

    let checkpoint = checkpoints.load_with(7, &optional).unwrap();
    assert!(!checkpoint.is_verified());
    assert!(checkpoint.files().iter().all(|file| file.sha256.is_none()));
    assert!(checkpoint.load_model(&mut Arena::new()).is_ok());
    assert_eq!(checkpoints.resume_with(&optional).unwrap().checkpoint.unwrap().step(), 7);

    // A manifest that is there is obeyed.
    std::fs::write(checkpoints.path_of(7).join("manifest.json"), "{}").unwrap();
    assert_eq!(checkpoints.load_with(7, &optional).unwrap_err().code(), "sm-unlisted-file");
    std::fs::remove_file(checkpoints.path_of(7).join("manifest.json")).unwrap();
    std::fs::remove_file(checkpoints.path_of(7).join("meta.json")).unwrap();
    assert_eq!(checkpoints.load_with(7, &optional).unwrap_err().code(), "sm-missing-file");
}

#[test]
fn meta_is_read_without_the_other_files() {
    let scratch = Scratch::new();
    let checkpoints = Checkpoints::new(scratch.path());
    write_recipe(&checkpoints, 7, "");
    std::fs::remove_file(checkpoints.path_of(7).join("manifest.json")).unwrap();
    std::fs::remove_file(checkpoints.path_of(7).join("model.safetensors")).unwrap();
    assert_eq!(checkpoints.meta(7).unwrap().step(), 7);
    assert_eq!(checkpoints.meta(8).unwrap_err().code(), "sm-step-not-found");
    std::fs::rename(checkpoints.path_of(7), checkpoints.path_of(8)).unwrap();
    assert_eq!(checkpoints.meta(8).unwrap_err().code(), "sm-step-mismatch");
    std::fs::write(checkpoints.path_of(8).join("meta.json"), "{").unwrap();
    assert_eq!(checkpoints.meta(8).unwrap_err().code(), "sm-meta");
    std::fs::remove_file(checkpoints.path_of(8).join("meta.json")).unwrap();
    assert_eq!(checkpoints.meta(8).unwrap_err().code(), "df-io");
}

#[test]
fn manifest_names_cannot_leave_the_folder() {
    let scratch = Scratch::new();
    let checkpoints = Checkpoints::new(scratch.path());
    std::fs::write(scratch.join("secret"), b"").unwrap();
    for name in ["../secret", "/etc/hostname", "a/../../secret", "", "..", "c:\\\\x", "a\\u0000b"] {
        write_recipe(&checkpoints, 1, &format!("{{\"{name}\": \"{EMPTY_SHA256}\"}}"));
        let error = checkpoints.load(1).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::BadManifest { entry: Some(_), .. }), "{name} {error}");
    }
}

#[test]
fn content_with_the_right_digest_can_still_be_wrong() {
    let scratch = Scratch::new();
    let checkpoints = Checkpoints::new(scratch.path());
    let cases = [
        ("meta.json", &b"{\"step\": 2}"[..], "sm-step-mismatch"),
        ("meta.json", b"[]", "sm-meta"),
        ("model.safetensors", b"short", "st-header-too-small"),
        ("model.safetensors", b"\xff\xff\xff\xff\xff\xff\xff\xff{}", "st-header-too-large"),
        ("optimizer.json", b"\xff", "sm-json"),
    ];
    for (step, (name, bytes, code)) in (10..).zip(cases) {
        save(&checkpoints, step);
        let path = checkpoints.path_of(step).join(name);
        let old = sha256(&path);
        std::fs::write(&path, bytes).unwrap();
        let manifest = checkpoints.path_of(step).join("manifest.json");
        let text = std::fs::read_to_string(&manifest).unwrap();
        assert!(text.contains(&old), "the digest is that of the whole file");
        std::fs::write(&manifest, text.replace(&old, &sha256(&path))).unwrap();
        assert_eq!(checkpoints.load(step).unwrap_err().code(), code);
    }
    for (step, name) in [(20, "optimizer.json"), (21, "optimizer.safetensors")] {
        save(&checkpoints, step);
        std::fs::remove_file(checkpoints.path_of(step).join(name)).unwrap();
        let manifest = checkpoints.path_of(step).join("manifest.json");
        let text = std::fs::read_to_string(&manifest).unwrap();
        let kept: Vec<_> = text.lines().filter(|line| !line.contains(name)).collect();
        let text = kept.join("\n").replace("\",\n}", "\"\n}");
        std::fs::write(&manifest, text).unwrap();
        let error = checkpoints.load(step).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::OptimizerPair { missing } if *missing == name), "{error}");
    }
}

#[cfg(unix)]
#[test]
fn special_files_in_a_checkpoint_are_errors_and_not_hangs() {
    let scratch = Scratch::new();
    let checkpoints = Checkpoints::new(scratch.path());
    for name in ["manifest.json", "meta.json", "model.safetensors"] {
        save(&checkpoints, 1);
        let path = checkpoints.path_of(1).join(name);
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert_eq!(checkpoints.load(1).unwrap_err().code(), "df-not-regular", "{name}");
        std::fs::remove_dir_all(checkpoints.path_of(1)).unwrap();
    }
    save(&checkpoints, 1);
    std::fs::rename(checkpoints.path_of(1), scratch.join("real")).unwrap();
    std::os::unix::fs::symlink("real", checkpoints.path_of(1)).unwrap();
    assert_eq!(checkpoints.load(1).unwrap_err().code(), "sm-step-not-found");
    assert_eq!(checkpoints.latest().unwrap(), None);
}

#[test]
fn oversized_json_is_refused_before_it_is_read() {
    let scratch = Scratch::new();
    let checkpoints = Checkpoints::new(scratch.path());
    for (name, len) in [("manifest.json", 2u64 << 20), ("meta.json", 5 << 20), ("optimizer.json", 65 << 20)] {
        save(&checkpoints, 1);
        let path = checkpoints.path_of(1).join(name);
        std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(len).unwrap();
        assert_eq!(checkpoints.load(1).unwrap_err().code(), "df-too-large", "{name}");
        std::fs::remove_dir_all(checkpoints.path_of(1)).unwrap();
    }
}

#[test]
fn a_file_changed_after_opening_is_not_handed_out() {
    let scratch = Scratch::new();
    let checkpoints = Checkpoints::new(scratch.path());
    save(&checkpoints, 1);
    let checkpoint = checkpoints.load(1).unwrap();
    let path = checkpoints.path_of(1).join("model.safetensors");
    let good = std::fs::read(&path).unwrap();
    let mut bad = good.clone();
    *bad.last_mut().unwrap() ^= 1;
    std::fs::write(&path, &bad).unwrap();
    let error = checkpoint.load_model(&mut Arena::new()).unwrap_err();
    assert!(error.to_string().contains("checksum mismatch for model.safetensors"), "{error}");
    std::fs::write(&path, &good).unwrap();
    assert!(checkpoint.load_model(&mut Arena::new()).is_ok());

    // Replaced by rename: the opened file is the verified one still.
    std::fs::write(scratch.join("other"), bad).unwrap();
    std::fs::rename(scratch.join("other"), &path).unwrap();
    assert!(checkpoint.load_model(&mut Arena::new()).is_ok());
    assert!(checkpoints.load(1).is_err());
}

#[test]
fn steps_are_numbers_and_nothing_else_counts() {
    let scratch = Scratch::new();
    let checkpoints = Checkpoints::new(scratch.join("absent"));
    assert_eq!((checkpoints.steps().unwrap(), checkpoints.latest().unwrap()), (vec![], None));
    let resume = checkpoints.resume().unwrap();
    assert!(resume.checkpoint.is_none() && resume.skipped.is_empty());
    assert_eq!(checkpoints.keep_last(keep(1)).unwrap(), [0u64; 0]);

    std::fs::write(scratch.join("file"), b"").unwrap();
    let checkpoints = Checkpoints::new(scratch.join("file"));
    assert_eq!(checkpoints.steps().unwrap_err().code(), "sm-io");
    assert!(checkpoints.save(&CheckpointData::default()).is_err());

    let checkpoints = Checkpoints::new(scratch.path());
    for step in [2, 100, 10, 0] {
        save(&checkpoints, step);
    }
    for name in ["step_007", "step_5_tmp", "step_", "latest", ".step_9.removed.x", ".step_5.0.df-dir"] {
        std::fs::create_dir(scratch.join(name)).unwrap();
    }
    std::fs::write(scratch.join("step_99"), b"a file").unwrap();
    assert_eq!(checkpoints.steps().unwrap(), [0, 2, 10, 100]);
    assert_eq!(checkpoints.latest().unwrap(), Some(100));
}

#[test]
fn keep_last_removes_the_oldest_and_finishes_what_a_crash_left() {
    let scratch = Scratch::new();
    let checkpoints = Checkpoints::new(scratch.path());
    for step in 1..=5 {
        save(&checkpoints, step);
    }
    assert_eq!(checkpoints.keep_last(keep(9)).unwrap(), [0u64; 0]);
    assert_eq!(checkpoints.keep_last(keep(3)).unwrap(), [1, 2]);
    assert_eq!(names(scratch.path()), ["step_3", "step_4", "step_5"]);

    // A process died between renaming and deleting; the name may even be needed again.
    std::fs::rename(checkpoints.path_of(3), scratch.join(".step_3.removed")).unwrap();
    assert_eq!(checkpoints.steps().unwrap(), [4, 5]);
    save(&checkpoints, 3);
    assert_eq!(names(scratch.path()), ["step_3", "step_4", "step_5"], "a save sweeps");
    std::fs::create_dir_all(scratch.join(".step_3.removed/x")).unwrap();
    std::fs::create_dir(scratch.join(".step_9.0123456789abcdef.df-dir")).unwrap();
    save(&checkpoints, 2);
    assert_eq!(names(scratch.path()), ["step_2", "step_3", "step_4", "step_5"]);
    assert_eq!(checkpoints.keep_last(keep(1)).unwrap(), [2, 3, 4]);
    assert_eq!(names(scratch.path()), ["step_5"]);
}

/// Saves a checkpoint with parts and metadata.
fn save_parts(checkpoints: &Checkpoints, step: u64) {
    let weights = noise(24, step);
    let averages = noise(24, step + 1);
    let metadata = |key: &str, value: &str| Some(BTreeMap::from([(key.to_owned(), value.to_owned())]));
    let w = |bytes| [("w", TensorView::new(Dtype::F32, &[6], bytes).unwrap())];
    checkpoints
        .save(&CheckpointData {
            step,
            model: &w(&weights),
            model_metadata: metadata("head", "w"),
            optimizer: Some(OptimizerData { tensors: &[], metadata: metadata("a", "b"), json: "{}" }),
            parts: &[
                PartData { name: "training", tensors: &[], metadata: metadata("key", "value") },
                PartData { name: "ema", tensors: &w(&averages), metadata: None },
            ],
            framework: "torch",
            ..CheckpointData::default()
        })
        .unwrap();
}

#[test]
fn parts_are_saved_verified_and_loaded() {
    let scratch = Scratch::new();
    let checkpoints = Checkpoints::new(scratch.path());
    save_parts(&checkpoints, 3);
    let checkpoint = checkpoints.load(3).unwrap();
    assert_eq!(
        (checkpoint.meta().framework(), checkpoint.meta().parts()),
        (Some("torch"), &["ema".to_owned(), "training".to_owned()][..])
    );
    let roles = checkpoint.files().iter().filter(|file| file.role == FileRole::Part);
    assert_eq!(
        roles.map(|file| file.name.as_str()).collect::<Vec<_>>(),
        ["ema.safetensors", "training.safetensors"]
    );
    let mut arena = Arena::new();
    assert_eq!(
        checkpoint.load_part("ema", &mut arena).unwrap().unwrap().tensor("w").unwrap().data(),
        noise(24, 4)
    );
    assert!(
        checkpoint.load_part("other", &mut arena).unwrap().is_none() && checkpoint.part("model").is_none()
    );
    let metadata = checkpoint.part("training").unwrap().header().metadata().unwrap();
    assert_eq!(metadata.get("key"), Some("value"));
    assert_eq!(checkpoint.model().header().metadata().unwrap().get("head"), Some("w"));
    assert_eq!(checkpoint.optimizer().unwrap().header().metadata().unwrap().get("a"), Some("b"));

    // In one pass.
    let opened = checkpoints.open(3, &LoadOptions::default()).unwrap();
    let names: Vec<&str> = opened.tensor_files().map(|(name, _)| name).collect();
    assert_eq!(
        names,
        ["ema.safetensors", "model.safetensors", "optimizer.safetensors", "training.safetensors"]
    );
    assert_eq!((opened.optimizer_json(), opened.has_manifest(), opened.files().len()), (Some("{}"), true, 6));
    for (name, len) in opened.tensor_files() {
        let mut bytes = vec![0; len as usize];
        let header = opened.read_file(name, &mut bytes).unwrap();
        assert_eq!(header.file_len(), len);
        assert_eq!(bytes, std::fs::read(checkpoints.path_of(3).join(name)).unwrap());
        bytes.pop();
        assert_eq!(opened.read_file(name, &mut bytes).unwrap_err().code(), "sm-buffer-length");
    }
    assert_eq!(opened.read_file("meta.json", &mut []).unwrap_err().code(), "sm-missing-file");
}

#[test]
fn a_part_that_is_damaged_or_missing_is_refused() {
    let scratch = Scratch::new();
    let checkpoints = Checkpoints::new(scratch.path());
    save_parts(&checkpoints, 3);
    let folder = checkpoints.path_of(3);
    for name in ["ema.safetensors", "model.safetensors", "optimizer.safetensors", "training.safetensors"] {
        let path = folder.join(name);
        let good = std::fs::read(&path).unwrap();
        for at in [0, 9, good.len() - 1] {
            let mut bad = good.clone();
            bad[at] ^= 1;
            std::fs::write(&path, &bad).unwrap();
            assert_eq!(checkpoints.load(3).unwrap_err().code(), "sm-checksum-mismatch", "{name} {at}");
            let opened = checkpoints.open(3, &LoadOptions::default()).unwrap();
            let error = opened.read_file(name, &mut vec![0; bad.len()]).unwrap_err();
            assert_eq!((error.code(), error.path()), ("sm-checksum-mismatch", Some(path.as_path())));
        }
        std::fs::write(&path, good).unwrap();
    }
    // Neither listed nor there: `meta.json` asks for it all the same.
    std::fs::remove_file(folder.join("ema.safetensors")).unwrap();
    let manifest = std::fs::read_to_string(folder.join("manifest.json")).unwrap();
    let lines =
        manifest.lines().filter(|line| !line.contains("ema.safetensors")).collect::<Vec<_>>().join("\n");
    std::fs::write(folder.join("manifest.json"), lines).unwrap();
    for error in [checkpoints.load(3).unwrap_err(), checkpoints.open(3, &LoadOptions::default()).unwrap_err()]
    {
        assert!(
            matches!(error.kind(), ErrorKind::MissingFile { file } if file == "ema.safetensors"),
            "{error}"
        );
    }
}

#[test]
fn tensor_files_that_are_no_parts_are_verified_and_not_interpreted() {
    let scratch = Scratch::new();
    let checkpoints = Checkpoints::new(scratch.path());
    write_recipe(&checkpoints, 1, "{}");
    let folder = checkpoints.path_of(1);
    std::fs::write(folder.join("notes.safetensors"), b"no tensors at all").unwrap();
    let names = ["meta.json", "model.safetensors", "notes.safetensors", "optimizer.pkl"];
    let entries: Vec<_> =
        names.iter().map(|name| format!("\"{name}\": \"{}\"", sha256(&folder.join(name)))).collect();
    std::fs::write(folder.join("manifest.json"), format!("{{{}}}", entries.join(", "))).unwrap();
    let roles: Vec<_> = checkpoints.load(1).unwrap().files().iter().map(|file| file.role).collect();
    assert_eq!(roles, [FileRole::Meta, FileRole::Model, FileRole::Other, FileRole::IgnoredPickle]);
    assert_eq!(checkpoints.open(1, &LoadOptions::default()).unwrap().tensor_files().len(), 1);
    std::fs::write(folder.join("notes.safetensors"), b"no tensors at al1").unwrap();
    for error in [checkpoints.load(1).unwrap_err(), checkpoints.open(1, &LoadOptions::default()).unwrap_err()]
    {
        assert!(error.to_string().contains("checksum mismatch for notes.safetensors"), "{error}");
    }
}

#[test]
fn names_that_no_part_may_have_are_refused_before_anything_is_written() {
    let scratch = Scratch::new();
    let checkpoints = Checkpoints::new(scratch.path());
    let part = |name| PartData { name, tensors: &[], metadata: None };
    for parts in [&[part("model")][..], &[part("../x")], &[part("")], &[part("ema"), part("ema")]] {
        let data = CheckpointData { step: 1, parts, ..CheckpointData::default() };
        assert_eq!(checkpoints.save(&data).unwrap_err().code(), "sm-part");
    }
    assert_eq!(names(scratch.path()), [""; 0]);
}

#[test]
fn json_that_could_not_be_loaded_is_refused_before_anything_is_written() {
    let scratch = Scratch::new();
    let checkpoints = Checkpoints::new(scratch.path());
    let json = " ".repeat(64 << 20) + "0";
    let optimizer = Some(OptimizerData { tensors: &[], metadata: None, json: &json });
    let data = CheckpointData { step: 1, optimizer, ..CheckpointData::default() };
    let error = checkpoints.save(&data).unwrap_err();
    assert_eq!(error.code(), "sm-too-long");
    assert!(error.to_string().contains("optimizer.json would have 67108865 bytes"), "{error}");
    let model_class = "a".repeat(4 << 20);
    let data = CheckpointData { step: 1, model_class: &model_class, ..CheckpointData::default() };
    let error = checkpoints.save(&data).unwrap_err();
    assert!(error.to_string().contains("meta.json would have"), "{error}");
    assert_eq!(names(scratch.path()), [""; 0]);

    let optimizer = Some(OptimizerData { tensors: &[], metadata: None, json: &json[1..] });
    checkpoints.save(&CheckpointData { step: 1, optimizer, ..CheckpointData::default() }).unwrap();
    assert_eq!(checkpoints.load(1).unwrap().optimizer_json().unwrap().len(), 64 << 20);
}

#[test]
fn checkpoints_of_another_major_version_are_refused_by_name() {
    let scratch = Scratch::new();
    let checkpoints = Checkpoints::new(scratch.path());
    for (version, code) in [("1.9", None), ("2.0", Some("sm-version"))] {
        write_recipe(&checkpoints, 1, "{}");
        let folder = checkpoints.path_of(1);
        let meta = format!("{{\"step\": 1, \"format_version\": \"{version}\", \"later\": [1]}}");
        std::fs::write(folder.join("meta.json"), meta).unwrap();
        let names = ["meta.json", "model.safetensors", "optimizer.pkl"];
        let entries: Vec<_> =
            names.iter().map(|name| format!("\"{name}\": \"{}\"", sha256(&folder.join(name)))).collect();
        std::fs::write(folder.join("manifest.json"), format!("{{{}}}", entries.join(", "))).unwrap();
        for found in [checkpoints.load(1).err(), checkpoints.meta(1).err()] {
            assert_eq!(found.map(|error| error.code()), code, "{version}");
        }
    }
    let error = checkpoints.load(1).unwrap_err();
    assert!(error.to_string().contains("format version 2.0, this release reads 1.x"), "{error}");
}

/// Saves checkpoints with the metric `loss`, and of even steps also `accuracy`.
fn save_metrics(checkpoints: &Checkpoints, losses: &[(u64, f64)]) {
    for &(step, loss) in losses {
        let mut metrics = BTreeMap::from([("loss".to_owned(), loss)]);
        if step % 2 == 0 {
            metrics.insert("accuracy".to_owned(), step as f64);
        }
        checkpoints.save(&CheckpointData { step, metrics, ..CheckpointData::default() }).unwrap();
    }
}

fn best(rules: &[&str]) -> Retention {
    Retention { best: rules.iter().map(|rule| rule.parse().unwrap()).collect(), ..Retention::default() }
}

fn kept(plan: &st_mmap::Plan) -> Vec<u64> {
    plan.kept.iter().map(|kept| kept.step).collect()
}

#[test]
fn rules_decide_what_is_kept() {
    let scratch = Scratch::new();
    let checkpoints = Checkpoints::new(scratch.path());
    let infinity = f64::INFINITY;
    save_metrics(
        &checkpoints,
        &[
            (1, 0.5),
            (2, f64::NAN),
            (3, 0.1),
            (4, 0.1),
            (5, infinity),
            (6, -0.0),
            (7, 0.0),
            (8, 0.9),
            (9, -infinity),
            (10, 0.7),
        ],
    );
    let plan = |retention: &Retention| checkpoints.plan(retention, None).unwrap();
    let last = |count| Retention { last: Some(keep(count)), ..Retention::default() };
    assert_eq!(kept(&plan(&last(3))), [8, 9, 10]);
    assert_eq!(kept(&plan(&last(99))).len(), 10);
    assert_eq!(kept(&plan(&Retention { every: NonZeroU64::new(4), ..Retention::default() })), [4, 8, 10]);
    // The least; of equal ones the later; NaN never; the newest always.
    assert_eq!(kept(&plan(&best(&["1:loss"]))), [9, 10]);
    assert_eq!(kept(&plan(&best(&["2:loss"]))), [7, 9, 10]);
    assert_eq!(kept(&plan(&best(&["4:loss"]))), [4, 6, 7, 9, 10]);
    assert_eq!(kept(&plan(&best(&["1:loss:max"]))), [5, 10]);
    assert_eq!(kept(&plan(&best(&["99:loss"]))), [1, 3, 4, 5, 6, 7, 8, 9, 10]);
    assert_eq!(kept(&plan(&best(&["2:accuracy", "1:loss"]))), [8, 9, 10]);
    let both = Retention { last: Some(keep(2)), every: NonZeroU64::new(5), ..best(&["1:loss"]) };
    let reasons: Vec<_> = plan(&both).kept;
    assert_eq!(
        reasons,
        [
            Kept { step: 5, reasons: vec![KeptBy::Every] },
            Kept { step: 9, reasons: vec![KeptBy::Last, KeptBy::Best("loss".to_owned())] },
            Kept { step: 10, reasons: vec![KeptBy::Last, KeptBy::Every] },
        ]
    );
    assert_eq!(plan(&best(&["1:loss"])).kept[1].reasons, [KeptBy::Newest]);

    // A name that no checkpoint has would remove everything: refused, with one that there is.
    let error = checkpoints.plan(&best(&["1:los:min"]), None).unwrap_err();
    assert!(error.code() == "sm-no-metric" && error.to_string().contains("there is \"accuracy\""), "{error}");
    let empty = Checkpoints::new(scratch.join("empty"));
    assert!(empty.plan(&best(&["1:los:min"]), None).unwrap().kept.is_empty());

    let decided = plan(&both);
    assert_eq!(decided.removed, [1, 2, 3, 4, 6, 7, 8]);
    assert_eq!(checkpoints.steps().unwrap().len(), 10, "a plan removes nothing");
    // What another process has removed meanwhile is no error.
    std::fs::remove_dir_all(checkpoints.path_of(3)).unwrap();
    checkpoints.prune(&decided).unwrap();
    assert_eq!(checkpoints.steps().unwrap(), [5, 9, 10]);
    assert_eq!(names(scratch.path()), ["step_10", "step_5", "step_9"]);
}

#[test]
fn what_cannot_be_used_counts_for_no_rule_and_stays() {
    let scratch = Scratch::new();
    let checkpoints = Checkpoints::new(scratch.path());
    save_metrics(&checkpoints, &[(1, 0.5), (2, 0.4), (3, 0.3), (4, 0.2), (5, 0.1)]);
    std::fs::write(checkpoints.path_of(5).join("meta.json"), b"{").unwrap();
    std::fs::write(checkpoints.path_of(4).join("model.safetensors"), b"torn").unwrap();
    let retention = Retention { last: Some(keep(1)), ..best(&["1:loss"]) };
    // Without reading the tensors, the damaged model is not noticed.
    let quick = checkpoints.plan(&retention, None).unwrap();
    assert_eq!((kept(&quick), &quick.removed[..]), (vec![4], &[1, 2, 3][..]));
    assert_eq!(
        quick.unusable.iter().map(|(step, error)| (*step, error.code())).collect::<Vec<_>>(),
        [(5, "sm-meta")]
    );
    let options = LoadOptions::default();
    let thorough = checkpoints.plan(&retention, Some(&options)).unwrap();
    assert_eq!((kept(&thorough), &thorough.removed[..]), (vec![3], &[1, 2][..]));
    let unusable: Vec<_> = thorough.unusable.iter().map(|(step, error)| (*step, error.code())).collect();
    assert_eq!(unusable, [(4, "sm-checksum-mismatch"), (5, "sm-meta")]);
    checkpoints.prune(&thorough).unwrap();
    assert_eq!(checkpoints.steps().unwrap(), [3, 4, 5]);
}

#[test]
fn resume_skips_what_does_not_verify_and_says_why() {
    let scratch = Scratch::new();
    let checkpoints = Checkpoints::new(scratch.path());
    for step in [1, 2, 3] {
        save(&checkpoints, step);
    }
    std::fs::write(checkpoints.path_of(3).join("model.safetensors"), b"torn").unwrap();
    std::fs::remove_file(checkpoints.path_of(2).join("manifest.json")).unwrap();
    let resume = checkpoints.resume().unwrap();
    assert_eq!(resume.checkpoint.map(|checkpoint| checkpoint.step()), Some(1));
    let skipped: Vec<_> = resume.skipped.iter().map(|(step, error)| (*step, error.code())).collect();
    assert_eq!(skipped, [(3, "sm-checksum-mismatch"), (2, "sm-missing-manifest")]);
}

/// A process that saves and prunes is killed at any moment: every checkpoint that has its name is whole.
#[test]
fn a_killed_saver_leaves_whole_checkpoints_only() {
    let scratch = Scratch::new();
    let checkpoints = Checkpoints::new(scratch.join("run"));
    for round in 0..6 {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "checkpoints::child_that_saves_until_killed"])
            .env("ST_MMAP_SAVE_UNTIL_KILLED", checkpoints.folder())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        while checkpoints.latest().unwrap().is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(60 + round * 37));
        child.kill().unwrap();
        child.wait().unwrap();
        for step in checkpoints.steps().unwrap() {
            checkpoints.load(step).unwrap();
        }
    }
    let last = checkpoints.latest().unwrap().expect("waited for above");
    save(&checkpoints, last + 1);
    let left = names(checkpoints.folder());
    assert!(left.iter().all(|name| name.starts_with("step_")), "the next save sweeps: {left:?}");
}

/// Does something only as the child of the test above.
#[test]
fn child_that_saves_until_killed() {
    let Some(folder) = std::env::var_os("ST_MMAP_SAVE_UNTIL_KILLED") else {
        return;
    };
    let checkpoints = Checkpoints::new(folder);
    for step in checkpoints.latest().unwrap().map_or(0, |step| step + 1).. {
        save(&checkpoints, step);
        checkpoints.keep_last(keep(3)).unwrap();
    }
}
