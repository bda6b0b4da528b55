//! The work that a file may cause is linear in its length: bytes that are read and opcodes that are followed, not time.

use core::cell::Cell;

use model_scan::{FileReport, Options, Verdict, scan_file};
use read_at::{Error, ReadAt};

use crate::files::{PAYLOAD, archive, tar_member};
use crate::members::deflated;

/// Bytes that are counted when they are read.
struct Counted<'b>(&'b [u8], Cell<u64>);

impl ReadAt for Counted<'_> {
    fn total_len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        self.1.set(self.1.get() + out.len() as u64);
        self.0.read_exact_at(offset, out)
    }
}

/// The report, opcodes, and how often each byte was read on average.
fn work(bytes: &[u8]) -> (FileReport, u64, u64) {
    let source = Counted(bytes, Cell::new(0));
    let report = scan_file(&source, &Options::DEFAULT).expect("a report");
    let opcodes = report.parts.iter().map(|part| part.report.opcodes).sum();
    (report, opcodes, source.1.get() / bytes.len() as u64)
}

/// Lets all members of an archive have the bytes that `shift` says of the first, by its number and length.
fn overlapping(members: usize, data: &[u8], shift: fn(usize) -> usize) -> Vec<u8> {
    let name = |idx: usize| format!("{idx:05}");
    let mut files = vec![(name(0), data)];
    files.extend((1..members).map(|idx| (name(idx), &b""[..])));
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, data)| (name.as_str(), *data)).collect();
    let mut bytes = archive(&files);
    // Headers of the directory, 51 bytes each, are before the end record.
    let directory = bytes.len() - 22 - 51 * members;
    for idx in 1..members {
        let at = directory + 51 * idx;
        let (start, len) = (shift(idx), (data.len() - shift(idx)) as u32);
        bytes[at + 20..at + 28].copy_from_slice(&[len.to_le_bytes(); 2].concat());
        bytes[at + 42..at + 46].copy_from_slice(&(start as u32).to_le_bytes());
    }
    bytes
}

#[test]
fn bytes_that_members_share_are_scanned_once() {
    let data = [b"N0".repeat(100_000), PAYLOAD.to_vec()].concat();
    let (report, opcodes, reads) = work(&overlapping(200, &data, |_| 0));
    assert_eq!(report.verdict(), Verdict::Dangerous);
    assert!(report.parts.len() <= 2 && opcodes < 2 * data.len() as u64 && reads < 10, "{opcodes} {reads}");
    let why = "not opened: members over bytes of other members";
    assert!(report.findings().any(|found| found.member.is_empty() && found.message == why));
    // Local headers in the data of the member before: each begins elsewhere.
    let local = [b"PK\x03\x04".as_slice(), &[0; 22], &[5, 0, 0, 0], b"00000"].concat();
    let data = [local.repeat(4000), b"N0".repeat(50_000), b"N.".to_vec()].concat();
    let (report, _, reads) = work(&overlapping(200, &data, |idx| 35 * idx));
    assert_eq!(report.verdict(), Verdict::Suspicious);
    assert!(reads < 10, "{reads}");
}

#[test]
fn many_members_are_read_a_number_of_times() {
    let data = [b"}".as_slice(), &b"]0".repeat(400), b"."].concat();
    let names: Vec<String> = (0..10_000).map(|idx| format!("{idx}")).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), data.as_slice())).collect();
    let (report, opcodes, reads) = work(&archive(&files));
    assert_eq!((report.verdict(), report.parts.len()), (Verdict::Safe, 10_000));
    assert!(opcodes <= 10_000 * 1000 && reads < 10, "{opcodes} {reads}");
}

#[test]
fn no_more_members_are_read_than_an_archive_of_16_bits_has() {
    let member = tar_member(b"a", b"", u8::into);
    let is_limited = |members: usize| {
        let (report, ..) = work(&member.repeat(members));
        report.findings().any(|found| found.message == "not opened: more members than are read")
    };
    assert!(!is_limited(65_535) && is_limited(65_536));
    let members = |count: usize| archive(&vec![("a.zip", [0_u8; 0].as_slice()); count]);
    let both = [members(40_000), members(25_536)];
    let files: Vec<(&str, &[u8])> = vec![("a", &both[0]), ("b", &both[1])];
    let why = "not opened: more members than are read";
    let (report, ..) = work(&archive(&files));
    assert!(report.findings().any(|found| found.message == why));
}

#[test]
fn opcodes_are_counted_over_all_members_and_passes() {
    let limited = |bytes: &[u8]| {
        let mut options = Options::DEFAULT;
        options.limits.opcodes = 1000;
        let report = scan_file(bytes, &options).expect("a report");
        report.findings().any(|found| found.message.contains("pk-limit"))
    };
    let stream = |opcodes: usize| [b"N0".repeat(opcodes / 2 - 1), b"N.".to_vec()].concat();
    assert!(!limited(&stream(1000)) && limited(&stream(1002)));
    assert!(!limited(&archive(&[("a", &stream(500)), ("b", &stream(500))])));
    assert!(limited(&archive(&[("a", &stream(500)), ("b", &stream(502))])));
    assert!(!limited(&deflated("a", &stream(1000))) && limited(&deflated("a", &stream(1002))));
    // Streams as files of PyTorch in bytes objects; the same object is judged once.
    let inner = stream(400);
    let bytes = [b"B".as_slice(), &(inner.len() as u32).to_le_bytes(), &inner].concat();
    let load = |bytes: &[u8]| [b"ctorch.storage\n_load_from_bytes\n", bytes, b"\x85R0"].concat();
    let objects = |count: usize| [b"\x80\x03".as_slice(), &load(&bytes).repeat(count), b"N."].concat();
    assert!(!limited(&objects(2)) && limited(&objects(3)));
    let again = [b"\x80\x03".as_slice(), &bytes, b"q\x000", &load(b"h\x00").repeat(10), b"N."].concat();
    assert!(!limited(&again));
    // In bytes that nothing loads.
    let found = |opcodes: u64| {
        let mut options = Options::DEFAULT;
        options.limits.opcodes = opcodes;
        let report = scan_file([b"\x80\x03".as_slice(), &bytes, b"."].concat().as_slice(), &options);
        report.expect("a report").verdict()
    };
    assert_eq!((found(399), found(400)), (Verdict::Suspicious, Verdict::Safe));
}
