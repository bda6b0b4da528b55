//! `.apr` files through the commands that look at them: the shared vectors, and files made here.

use std::fs;
use std::path::{Path, PathBuf};

use apr_container::{Compression, SaveOptions};
use serde_json::{Value, json};

use crate::sandbox::{Sandbox, linear};
use crate::vectors::sidecars;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/apr")
}

/// Paths of the vectors that the programs of others wrote.
fn written() -> Vec<String> {
    let entries = folder().read_dir().unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|ending| ending == "apr")).collect();
    paths.sort();
    paths.into_iter().map(|path| path.to_str().unwrap().to_owned()).collect()
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap()
}

#[test]
fn everything_that_others_wrote_is_accepted() {
    let sandbox = Sandbox::empty();
    let paths = written();
    assert!(paths.len() > 200, "{}", paths.len());
    for mode in [None, Some("--compat")] {
        let args: Vec<&str> =
            ["check"].into_iter().chain(mode).chain(paths.iter().map(String::as_str)).collect();
        let (exit, value) = sandbox.json(&args);
        assert_eq!(exit, 0, "{value:#}");
        for file in value["files"].as_array().unwrap() {
            let path = file["file"].as_str().unwrap();
            let file_name = name(path);
            let is_encrypted = file_name.contains("_password") || file_name.contains("_recipient");
            if file_name.starts_with("f0723v2") {
                assert_eq!(
                    (&file["format"], &file["version"], &file["checksum"]),
                    (&json!("apr"), &json!(2), &json!("right")),
                    "{file_name}"
                );
                continue;
            }
            let expected = match file_name {
                _ if is_encrypted => "encrypted",
                _ if file_name.contains("kitchen-sink") => "foreign",
                _ => "decoded",
            };
            assert_eq!(file["payload"], expected, "{file_name}");
            let warnings = file["warnings"].to_string();
            assert_eq!(
                warnings.contains("the signature was not verified"),
                file_name.contains("_signed"),
                "{file_name}"
            );
            assert_eq!(
                warnings.contains("training data"),
                expected == "decoded" && file_name.contains("_rforest"),
                "{file_name}: {warnings}"
            );
        }
    }
}

#[test]
fn inspecting_gives_header_and_metadata_as_they_were_written() {
    let sandbox = Sandbox::empty();
    let mut seen = 0;
    for (file_name, file) in &sidecars("apr") {
        if !file_name.starts_with("a0") || !file_name.ends_with(".apr") || seen % 4 > 0 {
            seen += 1;
            continue;
        }
        seen += 1;
        let path = folder().join(file_name);
        let (exit, found) = sandbox.json(&["inspect", path.to_str().unwrap()]);
        assert_eq!(exit, 0, "{file_name}");
        assert_eq!((&found["format"], &found["version"]), (&json!("apr"), &json!(1)));
        assert_eq!(found["verified"], Value::Null);
        let metadata = &found["metadata"];
        for (key, expected) in file["metadata"].as_object().unwrap() {
            assert_eq!(rounded(&metadata[key]), rounded(expected), "{file_name}: {key}");
        }
        assert_eq!(found["file_bytes"], path.metadata().unwrap().len(), "{file_name}");
    }
    assert!(seen > 200);
}

/// The value with every number that is not whole as one of 32 bits: `apr` prints those of 32 bits with their own digits.
fn rounded(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => json!((number.as_f64().unwrap() as f32).to_string()),
        Value::Array(values) => values.iter().map(rounded).collect(),
        Value::Object(members) => members.iter().map(|(key, value)| (key.clone(), rounded(value))).collect(),
        other => other.clone(),
    }
}

#[test]
fn hostile_files_get_the_reviewed_verdicts() {
    let sandbox = Sandbox::empty();
    for (file_name, verdict) in sidecars("apr").iter().filter(|(name, _)| name.starts_with("hostile/")) {
        let path = folder().join(file_name);
        let path = path.to_str().unwrap();
        let (exit, value) = sandbox.json(&["check", path]);
        let problem = &value["files"][0]["problems"][0];
        let (load, inspect) = (&verdict["strict"]["load"], &verdict["strict"]["inspect"]);
        // Nothing of an empty file says that it is one of ours. A signature is reported, not refused: `check` loads nothing.
        let expected = match load["code"].as_str() {
            _ if file_name.contains("empty_file") => json!("st-header-too-small"),
            // The header and the places of all parts are looked at first.
            _ if inspect.is_object() => inspect["code"].clone(),
            Some("ac-signed") => Value::Null,
            _ => load["code"].clone(),
        };
        // Where the header has a word to say, the checksum may have the last one: `check` reads all of a file.
        let is_damage = problem["code"] == "ac-checksum" && load["code"] == "ac-checksum";
        assert!(problem["code"] == expected || is_damage, "{file_name}: {problem}");
        assert_eq!(exit, if expected.is_null() { 0 } else { exit.max(3) }, "{file_name}");
        for command in [&["inspect"][..], &["inspect", "--verify"], &["tensors"], &["check", "--compat"]] {
            let ran = sandbox.run(&[command, &[path]].concat());
            assert!((0..=6).contains(&ran.exit), "{command:?} {file_name}: {}\n{}", ran.exit, ran.stderr);
            assert!(!ran.stderr.contains("internal"), "{command:?} {file_name}: {}", ran.stderr);
        }
    }
}

#[test]
fn every_flipped_bit_of_a_file_is_refused() {
    let sandbox = Sandbox::empty();
    for compression in [Compression::None, Compression::ZstdDefault] {
        let good = linear(&SaveOptions::default().with_compression(compression));
        let names: Vec<String> = (0..good.len()).map(|at| format!("flip-{at}.apr")).collect();
        for (at, name) in names.iter().enumerate() {
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 8);
            sandbox.write(name, &bad);
        }
        let args: Vec<&str> = ["check"].into_iter().chain(names.iter().map(String::as_str)).collect();
        let (_, value) = sandbox.json(&args);
        for file in value["files"].as_array().unwrap() {
            assert_eq!(file["ok"], false, "{}", file["file"]);
        }
    }
}

#[test]
fn a_damaged_file_is_told_from_an_unsound_one() {
    let sandbox = Sandbox::with_models();
    let mut bytes = sandbox.read("model.apr");
    let last = bytes.len() - 5;
    bytes[last] ^= 1;
    sandbox.write("damaged.apr", &bytes);
    assert_eq!(sandbox.run(&["check", "damaged.apr"]).exit, 4);
    assert_eq!(sandbox.run(&["inspect", "damaged.apr"]).exit, 0, "only header and metadata are read");
    assert_eq!(sandbox.run(&["inspect", "damaged.apr", "--verify"]).exit, 4);
    assert_eq!(sandbox.run(&["predict", "damaged.apr", "-i", "rows.csv"]).exit, 4);
    assert_eq!(sandbox.run(&["convert", "damaged.apr", "out.safetensors"]).exit, 4);
    sandbox.write("short.apr", &bytes[..100]);
    assert_eq!(sandbox.run(&["check", "short.apr"]).exit, 3);
    let (exit, value) = sandbox.json(&["inspect", "short.apr"]);
    assert_eq!((exit, value["error"]["code"].as_str()), (3, Some("ac-truncated")));
}

#[test]
fn protected_files_are_described_and_not_used() {
    let sandbox = Sandbox::with_models();
    let path = |part: &str| written().into_iter().find(|path| path.contains(part)).unwrap();
    let encrypted = path("_password");
    let signed = path("linreg_none_signed");
    let (exit, value) = sandbox.json(&["inspect", &encrypted, "--verify"]);
    assert_eq!((exit, &value["verified"]["payload"]), (0, &json!("encrypted")));
    for args in [
        &["predict", &encrypted, "-i", "rows.csv"][..],
        &["convert", &encrypted, "out.apr"],
        &["tensors", &encrypted],
        &["diff", &encrypted, "model.apr"],
    ] {
        let (exit, value) = sandbox.json(args);
        assert_eq!((exit, &value["error"]["code"]), (6, &json!("ac-encrypted")), "{args:?}");
    }
    let foreign = path("kitchen-sink");
    assert_eq!(sandbox.run(&["check", &foreign]).exit, 0, "the checksum is right");
    for args in [&["predict", &foreign, "-i", "rows.csv"][..], &["tensors", &foreign]] {
        let (exit, value) = sandbox.json(args);
        assert_eq!((exit, &value["error"]["code"]), (6, &json!("cli-foreign-payload")), "{args:?}");
    }
    assert_eq!(sandbox.run(&["tensors", &signed]).exit, 0, "looking is allowed");
    for args in [&["predict", &signed, "-i", "rows.csv"][..], &["convert", &signed, "out.apr"]] {
        let (exit, value) = sandbox.json(args);
        assert_eq!((exit, &value["error"]["code"]), (4, &json!("ac-signed")), "{args:?}");
        assert!(value["error"]["help"].as_str().unwrap().contains("--allow-unverified"), "{args:?}");
    }
    let (exit, value) = sandbox.json(&["convert", &signed, "out.apr", "--allow-unverified"]);
    assert_eq!((exit, &value["lost"]), (0, &json!(["the signature"])));
}

#[test]
fn a_payload_that_expands_too_far_needs_permission() {
    let sandbox = Sandbox::with_models();
    // Eight million zeros: two numbers of a model's coefficients differ from nothing.
    let zeros = apr_models::Vector::from_vec(vec![0.0; 2_000_000]);
    let model = apr_models::LinearRegression::from_parts(zeros, 1.0).unwrap();
    let options = SaveOptions::default().with_compression(Compression::ZstdDefault);
    let file = apr_container::to_vec(&model, apr_container::ModelType::LinearRegression, &options).unwrap();
    sandbox.write("zeros.apr", &file);
    let (exit, value) = sandbox.json(&["check", "zeros.apr"]);
    let problem = &value["files"][0]["problems"][0];
    assert_eq!((exit, &problem["code"]), (3, &json!("ac-expansion")));
    assert!(problem["help"].as_str().unwrap().contains("--no-size-limit"));
    assert!(sandbox.run(&["explain", "ac-expansion"]).stdout.contains("--no-size-limit"));
    for command in [
        &["check", "zeros.apr"][..],
        &["inspect", "--verify", "zeros.apr"],
        &["convert", "zeros.apr", "out.apr"],
    ] {
        assert_eq!(sandbox.run(command).exit, 3, "{command:?}");
        assert_eq!(sandbox.run(&[command, &["--no-size-limit"]].concat()).exit, 0, "{command:?}");
    }
}

#[test]
fn standard_input_may_be_an_apr_file() {
    let sandbox = Sandbox::with_models();
    for file in ["model.apr", "tensors.apr"] {
        let bytes = sandbox.read(file);
        for args in [
            &["inspect", "-", "--verify"][..],
            &["check", "-"],
            &["tensors", "-", "--digest"],
            &["diff", "-", file],
        ] {
            let ran = sandbox.run_with_input(args, &bytes);
            assert_eq!(ran.exit, 0, "{args:?} {file}\n{}", ran.stderr);
        }
        let ran = sandbox.run_with_input(&["check", "-"], &bytes[..60]);
        assert_eq!(ran.exit, 3);
        assert!(ran.stderr.contains("file:   -\n"), "{}", ran.stderr);
    }
    assert!(sandbox.leftovers().is_empty());
}

#[test]
fn inspecting_reads_no_payload() {
    let sandbox = Sandbox::with_models();
    let mut bytes = sandbox.read("tensors.apr");
    // The last tensor's bytes, the padding and the checksum: damage there shows only when asked for.
    let at = bytes.len() - 60;
    bytes[at] ^= 1;
    sandbox.write("damaged.apr", &bytes);
    assert_eq!(sandbox.run(&["inspect", "damaged.apr"]).exit, 0);
    assert_eq!(sandbox.run(&["inspect", "damaged.apr", "--verify"]).exit, 4);
    assert_eq!(sandbox.run(&["check", "damaged.apr"]).exit, 4);
}

#[test]
fn hostile_metadata_are_escaped() {
    const HOSTILE: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}gpj.exe\n";
    let sandbox = Sandbox::with_models();
    let mut options = SaveOptions::default();
    options.metadata.custom.insert(HOSTILE.to_owned(), HOSTILE);
    options.metadata.custom.insert("nested".to_owned(), vec![HOSTILE.into()]);
    options.metadata.custom.insert("apr.classes".to_owned(), vec![HOSTILE.into()]);
    sandbox.write("hostile.apr", &linear(&options));
    for args in [
        &["inspect", "hostile.apr"][..],
        &["inspect", "hostile.apr", "-v", "--verify"],
        &["check", "hostile.apr"],
        &["diff", "hostile.apr", "model.apr"],
        &["convert", "hostile.apr", "out.safetensors"],
        &["inspect", "out.safetensors"],
    ] {
        for args in [args.to_vec(), [args, &["--json"]].concat()] {
            let ran = sandbox.run(&args);
            let shown = ran.stdout + &ran.stderr;
            assert!(
                !shown.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'),
                "{args:?}\n{shown:?}"
            );
        }
    }
    let (_, value) = sandbox.json(&["inspect", "hostile.apr"]);
    assert_eq!(value["metadata"]["custom"][HOSTILE], HOSTILE, "JSON says exactly what the file says");
}

#[test]
fn every_flipped_bit_of_an_apr_file_is_reported_as_damage() {
    let sandbox = Sandbox::empty();
    sandbox.write("table.csv", b"x,y\n1,2\n2,4\n3,7\n");
    let train = ["train", "linear-regression", "--data", "table.csv", "--target", "y", "-o", "v1.apr"];
    assert_eq!(sandbox.run(&train).exit, 0);
    assert_eq!(sandbox.run(&["convert", "v1.apr", "v2.apr", "--format", "apr2"]).exit, 0);
    for name in ["v1.apr", "v2.apr"] {
        let whole = sandbox.read(name);
        let flips: Vec<(usize, u32)> = match name {
            "v1.apr" => (0..whole.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))).collect(),
            _ => (0..whole.len()).map(|at| (at, at as u32 % 8)).collect(),
        };
        let mut n_short = 0;
        for (chunk, flips) in flips.chunks(250).enumerate() {
            let names: Vec<String> =
                flips.iter().map(|(at, bit)| format!("{chunk}-{at}-{bit}-{name}")).collect();
            for (flipped, &(at, bit)) in names.iter().zip(flips) {
                let mut bytes = whole.clone();
                bytes[at] ^= 1 << bit;
                sandbox.write(flipped, &bytes);
            }
            let args: Vec<&str> = ["check"].into_iter().chain(names.iter().map(String::as_str)).collect();
            let (_, value) = sandbox.json(&args);
            for file in value["files"].as_array().unwrap() {
                match file["problems"][0]["code"].as_str() {
                    Some("ac-checksum" | "ac-v2-header-checksum") => {}
                    // A wrong length: a file that was cut short, or to which bytes were added, looks the same.
                    Some("ac-truncated" | "ac-unowned") => n_short += 1,
                    other => panic!("{}: {other:?}", file["file"]),
                }
            }
            names.iter().for_each(|name| fs::remove_file(sandbox.path(name)).unwrap());
        }
        assert!(n_short * 20 < flips.len(), "{name}: {n_short} of {} flips", flips.len());
    }
    let mut bytes = sandbox.read("v1.apr");
    bytes[40] ^= 4;
    sandbox.write("damaged.apr", &bytes);
    for command in ["check", "inspect", "tensors", "predict"] {
        let rows = if command == "predict" { &["--input", "table.csv"][..] } else { &[] };
        let (exit, value) = sandbox.json(&[&[command, "damaged.apr"], rows].concat());
        assert_eq!(exit, 4, "{command}: {value}");
    }
}
