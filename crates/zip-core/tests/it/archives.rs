//! Each contradiction, one at a time.

use zip_core::{Archive, Checksum, Error, Limits, Method, Problem};

use super::{Places, build, crc32, plans, stored};

/// Codes of the archive's findings and of what its members contradict.
pub(crate) fn codes(bytes: &[u8]) -> Result<Vec<&'static str>, Error> {
    let (archive, found) = Archive::open(bytes, &Limits::DEFAULT)?;
    let mut codes: Vec<_> = found.iter().map(|finding| finding.problem.code()).collect();
    for entry in archive.entries() {
        let verified = archive.member(entry).and_then(|mut member| member.verify());
        codes.extend(match verified {
            Ok(problem) => problem.map(|problem| problem.code()),
            Err(error) => Some(error.code()),
        });
    }
    Ok(codes)
}

#[test]
fn members_are_found_and_read() {
    let (bytes, places) = build(&plans());
    assert_eq!(codes(&bytes).expect("an archive"), [""; 0]);
    let (archive, _) = Archive::open(bytes.as_slice(), &Limits::DEFAULT).expect("an archive");
    let [one, two, deflated] = archive.entries() else { panic!("three members") };
    assert_eq!((one.name(), one.method(), one.len_declared()), ("x/one", Method::STORED, 5));
    assert_eq!((one.stored(), one.data()), (Some(&(35..40)), Some(&(35..40))));
    assert_eq!((one.crc32_declared(), one.is_folder()), (crc32(b"first"), false));
    assert_eq!((deflated.stored(), deflated.method()), (None, Method::DEFLATED));
    assert_eq!(two.header_offset(), places.locals[1] as u64);
    let read = |entry| archive.read(entry, 100).expect("a member");
    assert_eq!(
        (read(one), read(two), read(deflated)),
        (b"first".to_vec(), b"second one".to_vec(), vec![b'a'; 16])
    );
    assert_eq!(archive.read(two, 9).expect_err("above the limit").code(), "zc-limit");
    // Byte by byte, as at once.
    let mut member = archive.member(deflated).expect("a member");
    let mut byte = [0];
    let count =
        core::iter::from_fn(|| (member.read(&mut byte).expect("a byte") == 1).then_some(byte)).count();
    assert_eq!((count, member.checksum()), (16, Checksum::Matches));
}

#[test]
fn each_contradiction_has_its_finding() {
    type Patch = fn(&mut Vec<u8>, &Places);
    let cases: &[(Patch, &[&str])] = &[
        (|bytes, at| bytes[at.locals[0] + 34] = b'X', &["zc-local-name"]),
        (|bytes, at| bytes[at.locals[0] + 8] = 8, &["zc-local-method"]),
        (|bytes, at| bytes[at.locals[0] + 6] = 1, &["zc-local-flags"]),
        (|bytes, at| bytes[at.locals[0] + 18] = 9, &["zc-local-size"]),
        (|bytes, at| bytes[at.locals[0] + 22] = 9, &["zc-local-size"]),
        (|bytes, at| bytes[at.locals[0] + 14] ^= 1, &["zc-local-checksum"]),
        (|bytes, at| bytes[at.locals[0]] = b'X', &["zc-local-missing", "zc-leading", "zc-data"]),
        (|bytes, at| bytes[at.directory - 1] = 9, &["zc-descriptor"]),
        (|bytes, at| bytes[at.centrals[0] + 8] = 1, &["zc-encrypted", "zc-local-flags"]),
        (|bytes, at| bytes[at.centrals[0] + 41] = 0xa1, &["zc-link"]),
        (|bytes, at| bytes[at.centrals[0] + 41] = 0x81, &[]),
        (|bytes, at| bytes[at.centrals[0] + 10] = 99, &["zc-unknown-method", "zc-local-method", "zc-method"]),
        (
            |bytes, at| bytes[at.centrals[1] + 46 + 2..at.centrals[1] + 51].copy_from_slice(b"one"),
            &["zc-local-name", "zc-duplicate"],
        ),
        (
            |bytes, at| bytes[at.centrals[1] + 42] = 0,
            &["zc-local-name", "zc-local-size", "zc-local-checksum", "zc-overlap", "zc-gap", "zc-checksum"],
        ),
        (|bytes, at| bytes[at.locals[0] + 36] = b'X', &["zc-checksum"]),
        (|bytes, at| bytes[at.end + 10] = 2, &["zc-end-differs"]),
        (|bytes, at| bytes[at.end + 4] = 1, &["zc-end-differs"]),
        (|bytes, at| bytes[at.end + 20] = 1, &["zc-end-differs"]),
        (|bytes, _| bytes.extend(b"xyz"), &["zc-trailing"]),
        (|bytes, _| drop(bytes.splice(0..0, *b"junk")), &["zc-leading"]),
        (
            |bytes, at| {
                let end = bytes[at.end..].to_vec();
                bytes[at.end + 20] = 22;
                bytes.extend(end);
            },
            &["zc-second-end", "zc-end-differs", "zc-trailing"],
        ),
    ];
    for (number, (patch, expected)) in cases.iter().enumerate() {
        let (mut bytes, places) = build(&plans());
        patch(&mut bytes, &places);
        let mut found = codes(&bytes).unwrap_or_else(|error| panic!("{number}: {error}"));
        let mut expected = expected.to_vec();
        // A second end record moves the directory; only that it is found counts.
        if expected.contains(&"zc-second-end") {
            found.retain(|code| *code == "zc-second-end");
            expected.truncate(1);
        }
        assert_eq!(found, expected, "{number}");
    }
}

#[test]
fn names_that_readers_change_are_found() {
    for (name, sound) in [
        ("a/b", true),
        ("a/", true),
        ("..", false),
        ("a/../b", false),
        ("/a", false),
        ("a\\b", false),
        ("c:a", false),
        ("a\0b", false),
        ("", false),
        ("é", false),
        ("a..b", true),
    ] {
        let (bytes, _) = build(&[stored(name, b"")]);
        let (archive, found) = Archive::open(bytes.as_slice(), &Limits::DEFAULT).expect("an archive");
        assert_eq!(found.is_empty(), sound, "{name}: {found:?}");
        assert!(found.iter().all(|finding| finding.problem == Problem::Name {}));
        assert!(archive.entries().iter().all(|entry| entry.is_folder() == name.ends_with('/')));
    }
}

#[test]
fn archives_within_members_are_no_second_end() {
    let (inner, _) = build(&plans());
    let (bytes, _) = build(&[stored("inner.zip", &inner)]);
    assert_eq!(codes(&bytes).expect("an archive"), [""; 0]);
}

#[test]
fn refusals_and_limits() {
    let (bytes, places) = build(&plans());
    let code = |bytes: &[u8], limits: &Limits| Archive::open(bytes, limits).expect_err("refused").code();
    assert_eq!(code(b"", &Limits::DEFAULT), "zc-end");
    assert_eq!(code(&bytes[..bytes.len() - 1], &Limits::DEFAULT), "zc-end");
    // The directory is found where the record says, or before the record.
    let mut moved = bytes.clone();
    moved[places.end + 12] = 0xff;
    assert_eq!(codes(&moved).expect("an archive"), ["zc-end-differs"]);
    moved[places.end + 14] = 0xff;
    assert_eq!(codes(&moved).expect("an archive"), ["zc-end-differs"]);
    moved[places.end + 18] = 0xff;
    assert_eq!(code(&moved, &Limits::DEFAULT), "zc-directory");
    let mut few = Limits::DEFAULT;
    few.entries = 2;
    assert_eq!(code(&bytes, &few), "zc-limit");
    few = Limits::DEFAULT;
    few.directory_bytes = 10;
    assert_eq!(code(&bytes, &few), "zc-limit");
}

#[test]
fn a_member_never_gives_more_than_it_declares() {
    let (mut bytes, places) = build(&plans());
    // The directory and the descriptor declare three bytes.
    bytes[places.centrals[2] + 24] = 3;
    bytes[places.directory - 4] = 3;
    let (archive, found) = Archive::open(bytes.as_slice(), &Limits::DEFAULT).expect("an archive");
    assert!(found.is_empty(), "{found:?}");
    let entry = &archive.entries()[2];
    assert_eq!(archive.read(entry, 100).expect("a member"), b"aaa");
    assert_eq!(
        archive.member(entry).and_then(|mut member| member.verify()).expect("read"),
        Some(Problem::Checksum {})
    );
    // And more than there are.
    bytes[places.centrals[2] + 24] = 99;
    let (archive, _) = Archive::open(bytes.as_slice(), &Limits::DEFAULT).expect("an archive");
    assert_eq!(archive.read(&archive.entries()[2], 100).expect_err("short").code(), "zc-short");
}

/// 2^32 - 1 and a zip64 field in place of each size.
#[test]
fn zip64_fields_are_read_wherever_they_are() {
    let (plain, places) = build(&[stored("m", b"data")]);
    let extra = |values: &[u64]| {
        let mut extra = [1, 0, 8 * values.len() as u8, 0].to_vec();
        extra.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        extra
    };
    let mut local = plain[..places.directory].to_vec();
    local[18..26].fill(0xff);
    local[28] = 20;
    local.splice(31..31, extra(&[4, 4]));
    let mut central = plain[places.directory..places.end].to_vec();
    central[20..28].fill(0xff);
    central[42..46].fill(0xff);
    central[30] = 28;
    central.extend(extra(&[4, 4, 0]));
    let (at, len) = (local.len() as u64, central.len() as u64);
    let mut end =
        [b"PK\x06\x06".as_slice(), &44_u64.to_le_bytes(), &[45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
    end.extend([1, 1, len, at].iter().flat_map(|value| value.to_le_bytes()));
    end.extend([b"PK\x06\x07\0\0\0\0".as_slice(), &(at + len).to_le_bytes(), &[1, 0, 0, 0]].concat());
    end.extend([b"PK\x05\x06\0\0\0\0".as_slice(), &[0xff; 12], &[0, 0]].concat());
    let bytes = [local, central, end].concat();
    assert_eq!(codes(&bytes).expect("an archive"), [""; 0]);
    let (archive, _) = Archive::open(bytes.as_slice(), &Limits::DEFAULT).expect("an archive");
    assert_eq!(archive.read(&archive.entries()[0], 10).expect("a member"), b"data");
    // Another number of members in the older record.
    let mut other = bytes.clone();
    let older = other.len() - 22;
    other[older + 8..older + 12].copy_from_slice(&[2, 0, 2, 0]);
    assert_eq!(codes(&other).expect("an archive"), ["zc-end-differs"]);
}
