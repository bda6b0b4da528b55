//! Models in fewer bits.

use std::fs;
use std::path::Path;

use apr_quant::{Dtype, Quantizer, dequantize};
use gguf_core::{Endian, Entry, Gguf, GgufBuilder};
use serde_json::{Value, json};

use crate::sandbox::{Sandbox, Tensor, file};

/// A file among the vectors of the workspace.
fn vector(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/gguf/files").join(name))
        .unwrap()
}

fn quantize(sandbox: &Sandbox, args: &[&str]) -> Value {
    let (exit, value) = sandbox.json(&[&["quantize"], args].concat());
    assert_eq!(exit, 0, "{args:?}\n{value:#}");
    value
}

/// Name, type before, type after and reason of each tensor.
fn rows(report: &Value) -> Vec<[&str; 4]> {
    let rows = report["tensors"].as_array().unwrap();
    rows.iter().map(|row| ["name", "from", "to", "reason"].map(|key| row[key].as_str().unwrap())).collect()
}

/// A safetensors file of these matrices, each number another.
pub(crate) fn matrices(tensors: &[(&str, &[usize])]) -> Vec<u8> {
    let tensors: Vec<Tensor> = tensors
        .iter()
        .map(|(name, shape)| {
            let count: usize = shape.iter().product();
            let numbers = (0..count).map(|idx| ((idx as f32) * 0.37).sin());
            Tensor::new(name, Dtype::F32, shape, numbers.flat_map(f32::to_le_bytes).collect())
        })
        .collect();
    file(&tensors, &[("format".to_owned(), "pt".to_owned())].into())
}

#[test]
fn files_are_those_of_llama_quantize() {
    let sandbox = Sandbox::with_models();
    for target in ["BF16", "Q8_0", "Q4_0", "Q4_1", "Q4_K_M"] {
        let output = format!("{target}.gguf");
        quantize(&sandbox, &["tiny_llama.gguf", "--type", target, "-o", &output, "--no-provenance"]);
        assert!(sandbox.read(&output) == vector(&format!("tiny_llama_{target}.gguf")), "{target}");
    }
    quantize(&sandbox, &["tiny_llama.gguf", "-t", "q4_0", "--pure", "-o", "p.gguf", "--no-provenance"]);
    assert!(sandbox.read("p.gguf") == vector("tiny_llama_Q4_0_pure.gguf"));
    // What is recorded besides comes last, and is the only difference.
    quantize(&sandbox, &["tiny_llama.gguf", "-t", "q8_0", "-o", "r.gguf"]);
    let (recorded, plain) = (sandbox.read("r.gguf"), sandbox.read("Q8_0.gguf"));
    let (recorded, plain) = (Gguf::from_bytes(&recorded).unwrap(), Gguf::from_bytes(&plain).unwrap());
    let added: Vec<_> = recorded.entries()[plain.entries().len()..].iter().map(Entry::key).collect();
    assert_eq!(
        added,
        [
            "apr.quantize.tool",
            "apr.quantize.options",
            "apr.quantize.source.format",
            "apr.quantize.source.sha256"
        ]
    );
    let digest = recorded.get("apr.quantize.source.sha256").unwrap();
    assert_eq!(digest.as_str(), Some("7d784fa642049956e4f0d853813f3d4729642ddeeefa8678f3dc8502940b4a46"));
    assert_eq!(recorded.get("apr.quantize.options").unwrap().as_str(), Some("--type q8_0"));
    for (a, b) in recorded.tensors().iter().zip(plain.tensors()) {
        assert!(recorded.tensor_data(a) == plain.tensor_data(b), "{}", a.name());
    }
}

#[test]
fn options_change_single_tensors() {
    let sandbox = Sandbox::with_models();
    let base = ["tiny_llama.gguf", "-o", "o.gguf", "--dry-run", "--type", "q4_0"];
    let report = quantize(
        &sandbox,
        &[
            &base[..],
            &["--tensor-type", "attn_[qk]=q8_0", "--tensor-type", "attn=q5_1", "--leave-output-tensor"],
        ]
        .concat(),
    );
    let rows = rows(&report);
    assert!(rows.contains(&["output.weight", "F32", "F32", "kept-output"]));
    assert!(rows.contains(&["blk.0.attn_q.weight", "F32", "Q8_0", "override"]));
    assert!(rows.contains(&["blk.0.attn_v.weight", "F32", "Q5_1", "override"]));
    assert!(rows.contains(&["blk.0.attn_norm.weight", "F32", "F32", "kept-1d"]));
    assert!(!sandbox.path("o.gguf").exists());
    let options = ["--output-tensor-type", "f16", "--token-embedding-type", "q5_0"];
    let report = quantize(&sandbox, &[&base[..], &options].concat());
    assert_eq!(report["tensors"][0]["to"], "F16");
    assert_eq!(
        (&report["tensors"][2]["to"], &report["tensors"][2]["reason"]),
        (&json!("Q5_0"), &json!("option"))
    );
}

#[test]
fn a_model_of_no_known_kind_is_quantized_too() {
    let sandbox = Sandbox::with_models();
    let shapes: [(&str, &[usize]); 6] = [
        ("a", &[4, 256]),
        ("b", &[3, 2, 64]),
        ("c.bias", &[256]),
        ("d", &[2, 33]),
        ("e", &[0, 4]),
        ("f", &[]),
    ];
    sandbox.write("m.safetensors", &matrices(&shapes));
    let report = quantize(&sandbox, &["m.safetensors", "-t", "q4_k_m", "-o", "m.gguf"]);
    assert_eq!(report["fallbacks"], 2);
    let found = rows(&report);
    for row in [
        ["a", "F32", "Q4_K", "target"],
        ["b", "F32", "Q5_0", "fallback"],
        ["c.bias", "F32", "F32", "kept-1d"],
        ["d", "F32", "F16", "fallback"],
        ["e", "F32", "F32", "kept-empty"],
        ["f", "F32", "F32", "kept-1d"],
    ] {
        assert!(found.contains(&row), "{row:?} in {found:?}");
    }
    let written = sandbox.read("m.gguf");
    let gguf = Gguf::from_bytes(&written).unwrap();
    assert_eq!(gguf.get("general.architecture").unwrap().as_str(), Some("unknown"));
    assert_eq!(gguf.get("general.file_type").unwrap().to_u64(), Some(15));
    assert_eq!(gguf.get("format").unwrap().as_str(), Some("pt"));
    assert!(gguf.tensor("b").unwrap().shape().eq([3, 2, 64]));
    assert_eq!(report["bytes"], written.len());
    assert_eq!(sandbox.run(&["check", "m.gguf"]).exit, 0);
    // Seen again as GGUF, it still is of no known kind.
    let again = quantize(&sandbox, &["m.gguf", "-t", "f16", "-o", "again.gguf"]);
    assert!(rows(&again).contains(&["a", "Q4_K", "F16", "target"]));
}

#[test]
fn every_format_becomes_every_format() {
    let sandbox = Sandbox::with_models();
    sandbox.write("m.safetensors", &matrices(&[("a", &[4, 256]), ("b", &[5, 7])]));
    // The format's own blocks, whatever the length of a row.
    let report = quantize(&sandbox, &["m.safetensors", "-t", "q4_0", "-o", "four.apr"]);
    assert_eq!(rows(&report), [["a", "F32", "AprQ4", "target"], ["b", "F32", "AprQ4", "target"]]);
    let report = quantize(&sandbox, &["m.safetensors", "-t", "int8", "-o", "eight.apr"]);
    assert_eq!(rows(&report)[1], ["b", "F32", "AprQ8", "target"]);
    quantize(&sandbox, &["m.safetensors", "-t", "q6_k", "-o", "six.apr"]);
    for name in ["four.apr", "eight.apr", "six.apr"] {
        assert_eq!(sandbox.run(&["check", name]).exit, 0, "{name}");
        let back = quantize(&sandbox, &[name, "-t", "f32", "-o", "back.safetensors", "--force"]);
        assert!(rows(&back).iter().all(|row| row[2] == "F32"), "{name}");
        // Numbers that were blocks once are the same blocks again.
        let target = back["input"].as_str().unwrap().split('.').next().unwrap();
        let target =
            ["q4_0", "q8_0", "q6_k"][["four", "eight", "six"].iter().position(|n| *n == target).unwrap()];
        quantize(&sandbox, &["back.safetensors", "-t", target, "-o", "again.apr", "--force"]);
        let diff = sandbox.run(&["diff", name, "again.apr", "--ignore-metadata"]);
        assert!(target == "q6_k" || diff.exit == 0, "{name}\n{}", diff.stdout);
    }
    // From the format's own blocks to ggml's: other bytes, the same numbers.
    let report = quantize(&sandbox, &["four.apr", "-t", "q4_0", "-o", "g.gguf"]);
    assert_eq!(rows(&report)[0], ["a", "AprQ4", "Q4_0", "target"]);
    quantize(&sandbox, &["sharded", "-t", "bf16", "-o", "s.safetensors"]);
    let (_, listed) = sandbox.json(&["inspect", "s.safetensors"]);
    let digests = listed["files"][0]["metadata"]["apr.quantize.source.sha256"].as_str().unwrap();
    assert!(digests.lines().count() > 1 && digests.contains("  model-00001-of-"), "{digests}");
}

#[test]
fn what_cannot_be_is_refused_and_nothing_is_written() {
    let sandbox = Sandbox::with_models();
    let mut values = vec![0.5_f32; 96];
    values[70] = f32::INFINITY;
    let data = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    sandbox.write("inf.safetensors", &file(&[Tensor::new("w", Dtype::F32, &[3, 32], data)], &[].into()));
    sandbox.write("q8.gguf", &vector("tiny_llama_Q8_0.gguf"));
    sandbox.write("part.gguf", &vector("shard-00001-of-00002.gguf"));
    sandbox.write("bad.dat", &[1, 0, 0, 0, 255, 0, 0, 0]);
    let before = sandbox.listing();
    for (args, exit, code) in [
        (&["tiny_llama.gguf", "-t", "q9", "-o", "x.gguf"][..], 2, "cv-target"),
        (&["tiny_llama.gguf", "-t", "iq2_xs", "-o", "x.gguf"], 2, "cv-read-only-target"),
        (&["tiny_llama.gguf", "-t", "q4_1", "-o", "x.apr"], 2, "cv-not-in-container"),
        (&["tiny_llama.gguf", "-t", "q8_0", "-o", "x.safetensors"], 2, "cv-not-in-container"),
        (&["tiny_llama.gguf", "-t", "q8_0", "-o", "x.gguf", "--tensor-type", "a"], 2, "cv-override"),
        (
            &["tiny_llama.gguf", "-t", "q8_0", "-o", "x.gguf", "--tensor-type", "a=iq1_s"],
            6,
            "q-not-quantizable",
        ),
        (&["tiny_llama.gguf", "-t", "q2_k_s", "-o", "x.gguf", "--imatrix", "bad.dat"], 3, "cv-importance"),
        (&["q8.gguf", "-t", "q4_0", "-o", "x.gguf"], 2, "cv-requantize"),
        (&["part.gguf", "-t", "q8_0", "-o", "x.gguf"], 2, "cli-usage"),
        (&["model.safetensors", "-t", "q8_0", "-o", "x.gguf"], 2, "cli-not-carried"),
        (&["model.safetensors", "-t", "q8_0", "-o", "x"], 2, "cli-usage"),
        (&["model.safetensors", "-t", "q8_0", "-o", "x.bin"], 2, "cli-output-format"),
        (&["model.safetensors", "-t", "q8_0", "-o", "x.gguf", "--select", "none"], 2, "cli-nothing-selected"),
        (&["model.apr", "-t", "q4_0", "-o", "x.apr"], 2, "cli-nothing-converted"),
        (&["model.apr", "-t", "q4_0", "-o", "x.apr", "--dry-run"], 2, "cli-nothing-converted"),
        (&["q8.gguf", "-t", "q8_0", "-o", "x.gguf"], 2, "cli-nothing-converted"),
        (&["inf.safetensors", "-t", "q8_0", "-o", "x.gguf"], 3, "q-non-finite"),
        (&["inf.safetensors", "-t", "q8_0", "-o", "q8.gguf", "--force"], 3, "q-non-finite"),
        (&["inf.safetensors", "-t", "q8_0", "-o", "x.apr"], 3, "q-non-finite"),
        (&["inf.safetensors", "-t", "f16", "-o", "x.safetensors"], 3, "q-non-finite"),
        (&["tiny_llama.gguf", "-t", "q8_0", "-o", "model.safetensors"], 2, "cli-output-exists"),
    ] {
        let (found, value) = sandbox.json(&[&["quantize"], args].concat());
        let error = &value["error"];
        assert!(found == exit && error["code"] == code, "{args:?}: {found} {error:#}");
        if code == "q-non-finite" {
            assert_eq!(error["tensor"], "w");
            assert!(error.to_string().contains("element 70 "), "{error:#}");
        }
        assert_eq!(sandbox.listing(), before, "{args:?}");
    }
    assert!(sandbox.leftovers().is_empty());
}

#[test]
fn importance_is_used_and_recorded() {
    let sandbox = Sandbox::with_models();
    let mut imatrix = 1_i32.to_le_bytes().to_vec();
    let name = "blk.0.ffn_up.weight";
    imatrix.extend((name.len() as i32).to_le_bytes());
    imatrix.extend(name.as_bytes());
    imatrix.extend(1_i32.to_le_bytes());
    imatrix.extend(64_i32.to_le_bytes());
    imatrix.extend((0..64).flat_map(|idx| (idx as f32).to_le_bytes()));
    sandbox.write("columns.dat", &imatrix);
    let base = ["tiny_llama.gguf", "-t", "q4_0", "--no-provenance"];
    quantize(&sandbox, &[&base[..], &["-o", "a.gguf", "--imatrix", "columns.dat"]].concat());
    quantize(&sandbox, &[&base[..], &["-o", "b.gguf"]].concat());
    let (a, b) = (sandbox.read("a.gguf"), sandbox.read("b.gguf"));
    let (a, b) = (Gguf::from_bytes(&a).unwrap(), Gguf::from_bytes(&b).unwrap());
    assert_eq!(a.get("quantize.imatrix.file").unwrap().as_str(), Some("columns.dat"));
    assert_eq!(a.get("quantize.imatrix.entries_count").unwrap().to_u64(), Some(1));
    for (weighed, plain) in a.tensors().iter().zip(b.tensors()) {
        let same = a.tensor_data(weighed) == b.tensor_data(plain);
        assert_eq!(same, weighed.name() != name, "{}", weighed.name());
    }
    // Of another model.
    imatrix.truncate(imatrix.len() - 4);
    let at = imatrix.len() - 63 * 4 - 4;
    imatrix[at..at + 4].copy_from_slice(&63_i32.to_le_bytes());
    sandbox.write("other.dat", &imatrix);
    let args = [&["quantize"], &base[..], &["-o", "c.gguf", "--imatrix", "other.dat"]].concat();
    let (exit, value) = sandbox.json(&args);
    assert_eq!((exit, &value["error"]["code"]), (2, &json!("cv-importance-length")));
}

#[test]
fn a_model_can_be_piped_and_can_replace_itself() {
    let sandbox = Sandbox::with_models();
    let ran = sandbox.run(&[
        "quantize",
        "tiny_llama.gguf",
        "-t",
        "q8_0",
        "-o",
        "tiny_llama.gguf",
        "--force",
        "--no-provenance",
    ]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    assert!(sandbox.read("tiny_llama.gguf") == vector("tiny_llama_Q8_0.gguf"));
    let line =
        "apr quantize tiny_llama.gguf -t bf16 -o - | apr quantize - -t q8_0 --format gguf -o piped.gguf";
    let ran = sandbox.shell(line);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    let piped = sandbox.read("piped.gguf");
    assert_eq!(Gguf::from_bytes(&piped).unwrap().tensors().len(), 12);
    assert!(GgufBuilder::copy_of(Gguf::from_bytes(&piped).unwrap().header()).is_ok());
}

/// The same file in the other byte order; of blocks, the bytes at these places of each are turned round.
fn big_endian(file: &[u8]) -> Vec<u8> {
    let gguf = Gguf::from_bytes(file).unwrap();
    let mut builder = GgufBuilder::with_endian(Endian::Big);
    builder.copy_entries(gguf.header()).unwrap();
    let data = gguf.tensors().iter().map(|info| {
        builder.copy_tensor(info).unwrap();
        let (period, width, places): (usize, usize, &[usize]) = match info.dtype() {
            Dtype::F32 => (4, 4, &[0]),
            Dtype::Bf16 => (2, 2, &[0]),
            Dtype::Q8_0 => (34, 2, &[0]),
            Dtype::Q4_1 => (20, 2, &[0, 2]),
            Dtype::Q6_K => (210, 2, &[208]),
            other => panic!("{other}"),
        };
        let mut data = gguf.tensor_data(info).unwrap().to_vec();
        for block in data.chunks_exact_mut(period) {
            places.iter().for_each(|&place| block[place..place + width].reverse());
        }
        data
    });
    let data: Vec<Vec<u8>> = data.collect();
    let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
    builder.layout().unwrap().to_vec(&data).unwrap()
}

#[test]
fn the_byte_order_of_the_source_makes_no_difference() {
    let sandbox = Sandbox::with_models();
    let plain = vector("tiny_llama_f32.gguf");
    sandbox.write("be.gguf", &big_endian(&plain));
    assert_ne!(sandbox.read("be.gguf")[8..16], plain[8..16]);
    for target in ["BF16", "Q8_0", "Q4_0", "Q4_1", "Q4_K_M"] {
        let output = format!("{target}.gguf");
        quantize(&sandbox, &["be.gguf", "--compat", "-t", target, "-o", &output, "--no-provenance"]);
        assert!(sandbox.read(&output) == vector(&format!("tiny_llama_{target}.gguf")), "{target}");
    }
    // Blocks, and numbers of 16 bits, are turned round too.
    for source in ["Q8_0", "Q4_1", "BF16"] {
        let twin = vector(&format!("tiny_llama_{source}.gguf"));
        sandbox.write("twin.gguf", &twin);
        sandbox.write("be.gguf", &big_endian(&twin));
        for (target, output) in [("f32", "x.gguf"), ("f16", "x.safetensors"), ("f32", "x.apr")] {
            let options = ["-t", target, "--no-provenance", "--force", "--compat", "-o"];
            quantize(&sandbox, &[&["twin.gguf"][..], &options, &[output]].concat());
            let expected = sandbox.read(output);
            quantize(&sandbox, &[&["be.gguf"][..], &options, &[output]].concat());
            assert!(sandbox.read(output) == expected, "{source} {target} {output}");
        }
    }
    let (exit, value) = sandbox.json(&["quantize", "be.gguf", "-t", "f32", "-o", "n.gguf"]);
    assert_eq!((exit, &value["error"]["code"]), (6, &json!("gg-byte-order")));
    // Blocks that no program writes in that order.
    let mut builder = GgufBuilder::with_endian(Endian::Big);
    builder.add_tensor("w", Dtype::IQ4_NL, &[2, 32]).unwrap();
    sandbox.write("odd.gguf", &builder.layout().unwrap().to_vec(&[&[0; 36]]).unwrap());
    let (exit, value) = sandbox.json(&["quantize", "odd.gguf", "-t", "f32", "-o", "n.gguf", "--compat"]);
    assert_eq!((exit, &value["error"]["code"]), (2, &json!("cli-not-carried")));
    assert!(!sandbox.path("n.gguf").exists());
}

#[test]
fn own_blocks_become_plain_numbers_of_gguf() {
    let sandbox = Sandbox::empty();
    // The last block of the second one is not full.
    let shapes: [(&str, &[usize]); 2] = [("a", &[4, 64]), ("b", &[5, 7])];
    sandbox.write("m.safetensors", &matrices(&shapes));
    for (target, format) in [("q4_0", Dtype::AprQ4), ("q8_0", Dtype::AprQ8)] {
        quantize(&sandbox, &["m.safetensors", "-t", target, "-o", "own.apr", "--force"]);
        for (plain, width) in [("f32", 4), ("f16", 2)] {
            let args = ["convert", "own.apr", "plain.gguf", "--dequantize", plain, "--force"];
            assert_eq!(sandbox.run(&args).exit, 0);
            let written = sandbox.read("plain.gguf");
            let gguf = Gguf::from_bytes(&written).unwrap();
            for (name, shape) in shapes {
                let count: usize = shape.iter().product();
                let values: Vec<f32> = (0..count).map(|idx| ((idx as f32) * 0.37).sin()).collect();
                let mut blocks = vec![0; format.byte_len_of_rows(count as u64, 1).unwrap() as usize];
                Quantizer::new(format).unwrap().quantize(&values, count, &mut blocks).unwrap();
                let mut back = vec![0.0; count];
                dequantize(format, &blocks, &mut back).unwrap();
                let plain_format = if width == 4 { Dtype::F32 } else { Dtype::F16 };
                let mut expected = vec![0; width * count];
                Quantizer::new(plain_format).unwrap().quantize(&back, count, &mut expected).unwrap();
                let info = gguf.tensor(name).unwrap();
                assert_eq!(info.dtype(), plain_format);
                assert!(info.shape().eq(shape.iter().map(|&dim| dim as u64)));
                assert!(gguf.tensor_data(info).unwrap() == expected, "{target} {plain} {name}");
            }
        }
        // Rows that are no whole blocks have no place there.
        let (exit, value) = sandbox.json(&["convert", "own.apr", "n.gguf"]);
        assert_eq!((exit, &value["error"]["code"]), (2, &json!("cli-not-carried")), "{target}");
        assert!(!sandbox.path("n.gguf").exists());
    }
}

#[test]
fn numbers_that_would_round_to_infinity_are_refused() {
    let sandbox = Sandbox::empty();
    let write = |name: &str, dtype: Dtype, special: &[u8]| {
        let one: &[u8] = if dtype == Dtype::Bf16 { &[0x80, 0x3f] } else { &[0, 0, 0x80, 0x3f] };
        let mut data = one.repeat(64);
        data[9 * one.len()..10 * one.len()].copy_from_slice(special);
        sandbox.write(name, &file(&[Tensor::new("w", dtype, &[2, 32], data)], &[].into()));
    };
    let f32_of = |bits: u32| bits.to_le_bytes();
    // The largest number of BF16.
    write("bf16.safetensors", Dtype::Bf16, &[0x7f, 0x7f]);
    // Half way from there to where infinity would be, the number before, and the largest there is.
    write("half.safetensors", Dtype::F32, &f32_of(0x7f7f_8000));
    write("below.safetensors", Dtype::F32, &f32_of(0x7f7f_7fff));
    write("most.safetensors", Dtype::F32, &f32_of(0x7f7f_ffff));
    // The same for F16.
    write("f16.safetensors", Dtype::F32, &65_520.0_f32.to_le_bytes());
    write("f16-below.safetensors", Dtype::F32, &65_519.99_f32.to_le_bytes());
    write("inf.safetensors", Dtype::Bf16, &[0x80, 0xff]);
    let before = sandbox.listing();
    let too_large = "q-scale-too-large";
    for (input, target, output, code) in [
        ("bf16", "f32", "x.gguf", None),
        ("bf16", "f16", "x.safetensors", Some(too_large)),
        ("bf16", "q8_0", "x.gguf", Some(too_large)),
        ("bf16", "q4_0", "x.apr", Some(too_large)),
        ("bf16", "q8_0", "x.apr", None),
        ("half", "bf16", "x.apr", Some(too_large)),
        ("half", "bf16", "x.gguf", Some(too_large)),
        ("below", "bf16", "x.safetensors", None),
        ("most", "bf16", "x.safetensors", Some(too_large)),
        ("most", "q8_0", "x.apr", Some(too_large)),
        ("f16", "f16", "x.safetensors", Some(too_large)),
        ("f16-below", "f16", "x.safetensors", None),
        ("inf", "f16", "x.safetensors", Some("q-non-finite")),
        ("inf", "q8_0", "x.apr", Some("q-non-finite")),
    ] {
        let input = format!("{input}.safetensors");
        let (exit, value) = sandbox.json(&["quantize", &input, "-t", target, "-o", output]);
        let Some(code) = code else {
            assert_eq!(exit, 0, "{input} {target} {output}: {value:#}");
            fs::remove_file(sandbox.path(output)).unwrap();
            continue;
        };
        let error = &value["error"];
        assert_eq!((exit, &error["code"]), (3, &json!(code)), "{input} {target} {output}: {error:#}");
        assert_eq!(error["tensor"], "w");
        assert!(error.to_string().contains("element 9 "), "{error:#}");
        assert_eq!(sandbox.listing(), before, "{input} {target}");
    }
}

#[test]
fn a_rule_for_no_tensor_is_noted() {
    let sandbox = Sandbox::with_models();
    let quantize = ["quantize", "tiny_llama.gguf", "-o", "q.gguf", "-t", "q8_0", "--tensor-type"];
    let ran = sandbox.run(&[&quantize[..], &["nothing=q4_0"]].concat());
    let note = "no tensor has a name that --tensor-type nothing=q4_0 applies to";
    assert!(ran.exit == 0 && ran.stderr.contains(note), "{ran:?}");
}
