//! Files of other programs: every vector through `inspect`, `tensors` and `convert`.

use alloc::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::sandbox::Sandbox;
use crate::vectors::sidecars;

/// What a sidecar allows in words.
const MAY_ADD: [(&str, &str); 3] = [
    ("torch/np_leaves.ckpt", "arr"),
    ("joblib/sk_logreg.joblib", "n_iter_"),
    ("joblib/sk_logreg.pkl", "n_iter_"),
];

/// Types that safetensors does not have.
const NOT_CONVERTED: [&str; 6] = ["C128", "I4", "U4", "I2", "U2", "F4"];

/// Type, shape and digest of each tensor by its name.
type Rows = BTreeMap<String, String>;

fn rows(tensors: &Value) -> Rows {
    let row = |tensor: &Value| {
        let text = format!("{} {} {}", tensor["dtype"], tensor["shape"], tensor["sha256"]);
        (tensor["name"].as_str().unwrap().to_owned(), text)
    };
    tensors.as_array().into_iter().flatten().map(row).collect()
}

/// Which of the lists of a sidecar the tensors are, if they are one of them.
fn fit(name: &str, facts: &Value, found: &Rows) -> bool {
    let (listed, other) = (rows(&facts["tensors"]), rows(&facts["alternatives"]));
    let both: Rows = listed.clone().into_iter().chain(other.clone()).collect();
    let may_add = |key: &&String| MAY_ADD.contains(&(name, key.as_str()));
    let without: Rows =
        found.iter().filter(|(key, _)| !may_add(key)).map(|(key, row)| (key.clone(), row.clone())).collect();
    let is_open = listed.is_empty() && other.is_empty();
    is_open || [&listed, &both].contains(&&without) || (!other.is_empty() && without == other)
}

#[test]
fn archives_come_from_standard_input() {
    let sandbox = Sandbox::with_models();
    assert_eq!(sandbox.run(&["convert", "model.safetensors", "arrays.npz"]).exit, 0);
    let ran = sandbox.run_with_input(&["convert", "-", "again.safetensors"], &sandbox.read("arrays.npz"));
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    assert_eq!(sandbox.run(&["diff", "model.safetensors", "again.safetensors", "--ignore-metadata"]).exit, 0);
    let ran = sandbox.run_with_input(&["convert", "-", "x.safetensors"], b"PK\x03\x04 and no archive");
    assert_ne!(ran.exit, 0);
    assert!(ran.stderr.contains("help:"), "{}", ran.stderr);
}

/// Types that NumPy has and no format of tensors.
#[test]
fn complex_numbers_of_128_bits_go_back_to_numpy() {
    let sandbox = Sandbox::empty();
    let header = "{'descr': '<c16', 'fortran_order': False, 'shape': (2,), }";
    let mut bytes = b"\x93NUMPY\x01\0v\0".to_vec();
    bytes.extend(format!("{header:<117}\n").bytes());
    bytes.extend([1.0_f64, -2.0, 0.5, f64::INFINITY].iter().flat_map(|part| part.to_le_bytes()));
    sandbox.write("complex.npy", &bytes);
    for output in ["same.npy", "all.npz"] {
        let ran = sandbox.run(&["convert", "complex.npy", output]);
        assert_eq!(ran.exit, 0, "{}", ran.stderr);
    }
    assert_eq!(sandbox.read("same.npy"), bytes);
    assert!(sandbox.read("all.npz").windows(bytes.len()).any(|part| part == bytes));
    assert_eq!(sandbox.run(&["convert", "complex.npy", "no.safetensors"]).exit, 2);
}

#[test]
fn every_vector_is_read_as_its_sidecar_says() {
    let sandbox = Sandbox::empty();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/import");
    let (mut n_read, mut problems) = (0, Vec::new());
    for (name, facts) in sidecars("import") {
        let path = folder.join(&name);
        let Some(allowed) = facts["import"].as_array() else { continue };
        if !path.exists() {
            continue;
        }
        let may = |outcome: &str| allowed.iter().any(|allowed| allowed == outcome);
        let path = path.to_str().unwrap();
        let (exit, listed) = sandbox.json(&["tensors", "--digest", path]);
        let (inspected, _) = sandbox.json(&["inspect", path]);
        if exit != 0 {
            let is_typed = listed["error"]["code"].is_string() && listed["error"]["help"].is_string();
            if !may("refused") || !is_typed {
                problems.push(format!("{name}: {listed}"));
            }
            continue;
        }
        n_read += 1;
        let found = rows(&listed["tensors"]);
        if inspected != 0 || !(may("ok") || may("ok-with-warnings")) || !fit(&name, &facts, &found) {
            problems.push(format!("{name}: inspect {inspected}, {found:?}"));
            continue;
        }
        let is_carried = !found
            .values()
            .any(|row| NOT_CONVERTED.iter().any(|dtype| row.starts_with(&format!("\"{dtype}\""))));
        let (exit, converted) = sandbox.json(&["convert", path, "out.safetensors", "--force"]);
        if converted["error"]["code"] == "st-reserved-name" {
            continue;
        }
        let expected = match found.is_empty() {
            true => 6,
            false if is_carried => 0,
            false => 2,
        };
        if found.is_empty() && exit == expected {
            let written = sandbox.run(&["convert", path, "out.safetensors", "--force", "--allow-empty"]);
            if converted["error"]["code"] != "cli-no-tensors" || written.exit != 0 {
                problems.push(format!("{name}: {converted} {}", written.stderr));
            }
        } else if exit != expected {
            problems.push(format!("{name}: convert {exit} {converted}"));
        } else if is_carried {
            // Of tensors with several names one copy is written; the metadata name the others.
            let (_, listed) = sandbox.json(&["tensors", "--digest", "out.safetensors"]);
            let mut written = rows(&listed["tensors"]);
            for (alias, of) in converted["metadata"].as_object().into_iter().flatten() {
                if let (Some(row), true) =
                    (of.as_str().and_then(|of| written.get(of)), found.contains_key(alias))
                {
                    written.insert(alias.clone(), row.clone());
                }
            }
            if written != found {
                problems.push(format!("{name}: converted {written:?}\nof {found:?}"));
            }
        }
    }
    assert!(problems.is_empty(), "{}\n{}", problems.len(), problems.join("\n"));
    assert!(n_read > 100, "{n_read}");
    assert!(sandbox.leftovers().is_empty());
}

/// Files of other libraries that nothing here reads: named, without advice that leads nowhere.
#[test]
fn files_that_are_only_recognized_are_named() {
    let sandbox = Sandbox::with_models();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/import/recognized");
    for (name, named) in [
        ("xgb.json", "an XGBoost model"),
        ("xgb.ubj", "an XGBoost model"),
        ("xgb_classifier.joblib", "xgboost.sklearn.XGBClassifier"),
        ("lgb.txt", "a LightGBM model"),
        ("lgb_dump.json", "a LightGBM model as JSON"),
        ("lgb_classifier.joblib", "lightgbm.sklearn.LGBMClassifier"),
        ("cat.cbm", "a CatBoost model"),
        ("cat.json", "a CatBoost model"),
        ("cat_classifier.joblib", "catboost.core.CatBoostClassifier"),
        ("estimator.skops", ".skops"),
        ("gpu.engine", "a TensorRT engine"),
        ("program.pte", "an ExecuTorch program"),
        ("openvino_model.xml", "OpenVINO"),
        ("lfs_conflict.onnx", "an unresolved merge conflict"),
        ("rf_skl.onnx", "an ONNX-ML model"),
        ("logreg_skl.onnx", "an ONNX-ML model"),
        ("xgb_onnxmltools.onnx", "an ONNX-ML model"),
    ] {
        let path = folder.join(name);
        let path = path.to_str().unwrap();
        for args in
            [&["predict", path, "-i", "rows.csv"][..], &["convert", path, "out.safetensors", "--force"]]
        {
            let ran = sandbox.run(args);
            let is_converted = name == "lgb_classifier.joblib" && args[0] == "convert";
            assert_eq!(ran.exit, if is_converted { 0 } else { 6 }, "{args:?} {}", ran.stderr);
            assert!(ran.stderr.contains(named), "{args:?} {}", ran.stderr);
            for wrong in ["SHA-256", "login page", "convert it", "get it again", "0 tensors"] {
                assert!(!ran.stderr.contains(wrong), "{args:?} {wrong}: {}", ran.stderr);
            }
            assert!(!name.ends_with(".joblib") || !ran.stderr.contains("sklearn.export"), "{}", ran.stderr);
            let ran = sandbox.run(&["check", path]);
            assert!(!ran.stderr.contains("SHA-256"), "{args:?} {}", ran.stderr);
            let text = ran.stdout + &ran.stderr;
            assert!(!name.ends_with("skl.onnx") || text.contains("a model of ONNX-ML"), "{text}");
        }
    }
    // Bytes that only the graph beside them describes.
    sandbox.write("m.xml", &std::fs::read(folder.join("openvino_model.xml")).unwrap());
    sandbox.write("m.bin", &[0, 0, 0x80, 0x3f].repeat(4));
    let ran = sandbox.run(&["inspect", "m.bin"]);
    assert!(ran.exit == 6 && ran.stderr.contains("the weights of an OpenVINO model"), "{ran:?}");
}

#[test]
fn folders_of_other_programs_are_named() {
    let sandbox = Sandbox::with_models();
    for (file, named, remedy) in [
        ("ocdbt/manifest.ocdbt", "a checkpoint of Orbax", "orbax.checkpoint"),
        ("items/default/_METADATA", "a checkpoint of Orbax", "orbax.checkpoint"),
        ("m.mlpackage/Data/com.apple.CoreML/model.mlmodel", "a Core ML package", "the original model"),
        ("flow/MLmodel", "a model of MLflow", "name the model in it: flow/model.pkl"),
    ] {
        let (folder, below) = file.split_once('/').unwrap();
        let parent = sandbox.path(folder).join(below);
        std::fs::create_dir_all(parent.parent().unwrap()).unwrap();
        sandbox.write(file, b"");
        if folder == "m.mlpackage" {
            sandbox.write("m.mlpackage/Manifest.json", b"{\"fileFormatVersion\":\"1.0.0\"}");
        }
        if folder == "flow" {
            sandbox.write("flow/model.pkl", b"\x80\x02}q\0.");
        }
        for command in ["inspect", "convert"] {
            let args = [&[command, folder][..], if command == "convert" { &["o.safetensors"] } else { &[] }]
                .concat();
            let ran = sandbox.run(&args);
            assert_eq!(ran.exit, 6, "{args:?} {}", ran.stderr);
            assert!(ran.stderr.contains(named) && ran.stderr.contains(remedy), "{args:?} {}", ran.stderr);
        }
    }
}

/// Names of features and classes as arrays of objects or strings.
#[test]
fn arrays_of_text_are_metadata_of_the_numbers() {
    let sandbox = Sandbox::empty();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/import/joblib");
    for name in ["words.joblib", "words.pkl"] {
        let path = data.join(name);
        let (exit, report) = sandbox.json(&["convert", path.to_str().unwrap(), "w.safetensors", "--force"]);
        assert_eq!(exit, 0, "{report:#}");
        let metadata = &report["metadata"];
        assert_eq!(metadata["feature_names_in_"], "[\"age\",\"größe\"]", "{report:#}");
        assert_eq!(metadata["classes_"], "[\"no\",\"yes\"]", "{report:#}");
        // What the metadata have is not lost.
        let is_lost = |report: &Value| {
            let lost = report["lost"].as_array().unwrap();
            lost.iter().any(|part| part.as_str().unwrap().starts_with("classes_"))
        };
        assert!(!is_lost(&report), "{report:#}");
        let without = ["convert", path.to_str().unwrap(), "w.safetensors", "--force", "--no-metadata"];
        assert!(is_lost(&sandbox.json(&without).1));
        let (_, listed) = sandbox.json(&["tensors", "w.safetensors"]);
        assert_eq!(rows(&listed["tensors"]).keys().collect::<Vec<_>>(), ["coef_"], "{name}");
    }
}

#[test]
fn other_names_of_tensors_are_marked_and_count_once() {
    let sandbox = Sandbox::empty();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../conformance/vectors/import/torch/pytorch_model.bin");
    let ran = sandbox.run(&["tensors", path]);
    assert!(ran.stdout.lines().next().is_some_and(|head| head.ends_with("ALIAS OF")), "{}", ran.stdout);
    assert!(ran.stderr.contains("2 tensors and 1 other name, "), "{}", ran.stderr);
    let (_, listed) = sandbox.json(&["tensors", path]);
    let alias_of = |row: &Value| row["alias_of"].as_str().map(|of| (row["name"].to_string(), of.to_owned()));
    let aliases: Vec<_> = listed["tensors"].as_array().unwrap().iter().filter_map(alias_of).collect();
    assert_eq!(aliases, [("\"model.embed.weight\"".to_owned(), "head.weight".to_owned())]);
}

#[test]
fn arrays_are_written_as_numpy_writes_them() {
    let sandbox = Sandbox::with_models();
    let npy = sandbox.read("model.npy");
    assert_eq!(sandbox.run(&["convert", "model.npy", "one.safetensors"]).exit, 0);
    assert_eq!(sandbox.run(&["convert", "one.safetensors", "two.npy"]).exit, 0);
    assert_eq!(sandbox.read("two.npy"), npy);
    let ran = sandbox.run(&["convert", "model.safetensors", "all.npz"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("not in the new file: metadata"), "{}", ran.stderr);
    let digests = |file: &str| rows(&sandbox.json(&["tensors", "--digest", file]).1["tensors"]);
    assert_eq!(digests("all.npz"), digests("model.safetensors"));
    for (args, exit, text) in [
        (&["convert", "model.safetensors", "x.npy"][..], 2, "--select"),
        (&["convert", "model.gguf", "x.npz"], 2, "--dequantize"),
        (&["convert", "all.npz", "y.npz", "--rename", "*=../*"], 2, "--rename"),
        (&["convert", "all.npz", "y.npz", "--align", "64"], 2, "--align"),
        (&["quantize", "all.npz", "-o", "q.npz", "--type", "q4_0"], 2, ".gguf"),
    ] {
        let ran = sandbox.run(args);
        assert_eq!(ran.exit, exit, "{args:?}\n{}", ran.stderr);
        assert!(ran.stderr.contains(text), "{args:?}\n{}", ran.stderr);
    }
    assert!(sandbox.leftovers().is_empty());
}

#[test]
fn a_nested_object_is_chosen_by_its_key() {
    let sandbox = Sandbox::with_models();
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/import/torch");
    let path = vectors.join("trainer.ckpt");
    let path = path.to_str().unwrap();
    let names = |args: &[&str]| {
        let (exit, value) = sandbox.json(args);
        assert_eq!(exit, 0, "{args:?} {value}");
        rows(&value["tensors"]).into_keys().collect::<Vec<_>>()
    };
    let all = names(&["tensors", path]);
    let (key, _) = all.iter().find_map(|name| name.split_once('.')).unwrap();
    let below: Vec<String> =
        all.iter().filter_map(|name| name.strip_prefix(&format!("{key}."))).map(str::to_owned).collect();
    assert_eq!(names(&["tensors", path, "--object", key]), below);
    let ran = sandbox.run(&["convert", path, "part.safetensors", "--object", key]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    assert_eq!(names(&["tensors", "part.safetensors"]), below);
    for (args, exit, text) in [
        (&["tensors", path, "--object", "nothing"][..], 2, "ft-key"),
        (&["tensors", "model.safetensors", "--object", "model"], 2, "no nested objects"),
        (&["convert", path, "x.safetensors", "--object", "nothing"], 2, "ft-key"),
        (&["quantize", path, "-o", "x.gguf", "--type", "f16", "--object", "nothing"], 2, "ft-key"),
    ] {
        let ran = sandbox.run(args);
        assert_eq!(ran.exit, exit, "{args:?}\n{}", ran.stderr);
        assert!(ran.stderr.contains(text), "{args:?}\n{}", ran.stderr);
    }
}

/// The author of a file chooses the names in it, so that none of them may stand in for a key.
#[test]
fn a_missing_key_is_no_object_of_the_file() {
    let sandbox = Sandbox::with_models();
    let ran = sandbox.run(&["convert", "model.safetensors", "evil.npz", "--rename", "*=publisher.pub.*"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    let names = sandbox.json(&["tensors", "evil.npz"]).1["tensors"].clone();
    let name = names[0]["name"].as_str().unwrap();
    for args in [
        &["convert", "evil.npz", "out.safetensors", "--key", name][..],
        &["quantize", "evil.npz", "-o", "out.gguf", "--type", "f16", "--key", name],
    ] {
        let ran = sandbox.run(args);
        assert_eq!(ran.exit, 5, "{args:?} {}", ran.stderr);
    }
    // The key exists, and no signature does.
    let ran = sandbox.run(&["convert", "evil.npz", "out.safetensors", "--key", "publisher.pub"]);
    assert_eq!(ran.exit, 4, "{}", ran.stderr);
    assert!(ran.stderr.contains("cli-no-signature"), "{}", ran.stderr);
    assert!(!sandbox.path("out.safetensors").exists() && !sandbox.path("out.gguf").exists());
}

#[test]
fn a_folder_of_another_program_is_opened() {
    let sandbox = Sandbox::empty();
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/import/torch");
    std::fs::create_dir(sandbox.path("hub")).unwrap();
    std::fs::copy(vectors.join("pytorch_model.bin"), sandbox.path("hub/pytorch_model.bin")).unwrap();
    std::fs::write(sandbox.path("hub/config.json"), "{}").unwrap();
    for command in ["inspect", "tensors"] {
        let ran = sandbox.run(&[command, "hub"]);
        assert_eq!(ran.exit, 0, "{}", ran.stderr);
        assert!(ran.stdout.contains("head.weight"), "{}", ran.stdout);
    }
    let ran = sandbox.run(&["convert", "hub", "model.safetensors"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
}

#[test]
fn one_copy_of_tied_weights_is_written_under_the_names_that_were_chosen() {
    let sandbox = Sandbox::empty();
    let model =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/import/torch/pytorch_model.bin");
    let model = model.to_str().unwrap();
    for (args, names, alias) in [
        (&[][..], &["bias", "head.weight"][..], Some(("model.embed.weight", "head.weight"))),
        (&["--select", "model.*"], &["model.embed.weight"], None),
        (&["--exclude", "head.*"], &["bias", "model.embed.weight"], None),
        (&["--exclude", "model.*"], &["bias", "head.weight"], None),
        (&["--rename", "*.weight=w.*"], &["bias", "w.head"], Some(("w.model.embed", "w.head"))),
        (&["--no-metadata"], &["bias", "head.weight"], None),
    ] {
        let convert = ["convert", model, "out.safetensors", "--force"];
        let ran = sandbox.run(&[&convert, args].concat());
        assert_eq!(ran.exit, 0, "{args:?}\n{}", ran.stderr);
        let is_said = ran.stderr.contains("the name `model.embed.weight` of the tensor `head.weight`");
        assert_eq!(is_said, args.contains(&"--no-metadata"), "{args:?}\n{}", ran.stderr);
        let (_, written) = sandbox.json(&["inspect", "out.safetensors"]);
        let (_, listed) = sandbox.json(&["tensors", "out.safetensors"]);
        let listed: Vec<_> = rows(&listed["tensors"]).into_keys().collect();
        assert_eq!(listed, names, "{args:?}");
        let metadata = written["files"][0]["metadata"].as_object().cloned().unwrap_or_default();
        for name in ["model.embed.weight", "w.model.embed", "head.weight"] {
            let expected = alias.filter(|(alias, _)| *alias == name).map(|(_, kept)| kept);
            assert_eq!(metadata.get(name).and_then(Value::as_str), expected, "{args:?} {name}");
        }
    }
    let quantize = ["quantize", model, "-o", "q.gguf", "--type", "f16", "--select", "model.*"];
    let ran = sandbox.run(&quantize);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    let (_, listed) = sandbox.json(&["tensors", "q.gguf"]);
    assert_eq!(rows(&listed["tensors"]).into_keys().collect::<Vec<_>>(), ["model.embed.weight"]);
}

#[test]
fn files_beside_a_temporary_copy_are_not_those_of_the_model() {
    let sandbox = Sandbox::with_models();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/import/onnx/ext_one");
    let [model, weights] =
        ["model.onnx", "weights.bin"].map(|name| std::fs::read(folder.join(name)).unwrap());
    sandbox.write("model.onnx", &model);
    sandbox.write("weights.bin", &weights);
    sandbox.write_temporary("weights.bin", &weights);
    assert_eq!(sandbox.run(&["tensors", "model.onnx"]).exit, 0);
    assert_eq!(sandbox.run(&["sign", "model.onnx", "--key", "maker.key"]).exit, 0);
    let signed = ["convert", "model.onnx", "out.safetensors", "--key", "maker.key.pub"];
    for ran in [sandbox.run_with_input(&["tensors", "-"], &model), sandbox.run(&signed)] {
        assert_ne!(ran.exit, 0, "{}", ran.stdout);
        assert!(ran.stderr.contains("ft-companion-missing"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("/tmp/weights.bin"), "{}", ran.stderr);
    }
    assert!(!sandbox.path("out.safetensors").exists());
}
