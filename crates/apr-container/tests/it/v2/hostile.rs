//! Files made to be refused, and what each mode says of them.

use apr_container::Subject;
use apr_container::v2::{Container, Footer, Index, Warning};
use apr_container::{ErrorKind, ReadOptions};

use super::{BOTH, code, edited, header, sample, vector};

#[test]
fn every_file_gets_its_verdict() {
    let cases = [
        ("v2h00_good.bin", "accepted", "accepted"),
        ("v2h01_footer-crc-flipped.bin", "ac-checksum", "accepted"),
        ("v2h03_footer-missing.bin", "accepted", "accepted"),
        ("v2h04_tensor-data-truncated.bin", "ac-truncated", "ac-truncated"),
        ("v2h06_tensor-index-offset-u64--MAX.bin", "", ""),
        ("v2h07_data-offset-u64--MAX.bin", "", ""),
        ("v2h09_version-3-0.bin", "ac-version", "accepted"),
        ("v2h10_ENCRYPTED-flag-set.bin", "ac-encrypted", "accepted"),
        ("v2h12_header-byte-flipped--checksum-stale.bin", "ac-v2-header-checksum", "ac-v2-header-checksum"),
        ("v2h13_ndim-255.bin", "", ""),
        ("v2h15_tensor-offset-u64--MAX.bin", "", "ac-v2-overflow"),
        ("v2h16_tensor-offset-3--misaligned--overlapping-.bin", "", "ac-v2-misaligned"),
    ];
    for (name, strict, compat) in cases {
        let file = vector(&format!("hostile/{name}"));
        for (options, expected) in BOTH.iter().zip([strict, compat]) {
            let found = code(&file, options);
            let fits = if expected.is_empty() { found != "accepted" } else { found == expected };
            assert!(fits, "{name}: {found} in {:?}", options.strictness);
        }
    }
}

#[test]
fn what_is_tolerated_is_reported() {
    let warnings = |name: &str, options: &ReadOptions| {
        let file = vector(&format!("hostile/{name}"));
        let container = Container::from_bytes_with(&file, options).unwrap();
        (container.warnings().collect::<Vec<_>>(), container.footer())
    };
    let (found, footer) = warnings("v2h01_footer-crc-flipped.bin", &ReadOptions::COMPAT);
    assert!(matches!(found[..], [Warning::WrongFooter { .. }]) && matches!(footer, Footer::Wrong { .. }));
    let (found, footer) = warnings("v2h03_footer-missing.bin", &ReadOptions::STRICT);
    assert_eq!((found, footer), (vec![Warning::NoFooter], Footer::Absent));
    let (found, _) = warnings("v2h09_version-3-0.bin", &ReadOptions::COMPAT);
    assert_eq!(found[0], Warning::OtherVersion((3, 0)));
}

/// The format does not define encrypted tensors: they are described, and not accessible.
#[test]
fn encrypted_files_are_described_and_not_read() {
    let file = vector("hostile/v2h10_ENCRYPTED-flag-set.bin");
    for options in &BOTH {
        let index = Index::from_bytes(&file, options).unwrap();
        assert_eq!((index.len(), index.warnings()), (2, &[Warning::Encrypted][..]));
    }
    let container = Container::from_bytes_with(&file, &ReadOptions::COMPAT).unwrap();
    assert!(matches!(container.tensor("a").unwrap_err().kind(), ErrorKind::Encrypted));
    assert!(matches!(container.data("a").unwrap_err().kind(), ErrorKind::Encrypted));
    assert!(container.tensors().is_err());
    let error = Container::from_bytes(&file).unwrap_err();
    assert_eq!((error.code(), error.offset()), ("ac-encrypted", Some(6)));
}

#[test]
fn signed_files_are_read_as_the_policy_says() {
    let file = edited(&sample(), |file| file[6] |= 1 << 3);
    assert_eq!(code(&file, &ReadOptions::STRICT), "ac-signed");
    let allow = ReadOptions::STRICT.with_unchecked_signature(apr_container::UncheckedSignature::Allow);
    let container = Container::from_bytes_with(&file, &allow).unwrap();
    assert!(container.warnings().eq([Warning::SignatureUnchecked]));
    assert!(container.tensor("w").is_ok());
}

#[test]
fn column_major_files_are_refused_everywhere() {
    let file = edited(&sample(), |file| file[7] |= 1 << 3);
    for options in &BOTH {
        assert_eq!(code(&file, options), "ac-v2-column-major");
        assert!(Index::from_bytes(&file, options).is_err());
    }
}

/// Header, index and checksum all fit, the places do not.
#[test]
fn parts_that_lie_elsewhere_are_refused() {
    let file = sample();
    let field =
        |at: usize, value: u64| edited(&file, |file| file[at..at + 8].copy_from_slice(&value.to_le_bytes()));
    let index_offset = header(&file).index_offset_declared();
    let data_offset = header(&file).data_offset_declared();
    let cases = [
        (12, 128, "ac-v2-misplaced", None),
        (12, u64::MAX, "ac-v2-misplaced", Some("ac-truncated")),
        (12, 0, "ac-v2-misplaced", Some("ac-v2-misplaced")),
        (24, 64, "ac-v2-misplaced", Some("ac-v2-misplaced")),
        (24, index_offset + 64, "ac-v2-misplaced", None),
        (24, u64::MAX, "ac-v2-misplaced", Some("ac-truncated")),
        (32, index_offset, "ac-truncated", Some("ac-truncated")),
        (32, 64, "ac-v2-misplaced", Some("ac-v2-misplaced")),
        (32, data_offset + 64, "ac-v2-misplaced", Some("ac-truncated")),
        (32, u64::MAX, "ac-truncated", Some("ac-truncated")),
    ];
    for (at, value, strict, compat) in cases {
        let file = field(at, value);
        assert_eq!(code(&file, &ReadOptions::STRICT), strict, "field {at} = {value}");
        let found = code(&file, &ReadOptions::COMPAT);
        assert!(compat.is_none_or(|compat| compat == found), "field {at} = {value}: {found}");
    }
}

/// Where the entry of a tensor has its type.
fn entry_of(file: &[u8], name: &str) -> usize {
    let start = header(file).index_offset_declared() as usize;
    let entry = [&(name.len() as u16).to_le_bytes(), name.as_bytes()].concat();
    start + file[start..].windows(entry.len()).position(|window| window == entry).unwrap() + entry.len()
}

#[test]
fn tensors_follow_each_other_without_hole_and_overlap() {
    let file = sample();
    // The entry of "w" has one dimension, the one of "b" has two.
    let offset_of_w = entry_of(&file, "w") + 2 + 8;
    let moved = |offset: u64| {
        edited(&file, |file| {
            file[offset_of_w..offset_of_w + 8].copy_from_slice(&offset.to_le_bytes());
        })
    };
    for (offset, strict, compat) in [
        (0, "ac-v2-misplaced", "accepted"),
        (32, "ac-v2-misaligned", "accepted"),
        (3, "ac-v2-misaligned", "ac-v2-misaligned"),
        (128, "ac-truncated", "ac-truncated"),
        (u64::MAX - 3, "ac-v2-overflow", "ac-v2-overflow"),
    ] {
        let file = moved(offset);
        let found = [code(&file, &ReadOptions::STRICT), code(&file, &ReadOptions::COMPAT)];
        assert_eq!(found, [strict, compat], "{offset}");
        let error = Index::from_bytes(&file, &ReadOptions::STRICT).unwrap_err();
        assert_eq!(error.subject().map(Subject::name), Some("w"), "{offset}");
    }
    let file = moved(0);
    let container = Container::from_bytes_with(&file, &ReadOptions::COMPAT).unwrap();
    assert_eq!(container.index().warnings(), [Warning::OverlappingTensors]);
}

#[test]
fn padding_holds_nothing() {
    let file = sample();
    let index_offset = header(&file).index_offset_declared() as usize;
    let data_offset = header(&file).data_offset_declared() as usize;
    for at in [index_offset - 1, data_offset - 1, data_offset + 63, file.len() - 5] {
        let file = edited(&file, |file| file[at] = 1);
        let error = Container::from_bytes(&file).unwrap_err();
        assert_eq!((error.code(), error.offset()), ("ac-v2-padding", Some(at as u64)));
        assert_eq!(code(&file, &ReadOptions::COMPAT), "accepted");
    }
}

#[test]
fn unknown_types_are_carried_where_they_may_be() {
    let file = sample();
    let dtype_of_b = entry_of(&file, "b");
    let unknown = edited(&file, |file| file[dtype_of_b] = 77);
    let error = Container::from_bytes(&unknown).unwrap_err();
    assert_eq!((error.code(), error.subject().map(Subject::name)), ("ac-v2-dtype", Some("b")));
    let container = Container::from_bytes_with(&unknown, &ReadOptions::COMPAT).unwrap();
    assert_eq!(container.index().warnings(), [Warning::UnknownDtypes]);
    assert_eq!(container.tensor("b").unwrap().data(), [1, 2, 3, 0xFF]);
    // A later minor version may know it.
    let later = edited(&unknown, |file| file[5] = 1);
    let container = Container::from_bytes(&later).unwrap();
    assert_eq!(container.index().warnings(), [Warning::OtherVersion((2, 1)), Warning::UnknownDtypes]);
}

#[test]
fn trailing_bytes_are_accepted_in_compat_mode() {
    let mut file = sample();
    let footer = file.split_off(file.len() - 4);
    for count in [1, 3, 5, 60, 64] {
        let longer = [&file[..], &vec![7; count]].concat();
        assert_eq!(code(&longer, &ReadOptions::STRICT), "ac-v2-trailing", "{count}");
        let container = Container::from_bytes_with(&longer, &ReadOptions::COMPAT).unwrap();
        assert!(container.warnings().any(|found| found == Warning::TrailingBytes { count: count as u64 }));
    }
    // With the right checksum behind them it is a footer all the same.
    let sealed = edited(&[&file[..], &footer].concat(), |file| file.extend([7; 60]));
    assert_eq!(code(&sealed, &ReadOptions::STRICT), "ac-v2-trailing");
    let container = Container::from_bytes_with(&sealed, &ReadOptions::COMPAT).unwrap();
    assert!(matches!(container.footer(), Footer::Present(_)));
    assert!(container.warnings().eq([Warning::TrailingBytes { count: 60 }]));
    // The padding of the last tensor may be missing.
    let bare = &file[..file.len() - 64 + 12];
    assert_eq!(code(bare, &ReadOptions::STRICT), "ac-truncated");
    let container = Container::from_bytes_with(bare, &ReadOptions::COMPAT).unwrap();
    assert_eq!(
        (container.footer(), container.tensor("w").unwrap().to_f32().unwrap()[2]),
        (Footer::Absent, 3.0)
    );
}

#[test]
fn other_files_are_told_by_their_first_bytes() {
    let version_1 = vector("a0100_linreg_none_plain.apr");
    let error = Container::from_bytes(&version_1).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Magic { found: [b'A', b'P', b'R', b'N'] }));
    for len in 0..64 {
        let error = Container::from_bytes(&sample()[..len]).unwrap_err();
        assert_eq!(error.code(), "ac-too-small");
    }
}

#[test]
fn warnings_name_what_was_found() {
    for (warning, text) in [
        (Warning::OtherVersion((2, 7)), "2.7"),
        (Warning::ReservedInUse, "reserved"),
        (Warning::NotCompressed { algorithm: "zstd" }, "compressed with zstd, but"),
        (Warning::Inflated { algorithm: "lz4" }, "compressed with lz4 as a whole"),
        (Warning::Encrypted, "encrypted"),
        (Warning::SignatureUnchecked, "signed"),
        (Warning::UnknownDtypes, "unknown element type"),
        (Warning::OverlappingTensors, "share bytes"),
        (Warning::NoFooter, "no checksum"),
        (Warning::WrongFooter { expected: 1, actual: 0xAB }, "00000001, the bytes have 000000AB"),
        (Warning::TrailingBytes { count: 60 }, "60 bytes"),
    ] {
        assert!(warning.to_string().contains(text), "{warning}");
    }
}
