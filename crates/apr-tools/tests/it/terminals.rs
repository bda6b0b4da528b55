//! What a terminal shows: nothing wider than it is, and no characters that its locale lacks.

use std::process::Command;

use crate::sandbox::{Ran, Sandbox};
#[cfg(feature = "remote")]
use crate::server::{Reply, Server};

/// Runs at a terminal of so many columns, in a locale, without narration; what it showed is in `stdout`.
fn at_terminal(sandbox: &Sandbox, columns: usize, locale: &str, args: &[&str]) -> Ran {
    let mut command = Command::new("script");
    let line = format!("stty cols {columns} rows 24; {} -q {}", env!("CARGO_BIN_EXE_apr"), args.join(" "));
    command.args(["-qec", &line, "/dev/null"]).current_dir(sandbox.path("."));
    command.env("TERM", "xterm").env("NO_COLOR", "1").env("LC_ALL", locale);
    command.output().unwrap().into()
}

/// Columns of a line; the sample models have narrow characters only.
fn columns(line: &str) -> usize {
    line.trim_end_matches('\r').chars().count()
}

#[test]
fn no_row_is_wrapped_in_a_narrow_terminal() {
    let sandbox = Sandbox::with_models();
    for args in [
        &["inspect", "model.safetensors"][..],
        &["inspect", "tiny_llama.gguf"],
        &["inspect", "tiny_llama.gguf", "--quantization"],
        &["tensors", "model.safetensors"],
        &["tensors", "tiny_llama.gguf"],
        &["quantize", "tiny_llama.gguf", "--type", "q4_k_m", "-o", "small.gguf", "--force"],
        &["diff", "model.safetensors", "changed.safetensors"],
        &["diff", "tiny_llama.gguf", "model.gguf", "--ignore-metadata"],
    ] {
        for width in [40, 60, 80] {
            let shown = at_terminal(&sandbox, width, "C.UTF-8", args).stdout;
            // Keys and values of metadata are text, and wrap where they have to.
            let is_row = |line: &&str| !line.contains(": ") && !line.contains("...");
            let wide: Vec<&str> = shown.lines().filter(is_row).filter(|line| columns(line) > width).collect();
            assert!(wide.is_empty(), "{args:?} at {width}: {wide:#?}\n{shown}");
        }
    }
}

#[cfg(feature = "remote")]
#[test]
fn further_tries_are_shown() {
    let sandbox = Sandbox::with_models();
    let bytes = sandbox.read("model.safetensors");
    let server = Server::new(move |number, seen| match number {
        0 => Reply::status("503 Service Unavailable", ""),
        _ => Reply::range(seen, &bytes, "etag: \"v1\"\r\n"),
    });
    let line = format!("{} inspect {}", env!("CARGO_BIN_EXE_apr"), server.url("/model.safetensors"));
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).current_dir(sandbox.path(".")).env("NO_COLOR", "1");
    let shown: Ran = command.output().unwrap().into();
    let note = "note: 127.0.0.1: try 2 of 8: 127.0.0.1 answered with status 503";
    assert!(shown.stdout.contains(note), "{}", shown.stdout);
}

#[test]
fn names_are_shortened_and_columns_left_out() {
    let sandbox = Sandbox::with_models();
    let shown = |columns| at_terminal(&sandbox, columns, "C.UTF-8", &["inspect", "model.safetensors"]).stdout;
    assert!(shown(120).contains("SHARE") && shown(120).contains('█'));
    assert!(!shown(60).contains('█') && shown(60).contains("PARAMETERS"));
    assert!(!shown(40).contains("PARAMETERS") && shown(40).contains("SIZE"));
    // What is no terminal gets all of it.
    assert!(sandbox.run(&["inspect", "model.safetensors"]).stdout.contains('█'));
}

#[test]
fn a_locale_without_unicode_gets_ascii() {
    let sandbox = Sandbox::with_models();
    for args in [&["inspect", "model.safetensors"][..], &["tensors", "tiny_llama.gguf"]] {
        for columns in [40, 120] {
            let shown = at_terminal(&sandbox, columns, "C", args).stdout;
            assert!(shown.is_ascii(), "{shown}");
        }
    }
    let shown = at_terminal(&sandbox, 120, "C", &["inspect", "model.safetensors"]).stdout;
    assert!(shown.contains("|- encoder") || shown.contains("`- "), "{shown}");
    let piped = sandbox.command(&["inspect", "model.safetensors"]).env("LC_ALL", "C").output().unwrap();
    assert!(piped.stdout.is_ascii());
}
