//! `apr sign` and `apr verify`.

use std::fs;
use std::path::Path;

use apr_container::Protection;
use apr_crypto::{PublicKey, RecipientSecret, SecretKey, SigningKey, minisign, p256};
use apr_manifest::{Manifest, Method, SignOptions, minisign_path, sign_file, sign_model};

use crate::protection::reseal;
use crate::sandbox::{Sandbox, protected};
use crate::vectors::sidecars;

/// Of `a0150_linreg_none_signed.apr`: 0x11, then seven more each time.
fn release() -> SigningKey {
    SigningKey::from_seed(&core::array::from_fn(|idx| (0x11 + 7 * idx).to_le_bytes()[0]))
}

fn release_p256() -> p256::SigningKey {
    p256::SigningKey::from_bytes(&[7; 32]).unwrap()
}

const SIGNED: &[u8] = include_bytes!("../../../conformance/vectors/apr/a0150_linreg_none_signed.apr");

/// Keys, and what they signed.
pub(crate) fn add_signed(sandbox: &Sandbox) {
    let other = SigningKey::from_seed(&[9; 32]).verifying_key();
    secret(sandbox, "publisher.key", SecretKey::from(release()).to_file_text("release").unwrap().as_str());
    sandbox.write("publisher.pub", PublicKey::from(release().verifying_key()).to_string().as_bytes());
    sandbox.write("other.pub", PublicKey::from(other).to_string().as_bytes());
    secret(sandbox, "publishers.txt", &format!("alice {}\nbob {other}\n", release().verifying_key()));
    secret(sandbox, "publisher.pem", release_p256().to_pem().as_str());
    sandbox.write("publisher-p256.pub", release_p256().verifying_key().to_pem().as_bytes());

    sandbox.write("published.safetensors", &sandbox.read("model.safetensors"));
    let path = sandbox.path("published.safetensors");
    let signature =
        sign_file(&path, &release().into(), "version 1.2", "signature by apr", &|_, _| ()).unwrap();
    fs::write(minisign_path(&path), signature.to_string()).unwrap();
    sandbox.write("published.apr", SIGNED);
    for folder in ["checkpoint", "changed"] {
        fs::create_dir_all(sandbox.path(folder).join("sub")).unwrap();
        sandbox.write(&format!("{folder}/weights.bin"), b"weights");
        sandbox.write(&format!("{folder}/config.json"), b"{}");
        sandbox.write(&format!("{folder}/sub/vocab.txt"), b"a b");
        let signature = sandbox.path(&format!("{folder}.sig"));
        let options = SignOptions::default();
        sign_model(&sandbox.path(folder), &signature, &release_p256(), &options, &|_, _| ()).unwrap();
    }
    sandbox.write("changed/weights.bin", b"Weights");
    sandbox.write("changed/setup.py", b"import os");
    fs::remove_file(sandbox.path("changed/sub/vocab.txt")).unwrap();
}

/// A file that only its owner may read.
fn secret(sandbox: &Sandbox, name: &str, text: &str) {
    sandbox.write(name, text.as_bytes());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(sandbox.path(name), fs::Permissions::from_mode(0o600)).unwrap();
    }
}

fn code(sandbox: &Sandbox, args: &[&str]) -> (i32, String) {
    let ran = sandbox.run(args);
    assert!(ran.exit != 0 && ran.stdout.is_empty(), "{args:?}\n{}{}", ran.stdout, ran.stderr);
    let (exit, value) = sandbox.json(args);
    assert_eq!(exit, ran.exit);
    let code = value["error"]["code"].as_str().unwrap().to_owned();
    assert!(ran.stderr.contains(&code), "{}", ran.stderr);
    (exit, code)
}

fn refused(sandbox: &Sandbox, expected: (i32, &str), args: &[&str]) {
    let (exit, code) = code(sandbox, args);
    assert_eq!((exit, &*code), expected, "{args:?}");
}

#[test]
fn keys_of_every_format_sign_and_verify() {
    let sandbox = Sandbox::with_models();
    let (ed25519, seed) = (release(), SecretKey::from(release()));
    let theirs = minisign::SecretKey::new(minisign::KeyId(*b"theirs!!"), release());
    secret(&sandbox, "a.pem", seed.to_pkcs8_pem().as_str());
    secret(&sandbox, "a.minisign", theirs.to_text().as_str());
    sandbox.write("a.pub.pem", seed.public().to_spki_pem().as_bytes());
    sandbox.write("a.pub.minisign", theirs.public().to_string().as_bytes());
    let line = ed25519.verifying_key().to_string();
    for secret in ["publisher.key", "a.pem", "a.minisign"] {
        let ran = sandbox.run(&["sign", "model.gguf", "--key", secret, "--force"]);
        assert_eq!((ran.exit, &*ran.stdout), (0, ""), "{}", ran.stderr);
        for public in ["publisher.pub", "a.pub.pem", &line] {
            let (exit, value) = sandbox.json(&["verify", "model.gguf", "--signer", public]);
            assert_eq!((exit, &value["format"]), (0, &"minisign".into()), "{secret} {public}");
            assert_eq!(value["fingerprint"], ed25519.verifying_key().fingerprint().to_string());
            assert_eq!((&value["comment"], &value["trusted"]), (&"file:model.gguf".into(), &true.into()));
        }
        // minisign's own public key names its id; keys of ours have another.
        let expected = if secret == "a.minisign" { 0 } else { 4 };
        assert_eq!(sandbox.run(&["verify", "model.gguf", "--key", "a.pub.minisign"]).exit, expected);
        let (_, value) = sandbox.json(&["verify", "model.gguf", "--trusted-keys", "publishers.txt"]);
        assert_eq!(value["signer"], "alice");
    }
    refused(&sandbox, (4, "cy-signature"), &["verify", "model.gguf", "--key", "other.pub"]);
}

/// scrypt with 8 MiB; what minisign chooses takes 1 GiB.
#[test]
fn a_minisign_key_under_a_password_signs() {
    let sandbox = Sandbox::with_models();
    let locked = "untrusted comment: minisign encrypted secret key\nRWRTY0IyAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8AAAQAAAAAAAAAgAAAAAAAeDfykX94mIdMDv1nKZEMjv7HyaRWDPYfPFZOOiwDHwBpKDjHbYXLzcAxdEN2AYsxmL2uCWuHEUJ7Xv9OVO4uBOf70IubkIhPxituwzsl9azG6C7Xxw+ClbarNq6R/lNFEPK1snkb4xE=\n";
    secret(&sandbox, "locked.key", locked);
    secret(&sandbox, "password", "pass\n");
    secret(&sandbox, "wrong", "word\n");
    let args = ["sign", "model.gguf", "--key", "locked.key", "--key-password-file"];
    refused(&sandbox, (4, "cy-open"), &[&args[..], &["wrong"]].concat());
    assert_eq!(sandbox.run(&[&args[..], &["password"]].concat()).exit, 0);
    let key = SigningKey::from_seed(&[1; 32]).verifying_key().to_string();
    assert_eq!(sandbox.run(&["verify", "model.gguf", "--key", &key]).exit, 0);
}

#[test]
fn a_changed_file_is_refused() {
    let sandbox = Sandbox::with_models();
    let verify = ["verify", "published.safetensors", "--trusted-keys", "publishers.txt"];
    assert_eq!(sandbox.run(&verify).exit, 0);
    let mut bytes = sandbox.read("published.safetensors");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    sandbox.write("published.safetensors", &bytes);
    refused(&sandbox, (4, "cy-signature"), &verify);
    // The trusted comment is part of what is signed.
    bytes[last] ^= 1;
    sandbox.write("published.safetensors", &bytes);
    let text = String::from_utf8(sandbox.read("published.safetensors.minisig")).unwrap();
    sandbox.write("published.safetensors.minisig", text.replace("version 1.2", "version 1.3").as_bytes());
    refused(&sandbox, (4, "cy-signature"), &verify);
    sandbox.write("published.safetensors.minisig", b"");
    refused(&sandbox, (3, "cy-text"), &verify);
    fs::remove_file(sandbox.path("published.safetensors.minisig")).unwrap();
    refused(&sandbox, (4, "cli-no-signature"), &verify);
    refused(&sandbox, (5, "cli-io"), &["verify", "none", "--key", "publisher.pub"]);
}

#[test]
fn a_changed_folder_is_refused_and_every_difference_named() {
    let sandbox = Sandbox::with_models();
    let ran = sandbox.run(&["verify", "changed", "--key", "publisher-p256.pub"]);
    assert_eq!(ran.exit, 4);
    let expected =
        "why:    changed: \"weights.bin\"; missing: \"sub/vocab.txt\"; not on the list: \"setup.py\"";
    assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    // A hostile name is shown, not obeyed; a long list is cut.
    for idx in 0..20 {
        sandbox.write(&format!("changed/\u{1b}[2J{idx:02}"), b"");
    }
    let ran = sandbox.run(&["verify", "changed", "--key", "publisher-p256.pub"]);
    assert!(!ran.stderr.contains('\u{1b}') && ran.stderr.contains("and 11 more"), "{}", ran.stderr);
}

#[test]
fn folders_are_signed_inside_and_beside() {
    let sandbox = Sandbox::with_models();
    fs::create_dir_all(sandbox.path("checkpoint/.git")).unwrap();
    let key = ["--key", "publisher.pem"];
    assert_eq!(sandbox.run(&[&["sign", "checkpoint"][..], &key].concat()).exit, 0);
    let (exit, value) = sandbox.json(&["verify", "checkpoint", "--key", "publisher-p256.pub"]);
    assert_eq!((exit, &value["format"]), (0, &"model-signing".into()));
    assert_eq!(value["signature"], "checkpoint/model.sig");
    assert_eq!(value["not_covered"], serde_json::json!([".git", "model.sig"]));
    // There once, and again when asked to.
    refused(&sandbox, (2, "cli-output-exists"), &["sign", "checkpoint", "--key", "publisher.pem"]);
    assert_eq!(sandbox.run(&["sign", "checkpoint", "--key", "publisher.pem", "--force"]).exit, 0);
    fs::remove_file(sandbox.path("checkpoint/model.sig")).unwrap();
    let (_, value) = sandbox.json(&["verify", "checkpoint/", "--key", "publisher-p256.pub"]);
    assert_eq!(value["signature"], "checkpoint.sig");
    let (exit, value) = sandbox.json(&[
        "sign",
        "checkpoint/",
        "--key",
        "publisher.pem",
        "-o",
        "s",
        "--shard-size",
        "3",
        "--ignore",
        "sub",
    ]);
    assert_eq!((exit, &value["signatures"][0]["files"]), (0, &2.into()));
    let (exit, value) =
        sandbox.json(&["verify", "checkpoint", "--key", "publisher-p256.pub", "--signature", "s"]);
    assert_eq!((exit, &value["not_covered"]), (0, &serde_json::json!([".git", "sub"])));
    // A single file, whatever it is called later.
    assert_eq!(sandbox.run(&["sign", "model.gguf", "--key", "publisher.pem"]).exit, 0);
    fs::rename(sandbox.path("model.gguf"), sandbox.path("x")).unwrap();
    let args = ["verify", "x", "--key", "publisher-p256.pub", "--signature", "model.gguf.sig"];
    assert_eq!(sandbox.run(&args).exit, 0);
    refused(&sandbox, (4, "cli-no-signature"), &args[..4]);
}

/// Files of one signer, exchanged together with their signatures: both verify, and only the signed name tells.
#[test]
fn another_name_than_the_signed_one_is_a_warning_and_refused_strictly() {
    let sandbox = Sandbox::with_models();
    let key = ["--key", "publisher.pub"];
    sandbox.write("r1.bin", b"first");
    assert_eq!(
        sandbox.run(&[&["sign", "r1.bin", "model.gguf"], &["--key", "publisher.key"][..]].concat()).exit,
        0
    );
    assert_eq!(sandbox.run(&[&["verify", "r1.bin", "--strict"], &key[..]].concat()).exit, 0);
    for (from, to) in [("r1.bin", "r2.bin"), ("r1.bin.minisig", "r2.bin.minisig")] {
        fs::rename(sandbox.path(from), sandbox.path(to)).unwrap();
    }
    let verify = [&["verify", "r2.bin"], &key[..]].concat();
    let ran = sandbox.run(&verify);
    assert!(ran.exit == 0 && ran.stdout.contains("signed under another name: r1.bin"), "{}", ran.stdout);
    assert_eq!(sandbox.json(&verify).1["other_name"], "r1.bin");
    refused(&sandbox, (4, "cli-signed-name"), &[&verify[..], &["--strict"]].concat());
    // A comment of another kind names no file.
    let strict = ["verify", "published.safetensors", "--key", "publisher.pub", "--strict"];
    assert_eq!(sandbox.run(&strict).exit, 0);

    // The same for the subject of a list: of a folder, also through `.` and links, and of a single file.
    let verify = ["verify", "checkpoint", "--key", "publisher-p256.pub", "--strict"];
    assert_eq!(sandbox.run(&verify).exit, 0);
    fs::rename(sandbox.path("checkpoint"), sandbox.path("other")).unwrap();
    let other = ["verify", "other", "--key", "publisher-p256.pub", "--signature", "checkpoint.sig"];
    assert_eq!(sandbox.json(&other).1["other_name"], "checkpoint");
    refused(&sandbox, (4, "cli-signed-name"), &[&other[..], &["--strict"]].concat());
}

/// A link leads to any file of the same signer: what counts is the name that was given.
#[cfg(unix)]
#[test]
fn the_name_of_a_link_is_compared_and_not_that_of_its_target() {
    let sandbox = Sandbox::with_models();
    sandbox.write("a.bin", b"first");
    std::os::unix::fs::symlink("a.bin", sandbox.path("l.bin")).unwrap();
    let verify = ["verify", "l.bin", "--signature", "a.bin.minisig", "--key", "publisher.pub"];
    assert_eq!(sandbox.run(&["sign", "a.bin", "--key", "publisher.key"]).exit, 0);
    assert_eq!(sandbox.run(&[&["verify", "a.bin", "--strict"], &verify[4..]].concat()).exit, 0);
    assert_eq!(sandbox.json(&verify).1["other_name"], "a.bin");
    refused(&sandbox, (4, "cli-signed-name"), &[&verify[..], &["--strict"]].concat());

    // Signed and verified by the name of the link.
    std::os::unix::fs::symlink("checkpoint", sandbox.path("latest")).unwrap();
    let verify = ["verify", "latest", "--signature", "latest.sig", "--key", "publisher-p256.pub", "--strict"];
    let sign = ["sign", "latest", "-o", "latest.sig", "--key", "publisher.pem"];
    assert_eq!(sandbox.run(&sign).exit, 0);
    assert_eq!(sandbox.run(&verify).exit, 0);
    let target = ["verify", "checkpoint", "--signature", "latest.sig", "--key", "publisher-p256.pub"];
    assert_eq!(sandbox.json(&target).1["other_name"], "latest");
}

#[test]
fn what_a_signature_does_not_cover_is_refused_strictly() {
    let sandbox = Sandbox::with_models();
    let sign = ["sign", "checkpoint", "--key", "publisher.pem"];
    assert_eq!(sandbox.run(&sign).exit, 0);
    let verify = ["verify", "checkpoint", "--key", "publisher-p256.pub"];
    let strict = [&verify[..], &["--strict"]].concat();
    // The signature in the folder cannot cover itself.
    assert_eq!(sandbox.json(&strict).1["not_covered"], serde_json::json!(["model.sig"]));
    for name in [".git", ".github", ".gitignore", ".gitattributes"] {
        let path = sandbox.path("checkpoint").join(name);
        if name.len() > 7 {
            fs::write(&path, "* filter=x").unwrap();
        } else {
            fs::create_dir(&path).unwrap();
            fs::write(path.join("config"), "[core]\nfsmonitor = evil").unwrap();
        }
        assert_eq!(sandbox.run(&verify).exit, 0);
        refused(&sandbox, (4, "cli-not-covered"), &strict);
        assert!(sandbox.run(&strict).stderr.contains(&format!("why:    {name}\n")));
        if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
    }
    // What the signer left out is not covered either.
    assert_eq!(sandbox.run(&[&sign[..], &["--ignore", "sub", "--force"]].concat()).exit, 0);
    refused(&sandbox, (4, "cli-not-covered"), &strict);
}

#[test]
fn check_names_a_signature_that_it_does_not_check() {
    let sandbox = Sandbox::with_models();
    let mut bytes = sandbox.read("published.safetensors");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    sandbox.write("published.safetensors", &bytes);
    let ran = sandbox.run(&["check", "published.safetensors"]);
    let expected =
        "the signature published.safetensors.minisig was not checked: apr verify published.safetensors --key";
    assert!(ran.exit == 0 && ran.stdout.contains(expected), "{}", ran.stdout);
    let (_, value) = sandbox.json(&["check", "published.safetensors", "model.safetensors"]);
    assert!(value["files"][0]["warnings"][0].as_str().unwrap().contains(expected), "{value:#}");
    assert_eq!(value["files"][1]["warnings"], serde_json::json!([]));
    // Model signatures, beside and in a folder.
    fs::rename(sandbox.path("checkpoint.sig"), sandbox.path("model.gguf.sig")).unwrap();
    assert!(sandbox.run(&["check", "model.gguf"]).stdout.contains("model.gguf.sig was not checked"));
    fs::rename(sandbox.path("model.gguf.sig"), sandbox.path("sharded/model.sig")).unwrap();
    assert!(sandbox.run(&["check", "sharded"]).stdout.contains("sharded/model.sig was not checked"));
}

#[test]
fn without_a_key_verify_says_where_one_comes_from() {
    let sandbox = Sandbox::with_models();
    let args = ["verify", "published.safetensors"];
    refused(&sandbox, (2, "cli-usage"), &args);
    let ran = sandbox.run(&args);
    for expected in
        ["no key is given", "file:   published.safetensors", "--key KEY-OR-FILE", "minisign's .pub"]
    {
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    }
}

/// After tampering, a digest from the place where the file came from proves nothing.
#[test]
fn a_failed_signature_inside_leads_to_the_maker() {
    let sandbox = Sandbox::with_models();
    let mut bytes = SIGNED.to_vec();
    let signature = bytes.len() - 100;
    bytes[signature] ^= 1;
    sandbox.write("published.apr", &reseal(bytes));
    let ran = sandbox.run(&["verify", "published.apr", "--key", "publisher.pub"]);
    assert!(ran.exit == 4 && ran.stderr.contains("[ac-signature]"), "{}", ran.stderr);
    assert!(ran.stderr.contains("do not use the file") && !ran.stderr.contains("SHA-256"), "{}", ran.stderr);
}

/// What model-signing and minisign made.
#[test]
fn signatures_of_other_programs_verify() {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/signatures");
    let vector = |name: &str| vectors.join(name).to_str().unwrap().to_owned();
    let sandbox = Sandbox::empty();
    for (model, signature, key) in [
        ("model", "model.sig", "p256.pub"),
        ("sharded", "sharded.sig", "p256.pub"),
        ("model/weights.safetensors", "file.sig", "p256.pub"),
        ("model", "shards.sig", "p256.pub"),
        ("model", "blake3.sig", "p256.pub"),
        ("model/weights.safetensors", "weights.minisig", "minisign.pub"),
        ("model/weights.safetensors", "weights.legacy.minisig", "minisign.pub"),
    ] {
        let (model, signature, key) = (vector(model), vector(signature), vector(key));
        let ran = sandbox.run(&["verify", &model, "--signature", &signature, "--key", &key]);
        assert_eq!(ran.exit, 0, "{signature}: {}", ran.stderr);
    }
    let refused = sidecars("signatures");
    // More may be added.
    assert!(refused.len() >= 67, "{}", refused.len());
    for (name, facts) in refused {
        let (code, signature) = (facts["strict"]["code"].as_str().unwrap(), vector(&name));
        let (model, key) = (vector("model"), vector("p256.pub"));
        let (exit, value) = sandbox.json(&["verify", &model, "--signature", &signature, "--key", &key]);
        assert_eq!(value["error"]["code"], code, "{name}");
        let expected = match code {
            "mf-unsupported" => 6,
            "cy-text" => 3,
            _ => 4,
        };
        assert_eq!(exit, expected, "{name}");
    }
}

#[test]
fn the_signature_inside_an_apr_file_is_checked() {
    let sandbox = Sandbox::with_models();
    let (exit, value) = sandbox.json(&["verify", "published.apr", "--key", "publisher.pub"]);
    assert_eq!((exit, &value["format"], &value["trusted"]), (0, &"embedded".into(), &true.into()));
    assert_eq!(value["signature"], serde_json::Value::Null);
    let (_, value) = sandbox.json(&["verify", "published.apr", "--trusted-keys", "publishers.txt"]);
    assert_eq!(value["signer"], "alice");
    // The key inside alone: nothing was changed, and no word of origin.
    let (exit, value) = sandbox.json(&["verify", "published.apr", "--any-signer"]);
    assert_eq!((exit, &value["trusted"], &value["signer"]), (0, &false.into(), &serde_json::Value::Null));
    assert_eq!(value["fingerprint"], release().verifying_key().fingerprint().to_string());
    let ran = sandbox.run(&["verify", "published.apr", "--any-signer"]);
    assert!(ran.stdout.contains("is not a key you trust"), "{}", ran.stdout);

    refused(&sandbox, (4, "ac-untrusted-signer"), &["verify", "published.apr", "--key", "other.pub"]);
    refused(&sandbox, (3, "cy-key-kind"), &["verify", "published.apr", "--key", "publisher-p256.pub"]);
    refused(&sandbox, (4, "cli-no-signature"), &["verify", "model.apr", "--any-signer"]);
    refused(&sandbox, (4, "cli-no-signature"), &["verify", "model.apr", "--key", "publisher.pub"]);
    refused(&sandbox, (4, "cli-no-signature"), &["verify", "tensors.apr", "--any-signer"]);
    let mut bytes = SIGNED.to_vec();
    bytes[40] ^= 1;
    sandbox.write("published.apr", &bytes);
    assert_eq!(code(&sandbox, &["verify", "published.apr", "--any-signer"]).0, 4);
    sandbox.write("published.apr", &bytes[..100]);
    assert_eq!(code(&sandbox, &["verify", "published.apr", "--any-signer"]).0, 3);
    // A detached one goes before.
    sandbox.write("published.apr", SIGNED);
    assert_eq!(sandbox.run(&["sign", "published.apr", "--key", "publisher.key"]).exit, 0);
    let (_, value) = sandbox.json(&["verify", "published.apr", "--key", "publisher.pub"]);
    assert_eq!(value["format"], "minisign");
}

#[test]
fn a_model_is_signed_inside() {
    let sandbox = Sandbox::with_models();
    let args = ["sign", "model.apr", "--inside", "-o", "signed.apr", "--key", "publisher.key"];
    let (exit, value) = sandbox.json(&args);
    assert_eq!((exit, &value["format"]), (0, &"embedded".into()), "{value:#}");
    assert_eq!(value["fingerprint"], release().verifying_key().fingerprint().to_string());
    let bytes = sandbox.read("signed.apr");
    assert_eq!(
        value["signatures"],
        serde_json::json!([{ "input": "model.apr", "output": "signed.apr", "files": 1, "bytes": bytes.len() }])
    );
    // What the library writes, and 96 bytes more than before.
    assert_eq!(bytes, protected(&sandbox.read("model.apr"), &Protection::default().signed_by(&release())));
    assert_eq!(bytes.len(), sandbox.read("model.apr").len() + 96);
    assert_eq!(sandbox.run(&["verify", "signed.apr", "--key", "publisher.pub"]).exit, 0);
    let said = |args: &[&str]| {
        let ran = sandbox.run(&[&["predict", "-i", "rows.csv"], args].concat());
        assert_eq!(ran.exit, 0, "{}", ran.stderr);
        ran.stdout
    };
    assert_eq!(said(&["signed.apr", "--signer", "publisher.pub"]), said(&["model.apr"]));

    // A signature in the place of another's, and the model in its own place; compressed as before.
    let again = ["sign", "signed.apr", "--inside", "-o", "signed.apr", "--key", "maker.key", "--force"];
    refused(&sandbox, (4, "ac-signed"), &again);
    assert_eq!(sandbox.read("signed.apr"), bytes);
    let ran = sandbox.run(&[&again[..], &["--allow-unverified"]].concat());
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("the signature of the input is not in the output"), "{}", ran.stderr);
    assert_eq!(sandbox.run(&["verify", "signed.apr", "--key", "maker.key.pub"]).exit, 0);
    refused(&sandbox, (4, "ac-untrusted-signer"), &["verify", "signed.apr", "--key", "publisher.pub"]);
    assert_eq!(sandbox.run(&["convert", "model.apr", "small.apr", "--compression", "zstd"]).exit, 0);
    let ran = sandbox.run(&["sign", "small.apr", "--inside", "-o", "s.apr", "--key", "publisher.key"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    let (_, value) = sandbox.json(&["inspect", "s.apr"]);
    assert!(value.to_string().contains("zstd"), "{value:#}");
}

#[test]
fn what_has_no_place_for_a_signature_is_refused() {
    let sandbox = Sandbox::with_models();
    let before = sandbox.listing();
    let inside = |model| ["sign", model, "--inside", "-o", "s.apr", "--key", "publisher.key"];
    for (expected, args) in [
        ((2, "cli-usage"), &inside("model.apr")[..3]),
        ((2, "cli-usage"), &["sign", "model.apr", "--inside", "--key", "publisher.key"]),
        (
            (2, "cli-usage"),
            &["sign", "model.apr", "made.apr", "--inside", "-o", "s.apr", "--key", "publisher.key"],
        ),
        ((2, "cli-usage"), &["sign", "model.apr", "--inside", "-o", "s.apr", "--key", "publisher.pem"]),
        ((2, "cli-usage"), &["sign", "model.apr", "--allow-unverified", "--key", "publisher.key"]),
        (
            (2, "cli-output-exists"),
            &["sign", "model.apr", "--inside", "-o", "made.apr", "--key", "publisher.key"],
        ),
        ((3, "cy-key-kind"), &["sign", "model.apr", "--inside", "-o", "s.apr", "--key", "publisher.pub"]),
        ((5, "df-io"), &inside("none.apr")),
        ((6, "ac-encrypted"), &inside("locked.apr")),
        ((6, "cli-foreign-format"), &inside("model.safetensors")),
        ((6, "cli-foreign-format"), &inside("tensors.apr")),
    ] {
        refused(&sandbox, expected, args);
    }
    assert_eq!(sandbox.listing(), before);
}

#[test]
fn what_does_not_fit_together_is_refused_before_work() {
    let sandbox = Sandbox::with_models();
    let before = sandbox.listing();
    for (expected, args) in [
        ((2, "cli-usage"), &["sign", "model.gguf"][..]),
        ((2, "cli-usage"), &["sign", "a", "b", "--key", "publisher.key", "-o", "s"]),
        ((2, "cli-usage"), &["sign", "model.gguf", "--key", "publisher.key", "--format", "model-signing"]),
        ((2, "cli-usage"), &["sign", "model.gguf", "--key", "publisher.pem", "--format", "minisign"]),
        ((2, "cli-usage"), &["sign", "model.gguf", "--key", "publisher.key", "--ignore", "x"]),
        ((2, "cli-usage"), &["sign", "model.gguf", "--key", "publisher.key", "--shard-size", "1MB"]),
        ((2, "cli-usage"), &["sign", "checkpoint", "--key", "publisher.pem", "--comment", "x"]),
        ((2, "cli-usage"), &["sign", "checkpoint", "--key", "publisher.pem", "--shard-size", "0"]),
        ((2, "cli-usage"), &["sign", "checkpoint", "--key", "publisher.key"]),
        ((2, "cy-comment"), &["sign", "model.gguf", "--key", "publisher.key", "--comment", "a\nb"]),
        ((2, "cli-usage"), &["sign", "checkpoint", "--key", "publisher.pem", "--ignore", "../x", "-o", "s"]),
        ((3, "mf-empty"), &["sign", "empty", "--key", "publisher.pem"]),
        ((5, "df-io"), &["sign", "none", "--key", "publisher.key"]),
        ((5, "df-io"), &["sign", "none", "--key", "publisher.pem"]),
        ((3, "cy-key-kind"), &["sign", "model.gguf", "--key", "publisher.pub"]),
        ((5, "df-io"), &["sign", "model.gguf", "--key", "none"]),
        ((2, "cli-usage"), &["verify", "model.gguf"]),
        ((2, "cli-usage"), &["verify", "model.gguf", "--key", "a", "--any-signer"]),
        ((2, "cli-usage"), &["verify", "published.safetensors", "--any-signer"]),
        ((3, "cy-key-kind"), &["verify", "published.safetensors", "--key", "publisher-p256.pub"]),
        ((3, "cy-key-kind"), &["verify", "checkpoint", "--trusted-keys", "publishers.txt"]),
        ((3, "cy-key-kind"), &["verify", "checkpoint", "--key", "publisher.pub"]),
        ((3, "cy-key-kind"), &["verify", "published.safetensors", "--key", "publisher.key"]),
        ((3, "cy-key-kind"), &["verify", "published.safetensors", "--key", "publisher.pem"]),
        (
            (2, "cli-usage"),
            &[
                "verify",
                "checkpoint",
                "--key",
                "publisher.pub",
                "--signature",
                "published.safetensors.minisig",
            ],
        ),
        ((5, "df-io"), &["verify", "checkpoint", "--key", "publisher.pub", "--signature", "none"]),
        ((5, "df-io"), &["verify", "checkpoint", "--key", "none"]),
    ] {
        refused(&sandbox, expected, args);
    }
    assert_eq!(sandbox.listing(), before);
    let recipient = SecretKey::from(RecipientSecret::from_bytes(&[3; 32]));
    secret(&sandbox, "recipient.key", recipient.to_text().as_str());
    sandbox.write("recipient.pub", recipient.public().to_string().as_bytes());
    secret(&sandbox, "nobody", "# none\n");
    refused(&sandbox, (3, "cy-key-kind"), &["sign", "model.gguf", "--key", "recipient.key"]);
    refused(&sandbox, (3, "cy-key-kind"), &["verify", "published.safetensors", "--key", "recipient.pub"]);
    refused(&sandbox, (3, "cy-no-key"), &["verify", "published.safetensors", "--trusted-keys", "nobody"]);
    // A P-256 key whose public half is another one's.
    let mixed = release_p256().to_pem().as_str().replace("\n-----END", "A\n-----END");
    secret(&sandbox, "mixed.pem", &mixed);
    assert_eq!(code(&sandbox, &["sign", "model.gguf", "--key", "mixed.pem"]).0, 3);
}

#[cfg(unix)]
#[test]
fn exposed_keys_and_links_are_refused() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let sandbox = Sandbox::with_models();
    for key in ["publisher.key", "publisher.pem"] {
        fs::set_permissions(sandbox.path(key), fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(code(&sandbox, &["sign", "model.gguf", "--key", key]).1, "cy-exposed");
    }
    symlink("config.json", sandbox.path("checkpoint/link")).unwrap();
    refused(&sandbox, (4, "mf-symlink"), &["verify", "checkpoint", "--key", "publisher-p256.pub"]);
    let ran = sandbox.run(&["verify", "checkpoint", "--key", "publisher-p256.pub"]);
    assert!(ran.stderr.contains("why:    entry \"link\""), "{}", ran.stderr);
}

/// The library's view of the same: what `apr sign` writes is what the crate would.
#[test]
fn the_program_signs_what_the_crate_signs() {
    let sandbox = Sandbox::with_models();
    let method = Method::Shards(1000.try_into().unwrap());
    let options = SignOptions { method, ..SignOptions::default() };
    let output = sandbox.path("sharded/model.sig");
    let manifest = Manifest::of(&sandbox.path("sharded"), Some(&output), &options, &|_, _| ()).unwrap();
    let expected = apr_manifest::Bundle::sign(&manifest, &release_p256()).to_json();
    assert_eq!(sandbox.run(&["sign", "sharded", "--key", "publisher.pem", "--shard-size", "1kB"]).exit, 0);
    assert_eq!(sandbox.read("sharded/model.sig"), expected.as_bytes());
}
