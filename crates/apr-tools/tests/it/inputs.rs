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
    assert_eq!(sandbox.run_with_input(&["inspect", "-"], b"PAR1\x15\x04").exit, 6);
    assert_eq!(sandbox.run_with_input(&["inspect", "-"], b"\x93NUMPY\x01\0").exit, 3);
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

/// A ZIP archive of empty members.
fn archive(names: &[&str]) -> Vec<u8> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for name in names {
        let len = (name.len() as u16).to_le_bytes();
        file.extend([&b"PK\x03\x04"[..], &[0; 22], &len, &[0; 2], name.as_bytes()].concat());
        directory.extend([&b"PK\x01\x02"[..], &[0; 24], &len, &[0; 16], name.as_bytes()].concat());
    }
    let size = (directory.len() as u32).to_le_bytes();
    [&file[..], &directory, b"PK\x05\x06", &[0; 8], &size, &[0; 6]].concat()
}

#[test]
fn other_formats_are_named() {
    let sandbox = Sandbox::empty();
    let mut tar = vec![0; 600];
    tar[257..262].copy_from_slice(b"ustar");
    let files: &[(&str, &[u8], &str, &str)] = &[
        ("m.zip", &archive(&["model.safetensors"]), "a ZIP archive", "unzip"),
        ("logs.gz", &gzip(), "a gzip file", "gunzip"),
        ("t.parquet", b"PAR1\x15\x04\x15\x10\x15\x14\x4c", "Parquet", "apr train --data"),
        ("t.arrow", b"ARROW1\0\0\xff\xff\xff\xff", "Arrow", "apr train --data"),
        ("t.csv", b"age,size\n1,2\n3,4\n", "CSV", "apr train"),
        (
            "lfs.safetensors",
            b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
            "LFS pointer",
            "git lfs pull",
        ),
        (
            "page.safetensors",
            b"<!DOCTYPE html><html><body>404</body></html>",
            "web page",
            "download it again",
        ),
        (
            "hub.safetensors",
            b"{\"error\":\"Invalid username or password.\"}",
            "error message of a server",
            "access rights",
        ),
        ("config.json", b"{\"architectures\": [\"BertModel\"]}", "JSON text", "model.safetensors"),
        ("zeros.safetensors", &[0; 4096], "a file of zeros", "did not finish"),
        ("m.tar", &tar, "tar archive", "tar -xf"),
    ];
    for (name, bytes, title, help) in files {
        sandbox.write(name, bytes);
        // A name that ends in .json is taken for an index.
        let name = if *name == "config.json" {
            sandbox.write("config", bytes);
            "config"
        } else {
            name
        };
        let ran = sandbox.run(&["inspect", name]);
        assert_eq!(ran.exit, 6, "{name}\n{}", ran.stderr);
        assert!(ran.stderr.contains("error[cli-foreign-format]: this is "), "{name}\n{}", ran.stderr);
        for part in [title, help] {
            assert!(ran.stderr.contains(part), "{name}: {part}\n{}", ran.stderr);
        }
        assert!(!ran.stderr.contains("why:"), "{name}: nothing more is to say\n{}", ran.stderr);
        assert_eq!(sandbox.run(&["check", name]).exit, 3, "{name}");
        let piped = sandbox.run_with_input(&["inspect", "-"], bytes);
        if !matches!(name, "zeros.safetensors" | "m.tar") {
            assert!(piped.stderr.contains("cli-foreign-format"), "{name}\n{}", piped.stderr);
        }
    }
}

/// `hello` as gzip writes it, stored.
fn gzip() -> Vec<u8> {
    let head = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x01\x05\0\xfa\xff";
    [&head[..], b"hello", &0x3610_a686_u32.to_le_bytes(), &5_u32.to_le_bytes()].concat()
}

#[test]
fn cut_files_of_other_programs_are_refused_by_their_readers() {
    let sandbox = Sandbox::empty();
    let files: &[(&str, &[u8], &str)] = &[
        ("m.pt", &archive(&["m/data.pkl", "m/data/0"]), "PyTorch checkpoint"),
        ("traced.pt", &archive(&["m/data.pkl", "m/constants.pkl"]), "TorchScript"),
        ("a.npz", &archive(&["w.npy"]), "NumPy .npz archive"),
        ("m.keras", &archive(&["metadata.json", "model.weights.h5"]), "Keras model"),
        ("old.pt", b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80", "PyTorch checkpoint"),
        ("a.npy", b"\x93NUMPY\x01\0v\0{'descr': '<f4'", "NumPy .npy array"),
        ("m.h5", b"\x89HDF\r\n\x1a\n\0\0\0\0\0\x08\x08\0", "HDF5"),
        ("m.onnx", b"\x08\x08\x12\x07pytorch\x1a\x052.0.0:", "ONNX"),
        ("saved_model.pb", b"\x08\x01\x12\xef\x3b\x0a\xdb\x0a\x12\xab\x0a\x0a\x38", "SavedModel"),
        ("m.tflite", b"\x1c\0\0\0TFL3\x14\0\x20\0\x1c\0\x18\0", "TensorFlow Lite"),
    ];
    for (name, bytes, title) in files {
        sandbox.write(name, bytes);
        for command in ["inspect", "tensors", "check"] {
            let ran = sandbox.run(&[command, name]);
            assert!(matches!(ran.exit, 3 | 5), "{command} {name}\n{}", ran.stderr);
            assert!(
                ["[ft-", "[pk-"].iter().any(|code| ran.stderr.contains(code)),
                "{command} {name}\n{}",
                ran.stderr
            );
        }
        // The name promises that no program runs anything in the file.
        let false_name = format!("{name}.safetensors");
        sandbox.write(&false_name, bytes);
        let ran = sandbox.run(&["check", &false_name]);
        assert_eq!(ran.exit, 3, "{name}\n{}", ran.stderr);
        for part in ["error[cli-foreign-format]: this is ", title, "rename"] {
            assert!(ran.stderr.contains(part), "{name}: {part}\n{}", ran.stderr);
        }
    }
    assert!(sandbox.leftovers().is_empty());
}

#[test]
fn a_table_of_another_format_is_named() {
    let sandbox = Sandbox::empty();
    sandbox.write("t.orc", b"ORC\x0a\x1c\x0a\x02\x08\x01\x12");
    sandbox.write("t.xlsx", &archive(&["[Content_Types].xml", "xl/workbook.xml"]));
    for (name, title) in [("t.orc", "Apache ORC"), ("t.xlsx", "Office document")] {
        let args = ["train", "linear-regression", "--data", name, "--target", "y", "-o", "m.apr"];
        let ran = sandbox.run(&args);
        assert_eq!(ran.exit, 6, "{}", ran.stderr);
        assert!(ran.stderr.contains(title) && ran.stderr.contains("to_csv"), "{}", ran.stderr);
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

#[test]
fn a_distributed_checkpoint_leads_to_the_program_that_joins_it() {
    let sandbox = Sandbox::empty();
    fs::create_dir(sandbox.path("dcp")).unwrap();
    sandbox.write("dcp/.metadata", b"\x80\x04N.");
    sandbox.write("dcp/__0_0.distcp", b"PK");
    for command in ["inspect", "tensors"] {
        let (exit, report) = sandbox.json(&[command, "dcp"]);
        assert_eq!(exit, 6, "{report}");
        assert_eq!(report["error"]["code"], "cli-foreign-format", "{report}");
        assert!(report["error"]["help"].as_str().unwrap().contains("dcp_to_torch"), "{report}");
    }
}
