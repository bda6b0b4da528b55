//! Quantized models on their way to other programs and back.

use std::fs;
use std::path::Path;

use apr_container::v2;
use apr_container::{ModelType, SaveOptions, load_from_bytes, to_vec};
use apr_models::{Activation, NeuralSequential, QuantizedBlock};
use apr_quant::{Dtype, dequantize};
use gguf_core::Gguf;
use serde_json::{Value, json};
use st_core::SafeTensors;

use crate::quantize::matrices;
use crate::sandbox::Sandbox;

pub(crate) fn json(sandbox: &Sandbox, args: &[&str]) -> Value {
    let (exit, value) = sandbox.json(args);
    assert_eq!(exit, 0, "{args:?}\n{value:#}");
    value
}

fn lost(report: &Value) -> Vec<&str> {
    report["lost"].as_array().unwrap().iter().map(|part| part.as_str().unwrap()).collect()
}

/// With a network of two layers, whose rows are whole blocks, as an `.apr` model of version 1.
pub(crate) fn with_network() -> Sandbox {
    let sandbox = Sandbox::with_models();
    let layers = [(32, Activation::Relu), (32, Activation::Softmax)];
    let model = NeuralSequential::random(64, &layers, 1).unwrap();
    let file = to_vec(&model, ModelType::NeuralSequential, &SaveOptions::default()).unwrap();
    sandbox.write("model.apr", &file);
    let rows: Vec<String> = (0..20)
        .map(|row| {
            let cell = |idx: i32| format!("{:.3}", f64::from((row * 37 + idx * 101) % 23) / 23.0);
            (0..64).map(cell).collect::<Vec<_>>().join(",")
        })
        .collect();
    sandbox.write("rows.csv", rows.join("\n").as_bytes());
    sandbox
}

/// The numbers of a tensor of an `.apr` file of version 2.
fn apr_values(file: &[u8], name: &str) -> Vec<f32> {
    v2::Container::from_bytes(file).unwrap().tensor(name).unwrap().to_f32().unwrap()
}

/// The type of a tensor of a GGUF file, and its numbers.
fn gguf_values(file: &[u8], name: &str) -> (Dtype, Vec<f32>) {
    let gguf = Gguf::from_bytes(file).unwrap();
    let info = gguf.tensor(name).unwrap();
    let mut values = vec![0.0; usize::try_from(info.element_count()).unwrap()];
    dequantize(info.dtype(), gguf.tensor_data(info).unwrap(), &mut values).unwrap();
    (info.dtype(), values)
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn quantize_inspect_and_export_run_as_documented() {
    let sandbox = with_network();
    for line in [
        "quantize model.apr --type q4_0 --output model-q4.apr",
        "inspect model-q4.apr --quantization",
        "export model-q4.apr --format gguf --output model.gguf --force",
        "export model-q4.apr --format safetensors --output model/",
    ] {
        let ran = sandbox.run(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(ran.exit, 0, "{line}\n{}", ran.stderr);
        if line.starts_with("inspect") {
            let row = ran.stdout.lines().find(|line| line.starts_with("Q4_0 (AprQ4)")).unwrap();
            assert_eq!(row.split_whitespace().collect::<Vec<_>>()[4..6], ["32", "4.5"], "{row}");
        }
    }
    let shares = json(&sandbox, &["inspect", "model-q4.apr", "--quantization"]);
    let types = shares["types"].as_array().unwrap();
    let four = types.iter().find(|row| row["type"] == "Q4_0").unwrap();
    assert_eq!((&four["dtype"], &four["block_elements"]), (&json!("AprQ4"), &json!(32)));
    assert_eq!((&four["bits_per_weight"], &four["tensors"]), (&json!(4.5), &json!(2)));

    // The same numbers, bit for bit, in blocks that ggml knows.
    let (own, ggml) = (sandbox.read("model-q4.apr"), sandbox.read("model.gguf"));
    let names: Vec<String> = v2::Container::from_bytes(&own)
        .unwrap()
        .tensors()
        .unwrap()
        .map(|view| view.name().to_owned())
        .collect();
    let mut formats = Vec::new();
    for name in &names {
        let (format, values) = gguf_values(&ggml, name);
        assert_eq!(bits(&values), bits(&apr_values(&own, name)), "{name}");
        formats.push(format);
    }
    assert_eq!(formats.iter().filter(|format| **format == Dtype::Q4_0).count(), 2);
    let plain = sandbox.read("model/model.safetensors");
    for (name, view) in SafeTensors::from_bytes(&plain).unwrap().iter() {
        let values: Vec<f32> = view.elements().unwrap().collect();
        assert_eq!(bits(&values), bits(&apr_values(&own, name)), "{name}");
    }
    // Whatever the form, the model predicts alike.
    let predictions =
        |model: &str| json(&sandbox, &["predict", model, "-i", "rows.csv"])["predictions"].clone();
    let expected = predictions("model-q4.apr");
    json(&sandbox, &["convert", "model.gguf", "back.apr"]);
    for model in ["model.gguf", "model/model.safetensors", "back.apr"] {
        assert_eq!(predictions(model), expected, "{model}");
    }
    // And 4 bits come back from GGUF as the bytes they were.
    let back = sandbox.read("back.apr");
    let (own, back) = [&own, &back].map(|file| v2::Container::from_bytes(file).unwrap()).into();
    assert!(own.tensors().unwrap().eq(back.tensors().unwrap()));
    assert!(back.index().header().flags().contains(v2::Flags::QUANTIZED));
}

#[test]
fn four_bits_keep_every_number_whatever_the_shape() {
    let sandbox = Sandbox::empty();
    let shapes: [(&str, &[usize]); 5] =
        [("a", &[4, 64]), ("b", &[5, 7]), ("c", &[2, 3, 96]), ("d", &[3, 33]), ("e", &[2, 32768])];
    sandbox.write("m.safetensors", &matrices(&shapes));
    json(&sandbox, &["quantize", "m.safetensors", "-t", "q4_0", "-o", "own.apr"]);
    let own = sandbox.read("own.apr");
    let report = json(&sandbox, &["export", "own.apr", "--format", "gguf", "-o", "m.gguf"]);
    let is_whole = |shape: &[usize]| shape.last().unwrap().is_multiple_of(32);
    let changed: Vec<&str> = lost(&report);
    let ragged = shapes.iter().filter(|(_, shape)| !is_whole(shape));
    for (said, (name, shape)) in changed.iter().zip(ragged) {
        let row = shape.last().unwrap();
        let expected = format!(
            "tensor {name} as AprQ4: it is F32, because its rows of {row} elements are not whole blocks"
        );
        assert_eq!(*said, expected);
    }
    assert_eq!(changed.len(), 2, "{changed:?}");
    let file = sandbox.read("m.gguf");
    for (name, shape) in shapes {
        let (format, values) = gguf_values(&file, name);
        assert_eq!(format, if is_whole(shape) { Dtype::Q4_0 } else { Dtype::F32 });
        assert_eq!(bits(&values), bits(&apr_values(&own, name)), "{name}");
    }
    // `convert` loses nothing: it refuses what has no place, and takes the rest.
    let (exit, value) = sandbox.json(&["convert", "own.apr", "n.gguf"]);
    assert_eq!((exit, &value["error"]["tensor"]), (2, &json!("b")));
    let whole = ["--exclude", "b", "--exclude", "d"];
    assert!(lost(&json(&sandbox, &[&["convert", "own.apr", "n.gguf"][..], &whole].concat())).is_empty());
    json(&sandbox, &["convert", "n.gguf", "back.apr"]);
    let back = sandbox.read("back.apr");
    for name in ["a", "c", "e"] {
        let data = |file: &[u8]| v2::Container::from_bytes(file).unwrap().data(name).unwrap().to_vec();
        assert!(data(&own) == data(&back), "{name}");
    }
    // `quantize` to the type that the blocks are already changes no number either, and asks for no permission.
    json(&sandbox, &["quantize", "n.gguf", "-t", "q4_0", "-o", "again.apr", "--no-provenance"]);
    assert_eq!(bits(&apr_values(&sandbox.read("again.apr"), "c")), bits(&apr_values(&own, "c")));
}

#[test]
fn one_scale_is_rounded_by_no_more_than_is_said() {
    let sandbox = Sandbox::empty();
    sandbox.write("m.safetensors", &matrices(&[("a", &[4, 64]), ("b", &[5, 7])]));
    json(&sandbox, &["quantize", "m.safetensors", "-t", "q8_0", "-o", "own.apr"]);
    let own = sandbox.read("own.apr");
    let report = json(&sandbox, &["export", "own.apr", "--format", "gguf", "-o", "m.gguf"]);
    let [of_a, of_b] = lost(&report)[..] else { panic!("{report:#}") };
    let said = "tensor a as AprQ8: it is Q8_0 with its scale rounded to 16 bits, and no number differs by more than ";
    let most: f64 = of_a.strip_prefix(said).unwrap().parse().unwrap();
    assert!(of_b.starts_with("tensor b as AprQ8: it is F32, because its rows of 7 elements"), "{of_b}");
    let file = sandbox.read("m.gguf");
    let (format, values) = gguf_values(&file, "a");
    assert_eq!(format, Dtype::Q8_0);
    let differences =
        values.iter().zip(apr_values(&own, "a")).map(|(a, b)| (f64::from(*a) - f64::from(b)).abs());
    let largest = differences.fold(0.0, f64::max);
    assert!(largest > 0.5 * most && largest <= 1.1 * most, "{largest} {most}");
    assert_eq!(bits(&gguf_values(&file, "b").1), bits(&apr_values(&own, "b")));
    assert_eq!(sandbox.json(&["convert", "own.apr", "n.gguf"]).1["error"]["code"], "cli-not-carried");

    // A scale that 16 bits hold is no loss; one that they do not hold well makes plain numbers.
    for (scale, format, n_lost) in [(0.25_f32, Dtype::Q8_0, 0), (1e-7, Dtype::F32, 1), (1e6, Dtype::F32, 1)] {
        let mut data = scale.to_le_bytes().to_vec();
        data.extend((0..64).map(|code: u8| code.wrapping_mul(5)));
        let shape = [2, 32];
        let view = v2::TensorView::new("w", v2::AprType::AprQ8, &shape, &data).unwrap();
        let options = v2::WriteOptions::new(v2::Metadata::new("unknown"));
        sandbox.write("s.apr", &v2::to_vec(&[view], &options).unwrap());
        let report = json(&sandbox, &["export", "s.apr", "--format", "gguf", "-o", "s.gguf", "--force"]);
        assert_eq!(lost(&report).len(), n_lost, "{report:#}");
        let (found, values) = gguf_values(&sandbox.read("s.gguf"), "w");
        assert_eq!(found, format, "{scale}");
        assert_eq!(bits(&values), bits(&apr_values(&sandbox.read("s.apr"), "w")), "{scale}");
    }
}

#[test]
fn tables_of_aprender_are_shown_and_exported_as_what_they_are() {
    let sandbox = Sandbox::empty();
    for release in ["a0100", "a0150", "a0723"] {
        for (kind, stored) in [("q4_0", "AprQ4"), ("q8_0", "Q8_0")] {
            let name = format!("../conformance/vectors/apr/{release}_quant-{kind}_none_plain.apr");
            let file = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap();
            sandbox.write("table.apr", &file);
            let table: QuantizedBlock = load_from_bytes(&file, ModelType::NeuralSequential).unwrap();
            let expected = bits(&table.dequantize().unwrap());
            let shares = json(&sandbox, &["inspect", "table.apr", "--quantization"]);
            let row = &shares["types"][0];
            assert_eq!((&row["type"], &row["dtype"]), (&json!(kind.to_uppercase()), &json!(stored)));
            assert_eq!((&row["block_elements"], &row["parameters"]), (&json!(32), &json!(expected.len())));
            let export = |format: &str, output: &str| {
                json(&sandbox, &["export", "table.apr", "--format", format, "-o", output, "--force"])
            };
            let report = export("gguf", "t.gguf");
            let (format, values) = gguf_values(&sandbox.read("t.gguf"), "weight");
            assert_eq!(bits(&values), expected, "{release} {kind}");
            let is_whole = table.shape().last().unwrap().is_multiple_of(32);
            assert_eq!(format == Dtype::F32, !is_whole, "{format}");
            assert_eq!(lost(&report).len(), usize::from(!is_whole), "{report:#}");
            export("safetensors", "t.safetensors");
            let plain = sandbox.read("t.safetensors");
            let view = SafeTensors::from_bytes(&plain).unwrap();
            let view = view.tensor("weight").unwrap();
            assert_eq!(bits(&view.elements::<f32>().unwrap().collect::<Vec<_>>()), expected);
            assert_eq!(view.shape(), table.shape());
            // As a model it still comes back from the tensors of its parts.
            json(&sandbox, &["convert", "table.apr", "parts.safetensors", "--force"]);
            json(&sandbox, &["convert", "parts.safetensors", "again.apr", "--force"]);
            let again: QuantizedBlock =
                load_from_bytes(&sandbox.read("again.apr"), ModelType::NeuralSequential).unwrap();
            assert_eq!(again, table);
        }
    }
}

#[test]
fn a_refused_export_leaves_no_folder() {
    let sandbox = Sandbox::with_models();
    let before = sandbox.listing();
    for args in [
        &["model.safetensors", "--format", "gguf", "-o", "gone/"][..],
        &["model.safetensors", "--format", "gguf", "-o", "gone/deeper/still/"],
        &["broken.safetensors", "--format", "safetensors", "-o", "gone/"],
        &["nothing.apr", "--format", "gguf", "-o", "gone/"],
    ] {
        assert_ne!(sandbox.run(&[&["export"], args].concat()).exit, 0, "{args:?}");
        assert!(!sandbox.path("gone").exists(), "{args:?}");
        assert_eq!(sandbox.listing(), before);
    }
    fs::create_dir(sandbox.path("there")).unwrap();
    let refused = ["export", "model.safetensors", "--format", "gguf", "-o", "there/"];
    assert_ne!(sandbox.run(&refused).exit, 0);
    assert!(sandbox.path("there").is_dir());
    json(&sandbox, &["export", "model.gguf", "--format", "gguf", "-o", "new/deeper/"]);
    assert!(sandbox.path("new/deeper/model.gguf").exists());
}

/// Runs what fails, and returns the advice.
fn advice(sandbox: &Sandbox, args: &[&str]) -> String {
    let (exit, value) = sandbox.json(args);
    assert_eq!(value["schema"], "apr.error/1", "{exit} {value:#}");
    value["error"]["help"].as_str().unwrap().to_owned()
}

#[test]
fn what_is_advised_works() {
    let sandbox = with_network();
    for (target, output) in [("q4_1", "q41.gguf"), ("q8_0", "q8.gguf"), ("q4_0", "q4.apr")] {
        json(&sandbox, &["quantize", "model.apr", "-t", target, "-o", output]);
    }
    // Blocks that .apr files lack: as plain numbers, or in GGUF.
    for input in ["q41.gguf", "q8.gguf"] {
        let help = advice(&sandbox, &["convert", input, "x.apr", "--force"]);
        assert!(help.contains("--dequantize f32") && help.contains("--format gguf"), "{help}");
        let report = json(&sandbox, &["convert", input, "x.apr", "--dequantize", "f32", "--force"]);
        assert_eq!((&report["format"], &report["version"]), (&"apr".into(), &1.into()));
        json(&sandbox, &["convert", input, "x2.apr", "--format", "gguf", "--force"]);
    }
    let help = advice(&sandbox, &["convert", "q41.gguf", "x.apr", "--force", "--format", "apr1"]);
    assert!(help.contains("--dequantize f32"), "{help}");
    json(&sandbox, &["convert", "q41.gguf", "x.apr", "--force", "--format", "apr1", "--dequantize", "f32"]);
    let help = advice(&sandbox, &["quantize", "model.apr", "-t", "q4_1", "-o", "q41.apr"]);
    assert!(help.contains("--format gguf"), "{help}");
    json(&sandbox, &["quantize", "model.apr", "-t", "q4_1", "-o", "q41.apr", "--format", "gguf"]);
    // A program around a GGUF file.
    let checkout = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let help = advice(&sandbox, &["embed", "q41.gguf", "-o", "p", "--crates", checkout]);
    let command = help.split('`').nth(1).unwrap().replace("MODEL", "q41.gguf").replace("model.apr", "e.apr");
    json(&sandbox, &command.split(' ').skip(1).collect::<Vec<_>>());
    json(&sandbox, &["embed", "e.apr", "-o", "p", "--crates", checkout]);
    // Compression of tensors: a model of plain numbers has it in version 1.
    let compressed = ["convert", "q4.apr", "z.apr", "--compression", "zstd"];
    assert!(advice(&sandbox, &compressed).contains("leave --compression out"));
    json(&sandbox, &["convert", "q4.apr", "z.apr"]);
    json(&sandbox, &["convert", "model.apr", "plain.apr", "--format", "apr2"]);
    let help = advice(&sandbox, &["convert", "plain.apr", "y.apr", "--compression", "zstd"]);
    assert!(help.contains("--format apr1"), "{help}");
    json(&sandbox, &["convert", "plain.apr", "y.apr", "--compression", "zstd", "--format", "apr1"]);
}

#[test]
fn a_conversion_to_tensors_changes_no_metadata() {
    let sandbox = with_network();
    for input in ["model.apr", "model.safetensors"] {
        json(&sandbox, &["convert", input, "two.apr", "--format", "apr2", "--exclude", "mask", "--force"]);
        let diff = json_of_any_exit(&sandbox, &["diff", input, "two.apr"]);
        assert_eq!(diff["metadata"].as_array().map(Vec::len), Some(0), "{diff:#}");
    }
    assert_eq!(sandbox.run(&["convert", "model.apr", "same.apr", "--format", "apr2"]).exit, 0);
    assert_eq!(sandbox.run(&["diff", "model.apr", "same.apr"]).exit, 0);
}

fn json_of_any_exit(sandbox: &Sandbox, args: &[&str]) -> Value {
    sandbox.json(args).1
}

#[test]
fn a_gguf_file_without_architecture_says_what_runs_it() {
    let sandbox = with_network();
    let note = "llama.cpp cannot run the model";
    for (args, predicts) in [
        (&["convert", "model.safetensors", "a.gguf", "--exclude", "mask"][..], false),
        (&["convert", "model.apr", "b.gguf"], true),
        (&["export", "model.apr", "--format", "gguf", "-o", "c.gguf"], true),
        (&["quantize", "model.apr", "-t", "q4_0", "-o", "d.gguf"], true),
        (&["quantize", "d.gguf", "-t", "q8_0", "-o", "e.gguf", "--allow-requantize"], true),
    ] {
        let ran = sandbox.run(args);
        assert_eq!(ran.exit, 0, "{args:?}\n{}", ran.stderr);
        assert!(ran.stderr.contains(note), "{args:?}\n{}", ran.stderr);
        assert_eq!(ran.stderr.contains("`apr predict` predicts with it"), predicts, "{args:?}");
    }
    for (file, is_warned) in
        [("a.gguf", true), ("e.gguf", true), ("model.gguf", false), ("tiny_llama.gguf", false)]
    {
        let report = json(&sandbox, &["check", file]);
        let warnings = report["files"][0]["warnings"].to_string();
        assert_eq!(
            (report["ok"].as_bool(), warnings.contains(note)),
            (Some(true), is_warned),
            "{file} {warnings}"
        );
    }
    let ran = sandbox.run(&["quantize", "tiny_llama.gguf", "-t", "q4_0", "-o", "f.gguf"]);
    assert!(!ran.stderr.contains("llama.cpp"), "{}", ran.stderr);
}
