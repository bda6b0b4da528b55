//! Sealed files: recipients read back the content, others do not.

use apr_crypto::{RecipientSecret, SecretKey};
use serde_json::{Value, json};

use crate::sandbox::Sandbox;

const BUYER: [&str; 4] = ["--identity", "buyer.key", "--signer", "maker.key.pub"];

fn code(value: &Value) -> &str {
    value["error"]["code"].as_str().unwrap_or_default()
}

fn write_secret(sandbox: &Sandbox, name: &str, byte: u8) {
    let secret = RecipientSecret::from_bytes(&[byte; 32]);
    SecretKey::from(secret).create_file(&sandbox.path(name), "").unwrap();
}

#[test]
fn files_of_every_format_come_back_byte_for_byte() {
    let sandbox = Sandbox::with_models();
    let two = ["--recipient", "buyer.key.pub", "--recipient", "second.key.pub", "--sign", "maker.key"];
    for (file, has_tensors) in [
        ("model.safetensors", true),
        ("tensors.apr", true),
        ("model.apr", false),
        ("model.gguf", true),
        ("rows.csv", false),
    ] {
        for (lock, open) in [
            (&["--recipient", "buyer.key.pub"][..], &["--identity", "buyer.key"][..]),
            (&two, &BUYER),
            (&["--sign", "maker.key"], &["--trusted-keys", "trusted.txt"]),
        ] {
            let (exit, value) = sandbox.json(&[&["seal", file, "-o", "s.sealed", "--force"], lock].concat());
            assert_eq!((exit, value["tensors"] != 0), (0, has_tensors), "{file}: {value}");
            assert_eq!(value["bytes"], sandbox.read("s.sealed").len());
            let (exit, value) =
                sandbox.json(&[&["open", "s.sealed", "-o", "o.bin", "--force"], open].concat());
            assert_eq!((exit, &value["name"]), (0, &json!(file)), "{value}");
            assert_eq!(sandbox.read("o.bin"), sandbox.read(file));
        }
    }
    let seal = ["seal", "model.apr", "-o", "word.sealed", "--password-file", "password.txt", "--name", "m"];
    assert_eq!(sandbox.run(&seal).exit, 0);
    let open = ["open", "word.sealed", "-o", "word.apr", "--password-file", "password.txt"];
    assert_eq!(sandbox.json(&open).1["name"], "m");
    assert_eq!(sandbox.read("word.apr"), sandbox.read("model.apr"));
    // Standard input to open.
    let word = sandbox.read("word.sealed");
    let open = ["open", "-", "-o", "in.apr", "--password-file", "password.txt"];
    let ran = sandbox.run_with_input(&open, &word);
    assert_eq!((ran.exit, sandbox.read("in.apr")), (0, sandbox.read("model.apr")), "{}", ran.stderr);
    // Standard input to seal, standard output to open.
    let model = sandbox.read("model.safetensors");
    let seal = ["seal", "-", "-o", "in.sealed", "--recipient", "buyer.key.pub"];
    let ran = sandbox.run_with_input(&seal, &model);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    assert_eq!(sandbox.run(&["open", "in.sealed", "-o", "in", "--identity", "buyer.key"]).exit, 0);
    assert_eq!(sandbox.read("in"), model);
    let seal = ["seal", "rows.csv", "-o", "rows.sealed", "--recipient", "buyer.key.pub"];
    assert_eq!(sandbox.run(&seal).exit, 0);
    let ran = sandbox.run(&["open", "rows.sealed", "-o", "-", "--identity", "buyer.key"]);
    assert_eq!((ran.exit, ran.stdout.into_bytes()), (0, sandbox.read("rows.csv")));
    assert!(sandbox.leftovers().is_empty());
}

#[test]
fn single_tensors_are_read() {
    let sandbox = Sandbox::with_models();
    let model = sandbox.read("model.safetensors");
    let (_, listed) = sandbox.json(&["tensors", "model.safetensors"]);
    for tensor in listed["tensors"].as_array().unwrap() {
        let name = tensor["name"].as_str().unwrap();
        let open =
            [&["open", "model.sealed", "-o", "t.bin", "--force", "--tensor", name], &BUYER[..]].concat();
        let (exit, value) = sandbox.json(&open);
        assert_eq!(exit, 0, "{value}");
        for key in ["name", "dtype", "shape"] {
            assert_eq!(value["tensor"][key], tensor[key]);
        }
        assert_eq!(value["signer"]["trusted"], true);
        let (offset, len) = (tensor["offset"].as_u64().unwrap(), tensor["bytes"].as_u64().unwrap());
        assert_eq!(sandbox.read("t.bin"), model[offset as usize..(offset + len) as usize]);
    }
}

/// After any change nothing is written and nothing of the content is printed.
#[test]
fn changes_are_refused_without_a_word_of_the_content() {
    let sandbox = Sandbox::with_models();
    let file = sandbox.read("model.sealed");
    let slot_len = u32::from_le_bytes(file[52..56].try_into().unwrap()) as usize;
    for at in (0..file.len()).step_by(211).chain([8, 10, 12, 64, 150, 210, 520, file.len() - 33]) {
        let mut changed = file.clone();
        changed[at] ^= 1;
        sandbox.write("changed.sealed", &changed);
        // The slot that is not in use is an exception; a wrong hash at the end of the file changes nothing that is read.
        if (512 + slot_len..512 + 2 * slot_len).contains(&at) {
            continue;
        }
        for out in ["o.bin", "-"] {
            let ran = sandbox.run(&[&["open", "changed.sealed", "-o", out], &BUYER[..]].concat());
            assert!([3, 4, 6].contains(&ran.exit), "byte {at}: {} {}", ran.exit, ran.stderr);
            assert!(!ran.stderr.contains("embeddings"), "{}", ran.stderr);
            assert!(ran.stdout.is_empty() && !sandbox.path("o.bin").exists(), "byte {at}");
        }
    }
    assert!(sandbox.leftovers().is_empty());
}

#[test]
fn only_those_it_is_for_open_it() {
    let sandbox = Sandbox::with_models();
    write_secret(&sandbox, "eve.key", 77);
    sandbox.write("eve.pub", crate::sandbox::line(crate::sandbox::buyer().public()).as_bytes());
    for (args, exit, expected) in [
        (&["--identity", "eve.key", "--any-signer"][..], 4, "ac-decryption"),
        (&["--identity", "buyer.key"], 4, "ac-signed"),
        (&["--identity", "buyer.key", "--signer", "eve.pub"], 3, "cy-key-kind"),
        (&["--password-file", "password.txt", "--any-signer"], 2, "ac-sealed-lock"),
        (&["--any-signer"], 6, "ac-encrypted"),
    ] {
        let (found, value) = sandbox.json(&[&["open", "model.sealed", "-o", "o.bin"], args].concat());
        assert_eq!((found, code(&value)), (exit, expected), "{args:?}");
    }
    assert!(!sandbox.path("o.bin").exists());
}

#[test]
fn recipients_change_in_place() {
    let sandbox = Sandbox::with_models();
    write_secret(&sandbox, "second.key", 9);
    let before = sandbox.read("model.sealed");
    let rekey = ["rekey", "model.sealed", "--identity", "buyer.key", "--recipient", "second.key.pub"];
    let (exit, value) = sandbox.json(&rekey);
    assert_eq!((exit, &value["revision"]), (0, &json!(2)), "{value}");
    assert_eq!(sandbox.read("model.sealed").len(), before.len());
    let second = ["--identity", "second.key", "--signer", "maker.key.pub"];
    for keys in [BUYER, second] {
        let open = [&["open", "model.sealed", "-o", "o.bin", "--force"], &keys[..]].concat();
        assert_eq!(sandbox.run(&open).exit, 0);
        assert_eq!(sandbox.read("o.bin"), sandbox.read("model.safetensors"));
    }
    let remove = ["rekey", "model.sealed", "--identity", "second.key", "--remove-others"];
    assert_eq!(sandbox.run(&remove).exit, 0);
    let (exit, value) = sandbox.json(&[&["open", "model.sealed", "-o", "x.bin"], &BUYER[..]].concat());
    assert_eq!((exit, code(&value)), (4, "ac-decryption"));
    let (_, value) = sandbox.json(&["model.sealed"]);
    assert_eq!((&value["opens_with"], &value["revision"]), (&json!(["recipient"]), &json!(3)));

    // Bound recipients are the signer's.
    let seal =
        ["seal", "model.apr", "-o", "bound.sealed", "--recipient", "buyer.key.pub", "--sign", "maker.key"];
    assert_eq!(sandbox.run(&[&seal[..], &["--bind-recipients"]].concat()).exit, 0);
    let rekey = ["rekey", "bound.sealed", "--identity", "buyer.key", "--recipient", "second.key.pub"];
    assert_eq!(code(&sandbox.json(&rekey).1), "ac-sealed-bound");
    assert_eq!(sandbox.run(&[&rekey[..], &["--sign", "maker.key"]].concat()).exit, 0);

    // A password gives way to recipients only if it goes.
    let seal = ["seal", "model.apr", "-o", "word.sealed", "--password-file", "password.txt"];
    assert_eq!(sandbox.run(&seal).exit, 0);
    let rekey = ["rekey", "word.sealed", "--password-file", "password.txt", "--recipient", "buyer.key.pub"];
    assert_eq!(code(&sandbox.json(&rekey).1), "ac-value");
    assert_eq!(sandbox.run(&[&rekey[..], &["--remove-others"]].concat()).exit, 0);
    assert_eq!(sandbox.run(&["open", "word.sealed", "-o", "w.apr", "--identity", "buyer.key"]).exit, 0);
    assert_eq!(sandbox.read("w.apr"), sandbox.read("model.apr"));
}

/// `encrypt` and `decrypt` go by the file: version 1 where that is what the file and its one reader have, else a sealed file.
#[test]
fn whatever_is_encrypted_is_decrypted() {
    let sandbox = Sandbox::with_models();
    write_secret(&sandbox, "second.key", 9);
    let both = ["--recipient", "buyer.key.pub", "--recipient", "second.key.pub"];
    let password = ["--password-file", "password.txt"];
    for (file, lock, schema) in [
        ("model.apr", &both[..2], "apr.encrypt/1"),
        ("model.apr", &password, "apr.encrypt/1"),
        ("model.apr", &both, "apr.seal/1"),
        ("model.safetensors", &both[..2], "apr.seal/1"),
        ("model.safetensors", &password, "apr.seal/1"),
        ("tensors.apr", &both, "apr.seal/1"),
        ("model.gguf", &[&both[..2], &["--sign", "maker.key"]].concat(), "apr.seal/1"),
        ("rows.csv", &both[..2], "apr.seal/1"),
    ] {
        let (exit, value) = sandbox.json(&[&["encrypt", file, "-o", "e.bin", "--force"], lock].concat());
        assert_eq!((exit, &value["schema"]), (0, &json!(schema)), "{file} {lock:?} {value}");
        let is_sealed = schema == "apr.seal/1";
        let format = if is_sealed { "sealed" } else { "apr" };
        assert_eq!(sandbox.json(&["inspect", "e.bin"]).1["format"], format);
        let mut open = if lock == password { password.to_vec() } else { vec!["--identity", "buyer.key"] };
        if lock.contains(&"--sign") {
            let (exit, value) = sandbox.json(&[&["decrypt", "e.bin", "-o", "n.bin"], &open[..]].concat());
            assert_eq!((exit, code(&value)), (4, "ac-signed"));
            open.extend(["--signer", "maker.key.pub"]);
        }
        let (exit, value) =
            sandbox.json(&[&["decrypt", "e.bin", "-o", "d.bin", "--force"], &open[..]].concat());
        let schema = if is_sealed { "apr.open/1" } else { "apr.decrypt/1" };
        assert_eq!((exit, &value["schema"]), (0, &json!(schema)), "{file} {value}");
        assert_eq!(sandbox.read("d.bin"), sandbox.read(file), "{file}");
    }
    // Standard input is read once, whatever it turns out to be.
    let model = sandbox.read("model.safetensors");
    let ran = sandbox.run_with_input(&[&["encrypt", "-", "-o", "in.sealed"], &both[..]].concat(), &model);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    let open = ["decrypt", "-", "-o", "in.bin", "--identity", "second.key"];
    let ran = sandbox.run_with_input(&open, &sandbox.read("in.sealed"));
    assert_eq!((ran.exit, sandbox.read("in.bin")), (0, model), "{}", ran.stderr);
    for (args, exit, expected) in [
        (
            &["encrypt", "model.sealed", "-o", "n", "--recipient", "buyer.key.pub"][..],
            6,
            "cli-foreign-format",
        ),
        (&["encrypt", "locked.apr", "-o", "n", "--recipient", "buyer.key.pub"], 6, "ac-encrypted"),
        (&["encrypt", "model.safetensors", "-o", "n"], 2, "cli-usage"),
        (&["encrypt", "model.safetensors", "-o", "-", "--recipient", "buyer.key.pub"], 2, "cli-usage"),
        (&["decrypt", "model.safetensors", "-o", "n", "--identity", "buyer.key"], 6, "cli-foreign-format"),
        (&["rekey", "model.apr", "--identity", "buyer.key", "--remove-others"], 6, "cli-foreign-format"),
    ] {
        let (found, value) = sandbox.json(args);
        assert_eq!((found, code(&value)), (exit, expected), "{args:?} {value}");
        assert!(!sandbox.path("n").exists());
    }
    assert!(sandbox.leftovers().is_empty());
}

#[test]
fn one_recipient_of_several_is_removed_by_name() {
    let sandbox = Sandbox::with_models();
    write_secret(&sandbox, "second.key", 9);
    let second =
        sandbox.json(&["key", "show", "second.key.pub"]).1["fingerprint"].as_str().unwrap().to_owned();
    let buyer = sandbox.json(&["key", "show", "buyer.key.pub"]).1["fingerprint"].as_str().unwrap().to_owned();
    let both = ["--recipient", "buyer.key.pub", "--recipient", "second.key.pub"];
    let seal = [&["seal", "model.apr", "-o", "s.sealed", "--force"], &both[..]].concat();
    let recipients =
        |key| sandbox.json(&["inspect", "s.sealed", "--identity", key]).1["inside"]["recipients"].clone();
    for name in ["second.key.pub", second.as_str(), &second.replace('-', "").to_uppercase()] {
        assert_eq!(sandbox.run(&seal).exit, 0);
        assert_eq!(recipients("second.key"), json!([buyer, second]));
        let text = sandbox.run(&["inspect", "s.sealed", "--identity", "buyer.key"]).stdout;
        assert!(text.contains(&format!("Recipients\n  {buyer}\n  {second}\n")), "{text}");
        // Without a key nothing tells.
        let text = sandbox.run(&["inspect", "s.sealed"]).stdout;
        assert!(!text.contains(&buyer) && !text.contains(&second), "{text}");
        let (exit, value) = sandbox.json(&["rekey", "s.sealed", "--identity", "buyer.key", "--remove", name]);
        assert_eq!((exit, &value["removed"], &value["added"]), (0, &json!([second]), &json!([])), "{value}");
        assert_eq!(recipients("buyer.key"), json!([buyer]));
        let (exit, value) = sandbox.json(&["open", "s.sealed", "-o", "o", "--identity", "second.key"]);
        assert_eq!((exit, code(&value)), (4, "ac-decryption"));
    }
    let rekey = ["rekey", "s.sealed", "--identity", "buyer.key", "--remove"];
    let ran = sandbox.run(&[&rekey[..], &["second.key.pub"]].concat());
    assert!(ran.exit == 2 && ran.stderr.contains("error[ac-sealed-recipient]"), "{}", ran.stderr);
    assert!(ran.stderr.contains(&second) && ran.stderr.contains("apr inspect"), "{}", ran.stderr);
    let ran = sandbox.run(&[&rekey[..], &["buyer.key.pub"]].concat());
    assert!(ran.exit == 2 && ran.stderr.contains("error[ac-sealed-no-recipient]"), "{}", ran.stderr);
    // The honest sentence.
    let ran = sandbox.run(&[&rekey[..], &["buyer.key.pub", "--recipient", "second.key.pub"]].concat());
    assert!(ran.exit == 0 && ran.stderr.contains("may have kept"), "{}", ran.stderr);

    // A file without a list, by choice or because an older release sealed it.
    let seal = [&["seal", "model.apr", "-o", "h.sealed", "--hide-recipients"], &both[..]].concat();
    assert_eq!(sandbox.run(&seal).exit, 0);
    let inspect = ["inspect", "h.sealed", "--identity", "buyer.key"];
    assert_eq!(sandbox.json(&inspect).1["inside"]["recipients"], json!(null));
    assert!(sandbox.run(&inspect).stdout.contains("does not say who they are"));
    let remove = ["rekey", "h.sealed", "--identity", "buyer.key", "--remove", "second.key.pub"];
    let (exit, value) = sandbox.json(&remove);
    assert_eq!((exit, code(&value)), (2, "ac-sealed-unlisted"), "{value}");
    assert!(value["error"]["help"].as_str().unwrap().contains("--remove-others"), "{value}");
}

#[test]
fn inspect_says_what_is_authenticated_and_by_what() {
    let sandbox = Sandbox::with_models();
    let inspect = |args: &[&str]| sandbox.json(&[&["inspect", "model.sealed"], args].concat()).1;
    let seen = inspect(&[]);
    assert_eq!((&seen["authentic"], &seen["by"], &seen["inside"]), (&json!([]), &json!(null), &json!(null)));
    assert_eq!(seen["signature"]["state"], "unchecked");
    assert_eq!(seen["public_metadata"], json!({"model": "sample"}));
    let unsigned = ["seal", "model.safetensors", "-o", "unsigned.sealed", "--recipient", "buyer.key.pub"];
    assert_eq!(sandbox.run(&unsigned).exit, 0);
    let ran = sandbox.run(&["inspect", "unsigned.sealed", "--verify"]);
    assert!(ran.exit == 6 && ran.stderr.contains("cannot be verified without opening it"), "{ran:?}");
    let verified = inspect(&["--signer", "maker.key.pub", "--verify"]);
    assert_eq!((&verified["by"], &verified["inside"]), (&json!("signature"), &json!(null)));
    let opened = inspect(&["--identity", "buyer.key"]);
    assert_eq!(opened["signature"]["signer"]["trusted"], false);
    assert!(opened["inside"]["tensors"].as_array().unwrap().iter().any(|tensor| tensor["name"] == "mask"));
    assert_eq!(opened["inside"]["private_metadata"]["file.name"], "model.safetensors");

    let mut changed = sandbox.read("model.sealed");
    *changed.last_mut().unwrap() ^= 1;
    sandbox.write("model.sealed", &changed);
    assert_eq!(code(&inspect(&["--verify"])), "ac-signature");
}

#[test]
fn signatures_are_verified_without_opening() {
    let sandbox = Sandbox::with_models();
    let seal = ["seal", "model.safetensors", "-o", "s.sealed", "--recipient", "buyer.key.pub"];
    assert_eq!(sandbox.run(&seal).exit, 0);
    let verify = ["verify", "s.sealed", "--key", "maker.key.pub"];
    let (exit, value) = sandbox.json(&verify);
    assert_eq!((exit, code(&value)), (4, "cli-no-signature"));
    assert_eq!(sandbox.run(&[&seal[..], &["--sign", "maker.key", "--force"]].concat()).exit, 0);
    let (exit, value) = sandbox.json(&verify);
    assert_eq!((exit, &value["format"], &value["trusted"]), (0, &json!("embedded"), &json!(true)));
    let mut bytes = sandbox.read("s.sealed");
    assert_eq!(value["bytes"], bytes.len());
    // A key for another kind of file is not passed over.
    let (exit, value) = sandbox.json(&["check", "s.sealed", "--signer", "maker.key.pub"]);
    assert_eq!(
        (exit, &value["files"][0]["problems"][0]["code"]),
        (3, &json!("cli-foreign-format")),
        "{value}"
    );
    let last = bytes.len() - 100;
    bytes[last] ^= 1;
    sandbox.write("s.sealed", &bytes);
    let (exit, value) = sandbox.json(&verify);
    assert_eq!((exit, code(&value)), (4, "ac-signature"));
}
