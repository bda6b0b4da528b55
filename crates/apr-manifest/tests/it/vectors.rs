//! Signatures by model-signing 1.1.1 and minisign 0.11, and bundles that are wrong in one way each.

use std::fs;

use apr_manifest::{
    Bundle, FileEntry, HashAlgorithm, Limits, Manifest, Method, SignOptions, key_hint, read_signature,
    verify_file, verify_file_any, verify_model,
};
use base64ct::{Base64, Encoding};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::folder::{public_key, secret_key, text, vector};

fn limits() -> Limits {
    Limits::default()
}

#[test]
fn signatures_of_the_reference_implementation_verify() {
    let shards = |size: u64| Method::Shards(size.try_into().unwrap());
    for (model, signature, method, algorithm, n_files) in [
        ("model", "model.sig", Method::Files, HashAlgorithm::Sha256, 6),
        ("model/weights.safetensors", "file.sig", Method::Files, HashAlgorithm::Sha256, 1),
        ("sharded", "sharded.sig", Method::Files, HashAlgorithm::Sha256, 3),
        // Without the file that has no byte.
        ("model", "shards.sig", shards(10), HashAlgorithm::Sha256, 5),
        ("model/weights.safetensors", "file-shards.sig", shards(100), HashAlgorithm::Sha256, 1),
        ("model", "blake2b.sig", Method::Files, HashAlgorithm::Blake2b, 6),
        ("model", "blake3.sig", Method::Files, HashAlgorithm::Blake3, 6),
        ("model", "ignoring.sig", Method::Files, HashAlgorithm::Sha256, 5),
    ] {
        let (path, signature) = (vector(model), vector(signature));
        let verified = verify_model(&path, &signature, &public_key(), &limits(), &|_, _| ())
            .unwrap_or_else(|error| panic!("{signature:?}: {error}"));
        let manifest = verified.manifest();
        assert_eq!((manifest.method(), manifest.algorithm()), (method, algorithm), "{signature:?}");
        assert_eq!(manifest.files().len(), n_files, "{signature:?}");
        assert_eq!(manifest.name(), path.file_name().unwrap().to_str().unwrap());
        let ignored: &[&str] = if signature.ends_with("ignoring.sig") { &["sub"] } else { &[] };
        assert_eq!(verified.not_covered(), ignored, "{signature:?}");
        assert!(verified.n_bytes() > 100);
    }
}

/// The hint that it writes, and digests of ours beside its own.
#[test]
fn our_list_is_theirs() {
    let theirs = Bundle::from_json(text("model.sig").as_bytes(), &limits()).unwrap();
    assert_eq!(theirs.hint(), Some(&*key_hint(&public_key())));
    let theirs = theirs.verify(&public_key(), &limits()).unwrap();
    let ours = Manifest::of(&vector("model"), None, &SignOptions::default(), &|_, _| ()).unwrap();
    assert_eq!(ours.files(), theirs.files());
    assert_eq!((ours.ignored().len(), theirs.ignored().len()), (4, 4));
    let names: Vec<&str> = ours.files().iter().map(FileEntry::name).collect();
    let expected =
        ["config.json", "empty.txt", "sub.txt", "sub/vocab.txt", "weights.safetensors", "\u{fc}n\u{ef}.txt"];
    assert_eq!(names, expected);
    assert_eq!(ours.files()[0].parts()[0].range(), None);
}

#[test]
fn wrong_bundles_are_refused_each_for_its_cause() {
    let entries = fs::read_dir(vector("refused")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> = names.filter(|name| name.ends_with(".sig")).collect();
    // More may be added.
    assert!(names.len() >= 67, "{}", names.len());
    for name in names {
        let sidecar: Value = serde_json::from_str(&text(&format!("refused/{name}.vector.json"))).unwrap();
        let code = sidecar["strict"]["code"].as_str().unwrap();
        let signature = vector(&format!("refused/{name}"));
        let json = fs::read(&signature).unwrap();
        let bundle = Bundle::from_json(&json, &limits());
        let read = bundle.and_then(|bundle| bundle.verify(&public_key(), &limits()));
        let error = read.err().unwrap_or_else(|| panic!("{name} was read"));
        assert_eq!(error.code(), code, "{name}: {error}");
        // The entry point returns the same error, with the file.
        let error =
            verify_model(&vector("model"), &signature, &public_key(), &limits(), &|_, _| ()).unwrap_err();
        assert_eq!((error.code(), error.path()), (code, Some(&*signature)), "{name}");
    }
}

/// A bundle has no secrets, but its content is not verified.
#[test]
fn nothing_unchecked_is_shown() {
    let bundle = Bundle::from_json(text("model.sig").as_bytes(), &limits()).unwrap();
    let shown = format!("{bundle:?}");
    assert!(shown.contains("hint") && !shown.contains("payload") && !shown.contains("config"), "{shown}");
    let other = apr_crypto::p256::VerifyingKey::from_pem(&text("other.pub")).unwrap();
    assert_eq!(bundle.verify(&other, &limits()).unwrap_err().code(), "mf-key");
}

/// The specification's words allow a hash of the key's DER, old bundles have none at all.
#[test]
fn other_hints_are_read() {
    let json = text("model.sig");
    for hint in
        [format!("\"hint\":\"{}\"", hint_of_der()), "\"rawBytes\":\"AA==\"".into(), "\"hint\":null".into()]
    {
        let (start, rest) = json.split_once("\"hint\":\"").unwrap();
        let json = format!("{start}{hint}{}", rest.split_once('"').unwrap().1);
        let bundle = Bundle::from_json(json.as_bytes(), &limits()).unwrap();
        bundle.verify(&public_key(), &limits()).unwrap();
    }
}

fn hint_of_der() -> String {
    let pem = text("p256.pub");
    let base64: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let der = Base64::decode_vec(&base64).unwrap();
    Sha256::digest(der).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn signatures_of_minisign_verify() {
    let key = apr_crypto::minisign::PublicKey::from_text(&text("minisign.pub")).unwrap();
    let other = apr_crypto::minisign::PublicKey::from_text(&text("minisign-other.pub")).unwrap();
    let file = vector("model/weights.safetensors");
    for name in ["weights.minisig", "weights.legacy.minisig"] {
        let signature = read_signature(&vector(name)).unwrap();
        assert_eq!(signature.is_prehashed(), name == "weights.minisig");
        let verified = verify_file(&file, &key, &signature, &|_, _| ()).unwrap();
        assert_eq!(verified.trusted_comment(), "version 1.2");
        assert_eq!(verified.n_bytes(), fs::metadata(&file).unwrap().len());
        let error = verify_file(&vector("model/sub.txt"), &key, &signature, &|_, _| ()).unwrap_err();
        assert_eq!((error.code(), error.path()), ("cy-signature", Some(&*vector("model/sub.txt"))));
        let error = verify_file(&file, &other, &signature, &|_, _| ()).unwrap_err();
        assert_eq!(error.code(), "cy-key-id");
        let (idx, _) = verify_file_any(&file, &[other, key], &signature, &|_, _| ()).unwrap();
        assert_eq!(idx, 1);
        let none = verify_file_any(&file, &[], &signature, &|_, _| ()).unwrap_err();
        assert_eq!(none.code(), "cy-signature");
    }
    assert_eq!(read_signature(&vector("model.sig")).unwrap_err().code(), "cy-text");
}

/// Nothing random goes into a signature of ours.
#[test]
fn signing_again_gives_the_same_bytes() {
    let manifest = Manifest::of(&vector("model"), None, &SignOptions::default(), &|_, _| ()).unwrap();
    let json = Bundle::sign(&manifest, &secret_key()).to_json();
    assert_eq!(json, Bundle::sign(&manifest, &secret_key()).to_json());
    assert_eq!(Bundle::from_json(json.as_bytes(), &limits()).unwrap().to_json(), json);
}
