//! Adapters: the files of the reference implementation, and what is refused.

use std::fs;
use std::path::{Path, PathBuf};

use hf_gguf::{Conversion, Error, Options, OutputType, PartFormat, Parts, SourceTensor, Target, Texts};
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};
use tensor_dtype::Dtype;

use crate::folder::{Folder, vectors};

fn adapters() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/hf-lora")
}

/// The texts of a model of the vectors.
fn base(name: &str) -> Texts {
    Folder::open(&vectors().join(name)).texts
}

fn options(target: Target) -> Options {
    let mut options = Options::default();
    options.target = target;
    options
}

#[test]
fn the_file_of_every_adapter_is_that_of_the_reference_in_every_type() {
    let mut n_files = 0;
    for entry in fs::read_dir(adapters()).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_dir()) {
        let name = entry.file_name().into_string().unwrap();
        let expected: Json =
            serde_json::from_slice(&fs::read(entry.path().join("expected.json")).unwrap()).unwrap();
        let base = base(expected["base"].as_str().unwrap());
        let folder = Folder::open_adapter(&entry.path());
        for (output_type, digest) in expected["sha256"].as_object().unwrap() {
            let target = Target::Type(OutputType::from_name(output_type).unwrap());
            let conversion =
                Conversion::of_adapter(&folder.texts, &base, &folder.parts, &folder.tables, &options(target));
            let conversion = conversion.unwrap_or_else(|error| panic!("{name}: {error}"));
            let tensors = folder.produce(&conversion).unwrap();
            let data: Vec<&[u8]> = tensors.iter().map(Vec::as_slice).collect();
            let file = conversion.builder().unwrap().layout().unwrap().to_vec(&data).unwrap();
            let found = hexadecimal(&Sha256::digest(&file));
            assert_eq!(&json!(found), digest, "{name} as {output_type}");
            n_files += 1;
        }
    }
    assert_eq!(n_files, 8 * 4);
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An adapter of Mistral, to be changed.
struct Changed {
    settings: Json,
    config: Json,
    tensors: Vec<SourceTensor>,
}

/// A name of PEFT: of a factor, or of another tensor.
fn peft(name: &str) -> String {
    format!("base_model.model.model.{name}")
}

/// Rows of queries, and columns of the model.
const QUERY: [u64; 2] = [48, 48];

impl Changed {
    fn new() -> Self {
        let config: Json =
            serde_json::from_slice(base("Tiny-Llama2-110K-Chat").get("config.json").unwrap()).unwrap();
        let settings = json!({"peft_type": "LORA", "r": 4, "lora_alpha": 16});
        let own = Self { settings, config, tensors: Vec::new() };
        own.pair("layers.0.self_attn.q_proj", &[4, QUERY[1]], &[QUERY[0], 4])
    }

    fn set(mut self, name: &str, value: Json) -> Self {
        self.settings[name] = value;
        self
    }

    fn tensor(mut self, name: &str, shape: &[u64]) -> Self {
        self.tensors.push(SourceTensor { name: name.into(), dtype: Dtype::F32, shape: shape.into() });
        self
    }

    fn pair(self, module: &str, a: &[u64], b: &[u64]) -> Self {
        let name = |half: &str| peft(&format!("{module}.lora_{half}.weight"));
        self.tensor(&name("A"), a).tensor(&name("B"), b)
    }

    fn class(mut self, class: &str) -> Self {
        self.config["architectures"] = json!([class]);
        self
    }

    fn convert(&self) -> Result<Conversion, Error> {
        let mut texts = Texts::new("adapter");
        texts.insert("adapter_config.json", self.settings.to_string().into_bytes());
        let mut base = Texts::new("");
        base.insert("config.json", self.config.to_string().into_bytes());
        let parts = Parts::find_adapter(&texts, ["adapter_model.safetensors"])?;
        Conversion::of_adapter(
            &texts,
            &base,
            &parts,
            core::slice::from_ref(&self.tensors),
            &Options::default(),
        )
    }

    fn code(&self) -> &'static str {
        self.convert().map_or_else(|error| error.code(), |_| "converted")
    }
}

#[test]
fn settings_that_have_no_form_are_refused() {
    let cases = [
        (Changed::new(), "converted"),
        (Changed::new().set("peft_type", json!("IA3")), "hg-adapter"),
        (Changed::new().set("use_dora", json!(true)), "hg-adapter"),
        (Changed::new().set("use_dora", json!(false)), "converted"),
        (Changed::new().set("use_dora", json!("yes")), "hg-config-value"),
        (Changed::new().set("layer_replication", json!([[0, 2]])), "hg-adapter"),
        (Changed::new().set("alpha_pattern", json!({"q_proj": 8})), "hg-adapter"),
        (Changed::new().set("alpha_pattern", json!({"q_proj": 16.0})), "converted"),
        (Changed::new().set("alpha_pattern", json!({})), "converted"),
        (Changed::new().set("init_lora_weights", json!("pissa_niter_16")), "hg-adapter"),
        (Changed::new().set("init_lora_weights", json!("gaussian")), "converted"),
        (Changed::new().set("invocation_string", json!("<tool>")), "hg-adapter"),
        (Changed::new().set("alora_invocation_tokens", json!([1, -1])), "hg-config-value"),
        (Changed::new().set("lora_alpha", json!(null)), "hg-config-missing"),
        (Changed::new().set("lora_alpha", json!("16")), "hg-config-value"),
        (Changed::new().class("ResNet"), "hg-architecture"),
    ];
    for (idx, (adapter, code)) in cases.iter().enumerate() {
        assert_eq!(adapter.code(), *code, "case {idx}");
    }
    let mut adapter = Changed::new();
    adapter.settings = json!([]);
    assert_eq!(adapter.code(), "hg-config-value");
}

#[test]
fn tensors_that_are_no_pairs_are_refused() {
    let embedding = |a: &[u64], b: &[u64]| {
        let own = Changed::new().tensor(&peft("embed_tokens.lora_embedding_A"), a);
        own.tensor(&peft("embed_tokens.lora_embedding_B"), b)
    };
    let cases = [
        (Changed::new().tensor(&peft("embed_tokens.weight"), &[256, 48]), "hg-adapter-tensor"),
        (Changed::new().tensor("base_model.model.lm_head.weight", &[256, 48]), "hg-adapter-tensor"),
        (Changed::new().tensor(&peft("layers.0.self_attn.q_proj.bias"), &[48]), "hg-adapter-tensor"),
        (
            Changed::new().tensor(&peft("layers.0.self_attn.q_proj.lora_magnitude_vector"), &[48]),
            "hg-adapter-tensor",
        ),
        (Changed::new().tensor(&peft("layers.0.input_layernorm.bias"), &[48]), "hg-adapter-tensor"),
        (Changed::new().tensor(&peft("layers.0.input_layernorm.weight"), &[48]), "converted"),
        (Changed::new().tensor(&peft("layers.0.self_attn.q_proj.base_layer.weight"), &[48, 48]), "converted"),
        (
            Changed::new().tensor(&peft("layers.0.self_attn.k_proj.lora_A.weight"), &[4, 48]),
            "hg-adapter-pair",
        ),
        (
            Changed::new().tensor(&peft("layers.0.self_attn.k_proj.lora_B.weight"), &[4, 48]),
            "hg-adapter-pair",
        ),
        (Changed::new().pair("layers.0.self_attn.v_proj", &[4, 48], &[24, 8]), "hg-adapter-rank"),
        (Changed::new().pair("layers.0.self_attn.v_proj", &[4, 48, 1], &[24, 4]), "hg-adapter-rank"),
        (Changed::new().pair("layers.0.self_attn.v_proj", &[4, 48], &[1 << 40, 4]), "hg-adapter-rank"),
        (Changed::new().pair("layers.0.self_attn.v_proj", &[0, 48], &[24, 0]), "hg-adapter-change"),
        (Changed::new().pair("layers.0.self_attn.v_proj", &[96, 48], &[24, 96]), "converted"),
        (Changed::new().pair("layers.0.self_attn.v_proj", &[4, 40], &[24, 4]), "hg-tensor-shape"),
        (Changed::new().pair("layers.0.self_attn.q_proj", &[4, 48], &[48, 4]), "hg-duplicate-tensor"),
        (Changed::new().pair("layers.0.self_attn.k_proj", &[4, 48], &[7, 4]), "hg-tensor-shape"),
        (Changed::new().pair("layers.0.self_attn.w_proj", &[4, 48], &[24, 4]), "hg-tensor-name"),
        (Changed::new().pair("layers.2.self_attn.v_proj", &[4, 48], &[24, 4]), "hg-layer"),
        (Changed::new().pair("layers.0.input_layernorm", &[4, 1], &[48, 4]), "hg-adapter-change"),
        (Changed::new().pair("embed_tokens", &[4, 48], &[256, 4]), "hg-adapter-change"),
        (embedding(&[4, 256], &[48, 4]), "converted"),
        (embedding(&[4, 256], &[256, 4]), "hg-tensor-shape"),
        (
            embedding(&[4, 256], &[48, 4]).tensor(&peft("embed_tokens.lora_A.weight"), &[4, 4]),
            "hg-duplicate-tensor",
        ),
        (Changed::new().class("GemmaForCausalLM"), "converted"),
        (
            Changed::new()
                .class("GemmaForCausalLM")
                .tensor("base_model.model.lm_head.lora_A.weight", &[4, 48]),
            "hg-adapter-tensor",
        ),
    ];
    for (idx, (adapter, code)) in cases.iter().enumerate() {
        assert_eq!(adapter.code(), *code, "case {idx}: {:?}", adapter.convert().err());
    }
}

#[test]
fn the_change_of_a_matrix_that_becomes_several_is_refused() {
    let config = base("deepseek2-lite");
    let mut adapter = Changed::new();
    adapter.config = serde_json::from_slice(config.get("config.json").unwrap()).unwrap();
    adapter.tensors.clear();
    let number = |name: &str| adapter.config[name].as_u64().unwrap();
    let rows = number("num_key_value_heads") * (number("v_head_dim") + number("qk_nope_head_dim"));
    let rank = number("kv_lora_rank");
    let adapter = adapter.pair("layers.0.self_attn.kv_b_proj", &[2, rank], &[rows, 2]);
    assert_eq!(adapter.code(), "hg-adapter-change");
}

#[test]
fn alpha_is_what_a_division_by_the_rank_expects() {
    let alpha = |adapter: Changed| {
        let conversion = adapter.convert().unwrap();
        format!("{:?}", conversion.keys().get("adapter.lora.alpha").unwrap())
    };
    assert_eq!(alpha(Changed::new()), "F32(16.0)");
    assert_eq!(alpha(Changed::new().set("use_rslora", json!(true))), "F32(32.0)");
    let several = Changed::new().pair("layers.0.self_attn.v_proj", &[8, 48], &[24, 8]);
    assert_eq!(several.set("use_rslora", json!(true)).code(), "hg-adapter");
}

#[test]
fn what_is_left_out_or_not_applied_is_told() {
    let plain = Changed::new().convert().unwrap();
    assert!(plain.remarks().is_empty());
    let norm = Changed::new().tensor(&peft("layers.0.input_layernorm.weight"), &[48]);
    assert_eq!(norm.convert().unwrap().remarks().len(), 1);
    let vision = Changed::new().pair("vision_tower.layers.0.q_proj", &[4, 8], &[8, 4]).convert().unwrap();
    assert_eq!((vision.remarks().len(), vision.outputs().len()), (1, 2));
}

#[test]
fn names_with_that_of_the_adapter_in_memory_are_those_of_factors() {
    let renamed = |from: &str, to: &str| {
        let mut adapter = Changed::new();
        adapter.tensors.iter_mut().for_each(|tensor| tensor.name = tensor.name.replace(from, to));
        adapter
    };
    let plain = Changed::new().convert().unwrap();
    let named = renamed(".weight", ".default.weight").convert().unwrap();
    assert_eq!((named.outputs(), named.notes().len()), (plain.outputs(), 1));
    assert!(plain.notes().is_empty());
    // Of several adapters none is the one that is meant.
    assert_eq!(renamed(".weight", ".other.weight").code(), "hg-adapter-tensor");
    let both = Changed::new().tensor(&peft("layers.0.self_attn.q_proj.lora_A.default.weight"), &[4, 48]);
    assert_eq!(both.code(), "hg-duplicate-tensor");
}

#[test]
fn the_files_of_an_adapter_are_those_of_its_index_or_the_single_one() {
    let find = |files: &[&str]| Parts::find_adapter(&Texts::new(""), files.iter().copied());
    let single = find(&["adapter_model.safetensors", "adapter_model-1.safetensors", "model.safetensors"]);
    let several = find(&["adapter_model-2.safetensors", "adapter_model-1.safetensors", "adapter_model.bin"]);
    assert_eq!(single.unwrap().files, ["adapter_model.safetensors"]);
    assert_eq!(several.unwrap().files, ["adapter_model-1.safetensors", "adapter_model-2.safetensors"]);
    let pickle = find(&["adapter_model.bin", "pytorch_model.bin"]).unwrap();
    assert_eq!((pickle.format, pickle.files), (PartFormat::Pickle, vec!["adapter_model.bin".to_owned()]));
    assert_eq!(find(&["model.safetensors"]).unwrap_err().code(), "hg-missing-file");
    let error = find(&["adapters.safetensors"]).unwrap_err();
    assert!(error.code() == "hg-adapter" && error.to_string().contains("MLX"), "{error}");
    let mut texts = Texts::new("");
    texts.insert(
        "adapter_model.safetensors.index.json",
        br#"{"weight_map": {"a": "b.safetensors"}}"#.to_vec(),
    );
    assert_eq!(Parts::find_adapter(&texts, ["b.safetensors"]).unwrap().files, ["b.safetensors"]);
    assert_eq!(Parts::find_adapter(&texts, []).unwrap_err().code(), "hg-missing-file");
}
