//! Files of version 1: saved, loaded, inspected, damaged.

use core::cell::Cell;
use std::fs;
use std::io::Cursor;
use std::path::PathBuf;

use apr_container::v1::Container;
use apr_container::{
    Checksum, Compression, DecodePayload, Error, ErrorKind, Expansion, Expect, Limits, ModelType,
    PayloadLayout, PayloadReader, ReadOptions, SaveOptions, Strictness, UncheckedSignature, Warning, inspect,
    inspect_bytes, inspect_from, inspect_with, load, load_from, load_from_bytes, load_from_bytes_with,
    load_with, save, to_vec, write_to,
};
use proptest::prelude::*;
use read_at::ReadAt;

use crate::sample::{OnlyKMeans, Sample};

fn options(compression: Compression) -> SaveOptions<'static> {
    SaveOptions::default().with_compression(compression).with_created_at(1_795_241_427)
}

fn temp(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("apr-container-{}-{name}.apr", std::process::id()))
}

fn refused<T>(result: Result<T, Error>) -> Error {
    result.err().expect("a refusal")
}

/// Whether loading from memory and from disk refuse for the same reason. From disk, the header is validated before the rest of the
/// file is read.
fn agree(memory: &Error, disk: &Error) -> bool {
    let early = ["ac-wrong-type", "ac-unknown-type", "ac-encrypted", "ac-signed"];
    early.contains(&disk.code()) || memory.code() == disk.code()
}

/// Recomputes the checksum.
fn reseal(file: &mut Vec<u8>) {
    let body = file.len() - 4;
    let crc = crc32fast::hash(&file[..body]);
    file.truncate(body);
    file.extend_from_slice(&crc.to_le_bytes());
}

#[test]
fn every_compression_brings_the_model_back_from_memory_and_from_disk() {
    for compression in Compression::KNOWN {
        for count in [0, 1, 511, 512, 100_000] {
            let model = Sample::new(count);
            let path = temp(&format!("round-{}-{count}", compression.0));
            save(&model, ModelType::Custom, &path, options(compression)).unwrap();
            let file = fs::read(&path).unwrap();
            assert_eq!(
                file,
                to_vec(&model, ModelType::Custom, &options(compression)).unwrap(),
                "{compression}"
            );
            assert_eq!(load::<Sample>(&path, ModelType::Custom).unwrap(), model);
            assert_eq!(load_from_bytes::<Sample>(&file, ModelType::Custom).unwrap(), model);
            let info = inspect(&path).unwrap();
            assert_eq!(info, inspect_bytes(&file).unwrap());
            assert_eq!((info.compression, info.file_size), (compression, file.len() as u64));
            assert_eq!(info.uncompressed_size, 8 + 4 * count as u64 + 8 + 6 + 1);
            assert_eq!(info.layout(), Some(PayloadLayout::V0_72));
            inspect_with(&path, Checksum::Compare, &ReadOptions::STRICT).unwrap();
            fs::remove_file(&path).unwrap();
        }
    }
}

#[test]
fn a_file_may_begin_anywhere_in_a_writer() {
    for compression in Compression::KNOWN {
        let mut out = Cursor::new(b"before".to_vec());
        out.set_position(6);
        write_to(&Sample::new(300), ModelType::Custom, &mut out, &options(compression)).unwrap();
        assert_eq!(out.position(), out.get_ref().len() as u64);
        let file = out.into_inner().split_off(6);
        assert_eq!(file, to_vec(&Sample::new(300), ModelType::Custom, &options(compression)).unwrap());
    }
}

#[test]
fn independent_decoders_read_what_is_written() {
    let model = Sample::new(70_000);
    let plain = apr_container::encode_payload_to_vec(&model, PayloadLayout::V0_72).unwrap();
    for compression in [Compression::ZstdDefault, Compression::ZstdMax] {
        let file = to_vec(&model, ModelType::Custom, &options(compression)).unwrap();
        let container = Container::from_bytes(&file).unwrap();
        let stored = container.payload().plain().unwrap().stored();
        assert_eq!(zstd::decode_all(stored).unwrap(), plain);
        let mut decoder = ruzstd::decoding::FrameDecoder::new();
        let mut decoded = Vec::with_capacity(plain.len());
        decoder.decode_all_to_vec(stored, &mut decoded).unwrap();
        assert_eq!(decoded, plain);
    }
    let file = to_vec(&model, ModelType::Custom, &options(Compression::LZ4)).unwrap();
    let stored = Container::from_bytes(&file).unwrap().payload().plain().unwrap().stored();
    assert_eq!(lz4_flex::block::decompress_size_prepended(stored).unwrap(), plain);
}

/// A plain file with another stored payload and compression.
fn with_payload(stored: &[u8], uncompressed_len: u32, compression: Compression) -> Vec<u8> {
    let file = to_vec(&Sample::new(0), ModelType::Custom, &options(Compression::None)).unwrap();
    let metadata_len = Container::from_bytes(&file).unwrap().metadata_bytes().len();
    let mut file = file[..32 + metadata_len].to_vec();
    file[12..16].copy_from_slice(&u32::try_from(stored.len()).unwrap().to_le_bytes());
    file[16..20].copy_from_slice(&uncompressed_len.to_le_bytes());
    file[20] = compression.0;
    file.extend_from_slice(stored);
    file.extend_from_slice(&[0; 4]);
    reseal(&mut file);
    file
}

#[test]
fn independent_encoders_are_read() {
    let model = Sample::new(70_000);
    let plain = apr_container::encode_payload_to_vec(&model, PayloadLayout::V0_72).unwrap();
    let frames = [
        ruzstd::encoding::compress_to_vec(plain.as_slice(), ruzstd::encoding::CompressionLevel::Fastest),
        zstd::encode_all(plain.as_slice(), 3).unwrap(),
        zstd::encode_all(plain.as_slice(), 19).unwrap(),
        // Two frames in a row.
        [zstd::encode_all(&plain[..1000], 3).unwrap(), zstd::encode_all(&plain[1000..], 3).unwrap()].concat(),
    ];
    for stored in frames {
        let file = with_payload(&stored, plain.len() as u32, Compression::ZstdDefault);
        assert_eq!(load_from_bytes::<Sample>(&file, ModelType::Custom).unwrap(), model);
        let half = with_payload(&stored[..stored.len() / 2], plain.len() as u32, Compression::ZstdDefault);
        assert!(load_from_bytes::<Sample>(&half, ModelType::Custom).is_err());
        let trailing =
            with_payload(&[stored, vec![1, 2, 3]].concat(), plain.len() as u32, Compression::ZstdDefault);
        assert_eq!(
            refused(load_from_bytes::<Sample>(&trailing, ModelType::Custom)).code(),
            "ac-decompression"
        );
    }
}

#[test]
fn expansion_is_bounded_by_the_header_and_by_the_file() {
    let model = Sample::constant(10_000_000);
    for compression in [Compression::ZstdDefault, Compression::LZ4] {
        let file = to_vec(&model, ModelType::Custom, &options(compression)).unwrap();
        let error = refused(load_from_bytes::<Sample>(&file, ModelType::Custom));
        let ErrorKind::Expansion { declared: 40_000_023, allowed } = *error.kind() else { panic!("{error}") };
        assert!(allowed < 10_000_000, "{allowed}");
        let info = inspect_bytes(&file).unwrap();
        let declared = 40_000_023;
        assert_eq!(info.warnings().collect::<Vec<_>>(), [Warning::Expansion { declared, allowed }]);
        let expanding = Limits { expansion: Expansion::UNBOUNDED, ..Limits::DEFAULT };
        let expanding = ReadOptions::STRICT.with_limits(expanding);
        let error = refused(load_from_bytes_with::<Sample>(&file, ModelType::Custom, &expanding));
        assert_eq!(error.code(), "ac-model-memory");
        let trusting = ReadOptions::STRICT.with_limits(Limits::TRUSTED);
        let loaded: Sample = load_from_bytes_with(&file, ModelType::Custom, trusting).unwrap();
        assert_eq!(loaded, model);

        // A header that promises less, and one that promises more.
        let stored = Container::from_bytes_with(&file, &trusting)
            .unwrap()
            .payload()
            .plain()
            .unwrap()
            .stored()
            .to_vec();
        for declared in [0, 100, 39_999_999, 40_000_024] {
            let lying = with_payload(&stored, declared, compression);
            let error = refused(load_from_bytes_with::<Sample>(&lying, ModelType::Custom, &trusting));
            assert!(matches!(error.code(), "ac-uncompressed-size" | "ac-count"), "{declared}: {error}");
        }
    }
}

#[test]
fn a_bomb_is_refused_before_it_takes_memory() {
    let plain = vec![0; 1 << 26];
    let frame = zstd::encode_all(plain.as_slice(), 3).unwrap();
    let block = lz4_flex::block::compress_prepend_size(&plain);
    let strict = ReadOptions::STRICT;
    for (stored, compression) in [(frame, Compression::ZstdDefault), (block, Compression::LZ4)] {
        // The header says 100 bytes, or what the file may become, or the truth.
        let allowed = Limits::DEFAULT.expansion.allowed(stored.len() as u64);
        for (declared, code) in
            [(100, "ac-uncompressed-size"), (allowed, "ac-uncompressed-size"), (1 << 26, "ac-expansion")]
        {
            let file = with_payload(&stored, declared as u32, compression);
            let to_vec = |options: &ReadOptions| {
                Container::from_bytes_with(&file, options)?.payload().plain()?.to_vec()
            };
            assert_eq!(refused(to_vec(&strict)).code(), code, "{compression}");
            // Compatible reading does not believe the header at all.
            assert_eq!(refused(to_vec(&ReadOptions::COMPAT)).code(), "ac-expansion", "{compression}");
            let roomy = Limits { expansion: Expansion { floor: 1 << 26, ratio: 0 }, ..Limits::DEFAULT };
            let tight = Limits { expansion: Expansion { floor: (1 << 26) - 1, ratio: 0 }, ..Limits::DEFAULT };
            assert_eq!(to_vec(&ReadOptions::COMPAT.with_limits(roomy)).unwrap(), plain);
            assert_eq!(refused(to_vec(&ReadOptions::COMPAT.with_limits(tight))).code(), "ac-expansion");
        }
    }
}

#[test]
fn compressions_have_names() {
    let names = Compression::KNOWN.map(|compression| format!("{compression} {compression:?}"));
    assert_eq!(names, ["none none", "zstd zstd", "zstd-max zstd-max", "lz4 lz4"]);
    assert_eq!(Compression::from_name("zstd-max"), Some(Compression::ZstdMax));
    assert_eq!((Compression::from_name("gzip"), Compression(9).to_string()), (None, "0x09".to_owned()));
}

#[test]
fn types_are_compared_before_anything_is_decoded() {
    let file = to_vec(&OnlyKMeans, ModelType::KMeans, &options(Compression::None)).unwrap();
    let error = refused(load_from_bytes::<Sample>(&file, ModelType::LinearRegression));
    let ErrorKind::ModelTypeMismatch { expected, found } = *error.kind() else { panic!("{error}") };
    assert_eq!((expected, found), (ModelType::LinearRegression, ModelType::KMeans));
    assert_eq!(error.to_string(), "model type mismatch: expected LinearRegression, found KMeans, at byte 6");
    let error = refused(to_vec(&OnlyKMeans, ModelType::Pca, &options(Compression::None)));
    assert_eq!(error.code(), "ac-wrong-type");

    let mut unknown = to_vec(&Sample::new(1), ModelType(0x7777), &options(Compression::None)).unwrap();
    assert_eq!(inspect_bytes(&unknown).unwrap().model_type, ModelType(0x7777));
    let error = refused(load_from_bytes_with::<Sample>(&unknown, Expect::AnyKnown, &ReadOptions::STRICT));
    assert_eq!(error.code(), "ac-unknown-type");
    load_from_bytes::<Sample>(&unknown, ModelType(0x7777)).unwrap();
    unknown[4] = 2;
    reseal(&mut unknown);
    let error = refused(load_from_bytes::<Sample>(&unknown, ModelType(0x7777)));
    let ErrorKind::UnsupportedVersion { found: (2, 0), supported: (1, 0) } = *error.kind() else {
        panic!("{error}")
    };
}

#[test]
fn inspecting_reads_header_and_metadata_and_not_a_byte_more() {
    struct Counting<'a>(&'a [u8], Cell<usize>);
    impl ReadAt for Counting<'_> {
        fn total_len(&self) -> u64 {
            self.0.total_len()
        }

        fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), read_at::Error> {
            self.1.set(self.1.get() + out.len());
            self.0.read_exact_at(offset, out)
        }
    }
    let file = to_vec(&Sample::new(10_000), ModelType::Custom, &options(Compression::None)).unwrap();
    let source = Counting(&file, Cell::new(0));
    let info = inspect_from(&source, &ReadOptions::STRICT).unwrap();
    assert_eq!(source.1.get() as u64, 32 + info.metadata_size);
}

#[test]
fn encrypted_and_signed_files_are_described_and_not_loaded() {
    let mut file = to_vec(&Sample::new(10), ModelType::Custom, &options(Compression::None)).unwrap();
    let plain = file.clone();
    file[21] = 1;
    reseal(&mut file);
    assert!(inspect_bytes(&file).unwrap().encrypted);
    assert_eq!(refused(load_from_bytes::<Sample>(&file, ModelType::Custom)).code(), "ac-encrypted");

    let mut file = plain.clone();
    file[21] = 2;
    let end = file.len() - 4;
    file.splice(end..end, [9; 96]);
    reseal(&mut file);
    let info = inspect_bytes(&file).unwrap();
    assert!(info.signed);
    assert_eq!(refused(load_from_bytes::<Sample>(&file, ModelType::Custom)).code(), "ac-signed");
    let container = Container::from_bytes(&file).unwrap();
    let signature = container.signature().unwrap();
    assert_eq!((signature.signature(), signature.public_key()), ([9; 64].as_slice(), [9; 32].as_slice()));
    assert_eq!(signature.signed_bytes(), &file[..end]);
    let allowing = ReadOptions::STRICT.with_unchecked_signature(UncheckedSignature::Allow);
    let loaded: Sample = load_from_bytes_with(&file, ModelType::Custom, allowing).unwrap();
    assert_eq!(loaded, Sample::new(10));
}

#[test]
fn strict_refuses_what_compat_tolerates() {
    let file = to_vec(&Sample::new(10), ModelType::Custom, &options(Compression::None)).unwrap();
    let metadata_len = inspect_bytes(&file).unwrap().metadata_size as usize;
    let end = file.len() - 4;
    let mut unowned = file.clone();
    unowned.splice(end..end, [1, 2, 3]);
    let mut lies = file.clone();
    lies[16..20].copy_from_slice(&[0; 4]);
    let mut old = file.clone();
    old[4] = 0;
    let mut reserved = file.clone();
    reserved[30] = 1;
    let mut no_metadata = [&file[..32], &file[32 + metadata_len..]].concat();
    no_metadata[8..12].copy_from_slice(&[0; 4]);
    let mut trailing = file.clone();
    trailing.splice(end..end, [0; 50]);
    for at in [12, 16] {
        let len = u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) + 50;
        trailing[at..at + 4].copy_from_slice(&len.to_le_bytes());
    }
    let cases = [
        (unowned, "ac-unowned"),
        (lies, "ac-uncompressed-size"),
        (old, "ac-version"),
        (reserved, "ac-reserved"),
        (no_metadata, "ac-truncated"),
        (trailing, "ac-payload-trailing"),
    ];
    let path = temp("strict");
    for (mut file, code) in cases {
        reseal(&mut file);
        fs::write(&path, &file).unwrap();
        for error in [
            refused(load_from_bytes::<Sample>(&file, ModelType::Custom)),
            refused(load::<Sample>(&path, ModelType::Custom)),
        ] {
            assert!(error.code().starts_with(code), "{code}: {error} ({})", error.code());
        }
        let loaded: Sample = load_from_bytes_with(&file, ModelType::Custom, ReadOptions::COMPAT).unwrap();
        assert_eq!(loaded, Sample::new(10), "{code}");
        let loaded: Sample = load_with(&path, ModelType::Custom, ReadOptions::COMPAT).unwrap();
        assert_eq!(loaded, Sample::new(10), "{code}");
    }
    fs::remove_file(&path).unwrap();
}

/// Decodes in one layout only.
#[derive(Debug, PartialEq)]
struct Picky(PayloadLayout);

impl DecodePayload for Picky {
    fn decode_payload(input: &mut PayloadReader<'_>) -> Result<Self, Error> {
        assert_eq!(input.strictness(), Strictness::Strict);
        let sample = Sample::decode_payload(input)?;
        match input.layout() == PayloadLayout::V0_10 || sample.weights.is_empty() {
            true => Ok(Self(input.layout())),
            false => Err(input.invalid("another layout")),
        }
    }
}

#[test]
fn an_unknown_producer_means_that_every_layout_is_tried_newest_first() {
    let path = temp("layouts");
    for (count, tried) in [(3, PayloadLayout::V0_10), (0, PayloadLayout::V0_72)] {
        for compression in Compression::KNOWN {
            let file = to_vec(&Sample::new(count), ModelType::Custom, &options(compression)).unwrap();
            let container = Container::from_bytes(&file).unwrap();
            let mut metadata = container.metadata().unwrap();
            metadata.aprender_version = "0.99.0".into();
            let metadata = metadata.to_msgpack().unwrap();
            let payload = container.payload().plain().unwrap().stored();
            let mut other = [&file[..32], &metadata, payload, &[0; 4]].concat();
            other[8..12].copy_from_slice(&(metadata.len() as u32).to_le_bytes());
            reseal(&mut other);
            assert_eq!(load_from_bytes::<Picky>(&other, ModelType::Custom).unwrap(), Picky(tried));
            fs::write(&path, &other).unwrap();
            assert_eq!(load::<Picky>(&path, ModelType::Custom).unwrap(), Picky(tried));
            fs::write(&path, &file).unwrap();
            assert_eq!(load::<Picky>(&path, ModelType::Custom).is_ok(), count == 0);
        }
    }
    fs::remove_file(&path).unwrap();
}

#[test]
fn equal_input_gives_equal_bytes_and_the_clock_is_an_argument() {
    let mut first = options(Compression::ZstdDefault);
    let mut second = options(Compression::ZstdDefault);
    for (options, order) in [(&mut first, [1, 2, 3]), (&mut second, [3, 1, 2])] {
        for number in order {
            options.metadata.hyperparameters.insert(format!("p{number}"), number);
        }
    }
    let bytes = |options| to_vec(&Sample::new(100), ModelType::Custom, options).unwrap();
    assert_eq!(bytes(&first), bytes(&second));
    assert_eq!(inspect_bytes(&bytes(&first)).unwrap().metadata.created_at, "1795241427");
    assert_ne!(inspect_bytes(&bytes(&SaveOptions::default())).unwrap().metadata.created_at, "");
}

#[test]
fn a_refused_save_leaves_the_old_file() {
    let path = temp("old");
    fs::write(&path, b"old").unwrap();
    let error = refused(save(&OnlyKMeans, ModelType::Pca, &path, SaveOptions::default()));
    assert_eq!(error.code(), "ac-wrong-type");
    let error =
        refused(save(&OnlyKMeans, ModelType::KMeans, &path, SaveOptions::default().with_quality(101)));
    assert_eq!(error.code(), "ac-limit");
    assert_eq!(fs::read(&path).unwrap(), b"old");
    fs::remove_file(&path).unwrap();
}

#[test]
fn no_single_bit_and_no_missing_tail_goes_unnoticed() {
    let path = temp("damage");
    for compression in Compression::KNOWN {
        let file = to_vec(&Sample::new(9), ModelType::Custom, &options(compression)).unwrap();
        for bit in 0..file.len() * 8 {
            let mut damaged = file.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let error = refused(load_from_bytes::<Sample>(&damaged, ModelType::Custom));
            fs::write(&path, &damaged).unwrap();
            let from_disk = refused(load::<Sample>(&path, ModelType::Custom));
            assert!(agree(&error, &from_disk), "bit {bit}: {error}; {from_disk}");
        }
        for len in 0..file.len() {
            let error = refused(load_from_bytes::<Sample>(&file[..len], ModelType::Custom));
            fs::write(&path, &file[..len]).unwrap();
            assert_eq!(
                error.code(),
                refused(load::<Sample>(&path, ModelType::Custom)).code(),
                "{len}: {error}"
            );
        }
    }
    fs::remove_file(&path).unwrap();
}

proptest! {
    #[test]
    fn any_change_with_a_recomputed_checksum_is_a_result_and_no_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        compression in 0_u8..4,
    ) {
        let mut file = to_vec(&Sample::new(20), ModelType::Custom, &options(Compression(compression))).unwrap();
        let body = file.len() - 4;
        for (place, value) in changes {
            file[place.index(body)] = value;
        }
        reseal(&mut file);
        let path = temp("changed");
        fs::write(&path, &file).unwrap();
        for options in [ReadOptions::STRICT, ReadOptions::COMPAT] {
            let memory = load_from_bytes_with::<Sample>(&file, Expect::AnyKnown, &options);
            let disk = load_with::<Sample>(&path, Expect::AnyKnown, &options);
            match (memory, disk) {
                (Ok(memory), Ok(disk)) => prop_assert_eq!(memory.name, disk.name),
                (Err(memory), Err(disk)) => prop_assert!(agree(&memory, &disk), "{}; {}", memory, disk),
                (memory, disk) => prop_assert!(false, "{:?} {:?}", memory, disk),
            }
        }
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_source_that_fails_or_ends_early_is_no_damage() {
    struct Cut<'a> {
        file: &'a [u8],
        readable: u64,
        fails: fn() -> read_at::Error,
    }
    impl ReadAt for Cut<'_> {
        fn total_len(&self) -> u64 {
            self.file.total_len()
        }

        fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), read_at::Error> {
            if offset + out.len() as u64 > self.readable {
                return Err((self.fails)());
            }
            self.file.read_exact_at(offset, out)
        }
    }
    type Fails = fn() -> read_at::Error;
    let cases: [(Fails, &str); 4] = [
        (|| read_at::Error::from_source(std::io::Error::from(std::io::ErrorKind::PermissionDenied)), "ac-io"),
        (
            || read_at::Error::from_source(std::io::Error::from(std::io::ErrorKind::UnexpectedEof)),
            "ac-truncated",
        ),
        (|| read_at::Error::from_source(core::fmt::Error), "ac-io"),
        (|| read_at::ErrorKind::OutOfRange { offset: 0, len: 1, available: 0 }.into(), "ac-io"),
    ];
    let file = to_vec(&Sample::new(100_000), ModelType::Custom, &options(Compression::None)).unwrap();
    for (fails, expected) in cases {
        for readable in [0, 40, 200_000] {
            let source = Cut { file: &file, readable, fails };
            let loaded = load_from::<Sample>(&source, ModelType::Custom, ReadOptions::STRICT);
            assert_eq!(refused(loaded).code(), expected, "{readable}");
        }
        let source = Cut { file: &file, readable: 0, fails };
        assert_eq!(refused(inspect_from(&source, &ReadOptions::STRICT)).code(), expected);
    }
}

#[test]
fn warnings_name_what_was_found() {
    for (warning, text) in [
        (Warning::UnknownModelType(ModelType(0x7777)), "0x7777"),
        (Warning::NewerVersion((1, 9)), "1.9"),
        (Warning::ReservedInUse, "reserved header bytes"),
        (Warning::MetadataNotEncrypted, "the metadata are not"),
        (Warning::SignatureUnchecked, "not verified"),
        (Warning::UnknownLayout, "layout"),
        (Warning::Expansion { declared: 900, allowed: 80 }, "900 bytes, loading allows 80"),
    ] {
        assert!(warning.to_string().contains(text), "{warning}");
    }
}

#[test]
fn inspection_warns_of_what_compat_tolerates() {
    let file = to_vec(&Sample::new(10), ModelType::Custom, &options(Compression::None)).unwrap();
    let of = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut file = file.clone();
        change(&mut file);
        reseal(&mut file);
        let info = inspect_from(&file.as_slice(), &ReadOptions::COMPAT).unwrap();
        info.warnings().collect::<Vec<_>>()
    };
    assert_eq!(of(&|_| {}), []);
    assert_eq!(of(&|file| file[6..8].fill(0x77)), [Warning::UnknownModelType(ModelType(0x7777))]);
    assert_eq!(of(&|file| file[5] = 9), [Warning::NewerVersion((1, 9))]);
    assert_eq!(of(&|file| file[30] = 1), [Warning::ReservedInUse]);
    assert_eq!(of(&|file| file[21] = 1), [Warning::MetadataNotEncrypted]);
    let signed = of(&|file| {
        file[21] = 2;
        let end = file.len() - 4;
        file.splice(end..end, [9; 96]);
    });
    assert_eq!(signed, [Warning::SignatureUnchecked]);
}
