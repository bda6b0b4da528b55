//! What can be read, and what is refused in good time.

use core::time::Duration;
use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::time::Instant;

use crate::sandbox::Sandbox;

#[test]
fn standard_input_is_read_like_a_file() {
    let sandbox = Sandbox::with_models();
    let bytes = sandbox.read("model.safetensors");
    for args in
        [&["tensors", "-", "--digest"][..], &["check", "-"], &["-"], &["diff", "-", "same.safetensors"]]
    {
        let ran = sandbox.run_with_input(args, &bytes);
        assert_eq!(ran.exit, 0, "{args:?}\n{}", ran.stderr);
    }
    let from_file = sandbox.run(&["tensors", "model.safetensors", "--digest"]);
    assert_eq!(sandbox.run_with_input(&["tensors", "-", "--digest"], &bytes).stdout, from_file.stdout);
    let short = sandbox.run_with_input(&["check", "-"], &bytes[..500]);
    assert_eq!(short.exit, 3);
    assert!(short.stderr.contains("file:   -\n"), "{}", short.stderr);
    assert_eq!(sandbox.run_with_input(&["check", "-"], b"").exit, 3);
    assert_eq!(sandbox.run_with_input(&["inspect", "-"], b"\x93NUMPY\x01\0").exit, 6);
    assert_eq!(sandbox.run_with_input(&["inspect", "-"], b"GGUF\x03\0\0\0").exit, 3);
    assert!(sandbox.leftovers().is_empty());
}

#[test]
fn an_endless_input_of_other_things_is_refused_at_once() {
    let sandbox = Sandbox::empty();
    let mut child = sandbox.command(&["check", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let begun = Instant::now();
    while input.write_all(&[b'y'; 4096]).is_ok() {
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
    assert_eq!(child.wait().unwrap().code(), Some(3));
    assert!(sandbox.leftovers().is_empty());
}

#[cfg(unix)]
#[test]
fn what_is_no_regular_file_is_refused_at_once() {
    let sandbox = Sandbox::with_models();
    let made = std::process::Command::new("mkfifo").arg(sandbox.path("fifo")).status();
    let fifo = made.is_ok_and(|status| status.success());
    let mut inputs = vec!["/dev/zero", "/dev/null", "/dev/tty"];
    if fifo {
        inputs.push("fifo");
    }
    for input in inputs {
        for command in ["inspect", "tensors", "check"] {
            let begun = Instant::now();
            let ran = sandbox.run(&[command, input]);
            assert!(matches!(ran.exit, 3 | 5), "{command} {input}: {}", ran.exit);
            assert!(begun.elapsed() < Duration::from_secs(5), "{command} {input}");
        }
    }
    fs::create_dir(sandbox.path("folder.safetensors")).unwrap();
    assert_eq!(sandbox.run(&["inspect", "folder.safetensors"]).exit, 3);
}

#[test]
fn other_formats_are_named() {
    let sandbox = Sandbox::empty();
    let mut tar = vec![0; 600];
    tar[257..262].copy_from_slice(b"ustar");
    for (name, bytes) in [
        ("m.pt", &b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0"[..]),
        ("old.pt", b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80"),
        ("a.npy", b"\x93NUMPY\x01\0v\0{'descr': '<f4'"),
        ("m.h5", b"\x89HDF\r\n\x1a\n\0\0\0\0\0\x08\x08\0"),
        ("m.onnx", b"\x08\x08\x12\x07pytorch\x1a\x052.0.0:"),
        ("m.tflite", b"\x1c\0\0\0TFL3\x14\0\x20\0\x1c\0\x18\0"),
        ("lfs.safetensors", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
        ("page.safetensors", b"<!DOCTYPE html><html><body>404</body></html>"),
        ("m.tar", &tar),
    ] {
        sandbox.write(name, bytes);
        let ran = sandbox.run(&["inspect", name]);
        assert_eq!(ran.exit, 6, "{name}\n{}", ran.stderr);
        assert!(ran.stderr.contains("error[cli-foreign-format]") && ran.stderr.contains("help:"), "{name}");
        assert_eq!(sandbox.run(&["check", name]).exit, 3, "{name}");
    }
}

#[test]
fn a_damaged_safetensors_file_stays_one() {
    let sandbox = Sandbox::with_models();
    let mut bytes = sandbox.read("model.safetensors");
    bytes[20] ^= 0x80;
    sandbox.write("damaged", &bytes);
    let (exit, value) = sandbox.json(&["inspect", "damaged"]);
    assert_eq!(exit, 3);
    assert_eq!(value["error"]["offset"], 20);
}
