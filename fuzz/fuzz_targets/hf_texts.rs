//! Any bytes as a text of a folder of the vectors, in the place of the file that they look like: a tokenizer, its settings, an index, a
//! card, the settings of an adapter. Refused with a code of the crate, or converted.

#![no_main]

use apr_fuzz::hf::{FOLDERS, Folder};
use hf_gguf::{Conversion, ErrorKind, Options, Parts, SourceTensor};
use libfuzzer_sys::fuzz_target;

/// The settings of an adapter of the folder's model.
const ADAPTER: &str = "adapter_config.json";

fuzz_target!(|input: &[u8]| {
    let name = name_of(input);
    let having: Vec<&Folder> = FOLDERS.iter().filter(|folder| folder.texts.get(name).is_some()).collect();
    // Every folder may have a card.
    let folder = match having.len() {
        0 => &FOLDERS[input.len() % FOLDERS.len()],
        len => having[input.len() % len],
    };
    let mut texts = folder.texts.clone();
    texts.insert(name, input.to_vec());
    if name == "tokenizer.model" || name == "vocab.txt" {
        // It counts where there is no other one.
        let mut own = hf_gguf::Texts::new(folder.texts.folder());
        for (name, bytes) in texts.beginning_with("").filter(|(name, _)| *name != "tokenizer.json") {
            own.insert(name, bytes.to_vec());
        }
        texts = own;
    }
    let (names, tables): (Vec<String>, Vec<Vec<SourceTensor>>) = folder.parts.iter().cloned().unzip();
    let converted = if name == ADAPTER {
        let pairs: Vec<SourceTensor> = tables.iter().flatten().filter_map(pair).flatten().collect();
        let mut base = texts.clone();
        base.insert("config.json", folder.config.clone());
        let parts = Parts::find_adapter(&texts, ["adapter_model.safetensors"]);
        parts.and_then(|parts| Conversion::of_adapter(&texts, &base, &parts, &[pairs], &Options::default()))
    } else {
        let parts = Parts::find(&texts, names.iter().map(String::as_str));
        parts.and_then(|parts| Conversion::new(&texts, &parts, &tables, &Options::default()))
    };
    match converted {
        Ok(conversion) => {
            conversion
                .builder()
                .and_then(|builder| Ok(builder.layout()?))
                .expect("what was planned has a layout");
        }
        Err(error) => {
            let is_own = ErrorKind::CODES.contains(&error.code()) || error.code().starts_with("gg-");
            assert!(is_own, "{}", error.code());
        }
    }
});

/// The factors of a change of a matrix.
fn pair(tensor: &SourceTensor) -> Option<[SourceTensor; 2]> {
    let (&[rows, columns], Some(base)) = (&tensor.shape[..], tensor.name.strip_suffix(".weight")) else {
        return None;
    };
    let half = |half: &str, shape| SourceTensor {
        name: format!("base_model.model.{base}.lora_{half}.weight"),
        dtype: tensor.dtype,
        shape,
    };
    Some([half("A", vec![2, columns]), half("B", vec![rows, 2])])
}

/// The file that bytes look like.
fn name_of(input: &[u8]) -> &'static str {
    let has = |word: &str| input.windows(word.len()).any(|window| window == word.as_bytes());
    match input.first() {
        Some(b'{') if has("\"weight_map\"") => "model.safetensors.index.json",
        Some(b'{') if has("\"added_tokens_decoder\"") || has("\"tokenizer_class\"") => {
            "tokenizer_config.json"
        }
        Some(b'{') if has("\"lora_alpha\"") => ADAPTER,
        Some(b'{') if has("\"_from_model_config\"") => "generation_config.json",
        Some(b'{') => "tokenizer.json",
        Some(b'-') => "README.md",
        Some(b'[') if has("[PAD]") => "vocab.txt",
        Some(b'[') => "modules.json",
        _ => "tokenizer.model",
    }
}
