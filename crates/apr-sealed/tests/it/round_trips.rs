//! What is sealed is opened again by those it is for.

use std::io::{Cursor, Write as _};

use apr_crypto::{Access, LeafLen, Rng as _, Signer, TreeAlgorithm, Trust, TrustedKeys};
use apr_sealed::{
    Part, PartKind, Plan, SealOptions, SealedLayout, SealedLimits, SealedReader, Sealer, StanzaKind, Suite,
};
use proptest::prelude::*;

use super::{Seeded, cheap, code, content, header, keys, limits, map, open, read_all, sample, seal, texts};

#[test]
fn every_way_to_seal_is_opened_by_whom_it_is_for() {
    let keys = keys();
    let [alice, bob] = keys.public();
    for scale in [1, 2_000] {
        let (plan, content) = sample(scale);
        let none = SealOptions::default;
        let plain = Access::default();
        let locks = [
            (none(), vec![plain]),
            (none().for_recipient(alice), vec![plain.with_recipient(&keys.alice)]),
            (
                none().for_recipient(alice).for_recipient(bob),
                vec![plain.with_recipient(&keys.alice), plain.with_recipient(&keys.bob)],
            ),
            (none().with_password_at(&keys.password, cheap()), vec![plain.with_password(&keys.password)]),
        ];
        for (idx, (options, accesses)) in locks.into_iter().enumerate() {
            for bound in [false, true] {
                let signed = options.clone().signed_by(&keys.signer);
                let signed = if bound && idx > 0 { signed.with_bound_recipients() } else { signed };
                let signed = signed.with_public("name", "m").with_private("file.name", "m.gguf");
                let file = seal(&plan, &content, &signed);
                assert_eq!(file.len() as u64, SealedLayout::new(&plan, &signed).unwrap().total_len());
                for access in &accesses {
                    let reader = open(&file, &access.with_trust(&keys.verifying)).unwrap();
                    assert_eq!(reader.signer(), Some(Signer::Trusted(keys.verifying, None)));
                    assert_eq!(*reader.public_metadata(), texts(&[("name", "m")]));
                    assert_eq!(*reader.private_metadata(), texts(&[("file.name", "m.gguf")]));
                    assert_eq!(reader.parts(), plan.parts());
                    for part in plan.parts().iter().filter(|part| part.kind() == PartKind::Tensor) {
                        assert_eq!(reader.tensor(part.name()).unwrap().len() as u64, part.len());
                    }
                    let trusted = access.with_trust(&keys.verifying);
                    assert_eq!(read_all(&file, &trusted).unwrap(), content);
                }
                assert_eq!(
                    apr_sealed::verify(&file, Trust::Anyone, &limits()).unwrap(),
                    Signer::Unknown(keys.verifying)
                );
            }
            if idx > 0 {
                let file = seal(&plan, &content, &options);
                for access in &accesses {
                    assert_eq!(read_all(&file, access).unwrap(), content);
                    assert_eq!(open(&file, access).unwrap().signer(), None);
                }
            }
        }
    }
}

#[test]
fn a_header_says_what_anyone_may_know() {
    let keys = keys();
    let [alice, bob] = keys.public();
    let (plan, content) = sample(10);
    let options = SealOptions::default().for_recipient(alice).for_recipient(bob).with_public("a", "b");
    let file = seal(&plan, &content, &options.clone().signed_by(&keys.signer).with_bound_recipients());
    let seen = header(&file);
    assert_eq!(seen.suite(), Suite::Cobblestone256);
    assert_eq!(seen.stanzas(), [StanzaKind::Recipient, StanzaKind::Recipient]);
    assert_eq!(seen.signer_declared(), Some(*keys.verifying.as_bytes()));
    assert!(seen.has_bound_recipients() && seen.is_signed() && seen.is_encrypted());
    assert_eq!(seen.revision_declared(), 1);
    assert_eq!(*seen.public_declared(), texts(&[("a", "b")]));
    assert_eq!(seen.root_declared().unwrap().algorithm(), TreeAlgorithm::Blake3);
    assert_eq!(seen.lens().iter().sum::<u64>(), file.len() as u64);

    let file = seal(&plan, &content, &SealOptions::default().signed_by(&keys.signer));
    let seen = header(&file);
    assert_eq!((seen.suite(), seen.stanzas()), (Suite::Plain, &[][..]));
    let file = seal(&plan, &content, &SealOptions::default().with_password_at(&keys.password, cheap()));
    let seen = header(&file);
    assert_eq!((seen.stanzas(), seen.signer_declared()), (&[StanzaKind::Password][..], None));
}

#[test]
fn trusted_keys_name_the_signer() {
    let keys = keys();
    let (plan, content) = sample(1);
    let file = seal(&plan, &content, &SealOptions::default().signed_by(&keys.signer));
    let mut trusted = TrustedKeys::new();
    assert_eq!(code(open(&file, &Access::default().with_trust(&trusted))), "ac-untrusted-signer");
    trusted.add("release", keys.verifying).unwrap();
    let access = Access::default().with_trust(&trusted);
    assert_eq!(
        open(&file, &access).unwrap().signer(),
        Some(Signer::Trusted(keys.verifying, Some("release")))
    );
}

/// No parts, an empty part alone, empty parts at the edges of leaves and chunks.
#[test]
fn parts_may_be_empty_and_none_at_all() {
    let keys = keys();
    let [alice, _] = keys.public();
    let tensor = |name: &str, len| Part::tensor(name, "U8", [len], len);
    let plans = [
        Plan::new([]).unwrap(),
        Plan::new([tensor("a", 0)]).unwrap(),
        Plan::new([tensor("a", 0), tensor("b", 0)]).unwrap(),
        Plan::new([tensor("a", 16_384), tensor("b", 0)]).unwrap(),
        Plan::new([tensor("a", 16_383), tensor("b", 0), Part::raw(1)]).unwrap(),
        Plan::new([tensor("a", 16_385), tensor("b", 0), tensor("c", 1)]).unwrap(),
    ];
    for plan in plans {
        let content = content(plan.content_len());
        let options = SealOptions::default().signed_by(&keys.signer);
        let signed = seal(&plan, &content, &options);
        let trust = Access::default().with_trust(&keys.verifying);
        assert_eq!(read_all(&signed, &trust).unwrap(), content);
        let both = seal(&plan, &content, &options.for_recipient(alice));
        assert_eq!(read_all(&both, &trust.with_recipient(&keys.alice)).unwrap(), content);
        for part in plan.parts() {
            let reader = open(&both, &trust.with_recipient(&keys.alice)).unwrap();
            assert_eq!(reader.tensor(part.name()).map(|bytes| bytes.len() as u64).unwrap_or(1), part.len());
        }
    }
}

#[test]
fn both_trees_and_other_leaves_are_read() {
    let keys = keys();
    let (plan, content) = sample(3_000);
    let access = Access::default().with_trust(&keys.verifying);
    for algorithm in [TreeAlgorithm::Blake3, TreeAlgorithm::Sha256] {
        for leaf in [1024, 16_384, 1 << 20] {
            let leaf = LeafLen::new(leaf).unwrap();
            let options = SealOptions::default().signed_by(&keys.signer).with_tree(algorithm, leaf);
            let file = seal(&plan, &content, &options);
            assert_eq!(read_all(&file, &access).unwrap(), content);
            let both = seal(&plan, &content, &options.for_recipient(keys.alice.public()));
            assert_eq!(read_all(&both, &access.with_recipient(&keys.alice)).unwrap(), content);
        }
    }
}

/// In a file that is signed only, tensors stand aligned and as they are.
#[test]
fn what_is_signed_only_can_be_mapped() {
    let keys = keys();
    let (plan, content) = sample(100);
    let options = SealOptions::default().signed_by(&keys.signer);
    let file = seal(&plan, &content, &options);
    let payload = SealedLayout::new(&plan, &options).unwrap().payload_offset();
    assert_eq!(map(&file).payload.start as u64, payload);
    let reader = open(&file, &Access::default().with_trust(&keys.verifying)).unwrap();
    for (idx, part) in reader.parts().iter().enumerate() {
        let at = usize::try_from(payload + part.offset()).unwrap();
        assert_eq!(at % 64, 0);
        let mut bytes = vec![0; usize::try_from(part.len()).unwrap()];
        reader.read_part(idx, 0, &mut bytes).unwrap();
        assert_eq!(bytes, file[at..at + bytes.len()]);
    }
}

#[test]
fn files_on_disk_are_replaced_and_read() {
    let keys = keys();
    let (plan, content) = sample(5_000);
    let folder = std::env::temp_dir().join(format!("apr-sealed-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("m.sealed");
    let options = SealOptions::default().for_recipient(keys.alice.public()).signed_by(&keys.signer);
    apr_sealed::seal_file(&path, &plan, &options, |out| out.write_all(&content)).unwrap();
    let access = Access::default().with_recipient(&keys.alice).with_trust(&keys.verifying);
    let reader = apr_sealed::open_file(&path, &access, &SealedLimits::default()).unwrap();
    let mut out = Vec::new();
    reader.restore(&mut out).unwrap();
    assert_eq!(out, content);

    // Whatever goes wrong, the old file stays.
    let before = std::fs::read(&path).unwrap();
    let short = apr_sealed::seal_file(&path, &plan, &options, |out| out.write_all(&content[1..]));
    assert_eq!(code(short), "ac-v2-data-length");
    let long = apr_sealed::seal_file(&path, &plan, &options, |out| {
        out.write_all(&content)?;
        out.write_all(b"x")
    });
    assert_eq!(code(long), "ac-v2-data-length");
    let failed =
        apr_sealed::seal_file(&path, &plan, &options, |_| Err(std::io::ErrorKind::BrokenPipe.into()));
    assert_eq!(code(failed), "ac-io");
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    let error = apr_sealed::open_file(&folder, &access, &SealedLimits::default());
    assert_eq!(code(error), "df-not-regular");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// After an error nothing is taken any more: a gap in the payload must not go unnoticed.
#[test]
fn an_error_ends_sealing() {
    struct Full(Cursor<Vec<u8>>);
    impl std::io::Write for Full {
        fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
            if self.0.position() > 1 << 20 {
                Err(std::io::ErrorKind::StorageFull.into())
            } else {
                self.0.write(data)
            }
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    impl std::io::Seek for Full {
        fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
            self.0.seek(to)
        }
    }
    let keys = keys();
    let plan = Plan::new([Part::raw(8 << 20)]).unwrap();
    let options = SealOptions::default().signed_by(&keys.signer);
    let mut sealer = Sealer::new(Full(Cursor::new(Vec::new())), &plan, &options, &mut Seeded(1)).unwrap();
    assert!(sealer.write_all(&vec![0; 8 << 20]).is_err());
    assert!(sealer.write_all(b"x").is_err());
    assert_eq!(code(sealer.finish()), "ac-value");
}

/// Two files of one content have nothing in common but that.
#[test]
fn no_two_files_share_id_or_salts() {
    let keys = keys();
    let (plan, content) = sample(1);
    let options = SealOptions::default().for_recipient(keys.alice.public());
    let [a, b] =
        [1, 2].map(|_| apr_sealed::to_vec(&plan, &content, &options, &mut apr_crypto::OsRandom).unwrap());
    let places = map(&a);
    // File id; ephemeral key; salts of directory and payload.
    for begin in [16, places.slots[0].start + 84, places.directory.start, places.payload.start] {
        assert_ne!(a[begin..begin + 16], b[begin..begin + 16]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Any parts, in any pieces: the same file, and the same content again.
    #[test]
    fn streams_are_sealed_as_memory_is(
        lens in prop::collection::vec(0_u64..60_000, 0..8),
        pieces in prop::collection::vec(1_usize..90_000, 1..8),
        signed in any::<bool>(),
        encrypted in any::<bool>(),
        at in any::<prop::sample::Index>(),
        seed in any::<u64>(),
    ) {
        prop_assume!(signed || encrypted);
        let keys = keys();
        let parts = lens.iter().enumerate().map(|(idx, len)| match idx % 3 {
            0 if *len > 0 => Part::raw(*len),
            _ => Part::tensor(&format!("t{idx}"), "U8", [*len], *len),
        });
        let plan = Plan::new(parts).unwrap();
        let content = content(plan.content_len());
        let mut options = SealOptions::default();
        let mut access = Access::default();
        if signed {
            options = options.signed_by(&keys.signer);
            access = access.with_trust(&keys.verifying);
        }
        if encrypted {
            options = options.for_recipient(keys.alice.public());
            access = access.with_recipient(&keys.alice);
        }
        let whole = apr_sealed::to_vec(&plan, &content, &options, &mut Seeded(seed)).unwrap();
        let mut out = Cursor::new(vec![9; 3]);
        out.set_position(3);
        let mut sealer = Sealer::new(out, &plan, &options, &mut Seeded(seed)).unwrap();
        let (mut rest, mut lens) = (content.as_slice(), pieces.iter().cycle());
        while !rest.is_empty() {
            let (now, after) = rest.split_at(rest.len().min(*lens.next().unwrap()));
            sealer.write_all(now).unwrap();
            rest = after;
        }
        let streamed = sealer.finish().unwrap().into_inner();
        prop_assert_eq!(&streamed[3..], &whole);
        let reader = SealedReader::open(&whole, &access, &limits()).unwrap();
        prop_assert_eq!(&read_all(&whole, &access).unwrap(), &content);
        // Any range of any part.
        if !plan.parts().is_empty() {
            let idx = at.index(plan.parts().len());
            let before: u64 = plan.parts()[..idx].iter().map(Part::len).sum();
            let len = plan.parts()[idx].len();
            let mut ends = [0; 8];
            Seeded(seed).fill(&mut ends).unwrap();
            let from = u64::from_le_bytes(ends) % (len + 1);
            let mut bytes = vec![0; usize::try_from((len - from).min(20_000)).unwrap()];
            reader.read_part(idx, from, &mut bytes).unwrap();
            let begin = usize::try_from(before + from).unwrap();
            prop_assert_eq!(&bytes, &content[begin..begin + bytes.len()]);
        }
    }
}
