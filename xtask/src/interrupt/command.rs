//! The commands that are interrupted, and their inputs.

use core::fmt::Write as _;
use std::fs;
use std::path::Path;

/// A command that writes one file or folder.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) name: &'static str,
    /// With `OUT` for the output.
    pub(crate) args: &'static [&'static str],
    pub(crate) output: &'static str,
    /// Whether an old output can be replaced with `--force`.
    pub(crate) replaces: bool,
}

/// All of them.
pub(crate) const COMMANDS: &[Command] = &[
    file("convert", &["convert", "in/model.safetensors", "OUT"], "out.gguf"),
    file("convert, a folder", &["convert", "in/folder", "OUT", "--type", "q8_0"], "out.gguf"),
    file("quantize", &["quantize", "in/model.safetensors", "--type", "q8_0", "-o", "OUT"], "out.gguf"),
    file(
        "seal",
        &["seal", "in/model.safetensors", "-o", "OUT", "--recipient", "in/reader.key.pub"],
        "out.sealed",
    ),
    file("open", &["open", "in/model.sealed", "-o", "OUT", "--identity", "in/reader.key"], "out.safetensors"),
    file("decrypt", &["decrypt", "in/locked.apr", "-o", "OUT", "--identity", "in/reader.key"], "out.apr"),
    Command {
        replaces: false,
        ..file("shard", &["shard", "in/model.safetensors", "-o", "OUT", "--max-size", "300kB"], "out")
    },
    file("sign", &["sign", "in/model.safetensors", "-o", "OUT", "--key", "in/maker.key"], "out.minisig"),
    file(
        "train",
        &["train", "linear-regression", "--data", "in/table.csv", "--target", "y", "-o", "OUT"],
        "out.apr",
    ),
];

const fn file(name: &'static str, args: &'static [&'static str], output: &'static str) -> Command {
    Command { name, args, output, replaces: true }
}

/// What makes the other inputs, run once.
pub(crate) const SETUP: &[&[&str]] = &[
    &["keygen", "encrypt", "-o", "in/reader.key"],
    &["keygen", "sign", "-o", "in/maker.key"],
    &["seal", "in/model.safetensors", "-o", "in/model.sealed", "--recipient", "in/reader.key.pub"],
    &["train", "tfidf", "--data", "in/texts.txt", "-o", "in/words.apr"],
    &["encrypt", "in/words.apr", "-o", "in/locked.apr", "--recipient", "in/reader.key.pub"],
];

/// A model folder, from the root of the repository.
const FOLDER: &str = "crates/conformance/vectors/hf/Tiny-Llama2-110K-Chat";

/// Elements of the tensors of the model, and rows and words of the tables: some 50 to 200 ms of work without optimisation.
const TENSORS: usize = 8;
const ELEMENTS: usize = 64 * 1024;
const ROWS: usize = 4000;
const WORDS: usize = 20_000;

/// Writes the inputs that no command makes.
pub(crate) fn write_inputs(root: &Path, folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder.join("folder"))?;
    for entry in fs::read_dir(root.join(FOLDER))? {
        let entry = entry?;
        fs::copy(entry.path(), folder.join("folder").join(entry.file_name()))?;
    }
    fs::write(folder.join("model.safetensors"), model())?;
    let mut table = "a,b,y\n".to_owned();
    let mut texts = String::new();
    for row in 0..ROWS {
        let (a, b) = (row % 97, row * row % 89);
        _ = writeln!(table, "{a},{b},{}", 2 * a + 3 * b + row % 3);
    }
    for word in 0..WORDS {
        let end = if word % 10 == 9 { "\n" } else { " " };
        _ = write!(texts, "word{}{end}", word * 7919 % WORDS);
    }
    fs::write(folder.join("table.csv"), table)?;
    fs::write(folder.join("texts.txt"), texts)
}

/// A safetensors file of 32-bit floats.
fn model() -> Vec<u8> {
    let len = ELEMENTS * 4;
    let tensors: Vec<_> = (0..TENSORS)
        .map(|idx| {
            let (begin, end) = (idx * len, (idx + 1) * len);
            let shape = format!("[{},256]", ELEMENTS / 256);
            format!("\"t{idx}\":{{\"dtype\":\"F32\",\"shape\":{shape},\"data_offsets\":[{begin},{end}]}}")
        })
        .collect();
    let mut header = format!("{{{}}}", tensors.join(","));
    while !header.len().is_multiple_of(8) {
        header.push(' ');
    }
    let value = |idx: usize| (idx.wrapping_mul(2_654_435_761) % 1000) as f32 / 500.0 - 1.0;
    let data = (0..TENSORS * ELEMENTS).flat_map(|idx| value(idx).to_le_bytes());
    (header.len() as u64).to_le_bytes().into_iter().chain(header.into_bytes()).chain(data).collect()
}
