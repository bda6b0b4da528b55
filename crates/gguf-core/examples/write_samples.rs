//! Writes GGUF files of every kind into a folder, and beside each what it holds, for another program to compare.
//!
//! `cargo run -p gguf-core --example write_samples FOLDER`; `cargo xtask gguf` lets gguf-py read them.

#![forbid(unsafe_code)]

use core::error::Error;
use core::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use gguf_core::Dtype;
use gguf_core::{
    Endian, FirstShard, Gguf, GgufBuilder, Header, MergePlan, ReadOptions, ShardLimit, SplitKeys, SplitPlan,
    Text, Value,
};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = env::args().nth(1).ok_or("usage: write_samples FOLDER")?;
    let folder = Path::new(&folder);
    fs::create_dir_all(folder)?;
    for endian in [Endian::Little, Endian::Big] {
        let suffix = if endian == Endian::Big { "_be" } else { "" };
        keep(folder, &format!("values{suffix}"), &values(endian)?)?;
        for alignment in [8, 32, 64, 4096] {
            keep(folder, &format!("tensors_{alignment}{suffix}"), &tensors(endian, alignment)?)?;
        }
    }
    let whole = tensors(Endian::Little, 32)?;
    let gguf = Gguf::from_bytes(&whole)?;
    let plan = SplitPlan::new(gguf.header(), ShardLimit::Tensors(7), FirstShard::KeysOnly)?;
    let mut shards = Vec::new();
    for (idx, range) in plan.shards().iter().enumerate() {
        let infos = gguf.tensors().get(range.clone()).unwrap_or_default();
        let data: Vec<&[u8]> = infos.iter().filter_map(|info| gguf.tensor_data(info)).collect();
        let shard = plan.builder(gguf.header(), idx)?.layout()?.to_vec(&data)?;
        keep(folder, plan.file_name("shard", idx).trim_end_matches(".gguf"), &shard)?;
        shards.push(shard);
    }
    let shards = shards.iter().map(|shard| Gguf::from_bytes(shard)).collect::<Result<Vec<_>, _>>()?;
    let headers: Vec<Header<'_>> = shards.iter().map(|shard| shard.header().clone()).collect();
    let merge = MergePlan::new(&headers, SplitKeys::AsReference)?;
    let data = merge.sources().iter().filter_map(|&(shard, idx)| {
        let gguf = shards.get(shard)?;
        gguf.tensor_data(gguf.tensors().get(idx)?)
    });
    keep(folder, "merged", &merge.builder().layout()?.to_vec(&data.collect::<Vec<_>>())?)?;
    Ok(())
}

fn values(endian: Endian) -> Result<Vec<u8>, gguf_core::Error> {
    let mut builder = GgufBuilder::with_endian(endian);
    builder.set("general.architecture", "demo")?;
    builder.set("v.u8", u8::MAX)?;
    builder.set("v.i8", i8::MIN)?;
    builder.set("v.u16", u16::MAX)?;
    builder.set("v.i16", i16::MIN)?;
    builder.set("v.u32", u32::MAX)?;
    builder.set("v.i32", i32::MIN)?;
    builder.set("v.u64", u64::MAX)?;
    builder.set("v.i64", i64::MIN)?;
    builder.set("v.f32", -0.0f32)?;
    builder.set("v.f64", f64::MIN_POSITIVE)?;
    builder.set("v.true", true)?;
    builder.set("v.false", false)?;
    builder.set("v.text", "\u{e9}t\u{e9} \u{65e5}\u{672c} \"quoted\" \\ end")?;
    builder.set("v.empty", "")?;
    builder.set_numbers("a.u8", &[0u8, 1, 255])?;
    builder.set_numbers("a.i16", &[-1i16, 0, 1])?;
    builder.set_numbers("a.u32", &[7u32])?;
    builder.set_numbers("a.f32", &[0.1f32, f32::INFINITY, -0.0])?;
    builder.set_numbers("a.f64", &[0.1f64, f64::NEG_INFINITY])?;
    builder.set_numbers("a.i64", &[i64::MAX])?;
    builder.set_numbers("a.bool", &[true, false])?;
    builder.set_texts("a.text", ["", "b", "\u{1f980}"])?;
    builder.layout()?.to_vec(&[])
}

/// A tensor of every format that other programs know, and of every rank.
fn tensors(endian: Endian, alignment: u32) -> Result<Vec<u8>, gguf_core::Error> {
    // Newer than gguf-py 0.19.0, or for products at run time only.
    const LEFT_OUT: [&str; 3] = ["Q2_0", "Q8_1", "Q8_K"];
    let mut builder = GgufBuilder::with_endian(endian);
    builder.set("general.architecture", "demo")?;
    builder.set("general.quantization_version", 2u32)?;
    builder.set("general.alignment", alignment)?;
    let mut types: Vec<_> =
        Dtype::ALL.iter().filter_map(|dtype| Some((dtype.ggml_type()?, *dtype))).collect();
    types.sort();
    for (idx, (_, dtype)) in types.into_iter().enumerate() {
        if !LEFT_OUT.contains(&dtype.name()) {
            let shape = [1, 2, 3, dtype.block_len() as u64 * 2];
            builder.add_tensor(dtype.name(), dtype, shape.get(idx % 4..).unwrap_or_default())?;
        }
    }
    let layout = builder.layout()?;
    let byte = |at: u64| (at * 37 % 251) as u8;
    let data: Vec<Vec<u8>> = layout
        .tensors()
        .iter()
        .map(|tensor| (0..tensor.byte_len).map(|at| byte(at + tensor.offset)).collect())
        .collect();
    layout.to_vec(&data.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

/// Writes a file, and what it holds as JSON.
fn keep(folder: &Path, name: &str, file: &[u8]) -> Result<(), Box<dyn Error>> {
    let gguf = Gguf::from_bytes_with(file, &ReadOptions::COMPAT)?;
    let mut json =
        format!("{{\"big\":{},\"alignment\":{},\"keys\":[", gguf.endian() == Endian::Big, gguf.alignment());
    for (idx, entry) in gguf.entries().iter().enumerate() {
        let comma = if idx > 0 { "," } else { "" };
        let value = entry.value();
        let kind = value.as_array().map_or(value.value_type(), |array| array.element_type());
        let is_array = value.as_array().is_some();
        write!(json, "{comma}[{},{},{is_array},{}]", quoted(entry.key()), kind.id(), shown(&value))?;
    }
    json.push_str("],\"tensors\":[");
    for (idx, info) in gguf.tensors().iter().enumerate() {
        let comma = if idx > 0 { "," } else { "" };
        let range = info.file_range();
        let dims: Vec<u64> = info.dims().collect();
        let (name, number) = (quoted(info.name()), info.ggml_type().0);
        write!(json, "{comma}[{name},{number},{dims:?},{},{}]", range.start, range.end)?;
    }
    json.push_str("]}\n");
    fs::write(folder.join(format!("{name}.gguf")), file)?;
    fs::write(folder.join(format!("{name}.json")), json)?;
    Ok(())
}

/// Integers as they are, floats as their bits, so that every one of them can be compared.
fn shown(value: &Value<'_>) -> String {
    match value {
        Value::F32(value) => value.to_bits().to_string(),
        Value::F64(value) => value.to_bits().to_string(),
        Value::Bool(value) => value.to_string(),
        Value::Text(text) => quoted(*text),
        Value::Array(array) => {
            let elements: Vec<String> = array.iter().map(|element| shown(&element)).collect();
            format!("[{}]", elements.join(","))
        }
        other => other
            .to_u64()
            .map_or_else(|| other.to_i64().unwrap_or_default().to_string(), |value| value.to_string()),
    }
}

fn quoted(text: Text<'_>) -> String {
    let escaped = text.to_str_lossy().replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}
