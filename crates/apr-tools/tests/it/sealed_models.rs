//! Models inside sealed files: asked as they are, named where they are not.

use serde_json::{Value, json};

use crate::sandbox::Sandbox;
use crate::serving::Serving;

const BUYER: [&str; 4] = ["--identity", "buyer.key", "--signer", "maker.key.pub"];

fn code(value: &Value) -> &str {
    value["error"]["code"].as_str().unwrap_or_default()
}

/// The model of two features in every format, and what it says about the rows.
fn with_formats() -> (Sandbox, Value) {
    let sandbox = Sandbox::with_models();
    for (out, format) in
        [("plain.safetensors", "safetensors"), ("second.apr", "apr2"), ("plain.gguf", "gguf")]
    {
        let ran = sandbox.run(&["convert", "model.apr", out, "--format", format]);
        assert_eq!(ran.exit, 0, "{}", ran.stderr);
    }
    let (exit, expected) = sandbox.json(&["predict", "model.apr", "-i", "rows.csv"]);
    assert_eq!(exit, 0);
    (sandbox, expected["predictions"].clone())
}

const FORMATS: [&str; 4] = ["model.apr", "plain.safetensors", "second.apr", "plain.gguf"];

fn seal(sandbox: &Sandbox, file: &str, args: &[&str]) {
    let ran = sandbox.run(&[&["seal", file, "-o", "order.sealed", "--force"], args].concat());
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
}

#[test]
fn a_sealed_model_of_every_format_predicts() {
    let (sandbox, expected) = with_formats();
    let ask = ["predict", "order.sealed", "-i", "rows.csv"];
    for file in FORMATS {
        for (lock, keys) in [
            (&["--recipient", "buyer.key.pub", "--sign", "maker.key"][..], &BUYER[..]),
            (&["--recipient", "buyer.key.pub"], &["--identity", "buyer.key"]),
            (&["--sign", "maker.key"], &["--any-signer"]),
        ] {
            seal(&sandbox, file, lock);
            let (exit, value) = sandbox.json(&[&ask[..], keys].concat());
            assert_eq!((exit, &value["predictions"]), (0, &expected), "{file} {keys:?} {value}");
        }
    }
    seal(&sandbox, "model.apr", &["--password-file", "password.txt"]);
    let (exit, value) = sandbox.json(&[&ask[..], &["--password-file", "password.txt"]].concat());
    assert_eq!((exit, &value["predictions"]), (0, &expected), "{value}");
    assert!(sandbox.leftovers().is_empty());
}

/// What is used is what was verified: any changed byte of the content is an error, whatever the format would make of it.
#[test]
fn a_changed_sealed_model_predicts_nothing() {
    let (sandbox, _) = with_formats();
    for file in FORMATS {
        seal(&sandbox, file, &["--sign", "maker.key"]);
        let sealed = sandbox.read("order.sealed");
        // Signed only: the content is in the file in plaintext.
        let (_, seen) = sandbox.json(&["inspect", "order.sealed"]);
        let at =
            ["header_bytes", "payload_bytes"].map(|len| seen[len].as_u64().unwrap()).iter().sum::<u64>() - 1;
        let mut changed = sealed.clone();
        changed[usize::try_from(at).unwrap()] ^= 1;
        sandbox.write("changed.sealed", &changed);
        let ask = ["predict", "changed.sealed", "-i", "rows.csv", "--signer", "maker.key.pub"];
        let (exit, value) = sandbox.json(&ask);
        assert_eq!((exit, code(&value)), (4, "ac-signature"), "{file} {value}");
    }
}

#[test]
fn a_sealed_model_is_opened_by_whom_it_is_for() {
    let (sandbox, _) = with_formats();
    seal(&sandbox, "model.apr", &["--recipient", "buyer.key.pub", "--sign", "maker.key"]);
    for (kind, name) in [("sign", "stranger.key"), ("encrypt", "other.key")] {
        assert_eq!(sandbox.run(&["keygen", kind, "-o", name]).exit, 0);
    }
    for (keys, exit, expected) in [
        (&[][..], 4, "ac-signed"),
        (&["--allow-unverified"], 4, "ac-signed"),
        (&["--any-signer"], 6, "ac-encrypted"),
        (&["--signer", "stranger.key.pub", "--identity", "buyer.key"], 4, "ac-untrusted-signer"),
        (&["--any-signer", "--identity", "other.key"], 4, "ac-decryption"),
        (&["--any-signer", "--password-file", "password.txt"], 2, "ac-sealed-lock"),
    ] {
        let (found, value) = sandbox.json(&[&["predict", "order.sealed", "-i", "rows.csv"], keys].concat());
        assert_eq!((found, code(&value)), (exit, expected), "{keys:?} {value}");
    }
    // What is inside is named, too.
    for (file, expected) in
        [("rows.csv", ""), ("model.npy", "cli-foreign-format"), ("order.sealed", "cli-foreign-format")]
    {
        let ran = sandbox.run(&["seal", file, "-o", "other.sealed", "--force", "--sign", "maker.key"]);
        assert_eq!(ran.exit, 0, "{}", ran.stderr);
        let (_, value) = sandbox.json(&["predict", "other.sealed", "-i", "rows.csv", "--any-signer"]);
        assert!(!code(&value).is_empty() && code(&value).starts_with(expected), "{file} {value}");
        assert!(value["error"]["help"].as_str().unwrap().contains("apr open"), "{value}");
    }
}

#[test]
fn a_sealed_model_is_served() {
    let (sandbox, expected) = with_formats();
    for file in ["model.apr", "plain.gguf"] {
        seal(&sandbox, file, &["--recipient", "buyer.key.pub", "--sign", "maker.key"]);
        let server = Serving::start(&sandbox, &[&["serve", "order.sealed"], &BUYER[..]].concat());
        let answer = server.predict("{\"rows\": [[1, 2], [3, 4], [-0.5, 1e2]]}");
        assert_eq!(answer["predictions"], expected);
    }
}

/// What is embedded is what was sealed, after its signature was verified.
#[test]
fn a_sealed_model_is_embedded_with_its_keys() {
    let (sandbox, _) = with_formats();
    let embed = |args: &[&str]| {
        sandbox.json(
            &[&["embed", "order.sealed", "-o", "p", "--crates", "checkout", "--dry-run"], args].concat(),
        )
    };
    for file in ["model.apr", "plain.safetensors", "second.apr"] {
        seal(&sandbox, file, &["--recipient", "buyer.key.pub", "--sign", "maker.key"]);
        for (keys, exit, expected) in [
            (&[][..], 4, "ac-signed"),
            (&["--allow-unverified"], 4, "ac-signed"),
            (&["--signer", "maker.key.pub"], 6, "ac-encrypted"),
            (&["--identity", "buyer.key"], 4, "ac-signed"),
            (&["--signer", "owner.key.pub", "--identity", "buyer.key"], 4, "ac-untrusted-signer"),
        ] {
            if keys.contains(&"owner.key.pub") && !sandbox.path("owner.key").exists() {
                assert_eq!(sandbox.run(&["keygen", "sign", "-o", "owner.key"]).exit, 0);
            }
            let (found, value) = embed(keys);
            assert_eq!((found, code(&value)), (exit, expected), "{keys:?} {value}");
        }
        let project = ["embed", "order.sealed", "-o", "p", "--crates", "checkout"];
        let ran = sandbox.run(&[&project[..], &BUYER].concat());
        assert_eq!(ran.exit, 0, "{}", ran.stderr);
        assert!(ran.stderr.contains("contains the decrypted model"), "{}", ran.stderr);
        assert_eq!(sandbox.read("p/model.apr"), sandbox.read(file), "{file}");
        std::fs::remove_dir_all(sandbox.path("p")).unwrap();
    }
    let (exit, value) =
        sandbox.json(&["embed", "sold.apr", "-o", "p", "--identity", "buyer.key", "--crates", "checkout"]);
    assert_eq!((exit, code(&value)), (2, "cli-usage"));
    assert!(value["error"]["help"].as_str().unwrap().contains("apr decrypt"), "{value}");
}

#[test]
fn commands_that_open_no_sealed_file_name_it_and_the_way_through() {
    let sandbox = Sandbox::with_models();
    for (args, exit) in [
        (&["tensors", "model.sealed"][..], 6),
        (&["tensors", "model.sealed", "--identity", "buyer.key"], 6),
        (&["check", "model.sealed"], 3),
        (&["diff", "model.sealed", "model.safetensors"], 6),
        (&["convert", "model.sealed", "out.safetensors"], 6),
        (&["quantize", "model.sealed", "--type", "q8_0", "-o", "out.gguf"], 6),
        (&["shard", "model.sealed", "-o", "out", "--max-size", "1MB"], 6),
        (&["size", "model.sealed"], 6),
    ] {
        let ran = sandbox.run(args);
        let said = ran.stdout + &ran.stderr;
        assert_eq!(ran.exit, exit, "{args:?} {said}");
        assert!(said.contains("sealed file") && said.contains("apr open"), "{args:?} {said}");
        assert!(!said.contains("header too large"), "{args:?} {said}");
    }
    assert_eq!(sandbox.json(&["inspect", "model.sealed"]).1["format"], json!("sealed"));
}
