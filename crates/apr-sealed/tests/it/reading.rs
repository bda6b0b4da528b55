//! How much of a file is read for one tensor.

use std::cell::Cell;

use apr_crypto::{Access, LeafLen, Signer, TreeAlgorithm, Trust, TrustedKeys};
use apr_sealed::{Part, Plan, SealOptions, SealedHeader, SealedReader};
use read_at::ReadAt;

use super::{code, content, keys, limits, map, open, read_all, seal};

/// A source that counts what is read of it.
struct Counting<'f> {
    bytes: &'f [u8],
    read: Cell<u64>,
}

impl ReadAt for Counting<'_> {
    fn total_len(&self) -> u64 {
        self.bytes.total_len()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), read_at::Error> {
        self.read.set(self.read.get() + out.len() as u64);
        self.bytes.read_exact_at(offset, out)
    }
}

/// Opening and reading one tensor of 1 MiB among 32: its chunks, the header and some hashes.
#[test]
fn one_tensor_is_read_without_the_others() {
    const LEN: u64 = 1 << 20;
    let keys = keys();
    let parts = (0..32).map(|idx| Part::tensor(&format!("blk.{idx}.attn_q.weight"), "F16", [512, 1024], LEN));
    let plan = Plan::new([Part::raw(1_111)].into_iter().chain(parts)).unwrap();
    let content = content(plan.content_len());
    let signed = SealOptions::default().signed_by(&keys.signer);
    let both = signed.clone().for_recipient(keys.alice.public());
    let encrypted = SealOptions::default().for_recipient(keys.alice.public());
    let (trust, key) =
        (Access::default().with_trust(Trust::Anyone), Access::default().with_recipient(&keys.alice));
    for (options, access) in [(signed, trust), (both, key.with_trust(Trust::Anyone)), (encrypted, key)] {
        let file = seal(&plan, &content, &options);
        for name in [0, 7, 31] {
            let source = Counting { bytes: &file, read: Cell::new(0) };
            let reader = SealedReader::open(&source, &access, &limits()).unwrap();
            let opening = source.read.get();
            let tensor = reader.tensor(&format!("blk.{name}.attn_q.weight")).unwrap();
            let begin = 1_111 + name * (1 << 20);
            assert_eq!(tensor, content[begin..begin + (1 << 20)]);
            let reading = source.read.get() - opening;
            assert!(opening < 64 << 10, "{opening} to open");
            assert!(reading < LEN + LEN / 50 + (48 << 10), "{reading} for the tensor");
        }
    }
}

/// Tensors that follow each other are read at once: their chunks once, and what is between them is zeros.
#[test]
fn a_range_of_the_payload_holds_parts_at_their_offsets() {
    let keys = keys();
    let lens = [100_u64, 0, 70_000, 3];
    let parts = lens.iter().enumerate().map(|(idx, &len)| Part::tensor(&format!("t{idx}"), "U8", [len], len));
    let plan = Plan::new(parts).unwrap();
    let content = content(plan.content_len());
    let options = SealOptions::default().signed_by(&keys.signer).for_recipient(keys.alice.public());
    let file = seal(&plan, &content, &options);
    let source = Counting { bytes: &file, read: Cell::new(0) };
    let access = Access::default().with_recipient(&keys.alice).with_trust(Trust::Anyone);
    let reader = SealedReader::open(&source, &access, &limits()).unwrap();
    let last = reader.parts().last().unwrap();
    let end = last.offset() + last.len();

    source.read.set(0);
    let mut all = vec![1; end as usize];
    reader.read_payload(0, &mut all).unwrap();
    assert!(source.read.get() < 2 * end, "{} for {end}", source.read.get());
    let mut expected = vec![0; end as usize];
    let mut at = 0;
    for part in reader.parts() {
        let (begin, len) = (part.offset() as usize, part.len() as usize);
        expected[begin..begin + len].copy_from_slice(&content[at..at + len]);
        at += len;
    }
    assert_eq!(all, expected);

    let mut some = vec![0; 1000];
    reader.read_payload(50_001, &mut some).unwrap();
    assert_eq!(some, expected[50_001..51_001]);
    for offset in [end - 999, end, u64::MAX] {
        let error = reader.read_payload(offset, &mut some).unwrap_err();
        assert_eq!(error.code(), "cy-range", "{offset}");
    }
    reader.read_payload(end, &mut []).unwrap();
}

/// The keys are gone when the tensor is read.
#[test]
fn a_reader_without_names_outlives_its_keys() {
    let plan = Plan::new([Part::tensor("bias", "U8", [3], 3)]).unwrap();
    let maker = keys().verifying;
    let reader: SealedReader<'static, Vec<u8>> = {
        let keys = keys();
        let options = SealOptions::default().signed_by(&keys.signer).for_recipient(keys.alice.public());
        let file = seal(&plan, &[1, 2, 3], &options);
        let mut trusted = TrustedKeys::new();
        trusted.add("maker", keys.signer.verifying_key()).unwrap();
        let access = Access::default().with_recipient(&keys.alice).with_trust(&trusted);
        let reader = SealedReader::open(file, &access, &limits()).unwrap();
        assert_eq!(reader.signer(), Some(Signer::Trusted(maker, Some("maker"))));
        reader.forget_names()
    };
    assert_eq!(reader.signer(), Some(Signer::Trusted(maker, None)));
    assert_eq!(reader.tensor("bias").unwrap(), [1, 2, 3]);
}

/// A reader has given up the directory in its header.
#[test]
fn the_header_of_a_reader_opens_no_other() {
    let keys = keys();
    let plan = Plan::new([Part::tensor("bias", "U8", [3], 3)]).unwrap();
    let file = seal(&plan, &[1, 2, 3], &SealOptions::default().signed_by(&keys.signer));
    let access = Access::default().with_trust(&keys.verifying);
    let header = SealedHeader::read(&file, &limits()).unwrap();
    let reader = SealedReader::with_header(&file, header, &access, &limits()).unwrap();
    assert_eq!(reader.tensor("bias").unwrap(), [1, 2, 3]);
    let again = SealedReader::with_header(&file, reader.header().clone(), &access, &limits());
    assert_eq!(code(again), "ac-sealed-directory");
}

/// A file of so many leaves that its header has the upper hashes of the tree.
#[test]
fn upper_hashes_in_the_header_are_used_and_verified() {
    let keys = keys();
    let parts = (0..40).map(|idx| Part::tensor(&format!("w.{idx}"), "F16", [50_000], 100_000));
    let plan = Plan::new(parts).unwrap();
    let content = content(plan.content_len());
    for algorithm in [TreeAlgorithm::Blake3, TreeAlgorithm::Sha256] {
        let signed = SealOptions::default().signed_by(&keys.signer);
        let signed = signed.with_tree(algorithm, LeafLen::new(1 << 10).unwrap());
        let both = signed.clone().for_recipient(keys.alice.public());
        let trust = Access::default().with_trust(&keys.verifying);
        for (options, access) in [(signed, trust), (both, trust.with_recipient(&keys.alice))] {
            let file = seal(&plan, &content, &options);
            assert!(read_all(&file, &access).unwrap() == content);
            let places = map(&file);
            assert!((513..=1_024).contains(&(places.upper.len() / 32)), "{places:?}");
            for at in places.upper.clone().step_by(997) {
                let mut changed = file.clone();
                changed[at] ^= 1;
                assert_eq!(code(open(&changed, &access)), "ac-signature");
                assert_eq!(code(apr_sealed::verify(&changed, &keys.verifying, &limits())), "ac-signature");
            }
            // Hashes of the upper levels in the outboard are not read.
            let reader = open(&file, &access).unwrap();
            let mut without = file.clone();
            let places = without[places.outboard.clone()].chunks_mut(32);
            let (mut leaf, mut n) = (0_u64, 0);
            let mut levels = Vec::new();
            while levels.len() < places.len() {
                levels.extend(0..=(leaf + 1).trailing_zeros());
                leaf += 1;
            }
            for (hash, level) in places.zip(levels) {
                if level > 1 {
                    hash.fill(0);
                    n += 1;
                }
            }
            assert!(n > 1_000, "{n}");
            let other = open(&without, &access).unwrap();
            for name in ["w.0", "w.17", "w.39"] {
                assert!(other.tensor(name).unwrap() == reader.tensor(name).unwrap());
            }
            assert_eq!(code(other.verify_all()), "ac-signature");
        }
    }
}
