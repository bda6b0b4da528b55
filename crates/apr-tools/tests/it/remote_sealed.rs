//! Sealed files at URLs: how much is requested.

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
        // Without a key the header alone; with one the last chunk of the payload, too.
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
