//! Sealed files at URLs: how much is requested, and the verdict on their signatures.

use alloc::sync::Arc;

use apr_crypto::{RecipientSecret, SigningKey};
use apr_sealed::SealOptions;
use st_core::Dtype;

use crate::sandbox::{Sandbox, Tensor, file, sealed};
use crate::server::{Reply, Server};

const TENSOR_LEN: usize = 4 << 20;

/// Serves these bytes at every path.
fn serve(bytes: Vec<u8>) -> Server {
    let bytes = Arc::new(bytes);
    Server::new(move |_, seen| Reply::range(seen, &bytes, "etag: \"v1\"\r\n"))
}

/// Bytes that were requested of a file of `len` bytes.
fn requested(server: &Server, len: usize, from: usize) -> (usize, usize) {
    let seen = server.seen();
    let ranges = seen[from..].iter().map(|seen| seen.range().unwrap());
    (seen.len() - from, ranges.map(|(first, end)| end.min(len) - first).sum())
}

/// A safetensors file of 16 tensors of 4 MiB.
fn large() -> Vec<u8> {
    let tensor = |idx: usize| {
        let bytes = (0..TENSOR_LEN).map(|at| (at / 97 + idx) as u8).collect();
        Tensor::new(&format!("blk.{idx}.weight"), Dtype::F32, &[1024, 1024], bytes)
    };
    file(&(0..16).map(tensor).collect::<Vec<_>>(), &alloc::collections::BTreeMap::new())
}

/// How a file is sealed, what opens it, and the most requests for a tensor.
type Case<'a> = (SealOptions<'a>, &'a [&'a str], usize);

#[test]
fn a_tensor_of_a_sealed_file_is_a_few_requests_and_little_more_than_its_bytes() {
    let sandbox = Sandbox::with_models();
    let content = large();
    let recipient = RecipientSecret::from_bytes(&[7; 32]).public();
    let signer = SigningKey::from_seed(&[3; 32]);
    let encrypted = SealOptions::default().for_recipient(recipient);
    let signed = SealOptions::default().signed_by(&signer);
    let cases: [Case<'_>; 3] = [
        (encrypted.clone(), &["--identity", "buyer.key"], 3),
        (signed, &["--any-signer"], 3),
        (encrypted.signed_by(&signer), &["--identity", "buyer.key", "--any-signer"], 4),
    ];
    for (options, keys, most) in cases {
        let bytes = sealed(&content, &options);
        let len = bytes.len();
        let server = serve(bytes);
        let url = server.url("/model.sealed");
        for name in ["blk.0.weight", "blk.9.weight", "blk.15.weight"] {
            let before = server.seen().len();
            let args = ["open", &url, "-o", "tensor.bin", "--force", "--tensor", name];
            let ran = sandbox.run(&[&args, keys].concat());
            assert_eq!(ran.exit, 0, "{}", ran.stderr);
            assert_eq!(sandbox.read("tensor.bin").len(), TENSOR_LEN);
            let (requests, requested) = requested(&server, len, before);
            let ranges: Vec<_> = server.seen()[before..].iter().map(crate::server::Seen::range).collect();
            assert!(requests <= most, "{keys:?} {name}: {ranges:?}");
            assert!(requested <= TENSOR_LEN + TENSOR_LEN / 20, "{keys:?} {name}: {ranges:?}");
        }
        // Without a key the header alone; with one the last chunk of the payload too, or of a signed file hashes of the first leaf.
        for (keys, most) in [(&[][..], 1), (keys, 2)] {
            let before = server.seen().len();
            let ran = sandbox.run(&[&["inspect", &url], keys].concat());
            assert_eq!(ran.exit, 0, "{}", ran.stderr);
            let (requests, requested) = requested(&server, len, before);
            assert!(requests <= most && requested <= 96 << 10, "{keys:?}: {requests}, {requested} bytes");
        }
        let before = server.seen().len();
        let ran = sandbox.run(&["tensors", &url]);
        assert!(ran.exit == 6 && ran.stderr.contains("cli-foreign-format"), "{}", ran.stderr);
        assert_eq!(requested(&server, len, before).0, 1);
    }
}

#[test]
fn verify_reads_a_sealed_file_once_in_long_pieces() {
    let sandbox = Sandbox::with_models();
    let bytes = sealed(&large(), &SealOptions::default().signed_by(&SigningKey::from_seed(&[3; 32])));
    let len = bytes.len();
    let server = serve(bytes);
    let ran = sandbox.run(&["verify", &server.url("/model.sealed"), "--any-signer"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    let (requests, requested) = requested(&server, len, 0);
    // 64 MiB in pieces of 8, the header, the hashes.
    assert!(requests <= 12, "{requests}");
    assert!((len..len + (128 << 10)).contains(&requested), "{requested} of {len}");
}

#[test]
fn verify_says_of_a_url_what_it_says_of_the_file() {
    let sandbox = Sandbox::with_models();
    let sealed_file = sandbox.read("model.sealed");
    let mut changed = sealed_file.clone();
    let at = changed.len() - 1_000;
    changed[at] ^= 1;
    sandbox.write("changed.sealed", &changed);
    sandbox.write("cut.sealed", &sealed_file[..sealed_file.len() - 40]);
    let unsigned = SealOptions::default().for_recipient(RecipientSecret::from_bytes(&[7; 32]).public());
    sandbox.write("unsigned.sealed", &sealed(&sandbox.read("model.safetensors"), &unsigned));
    let other = SigningKey::from_seed(&[9; 32]).verifying_key();
    sandbox.write("other.pub", crate::sandbox::line(other).as_bytes());
    let signing = sandbox.run(&["sign", "model.apr", "--inside", "-o", "signed.apr", "--key", "maker.key"]);
    assert_eq!(signing.exit, 0, "{}", signing.stderr);
    let mut changed = sandbox.read("signed.apr");
    let at = changed.len() - 10;
    changed[at] ^= 1;
    sandbox.write("changed.apr", &changed);
    let key: &[&str] = &["--key", "maker.key.pub"];
    let cases: [(&str, &[&str], i32, &str); 12] = [
        ("signed.apr", key, 0, "signed by"),
        ("signed.apr", &["--any-signer"], 0, "is not a key you trust"),
        ("signed.apr", &["--key", "other.pub"], 4, "ac-untrusted-signer"),
        ("changed.apr", key, 4, "ac-"),
        ("model.sealed", key, 0, "signed by"),
        ("model.sealed", &["--any-signer"], 0, "is not a key you trust"),
        ("model.sealed", &["--key", "other.pub"], 4, "ac-untrusted-signer"),
        ("changed.sealed", key, 4, "ac-signature"),
        ("changed.sealed", &["--any-signer"], 4, "ac-signature"),
        ("cut.sealed", key, 3, "ac-sealed-length"),
        ("unsigned.sealed", key, 4, "cli-no-signature"),
        ("model.apr", key, 4, "cli-no-signature"),
    ];
    for (name, args, exit, text) in cases {
        let server = serve(sandbox.read(name));
        let url = server.url(&format!("/{name}"));
        let run = |input: &str, more: &[&str]| sandbox.run(&[&["verify", input], args, more].concat());
        for more in [&[][..], &["--json"]] {
            let (local, remote) = (run(name, more), run(&url, more));
            let named = |text: &str| text.replace(&server.url("/"), "");
            assert_eq!((local.exit, remote.exit), (exit, exit), "{name} {args:?}\n{}", remote.stderr);
            let said = format!("{}{}", remote.stdout, remote.stderr);
            assert!(!more.is_empty() || said.contains(text), "{name} {args:?}\n{said}");
            // Where a signature was looked for differs.
            if text != "cli-no-signature" {
                assert_eq!(named(&remote.stdout), local.stdout, "{name} {args:?}");
                assert_eq!(named(&remote.stderr), local.stderr, "{name} {args:?}");
            }
        }
    }
    assert!(sandbox.leftovers().is_empty());
}

/// What is signed beside the file is not looked for over the network.
#[test]
fn verify_of_a_url_without_a_signature_inside_is_refused_by_name() {
    let sandbox = Sandbox::with_models();
    let server = serve(sandbox.read("model.safetensors"));
    let ran = sandbox.run(&["verify", &server.url("/model.safetensors"), "--key", "maker.key.pub"]);
    assert!(ran.exit == 2 && ran.stderr.contains("cli-remote"), "{}", ran.stderr);
    assert_eq!(server.seen().len(), 1);
}
