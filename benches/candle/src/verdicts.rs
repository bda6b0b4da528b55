//! `verdicts`: what candle answers to the vectors.

use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};

use candle_core::Device;
use candle_core::quantized::gguf_file::Content;
use conformance::gguf::CANDLE;
use conformance::vectors::{self, Sidecar};
use serde_json::Value;

/// Fails if candle answers otherwise than is recorded.
pub fn check() -> Result<String, String> {
    let answers = answers()?;
    let differing = |(sidecar, answer): &(Sidecar, Value)| sidecar.facts[CANDLE] != *answer;
    let other: Vec<String> = answers
        .iter()
        .filter(|answer| differing(answer))
        .map(|(sidecar, answer)| format!("{}: {answer}", sidecar.vector))
        .collect();
    if !other.is_empty() {
        return Err(format!("other answers than the sidecars have: {other:?}"));
    }
    Ok(format!("candle: {} vectors, answers as recorded", answers.len()))
}

/// Records what candle answers now.
pub fn write() -> Result<String, String> {
    let answers = answers()?;
    let count = answers.len();
    for (mut sidecar, answer) in answers {
        sidecar.set(CANDLE, &answer).map_err(|error| error.to_string())?;
    }
    Ok(format!("candle: {count} answers recorded"))
}

/// The vectors with what candle answers: `read`, with every tensor; `refused`, by an error; or `panics`.
fn answers() -> Result<Vec<(Sidecar, Value)>, String> {
    let answer = |sidecar: Sidecar| {
        let path = vectors::folder("gguf").join(&sidecar.vector);
        let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let outcome = match catch_unwind(AssertUnwindSafe(|| read(&bytes))) {
            Ok(Ok(())) => "read",
            Ok(Err(_)) => "refused",
            Err(_) => "panics",
        };
        Ok((sidecar, outcome.into()))
    };
    let sidecars = vectors::sidecars("gguf").map_err(|error| error.to_string())?;
    sidecars.into_iter().map(answer).collect()
}

fn read(bytes: &[u8]) -> candle_core::Result<()> {
    let mut reader = Cursor::new(bytes);
    let content = Content::read(&mut reader)?;
    content.tensor_infos.keys().try_for_each(|name| content.tensor(&mut reader, name, &Device::Cpu).map(drop))
}
