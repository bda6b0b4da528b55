//! The way back: every folder becomes a GGUF file, the file a folder, and that folder the same file.

use alloc::collections::BTreeMap;
use std::fs;

use hf_gguf::{
    Conversion, Dtype, Keys, Options, OutputType, Producer, Restoration, RestoreOptions, SourceTensor,
    Target, Texts,
};
use serde_json::Value as Json;

use crate::folder::{Folder, vectors};

/// A GGUF file in memory.
struct Stored {
    keys: Keys,
    tensors: Vec<SourceTensor>,
    data: Vec<Vec<u8>>,
    file: Vec<u8>,
}

impl Stored {
    fn of(folder: &Folder, options: &Options) -> Result<Self, hf_gguf::Error> {
        let conversion = folder.convert(options)?;
        let data = folder.produce(&conversion)?;
        Ok(Self::of_conversion(&conversion, data))
    }

    fn of_conversion(conversion: &Conversion, data: Vec<Vec<u8>>) -> Self {
        let tensors = conversion.outputs().iter().map(|output| SourceTensor {
            name: output.name.clone(),
            dtype: output.dtype,
            shape: output.shape.clone(),
        });
        let layout = conversion.builder().unwrap().layout().unwrap();
        let slices: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
        let file = layout.to_vec(&slices).unwrap();
        Self { keys: conversion.keys().clone(), tensors: tensors.collect(), data, file }
    }

    /// The bytes of a tensor as numbers: blocks as `F32`.
    fn numbers(&self, number: usize) -> Vec<u8> {
        let (tensor, bytes) = (&self.tensors[number], &self.data[number]);
        if !tensor.dtype.is_quantized() {
            return bytes.clone();
        }
        let mut values = vec![0.0; tensor.shape.iter().product::<u64>() as usize];
        apr_quant::dequantize(tensor.dtype, bytes, &mut values).unwrap();
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    /// Tensors and their bytes by name.
    fn sorted(&self) -> BTreeMap<&str, (&SourceTensor, &[u8])> {
        let all = self.tensors.iter().zip(&self.data);
        all.map(|(tensor, data)| (tensor.name.as_str(), (tensor, data.as_slice()))).collect()
    }

    fn restored(&self, options: &RestoreOptions) -> Result<Restoration, hf_gguf::Error> {
        let values: BTreeMap<String, Vec<f32>> = Restoration::needed(&self.tensors)
            .into_iter()
            .map(|number| {
                let values = self.data[number].as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
                (self.tensors[number].name.clone(), values.collect())
            })
            .collect();
        Restoration::new(&self.keys, &self.tensors, &values, options)
    }

    /// The folder of a restoration.
    fn folder(&self, restoration: &Restoration, name: &str) -> Folder {
        let mut producer = Producer::new();
        let numbers: Vec<Vec<u8>> = (0..self.tensors.len()).map(|number| self.numbers(number)).collect();
        let mut files = Vec::new();
        for part in restoration.parts() {
            let mut tables = Vec::new();
            let mut data = Vec::new();
            for output in &part.tensors {
                let mut bytes = Vec::new();
                producer
                    .run(
                        output,
                        restoration.inputs(),
                        |tensor, offset, out| {
                            match numbers.get(tensor) {
                                Some(bytes) => out.copy_from_slice(&bytes[offset as usize..][..out.len()]),
                                None => out.fill(0),
                            }
                            Ok::<(), hf_gguf::Error>(())
                        },
                        |piece, _| {
                            bytes.extend_from_slice(piece);
                            Ok(())
                        },
                    )
                    .unwrap();
                let (name, dtype, shape) = (output.name.clone(), output.dtype, output.shape.clone());
                tables.push(SourceTensor { name, dtype, shape });
                data.push(bytes);
            }
            files.push((part.name.clone(), (tables, data)));
        }
        let texts: Vec<(String, Vec<u8>)> =
            restoration.texts().map(|(name, bytes)| (name.to_owned(), bytes.to_vec())).collect();
        Folder::of(name, &texts, files)
    }
}

fn names() -> Vec<String> {
    let entries = fs::read_dir(vectors().join("expected")).unwrap();
    let name = |entry: fs::DirEntry| Some(entry.file_name().to_str()?.strip_suffix(".json")?.to_owned());
    let mut names: Vec<String> = entries.filter_map(|entry| name(entry.unwrap())).collect();
    names.sort();
    names
}

fn pre_of(name: &str) -> Option<String> {
    let file = fs::read(vectors().join(format!("expected/{name}.json"))).unwrap();
    let expected: Json = serde_json::from_slice(&file).unwrap();
    expected["pre_forced"].as_str().map(Into::into)
}

/// Of a pickle the order of the tensors is that of the file, which names in safetensors do not have.
const ANOTHER_ORDER: [&str; 1] = ["llama-from-bin"];

/// Takes a key out.
fn remove(keys: &mut Keys, name: &str) {
    let mut left = Keys::new();
    for key in keys.iter().filter(|key| key.name != name) {
        left.set(key.name.clone(), key.value.clone());
    }
    *keys = left;
}

#[test]
fn every_folder_comes_back_as_the_same_file() {
    for name in names() {
        for output_type in [OutputType::F32, OutputType::F16, OutputType::Bf16] {
            let mut options = Options::default();
            options.pre = pre_of(&name);
            options.target = Target::Type(output_type);
            let stored = Stored::of(&Folder::open(&vectors().join(&name)), &options).unwrap();
            let restoration = stored.restored(&RestoreOptions::default());
            let restoration = restoration.unwrap_or_else(|error| panic!("{name} {output_type}: {error}"));
            assert_eq!(restoration.output_type(), Some(output_type), "{name}");
            // The name of the folder does not count.
            let folder = stored.folder(&restoration, "another-name-7B-chat");
            options.pre = restoration.needs_pre().map(Into::into);
            let again = Stored::of(&folder, &options);
            let again = again.unwrap_or_else(|error| panic!("{name} {output_type}: {error}"));
            if ANOTHER_ORDER.contains(&name.as_str()) {
                assert_eq!(restoration.differences(), ["tensors are in another order"], "{name}");
                assert_eq!((&again.keys, again.sorted()), (&stored.keys, stored.sorted()), "{name}");
            } else {
                assert!(again.file == stored.file, "{name} {output_type}: {:?}", restoration.differences());
                assert!(restoration.differences().is_empty(), "{name}: {:?}", restoration.differences());
            }
        }
    }
}

/// Blocks are the same again, but for those whose scale is no normal number of 16 bits.
#[test]
fn blocks_come_back_from_numbers_of_32_bits() {
    for name in names().into_iter().filter(|name| !ANOTHER_ORDER.contains(&name.as_str())) {
        let mut options = Options::default();
        options.pre = pre_of(&name);
        options.target = Target::Type(OutputType::Q8_0);
        let stored = Stored::of(&Folder::open(&vectors().join(&name)), &options).unwrap();
        let mut wanted = RestoreOptions::default();
        wanted.dtype = Some(Dtype::F32);
        let restoration = stored.restored(&wanted).unwrap();
        assert!(restoration.differences().is_empty(), "{name}: {:?}", restoration.differences());
        options.pre = restoration.needs_pre().map(Into::into);
        let again = Stored::of(&stored.folder(&restoration, "x"), &options).unwrap();
        assert_eq!(again.keys, stored.keys, "{name}");
        for ((tensor, data), again) in stored.tensors.iter().zip(&stored.data).zip(&again.data) {
            if tensor.dtype != Dtype::Q8_0 {
                assert!(data == again, "{name} {}", tensor.name);
                continue;
            }
            for (old, new) in data.chunks_exact(34).zip(again.chunks_exact(34)) {
                let is_normal = u16::from_le_bytes([old[0], old[1]]) & 0x7c00 != 0;
                assert!(old == new || !is_normal, "{name} {}", tensor.name);
            }
        }
    }
}

/// What is asked for instead of the type of the file is the type of every tensor.
#[test]
fn tensors_have_the_type_that_is_asked_for() {
    let folder = Folder::open(&vectors().join("gemma2"));
    let stored = Stored::of(&folder, &Options::default()).unwrap();
    let mut options = RestoreOptions::default();
    options.dtype = Some(Dtype::Bf16);
    options.max_bytes = 20_000;
    let restoration = stored.restored(&options).unwrap();
    assert!(restoration.parts().len() > 3);
    let tensors = restoration.parts().iter().flat_map(|part| &part.tensors);
    assert!(tensors.into_iter().all(|tensor| tensor.dtype == Dtype::Bf16));
    let index = restoration.texts().find(|(name, _)| name.ends_with(".index.json")).unwrap();
    let index: Json = serde_json::from_slice(index.1).unwrap();
    assert_eq!(index["weight_map"].as_object().unwrap().len(), stored.tensors.len());
    let config = restoration.texts().find(|(name, _)| *name == "config.json").unwrap();
    let config: Json = serde_json::from_slice(config.1).unwrap();
    assert_eq!(config["torch_dtype"], "bfloat16");
    // Values are those of the source, which is in 32 bits, rounded.
    let again = stored.folder(&restoration, "x");
    assert!(Stored::of(&again, &Options::default()).is_ok());
}

#[test]
fn files_that_contradict_themselves_are_refused() {
    let folder = Folder::open(&vectors().join("gemma2"));
    let restored = |change: &dyn Fn(&mut Stored)| {
        let mut stored = Stored::of(&folder, &Options::default()).unwrap();
        change(&mut stored);
        stored.restored(&RestoreOptions::default()).map(drop).map_err(|error| error.code())
    };
    assert_eq!(restored(&|_| {}), Ok(()));
    type Change<'c> = (&'static str, &'c dyn Fn(&mut Stored));
    let cases: &[Change<'_>] = &[
        ("hg-key-missing", &|stored| remove(&mut stored.keys, "general.architecture")),
        ("hg-restore-architecture", &|stored| stored.keys.set("general.architecture", "gpt-oss")),
        ("hg-restore-architecture", &|stored| stored.keys.set("general.architecture", "\u{1b}[2J")),
        ("hg-key-missing", &|stored| remove(&mut stored.keys, "gemma2.block_count")),
        ("hg-key-value", &|stored| stored.keys.set("gemma2.block_count", "3")),
        ("hg-key-value", &|stored| stored.keys.set("gemma2.attention.head_count", vec![1_u32])),
        ("hg-key-missing", &|stored| remove(&mut stored.keys, "tokenizer.ggml.tokens")),
        ("hg-key-value", &|stored| stored.keys.set("tokenizer.ggml.scores", vec![1.0_f32])),
        ("hg-key-value", &|stored| stored.keys.set("tokenizer.ggml.token_type", vec![1_i32])),
        ("hg-tokenizer-kind", &|stored| stored.keys.set("tokenizer.ggml.model", "rwkv")),
        ("hg-config-value", &|stored| stored.keys.set("gemma2.block_count", 1_000_000_u32)),
        ("hg-tensor-shape", &|stored| stored.keys.set("gemma2.embedding_length", 47_u32)),
        ("hg-stored-tensor", &|stored| stored.tensors[3].name = "blk.0.ssm_a".into()),
        ("hg-stored-tensor", &|stored| stored.tensors[3].name = "../../etc/passwd".into()),
        ("hg-layer", &|stored| stored.tensors[3].name = "blk.99.ffn_gate.weight".into()),
        ("hg-duplicate-tensor", &|stored| stored.tensors[3].name = stored.tensors[4].name.clone()),
        ("hg-source-type", &|stored| stored.tensors[3].dtype = Dtype::I32),
        ("hg-elements", &|stored| stored.tensors[3].shape = vec![1 << 40, 1 << 40]),
    ];
    for (code, change) in cases {
        assert_eq!(restored(change), Err(*code));
    }
}

/// Every key is left out, and set to values that no model has: what cannot be a folder is refused.
#[test]
fn mutated_keys_are_refused_or_restored() {
    let mut n_refused = 0;
    for name in
        ["llama3-bpe", "deepseek2-lite", "phi3-longrope", "falcon-7b-style", "xlm-roberta", "t5", "stablelm"]
    {
        let mut options = Options::default();
        options.pre = pre_of(name);
        let stored = Stored::of(&Folder::open(&vectors().join(name)), &options).unwrap();
        let keys: Vec<String> = stored.keys.iter().map(|key| key.name.clone()).collect();
        for key in keys {
            let changes: [&dyn Fn(&mut Keys); 7] = [
                &|keys| remove(keys, &key),
                &|keys| keys.set(&key, 0_u32),
                &|keys| keys.set(&key, u32::MAX),
                &|keys| keys.set(&key, f32::NAN),
                &|keys| keys.set(&key, "\u{202e}\n---\n\"x: [\\"),
                &|keys| keys.set(&key, vec![String::new(), "\u{0}".into(), "a".into()]),
                &|keys| keys.set(&key, vec![i32::MIN; 3]),
            ];
            for change in changes {
                let mut mutated = Stored {
                    keys: stored.keys.clone(),
                    tensors: stored.tensors.clone(),
                    data: stored.data.clone(),
                    file: Vec::new(),
                };
                change(&mut mutated.keys);
                match mutated.restored(&RestoreOptions::default()) {
                    Err(error) => {
                        assert!(!error.to_string().is_empty());
                        n_refused += 1;
                    }
                    Ok(restoration) => {
                        for (name, _) in restoration.texts() {
                            assert!(Texts::max_len(name).is_some(), "{name}");
                        }
                        for part in restoration.parts() {
                            assert!(
                                part.name.starts_with("model") && !part.name.contains('/'),
                                "{}",
                                part.name
                            );
                        }
                    }
                }
            }
        }
    }
    assert!(n_refused > 300, "{n_refused}");
}
