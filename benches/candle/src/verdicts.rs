//! `verdicts`: what candle answers to the vectors.

use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use candle_core::Device;
use candle_core::quantized::gguf_file::Content;
use conformance::{gguf, manifest};
use serde_json::{Map, Value, json};

/// The version of the dependency, which is exact.
const VERSION: &str = "0.11.1";

const ABOUT: &str = "What candle-core answers to each file: read, with every tensor; refused, by an error; or a panic. Written by \
     `cargo xtask candle --write`.";

fn place() -> PathBuf {
    manifest::folder("gguf").join("candle.json")
}

/// Fails if candle answers otherwise than is recorded.
pub fn check() -> Result<String, String> {
    let text = std::fs::read_to_string(place()).map_err(|error| error.to_string())?;
    let recorded: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let answers = answers()?;
    let differing = |(file, answer): &(&String, &Value)| recorded["answers"][file.as_str()] != **answer;
    let other: Vec<String> =
        answers.iter().filter(differing).map(|(file, answer)| format!("{file}: {answer}")).collect();
    if recorded["candle"] != VERSION || !other.is_empty() {
        return Err(format!("other answers than candle.json has for {}: {other:?}", recorded["candle"]));
    }
    Ok(format!("candle: {} vectors, answers as recorded", answers.len()))
}

/// Records what candle answers now.
pub fn write() -> Result<String, String> {
    let answers = answers()?;
    let count = answers.len();
    let value = json!({ "about": ABOUT, "candle": VERSION, "answers": answers });
    let text = serde_json::to_string_pretty(&value).map_err(|error| error.to_string())?;
    std::fs::write(place(), text + "\n").map_err(|error| error.to_string())?;
    Ok(format!("candle: {count} answers written"))
}

fn answers() -> Result<Map<String, Value>, String> {
    let vectors = gguf::vectors().map_err(|error| error.to_string())?;
    let answer = |vector: gguf::Vector| {
        let bytes = gguf::read(&vector).map_err(|error| error.to_string())?;
        let outcome = match catch_unwind(AssertUnwindSafe(|| read(&bytes))) {
            Ok(Ok(())) => "read",
            Ok(Err(_)) => "refused",
            Err(_) => "panics",
        };
        Ok((vector.file, outcome.into()))
    };
    vectors.into_iter().map(answer).collect()
}

fn read(bytes: &[u8]) -> candle_core::Result<()> {
    let mut reader = Cursor::new(bytes);
    let content = Content::read(&mut reader)?;
    content.tensor_infos.keys().try_for_each(|name| content.tensor(&mut reader, name, &Device::Cpu).map(drop))
}
