//! minisign signatures of files.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use apr_crypto::SigningKey;
use apr_crypto::minisign::{PublicKey, SecretKey};
use apr_manifest::{minisign_path, read_signature, sign_file, verify_file, verify_file_any};

use crate::folder::{Folder, text};

#[test]
fn long_files_go_by_once() {
    let folder = Folder::new("minisign");
    let bytes: Vec<u8> = (0..1_500_000_u32).map(|idx| (idx % 251) as u8).collect();
    let path = folder.write("a", &bytes);
    let key = SecretKey::from_text(&text("minisign.key")).unwrap();
    let public = PublicKey::from_text(&text("minisign.pub")).unwrap();
    let seen = AtomicU64::new(0);
    let watch = |count, _| {
        seen.fetch_add(count, Ordering::Relaxed);
    };
    let signature = sign_file(&path, &key, "file:a", "", &watch).unwrap();
    assert_eq!(seen.load(Ordering::Relaxed), 1_500_000);
    let beside = minisign_path(&path);
    fs::write(&beside, signature.to_string()).unwrap();
    let signature = read_signature(&beside).unwrap();
    assert_eq!(verify_file(&path, &public, &signature, &|_, _| ()).unwrap().trusted_comment(), "file:a");
    for len in [0, 1, 262_144, 1_499_999, 1_500_001] {
        let mut other = bytes.clone();
        other.resize(len, 0);
        fs::write(&path, other).unwrap();
        assert_eq!(verify_file(&path, &public, &signature, &|_, _| ()).unwrap_err().code(), "cy-signature");
    }
    assert_eq!(sign_file(&path, &key, "a\nb", "", &|_, _| ()).unwrap_err().code(), "cy-comment");
    assert!(sign_file(&folder.join("none"), &key, "", "", &|_, _| ()).unwrap_err().code().starts_with("df-"));
    assert!(sign_file(folder.path(), &key, "", "", &|_, _| ()).unwrap_err().code().starts_with("df-"));
}

/// What is hashed depends on the key: the file goes by once for all of them, and is never in memory.
#[test]
fn files_with_old_signatures_go_by_once() {
    let folder = Folder::new("old");
    let bytes = fs::read(crate::folder::vector("model/weights.safetensors")).unwrap();
    let public = PublicKey::from_text(&text("minisign.pub")).unwrap();
    let old = read_signature(&crate::folder::vector("weights.legacy.minisig")).unwrap();
    let other = SigningKey::from_seed(&[9; 32]).verifying_key();
    // One that names another key, one that is another key, and the right one.
    let keys = [other.into(), PublicKey::new(public.id(), other), public];
    let path = folder.write("a", &bytes);
    let seen = AtomicU64::new(0);
    let watch = |count, _| {
        seen.fetch_add(count, Ordering::Relaxed);
    };
    let (idx, verified) = verify_file_any(&path, &keys, &old, &watch).unwrap();
    assert_eq!((idx, verified.n_bytes()), (2, bytes.len() as u64));
    assert_eq!(seen.load(Ordering::Relaxed), bytes.len() as u64);
    let code = |keys: &[PublicKey]| verify_file_any(&path, keys, &old, &|_, _| ()).unwrap_err().code();
    assert_eq!(
        (code(&keys[..1]), code(&keys[..2]), code(&[])),
        ("cy-key-id", "cy-signature", "cy-signature")
    );
    for len in [0, 1, bytes.len() - 1, bytes.len() + 1, 600_000] {
        let mut other = bytes.clone();
        other.resize(len, 0);
        fs::write(&path, other).unwrap();
        assert_eq!(code(&keys), "cy-signature");
    }
}

/// minisign 0.11 writes the name behind a time: `-S -l` over a file called `f`.
#[test]
fn the_signed_name_is_that_of_the_comment() {
    const PUBLIC: &str = "RWTpfMmKHSd407PSPQuO7Hx1tBkEZTryG8DYsM5VHjRAu7B6w2C5s3C2";
    const THEIRS: &str = "untrusted comment: signature from minisign secret key\n\
        RWTpfMmKHSd40yqnz3lfdYLuIwO5c12MkCNxQyLtcVWP6yLO+nSvasMiiziU9WuTNAKvBy45oGtAr8NafCdyEFdo1jpX5MdJzws=\n\
        trusted comment: timestamp:1795261181\tfile:f\n\
        cooCFAnXwxDI1lGVrnNnKLAyW8fK5y0GNuDsQ408z4uRYqC0nQ21t6itckDr8+NxUHQ+3RZ+8wqiFfkfRzH8Bg==\n";
    let folder = Folder::new("name");
    let path = folder.write("renamed", b"hello\n");
    let signature = folder.write("signature", THEIRS.as_bytes());
    let (theirs, key) = (read_signature(&signature).unwrap(), PublicKey::from_text(PUBLIC).unwrap());
    assert_eq!(verify_file(&path, &key, &theirs, &|_, _| ()).unwrap().signed_name(), Some("f"));
    let key = SecretKey::from(SigningKey::from_seed(&[9; 32]));
    for (comment, expected) in
        [("file:a b", Some("a b")), ("version 1.2", None), ("a file:b", None), ("", None)]
    {
        let ours = sign_file(&path, &key, comment, "", &|_, _| ()).unwrap();
        let verified = verify_file(&path, &key.public(), &ours, &|_, _| ()).unwrap();
        assert_eq!(verified.signed_name(), expected);
    }
}

#[test]
fn signature_files_are_short_text() {
    let folder = Folder::new("short");
    let code = |content: &[u8]| read_signature(&folder.write("x.minisig", content)).unwrap_err().code();
    assert_eq!(code(b""), "cy-text");
    assert_eq!(code(b"\xff"), "cy-text");
    assert!(code(&vec![b'x'; 20_000]).starts_with("df-"));
}
