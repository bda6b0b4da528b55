//! Whole folders: what is signed, what is noticed.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use apr_manifest::{
    Bundle, Error, Limits, Manifest, Method, SignOptions, Subject, Verified, sign_model, verify_model,
};

use crate::folder::{Folder, public_key, secret_key};

fn sign(path: &Path, signature: &Path) {
    sign_model(path, signature, &secret_key(), &SignOptions::default(), &|_, _| ()).unwrap();
}

fn verify(path: &Path, signature: &Path) -> Result<Verified, Error> {
    verify_model(path, signature, &public_key(), &Limits::default(), &|_, _| ())
}

fn shards(size: u64) -> SignOptions {
    SignOptions { method: Method::Shards(size.try_into().unwrap()), ..SignOptions::default() }
}

#[test]
fn every_change_is_named() {
    let folder = Folder::copy_of("model", "changes");
    let signature = folder.join("model.sig");
    sign(folder.path(), &signature);
    let verified = verify(folder.path(), &signature).unwrap();
    assert_eq!(
        (verified.manifest().files().len(), verified.not_covered()),
        (6, &["model.sig".to_owned()][..])
    );

    fs::remove_file(folder.join("config.json")).unwrap();
    fs::remove_file(folder.join("sub/vocab.txt")).unwrap();
    folder.write("sub.txt", b"Sorted before or after the folder\n");
    folder.write("empty.txt", b"x");
    folder.write("a", b"");
    folder.write("sub/x/y", b"");
    folder.write("\u{fc}n\u{ef}.txt.bak", b"");
    let error = verify(folder.path(), &signature).unwrap_err();
    let differences = error.differences();
    assert_eq!(error.code(), "mf-differs");
    assert_eq!(error.path(), Some(folder.path()));
    assert_eq!(differences.missing(), ["config.json", "sub/vocab.txt"]);
    assert_eq!(differences.extra(), ["a", "sub/x/y", "\u{fc}n\u{ef}.txt.bak"]);
    assert_eq!(differences.changed(), ["empty.txt", "sub.txt"]);
    assert_eq!(
        error.to_string().split_once(": ").unwrap().1,
        "the files differ from the signed ones: 2 changed, 2 missing, 3 not on the list"
    );
}

/// Every bit of every file, one at a time.
#[test]
fn every_bit_flip_is_noticed() {
    let folder = Folder::new("flips");
    let path = folder.write("m/a", b"0123456789");
    folder.write("m/b", b"x");
    let (model, files, parts) = (folder.join("m"), folder.join("files.sig"), folder.join("parts.sig"));
    sign(&model, &files);
    sign_model(&model, &parts, &secret_key(), &shards(4), &|_, _| ()).unwrap();
    for bit in 0..80 {
        let mut bytes = *b"0123456789";
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, bytes).unwrap();
        for signature in [&files, &parts] {
            let error = verify(&model, signature).unwrap_err();
            assert_eq!(error.differences().changed(), ["a"], "{bit}");
        }
    }
    for len in 0..=12 {
        fs::write(&path, &b"0123456789ab"[..len]).unwrap();
        for signature in [&files, &parts] {
            assert_eq!(verify(&model, signature).is_ok(), len == 10, "{len}");
        }
    }
}

#[test]
fn shards_are_written_as_they_are_read() {
    let folder = Folder::copy_of("model", "shards");
    let signature = folder.join("model.sig");
    for size in [1, 7, 10, 1000, 1_000_000_000] {
        let manifest =
            sign_model(folder.path(), &signature, &secret_key(), &shards(size), &|_, _| ()).unwrap();
        assert_eq!(manifest.files().len(), 5);
        let verified = verify(folder.path(), &signature).unwrap();
        assert_eq!(verified.manifest().files(), manifest.files());
        assert_eq!(verified.manifest().method(), shards(size).method);
    }
    // A file without a byte has no shard: its coming and going is not noticed, what is put into it is.
    fs::remove_file(folder.join("empty.txt")).unwrap();
    folder.write("new.txt", b"");
    verify(folder.path(), &signature).unwrap();
    folder.write("new.txt", b"x");
    assert_eq!(verify(folder.path(), &signature).unwrap_err().differences().extra(), ["new.txt"]);
    folder.write("new.txt", b"");
    folder.write("sub.txt", b"");
    assert_eq!(verify(folder.path(), &signature).unwrap_err().differences().changed(), ["sub.txt"]);
    // Nothing but such files: nothing to sign.
    let empty = Folder::new("shards-empty");
    empty.write("a", b"");
    let error = Manifest::of(empty.path(), None, &shards(1), &|_, _| ()).unwrap_err();
    assert_eq!(error.code(), "mf-empty");
}

#[test]
fn a_single_file_may_be_called_otherwise() {
    let folder = Folder::new("single");
    let (path, signature) = (folder.write("a.gguf", b"weights"), folder.join("a.gguf.sig"));
    sign(&path, &signature);
    assert_eq!(verify(&path, &signature).unwrap().not_covered(), [""; 0]);
    let other = folder.join("b.gguf");
    fs::rename(&path, &other).unwrap();
    verify(&other, &signature).unwrap();
    fs::write(&other, b"Weights").unwrap();
    assert_eq!(verify(&other, &signature).unwrap_err().differences().changed(), ["."]);
    // A file's signature is not its folder's.
    let error = verify(folder.path(), &signature).unwrap_err();
    assert_eq!(
        (error.differences().missing(), error.differences().extra()),
        (&[".".to_owned()][..], &["b.gguf".to_owned()][..])
    );
}

/// A list of a folder with one file speaks of that file by its name, as the specification wants it for single files.
#[test]
fn a_single_file_is_found_by_its_name() {
    let folder = Folder::new("by-name");
    let path = folder.write("m/a.gguf", b"weights");
    let (model, signature) = (folder.join("m"), folder.join("m.sig"));
    sign(&model, &signature);
    verify(&path, &signature).unwrap();
    folder.write("m/b", b"");
    sign(&model, &signature);
    let error = verify(&path, &signature).unwrap_err();
    assert_eq!(
        (error.differences().missing(), error.differences().extra()),
        (&["b".to_owned()][..], &[][..])
    );
}

#[test]
fn what_is_ignored_is_said() {
    let folder = Folder::copy_of("model", "ignored");
    let signature = folder.join("signatures/model.sig");
    fs::create_dir_all(folder.join("signatures")).unwrap();
    folder.write(".git/config", b"");
    folder.write(".gitattributes", b"");
    folder.write("cache/x", b"");
    folder.write("sub/cache", b"");
    let options = SignOptions { ignore: vec!["cache".into(), "none".into()], ..SignOptions::default() };
    let manifest = sign_model(folder.path(), &signature, &secret_key(), &options, &|_, _| ()).unwrap();
    let expected =
        [".git", ".gitattributes", ".github", ".gitignore", "cache", "none", "signatures/model.sig"];
    assert_eq!(manifest.ignored(), expected);
    assert_eq!(manifest.files().len(), 7);
    folder.write("cache/y", b"");
    folder.write(".github/workflow", b"");
    let verified = verify(folder.path(), &signature).unwrap();
    assert_eq!(
        verified.not_covered(),
        [".git", ".gitattributes", ".github", "cache", "signatures/model.sig"]
    );
    // At the top only.
    folder.write("sub/.git/config", b"");
    assert_eq!(verify(folder.path(), &signature).unwrap_err().differences().extra(), ["sub/.git/config"]);
    for name in ["/cache", "../x", ".", "a/", ""] {
        let options = SignOptions { ignore: vec![name.into()], ..SignOptions::default() };
        assert_eq!(Manifest::of(folder.path(), None, &options, &|_, _| ()).unwrap_err().code(), "mf-name");
    }
}

/// A signature beside the folder, found again under another name of the same place.
#[test]
fn the_signature_may_be_anywhere() {
    let folder = Folder::copy_of("model", "anywhere");
    let inside = folder.join("sub/../model.sig");
    sign(folder.path(), &inside);
    verify(folder.path(), &folder.join("model.sig")).unwrap();
    let elsewhere = Folder::new("elsewhere");
    fs::rename(folder.join("model.sig"), elsewhere.join("x")).unwrap();
    verify(folder.path(), &elsewhere.join("x")).unwrap();
    // One that was signed as a file of the model is one of its files.
    fs::copy(elsewhere.join("x"), folder.join("old.sig")).unwrap();
    sign(folder.path(), &elsewhere.join("y"));
    verify(folder.path(), &elsewhere.join("y")).unwrap();
    fs::copy(elsewhere.join("y"), folder.join("old.sig")).unwrap();
    let error = verify(folder.path(), &folder.join("old.sig")).unwrap_err();
    assert_eq!(error.differences().changed(), ["old.sig"]);
}

#[cfg(unix)]
#[test]
fn links_and_devices_are_refused() {
    use std::os::unix::fs::symlink;
    let folder = Folder::copy_of("model", "links");
    let signature = folder.join("model.sig");
    sign(folder.path(), &signature);
    for target in ["config.json", "sub", "/", "nowhere"] {
        let link = folder.join("link");
        symlink(target, &link).unwrap();
        let error = verify(folder.path(), &signature).unwrap_err();
        assert_eq!(
            (error.code(), error.subject().map(Subject::name)),
            ("mf-symlink", Some("link")),
            "{target}"
        );
        let error = Manifest::of(folder.path(), None, &SignOptions::default(), &|_, _| ()).unwrap_err();
        assert_eq!(error.code(), "mf-symlink");
        fs::remove_file(&link).unwrap();
    }
    // A signed file that became a link to the same content.
    fs::rename(
        folder.join("config.json"),
        std::env::temp_dir().join(format!("apr-manifest-{}-moved", std::process::id())),
    )
    .unwrap();
    let moved = std::env::temp_dir().join(format!("apr-manifest-{}-moved", std::process::id()));
    symlink(&moved, folder.join("config.json")).unwrap();
    assert_eq!(verify(folder.path(), &signature).unwrap_err().code(), "mf-symlink");
    fs::remove_file(folder.join("config.json")).unwrap();
    fs::rename(&moved, folder.join("config.json")).unwrap();
    verify(folder.path(), &signature).unwrap();
    // The caller may name the folder by a link; ignored folders are not read.
    let link = Folder::new("links-named").join("link");
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    symlink(folder.path(), &link).unwrap();
    verify(&link, &signature).unwrap();
    fs::remove_dir_all(link.parent().unwrap()).unwrap();
    fs::create_dir_all(folder.join(".git")).unwrap();
    symlink("/", folder.join(".git/link")).unwrap();
    verify(folder.path(), &signature).unwrap();

    let pipe = folder.join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let error = verify(folder.path(), &signature).unwrap_err();
    assert_eq!((error.code(), error.subject().map(Subject::name)), ("mf-not-regular", Some("pipe")));
    assert_eq!(verify(&pipe, &signature).unwrap_err().code(), "mf-not-regular");
    fs::remove_file(&pipe).unwrap();

    let odd = std::os::unix::ffi::OsStrExt::from_bytes(b"a\xff");
    fs::write(folder.path().join::<&std::ffi::OsStr>(odd), b"").unwrap();
    assert_eq!(verify(folder.path(), &signature).unwrap_err().code(), "mf-not-utf8");
}

#[test]
fn nothing_is_signed_that_is_not_there() {
    let folder = Folder::new("empty");
    let of = |path: &Path| Manifest::of(path, None, &SignOptions::default(), &|_, _| ()).unwrap_err().code();
    assert_eq!(of(folder.path()), "mf-empty");
    assert_eq!(of(&folder.join("none")), "mf-io");
    folder.write(".git/config", b"");
    assert_eq!(of(folder.path()), "mf-empty");
    folder.write("a", b"");
    let missing = folder.join("no/such/folder/model.sig");
    let error =
        sign_model(folder.path(), &missing, &secret_key(), &SignOptions::default(), &|_, _| ()).unwrap_err();
    assert!(error.code().starts_with("df-"), "{error}");
    assert!(verify(folder.path(), &missing).unwrap_err().code().starts_with("df-"));
}

/// Every byte is told once, whatever the number of threads.
#[test]
fn progress_adds_up() {
    let folder = Folder::new("progress");
    for idx in 0..40_usize {
        folder.write(&format!("{idx}"), &vec![7; idx * 20_000]);
    }
    let expected: u64 = (0..40).map(|idx| idx * 20_000).sum();
    for options in [SignOptions::default(), shards(30_000)] {
        let seen = AtomicU64::new(0);
        let watch = |count, total| {
            assert_eq!(total, expected);
            seen.fetch_add(count, Ordering::Relaxed);
        };
        let manifest = Manifest::of(folder.path(), None, &options, &watch).unwrap();
        assert_eq!(seen.swap(0, Ordering::Relaxed), expected);
        let verified = manifest.check(folder.path(), None, &Limits::default(), &watch).unwrap();
        assert_eq!((seen.load(Ordering::Relaxed), verified.n_bytes()), (expected, expected));
    }
}

/// A list of a newer signer with fields of its own is read; the fields are passed over.
#[test]
fn unknown_fields_are_passed_over() {
    let folder = Folder::copy_of("sharded", "unknown");
    let manifest = Manifest::of(folder.path(), None, &SignOptions::default(), &|_, _| ()).unwrap();
    let json = Bundle::sign(&manifest, &secret_key()).to_json();
    let json = json.replacen('{', "{\"new\":{\"deep\":[[[{}]]]},", 1);
    Bundle::from_json(json.as_bytes(), &Limits::default())
        .unwrap()
        .verify(&public_key(), &Limits::default())
        .unwrap();
}
