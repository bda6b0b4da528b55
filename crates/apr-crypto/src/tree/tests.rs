//! Trees compared with BLAKE3 and with a second implementation of RFC 6962, and under tampering.

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::ops::Range;

use proptest::prelude::*;
use read_at::ReadAt;
use sha2::{Digest, Sha256};

use super::*;
use crate::hex::array;

const ALGORITHMS: [TreeAlgorithm; 2] = TreeAlgorithm::ALL;

fn kib() -> LeafLen {
    LeafLen::new(1024).unwrap()
}

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|idx| (idx * 7 + idx / 251).to_le_bytes()[0]).collect()
}

fn tree(algorithm: TreeAlgorithm, leaf_len: LeafLen, content: &[u8]) -> (TreeRoot, Vec<u8>) {
    let mut hasher = TreeHasher::new(algorithm, leaf_len);
    hasher.update(content);
    hasher.finish()
}

/// RFC 6962, section 2.1, as it is written there.
fn rfc_6962(leaves: &[&[u8]]) -> Hash {
    match leaves {
        [] => Sha256::digest([]).into(),
        [leaf] => Sha256::new().chain_update([0]).chain_update(leaf).finalize().into(),
        _ => {
            let split = leaves.len().next_power_of_two() / 2;
            let (left, right) = leaves.split_at(split);
            let sha = Sha256::new().chain_update([1]).chain_update(rfc_6962(left));
            sha.chain_update(rfc_6962(right)).finalize().into()
        }
    }
}

#[test]
fn roots_are_the_standard_ones() {
    let data = content(70 * 1024);
    let lens = (0..5000).step_by(101).chain((0..69).flat_map(|n| [n * 1024, n * 1024 + 1, n * 1024 + 1023]));
    for len in lens {
        let data = &data[..len];
        for leaf_len in [1024, 2048, 16_384] {
            let leaf_len = LeafLen::new(leaf_len).unwrap();
            let (root, outboard) = tree(TreeAlgorithm::Blake3, leaf_len, data);
            assert_eq!(root.hash(), blake3::hash(data).as_bytes(), "{len}");
            assert_eq!(outboard.len() as u64, root.outboard_len());
            let (root, outboard) = tree(TreeAlgorithm::Sha256, leaf_len, data);
            let leaves: Vec<&[u8]> = data.chunks(leaf_len.index()).collect();
            assert_eq!(root.hash(), &rfc_6962(&leaves), "{len}");
            assert_eq!(outboard.len() as u64, root.outboard_len());
            assert_eq!(root.content_len(), len as u64);
        }
    }
}

/// FIPS 180-4's examples, through the tree of one leaf, and BLAKE3's of nothing.
#[test]
fn known_answers() {
    let empty = array("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_eq!(tree(TreeAlgorithm::Sha256, kib(), b"").0.hash(), &empty);
    // RFC 6962's leaf hash of an empty leaf is another one; there are no empty leaves here.
    let empty = array("af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262");
    assert_eq!(tree(TreeAlgorithm::Blake3, kib(), b"").0.hash(), &empty);
    assert_eq!(
        Sha256::digest(b"abc")[..],
        array::<32>("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    );
}

#[test]
fn any_cut_gives_the_same_tree() {
    let data = content(20 * 1024 + 5);
    for algorithm in ALGORITHMS {
        let expected = tree(algorithm, kib(), &data);
        for step in [1, 7, 1000, 1023, 1024, 1025, 4096, 5000] {
            let (mut hasher, mut outboard) = (TreeHasher::new(algorithm, kib()), Vec::new());
            let mut alone = TreeHasher::root_only(algorithm, kib());
            for piece in data.chunks(step) {
                hasher.update(piece);
                hasher.update(&[]);
                alone.update(piece);
                outboard.extend(hasher.take_outboard());
                assert!(alone.take_outboard().is_empty());
            }
            let (root, rest) = hasher.finish();
            outboard.extend(rest);
            assert_eq!((root, &outboard), (expected.0, &expected.1), "{step}");
            assert_eq!(alone.finish(), (root, Vec::new()));
        }
    }
}

#[test]
fn every_range_of_leaves_is_proven() {
    for algorithm in ALGORITHMS {
        for n in 0..20_u64 {
            let len = (n * 1024).saturating_sub(10) as usize;
            let data = content(len);
            let (root, outboard) = tree(algorithm, kib(), &data);
            for first in 0..n {
                for last in first..n {
                    let range = first * 1024..((last + 1) * 1024).min(len as u64);
                    let part = &data[range.start as usize..range.end as usize];
                    let proof = root.prove(range.clone(), &outboard).unwrap();
                    root.verify(range.clone(), part, &proof).unwrap();
                    // Not another range, length or proof.
                    let other = (range.start + 1024..range.end + 1024, range.start..range.end - 1);
                    assert!(root.verify(other.0, part, &proof).is_err());
                    assert!(root.verify(other.1, &part[1..], &proof).is_err());
                    let longer = [&proof[..], &[0; 32]].concat();
                    assert_eq!(
                        root.verify(range.clone(), part, &longer).unwrap_err().kind(),
                        &ErrorKind::Tree
                    );
                    if let Some(shorter) = proof.len().checked_sub(32) {
                        assert!(root.verify(range.clone(), part, &proof[..shorter]).is_err());
                        assert!(root.verify(range.clone(), part, &proof[..shorter + 31]).is_err());
                    }
                }
            }
        }
    }
}

#[test]
fn every_flipped_bit_is_noticed() {
    let data = content(11 * 1024 + 3);
    for algorithm in ALGORITHMS {
        let (root, outboard) = tree(algorithm, kib(), &data);
        for range in [3 * 1024..5 * 1024, 10 * 1024..11 * 1024 + 3, 0..1024] {
            let mut part = data[range.start as usize..range.end as usize].to_vec();
            let mut proof = root.prove(range.clone(), &outboard).unwrap();
            for bit in 0..proof.len() * 8 {
                proof[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(root.verify(range.clone(), &part, &proof).unwrap_err().kind(), &ErrorKind::Tree);
                proof[bit / 8] ^= 1 << (bit % 8);
            }
            for at in 0..part.len() {
                part[at] ^= 0x10;
                assert!(root.verify(range.clone(), &part, &proof).is_err());
                part[at] ^= 0x10;
            }
            let mut hash = *root.hash();
            hash[31] ^= 1;
            let other = TreeRoot::new(algorithm, kib(), root.content_len(), hash);
            assert!(other.verify(range, &part, &proof).is_err());
        }
    }
}

/// Moved and doubled leaves, the sides of a proof exchanged, another content's proof.
#[test]
fn leaves_stay_where_they_are() {
    let data = content(8 * 1024);
    for algorithm in ALGORITHMS {
        let (root, outboard) = tree(algorithm, kib(), &data);
        let proof = root.prove(2048..4096, &outboard).unwrap();
        let swapped = [&data[3072..4096], &data[2048..3072]].concat();
        assert!(root.verify(2048..4096, &swapped, &proof).is_err());
        let doubled = [&data[2048..3072], &data[2048..3072]].concat();
        assert!(root.verify(2048..4096, &doubled, &proof).is_err());
        let turned = [&proof[32..], &proof[..32]].concat();
        assert!(root.verify(2048..4096, &data[2048..4096], &turned).is_err());
        assert!(root.verify(4096..6144, &data[2048..4096], &proof).is_err());
        // Leaves and parents cannot stand for each other: two hashes as content of a leaf.
        let hashes = &outboard[..64];
        let (root, _) = tree(algorithm, kib(), &data[..2048]);
        let forged = TreeRoot::new(algorithm, kib(), 64, *root.hash());
        assert!(forged.verify(0..64, hashes, &[]).is_err());
    }
}

#[test]
fn odd_ranges_are_refused() {
    let data = content(5 * 1024 + 1);
    let (root, outboard) = tree(TreeAlgorithm::Blake3, kib(), &data);
    let end = 5 * 1024 + 1;
    #[allow(clippy::reversed_empty_ranges)]
    let bad: [Range<u64>; 8] = [
        1..1024,
        0..1000,
        0..end + 1,
        1024..end - 2,
        2048..1024,
        0..6 * 1024,
        u64::MAX..u64::MAX,
        0..u64::MAX,
    ];
    for range in bad {
        assert_eq!(root.prove(range.clone(), &outboard).unwrap_err().code(), "cy-range", "{range:?}");
        assert_eq!(root.verify(range.clone(), &[], &[]).unwrap_err().code(), "cy-range", "{range:?}");
        assert!(root.proof_len(range).is_err());
    }
    for (offset, len) in [(0, end + 1), (end, 1), (u64::MAX, 1), (1, u64::MAX)] {
        assert_eq!(root.leaves(offset, len).unwrap_err().code(), "cy-range");
    }
    assert_eq!(root.leaves(1023, 2).unwrap(), 0..2048);
    assert_eq!(root.leaves(end - 1, 1).unwrap(), 5 * 1024..end);
    assert_eq!(root.leaves(1500, 0).unwrap(), 1024..1024);
    // An empty range needs no proof and takes none.
    root.verify(1024..1024, &[], &[]).unwrap();
    assert!(root.verify(1024..1024, &[], &[0; 32]).is_err());
    assert!(root.prove(1024..1024, &outboard).unwrap().is_empty());
}

#[test]
fn content_of_one_leaf_or_none() {
    for algorithm in ALGORITHMS {
        for len in [0, 1, 1023, 1024] {
            let data = content(len);
            let (root, outboard) = tree(algorithm, kib(), &data);
            assert_eq!(outboard.len(), 32 * usize::from(len > 0));
            let range = 0..len as u64;
            assert!(root.prove(range.clone(), &outboard).unwrap().is_empty());
            root.verify(range.clone(), &data, &[]).unwrap();
            let other = TreeRoot::new(algorithm, kib(), len as u64, [0; 32]);
            assert_eq!(other.verify(range, &data, &[]).unwrap_err().kind(), &ErrorKind::Tree);
        }
    }
}

/// Counts the bytes asked for.
struct Counting<'a>(&'a [u8], Cell<u64>);

impl ReadAt for Counting<'_> {
    fn total_len(&self) -> u64 {
        self.0.total_len()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), read_at::Error> {
        self.1.set(self.1.get() + out.len() as u64);
        self.0.read_exact_at(offset, out)
    }
}

#[test]
fn a_small_read_costs_its_leaves_and_few_hashes() {
    let data = content(1000 * 1024 - 7);
    let (root, outboard) = tree(TreeAlgorithm::Blake3, kib(), &data);
    let (content, hashes) = (Counting(&data, Cell::new(0)), Counting(&outboard, Cell::new(0)));
    let reader = VerifiedReader::new(root, &content, &hashes).unwrap();
    assert_eq!((reader.total_len(), reader.root()), (data.len() as u64, &root));
    for at in [0, 333_333, 1000 * 1024 - 17] {
        content.1.set(0);
        hashes.1.set(0);
        let mut out = [0; 10];
        reader.read_exact_at(at, &mut out).unwrap();
        assert_eq!(out, data[at as usize..][..10]);
        assert!(content.1.get() <= 2048);
        // Ten levels; the right edge of this tree is six nodes long.
        assert!(hashes.1.get() <= (10 + 6) * 32, "{}", hashes.1.get());
    }
}

/// What is read, and what was announced.
struct Announced<'a>(&'a [u8], RefCell<Vec<Range<u64>>>);

impl ReadAt for Announced<'_> {
    fn total_len(&self) -> u64 {
        self.0.total_len()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), read_at::Error> {
        let end = offset + out.len() as u64;
        let ranges = self.1.borrow();
        assert!(ranges.iter().any(|range| range.start <= offset && end <= range.end), "{offset} {ranges:?}");
        self.0.read_exact_at(offset, out)
    }

    fn will_read(&self, range: Range<u64>) {
        self.1.borrow_mut().push(range);
    }
}

#[test]
fn what_a_range_takes_is_announced() {
    let data = content(4096 * 1024);
    let (root, outboard) = tree(TreeAlgorithm::Blake3, kib(), &data);
    for range in [0..100_000_u64, 1_000_000..1_300_000, 4_000_000..4_194_304, 2_097_151..2_097_153] {
        let (content, hashes) =
            (Announced(&data, RefCell::default()), Announced(&outboard, RefCell::default()));
        let reader = VerifiedReader::new(root, &content, &hashes).unwrap();
        reader.will_read(range.clone());
        for at in range.clone().step_by(50_000) {
            let mut out = vec![0; (range.end - at).min(50_000) as usize];
            reader.read_exact_at(at, &mut out).unwrap();
            assert_eq!(out, data[at as usize..][..out.len()]);
        }
        assert_eq!(content.1.borrow().len(), 1);
        let len: u64 = hashes.1.borrow().iter().map(|range| range.end - range.start).sum();
        assert!(hashes.1.borrow().len() < 12 && len < 200_000, "{len}");
    }
}

#[test]
fn reader_refuses_other_lengths_and_hands_out_nothing_bad() {
    let data = content(9 * 1024);
    let (root, outboard) = tree(TreeAlgorithm::Sha256, kib(), &data);
    assert!(VerifiedReader::new(root, &data[1..], &outboard).is_err());
    assert!(VerifiedReader::new(root, &data, &outboard[32..]).is_err());
    let mut bad = data.clone();
    bad[5000] ^= 1;
    let reader = VerifiedReader::new(root, &bad, &outboard).unwrap();
    let mut out = vec![0xaa; 3000];
    assert_eq!(reader.read_exact_at(2500, &mut out).unwrap_err().kind(), &ErrorKind::Tree);
    assert!(out.iter().all(|byte| *byte == 0));
    reader.read_exact_at(6144, &mut out).unwrap();
    assert_eq!(out, data[6144..9144]);
    assert_eq!(reader.read_exact_at(6217, &mut out).unwrap_err().code(), "cy-range");
}

#[test]
fn names_and_numbers_there_and_back() {
    for algorithm in ALGORITHMS {
        assert_eq!(TreeAlgorithm::from_name(algorithm.name()).unwrap(), algorithm);
        assert_eq!(TreeAlgorithm::from_id(algorithm.id()).unwrap(), algorithm);
        let root = TreeRoot::new(algorithm, LeafLen::KIB_64, 0x0102_0304, [9; 32]);
        assert_eq!(TreeRoot::from_bytes(&root.to_bytes()).unwrap(), root);
        assert_eq!(root.algorithm().to_string(), algorithm.name());
    }
    assert_eq!(TreeAlgorithm::from_name("md5").unwrap_err().kind(), &ErrorKind::UnknownAlgorithm);
    for id in [0, 3, 255] {
        assert_eq!(TreeAlgorithm::from_id(id).unwrap_err().kind(), &ErrorKind::UnknownAlgorithm);
    }
    for len in [0, 1, 512, 1023, 1025, 1 << 25, 1 << 63, u64::MAX] {
        assert_eq!(LeafLen::new(len).unwrap_err().kind(), &ErrorKind::LeafLen { len });
    }
    assert_eq!(LeafLen::new(1 << 24).unwrap().get(), 1 << 24);
    assert_eq!(LeafLen::new(65_536).unwrap(), LeafLen::KIB_64);
    for log2 in [0, 9, 25, 63, 64, 255] {
        let mut bytes = [0; TreeRoot::LEN];
        (bytes[0], bytes[1]) = (1, log2);
        assert_eq!(TreeRoot::from_bytes(&bytes).unwrap_err().code(), "cy-leaf-len");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_range_is_read_verified(
        len in 0..80_000_usize, leaf in 10..14_u32, at: prop::sample::Index, count: prop::sample::Index, sha: bool,
    ) {
        let algorithm = ALGORITHMS[usize::from(sha)];
        let data = content(len);
        let (root, outboard) = tree(algorithm, LeafLen::new(1 << leaf).unwrap(), &data);
        let begin = at.index(len + 1);
        let mut out = vec![0; count.index(len - begin + 1)];
        let reader = VerifiedReader::new(root, &data, &outboard).unwrap();
        reader.read_exact_at(begin as u64, &mut out).unwrap();
        prop_assert_eq!(&out, &data[begin..][..out.len()]);
    }

    #[test]
    fn random_roots_and_proofs_are_refused(bytes: [u8; 32], head: [u8; 10], proof: Vec<u8>, data: Vec<u8>, from: u64) {
        let bytes: [u8; 42] = [&head[..], &bytes].concat().try_into().unwrap();
        if let Ok(root) = TreeRoot::from_bytes(&bytes) {
            let range = from..from.saturating_add(data.len() as u64);
            prop_assert!(range.is_empty() || root.verify(range.clone(), &data, &proof).is_err());
            let _ = root.prove(range, &proof);
        }
    }

    /// A root with a length that is not the content's own proves nothing false, and panics nowhere.
    #[test]
    fn other_lengths_do_not_panic(len in any::<u64>(), from in any::<u64>(), count in 0..100_000_u64) {
        let root = TreeRoot::new(TreeAlgorithm::Blake3, LeafLen::KIB_16, len, [0; 32]);
        if let Ok(leaves) = root.leaves(from, count) {
            let proof = root.proof_len(leaves.clone()).unwrap();
            prop_assert!(proof <= 2 * 50 * 32);
            prop_assert!(root.prove(leaves, &[][..]).is_err() || proof == 0);
        }
    }
}

/// Ranges that a source is read at, and told of.
struct Noted<'b> {
    bytes: &'b [u8],
    read: RefCell<Vec<Range<u64>>>,
    told: RefCell<Vec<Range<u64>>>,
}

impl ReadAt for Noted<'_> {
    fn total_len(&self) -> u64 {
        self.bytes.total_len()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), read_at::Error> {
        self.read.borrow_mut().push(offset..offset + out.len() as u64);
        self.bytes.read_exact_at(offset, out)
    }

    fn will_read(&self, range: Range<u64>) {
        self.told.borrow_mut().push(range);
    }
}

#[test]
fn upper_hashes_replace_the_levels_above_them() {
    for algorithm in ALGORITHMS {
        for n_leaves in [1_025, 1_026, 2_047, 2_048, 2_049, 3_000, 4_097] {
            let data = content(n_leaves * 1024 - 3);
            let mut hasher = TreeHasher::new(algorithm, kib()).with_upper(data.len() as u64);
            data.chunks(100_003).for_each(|piece| hasher.update(piece));
            let (root, outboard, upper) = hasher.finish_upper();
            assert_eq!((root, outboard.as_slice()), {
                let (root, outboard) = tree(algorithm, kib(), &data);
                (root, outboard.leak() as &[u8])
            });
            assert_eq!(upper.len() as u64, root.upper_len());
            let known = UpperHashes::from_bytes(&root, &upper).unwrap();
            let noted = Noted { bytes: &outboard, read: RefCell::default(), told: RefCell::default() };
            let reader =
                VerifiedReader::new(root, data.as_slice(), &noted).unwrap().with_upper(&known).unwrap();
            for at in (0..data.len()).step_by(33_333).chain([data.len() - 1]) {
                let len = 5_000.min(data.len() - at);
                let mut out = vec![0; len];
                noted.read.borrow_mut().clear();
                noted.told.borrow_mut().clear();
                reader.will_read(at as u64..(at + len) as u64);
                reader.read_exact_at(at as u64, &mut out).unwrap();
                assert_eq!(out, data[at..at + len], "{n_leaves} {at}");
                let (read, told) = (noted.read.borrow(), noted.told.borrow());
                let is_told = |read: &Range<u64>| {
                    told.iter().any(|told| told.start <= read.start && read.end <= told.end)
                };
                assert!(
                    !cfg!(feature = "std") || read.iter().all(is_told),
                    "{n_leaves} {at}: {read:?} {told:?}"
                );
                let (first, last) = (read.iter().map(|read| read.start), read.iter().map(|read| read.end));
                let span = last.max().unwrap_or(0) - first.min().unwrap_or(0);
                assert!(span <= 3 * 32 * 2 * (2 << 3), "{n_leaves} {at}: {span} bytes");
            }
        }
    }
}

#[test]
fn upper_hashes_and_what_is_below_them_are_verified() {
    let data = content(3_000 * 1024);
    let mut hasher = TreeHasher::new(TreeAlgorithm::Blake3, kib()).with_upper(data.len() as u64);
    hasher.update(&data);
    let (root, outboard, upper) = hasher.finish_upper();
    for at in (0..upper.len()).step_by(31) {
        let mut changed = upper.clone();
        changed[at] ^= 1;
        assert_eq!(UpperHashes::from_bytes(&root, &changed).unwrap_err().code(), "cy-tree");
    }
    for wrong in [&upper[32..], &upper[..upper.len() - 1], &[upper.as_slice(), &[0; 32]].concat(), &[]] {
        assert!(UpperHashes::from_bytes(&root, wrong).is_err());
    }
    let known = UpperHashes::from_bytes(&root, &upper).unwrap();
    let read = |data: &[u8], outboard: &[u8]| {
        let reader = VerifiedReader::new(root, data, outboard).unwrap().with_upper(&known).unwrap();
        let mut out = vec![0xaa; 100];
        reader.read_exact_at(1_500_000, &mut out).map(|()| out.clone()).map_err(|error| {
            assert!(out.iter().all(|byte| *byte == 0), "nothing is handed out");
            error.code()
        })
    };
    assert_eq!(read(&data, &outboard).unwrap(), data[1_500_000..1_500_100]);
    let mut changed = data.clone();
    changed[1_500_050] ^= 1;
    assert_eq!(read(&changed, &outboard), Err("cy-tree"));
    // A hash beside the way up to the level.
    let leaf = 1_500_000 / 1024;
    let beside = root.shape().place(0, leaf ^ 1).unwrap() as usize * 32;
    let other = root.shape().place(1, (leaf / 2) ^ 1).unwrap() as usize * 32;
    let results = [beside, other].map(|at| {
        let mut changed = outboard.clone();
        changed[at] ^= 1;
        read(&data, &changed)
    });
    assert!(results.iter().all(|result| *result == Err("cy-tree")), "{:?}", results.map(Result::err));
    // Those of another tree.
    let (other, _) = tree(TreeAlgorithm::Blake3, kib(), &changed);
    let reader = VerifiedReader::new(other, changed.as_slice(), outboard.as_slice()).unwrap();
    assert_eq!(reader.with_upper(&known).unwrap_err().code(), "cy-tree");
    // Short content has none.
    let mut hasher = TreeHasher::new(TreeAlgorithm::Blake3, kib()).with_upper(1_024 * 1024);
    hasher.update(&data[..1_024 * 1024]);
    let (root, _, upper) = hasher.finish_upper();
    assert_eq!((root.upper_len(), upper.len()), (0, 0));
    assert!(UpperHashes::from_bytes(&root, &upper).is_err());
}

/// Of 4.3 GB in leaves of 16 KiB, one piece of the outboard proves any tensor below the upper hashes; without them it is many.
#[test]
#[cfg(feature = "std")]
fn a_proof_below_the_upper_hashes_is_one_piece() {
    use super::proof::NO_TOP;

    const TENSOR: u64 = 4 << 20;
    let len = 4_300_000_000;
    let root = TreeRoot::new(TreeAlgorithm::Blake3, LeafLen::KIB_16, len, [0; 32]);
    let level = root.upper_level().unwrap();
    assert_eq!((level, root.upper_len()), (9, 513 * 32));
    let mut most = 0;
    for at in (0..len - TENSOR).step_by(3_456_789).chain([len - TENSOR]) {
        for len in [1, TENSOR] {
            let leaves = root.leaves(at, len).unwrap();
            let places = root.proof_places(&leaves, level).unwrap();
            let bytes = places.iter().map(|place| place.end - place.start).sum::<u64>();
            assert!(places.len() == 1 && bytes <= 64 << 10, "{at}: {places:?}");
            // A part of the range is proved by them, too.
            for begin in (leaves.start..leaves.end).step_by(1 << 20) {
                let part = root.leaf_indices(&(begin..leaves.end.min(begin + (1 << 20)))).unwrap();
                for beside in root.shape().beside(part).take_while(|beside| beside.level < level) {
                    let nodes = [beside.left, beside.right].into_iter().flatten();
                    let mut at = nodes.filter_map(|idx| root.shape().place(beside.level, idx));
                    assert!(at.all(|at| places[0].contains(&(at * 32))), "{begin}: {beside:?} {places:?}");
                }
            }
            most = most.max(root.proof_places(&leaves, NO_TOP).unwrap().len());
        }
    }
    assert!(most > 7, "{most}");
}
