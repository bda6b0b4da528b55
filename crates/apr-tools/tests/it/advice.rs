//! Advice of errors and notes: what it names is possible, and true of the file.

use alloc::collections::BTreeMap;

use st_core::Dtype;

use crate::sandbox::{Sandbox, Tensor, file, raw};

/// Standard error of a run that must fail with this exit code.
fn refused(sandbox: &Sandbox, exit: i32, args: &[&str]) -> String {
    let ran = sandbox.run(args);
    assert_eq!(ran.exit, exit, "{args:?}\n{}", ran.stderr);
    ran.stderr
}

/// The first command in backticks.
fn command(text: &str) -> &str {
    text.split('`').nth(1).unwrap_or_default()
}

/// A file with tensors of types that other formats lack.
fn mixed() -> Vec<u8> {
    let tensors = [
        Tensor::counting("w", &[2, 32], 1.0),
        Tensor::new("mask", Dtype::Bool, &[2], vec![0, 1]),
        Tensor::new("bytes", Dtype::U8, &[2], vec![0, 1]),
    ];
    file(&tensors, &BTreeMap::new())
}

#[test]
fn a_signature_inside_a_file_is_verified_by_the_command_that_is_named() {
    let sandbox = Sandbox::with_models();
    let args = ["convert", "made.apr", "o.safetensors", "--key", "maker.key.pub"];
    let stderr = refused(&sandbox, 4, &args);
    assert!(stderr.contains("--allow-unverified") && !stderr.contains("--signer"), "{stderr}");
    assert_eq!(command(&stderr), "apr verify made.apr --key KEY");
    assert_eq!(sandbox.run(&["verify", "made.apr", "--key", "maker.key.pub"]).exit, 0);
    assert_eq!(sandbox.run(&["convert", "made.apr", "o.safetensors", "--allow-unverified"]).exit, 0);
    // Of a file that can have none inside, only those beside it are named.
    let stderr = refused(
        &sandbox,
        4,
        &["quantize", "model.safetensors", "o.gguf", "-t", "f16", "--key", "maker.key.pub"],
    );
    assert!(stderr.contains("--signature") && !stderr.contains("inside"), "{stderr}");
}

#[test]
fn a_value_of_the_type_of_its_key_is_shown() {
    let sandbox = Sandbox::with_models();
    let set = |value: &str| refused(&sandbox, 2, &["convert", "tiny_llama.gguf", "o.gguf", "--set", value]);
    let stderr = set("llama.block_count=abc");
    assert!(stderr.contains("--set llama.block_count=12") && !stderr.contains("str:"), "{stderr}");
    for value in ["7", "24", "0", "u64:64", "abc"] {
        let stderr = set(&format!("general.alignment={value}"));
        assert!(
            stderr.contains("a power of two") && stderr.contains("--set general.alignment=64"),
            "{stderr}"
        );
    }
    let ran = sandbox.run(&["convert", "tiny_llama.gguf", "o.gguf", "--set", "general.alignment=64"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
}

#[test]
fn no_ending_is_offered_that_is_refused() {
    let sandbox = Sandbox::with_models();
    for name in ["x.bin", "x.npz", "x"] {
        let stderr = refused(&sandbox, 2, &["quantize", "model.safetensors", name, "-t", "f16"]);
        assert!(stderr.contains(".gguf, .apr or .safetensors") && !stderr.contains(".npy"), "{stderr}");
    }
}

#[test]
fn all_tensors_without_a_type_are_named() {
    let sandbox = Sandbox::empty();
    sandbox.write("m.safetensors", &mixed());
    let stderr = refused(&sandbox, 2, &["quantize", "m.safetensors", "q.gguf", "-t", "q8_0"]);
    assert!(stderr.contains("--exclude mask") && stderr.contains("--exclude bytes"), "{stderr}");
    assert!(!stderr.contains("--format"), "{stderr}");
    let excluded = ["--exclude", "mask", "--exclude", "bytes"];
    let run = |args: &[&str]| sandbox.run(&[args, &excluded].concat()).exit;
    assert_eq!(run(&["quantize", "m.safetensors", "q.gguf", "-t", "q8_0"]), 0);
    for name in ["c.gguf", "c.apr"] {
        let stderr = refused(&sandbox, 2, &["convert", "m.safetensors", name]);
        assert!(stderr.contains("--exclude mask") && stderr.contains("--format safetensors"), "{stderr}");
        assert_eq!(run(&["convert", "m.safetensors", name]), 0, "{name}");
    }
}

#[test]
fn a_single_array_has_nothing_to_leave_out() {
    let sandbox = Sandbox::empty();
    sandbox.write("m.safetensors", &mixed());
    let ran = sandbox.run(&["convert", "m.safetensors", "m.npy", "--select", "mask"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    let stderr = refused(&sandbox, 2, &["convert", "m.npy", "m.gguf"]);
    assert!(!stderr.contains("tensor:") && !stderr.contains("--exclude"), "{stderr}");
    assert!(stderr.contains("--format safetensors"), "{stderr}");
    assert_eq!(sandbox.run(&["convert", "m.npy", "again.safetensors", "--format", "safetensors"]).exit, 0);
}

#[cfg(unix)]
#[test]
fn a_folder_that_is_converted_is_advised_about_batch() {
    let sandbox = Sandbox::with_models();
    std::fs::create_dir(sandbox.path("in")).unwrap();
    for name in ["model.safetensors", "model.st"] {
        sandbox.write(&format!("in/{name}"), &sandbox.read("model.safetensors"));
    }
    let args = ["convert", "in", "out", "--recursive", "--format", "safetensors"];
    let stderr = refused(&sandbox, 2, &args);
    let named = command(&stderr).to_owned();
    assert!(named.starts_with("apr batch "), "{stderr}");
    let ran = sandbox.shell(&named);
    assert_eq!(ran.exit, 0, "{named}\n{}", ran.stderr);
    std::fs::remove_file(sandbox.path("in/model.st")).unwrap();
    let again = ["convert", "in", "out2", "--recursive", "--format", "safetensors"];
    std::fs::create_dir(sandbox.path("out2")).unwrap();
    sandbox.write("out2/model.safetensors", b"there");
    let stderr = refused(&sandbox, 2, &again);
    assert!(stderr.contains("--force") && command(&stderr).contains("--skip-existing"), "{stderr}");
    sandbox.write("in/other.safetensors", &sandbox.read("model.safetensors"));
    let ran = sandbox.shell(command(&stderr));
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    assert!(
        sandbox.read("out2/model.safetensors") == b"there" && sandbox.path("out2/other.safetensors").exists()
    );
}

#[test]
fn a_key_of_the_kind_that_is_needed_is_named() {
    let sandbox = Sandbox::with_models();
    assert_eq!(sandbox.run(&["sign", "model.gguf", "--key", "publisher.key"]).exit, 0);
    let stderr = refused(&sandbox, 3, &["verify", "model.gguf", "--key", "publisher-p256.pub"]);
    assert!(stderr.contains("`apr keygen sign-p256`") && !stderr.contains("keygen encrypt"), "{stderr}");
    let stderr = refused(&sandbox, 2, &["sign", "sharded", "--key", "publisher.key"]);
    assert!(stderr.contains("`apr keygen sign-p256`"), "{stderr}");
}

#[test]
fn nothing_is_signed_if_an_input_is_missing() {
    let sandbox = Sandbox::with_models();
    let stderr =
        refused(&sandbox, 5, &["sign", "model.gguf", "none", "model.safetensors", "--key", "publisher.key"]);
    assert!(stderr.contains("none"), "{stderr}");
    refused(&sandbox, 2, &["sign", "model.gguf", "sharded", "--key", "publisher.key"]);
    assert!(!sandbox.path("model.gguf.minisig").exists());
}

#[test]
fn an_index_that_is_none_is_made_anew() {
    let sandbox = Sandbox::with_models();
    sandbox.write("sharded/model.safetensors.index.json", b"garbage");
    for name in ["sharded", "sharded/model.safetensors.index.json"] {
        let stderr = refused(&sandbox, 3, &["check", name]);
        assert_eq!(command(&stderr), "apr shard --index sharded --force", "{stderr}");
    }
    assert_eq!(sandbox.run(&["shard", "--index", "sharded", "--force"]).exit, 0);
    assert_eq!(sandbox.run(&["check", "sharded"]).exit, 0);
}

#[test]
fn lengths_are_those_of_the_file_that_is_to_be_repaired() {
    let sandbox = Sandbox::empty();
    // 55 bytes of header, which a repair would make 56.
    let header = r#"{"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}"#;
    sandbox.write("cut.safetensors", &raw(header, &[0; 11]));
    for args in
        [&["check", "cut.safetensors"][..], &["convert", "cut.safetensors", "o.safetensors", "--repair"]]
    {
        let stderr = refused(&sandbox, 3, args);
        assert!(stderr.contains("a file of 79 bytes, found 74"), "{stderr}");
    }
}

#[test]
fn bytes_after_a_file_are_no_matter_of_strictness() {
    let sandbox = Sandbox::with_models();
    let mut longer = sandbox.read("made.apr");
    longer.extend(b"xx");
    sandbox.write("longer.apr", &longer);
    let stderr = refused(&sandbox, 3, &["check", "longer.apr"]);
    assert!(stderr.contains("[ac-unowned]") && !stderr.contains("--compat"), "{stderr}");
    assert_ne!(sandbox.run(&["check", "--compat", "longer.apr"]).exit, 0);
}

#[cfg(unix)]
#[test]
fn tensors_that_became_zero_are_kept_by_the_commands_that_are_named() {
    let sandbox = Sandbox::with_models();
    let mut model = sandbox.read("llama/model.safetensors");
    let begin = 8 + u64::from_le_bytes(model[..8].try_into().unwrap()) as usize;
    // The least number of 16 bits: the scale of a block of it is zero.
    model[begin..].chunks_exact_mut(2).for_each(|value| value.copy_from_slice(&[1, 0]));
    sandbox.write("llama/model.safetensors", &model);
    let ran = sandbox.run(&["convert", "llama", "zero.gguf", "--type", "q4_0"]);
    assert!(ran.exit == 0 && ran.stderr.contains("became zero"), "{}", ran.stderr);
    let named = command(&ran.stderr);
    assert_eq!(named, "apr quantize F32.gguf OUT.gguf --type q4_0 --tensor-type NAME=bf16");
    assert_eq!(sandbox.run(&["convert", "llama", "F32.gguf", "--type", "f32"]).exit, 0);
    let ran = sandbox.shell(&named.replace("NAME", "."));
    assert!(ran.exit == 0 && !ran.stderr.contains("became zero"), "{}", ran.stderr);
}

#[test]
fn an_architecture_that_is_no_name_is_shown() {
    let sandbox = Sandbox::with_models();
    for (value, expected) in [
        ("unknown", "the architecture of the file is `unknown` (general.architecture)"),
        ("u32:5", "is a value of type u32, not a string"),
    ] {
        let set = format!("general.architecture={value}");
        let ran = sandbox.run(&["convert", "tiny_llama.gguf", "a.gguf", "--set", &set, "--force"]);
        assert_eq!(ran.exit, 0, "{}", ran.stderr);
        let ran = sandbox.run(&["quantize", "a.gguf", "q.gguf", "-t", "q8_0", "--force"]);
        assert!(ran.stderr.contains(expected), "{value}: {}", ran.stderr);
    }
}

#[test]
fn the_explanation_says_how_check_ends() {
    let sandbox = Sandbox::empty();
    sandbox.write("page.safetensors", b"<!DOCTYPE html><html></html>");
    let stderr = refused(&sandbox, 3, &["check", "page.safetensors"]);
    assert!(stderr.contains("[cli-foreign-format]"), "{stderr}");
    let explained = sandbox.run(&["explain", "cli-foreign-format"]).stdout.replace('\n', " ");
    assert!(explained.contains("its exit code is 3"), "{explained}");
}
