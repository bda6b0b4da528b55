//! Encrypted and signed models: opened by whom they are for, refused after any change, without a word of their content.

use std::path::Path;

use apr_container::Protection;
use apr_crypto::{RecipientSecret, SecretKey, SigningKey, VerifyingKey};
use serde_json::{Value, json};

use crate::sandbox::{Sandbox, buyer, licensed, line, maker, protected};
use crate::vectors::sidecars;

/// Recomputes the checksum, as anyone can.
pub(crate) fn reseal(mut file: Vec<u8>) -> Vec<u8> {
    let body = file.len() - 4;
    let crc = crc32(&file[..body]);
    file[body..].copy_from_slice(&crc.to_le_bytes());
    file
}

/// CRC-32, written down a second time.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
    })
}

fn code(value: &Value) -> &str {
    value["error"]["code"].as_str().unwrap_or_default()
}

#[test]
fn what_is_encrypted_comes_back_byte_for_byte() {
    let sandbox = Sandbox::with_models();
    let model = sandbox.read("model.apr");
    for (lock, open) in [
        (["--recipient", "buyer.key.pub"], ["--identity", "buyer.key"]),
        (["--recipient", &line(buyer().public())], ["--identity", "buyer.key"]),
        (["--password-file", "password.txt"], ["--password-file", "password.txt"]),
    ] {
        for sign in [&[][..], &["--sign", "maker.key"], &["--sign", "ed25519.pem"]] {
            let encrypt = [&["encrypt", "model.apr", "-o", "e.apr", "--force"], &lock[..], sign].concat();
            let ran = sandbox.run(&encrypt);
            assert_eq!(ran.exit, 0, "{encrypt:?}\n{}", ran.stderr);
            let verify = if sign.is_empty() { &[][..] } else { &["--signer", "maker.key.pub"] };
            let decrypt = [&["decrypt", "e.apr", "-o", "d.apr", "--force"], &open[..], verify].concat();
            let ran = sandbox.run(&decrypt);
            assert_eq!(ran.exit, 0, "{decrypt:?}\n{}", ran.stderr);
            assert_eq!(sandbox.read("d.apr"), model);
        }
    }
}

#[test]
fn every_type_of_model_can_be_encrypted() {
    let sandbox = Sandbox::with_models();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/apr");
    let mut n_files = 0;
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        // One release suffices: the payload is not decoded.
        if !name.starts_with("a0723") || !name.ends_with("_plain.apr") {
            continue;
        }
        let path = path.to_str().unwrap();
        let ran = sandbox.run(&["encrypt", path, "-o", "e.apr", "--force", "--recipient", "buyer.key.pub"]);
        assert_eq!(ran.exit, 0, "{name}\n{}", ran.stderr);
        let ran = sandbox.run(&["decrypt", "e.apr", "-o", "d.apr", "--force", "--identity", "buyer.key"]);
        assert_eq!(ran.exit, 0, "{name}\n{}", ran.stderr);
        let (a, b) =
            (sandbox.json(&["inspect", path, "--verify"]), sandbox.json(&["inspect", "d.apr", "--verify"]));
        for field in ["header", "metadata", "verified", "model", "layout"] {
            let mut pair = [&a, &b].map(|(_, value)| value[field].clone());
            for value in &mut pair {
                // Other programs spell metadata otherwise, and compress otherwise.
                for length in ["metadata_bytes", "payload_bytes"] {
                    value.as_object_mut().map(|header| header.remove(length));
                }
            }
            assert_eq!(pair[0], pair[1], "{name}: {field}");
        }
        n_files += 1;
    }
    assert!(n_files > 20, "{n_files}");
}

#[test]
fn files_of_other_programs_open_in_compat_mode() {
    let sandbox = Sandbox::empty();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/apr");
    let inputs: Value = serde_json::from_slice(&std::fs::read(folder.join("inputs.json")).unwrap()).unwrap();
    let bytes = |of: &str, key: &str| -> [u8; 32] {
        let text = inputs["keys"][of][key].as_str().unwrap_or_else(|| panic!("{key}"));
        let digits = text
            .as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap());
        digits.collect::<Vec<u8>>().try_into().unwrap()
    };
    let secret = RecipientSecret::from_bytes(&bytes("recipient", "x25519_secret_hex"));
    SecretKey::from(secret).create_file(&sandbox.path("r.key"), "").unwrap();
    let signer = VerifyingKey::from_bytes(&bytes("signed", "ed25519_public_hex")).unwrap().to_string();
    sandbox.write("p.txt", inputs["keys"]["password"]["password"].as_str().unwrap().as_bytes());
    sandbox.close("p.txt");
    let mut n_files = 0;
    for (name, facts) in &sidecars("apr") {
        let protection = facts["protection"].as_str().unwrap_or("plain");
        if !name.starts_with("a0723") || !["password", "recipient", "signed"].contains(&protection) {
            continue;
        }
        let path = folder.join(name);
        let path = path.to_str().unwrap();
        let key = match protection {
            "password" => &["--password-file", "p.txt"][..],
            "recipient" => &["--identity", "r.key"],
            _ => &["--signer", &signer],
        };
        let (exit, value) = sandbox.json(&[&["check", path], key].concat());
        if protection == "signed" {
            assert_eq!(exit, 0, "{name}: {value}");
            assert_eq!(value["files"][0]["signer"]["trusted"], true, "{name}");
        } else {
            // Nothing ties their payloads to the file around them.
            assert_eq!(exit, 4, "{name}: {value}");
            assert_eq!(value["files"][0]["problems"][0]["code"], "ac-unbound", "{name}");
            let (exit, value) = sandbox.json(&[&["check", path, "--compat"], key].concat());
            assert_eq!((exit, &value["files"][0]["decrypted"]), (0, &json!(true)), "{name}: {value}");
            let decrypt = [&["decrypt", path, "-o", "d.apr", "--force", "--compat"], key].concat();
            let ran = sandbox.run(&decrypt);
            assert_eq!(ran.exit, 0, "{name}\n{}", ran.stderr);
            assert_eq!(sandbox.run(&["check", "d.apr"]).exit, 0, "{name}");
        }
        n_files += 1;
    }
    assert!(n_files > 15, "{n_files}");
}

#[test]
fn wrong_keys_and_damage_are_one_text() {
    let sandbox = Sandbox::with_models();
    let other = SecretKey::from(RecipientSecret::from_bytes(&[9; 32]));
    other.create_file(&sandbox.path("other.key"), "").unwrap();
    sandbox.write("wrong.txt", b"correct horse battery stable");
    sandbox.close("wrong.txt");
    let sold = protected(&licensed(), &Protection::default().for_recipient(&buyer().public()));
    sandbox.write("m.apr", &sold);
    let told = |options: &[&str]| {
        let ran = sandbox.run(&[&["decrypt", "m.apr", "-o", "n.apr"], options].concat());
        assert_eq!((ran.exit, ran.stdout.as_str()), (4, ""), "{}", ran.stderr);
        assert!(!sandbox.path("n.apr").exists());
        ran.stderr
    };
    let text = told(&["--identity", "other.key"]);
    assert!(text.contains("error[ac-decryption]"), "{text}");
    assert_eq!(told(&["--password-file", "password.txt"]), text, "a password in place of the key");
    for at in [5, 20, 40, 60, 100] {
        let mut damaged = sold.clone();
        let at = damaged.len() - 4 - at;
        damaged[at] ^= 1;
        sandbox.write("m.apr", &reseal(damaged));
        assert_eq!(told(&["--identity", "buyer.key"]), text);
    }
    sandbox.write("m.apr", &sandbox.read("locked.apr"));
    let text = told(&["--password-file", "wrong.txt"]);
    assert_eq!(told(&["--identity", "buyer.key"]), text, "a key in place of the password");
}

/// Any change between the header and the signature is refused, also with a recomputed checksum.
#[test]
fn nothing_that_was_changed_is_used_or_told() {
    let sandbox = Sandbox::with_models();
    let sold = sandbox.read("sold.apr");
    let keys = ["--identity", "buyer.key", "--signer", "maker.key.pub"];
    for at in (4..sold.len() - 4).step_by(13) {
        let mut changed = sold.clone();
        changed[at] ^= 0x20;
        sandbox.write("changed.apr", &reseal(changed));
        for command in [
            &["predict", "changed.apr", "-i", "rows.csv"][..],
            &["decrypt", "changed.apr", "-o", "n.apr"],
            &["tensors", "changed.apr"],
        ] {
            let ran = sandbox.run(&[command, &keys].concat());
            assert!([3, 4, 6].contains(&ran.exit), "byte {at}: {}", ran.exit);
            assert_eq!(ran.stdout, "", "byte {at}");
            for word in ["Example Ltd", "plane", "1 + 2 a"] {
                assert!(!ran.stderr.contains(word), "byte {at}: {}", ran.stderr);
            }
        }
    }
    assert!(!sandbox.path("n.apr").exists());
}

#[test]
fn a_demanded_signature_is_verified_before_anything_else() {
    let sandbox = Sandbox::with_models();
    let plain = sandbox.read("model.apr");
    let forger = SigningKey::from_seed(&[9; 32]);
    sandbox.write("forged.apr", &protected(&plain, &Protection::default().signed_by(&forger)));
    // Unreadable metadata, signed by an untrusted key: the signature is checked first.
    let mut torn = sandbox.read("forged.apr");
    torn[32] = 0xC1;
    sandbox.write("torn.apr", &reseal(torn));
    let predict = |file: &str, options: &[&str]| {
        let (exit, value) = sandbox.json(&[&["predict", file, "-i", "rows.csv"], options].concat());
        (exit, code(&value).to_owned())
    };
    let signer = ["--signer", "maker.key.pub"];
    assert_eq!(predict("made.apr", &signer), (0, String::new()));
    assert_eq!(predict("made.apr", &["--trusted-keys", "trusted.txt"]), (0, String::new()));
    for (file, expected) in [
        ("forged.apr", "ac-untrusted-signer"),
        ("torn.apr", "ac-untrusted-signer"),
        ("model.apr", "ac-not-signed"),
        ("locked.apr", "ac-not-signed"),
        ("model.safetensors", "ac-not-signed"),
        ("tensors.apr", "ac-not-signed"),
        ("sharded", "ac-not-signed"),
    ] {
        assert_eq!(predict(file, &signer), (4, expected.to_owned()), "{file}");
        assert_eq!(predict(file, &["--trusted-keys", "trusted.txt"]), (4, expected.to_owned()), "{file}");
        // What lets unchecked signatures pass does not let wrong ones pass.
        let both = [&signer[..], &["--allow-unverified"]].concat();
        assert_eq!(predict(file, &both), (4, expected.to_owned()), "{file}");
    }
    assert_eq!(predict("forged.apr", &["--any-signer"]).0, 0);
    assert_eq!(predict("torn.apr", &["--any-signer"]), (4, "ac-signature".to_owned()));
    assert_eq!(predict("forged.apr", &[]), (4, "ac-signed".to_owned()));
    // Standard input is verified like a file.
    let ran = sandbox.run_with_input(
        &["predict", "-", "-i", "rows.csv", "--signer", "maker.key.pub"],
        &sandbox.read("made.apr"),
    );
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
}

#[test]
fn a_key_for_what_is_not_encrypted_is_refused() {
    let sandbox = Sandbox::with_models();
    for file in ["model.apr", "made.apr", "tensors.apr", "model.safetensors"] {
        for command in [
            &["predict", file, "-i", "rows.csv"][..],
            &["tensors", file],
            &["inspect", file],
            &["check", file],
        ] {
            let options = ["--identity", "buyer.key"];
            let trust = if file == "made.apr" { &["--signer", "maker.key.pub"][..] } else { &[] };
            let (exit, value) = sandbox.json(&[command, &options, trust].concat());
            assert_eq!(exit, 4, "{command:?}: {value}");
        }
    }
}

#[test]
fn a_check_says_what_it_looked_at() {
    let sandbox = Sandbox::with_models();
    let first = |args: &[&str]| {
        let (exit, value) = sandbox.json(&[&["check"], args].concat());
        (exit, value["files"][0].clone())
    };
    let (exit, file) = first(&["sold.apr"]);
    assert_eq!((exit, &file["payload"], &file["signer"]), (0, &json!("encrypted"), &Value::Null));
    let (exit, file) = first(&["sold.apr", "--signer", "maker.key.pub"]);
    assert_eq!((exit, &file["payload"], &file["signer"]["trusted"]), (0, &json!("encrypted"), &json!(true)));
    let (exit, file) = first(&["sold.apr", "--trusted-keys", "trusted.txt", "--identity", "buyer.key"]);
    assert_eq!((exit, &file["payload"], &file["signer"]["name"]), (0, &json!("decoded"), &json!("maker")));
    let (exit, file) = first(&["sold.apr", "--any-signer", "--identity", "buyer.key"]);
    assert_eq!((exit, &file["decrypted"], &file["signer"]["trusted"]), (0, &json!(true), &json!(false)));
    assert!(file["warnings"][0].as_str().unwrap().contains("not who signed"), "{file}");
    // One that is not as demanded among several.
    let (exit, value) = sandbox.json(&["check", "made.apr", "model.apr", "--signer", "maker.key.pub"]);
    assert_eq!((exit, &value["files"][0]["ok"], &value["files"][1]["ok"]), (4, &json!(true), &json!(false)));
}

#[test]
fn inspect_says_what_authenticates_what() {
    let sandbox = Sandbox::with_models();
    let shown = |args: &[&str]| {
        let (exit, value) = sandbox.json(&[&["inspect"], args].concat());
        assert_eq!(exit, 0, "{args:?}: {value}");
        value["authentication"].clone()
    };
    let whole = json!(["header", "metadata", "payload"]);
    let plain = shown(&["model.apr", "--verify"]);
    assert_eq!(plain["checksum"], "right");
    assert_eq!(
        (&plain["authentic"], &plain["by"]),
        (&json!([]), &Value::Null),
        "a checksum authenticates nothing"
    );
    let signed = shown(&["made.apr"]);
    assert_eq!((&signed["signature"]["state"], &signed["authentic"]), (&json!("unchecked"), &json!([])));
    assert_eq!(signed["signature"]["key"], line(maker().verifying_key()));
    let signed = shown(&["made.apr", "--signer", "maker.key.pub"]);
    assert_eq!((&signed["signature"]["state"], &signed["authentic"]), (&json!("valid"), &whole));
    assert_eq!(signed["by"], "signature");
    let anyone = shown(&["made.apr", "--any-signer"]);
    assert_eq!((&anyone["signature"]["state"], &anyone["authentic"]), (&json!("valid"), &json!([])));
    let locked = shown(&["locked.apr"]);
    assert_eq!(
        locked["encryption"],
        json!({
            "algorithm": "AES-256-GCM", "mode": "password", "recipient_id": null, "commitment": true, "bound": null,
        })
    );
    assert_eq!(locked["authentic"], json!([]));
    let locked = shown(&["locked.apr", "--password-file", "password.txt"]);
    assert_eq!((&locked["encryption"]["bound"], &locked["by"]), (&json!(true), &json!("password")));
    assert_eq!(locked["authentic"], whole);
    // Everybody can encrypt to a public key: opening it shows nothing about who did.
    let bare = protected(&licensed(), &Protection::default().for_recipient(&buyer().public()));
    sandbox.write("bare.apr", &bare);
    let bare = shown(&["bare.apr", "--identity", "buyer.key"]);
    assert_eq!((&bare["encryption"]["bound"], &bare["authentic"]), (&json!(true), &json!([])));
    let sold = shown(&["sold.apr"]);
    let id: String = buyer().public().id().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        (&sold["encryption"]["mode"], &sold["encryption"]["recipient_id"]),
        (&json!("recipient"), &json!(id))
    );
}

#[test]
fn outputs_obey_the_rules_of_all_outputs() {
    let sandbox = Sandbox::with_models();
    let to = ["--recipient", "buyer.key.pub"];
    let from = ["--identity", "buyer.key", "--signer", "maker.key.pub"];
    let before = sandbox.listing();
    for (exit, args) in [
        (2, [&["encrypt", "model.apr", "-o", "model.apr"], &to[..]].concat()),
        (2, [&["decrypt", "sold.apr", "-o", "model.apr"], &from[..]].concat()),
        (2, [&["encrypt", "model.apr", "-o", "sharded", "--force"], &to[..]].concat()),
        (2, [&["encrypt", "model.apr", "-o", "-", "--json"], &to[..]].concat()),
        (5, [&["encrypt", "model.apr", "-o", "no/folder/x.apr"], &to[..]].concat()),
        (0, [&["encrypt", "model.apr", "-o", "n.apr", "--dry-run"], &to[..]].concat()),
        (0, [&["decrypt", "sold.apr", "-o", "n.apr", "--dry-run"], &from[..]].concat()),
        (4, ["decrypt", "sold.apr", "-o", "n.apr", "--identity", "buyer.key", "--dry-run"].to_vec()),
    ] {
        let ran = sandbox.run(&args);
        assert_eq!(ran.exit, exit, "{args:?}\n{}", ran.stderr);
    }
    assert_eq!(sandbox.listing(), before);
    // A pipe from end to end, and a file over itself.
    let line = "apr encrypt model.apr -o - --recipient buyer.key.pub | apr decrypt - -o - --identity buyer.key | apr check -";
    assert_eq!(sandbox.shell(line).exit, 0);
    assert_eq!(
        sandbox.run(&[&["encrypt", "model.apr", "-o", "model.apr", "--force"], &to[..]].concat()).exit,
        0
    );
    assert_eq!(sandbox.run(&["check", "model.apr", "--identity", "buyer.key"]).exit, 0);
    assert_eq!(sandbox.leftovers(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn what_is_left_behind_is_said() {
    let sandbox = Sandbox::with_models();
    let to = ["--recipient", "buyer.key.pub"];
    let ran = sandbox.run(&[&["encrypt", "made.apr", "-o", "n.apr"], &to[..]].concat());
    assert_eq!(ran.exit, 4, "{}", ran.stderr);
    let ran = sandbox.run(&[&["encrypt", "made.apr", "-o", "n.apr", "--allow-unverified"], &to[..]].concat());
    assert!(
        ran.exit == 0 && ran.stderr.contains("signature of the input is not in the output"),
        "{}",
        ran.stderr
    );
    let ran = sandbox.run(&[
        "decrypt",
        "sold.apr",
        "-o",
        "d.apr",
        "--identity",
        "buyer.key",
        "--signer",
        "maker.key.pub",
    ]);
    assert!(ran.stderr.contains("the output has no signature"), "{}", ran.stderr);
}

#[test]
fn keys_do_not_hide_why_a_file_cannot_be_read() {
    let sandbox = Sandbox::with_models();
    for (path, exit, expected) in [
        ("missing.apr", 5, "df-io"),
        ("rows.csv", 6, "cli-foreign-format"),
        ("broken.safetensors", 3, "st-header-length"),
        ("model.gguf", 4, "ac-not-signed"),
        ("sharded", 4, "ac-not-signed"),
    ] {
        for command in [&["inspect", path][..], &["tensors", path], &["predict", path, "-i", "table.csv"]] {
            let (found, value) = sandbox.json(&[command, &["--signer", "maker.key.pub"]].concat());
            assert_eq!((found, &value["error"]["code"]), (exit, &expected.into()), "{command:?}\n{value:#}");
        }
    }
}
