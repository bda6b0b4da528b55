//! Writes a llama of two layers with rows of 256 and 512 numbers, which every block format fits, whole and in shards.
//!
//! `cargo run -p gguf-core --example wide_llama SMALL FOLDER`; words and settings are taken from the small llama SMALL.
//! `cargo xtask llama` lets llama.cpp read what this writes.

#![forbid(unsafe_code)]

use core::error::Error;
use std::path::Path;
use std::{env, fs};

use gguf_core::Dtype;
use gguf_core::{FirstShard, Gguf, GgufBuilder, ShardLimit, SplitPlan};

const LAYERS: u32 = 2;
const WIDTH: u64 = 256;
const INNER: u64 = 512;
const HEADS: u32 = 8;
/// Two heads share keys and values.
const KEY_HEADS: u32 = 4;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [small, folder] = args.as_slice() else { return Err("usage: wide_llama SMALL FOLDER".into()) };
    let folder = Path::new(folder);
    fs::create_dir_all(folder)?;
    let whole = llama(&Gguf::from_bytes(&fs::read(small)?)?)?;
    fs::write(folder.join("wide.gguf"), &whole)?;
    let gguf = Gguf::from_bytes(&whole)?;
    for (prefix, first) in [("split", FirstShard::Tensors), ("keys-first", FirstShard::KeysOnly)] {
        let plan = SplitPlan::new(gguf.header(), ShardLimit::Tensors(9), first)?;
        for (idx, range) in plan.shards().iter().enumerate() {
            let infos = gguf.tensors().get(range.clone()).unwrap_or_default();
            let data: Vec<&[u8]> = infos.iter().filter_map(|info| gguf.tensor_data(info)).collect();
            let shard = plan.builder(gguf.header(), idx)?.layout()?.to_vec(&data)?;
            fs::write(folder.join(plan.file_name(prefix, idx)), shard)?;
        }
    }
    Ok(())
}

fn llama(small: &Gguf<'_>) -> Result<Vec<u8>, Box<dyn Error>> {
    let words = small.header().get("llama.vocab_size").and_then(|value| value.to_u64()).ok_or("no words")?;
    let mut builder = GgufBuilder::new();
    builder.copy_entries(small.header())?;
    builder.set("general.name", "wide-llama")?;
    builder.set("llama.block_count", LAYERS)?;
    builder.set("llama.embedding_length", WIDTH as u32)?;
    builder.set("llama.feed_forward_length", INNER as u32)?;
    builder.set("llama.attention.head_count", HEADS)?;
    builder.set("llama.attention.head_count_kv", KEY_HEADS)?;
    builder.set("llama.rope.dimension_count", WIDTH as u32 / HEADS)?;

    let shared = WIDTH * u64::from(KEY_HEADS) / u64::from(HEADS);
    let mut shapes = vec![("token_embd".to_owned(), vec![words, WIDTH])];
    for layer in 0..LAYERS {
        for (name, shape) in [
            ("attn_norm", vec![WIDTH]),
            ("attn_q", vec![WIDTH, WIDTH]),
            ("attn_k", vec![shared, WIDTH]),
            ("attn_v", vec![shared, WIDTH]),
            ("attn_output", vec![WIDTH, WIDTH]),
            ("ffn_norm", vec![WIDTH]),
            ("ffn_gate", vec![INNER, WIDTH]),
            ("ffn_up", vec![INNER, WIDTH]),
            ("ffn_down", vec![WIDTH, INNER]),
        ] {
            shapes.push((format!("blk.{layer}.{name}"), shape));
        }
    }
    shapes.push(("output_norm".to_owned(), vec![WIDTH]));
    shapes.push(("output".to_owned(), vec![words, WIDTH]));

    let mut numbers = Numbers(0x5eed);
    let mut data = Vec::new();
    for (name, shape) in &shapes {
        builder.add_tensor(&format!("{name}.weight"), Dtype::F32, shape)?;
        data.push(numbers.tensor(shape));
    }
    Ok(builder.layout()?.to_vec(&data.iter().map(Vec::as_slice).collect::<Vec<_>>())?)
}

/// The same numbers every time, about normally distributed.
struct Numbers(u64);

impl Numbers {
    /// A matrix that keeps the size of what it is multiplied with, or a vector of factors about one.
    fn tensor(&mut self, shape: &[u64]) -> Vec<u8> {
        let n_elements: u64 = shape.iter().product();
        let (middle, spread) = match shape {
            [_, columns] => (0.0, (*columns as f32).sqrt().recip()),
            _ => (1.0, 0.1),
        };
        (0..n_elements).flat_map(|_| (middle + spread * self.normal()).to_le_bytes()).collect()
    }

    /// The sum of four evenly distributed numbers, with a deviation of one.
    fn normal(&mut self) -> f32 {
        let sum: f32 = (0..4).map(|_| self.step() - 0.5).sum();
        sum * 3f32.sqrt()
    }

    fn step(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 40) as f32 / (1 << 24) as f32
    }
}
