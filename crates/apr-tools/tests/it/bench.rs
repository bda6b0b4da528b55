//! `apr bench formats`.

use alloc::collections::BTreeMap;

use st_core::Dtype;

use crate::sandbox::{Sandbox, Tensor, file};

const ALL: [&str; 14] = [
    "json",
    "messagepack",
    "bincode",
    "raw",
    "npz",
    "safetensors",
    "gguf",
    "apr-v2",
    "apr",
    "apr-lz4",
    "apr-zstd",
    "sealed",
    "arrow",
    "parquet",
];

#[test]
fn every_format_gives_back_what_it_was_given() {
    let sandbox = Sandbox::with_models();
    for data in ["normal", "rounded", "sparse"] {
        let args = ["bench", "formats", "--values", "70,1e3", "--seconds", "0", "--data", data];
        let (exit, report) = sandbox.json(&args);
        assert_eq!((exit, report["data"].as_str()), (0, Some(data)), "{report}");
        for (set, values) in report["sets"].as_array().unwrap().iter().zip([70, 1000]) {
            assert_eq!((set["values"].as_u64(), set["raw_bytes"].as_u64()), (Some(values), Some(4 * values)));
            let formats = set["formats"].as_array().unwrap();
            let names: Vec<&str> = formats.iter().map(|row| row["format"].as_str().unwrap()).collect();
            assert_eq!(names, ALL);
            for row in formats {
                assert!(row["failure"].is_null(), "{row}");
                // One of each process.
                assert_eq!(row["rounds"], 9, "{row}");
                let numbers = ["write_seconds", "read_seconds", "read_one_seconds"];
                assert!(numbers.iter().all(|name| row[name].as_f64().unwrap() > 0.0), "{row}");
            }
        }
    }
}

#[test]
fn tensors_of_a_model_are_measured_where_the_format_takes_them() {
    let sandbox = Sandbox::with_models();
    let (exit, report) = sandbox.json(&["bench", "formats", "model.safetensors", "--seconds", "0"]);
    assert_eq!(exit, 0, "{report}");
    for row in report["sets"][0]["formats"].as_array().unwrap() {
        let is_table = ["arrow", "parquet"].contains(&row["format"].as_str().unwrap());
        assert_eq!(row["failure"].is_null(), !is_table, "{row}");
    }
    let ran = sandbox.run(&["bench", "formats", "missing.safetensors"]);
    assert_eq!(ran.exit, 5, "{}", ran.stderr);
}

#[test]
fn the_page_has_the_tables_and_replaces_nothing() {
    let sandbox = Sandbox::with_models();
    let args = [
        "bench",
        "formats",
        "--values",
        "100",
        "--seconds",
        "0",
        "--only",
        "raw,json",
        "--html",
        "page.html",
    ];
    let ran = sandbox.run(&args);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("100 values in 10 arrays"), "{}", ran.stdout);
    let page = String::from_utf8(sandbox.read("page.html")).unwrap();
    assert!(
        page.starts_with("<!doctype html>") && page.contains("<td>json</td>") && !page.contains("parquet")
    );
    // Known before anything is measured.
    let ran = sandbox.run(&args);
    assert!(ran.exit == 2 && ran.stdout.is_empty(), "{} {}", ran.stdout, ran.stderr);
}

#[test]
fn values_that_are_no_numbers_come_back_where_the_format_has_them() {
    let sandbox = Sandbox::with_models();
    let values = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, f32::MIN_POSITIVE / 2.0];
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    sandbox.write("odd.safetensors", &file(&[Tensor::new("odd", Dtype::F32, &[5], bytes)], &BTreeMap::new()));
    let (exit, report) = sandbox.json(&["bench", "formats", "odd.safetensors", "--seconds", "0"]);
    assert_eq!(exit, 0, "{report}");
    for row in report["sets"][0]["formats"].as_array().unwrap() {
        assert_eq!(row["failure"].is_null(), row["format"] != "json", "{row}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn memory_is_that_of_a_process_of_its_own() {
    let sandbox = Sandbox::with_models();
    let (exit, report) =
        sandbox.json(&["bench", "formats", "--values", "1e6", "--seconds", "0", "--only", "raw,apr-lz4"]);
    assert_eq!(exit, 0, "{report}");
    let memory = |at: usize, name: &str| report["sets"][0]["formats"][at][name].as_u64().unwrap();
    // The values that are read are 4 MB; compressing holds all of them once more.
    assert!(memory(0, "read_memory") >= 4_000_000, "{report}");
    assert!(memory(1, "write_memory") >= 4_000_000, "{report}");
}

#[test]
fn arguments_out_of_range_are_refused() {
    let sandbox = Sandbox::with_models();
    for args in [
        ["--values", "9"],
        ["--values", "1e10"],
        ["--values", "1.5e1x"],
        ["--only", "pickle"],
        ["--seconds", "-1"],
    ] {
        let ran = sandbox.run(&[&["bench", "formats"], &args[..]].concat());
        assert_eq!(ran.exit, 2, "{args:?} {}", ran.stderr);
    }
}
