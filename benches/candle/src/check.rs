//! `check`: files that we wrote, read by candle and by us.

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use apr_quant::{Dtype, dequantize};
use candle_core::Device;
use candle_core::quantized::gguf_file::{Content, Value as Theirs};
use gguf_core::{Endian, Gguf, GgufBuilder, ReadOptions, Value};

/// What candle makes numbers of.
const KNOWN: [Dtype; 13] = [
    Dtype::F32,
    Dtype::F16,
    Dtype::Bf16,
    Dtype::Q4_0,
    Dtype::Q4_1,
    Dtype::Q5_0,
    Dtype::Q5_1,
    Dtype::Q8_0,
    Dtype::Q2_K,
    Dtype::Q3_K,
    Dtype::Q4_K,
    Dtype::Q5_K,
    Dtype::Q6_K,
];

/// Judges every file of the folders, in the order of their names.
pub fn run(folders: &[&str]) -> Result<String, String> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for folder in folders {
        let entries = fs::read_dir(folder).map_err(|error| format!("{folder}: {error}"))?;
        let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
        paths.extend(files.filter(|path| path.extension().is_some_and(|extension| extension == "gguf")));
    }
    paths.sort();
    for path in &paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        println!("candle: {name}: {}", file(path).map_err(|why| format!("{name}: {why}"))?);
    }
    match paths.len() {
        0 => Err("no files to judge".to_owned()),
        count => Ok(format!("candle: {count} files")),
    }
}

fn file(path: &Path) -> Result<String, String> {
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    let ours = Gguf::from_bytes_with(&bytes, &ReadOptions::COMPAT).map_err(|error| error.to_string())?;
    if ours.endian() == Endian::Big {
        return match content(&bytes) {
            Ok(_) => Err("a big-endian file was read".to_owned()),
            Err(_) => Ok("refused: big-endian".to_owned()),
        };
    }
    let is_known = |format| KNOWN.contains(&format);
    let unknown = ours.tensors().iter().filter(|info| !is_known(info.dtype())).count();
    if unknown == 0 {
        return compare(&ours, &bytes);
    }
    if content(&bytes).is_ok() {
        return Err("types that candle does not know were read".to_owned());
    }
    let rest = without_unknown(&ours).map_err(|error| error.to_string())?;
    let ours = Gguf::from_bytes(&rest).map_err(|error| error.to_string())?;
    Ok(format!(
        "refused: {unknown} tensors of types it does not know; without them {}",
        compare(&ours, &rest)?
    ))
}

/// The file again, with the tensors that candle makes numbers of.
fn without_unknown(gguf: &Gguf<'_>) -> Result<Vec<u8>, gguf_core::Error> {
    let mut builder = GgufBuilder::new();
    builder.copy_entries(gguf.header())?;
    let mut data = Vec::new();
    for info in gguf.tensors().iter().filter(|info| KNOWN.contains(&info.dtype())) {
        builder.copy_tensor(info)?;
        data.push(gguf.tensor_data(info).unwrap_or_default());
    }
    builder.layout()?.to_vec(&data)
}

fn content(bytes: &[u8]) -> Result<Content, String> {
    Content::read(&mut Cursor::new(bytes)).map_err(|error| error.to_string())
}

fn compare(ours: &Gguf<'_>, bytes: &[u8]) -> Result<String, String> {
    let theirs = content(bytes)?;
    if theirs.metadata.len() != ours.entries().len() || theirs.tensor_infos.len() != ours.tensors().len() {
        return Err("another number of keys or tensors".to_owned());
    }
    for entry in ours.entries() {
        let key = entry.key().to_str_lossy().into_owned();
        if !theirs.metadata.get(&key).is_some_and(|value| same(&entry.value(), value)) {
            return Err(format!("key {key}: {:?}", theirs.metadata.get(&key)));
        }
    }
    let (mut numbers, mut other) = (0_usize, Vec::new());
    for info in ours.tensors() {
        let name = info.name().to_str_lossy().into_owned();
        let found = theirs.tensor_infos.get(&name).ok_or_else(|| format!("no tensor {name}"))?;
        let shape: Vec<usize> = info.shape().map(|dim| dim as usize).collect();
        let format = format!("{:?}", found.ggml_dtype).to_uppercase();
        if found.shape.dims() != shape
            || format != info.dtype().name().replace("_K", "K")
            || theirs.tensor_data_offset + found.offset != info.file_range().start
        {
            return Err(format!("tensor {name}: {found:?}"));
        }
        let mut expected = vec![0.0; info.element_count() as usize];
        let data = ours.tensor_data(info).unwrap_or_default();
        dequantize(info.dtype(), data, &mut expected).map_err(|error| error.to_string())?;
        let found = values(&theirs, bytes, &name).map_err(|error| format!("tensor {name}: {error}"))?;
        let differs = |(a, b): &(&f32, &f32)| a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan());
        let differing = expected.iter().zip(&found).filter(differs).count();
        numbers += expected.len();
        if found.len() != expected.len() {
            return Err(format!("tensor {name}: {} numbers", found.len()));
        }
        if differing > 0 {
            let largest = expected.iter().zip(&found).filter(differs).map(|(a, b)| ((a - b) / a).abs());
            let largest = largest.fold(0.0, f32::max);
            other.push(format!("{name}: {differing} of {}, by up to {largest:e} of them", found.len()));
        }
    }
    if !other.is_empty() {
        return Err(format!("other numbers in {}", other.join("; ")));
    }
    let (keys, tensors) = (ours.entries().len(), ours.tensors().len());
    Ok(format!("{keys} keys, {tensors} tensors, {numbers} numbers, each as we read it"))
}

fn values(theirs: &Content, bytes: &[u8], name: &str) -> candle_core::Result<Vec<f32>> {
    let tensor = theirs.tensor(&mut Cursor::new(bytes), name, &Device::Cpu)?;
    tensor.dequantize(&Device::Cpu)?.flatten_all()?.to_vec1()
}

fn same(ours: &Value<'_>, theirs: &Theirs) -> bool {
    match (ours, theirs) {
        (Value::U8(a), Theirs::U8(b)) => a == b,
        (Value::I8(a), Theirs::I8(b)) => a == b,
        (Value::U16(a), Theirs::U16(b)) => a == b,
        (Value::I16(a), Theirs::I16(b)) => a == b,
        (Value::U32(a), Theirs::U32(b)) => a == b,
        (Value::I32(a), Theirs::I32(b)) => a == b,
        (Value::U64(a), Theirs::U64(b)) => a == b,
        (Value::I64(a), Theirs::I64(b)) => a == b,
        (Value::F32(a), Theirs::F32(b)) => a.to_bits() == b.to_bits(),
        (Value::F64(a), Theirs::F64(b)) => a.to_bits() == b.to_bits(),
        (Value::Bool(a), Theirs::Bool(b)) => a == b,
        (Value::Text(a), Theirs::String(b)) => a.as_bytes() == b.as_bytes(),
        (Value::Array(a), Theirs::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(&a, b))
        }
        _ => false,
    }
}
