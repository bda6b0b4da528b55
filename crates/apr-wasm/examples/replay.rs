//! Asks what a module was asked, and compares the answers byte by byte: `replay TRANSCRIPT`.
//!
//! A transcript is a list of sessions, one for each instance of a module, and of questions to them: the number of the session, that of
//! the operation, the length of the question and that of the answer, all `u32`, then question and answer.

extern crate alloc;

use alloc::collections::BTreeMap;
use std::process::ExitCode;

use apr_wasm::wire::Arguments;
use apr_wasm::{Operation, Session};

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: replay TRANSCRIPT");
        return ExitCode::from(2);
    };
    match std::fs::read(&path) {
        Ok(transcript) => replay(&transcript),
        Err(error) => {
            eprintln!("the transcript cannot be read: {error}");
            ExitCode::FAILURE
        }
    }
}

fn replay(transcript: &[u8]) -> ExitCode {
    let mut rest = Arguments::new(transcript);
    let mut sessions: BTreeMap<u32, Session> = BTreeMap::new();
    let (mut count, mut nan, mut wrong) = (0_u64, 0_u64, 0_u64);
    while let Ok(session) = rest.u32() {
        let mut read = || -> Result<_, apr_wasm::Failure> {
            let (operation, asked, answered) = (rest.u32()?, rest.u32()?, rest.u32()?);
            Ok((operation, rest.take(asked as usize)?, rest.take(answered as usize)?))
        };
        let Ok((operation, question, answer)) = read() else {
            eprintln!("the transcript ends in a question");
            return ExitCode::FAILURE;
        };
        let found = sessions.entry(session).or_default().answer(operation, question);
        count += 1;
        if found != answer && operation == Operation::Values as u32 && differ_in_nan_alone(answer, &found) {
            nan += 1;
        } else if found != answer {
            wrong += 1;
            let shown = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(300)]).into_owned();
            eprintln!(
                "question {count}, operation {operation}:\n  module {}\n  native {}",
                shown(answer),
                shown(&found)
            );
        }
    }
    println!(
        "{count} answers of the module compared with those of native code: {wrong} differ, {nan} in the bits of what is no number"
    );
    if wrong == 0 && count > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Whether all numbers behind the five bytes of the answer's head are the same, or are none on both sides: WebAssembly leaves open which
/// bits such a value has.
fn differ_in_nan_alone(one: &[u8], other: &[u8]) -> bool {
    let numbers = |answer: &[u8]| -> Option<Vec<f32>> {
        let (numbers, rest) = answer.get(5..)?.as_chunks::<4>();
        rest.is_empty().then(|| numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    };
    let same =
        |(one, other): (&f32, &f32)| one.to_bits() == other.to_bits() || (one.is_nan() && other.is_nan());
    match (numbers(one), numbers(other)) {
        (Some(one), Some(other)) => one.len() == other.len() && one.iter().zip(&other).all(same),
        _ => false,
    }
}
