//! End records, extra fields and descriptors: one field at a time.

use zip_core::{Archive, Compression, ErrorKind, Limits, Problem, decompress};

use super::archives::codes;
use super::{DEFLATED, Places, Plan, build, crc32, plans, stored};

fn found(bytes: &[u8]) -> Vec<&'static str> {
    codes(bytes).expect("an archive")
}

/// One member with extra fields in the directory.
fn with_extra(extra: &[u8]) -> Vec<u8> {
    let (mut bytes, places) = build(&[stored("m", b"data")]);
    bytes[places.centrals[0] + 30] = extra.len() as u8;
    bytes[places.end + 12] += extra.len() as u8;
    bytes.splice(places.end..places.end, extra.iter().copied());
    bytes
}

#[test]
fn extra_fields_are_sound_and_leave_the_name() {
    let unicode = |name: &[u8]| [&[0x75, 0x70, 5 + name.len() as u8, 0, 1, 0, 0, 0, 0], name].concat();
    let long = |len: u8| [&[1, 0, len, 0], &vec![0; len.into()][..]].concat();
    for (extra, expected) in [
        (unicode(b"m"), &[][..]),
        (unicode(b"n"), &["zc-extra"]),
        ([unicode(b"n"), unicode(b"m")].concat(), &["zc-extra"]),
        (long(8), &[]),
        ([long(8), long(8)].concat(), &["zc-extra"]),
        ([long(8), long(8), long(8)].concat(), &["zc-extra"]),
        (vec![0, 0, 0], &[]),
        (vec![0, 1], &["zc-extra"]),
        (vec![9, 9, 9, 0], &["zc-extra"]),
        ([unicode(b"n"), vec![0]].concat(), &["zc-extra"]),
    ] {
        assert_eq!(found(&with_extra(&extra)), expected, "{extra:?}");
    }
    // A size that is left to a field that is too short for it.
    let mut short = with_extra(&long(4));
    let central = short.len() - 22 - 8 - 1 - 46;
    short[central + 24..central + 28].fill(0xff);
    assert!(found(&short).contains(&"zc-extra"));
}

#[test]
fn each_bit_of_encryption_counts() {
    for (at, bit) in [(8, 0x01), (8, 0x40), (9, 0x20)] {
        let (mut bytes, places) = build(&plans());
        bytes[places.centrals[0] + at] = bit;
        assert_eq!(found(&bytes), ["zc-encrypted", "zc-local-flags"], "{at} {bit}");
    }
}

#[test]
fn sizes_are_left_to_a_descriptor_alone() {
    type Patch = fn(&mut Vec<u8>, &Places);
    let cases: &[(Patch, &[&str])] = &[
        (|bytes, at| bytes[at.locals[0] + 18..at.locals[0] + 22].fill(0), &["zc-local-size"]),
        (|bytes, at| bytes[at.locals[0] + 18..at.locals[0] + 22].fill(0xff), &["zc-local-size"]),
        (|bytes, at| bytes[at.locals[0] + 14..at.locals[0] + 18].fill(0), &["zc-local-checksum"]),
        (|bytes, at| bytes[at.locals[2] + 18] = 1, &["zc-local-size"]),
        (|bytes, at| bytes[at.locals[2] + 18..at.locals[2] + 26].fill(0xff), &[]),
        (|bytes, at| bytes[at.locals[2] + 14] = 1, &["zc-local-checksum"]),
    ];
    for (number, (patch, expected)) in cases.iter().enumerate() {
        let (mut bytes, places) = build(&plans());
        patch(&mut bytes, &places);
        assert_eq!(found(&bytes), *expected, "{number}");
    }
    // The member after a descriptor that differs is where it is.
    let described = Plan { descriptor: true, ..stored("a", b"first") };
    let (mut bytes, places) = build(&[described, stored("b", b"second")]);
    bytes[places.locals[1] - 1] = 9;
    assert_eq!(found(&bytes), ["zc-descriptor"]);
}

/// The last field of the descriptor would be the first one of the directory.
#[test]
fn a_descriptor_ends_before_the_directory() {
    let described = Plan { descriptor: true, ..stored("m", b"data") };
    let (mut bytes, places) = build(&[described]);
    bytes[places.centrals[0] + 24..places.centrals[0] + 28].copy_from_slice(b"PK\x01\x02");
    bytes[places.end + 16] -= 8;
    bytes.drain(places.directory - 4..places.directory);
    bytes.drain(places.directory - 16..places.directory - 12);
    assert_eq!(Archive::open(bytes.as_slice(), &Limits::DEFAULT).expect("an archive").1.len(), 2);
    assert!(found(&bytes).starts_with(&["zc-descriptor"]), "{:?}", found(&bytes));
}

#[test]
fn findings_say_where_and_how_much() {
    let (mut bytes, places) = build(&plans());
    bytes[places.centrals[1] + 8] = 1;
    let (_, list) = Archive::open(bytes.as_slice(), &Limits::DEFAULT).expect("an archive");
    assert_eq!((list[0].entry, list[0].offset), (Some(1), places.centrals[1] as u64));
    let mut one = Limits::DEFAULT;
    one.findings = 1;
    assert_eq!(Archive::open(bytes.as_slice(), &one).expect("an archive").1.len(), 1);

    // Without its local header, a member leaves a gap of its length: 30 bytes, the name and the data; between others, or at the end.
    for (member, len) in [(1, 30 + 5 + 10), (2, 30 + 10 + 5 + 16)] {
        let (mut bytes, places) = build(&plans());
        bytes[places.locals[member]] = 0;
        let (_, list) = Archive::open(bytes.as_slice(), &Limits::DEFAULT).expect("an archive");
        let gap = list.iter().find(|finding| finding.problem.code() == "zc-gap").expect("a gap");
        assert_eq!((gap.offset, gap.problem), (places.locals[member] as u64, Problem::Gap { len }));
    }
}

#[test]
fn limits_are_the_most_that_is_read() {
    let (mut bytes, places) = build(&plans());
    let (mut limits, len) = (Limits::DEFAULT, (places.end - places.directory) as u64);
    (limits.entries, limits.directory_bytes) = (3, len);
    let (archive, _) = Archive::open(bytes.as_slice(), &limits).expect("within limits");
    assert_eq!(archive.read(&archive.entries()[1], 10).expect("ten bytes"), b"second one");
    // The record declares fewer members than there are.
    (bytes[places.end + 8], bytes[places.end + 10], limits.entries) = (2, 2, 2);
    let error = Archive::open(bytes.as_slice(), &limits).expect_err("above the limit");
    let ErrorKind::Limit { limit, allowed, found } = error.kind() else { panic!("{error}") };
    assert_eq!((*limit, *allowed, *found), ("entries", 2, 3));
}

#[test]
fn an_archive_may_be_empty() {
    let (bytes, _) = build(&[]);
    assert_eq!(found(&bytes), [""; 0]);
}

#[test]
fn the_end_record_is_in_the_last_64_kib_and_of_one_disk() {
    let (bytes, places) = build(&plans());
    let far = [bytes.as_slice(), &vec![0; 1 << 16]].concat();
    assert_eq!(codes(&far).expect_err("too far").code(), "zc-end");
    for (disk, expected) in [(1, &["zc-end-differs"][..]), (0xff, &[])] {
        let mut bytes = bytes.clone();
        let high = if disk == 1 { 0 } else { disk };
        bytes[places.end + 4..places.end + 8].copy_from_slice(&[disk, high, disk, high]);
        assert_eq!(found(&bytes), expected, "{disk}");
    }
}

/// An archive of one member with a zip64 record of these fields, other bytes around the record, and what its locator declares.
fn zip64(before: &[u8], fields: [u64; 6], after: &[u8], locator: u64) -> Vec<u8> {
    let (plain, places) = build(&[stored("m", b"data")]);
    let [len, disk, here, entries, directory_len, directory] = fields;
    let end = |value: u64| value.to_le_bytes();
    [
        &plain[..places.end],
        before,
        b"PK\x06\x06",
        &end(len),
        &[45, 0, 45, 0],
        &(disk as u32).to_le_bytes(),
        &[0; 4],
        &end(here),
        &end(entries),
        &end(directory_len),
        &end(directory),
        after,
        b"PK\x06\x07\0\0\0\0",
        &end(locator),
        &[1, 0, 0, 0],
        &plain[places.end..],
    ]
    .concat()
}

#[test]
fn each_field_of_a_zip64_record_is_compared() {
    let (_, places) = build(&[stored("m", b"data")]);
    let (at, len) = (places.end as u64, (places.end - places.directory) as u64);
    let sound = [44, 0, 1, 1, len, places.directory as u64];
    assert_eq!(found(&zip64(b"", sound, b"", at)), [""; 0]);
    // Bytes of the record beyond its fields.
    let mut longer = sound;
    longer[0] += 4;
    assert_eq!(found(&zip64(b"", longer, b"more", at)), [""; 0]);
    for field in 0..6 {
        let mut other = sound;
        other[field] += 1;
        let codes = codes(&zip64(b"", other, b"", at));
        assert!(codes.is_ok_and(|codes| codes.contains(&"zc-end-differs")), "{field}");
    }
    // Where it says there is none, and where there is another one.
    assert_eq!(found(&zip64(b"", sound, b"more", 1)), ["zc-end-differs"]);
    let record = zip64(b"", sound, b"", at)[places.end..places.end + 56].to_vec();
    assert!(found(&zip64(&record, sound, b"", at)).contains(&"zc-second-end"));
    assert!(!found(&zip64(&record, sound, b"", at + 56)).contains(&"zc-second-end"));
}

#[test]
fn bytes_of_a_member_that_no_reader_gives_are_found() {
    // Three bytes are declared, with their checksum; sizes in the local headers and the descriptor, too.
    let (mut bytes, at) = build(&plans()[..2]);
    for (len, crc) in [(at.locals[0] + 22, at.locals[0] + 14), (at.centrals[0] + 24, at.centrals[0] + 16)] {
        bytes[len] = 3;
        bytes[crc..crc + 4].copy_from_slice(&crc32(b"fir").to_le_bytes());
    }
    assert_eq!(found(&bytes), ["zc-longer"]);
    // After the end of the compressed data.
    for hidden in [1, 5000] {
        let data = [DEFLATED, &vec![0; hidden]].concat();
        let plan = Plan { inflated: Some(vec![b'a'; 16]), ..stored("m", &data) };
        assert_eq!(found(&build(&[plan]).0), ["zc-longer"], "{hidden}");
    }
}

#[test]
fn streams_of_zlib_are_read_to_their_end() {
    let one = [b"\x78\x9c", DEFLATED, b"\x33\x98\x06\x11"].concat();
    let read = |bytes: &[u8]| {
        let mut out = Vec::new();
        let mut take = |piece: &[u8]| {
            out.extend_from_slice(piece);
            true
        };
        let done = decompress(&bytes, Compression::Zlib, 0, &mut take);
        (done.map_err(|error| error.code()), out.len())
    };
    assert_eq!(read(&one), (Ok(true), 16));
    assert_eq!(read(&one.repeat(2)), (Ok(true), 32));
    assert_eq!(read(&[one.as_slice(), b"rest"].concat()), (Err("zc-after"), 16));
    assert_eq!(read(&one[..one.len() - 1]), (Err("zc-short"), 16));
    assert_eq!(read(DEFLATED), (Err("zc-deflate"), 0));
    assert!(!decompress(&one.as_slice(), Compression::Zlib, 0, |_| false).expect("left"));
}
