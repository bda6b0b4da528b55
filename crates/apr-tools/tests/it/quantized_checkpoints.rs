//! Models that are quantized already, importance of other models, damaged tensors, and what the keys say afterwards.

use std::fs;
use std::path::Path;

use apr_quant::Dtype;
use gguf_core::{Gguf, GgufBuilder, Value as Key};
use serde_json::{Value, json};

use crate::quantize::matrices;
use crate::sandbox::{Sandbox, Tensor, file};

fn report(sandbox: &Sandbox, args: &[&str]) -> Value {
    let (exit, value) = sandbox.json(args);
    assert_eq!(exit, 0, "{args:?}\n{value:#}");
    value
}

fn code(sandbox: &Sandbox, args: &[&str]) -> (i32, String, String) {
    let (exit, value) = sandbox.json(args);
    let text = |name: &str| value["error"][name].as_str().unwrap_or_default().to_owned();
    (exit, text("code"), text("help"))
}

/// A safetensors file with a matrix of codes and its scale, beside a matrix of floats.
fn coded(scale: &str, shape: &[usize]) -> Vec<u8> {
    let count: usize = shape.iter().product();
    let scales = (0..count).flat_map(|_| 3e-8_f32.to_le_bytes()).collect();
    file(
        &[
            Tensor::new("up.weight", Dtype::F8E4M3, &[64, 96], vec![0x38; 64 * 96]),
            Tensor::new(scale, Dtype::F32, shape, scales),
            Tensor::new("norm.weight", Dtype::F32, &[2, 96], vec![0; 2 * 96 * 4]),
        ],
        &[].into(),
    )
}

#[test]
fn codes_and_scales_are_never_quantized() {
    let sandbox = Sandbox::with_models();
    for (name, shape) in
        [("up.weight_scale_inv", &[2, 3][..]), ("up.weight_scale", &[]), ("up.scale_weight", &[])]
    {
        sandbox.write("fp8.safetensors", &coded(name, shape));
        for (target, output) in [("bf16", "o.safetensors"), ("q8_0", "o.gguf"), ("q4_0", "o.apr")] {
            let args = ["quantize", "fp8.safetensors", "--type", target, "-o", output];
            let (exit, code, help) = code(&sandbox, &args);
            assert_eq!((exit, &*code), (2, "cli-already-quantized"), "{name} {target}");
            assert!(help.contains("as it was before"), "{help}");
            assert!(!sandbox.path(output).exists());
        }
    }
    // Without codes and scales, the rest is converted.
    report(&sandbox, &["quantize", "fp8.safetensors", "-t", "q8_0", "-o", "rest.gguf", "--select", "norm.*"]);
    // In the folder of a language model, the command is named.
    fs::create_dir(sandbox.path("m")).unwrap();
    sandbox.write("m/model.safetensors", &coded("up.weight_scale_inv", &[2, 3]));
    sandbox.write("m/config.json", br#"{"architectures": ["LlamaForCausalLM"]}"#);
    let args = ["quantize", "m/model.safetensors", "-t", "bf16", "-o", "o.safetensors"];
    let (_, code_of, help) = code(&sandbox, &args);
    assert_eq!(code_of, "cli-already-quantized");
    assert!(help.contains("apr convert m OUT.gguf --type bf16"), "{help}");
    // The scales were lost, and the configuration says that there were some.
    let codes = [Tensor::new("up.weight", Dtype::F8E4M3, &[64, 96], vec![0x38; 64 * 96])];
    let rest = Tensor::new("norm.weight", Dtype::F32, &[2, 96], vec![0; 2 * 96 * 4]);
    let [codes] = codes;
    sandbox.write("m/model.safetensors", &file(&[codes, rest], &[].into()));
    assert_eq!(code(&sandbox, &[&args[..], &["--dry-run"]].concat()).0, 0);
    sandbox.write(
        "m/config.json",
        br#"{"model_type": "llama", "quantization_config": {"quant_method": "fp8"}}"#,
    );
    assert_eq!(code(&sandbox, &args).1, "cli-already-quantized");
}

#[test]
fn floats_of_8_bits_are_not_called_integers() {
    let sandbox = Sandbox::with_models();
    let codes = Tensor::new("a", Dtype::F8E4M3, &[2, 32], vec![0x38; 64]);
    let ints = Tensor::new("b", Dtype::I32, &[2, 32], vec![0; 256]);
    let floats = Tensor::new("c", Dtype::F32, &[2, 32], vec![0; 256]);
    sandbox.write("m.safetensors", &file(&[codes, ints, floats], &[].into()));
    let ran = sandbox.run(&["quantize", "m.safetensors", "-t", "bf16", "-o", "o.safetensors"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    let row = |name: &str| ran.stdout.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert!(row("a ").contains("kept: its type is not converted"), "{}", row("a "));
    assert!(row("b ").contains("kept: integers"), "{}", row("b "));
}

#[test]
fn a_folder_of_a_language_model_is_converted_and_not_quantized() {
    let sandbox = Sandbox::with_models();
    fs::create_dir(sandbox.path("m")).unwrap();
    sandbox.write("m/model.safetensors", &matrices(&[("a.weight", &[4, 32])]));
    sandbox.write("m/config.json", br#"{"architectures": ["LlamaForCausalLM"]}"#);
    let (exit, code_of, help) = code(&sandbox, &["quantize", "m", "-t", "q8_0", "-o", "o.gguf"]);
    assert_eq!((exit, &*code_of), (2, "cli-usage"));
    assert!(help.contains("`apr convert m o.gguf --type q8_0`"), "{help}");
    let ran = sandbox.run(&["quantize", "m/model.safetensors", "-t", "q8_0", "-o", "o.gguf"]);
    assert_eq!(ran.exit, 0);
    assert!(
        ran.stderr.contains("`apr convert m o.gguf --type q8_0` makes one that it runs"),
        "{}",
        ran.stderr
    );
    // Other formats are of tensors, and other folders have no architecture.
    report(&sandbox, &["quantize", "m", "-t", "bf16", "-o", "o.safetensors"]);
    sandbox.write("m/config.json", br#"{"hidden": 4}"#);
    report(&sandbox, &["quantize", "m", "-t", "q8_0", "-o", "p.gguf"]);
}

/// An importance file of the older kind, with these numbers of columns.
fn imatrix(entries: &[(&str, usize)]) -> Vec<u8> {
    let mut file = (entries.len() as i32).to_le_bytes().to_vec();
    for (name, columns) in entries {
        file.extend((name.len() as i32).to_le_bytes());
        file.extend(name.as_bytes());
        file.extend(1_i32.to_le_bytes());
        file.extend((*columns as i32).to_le_bytes());
        file.extend((0..*columns).flat_map(|idx| (idx as f32).to_le_bytes()));
    }
    file
}

#[test]
fn importance_of_another_model_is_refused_and_missing_entries_are_named() {
    let sandbox = Sandbox::with_models();
    sandbox.write("other.dat", &imatrix(&[("model.layers.0.up.weight", 64)]));
    let base = ["quantize", "tiny_llama.gguf", "-t", "q4_0", "--imatrix"];
    let (exit, code_of, _) = code(&sandbox, &[&base[..], &["other.dat", "-o", "o.gguf"]].concat());
    assert_eq!((exit, &*code_of), (2, "cv-importance-names"));
    assert!(!sandbox.path("o.gguf").exists());
    sandbox.write("part.dat", &imatrix(&[("blk.0.ffn_up.weight", 64)]));
    let ran = sandbox.run(&[&base[..], &["part.dat", "-o", "o.gguf"]].concat());
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    let note = "the importance matrix has no entry for";
    let line = ran.stderr.lines().find(|line| line.contains(note)).unwrap();
    assert!(line.contains("blk.0.attn_k.weight") && line.contains("more"), "{line}");
    assert!(!line.contains("token_embd"), "{line}");
    // Types that use no importance: nothing is stamped.
    let args = ["quantize", "tiny_llama.gguf", "-t", "q8_0", "--imatrix", "part.dat", "-o", "q8.gguf"];
    let ran = sandbox.run(&args);
    assert!(ran.exit == 0 && ran.stderr.contains("--imatrix has no effect"), "{}", ran.stderr);
    let file = sandbox.read("q8.gguf");
    let gguf = Gguf::from_bytes(&file).unwrap();
    assert!(gguf.entries().iter().all(|entry| !entry.key().to_str_lossy().contains("imatrix")));
    assert_eq!(gguf.get("apr.quantize.options").unwrap().as_str(), Some("--type q8_0"));
}

#[test]
fn blocks_of_apr_files_are_those_of_ggml() {
    let sandbox = Sandbox::with_models();
    let shapes: &[(&str, &[usize])] = &[("a", &[4, 64]), ("b", &[3, 96])];
    sandbox.write("m.safetensors", &matrices(shapes));
    report(&sandbox, &["quantize", "m.safetensors", "-t", "q4_0", "-o", "ggml.gguf", "--no-provenance"]);
    let own =
        report(&sandbox, &["quantize", "m.safetensors", "-t", "q4_0", "-o", "own.apr", "--no-provenance"]);
    report(&sandbox, &["export", "own.apr", "--format", "gguf", "-o", "exported.gguf"]);
    report(&sandbox, &["convert", "own.apr", "converted.gguf"]);
    let ggml = sandbox.read("ggml.gguf");
    let ggml = Gguf::from_bytes(&ggml).unwrap();
    for name in ["exported.gguf", "converted.gguf"] {
        let other = sandbox.read(name);
        let other = Gguf::from_bytes(&other).unwrap();
        for info in ggml.tensors() {
            let same = other.tensor(info.name().to_str().unwrap()).unwrap();
            assert!(ggml.tensor_data(info) == other.tensor_data(same), "{name} {}", info.name());
        }
        // Mostly Q4_0.
        assert_eq!(other.get("general.file_type"), Some(Key::U32(2)), "{name}");
    }
    assert_eq!(own["damaged"], json!([]));
}

#[test]
fn the_file_type_is_right_after_every_conversion() {
    let sandbox = Sandbox::with_models();
    let file_type = |name: &str| {
        let file = sandbox.read(name);
        Gguf::from_bytes(&file).unwrap().get("general.file_type").and_then(|value| value.to_u64())
    };
    assert_eq!(file_type("tiny_llama.gguf"), Some(0));
    report(&sandbox, &["quantize", "tiny_llama.gguf", "-t", "q4_0", "-o", "q4.apr"]);
    report(&sandbox, &["export", "q4.apr", "--format", "gguf", "-o", "a.gguf"]);
    assert_eq!(file_type("a.gguf"), Some(2));
    report(&sandbox, &["quantize", "tiny_llama.gguf", "-t", "q4_k_m", "-o", "k.gguf"]);
    report(&sandbox, &["convert", "k.gguf", "same.gguf"]);
    assert_eq!((file_type("k.gguf"), file_type("same.gguf")), (Some(15), Some(15)));
    for (to, expected) in [("f32", 0), ("f16", 1)] {
        let output = format!("{to}.gguf");
        report(&sandbox, &["convert", "k.gguf", &output, "--dequantize", to]);
        assert_eq!(file_type(&output), Some(expected), "{to}");
    }
    report(&sandbox, &["quantize", "tiny_llama.gguf", "-t", "bf16", "-o", "b.safetensors"]);
    report(&sandbox, &["convert", "b.safetensors", "b.gguf"]);
    assert_eq!(file_type("b.gguf"), Some(32));
    // The key of another file says F32; what is set by hand counts.
    report(&sandbox, &["convert", "q4.apr", "other.gguf", "--metadata-from", "tiny_llama.gguf"]);
    assert_eq!(file_type("other.gguf"), Some(2));
    report(&sandbox, &["convert", "q4.apr", "set.gguf", "--set", "general.file_type=0"]);
    assert_eq!(file_type("set.gguf"), Some(0));
}

#[test]
fn damaged_tensors_are_warned_of() {
    let sandbox = Sandbox::with_models();
    let tiny: Vec<u8> = (0..64).flat_map(|idx| (1e-8_f32 * (idx % 7) as f32).to_le_bytes()).collect();
    // One value of each block is far larger than the others.
    let outliers = (0..4096).map(|idx| if idx % 32 == 0 { 1000.0 } else { (idx as f32).sin() });
    let outliers: Vec<u8> = outliers.flat_map(f32::to_le_bytes).collect();
    let sound: Vec<u8> = (0..64).flat_map(|idx| ((idx as f32) * 0.3).sin().to_le_bytes()).collect();
    let constant: Vec<u8> = (0..64).flat_map(|_| 0.3_f32.to_le_bytes()).collect();
    let tensors = [
        Tensor::new("tiny", Dtype::F32, &[2, 32], tiny),
        Tensor::new("outliers", Dtype::F32, &[128, 32], outliers),
        Tensor::new("sound", Dtype::F32, &[2, 32], sound),
        Tensor::new("constant", Dtype::F32, &[2, 32], constant),
        Tensor::new("zeros", Dtype::F32, &[2, 32], vec![0; 256]),
    ];
    sandbox.write("m.safetensors", &file(&tensors, &[].into()));
    let made = report(&sandbox, &["quantize", "m.safetensors", "-t", "q4_0", "-o", "o.gguf"]);
    let damaged = made["damaged"].as_array().unwrap();
    assert_eq!(damaged.len(), 1, "{made:#}");
    assert_eq!((&damaged[0]["name"], &damaged[0]["damage"]), (&json!("tiny"), &json!("zeros")));
    let ran = sandbox.run(&["quantize", "m.safetensors", "-t", "q4_0", "-o", "o.gguf", "--force"]);
    assert!(
        ran.exit == 0 && ran.stderr.contains("warning: all values of tensor tiny became zero"),
        "{}",
        ran.stderr
    );
    // The advice works.
    let args = ["quantize", "m.safetensors", "-t", "q4_0", "-o", "p.gguf", "--tensor-type", "tiny=bf16"];
    assert_eq!(report(&sandbox, &args)["damaged"], json!([]));
}

/// A GGUF file with the keys of a small vocabulary.
fn vocabulary() -> Vec<u8> {
    let mut builder = GgufBuilder::new();
    builder.set("general.architecture", "qwen2").unwrap();
    builder.set("qwen2.context_length", 128_u32).unwrap();
    builder.set_texts("tokenizer.ggml.tokens", ["a", "b", "c", "d"]).unwrap();
    builder.set("tokenizer.ggml.eos_token_id", 3_u32).unwrap();
    builder.set("tokenizer.chat_template", "{{ old }}").unwrap();
    builder.add_tensor("token_embd.weight", Dtype::F32, &[4, 32]).unwrap();
    builder.layout().unwrap().to_vec(&[&[1; 512]]).unwrap()
}

#[test]
fn keys_are_set_in_their_types() {
    let sandbox = Sandbox::with_models();
    sandbox.write("m.gguf", &vocabulary());
    sandbox.write("t.jinja", b"{% for m in messages %}\n{{ m }}\n{% endfor %}\n");
    let set = |values: &[&str]| {
        let mut args = vec!["convert", "m.gguf", "o.gguf", "--force"];
        args.extend(values.iter().flat_map(|value| ["--set", *value]));
        sandbox.json(&args)
    };
    let (exit, made) = set(&[
        "tokenizer.ggml.add_bos_token=false",
        "qwen2.pooling_type=3",
        "tokenizer.ggml.eot_token_id=2",
        "tokenizer.chat_template=@t.jinja",
        "my.count=u16:7",
        "my.rate=f32:0.5",
        "my.text=str:12",
        "my.list=i32[]:[1,-2]",
        "my.at=@@home",
        "qwen2.context_length=int:256",
    ]);
    assert_eq!(exit, 0, "{made:#}");
    assert_eq!(made["metadata"]["my.count"], json!("7"));
    let file = sandbox.read("o.gguf");
    let gguf = Gguf::from_bytes(&file).unwrap();
    assert_eq!(gguf.get("tokenizer.ggml.add_bos_token"), Some(Key::Bool(false)));
    assert_eq!(gguf.get("qwen2.pooling_type"), Some(Key::U32(3)));
    assert_eq!(gguf.get("tokenizer.ggml.eot_token_id"), Some(Key::U32(2)));
    let template = gguf.get("tokenizer.chat_template").unwrap();
    assert_eq!(template.as_str(), Some("{% for m in messages %}\n{{ m }}\n{% endfor %}\n"));
    assert_eq!(gguf.get("my.count"), Some(Key::U16(7)));
    assert_eq!(gguf.get("my.rate"), Some(Key::F32(0.5)));
    assert_eq!(gguf.get("my.text").unwrap().as_str(), Some("12"));
    assert_eq!(gguf.get("my.list").unwrap().as_array().unwrap().iter().next(), Some(Key::I32(1)));
    assert_eq!(gguf.get("my.at").unwrap().as_str(), Some("@home"));
    assert_eq!(gguf.get("qwen2.context_length"), Some(Key::U32(256)));
    for (value, code) in [
        ("my.new=7", "mo-entry-untyped"),
        ("my.new=true", "mo-entry-untyped"),
        ("my.new=u8:256", "cli-not-carried"),
        ("tokenizer.ggml.add_bos_token=no", "cli-not-carried"),
        ("tokenizer.chat_template=@none.jinja", "df-io"),
    ] {
        let (exit, refused) = set(&[value]);
        assert!(exit != 0, "{value}");
        assert_eq!(refused["error"]["code"], code, "{value}");
    }
    // Other formats have texts alone.
    report(&sandbox, &["convert", "model.safetensors", "s.safetensors", "--set", "n=7", "--set", "k=u8:7"]);
    let (_, shown) = sandbox.json(&["inspect", "s.safetensors"]);
    let metadata = &shown["files"][0]["metadata"];
    assert_eq!((&metadata["n"], &metadata["k"]), (&json!("7"), &json!("u8:7")), "{shown:#}");
}

#[test]
fn check_reports_keys_that_programs_refuse() {
    let sandbox = Sandbox::with_models();
    sandbox.write("m.gguf", &vocabulary());
    let warnings = |name: &str| {
        let (exit, value) = sandbox.json(&["check", name]);
        assert_eq!(exit, 0, "{value:#}");
        value["files"][0]["warnings"].to_string()
    };
    assert_eq!(warnings("m.gguf"), "[]");
    for (value, expected) in [
        ("tokenizer.ggml.add_bos_token=str:false", "has type string; programs that know it expect bool"),
        ("tokenizer.ggml.eos_token_id=99", "is 99, and the last of 4 tokens is 3"),
        ("tokenizer.ggml.tokens=[\"a\",\"b\",\"c\"]", "has 3 tokens, and `token_embd.weight` 4 rows"),
    ] {
        report(&sandbox, &["convert", "m.gguf", "o.gguf", "--force", "--set", value]);
        assert!(warnings("o.gguf").contains(expected), "{value}: {}", warnings("o.gguf"));
    }
}

#[test]
fn check_reports_a_download_that_was_not_finished() {
    let sandbox = Sandbox::with_models();
    let mut file = sandbox.read("tiny_llama.gguf");
    let all = file.len();
    let start = Gguf::from_bytes(&file).unwrap().data_start() as usize;
    file[start + (all - start) / 50..].fill(0);
    sandbox.write("zeros.gguf", &file);
    let (exit, value) = sandbox.json(&["check", "zeros.gguf"]);
    assert_eq!(exit, 0);
    let warnings = value["files"][0]["warnings"].to_string();
    assert!(warnings.contains("a download that was not finished?"), "{warnings}");
}

#[test]
fn a_quantized_language_model_is_not_asked_to_predict() {
    let sandbox = Sandbox::with_models();
    report(&sandbox, &["quantize", "tiny_llama.gguf", "-t", "q4_0", "-o", "q4.gguf"]);
    report(&sandbox, &["quantize", "tiny_llama.gguf", "-t", "q4_0", "-o", "q4.apr"]);
    for model in ["tiny_llama.gguf", "q4.gguf", "q4.apr"] {
        for command in [&["predict", model, "-i", "rows.csv"][..], &["embed", model, "-o", "p"]] {
            let (exit, value) = sandbox.json(command);
            assert_eq!(exit, 2, "{command:?} {value}");
            let help = value["error"]["help"].as_str().unwrap();
            assert!(help.contains("a language model runs in llama.cpp"), "{command:?}: {value}");
        }
    }
}

/// The vectors of the GGUF crate have keys of the right types.
#[test]
fn sound_files_have_no_warnings_about_keys() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/gguf/files");
    let sandbox = Sandbox::with_models();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with("tiny_llama")
            && path.extension().unwrap() == "gguf"
        {
            let (_, value) = sandbox.json(&["check", path.to_str().unwrap()]);
            let warnings = value["files"][0]["warnings"].to_string();
            assert!(!warnings.contains("programs that know it"), "{}: {warnings}", path.display());
        }
    }
}
