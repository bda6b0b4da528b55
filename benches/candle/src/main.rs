//! candle beside ours: what it makes of GGUF files.
//!
//! | command | what it prints |
//! |---|---|
//! | `check FOLDER...` | a line for each `.gguf` file there: keys, names, shapes, places and numbers as we read them, or how not |
//! | `verdicts [--write]` | whether candle still answers to the vectors as their sidecars say; or writes that |

#![forbid(unsafe_code)]

mod check;
mod verdicts;

use std::process::ExitCode;

fn main() -> ExitCode {
    // What panics has refused the file.
    std::panic::set_hook(Box::new(|_| {}));
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["check", ref folders @ ..] if !folders.is_empty() => check::run(folders),
        ["verdicts"] => verdicts::check(),
        ["verdicts", "--write"] => verdicts::write(),
        _ => Err("candle-peer check FOLDER... | verdicts [--write]".to_owned()),
    };
    match outcome {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}
