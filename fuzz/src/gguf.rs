//! GGUF files: sound ones from a generator, with rare, chosen faults.

use apr_quant::Dtype;
use gguf_core::{Endian, GgufBuilder, Value};

use crate::Choices;

/// A builder with made-up keys and tensors, and the bytes of each tensor.
pub fn builder(choices: &mut Choices<'_>) -> (GgufBuilder, Vec<Vec<u8>>) {
    let mut builder = GgufBuilder::with_endian(choices.pick([Endian::Little, Endian::Little, Endian::Big]));
    for _ in 0..choices.below(6) {
        let key =
            choices.pick(["a", "b", "general.architecture", "split.count", "tokenizer.ggml.tokens", "é"]);
        put(choices, &mut builder, key);
    }
    if choices.rarely(3) {
        let _ = builder.set("general.alignment", 1u32 << choices.below(12));
    }
    let formats =
        [Dtype::F32, Dtype::F16, Dtype::I8, Dtype::F64, Dtype::Q4_0, Dtype::Q8_0, Dtype::Q4_K, Dtype::TQ1_0];
    let mut data = Vec::new();
    for idx in 0..choices.below(6) {
        let format = choices.pick(formats);
        let mut shape: Vec<u64> = (0..choices.below(4)).map(|_| choices.below(4) as u64).collect();
        if format.block_len() > 1 || choices.rarely(2) {
            shape.push((choices.below(3) * format.block_len()) as u64);
        }
        let name = format!("t{}{}", idx, choices.pick(["", ".weight", "\u{200b}"]));
        if builder.add_tensor(&name, format, &shape).is_ok() {
            let (row_len, rows) =
                shape.split_last().map_or((1, 1), |(row, rest)| (*row, rest.iter().product()));
            let len = format.byte_len_of_rows(row_len, rows).expect("the builder took it") as usize;
            data.push((0..len).map(|at| (at * 31 + idx) as u8).collect());
        }
    }
    (builder, data)
}

fn put(choices: &mut Choices<'_>, builder: &mut GgufBuilder, key: &str) {
    let number = choices.integer();
    let numbers: Vec<i64> = (0..choices.below(4)).map(|_| choices.integer()).collect();
    let texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    let value = choices.pick([
        Value::U8(number as u8),
        Value::I8(number as i8),
        Value::U16(number as u16),
        Value::I16(number as i16),
        Value::U32(number as u32),
        Value::I32(number as i32),
        Value::F32(number as f32),
        Value::Bool(number != 0),
        Value::U64(number as u64),
        Value::I64(number),
        Value::F64(number as f64),
    ]);
    let put = match choices.below(5) {
        0 => builder.set_numbers(key, &numbers),
        1 => builder.set_numbers(key, &numbers.iter().map(|number| *number != 0).collect::<Vec<_>>()),
        2 => builder.set_texts(key, texts.iter().map(String::as_str)),
        3 => builder.set(key, texts.first().map_or("", String::as_str)),
        _ => builder.set(key, value),
    };
    put.expect("a sound key");
}

/// Every file that one input encodes: itself, itself after a valid beginning, and a generated one with a few bytes changed.
#[must_use]
pub fn files(input: &[u8]) -> Vec<Vec<u8>> {
    let choices = &mut Choices::new(input);
    let (n_tensors, n_keys) = (choices.below(3) as u64, choices.below(3) as u64);
    let version = choices.pick([3u32, 3, 2, 1]);
    let counts = match version {
        1 => [(n_tensors as u32).to_le_bytes(), (n_keys as u32).to_le_bytes()].concat(),
        _ => [n_tensors.to_le_bytes(), n_keys.to_le_bytes()].concat(),
    };
    let behind = [&b"GGUF"[..], &version.to_le_bytes(), &counts, input.get(3..).unwrap_or_default()].concat();

    let choices = &mut Choices::new(input);
    let (builder, data) = builder(choices);
    let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
    let mut made = builder.layout().and_then(|layout| layout.to_vec(&data)).expect("a sound file");
    for _ in 0..choices.below(4) {
        let at = (choices.below(256) * 256 + choices.below(256)) % made.len();
        made[at] = choices.pick([0, 1, 9, 0x7f, 0x80, 0xff, choices.clone().byte()]);
    }
    if choices.rarely(16) {
        made.truncate(made.len() - 1 - choices.below(40).min(made.len() - 1));
    }
    vec![input.to_vec(), behind, made]
}
