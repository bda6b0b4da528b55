//! The programs that made the format, linked side by side: what each of them makes of a file.
//!
//! | command | what it prints |
//! |---|---|
//! | `read PEER TYPE FILE` | one line of JSON: the model, and its payload as the peer writes it, in hex |
//! | `inspect PEER FILE` | one line of JSON: what the peer's `inspect` says |
//! | `v2 FILE` | one line of JSON: metadata and tensors by `apr-format` |
//! | `check [WORD...]` | a table: what we write, read by each peer, in rows whose names contain a WORD |
//! | `batch` | one line for each of the commands above, which it reads from standard input, one a line |
//!
//! PEER is `0.10`, `0.15` or `0.72`; TYPE is the name of the peer's struct, with or without its path. What a peer
//! refuses is a line that begins with `error:`, and exit code 1 unless in a batch.

#![forbid(unsafe_code)]

mod check;
mod hex;
mod peers;
mod v2;

use std::io::{BufRead as _, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;

use serde_json::json;

use crate::peers::Peer;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let succeeded = match words[..] {
        ["batch"] => batch().is_ok(),
        ["check", ref words @ ..] => print(check::run(words)),
        _ => print(answer(&words)),
    };
    if succeeded { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints an answer, and says whether it is one.
fn print(answer: Result<String, String>) -> bool {
    match &answer {
        Ok(line) => println!("{line}"),
        Err(why) => println!("error: {}", why.replace(['\n', '\r'], " ")),
    }
    answer.is_ok()
}

fn batch() -> std::io::Result<()> {
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        // A file name may hold spaces.
        let named = if line.starts_with("read") {
            4
        } else if line.starts_with("inspect") {
            3
        } else {
            2
        };
        let words: Vec<&str> = line.splitn(named, ' ').collect();
        print(answer(&words));
        std::io::stdout().flush()?;
    }
    Ok(())
}

/// What a command prints. A peer that panics has refused the file.
fn answer(words: &[&str]) -> Result<String, String> {
    let outcome = catch_unwind(AssertUnwindSafe(|| match *words {
        ["read", peer, rust_type, file] => {
            let model = Peer::named(peer)?.load(rust_type, Path::new(file))?;
            let payload = model.payload()?;
            Ok(json!({ "model": model.json()?, "payload_hex": hex::encode(&payload) }).to_string())
        }
        ["inspect", peer, file] => Ok(Peer::named(peer)?.inspect(Path::new(file))?.to_string()),
        ["v2", file] => Ok(v2::describe(Path::new(file))?.to_string()),
        _ => Err("read PEER TYPE FILE | inspect PEER FILE | v2 FILE | check [WORD...] | batch".to_owned()),
    }));
    outcome.unwrap_or_else(|_| Err("the peer panicked".to_owned()))
}
