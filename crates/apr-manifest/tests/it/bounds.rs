//! Limits for untrusted files.

use apr_manifest::{Bundle, Limits, Manifest, Method, SignOptions, Subject};
use proptest::prelude::*;

use crate::folder::{Folder, public_key, secret_key, text, vector};

#[test]
fn bundles_have_a_length() {
    let json = text("model.sig");
    let limits = Limits { bundle_len: json.len() as u64 - 1, ..Limits::default() };
    assert_eq!(Bundle::from_json(json.as_bytes(), &limits).unwrap_err().code(), "mf-limit");
    let error = apr_manifest::verify_model(
        &vector("model"),
        &vector("model.sig"),
        &public_key(),
        &limits,
        &|_, _| (),
    )
    .unwrap_err();
    assert!(error.code().starts_with("df-"), "{error}");
}

#[test]
fn lists_and_folders_have_a_number_of_files() {
    let few = Limits { files: 5, ..Limits::default() };
    let bundle = Bundle::from_json(text("model.sig").as_bytes(), &few).unwrap();
    assert_eq!(bundle.verify(&public_key(), &few).unwrap_err().code(), "mf-limit");
    let options = |method, files| SignOptions {
        method,
        limits: Limits { files, ..Limits::default() },
        ..SignOptions::default()
    };
    let of =
        |options| Manifest::of(&vector("model"), None, &options, &|_, _| ()).map_err(|error| error.code());
    assert_eq!(of(options(Method::Files, 5)).unwrap_err(), "mf-limit");
    // Six files and a folder.
    of(options(Method::Files, 7)).unwrap();
    // Shards are counted before anything is read.
    assert_eq!(of(options(Method::Shards(1.try_into().unwrap()), 100)).unwrap_err(), "mf-limit");
}

/// Neither stack nor time runs out.
#[test]
fn deep_and_wide_documents_are_refused_or_read() {
    let deep = format!("{{\"x\":{}", "[".repeat(1_000_000));
    assert_eq!(Bundle::from_json(deep.as_bytes(), &Limits::default()).unwrap_err().code(), "mf-json");
    for field in ["mediaType", "dsseEnvelope", "verificationMaterial", "messageSignature"] {
        for open in ["[", "{\"a\":"] {
            let deep = format!("{{\"{field}\":{}", open.repeat(200_000));
            assert_eq!(Bundle::from_json(deep.as_bytes(), &Limits::default()).unwrap_err().code(), "mf-json");
        }
    }
    let json = text("model.sig");
    let wide = json.replacen('{', &format!("{{\"x\":[{}0],", "0,".repeat(1_000_000)), 1);
    Bundle::from_json(wide.as_bytes(), &Limits::default())
        .unwrap()
        .verify(&public_key(), &Limits::default())
        .unwrap();
}

/// A file that grows while it is read belongs to no signature.
#[test]
fn a_file_that_changes_meanwhile_is_an_error() {
    let folder = Folder::new("unstable");
    let path = folder.write("a", &vec![0; 600_000]);
    let watch = |_, _| {
        use std::io::Write as _;
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"x").unwrap();
    };
    let error = Manifest::of(folder.path(), None, &SignOptions::default(), &watch).unwrap_err();
    assert_eq!((error.code(), error.subject().map(Subject::name)), ("mf-unstable", Some("a")));
    let cut = |_, _| std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(10).unwrap();
    let error = Manifest::of(folder.path(), None, &SignOptions::default(), &cut).unwrap_err();
    assert_eq!(error.code(), "mf-unstable");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// One byte of a bundle changed: refused, or read as the same list (white space, a field that is not read).
    #[test]
    fn changed_bundles_never_mean_something_else(at: prop::sample::Index, byte: u8) {
        let json = text("sharded.sig");
        let good = Bundle::from_json(json.as_bytes(), &Limits::default()).unwrap();
        let good = good.verify(&public_key(), &Limits::default()).unwrap();
        let mut other = json.into_bytes();
        let at = at.index(other.len());
        other[at] = byte;
        let read = Bundle::from_json(&other, &Limits::default())
            .and_then(|bundle| bundle.verify(&public_key(), &Limits::default()));
        if let Ok(manifest) = read {
            prop_assert_eq!(manifest, good);
        }
    }

    #[test]
    fn random_bytes_do_not_panic(bytes: Vec<u8>) {
        prop_assert!(Bundle::from_json(&bytes, &Limits::default()).is_err());
    }

    /// Whatever the folder and the length of shards, what was signed verifies.
    #[test]
    fn signed_is_verified(lens in prop::collection::vec(0..50_usize, 1..6), size in 0..20_u64) {
        let folder = Folder::new("random");
        let _ = std::fs::remove_dir_all(folder.path());
        for (idx, len) in lens.iter().enumerate() {
            folder.write(&format!("{}{idx}.x", "d/".repeat(idx % 3)), &vec![idx as u8; *len]);
        }
        let method = size.try_into().map_or(Method::Files, Method::Shards);
        let options = SignOptions { method, ..SignOptions::default() };
        if let Ok(manifest) = Manifest::of(folder.path(), None, &options, &|_, _| ()) {
            let json = Bundle::sign(&manifest, &secret_key()).to_json();
            let bundle = Bundle::from_json(json.as_bytes(), &Limits::default()).unwrap();
            let read = bundle.verify(&public_key(), &Limits::default()).unwrap();
            prop_assert_eq!(&read, &manifest);
            read.check(folder.path(), None, &Limits::default(), &|_, _| ()).unwrap();
        } else {
            prop_assert!(lens.iter().all(|len| *len == 0) && size > 0);
        }
    }
}
